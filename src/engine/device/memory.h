/* memory.h - all large buffers come from here, counted by what they hold. */
#ifndef TP_ENGINE_DEVICE_MEMORY_H
#define TP_ENGINE_DEVICE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef enum {
    TP_MEM_WEIGHTS,
    TP_MEM_SHADOW, /* low-precision copies of the weights */
    TP_MEM_GRADIENTS,
    TP_MEM_OPTIMIZER,
    TP_MEM_ACTIVATIONS,
    TP_MEM_KV_CACHE,
    TP_MEM_WORKSPACE,
    TP_MEM_CONSTANTS, /* rope tables */
    TP_MEM_DATA,      /* batches */
    TP_MEM_KINDS
} tp_mem_kind;

const char *tp_mem_kind_name(tp_mem_kind kind); /* "weights", ... */
/* The same for people, in at most 11 characters: a shadow is a "second copy". */
const char *tp_mem_kind_title(tp_mem_kind kind);

/* `bytes` of zeroed memory, 2 MiB-aligned when large (huge pages are asked for),
 * 64-byte aligned otherwise.  TP_ERR_NOMEM names kind, size, what is in use and the
 * limit.  Thread-safe. */
TP_CHECKED tp_status tp_mem_alloc(tp_mem_kind kind, size_t bytes, void **ret, tp_error *err);
void tp_mem_free(void *p); /* NULL is a no-op */

/* Refuse to have more than this many bytes at once; 0 = no limit.  `source` says what sets it.
 * Before the first call: what base/limits.h finds. */
void tp_mem_set_limit(size_t bytes, const char *source);

typedef struct {
    size_t current[TP_MEM_KINDS], peak[TP_MEM_KINDS];
    size_t total_current, total_peak;
    uint64_t n_allocs; /* so far: a step must not move it */
} tp_mem_stats;
tp_mem_stats tp_mem_get_stats(void);
void tp_mem_reset_peak(void);

/* A recording that begins now goes on from what is in use. */
void tp_mem_trace_totals(void);

#endif
