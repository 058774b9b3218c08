/* space.h - what may be changed about a recipe to make it faster or smaller, and points in it.
 *
 * A dimension has options; option 0 is always the recipe as it is.
 *
 *     levers        each toggled, unless a size below sets its key
 *     micro-batch   policy.train_micro_batch_size in powers of two up to the global batch; the
 *                   budgets of packing and dynamic batching go with it
 *     recompute     policy.recompute: none, selective, full
 *     threads       engine.threads: 1, 2, 4 ... processors
 *     answers       policy.generation.max_running, which sizes the blocks of the KV cache
 *
 * policy.precision is touched only where that is allowed. */
#ifndef TP_INSTRUMENT_EXPERIMENT_SPACE_H
#define TP_INSTRUMENT_EXPERIMENT_SPACE_H

#include "instrument/experiment/lever_set.h"
#include "text/json/json.h"

enum { TP_SPACE_MOST = 64, TP_SPACE_OPTIONS = 32 };

typedef struct {
    const char *name;
    /* "key=value", a blank between two; NULL for option 0 and for levers. */
    const char *options[TP_SPACE_OPTIONS];
    size_t n;
    int lever; /* its number in the set: option 1 toggles it; -1: a size */
} tp_space_axis;

typedef struct {
    const tp_lever_set *set;
    tp_space_axis dimensions[TP_SPACE_MOST];
    size_t n;
} tp_space;

typedef struct {
    unsigned char option[TP_SPACE_MOST];
} tp_space_point;

/* Of a configuration that is resolved, on a machine of `processors`.  `tokens`: of a micro-batch as
 * its plan has them, for what a recipe leaves open is not in the configuration; 0: as it says. */
TP_CHECKED tp_status tp_space_make(tp_space *s, const tp_lever_set *set, const tp_json *tree,
                                   int64_t tokens, int processors, bool allow_precision,
                                   tp_arena *arena, tp_error *err);

/* The settings of a point; none of the recipe itself. */
TP_CHECKED tp_status tp_space_settings(const tp_space *s, const tp_space_point *p, tp_arena *arena,
                                       const char *const **ret, size_t *ret_n, tp_error *err);

/* "micro-batch 32, threads 2": what differs from the recipe. */
const char *tp_space_name(const tp_space *s, const tp_space_point *p, tp_arena *arena);

#endif
