/* pickle.h - plain data from a pickle, without ever running anything.
 *
 * An interpreter of the opcodes that build numbers, strings, lists, tuples and dicts
 * (protocols 2 to 5).  Opcodes that name or call something are refused.  Shared objects
 * stay shared: a value is a number that says what it is and where it lies, so a list that
 * the file mentions a thousand times is there once.
 *
 * A file that ends early, or goes wrong, gives what was built until then: open containers
 * are closed as if the file had closed them. */
#ifndef TP_INSTRUMENT_INGEST_PICKLE_H
#define TP_INSTRUMENT_INGEST_PICKLE_H

#include "instrument/ingest/string_table.h"

typedef uint64_t tp_pickle_value; /* payload << 3 | tp_pickle_type */

typedef enum {
    TP_PICKLE_CONSTANT, /* payload 0 None, 1 False, 2 True, 3 bytes or a number too large */
    TP_PICKLE_INT,      /* payload: 61 bits, signed                                       */
    TP_PICKLE_BIG,      /* index of bigs: 64 bits                                         */
    TP_PICKLE_FLOAT,    /* index of floats                                                */
    TP_PICKLE_STRING,   /* number of strings                                              */
    TP_PICKLE_LIST,     /* index of objects: lists and tuples                             */
    TP_PICKLE_DICT      /* index of objects: keys and values alternate                    */
} tp_pickle_type;

typedef struct {
    tp_pickle_value *items;
    uint32_t n, cap;
} tp_pickle_object;

typedef struct {
    tp_pickle_value root;
    tp_pickle_object *objects;
    int64_t *bigs;
    double *floats;
    size_t n_objects, n_bigs, n_floats;
    size_t object_cap, big_cap, float_cap;
    tp_string_table *strings; /* the caller's */
    int protocol;
    bool truncated;     /* no STOP */
    size_t stopped_at;  /* where reading ended */
    const char *damage; /* why, when not at the end; NULL else */
} tp_pickle;

/* Fails for what is refused, when nothing could be read, and when what it builds takes more
 * than `most` bytes (0: no limit). */
TP_CHECKED tp_status tp_pickle_read(tp_pickle *p, const char *name, const void *bytes, size_t n,
                                    uint64_t most, tp_string_table *strings, tp_error *err);
void tp_pickle_release(tp_pickle *p); /* zeroed is a no-op */

static inline tp_pickle_type tp_pickle_type_of(tp_pickle_value v)
{
    return (tp_pickle_type)(v & 7);
}
static inline uint64_t tp_pickle_payload(tp_pickle_value v) { return v >> 3; }

/* NULL when v is no list (no dict). */
const tp_pickle_object *tp_pickle_list(const tp_pickle *p, tp_pickle_value v);
const tp_pickle_object *tp_pickle_dict(const tp_pickle *p, tp_pickle_value v);
/* The value of a key; false when v is no dict or has none.  The last of equal keys wins. */
bool tp_pickle_get(const tp_pickle *p, tp_pickle_value v, uint32_t key, tp_pickle_value *ret);
/* Integers, and booleans as 0 and 1. */
bool tp_pickle_i64(const tp_pickle *p, tp_pickle_value v, int64_t *ret);
bool tp_pickle_string(tp_pickle_value v, uint32_t *ret);

#endif
