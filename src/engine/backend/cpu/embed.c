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

typedef struct {
    const tp_launch *launch;
    /* workspace, where squares are wanted */
    double *change;  /* [items] of the sum of the squares */
    int32_t *rows;   /* [T] that change, each once */
    uint8_t *marked; /* [V] a bit for each row */
    size_t bytes;
    int64_t n_rows;
} scatter;

static int64_t items_of(const tp_launch *launch) { return ceil_div(launch->in[1].dim[1], COLUMNS); }

/* At planning time there is no workspace, and only sizes count. */
static scatter scatter_of(const tp_launch *launch)
{
    scatter s = {.launch = launch};
    if (!is_present(&launch->out[1]))
        return s;
    size_t rows = (size_t)tp_launch_planned_rows(launch) * sizeof *s.rows;
    size_t change = (size_t)items_of(launch) * sizeof *s.change;
    char *base = launch->workspace;
    s.bytes = change + rows + (size_t)ceil_div(launch->out[0].dim[0], 8);
    if (!base)
        return s;
    s.change = (double *)(void *)base;
    s.rows = (int32_t *)(void *)(base + change);
    s.marked = (uint8_t *)base + change + rows;
    return s;
}

/* The row that token t adds to, or -1. */
static int64_t row_of(const tp_launch *launch, int64_t t)
{
    const int32_t *ids = launch->in[0].data, skipped = launch->attrs.skip - 1;
    bool adds = ids[t] >= 0 && ids[t] < launch->out[0].dim[0] && ids[t] != skipped;
    return adds ? ids[t] : -1;
}

static void list_rows(scatter *s)
{
    const tp_launch *launch = s->launch;
    memset(s->marked, 0, (size_t)ceil_div(launch->out[0].dim[0], 8));
    for (int64_t t = 0; t < launch->in[1].dim[0]; t++) {
        int64_t row = row_of(launch, t);
        if (row < 0 || (s->marked[row / 8] >> row % 8 & 1))
            continue;
        s->marked[row / 8] |= (uint8_t)(1 << row % 8);
        s->rows[s->n_rows++] = (int32_t)row;
    }
}

/* Of the item's columns of the rows that change. */
static double squares_of(const scatter *s, int64_t item)
{
    const tp_operand *dtable = &s->launch->out[0];
    int64_t left = dtable->dim[1] - item * COLUMNS, n = left < COLUMNS ? left : COLUMNS;
    double sum = 0;
    for (int64_t r = 0; r < s->n_rows; r++) {
        const float *row = (const float *)row_at(dtable, s->rows[r]) + item * COLUMNS;
        for (int64_t i = 0; i < n; i += VF_N)
            sum = vf_sum_squares(n - i < VF_N ? vf_load_n(row + i, n - i) : vf_load(row + i), sum);
    }
    return sum;
}

static void scatter_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const scatter *s = context;
    const tp_operand *dy = &s->launch->in[1], *dtable = &s->launch->out[0];
    bool bf16 = is_half(dy);
    int64_t first = begin * COLUMNS;
    int64_t last = end * COLUMNS < dy->dim[1] ? end * COLUMNS : dy->dim[1];
    for (int64_t item = begin; s->change && item < end; item++)
        s->change[item] = -squares_of(s, item);
    for (int64_t t = 0; t < dy->dim[0]; t++) {
        int64_t row = row_of(s->launch, t);
        if (row < 0)
            continue;
        const void *from = row_at(dy, t);
        float *to = row_at(dtable, row);
        int64_t i = first;
        for (; i + VF_N <= last; i += VF_N)
            vf_store(to + i, vf_load(to + i) + vf_get(from, bf16, i));
        if (i < last) {
            vf sum = vf_load_n(to + i, last - i) + vf_get_n(from, bf16, i, last - i);
            vf_store_n(to + i, last - i, sum);
        }
    }
    for (int64_t item = begin; s->change && item < end; item++)
        s->change[item] += squares_of(s, item);
}

static void note_squares(const scatter *s)
{
    double *squares = s->launch->out[1].data, sum = adds_to(s->launch, 2) ? *squares : 0;
    for (int64_t item = 0; item < items_of(s->launch); item++)
        sum += s->change[item];
    *squares = sum;
}

static size_t embed_grad_workspace(const tp_launch *launch) { return scatter_of(launch).bytes; }

static void embed_grad(const tp_launch *launch)
{
    const tp_operand *dy = &launch->in[1], *dtable = &launch->out[0];
    if (!is_bound(dtable))
        return;
    if (!adds_to(launch, 2)) {
        tp_cpu_static(launch, dtable->dim[0], dtable->dim[0] * dtable->dim[1] * 4, clear_range,
                      launch);
    }
    scatter s = scatter_of(launch);
    if (s.change)
        list_rows(&s);
    tp_cpu_static(launch, items_of(launch), dy->dim[0] * dy->dim[1] * 8, scatter_range, &s);
    if (s.change)
        note_squares(&s);
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
TP_CPU_KERNEL(embed_grad, .accepts = accepts_embed_grad, .workspace = embed_grad_workspace,
              .run = embed_grad);
