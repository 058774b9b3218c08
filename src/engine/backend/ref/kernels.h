/* kernels.h - the ref kernels, one per op; their meaning is written in ir/ops.h.
 *
 * Plain loops, one thread, any float dtype, any stride.  A kernel skips outputs
 * that nobody reads.  Those that need memory for one row of intermediate values
 * have a workspace function. */
#ifndef TP_ENGINE_BACKEND_REF_KERNELS_H
#define TP_ENGINE_BACKEND_REF_KERNELS_H

#include "engine/backend/backend.h"

/* elementwise.c */
void tp_ref_add(const tp_launch *launch);
void tp_ref_mul(const tp_launch *launch);
void tp_ref_silu(const tp_launch *launch);
void tp_ref_gelu(const tp_launch *launch);
void tp_ref_swiglu(const tp_launch *launch);
void tp_ref_cast(const tp_launch *launch);
void tp_ref_host(const tp_launch *launch);
void tp_ref_concat(const tp_launch *launch);
void tp_ref_silu_grad(const tp_launch *launch);
void tp_ref_gelu_grad(const tp_launch *launch);
void tp_ref_swiglu_grad(const tp_launch *launch);

/* The two kinds of gelu; also the epilogue of linear_gelu. */
double tp_ref_gelu_of(double x, bool use_tanh);

/* embed.c */
void tp_ref_embed(const tp_launch *launch);
void tp_ref_embed_grad(const tp_launch *launch);

/* norm.c */
void tp_ref_rmsnorm(const tp_launch *launch);
void tp_ref_layernorm(const tp_launch *launch);
void tp_ref_add_rmsnorm(const tp_launch *launch);
void tp_ref_add_layernorm(const tp_launch *launch);
void tp_ref_rmsnorm_grad(const tp_launch *launch);
void tp_ref_layernorm_grad(const tp_launch *launch);

/* rope.c */
void tp_ref_rope(const tp_launch *launch);

/* linear.c */
void tp_ref_linear(const tp_launch *launch);
void tp_ref_linear_gelu(const tp_launch *launch);
void tp_ref_linear_dx(const tp_launch *launch);
void tp_ref_linear_dw(const tp_launch *launch);
void tp_ref_linear_db(const tp_launch *launch);

/* attention.c */
void tp_ref_attention(const tp_launch *launch);
size_t tp_ref_attention_workspace(const tp_launch *launch);

/* paged.c */
void tp_ref_pack_panels(const tp_launch *launch);
void tp_ref_linear_panels(const tp_launch *launch);
void tp_ref_paged_attention(const tp_launch *launch);
size_t tp_ref_paged_attention_workspace(const tp_launch *launch);

/* sample.c */
void tp_ref_sample(const tp_launch *launch);
size_t tp_ref_sample_workspace(const tp_launch *launch);

/* attention_grad.c */
void tp_ref_attention_grad(const tp_launch *launch);
size_t tp_ref_attention_grad_workspace(const tp_launch *launch);

/* loss.c */
void tp_ref_cross_entropy(const tp_launch *launch);
void tp_ref_linear_ce(const tp_launch *launch);
void tp_ref_linear_ce_train(const tp_launch *launch);
size_t tp_ref_linear_ce_train_workspace(const tp_launch *launch);
void tp_ref_cross_entropy_grad(const tp_launch *launch);

/* update.c */
void tp_ref_sumsq(const tp_launch *launch);
void tp_ref_adamw(const tp_launch *launch);

#endif
