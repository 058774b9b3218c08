/* elementwise.c - y[..] = f(a[..], b[..], c[..]) in one pass, and concat.
 *
 * Operands without gaps are taken as one long row.  An item of work is a piece
 * of a row; all inputs of a place are read before it is written, so that output
 * 0 may share input 0's memory. */
#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/vec_gelu.h"

enum { PIECE = 4096 }; /* elements: a multiple of VF_N that keeps threads balanced */

/* Outputs of one place.  An op of one output leaves `second` alone. */
typedef struct {
    vf first, second;
} results;

typedef results place(vf a, vf b, vf c);

typedef struct {
    const tp_launch *launch;
    int64_t rows, width, pieces_per_row;
} map;

static map map_of(const tp_launch *launch)
{
    map m = {.launch = launch, .rows = n_rows(&launch->in[0]), .width = row_width(&launch->in[0])};
    if (is_one_row(launch)) {
        m.width *= m.rows;
        m.rows = 1;
    }
    m.pieces_per_row = ceil_div(m.width, PIECE);
    return m;
}

/* One piece of a row: where each operand's lies (NULL: absent) and whether it is bf16. */
typedef struct {
    const void *in[3];
    void *out[2];
    bool in_bf16[3], out_bf16[2];
} piece;

static piece piece_at(const map *m, int64_t row, int64_t column)
{
    piece p = {0};
    for (int i = 0; i < m->launch->n_in && i < 3; i++) {
        const tp_operand *from = &m->launch->in[i];
        p.in_bf16[i] = is_half(from);
        if (is_bound(from))
            p.in[i] = (char *)row_at(from, row) + column * (p.in_bf16[i] ? 2 : 4);
    }
    for (int i = 0; i < m->launch->n_out && i < 2; i++) {
        const tp_operand *to = &m->launch->out[i];
        p.out_bf16[i] = is_half(to);
        if (is_bound(to))
            p.out[i] = (char *)row_at(to, row) + column * (p.out_bf16[i] ? 2 : 4);
    }
    return p;
}

VF_INLINE void run_piece(const piece *p, int64_t n, int n_in, place *f)
{
    int64_t i = 0;
    for (; i + VF_N <= n; i += VF_N) {
        vf a = vf_get(p->in[0], p->in_bf16[0], i);
        vf b = n_in > 1 ? vf_get(p->in[1], p->in_bf16[1], i) : a;
        vf c = n_in > 2 ? vf_get(p->in[2], p->in_bf16[2], i) : a;
        results y = f(a, b, c);
        if (p->out[0])
            vf_put(p->out[0], p->out_bf16[0], i, y.first);
        if (p->out[1])
            vf_put(p->out[1], p->out_bf16[1], i, y.second);
    }
    if (i < n) {
        vf a = vf_get_n(p->in[0], p->in_bf16[0], i, n - i);
        vf b = n_in > 1 ? vf_get_n(p->in[1], p->in_bf16[1], i, n - i) : a;
        vf c = n_in > 2 ? vf_get_n(p->in[2], p->in_bf16[2], i, n - i) : a;
        results y = f(a, b, c);
        if (p->out[0])
            vf_put_n(p->out[0], p->out_bf16[0], i, n - i, y.first);
        if (p->out[1])
            vf_put_n(p->out[1], p->out_bf16[1], i, n - i, y.second);
    }
}

VF_INLINE void run_range(const void *context, int64_t begin, int64_t end, int n_in, place *f)
{
    const map *m = context;
    for (int64_t item = begin; item < end; item++) {
        int64_t row = item / m->pieces_per_row, column = item % m->pieces_per_row * PIECE;
        int64_t n = m->width - column < PIECE ? m->width - column : PIECE;
        piece p = piece_at(m, row, column);
        run_piece(&p, n, n_in, f);
    }
}

static void run(const tp_launch *launch, tp_cpu_range *range)
{
    map m = map_of(launch);
    int64_t bytes = m.rows * m.width * 4 * (launch->n_in + launch->n_out);
    tp_cpu_static(launch, m.rows * m.pieces_per_row, bytes, range, &m);
}

/* An op of `n_in` operands: its place, whose operands are a, b and c, and its items. */
#define ITEMS(name, n_in)                                                           \
    static void name##_range(const void *m, int64_t begin, int64_t end, int thread) \
    {                                                                               \
        (void)thread;                                                               \
        run_range(m, begin, end, n_in, name##_of);                                  \
    }
#define PLACE(name, n_in, value)                  \
    VF_INLINE results name##_of(vf a, vf b, vf c) \
    {                                             \
        (void)b, (void)c;                         \
        return (results){.first = value};         \
    }                                             \
    ITEMS(name, n_in)

PLACE(add, 2, a + b)
PLACE(mul, 2, a *b)
PLACE(cast, 1, a)
PLACE(silu, 1, a *vf_sigmoid(a))
PLACE(gelu_erf, 1, vf_gelu(a, false, false))
PLACE(gelu_tanh, 1, vf_gelu(a, true, false))
PLACE(gelu_erf_half, 1, vf_gelu(a, false, true))
PLACE(gelu_tanh_half, 1, vf_gelu(a, true, true))
PLACE(swiglu, 2, a *vf_sigmoid(a) * b)
PLACE(silu_grad, 2, b *vf_silu_slope(a, vf_sigmoid(a)))
PLACE(gelu_erf_grad, 2, b *vf_gelu_slope(a, false, false))
PLACE(gelu_tanh_grad, 2, b *vf_gelu_slope(a, true, false))
PLACE(gelu_erf_grad_half, 2, b *vf_gelu_slope(a, false, true))
PLACE(gelu_tanh_grad_half, 2, b *vf_gelu_slope(a, true, true))

VF_INLINE results swiglu_grad_of(vf gate, vf up, vf dy)
{
    vf s = vf_sigmoid(gate);
    return (results){.first = dy * up * vf_silu_slope(gate, s), .second = dy * gate * s};
}
ITEMS(swiglu_grad, 3)

static void gelu(const tp_launch *launch)
{
    if (is_half(&launch->out[0]))
        run(launch, launch->attrs.tanh ? gelu_tanh_half_range : gelu_erf_half_range);
    else
        run(launch, launch->attrs.tanh ? gelu_tanh_range : gelu_erf_range);
}

static void gelu_grad(const tp_launch *launch)
{
    if (is_half(&launch->out[0]))
        run(launch, launch->attrs.tanh ? gelu_tanh_grad_half_range : gelu_erf_grad_half_range);
    else
        run(launch, launch->attrs.tanh ? gelu_tanh_grad_range : gelu_erf_grad_range);
}

static void concat_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const tp_launch *launch = context;
    const tp_operand *y = &launch->out[0];
    for (int64_t r = begin; r < end; r++) {
        int64_t column = 0;
        for (int i = 0; i < launch->n_in; i++) {
            const tp_operand *x = &launch->in[i];
            if (!is_bound(x))
                continue;
            piece p = {.in = {row_at(x, r)},
                       .out = {(char *)row_at(y, r) + column * (is_half(y) ? 2 : 4)},
                       .in_bf16 = {is_half(x)},
                       .out_bf16 = {is_half(y)}};
            run_piece(&p, x->dim[1], 1, cast_of);
            column += x->dim[1];
        }
    }
}

static bool accepts(const tp_launch *launch) { return are_floats(launch, 7, 3); }

#define KERNEL(name)                                                         \
    static void name(const tp_launch *launch) { run(launch, name##_range); } \
    TP_CPU_KERNEL(name, .accepts = accepts, .run = name)

KERNEL(add);
KERNEL(mul);
KERNEL(cast);
KERNEL(silu);
KERNEL(swiglu);
KERNEL(silu_grad);
KERNEL(swiglu_grad);
TP_CPU_KERNEL(gelu, .accepts = accepts, .run = gelu);
TP_CPU_KERNEL(gelu_grad, .accepts = accepts, .run = gelu_grad);
TP_CPU_ROWS_KERNEL(concat, concat_range, accepts);
