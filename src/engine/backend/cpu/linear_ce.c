/* linear_ce.c - cross-entropy of logits = x[T,C] w[V,C]^T without ever holding all
 * of them.
 *
 * Tokens of weight 0 are left out: the rows of x that count are copied together,
 * `chunk` at a time; only their logits are formed:
 *
 *     x (gathered) --product--> logits f32 --softmax--> loss, logp
 *                                    |
 *                               dlogits over the logits, in the dtype of x
 *                                    +--product with w--> dx (scattered)
 *                                    +--product with x--> dw, added up over the chunks;
 *                                                         a frozen head has none
 *
 * A chunk costs one more reading and writing of dw, which outweighs the logits'
 * own traffic when chunks are small; memory is the other side of the balance. */
#include "engine/backend/cpu/gemm.h"
#include "engine/backend/cpu/kernel.h"
#include "engine/backend/cpu/loss_rows.h"

enum {
    MIN_CHUNK = 64, /* rows; also the unit */
    MAX_CHUNK = 512,
    CHUNK_BYTES = 192 << 20, /* of logits, at most */
    WHOLE_BYTES = 64 << 20,  /* of all logits: below, they may be one chunk */
    FAR_BYTES = 32 << 20     /* of logits: no cache holds more */
};

typedef struct {
    const tp_launch *launch;
    const tp_operand *x, *w;
    const int32_t *targets;
    const float *weights;
    bool train;
    bool every_row; /* lse is wanted of tokens of weight 0 too */
    int64_t chunk, padded_vocabulary;
    float *logp, *lse; /* optional */

    /* workspace */
    double *terms;   /* [T] what each token adds to the loss */
    int32_t *active; /* [T] the rows that count */
    char *gathered;  /* [chunk, C] of x */
    char *dgathered; /* [chunk, C] of dx */
    float *logits;   /* [chunk, padded vocabulary] */
    void *gemm;
    size_t bytes; /* of all of them */

    /* the chunk at work */
    const int32_t *rows;
    int64_t n;
} work;

static int64_t rows_of_chunk(const tp_launch *launch, int64_t row_bytes)
{
    int64_t tokens = tp_launch_planned_rows(launch), chunk = launch->attrs.chunk;
    if (chunk <= 0) {
        chunk = CHUNK_BYTES / row_bytes / MIN_CHUNK * MIN_CHUNK;
        if (tokens * row_bytes > WHOLE_BYTES && chunk > tokens / 2)
            chunk = ceil_div(tokens / 2, MIN_CHUNK) * MIN_CHUNK;
        chunk = chunk < MIN_CHUNK ? MIN_CHUNK : chunk > MAX_CHUNK ? MAX_CHUNK : chunk;
    }
    return chunk < tokens ? chunk : tokens;
}

static size_t element_size(const tp_operand *operand) { return is_half(operand) ? 2 : 4; }

/* logits[n,V] = x w^T */
static tp_gemm logits_product(const work *a)
{
    return (tp_gemm){.threads = a->launch->threads,
                     .team = a->launch->team,
                     .m = a->n,
                     .n = a->w->dim[0],
                     .k = a->w->dim[1],
                     .a = a->gathered,
                     .lda = a->w->dim[1],
                     .b = a->w->data,
                     .ldb = a->w->stride,
                     .b_trans = true,
                     .c = a->logits,
                     .ldc = a->padded_vocabulary,
                     .c_is_far = a->n * a->padded_vocabulary * 4 > FAR_BYTES,
                     .ab_dtype = a->x->dtype,
                     .c_dtype = TP_DTYPE_F32};
}

/* In elements of dlogits, which lie at the beginning of each row of logits. */
static int64_t dlogits_stride(const work *a)
{
    return a->padded_vocabulary * (is_half(a->x) ? 2 : 1);
}

/* Behind each row of dlogits: so many are 0, for whole lines. */
static int64_t dlogits_padding(const work *a)
{
    const int64_t line = 32; /* halves */
    int64_t V = a->w->dim[0];
    return is_half(a->x) ? ceil_div(V, line) * line - V : 0;
}

/* dx[n,C] = dlogits w */
static tp_gemm dx_product(const work *a)
{
    return (tp_gemm){.threads = a->launch->threads,
                     .team = a->launch->team,
                     .m = a->n,
                     .n = a->w->dim[1],
                     .k = a->w->dim[0],
                     .a = a->logits,
                     .lda = dlogits_stride(a),
                     .a_padding = dlogits_padding(a),
                     .b = a->w->data,
                     .ldb = a->w->stride,
                     .c = a->dgathered,
                     .ldc = a->w->dim[1],
                     .ab_dtype = a->x->dtype,
                     .c_dtype = a->launch->out[2].dtype};
}

/* dw[V,C] += dlogits^T x.  `ends`: nothing more is added. */
static tp_gemm dw_product(const work *a, bool accumulate, bool ends)
{
    const tp_operand *dw = &a->launch->out[3], *squares = &a->launch->out[4];
    return (tp_gemm){.may_have_squares = is_present(squares),
                     .squares = ends ? squares->data : NULL,
                     .threads = a->launch->threads,
                     .team = a->launch->team,
                     .m = a->w->dim[0],
                     .n = a->w->dim[1],
                     .k = a->n,
                     .a = a->logits,
                     .lda = dlogits_stride(a),
                     .a_trans = true,
                     .b = a->gathered,
                     .ldb = a->w->dim[1],
                     .c = dw->data,
                     .ldc = dw->stride,
                     .ab_dtype = a->x->dtype,
                     .c_dtype = TP_DTYPE_F32,
                     .accumulate = accumulate};
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static size_t product_bytes(const work *a)
{
    tp_gemm g = logits_product(a);
    size_t bytes = tp_gemm_workspace(&g);
    if (!a->train)
        return bytes;
    g = dx_product(a);
    bytes = larger(bytes, tp_gemm_workspace(&g));
    if (a->launch->op != TP_OP_linear_ce_train)
        return bytes;
    g = dw_product(a, true, true);
    return larger(bytes, tp_gemm_workspace(&g));
}

/* The next piece of the workspace; at planning time there is none, and only sizes count. */
static void *take(work *a, size_t bytes)
{
    char *base = a->launch->workspace;
    void *piece = base ? base + a->bytes : NULL;
    a->bytes += round_up_64(bytes);
    return piece;
}

static work work_of(const tp_launch *launch)
{
    bool train = launch->op != TP_OP_linear_ce;
    work a = {.launch = launch,
              .x = &launch->in[0],
              .w = &launch->in[1],
              .targets = launch->in[2].data,
              .weights = launch->in[3].data,
              .train = train,
              .logp = launch->out[1].data,
              .lse = train ? NULL : launch->out[2].data};
    size_t tokens = (size_t)a.x->dim[0], width = (size_t)a.x->dim[1];
    a.every_row = a.lse != NULL;
    a.padded_vocabulary = ceil_div(a.w->dim[0], 16) * 16;
    a.chunk = rows_of_chunk(launch, a.padded_vocabulary * 4);
    a.terms = take(&a, tokens * sizeof(double));
    a.active = take(&a, tokens * sizeof(int32_t));
    a.gathered = take(&a, (size_t)a.chunk * width * element_size(a.x));
    if (train)
        a.dgathered = take(&a, (size_t)a.chunk * width * element_size(&launch->out[2]));
    a.logits = take(&a, (size_t)(a.chunk * a.padded_vocabulary) * sizeof(float));
    a.gemm = take(&a, 0);
    return a;
}

/* How many rows a chunk gets depends on the weights, and a product of fewer rows may need more
 * room than one of many: room for any. */
static size_t workspace(const tp_launch *launch)
{
    work a = work_of(launch);
    size_t products = 0;
    for (a.n = 1; a.n <= a.chunk; a.n++)
        products = larger(products, product_bytes(&a));
    return a.bytes + products;
}

static void gather_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const work *a = context;
    size_t bytes = (size_t)a->x->dim[1] * element_size(a->x);
    for (int64_t i = begin; i < end; i++)
        memcpy(a->gathered + (size_t)i * bytes, row_at(a->x, a->rows[i]), bytes);
}

static void scatter_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const work *a = context;
    const tp_operand *dx = &a->launch->out[2];
    size_t bytes = (size_t)dx->dim[1] * element_size(dx);
    for (int64_t i = begin; i < end; i++)
        memcpy(row_at(dx, a->rows[i]), a->dgathered + (size_t)i * bytes, bytes);
}

/* 0 stands for 1. */
static double temperature(const tp_launch *launch)
{
    return launch->attrs.temperature > 0 ? (double)launch->attrs.temperature : 1;
}

static void divide_row(float *z, int64_t n, float by)
{
    for (int64_t v = 0; v < n; v++)
        z[v] /= by;
}

/* From a row of logits to its gradient, in place: factor * (softmax - [the target]). */
static void row_backward(const work *a, float *z, double sum, int32_t target, double factor)
{
    int64_t n = a->w->dim[0];
    bool bf16 = is_half(a->x), known = target >= 0 && target < n;
    double at_target = known ? factor * ((double)z[target] / sum - 1) : 0;
    row_gradient(z, z, bf16, n, known ? (float)(factor / sum) : NAN);
    if (known)
        vf_put_n(z, bf16, target, 1, vf_set((float)at_target));
    for (int64_t i = n; i < n + dlogits_padding(a); i++)
        ((vf_half *)(void *)z)[i] = 0;
}

static void softmax_range(const void *context, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const work *a = context;
    int64_t n = a->w->dim[0];
    float scale = a->train ? *(const float *)a->launch->in[4].data : 0;
    double by = temperature(a->launch);
    for (int64_t i = begin; i < end; i++) {
        float *z = a->logits + i * a->padded_vocabulary;
        int32_t row = a->rows[i], target = a->targets[row];
        float weight = a->weights[row];
        if (by != 1)
            divide_row(z, n, (float)by);
        float largest = row_largest(z, false, n);
        bool known = target >= 0 && target < n;
        double z_target = known ? (double)z[target] : (double)NAN;
        double sum = row_exp_sum(z, false, a->train ? z : NULL, n, largest);
        double lse = (double)largest + log(sum), logp = weight != 0 ? z_target - lse : 0;
        a->terms[row] = weight != 0 ? -(double)weight * logp : 0;
        if (a->logp)
            a->logp[row] = (float)logp;
        if (a->lse)
            a->lse[row] = (float)lse;
        if (a->train)
            row_backward(a, z, sum, target, (double)scale * (double)weight / by);
    }
}

/* Which rows count; the others get their zeros here. */
static int64_t select_rows(const work *a)
{
    const tp_operand *dx = a->train ? &a->launch->out[2] : NULL;
    int64_t n = 0;
    for (int64_t t = 0; t < a->x->dim[0]; t++) {
        a->terms[t] = 0;
        if (a->weights[t] != 0 || a->every_row) {
            a->active[n++] = (int32_t)t;
            continue;
        }
        if (a->logp)
            a->logp[t] = 0;
        if (dx && is_bound(dx))
            memset(row_at(dx, t), 0, (size_t)dx->dim[1] * element_size(dx));
    }
    return n;
}

static void clear_dw(const tp_launch *launch)
{
    const tp_operand *dw = &launch->out[3];
    for (int64_t v = 0; is_bound(dw) && v < dw->dim[0]; v++)
        memset(row_at(dw, v), 0, (size_t)dw->dim[1] * sizeof(float));
    if (is_bound(&launch->out[4]))
        *(double *)launch->out[4].data = 0;
}

static void chunk_backward(const work *a, bool accumulate, bool ends)
{
    if (is_bound(&a->launch->out[2])) {
        tp_gemm g = dx_product(a);
        tp_gemm_run(&g, a->gemm);
        tp_cpu_static(a->launch, a->n, a->n * a->x->dim[1] * 8, scatter_range, a);
    }
    if (is_bound(&a->launch->out[3])) {
        tp_gemm g = dw_product(a, accumulate, ends);
        tp_gemm_run(&g, a->gemm);
    }
}

static void run(const tp_launch *launch)
{
    work a = work_of(launch);
    int64_t n_active = select_rows(&a);
    for (int64_t done = 0; done < n_active; done += a.chunk) {
        a.rows = a.active + done;
        a.n = n_active - done < a.chunk ? n_active - done : a.chunk;
        tp_cpu_static(launch, a.n, a.n * a.x->dim[1] * 4, gather_range, &a);
        tp_gemm g = logits_product(&a);
        tp_gemm_run(&g, a.gemm);
        tp_cpu_static(launch, a.n, a.n * a.w->dim[0] * 8, softmax_range, &a);
        if (a.train)
            chunk_backward(&a, adds_to(launch, 5) || done > 0, done + a.n == n_active);
    }
    if (a.train && n_active == 0 && !adds_to(launch, 5))
        clear_dw(launch);
    double loss = 0;
    for (int64_t t = 0; t < a.x->dim[0]; t++)
        loss += a.terms[t];
    if (is_bound(&launch->out[0]))
        *(float *)launch->out[0].data = (float)loss;
}

static bool accepts(const tp_launch *launch)
{
    bool train = launch->op != TP_OP_linear_ce;
    tp_gemm g = {.ab_dtype = launch->in[0].dtype};
    return are_floats(launch, 3, train ? 4 : 0) && launch->in[0].dtype == launch->in[1].dtype &&
           tp_gemm_is_possible(&g) && is_i32(&launch->in[2]) &&
           launch->in[3].dtype == TP_DTYPE_F32 && is_f32_if_present(&launch->out[0]) &&
           is_f32_if_present(&launch->out[1]) && is_f32_if_present(&launch->out[train ? 3 : 2]);
}

TP_CPU_KERNEL(linear_ce, .accepts = accepts, .workspace = workspace, .run = run);
TP_CPU_KERNEL(linear_ce_train, .accepts = accepts, .workspace = workspace, .run = run);
TP_CPU_KERNEL(linear_ce_dx, .accepts = accepts, .workspace = workspace, .run = run);
