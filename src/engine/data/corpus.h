/* corpus.h - a source of rows becomes a token cache: once, in parallel, in order.
 *
 *     read a wave -> cut into pieces at line ends -> tokenise pieces on all threads
 *                 -> write them in their order -> next wave
 *
 * Memory is bounded by the wave and the longest line, not by the source. */
#ifndef TP_ENGINE_DATA_CORPUS_H
#define TP_ENGINE_DATA_CORPUS_H

#include "base/threads.h"
#include "engine/data/arithmetic.h"
#include "engine/data/cache.h"
#include "engine/data/render.h"
#include "engine/data/schema.h"

typedef struct {
    const char *path;                        /* a JSONL file, or: */
    const tp_arithmetic_options *arithmetic; /* n_rows made-up rows of a split */
    tp_split split;
    uint64_t n_rows;

    const tp_schema_options *schema;
    const tp_renderer *renderer;
    int64_t skip_bad; /* rows that may be left out because they are wrong; < 0: any number */
    tp_pool *pool;    /* NULL: the caller's thread alone */

    /* (optional) called between waves with what is being done, "tokenising rows.jsonl"; false
     * stops with TP_ERR_INTERRUPTED.  The total is bytes of the file, or rows. */
    bool (*progress)(void *user, const char *what, uint64_t done, uint64_t total);
    void *user;
} tp_corpus;

typedef struct {
    tp_cache_counts counts;
    char source_hash[33];        /* XXH3-128 of the file as it was read; "" without a file */
    char first_bad_message[512]; /* "" when every row was good */
} tp_corpus_result;

/* Write the cache to `path` under `key`; on failure nothing is promised about the
 * file, which the caller removes. */
TP_CHECKED tp_status tp_corpus_build(const tp_corpus *corpus, const char *path, const char *key,
                                     tp_corpus_result *ret, tp_error *err);

#endif
