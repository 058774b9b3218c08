/* roofline.h - arithmetic per second where the arithmetic is known.
 *
 * FLOPs come from the file ("flops", with_flops=True) or, with record_shapes=True, from the
 * shapes of matrix products: mm, addmm, _scaled_mm, _int_mm and linear 2 m k n, bmm and baddbmm
 * 2 b m k n.  Of others the shapes do not say enough.  Time is the device work that the operator
 * and those inside it launched, by sum; in a trace without device work their time on the host.  An
 * operator inside one with FLOPs is a part of it.  Only operators with both count, and the share of
 * device time that they cover is part of the answer.  The peak is that of the vendor's data sheet
 * for dense products of the operands' type, by the name of the device; unknown devices have none.
 */
#ifndef TP_INSTRUMENT_ANALYZE_ROOFLINE_H
#define TP_INSTRUMENT_ANALYZE_ROOFLINE_H

#include "instrument/analyze/operators.h"

typedef struct {
    uint32_t name;
    uint32_t types; /* string: the operands' types as written */
    int64_t calls, device_ns;
    double flops;
    double peak; /* FLOP/s; NaN unknown */
} tp_roofline_row;

typedef struct {
    tp_roofline_row *rows; /* by FLOPs, descending */
    size_t n;
    double flops;
    int64_t covered_ns; /* device time of operators with known FLOPs, by sum */
    int64_t device_ns;  /* of all device work (or operators), by sum */
    bool by_host;       /* time is that of the host */
    bool has_shapes;    /* whether or not they say anything */
    bool has_flops;     /* known for an operator, with time or without */
} tp_roofline;

/* Needs events kept with TP_KEEP_OPS. */
void tp_roofline_make(const tp_selection *selection, const tp_operators *operators,
                      tp_roofline *ret);
void tp_roofline_release(tp_roofline *roofline);

#endif
