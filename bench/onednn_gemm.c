#include "onednn_gemm.h"

#ifdef HAVE_DNNL
#include <dnnl.h>

struct tp_onednn_gemm {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t matmul;
    dnnl_memory_t a, b, c;
};

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

/* A matrix rows x cols at `data`; `is_transposed`: stored column by column. */
static tp_status describe(dnnl_memory_desc_t *ret_desc, int64_t rows, int64_t cols, int64_t ld,
                          bool is_transposed, tp_dtype dtype, tp_error *err)
{
    dnnl_dims_t dims = {rows, cols};
    dnnl_dims_t strides = {is_transposed ? 1 : ld, is_transposed ? ld : 1};
    TRY_DNNL(dnnl_memory_desc_init_by_strides(ret_desc, 2, dims, data_type(dtype), strides));
    return TP_OK;
}

static tp_status create_matmul(tp_onednn_gemm *self, const tp_gemm *g, const dnnl_memory_desc_t *a,
                               const dnnl_memory_desc_t *b, const dnnl_memory_desc_t *c,
                               tp_error *err)
{
    dnnl_matmul_desc_t desc;
    dnnl_primitive_desc_t primitive;
    dnnl_primitive_attr_t attr;
    dnnl_post_ops_t post;
    TRY_DNNL(dnnl_matmul_desc_init(&desc, a, b, NULL, c));
    TRY_DNNL(dnnl_primitive_attr_create(&attr));
    TRY_DNNL(dnnl_post_ops_create(&post));
    if (g->accumulate)
        TRY_DNNL(dnnl_post_ops_append_sum(post, 1.0f));
    TRY_DNNL(dnnl_primitive_attr_set_post_ops(attr, post));
    dnnl_post_ops_destroy(post);
    dnnl_status_t status = dnnl_primitive_desc_create(&primitive, &desc, attr, self->engine, NULL);
    dnnl_primitive_attr_destroy(attr);
    if (status != dnnl_success)
        return tp_fail(err, TP_ERR_UNSUPPORTED, "oneDNN has no such matmul: status %d",
                       (int)status);
    status = dnnl_primitive_create(&self->matmul, primitive);
    dnnl_primitive_desc_destroy(primitive);
    TRY_DNNL(status);
    return TP_OK;
}

static tp_status fill(tp_onednn_gemm *self, const tp_gemm *g, tp_error *err)
{
    dnnl_memory_desc_t a, b, c;
    TP_TRY(describe(&a, g->m, g->k, g->lda, g->a_trans, g->ab_dtype, err));
    TP_TRY(describe(&b, g->k, g->n, g->ldb, g->b_trans, g->ab_dtype, err));
    TP_TRY(describe(&c, g->m, g->n, g->ldc, false, g->c_dtype, err));
    TRY_DNNL(dnnl_engine_create(&self->engine, dnnl_cpu, 0));
    TRY_DNNL(dnnl_stream_create(&self->stream, self->engine, dnnl_stream_default_flags));
    TP_TRY(create_matmul(self, g, &a, &b, &c, err));
    /* oneDNN's handles are not const even for what it only reads */
    TRY_DNNL(dnnl_memory_create(&self->a, &a, self->engine, (void *)(uintptr_t)g->a));
    TRY_DNNL(dnnl_memory_create(&self->b, &b, self->engine, (void *)(uintptr_t)g->b));
    TRY_DNNL(dnnl_memory_create(&self->c, &c, self->engine, g->c));
    return TP_OK;
}

tp_status tp_onednn_gemm_open(tp_onednn_gemm **ret, const tp_gemm *g, tp_error *err)
{
    tp_onednn_gemm *self = calloc(1, sizeof *self);
    if (!self)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for a oneDNN primitive");
    tp_status status = fill(self, g, err);
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

tp_status tp_onednn_gemm_open(tp_onednn_gemm **ret, const tp_gemm *g, tp_error *err)
{
    (void)ret;
    (void)g;
    return tp_fail(err, TP_ERR_UNSUPPORTED, "built without oneDNN");
}

void tp_onednn_gemm_close(tp_onednn_gemm *self) { (void)self; }

tp_status tp_onednn_gemm_run(tp_onednn_gemm *self, tp_error *err)
{
    (void)self;
    return tp_fail(err, TP_ERR_UNSUPPORTED, "built without oneDNN");
}

#endif
