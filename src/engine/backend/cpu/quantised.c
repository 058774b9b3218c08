/* quantised.c - weights in 8 or 4 bits as floats, a piece of blocks at a time. */
#include "engine/device/quantised.h"
#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/vec.h"

enum { PIECE = 64 * TP_NF4_BLOCK }; /* elements of an item */

static void put_all(const tp_operand *w, int64_t first, const float *x, int64_t n)
{
    if (!is_half(w)) {
        memcpy((float *)w->data + first, x, (size_t)n * sizeof *x);
        return;
    }
    for (int64_t i = 0; i < n; i += VF_N) {
        if (n - i >= VF_N)
            vf_store_half((vf_half *)w->data + first + i, vf_load(x + i));
        else
            vf_store_half_n((vf_half *)w->data + first + i, n - i, vf_load_n(x + i, n - i));
    }
}

static int64_t count(const tp_operand *w) { return w->dim[0] * w->dim[1]; }

static void int8_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *w = &launch->out[0];
    const int8_t *codes = launch->in[0].data;
    const float *scales = launch->in[1].data;
    float block[TP_INT8_BLOCK];
    int64_t n = count(w), last = end * PIECE < n ? end * PIECE : n;
    for (int64_t first = begin * PIECE; first < last; first += TP_INT8_BLOCK) {
        int64_t m = last - first < TP_INT8_BLOCK ? last - first : TP_INT8_BLOCK;
        for (int64_t i = 0; i < m; i++)
            block[i] = (float)codes[first + i] * scales[first / TP_INT8_BLOCK];
        put_all(w, first, block, m);
    }
}

static void nf4_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *w = &launch->out[0];
    const uint8_t *codes = launch->in[0].data;
    const float *groups = launch->in[2].data;
    const tp_dynamic_map *map = tp_dynamic_map_signed();
    float block[TP_NF4_BLOCK];
    int64_t n = count(w), last = end * PIECE < n ? end * PIECE : n;
    for (int64_t first = begin * PIECE; first < last; first += TP_NF4_BLOCK) {
        int64_t m = last - first < TP_NF4_BLOCK ? last - first : TP_NF4_BLOCK;
        float size = tp_nf4_size(launch->in[1].data, groups, launch->in[2].dim[0], map,
                                 first / TP_NF4_BLOCK);
        float levels[16];
        for (int k = 0; k < 16; k++)
            levels[k] = tp_nf4_levels[k] * size;
        for (int64_t i = 0; i < m; i += 2) {
            uint8_t byte = codes[(first + i) / 2];
            block[i] = levels[byte >> 4];
            block[i + 1] = levels[byte & 15];
        }
        put_all(w, first, block, m);
    }
}

static void unpack(const tp_launch *launch, tp_cpu_range *range)
{
    const tp_operand *w = &launch->out[0];
    if (is_bound(w))
        tp_cpu_static(launch, ceil_div(count(w), PIECE), count(w) * 4, range, launch);
}

static void unpack_int8(const tp_launch *launch) { unpack(launch, int8_range); }

static void unpack_nf4(const tp_launch *launch) { unpack(launch, nf4_range); }

static bool int8_accepts(const tp_launch *launch)
{
    return is_f32_or_half(&launch->out[0]) && has_no_gaps(&launch->out[0]) &&
           launch->in[1].dtype == TP_DTYPE_F32;
}

static bool nf4_accepts(const tp_launch *launch)
{
    return is_f32_or_half(&launch->out[0]) && has_no_gaps(&launch->out[0]) &&
           launch->in[2].dtype == TP_DTYPE_F32;
}

TP_CPU_KERNEL(unpack_int8, .accepts = int8_accepts, .run = unpack_int8);
TP_CPU_KERNEL(unpack_nf4, .accepts = nf4_accepts, .run = unpack_nf4);
