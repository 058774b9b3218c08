/* fuzz_kineto.c - Chrome traces, on any bytes.
 *
 * The scanners of all instruction sets, and windows of any size, must give the same
 * events.  The first byte chooses the window. */
#include <stdint.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "instrument/ingest/ingest.h"

static uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* A hash of what was read, 0 when it was refused. */
static uint64_t read_trace(const uint8_t *data, size_t size, uint32_t window)
{
    const tp_ingest_options options = {.one_thread = true, .window = window, .max_bytes = 1 << 22};
    tp_trace_file *f = NULL;
    tp_error err = {0};
    if (tp_trace_open_memory("fuzz", data, size, &options, &f, &err) != TP_OK) {
        if (!err.message[0])
            abort();
        return 0;
    }
    uint64_t hash = 1;
    const tp_events *e = f->events;
    if (e) {
        hash = mix(hash, &e->counts.events, sizeof e->counts.events);
        hash = mix(hash, e->counts.ph, sizeof e->counts.ph);
        hash = mix(hash, &e->counts.skipped_events, sizeof(uint64_t) * 5);
        hash = mix(hash, e->start, e->n * sizeof *e->start);
        hash = mix(hash, e->dur, e->n * sizeof *e->dur);
        hash = mix(hash, e->name, e->n * sizeof *e->name);
        hash = mix(hash, e->detail, e->n * sizeof *e->detail);
        hash = mix(hash, &e->n_memory, sizeof e->n_memory);
        hash = mix(hash, &e->n_counters, sizeof e->n_counters);
        hash = mix(hash, e->strings.bytes, e->strings.used);
        for (size_t i = 0; i < e->n; i++)
            (void)tp_events_collective(e, i);
    }
    tp_trace_close(f);
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 1 << 16)
        return 0;
    uint32_t window = 1 + data[0] * 3u;
    bool is_gzip = data[1] == 0x1f;
    if (tp_cpu_force_isa(TP_ISA_PORTABLE, NULL) != TP_OK)
        abort();
    uint64_t whole = read_trace(data + 1, size - 1, 0);
    if (is_gzip)
        return 0;
    for (int isa = TP_ISA_PORTABLE; isa <= TP_ISA_AVX512; isa++)
        if (tp_cpu_force_isa((tp_isa)isa, NULL) == TP_OK &&
            (read_trace(data + 1, size - 1, window) != whole ||
             read_trace(data + 1, size - 1, 0) != whole))
            abort();
    return 0;
}
