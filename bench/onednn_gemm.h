/* onednn_gemm.h - the same product by oneDNN's matmul, to compare with.
 *
 * Primitives are created once per shape, outside what is timed. */
#ifndef TP_BENCH_ONEDNN_GEMM_H
#define TP_BENCH_ONEDNN_GEMM_H

#include "base/error.h"
#include "engine/backend/cpu/gemm.h"

typedef struct tp_onednn_gemm tp_onednn_gemm;

/* Layouts of *gemm; no bias, epilogue or pre.  accumulate becomes a sum post-operation.  `packs_b`: B
 * is copied once, here, to the layout that oneDNN likes best, as weights are that do not change.
 * TP_ERR_UNSUPPORTED when oneDNN has no implementation or the build lacks the library. */
TP_CHECKED tp_status tp_onednn_gemm_open(tp_onednn_gemm **ret, const tp_gemm *gemm, bool packs_b,
                                         tp_error *err);
void tp_onednn_gemm_close(tp_onednn_gemm *self); /* NULL is a no-op */

/* With the pointers given to open. */
TP_CHECKED tp_status tp_onednn_gemm_run(tp_onednn_gemm *self, tp_error *err);

#endif
