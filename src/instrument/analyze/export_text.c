/* export_text.c - writing a trace as collapsed stacks (flame graphs) and as CSV. */
#include <string.h>

#include "instrument/analyze/export.h"

enum { MUCH = 1 << 20 };

tp_status tp_export_flush(tp_export_sink *sink, bool all, tp_error *err)
{
    if (sink->pending.len == 0 || (!all && sink->pending.len < MUCH))
        return TP_OK;
    tp_status status = sink->write(sink->context, sink->pending.data, sink->pending.len, err);
    tp_buf_clear(&sink->pending);
    return status;
}

tp_status tp_export_written(tp_export_sink *sink, tp_error *err)
{
    sink->n_written++;
    return tp_export_flush(sink, false, err);
}

tp_status tp_export_collapsed(const tp_selection *sel, tp_stacks_of what, tp_export_sink *sink,
                              tp_error *err)
{
    TP_OWN(tp_stacks) stacks = {0};
    tp_status status = TP_OK;
    tp_stacks_make(sel, what, &stacks);
    for (size_t i = 0; i < stacks.n && status == TP_OK; i++) {
        if (stacks.v[i].ns <= 0)
            continue;
        tp_stack_path(&stacks, (uint32_t)i, &sink->pending);
        tp_buf_addf(&sink->pending, " %lld\n", (long long)stacks.v[i].ns);
        status = tp_export_written(sink, err);
    }
    return status == TP_OK ? tp_export_flush(sink, true, err) : status;
}

static void put_number(tp_buf *out, int64_t v)
{
    tp_buf_addc(out, ',');
    if (v != TP_UNKNOWN)
        tp_buf_addf(out, "%lld", (long long)v);
}

static void put_text(tp_buf *out, const char *s)
{
    bool must_quote = strpbrk(s, ",\"\r\n") != NULL;
    if (must_quote)
        tp_buf_addc(out, '"');
    for (; *s; s++) {
        if (*s == '"')
            tp_buf_addc(out, '"');
        tp_buf_addc(out, *s);
    }
    if (must_quote)
        tp_buf_addc(out, '"');
}

/* A number where the file has one, else its text. */
static void put_id(tp_buf *out, const tp_events *e, int64_t number, uint32_t text)
{
    if (number != TP_UNKNOWN || !text) {
        put_number(out, number);
        return;
    }
    tp_buf_addc(out, ',');
    put_text(out, tp_events_str(e, text));
}

static void put_track(tp_buf *out, const tp_event_track *t, const tp_events *e)
{
    put_id(out, e, t->pid, t->pid_text);
    put_id(out, e, t->tid, t->tid_text);
}

/* Memory taken and given back; the device of the host is -1. */
static tp_status put_memory(const tp_events *e, tp_export_sink *sink, tp_error *err)
{
    tp_buf *out = &sink->pending;
    for (size_t i = 0; i < e->n_memory; i++) {
        const tp_memory_instant *m = &e->memory[i];
        tp_buf_addf(out, "%lld,0,i,,memory", (long long)m->ts);
        put_track(out, &e->tracks[m->track], e);
        put_number(out, m->device == TP_NO_DEVICE ? TP_UNKNOWN : m->device);
        tp_buf_addf(out, ",,,,%lld,[memory]\n", (long long)m->bytes);
        TP_TRY(tp_export_written(sink, err));
    }
    return TP_OK;
}

tp_status tp_export_csv(const tp_events *e, tp_export_sink *sink, tp_error *err)
{
    tp_buf *out = &sink->pending;
    tp_buf_adds(out, "start_ns,dur_ns,phase,category,kind,pid,tid,device,stream,correlation,"
                     "external_id,bytes,name\n");
    for (size_t i = 0; i < e->n; i++) {
        const tp_event_track *t = &e->tracks[e->track[i]];
        const tp_event_copy *copy = tp_events_copy(e, i);
        tp_buf_addf(out, "%lld", (long long)e->start[i]);
        put_number(out, e->dur[i]);
        tp_buf_addf(out, ",%c,", e->phase[i]);
        put_text(out, tp_events_category(e, i));
        tp_buf_addf(out, ",%s", tp_event_kind_name(e->kind[i]));
        put_track(out, t, e);
        put_number(out, t->device);
        put_number(out, t->stream);
        put_number(out, e->correlation[i]);
        put_number(out, e->external[i]);
        put_number(out, copy ? copy->bytes : TP_UNKNOWN);
        tp_buf_addc(out, ',');
        put_text(out, tp_events_str(e, e->name[i]));
        tp_buf_addc(out, '\n');
        TP_TRY(tp_export_written(sink, err));
    }
    TP_TRY(put_memory(e, sink, err));
    return tp_export_flush(sink, true, err);
}
