/* fuzz_nsight.c - Nsight exports, on any bytes that begin like a database. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "instrument/ingest/ingest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char magic[] = "SQLite format 3";
    const tp_ingest_options options = {.one_thread = true};
    tp_trace_file *f = NULL;
    tp_error err = {0};
    if (size < sizeof magic || size > 1 << 18 || memcmp(data, magic, sizeof magic) != 0)
        return 0;
    if (tp_trace_open_memory("fuzz", data, size, &options, &f, &err) != TP_OK) {
        if (!err.message[0])
            abort();
        return 0;
    }
    for (size_t i = 0; i < f->events->n; i++)
        (void)tp_events_str(f->events, f->events->name[i]);
    tp_trace_close(f);
    return 0;
}
