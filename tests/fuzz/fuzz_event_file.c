/* fuzz_event_file.c - event files: as they are, or, behind a first byte 'r', as records of given
 * lengths that are framed with right checksums, so that what is in them is reached. */
#include <stdint.h>
#include <stdlib.h>

#include "base/strings.h"
#include "instrument/ingest/runs/event_record.h"
#include "run_file.h"

static void frame(tp_buf *out, const uint8_t *data, size_t n)
{
    uint64_t length = n;
    uint32_t crc = tp_event_checksum(&length, 8);
    tp_buf_add(out, &length, 8);
    tp_buf_add(out, &crc, 4);
    tp_buf_add(out, data, n);
    crc = tp_event_checksum(data, n);
    tp_buf_add(out, &crc, 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_buf file = {0};
    if (size > 1 << 16)
        return 0;
    if (size && data[0] == 'r') {
        for (size_t at = 1; at < size;) {
            size_t n = data[at++];
            n = n < size - at ? n : size - at;
            frame(&file, data + at, n);
            at += n;
        }
    } else {
        tp_buf_add(&file, data, size);
    }
    tp_fuzz_run_file("events.out.tfevents.1.x", tp_buf_str(&file), file.len);
    tp_buf_release(&file);
    return 0;
}
