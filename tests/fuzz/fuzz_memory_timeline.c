/* fuzz_memory_timeline.c - memory timelines, on any bytes. */
#include <stdint.h>
#include <stdlib.h>

#include "instrument/ingest/memory_timeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_memory_timeline *t = NULL;
    tp_notes notes = {0};
    tp_error err = {0};
    if (size > 1 << 16)
        return 0;
    if (tp_memory_timeline_read("fuzz", (const char *)data, size, 1 << 20, &t, &notes, &err) ==
        TP_OK) {
        int64_t sum = 0;
        for (size_t i = 0; i < t->n_times * TP_TIMELINE_CATEGORIES; i++)
            sum ^= t->bytes[i];
        if (t->is_raw && t->n_times)
            abort();
        (void)sum;
    } else if (!err.message[0]) {
        abort();
    }
    tp_memory_timeline_free(t);
    tp_notes_release(&notes);
    return 0;
}
