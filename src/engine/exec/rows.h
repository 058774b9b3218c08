/* rows.h - which dimensions of a graph's values are as long as an input, so that a run can have
 * fewer rows of it than the graph was made for. */
#ifndef TP_ENGINE_EXEC_ROWS_H
#define TP_ENGINE_EXEC_ROWS_H

#include "engine/ir/graph.h"

typedef struct {
    tp_ref of[TP_MAX_RANK]; /* the input whose rows this dimension counts; 0: none */
} tp_rows;

/* Per value of the graph; in the arena.  It follows from the signatures of the ops: dimensions with
 * one letter are one length. */
tp_rows *tp_rows_find(const tp_graph *g, tp_arena *arena);

/* Bytes of a node's operands that go with the rows of some input. */
double tp_rows_bytes(const tp_graph *g, const tp_node *n, const tp_rows *rows);

#endif
