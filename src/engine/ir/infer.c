/* infer.c - the shape and dtype rule of every op.
 *
 * A rule checks its operands and fills the outputs.  Checks read like the lines
 * of ops.h; the first that fails is the message. */
#include <string.h>

#include "base/platform.h"
#include "engine/ir/graph.h"

typedef struct {
    const tp_graph *g;
    tp_op op;
    const tp_attrs *attrs;
    int n_in;
    const tp_ref *in;
    tp_value *out;
    int n_out;
    tp_error *err;
    bool failed;
} rule;

static const tp_value absent;

static const tp_value *in(const rule *r, int i)
{
    return i < r->n_in && r->in[i] ? &r->g->values[r->in[i]] : &absent;
}

static bool has(const rule *r, int i) { return i < r->n_in && r->in[i] != 0; }

#define CHECK(cond, ...)                                                                     \
    do {                                                                                     \
        if (!r->failed && !(cond)) {                                                         \
            r->failed = true;                                                                \
            tp_error detail;                                                                 \
            tp_fail(&detail, TP_ERR_FORMAT, __VA_ARGS__);                                    \
            tp_fail(r->err, TP_ERR_FORMAT, "op %s: %s", tp_ops[r->op].name, detail.message); \
        }                                                                                    \
    } while (0)

static bool is_float(tp_dtype d)
{
    return d == TP_DTYPE_F32 || d == TP_DTYPE_BF16 || d == TP_DTYPE_F16;
}

static void need_float(rule *r, int i, int rank)
{
    CHECK(has(r, i), "operand %d is missing", i);
    CHECK(is_float(in(r, i)->dtype), "operand %d is %s, not a float", i,
          tp_dtype_name(in(r, i)->dtype));
    CHECK(rank == 0 || in(r, i)->rank == rank, "operand %d has rank %d, not %d", i, in(r, i)->rank,
          rank);
}

static void need(rule *r, int i, tp_dtype dtype, int rank, int64_t d0)
{
    CHECK(has(r, i), "operand %d is missing", i);
    CHECK(in(r, i)->dtype == dtype, "operand %d is %s, not %s", i, tp_dtype_name(in(r, i)->dtype),
          tp_dtype_name(dtype));
    CHECK(in(r, i)->rank == rank, "operand %d has rank %d, not %d", i, in(r, i)->rank, rank);
    CHECK(d0 < 0 || in(r, i)->dim[0] == d0, "operand %d has %lld rows, not %lld", i,
          (long long)in(r, i)->dim[0], (long long)d0);
}

static void need_same(rule *r, int i, int j)
{
    need_float(r, i, 0);
    CHECK(in(r, i)->rank == in(r, j)->rank && in(r, i)->dim[0] == in(r, j)->dim[0] &&
              in(r, i)->dim[1] == in(r, j)->dim[1],
          "operands %d and %d differ in shape: %lldx%lld and %lldx%lld", i, j,
          (long long)in(r, i)->dim[0], (long long)in(r, i)->dim[1], (long long)in(r, j)->dim[0],
          (long long)in(r, j)->dim[1]);
}

static void need_vector(rule *r, int i, int64_t n)
{
    need_float(r, i, 1);
    CHECK(in(r, i)->dim[0] == n, "operand %d has %lld elements, not %lld", i,
          (long long)in(r, i)->dim[0], (long long)n);
}

static void give(rule *r, tp_dtype dtype, int rank, int64_t d0, int64_t d1)
{
    r->out[r->n_out++] =
        (tp_value){.dtype = dtype, .rank = (uint8_t)rank, .dim = {d0, rank == 2 ? d1 : 1}};
}

static void give_like(rule *r, int i)
{
    give(r, in(r, i)->dtype, in(r, i)->rank, in(r, i)->dim[0], in(r, i)->dim[1]);
}

/* Widths of a weight used by the linear family: y[T,N] = x[T,K] w. */
static void weight_dims(rule *r, int i, int64_t *n, int64_t *k)
{
    need_float(r, i, 2);
    bool t = r->attrs->transposed != 0;
    *n = in(r, i)->dim[t ? 1 : 0];
    *k = in(r, i)->dim[t ? 0 : 1];
}

static void shape_given(rule *r) { CHECK(false, "is a source, not an operation"); }

static void shape_same(rule *r)
{
    need_float(r, 0, 0);
    int n = r->op == TP_OP_rope || r->op == TP_OP_cross_entropy_grad ? 1 : tp_ops[r->op].max_in;
    for (int i = 1; i < n; i++)
        need_same(r, i, 0);
    int64_t T = in(r, 0)->dim[0];
    if (r->op == TP_OP_rope) {
        int32_t D = r->attrs->head_dim;
        CHECK(D > 0 && D % 2 == 0 && in(r, 0)->dim[1] % D == 0,
              "head_dim %d must be even and divide the width %lld", D, (long long)in(r, 0)->dim[1]);
        need(r, 1, TP_DTYPE_I32, 1, T);
        need(r, 2, TP_DTYPE_F32, 2, -1);
        CHECK(in(r, 2)->dim[1] == D, "the table is %lld wide, not %d", (long long)in(r, 2)->dim[1],
              D);
    }
    if (r->op == TP_OP_cross_entropy_grad) {
        need_float(r, 0, 2);
        need(r, 1, TP_DTYPE_I32, 1, T);
        need(r, 2, TP_DTYPE_F32, 1, T);
        need(r, 3, TP_DTYPE_F32, 1, T);
        need(r, 4, TP_DTYPE_F32, 1, 1);
    }
    give_like(r, 0);
}

static void shape_split(rule *r)
{
    const tp_attrs *a = r->attrs;
    need_float(r, 0, 2);
    CHECK(a->n0 > 0 && a->n1 > 0 && a->n2 >= 0 &&
              (int64_t)a->n0 + a->n1 + a->n2 == in(r, 0)->dim[1],
          "widths %d+%d+%d do not make %lld", a->n0, a->n1, a->n2, (long long)in(r, 0)->dim[1]);
    int64_t T = in(r, 0)->dim[0];
    give(r, in(r, 0)->dtype, 2, T, a->n0);
    give(r, in(r, 0)->dtype, 2, T, a->n1);
    if (a->n2 > 0)
        give(r, in(r, 0)->dtype, 2, T, a->n2);
}

static void shape_concat(rule *r)
{
    int64_t width = 0;
    CHECK(r->n_in >= 2, "needs at least two operands");
    for (int i = 0; i < r->n_in; i++) {
        need_float(r, i, 2);
        CHECK(in(r, i)->dim[0] == in(r, 0)->dim[0], "operands differ in rows");
        width += in(r, i)->dim[1];
    }
    give(r, in(r, 0)->dtype, 2, in(r, 0)->dim[0], width);
}

static void shape_embed(rule *r)
{
    need(r, 0, TP_DTYPE_I32, 1, -1);
    need_float(r, 1, 2);
    give(r, in(r, 1)->dtype, 2, in(r, 0)->dim[0], in(r, 1)->dim[1]);
}

static int64_t slices(rule *r, int x, int w)
{
    need_float(r, x, 2);
    need_float(r, w, 1);
    int64_t C = in(r, x)->dim[1], D = in(r, w)->dim[0];
    CHECK(D > 0 && C % D == 0, "a weight of %lld does not divide the width %lld", (long long)D,
          (long long)C);
    return D > 0 ? C / D : 1;
}

static void shape_rmsnorm(rule *r)
{
    int64_t S = slices(r, 0, 1);
    give_like(r, 0);
    give(r, TP_DTYPE_F32, 2, in(r, 0)->dim[0], S);
}

static void shape_layernorm(rule *r)
{
    need_float(r, 0, 2);
    need_vector(r, 1, in(r, 0)->dim[1]);
    need_vector(r, 2, in(r, 0)->dim[1]);
    give_like(r, 0);
    give(r, TP_DTYPE_F32, 1, in(r, 0)->dim[0], 1);
    give(r, TP_DTYPE_F32, 1, in(r, 0)->dim[0], 1);
}

static void shape_add_rmsnorm(rule *r)
{
    need_float(r, 0, 2);
    need_same(r, 1, 0);
    CHECK(slices(r, 0, 2) == 1, "the weight must be as wide as the rows");
    give_like(r, 0);
    give_like(r, 0);
    give(r, TP_DTYPE_F32, 2, in(r, 0)->dim[0], 1);
}

static void shape_add_layernorm(rule *r)
{
    need_float(r, 0, 2);
    need_same(r, 1, 0);
    need_vector(r, 2, in(r, 0)->dim[1]);
    need_vector(r, 3, in(r, 0)->dim[1]);
    give_like(r, 0);
    give_like(r, 0);
    give(r, TP_DTYPE_F32, 1, in(r, 0)->dim[0], 1);
    give(r, TP_DTYPE_F32, 1, in(r, 0)->dim[0], 1);
}

static void shape_linear(rule *r)
{
    int64_t N = 0, K = 0;
    need_float(r, 0, 2);
    weight_dims(r, 1, &N, &K);
    CHECK(in(r, 0)->dim[1] == K, "x is %lld wide, the weight takes %lld",
          (long long)in(r, 0)->dim[1], (long long)K);
    if (has(r, 2))
        need_vector(r, 2, N);
    give(r, in(r, 0)->dtype, 2, in(r, 0)->dim[0], N);
}

static void shape_linear_gelu(rule *r)
{
    shape_linear(r);
    r->out[1] = r->out[0];
    r->n_out = 2;
}

static void need_heads(rule *r)
{
    const tp_attrs *a = r->attrs;
    CHECK(a->heads > 0 && a->kv_heads > 0 && a->head_dim > 0 && a->heads % a->kv_heads == 0,
          "heads %d, kv_heads %d, head_dim %d do not fit together", a->heads, a->kv_heads,
          a->head_dim);
    need_float(r, 0, 2);
    need_float(r, 1, 2);
    need_same(r, 2, 1);
    CHECK(in(r, 0)->dim[0] == in(r, 1)->dim[0], "q and k differ in rows");
    CHECK(in(r, 0)->dim[1] == (int64_t)a->heads * a->head_dim &&
              in(r, 1)->dim[1] == (int64_t)a->kv_heads * a->head_dim,
          "q is %lld wide and k %lld; %d and %d heads of %d expected", (long long)in(r, 0)->dim[1],
          (long long)in(r, 1)->dim[1], a->heads, a->kv_heads, a->head_dim);
}

static void shape_attention(rule *r)
{
    need_heads(r);
    need(r, 3, TP_DTYPE_I32, 1, -1);
    give_like(r, 0);
    give(r, TP_DTYPE_F32, 2, r->attrs->heads, in(r, 0)->dim[0]);
}

/* K of a weight in panels of 64 outputs, rounded up to even. */
static int64_t even(int64_t n) { return n + n % 2; }

static void shape_pack_panels(rule *r)
{
    int64_t N = 0, K = 0;
    weight_dims(r, 0, &N, &K);
    give(r, in(r, 0)->dtype, 2, (N + TP_PANEL - 1) / TP_PANEL, TP_PANEL * even(K));
}

static void shape_linear_panels(rule *r)
{
    int64_t N = r->attrs->n0;
    need_float(r, 0, 2);
    need_float(r, 1, 2);
    CHECK(N > 0 && in(r, 1)->dim[0] == (N + TP_PANEL - 1) / TP_PANEL,
          "%lld panels do not make %lld outputs", (long long)in(r, 1)->dim[0], (long long)N);
    CHECK(in(r, 1)->dim[1] == TP_PANEL * even(in(r, 0)->dim[1]),
          "x is %lld wide, the panels have %lld elements", (long long)in(r, 0)->dim[1],
          (long long)in(r, 1)->dim[1]);
    if (has(r, 2))
        need_vector(r, 2, N);
    give(r, in(r, 0)->dtype, 2, in(r, 0)->dim[0], N);
}

static void shape_paged_attention(rule *r)
{
    need_heads(r);
    int64_t T = in(r, 0)->dim[0];
    int64_t per_place = (int64_t)r->attrs->kv_heads * even(r->attrs->head_dim);
    for (int i = 3; i <= 4; i++) {
        need_float(r, i, 2);
        CHECK(in(r, i)->dim[1] % (2 * per_place) == 0,
              "blocks of %lld elements do not hold an even number of places of %lld",
              (long long)in(r, i)->dim[1], (long long)per_place);
    }
    need_same(r, 4, 3);
    CHECK(in(r, 3)->dtype == in(r, 4)->dtype, "the caches differ in dtype");
    need(r, 5, TP_DTYPE_I32, 1, T);
    need(r, 6, TP_DTYPE_I32, 1, T);
    need(r, 7, TP_DTYPE_I32, 2, -1);
    give_like(r, 0);
    give_like(r, 3);
    give_like(r, 4);
}

static void shape_sample(rule *r)
{
    need_float(r, 0, 2);
    int64_t R = in(r, 0)->dim[0];
    need(r, 1, TP_DTYPE_F32, 2, R);
    CHECK(in(r, 1)->dim[1] == 4, "%lld parameters in a row, not 4", (long long)in(r, 1)->dim[1]);
    need(r, 2, TP_DTYPE_F64, 1, R);
    give(r, TP_DTYPE_I32, 1, R, 1);
    give(r, TP_DTYPE_F32, 1, R, 1);
    give(r, TP_DTYPE_F32, 1, R, 1);
}

static void loss_inputs(rule *r, int64_t T, int first)
{
    need(r, first, TP_DTYPE_I32, 1, T);
    need(r, first + 1, TP_DTYPE_F32, 1, T);
}

static void shape_cross_entropy(rule *r)
{
    need_float(r, 0, 2);
    int64_t T = in(r, 0)->dim[0];
    loss_inputs(r, T, 1);
    give(r, TP_DTYPE_F32, 1, 1, 1);
    give(r, TP_DTYPE_F32, 1, T, 1);
    give(r, TP_DTYPE_F32, 1, T, 1);
}

static void head_inputs(rule *r)
{
    need_float(r, 0, 2);
    need_float(r, 1, 2);
    CHECK(in(r, 0)->dim[1] == in(r, 1)->dim[1], "x is %lld wide, the head takes %lld",
          (long long)in(r, 0)->dim[1], (long long)in(r, 1)->dim[1]);
    CHECK(!r->attrs->transposed, "the head's weight is [V, C]");
    loss_inputs(r, in(r, 0)->dim[0], 2);
}

static void shape_linear_ce(rule *r)
{
    head_inputs(r);
    int64_t T = in(r, 0)->dim[0];
    give(r, TP_DTYPE_F32, 1, 1, 1);
    give(r, TP_DTYPE_F32, 1, T, 1);
    give(r, TP_DTYPE_F32, 1, T, 1);
}

/* The accumulator, when present, must be exactly the f32 output it becomes. */
static void need_acc(rule *r, int i, int rank, int64_t d0, int64_t d1)
{
    if (!has(r, i))
        return;
    const tp_value *a = in(r, i);
    CHECK(a->dtype == TP_DTYPE_F32 && a->rank == rank && a->dim[0] == d0 &&
              (rank == 1 || a->dim[1] == d1),
          "accumulator %d must be f32 of %lldx%lld", i, (long long)d0, (long long)d1);
}

static void shape_linear_ce_train(rule *r)
{
    head_inputs(r);
    need(r, 4, TP_DTYPE_F32, 1, 1);
    need_acc(r, 5, 2, in(r, 1)->dim[0], in(r, 1)->dim[1]);
    give(r, TP_DTYPE_F32, 1, 1, 1);
    give(r, TP_DTYPE_F32, 1, in(r, 0)->dim[0], 1);
    give_like(r, 0);
    give(r, TP_DTYPE_F32, 2, in(r, 1)->dim[0], in(r, 1)->dim[1]);
}

static void shape_linear_dx(rule *r)
{
    int64_t N = 0, K = 0;
    need_float(r, 0, 2);
    weight_dims(r, 1, &N, &K);
    CHECK(in(r, 0)->dim[1] == N, "dy is %lld wide, the weight gives %lld",
          (long long)in(r, 0)->dim[1], (long long)N);
    if (has(r, 2)) {
        need_float(r, 2, 2);
        CHECK(in(r, 2)->dim[0] == in(r, 0)->dim[0] && in(r, 2)->dim[1] == K,
              "accumulator does not have the shape of dx");
    }
    give(r, has(r, 2) ? in(r, 2)->dtype : in(r, 0)->dtype, 2, in(r, 0)->dim[0], K);
}

static void shape_linear_dw(rule *r)
{
    need_float(r, 0, 2);
    need_float(r, 1, 2);
    CHECK(in(r, 0)->dim[0] == in(r, 1)->dim[0], "x and dy differ in rows");
    bool t = r->attrs->transposed != 0;
    int64_t N = in(r, 1)->dim[1], K = in(r, 0)->dim[1];
    need_acc(r, 2, 2, t ? K : N, t ? N : K);
    give(r, TP_DTYPE_F32, 2, t ? K : N, t ? N : K);
}

static void shape_linear_db(rule *r)
{
    need_float(r, 0, 2);
    need_acc(r, 1, 1, in(r, 0)->dim[1], 1);
    give(r, TP_DTYPE_F32, 1, in(r, 0)->dim[1], 1);
}

static void shape_swiglu_grad(rule *r)
{
    need_float(r, 0, 2);
    need_same(r, 1, 0);
    need_same(r, 2, 0);
    give_like(r, 0);
    give_like(r, 0);
}

static void shape_embed_grad(rule *r)
{
    need(r, 0, TP_DTYPE_I32, 1, -1);
    need_float(r, 1, 2);
    CHECK(in(r, 1)->dim[0] == in(r, 0)->dim[0], "ids and dy differ in rows");
    need(r, 2, TP_DTYPE_F32, 2, -1);
    CHECK(in(r, 2)->dim[1] == in(r, 1)->dim[1], "table and dy differ in width");
    give_like(r, 2);
}

static void shape_rmsnorm_grad(rule *r)
{
    int64_t S = slices(r, 0, 1);
    need(r, 2, TP_DTYPE_F32, 2, in(r, 0)->dim[0]);
    CHECK(in(r, 2)->dim[1] == S, "rstd has %lld columns, not %lld", (long long)in(r, 2)->dim[1],
          (long long)S);
    need_same(r, 3, 0);
    need_acc(r, 4, 1, in(r, 1)->dim[0], 1);
    if (has(r, 5))
        need_same(r, 5, 0);
    give_like(r, 0);
    give(r, TP_DTYPE_F32, 1, in(r, 1)->dim[0], 1);
}

static void shape_layernorm_grad(rule *r)
{
    need_float(r, 0, 2);
    int64_t C = in(r, 0)->dim[1];
    need_vector(r, 1, C);
    need(r, 2, TP_DTYPE_F32, 1, in(r, 0)->dim[0]);
    need(r, 3, TP_DTYPE_F32, 1, in(r, 0)->dim[0]);
    need_same(r, 4, 0);
    need_acc(r, 5, 1, C, 1);
    need_acc(r, 6, 1, C, 1);
    if (has(r, 7))
        need_same(r, 7, 0);
    give_like(r, 0);
    give(r, TP_DTYPE_F32, 1, C, 1);
    give(r, TP_DTYPE_F32, 1, C, 1);
}

static void shape_attention_grad(rule *r)
{
    need_heads(r);
    need_same(r, 3, 0);
    need(r, 4, TP_DTYPE_F32, 2, r->attrs->heads);
    CHECK(in(r, 4)->dim[1] == in(r, 0)->dim[0], "lse has %lld columns, not %lld",
          (long long)in(r, 4)->dim[1], (long long)in(r, 0)->dim[0]);
    need_same(r, 5, 0);
    need(r, 6, TP_DTYPE_I32, 1, -1);
    give_like(r, 0);
    give_like(r, 1);
    give_like(r, 2);
}

static void shape_sumsq(rule *r)
{
    need_float(r, 0, 0);
    if (has(r, 1))
        need(r, 1, TP_DTYPE_F64, 1, 1);
    give(r, TP_DTYPE_F64, 1, 1, 1);
}

static void shape_adamw(rule *r)
{
    for (int i = 0; i < 4; i++) {
        need(r, i, TP_DTYPE_F32, in(r, 0)->rank, in(r, 0)->dim[0]);
        need_same(r, i, 0);
    }
    need(r, 4, TP_DTYPE_F64, 1, 8);
    give_like(r, 0);
    give_like(r, 2);
    give_like(r, 3);
    if (has(r, 5)) {
        need_same(r, 5, 0);
        give_like(r, 5);
    }
}

static void (*const rules[TP_OP_COUNT])(rule *) = {
#define OP(name, inputs, outputs, shape, gradient, traits) [TP_OP_##name] = shape_##shape,
#include "engine/ir/ops.def"
#undef OP
};

bool tp_op_out_fixed(tp_op op, int output)
{
    switch (op) {
    case TP_OP_rmsnorm:
    case TP_OP_layernorm:
    case TP_OP_attention:
        return output >= 1;
    case TP_OP_add_rmsnorm:
    case TP_OP_add_layernorm:
        return output >= 2;
    case TP_OP_paged_attention:
    case TP_OP_rmsnorm_grad:
    case TP_OP_layernorm_grad:
        return output >= 1;
    case TP_OP_host:
    case TP_OP_cross_entropy:
    case TP_OP_linear_ce:
    case TP_OP_linear_dw:
    case TP_OP_linear_db:
    case TP_OP_embed_grad:
    case TP_OP_pack_panels:
    case TP_OP_sample:
    case TP_OP_sumsq:
    case TP_OP_adamw:
        return true;
    case TP_OP_linear_ce_train:
        return output != 2;
    default:
        return false;
    }
}

tp_status tp_op_infer(const tp_graph *g, tp_op op, const tp_attrs *attrs, int n_in,
                      const tp_ref *in_refs, int *ret_n_out, tp_value ret_out[TP_MAX_OUT],
                      tp_error *err)
{
    TP_ASSERT((unsigned)op < TP_OP_COUNT);
    if (n_in > tp_ops[op].max_in)
        return tp_fail(err, TP_ERR_FORMAT, "op %s: %d operands, at most %d", tp_ops[op].name, n_in,
                       tp_ops[op].max_in);
    for (int i = 0; i < n_in; i++)
        if (in_refs[i] >= g->n_values)
            return tp_fail(err, TP_ERR_FORMAT, "op %s: operand %%%u does not exist",
                           tp_ops[op].name, in_refs[i]);
    tp_value out[TP_MAX_OUT];
    rule r = {
        .g = g, .op = op, .attrs = attrs, .n_in = n_in, .in = in_refs, .out = out, .err = err};
    rules[op](&r);
    if (r.failed)
        return TP_ERR_FORMAT;
    for (int k = 0; k < r.n_out; k++)
        if (!tp_shape_fits(out[k].dim))
            return tp_fail(err, TP_ERR_FORMAT, "op %s: output %d of %lldx%lld is too large",
                           tp_ops[op].name, k, (long long)out[k].dim[0], (long long)out[k].dim[1]);
    memcpy(ret_out, out, (size_t)r.n_out * sizeof *out);
    *ret_n_out = r.n_out;
    return TP_OK;
}
