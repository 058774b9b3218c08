/* The header is read by the pull parser, once; everything that it claims is then
 * checked against the length of the file.  The largest possible number of entries
 * follows from the header's length, so tables are reserved once and the work is
 * linear in the header but for one sort. */
#include "engine/model/safetensors.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/arena.h"
#include "base/order.h"
#include "base/platform.h"
#include "text/json/json.h"

enum {
    MAX_HEADER = 100 * 1000 * 1000, /* the limit of the reference implementation */
    /* "":{"dtype":"","shape":[],"data_offsets":[0,0]} is 46 bytes */
    MIN_ENTRY_TEXT = 40,
    /* Arena bytes per header byte: entries are below 3, metadata below 6, names and
     * the index below 2. */
    ARENA_FACTOR = 12,
    ARENA_BASE = 64 << 10
};

typedef struct metadata metadata; /* read to be checked; nobody asks for a value */
struct metadata {
    const char *key;
    const metadata *next;
};

struct tp_safetensors {
    const char *name;  /* what errors call the file */
    const char *bytes; /* its first */
    tp_map_file map;   /* empty when parsed from memory */
    tp_arena arena;
    tp_tensor_entry *entries; /* in the order of their data */
    size_t n;
    uint32_t *slots; /* open addressing by name: index + 1 */
    size_t n_slots;
};

typedef struct {
    tp_safetensors *st;
    const char *data; /* first byte after the header */
    size_t data_bytes;
    tp_json_reader reader;
    tp_json_token token;
    size_t cap;
    const metadata *metadata;
    size_t n_metadata;
    bool has_metadata;
    tp_error *err;
} header;

typedef struct {
    const char *name;
    uint8_t bits;
    bool is_known;
    tp_dtype dtype;
} dtype_row;

/* All that the reference implementation knows. */
static const dtype_row dtypes[] = {
    {"F32", 32, true, TP_DTYPE_F32},
    {"BF16", 16, true, TP_DTYPE_BF16},
    {"F16", 16, true, TP_DTYPE_F16},
    {"F64", 64, true, TP_DTYPE_F64},
    {"I32", 32, true, TP_DTYPE_I32},
    {"I64", 64, true, TP_DTYPE_I64},
    {"U8", 8, true, TP_DTYPE_U8},
    {"BOOL", 8, false, 0},
    {"I8", 8, false, 0},
    {"I16", 16, false, 0},
    {"U16", 16, false, 0},
    {"U32", 32, false, 0},
    {"U64", 64, false, 0},
    {"F8_E5M2", 8, false, 0},
    {"F8_E4M3", 8, false, 0},
    {"F8_E8M0", 8, false, 0},
    {"C64", 64, false, 0},
    {"F8_E4M3FNUZ", 8, false, 0},
    {"F8_E5M2FNUZ", 8, false, 0},
    {"F6_E2M3", 6, false, 0},
    {"F6_E3M2", 6, false, 0},
    {"F4", 4, false, 0},
};

const char *tp_safetensors_dtype_name(tp_dtype dtype)
{
    for (size_t i = 0; i < TP_COUNTOF(dtypes); i++)
        if (dtypes[i].is_known && dtypes[i].dtype == dtype)
            return dtypes[i].name;
    return NULL;
}

static const dtype_row *find_dtype(const char *name)
{
    for (size_t i = 0; i < TP_COUNTOF(dtypes); i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return &dtypes[i];
    return NULL;
}

static tp_status next(header *h) { return tp_json_reader_next(&h->reader, &h->token, h->err); }

static tp_status need(header *h, tp_json_token_type type, const char *what, const char *tensor)
{
    TP_TRY(next(h));
    if (h->token.type == type)
        return TP_OK;
    return tp_json_reader_fail(&h->reader, &h->token, h->err, "tensor '%.200s': %s", tensor, what);
}

/* The text of a key or string token, as a C string; one with a NUL inside would be
 * mistaken for another. */
static tp_status take_text(header *h, const char **ret)
{
    tp_slice raw = h->token.text;
    char *text;
    size_t n = raw.len;
    if (h->token.has_escapes) {
        text = tp_arena_array(&h->st->arena, char, raw.len + 1);
        n = tp_json_unescape(raw, text);
        text[n] = 0;
    } else {
        text = tp_arena_strndup(&h->st->arena, raw.data, raw.len);
    }
    if (memchr(text, 0, n))
        return tp_json_reader_fail(&h->reader, &h->token, h->err, "a name contains a NUL byte");
    *ret = text;
    return TP_OK;
}

/* Digits alone: no sign, no fraction, no exponent. */
static bool parse_size(tp_slice text, int64_t *ret)
{
    int64_t value = 0;
    if (text.len == 0)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned)(unsigned char)text.data[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (int64_t)digit, &value))
            return false;
    }
    *ret = value;
    return true;
}

/* The numbers of an array; at most `max` are wanted. */
static tp_status read_sizes(header *h, const char *tensor, const char *field, int max,
                            int64_t *values, int *ret_n)
{
    char what[64];
    snprintf(what, sizeof what, "\"%s\" must be an array of sizes", field);
    TP_TRY(need(h, TP_JSON_TOKEN_BEGIN_ARRAY, what, tensor));
    int n = 0;
    for (;;) {
        TP_TRY(next(h));
        if (h->token.type == TP_JSON_TOKEN_END_ARRAY)
            break;
        if (n == max)
            return tp_json_reader_fail(&h->reader, &h->token, h->err,
                                       "tensor '%.200s': \"%s\" has more than %d numbers", tensor,
                                       field, max);
        if (h->token.type != TP_JSON_TOKEN_NUMBER || !parse_size(h->token.text, &values[n]))
            return tp_json_reader_fail(
                &h->reader, &h->token, h->err,
                "tensor '%.200s': \"%s\" must hold integers from 0 to 2^63-1, not '%.*s'", tensor,
                field, (int)TP_MIN(h->token.text.len, 40), h->token.text.data);
        n++;
    }
    *ret_n = n;
    return TP_OK;
}

static tp_status check_entry(header *h, tp_tensor_entry *e, const int64_t offsets[2])
{
    const char *file = h->st->name;
    int64_t begin = offsets[0], end = offsets[1];
    if (begin > end)
        return tp_fail(h->err, TP_ERR_FORMAT,
                       "%s: tensor '%.200s' ends at %lld before it begins at %lld", file, e->name,
                       (long long)end, (long long)begin);
    if ((uint64_t)end > h->data_bytes)
        return tp_fail(h->err, TP_ERR_FORMAT,
                       "%s: tensor '%.200s' ends at byte %lld of %zu; the file is cut short or the "
                       "header is wrong",
                       file, e->name, (long long)end, h->data_bytes);
    e->bytes = (size_t)(end - begin);
    e->data = h->data + begin;
    const dtype_row *row = find_dtype(e->dtype_name);
    if (!row)
        return tp_fail(h->err, TP_ERR_FORMAT,
                       "%s: tensor '%.200s': \"%.40s\" is no dtype of safetensors; save the file "
                       "again with its library",
                       file, e->name, e->dtype_name);
    uint64_t bits = row->bits;
    for (int i = 0; i < e->rank; i++)
        if (__builtin_mul_overflow(bits, (uint64_t)e->dim[i], &bits))
            return tp_fail(h->err, TP_ERR_FORMAT,
                           "%s: tensor '%.200s': the product of its shape overflows 64 bits", file,
                           e->name);
    e->is_known = row->is_known;
    e->dtype = row->dtype;
    if (bits % 8 != 0)
        return tp_fail(h->err, TP_ERR_FORMAT,
                       "%s: tensor '%.200s': shape and dtype %s make no whole bytes", file, e->name,
                       row->name);
    if (bits / 8 != e->bytes)
        return tp_fail(h->err, TP_ERR_FORMAT,
                       "%s: tensor '%.200s': shape and dtype %s make %llu bytes, data_offsets "
                       "%zu",
                       file, e->name, row->name, (unsigned long long)bits / 8, e->bytes);
    return TP_OK;
}

static tp_status seen_twice(header *h, const char *tensor, bool *seen, const char *field)
{
    if (*seen)
        return tp_json_reader_fail(&h->reader, &h->token, h->err,
                                   "tensor '%.200s': \"%s\" appears twice", tensor, field);
    *seen = true;
    return TP_OK;
}

static tp_status skip_value(header *h)
{
    TP_TRY(next(h));
    bool is_nested =
        h->token.type == TP_JSON_TOKEN_BEGIN_OBJECT || h->token.type == TP_JSON_TOKEN_BEGIN_ARRAY;
    return is_nested ? tp_json_reader_skip(&h->reader, h->err) : TP_OK;
}

static tp_status read_entry(header *h, const char *name)
{
    tp_tensor_entry e = {.name = name};
    bool has_dtype = false, has_shape = false, has_offsets = false;
    int64_t offsets[2] = {0};
    TP_TRY(need(h, TP_JSON_TOKEN_BEGIN_OBJECT, "must be an object", name));
    for (;;) {
        TP_TRY(next(h));
        if (h->token.type == TP_JSON_TOKEN_END_OBJECT)
            break;
        if (tp_slice_is(h->token.text, "dtype")) {
            TP_TRY(seen_twice(h, name, &has_dtype, "dtype"));
            TP_TRY(need(h, TP_JSON_TOKEN_STRING, "\"dtype\" must be a string", name));
            TP_TRY(take_text(h, &e.dtype_name));
        } else if (tp_slice_is(h->token.text, "shape")) {
            TP_TRY(seen_twice(h, name, &has_shape, "shape"));
            TP_TRY(read_sizes(h, name, "shape", (int)TP_COUNTOF(e.dim), e.dim, &e.rank));
        } else if (tp_slice_is(h->token.text, "data_offsets")) {
            int n;
            TP_TRY(seen_twice(h, name, &has_offsets, "data_offsets"));
            TP_TRY(read_sizes(h, name, "data_offsets", 2, offsets, &n));
            if (n != 2)
                return tp_json_reader_fail(&h->reader, &h->token, h->err,
                                           "tensor '%.200s': \"data_offsets\" needs two numbers",
                                           name);
        } else { /* the reference implementation passes over what it does not know */
            TP_TRY(skip_value(h));
        }
    }
    if (!has_dtype || !has_shape || !has_offsets)
        return tp_json_reader_fail(&h->reader, &h->token, h->err,
                                   "tensor '%.200s': \"%s\" is missing", name,
                                   !has_dtype   ? "dtype"
                                   : !has_shape ? "shape"
                                                : "data_offsets");
    TP_TRY(check_entry(h, &e, offsets));
    TP_ASSERT(h->st->n < h->cap);
    h->st->entries[h->st->n++] = e;
    return TP_OK;
}

static tp_status read_metadata(header *h)
{
    if (h->has_metadata)
        return tp_json_reader_fail(&h->reader, &h->token, h->err, "\"__metadata__\" appears twice");
    h->has_metadata = true;
    TP_TRY(next(h));
    if (h->token.type == TP_JSON_TOKEN_NULL)
        return TP_OK;
    if (h->token.type != TP_JSON_TOKEN_BEGIN_OBJECT)
        return tp_json_reader_fail(&h->reader, &h->token, h->err,
                                   "\"__metadata__\" must be an object of strings");
    for (;;) {
        TP_TRY(next(h));
        if (h->token.type == TP_JSON_TOKEN_END_OBJECT)
            return TP_OK;
        metadata *m = tp_arena_new(&h->st->arena, metadata);
        TP_TRY(take_text(h, &m->key));
        TP_TRY(next(h));
        if (h->token.type != TP_JSON_TOKEN_STRING)
            return tp_json_reader_fail(&h->reader, &h->token, h->err,
                                       "\"__metadata__\": \"%.200s\" must be a string", m->key);
        m->next = h->metadata;
        h->metadata = m;
        h->n_metadata++;
    }
}

static tp_status read_header(header *h)
{
    TP_TRY(next(h));
    if (h->token.type != TP_JSON_TOKEN_BEGIN_OBJECT)
        return tp_json_reader_fail(&h->reader, &h->token, h->err, "the header must be an object");
    for (;;) {
        TP_TRY(next(h));
        if (h->token.type == TP_JSON_TOKEN_END_OBJECT)
            break;
        const char *name;
        TP_TRY(take_text(h, &name));
        TP_TRY(strcmp(name, "__metadata__") == 0 ? read_metadata(h) : read_entry(h, name));
    }
    return next(h); /* the end, or an error about what follows */
}

TP_ORDER(by_key, metadata *const, strcmp((*x)->key, (*y)->key))

static tp_status check_metadata(header *h)
{
    const metadata **all = tp_arena_array(&h->st->arena, const metadata *, h->n_metadata + 1);
    size_t n = 0;
    for (const metadata *m = h->metadata; m; m = m->next)
        all[n++] = m;
    qsort(all, n, sizeof *all, by_key);
    for (size_t i = 1; i < n; i++)
        if (strcmp(all[i - 1]->key, all[i]->key) == 0)
            return tp_fail(h->err, TP_ERR_FORMAT, "%s: \"__metadata__\": \"%.200s\" appears twice",
                           h->st->name, all[i]->key);
    return TP_OK;
}

TP_ORDER(by_offset, tp_tensor_entry,
         TP_COMPARE((uintptr_t)x->data, (uintptr_t)y->data) ?: TP_COMPARE(x->bytes, y->bytes))

/* The tensors cover the data exactly: each begins where the one before ends. */
static tp_status check_coverage(header *h)
{
    tp_safetensors *st = h->st;
    qsort(st->entries, st->n, sizeof *st->entries, by_offset);
    size_t at = 0;
    for (size_t i = 0; i < st->n; i++) {
        const tp_tensor_entry *e = &st->entries[i];
        size_t begin = (size_t)((const char *)e->data - h->data);
        if (begin > at)
            return tp_fail(h->err, TP_ERR_FORMAT,
                           "%s: bytes %zu to %zu of the data, before tensor '%.200s', belong to no "
                           "tensor",
                           st->name, at, begin, e->name);
        if (begin < at)
            return tp_fail(h->err, TP_ERR_FORMAT,
                           "%s: tensors '%.200s' and '%.200s' overlap at byte %zu of the data",
                           st->name, st->entries[i - 1].name, e->name, begin);
        at += e->bytes;
    }
    if (at != h->data_bytes)
        return tp_fail(h->err, TP_ERR_FORMAT,
                       "%s: the tensors end at byte %zu of the data, the file at byte %zu",
                       st->name, at, h->data_bytes);
    return TP_OK;
}

/* The slot that holds `name`, or the free one where it would go.  The seed is an
 * address, so that no file can be prepared to collide. */
static uint32_t *slot_of(const tp_safetensors *st, const char *name)
{
    uint64_t hash = XXH3_64bits_withSeed(name, strlen(name), (uint64_t)(uintptr_t)st->slots);
    size_t i = (size_t)hash & (st->n_slots - 1);
    while (st->slots[i] && strcmp(st->entries[st->slots[i] - 1].name, name) != 0)
        i = (i + 1) & (st->n_slots - 1);
    return &st->slots[i];
}

static tp_status index_names(header *h)
{
    tp_safetensors *st = h->st;
    st->n_slots = 8;
    while (st->n_slots < st->n * 2)
        st->n_slots *= 2;
    st->slots = tp_arena_array(&st->arena, uint32_t, st->n_slots);
    for (size_t i = 0; i < st->n; i++) {
        uint32_t *slot = slot_of(st, st->entries[i].name);
        if (*slot)
            return tp_fail(h->err, TP_ERR_FORMAT, "%s: tensor '%.200s' appears twice", st->name,
                           st->entries[i].name);
        *slot = (uint32_t)i + 1;
    }
    return TP_OK;
}

static tp_status header_length(const char *name, const char *bytes, size_t n, size_t *ret,
                               tp_error *err)
{
    if (n < 8)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s: %zu bytes are too few for a safetensors file; it is empty or cut short",
                       name, n);
    if (memcmp(bytes, "version ", 8) == 0)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s is a pointer of git LFS, not the file itself: 'git lfs pull' in its "
                       "folder fetches it",
                       name);
    uint64_t length = 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | (unsigned char)bytes[i];
    if (length > MAX_HEADER)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s: a header of %llu bytes is above the limit of %d; is this a safetensors "
                       "file?",
                       name, (unsigned long long)length, MAX_HEADER);
    if (length > n - 8)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s: the header of %llu bytes does not fit into the file of %zu; it is cut "
                       "short",
                       name, (unsigned long long)length, n);
    if (length < 2 || bytes[8] != '{')
        return tp_fail(err, TP_ERR_FORMAT, "%s: the header must begin with '{'", name);
    *ret = (size_t)length;
    return TP_OK;
}

static tp_status parse(tp_safetensors *st, const char *name, const char *bytes, size_t n,
                       tp_error *err)
{
    size_t length = 0;
    TP_TRY(header_length(name, bytes, n, &length, err));
    TP_TRY(tp_arena_init(&st->arena, length * ARENA_FACTOR + strlen(name) + ARENA_BASE, err));
    st->name = tp_arena_strdup(&st->arena, name);
    st->bytes = bytes;
    header h = {.st = st,
                .data = bytes + 8 + length,
                .data_bytes = n - 8 - length,
                .cap = length / MIN_ENTRY_TEXT + 1,
                .err = err};
    st->entries = tp_arena_array(&st->arena, tp_tensor_entry, h.cap);
    tp_json_reader_init(&h.reader, st->name, bytes + 8, length, NULL);
    TP_TRY(read_header(&h));
    TP_TRY(check_metadata(&h));
    TP_TRY(check_coverage(&h));
    return index_names(&h);
}

tp_status tp_safetensors_parse(const char *name, const void *data, size_t n, tp_safetensors **ret,
                               tp_error *err)
{
    tp_safetensors *st = tp_new(1, sizeof *st);
    TP_HAND_OVER(parse(st, name, data, n, err), ret, st, tp_safetensors_close(st));
}

tp_status tp_safetensors_open(const char *path, tp_safetensors **ret, tp_error *err)
{
    tp_map_file map;
    TP_TRY(tp_map_open(&map, path, err));
    tp_status status = tp_safetensors_parse(path, map.data, map.len, ret, err);
    if (status == TP_OK)
        (*ret)->map = map;
    else
        tp_map_close(&map);
    return status;
}

void tp_safetensors_close(tp_safetensors *st)
{
    if (!st)
        return;
    tp_map_close(&st->map);
    tp_arena_release(&st->arena);
    free(st);
}

const char *tp_safetensors_name(const tp_safetensors *st) { return st->name; }

size_t tp_safetensors_count(const tp_safetensors *st) { return st->n; }

const tp_tensor_entry *tp_safetensors_at(const tp_safetensors *st, size_t i)
{
    return i < st->n ? &st->entries[i] : NULL;
}

const tp_tensor_entry *tp_safetensors_find(const tp_safetensors *st, const char *name)
{
    uint32_t slot = *slot_of(st, name);
    return slot ? &st->entries[slot - 1] : NULL;
}

uint64_t tp_safetensors_offset(const tp_safetensors *st, const tp_tensor_entry *entry)
{
    return (uint64_t)((const char *)entry->data - st->bytes);
}
