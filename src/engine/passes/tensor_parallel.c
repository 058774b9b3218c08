/* tensor_parallel.c - ranks that share the layers: each has a part of every matrix.
 *
 *     %q = linear %x, %wq               becomes   the same on fewer outputs
 *     %o = attention %q, ...                      the same on fewer heads
 *     %y = linear %o, %wo                         the same on fewer inputs: a term
 *                                                 %r = sum_tensor %y
 *                                                 %z = wait %r
 *
 * Nothing here knows a layer.  What an op does with a part of an operand is in its row (`splits` of
 * ir/ops.h).  Values are followed from the inputs on, forward and backward alike: each is whole,
 * in parts, or a sum that ranks have terms of.  A product of something whole has its outputs
 * divided, which divides its weight; a product of something in parts has its inputs divided.  A
 * table is divided by rows.  What is a sum is added up where something reads it that must have all
 * of it; sums of such sums wait for that.  A weight that is whole has its gradient on every rank,
 * unless what it was computed from is in parts: then that is added up once a step.
 *
 * With `shares_rows` what works row by row on such a sum (norms, the residual stream) works on the
 * rank's share of the rows, forward and backward, and what must have all rows gathers them:
 *
 *     %z = wait %r                      becomes   %r = scatter_rows %y
 *     %n = rmsnorm %z, %w                         %z = wait %r
 *                                                 %n = rmsnorm %z, %w
 *                                                 %s = gather_rows %n
 *                                                 %m = wait %s
 *
 * The first graph of a set that computes with a weight decides; the others, and what belongs to the
 * weight, follow by its name. */
#include <ctype.h>
#include <string.h>

#include "base/platform.h"
#include "engine/passes/tensor_parallel.h"

/* ---- slices ---- */

static int ranks_of(const tp_sharing *p) { return p->options->tensor.count; }

static bool is_state(const tp_sharing *p, tp_ref ref) { return p->g->values[ref].tensor != NULL; }

static void take_slice(tp_sharing *p, tp_ref ref, tp_tensor_slice slice)
{
    tp_value *v = &p->g->values[ref];
    tp_tensor *own = tp_arena_array(&p->g->arena, tp_tensor, 1);
    *own = *v->tensor;
    own->slice = slice;
    own->dim[slice.axis] = tp_slice_length(slice);
    v->dim[slice.axis] = own->dim[slice.axis];
    v->tensor = own;
    p->of[ref] = (tp_standing){.is = TP_IS_DIVIDED, .axis = slice.axis, .length = slice.length};
}

/* That of the weight, by any graph; count 0: it has none. */
static tp_tensor_slice known_slice(const tp_sharing *p, const tp_tensor *t)
{
    const char *weight = t->of && t->role != TP_ROLE_ADAPTER ? t->of : t->name;
    for (size_t i = 0; i < p->n_set; i++) {
        tp_ref ref = tp_graph_find(p->set[i], weight);
        const tp_tensor *w = ref ? p->set[i]->values[ref].tensor : NULL;
        bool has_shape = w && w->rank == t->rank && tp_tensor_dim(w, 0) == tp_tensor_dim(t, 0) &&
                         tp_tensor_dim(w, 1) == tp_tensor_dim(t, 1);
        if (has_shape && tp_is_sliced(w))
            return w->slice;
    }
    return (tp_tensor_slice){0};
}

static const tp_node *product_with(const tp_sharing *p, tp_ref weight)
{
    for (uint32_t i = 1; weight && i < p->g->n_nodes; i++)
        if (p->g->nodes[i].op == TP_OP_linear && p->g->nodes[i].in[1] == weight)
            return &p->g->nodes[i];
    return NULL;
}

/* What it is rows of, where it was gathered. */
static tp_ref share_of(const tp_graph *g, tp_ref ref)
{
    const tp_node *wait = tp_def(g, ref);
    const tp_node *begun = wait->op == TP_OP_wait ? tp_def(g, wait->in[0]) : wait;
    return begun->op == TP_OP_gather_rows ? begun->in[0] : ref;
}

/* Of B A, which is added to a weight: B [outputs, r] is in parts where the weight's outputs are, A
 * [r, inputs] where its inputs are, and what they are stretched to [outputs] as B.  A reads what
 * the weight does. */
static tp_tensor_slice slice_of_adapter(const tp_sharing *p, tp_ref adapter)
{
    const tp_tensor *t = p->g->values[adapter].tensor;
    tp_ref base = tp_graph_find(p->g, t->of);
    const tp_node *own = product_with(p, adapter), *whole = product_with(p, base);
    if ((!own && t->rank == 2) || !whole || p->of[base].is != TP_IS_DIVIDED)
        return (tp_tensor_slice){0};
    tp_tensor_slice s = p->g->values[base].tensor->slice;
    s.axis ^= whole->attrs.transposed;
    bool is_a = own && share_of(p->g, own->in[0]) == share_of(p->g, whole->in[0]);
    return s.axis == (is_a ? 1 : 0) ? s : (tp_tensor_slice){0};
}

/* What is known of a state by now. */
static void settle(tp_sharing *p, tp_ref ref)
{
    if (!ref || !is_state(p, ref) || p->of[ref].is == TP_IS_DIVIDED)
        return;
    const tp_tensor *t = p->g->values[ref].tensor;
    tp_tensor_slice known = t->role == TP_ROLE_CONSTANT ? (tp_tensor_slice){0} : known_slice(p, t);
    if (t->role == TP_ROLE_ADAPTER && !known.count)
        known = slice_of_adapter(p, ref);
    if (known.count)
        take_slice(p, ref, known);
}

static bool is_open(const tp_sharing *p, tp_ref ref)
{
    const tp_tensor *t = p->g->values[ref].tensor;
    return t && t->role == TP_ROLE_WEIGHT && !p->is_settled[ref] && p->of[ref].is == TP_IS_WHOLE;
}

/* q, k and v side by side are divided each. */
static int groups_of(const tp_sharing *p, tp_ref product)
{
    for (uint32_t i = p->g->values[product].node + 1; i < p->g->n_nodes; i++) {
        const tp_node *n = &p->g->nodes[i];
        if (n->op == TP_OP_split && n->in[0] == product)
            return n->n_out;
        bool is_adapted = n->op == TP_OP_add || n->op == TP_OP_dora;
        if (is_adapted && n->in[0] == product) /* with what an adapter makes of it */
            product = n->out[0];
    }
    return 1;
}

static tp_status decide(tp_sharing *p, tp_ref ref, int axis, int groups)
{
    const tp_value *v = &p->g->values[ref];
    tp_tensor_slice s = {.index = p->options->tensor.index,
                         .count = ranks_of(p),
                         .axis = axis,
                         .groups = groups,
                         .length = v->dim[axis]};
    tp_tensor_slice last = s;
    last.index = s.count - 1;
    if (s.length % groups != 0 || tp_slice_length(last) == 0)
        return tp_fail(
            p->err, TP_ERR_CONFIG,
            "distributed.tensor_parallel_size=%d: '%s' has %lld %s, which leave none for the last",
            s.count, v->name, (long long)s.length, axis ? "columns" : "rows");
    take_slice(p, ref, s);
    return TP_OK;
}

/* ---- new nodes ---- */

static tp_ref emit(tp_sharing *p, uint32_t like, tp_op op, const tp_attrs *attrs, int n_in,
                   const tp_ref *in)
{
    tp_graph *g = p->g;
    g->phase = g->nodes[like].phase;
    g->block = g->nodes[like].block;
    tp_ref first = tp_graph_op(g, op, attrs, n_in, in, g->nodes[like].label);
    tp_sharing_put(p, g->n_nodes - 1);
    return first;
}

static int64_t first_of(const tp_sharing *p, int64_t length)
{
    int64_t begin, end;
    const tp_tensor_slice s = {.index = p->options->tensor.index, .count = ranks_of(p)};
    tp_slice_part(s, length, &begin, &end);
    return begin;
}

/* Ids as the rank's part of the vocabulary counts them. */
static tp_ref shifted(tp_sharing *p, uint32_t node, tp_ref ids, int64_t vocabulary)
{
    const tp_attrs attrs = {.n0 = (int32_t)first_of(p, vocabulary)};
    return emit(p, node, TP_OP_shift, &attrs, 1, &ids);
}

/* What is added to a sum is added by the first rank; the others read it too, as what they say to
 * each other is the same on all. */
static tp_ref added_once(tp_sharing *p, uint32_t node, tp_ref term)
{
    const tp_attrs attrs = {.scale = p->options->tensor.index == 0};
    tp_ref own = emit(p, node, TP_OP_scale, &attrs, 1, &term);
    p->g->values[own].is_exact = true;
    return own;
}

/* ---- one node ---- */

/* Of terms of a sum it makes terms of its result: nothing need be added up for it. */
static bool keeps_terms(const tp_sharing *p, const tp_node *n)
{
    bool first = p->of[n->in[0]].is == TP_IS_SUM;
    bool second = n->n_in > 1 && p->of[n->in[1]].is == TP_IS_SUM;
    switch ((int)n->op) {
    case TP_OP_add:
        return first && second;
    case TP_OP_scale:
        return first;
    case TP_OP_linear:
    case TP_OP_linear_dx:
    case TP_OP_linear_dw: /* in[2]: what it adds up in, with every rank's terms */
        return first != second && p->of[n->in[0]].is != TP_IS_DIVIDED &&
               p->of[n->in[1]].is != TP_IS_DIVIDED && (n->op == TP_OP_linear_dw || !n->in[2]);
    default:
        return false;
    }
}

static tp_status refuse(const tp_sharing *p, const tp_node *n, const char *why)
{
    return tp_fail(p->err, TP_ERR_UNSUPPORTED, "distributed.tensor_parallel_size: op %s (%s) %s",
                   tp_ops[n->op]->name, n->label ? n->label : "unlabelled", why);
}

/* Whether a node's operands are as a way needs them; *ret_n: how many are in parts already. */
static bool fits(const tp_sharing *p, const tp_node *n, const tp_way *w, int *ret_n)
{
    const tp_signature *sig = tp_op_signature(n->op);
    bool may_decide = n->op == TP_OP_linear || n->op == TP_OP_embed || n->op == TP_OP_dora;
    *ret_n = 0;
    for (int k = 0; k < n->n_in; k++) {
        int axis = tp_way_axis(w, &sig->in[k], &n->attrs);
        tp_standing x = p->of[n->in[k]];
        if (!n->in[k])
            continue;
        if (axis < 0 && x.is == TP_IS_DIVIDED)
            return false;
        bool is_right = axis < 0 || (x.is == TP_IS_DIVIDED && x.axis == axis) ||
                        (may_decide && is_open(p, n->in[k]));
        if (!is_right)
            return false;
        *ret_n += axis >= 0 && x.is == TP_IS_DIVIDED;
    }
    return true;
}

/* Operands with tokens are in rows, or sums that can be; terms alone stay terms. */
static bool fits_rows(const tp_sharing *p, const tp_node *n, const tp_way *w)
{
    const tp_signature *sig = tp_op_signature(n->op);
    int n_rows = 0;
    for (int k = 0; k < n->n_in; k++) {
        int axis = tp_way_axis(w, &sig->in[k], &n->attrs);
        tp_standing x = p->of[n->in[k]];
        bool is_rows = x.is == TP_IS_ROWS || (x.is == TP_IS_SUM && x.has_tokens);
        bool is_right = axis >= 0 ? is_rows : x.is == TP_IS_WHOLE || x.is == TP_IS_SUM;
        if (n->in[k] && !is_right)
            return false;
        n_rows += axis >= 0 && (x.is == TP_IS_ROWS || p->in_rows[n->in[k]]);
    }
    return n_rows > 0 || !keeps_terms(p, n);
}

/* Products and tables are divided; what else is whole stays so. */
static bool begins_to_divide(const tp_sharing *p, const tp_node *n)
{
    return (n->op == TP_OP_linear || n->op == TP_OP_embed) && is_open(p, n->in[1]);
}

/* False: it works on what is whole. */
static bool choose(const tp_sharing *p, const tp_node *n, tp_way *ret)
{
    for (int i = 0; tp_way_find(tp_ops[n->op]->splits, i, ret); i++) {
        int n_divided;
        if (fits(p, n, ret, &n_divided) && (n_divided || begins_to_divide(p, n)))
            return true;
        ret->shares_rows =
            p->options->shares_rows && tp_way_is_of_rows(ret) && fits_rows(p, n, ret);
        if (ret->shares_rows)
            return true;
    }
    return false;
}

static tp_status divide_attributes(tp_sharing *p, tp_node *n, const tp_way *w)
{
    for (int i = 0; i < w->n; i++) {
        if (!islower((unsigned char)w->names[i][0]))
            continue;
#define ATTR(type, name)                                                             \
    if (strcmp(w->names[i], #name) == 0) {                                           \
        if ((int64_t)n->attrs.name % ranks_of(p) != 0)                               \
            return refuse(p, n, "has a number of " #name " that cannot be divided"); \
        n->attrs.name = (type)((int64_t)n->attrs.name / ranks_of(p));                \
    }
#include "engine/ir/attrs.def"
#undef ATTR
    }
    return TP_OK;
}

/* An operand that is added to a sum. */
static bool is_term(const tp_node *n, const tp_signature *sig, int k)
{
    for (int o = 0; o < n->n_out; o++)
        if (sig->alias[o] == k)
            return false;
    return sig->in[k].is_optional;
}

static bool makes_sums(const tp_node *n, const tp_signature *sig, const tp_way *w)
{
    for (int o = 0; o < n->n_out; o++)
        if (tp_way_axis(w, &sig->out[o], &n->attrs) < 0)
            return true;
    return false;
}

/* Rows of a matrix can be gathered. */
static tp_status read_whole(tp_sharing *p, uint32_t node, int k)
{
    tp_ref in = p->g->nodes[node].in[k];
    if (p->of[in].is == TP_IS_DIVIDED || (p->of[in].is == TP_IS_ROWS && p->g->values[in].rank < 2))
        return refuse(p, &p->g->nodes[node], "cannot work on a part of its operand");
    tp_ref all = tp_sharing_whole(p, in);
    p->g->nodes[node].in[k] = all;
    return TP_OK;
}

static tp_status prepare_operands(tp_sharing *p, uint32_t node, const tp_way *w)
{
    const tp_signature *sig = tp_op_signature(p->g->nodes[node].op);
    for (int k = 0; k < p->g->nodes[node].n_in; k++) {
        const tp_node *n = &p->g->nodes[node];
        tp_ref in = n->in[k];
        int axis = tp_way_axis(w, &sig->in[k], &n->attrs);
        bool has_sums = makes_sums(n, sig, w);
        if (!in)
            continue;
        if (axis >= 0 && w->shares_rows) {
            tp_ref rows = tp_sharing_rows(p, in);
            p->g->nodes[node].in[k] = rows;
        } else if (axis >= 0 && p->of[in].is != TP_IS_DIVIDED)
            TP_TRY(decide(p, in, axis, n->op == TP_OP_embed ? 1 : groups_of(p, n->out[0])));
        else if (axis < 0 && p->of[in].is == TP_IS_SUM && is_term(n, sig, k))
            return refuse(p, n, "adds a sum to a part of one");
        else if (axis < 0 && has_sums && is_term(n, sig, k)) {
            tp_ref own = added_once(p, node, in);
            p->g->nodes[node].in[k] = own;
        } else if (axis < 0 && !(has_sums && sig->in[k].is_optional))
            TP_TRY(read_whole(p, node, k));
    }
    return TP_OK;
}

/* What counts rows of a vocabulary counts those of the part. */
static void count_from_part(tp_sharing *p, uint32_t node)
{
    const tp_op op = p->g->nodes[node].op;
    bool is_table = op == TP_OP_embed || op == TP_OP_embed_grad;
    if (!is_table && op != TP_OP_cross_entropy_grad)
        return;
    const int at[] = {is_table ? 0 : 1, op == TP_OP_embed ? 1 : op == TP_OP_embed_grad ? 2 : 0};
    int64_t vocabulary = p->of[p->g->nodes[node].in[at[1]]].length;
    tp_ref ids = shifted(p, node, p->g->nodes[node].in[at[0]], vocabulary);
    tp_node *n = &p->g->nodes[node];
    n->in[at[0]] = ids;
    n->attrs.part = op == TP_OP_cross_entropy_grad;
    n->attrs.skip = (int32_t)TP_MAX(n->attrs.skip - first_of(p, vocabulary), 0);
}

/* Terms are float32, where a frozen table is in bf16 as well. */
static void make_exact(tp_sharing *p, const tp_node *n, int out)
{
    tp_value *v = &p->g->values[n->out[out]];
    if (tp_op_out_fixed(n->op, out))
        return;
    v->is_exact = true;
    v->dtype = TP_DTYPE_F32;
}

/* Whether the rows of a result are those of the batch. */
static bool makes_tokens(const tp_sharing *p, const tp_node *n, int out)
{
    const tp_operand_spec *spec = &tp_op_signature(n->op)->out[out];
    return spec->any_shape ? p->of[n->in[0]].has_tokens : strcmp(spec->dim[0], "T") == 0;
}

static tp_status divide(tp_sharing *p, uint32_t node, const tp_way *w)
{
    tp_standing_kind part = w->shares_rows ? TP_IS_ROWS : TP_IS_DIVIDED;
    const tp_signature *sig = tp_op_signature(p->g->nodes[node].op);
    TP_TRY(prepare_operands(p, node, w));
    count_from_part(p, node);
    tp_node *n = &p->g->nodes[node];
    for (int k = 0; k < n->n_out; k++) {
        tp_value *v = &p->g->values[n->out[k]];
        int axis = tp_way_axis(w, &sig->out[k], &n->attrs);
        p->of[n->out[k]] =
            (tp_standing){axis < 0 ? TP_IS_SUM : part, axis, axis < 0 ? 0 : v->dim[axis],
                          axis < 0 && makes_tokens(p, n, k)};
        if (axis < 0)
            make_exact(p, n, k);
    }
    TP_TRY(divide_attributes(p, n, w));
    TP_TRY(tp_pass_infer_again(p->g, node, p->err));
    tp_sharing_put(p, node);
    return TP_OK;
}

/* ---- nodes that are rewritten ---- */

/* The product in front of it becomes a node of its own. */
static void take_product_out(tp_sharing *p, uint32_t node)
{
    tp_graph *g = p->g;
    const tp_node ce = g->nodes[node];
    g->phase = ce.phase;
    g->block = ce.block;
    tp_ref logits = tp_graph_op(g, TP_OP_linear, NULL, 2, ce.in, ce.label);
    if (p->of[ce.in[1]].is == TP_IS_DIVIDED) /* as all others before they are divided */
        g->values[logits].dim[1] = p->of[ce.in[1]].length;
    if (p->of[ce.in[0]].is == TP_IS_ROWS)
        g->values[logits].dim[0] = p->of[ce.in[0]].length;
    tp_node *n = &g->nodes[node];
    n->op = TP_OP_cross_entropy;
    n->attrs = (tp_attrs){.temperature = ce.attrs.temperature};
    n->n_in = 3;
    n->in[0] = logits;
    n->in[1] = ce.in[2];
    n->in[2] = ce.in[3];
    n->in[3] = 0;
}

/* Of a weight that is divided by inputs the norms of its outputs: squares are summed first. */
static bool is_norm_of_parts(const tp_sharing *p, const tp_node *n)
{
    const tp_standing w = p->of[n->in[0]];
    return n->op == TP_OP_dora_norm && !n->attrs.part && w.is == TP_IS_DIVIDED &&
           w.axis == !n->attrs.transposed;
}

static void take_squares_out(tp_sharing *p, uint32_t node)
{
    tp_graph *g = p->g;
    tp_node norm = g->nodes[node];
    g->phase = norm.phase;
    g->block = norm.block;
    norm.attrs.part = 1;
    tp_ref squares = tp_graph_op(g, TP_OP_dora_norm, &norm.attrs, 3, norm.in, norm.label);
    tp_node *n = &g->nodes[node];
    n->op = TP_OP_root;
    n->attrs = (tp_attrs){0};
    n->n_in = 1;
    n->in[0] = squares;
}

/* Logits stay where they are: ranks tell each other the largest, the sum and the target's. */
static void join_losses(tp_sharing *p, uint32_t node)
{
    tp_graph *g = p->g;
    const tp_node ce = g->nodes[node];
    tp_attrs attrs = {
        .n0 = ranks_of(p), .n1 = p->options->tensor.index, .temperature = ce.attrs.temperature};
    tp_ref in[] = {ce.in[0], shifted(p, node, ce.in[1], p->of[ce.in[0]].length), ce.in[2]};
    g->values[ce.in[0]].is_exact = true;
    tp_ref stats = emit(p, node, TP_OP_cross_entropy_part, &attrs, 3, in);
    p->of[stats].is = TP_IS_SUM;
    tp_ref all = tp_sharing_whole(p, stats);
    tp_node *n = &g->nodes[node];
    n->op = TP_OP_cross_entropy_join;
    n->attrs = (tp_attrs){.n0 = ranks_of(p)};
    n->n_in = 2;
    n->in[0] = all;
    n->in[1] = ce.in[2];
    n->in[2] = 0;
    tp_sharing_put(p, node);
}

/* Of what every rank has the squares are counted by the first. */
static bool is_counted_elsewhere(const tp_sharing *p, const tp_node *n)
{
    return n->op == TP_OP_sumsq && p->options->tensor.index > 0 &&
           p->of[n->in[0]].is == TP_IS_WHOLE;
}

/* Everything that it reads is whole. */
static tp_status keep_whole(tp_sharing *p, uint32_t node)
{
    const tp_node *n = &p->g->nodes[node];
    if (is_counted_elsewhere(p, n)) {
        tp_graph_replace(p->g, n->out[0], n->in[1], node + 1);
        p->g->nodes[node].is_dead = true;
        tp_sharing_put(p, node);
        return TP_OK;
    }
    bool stays_sum = keeps_terms(p, n);
    bool is_squares = n->op == TP_OP_sumsq;
    for (int k = 0; k < p->g->nodes[node].n_in && !is_squares; k++) {
        tp_ref in = p->g->nodes[node].in[k];
        if (stays_sum && p->of[in].is != TP_IS_ROWS)
            continue;
        TP_TRY(read_whole(p, node, k));
        p->is_settled[in] = true;
    }
    n = &p->g->nodes[node];
    if (stays_sum || is_squares)
        p->of[n->out[0]] =
            (tp_standing){.is = TP_IS_SUM, .has_tokens = stays_sum && makes_tokens(p, n, 0)};
    if (stays_sum)
        make_exact(p, n, 0);
    tp_sharing_put(p, node);
    return TP_OK;
}

static tp_status visit(tp_sharing *p, uint32_t node)
{
    tp_graph *g = p->g;
    tp_way w;
    for (int k = 0; k < g->nodes[node].n_in; k++)
        settle(p, g->nodes[node].in[k]);
    bool has_product = g->nodes[node].op == TP_OP_linear_ce;
    if (has_product || is_norm_of_parts(p, &g->nodes[node])) {
        (has_product ? take_product_out : take_squares_out)(p, node);
        TP_TRY(visit(p, g->n_nodes - 1));
    }
    const tp_node *n = &g->nodes[node];
    if (n->op == TP_OP_cross_entropy && p->of[n->in[0]].is == TP_IS_DIVIDED) {
        join_losses(p, node);
        return TP_OK;
    }
    if (tp_ops[n->op]->traits & TP_OP_SOURCE) {
        tp_sharing_put(p, node);
        return TP_OK;
    }
    return choose(p, n, &w) ? divide(p, node, &w) : keep_whole(p, node);
}

/* ---- the graph ---- */

/* Gradients of what is whole are added up in their place. */
static void finish_outputs(tp_sharing *p)
{
    tp_graph *g = p->g;
    for (uint32_t k = 0; k < g->n_outputs; k++) {
        tp_ref out = g->outputs[k];
        const tp_tensor *t = g->values[tp_graph_memory(g, out)].tensor;
        bool is_partial = p->of[out].is == TP_IS_SUM || p->of[out].is == TP_IS_ROWS;
        if (!is_partial || (t && !t->of)) /* the squares are added up by the session */
            continue;
        tp_ref all =
            t ? tp_sharing_talk(p, TP_OP_all_reduce_tensor, out) : tp_sharing_whole(p, out);
        g->outputs[k] = all;
    }
}

static tp_status join(tp_graph *g, tp_graph *const *set, size_t n_set,
                      const tp_pass_options *options, bool *changed, tp_error *err)
{
    if (options->tensor.count < 2 || g->weights_stay) /* those are read whole: shard.c */
        return TP_OK;
    uint32_t n_nodes = g->n_nodes;
    size_t most = 16 * (size_t)n_nodes + 4 * g->n_outputs + 16, values = g->n_values + most;
    tp_sharing p = {.g = g, .set = set, .n_set = n_set, .options = options, .err = err};
    p.of = tp_arena_array(&g->arena, tp_standing, values);
    p.added_up = tp_arena_array(&g->arena, tp_ref, values);
    p.in_rows = tp_arena_array(&g->arena, tp_ref, values);
    p.gathered = tp_arena_array(&g->arena, tp_ref, values);
    p.is_settled = tp_arena_array(&g->arena, bool, values);
    p.order = tp_arena_array(&g->arena, uint32_t, most);
    for (uint32_t i = 1; i < n_nodes; i++)
        TP_TRY(visit(&p, i));
    finish_outputs(&p);
    for (uint32_t i = 1; i < n_nodes; i++)
        if (g->nodes[i].op == TP_OP_state)
            settle(&p, g->nodes[i].out[0]);
    g->block = -1;
    g->phase = TP_PHASE_FORWARD;
    tp_graph_reorder(g, p.order, p.n_order);
    tp_graph_compact(g);
    *changed = true;
    return TP_OK;
}

static tp_status run(tp_graph *g, const tp_pass_options *options, bool *changed, tp_error *err)
{
    (void)g, (void)options, (void)changed, (void)err;
    return TP_OK;
}

const tp_pass tp_pass_tensor_parallel = {
    .name = "tensor-parallel",
    .promise = "ranks that share the layers have a part of every matrix",
    .run = run,
    .join = join};
