/* fuzz_trace.c - names, arguments and metadata of any bytes make a trace that is strict JSON.
 *
 * The input is cut at its line feeds; the texts are used in turn. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "text/json/json.h"
#include "trace/trace.h"

enum { TEXTS = 8 };

static void check(const char *path)
{
    tp_buf text = {0};
    tp_json_reader r;
    tp_json_token token;
    if (tp_file_read(path, 0, &text, NULL) != TP_OK)
        abort();
    tp_json_reader_init(&r, "trace", text.data, text.len, NULL);
    do
        if (tp_json_reader_next(&r, &token, NULL) != TP_OK)
            abort();
    while (token.type != TP_JSON_TOKEN_END);
    tp_buf_release(&text);
}

static void record(char *const texts[TEXTS])
{
    const tp_trace_site *site = tp_trace_site_make(texts[0], texts[1], texts[2]);
    tp_trace_thread_name(texts[3]);
    tp_zone zone = tp_zone_begin(site);
    tp_trace_mark(site, texts[4]);
    tp_trace_value(site, (double)strlen(texts[5]));
    tp_trace_memory(site, texts[5], 5);
    tp_zone_end_with(&zone, texts[5]);
    (void)!tp_trace_metadata(texts[6], texts[7], NULL);
    tp_trace_mark(tp_trace_site_make(NULL, texts[3], NULL), texts[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    char *copy = malloc(size + 1), *texts[TEXTS], *at = copy;
    tp_trace_options options = {.size = sizeof options,
                                .events_per_thread = 128,
                                .clock = TP_TRACE_CLOCK_MONOTONIC,
                                .process_name = copy};
    snprintf(path, sizeof path, "/tmp/fuzz-trace-%d.json", getpid());
    memcpy(copy, data, size);
    copy[size] = 0;
    for (int i = 0; i < TEXTS; i++) {
        texts[i] = at;
        at += strcspn(at, "\n");
        if (*at)
            *at++ = 0;
    }
    if (tp_trace_start(&options, NULL) != TP_OK) {
        free(copy);
        return 0;
    }
    record(texts);
    tp_trace_stop();
    if (tp_trace_write(path, NULL) != TP_OK)
        abort();
    check(path);
    unlink(path);
    free(copy);
    return 0;
}
