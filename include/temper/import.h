/* import.h - the configuration of another trainer as a recipe: NeMo RL's YAML, TRL's arguments,
 * Axolotl's YAML.
 *
 *     tp_imported_open("sft_config.yaml", NULL, &imported, &err);
 *     tp_imported_report(imported, TP_FORM_TEXT, &text, &err);   // key by key, what each became
 *     if (tp_imported_check(imported, &err) == TP_OK)            // nothing was refused
 *         tp_imported_write(imported, "recipe.yaml", &err);
 *     tp_imported_free(imported);
 *
 * Threads: a tp_imported by one at a time, several at once. */
#ifndef TEMPER_IMPORT_H
#define TEMPER_IMPORT_H

#include "temper/error.h"
#include "temper/text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    size_t size;           /* sizeof, for versions to come */
    const char *from;      /* "nemo-rl", "trl", "axolotl"; NULL: as the keys say */
    const char *algorithm; /* "sft", "dpo", "grpo"; NULL: as the keys say */
    int64_t rows;          /* of the training data; 0: counted, where the file is here */
    int64_t processes;     /* that the other trainer runs; 0: one */
    double tokens;         /* of an example on average, for batches of packed rows; 0: not known */
} tp_import_options;

typedef struct tp_imported tp_imported;

/* `path` "-" is standard input (not of NeMo RL, whose files inherit); options may be NULL.  Keys
 * that are refused or unknown are no failure here.  TP_ERR_IO, TP_ERR_FORMAT, TP_ERR_CONFIG,
 * TP_ERR_ARG. */
TP_API TP_CHECKED tp_status tp_imported_open(const char *path, const tp_import_options *options,
                                             tp_imported **ret, tp_error *err);
TP_API void tp_imported_free(tp_imported *imported); /* NULL is a no-op */

/* What each key became, as text or JSON.  *ret_text: tp_free(). */
TP_API TP_CHECKED tp_status tp_imported_report(const tp_imported *imported, tp_form form,
                                               char **ret_text, tp_error *err);
/* Is the recipe the file's training?  TP_ERR_CONFIG names what is refused or unknown, or what is
 * wrong with a value. */
TP_API TP_CHECKED tp_status tp_imported_check(const tp_imported *imported, tp_error *err);
/* Write the recipe, without what is refused or unknown; "-" is standard output. */
TP_API TP_CHECKED tp_status tp_imported_write(const tp_imported *imported, const char *path,
                                              tp_error *err);
/* What becomes of every key of a source, as a table in Markdown; of NeMo RL, whose keys Temper has,
 * those without effect and those that are refused. */
TP_API TP_CHECKED tp_status tp_import_keys(const char *from, char **ret_text, tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
