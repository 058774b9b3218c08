/* rows.c - lengths of inputs followed through a graph. */
#include "engine/exec/rows.h"

#include "base/platform.h"

/* What the letters of a signature are for one node. */
typedef struct {
    tp_row_count of['Z' + 1];
    bool is_known['Z' + 1];
} letters;

/* The letter that a dimension is; 0: an expression, a number or an attribute. */
static unsigned char letter_of(const tp_operand_spec *spec, int d, const tp_node *n)
{
    const char *text = spec->dim[d ^ (spec->swaps && n->attrs.transposed)];
    return text[1] == 0 && text[0] >= 'A' && text[0] <= 'Z' ? (unsigned char)text[0] : 0;
}

/* As in infer.c: the first operand with a letter decides. */
static void learn(const tp_graph *g, const tp_node *n, const tp_rows *rows, letters *known)
{
    const tp_signature *signature = tp_op_signature(n->op);
    for (int i = 0; i < n->n_in; i++)
        for (int d = 0; n->in[i] && d < g->values[n->in[i]].rank; d++) {
            unsigned char letter = letter_of(&signature->in[i], d, n);
            if (letter && !known->is_known[letter]) {
                known->is_known[letter] = true;
                known->of[letter] = rows[n->in[i]].of[d];
            }
        }
}

/* Ranks that share the layers divide rows among them. */
static void share_rows(const tp_node *n, tp_rows *rows)
{
    tp_row_count *to = &rows[n->out[0]].of[0];
    if (n->op == TP_OP_scatter_rows)
        *to = (tp_row_count){rows[n->in[0]].of[0].input, n->attrs.n1, n->attrs.n0};
    if (n->op == TP_OP_gather_rows)
        *to = (tp_row_count){.input = rows[n->in[0]].of[0].input};
}

tp_rows *tp_rows_find(const tp_graph *g, tp_arena *arena)
{
    tp_rows *rows = tp_arena_array(arena, tp_rows, g->n_values);
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        const tp_node *n = &g->nodes[i];
        letters known = {0};
        if (n->op == TP_OP_input)
            rows[n->out[0]].of[0].input = n->out[0];
        if (tp_ops[n->op]->traits & TP_OP_SOURCE)
            continue;
        learn(g, n, rows, &known);
        for (int k = 0; k < n->n_out; k++)
            for (int d = 0; d < g->values[n->out[k]].rank; d++)
                rows[n->out[k]].of[d] = known.of[letter_of(&tp_op_signature(n->op)->out[k], d, n)];
        share_rows(n, rows);
    }
    return rows;
}

int64_t tp_rows_of(const tp_row_count *count, int64_t n)
{
    int64_t left = TP_MAX(n - count->first, 0);
    return count->most ? TP_MIN(left, count->most) : left;
}

static double bytes_of(const tp_graph *g, tp_ref ref, const tp_rows *rows)
{
    return rows[ref].of[0].input || rows[ref].of[1].input ? (double)tp_value_bytes(&g->values[ref])
                                                          : 0;
}

double tp_rows_bytes(const tp_graph *g, const tp_node *n, const tp_rows *rows)
{
    double bytes = 0;
    for (int k = 0; k < n->n_in; k++)
        bytes += n->in[k] ? bytes_of(g, n->in[k], rows) : 0;
    for (int k = 0; k < n->n_out; k++)
        bytes += bytes_of(g, n->out[k], rows);
    return bytes;
}
