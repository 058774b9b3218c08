/* selection.h - which device activities count: the scope of every figure.
 *
 * A trace is a window cut out of a run.  Work that was launched before the window began
 * is in it, and so is work outside any step; whether it counts changes the answer, so the
 * scope is an option and is printed:
 *
 *     all      every device activity of the file
 *     linked   those whose launching call is in the file (same correlation)
 *     steps    those launched inside a step (ProfilerStep#N); those whose call is not in the file
 *              belong to none.  Where no call links, and where the number is one of several
 *              processes, there are only starts to go by
 *
 * A file without device activities that has events of category collective_comm is of a rank that
 * computes on its processor: operators count in their place, those collectives as communication.
 *
 * Filters narrow it further: one step, one stream, names with a pattern.  The result is a
 * list of activities in order of their starts, with class, device and launching call. */
#ifndef TP_INSTRUMENT_ANALYZE_SELECTION_H
#define TP_INSTRUMENT_ANALYZE_SELECTION_H

#include "instrument/analyze/breakdown.h"
#include "instrument/analyze/kernels.h"
#include "instrument/analyze/steps.h"
#include "instrument/ingest/events.h"
#include "instrument/ingest/number_map.h"

typedef enum { TP_SCOPE_ALL, TP_SCOPE_LINKED, TP_SCOPE_STEPS } tp_scope;

const char *tp_scope_name(tp_scope scope);
bool tp_scope_parse(const char *text, tp_scope *ret);

typedef struct {
    tp_scope scope;
    bool has_step, has_stream;
    int64_t step, stream;
    const char *name; /* pattern: substring, or with * and ? the whole name; NULL: any */
    const char *comm; /* names that communicate as well; NULL: none */
} tp_select_options;

typedef struct {
    const tp_events *events;
    tp_select_options options;
    tp_activity *v;   /* by start */
    uint32_t *launch; /* of each: the event of the launching call, or TP_NO_ROW */
    int32_t *step;    /* of each: that of `steps`, or -1 */
    size_t n;
    char (*devices)[32]; /* keys of per_device, in order of their texts */
    int64_t *device_ids; /* the same as numbers, or TP_UNKNOWN */
    size_t n_devices;
    tp_steps steps;

    bool is_host;        /* ranks without devices: operators and exchanges of the host */
    size_t n_all;        /* device activities of the file, before scope and filters */
    size_t n_linked;     /* of these, with a launching call */
    size_t n_migrations; /* of memory pages, which no call launches */
    size_t n_stepless;   /* in scope but for steps, and launched in none: how many, how long */
    int64_t stepless_ns;
    bool has_calls;       /* of the host, one of which at least launched a work of the file */
    size_t n_shared;      /* correlations that calls of several processes have: they link nothing */
    size_t n_graphs;      /* whole graph launches (Nsight), which hide their kernels */
    size_t n_by_metadata; /* kernels that communicate by their metadata alone */
    size_t n_negative;    /* durations below 0, taken as 0 */
    size_t n_beyond;      /* times that cannot be, left out */
    size_t n_gloo;        /* collectives of the host by Gloo: marks that do not say the group,
                             counted and not analysed */
} tp_selection;

void tp_selection_make(const tp_events *events, const tp_select_options *options,
                       tp_selection *ret);
void tp_selection_release(tp_selection *selection);

/* Steps that are asked for and not in the file at `path` are a mistake of the user. */
TP_CHECKED tp_status tp_selection_check_steps(const tp_selection *selection, const char *path,
                                              tp_error *err);

/* Its model as the file has it, or "". */
const char *tp_selection_device_name(const tp_selection *selection, size_t device);

/* For tp_kernels_make(). */
tp_slice tp_events_name_text(const void *events, uint32_t name);

/* `pattern` as described above; without regard to case. */
bool tp_name_matches(tp_slice name, const char *pattern);

/* When a was launched: the start of its call, or its own start. */
int64_t tp_launch_time(const tp_selection *selection, size_t i);

/* The step of `steps` that a was launched in, or -1. */
int64_t tp_work_step(const tp_selection *selection, size_t i);

/* Whether what the host does at `at` is in scope: not when that is of other steps. */
bool tp_selection_has_time(const tp_selection *selection, int64_t at);

/* A page of unified memory that moved because it was touched. */
bool tp_event_is_migration(const tp_events *events, size_t i);

/* The end of event i: start + duration, never before the start. */
int64_t tp_event_end(const tp_events *events, size_t i);

/* At a time that cannot be: outside of what periods.h takes. */
bool tp_event_is_beyond(const tp_events *events, size_t i);

#endif
