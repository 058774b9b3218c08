/* compressed.c - activations in 8 bits while they wait for the backward pass. */
#include "engine/ir/ops.h"

/* codes = 128 + x / scale, rounded to nearest even, scale = the row's largest size / 127.  A row
 * with a number that is not finite has the scale NaN, one of numbers that are nearly zero the scale
 * 0. */
TP_OP(compress, "x:f[T,C] -> codes:codes[T,C] scales:s[T]", .flops = "3*T*C");

/* (codes - 128) * scale; y is f32 unless a pass makes it something else. */
TP_OP(restore, "codes:codes[T,C] scales:w[T] -> y:f[T,C]", .flops = "2*T*C");
