/* rows.h - which dimensions of a graph's values are as long as an input, so that a run can have
 * fewer rows of it than the graph was made for. */
#ifndef TP_ENGINE_EXEC_ROWS_H
#define TP_ENGINE_EXEC_ROWS_H

#include "engine/ir/graph.h"

/* The rows of an input that a dimension counts: those from `first` on, at most so many of them. */
typedef struct {
    tp_ref input;        /* 0: it counts none */
    int64_t first, most; /* most 0: all */
} tp_row_count;

typedef struct {
    tp_row_count of[TP_MAX_RANK];
} tp_rows;

/* Per value of the graph; in the arena.  It follows from the signatures of the ops: dimensions with
 * one letter are one length. */
tp_rows *tp_rows_find(const tp_graph *g, tp_arena *arena);

/* How many they are where the input has n rows. */
int64_t tp_rows_of(const tp_row_count *count, int64_t n);

/* Bytes of a node's operands that go with the rows of some input. */
double tp_rows_bytes(const tp_graph *g, const tp_node *n, const tp_rows *rows);

#endif
