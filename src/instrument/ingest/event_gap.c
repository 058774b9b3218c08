/* The careful side of the scanner: gaps character by character, and their trie. */
#include <stdlib.h>
#include <strings.h>

#include "base/platform.h"
#include "instrument/ingest/event_scan.h"
#include "instrument/ingest/fields.h"

enum { FIRST_GAPS = 512, MAX_GAPS = 4096, MAX_CHILDREN = 32, MAX_REPAIR = 4096 };

/* A gap as parsed, before it is remembered; pointers into the window or NULL. */
typedef struct {
    const char *next; /* the value */
    const char *args_open, *args_close, *event_close, *event_open;
    bool args_are_new; /* args_open belongs to the event that event_open began */
    tp_event_key key;
    unsigned flags;    /* TP_GAP_STRING, TP_GAP_IN_ARGS */
    unsigned n_commas; /* odd ones */
} gap_info;

typedef enum {
    GAP_FOUND,
    GAP_MORE,   /* the window ends; event_close may be set */
    GAP_ERROR,  /* scan->error(_at); event_close may be set */
    GAP_EMPTY,  /* an event without members: event_open, event_close */
    GAP_CLOSED, /* the event ends here, and what follows is unusual */
    GAP_END     /* the array ends; event_close may be set */
} gap_result;

static const struct {
    const char *text;
    uint8_t len;
    bool in_args;
    uint8_t key;
} keys[] = {
#define TOP(id, text) {text, sizeof(text) - 1, false, TP_KEY_##id},
#define ARG(id, text) {text, sizeof(text) - 1, true, TP_KEY_##id},
#define ALIAS(id, text) {text, sizeof(text) - 1, true, TP_KEY_##id},
#include "instrument/ingest/event_keys.def"
#undef TOP
#undef ARG
#undef ALIAS
};

static tp_event_key key_of(const char *text, size_t len, bool in_args)
{
    for (size_t i = 0; i < TP_COUNTOF(keys); i++)
        if (keys[i].len == len && keys[i].in_args == in_args &&
            memcmp(keys[i].text, text, len) == 0)
            return (tp_event_key)keys[i].key;
    return TP_KEY_OTHER;
}

static gap_result gap_error(tp_event_scan *scan, const char *at, const char *error)
{
    scan->error_at = at;
    scan->error = error;
    return GAP_ERROR;
}

/* "key" : with p at the quote; sets next behind the colon, at the value. */
static gap_result parse_key(tp_event_scan *scan, const char *p, bool in_args, gap_info *g)
{
    enum { LONGEST = 256 }; /* of an escaped key; none of ours is as long */
    const char *end = scan->end, *name = p + 1, *q = name;
    bool is_escaped = false;
    while (q < end && *q != '"') {
        if (*q == '\\') {
            is_escaped = true;
            q++;
        } else if ((unsigned char)*q < 0x20) {
            return gap_error(scan, q, "a control character in a key");
        }
        q++;
    }
    if (q >= end)
        return GAP_MORE;
    const char *colon = tp_scan_space(q + 1, end);
    if (colon >= end)
        return GAP_MORE;
    if (*colon != ':')
        return gap_error(scan, colon, "expected a colon");
    const char *value = tp_scan_space(colon + 1, end);
    if (value >= end)
        return GAP_MORE;
    tp_slice key = {name, (size_t)(q - name)};
    char plain[LONGEST];
    uint64_t odd = 0;
    if (is_escaped && key.len <= sizeof plain)
        key = (tp_slice){plain, tp_field_unescape(key, plain, &odd)};
    g->key = key_of(key.data, key.len, in_args);
    g->next = value;
    return GAP_FOUND;
}

/* The value at g->next: a string's text begins behind its quote. */
static gap_result found(gap_info *g, bool in_args)
{
    g->flags = in_args ? TP_GAP_IN_ARGS : 0;
    if (*g->next == '"') {
        g->flags |= TP_GAP_STRING;
        g->next++;
    }
    return GAP_FOUND;
}

static gap_result after_event(tp_event_scan *scan, const char *p, bool first, gap_info *g);
static gap_result after_member(tp_event_scan *scan, const char *p, bool in_args, gap_info *g);

/* Members of the event: p behind "{" or a comma. */
static gap_result member(tp_event_scan *scan, const char *p, bool first, gap_info *g)
{
    const char *end = scan->end;
    for (p = tp_scan_space(p, end); p < end && *p == ','; p = tp_scan_space(p + 1, end))
        g->n_commas++;
    if (p >= end)
        return GAP_MORE;
    if (*p == '}') {
        if (g->event_open) { /* nothing in it */
            g->event_close = p;
            return GAP_EMPTY;
        }
        if (!first)
            g->n_commas++;
        return after_member(scan, p, false, g);
    }
    if (*p != '"')
        return gap_error(scan, p, "expected a key");
    gap_result result = parse_key(scan, p, false, g);
    if (result != GAP_FOUND)
        return result;
    if (g->key != TP_KEY_ARGS || *g->next != '{')
        return found(g, false);
    if (g->args_open) /* of the previous event */
        return GAP_CLOSED;
    g->args_open = g->next;
    g->args_are_new = g->event_open != NULL;
    p = tp_scan_space(g->next + 1, end);
    if (p >= end)
        return GAP_MORE;
    if (*p == '"') {
        result = parse_key(scan, p, true, g);
        return result == GAP_FOUND ? found(g, true) : result;
    }
    if (*p == '}' && !g->event_open) {
        g->args_close = p;
        return after_member(scan, p + 1, false, g);
    }
    if (*p == '}') { /* an event that begins with empty arguments: a value like any other */
        g->flags = 0;
        return found(g, false);
    }
    return gap_error(scan, p, "expected a key");
}

/* p behind a value: in "args", or in the event. */
static gap_result after_member(tp_event_scan *scan, const char *p, bool in_args, gap_info *g)
{
    const char *end = scan->end;
    p = tp_scan_space(p, end);
    if (p >= end)
        return GAP_MORE;
    if (in_args) {
        unsigned commas = 0;
        for (; p < end && *p == ','; p = tp_scan_space(p + 1, end))
            commas++;
        if (p >= end)
            return GAP_MORE;
        if (*p == '"' && commas) {
            g->n_commas += commas - 1;
            gap_result result = parse_key(scan, p, true, g);
            return result == GAP_FOUND ? found(g, true) : result;
        }
        if (*p != '}')
            return gap_error(scan, p, "expected a comma or a brace");
        g->n_commas += commas;
        g->args_close = p;
        return after_member(scan, p + 1, false, g);
    }
    if (*p == ',')
        return member(scan, p + 1, false, g);
    if (*p != '}')
        return gap_error(scan, p, "expected a comma or a brace");
    g->event_close = p;
    return after_event(scan, p + 1, false, g);
}

/* p in the array, behind an element, or `first`: before one. */
static gap_result after_event(tp_event_scan *scan, const char *p, bool first, gap_info *g)
{
    const char *end = scan->end;
    unsigned commas = 0;
    for (p = tp_scan_space(p, end); p < end && *p == ','; p = tp_scan_space(p + 1, end))
        commas++;
    if (p >= end)
        return GAP_MORE;
    if (*p == ']') {
        g->n_commas += commas;
        g->next = p + 1;
        return GAP_END;
    }
    if (*p != '{')
        return gap_error(scan, p, "expected an event");
    if (commas != (first ? 0 : 1))
        g->n_commas += commas ? commas - !first : 1;
    gap_info whole = *g; /* what is known up to the brace */
    g->event_open = p;
    gap_result result = member(scan, p + 1, true, g);
    if (result == GAP_FOUND || !whole.event_close)
        return result;
    /* The event before is complete whatever follows. */
    *g = whole;
    g->n_commas = 0;
    return GAP_CLOSED;
}

static gap_result parse_gap(tp_event_scan *scan, const char *p, tp_gap_place place, gap_info *g)
{
    *g = (gap_info){0};
    switch (place) {
    case TP_IN_ARRAY_FIRST:
        return after_event(scan, p, true, g);
    case TP_IN_ARRAY:
        return after_event(scan, p, false, g);
    case TP_IN_EVENT:
        return after_member(scan, p, false, g);
    default:
        return after_member(scan, p, true, g);
    }
}

/* --- the trie --- */

/* Room for one more; false when there are enough. */
static bool has_room(tp_event_scan *scan)
{
    if (scan->n_gaps < scan->gap_cap)
        return true;
    if (scan->gap_cap == MAX_GAPS)
        return false;
    tp_scan_gap *more = aligned_alloc(64, 2 * scan->gap_cap * sizeof *more);
    if (!more)
        return false;
    memcpy(more, scan->gaps, scan->gap_cap * sizeof *more);
    free(scan->gaps);
    scan->gaps = more;
    scan->gap_cap *= 2;
    return true;
}

static uint32_t new_gap(tp_event_scan *scan)
{
    uint32_t number = scan->n_gaps++;
    scan->gaps[number] = (tp_scan_gap){.context = number};
    return number;
}

/* Number 0 is nobody, and the places that every file has come first. */
static void forget_all(tp_event_scan *scan)
{
    scan->n_gaps = 0;
    new_gap(scan);
    for (size_t i = 0; i < TP_COUNTOF(scan->array_context); i++)
        scan->array_context[i] = new_gap(scan);
    for (size_t i = 0; i < TP_COUNTOF(scan->phase_context); i++)
        scan->phase_context[i] = new_gap(scan);
    for (size_t i = 0; i < TP_KEYS; i++)
        for (size_t in_args = 0; in_args < 2; in_args++)
            scan->opened_context[in_args][i] = new_gap(scan);
    memset(scan->category_context, 0, sizeof scan->category_context);
}

uint32_t tp_gap_new_category(tp_event_scan *scan, uint64_t head, uint32_t len)
{
    if (!has_room(scan))
        return 0;
    uint32_t context = new_gap(scan);
    size_t at = (head ^ len) * UINT64_C(0x9e3779b97f4a7c15) >> 58;
    scan->category_context[at].head = head;
    scan->category_context[at].len = len;
    scan->category_context[at].context = context;
    return context;
}

static bool gap_is(const tp_scan_gap *gap, const char *p)
{
    return memcmp(gap->text, p, gap->len) == 0;
}

uint32_t tp_gap_sibling(tp_event_scan *scan, uint32_t context, uint32_t first, const char *p)
{
    uint32_t before = first;
    for (uint32_t number = scan->gaps[first].sibling; number;
         before = number, number = scan->gaps[number].sibling) {
        if (!gap_is(&scan->gaps[number], p))
            continue;
        scan->gaps[before].sibling = scan->gaps[number].sibling;
        scan->gaps[number].sibling = first;
        scan->gaps[context].child = number;
        return number;
    }
    return 0;
}

static uint8_t offset_in(const char *p, const char *at) { return at ? (uint8_t)(at - p) : 0; }

/* Remember the gap under its context, if there is one; returns the context for what
 * follows, or 0.  How an event ended says nothing about the next, so gaps that open one
 * lead to a place of their own.  "args" that are no object are not worth a rule, and must not be
 * one: their gap is the beginning of the gap before the arguments of all others. */
static uint32_t learn(tp_event_scan *scan, uint32_t context, const char *p, const gap_info *g)
{
    bool in_args = g->flags & TP_GAP_IN_ARGS;
    uint32_t next = g->event_open ? scan->opened_context[in_args][g->key] : 0;
    size_t len = (size_t)(g->next - p);
    if (!context || g->key == TP_KEY_ARGS || len > TP_GAP_MAX || len == 0 || g->n_commas ||
        scan->gaps[context].n_children == MAX_CHILDREN)
        return next;
    if (!has_room(scan)) {
        forget_all(scan);
        return g->event_open ? scan->opened_context[in_args][g->key] : 0;
    }
    uint32_t number = new_gap(scan);
    tp_scan_gap *gap = &scan->gaps[number];
    memcpy(gap->text, p, len);
    gap->len = (uint8_t)len;
    gap->mask = len == 64 ? UINT64_MAX : (UINT64_C(1) << len) - 1;
    gap->key = (uint8_t)g->key;
    gap->flags = (uint8_t)(g->flags | (g->args_close ? TP_GAP_CLOSES_ARGS : 0) |
                           (g->event_close ? TP_GAP_CLOSES_EVENT : 0) |
                           (g->event_open ? TP_GAP_OPENS_EVENT : 0));
    if (g->args_open)
        gap->flags |= g->args_are_new ? TP_GAP_OPENS_NEW_ARGS : TP_GAP_OPENS_ARGS;
    gap->args_open = offset_in(p, g->args_open);
    gap->args_close = offset_in(p, g->args_close);
    gap->event_close = offset_in(p, g->event_close);
    gap->event_open = offset_in(p, g->event_open);
    if (next)
        gap->context = next;
    gap->sibling = scan->gaps[context].child;
    scan->gaps[context].child = number;
    scan->gaps[context].n_children++;
    return gap->context;
}

/* --- acting on a gap --- */

tp_scan_result tp_scan_leave(tp_event_scan *scan, tp_scan_result result)
{
    scan->at = scan->event;
    scan->state = TP_SCAN_FIRST;
    return result;
}

static tp_scan_result stop_at(tp_event_scan *scan, const char *at, tp_scan_state state,
                              tp_scan_result result)
{
    scan->at = at;
    scan->state = state;
    return result;
}

static bool close_event(tp_event_scan *scan, const char *brace)
{
    scan->event_end = brace + 1;
    bool go_on = scan->commit(scan);
    scan->event = NULL;
    return go_on;
}

/* The brackets before the one that may end the scan. */
static bool take(tp_event_scan *scan, const gap_info *g)
{
    if (g->args_open && !g->args_are_new)
        scan->args = g->args_open;
    if (g->args_close)
        scan->args_end = g->args_close + 1;
    return !g->event_close || close_event(scan, g->event_close);
}

/* Is a quote further on in the line one that a gap follows?  Not behind one that a colon
 * follows: that is the end of a key, so the string ended before. */
static gap_result repair(tp_event_scan *scan, const tp_scan_cursor *c, gap_info *g,
                         const char **ret_quote)
{
    const char *limit = scan->end - c->p > MAX_REPAIR ? c->p + MAX_REPAIR : scan->end;
    const char *error_at = scan->error_at, *error = scan->error;
    for (const char *p = c->p - 1; p < limit && *p != '\n'; p++) {
        if (*p != '"')
            continue;
        const char *colon = tp_scan_space(p + 1, scan->end);
        if (colon < scan->end && *colon == ':')
            limit = p; /* an error for good */
        if (colon >= scan->end || *colon == ':')
            break;
        gap_result result = parse_gap(scan, p + 1, c->place, g);
        if (result != GAP_ERROR || g->event_close) {
            *ret_quote = p;
            return result;
        }
    }
    scan->error_at = error_at;
    scan->error = error;
    return limit == scan->end && !scan->is_final ? GAP_MORE : GAP_ERROR;
}

/* An unescaped quote is repaired by making the string longer. */
static gap_result parse_or_repair(tp_event_scan *scan, tp_scan_cursor *c, gap_info *g)
{
    const char *quote = NULL;
    gap_result result = parse_gap(scan, c->p, c->place, g);
    if (result != GAP_ERROR || g->event_close || !c->after_string)
        return result;
    result = repair(scan, c, g, &quote);
    if (!quote || (result == GAP_MORE && !g->event_close))
        return result;
    tp_slot *slot = &scan->slots[c->key];
    slot->len = (uint32_t)(quote - slot->text);
    if (memchr(slot->text, '\\', slot->len))
        slot->tag |= TP_VALUE_ESCAPED;
    c->p = quote + 1;
    scan->repaired_strings++;
    return result;
}

/* The cursor behind an event, before whatever comes. */
static void go_between(tp_event_scan *scan, tp_scan_cursor *c, const char *brace)
{
    *c = (tp_scan_cursor){
        .p = brace + 1, .place = TP_IN_ARRAY, .context = scan->array_context[TP_SCAN_BETWEEN]};
}

/* One gap: TP_SCAN_GO and the cursor's place tell whether a value was reached. */
static tp_scan_result step(tp_event_scan *scan, tp_scan_cursor *c)
{
    gap_info g;
    const char *start = c->p;
    gap_result result = parse_or_repair(scan, c, &g);
    if (c->p != start)
        c->context = 0; /* odd text is not worth remembering */
    if ((result == GAP_MORE || result == GAP_ERROR) && !g.event_close) {
        tp_scan_result why = result == GAP_MORE ? TP_SCAN_MORE : TP_SCAN_ERROR;
        if (c->place == TP_IN_EVENT || c->place == TP_IN_ARGS)
            return tp_scan_leave(scan, why);
        return stop_at(scan, c->p, c->place == TP_IN_ARRAY_FIRST ? TP_SCAN_FIRST : TP_SCAN_BETWEEN,
                       why);
    }
    if (c->place == TP_IN_EVENT || c->place == TP_IN_ARGS)
        scan->odd_commas += g.n_commas;
    else
        scan->array_commas += g.n_commas;
    if (result == GAP_EMPTY)
        tp_scan_open(scan, g.event_open);
    if (!take(scan, &g))
        return stop_at(scan, g.event_close + 1, TP_SCAN_BETWEEN, TP_SCAN_STOP);
    if (result == GAP_END)
        return stop_at(scan, g.next, TP_SCAN_BETWEEN, TP_SCAN_END);
    if (result == GAP_MORE || result == GAP_ERROR)
        return stop_at(scan, g.event_close + 1, TP_SCAN_BETWEEN,
                       result == GAP_MORE ? TP_SCAN_MORE : TP_SCAN_ERROR);
    if (result != GAP_FOUND) {
        go_between(scan, c, g.event_close);
        return TP_SCAN_GO;
    }
    if (g.event_open)
        tp_scan_open(scan, g.event_open);
    if (g.args_are_new)
        scan->args = g.args_open;
    c->context = learn(scan, c->context, c->p, &g);
    c->key = g.key;
    c->flags = g.flags;
    c->p = g.next;
    c->place = TP_IN_EVENT;
    return TP_SCAN_GO;
}

tp_scan_result tp_scan_new_gap(tp_event_scan *scan, tp_scan_cursor *c)
{
    for (;;) {
        tp_scan_result result = step(scan, c);
        if (result != TP_SCAN_GO || c->place == TP_IN_EVENT)
            return result;
    }
}

/* --- the rest --- */

static bool is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '-' || c == '.' || c == '/' || c == '#' || c == '_';
}

static bool is_json_number(const char *p, const char *end)
{
    p += *p == '-';
    if (p == end || *p < '0' || *p > '9')
        return false;
    for (; p < end; p++)
        if ((*p < '0' || *p > '9') && *p != '.' && *p != 'e' && *p != 'E' && *p != '+' && *p != '-')
            return false;
    return true;
}

static bool is_odd_number(const char *p, size_t n)
{
    static const char *const words[] = {"nan", "inf",  "infinity", "n/a", "none",
                                        "na",  "null", "ind",      "qnan"};
    if (n && (*p == '-' || *p == '+')) {
        p++;
        n--;
    }
    for (size_t i = 0; i < TP_COUNTOF(words); i++)
        if (strlen(words[i]) == n && strncasecmp(words[i], p, n) == 0)
            return true;
    return false;
}

const char *tp_scan_word(tp_event_scan *scan, const char *p, unsigned *ret_flags, bool *ret_more)
{
    const char *q = p;
    while (q < scan->end && is_word_byte(*q))
        q++;
    size_t n = (size_t)(q - p);
    if (q >= scan->end) {
        *ret_more = true;
        return NULL;
    }
    if ((n == 4 && (!memcmp(p, "true", 4) || !memcmp(p, "null", 4))) ||
        (n == 5 && !memcmp(p, "false", 5))) {
        *ret_flags = TP_VALUE_LITERAL;
        return q;
    }
    if (n && is_json_number(p, q))
        return q;
    if (n && is_odd_number(p, n)) {
        *ret_flags = TP_VALUE_ODD;
        scan->odd_values++;
        return q;
    }
    scan->error_at = p;
    scan->error = "expected a value";
    return NULL;
}

tp_status tp_event_scan_init(tp_event_scan *scan, tp_error *err)
{
    *scan = (tp_event_scan){.gap_cap = FIRST_GAPS};
    scan->gaps = aligned_alloc(64, FIRST_GAPS * sizeof *scan->gaps);
    if (!scan->gaps)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for the event scanner");
    forget_all(scan);
    return TP_OK;
}

void tp_event_scan_release(tp_event_scan *scan)
{
    free(scan->gaps);
    scan->gaps = NULL;
}
