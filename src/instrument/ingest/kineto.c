/* The frame of the reader: windows, the array of events, what was skipped. */
#include "instrument/ingest/kineto.h"

#include <stdlib.h>

#include "base/platform.h"

static uint64_t offset_of(const tp_kineto *k, const char *p)
{
    return k->source.begin_offset + (uint64_t)(p - k->source.begin);
}

static void start_skipping(tp_kineto *k)
{
    const tp_event_scan *scan = &k->scan;
    if (k->is_skipping)
        return;
    k->is_skipping = true;
    k->skip_from = offset_of(k, scan->at);
    k->events->counts.skipped_events++;
    if (k->n_places < TP_COUNTOF(k->places)) {
        k->places[k->n_places].offset = offset_of(k, scan->error_at);
        k->places[k->n_places++].error = scan->error;
    }
}

static void stop_skipping(tp_kineto *k, const char *p)
{
    if (k->is_skipping)
        k->events->counts.skipped_bytes += offset_of(k, p) - k->skip_from;
    k->is_skipping = false;
}

/* From an error at `p` to the next event (*ret_event) or the end of the array, of which
 * there is none when *ret_event stays NULL and *ret_closed false. */
static tp_status find_next(tp_kineto *k, const char *p, const char **ret_event, bool *ret_closed,
                           tp_error *err)
{
    tp_source *s = &k->source;
    const char *keep;
    while (!(*ret_event = tp_kineto_resync(p, s->end, s->is_final, ret_closed, &keep))) {
        if (s->is_final)
            return TP_OK;
        TP_TRY(tp_source_next(s, keep, err));
        p = s->begin;
    }
    return TP_OK;
}

static bool only_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t' || *p == ','))
        p++;
    return p == end;
}

/* Behind an error: *p is the next event, or `*ret_done` and *p is behind the array. */
static tp_status recover(tp_kineto *k, const char *from, const char **p, bool *ret_done,
                         tp_error *err)
{
    const char *next;
    bool closed;
    start_skipping(k);
    TP_TRY(find_next(k, from, &next, &closed, err));
    *ret_done = closed || !next;
    if (!next) {
        k->events->counts.truncated = true;
        next = k->source.end;
    }
    if (*ret_done)
        stop_skipping(k, next);
    k->resyncing = !*ret_done;
    *p = next;
    return TP_OK;
}

/* Elements of the array from *p on. */
static tp_status read_array(tp_kineto *k, const char **p, tp_error *err)
{
    tp_event_scan *scan = &k->scan;
    tp_source *s = &k->source;
    bool done = false;
    k->has_events = true;
    scan->state = TP_SCAN_FIRST;
    while (!done) {
        const char *tried = *p;
        scan->at = *p;
        scan->end = s->end;
        scan->is_final = s->is_final;
        tp_scan_result result = tp_event_scan_run(scan);
        if (!k->resyncing)
            stop_skipping(k, tried);
        *p = scan->at;
        switch (result) {
        case TP_SCAN_END:
            stop_skipping(k, *p);
            return TP_OK;
        case TP_SCAN_MORE:
            if (s->is_final) {
                done = true;
                break;
            }
            TP_TRY(tp_source_next(s, *p, err));
            *p = s->begin;
            break;
        case TP_SCAN_STOP: /* an object, but no event */
            k->rejected = false;
            TP_TRY(recover(k, scan->at, p, &done, err));
            scan->state = TP_SCAN_FIRST;
            if (done)
                return TP_OK;
            break;
        default:
            TP_TRY(recover(k, TP_MAX(scan->error_at, scan->at + 1), p, &done, err));
            scan->state = TP_SCAN_FIRST;
            if (done)
                return TP_OK;
        }
    }
    stop_skipping(k, *p);
    k->events->counts.truncated |= !only_space(*p, s->end);
    k->unfinished = true;
    *p = s->end;
    return TP_OK;
}

/* The first byte of the text behind a byte order mark and white space; the end if none. */
static tp_status first_byte(tp_kineto *k, const char **ret, tp_error *err)
{
    tp_source *s = &k->source;
    if (!s->end)
        TP_TRY(tp_source_next(s, s->begin, err));
    const char *p = s->begin;
    p += tp_utf8_mark(p, (size_t)(s->end - p));
    for (;;) {
        while (p < s->end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
            p++;
        if (p < s->end || s->is_final)
            break;
        TP_TRY(tp_source_next(s, p, err));
        p = s->begin;
    }
    *ret = p;
    return TP_OK;
}

/* A list by itself is a trace if one of its elements is an event; of one that was cut nobody
 * knows. */
static tp_status check_list(const tp_kineto *k, tp_error *err)
{
    if (k->has_phases || k->events->counts.truncated)
        return TP_OK;
    return tp_fail(err, TP_ERR_FORMAT,
                   "'%s' is a list without events: nothing in it has a phase (\"ph\"); it is no "
                   "trace",
                   k->name);
}

static tp_status read_all(tp_kineto *k, tp_error *err)
{
    const char *p;
    TP_TRY(first_byte(k, &p, err));
    if (p == k->source.end)
        return tp_source_fail_empty(&k->source, err);
    if (*p == '[') {
        p++;
        TP_TRY(read_array(k, &p, err));
        return check_list(k, err);
    }
    if (*p != '{')
        return tp_fail(err, TP_ERR_FORMAT, "'%s' is no JSON object or array; is it a trace?",
                       k->name);
    bool is_trace, more;
    p++;
    while ((is_trace = tp_kineto_begins(p, k->source.end, &more)) && more && !k->source.is_final) {
        TP_TRY(tp_source_next(&k->source, p, err));
        p = k->source.begin;
    }
    TP_TRY(tp_kineto_members_scan(k, &p, read_array, err));
    if (k->unfinished)
        k->events->counts.truncated = true; /* the object was not closed */
    if (!k->has_events && !(is_trace && k->events->counts.truncated))
        return tp_fail(err, TP_ERR_FORMAT,
                       "'%s' has no \"traceEvents\"; it is not a trace, or was cut before them "
                       "('temper metrics' reads the figures of a run)",
                       k->name);
    return TP_OK;
}

/* Read what follows the trace, so that the checksum of a gzip file is seen. */
static tp_status drain(tp_kineto *k, tp_error *err)
{
    tp_source *s = &k->source;
    while (!s->is_final)
        TP_TRY(tp_source_next(s, s->end, err));
    return TP_OK;
}

static tp_time_form time_form(const tp_kineto *k)
{
    if (!k->with_decimals && !k->without_decimals)
        return TP_TIME_NONE;
    /* 1e15 us is 2001: a time before that counts from another moment than 1970. */
    bool is_epoch = k->max_start > INT64_C(1000000000000000000);
    if (k->events->info.base_ns != TP_UNKNOWN && !is_epoch)
        return TP_TIME_RELATIVE_DECIMAL;
    if (!k->with_decimals)
        return TP_TIME_INTEGER_US;
    return is_epoch ? TP_TIME_ABSOLUTE_DECIMAL : TP_TIME_RELATIVE_DECIMAL;
}

static void finish(tp_kineto *k)
{
    tp_trace_info *info = &k->events->info;
    tp_event_counts *counts = &k->events->counts;
    counts->odd_commas += k->scan.array_commas;
    tp_kineto_members_read(k);
    info->time_form = time_form(k);
    bool is_epoch =
        info->time_form == TP_TIME_ABSOLUTE_DECIMAL ||
        (info->time_form == TP_TIME_INTEGER_US && k->max_start > INT64_C(1000000000000000000));
    if (is_epoch)
        info->base_ns = 0;
    if (tp_source_is_truncated(&k->source))
        counts->truncated = true;
    tp_builder_finish(&k->builder);
    tp_kineto_notes(k);
}

tp_status tp_kineto_read(const char *name, tp_source *source, unsigned keep, tp_events *ret,
                         tp_notes *notes, tp_error *err)
{
    TP_FREED tp_kineto *k = tp_new(1, sizeof *k);
    k->events = ret;
    k->notes = notes;
    k->name = name;
    k->source = *source;
    k->max_start = INT64_MIN;
    tp_builder_init(&k->builder, ret, keep);
    tp_builder_expect(&k->builder, tp_source_expected_bytes(source));
    tp_status status = tp_event_scan_init(&k->scan, err);
    k->scan.commit = tp_kineto_event;
    k->scan.context = k;
    if (status == TP_OK)
        status = read_all(k, err);
    if (status == TP_OK)
        status = drain(k, err);
    if (status == TP_OK)
        status = tp_builder_check(&k->builder, name, err);
    if (status == TP_OK)
        finish(k);
    else
        tp_builder_finish(&k->builder);
    *source = k->source;
    tp_event_scan_release(&k->scan);
    tp_kineto_members_release(k);
    tp_buf_release(&k->scratch);
    free(k->open);
    free(k->open_top);
    if (status != TP_OK)
        tp_events_release(ret);
    return status;
}
