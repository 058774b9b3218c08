/* event_builder.h - how a reader fills a store. */
#ifndef TP_INSTRUMENT_INGEST_EVENT_BUILDER_H
#define TP_INSTRUMENT_INGEST_EVENT_BUILDER_H

#include "base/error.h"
#include "base/vec.h"
#include "instrument/ingest/events.h"

/* Analyses number rows with 32 bits; the highest number means none. */
#define TP_EVENTS_MOST ((size_t)UINT32_MAX - 1)

typedef struct {
    int64_t start, dur, correlation, external;
    uint32_t name, track, detail;
    uint16_t category;
    uint8_t kind;
    char phase;
} tp_event_row;

typedef struct {
    tp_events *events;
    size_t row_cap, track_cap, category_cap;
    bool is_full; /* a row more than TP_EVENTS_MOST came, and was left out */
    size_t copy_cap, op_cap, sync_cap, collective_cap;
    size_t memory_cap, flow_cap, counter_cap, args_cap, args_text_cap, args_used;
    uint32_t *track_slots; /* hash: track number plus one */
    size_t n_track_slots;
    uint32_t last_track;
    uint8_t *category_kind; /* by index */
    size_t category_kind_cap;
    /* names of processes and threads: keys are the bytes of their ids */
    tp_string_table name_keys;
    uint32_t *names;
    size_t name_cap;
} tp_event_builder;

void tp_builder_init(tp_event_builder *b, tp_events *events, unsigned keep);
/* Room for about the rows of so many bytes of text: large columns that grew would be copied. */
void tp_builder_expect(tp_event_builder *b, uint64_t text_bytes);

/* Index of the category in counts.category; new ones are added with n = 0. */
uint16_t tp_builder_category(tp_event_builder *b, const char *text, size_t len);
uint32_t tp_builder_track(tp_event_builder *b, const tp_event_track *track);
void tp_builder_row(tp_event_builder *b, const tp_event_row *row);
/* Fails, by name, when a row had to be left out. */
TP_CHECKED tp_status tp_builder_check(const tp_event_builder *b, const char *name, tp_error *err);
/* The text of the last row's arguments; once per row, with TP_KEEP_ARGS. */
void tp_builder_args(tp_event_builder *b, const char *text, size_t len);

/* What metadata says about a process or a thread; only the ids of `of` count. */
typedef enum { TP_NAME_PROCESS, TP_NAME_LABELS, TP_NAME_THREAD } tp_name_kind;
void tp_builder_name(tp_event_builder *b, tp_name_kind kind, const tp_event_track *of,
                     uint32_t name);

/* Names into tracks, checks of strings; frees what only building needs.  The events stay
 * valid whatever was added. */
void tp_builder_finish(tp_event_builder *b);

#endif
