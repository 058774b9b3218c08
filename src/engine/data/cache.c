/* cache.c - writing and memory-mapping a token cache; every offset of the file is checked
 * before it is followed. */
#include "engine/data/cache.h"

#include <string.h>
#include <xxhash.h>

#include "base/platform.h"

static const char magic[8] = "TPTOKENS";

enum { RECORD_HEAD = 24, KEY_BYTES = 32 };

typedef struct {
    char magic[8];
    uint32_t version, token_bytes;
    char key[KEY_BYTES]; /* hex digits */
    uint64_t reserved[2];
} file_head;

typedef struct {
    tp_cache_counts counts;
    uint64_t offsets_at;   /* in the file */
    uint64_t offsets_hash; /* XXH3-64 */
    uint64_t hash;         /* of the foot up to here */
    char magic[8];
} file_foot;

typedef struct {
    uint32_t n_tokens, n_targets;
    uint64_t line;
    uint64_t check; /* XXH3-64 of tokens and mask, seeded by the other fields */
} record_head;

_Static_assert(sizeof(file_head) == 64, "the head is part of the format");
_Static_assert(sizeof(record_head) == RECORD_HEAD, "the record is part of the format");
_Static_assert(sizeof(tp_cache_counts) == 96, "the counts are part of the format");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is little-endian");

static size_t round_up_8(size_t n) { return (n + 7) & ~(size_t)7; }

/* Tokens and mask bits, without the head and the padding. */
static size_t body_bytes(uint64_t n_tokens, bool wide)
{
    return n_tokens * (wide ? 4 : 2) + (n_tokens + 7) / 8;
}

static uint64_t body_check(const record_head *head, const void *body, bool wide)
{
    uint64_t seed = head->line * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)head->n_targets << 32 ^
                    head->n_tokens;
    return XXH3_64bits_withSeed(body, body_bytes(head->n_tokens, wide), seed);
}

size_t tp_cache_encode(tp_buf *out, const int32_t *ids, const uint8_t *mask, size_t n, bool wide,
                       uint64_t line)
{
    TP_ASSERT(n > 0 && n < INT32_MAX);
    size_t size = RECORD_HEAD + round_up_8(body_bytes(n, wide));
    tp_buf_reserve(out, size);
    char *record = out->data + out->len;
    memset(record, 0, size);
    char *tokens = record + RECORD_HEAD;
    uint8_t *bits = (uint8_t *)tokens + n * (wide ? 4 : 2);
    record_head head = {.n_tokens = (uint32_t)n, .line = line};
    for (size_t k = 0; k < n; k++) {
        uint16_t narrow = (uint16_t)ids[k];
        if (wide)
            memcpy(tokens + 4 * k, &ids[k], 4);
        else
            memcpy(tokens + 2 * k, &narrow, 2);
        bits[k >> 3] |= (uint8_t)(!!mask[k] << (k & 7));
        head.n_targets += !!mask[k];
    }
    head.check = body_check(&head, tokens, wide);
    memcpy(record, &head, sizeof head);
    out->len += size;
    out->data[out->len] = 0;
    return size;
}

void tp_cache_counts_add(tp_cache_counts *sum, const tp_cache_counts *c)
{
    sum->n_examples += c->n_examples;
    sum->n_tokens += c->n_tokens;
    sum->n_targets += c->n_targets;
    sum->n_rows += c->n_rows;
    sum->n_bad += c->n_bad;
    sum->n_masked += c->n_masked;
    sum->n_truncated += c->n_truncated;
    sum->n_straddling += c->n_straddling;
    sum->longest = TP_MAX(sum->longest, c->longest);
    sum->source_bytes += c->source_bytes;
    sum->max_id = TP_MAX(sum->max_id, c->max_id);
    sum->unread |= c->unread;
    sum->schema = c->schema;
    sum->schema_detected = c->schema_detected;
}

tp_status tp_cache_writer_open(const char *path, const char *key, bool wide, tp_cache_writer *ret,
                               tp_error *err)
{
    file_head head = {.version = TP_CACHE_VERSION, .token_bytes = wide ? 4 : 2};
    TP_ASSERT(strlen(key) == KEY_BYTES);
    memcpy(head.magic, magic, sizeof magic);
    memcpy(head.key, key, KEY_BYTES);
    tp_cache_writer w = {.cap = 1024};
    TP_TRY(tp_writer_open(&w.file, path, err));
    tp_status status = tp_writer_write(w.file, &head, sizeof head, err);
    if (status != TP_OK) {
        tp_writer_abandon(w.file);
        return status;
    }
    w.offsets = tp_grow(NULL, w.cap, sizeof *w.offsets);
    w.offsets[0] = sizeof head;
    *ret = w;
    return TP_OK;
}

tp_status tp_cache_writer_add(tp_cache_writer *w, const tp_buf *records, const uint32_t *sizes,
                              size_t n, tp_error *err)
{
    TP_TRY(tp_writer_write(w->file, records->data, records->len, err));
    while (w->n + n + 1 > w->cap) {
        w->cap *= 2;
        w->offsets = tp_grow(w->offsets, w->cap, sizeof *w->offsets);
    }
    for (size_t i = 0; i < n; i++, w->n++)
        w->offsets[w->n + 1] = w->offsets[w->n] + sizes[i];
    return TP_OK;
}

void tp_cache_writer_abandon(tp_cache_writer *w)
{
    tp_writer_abandon(w->file);
    free(w->offsets);
    *w = (tp_cache_writer){0};
}

static uint64_t foot_hash(const file_foot *foot)
{
    return XXH3_64bits(foot, offsetof(file_foot, hash));
}

tp_status tp_cache_writer_close(tp_cache_writer *w, const tp_cache_counts *counts, tp_error *err)
{
    file_foot foot = {.counts = *counts, .offsets_at = w->offsets[w->n]};
    size_t offsets_bytes = (w->n + 1) * sizeof *w->offsets;
    foot.counts.n_examples = w->n;
    foot.offsets_hash = XXH3_64bits(w->offsets, offsets_bytes);
    foot.hash = foot_hash(&foot);
    memcpy(foot.magic, magic, sizeof magic);
    tp_status status = tp_writer_write(w->file, w->offsets, offsets_bytes, err);
    if (status == TP_OK)
        status = tp_writer_write(w->file, &foot, sizeof foot, err);
    if (status == TP_OK) {
        status = tp_writer_close(w->file, NULL, err);
        w->file = NULL; /* freed whatever happened */
    }
    tp_cache_writer_abandon(w);
    return status;
}

static tp_status check_head(const char *name, const file_head *head, const char *key, tp_error *err)
{
    if (memcmp(head->magic, magic, sizeof magic) != 0)
        return tp_fail(err, TP_ERR_FORMAT, "%s is not a token cache", name);
    if (head->version != TP_CACHE_VERSION)
        return tp_fail(err, TP_ERR_FORMAT, "%s is a token cache of version %u, this is version %d",
                       name, head->version, TP_CACHE_VERSION);
    if (head->token_bytes != 2 && head->token_bytes != 4)
        return tp_fail(err, TP_ERR_FORMAT, "%s is damaged: tokens of %u bytes", name,
                       head->token_bytes);
    if (key && memcmp(head->key, key, KEY_BYTES) != 0)
        return tp_fail(err, TP_ERR_FORMAT, "%s holds other data than its name says", name);
    return TP_OK;
}

/* The foot is sound and the offsets lie where it says and rise within the records. */
static tp_status check_foot(const tp_cache *cache, const file_foot *foot, tp_error *err)
{
    const char *name = cache->name;
    if (memcmp(foot->magic, magic, sizeof magic) != 0)
        return tp_fail(err, TP_ERR_FORMAT, "%s is cut short: its last bytes are missing", name);
    if (foot->hash != foot_hash(foot))
        return tp_fail(err, TP_ERR_FORMAT, "%s is damaged: its foot fails its checksum", name);
    uint64_t n = foot->counts.n_examples, bytes, end;
    if (__builtin_mul_overflow(n, 8u, &bytes) || __builtin_add_overflow(bytes, 8u, &bytes) ||
        __builtin_add_overflow(foot->offsets_at, bytes, &end) ||
        end != cache->size - sizeof *foot || foot->offsets_at < sizeof(file_head) ||
        foot->offsets_at % 8 != 0)
        return tp_fail(err, TP_ERR_FORMAT, "%s is damaged: its sizes do not fit its length", name);
    const uint64_t *offsets = (const uint64_t *)(const void *)(cache->data + foot->offsets_at);
    if (foot->offsets_hash != XXH3_64bits(offsets, bytes))
        return tp_fail(err, TP_ERR_FORMAT, "%s is damaged: its index fails its checksum", name);
    bool sound = offsets[0] == sizeof(file_head) && offsets[n] == foot->offsets_at;
    for (uint64_t i = 0; i < n && sound; i++)
        sound = offsets[i] % 8 == 0 && offsets[i + 1] >= offsets[i] + RECORD_HEAD &&
                offsets[i + 1] <= foot->offsets_at;
    if (!sound)
        return tp_fail(err, TP_ERR_FORMAT, "%s is damaged: its index does not rise", name);
    return TP_OK;
}

tp_status tp_cache_open_memory(const char *name, const void *data, size_t n, const char *key,
                               tp_cache *ret, tp_error *err)
{
    file_head head;
    file_foot foot;
    if (n < sizeof head + sizeof foot)
        return tp_fail(err, TP_ERR_FORMAT, "%s is cut short: %zu bytes are no token cache", name,
                       n);
    tp_cache cache = {.name = name, .data = data, .size = n};
    memcpy(&head, cache.data, sizeof head);
    TP_TRY(check_head(name, &head, key, err));
    if (n % 8 != 0)
        return tp_fail(err, TP_ERR_FORMAT, "%s is cut short: its length is odd", name);
    memcpy(&foot, cache.data + n - sizeof foot, sizeof foot);
    TP_TRY(check_foot(&cache, &foot, err));
    cache.wide = head.token_bytes == 4;
    cache.counts = foot.counts;
    cache.offsets = (const uint64_t *)(const void *)(cache.data + foot.offsets_at);
    cache.name = strdup(name);
    if (!cache.name)
        return tp_fail(err, TP_ERR_NOMEM, "cannot open %s: out of memory", name);
    *ret = cache;
    return TP_OK;
}

tp_status tp_cache_open(const char *path, const char *key, tp_cache *ret, tp_error *err)
{
    tp_map_file map;
    TP_TRY(tp_map_open(&map, path, err));
    tp_status status = tp_cache_open_memory(path, map.data, map.len, key, ret, err);
    if (status == TP_OK)
        ret->map = map;
    else
        tp_map_close(&map);
    return status;
}

void tp_cache_close(tp_cache *cache)
{
    free((void *)(uintptr_t)cache->name);
    tp_map_close(&cache->map);
    *cache = (tp_cache){0};
}

static tp_status damaged(const tp_cache *cache, uint64_t i, tp_error *err)
{
    return tp_fail(err, TP_ERR_FORMAT,
                   "%s is damaged: example %llu fails its check; delete the file, it will be made "
                   "again",
                   cache->name, (unsigned long long)i);
}

static tp_status peek(const tp_cache *cache, uint64_t i, record_head *head, tp_sample *ret,
                      tp_error *err)
{
    TP_ASSERT(i < cache->counts.n_examples);
    const char *record = cache->data + cache->offsets[i];
    uint64_t size = cache->offsets[i + 1] - cache->offsets[i];
    memcpy(head, record, sizeof *head);
    if (head->n_tokens == 0 || head->n_tokens >= INT32_MAX || head->n_targets > head->n_tokens ||
        RECORD_HEAD + round_up_8(body_bytes(head->n_tokens, cache->wide)) != size)
        return damaged(cache, i, err);
    const char *tokens = record + RECORD_HEAD;
    *ret = (tp_sample){.tokens = tokens,
                       .bits =
                           (const uint8_t *)tokens + (size_t)head->n_tokens * (cache->wide ? 4 : 2),
                       .n_tokens = head->n_tokens,
                       .n_targets = head->n_targets,
                       .line = head->line};
    return TP_OK;
}

tp_status tp_cache_peek(const tp_cache *cache, uint64_t i, tp_sample *ret, tp_error *err)
{
    record_head head;
    return peek(cache, i, &head, ret, err);
}

tp_status tp_cache_get(const tp_cache *cache, uint64_t i, tp_sample *ret, tp_error *err)
{
    record_head head;
    tp_sample sample;
    TP_TRY(peek(cache, i, &head, &sample, err));
    if (head.check != body_check(&head, sample.tokens, cache->wide))
        return damaged(cache, i, err);
    *ret = sample;
    return TP_OK;
}

void tp_sample_tokens(const tp_cache *cache, const tp_sample *s, int32_t *out, size_t n)
{
    TP_ASSERT(n <= s->n_tokens);
    if (cache->wide) {
        memcpy(out, s->tokens, 4 * n);
        return;
    }
    const uint16_t *narrow = s->tokens; /* records are 8-byte aligned, so this is */
    for (size_t k = 0; k < n; k++)
        out[k] = narrow[k];
}
