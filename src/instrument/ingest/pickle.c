/* pickle.c - a pickle machine that knows data only, within bounds. */
#include "instrument/ingest/pickle.h"

#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "base/vec.h"

enum { NONE = 0, FALSE = 1, TRUE = 2, OPAQUE = 3 };

/* A mark on the stack: a type that no value has. */
static const tp_pickle_value mark = 7;

typedef struct {
    tp_pickle *out;
    const char *name;
    const unsigned char *begin, *at, *end;
    tp_pickle_value *stack, *memo;
    size_t n, stack_cap, n_memo, memo_cap;
    size_t item_bytes; /* of all objects */
    uint64_t most;
    tp_error *err;
} machine;

typedef enum { GO, STOP, SHORT, BROKEN, REFUSED } verdict;

static tp_pickle_value make(tp_pickle_type type, uint64_t payload)
{
    return payload << 3 | (uint64_t)type;
}

static void push(machine *m, tp_pickle_value v)
{
    m->stack = tp_vec_room(m->stack, &m->stack_cap, m->n + 1, sizeof *m->stack);
    m->stack[m->n++] = v;
}

static tp_pickle_value integer(tp_pickle *p, int64_t v)
{
    const int64_t limit = INT64_C(1) << 60;
    if (v >= -limit && v < limit)
        return make(TP_PICKLE_INT, (uint64_t)v & ((UINT64_C(1) << 61) - 1));
    p->bigs = tp_vec_room(p->bigs, &p->big_cap, p->n_bigs + 1, sizeof *p->bigs);
    p->bigs[p->n_bigs] = v;
    return make(TP_PICKLE_BIG, p->n_bigs++);
}

static uint64_t little_endian(const unsigned char *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = n; i-- > 0;)
        v = v << 8 | p[i];
    return v;
}

static tp_pickle_value new_object(machine *m, tp_pickle_type type)
{
    tp_pickle *p = m->out;
    (void)TP_VEC_PUSH(p->objects, p->n_objects, p->object_cap);
    return make(type, p->n_objects - 1);
}

static void append(machine *m, tp_pickle_object *object, const tp_pickle_value *items, size_t n)
{
    enum { HEAD = 16 }; /* malloc()'s */
    size_t cap = object->cap;
    if (n == 0)
        return;
    TP_ASSERT(object->n + n < UINT32_MAX); /* is_too_large() comes first */
    object->items = tp_vec_room(object->items, &cap, object->n + n, sizeof *object->items);
    m->item_bytes += (cap - object->cap) * sizeof *object->items + (object->cap ? 0 : HEAD);
    object->cap = (uint32_t)cap;
    memcpy(object->items + object->n, items, n * sizeof *items);
    object->n += (uint32_t)n;
}

static bool find_mark(const machine *m, size_t *ret)
{
    for (size_t i = m->n; i-- > 0;)
        if (m->stack[i] == mark) {
            *ret = i;
            return true;
        }
    return false;
}

static tp_pickle_object *object_of(machine *m, tp_pickle_value v, tp_pickle_type type)
{
    return tp_pickle_type_of(v) == type && v != mark ? &m->out->objects[tp_pickle_payload(v)]
                                                     : NULL;
}

/* Everything above the topmost mark goes into the container below it. */
static verdict collect(machine *m, tp_pickle_type type)
{
    size_t at;
    if (!find_mark(m, &at) || at == 0)
        return BROKEN;
    tp_pickle_object *object = object_of(m, m->stack[at - 1], type);
    size_t n = m->n - at - 1;
    if (!object || (type == TP_PICKLE_DICT && n % 2))
        return BROKEN;
    append(m, object, m->stack + at + 1, n);
    m->n = at;
    return GO;
}

/* The `n` topmost values (or all above the mark) as one new list or dict. */
static verdict build(machine *m, tp_pickle_type type, size_t n, bool to_mark)
{
    size_t at;
    if (to_mark) {
        if (!find_mark(m, &at))
            return BROKEN;
        n = m->n - at - 1;
    } else if (m->n < n) {
        return BROKEN;
    }
    if (type == TP_PICKLE_DICT && n % 2)
        return BROKEN;
    tp_pickle_value v = new_object(m, type);
    append(m, &m->out->objects[tp_pickle_payload(v)], m->stack + m->n - n, n);
    m->n -= n + to_mark;
    push(m, v);
    return GO;
}

static verdict append_one(machine *m, tp_pickle_type type)
{
    size_t n = type == TP_PICKLE_DICT ? 2 : 1;
    if (m->n < n + 1)
        return BROKEN;
    tp_pickle_object *object = object_of(m, m->stack[m->n - n - 1], type);
    if (!object)
        return BROKEN;
    append(m, object, m->stack + m->n - n, n);
    m->n -= n;
    return GO;
}

static verdict memoize(machine *m, uint64_t slot)
{
    /* Every slot costs the file at least two bytes. */
    if (m->n == 0 || slot > (uint64_t)(m->end - m->begin))
        return BROKEN;
    size_t old = m->memo_cap;
    m->memo = tp_vec_room(m->memo, &m->memo_cap, (size_t)slot + 1, sizeof *m->memo);
    for (size_t i = old; i < m->memo_cap; i++)
        m->memo[i] = mark;
    m->memo[slot] = m->stack[m->n - 1];
    if (slot >= m->n_memo)
        m->n_memo = (size_t)slot + 1;
    return GO;
}

static verdict recall(machine *m, uint64_t slot)
{
    if (slot >= m->n_memo || m->memo[slot] == mark)
        return BROKEN;
    push(m, m->memo[slot]);
    return GO;
}

/* `width` bytes of length, then a string or bytes. */
static verdict counted(machine *m, size_t width, bool is_text)
{
    if ((size_t)(m->end - m->at) < width)
        return SHORT;
    uint64_t n = little_endian(m->at, width);
    if (n > (uint64_t)(m->end - m->at) - width)
        return n > (UINT64_C(1) << 32) ? BROKEN : SHORT;
    const char *text = (const char *)m->at + width;
    push(m, is_text ? make(TP_PICKLE_STRING, tp_string_add(m->out->strings, text, (size_t)n))
                    : make(TP_PICKLE_CONSTANT, OPAQUE));
    m->at += width + n;
    return GO;
}

static verdict long_integer(machine *m, size_t width)
{
    if ((size_t)(m->end - m->at) < width)
        return SHORT;
    uint64_t n = little_endian(m->at, width);
    if (n > (uint64_t)(m->end - m->at) - width)
        return n > (UINT64_C(1) << 31) ? BROKEN : SHORT;
    const unsigned char *p = m->at + width;
    m->at = p + n;
    size_t used = (size_t)n;
    while (used > 8 && p[used - 1] == (p[used - 2] & 0x80 ? 0xff : 0))
        used--;
    if (used > 8 && !(used == 9 && p[8] == 0)) {
        push(m, make(TP_PICKLE_CONSTANT, OPAQUE));
        return GO;
    }
    uint64_t v = little_endian(p, TP_MIN(used, 8));
    if (used && used < 8 && p[used - 1] & 0x80)
        v |= UINT64_MAX << 8 * used;
    push(m, integer(m->out, (int64_t)v));
    return GO;
}

static verdict fixed(machine *m, size_t width, bool is_signed)
{
    if ((size_t)(m->end - m->at) < width)
        return SHORT;
    uint64_t v = little_endian(m->at, width);
    m->at += width;
    push(m, integer(m->out, is_signed ? (int64_t)(int32_t)(uint32_t)v : (int64_t)v));
    return GO;
}

static verdict binary_float(machine *m)
{
    if (m->end - m->at < 8)
        return SHORT;
    uint64_t bits = 0;
    double v;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | m->at[i];
    m->at += 8;
    memcpy(&v, &bits, sizeof v);
    tp_pickle *p = m->out;
    p->floats = tp_vec_room(p->floats, &p->float_cap, p->n_floats + 1, sizeof *p->floats);
    p->floats[p->n_floats] = v;
    push(m, make(TP_PICKLE_FLOAT, p->n_floats++));
    return GO;
}

static verdict skip(machine *m, size_t width)
{
    if ((size_t)(m->end - m->at) < width)
        return SHORT;
    m->at += width;
    return GO;
}

static verdict slot_of(machine *m, size_t width, bool stores)
{
    if ((size_t)(m->end - m->at) < width)
        return SHORT;
    uint64_t slot = little_endian(m->at, width);
    m->at += width;
    return stores ? memoize(m, slot) : recall(m, slot);
}

static verdict protocol(machine *m)
{
    if (m->at == m->end)
        return SHORT;
    m->out->protocol = *m->at++;
    return m->out->protocol <= 5 ? GO : BROKEN;
}

static verdict refuse(machine *m, unsigned char opcode, const char *name)
{
    (void)tp_fail(m->err, TP_ERR_FORMAT,
                  "'%s': opcode 0x%02x (%s) at byte %zu could run code; a memory snapshot does "
                  "not need it, so this file is refused",
                  m->name, opcode, name, (size_t)(m->at - m->begin) - 1);
    return REFUSED;
}

static verdict constant(machine *m, uint64_t payload)
{
    push(m, make(TP_PICKLE_CONSTANT, payload));
    return GO;
}

static verdict pop(machine *m, bool to_mark)
{
    size_t at;
    if (m->n == 0 || (to_mark && !find_mark(m, &at)))
        return BROKEN;
    m->n = to_mark ? at : m->n - 1;
    return GO;
}

static verdict step(machine *m)
{
    if (m->at == m->end)
        return SHORT;
    unsigned char opcode = *m->at++;
    switch (opcode) {
    case 0x80:
        return protocol(m);
    case 0x95: /* FRAME */
        return skip(m, 8);
    case '.':
        return STOP;
    case '(':
        push(m, mark);
        return GO;
    case '0':
        return pop(m, false);
    case '1':
        return pop(m, true);
    case '}':
        push(m, new_object(m, TP_PICKLE_DICT));
        return GO;
    case ']':
    case ')':
        push(m, new_object(m, TP_PICKLE_LIST));
        return GO;
    case 'N':
        return constant(m, NONE);
    case 0x88:
        return constant(m, TRUE);
    case 0x89:
        return constant(m, FALSE);
    case 'J':
        return fixed(m, 4, true);
    case 'K':
        return fixed(m, 1, false);
    case 'M':
        return fixed(m, 2, false);
    case 0x8a:
        return long_integer(m, 1);
    case 0x8b:
        return long_integer(m, 4);
    case 'G':
        return binary_float(m);
    case 0x8c: /* SHORT_BINUNICODE, SHORT_BINSTRING */
    case 'U':
        return counted(m, 1, true);
    case 'X': /* BINUNICODE, BINSTRING */
    case 'T':
        return counted(m, 4, true);
    case 0x8d:
        return counted(m, 8, true);
    case 'C': /* bytes of three sizes, and a byte array */
        return counted(m, 1, false);
    case 'B':
        return counted(m, 4, false);
    case 0x8e:
    case 0x96:
        return counted(m, 8, false);
    case 't':
    case 'l':
        return build(m, TP_PICKLE_LIST, 0, true);
    case 'd':
        return build(m, TP_PICKLE_DICT, 0, true);
    case 0x85:
    case 0x86:
    case 0x87:
        return build(m, TP_PICKLE_LIST, (size_t)(opcode - 0x84), false);
    case 'a':
        return append_one(m, TP_PICKLE_LIST);
    case 's':
        return append_one(m, TP_PICKLE_DICT);
    case 'e':
        return collect(m, TP_PICKLE_LIST);
    case 'u':
        return collect(m, TP_PICKLE_DICT);
    case 0x94:
        return memoize(m, m->n_memo);
    case 'q':
        return slot_of(m, 1, true);
    case 'r':
        return slot_of(m, 4, true);
    case 'h':
        return slot_of(m, 1, false);
    case 'j':
        return slot_of(m, 4, false);
    case 'c':
        return refuse(m, opcode, "GLOBAL");
    case 'R':
        return refuse(m, opcode, "REDUCE");
    case 'b':
        return refuse(m, opcode, "BUILD");
    case 'i':
        return refuse(m, opcode, "INST");
    case 'o':
        return refuse(m, opcode, "OBJ");
    case 0x81:
        return refuse(m, opcode, "NEWOBJ");
    case 0x92:
        return refuse(m, opcode, "NEWOBJ_EX");
    case 0x93:
        return refuse(m, opcode, "STACK_GLOBAL");
    case 'P':
    case 'Q':
        return refuse(m, opcode, "PERSID");
    case 0x82:
    case 0x83:
    case 0x84:
        return refuse(m, opcode, "EXT");
    default:
        return BROKEN;
    }
}

/* What is built, against the limit: two bytes of a pickle can ask for 160 of memory. */
static bool is_too_large(const machine *m)
{
    const tp_pickle *p = m->out;
    const tp_string_table *s = p->strings;
    return m->item_bytes + p->n_objects * sizeof *p->objects + s->used + s->n_slots * 8 +
               s->n * sizeof *s->offset +
               (m->stack_cap + m->memo_cap + p->n_bigs + p->n_floats) * sizeof *m->stack >
           m->most;
}

static verdict refuse_size(machine *m)
{
    (void)tp_fail(m->err, TP_ERR_FORMAT,
                  "'%s': what it builds up to byte %zu takes more than %llu MB, with %zu lists and "
                  "dicts; is this a memory snapshot?",
                  m->name, (size_t)(m->at - m->begin), (unsigned long long)(m->most >> 20),
                  m->out->n_objects);
    return REFUSED;
}

/* Close what is open: the values above each mark belong to the container below it, if
 * there is one that takes them. */
static void close_all(machine *m)
{
    size_t at;
    while (find_mark(m, &at)) {
        size_t n = m->n - at - 1;
        tp_pickle_value below = at ? m->stack[at - 1] : mark;
        tp_pickle_object *list = at ? object_of(m, below, TP_PICKLE_LIST) : NULL;
        tp_pickle_object *dict = at ? object_of(m, below, TP_PICKLE_DICT) : NULL;
        if (list)
            append(m, list, m->stack + at + 1, n);
        else if (dict)
            append(m, dict, m->stack + at + 1, n - n % 2);
        m->n = at;
    }
}

tp_status tp_pickle_read(tp_pickle *p, const char *name, const void *bytes, size_t n, uint64_t most,
                         tp_string_table *strings, tp_error *err)
{
    const uint64_t countable = UINT64_C(1) << 35; /* items of a list are counted in 32 bits */
    *p = (tp_pickle){.strings = strings};
    machine m = {.out = p, .name = name, .begin = bytes, .at = bytes, .err = err};
    m.most = most && most < countable ? most : countable - 1;
    m.end = m.begin + n;
    const unsigned char *before;
    verdict v;
    do {
        before = m.at;
        v = step(&m);
        if (v == GO && is_too_large(&m))
            v = refuse_size(&m);
    } while (v == GO);
    p->stopped_at = (size_t)(before - m.begin);
    if (v == SHORT || v == BROKEN) {
        p->truncated = true;
        p->damage = v == BROKEN ? "an opcode that makes no sense there" : NULL;
        close_all(&m);
    }
    /* Values of the file's root lie lowest, whatever is left above them. */
    bool has_root = m.n > 0 && m.stack[0] != mark;
    p->root = has_root ? m.stack[v == STOP ? m.n - 1 : 0] : make(TP_PICKLE_CONSTANT, NONE);
    if (p->root == mark)
        p->root = make(TP_PICKLE_CONSTANT, NONE);
    free(m.stack);
    free(m.memo);
    if (v == REFUSED || !has_root) {
        tp_pickle_release(p);
        return v == REFUSED ? TP_ERR_FORMAT
                            : tp_fail(err, TP_ERR_FORMAT, "'%s' is no readable pickle", name);
    }
    return TP_OK;
}

void tp_pickle_release(tp_pickle *p)
{
    for (size_t i = 0; i < p->n_objects; i++)
        free(p->objects[i].items);
    free(p->objects);
    free(p->bigs);
    free(p->floats);
    *p = (tp_pickle){0};
}

const tp_pickle_object *tp_pickle_list(const tp_pickle *p, tp_pickle_value v)
{
    return tp_pickle_type_of(v) == TP_PICKLE_LIST ? &p->objects[tp_pickle_payload(v)] : NULL;
}

const tp_pickle_object *tp_pickle_dict(const tp_pickle *p, tp_pickle_value v)
{
    return tp_pickle_type_of(v) == TP_PICKLE_DICT ? &p->objects[tp_pickle_payload(v)] : NULL;
}

bool tp_pickle_get(const tp_pickle *p, tp_pickle_value v, uint32_t key, tp_pickle_value *ret)
{
    const tp_pickle_object *dict = tp_pickle_dict(p, v);
    tp_pickle_value wanted = make(TP_PICKLE_STRING, key);
    for (uint32_t i = dict ? dict->n : 0; i >= 2; i -= 2)
        if (dict->items[i - 2] == wanted) {
            *ret = dict->items[i - 1];
            return true;
        }
    return false;
}

bool tp_pickle_i64(const tp_pickle *p, tp_pickle_value v, int64_t *ret)
{
    uint64_t payload = tp_pickle_payload(v);
    switch (tp_pickle_type_of(v)) {
    case TP_PICKLE_INT:
        *ret = (int64_t)v >> 3;
        return true;
    case TP_PICKLE_BIG:
        *ret = p->bigs[payload];
        return true;
    case TP_PICKLE_CONSTANT:
        *ret = payload == TRUE;
        return payload == TRUE || payload == FALSE;
    default:
        return false;
    }
}

bool tp_pickle_string(tp_pickle_value v, uint32_t *ret)
{
    if (tp_pickle_type_of(v) != TP_PICKLE_STRING)
        return false;
    *ret = (uint32_t)tp_pickle_payload(v);
    return true;
}
