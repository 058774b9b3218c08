/* frozen.h - the tensors that hold a parameter: itself, or a frozen one in 8 or 4 bits. */
#ifndef TP_ENGINE_MODEL_FROZEN_H
#define TP_ENGINE_MODEL_FROZEN_H

#include "engine/model/model.h"

enum { TP_PARAM_PARTS = 3 };

/* In the order of the operands of the op that unpacks them; returns how many.  Names are in
 * `arena`. */
int tp_param_parts(const tp_param *param, tp_arena *arena, tp_tensor ret[TP_PARAM_PARTS]);
bool tp_param_is_packed(const tp_param *param);

/* A packed parameter from and to all of its elements in f32, which lie as the parameter's do.
 * Packed they are [out, in] in every family, so that blocks run along the inputs of an output as in
 * bitsandbytes and in GGUF. */
TP_CHECKED tp_status tp_param_pack(const tp_param *param, tp_states *states, const float *x,
                                   tp_error *err);
TP_CHECKED tp_status tp_param_unpack(const tp_param *param, const tp_states *states, float *x,
                                     tp_error *err);
/* Its elements become what they would be if it were kept in `storage`, packed. */
TP_CHECKED tp_status tp_param_round(const tp_param *param, tp_base_storage storage, float *x,
                                    tp_error *err);

#endif
