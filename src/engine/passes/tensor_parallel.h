/* tensor_parallel.h - what the files of the pass tensor-parallel share: what is known of values,
 * the ways in which an op may be divided, and what ranks say to each other. */
#ifndef TP_ENGINE_PASSES_TENSOR_PARALLEL_H
#define TP_ENGINE_PASSES_TENSOR_PARALLEL_H

#include "engine/passes/pass.h"

typedef enum {
    TP_IS_WHOLE,
    TP_IS_DIVIDED,
    TP_IS_ROWS, /* every rank has a share of the rows */
    TP_IS_SUM
} tp_standing_kind;

typedef struct {
    tp_standing_kind is;
    int axis;        /* divided: along this */
    int64_t length;  /* of the whole */
    bool has_tokens; /* sum: its rows are those of the batch */
} tp_standing;

typedef struct {
    tp_graph *g;
    tp_graph *const *set;
    size_t n_set;
    const tp_pass_options *options;
    tp_standing *of;  /* per value */
    tp_ref *added_up; /* of sums, once somebody needs all of it */
    tp_ref *in_rows;  /* of sums, once somebody works on the rank's share */
    tp_ref *gathered; /* of rows, likewise */
    bool *is_settled; /* states that something read as they are */
    uint32_t *order, n_order;
    int32_t last_bucket;
    tp_error *err;
} tp_sharing;

/* ---- tensor_ways.c ---- */

enum { TP_WAY_NAMES = 3, TP_WAY_NAME = 12 };

/* One of the ways that a row of an op says. */
typedef struct {
    char names[TP_WAY_NAMES][TP_WAY_NAME];
    int n;
    bool shares_rows; /* tokens, which nobody has decided to divide */
} tp_way;

/* Way `i` of "N; K"; false: there are fewer. */
bool tp_way_find(const char *splits, int i, tp_way *ret);
/* The dimension of an operand that a way divides, or -1. */
int tp_way_axis(const tp_way *w, const tp_operand_spec *spec, const tp_attrs *attrs);
/* Whether rows are what it divides. */
bool tp_way_is_of_rows(const tp_way *w);

/* ---- tensor_talk.c ---- */

void tp_sharing_put(tp_sharing *p, uint32_t node); /* behind all others */
/* Begun and over, right behind what makes the operand. */
tp_ref tp_sharing_talk(tp_sharing *p, tp_op op, tp_ref in);
/* All of a value: sums are added up, rows gathered. */
tp_ref tp_sharing_whole(tp_sharing *p, tp_ref ref);
/* The rank's share of the rows of a sum; what is in rows stays. */
tp_ref tp_sharing_rows(tp_sharing *p, tp_ref ref);

#endif
