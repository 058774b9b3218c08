/* text_flags.h - what the command line says about a model that generates: generate, chat. */
#ifndef TP_CLI_TEXT_FLAGS_H
#define TP_CLI_TEXT_FLAGS_H

#include "cli/cli.h"
#include "temper/generator.h"

typedef struct {
    const char *precision, *kv_dtype; /* "bf16", "bfloat16", "f32", "float32" */
    const char *kv_memory;            /* "512MiB", "2G", bytes */
    const char *base;                 /* "int8", "nf4" */
    const char *isa;
    int64_t threads, most_length, max_running; /* 0: the defaults */
    int64_t prompt_lookup;
} tp_text_flags;

/* Rows of a command's table; its struct `flags` has a tp_text_flags named `text`. */
#define TP_TEXT_PRECISION_FLAGS                                                                    \
    TP_CHOICE("precision", 0, "P", text.precision, "float32 bfloat16",                             \
              "of products: bfloat16 (default) or float32"),                                       \
        TP_CHOICE("dtype", 0, "P", text.precision, "float32 bfloat16", "the same as --precision"), \
        TP_CHOICE("base", 0, "TYPE", text.base, "int8 nf4",                                        \
                  "keep the matrices of the blocks in 8 or 4 bits, as policy.peft.base does "      \
                  "(default: as they are)"),                                                       \
        TP_CHOICE("kv-dtype", 0, "P", text.kv_dtype, "float32 bfloat16",                           \
                  "of keys and values (default: as --precision)")
#define TP_TEXT_LOOKUP_FLAG                                                                   \
    TP_NUMBER(                                                                                \
        "prompt-lookup", 0, "N", INT, text.prompt_lookup, 0, 4096,                            \
        "where the last tokens stood in the text before, try up to N that followed there at " \
        "once: the same text, sooner where it repeats itself (default 0)")
#define TP_TEXT_PROCESSOR_FLAGS                                                        \
    TP_NUMBER("threads", 0, "N", INT, text.threads, 1, 4096, "default: one per core"), \
        TP_CHOICE("isa", 0, "LEVEL", text.isa, TP_CLI_ISA,                             \
                  "highest instruction set to use: portable, avx2, avx512, avx512_bf16, amx")

/* Complains on standard error and returns false when a word is none of those, or the instruction
 * set is not there; notices go there as well. */
bool tp_cli_text_options(const char *command, const tp_text_flags *flags,
                         tp_text_generator_options *ret);

/* How ids are drawn; unset: NaN, and -1 of top_k; 0 of top_k, top_p and min_p: from all. */
void tp_cli_text_sampling(double temperature, int64_t top_k, double top_p, double min_p,
                          tp_text_request *ret);

#endif
