/* print.c - a graph as text that the parser reads back. */

#include "engine/ir/graph.h"

static void print_type(const tp_value *v, tp_buf *out)
{
    tp_buf_addf(out, "%s[%lld", tp_dtype_name(v->dtype), (long long)v->dim[0]);
    if (v->rank == 2)
        tp_buf_addf(out, ",%lld", (long long)v->dim[1]);
    tp_buf_addc(out, ']');
}

static void print_int(tp_buf *out, const char *name, int32_t v, int *n)
{
    if (v)
        tp_buf_addf(out, "%s%s=%d", (*n)++ ? ", " : " {", name, v);
}

/* In as few digits as read back the same. */
static void print_float(tp_buf *out, const char *name, float v, int *n)
{
    char text[32];
    if (v == 0)
        return;
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)v);
        if (strtof(text, NULL) == v)
            break;
    }
    tp_buf_addf(out, "%s%s=%s", (*n)++ ? ", " : " {", name, text);
}

#define PRINT_ATTR(type, name) \
    _Generic((type)0, int32_t : print_int, float : print_float)(out, #name, a->name, &n);

static void print_attrs(const tp_attrs *a, tp_buf *out)
{
    int n = 0;
#define ATTR(type, name) PRINT_ATTR(type, name)
#include "engine/ir/attrs.def"
#undef ATTR
    if (n)
        tp_buf_addc(out, '}');
}

static void print_string(const char *s, tp_buf *out)
{
    tp_buf_adds(out, " \"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\' || *s == '\n')
            tp_buf_addc(out, '\\');
        tp_buf_addc(out, *s == '\n' ? 'n' : *s);
    }
    tp_buf_addc(out, '"');
}

static void print_record(const tp_tensor *t, tp_buf *out)
{
    tp_buf_addf(out, " role=%s", tp_role_name(t->role));
    if (t->of) {
        tp_buf_adds(out, " of");
        print_string(t->of, out);
    }
    if (t->layout != TP_LAYOUT_ROWS)
        tp_buf_addf(out, " layout=%s", tp_layout_name(t->layout));
    if (tp_is_sliced(t))
        tp_buf_addf(out, " slice=%d slices=%d axis=%d length=%lld", t->slice.index, t->slice.count,
                    t->slice.axis, (long long)t->slice.length);
    if (tp_is_sliced(t) && t->slice.groups > 1)
        tp_buf_addf(out, " groups=%d", t->slice.groups);
}

static void print_node(const tp_graph *g, const tp_node *n, tp_buf *out)
{
    for (int k = 0; k < n->n_out; k++)
        tp_buf_addf(out, "%s%%%u", k ? ", " : "", n->out[k]);
    tp_buf_addf(out, " = %s", tp_ops[n->op]->name);
    const tp_value *v = &g->values[n->out[0]];
    if (tp_ops[n->op]->traits & TP_OP_SOURCE) {
        tp_buf_addc(out, ' ');
        print_type(v, out);
        print_string(v->name, out);
        if (v->tensor)
            print_record(v->tensor, out);
        tp_buf_addc(out, '\n');
        return;
    }
    for (int k = 0; k < n->n_in; k++) {
        tp_buf_adds(out, k ? ", " : " ");
        if (n->in[k])
            tp_buf_addf(out, "%%%u", n->in[k]);
        else
            tp_buf_addc(out, '_');
    }
    print_attrs(&n->attrs, out);
    for (int k = 0; k < n->n_out; k++) {
        tp_buf_adds(out, k ? ", " : " : ");
        print_type(&g->values[n->out[k]], out);
    }
    if (n->block >= 0)
        tp_buf_addf(out, " block=%d", n->block);
    if (n->phase != TP_PHASE_FORWARD)
        tp_buf_adds(out, n->phase == TP_PHASE_BACKWARD ? " phase=backward" : " phase=update");
    if (n->is_clone)
        tp_buf_adds(out, " clone");
    if (n->label)
        print_string(n->label, out);
    tp_buf_addc(out, '\n');
}

void tp_graph_print(const tp_graph *g, tp_buf *out)
{
    for (uint32_t i = 1; i < g->n_nodes; i++)
        if (!g->nodes[i].is_dead)
            print_node(g, &g->nodes[i], out);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        tp_buf_addf(out, "output %%%u\n", g->outputs[i]);
}
