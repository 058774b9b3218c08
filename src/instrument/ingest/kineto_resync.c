/* Finding the way back.  An object that begins with a member that events have is worth a
 * try; whether it is an event shows when it has been read.  A bracket followed by a member
 * that only the outer object has, or by the end, closes the array.
 *
 * The search goes on from where reading failed, never from before, so the cost is linear
 * whatever the text. */
#include "base/platform.h"
#include "instrument/ingest/kineto.h"

static const char *const event_keys[] = {"ph",  "name", "cat", "ts", "pid", "tid",
                                         "dur", "id",   "s",   "bp", "args"};
static const char *const outer_keys[] = {"traceName",
                                         "displayTimeUnit",
                                         "baseTimeNanoseconds",
                                         "deviceProperties",
                                         "distributedInfo",
                                         "schemaVersion",
                                         "otherData",
                                         "metadata",
                                         "INFO",
                                         "WARNING",
                                         "ERROR",
                                         "record_shapes",
                                         "profile_memory",
                                         "with_stack",
                                         "with_flops",
                                         "with_modules",
                                         "cupti_version",
                                         "cuda_runtime_version",
                                         "cuda_driver_version",
                                         "trace_id",
                                         "stackFrames",
                                         "samples",
                                         "systemTraceEvents",
                                         "host_name"};

typedef enum { NO, YES, MORE } answer;

/* Is there "key" : with one of the keys at p? */
static answer has_key(const char *p, const char *end, const char *const *keys, size_t n)
{
    p = tp_scan_space(p, end);
    if (p >= end)
        return MORE;
    if (*p++ != '"')
        return NO;
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(keys[i]), left = (size_t)(end - p);
        if (left <= len) {
            if (memcmp(p, keys[i], left) == 0)
                return MORE;
            continue;
        }
        if (memcmp(p, keys[i], len) != 0 || p[len] != '"')
            continue;
        const char *colon = tp_scan_space(p + len + 1, end);
        if (colon >= end)
            return MORE;
        return *colon == ':' ? YES : NO;
    }
    return NO;
}

static answer closes_array(const char *p, const char *end, bool is_final)
{
    p = tp_scan_space(p, end);
    if (p >= end)
        return is_final ? YES : MORE;
    if (*p == '}') {
        p = tp_scan_space(p + 1, end);
        return p < end ? NO : is_final ? YES : MORE;
    }
    return *p == ',' ? has_key(p + 1, end, outer_keys, TP_COUNTOF(outer_keys)) : NO;
}

bool tp_kineto_begins(const char *p, const char *end, bool *ret_more)
{
    static const char *const events[] = {"traceEvents"};
    answer is_outer = has_key(p, end, outer_keys, TP_COUNTOF(outer_keys));
    answer is_events = has_key(p, end, events, 1);
    bool is_sure = is_outer == YES || is_events == YES;
    *ret_more = !is_sure && (is_outer == MORE || is_events == MORE);
    return is_sure || *ret_more;
}

bool tp_kineto_holds_events(const char *p, const char *end, bool *ret_more)
{
    static const char *const phase[] = {"ph"};
    p = tp_scan_space(p, end);
    answer is = p >= end ? MORE : *p == '{' ? has_key(p + 1, end, phase, 1) : NO;
    *ret_more = is == MORE;
    return is == YES;
}

const char *tp_kineto_resync(const char *p, const char *end, bool is_final, bool *ret_closed,
                             const char **ret_keep)
{
    *ret_closed = false;
    for (; p < end; p++) {
        answer is = NO;
        if (*p == '{') {
            is = has_key(p + 1, end, event_keys, TP_COUNTOF(event_keys));
        } else if (*p == ']') {
            is = closes_array(p + 1, end, is_final);
            *ret_closed = is == YES;
        }
        if (is == YES)
            return *ret_closed ? p + 1 : p;
        if (is == MORE && !is_final)
            break;
    }
    *ret_keep = p;
    return NULL;
}
