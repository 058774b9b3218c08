/* import.h - a configuration of another trainer made into a recipe.
 *
 * What a source's keys become stands in one table per source (trl.def, axolotl.def); NeMo RL's keys
 * are Temper's own, so its table is that of the options.  Every key of the file ends in one state:
 *
 *     used      its value stands in the recipe, as it is or converted
 *     idle      it changes no result here; the remark says why
 *     open      it means something here that the file does not say: ??? in the recipe
 *     refused   it would change the result, and Temper does not do that
 *     unknown   the source has no such key
 *
 * Defaults of the source that its file leaves out are written out: they are not Temper's. */
#ifndef TP_CONFIG_IMPORT_IMPORT_H
#define TP_CONFIG_IMPORT_IMPORT_H

#include "config/config.h"

typedef enum {
    TP_IMPORT_USED,
    TP_IMPORT_IDLE,
    TP_IMPORT_OPEN,
    TP_IMPORT_REFUSED,
    TP_IMPORT_UNKNOWN,
    TP_IMPORT_STATES
} tp_import_state;

typedef struct {
    const char *key;
    const tp_json *value;
    const char *becomes; /* Temper's keys, or NULL */
    const char *remark;  /* or NULL */
    uint32_t line;       /* 0: not in the file, a default of the source */
    tp_import_state state;
    bool is_set;                     /* it stands in the recipe */
    const struct tp_import_row *row; /* NULL: unknown, or a key of NeMo RL */
} tp_import_key;

typedef struct {
    const char *name;                 /* "trl" */
    const char *title;                /* "TRL" */
    const struct tp_import_row *rows; /* closed by a row without a key; NULL: Temper's own */
} tp_import_source;
extern const tp_import_source tp_import_sources[]; /* closed by a row without a name */

/* The keys of an algorithm by its name: for NeMo RL.  The caller frees. */
typedef tp_option *(*tp_import_options_of)(const char *algorithm, size_t *ret_n);

typedef struct {
    const char *from, *algorithm; /* NULL: as the keys say */
    int64_t rows;                 /* of the training data; 0: counted, where the file is here */
    double tokens;                /* of an example on average; 0: not known */
    int64_t processes;            /* that the source trains with; 0: one */
    tp_import_options_of options_of;
} tp_import_request;

typedef struct tp_import tp_import;
struct tp_import {
    tp_arena arena;
    const char *path, *algorithm;
    const tp_import_source *source;
    tp_import_request request;
    tp_import_key *keys;
    size_t n_keys, room;
    tp_config *recipe, *file; /* file: of NeMo RL */
    tp_status status;         /* of the first setting that could not be made */
    tp_error err;
};

/* Read the file, recognise its source, convert.  Refused and unknown keys are no failure. */
TP_CHECKED tp_status tp_import_open(const char *path, const tp_import_request *request,
                                    tp_import **ret, tp_error *err);
void tp_import_close(tp_import *im); /* NULL is a no-op */

/* What a key of TRL or Axolotl is called here, the first of several; empty: nobody has it.  For
 * tp_config_set_translator(). */
tp_slice tp_import_named_here(const char *key);

size_t tp_import_count(const tp_import *im, tp_import_state state);
const char *tp_import_state_name(tp_import_state state); /* "without effect" */
/* The recipe as YAML, with where each value comes from. */
void tp_import_write(const tp_import *im, tp_buf *out);
/* What a value is in the report: JSON on one line, cut where it is long. */
void tp_import_value(const tp_json *value, tp_buf *out);
/* The table of a source as Markdown. */
void tp_import_doc(const tp_import_source *source, tp_buf *out);

#endif
