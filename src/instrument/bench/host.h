/* host.h - where a measurement was made, in fields that do not change by themselves.
 *
 * Two results may be compared without interleaving only when they come from the same
 * host.  The fingerprint is a hash of what identifies a machine and its settings and of
 * nothing that varies from minute to minute (never MHz, load or temperature): processor
 * model, processors usable, caches, memory in GiB, kernel series, C library, governor,
 * turbo.  What cannot be told is "unknown". */
#ifndef TP_INSTRUMENT_BENCH_HOST_H
#define TP_INSTRUMENT_BENCH_HOST_H

#include "text/json/json.h"

typedef struct {
    char fingerprint[33];
    char name[72]; /* of the machine: not part of the fingerprint */
    char cpu[128], isa[24];
    int processors; /* usable by this process */
    int64_t memory_gib;
    size_t cache_l2, cache_l3;
    char governor[32], turbo[16];
    char kernel[72], kernel_series[16]; /* "6.1.0-18-amd64", "6.1" */
    char libc[48], compiler[72], gpu[96];
} tp_host;

/* What this machine is. */
void tp_host_detect(tp_host *ret);

void tp_host_write(const tp_host *host, tp_json_w *w);  /* a JSON object */
void tp_host_read(const tp_json *object, tp_host *ret); /* missing members are "unknown" */

/* The commit that the current folder (or `folder`) stands on; false when there is none. */
typedef struct {
    char id[48], branch[128], time[40], project[128];
    bool is_dirty;
} tp_commit;
bool tp_commit_detect(const char *folder, tp_commit *ret);

#endif
