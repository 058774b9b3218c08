/* memory_timeline.h - what torch.profiler's export_memory_timeline() wrote.
 *
 * The raw form is a list of [time, action, bytes, category]; a time of -1 means that the
 * memory was there before.  INCREMENT_VERSION comes in pairs, -b from the old category and
 * +b to the new one.  The other form is two lists: times, and bytes per category then. */
#ifndef TP_INSTRUMENT_INGEST_MEMORY_TIMELINE_H
#define TP_INSTRUMENT_INGEST_MEMORY_TIMELINE_H

#include "instrument/ingest/events.h"

enum {
    TP_TIMELINE_PREEXISTING = 1,
    TP_TIMELINE_CREATE = 2,
    TP_TIMELINE_INCREMENT_VERSION = 3,
    TP_TIMELINE_DESTROY = 4
};

enum { TP_TIMELINE_CATEGORIES = 8 };
/* "Parameter", "Optimizer state", "Input", "Temporary", "Activation", "Gradient",
 * "Autograd detail", "Unknown"; "" beyond. */
const char *tp_timeline_category_name(int category);
const char *tp_timeline_action_name(int action); /* "PREEXISTING", ... */

typedef struct {
    int64_t t_ns;  /* -1: before the recording */
    int64_t bytes; /* signed: the sum over rows is what is allocated */
    uint8_t action, category;
} tp_timeline_row;

typedef struct {
    bool is_raw;
    /* raw: file order */
    tp_timeline_row *rows;
    size_t n_rows;
    /* the other form: bytes[i * TP_TIMELINE_CATEGORIES + category] */
    int64_t *times, *bytes;
    size_t n_times, n_sizes; /* equal in what readers return */
    uint64_t skipped;        /* rows of another shape */
    bool truncated;
} tp_memory_timeline;

/* `most`: bytes that the result may take, 0 for any. */
TP_CHECKED tp_status tp_memory_timeline_read(const char *name, const char *text, size_t n,
                                             uint64_t most, tp_memory_timeline **ret,
                                             tp_notes *notes, tp_error *err);
void tp_memory_timeline_free(tp_memory_timeline *timeline); /* NULL is a no-op */

#endif
