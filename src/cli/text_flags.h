/* text_flags.h - what the command line says about a model that generates: generate, chat. */
#ifndef TP_CLI_TEXT_FLAGS_H
#define TP_CLI_TEXT_FLAGS_H

#include "temper/generator.h"

typedef struct {
    const char *precision, *kv_dtype;          /* "bf16", "bfloat16", "f32", "float32" */
    const char *kv_memory;                     /* "512MiB", "2G", bytes */
    const char *base;                          /* "int8", "nf4" */
    int64_t threads, most_length, max_running; /* 0: the defaults */
    int64_t prompt_lookup;
} tp_text_flags;

/* Complains on standard error and returns false when a word is none of those; notices go there as
 * well. */
bool tp_cli_text_options(const char *command, const tp_text_flags *flags,
                         tp_text_generator_options *ret);

/* How ids are drawn; unset: NaN, and -1 of top_k; 0 of top_k, top_p and min_p: from all. */
void tp_cli_text_sampling(double temperature, int64_t top_k, double top_p, double min_p,
                          tp_text_request *ret);

#endif
