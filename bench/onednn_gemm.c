/* onednn_gemm.c - a matmul primitive of oneDNN 3 for one product. */
#include "onednn_gemm.h"

#ifdef HAVE_DNNL
#include <dnnl.h>

struct tp_onednn_gemm {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t matmul;
    dnnl_memory_t a, b, c;
};

/* What is needed while a primitive is made. */
typedef struct {
    dnnl_memory_desc_t a, b, c, any;
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t post;
    dnnl_primitive_desc_t matmul, reorder;
    dnnl_primitive_t copy;
    dnnl_memory_t plain_b;
} making;

#define TRY_DNNL(call)                                                               \
    do {                                                                             \
        dnnl_status_t dnnl_status_ = (call);                                         \
        if (dnnl_status_ != dnnl_success)                                            \
            return tp_fail(err, TP_ERR_UNSUPPORTED, "oneDNN: status %d from " #call, \
                           (int)dnnl_status_);                                       \
    } while (0)

static dnnl_data_type_t data_type(tp_dtype dtype)
{
    return dtype == TP_DTYPE_F32 ? dnnl_f32 : dnnl_bf16;
}

/* A matrix rows x cols; `is_transposed`: stored column by column. */
static tp_status describe(dnnl_memory_desc_t *ret_desc, int64_t rows, int64_t cols, int64_t ld,
                          bool is_transposed, tp_dtype dtype, tp_error *err)
{
    dnnl_dims_t dims = {rows, cols};
    dnnl_dims_t strides = {is_transposed ? 1 : ld, is_transposed ? ld : 1};
    TRY_DNNL(dnnl_memory_desc_create_with_strides(ret_desc, 2, dims, data_type(dtype), strides));
    return TP_OK;
}

static tp_status create_matmul(tp_onednn_gemm *self, making *m, const tp_gemm *g, bool packs_b,
                               tp_error *err)
{
    dnnl_dims_t dims = {g->k, g->n};
    TRY_DNNL(dnnl_memory_desc_create_with_tag(&m->any, 2, dims, data_type(g->ab_dtype),
                                              dnnl_format_tag_any));
    TRY_DNNL(dnnl_primitive_attr_create(&m->attr));
    TRY_DNNL(dnnl_post_ops_create(&m->post));
    if (g->accumulate)
        TRY_DNNL(dnnl_post_ops_append_sum(m->post, 1.0f, 0, dnnl_data_type_undef));
    TRY_DNNL(dnnl_primitive_attr_set_post_ops(m->attr, m->post));
    TRY_DNNL(dnnl_matmul_primitive_desc_create(&m->matmul, self->engine, m->a,
                                               packs_b ? m->any : m->b, NULL, m->c, m->attr));
    TRY_DNNL(dnnl_primitive_create(&self->matmul, m->matmul));
    return TP_OK;
}

/* B as the primitive wants it, copied there. */
static tp_status pack_b(tp_onednn_gemm *self, making *m, const tp_gemm *g, tp_error *err)
{
    const_dnnl_memory_desc_t wanted =
        dnnl_primitive_desc_query_md(m->matmul, dnnl_query_weights_md, 0);
    TRY_DNNL(dnnl_memory_create(&m->plain_b, m->b, self->engine, (void *)(uintptr_t)g->b));
    TRY_DNNL(dnnl_memory_create(&self->b, wanted, self->engine, DNNL_MEMORY_ALLOCATE));
    TRY_DNNL(dnnl_reorder_primitive_desc_create(&m->reorder, m->b, self->engine, wanted,
                                                self->engine, NULL));
    TRY_DNNL(dnnl_primitive_create(&m->copy, m->reorder));
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, m->plain_b}, {DNNL_ARG_TO, self->b}};
    TRY_DNNL(dnnl_primitive_execute(m->copy, self->stream, 2, args));
    TRY_DNNL(dnnl_stream_wait(self->stream));
    return TP_OK;
}

static tp_status fill(tp_onednn_gemm *self, making *m, const tp_gemm *g, bool packs_b,
                      tp_error *err)
{
    TP_TRY(describe(&m->a, g->m, g->k, g->lda, g->a_trans, g->ab_dtype, err));
    TP_TRY(describe(&m->b, g->k, g->n, g->ldb, g->b_trans, g->ab_dtype, err));
    TP_TRY(describe(&m->c, g->m, g->n, g->ldc, false, g->c_dtype, err));
    TRY_DNNL(dnnl_engine_create(&self->engine, dnnl_cpu, 0));
    TRY_DNNL(dnnl_stream_create(&self->stream, self->engine, dnnl_stream_default_flags));
    TP_TRY(create_matmul(self, m, g, packs_b, err));
    if (packs_b)
        TP_TRY(pack_b(self, m, g, err));
    else /* oneDNN's handles are not const even for what it only reads */
        TRY_DNNL(dnnl_memory_create(&self->b, m->b, self->engine, (void *)(uintptr_t)g->b));
    TRY_DNNL(dnnl_memory_create(&self->a, m->a, self->engine, (void *)(uintptr_t)g->a));
    TRY_DNNL(dnnl_memory_create(&self->c, m->c, self->engine, g->c));
    return TP_OK;
}

static void release(making *m)
{
    dnnl_memory_desc_destroy(m->a);
    dnnl_memory_desc_destroy(m->b);
    dnnl_memory_desc_destroy(m->c);
    dnnl_memory_desc_destroy(m->any);
    dnnl_primitive_attr_destroy(m->attr);
    dnnl_post_ops_destroy(m->post);
    dnnl_primitive_desc_destroy(m->matmul);
    dnnl_primitive_desc_destroy(m->reorder);
    dnnl_primitive_destroy(m->copy);
    dnnl_memory_destroy(m->plain_b);
}

tp_status tp_onednn_gemm_open(tp_onednn_gemm **ret, const tp_gemm *g, bool packs_b, tp_error *err)
{
    making m = {0};
    tp_onednn_gemm *self = calloc(1, sizeof *self);
    if (!self)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for a oneDNN primitive");
    tp_status status = fill(self, &m, g, packs_b, err);
    release(&m);
    if (status != TP_OK) {
        tp_onednn_gemm_close(self);
        return status;
    }
    *ret = self;
    return TP_OK;
}

void tp_onednn_gemm_close(tp_onednn_gemm *self)
{
    if (!self)
        return;
    dnnl_memory_destroy(self->a);
    dnnl_memory_destroy(self->b);
    dnnl_memory_destroy(self->c);
    dnnl_primitive_destroy(self->matmul);
    dnnl_stream_destroy(self->stream);
    dnnl_engine_destroy(self->engine);
    free(self);
}

tp_status tp_onednn_gemm_run(tp_onednn_gemm *self, tp_error *err)
{
    dnnl_exec_arg_t args[] = {
        {DNNL_ARG_SRC, self->a}, {DNNL_ARG_WEIGHTS, self->b}, {DNNL_ARG_DST, self->c}};
    TRY_DNNL(dnnl_primitive_execute(self->matmul, self->stream, 3, args));
    TRY_DNNL(dnnl_stream_wait(self->stream));
    return TP_OK;
}

#else

tp_status tp_onednn_gemm_open(tp_onednn_gemm **ret, const tp_gemm *g, bool packs_b, tp_error *err)
{
    (void)ret;
    (void)g;
    (void)packs_b;
    return tp_fail(err, TP_ERR_UNSUPPORTED, "built without oneDNN");
}

void tp_onednn_gemm_close(tp_onednn_gemm *self) { (void)self; }

tp_status tp_onednn_gemm_run(tp_onednn_gemm *self, tp_error *err)
{
    (void)self;
    return tp_fail(err, TP_ERR_UNSUPPORTED, "built without oneDNN");
}

#endif
