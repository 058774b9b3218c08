/* wire.h - how the numbers of a gradient look on their way between ranks.
 *
 * A format turns blocks of f32 elements into a fixed number of bytes each, so that a message has
 * the same size whatever is in it, and a block means the same whatever it is sent with:
 *
 *     fp16, bf16   16 elements    32 bytes       rounded to nearest even
 *     int8        128 elements   132 bytes       f32 scale max|x| / 127, then x * (1 / scale) to
 *                                                the nearest integer, ties to even
 *     topk        256 elements   5 * keep bytes  the `keep` of largest magnitude, of equal ones
 *                                                the first: their places, then their f32
 *
 * A tensor's last block is filled up with zeros.  What is not finite stays so: a NaN, or an
 * infinity where it has no code, makes a block of int8 NaN as a whole; topk counts a NaN as the
 * largest.  Encoding is exact about nothing else; what it loses is its caller's to keep. */
#ifndef TP_ENGINE_EXEC_WIRE_H
#define TP_ENGINE_EXEC_WIRE_H

#include <stddef.h>

typedef enum {
    TP_WIRE_PLAIN, /* the elements themselves */
    TP_WIRE_FP16,
    TP_WIRE_BF16,
    TP_WIRE_INT8,
    TP_WIRE_TOPK,
    TP_WIRES
} tp_wire_kind;

enum { TP_WIRE_LARGEST_BLOCK = 256 };

typedef struct {
    tp_wire_kind kind;
    int keep; /* topk: of TP_WIRE_LARGEST_BLOCK */
} tp_wire;

const char *tp_wire_name(tp_wire_kind kind); /* "none", "fp16", ... */
size_t tp_wire_block(const tp_wire *wire);   /* elements; not of plain */
size_t tp_wire_block_bytes(const tp_wire *wire);

/* All blocks of n elements. */
void tp_wire_encode(const tp_wire *wire, const float *x, size_t n, void *out);
void tp_wire_decode(const tp_wire *wire, const void *in, float *ret, size_t n);

#endif
