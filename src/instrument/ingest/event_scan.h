/* event_scan.h - the fast path: from the text of "traceEvents" to one event after another.
 *
 * A trace writer is a program, so the text between two values repeats: after the value of
 * "tid" comes always the same comma, line break, indentation, key and colon.  Such a *gap*
 * is parsed once, carefully, and remembered under the place where it occurred; from then
 * on one vector comparison recognises it, and what it meant is known.
 *
 *     "pid": 7, "tid": 21,\n    "ts": 12.345, "dur": 1
 *            ^........^  ^............^      ^.......^    gaps
 *
 * Remembered gaps form a trie: the children of a gap are those that followed it.  Phase and
 * category lead to tries of their own, since they decide what an event carries.  A gap may
 * end one event and begin the next.
 *
 * Values are not converted here.  Each is left as a slice in the slot of its key, and the
 * complete event is handed to `commit`; so an event at the edge of the window is simply
 * scanned again when there is more text.  The window must be followed by TP_SCAN_PAD zero
 * bytes. */
#ifndef TP_INSTRUMENT_INGEST_EVENT_SCAN_H
#define TP_INSTRUMENT_INGEST_EVENT_SCAN_H

#include <string.h>

#include "base/cpu.h"
#include "base/error.h"

enum { TP_SCAN_PAD = 128, TP_GAP_MAX = 64 };

/* The first byte from p on that is no space of JSON; may be the end. */
static inline const char *tp_scan_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

typedef enum {
    TP_KEY_OTHER,
#define TOP(id, text) TP_KEY_##id,
#define ARG(id, text) TP_KEY_##id,
#define ALIAS(id, text)
#include "instrument/ingest/event_keys.def"
#undef TOP
#undef ARG
#undef ALIAS
    TP_KEYS
} tp_event_key;

/* Of a slot. */
enum {
    TP_VALUE_STRING = 1,   /* the text is between the quotes                     */
    TP_VALUE_ESCAPED = 2,  /* it holds backslashes                               */
    TP_VALUE_CONTROL = 4,  /* it holds raw control characters                    */
    TP_VALUE_NESTED = 8,   /* an array or an object                              */
    TP_VALUE_LITERAL = 16, /* true, false, null                                  */
    TP_VALUE_ODD = 32,     /* a bare word that JSON does not have: inf, nan, N/A */
    TP_VALUE_FLAGS = 6     /* bits */
};

typedef struct {
    const char *text;
    uint32_t len;
    uint32_t tag; /* number of the event, TP_VALUE_FLAGS bits of flags */
} tp_slot;

/* Of a gap. */
enum {
    TP_GAP_STRING = 1,          /* ends with the quote of a string value     */
    TP_GAP_IN_ARGS = 2,         /* the value is a member of "args"           */
    TP_GAP_OPENS_ARGS = 4,      /* of the event that was in progress         */
    TP_GAP_CLOSES_ARGS = 8,     /* of the same                               */
    TP_GAP_CLOSES_EVENT = 16,   /*                                           */
    TP_GAP_OPENS_EVENT = 32,    /*                                           */
    TP_GAP_OPENS_NEW_ARGS = 64, /* of the event that this gap opened         */
    TP_GAP_BRACKETS = 4 | 8 | 16 | 32 | 64
};

typedef struct {
    char text[TP_GAP_MAX];
    uint64_t mask; /* the low `len` bits */
    uint32_t child, sibling;
    uint32_t context; /* whose children follow */
    uint8_t len, key, flags;
    /* where in the text: the brackets that the flags speak of */
    uint8_t args_open, args_close, event_close, event_open;
    uint8_t n_children;
} __attribute__((aligned(64))) tp_scan_gap;

typedef enum {
    TP_SCAN_GO,    /* within the scanner only: no reason to stop */
    TP_SCAN_MORE,  /* the window is used up; `at` is where to go on */
    TP_SCAN_END,   /* the array is closed; `at` is behind the bracket */
    TP_SCAN_ERROR, /* no JSON at `error_at`; `at` is where the element began */
    TP_SCAN_STOP   /* commit asked for it */
} tp_scan_result;

/* Where the scanner is between calls. */
typedef enum {
    TP_SCAN_FIRST,  /* before the first element, or behind a comma */
    TP_SCAN_BETWEEN /* behind an element */
} tp_scan_state;

typedef struct tp_event_scan tp_event_scan;
struct tp_event_scan {
    const char *at, *end;
    bool is_final; /* no text follows the window */
    tp_scan_state state;
    const char *error_at, *error;

    /* the event being scanned */
    const char *event, *event_end; /* its braces */
    const char *args, *args_end;   /* "{" and behind "}"; NULL without */
    uint32_t number;               /* compared with slots */
    tp_slot slots[TP_KEYS];

    /* a complete event; false stops */
    bool (*commit)(tp_event_scan *scan);
    void *context;

    tp_scan_gap *gaps;
    uint32_t n_gaps, gap_cap;
    uint32_t array_context[2];           /* by tp_scan_state */
    uint32_t phase_context[128];         /* after the value of "ph" */
    uint32_t opened_context[2][TP_KEYS]; /* after a gap that opened an event with this key of its
                                            own, or of its arguments */
    struct {
        uint64_t head;
        uint32_t len, context;
    } category_context[64];

    /* of the event in progress: a scan that is repeated counts anew */
    unsigned odd_values, odd_commas, repaired_strings;
    uint64_t array_commas; /* odd ones between events */
};

TP_CHECKED tp_status tp_event_scan_init(tp_event_scan *scan, tp_error *err);
void tp_event_scan_release(tp_event_scan *scan);

/* Scan from `at` on, with the level of instructions in force. */
tp_scan_result tp_event_scan_run(tp_event_scan *scan);

typedef tp_scan_result tp_scan_function(tp_event_scan *scan);
/* Does it make of a short text what the portable scanner does?  Asked of each before its first
 * use; true when there is no memory to ask. */
bool tp_event_scan_agrees(tp_scan_function *function);

static inline bool tp_scan_has(const tp_event_scan *scan, tp_event_key key)
{
    return scan->slots[key].tag >> TP_VALUE_FLAGS == scan->number;
}

/* --- for the scanners of each instruction set --- */

tp_scan_result tp_event_scan_portable(tp_event_scan *scan);
#if defined(__x86_64__)
tp_scan_result tp_event_scan_avx2(tp_event_scan *scan);
tp_scan_result tp_event_scan_avx512(tp_event_scan *scan);
#endif

/* Where a gap begins. */
typedef enum { TP_IN_ARRAY_FIRST, TP_IN_ARRAY, TP_IN_EVENT, TP_IN_ARGS } tp_gap_place;

typedef struct {
    const char *p;      /* behind the last value */
    tp_gap_place place; /* of p */
    uint32_t context;   /* gap whose children may follow; 0: none */
    tp_event_key key;   /* of the value that comes next, or was last */
    unsigned flags;     /* of the gap before it */
    bool after_string;  /* the last value was one */
} tp_scan_cursor;

/* The gap at c->p, which is not remembered: parse, act on it, remember it.  Repairs a
 * string that ended too early.  Returns TP_SCAN_GO with the cursor at the value, or why the
 * scan ends, with the scanner's state set. */
tp_scan_result tp_scan_new_gap(tp_event_scan *scan, tp_scan_cursor *c);
/* The child of `context` that is at p among those behind `first`; it becomes the first. */
uint32_t tp_gap_sibling(tp_event_scan *scan, uint32_t context, uint32_t first, const char *p);
/* The gap that stands for "after this value of ph" (or cat). */
static inline uint32_t tp_gap_phase_context(tp_event_scan *scan, const char *text)
{
    return scan->phase_context[*text & 127];
}
uint32_t tp_gap_new_category(tp_event_scan *scan, uint64_t head, uint32_t len);
static inline uint32_t tp_gap_category_context(tp_event_scan *scan, const char *text, uint32_t len)
{
    uint64_t head;
    memcpy(&head, text, sizeof head);
    if (len < 8)
        head &= (UINT64_C(1) << 8 * len) - 1;
    size_t at = (head ^ len) * UINT64_C(0x9e3779b97f4a7c15) >> 58;
    if (scan->category_context[at].head == head && scan->category_context[at].len == len)
        return scan->category_context[at].context;
    return tp_gap_new_category(scan, head, len);
}

/* An event begins at the brace `at`. */
static inline void tp_scan_open(tp_event_scan *scan, const char *at)
{
    scan->event = at;
    scan->args = scan->args_end = NULL;
    scan->odd_values = scan->odd_commas = scan->repaired_strings = 0;
    if (++scan->number >> (32 - TP_VALUE_FLAGS)) { /* the numbers are used up */
        memset(scan->slots, 0, sizeof scan->slots);
        scan->number = 1;
    }
}

/* A value that is neither string nor plain digits: the place behind it, or NULL with
 * *ret_more (the window ends) or scan->error(_at). */
const char *tp_scan_word(tp_event_scan *scan, const char *p, unsigned *ret_flags, bool *ret_more);

/* The scan ends inside the event in progress. */
tp_scan_result tp_scan_leave(tp_event_scan *scan, tp_scan_result result);

#endif
