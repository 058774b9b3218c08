/* plan.h - memory and work of a training configuration before it runs.
 *
 * The numbers of `temper plan`: the graphs are built and planned, which takes
 * milliseconds; no weights or data are read, nothing large is allocated. */
#ifndef TEMPER_PLAN_H
#define TEMPER_PLAN_H

#include "temper/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    size_t size; /* sizeof(tp_training_plan), set by the caller */
    int64_t parameters;
    int64_t tokens_per_micro_batch;
    int64_t micro_batches_per_step; /* at most: when every sequence has the full length */

    uint64_t peak_bytes; /* the parts below together */
    uint64_t weight_bytes, shadow_bytes, gradient_bytes, optimizer_bytes, activation_bytes;
    uint64_t other_bytes; /* work space, constants, batches */
    uint64_t checkpoint_bytes;

    double flops_per_micro_batch; /* matrix products, forward and backward, recomputation
                                     included */
    double recompute_flops_per_micro_batch;
    double flops_per_step;
    double bytes_per_step; /* moved between memory and processor, update included */
    double step_s;         /* no step is faster on this machine; NaN before `temper doctor` */
} tp_training_plan;

/* `config`, `overrides`: as for tp_training_run().
 * TP_ERR_CONFIG, TP_ERR_IO, TP_ERR_FORMAT, TP_ERR_UNSUPPORTED, TP_ERR_ARG. */
TP_API TP_CHECKED tp_status tp_training_plan_compute(const char *config,
                                                     const char *const *overrides,
                                                     size_t n_overrides, tp_training_plan *ret,
                                                     tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
