/* convert.h - rows of numbers from one float type to another.
 *
 * f32 is the hub: anything else goes to it or comes from it.  Sources need no
 * alignment, since a safetensors header may end anywhere. */
#ifndef TP_ENGINE_MODEL_CONVERT_H
#define TP_ENGINE_MODEL_CONVERT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/device/dtype.h"

bool tp_convert_is_float(tp_dtype dtype); /* f32, bf16, f16, f64 */

/* `src` to f32; false when a value is (or becomes) infinite or not a number. */
bool tp_convert_to_f32(const void *src, tp_dtype dtype, float *out, size_t n);

/* f32 to `dtype`, rounded to nearest even. */
void tp_convert_from_f32(const float *src, tp_dtype dtype, void *out, size_t n);

#endif
