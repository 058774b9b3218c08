/* fuzz_cache.c - any bytes opened as a token cache.
 *
 * Checksums would keep the fuzzer outside, so a first byte of 1 has those of foot and
 * index put right before opening: what follows must hold without them. */
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/data/cache.h"

/* Of the foot: where it keeps the place of the index, and the two sums. */
enum { FOOT = 128, OFFSETS_AT = 96, OFFSETS_HASH = 104, HASH = 112 };

static void put_right(char *file, size_t n)
{
    if (n < FOOT)
        return;
    char *foot = file + n - FOOT;
    uint64_t at, sum;
    memcpy(&at, foot + OFFSETS_AT, 8);
    if (at <= n - FOOT) {
        sum = XXH3_64bits(file + at, n - FOOT - at);
        memcpy(foot + OFFSETS_HASH, &sum, 8);
    }
    sum = XXH3_64bits(foot, HASH);
    memcpy(foot + HASH, &sum, 8);
}

static void read_all(const tp_cache *cache)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < cache->counts.n_examples; i++) {
        tp_sample s;
        tp_error err = {.message = ""};
        if (tp_cache_peek(cache, i, &s, &err) != TP_OK) {
            if (!err.message[0])
                abort();
            continue;
        }
        int32_t *ids = malloc(s.n_tokens * sizeof *ids);
        tp_sample_tokens(cache, &s, ids, s.n_tokens);
        for (size_t k = 0; k < s.n_tokens; k++)
            sum += (uint64_t)ids[k] * tp_sample_mask(&s, k);
        free(ids);
        if (tp_cache_get(cache, i, &s, &err) != TP_OK && !err.message[0])
            abort();
    }
    static volatile uint64_t kept;
    kept = sum;
    (void)kept;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    char *file = malloc(size > 1 ? size - 1 : 1); /* exact, so that reading on is noticed */
    memcpy(file, data + 1, size - 1);
    if (data[0] == 1)
        put_right(file, size - 1);
    tp_cache cache;
    tp_error err = {.message = ""};
    if (tp_cache_open_memory("fuzz", file, size - 1, NULL, &cache, &err) == TP_OK) {
        read_all(&cache);
        tp_cache_close(&cache);
    } else if (!err.message[0]) {
        abort();
    }
    free(file);
    return 0;
}
