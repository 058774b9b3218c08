/* families.c - the families of architectures that there are. */
#include <stdio.h>

#include "base/platform.h"
#include "engine/model/family.h"

static const tp_family *const families[] = {
    &tp_family_llama,
    &tp_family_qwen2,
    &tp_family_qwen3,
    &tp_family_gpt2,
};

const tp_family *tp_model_family_at(size_t i)
{
    return i < TP_COUNTOF(families) ? families[i] : NULL;
}

const char *tp_model_supported(char *out, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < TP_COUNTOF(families) && at < n; i++)
        at += (size_t)snprintf(out + at, n - at, "%s%s (%s)", i ? ", " : "",
                               families[i]->model_type, families[i]->models);
    return out;
}
