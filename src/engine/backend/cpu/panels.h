/* panels.h - what the kernels of linear_panels share: operands, and from sums to y. */
#ifndef TP_ENGINE_BACKEND_CPU_PANELS_H
#define TP_ENGINE_BACKEND_CPU_PANELS_H

#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/vec_gelu.h"

typedef struct {
    const tp_launch *launch;
    const tp_operand *x, *w, *b, *y;
    bool bf16; /* x and w */
    int64_t rows, K, N;
    int64_t chunks; /* of rows */
} product;

static inline product product_of(const tp_launch *launch, int64_t chunk)
{
    product p = {.launch = launch,
                 .x = &launch->in[0],
                 .w = &launch->in[1],
                 .b = &launch->in[2],
                 .y = &launch->out[0],
                 .bf16 = is_half(&launch->in[0]),
                 .rows = launch->in[0].dim[0],
                 .K = launch->in[0].dim[1],
                 .N = launch->out[0].dim[1]};
    p.chunks = ceil_div(p.rows, chunk);
    return p;
}

/* Sums of one vector of columns from n on become elements of y: bias, activation, rounding. */
VF_INLINE vf activated(vf y, int32_t activation, bool to_half)
{
    return activation == 0   ? y
           : activation == 1 ? vf_gelu(y, false, to_half)
                             : vf_gelu(y, true, to_half);
}

static inline void finish(const product *p, int64_t row, int64_t n, vf sum)
{
    int64_t left = p->N - n;
    if (left <= 0)
        return;
    bool is_whole = left >= VF_N, b16 = is_half(p->b);
    void *to = row_at(p->y, row);
    if (is_bound(p->b))
        sum += is_whole ? vf_get(p->b->data, b16, n) : vf_get_n(p->b->data, b16, n, left);
    sum = activated(sum, p->launch->attrs.activation, is_half(p->y));
    if (is_whole)
        vf_put(to, is_half(p->y), n, sum);
    else
        vf_put_n(to, is_half(p->y), n, left, sum);
}

#endif
