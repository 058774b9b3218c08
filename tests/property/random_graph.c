/* random_graph.c - random graphs of real ops, from a seed. */
#include "property/random_graph.h"

enum { MAX_PARAMS = 256, MAX_POOL = 12 };

typedef struct {
    tp_graph *g;
    tp_rng rng;
    int64_t T, C, V, H, G, D, F;
    bool is_layer_norm, has_bias, is_transposed, has_rope, has_qk_norm, ties_norms, has_gradient;
    tp_ref tokens, positions, cu, rope;
    tp_ref params[MAX_PARAMS];
    uint32_t n_params;
    int n_names;
} maker;

static bool chance(maker *m, int one_in) { return tp_rng_below(&m->rng, (uint64_t)one_in) == 0; }

static int64_t choose(maker *m, int64_t least, int64_t most)
{
    return least + (int64_t)tp_rng_below(&m->rng, (uint64_t)(most - least + 1));
}

/* A weight by name; a name asked for again is the same weight. */
static tp_ref weight(maker *m, const char *name, uint8_t rank, int64_t d0, int64_t d1)
{
    tp_ref known = tp_graph_find(m->g, name);
    if (known)
        return known;
    int64_t dim[] = {d0, d1};
    tp_ref ref = tp_graph_state(
        m->g, &(tp_tensor){.name = name, .rank = rank, .dim = {dim[0], rank == 2 ? dim[1] : 1}});
    TP_ASSERT(m->n_params < MAX_PARAMS);
    m->params[m->n_params++] = ref;
    return ref;
}

static tp_ref fresh_weight(maker *m, const char *what, uint8_t rank, int64_t d0, int64_t d1)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%d", what, m->n_names++);
    return weight(m, name, rank, d0, d1);
}

static tp_ref unary(maker *m, tp_op op, tp_ref x)
{
    tp_attrs attrs = {.tanh = op == TP_OP_gelu && chance(m, 2)};
    return tp_graph_op(m->g, op, &attrs, 1, &x, NULL);
}

/* Both orders of the operands occur. */
static tp_ref binary(maker *m, tp_op op, tp_ref x, tp_ref y)
{
    tp_ref in[] = {x, y};
    if (chance(m, 2)) {
        in[0] = y;
        in[1] = x;
    }
    return tp_graph_op(m->g, op, NULL, 2, in, NULL);
}

static int64_t width(const maker *m, tp_ref x) { return m->g->values[x].dim[1]; }

static tp_ref linear(maker *m, tp_ref x, int64_t n, const char *what)
{
    bool transposed = m->is_transposed && !chance(m, 4);
    int64_t k = width(m, x);
    tp_ref w = fresh_weight(m, what, 2, transposed ? k : n, transposed ? n : k);
    tp_ref in[] = {x, w, 0};
    int n_in = chance(m, 4) ? 3 : 2;
    if (m->has_bias && !chance(m, 4)) {
        in[2] = fresh_weight(m, "bias", 1, n, 1);
        n_in = 3;
    }
    tp_attrs attrs = {.transposed = transposed};
    return tp_graph_op(m->g, TP_OP_linear, &attrs, n_in, in, what);
}

static tp_ref rmsnorm(maker *m, tp_ref x, int64_t slice)
{
    char name[64];
    snprintf(name, sizeof name, "norm.weight.%d", m->ties_norms ? (int)slice : m->n_names++);
    tp_ref in[] = {x, weight(m, name, 1, slice, 1)};
    tp_attrs attrs = {.eps = 1e-5f};
    return tp_graph_op(m->g, TP_OP_rmsnorm, &attrs, 2, in, "norm");
}

static tp_ref norm(maker *m, tp_ref x)
{
    int64_t C = width(m, x);
    if (!m->is_layer_norm || chance(m, 8))
        return rmsnorm(m, x, C);
    char scale[64], shift[64];
    int id = m->ties_norms ? (int)C : m->n_names++;
    snprintf(scale, sizeof scale, "layernorm.weight.%d", id);
    snprintf(shift, sizeof shift, "layernorm.bias.%d", id);
    tp_ref in[] = {x, weight(m, scale, 1, C, 1), weight(m, shift, 1, C, 1)};
    tp_attrs attrs = {.eps = 1e-5f};
    return tp_graph_op(m->g, TP_OP_layernorm, &attrs, 3, in, "norm");
}

static tp_ref rope(maker *m, tp_ref x)
{
    tp_ref in[] = {x, m->positions, m->rope};
    tp_attrs attrs = {.head_dim = (int32_t)m->D};
    return tp_graph_op(m->g, TP_OP_rope, &attrs, 3, in, "rope");
}

static void separate_qkv(maker *m, tp_ref x, tp_ref qkv[3])
{
    qkv[0] = linear(m, x, m->H * m->D, "q");
    qkv[1] = linear(m, x, m->G * m->D, "k");
    qkv[2] = linear(m, x, m->G * m->D, "v");
}

static void fused_qkv(maker *m, tp_ref x, tp_ref qkv[3])
{
    tp_attrs three = {
        .n0 = (int32_t)(m->H * m->D), .n1 = (int32_t)(m->G * m->D), .n2 = (int32_t)(m->G * m->D)};
    tp_ref all = linear(m, x, three.n0 + three.n1 + three.n2, "qkv");
    if (chance(m, 2)) {
        tp_ref first = tp_graph_op(m->g, TP_OP_split, &three, 1, &all, "split");
        for (tp_ref k = 0; k < 3; k++)
            qkv[k] = first + k;
        return;
    }
    /* a view of a view */
    tp_attrs outer = {.n0 = three.n0, .n1 = three.n1 + three.n2};
    tp_attrs inner = {.n0 = three.n1, .n1 = three.n2};
    qkv[0] = tp_graph_op(m->g, TP_OP_split, &outer, 1, &all, "split");
    tp_ref kv = qkv[0] + 1;
    qkv[1] = tp_graph_op(m->g, TP_OP_split, &inner, 1, &kv, "split");
    qkv[2] = qkv[1] + 1;
}

static tp_ref attention(maker *m, tp_ref x)
{
    tp_ref qkv[3];
    if (chance(m, 2))
        fused_qkv(m, x, qkv);
    else
        separate_qkv(m, x, qkv);
    for (int k = 0; k < 2 && m->has_qk_norm; k++)
        qkv[k] = rmsnorm(m, qkv[k], m->D);
    for (int k = 0; k < 2 && m->has_rope; k++)
        qkv[k] = rope(m, qkv[k]);
    tp_ref in[] = {qkv[0], qkv[1], qkv[2], m->cu};
    tp_attrs attrs = {.heads = (int32_t)m->H,
                      .kv_heads = (int32_t)m->G,
                      .head_dim = (int32_t)m->D,
                      .scale = 0.6f};
    tp_ref o = tp_graph_op(m->g, TP_OP_attention, &attrs, 4, in, "attention");
    return linear(m, o, m->C, "o");
}

static tp_ref gated_mlp(maker *m, tp_ref x)
{
    tp_ref gate, up;
    bool is_split = chance(m, 3);
    if (is_split) {
        tp_ref both = linear(m, x, 2 * m->F, "gate_up");
        tp_attrs half = {.n0 = (int32_t)m->F, .n1 = (int32_t)m->F};
        gate = tp_graph_op(m->g, TP_OP_split, &half, 1, &both, "split");
        up = gate + 1;
    } else {
        gate = linear(m, x, m->F, "gate");
        up = chance(m, 6) ? gate : linear(m, x, m->F, "up");
    }
    tp_ref act = unary(m, chance(m, 4) ? TP_OP_gelu : TP_OP_silu, gate);
    /* A split needs all of its parts read to have a gradient. */
    tp_ref product = binary(m, TP_OP_mul, act, !is_split && chance(m, 8) ? act : up);
    if (chance(m, 5)) /* the activation has a second reader */
        product = binary(m, TP_OP_add, product, act);
    return linear(m, product, m->C, "down");
}

static tp_ref plain_mlp(maker *m, tp_ref x)
{
    tp_ref h = linear(m, x, m->F, "fc");
    tp_ref act = unary(m, TP_OP_gelu, h);
    if (chance(m, 5))
        act = binary(m, TP_OP_add, act, h);
    if (chance(m, 8)) /* gelu of the same product again, perhaps of the other kind */
        act = binary(m, TP_OP_mul, act, unary(m, TP_OP_gelu, h));
    return linear(m, act, m->C, "proj");
}

static tp_ref mlp(maker *m, tp_ref x) { return chance(m, 2) ? gated_mlp(m, x) : plain_mlp(m, x); }

/* Parts of x go separate ways while x itself may be read before and after. */
static tp_ref tear(maker *m, tp_ref x)
{
    int32_t n0 = (int32_t)choose(m, 1, m->C - 1);
    tp_attrs attrs = {.n0 = n0, .n1 = (int32_t)m->C - n0};
    tp_ref part = tp_graph_op(m->g, TP_OP_split, &attrs, 1, &x, "tear"), sum = 0;
    for (tp_ref k = 0; k < 2; k++) {
        tp_ref y = chance(m, 2) ? unary(m, TP_OP_silu, part + k) : part + k;
        if (chance(m, 2))
            y = binary(m, TP_OP_mul, y, part + k);
        y = linear(m, y, m->C, "torn");
        sum = sum ? binary(m, TP_OP_add, sum, y) : y;
    }
    return sum;
}

/* Forward graphs only: concat has no gradient. */
static tp_ref join(maker *m, tp_ref x, tp_ref y)
{
    tp_ref in[] = {x, y, chance(m, 2) ? x : unary(m, TP_OP_gelu, y)};
    tp_ref inner = tp_graph_op(m->g, TP_OP_concat, NULL, chance(m, 2) ? 3 : 2, in, "join");
    if (chance(m, 2))
        inner = unary(m, TP_OP_silu, inner);
    tp_ref outer[] = {inner, unary(m, TP_OP_silu, x)};
    tp_ref all = tp_graph_op(m->g, TP_OP_concat, NULL, 2, outer, "join");
    return linear(m, all, m->C, "joined");
}

static tp_ref random_op(maker *m, tp_ref x, tp_ref y)
{
    switch (choose(m, 0, m->has_gradient ? 8 : 10)) {
    case 0:
    case 1:
        return binary(m, TP_OP_add, x, y);
    case 2:
        return binary(m, TP_OP_mul, x, y);
    case 3:
        return unary(m, TP_OP_silu, x);
    case 4:
        return unary(m, TP_OP_gelu, x);
    case 5:
        return norm(m, x);
    case 6:
        return linear(m, x, m->C, "mix");
    case 7:
        return tear(m, x);
    case 8:
        return unary(m, TP_OP_cast, x);
    default:
        return join(m, x, y);
    }
}

/* Random ops on a pool of values; what nobody reads in the end is summed up or dead. */
static tp_ref tangle(maker *m, tp_ref x)
{
    tp_ref pool[MAX_POOL] = {x};
    int n = 1;
    for (int64_t steps = choose(m, 2, MAX_POOL - 1); n <= steps; n++) {
        tp_ref a = pool[choose(m, 0, n - 1)], b = pool[choose(m, 0, n - 1)];
        pool[n] = random_op(m, a, b);
    }
    tp_ref sum = pool[n - 1];
    for (int i = 0; i < n - 1; i++)
        if (chance(m, 3))
            sum = binary(m, TP_OP_add, sum, pool[i]);
    return norm(m, sum);
}

static tp_ref block(maker *m, tp_ref x)
{
    if (chance(m, 4)) { /* both halves read the same norm */
        tp_ref n = norm(m, x);
        tp_ref both = binary(m, TP_OP_add, attention(m, n), mlp(m, n));
        return binary(m, TP_OP_add, x, both);
    }
    if (!chance(m, 4))
        x = binary(m, TP_OP_add, x, attention(m, norm(m, x)));
    if (chance(m, 3))
        x = binary(m, TP_OP_add, x, tangle(m, x));
    if (!chance(m, 4))
        x = binary(m, TP_OP_add, x, mlp(m, norm(m, x)));
    if (chance(m, 6)) /* unused */
        unary(m, TP_OP_silu, norm(m, x));
    return x;
}

static void draw_sizes(maker *m)
{
    m->T = choose(m, 3, 6);
    m->V = choose(m, 7, 11);
    m->D = 2 * choose(m, 1, 2);
    m->G = choose(m, 1, 2);
    m->H = m->G * choose(m, 1, 2);
    m->C = m->H * m->D;
    m->F = choose(m, 3, 10);
    m->is_layer_norm = chance(m, 2);
    m->has_bias = chance(m, 2);
    m->is_transposed = chance(m, 3);
    m->has_rope = chance(m, 2);
    m->has_qk_norm = chance(m, 3);
    m->ties_norms = chance(m, 4);
}

static tp_ref embedding(maker *m, tp_ref table)
{
    tp_ref in[] = {m->tokens, table};
    tp_ref x = tp_graph_op(m->g, TP_OP_embed, NULL, 2, in, "embed");
    if (chance(m, 2))
        return x;
    tp_ref learned[] = {m->positions, weight(m, "wpe", 2, m->T, m->C)};
    return binary(m, TP_OP_add, x, tp_graph_op(m->g, TP_OP_embed, NULL, 2, learned, "positions"));
}

static void declare_inputs(maker *m)
{
    int64_t sequences = choose(m, 1, 3) + 1, table[] = {m->T, m->D};
    m->tokens = tp_graph_input(m->g, "tokens", TP_DTYPE_I32, 1, &m->T);
    m->positions = tp_graph_input(m->g, "positions", TP_DTYPE_I32, 1, &m->T);
    m->cu = tp_graph_input(m->g, "cu_seqlens", TP_DTYPE_I32, 1, &sequences);
    m->rope = tp_graph_state(m->g, &(tp_tensor){.name = "rope.table",
                                                .role = TP_ROLE_CONSTANT,
                                                .rank = 2,
                                                .dim = {table[0], table[1]}});
}

static tp_ref loss_of(maker *m, tp_ref hidden, tp_ref table)
{
    tp_ref logits, head[] = {hidden, table};
    switch (choose(m, 0, 3)) {
    case 0:
        logits = linear(m, hidden, m->V, "head");
        break;
    case 1:
        head[1] = weight(m, "head", 2, m->V, m->C);
        /* fall through */
    default:
        logits = tp_graph_op(m->g, TP_OP_linear, NULL, 2, head, "head");
    }
    tp_ref in[] = {logits, tp_graph_input(m->g, "targets", TP_DTYPE_I32, 1, &m->T),
                   tp_graph_input(m->g, "loss_weights", TP_DTYPE_F32, 1, &m->T)};
    tp_ref loss = tp_graph_op(m->g, TP_OP_cross_entropy, NULL, 3, in, "loss");
    tp_graph_output(m->g, loss);
    tp_graph_output(m->g, loss + 1);
    if (chance(m, 6))
        tp_graph_output(m->g, logits);
    if (chance(m, 4))
        tp_graph_output(m->g, hidden);
    return loss;
}

static void differentiate(maker *m, tp_ref loss, bool freeze_some)
{
    int64_t one = 1;
    tp_ref scale = tp_graph_input(m->g, "loss_scale", TP_DTYPE_F32, 1, &one);
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_params; i++)
        if (!freeze_some || !chance(m, 3))
            m->params[n++] = m->params[i];
    tp_error err = {0};
    if (tp_graph_autodiff(m->g, loss, scale, m->params, n, &err) != TP_OK) {
        fprintf(stderr, "random graph: %s\n", err.message);
        abort();
    }
}

void random_graph(uint64_t seed, const random_graph_options *options, tp_graph *ret)
{
    TP_ASSERT(tp_graph_init(ret, NULL) == TP_OK);
    maker m = {.g = ret, .rng = tp_rng_make(seed, 1), .has_gradient = options->with_gradient};
    draw_sizes(&m);
    declare_inputs(&m);
    tp_ref table = weight(&m, "table", 2, m.V, m.C);
    tp_ref x = embedding(&m, table);
    for (int64_t layer = 0, n = choose(&m, 1, 3); layer < n; layer++) {
        ret->block = (int16_t)layer;
        x = block(&m, x);
    }
    ret->block = -1;
    if (!chance(&m, 4))
        x = norm(&m, x);
    tp_ref loss = loss_of(&m, x, table);
    if (options->with_gradient)
        differentiate(&m, loss, options->freeze_some);
}

void copy_graph(const tp_graph *g, tp_graph *ret)
{
    TP_ASSERT(tp_graph_init(ret, NULL) == TP_OK);
    tp_graph copy = *g;
    copy.arena = ret->arena;
    copy.cap_nodes = g->n_nodes;
    copy.cap_values = g->n_values;
    copy.cap_outputs = g->n_outputs;
    copy.nodes = tp_arena_array(&copy.arena, tp_node, g->n_nodes);
    copy.values = tp_arena_array(&copy.arena, tp_value, g->n_values);
    copy.outputs = tp_arena_array(&copy.arena, tp_ref, g->n_outputs + 1);
    memcpy(copy.nodes, g->nodes, g->n_nodes * sizeof *g->nodes);
    memcpy(copy.values, g->values, g->n_values * sizeof *g->values);
    memcpy(copy.outputs, g->outputs, g->n_outputs * sizeof *g->outputs);
    for (uint32_t i = 1; i < g->n_nodes; i++)
        if (g->nodes[i].label)
            copy.nodes[i].label = tp_arena_strdup(&copy.arena, g->nodes[i].label);
    for (uint32_t i = 1; i < g->n_values; i++)
        if (g->values[i].name)
            copy.values[i].name = tp_arena_strdup(&copy.arena, g->values[i].name);
    *ret = copy;
}
