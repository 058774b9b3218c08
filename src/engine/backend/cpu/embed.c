/* embed.c - rows of table[V,C] by id, and the sums of gradients by id. */
#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/vec.h"

VF_INLINE void copy_row(const void *x, bool x_bf16, void *y, bool y_bf16, int64_t width)
{
    int64_t i = 0;
    for (; i + VF_N <= width; i += VF_N)
        vf_put(y, y_bf16, i, x ? vf_get(x, x_bf16, i) : vf_zero());
    if (i < width)
        vf_put_n(y, y_bf16, i, width - i, x ? vf_get_n(x, x_bf16, i, width - i) : vf_zero());
}

static void embed_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *table = &launch->in[1], *y = &launch->out[0];
    const int32_t *ids = launch->in[0].data;
    for (int64_t t = begin; t < end; t++) {
        bool known = ids[t] >= 0 && ids[t] < table->dim[0];
        copy_row(known ? row_at(table, ids[t]) : NULL, is_half(table), row_at(y, t), is_half(y),
                 y->dim[1]);
    }
}

static void clear_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_operand *dtable = &((const tp_launch *)context)->out[0];
    for (int64_t v = begin; v < end; v++)
        memset(row_at(dtable, v), 0, (size_t)dtable->dim[1] * sizeof(float));
}

enum { COLUMNS = 64 }; /* of one item: tokens add up in their order in every column */

static void scatter_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *dy = &launch->in[1], *dtable = &launch->out[0];
    const int32_t *ids = launch->in[0].data;
    const int32_t skipped = launch->attrs.skip - 1;
    bool bf16 = is_half(dy);
    int64_t first = begin * COLUMNS;
    int64_t last = end * COLUMNS < dy->dim[1] ? end * COLUMNS : dy->dim[1];
    for (int64_t t = 0; t < dy->dim[0]; t++) {
        if (ids[t] < 0 || ids[t] >= dtable->dim[0] || ids[t] == skipped)
            continue;
        const void *from = row_at(dy, t);
        float *to = row_at(dtable, ids[t]);
        int64_t i = first;
        for (; i + VF_N <= last; i += VF_N)
            vf_store(to + i, vf_load(to + i) + vf_get(from, bf16, i));
        if (i < last) {
            vf sum = vf_load_n(to + i, last - i) + vf_get_n(from, bf16, i, last - i);
            vf_store_n(to + i, last - i, sum);
        }
    }
}

static void embed_grad(const tp_launch *launch)
{
    const tp_operand *dy = &launch->in[1], *dtable = &launch->out[0];
    if (!is_bound(dtable))
        return;
    if (!adds_to(launch, 2)) {
        tp_cpu_static(launch, dtable->dim[0], dtable->dim[0] * dtable->dim[1] * 4, clear_range,
                      launch);
    }
    tp_cpu_static(launch, ceil_div(dy->dim[1], COLUMNS), dy->dim[0] * dy->dim[1] * 8, scatter_range,
                  launch);
}

static bool accepts_embed(const tp_launch *launch)
{
    return are_floats(launch, 2, 1) && is_i32(&launch->in[0]);
}

static bool accepts_embed_grad(const tp_launch *launch)
{
    return are_floats(launch, 2, 0) && is_i32(&launch->in[0]) &&
           launch->out[0].dtype == TP_DTYPE_F32;
}

TP_CPU_ROWS_KERNEL(embed, embed_range, accepts_embed);
TP_CPU_KERNEL(embed_grad, .accepts = accepts_embed_grad, .run = embed_grad);
