/* jinja_value.h - the values of a template: Python's, as far as templates go.
 *
 * Strings are valid UTF-8 and immutable, and so are lists and dicts once made (the
 * sandbox forbids changing them): values are passed by copy and share what they
 * point to, which lives in the arena of the rendering. */
#ifndef TP_TEXT_TEMPLATE_JINJA_VALUE_H
#define TP_TEXT_TEMPLATE_JINJA_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"

/* Python's integers have no bound; these stop at 127 bits, with an error. */
typedef __int128 tp_integer;

typedef enum {
    TP_ANY_MISSING, /* no value: an argument that was not given */
    TP_ANY_UNDEFINED,
    TP_ANY_NONE,
    TP_ANY_BOOL,
    TP_ANY_INT,
    TP_ANY_FLOAT,
    TP_ANY_STR,
    TP_ANY_LIST,
    TP_ANY_TUPLE,
    TP_ANY_DICT,
    TP_ANY_RANGE,
    TP_ANY_VIEW,     /* d.keys(), d.values(), d.items() */
    TP_ANY_ITERATOR, /* what map, select, reverse ... give: can be gone through once */
    TP_ANY_NAMESPACE,
    TP_ANY_FUNCTION,
    TP_ANY_METHOD,
    TP_ANY_MACRO,
    TP_ANY_LOOP
} tp_any_type;

typedef enum { TP_VIEW_KEYS, TP_VIEW_VALUES, TP_VIEW_ITEMS } tp_view_kind;

typedef struct tp_any tp_any;

struct tp_any {
    uint8_t type;
    uint8_t view; /* VIEW: which */
    bool is_safe; /* STR: marked by |safe or |escape */
    union {
        bool truth;
        tp_integer integer;
        double real;
        tp_slice text;
        struct tp_any_items *items; /* LIST, TUPLE */
        struct tp_any_dict *dict;   /* DICT, VIEW, NAMESPACE */
        const struct tp_any_range *range;
        struct tp_any_iterator *iterator;
        const struct tp_any_undefined *undefined;
        const struct tp_jinja_function *function;
        const struct tp_any_method *method;
        const struct tp_any_macro *macro;
        struct tp_jinja_loop *loop;
    };
};

struct tp_any_items {
    size_t n, cap;
    tp_any *values;
};

struct tp_any_range {
    int64_t start, stop, step, n;
};

/* Insertion order; `index` (for more than a few entries) finds keys: a power of two
 * of slots, at most half of them used, holding entry + 1. */
struct tp_any_dict {
    struct tp_any_entry {
        tp_any key, value;
        uint64_t hash;
    } * entries;
    size_t n, cap;
    uint32_t *index;
    size_t n_slots;
};

/* Python's generators fail when they are gone through, not when they are made:
 * `failure` waits for that, or is NULL. */
struct tp_any_iterator {
    const struct tp_any_items *items;
    size_t at;
    const tp_error *failure;
};

struct tp_any_undefined {
    const char *hint;   /* a whole message, or NULL */
    tp_slice name;      /* of the variable, attribute or item */
    const char *object; /* "dict object": what lacks it; NULL: it is a variable */
    bool is_element;    /* an item, not an attribute */
    bool is_unsafe;     /* the sandbox forbids it */
};

static inline tp_any tp_any_none(void) { return (tp_any){.type = TP_ANY_NONE}; }

static inline tp_any tp_any_bool(bool truth)
{
    return (tp_any){.type = TP_ANY_BOOL, .truth = truth};
}

static inline tp_any tp_any_int(tp_integer integer)
{
    return (tp_any){.type = TP_ANY_INT, .integer = integer};
}

static inline tp_any tp_any_float(double real)
{
    return (tp_any){.type = TP_ANY_FLOAT, .real = real};
}

static inline tp_any tp_any_text(tp_slice text)
{
    return (tp_any){.type = TP_ANY_STR, .text = text};
}

#endif
