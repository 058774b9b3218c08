/* decoder.h - the block that Llama, Qwen2 and Qwen3 share; private to engine/model.
 *
 * RMSNorm, grouped-query attention with rotary positions, RMSNorm, gated MLP, both
 * behind residuals.  The families differ in which projections have a bias, in the
 * norm of q and k, and in defaults: flags of tp_model that their read() sets. */
#ifndef TP_ENGINE_MODEL_DECODER_H
#define TP_ENGINE_MODEL_DECODER_H

#include "engine/model/family.h"

extern const char *const tp_decoder_ignored[];

/* The fields all of them have. */
TP_CHECKED tp_status tp_decoder_read(tp_model *model, const tp_fields *c, tp_error *err);
/* Refuse sliding windows that are in use. */
TP_CHECKED tp_status tp_decoder_check_windows(const tp_model *model, const tp_fields *c,
                                              tp_error *err);
void tp_decoder_list_params(tp_model *model);
void tp_decoder_forward(const tp_model *model, tp_graph *g, const tp_forward *f,
                        tp_ref *ret_hidden);

#endif
