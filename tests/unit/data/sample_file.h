/* sample_file.h - a token cache with given lengths, for tests of what reads one.
 *
 * Example i has the tokens 1000 * i + k; its first `prompt` tokens are not learned. */
#ifndef TP_TESTS_SAMPLE_FILE_H
#define TP_TESTS_SAMPLE_FILE_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/data/cache.h"

#define SAMPLE_KEY "00112233445566778899aabbccddeeff"

static inline int sample_token(size_t i, size_t k) { return (int)(1000 * i + k); }

/* Writes and opens `path`; the caller closes the cache.  0 when all went well. */
static inline int sample_file_make(const char *path, const int *lengths, size_t n, int prompt,
                                   tp_cache *ret)
{
    tp_cache_writer writer;
    tp_cache_counts counts = {.n_rows = n, .max_id = sample_token(n, 0)};
    tp_buf record = {0};
    int failed = tp_cache_writer_open(path, SAMPLE_KEY, true, &writer, NULL) != TP_OK;
    for (size_t i = 0; i < n && !failed; i++) {
        int32_t *ids = malloc((size_t)lengths[i] * sizeof *ids);
        uint8_t *mask = malloc((size_t)lengths[i]);
        for (int k = 0; k < lengths[i]; k++) {
            ids[k] = sample_token(i, (size_t)k);
            mask[k] = k >= prompt && k > 0;
        }
        tp_buf_clear(&record);
        uint32_t size =
            (uint32_t)tp_cache_encode(&record, ids, mask, (size_t)lengths[i], true, i + 1);
        failed = tp_cache_writer_add(&writer, &record, &size, 1, NULL) != TP_OK;
        counts.n_tokens += (uint64_t)lengths[i];
        free(ids);
        free(mask);
    }
    tp_buf_release(&record);
    failed = failed || tp_cache_writer_close(&writer, &counts, NULL) != TP_OK;
    return failed || tp_cache_open(path, SAMPLE_KEY, ret, NULL) != TP_OK;
}

#endif
