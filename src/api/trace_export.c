/* trace_export.c - a trace in another tool's format. */
#include <string.h>

#include "api/trace_options.h"
#include "base/gzip.h"
#include "base/output.h"
#include "base/sized.h"
#include "base/strings.h"
#include "instrument/analyze/export.h"
#include "instrument/ingest/ingest.h"
#include "instrument/ingest/trace_paths.h"
#include "text/json/json.h"

/* A name that ends in .gz is compressed, as the recorder does. */
typedef struct {
    tp_output *output;
    tp_gzip *zip; /* NULL: plain */
    tp_buf zipped;
} written;

static tp_status write_zipped(written *w, const void *bytes, size_t n, bool is_last, tp_error *err)
{
    tp_gzip_add(w->zip, bytes, n, is_last, &w->zipped);
    tp_status status = tp_output_write(w->output, w->zipped.data, w->zipped.len, err);
    tp_buf_clear(&w->zipped);
    return status;
}

static tp_status to_output(void *context, const void *bytes, size_t n, tp_error *err)
{
    written *w = context;
    return w->zip ? write_zipped(w, bytes, n, false, err)
                  : tp_output_write(w->output, bytes, n, err);
}

static tp_status export_collapsed(const tp_trace_file *file, const tp_trace_export_options *o,
                                  tp_export_sink *sink, tp_error *err)
{
    tp_select_options options = {0};
    TP_OWN(tp_selection) selection = {0};
    TP_TRY(tp_trace_scope_read(o->scope, &options.scope, err));
    tp_selection_make(file->events, &options, &selection);
    TP_TRY(tp_selection_check_steps(&selection, file->path, err));
    return tp_export_collapsed(&selection, o->device ? TP_STACKS_DEVICE : TP_STACKS_HOST, sink,
                               err);
}

typedef struct {
    const char *name, *what; /* what: what is written */
    unsigned keep;           /* of what is read */
    tp_status (*write)(const tp_events *events, tp_export_sink *sink, tp_error *err);
} format;

static const format formats[] = {
    {"chrome", "event", TP_KEEP_ALL, tp_export_chrome},
    {"perfetto", "event", TP_KEEP_FAST | TP_KEEP_MEMORY, tp_export_perfetto},
    {"collapsed", "stack", TP_KEEP_FAST | TP_KEEP_OPS, NULL}, /* has options: export_collapsed() */
    {"csv", "event", TP_KEEP_FAST | TP_KEEP_MEMORY, tp_export_csv},
};

static const format *find(const char *name)
{
    for (size_t i = 0; name && i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}

typedef struct {
    uint64_t bytes, written; /* written: events, or lines of stacks */
} exported;

static tp_status export_to(const char *path, const format *f, const tp_trace_file *file,
                           const tp_trace_export_options *o, exported *ret, tp_error *err)
{
    written w = {0};
    TP_TRY(tp_output_open(&w.output, path, err));
    tp_export_sink sink = {.write = to_output, .context = &w};
    if (tp_gzip_is_named(path)) {
        w.zip = tp_gzip_new();
        TP_HAVE(w.zip);
    }
    tp_status status =
        f->write ? f->write(file->events, &sink, err) : export_collapsed(file, o, &sink, err);
    if (status == TP_OK && w.zip)
        status = write_zipped(&w, "", 0, true, err);
    tp_buf_release(&sink.pending);
    tp_buf_release(&w.zipped);
    tp_gzip_free(w.zip);
    ret->written = sink.n_written;
    if (status == TP_OK)
        return tp_output_close(w.output, &ret->bytes, err);
    tp_output_abandon(w.output);
    return status;
}

/* Memory is a counter in Perfetto: the events that say no total have no value for it. */
static uint64_t left_out(const format *f, const tp_events *e)
{
    uint64_t n = 0;
    for (size_t i = 0; i < e->n_memory && f->write == tp_export_perfetto; i++)
        n += e->memory[i].allocated == TP_UNKNOWN;
    return n;
}

static char *describe(const char *path, const format *f, const tp_events *e, const exported *x,
                      bool json)
{
    char size[32];
    uint64_t n = left_out(f, e);
    tp_buf out = {0};
    if (!json) {
        tp_buf_addf(&out, "%s: %s, %llu %s%s", path, tp_human_bytes((double)x->bytes, size),
                    (unsigned long long)x->written, f->what, tp_plural(x->written));
        if (n)
            tp_buf_addf(&out, "; left out: %llu of memory without totals", (unsigned long long)n);
        tp_buf_addc(&out, '\n');
        return out.data;
    }
    tp_json_w w = tp_json_w_open(&out, 0, '{');
    tp_json_w_put_str(&w, "output", path);
    tp_json_w_put_i64(&w, "bytes", (int64_t)x->bytes);
    tp_json_w_put_i64(&w, "events", (int64_t)x->written);
    tp_json_w_close(&w, '}');
    return out.data;
}

tp_status tp_trace_report_export(const char *path, const char *output,
                                 const tp_trace_export_options *options, char **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(path && output && ret, err);
    tp_trace_export_options o;
    TP_OWN(tp_trace_paths) one = {0};
    tp_trace_file *file;
    exported x = {0};
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_trace_export_options", err));
    const format *f = find(o.format);
    if (!f)
        return tp_fail(err, TP_ERR_ARG,
                       "the format of an export is chrome, perfetto, collapsed or csv, not '%.60s'",
                       o.format ? o.format : "");
    TP_TRY(tp_output_check(output, err)); /* before a large trace is read */
    const tp_ingest_options keep = {.keep = f->keep};
    tp_status status = tp_trace_paths_one(path, &one, err);
    if (status == TP_OK)
        status = tp_trace_open(one.v[0], &keep, &file, err);
    if (status != TP_OK)
        return status;
    status = file->events
                 ? export_to(output, f, file, &o, &x, err)
                 : tp_fail(err, TP_ERR_UNSUPPORTED, "'%s' is a %s: it has no events to export",
                           path, tp_file_kind_about(file->kind));
    if (status == TP_OK)
        *ret = strcmp(output, "-") ? describe(output, f, file->events, &x, o.json) : NULL;
    tp_trace_close(file);
    return status;
}
