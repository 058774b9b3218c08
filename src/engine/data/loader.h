/* loader.h - micro-batches made ahead of the trainer, in order.
 *
 * Threads plan the next step, fill a free buffer each, and mark it ready; the trainer
 * takes buffers in order and gives each back by asking for the next.  All buffers exist
 * from the start, nothing is allocated per step.  What a step holds does not depend on
 * the number of threads, nor on where the run began: seeking costs nothing. */
#ifndef TP_ENGINE_DATA_LOADER_H
#define TP_ENGINE_DATA_LOADER_H

#include "engine/data/pack.h"

typedef struct {
    tp_pack_options pack;
    int num_workers;     /* 0: made when asked for, by the caller's thread */
    int prefetch_factor; /* micro-batches that each worker may be ahead; 0 = 2 */
    uint64_t epochs;     /* 0: without end */
} tp_loader_options;

typedef struct {
    uint64_t n_micro, n_tokens, n_padding, n_sequences, n_truncated; /* handed out so far */
    double waited_s;                                                 /* by the caller, in all */
    double last_waited_s; /* in the last tp_loader_next() */
} tp_loader_stats;

typedef struct tp_loader tp_loader;

/* `set`'s cache and index must outlive the loader; starts at step 0. */
TP_CHECKED tp_status tp_loader_open(const tp_sample_set *set, const tp_loader_options *options,
                                    tp_loader **ret, tp_error *err);
void tp_loader_close(tp_loader *loader); /* in any state; NULL is a no-op */
/* What was handed out and waited for before, by another loader of the run, counts with its own. */
void tp_loader_count_on(tp_loader *loader, const tp_loader_stats *before);

/* The next micro-batch, valid until the next call of any function on this loader; NULL
 * behind the last epoch.  A failure stays: later calls fail alike until a seek. */
TP_CHECKED tp_status tp_loader_next(tp_loader *loader, const tp_microbatch **ret, tp_error *err);

/* Go on with the first micro-batch of `step`. */
void tp_loader_seek(tp_loader *loader, uint64_t step);

/* Of kind "data", all that a loader with these options takes. */
size_t tp_loader_bytes(const tp_loader_options *options);

uint64_t tp_loader_steps_per_epoch(const tp_loader *loader);
tp_loader_stats tp_loader_get_stats(const tp_loader *loader);

#endif
