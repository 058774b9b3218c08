/* cache.h - a tokenised data set as one memory-mapped file.
 *
 *     head      64 bytes: magic, version, bytes per token, key
 *     records   one per example, each a multiple of 8 bytes:
 *                   u32 n_tokens, n_targets; u64 line; u64 check
 *                   tokens, u16 or u32
 *                   mask bits, one per token: 1 = to be learned
 *     offsets   u64[n + 1]: where each record starts, and where the last one ends
 *     foot      counts, place of the offsets, checksums of offsets and foot
 *
 * The foot comes last so that a data set of any size is written in one pass.  All
 * numbers are little-endian.  Opening checks head, foot, key, sizes and offsets;
 * each record's own check is verified when it is read, so opening costs 8 bytes per
 * example whatever the size. */
#ifndef TP_ENGINE_DATA_CACHE_H
#define TP_ENGINE_DATA_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/files.h"
#include "base/strings.h"

enum { TP_CACHE_VERSION = 4 };

/* What is known about the contents; kept in the file. */
typedef struct {
    uint64_t n_examples, n_tokens;
    uint64_t n_targets;    /* tokens to be learned */
    uint64_t n_rows;       /* read, good or bad */
    uint64_t n_bad;        /* rows left out because they could not be read */
    uint64_t n_masked;     /* rows left out because nothing in them is to be learned */
    uint64_t n_truncated;  /* examples cut to the longest length allowed */
    uint64_t n_straddling; /* examples in which a learned span starts inside a token */
    uint64_t longest;      /* tokens of the longest example */
    uint64_t source_bytes;
    uint32_t schema, schema_detected; /* tp_schema_kind */
    int32_t max_id;                   /* highest token id, -1 when there is none */
    uint32_t unread;                  /* see tp_example */
} tp_cache_counts;
/* Of two sources together; the schema is the last one's. */
void tp_cache_counts_add(tp_cache_counts *sum, const tp_cache_counts *more);

typedef struct {
    const char *name; /* the path, for messages; owned */
    tp_map_file map;  /* empty when opened from memory */
    const char *data;
    size_t size;
    const uint64_t *offsets;
    bool wide; /* u32 tokens */
    tp_cache_counts counts;
} tp_cache;

/* `key` is 32 hex digits, or NULL for any.  TP_ERR_FORMAT says why the file cannot
 * be used: not a cache, cut short, damaged, of other contents. */
TP_CHECKED tp_status tp_cache_open(const char *path, const char *key, tp_cache *ret, tp_error *err);
/* The same from memory that is 8-byte aligned and outlives the cache. */
TP_CHECKED tp_status tp_cache_open_memory(const char *name, const void *data, size_t n,
                                          const char *key, tp_cache *ret, tp_error *err);
void tp_cache_close(tp_cache *cache); /* zeroed is a no-op */

/* One example, in place. */
typedef struct {
    const void *tokens;  /* u16 or u32 */
    const uint8_t *bits; /* mask: token k is bit k & 7 of byte k >> 3 */
    uint32_t n_tokens, n_targets;
    uint64_t line; /* of the source file, from 1 */
} tp_sample;

/* i < counts.n_examples.  Touches the record's head only and checks its size. */
TP_CHECKED tp_status tp_cache_peek(const tp_cache *cache, uint64_t i, tp_sample *ret,
                                   tp_error *err);
/* The same with the record's checksum verified. */
TP_CHECKED tp_status tp_cache_get(const tp_cache *cache, uint64_t i, tp_sample *ret, tp_error *err);

/* Some examples of a cache, in an order of its own. */
typedef struct {
    const tp_cache *cache;
    const uint64_t *index; /* NULL: all of them, in file order */
    uint64_t n;
} tp_sample_set;

static inline bool tp_sample_mask(const tp_sample *s, size_t k)
{
    return s->bits[k >> 3] >> (k & 7) & 1;
}

/* The first n tokens as i32. */
void tp_sample_tokens(const tp_cache *cache, const tp_sample *s, int32_t *out, size_t n);

/* Append one record to `out`; returns its size.  0 < n < 2^31. */
size_t tp_cache_encode(tp_buf *out, const int32_t *ids, const uint8_t *mask, size_t n, bool wide,
                       uint64_t line);

/* Writing: records in order, then close, which makes the file complete. */
typedef struct {
    tp_writer *file;
    uint64_t *offsets;
    uint64_t n, cap;
} tp_cache_writer;

TP_CHECKED tp_status tp_cache_writer_open(const char *path, const char *key, bool wide,
                                          tp_cache_writer *ret, tp_error *err);
/* `records` holds n of them, back to back, with their sizes. */
TP_CHECKED tp_status tp_cache_writer_add(tp_cache_writer *w, const tp_buf *records,
                                         const uint32_t *sizes, size_t n, tp_error *err);
/* Closed and released whatever happens; counts.n_examples is set from what was added. */
TP_CHECKED tp_status tp_cache_writer_close(tp_cache_writer *w, const tp_cache_counts *counts,
                                           tp_error *err);
void tp_cache_writer_abandon(tp_cache_writer *w); /* zeroed is a no-op */

#endif
