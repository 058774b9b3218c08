/* ingest.h - opening traces in tests. */
#ifndef TP_TESTS_SUPPORT_INGEST_H
#define TP_TESTS_SUPPORT_INGEST_H

#include <string.h>

#include "instrument/ingest/ingest.h"

#define TP_SAMPLE(name) TP_SOURCE_DIR "/tests/data/traces/" name

static inline tp_trace_file *ingest_open(const char *path)
{
    tp_trace_file *file = NULL;
    tp_error err = {0};
    if (tp_trace_open(path, NULL, &file, &err) != TP_OK)
        fail_msg("%s", err.message);
    return file;
}

/* The text, in windows of `window` bytes. */
static inline tp_trace_file *ingest_text(const char *text, size_t n, uint32_t window)
{
    tp_trace_file *file = NULL;
    tp_error err = {0};
    const tp_ingest_options options = {.one_thread = true, .window = window};
    if (tp_trace_open_memory("text.json", text, n, &options, &file, &err) != TP_OK)
        fail_msg("%s", err.message);
    return file;
}

/* Number of X events of a category. */
static inline uint64_t ingest_count(const tp_events *e, const char *category)
{
    for (size_t i = 0; i < e->counts.n_categories; i++)
        if (strcmp(tp_events_str(e, e->counts.category[i].name), category) == 0)
            return e->counts.category[i].n;
    return 0;
}

/* The row with that name; fails when there is none. */
static inline size_t ingest_row(const tp_events *e, const char *name)
{
    for (size_t i = 0; i < e->n; i++)
        if (strcmp(tp_events_str(e, e->name[i]), name) == 0)
            return i;
    fail_msg("no event '%s'", name);
    return 0;
}

static inline bool ingest_has_note(const tp_notes *notes, const char *part)
{
    for (size_t i = 0; i < notes->n; i++)
        if (strstr(notes->list[i].text, part))
            return true;
    return false;
}

#endif
