/* gguf.c - a file read: one walk over it that believes no number. */
#include "text/gguf/gguf_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/order.h"
#include "base/platform.h"

enum {
    MAX_KEY = 65535, /* bytes */
    MAX_RANK = 4,
    MAX_ALIGNMENT = 1 << 20,
    MAX_KEYS = 1 << 16, /* far above what any model has: what they take stays small */
    MAX_TENSORS = 1 << 18
};

/* Where the walk is. */
typedef struct {
    tp_gguf *g;
    size_t at;
    tp_error *err;
} walk;

static const char *const damaged = "the file is cut off or damaged: fetch or export it again";

static tp_status fault(const walk *w, size_t at, const char *what)
{
    return tp_fail(w->err, TP_ERR_FORMAT, "%s: byte %zu: %s; %s", w->g->name, at, what, damaged);
}

static size_t left(const walk *w) { return w->g->len - w->at; }

static tp_status take(walk *w, void *to, size_t n, const char *what)
{
    if (left(w) < n)
        return tp_fail(w->err, TP_ERR_FORMAT, "%s: byte %zu: the file ends before %s; %s",
                       w->g->name, w->at, what, damaged);
    memcpy(to, w->g->data + w->at, n);
    w->at += n;
    return TP_OK;
}

static tp_status take_string(walk *w, size_t most, const char *what, tp_slice *ret)
{
    uint64_t n = 0;
    size_t at = w->at;
    TP_TRY(take(w, &n, sizeof n, what));
    if (n > left(w))
        return tp_fail(w->err, TP_ERR_FORMAT,
                       "%s: byte %zu: %s of %llu bytes, of which the file has %zu; %s", w->g->name,
                       at, what, (unsigned long long)n, left(w), damaged);
    if (n > most)
        return tp_fail(w->err, TP_ERR_FORMAT, "%s: byte %zu: %s of %llu bytes; %zu are allowed",
                       w->g->name, at, what, (unsigned long long)n, most);
    *ret = (tp_slice){w->g->data + w->at, (size_t)n};
    w->at += (size_t)n;
    return TP_OK;
}

/* Bytes of a value; 0: a string, an array, or nothing known. */
static size_t size_of(uint32_t type)
{
    static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return type < TP_COUNTOF(sizes) ? sizes[type] : 0;
}

static tp_status skip_items(walk *w, const tp_gguf_value *v, uint32_t type)
{
    size_t size = size_of(type);
    if (type == TP_GGUF_STRING) {
        tp_slice s;
        for (uint64_t i = 0; i < v->n; i++)
            TP_TRY(take_string(w, SIZE_MAX, "a string", &s));
        return TP_OK;
    }
    if (!size)
        return tp_fail(
            w->err, TP_ERR_FORMAT, "%s: byte %zu: '%.*s' has values of type %u, which is %s",
            w->g->name, v->at, (int)TP_MIN(v->key.len, 100), v->key.data, type,
            type == TP_GGUF_ARRAY ? "an array of arrays: that is not supported" : "none of GGUF's");
    if (v->n > left(w) / size)
        return tp_fail(w->err, TP_ERR_FORMAT,
                       "%s: byte %zu: '%.*s' has %llu values, of which the file has %zu; %s",
                       w->g->name, v->at, (int)TP_MIN(v->key.len, 100), v->key.data,
                       (unsigned long long)v->n, left(w) / size, damaged);
    w->at += (size_t)v->n * size;
    return TP_OK;
}

static tp_status read_key(walk *w, tp_gguf_value *v)
{
    v->at = w->at;
    v->n = 1;
    TP_TRY(take_string(w, MAX_KEY, "a key", &v->key));
    if (!tp_utf8_valid(v->key.data, v->key.len) || memchr(v->key.data, 0, v->key.len))
        return fault(w, v->at, "a key that is no UTF-8 text");
    TP_TRY(take(w, &v->type, sizeof v->type, "the type of a value"));
    v->item = v->type;
    if (v->type == TP_GGUF_ARRAY) {
        TP_TRY(take(w, &v->item, sizeof v->item, "the type of an array"));
        TP_TRY(take(w, &v->n, sizeof v->n, "the length of an array"));
    }
    v->data = w->g->data + w->at;
    if (v->item == TP_GGUF_STRING && v->n > left(w) / sizeof(uint64_t))
        return fault(w, v->at, "an array of more strings than the file has room for");
    return skip_items(w, v, v->item);
}

/* ---- tensors ---- */

static tp_status fail_tensor(const walk *w, const tp_gguf_tensor *t, const char *what)
{
    return tp_fail(w->err, TP_ERR_FORMAT, "%s: byte %zu: tensor '%.100s' %s; %s", w->g->name, t->at,
                   t->name, what, damaged);
}

static tp_status measure(const walk *w, tp_gguf_tensor *t)
{
    const tp_ggml_info *info = tp_ggml_info_of(t->type);
    size_t n = 1, bytes;
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] < 1 || __builtin_mul_overflow(n, (size_t)t->dim[i], &n) || n > INT64_MAX)
            return fail_tensor(w, t, "has a shape that is not possible");
    if (!info)
        return TP_OK;
    if (t->dim[0] % info->block != 0)
        return tp_fail(w->err, TP_ERR_FORMAT,
                       "%s: byte %zu: tensor '%.100s' has rows of %lld elements; blocks of %s hold "
                       "%u",
                       w->g->name, t->at, t->name, (long long)t->dim[0], info->name, info->block);
    if (__builtin_mul_overflow(n / info->block, (size_t)info->bytes, &bytes))
        return fail_tensor(w, t, "has a shape that is not possible");
    t->bytes = bytes;
    return TP_OK;
}

static tp_status read_tensor(walk *w, tp_gguf_tensor *t, uint64_t *ret_offset)
{
    tp_slice name;
    uint32_t rank = 0;
    t->at = w->at;
    TP_TRY(take_string(w, MAX_KEY, "the name of a tensor", &name));
    if (!name.len || !tp_utf8_valid(name.data, name.len) || memchr(name.data, 0, name.len))
        return fault(w, t->at, "the name of a tensor is no UTF-8 text");
    t->name = tp_arena_strndup(&w->g->names, name.data, name.len);
    TP_TRY(take(w, &rank, sizeof rank, "the shape of a tensor"));
    if (rank < 1 || rank > MAX_RANK)
        return fail_tensor(w, t, "has not 1 to 4 dimensions");
    t->rank = (int)rank;
    for (int i = 0; i < MAX_RANK; i++)
        t->dim[i] = 1;
    TP_TRY(take(w, t->dim, rank * sizeof *t->dim, "the shape of a tensor"));
    TP_TRY(take(w, &t->type, sizeof t->type, "the type of a tensor"));
    TP_TRY(take(w, ret_offset, sizeof *ret_offset, "the place of a tensor"));
    return measure(w, t);
}

/* Tensors have their offset in `data` until the beginning of the data is known. */
static tp_status place(const walk *w, tp_gguf_tensor *t, uint64_t offset, size_t data_at,
                       size_t alignment)
{
    size_t room = w->g->len > data_at ? w->g->len - data_at : 0;
    if (offset % alignment != 0)
        return fail_tensor(w, t, "does not begin at a multiple of general.alignment");
    if (offset > room || t->bytes > room - offset)
        return tp_fail(w->err, TP_ERR_FORMAT,
                       "%s: byte %zu: tensor '%.100s' takes bytes %llu to %llu of the data, which "
                       "has %zu; %s",
                       w->g->name, t->at, t->name, (unsigned long long)offset,
                       (unsigned long long)offset + t->bytes, room, damaged);
    t->data = w->g->data + data_at + offset;
    return TP_OK;
}

TP_ORDER(by_place, tp_gguf_tensor *const,
         TP_COMPARE((uintptr_t)(*x)->data, (uintptr_t)(*y)->data) ?: TP_COMPARE((*x)->at, (*y)->at))

/* What lies between two, and tensors of unknown types, have any size. */
static tp_status check_apart(const walk *w)
{
    tp_gguf *g = w->g;
    const tp_gguf_tensor **all = g->tensors_sorted, *last = NULL;
    qsort(all, g->n_tensors, sizeof *all, by_place);
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        if (last && all[i]->data < last->data + last->bytes)
            return tp_fail(w->err, TP_ERR_FORMAT,
                           "%s: byte %zu: tensor '%.100s' begins within the data of '%.100s'; %s",
                           g->name, all[i]->at, all[i]->name, last->name, damaged);
        last = all[i];
    }
    return TP_OK;
}

static tp_status read_tensors(walk *w, size_t alignment)
{
    tp_gguf *g = w->g;
    TP_FREED uint64_t *offsets = tp_new(g->n_tensors, sizeof *offsets);
    /* A name and its NUL take less than its description. */
    TP_TRY(tp_arena_init(&g->names, left(w) + 1, w->err));
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        g->tensors_sorted[i] = &g->tensors[i];
        TP_TRY(read_tensor(w, &g->tensors[i], &offsets[i]));
    }
    size_t data_at = (w->at + alignment - 1) / alignment * alignment;
    for (uint64_t i = 0; i < g->n_tensors; i++)
        TP_TRY(place(w, &g->tensors[i], offsets[i], data_at, alignment));
    return check_apart(w);
}

/* ---- the whole ---- */

/* Of two that are alike the later one is complained about, whatever the sort does with them. */
TP_ORDER(by_key_and_place, tp_gguf_value *const,
         tp_gguf_by_key(x, y) ?: TP_COMPARE((*x)->at, (*y)->at))

TP_ORDER(by_name_and_place, tp_gguf_tensor *const,
         tp_gguf_by_name(x, y) ?: TP_COMPARE((*x)->at, (*y)->at))

static tp_status read_start(walk *w)
{
    enum { LEAST_KEY = 8 + 4 + 1, LEAST_TENSOR = 8 + 1 + 4 + 8 + 4 + 8 };
    tp_gguf *g = w->g;
    char magic[4];
    uint32_t version = 0;
    TP_TRY(take(w, magic, sizeof magic, "its first four bytes"));
    if (memcmp(magic, "GGUF", 4) != 0)
        return tp_fail(w->err, TP_ERR_FORMAT, "%s is no GGUF file: it does not begin with \"GGUF\"",
                       g->name);
    TP_TRY(take(w, &version, sizeof version, "its version"));
    if (version == 0x02000000 || version == 0x03000000)
        return tp_fail(w->err, TP_ERR_UNSUPPORTED,
                       "%s: byte 4: a big-endian file; convert it to little-endian with gguf's "
                       "gguf-convert-endian",
                       g->name);
    if (version != 2 && version != 3)
        return tp_fail(w->err, TP_ERR_UNSUPPORTED,
                       "%s: byte 4: GGUF version %u is not supported; 2 and 3 are", g->name,
                       version);
    TP_TRY(take(w, &g->n_tensors, sizeof g->n_tensors, "the number of tensors"));
    TP_TRY(take(w, &g->n_keys, sizeof g->n_keys, "the number of keys"));
    if (g->n_tensors > TP_MIN(left(w) / LEAST_TENSOR, MAX_TENSORS))
        return fault(w, 8, "more tensors than the file has room for, or any model has");
    if (g->n_keys > TP_MIN(left(w) / LEAST_KEY, MAX_KEYS))
        return fault(w, 16, "more keys than the file has room for, or any model has");
    return TP_OK;
}

static tp_status sort_keys(walk *w)
{
    tp_gguf *g = w->g;
    for (uint64_t i = 0; i < g->n_keys; i++)
        g->keys_sorted[i] = &g->keys[i];
    qsort(g->keys_sorted, g->n_keys, sizeof *g->keys_sorted, by_key_and_place);
    for (uint64_t i = 1; i < g->n_keys; i++)
        if (tp_slice_eq(g->keys_sorted[i - 1]->key, g->keys_sorted[i]->key))
            return tp_gguf_fail(g, g->keys_sorted[i], TP_ERR_FORMAT, w->err, "is there twice; %s",
                                damaged);
    return TP_OK;
}

static tp_status sort_tensors(walk *w)
{
    tp_gguf *g = w->g;
    qsort(g->tensors_sorted, g->n_tensors, sizeof *g->tensors_sorted, by_name_and_place);
    for (uint64_t i = 1; i < g->n_tensors; i++)
        if (strcmp(g->tensors_sorted[i - 1]->name, g->tensors_sorted[i]->name) == 0)
            return fail_tensor(w, g->tensors_sorted[i], "is there twice");
    return TP_OK;
}

static tp_status read_all(walk *w)
{
    tp_gguf *g = w->g;
    int64_t alignment = TP_GGUF_ALIGNMENT;
    TP_TRY(read_start(w));
    g->keys = tp_new(g->n_keys, sizeof *g->keys);
    g->keys_sorted = tp_new(g->n_keys, sizeof *g->keys_sorted);
    g->tensors = tp_new(g->n_tensors, sizeof *g->tensors);
    g->tensors_sorted = tp_new(g->n_tensors, sizeof *g->tensors_sorted);
    for (uint64_t i = 0; i < g->n_keys; i++)
        TP_TRY(read_key(w, &g->keys[i]));
    TP_TRY(sort_keys(w));
    TP_TRY(tp_gguf_get_int(g, "general.alignment", 8, MAX_ALIGNMENT, &alignment, w->err));
    if (alignment % 8 != 0)
        return tp_gguf_fail(g, tp_gguf_find(g, "general.alignment"), TP_ERR_FORMAT, w->err,
                            "is %lld; expected a multiple of 8", (long long)alignment);
    TP_TRY(read_tensors(w, (size_t)alignment));
    return sort_tensors(w);
}

tp_status tp_gguf_parse(const char *name, const void *data, size_t n, tp_gguf **ret, tp_error *err)
{
    tp_gguf *g = tp_new(1, sizeof *g);
    g->name = tp_strdup(name);
    g->data = data;
    g->len = n;
    walk w = {.g = g, .err = err};
    TP_HAND_OVER(read_all(&w), ret, g, tp_gguf_close(g));
}

tp_status tp_gguf_open(const char *path, tp_gguf **ret, tp_error *err)
{
    tp_map_file map;
    TP_TRY(tp_map_open(&map, path, err));
    tp_status status = tp_gguf_parse(path, map.data, map.len, ret, err);
    if (status == TP_OK)
        (*ret)->map = map;
    else
        tp_map_close(&map);
    return status;
}

void tp_gguf_close(tp_gguf *g)
{
    if (!g)
        return;
    tp_map_close(&g->map);
    free(g->keys);
    free(g->keys_sorted);
    free(g->tensors);
    free(g->tensors_sorted);
    tp_arena_release(&g->names);
    free(g->name);
    free(g);
}

bool tp_gguf_is_file(const char *path)
{
    char magic[4];
    int fd;
    int64_t size;
    tp_error ignored = {0};
    if (!tp_file_exists(path))
        return false;
    if (tp_str_ends(path, ".gguf"))
        return true;
    if (tp_input_open(path, TP_INPUT_FILE, &fd, &size, &ignored) != TP_OK)
        return false;
    bool is_one = read(fd, magic, sizeof magic) == sizeof magic && memcmp(magic, "GGUF", 4) == 0;
    close(fd);
    return is_one;
}
