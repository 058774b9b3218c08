/* fuzz_safetensors.c - any bytes as a safetensors file.
 *
 * What is accepted must hold what the header promises: tensors cover the data
 * exactly, every byte can be read, and every name finds its own tensor. */
#include <stdint.h>
#include <stdlib.h>

#include "engine/model/safetensors.h"

static volatile unsigned sum; /* keeps the reads from being optimised away */

static void check(const tp_safetensors *st, const char *end)
{
    const char *at = NULL;
    for (size_t i = 0; i < tp_safetensors_count(st); i++) {
        const tp_tensor_entry *e = tp_safetensors_at(st, i);
        if (at && e->data != at)
            abort();
        if (tp_safetensors_find(st, e->name) != e)
            abort();
        for (size_t k = 0; k < e->bytes; k++)
            sum += ((const unsigned char *)e->data)[k];
        if (e->is_known && e->bytes % tp_dtype_size(e->dtype) != 0)
            abort();
        at = (const char *)e->data + e->bytes;
    }
    if (at && at != end)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_safetensors *st = NULL;
    tp_error err = {0};
    if (size > 1 << 16)
        return 0;
    if (tp_safetensors_parse("fuzz", data, size, &st, &err) != TP_OK) {
        if (st || !err.message[0])
            abort();
        return 0;
    }
    check(st, (const char *)data + size);
    tp_safetensors_close(st);
    return 0;
}
