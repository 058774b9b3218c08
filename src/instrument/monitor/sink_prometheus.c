/* sink_prometheus.c - the newest figures as a text file that node_exporter's textfile collector
 * reads, replaced every few seconds and at the end.
 *
 * https://prometheus.io/docs/instrumenting/exposition_formats and /docs/practices/naming: base
 * units, one prefix, no time stamps; the one label is the run. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/output.h"
#include "base/platform.h"
#include "instrument/monitor/sinks.h"
#include "text/json/json.h"

static const double period_s = 5; /* collectors look every 15 s or so */

typedef struct {
    char *path;
    tp_buf label, text;
    const tp_metric_bus *metrics;
    int64_t step, max_steps;
    double written_s;
} sink;

/* ---- names ---- */

static const char *suffix(const char *unit)
{
    static const char *const suffixes[][2] = {
        {"s", "_seconds"},   {"bytes", "_bytes"},    {"nats", "_nats"}, {"share", "_ratio"},
        {"tokens/s", "ond"}, {"sequences/s", "ond"}, /* names end in _per_sec */
    };
    for (size_t i = 0; i < TP_COUNTOF(suffixes); i++)
        if (strcmp(unit, suffixes[i][0]) == 0)
            return suffixes[i][1];
    return "";
}

void tp_prometheus_name(const tp_metric_def *def, char out[TP_PROMETHEUS_NAME])
{
    const char *end = suffix(def->unit);
    bool has_end = tp_str_ends(def->name, end);
    snprintf(out, TP_PROMETHEUS_NAME, "temper_%s%s", def->name, has_end ? "" : end);
    for (char *c = out; *c; c++)
        if (!isalnum((unsigned char)*c))
            *c = '_';
}

/* ---- the text ---- */

void tp_prometheus_escape(tp_buf *out, const char *s, bool is_label)
{
    for (size_t n = strlen(s); n;) {
        uint32_t cp;
        size_t len = tp_utf8_decode(s, n, &cp);
        if (len == 0)
            tp_buf_addf(out, "\\\\x%02x", (unsigned char)*s);
        else if (*s == '\n')
            tp_buf_adds(out, "\\n");
        else if (*s == '\\' || (*s == '"' && is_label))
            tp_buf_addf(out, "\\%c", *s);
        else
            tp_buf_add(out, s, len);
        len = TP_MAX(len, 1);
        s += len;
        n -= len;
    }
}

static void add_value(tp_buf *out, double v)
{
    tp_json_w w;
    if (isnan(v)) {
        tp_buf_adds(out, "NaN");
    } else if (isinf(v)) {
        tp_buf_adds(out, v < 0 ? "-Inf" : "+Inf");
    } else {
        tp_json_w_init(&w, out, 0);
        tp_json_w_f64(&w, v);
    }
}

static void add(sink *s, const char *name, const char *meaning, const char *unit, double value)
{
    tp_buf_addf(&s->text, "# HELP %s ", name);
    tp_prometheus_escape(&s->text, meaning, false);
    if (unit[0])
        tp_buf_addf(&s->text, " Unit: %s", unit);
    tp_buf_addf(&s->text, "\n# TYPE %s gauge\n%s{run=\"%s\"} ", name, name, tp_buf_str(&s->label));
    add_value(&s->text, value);
    tp_buf_addc(&s->text, '\n');
}

static tp_status write_all(sink *s, bool is_running, tp_error *err)
{
    char name[TP_PROMETHEUS_NAME];
    tp_buf_clear(&s->text);
    add(s, "temper_running", "1 while the run goes on, 0 once it has ended.", "", is_running);
    add(s, "temper_heartbeat_timestamp_seconds", "When this was written, since 1970.", "",
        tp_wall_s());
    add(s, "temper_step", "Steps done.", "", (double)s->step);
    add(s, "temper_max_steps", "Steps of the whole run.", "", (double)s->max_steps);
    for (size_t i = 0; i < TP_METRIC_DEFS; i++) {
        const tp_metric_def *def = &tp_metric_defs[i];
        if (!s->metrics->latest[i].axis)
            continue;
        tp_prometheus_name(def, name);
        add(s, name, def->meaning, def->unit, s->metrics->latest[i].value);
    }
    s->written_s = tp_clock_s();
    return tp_file_refresh(s->path, s->text.data, s->text.len, err);
}

static void release(sink *s)
{
    tp_buf_release(&s->label);
    tp_buf_release(&s->text);
    free(s->path);
    free(s);
}

/* What is replaced every few seconds is a file, and none that the run reads. */
static tp_status check_place(const char *path, tp_error *err)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return tp_fail(err, TP_ERR_OUTPUT,
                       "cannot write to '%s': it is a pipe or a device, a file is expected here",
                       path);
    return tp_output_check(path, err);
}

static tp_status open_file(const char *path, const tp_sink_run *run, void **ret, tp_error *err)
{
    TP_TRY(check_place(path, err));
    sink *s = tp_new(1, sizeof *s);
    s->path = tp_strdup(path);
    s->metrics = run->metrics;
    s->step = run->step;
    s->max_steps = run->max_steps;
    tp_prometheus_escape(&s->label, run->name, true);
    TP_HAND_OVER(write_all(s, true, err), ret, s, release(s));
}

static tp_status see(void *user, const tp_metric_record *record, tp_error *err)
{
    sink *s = user;
    s->step = record->step;
    return tp_clock_s() - s->written_s < period_s ? TP_OK : write_all(s, true, err);
}

static tp_status close_file(void *user, tp_error *err)
{
    sink *s = user;
    tp_status status = write_all(s, false, err);
    release(s);
    return status;
}

const tp_sink_kind tp_sink_prometheus = {
    .name = "prometheus", .open = open_file, .see = see, .close = close_file};
