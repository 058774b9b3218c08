/* quantised.c - weights in 8 or 4 bits as floats. */
#include "engine/device/quantised.h"
#include "engine/backend/ref/kernels.h"
#include "engine/backend/ref/load.h"

static void store(const tp_operand *w, int64_t i, float value)
{
    ref_store(w, i / w->dim[1], i % w->dim[1], (double)value);
}

TP_REF_KERNEL(unpack_int8)
{
    const tp_operand *scales = &launch->in[1], *w = &launch->out[0];
    const int8_t *codes = launch->in[0].data;
    if (!is_bound(w))
        return;
    for (int64_t i = 0; i < w->dim[0] * w->dim[1]; i++) {
        double value = (double)codes[i] * ref_load(scales, i / TP_INT8_BLOCK, 0);
        store(w, i, (float)value);
    }
}

TP_REF_KERNEL(unpack_nf4)
{
    const tp_operand *groups = &launch->in[2], *w = &launch->out[0];
    const uint8_t *codes = launch->in[0].data, *sizes = launch->in[1].data;
    const tp_dynamic_map *map = tp_dynamic_map_signed();
    if (!is_bound(w))
        return;
    for (int64_t i = 0; i < w->dim[0] * w->dim[1]; i++) {
        int64_t block = i / TP_NF4_BLOCK;
        float scale = (float)ref_load(groups, block / TP_NF4_GROUP, 0);
        float size = map->value[sizes[block]] * scale;
        size += (float)ref_load(groups, groups->dim[0] - 1, 0);
        int code = i % 2 ? codes[i / 2] & 15 : codes[i / 2] >> 4;
        store(w, i, tp_nf4_levels[code] * size);
    }
}
