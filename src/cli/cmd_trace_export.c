/* `temper trace export`: a trace in another tool's format. */
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "cli/cli.h"
#include "cli/trace_commands.h"
#include "instrument/ingest/trace_paths.h"
#include "instrument/analyze/export.h"
#include "instrument/ingest/ingest.h"
#include "text/json/json.h"

typedef struct {
    bool chrome, perfetto, collapsed, csv, device, json;
    const char *output, *scope;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("chrome", 0, chrome, "trace-event JSON"),
    TP_SWITCH("perfetto", 0, perfetto, "Perfetto's native format (.pftrace)"),
    TP_SWITCH("collapsed", 0, collapsed, "stacks for flame graphs: 'outer;inner nanoseconds'"),
    TP_SWITCH("csv", 0, csv, "one line per event"),
    TP_SWITCH("device", 0, device,
              "with --collapsed: device time by launching stack, not host time"),
    TP_TEXT("scope", 0, "SCOPE", scope, "with --device: all (default), linked or steps"),
    TP_TEXT("output", 'o', "OUT", output, "the file to write; - is standard output"),
    TP_SWITCH("json", 0, json, "say as JSON what was written"),
    {0}};

static tp_status to_output(void *context, const void *bytes, size_t n, tp_error *err)
{
    return tp_output_write(context, bytes, n, err);
}

static tp_status export(const flags *f, const tp_trace_file *file, tp_export_sink *sink,
                        tp_error *err)
{
    tp_select_options options = {0};
    if (f->chrome)
        return tp_export_chrome(file->events, sink, err);
    if (f->perfetto)
        return tp_export_perfetto(file->events, sink, err);
    if (f->csv)
        return tp_export_csv(file->events, sink, err);
    if (f->scope && !tp_scope_parse(f->scope, &options.scope))
        return tp_fail(err, TP_ERR_ARG, "--scope is all, linked or steps, not '%s'", f->scope);
    tp_selection selection;
    tp_selection_make(file->events, &options, &selection);
    tp_status status =
        tp_export_collapsed(&selection, f->device ? TP_STACKS_DEVICE : TP_STACKS_HOST, sink, err);
    tp_selection_release(&selection);
    return status;
}

static tp_status export_to(const flags *f, const tp_trace_file *file, uint64_t *ret_bytes,
                           tp_error *err)
{
    tp_output *output;
    TP_TRY(tp_output_open(&output, f->output, err));
    tp_export_sink sink = {.write = to_output, .context = output};
    tp_status status = export(f, file, &sink, err);
    tp_buf_release(&sink.pending);
    if (status == TP_OK)
        return tp_output_close(output, ret_bytes, err);
    tp_output_abandon(output);
    return status;
}

static void report(const flags *f, const tp_trace_file *file, uint64_t bytes)
{
    char size[32];
    if (f->json) {
        tp_buf out = {0};
        tp_json_w w;
        tp_json_w_init(&w, &out, 0);
        tp_json_w_begin(&w, '{');
        tp_json_w_put_str(&w, "output", f->output);
        tp_json_w_put_i64(&w, "bytes", (int64_t)bytes);
        tp_json_w_put_i64(&w, "events", (int64_t)file->events->n);
        tp_json_w_end(&w, '}');
        puts(tp_buf_str(&out));
        tp_buf_release(&out);
        return;
    }
    printf("%s: %s, %zu events\n", f->output, tp_human_bytes((double)bytes, size), file->events->n);
}

static bool check(const flags *f)
{
    int formats = f->chrome + f->perfetto + f->collapsed + f->csv;
    if (formats != 1)
        fprintf(stderr, "temper trace export: choose one of --chrome, --perfetto, --collapsed and "
                        "--csv\n");
    else if (!f->output)
        fprintf(stderr, "temper trace export: -o OUT is missing (- is standard output)\n");
    else
        return true;
    return false;
}

int tp_trace_export_command(int argc, char **argv)
{
    flags f = {0};
    char *words[argc + 1];
    tp_error err = {0};
    tp_trace_file *file;
    uint64_t bytes = 0;
    const tp_usage usage = {.command = "trace export",
                            .arguments = "FILE",
                            .summary =
                                "Write a trace in another tool's format; FILE may be a folder "
                                "with one trace, or '-', standard input.",
                            .flags = flag_table,
                            .min_words = 1,
                            .max_words = 1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    if (!check(&f))
        return 2;
    const tp_ingest_options options = {.keep = f.chrome      ? TP_KEEP_ALL
                                               : f.collapsed ? TP_KEEP_FAST | TP_KEEP_OPS
                                                             : TP_KEEP_FAST | TP_KEEP_MEMORY};
    tp_trace_paths path = {0};
    tp_status status = tp_trace_paths_one(words[0], &path, &err);
    if (status == TP_OK)
        status = tp_trace_open(path.v[0], &options, &file, &err);
    tp_trace_paths_release(&path);
    if (status != TP_OK)
        return tp_cli_fail(&err);
    if (!file->events)
        status = tp_fail(&err, TP_ERR_UNSUPPORTED, "'%s' is a %s: it has no events to export",
                         words[0], tp_file_kind_about(file->kind));
    else
        status = export_to(&f, file, &bytes, &err);
    if (status == TP_OK && strcmp(f.output, "-") != 0)
        report(&f, file, bytes);
    tp_trace_close(file);
    return status == TP_OK ? 0 : tp_cli_fail(&err);
}
