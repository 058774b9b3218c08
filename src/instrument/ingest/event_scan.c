/* event_scan.c - which scanner runs: that of the level in force, once it has shown that it reads
 * what the portable one reads.  It may never have run on such a processor before. */
#include "instrument/ingest/event_scan.h"

#include <pthread.h>
#include <xxhash.h>

#include "base/log.h"

/* Gaps, numbers and strings of all lengths around 32 and 64 bytes, brackets, damage; twice, so
 * that gaps are known; and the pad behind the window. */
#define NUMBERS "\"ts\": 1234567.891, \"dur\": 0.5, \"pid\": 7, \"tid\": \"stream 21\","
#define EVENTS                                                                                     \
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void gemm<float, 128>(a, b) [clone .1] and " \
    "a name "                                                                                      \
    "of more than sixty-four bytes\",\n    " NUMBERS                                               \
    "\n    \"args\": {\"grid\": [1, 2, 3], \"device\": 0, \"shape\": [[4, [5, {\"x\": \"]}\"}]], " \
    "6], "                                                                                         \
    "\"External id\": 12345678901234567890}\n  },\n  {\"ph\": \"i\", \"name\": \"a \\\"b\\\" \t "  \
    "c\", "                                                                                        \
    "\"ts\": -1, \"odd\": NaN, \"more\": true, \"empty\": {}, \"s\": \"t\"},\n  "
static const char text[] = EVENTS EVENTS EVENTS "{\"ph\": \"X\"}]";

typedef struct {
    const char *text;
    uint64_t sum;
    int events;
} digest;

static bool add_event(tp_event_scan *scan)
{
    digest *d = scan->context;
    uint64_t seen[4] = {d->sum, (uint64_t)(scan->event - d->text),
                        (uint64_t)(scan->event_end - d->text),
                        scan->odd_values * 64u + scan->odd_commas * 8u + scan->repaired_strings};
    d->sum = XXH3_64bits(seen, sizeof seen);
    for (int key = 0; key < TP_KEYS; key++) {
        const tp_slot *slot = &scan->slots[key];
        if (!tp_scan_has(scan, (tp_event_key)key))
            continue;
        uint64_t value[4] = {d->sum, (uint64_t)key << 32 | slot->tag,
                             (uint64_t)(slot->text - d->text), slot->len};
        d->sum = XXH3_64bits(value, sizeof value);
    }
    d->events++;
    return d->events < 64;
}

static bool digest_text(tp_scan_function *function, const char *padded, digest *ret)
{
    TP_OWN(tp_event_scan) scan = {0};
    if (tp_event_scan_init(&scan, NULL) != TP_OK)
        return false;
    *ret = (digest){.text = padded};
    scan.at = padded;
    scan.end = padded + sizeof text - 1;
    scan.is_final = true;
    scan.commit = add_event;
    scan.context = ret;
    tp_scan_result result = function(&scan);
    uint64_t end[3] = {ret->sum, (uint64_t)result, (uint64_t)(scan.at - padded)};
    ret->sum = XXH3_64bits(end, sizeof end);
    return true;
}

bool tp_event_scan_agrees(tp_scan_function *function)
{
    char padded[sizeof text + TP_SCAN_PAD] = {0};
    digest expected, got;
    memcpy(padded, text, sizeof text);
    if (!digest_text(tp_event_scan_portable, padded, &expected) ||
        !digest_text(function, padded, &got))
        return true;
    return got.sum == expected.sum && got.events == expected.events;
}

#if defined(__x86_64__)

static bool is_avx512_right, is_avx2_right;

static bool is_right(tp_isa isa, tp_scan_function *function)
{
    if (!tp_cpu_may_use(isa) || tp_event_scan_agrees(function))
        return true;
    tp_log(TP_LOG_WARNING, "trace",
           "the reader of traces for %s is left out: it does not read what the portable one does",
           tp_isa_name(isa));
    return false;
}

static void look(void)
{
    is_avx512_right = is_right(TP_ISA_AVX512, tp_event_scan_avx512);
    is_avx2_right = is_right(TP_ISA_AVX2, tp_event_scan_avx2);
}

tp_scan_result tp_event_scan_run(tp_event_scan *scan)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look);
    if (is_avx512_right && tp_cpu_may_use(TP_ISA_AVX512))
        return tp_event_scan_avx512(scan);
    if (is_avx2_right && tp_cpu_may_use(TP_ISA_AVX2))
        return tp_event_scan_avx2(scan);
    return tp_event_scan_portable(scan);
}

#else

tp_scan_result tp_event_scan_run(tp_event_scan *scan) { return tp_event_scan_portable(scan); }

#endif
