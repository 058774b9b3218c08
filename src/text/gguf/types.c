/* types.c - the types of tensors that llama.cpp has, by name and size. */

#include "base/platform.h"
#include "text/gguf/gguf.h"

static const tp_ggml_info known[] = {
    {"F32", 0, 1, 4, true},          {"F16", 1, 1, 2, true},
    {"Q4_0", 2, 32, 18, true},       {"Q4_1", 3, 32, 20, false},
    {"Q5_0", 6, 32, 22, true},       {"Q5_1", 7, 32, 24, true},
    {"Q8_0", 8, 32, 34, true},       {"Q8_1", 9, 32, 36, false},
    {"Q2_K", 10, 256, 84, false},    {"Q3_K", 11, 256, 110, false},
    {"Q4_K", 12, 256, 144, true},    {"Q5_K", 13, 256, 176, true},
    {"Q6_K", 14, 256, 210, true},    {"Q8_K", 15, 256, 292, false},
    {"IQ2_XXS", 16, 256, 66, false}, {"IQ2_XS", 17, 256, 74, false},
    {"IQ3_XXS", 18, 256, 98, false}, {"IQ1_S", 19, 256, 50, false},
    {"IQ4_NL", 20, 32, 18, false},   {"IQ3_S", 21, 256, 110, false},
    {"IQ2_S", 22, 256, 82, false},   {"IQ4_XS", 23, 256, 136, false},
    {"I8", 24, 1, 1, false},         {"I16", 25, 1, 2, false},
    {"I32", 26, 1, 4, false},        {"I64", 27, 1, 8, false},
    {"F64", 28, 1, 8, false},        {"IQ1_M", 29, 256, 56, false},
    {"BF16", 30, 1, 2, true},        {"TQ1_0", 34, 256, 54, false},
    {"TQ2_0", 35, 256, 66, false},   {"MXFP4", 39, 32, 17, false},
};

const tp_ggml_info *tp_ggml_info_of(uint32_t type)
{
    for (size_t i = 0; i < TP_COUNTOF(known); i++)
        if (known[i].type == type)
            return &known[i];
    return NULL;
}

char *tp_ggml_readable(char *out)
{
    size_t at = 0;
    for (size_t i = 0; i < TP_COUNTOF(known); i++)
        if (known[i].is_read)
            at += (size_t)snprintf(out + at, 128 - at, "%s%s", at ? ", " : "", known[i].name);
    return out;
}
