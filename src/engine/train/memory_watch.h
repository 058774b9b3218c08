/* memory_watch.h - a run that takes less memory while it goes on.
 *
 * The plan knows what the run takes, not what else there is: other processes of the machine or the
 * cgroup, texts, the heap of a library.  Between two steps what is really in use is held against
 * each limit in force.  Above the share engine.memory_watch of one (or halfway from the planned
 * peak to the limit, where that is more) one thing is changed, what changes no bit first, and the
 * graphs are made anew around the tensors of the run.  From that step on it is a run with that
 * setting. */
#ifndef TP_ENGINE_TRAIN_MEMORY_WATCH_H
#define TP_ENGINE_TRAIN_MEMORY_WATCH_H

#include "engine/train/fit.h"
#include "text/json/json.h"

enum { TP_WATCH_MOST = 24 };

typedef struct {
    int64_t step;         /* behind which it was found */
    char why[320];        /* "19.3 GiB of 23.5 GiB are in use (physical memory)" */
    char change[96];      /* "policy.recompute=full"; "": nothing was left to change */
    size_t before, after; /* planned peak */
} tp_watch_entry;

typedef struct {
    tp_watch_entry v[TP_WATCH_MOST];
    int n;
    double own_before; /* bytes of this process before the graphs had memory */
    double looked_s;   /* when */
    size_t planned;    /* peak, as the graphs are now */
    int64_t acted_at;  /* the step behind which something was changed last; -1 */
    uint64_t injected; /* which of train.inject_pressure have been, as bits */
    bool is_exhausted;
    /* Those with changes; all are kept, since what was made with them may point into them. */
    tp_config *configs[TP_WATCH_MOST + 1];
    int n_configs;
    tp_train_options options; /* in force, once there is a change */
} tp_memory_watch;

typedef struct trainer trainer;

/* The graphs are about to get memory. */
void tp_memory_watch_begin(trainer *t);
/* Before the first step: what an attempt before had to change. */
TP_CHECKED tp_status tp_memory_watch_resume(trainer *t, tp_error *err);
/* Between two steps. */
TP_CHECKED tp_status tp_memory_watch_look(trainer *t, tp_error *err);
void tp_memory_watch_put(const trainer *t, tp_json_w *w); /* into run.json */
void tp_memory_watch_end(trainer *t);

#endif
