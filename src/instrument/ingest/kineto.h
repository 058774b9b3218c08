/* kineto.h - the parts of the reader of Chrome traces.
 *
 *     kineto.c          windows, what was skipped, notes
 *     event_scan*.c     the events, as slices of text
 *     kineto_event.c    one event into the store
 *     kineto_args.c     what its arguments say, into side tables
 *     kineto_resync.c   where the next event begins when one cannot be read
 *     kineto_outer.c    the object around the events
 *     kineto_meta.c     what its other members mean */
#ifndef TP_INSTRUMENT_INGEST_KINETO_H
#define TP_INSTRUMENT_INGEST_KINETO_H

#include "instrument/ingest/event_builder.h"
#include "instrument/ingest/event_scan.h"
#include "instrument/ingest/text_source.h"

typedef struct {
    tp_buf key, value; /* value: as in the file */
} tp_kineto_member;

typedef struct {
    uint32_t row;   /* TP_NO_ROW: such are not kept */
    uint32_t below; /* the one that was open before, plus one */
} tp_open_span;

typedef struct {
    tp_event_scan scan;
    tp_source source;
    tp_event_builder builder;
    tp_events *events;
    tp_notes *notes;
    const char *name; /* of the file */

    bool resyncing; /* the next event is a guess until it has a phase */
    bool rejected;  /* it had none */
    struct {
        uint64_t head;
        uint32_t len, index; /* index plus one */
    } category_cache[64];
    tp_buf scratch;

    tp_open_span *open; /* spans begun by "B" */
    size_t n_open, open_cap;
    uint32_t *open_top; /* by track, plus one */
    size_t open_top_cap, n_open_top;

    uint64_t with_decimals, without_decimals;
    int64_t max_start;

    tp_kineto_member *members;
    size_t n_members, member_cap;
    size_t member_bytes;
    unsigned n_lost_members;
    bool has_events; /* an array of events was found */
    bool has_phases; /* one of its elements says a phase, of any length */
    bool unfinished; /* and has no end */

    bool is_skipping;
    uint64_t skip_from; /* offset */

    /* the first places where something was skipped, for notes */
    struct {
        uint64_t offset;
        const char *error;
    } places[4];
    size_t n_places;
} tp_kineto;

/* The commit of the scanner; its context is the tp_kineto. */
bool tp_kineto_event(tp_event_scan *scan);

static inline const tp_slot *tp_kineto_slot(const tp_kineto *k, tp_event_key key)
{
    return tp_scan_has(&k->scan, key) ? &k->scan.slots[key] : NULL;
}

static inline unsigned tp_slot_flags(const tp_slot *slot)
{
    return slot->tag & ((1u << TP_VALUE_FLAGS) - 1);
}

uint32_t tp_kineto_intern(tp_kineto *k, const tp_slot *slot); /* a string's number */
/* A string's number, with escapes resolved; 0 when the slot is empty. */
uint32_t tp_kineto_string(tp_kineto *k, tp_event_key key);
/* The same for any value, arrays without white space. */
uint32_t tp_kineto_text(tp_kineto *k, tp_event_key key);
int64_t tp_kineto_i64(const tp_kineto *k, tp_event_key key); /* TP_UNKNOWN */

/* Side rows: number plus one, or 0. */
uint32_t tp_kineto_detail(tp_kineto *k, uint8_t kind);
void tp_kineto_memory(tp_kineto *k, int64_t ts, uint32_t track);
void tp_kineto_counter(tp_kineto *k, int64_t ts, uint32_t name, uint32_t track);

/* Behind the first brace: is the first member one that traces begin with, as far as the
 * text goes?  *ret_more: more text could say otherwise. */
bool tp_kineto_begins(const char *p, const char *end, bool *ret_more);

/* Behind a bracket: is the first element an event that begins with its phase?  An array
 * of such is that of the events, whatever a damaged key calls it.  *ret_more: the window ends. */
bool tp_kineto_holds_events(const char *p, const char *end, bool *ret_more);

/* Where reading can go on behind an error at `p`: before an event, behind the closing
 * bracket of the array (*ret_closed), or NULL: not in this window; the next one has to
 * begin with *ret_keep. */
const char *tp_kineto_resync(const char *p, const char *end, bool is_final, bool *ret_closed,
                             const char **ret_keep);

/* The outer object, from behind its brace on: collects members, and calls back with the
 * place behind the bracket of traceEvents, getting back the place behind the closing one. */
typedef tp_status (*tp_kineto_array)(tp_kineto *k, const char **p, tp_error *err);
TP_CHECKED tp_status tp_kineto_members_scan(tp_kineto *k, const char **p, tp_kineto_array array,
                                            tp_error *err);
/* Everything the members say, into info. */
void tp_kineto_members_read(tp_kineto *k);
void tp_kineto_members_release(tp_kineto *k);

/* What happened, in sentences. */
void tp_kineto_notes(tp_kineto *k);

/* The reader: Kineto, other Chrome traces, Temper's. */
TP_CHECKED tp_status tp_kineto_read(const char *name, tp_source *source, unsigned keep,
                                    tp_events *ret, tp_notes *notes, tp_error *err);

#endif
