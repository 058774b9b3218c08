/* fingerprint.c - hashes that tell whether a checkpoint belongs to this model and this data. */
#include <stdio.h>
#include <xxhash.h>

#include "engine/model/adapter.h"
#include "engine/train/checkpoint.h"

void tp_model_fingerprint(const tp_model *model, char ret[33])
{
    size_t n;
    const tp_param *params = tp_model_params(model, &n);
    TP_OWN(tp_buf) text = {0};
    for (size_t i = 0; i < n; i++)
        tp_buf_addf(&text, "%s %lld %lld\n", params[i].name, (long long)params[i].dim[0],
                    (long long)params[i].dim[1]);
    params = tp_model_trained(model, &n);
    for (size_t i = 0; tp_model_has_adapter(model) && i < n; i++)
        tp_buf_addf(&text, "%s %lld %lld\n", params[i].name, (long long)params[i].dim[0],
                    (long long)params[i].dim[1]);
    XXH128_hash_t h = XXH3_128bits(text.data, text.len);
    snprintf(ret, 33, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
}
