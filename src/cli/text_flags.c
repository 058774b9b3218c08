/* text_flags.c - words for precisions, and options of generation. */
#include "cli/text_flags.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* In the library's words; false: it is no precision. */
static bool read_precision(const char *word, const char **ret)
{
    *ret = word;
    if (!word)
        return true;
    bool is_f32 = strcmp(word, "f32") == 0 || strcmp(word, "float32") == 0;
    *ret = is_f32 ? "float32" : "bfloat16";
    return is_f32 || strcmp(word, "bf16") == 0 || strcmp(word, "bfloat16") == 0;
}

bool tp_cli_text_options(const char *command, const tp_text_flags *f,
                         tp_text_generator_options *ret)
{
    const char *wrong = NULL;
    tp_text_generator_options o = {.size = sizeof o,
                                   .threads = (int)f->threads,
                                   .max_length = TP_TEXT_AS_NEEDED,
                                   .most_length = f->most_length,
                                   .max_running = f->max_running,
                                   .notice = tp_cli_note,
                                   .base = f->base,
                                   .prompt_lookup = f->prompt_lookup};
    if (!read_precision(f->precision, &o.precision))
        wrong = "precision is bfloat16 or float32";
    else if (!read_precision(f->kv_dtype, &o.kv_precision))
        wrong = "kv-dtype is bfloat16 or float32";
    else if (f->kv_memory && !tp_cli_bytes(f->kv_memory, &o.kv_bytes))
        wrong = "kv-memory is a size such as 512MiB or 2G";
    if (wrong)
        fprintf(stderr, "temper %s: --%s, not '%s'\n", command, wrong,
                wrong[0] == 'p'   ? f->precision
                : wrong[3] == 'd' ? f->kv_dtype
                                  : f->kv_memory);
    *ret = o;
    return !wrong && tp_cli_force_isa(f->isa);
}

void tp_cli_text_sampling(double temperature, int64_t top_k, double top_p, double min_p,
                          tp_text_request *ret)
{
    ret->temperature = temperature;
    ret->top_k = top_k < 0 ? 0 : top_k == 0 ? -1 : top_k;
    ret->top_p = isnan(top_p) ? 0 : top_p == 0 ? 1 : top_p;
    ret->min_p = isnan(min_p) ? 0 : min_p == 0 ? -1 : min_p;
}
