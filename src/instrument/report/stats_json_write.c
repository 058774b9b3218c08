/* stats_json_write.c - values of an answer in JSON, and nulls with their reasons. */
#include "instrument/report/stats_json.h"

#include <math.h>
#include <string.h>

static void enter(tp_stats_writer *a, const char *key)
{
    if (key)
        tp_json_w_key(a->w, key);
    TP_ASSERT(a->depth < TP_STATS_WRITER_DEPTH);
    if (!key && a->depth > 0)
        a->place[a->depth - 1]++;
    a->path[a->depth] = key;
    a->place[a->depth] = 0;
    a->depth++;
}

void tp_stats_writer_object(tp_stats_writer *a, const char *key)
{
    enter(a, key);
    tp_json_w_begin(a->w, '{');
}

bool tp_stats_writer_object_or(tp_stats_writer *a, const char *key, const char *why)
{
    if (why)
        tp_stats_writer_null(a, key, why);
    else
        tp_stats_writer_object(a, key);
    return !why;
}

void tp_stats_writer_object_end(tp_stats_writer *a)
{
    a->depth--;
    tp_json_w_end(a->w, '}');
}

void tp_stats_writer_begin_array(tp_stats_writer *a, const char *key)
{
    enter(a, key);
    tp_json_w_begin(a->w, '[');
}

void tp_stats_writer_end_array(tp_stats_writer *a)
{
    a->depth--;
    tp_json_w_end(a->w, ']');
}

/* "two_sample.welch", "rows[3].k" */
static void note(tp_stats_writer *a, const char *key, const char *why)
{
    TP_OWN(tp_buf) path = {0};
    for (int i = 0; i < a->depth; i++) {
        if (a->path[i])
            tp_buf_addf(&path, "%s%s", i ? "." : "", a->path[i]);
        else if (i > 0)
            tp_buf_addf(&path, "[%zu]", a->place[i - 1] - 1);
    }
    if (key)
        tp_buf_addf(&path, "%s%s", a->depth ? "." : "", key);
    else if (a->depth > 0)
        tp_buf_addf(&path, "[%zu]", a->place[a->depth - 1] - 1);
    tp_buf_add(&a->reasons, tp_buf_str(&path), path.len + 1);
    tp_buf_add(&a->reasons, why, strlen(why) + 1);
}

void tp_stats_writer_null(tp_stats_writer *a, const char *key, const char *why)
{
    if (key)
        tp_json_w_key(a->w, key);
    else if (a->depth > 0)
        a->place[a->depth - 1]++;
    tp_json_w_null(a->w);
    note(a, key, why ? why : "undefined");
}

static void put_number(tp_stats_writer *a, double v)
{
    if (isinf(v))
        tp_json_w_str(a->w, v > 0 ? "inf" : "-inf");
    else
        tp_json_w_f64(a->w, v + 0.0);
}

void tp_stats_writer_number(tp_stats_writer *a, const char *key, double v, const char *why)
{
    if (isnan(v)) {
        tp_stats_writer_null(a, key, why);
        return;
    }
    if (key)
        tp_json_w_key(a->w, key);
    else if (a->depth > 0)
        a->place[a->depth - 1]++;
    put_number(a, v);
}

void tp_stats_writer_count(tp_stats_writer *a, const char *key, uint64_t n)
{
    tp_json_w_put_i64(a->w, key, (int64_t)n);
}

void tp_stats_writer_bool(tp_stats_writer *a, const char *key, bool v)
{
    tp_json_w_put_bool(a->w, key, v);
}

const char *tp_stats_writer_level_key(tp_stats_writer *a, const char *key, char buffer[64])
{
    snprintf(buffer, 64, "%s%s", key, a->level_text);
    return buffer;
}

void tp_stats_writer_pair(tp_stats_writer *a, const char *key, tp_interval ci)
{
    if (ci.why || isnan(ci.lo) || isnan(ci.hi)) {
        tp_stats_writer_null(a, key, ci.why);
        return;
    }
    tp_json_w_put_begin(a->w, key, '[');
    put_number(a, ci.lo);
    put_number(a, ci.hi);
    tp_json_w_end(a->w, ']');
}

void tp_stats_writer_interval(tp_stats_writer *a, const char *key, tp_interval ci)
{
    char buffer[64];
    tp_stats_writer_pair(a, tp_stats_writer_level_key(a, key, buffer), ci);
}

static void put_reasons(tp_stats_writer *a)
{
    const char *at = tp_buf_str(&a->reasons), *end = at + a->reasons.len;
    tp_json_w_put_begin(a->w, "reasons", '{');
    while (at < end) {
        tp_json_w_key(a->w, at);
        at += strlen(at) + 1;
        tp_json_w_str(a->w, at);
        at += strlen(at) + 1;
    }
    tp_json_w_end(a->w, '}');
}

void tp_stats_writer_open(tp_stats_writer *a)
{
    snprintf(a->level_text, sizeof a->level_text, "%.6g", 100 * a->o.level);
    tp_json_w_begin(a->w, '{');
}

void tp_stats_writer_close(tp_stats_writer *a)
{
    put_reasons(a);
    tp_json_w_end(a->w, '}');
}
