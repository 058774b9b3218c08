/* trace_text.h - small traces written down in tests, read as files are. */
#ifndef TESTS_UNIT_ANALYZE_TRACE_TEXT_H
#define TESTS_UNIT_ANALYZE_TRACE_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "instrument/analyze/operators.h"
#include "instrument/analyze/selection.h"
#include "instrument/ingest/ingest.h"

/* `events`: what stands between the brackets of traceEvents. */
static inline tp_trace_file *read_trace(const char *name, const char *events)
{
    tp_buf text = {0};
    tp_error err = {0};
    tp_trace_file *file = NULL;
    tp_buf_addf(&text,
                "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA "
                "A100\", \"totalGlobalMem\": 1000000}], \"traceEvents\": [%s]}",
                events);
    const tp_ingest_options options = {.keep = 0};
    if (tp_trace_open_memory(name, text.data, text.len, &options, &file, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_buf_release(&text);
    return file;
}

static inline tp_selection select_all(const tp_trace_file *file)
{
    tp_selection selection;
    const tp_select_options options = {.scope = TP_SCOPE_ALL};
    tp_selection_make(file->events, &options, &selection);
    return selection;
}

/* Microseconds become events; correlation 0 is left out. */
#define KERNEL(name, stream, ts, dur, corr)                                             \
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"" name "\",\"pid\":0,\"tid\":" #stream \
    ",\"ts\":" #ts ",\"dur\":" #dur ",\"args\":{\"device\":0,\"stream\":" #stream       \
    ",\"correlation\":" #corr "}}"
#define COPY(name, stream, ts, dur, corr, bytes)                                            \
    "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"" name "\",\"pid\":0,\"tid\":" #stream \
    ",\"ts\":" #ts ",\"dur\":" #dur ",\"args\":{\"device\":0,\"stream\":" #stream           \
    ",\"correlation\":" #corr ",\"bytes\":" #bytes "}}"
#define CALL(name, tid, ts, dur, corr)                                                     \
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"" name "\",\"pid\":9,\"tid\":" #tid \
    ",\"ts\":" #ts ",\"dur\":" #dur ",\"args\":{\"correlation\":" #corr "}}"
#define OP(name, tid, ts, dur)                                                       \
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":9,\"tid\":" #tid \
    ",\"ts\":" #ts ",\"dur\":" #dur ",\"args\":{}}"
#define NOTE(name, tid, ts, dur)                                                              \
    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"" name "\",\"pid\":9,\"tid\":" #tid \
    ",\"ts\":" #ts ",\"dur\":" #dur ",\"args\":{}}"

/* Two devices by turns, 100 us each: one computes while the other sends, so nothing is hidden. */
static inline tp_trace_file *read_turns(void)
{
    tp_buf text = {0};
    for (int i = 0; i < 4; i++) {
        int device = i % 2, is_sent = i == 1 || i == 2, at = i / 2 * 100;
        tp_buf_addf(&text,
                    "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,"
                    "\"ts\":%d,\"dur\":100,\"args\":{\"device\":%d,\"stream\":%d,"
                    "\"External id\":1}}",
                    i ? "," : "", is_sent ? "ncclDevKernel_AllReduce" : "gemm", device,
                    is_sent ? 9 : 7, at, device, is_sent ? 9 : 7);
    }
    tp_buf_adds(&text,
                ",{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":9,\"tid\":1,"
                "\"ts\":0,\"dur\":150,\"args\":{\"External id\":1}}");
    tp_trace_file *file = read_trace("turns.json", tp_buf_str(&text));
    tp_buf_release(&text);
    return file;
}

#endif
