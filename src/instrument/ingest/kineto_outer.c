/* The object around the events.  Its other members are small and come in any order; they
 * were also the place where writers forgot to escape what they logged, so their values are
 * only delimited here.  When even that goes wrong, the search continues at "traceEvents",
 * or at the next line that looks like a member. */
#include "base/platform.h"
#include "instrument/ingest/kineto.h"

enum {
    MAX_MEMBERS = 4096,
    MAX_MEMBER_BYTES = 64 << 20,
    SUSPICIOUS = 64 << 10,
    MAX_LOST = 64 /* members; so much damage leaves nothing to look for but the events */
};

static const char *string_end(const char *p, const char *end)
{
    for (; p < end && *p != '"'; p++)
        p += *p == '\\';
    return p < end ? p : NULL;
}

/* Behind the value at p, or NULL: it does not end in this window. */
static const char *value_end(const char *p, const char *end)
{
    for (size_t depth = 0; p < end; p++) {
        if (*p == '"') {
            p = string_end(p + 1, end);
            if (!p)
                return NULL;
            if (depth == 0)
                return p + 1;
        } else if (*p == '[' || *p == '{') {
            depth++;
        } else if (*p == ']' || *p == '}') {
            if (depth == 0)
                return p;
            if (--depth == 0)
                return p + 1;
        } else if (*p == ',' && depth == 0) {
            return p;
        }
    }
    return NULL;
}

/* The place of the text "traceEvents" with its quotes, followed by a colon; or NULL. */
static const char *find_events(const char *p, const char *end)
{
    static const char key[] = "\"traceEvents\"";
    while ((p = memmem(p, (size_t)(end - p), key, sizeof key - 1))) {
        const char *colon = tp_scan_space(p + sizeof key - 1, end);
        if (colon < end && *colon == ':')
            return p;
        p++;
    }
    return NULL;
}

/* The next line that begins with "key": , or NULL. */
static const char *find_member_line(const char *p, const char *end)
{
    while ((p = memchr(p, '\n', (size_t)(end - p)))) {
        p = tp_scan_space(p, end);
        if (p < end && *p == '"') {
            const char *q = string_end(p + 1, end);
            const char *colon = q ? tp_scan_space(q + 1, end) : end;
            if (colon < end && *colon == ':')
                return p;
        }
        if (p >= end)
            return NULL;
    }
    return NULL;
}

static void add_member(tp_kineto *k, tp_slice key, tp_slice value)
{
    if (k->n_members >= MAX_MEMBERS || value.len > MAX_MEMBER_BYTES - k->member_bytes) {
        k->n_lost_members++;
        return;
    }
    k->member_bytes += value.len;
    tp_kineto_member *member = TP_VEC_PUSH(k->members, k->n_members, k->member_cap);
    tp_buf_add(&member->key, key.data, key.len);
    tp_buf_add(&member->value, value.data, value.len);
}

/* More text behind `keep`; false at the end of the file. */
static tp_status more(tp_kineto *k, const char **keep, bool *ret, tp_error *err)
{
    *ret = !k->source.is_final;
    if (!*ret)
        return TP_OK;
    TP_TRY(tp_source_next(&k->source, *keep, err));
    *keep = k->source.begin;
    return TP_OK;
}

typedef enum { MEMBER, EVENTS, CLOSED, UNFINISHED, BROKEN } outer_result;

/* One member at *p, which then points behind it (EVENTS: behind the bracket). */
static outer_result member(tp_kineto *k, const char **place)
{
    const char *end = k->source.end, *p = *place;
    for (p = tp_scan_space(p, end); p < end && *p == ','; p = tp_scan_space(p + 1, end))
        continue;
    if (p >= end)
        return UNFINISHED;
    if (*p == '}') {
        *place = p + 1;
        return CLOSED;
    }
    if (*p != '"')
        return BROKEN;
    const char *key = p + 1, *key_end = string_end(key, end);
    const char *colon = key_end ? tp_scan_space(key_end + 1, end) : end;
    if (colon >= end)
        return UNFINISHED;
    if (*colon != ':')
        return BROKEN;
    const char *value = tp_scan_space(colon + 1, end);
    if (value >= end)
        return UNFINISHED;
    tp_slice name = {key, (size_t)(key_end - key)};
    bool is_events = *value == '[' && tp_slice_is(name, "traceEvents"), more = false;
    if (*value == '[' && !is_events && !k->has_events)
        is_events = tp_kineto_holds_events(value + 1, end, &more);
    if (more && !k->source.is_final)
        return UNFINISHED;
    if (is_events) {
        *place = value + 1;
        return EVENTS;
    }
    const char *behind = value_end(value, end);
    const char *next = behind ? tp_scan_space(behind, end) : end;
    if (next >= end)
        return UNFINISHED;
    if (*next != ',' && *next != '}')
        return BROKEN;
    if (find_events(value, behind))
        return BROKEN;
    add_member(k, name, (tp_slice){value, (size_t)(behind - value)});
    *place = behind;
    return MEMBER;
}

/* Behind a member that cannot be delimited, what is recognisable from `from` on; false: nothing. */
static tp_status leave_broken(tp_kineto *k, const char *from, const char **p, bool *ret_found,
                              tp_error *err)
{
    bool is_more = true;
    const char *found = NULL;
    k->n_lost_members++;
    while (is_more) {
        const char *end = k->source.end;
        const char *events = find_events(from, end), *line = NULL;
        if (k->n_lost_members <= MAX_LOST)
            line = find_member_line(from, end);
        found = events && (!line || events < line) ? events : line;
        if (found)
            break;
        const char *keep = end - from > 4096 ? end - 4096 : from;
        TP_TRY(more(k, &keep, &is_more, err));
        from = keep;
    }
    *ret_found = found != NULL;
    *p = found ? found : k->source.end;
    return TP_OK;
}

tp_status tp_kineto_members_scan(tp_kineto *k, const char **p, tp_kineto_array array, tp_error *err)
{
    for (;;) {
        bool go_on = true;
        switch (member(k, p)) {
        case MEMBER:
            break;
        case EVENTS:
            TP_TRY(array(k, p, err));
            break;
        case CLOSED: /* after damage a brace may be any brace */
            if (k->has_events || !k->n_lost_members)
                return TP_OK;
            TP_TRY(leave_broken(k, *p, p, &go_on, err));
            break;
        case UNFINISHED:
            if (k->source.is_final ||
                ((size_t)(k->source.end - *p) > SUSPICIOUS && find_events(*p + 1, k->source.end)))
                TP_TRY(leave_broken(k, TP_MIN(*p + 1, k->source.end), p, &go_on, err));
            else
                TP_TRY(more(k, p, &go_on, err));
            if (!go_on)
                k->events->counts.truncated = true;
            break;
        case BROKEN:
            TP_TRY(leave_broken(k, *p + 1, p, &go_on, err));
            break;
        }
        if (!go_on)
            return TP_OK;
    }
}
