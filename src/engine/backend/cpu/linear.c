/* linear.c - the layer y = x w^T + b and its gradients, as matrix products.  The
 * instruction set is chosen by gemm.c. */
#include "engine/backend/cpu/gemm.h"
#include "engine/backend/cpu/kernel.h"

static void set_a(tp_gemm *g, const tp_operand *a, bool trans)
{
    g->a = a->data;
    g->lda = a->stride;
    g->a_trans = trans;
    g->ab_dtype = a->dtype;
}

static void set_b(tp_gemm *g, const tp_operand *b, bool trans)
{
    g->b = b->data;
    g->ldb = b->stride;
    g->b_trans = trans;
}

static void set_c(tp_gemm *g, const tp_operand *c)
{
    g->c = c->data;
    g->ldc = c->stride;
    g->c_dtype = c->dtype;
    g->m = c->dim[0];
    g->n = c->dim[1];
}

/* linear and linear_gelu: y[T,N] = x[T,K] w + b */
static tp_gemm forward(const tp_launch *launch)
{
    const tp_operand *x = &launch->in[0], *w = &launch->in[1], *b = &launch->in[2];
    const tp_operand *y = &launch->out[0];
    tp_gemm g = {.k = x->dim[1],
                 .planned_m = launch->planned_rows,
                 .threads = launch->threads,
                 .team = launch->team};
    set_a(&g, x, false);
    set_b(&g, w, !launch->attrs.transposed);
    set_c(&g, y);
    if (is_present(b)) {
        g.may_have_bias = true;
        g.bias = b->data;
        g.bias_dtype = b->dtype;
    }
    if (launch->op == TP_OP_linear_gelu) {
        g.epilogue = launch->attrs.tanh ? TP_GEMM_EPILOGUE_GELU_TANH : TP_GEMM_EPILOGUE_GELU_ERF;
        g.may_have_pre = is_present(&launch->out[1]);
        g.pre = launch->out[1].data;
    }
    return g;
}

/* dx[T,K] = dy[T,N] w */
static tp_gemm backward_x(const tp_launch *launch)
{
    const tp_operand *dy = &launch->in[0];
    tp_gemm g = {.k = dy->dim[1],
                 .planned_m = launch->planned_rows,
                 .accumulate = adds_to(launch, 2),
                 .threads = launch->threads,
                 .team = launch->team};
    set_a(&g, dy, false);
    set_b(&g, &launch->in[1], launch->attrs.transposed);
    set_c(&g, &launch->out[0]);
    return g;
}

/* dw[N,K] = dy^T x, or dw[K,N] = x^T dy */
static tp_gemm backward_w(const tp_launch *launch)
{
    const tp_operand *x = &launch->in[0], *dy = &launch->in[1];
    bool transposed = launch->attrs.transposed;
    tp_gemm g = {.k = x->dim[0],
                 .planned_k = launch->planned_rows,
                 .accumulate = adds_to(launch, 2),
                 .threads = launch->threads,
                 .team = launch->team};
    set_a(&g, transposed ? x : dy, true);
    set_b(&g, transposed ? dy : x, false);
    set_c(&g, &launch->out[0]);
    g.may_have_squares = is_present(&launch->out[1]);
    g.squares = launch->out[1].data;
    return g;
}

static tp_gemm product_of(const tp_launch *launch)
{
    if (launch->op == TP_OP_linear_dx)
        return backward_x(launch);
    if (launch->op == TP_OP_linear_dw)
        return backward_w(launch);
    return forward(launch);
}

static size_t workspace(const tp_launch *launch)
{
    tp_gemm g = product_of(launch);
    return tp_gemm_workspace(&g);
}

static void run(const tp_launch *launch)
{
    tp_gemm g = product_of(launch);
    if (g.c)
        tp_gemm_run(&g, launch->workspace);
}

/* Only the value before the nonlinearity may be wanted: then it is the product's result. */
static void run_gelu(const tp_launch *launch)
{
    tp_gemm g = product_of(launch);
    if (!g.c) {
        g.c = g.pre;
        g.pre = NULL;
        g.epilogue = TP_GEMM_EPILOGUE_NONE;
    }
    if (g.c)
        tp_gemm_run(&g, launch->workspace);
}

/* f32 and at most one of the half types. */
static bool note_half(const tp_operand *x, tp_dtype *half)
{
    if (!is_present(x) || x->dtype == TP_DTYPE_F32)
        return true;
    bool is_other = *half != TP_DTYPE_F32 && *half != x->dtype;
    *half = x->dtype;
    return !is_other && (x->dtype == TP_DTYPE_BF16 || x->dtype == TP_DTYPE_F16);
}

static bool accepts(const tp_launch *launch)
{
    bool is_forward = launch->op == TP_OP_linear || launch->op == TP_OP_linear_gelu;
    tp_dtype half = TP_DTYPE_F32;
    bool ok = note_half(&launch->in[0], &half) && note_half(&launch->in[1], &half) &&
              (!is_forward || note_half(&launch->in[2], &half)) &&
              note_half(&launch->out[0], &half);
    tp_gemm g = {.ab_dtype = launch->in[0].dtype, .c_dtype = half};
    return ok && launch->in[0].dtype == launch->in[1].dtype && tp_gemm_is_possible(&g);
}

static bool accepts_gelu(const tp_launch *launch)
{
    const tp_operand *act = &launch->out[0], *pre = &launch->out[1];
    return accepts(launch) &&
           (!is_present(pre) || (pre->stride == act->stride && pre->dtype == act->dtype));
}

#define GEMM(op_, accepts_, run_)                             \
    const tp_kernel tp_cpu_##op_ = {.name = #op_ "/gemm",     \
                                    .op = TP_OP_##op_,        \
                                    .is_always_usable = true, \
                                    .accepts = accepts_,      \
                                    .workspace = workspace,   \
                                    .run = run_}

GEMM(linear, accepts, run);
GEMM(linear_gelu, accepts_gelu, run_gelu);
GEMM(linear_dx, accepts, run);
GEMM(linear_dw, accepts, run);
