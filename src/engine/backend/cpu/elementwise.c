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
#define PLACE_FOR(name, is_rounded, n_in, value)  \
    VF_INLINE results name##_of(vf a, vf b, vf c) \
    {                                             \
        const bool to_half = is_rounded;          \
        (void)b, (void)c, (void)to_half;          \
        return (results){.first = value};         \
    }                                             \
    ITEMS(name, n_in)
#define PLACE(name, n_in, value) PLACE_FOR(name, false, n_in, value)
/* And once more for results that are rounded to halves. */
#define PLACES(name, n_in, value)       \
    PLACE_FOR(name, false, n_in, value) \
    PLACE_FOR(name##_half, true, n_in, value)

PLACE(add, 2, a + b)
PLACE(mul, 2, a *b)
PLACE(cast, 1, a)
PLACES(silu, 1, a *vf_shares_of(a, to_half).sigmoid)
PLACES(gelu_erf, 1, vf_gelu(a, false, to_half))
PLACES(gelu_tanh, 1, vf_gelu(a, true, to_half))
PLACES(swiglu, 2, a *vf_shares_of(a, to_half).sigmoid *b)
PLACES(silu_grad, 2, b *vf_silu_slope(a, vf_shares_of(a, to_half)))
PLACES(gelu_erf_grad, 2, b *vf_gelu_slope(a, false, to_half))
PLACES(gelu_tanh_grad, 2, b *vf_gelu_slope(a, true, to_half))

VF_INLINE results swiglu_gradients(vf gate, vf up, vf dy, const bool to_half)
{
    vf_shares of_gate = vf_shares_of(gate, to_half);
    return (results){.first = dy * up * vf_silu_slope(gate, of_gate),
                     .second = dy * gate * of_gate.sigmoid};
}
VF_INLINE results swiglu_grad_of(vf a, vf b, vf c) { return swiglu_gradients(a, b, c, false); }
VF_INLINE results swiglu_grad_half_of(vf a, vf b, vf c) { return swiglu_gradients(a, b, c, true); }
ITEMS(swiglu_grad, 3)
ITEMS(swiglu_grad_half, 3)

/* Is all that is written rounded? */
static bool rounds(const tp_launch *launch)
{
    bool all = true;
    for (int i = 0; i < launch->n_out; i++)
        all = all && (!is_bound(&launch->out[i]) || is_half(&launch->out[i]));
    return all;
}

#define RANGE_FOR(launch, name) (rounds(launch) ? name##_half_range : name##_range)

static void gelu(const tp_launch *launch)
{
    run(launch, launch->attrs.tanh ? RANGE_FOR(launch, gelu_tanh) : RANGE_FOR(launch, gelu_erf));
}

static void gelu_grad(const tp_launch *launch)
{
    run(launch,
        launch->attrs.tanh ? RANGE_FOR(launch, gelu_tanh_grad) : RANGE_FOR(launch, gelu_erf_grad));
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

#define KERNEL_BY_DTYPE(name)                                                           \
    static void name(const tp_launch *launch) { run(launch, RANGE_FOR(launch, name)); } \
    TP_CPU_KERNEL(name, .accepts = accepts, .run = name)

KERNEL(add);
KERNEL(mul);
KERNEL(cast);
KERNEL_BY_DTYPE(silu);
KERNEL_BY_DTYPE(swiglu);
KERNEL_BY_DTYPE(silu_grad);
KERNEL_BY_DTYPE(swiglu_grad);
TP_CPU_KERNEL(gelu, .accepts = accepts, .run = gelu);
TP_CPU_KERNEL(gelu_grad, .accepts = accepts, .run = gelu_grad);
TP_CPU_ROWS_KERNEL(concat, concat_range, accepts);
