/* json.c - JSON trees in an arena, made from the pull parser's tokens; look-ups with types. */
#include "text/json/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/files.h"

/* A document is built from the tokens of the reader; the stack of open brackets
 * is an array, so input depth never becomes call depth. */
typedef struct {
    tp_arena *arena;
    tp_json_reader reader;
    struct {
        tp_json *node, *last_child;
    } stack[TP_JSON_MAX_DEPTH];
    int depth;
    tp_slice key; /* waits for its value */
} builder;

/* Input decides how much is needed here, so a full arena is an error and not the
 * end of the program. */
static tp_status take(builder *b, size_t size, size_t align, void **ret, tp_error *err)
{
    void *memory = tp_arena_try_alloc(b->arena, 1, size, align);
    if (!memory)
        return tp_fail(err, TP_ERR_NOMEM,
                       "%s:%llu: needs more than the %zu bytes reserved for its contents; the file "
                       "is larger than any sensible one of its kind",
                       b->reader.name, (unsigned long long)b->reader.line, b->arena->reserved);
    *ret = memory;
    return TP_OK;
}

static tp_status copy_text(builder *b, const tp_json_token *token, tp_slice *ret, tp_error *err)
{
    void *memory = NULL;
    TP_TRY(take(b, token->text.len + 1, 1, &memory, err));
    char *copy = memory;
    size_t n = token->text.len;
    if (token->has_escapes)
        n = tp_json_unescape(token->text, copy);
    else if (n)
        memcpy(copy, token->text.data, n);
    copy[n] = 0;
    *ret = (tp_slice){copy, n};
    return TP_OK;
}

static const tp_json *duplicate_among_few(const tp_json *object)
{
    for (const tp_json *a = object->child; a; a = a->next) {
        for (const tp_json *b = object->child; b != a; b = b->next) {
            if (tp_slice_eq(a->key, b->key))
                return a;
        }
    }
    return NULL;
}

/* Open addressing over the members; the seed is an address, so that no input can
 * be prepared to collide. */
static const tp_json *duplicate_among_many(const tp_json *object)
{
    size_t n_slots = 64;
    while (n_slots < object->n * 2)
        n_slots *= 2;
    const tp_json **slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return duplicate_among_few(object);
    uint64_t seed = (uint64_t)(uintptr_t)slots;
    const tp_json *found = NULL;
    for (const tp_json *v = object->child; v && !found; v = v->next) {
        size_t i = XXH3_64bits_withSeed(v->key.data, v->key.len, seed) & (n_slots - 1);
        while (slots[i] && !tp_slice_eq(slots[i]->key, v->key))
            i = (i + 1) & (n_slots - 1);
        if (slots[i])
            found = v;
        slots[i] = v;
    }
    free(slots);
    return found;
}

const tp_json *tp_json_duplicate(const tp_json *object)
{
    enum { FEW = 12 };
    if (!object || object->type != TP_JSON_OBJECT)
        return NULL;
    return object->n <= FEW ? duplicate_among_few(object) : duplicate_among_many(object);
}

static tp_status check_duplicates(const builder *b, const tp_json *object, tp_error *err)
{
    if (b->reader.options.allow_duplicate)
        return TP_OK;
    const tp_json *again = tp_json_duplicate(object);
    if (!again)
        return TP_OK;
    return tp_fail(err, TP_ERR_FORMAT,
                   "%s:%u: key \"%.200s\" appears twice in one object; remove one", b->reader.name,
                   again->line, again->key.data);
}

static tp_status add_node(builder *b, const tp_json_token *token, tp_json_type type, tp_json **ret,
                          tp_error *err)
{
    void *memory = NULL;
    TP_TRY(take(b, sizeof(tp_json), _Alignof(tp_json), &memory, err));
    tp_json *node = memory;
    node->type = type;
    node->line = (uint32_t)token->line;
    if (type == TP_JSON_STRING || type == TP_JSON_NUMBER)
        TP_TRY(copy_text(b, token, &node->text, err));
    if (b->depth) {
        tp_json *parent = b->stack[b->depth - 1].node, *last = b->stack[b->depth - 1].last_child;
        *(last ? &last->next : &parent->child) = node;
        b->stack[b->depth - 1].last_child = node;
        parent->n++;
        if (parent->type == TP_JSON_OBJECT)
            node->key = b->key;
    }
    *ret = node;
    return TP_OK;
}

static tp_status build(builder *b, const tp_json **ret, tp_error *err)
{
    static const tp_json_type types[] = {[TP_JSON_TOKEN_BEGIN_OBJECT] = TP_JSON_OBJECT,
                                         [TP_JSON_TOKEN_BEGIN_ARRAY] = TP_JSON_ARRAY,
                                         [TP_JSON_TOKEN_STRING] = TP_JSON_STRING,
                                         [TP_JSON_TOKEN_NUMBER] = TP_JSON_NUMBER,
                                         [TP_JSON_TOKEN_TRUE] = TP_JSON_TRUE,
                                         [TP_JSON_TOKEN_FALSE] = TP_JSON_FALSE,
                                         [TP_JSON_TOKEN_NULL] = TP_JSON_NULL};
    tp_json *root = NULL;
    for (;;) {
        tp_json_token token;
        TP_TRY(tp_json_reader_next(&b->reader, &token, err));
        switch (token.type) {
        case TP_JSON_TOKEN_END:
            *ret = root;
            return TP_OK;
        case TP_JSON_TOKEN_KEY:
            TP_TRY(copy_text(b, &token, &b->key, err));
            break;
        case TP_JSON_TOKEN_END_OBJECT:
            TP_TRY(check_duplicates(b, b->stack[b->depth - 1].node, err));
            b->depth--;
            break;
        case TP_JSON_TOKEN_END_ARRAY:
            b->depth--;
            break;
        default: {
            tp_json *node;
            TP_TRY(add_node(b, &token, types[token.type], &node, err));
            root = root ? root : node;
            if (node->type == TP_JSON_OBJECT || node->type == TP_JSON_ARRAY) {
                b->stack[b->depth].node = node;
                b->stack[b->depth++].last_child = NULL;
            }
        }
        }
    }
}

tp_status tp_json_parse(tp_arena *arena, const char *name, const char *text, size_t n,
                        const tp_json_options *options, const tp_json **ret, tp_error *err)
{
    builder b = {.arena = arena};
    tp_json_reader_init(&b.reader, name, text, n, options);
    b.reader.options.allow_many = false;
    size_t max = b.reader.options.max_bytes;
    if (max && n > max)
        return tp_fail(err, TP_ERR_FORMAT,
                       "%s: %zu bytes is more than the %zu allowed for this file", name, n, max);
    size_t mark = tp_arena_mark(arena);
    tp_status status = build(&b, ret, err);
    if (status != TP_OK)
        tp_arena_rewind(arena, mark);
    return status;
}

tp_status tp_json_read(tp_arena *arena, const char *path, size_t max_bytes,
                       const tp_json_options *options, const tp_json **ret, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    TP_TRY(tp_file_read(path, max_bytes, &text, err));
    if (!arena->reserved)
        TP_TRY(tp_arena_init(arena, 64 * text.len + 4096, err));
    return tp_json_parse(arena, path, tp_buf_str(&text), text.len, options, ret, err);
}

const tp_json *tp_json_find(const tp_json *object, tp_slice key)
{
    if (!object || object->type != TP_JSON_OBJECT)
        return NULL;
    const tp_json *found = NULL;
    for (const tp_json *v = object->child; v; v = v->next) {
        if (tp_slice_eq(v->key, key))
            found = v;
    }
    return found;
}

const tp_json *tp_json_get(const tp_json *object, const char *key)
{
    return tp_json_find(object, tp_slice_of(key));
}

const tp_json *tp_json_at(const tp_json *array, size_t index)
{
    if (!array || array->type != TP_JSON_ARRAY || index >= array->n)
        return NULL;
    const tp_json *v = array->child;
    while (index--)
        v = v->next;
    return v;
}

bool tp_json_f64(const tp_json *v, double *ret)
{
    return v && v->type == TP_JSON_NUMBER && tp_str_to_f64(v->text.data, ret);
}

bool tp_json_i64(const tp_json *v, int64_t *ret)
{
    if (!v || v->type != TP_JSON_NUMBER)
        return false;
    if (tp_str_to_i64(v->text.data, ret))
        return true;
    /* 1e3 and 2.0 are integers too, as far as a double holds them exactly. */
    double d;
    if (!strpbrk(v->text.data, ".eE") || !tp_str_to_f64(v->text.data, &d))
        return false;
    if (!(fabs(d) <= 0x1p53) || d != floor(d))
        return false;
    *ret = (int64_t)d;
    return true;
}

bool tp_json_bool(const tp_json *v, bool *ret)
{
    if (!v || (v->type != TP_JSON_TRUE && v->type != TP_JSON_FALSE))
        return false;
    *ret = v->type == TP_JSON_TRUE;
    return true;
}

const char *tp_json_str(const tp_json *v)
{
    return v && v->type == TP_JSON_STRING ? v->text.data : NULL;
}

const char *tp_json_word(const tp_json *v)
{
    static const char *const words[] = {
        [TP_JSON_NULL] = "null", [TP_JSON_FALSE] = "false", [TP_JSON_TRUE] = "true"};
    if (!v || v->type == TP_JSON_ARRAY || v->type == TP_JSON_OBJECT)
        return NULL;
    return v->type == TP_JSON_STRING || v->type == TP_JSON_NUMBER ? v->text.data : words[v->type];
}
