/* evaluate.c - a graph run on a backend with reproducible states and inputs. */
#include "property/evaluate.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "engine/backend/ref/load.h"
#include "support/devices.h"
#include "support/draws.h"

void environment_init(environment *env, uint64_t seed, bool is_exact)
{
    *env = (environment){.is_exact = is_exact, .seed = seed};
    TP_ASSERT(tp_states_init(&env->states, NULL) == TP_OK);
}

void environment_release(environment *env) { tp_states_release(&env->states); }

static bool is_float(tp_dtype d)
{
    return d == TP_DTYPE_F32 || d == TP_DTYPE_BF16 || d == TP_DTYPE_F16;
}

static tp_dtype held(const environment *env, tp_dtype d)
{
    return env->is_exact && is_float(d) ? TP_DTYPE_F64 : d;
}

static tp_operand operand_of(const tp_tensor *s)
{
    return (tp_operand){.data = data_of(s),
                        .dtype = s->dtype,
                        .rank = s->rank,
                        .dim = {s->dim[0], s->dim[1]},
                        .stride = s->rank == 2 ? s->dim[1] : 1};
}

tp_operand environment_operand(const environment *env, const char *name)
{
    const tp_tensor *s = tp_states_find(&env->states, name);
    TP_ASSERT(s);
    return operand_of(s);
}

double element(const tp_operand *o, int64_t row, int64_t column)
{
    return o->dtype == TP_DTYPE_I32 ? (double)((const int32_t *)o->data)[row * o->stride + column]
                                    : ref_load(o, row, column);
}

void set_element(const tp_operand *o, int64_t row, int64_t column, double value)
{
    ref_store(o, row, column, value);
}

static uint64_t hash(const char *s)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
    return h;
}

/* Contents are rounded to f32 so that exact and native mode start from the same. */
static void fill_floats(const environment *env, const tp_tensor *s)
{
    tp_rng rng = tp_rng_make(env->seed, hash(s->name));
    tp_operand o = operand_of(s);
    bool is_scale = strstr(s->name, "norm") != NULL && strstr(s->name, "weight") != NULL;
    double size = s->rank == 2 ? 1.0 / sqrt((double)s->dim[1]) : 0.3;
    for (int64_t i = 0; i < s->dim[0]; i++)
        for (int64_t j = 0; j < s->dim[1]; j++)
            set_element(&o, i, j, (float)((is_scale ? 1 : 0) + size * draw_normal(&rng)));
}

static void fill_rope(const tp_tensor *s)
{
    tp_operand o = operand_of(s);
    int64_t half = s->dim[1] / 2;
    for (int64_t p = 0; p < s->dim[0]; p++)
        for (int64_t i = 0; i < half; i++) {
            double angle = (double)p * pow(10.0, -(double)i / (double)half);
            set_element(&o, p, i, (float)cos(angle));
            set_element(&o, p, half + i, (float)sin(angle));
        }
}

static void fill_shadow(const environment *env, const tp_tensor *s)
{
    tp_operand master = environment_operand(env, s->of), o = operand_of(s);
    for (int64_t i = 0; i < s->dim[0]; i++)
        for (int64_t j = 0; j < s->dim[1]; j++)
            set_element(&o, i, j, element(&master, i, j));
}

static void fill_state(const environment *env, const tp_tensor *s)
{
    if (strcmp(s->name, "rope.table") == 0)
        fill_rope(s);
    else if (s->role == TP_ROLE_COPY)
        fill_shadow(env, s);
    else if (s->role == TP_ROLE_WEIGHT)
        fill_floats(env, s);
}

static void declare_sources(environment *env, const tp_graph *g, bool shadows)
{
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        const tp_value *v = &g->values[g->nodes[i].out[0]];
        if (!(tp_ops[g->nodes[i].op]->traits & TP_OP_SOURCE) ||
            (v->tensor && v->tensor->role == TP_ROLE_COPY) != shadows ||
            tp_states_find(&env->states, v->name))
            continue;
        tp_tensor t = {.name = v->name, .role = TP_ROLE_CONSTANT, .rank = v->rank}; /* an input */
        memcpy(t.dim, v->dim, sizeof t.dim);
        t = v->tensor ? *v->tensor : t;
        t.dtype = held(env, v->dtype);
        TP_ASSERT(tp_states_declare(&env->states, &t, NULL) == TP_OK);
        TP_ASSERT(tp_states_alloc(&env->states, device_of("ref", 1), NULL) == TP_OK);
        fill_state(env, tp_states_find(&env->states, v->name));
    }
}

void environment_add(environment *env, const tp_graph *g)
{
    declare_sources(env, g, false);
    declare_sources(env, g, true);
}

void environment_spoil_gradients(environment *env)
{
    for (size_t i = 0; i < env->states.n; i++) {
        tp_operand o = operand_of(&env->states.items[i]);
        for (int64_t k = 0; env->states.items[i].role == TP_ROLE_GRADIENT && k < o.dim[0]; k++)
            for (int64_t j = 0; j < o.dim[1]; j++)
                set_element(&o, k, j, 1000);
    }
}

/* Some sequences of random lengths; the tail of the batch may be padding. */
static void fill_cu(tp_rng *rng, const tp_tensor *s, int64_t T)
{
    int32_t *cu = data_of(s);
    for (int64_t i = 1; i < s->dim[0]; i++)
        cu[i] = cu[i - 1] == T ? (int32_t)T
                               : cu[i - 1] + (int32_t)tp_rng_below(rng, (uint64_t)(T - cu[i - 1])) +
                                     (tp_rng_below(rng, 4) != 0);
}

static void fill_ids(tp_rng *rng, const tp_tensor *s, uint64_t n)
{
    for (int64_t i = 0; i < s->dim[0]; i++)
        ((int32_t *)data_of(s))[i] = (int32_t)tp_rng_below(rng, n);
}

static void fill_loss_weights(tp_rng *rng, const tp_tensor *s)
{
    tp_operand o = operand_of(s);
    for (int64_t i = 0; i < s->dim[0]; i++)
        set_element(&o, i, 0, tp_rng_below(rng, 4) ? (float)(0.1 + tp_rng_uniform(rng)) : 0);
}

void environment_next_batch(environment *env, int batch)
{
    for (size_t i = 0; i < env->states.n; i++) {
        const tp_tensor *s = &env->states.items[i];
        tp_rng rng = tp_rng_make(env->seed + (uint64_t)batch, hash(s->name));
        tp_operand o = operand_of(s);
        if (s->role != TP_ROLE_CONSTANT || strcmp(s->name, "rope.table") == 0)
            continue;
        if (strcmp(s->name, "tokens") == 0 || strcmp(s->name, "targets") == 0)
            fill_ids(&rng, s, 7); /* the smallest vocabulary */
        else if (strcmp(s->name, "positions") == 0)
            fill_ids(&rng, s, (uint64_t)s->dim[0]);
        else if (strcmp(s->name, "cu_seqlens") == 0)
            fill_cu(&rng, s, tp_states_find(&env->states, "tokens")->dim[0]);
        else if (strcmp(s->name, "loss_weights") == 0)
            fill_loss_weights(&rng, s);
        else if (strcmp(s->name, "loss_scale") == 0)
            set_element(&o, 0, 0, 2);
        else
            fill_floats(env, s);
    }
}

/* ---- running ---- */

static tp_operand new_operand(const environment *env, const tp_value *v, tp_arena *arena)
{
    tp_operand o = {.dtype = held(env, v->dtype),
                    .rank = v->rank,
                    .dim = {v->dim[0], v->dim[1]},
                    .stride = v->rank == 2 ? v->dim[1] : 1};
    size_t bytes = tp_value_count(v) * tp_dtype_size(o.dtype);
    o.data = tp_arena_alloc(arena, 1, bytes, 64);
    memset(o.data, 0xff, bytes); /* NaN: reading it before it is written shows */
    return o;
}

static void copy_columns(const tp_operand *from, int64_t from_column, const tp_operand *to,
                         int64_t to_column, int64_t n)
{
    size_t size = tp_dtype_size(from->dtype);
    for (int64_t i = 0; i < from->dim[0]; i++)
        memcpy((char *)to->data + (size_t)(i * to->stride + to_column) * size,
               (const char *)from->data + (size_t)(i * from->stride + from_column) * size,
               (size_t)n * size);
}

static void run_node(const tp_graph *g, const tp_node *n, bool accumulate, tp_operand *values,
                     tp_arena *arena)
{
    tp_launch l = {.op = n->op,
                   .n_in = n->n_in,
                   .n_out = n->n_out,
                   .attrs = n->attrs,
                   .threads = 1,
                   .accumulate = true};
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k])
            l.in[k] = values[n->in[k]];
    for (int k = 0; k < n->n_out; k++) {
        tp_ref old = tp_overwrites(n, k);
        l.out[k] = values[n->out[k]];
        if (!old)
            continue;
        /* A state is written where it is; another buffer gets a new version. */
        if (tp_def(g, tp_graph_memory(g, old))->op == TP_OP_state)
            values[n->out[k]] = l.out[k] = values[old];
        else
            copy_columns(&values[old], 0, &l.out[k], 0, l.out[k].dim[1]);
        l.in[tp_op_alias(n->op, k)] = l.out[k];
        if (tp_def(g, old)->op == TP_OP_state && (tp_ops[n->op]->traits & TP_OP_ACCUMULATES))
            l.accumulate = accumulate;
    }
    l.kernel = tp_kernel_find(device_of("ref", 1), &l);
    TP_ASSERT(l.kernel);
    l.workspace_bytes = l.kernel->workspace ? l.kernel->workspace(&l) : 0;
    l.workspace = tp_arena_alloc(arena, 1, l.workspace_bytes, 64);
    l.kernel->run(&l);
}

static void run_split(const tp_node *n, const tp_operand *values)
{
    int64_t column = 0;
    for (int k = 0; k < n->n_out; k++) {
        const tp_operand *part = &values[n->out[k]];
        copy_columns(&values[n->in[0]], column, part, 0, part->dim[1]);
        column += part->dim[1];
    }
}

tp_operand *evaluate(const tp_graph *g, environment *env, bool accumulate, tp_arena *arena)
{
    tp_operand *values = tp_arena_array(arena, tp_operand, g->n_values);
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        const tp_node *n = &g->nodes[i];
        if (tp_ops[n->op]->traits & TP_OP_SOURCE) {
            values[n->out[0]] = environment_operand(env, g->values[n->out[0]].name);
            continue;
        }
        for (int k = 0; k < n->n_out; k++)
            values[n->out[k]] = new_operand(env, &g->values[n->out[k]], arena);
        if (n->op == TP_OP_split)
            run_split(n, values);
        else
            run_node(g, n, accumulate, values, arena);
    }
    return values;
}

/* ---- comparing ---- */

double relative_distance(const tp_operand *a, const tp_operand *b)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < a->dim[0]; i++)
        for (int64_t j = 0; j < a->dim[1]; j++) {
            double x = element(a, i, j), y = element(b, i, j);
            difference += (x - y) * (x - y);
            size += x * x;
        }
    if (!isfinite(difference))
        return INFINITY;
    return difference == 0 ? 0 : sqrt(difference) / sqrt(size + 1e-30);
}

bool same_bits(const tp_operand *a, const tp_operand *b)
{
    if (a->dtype != b->dtype || a->dim[0] != b->dim[0] || a->dim[1] != b->dim[1])
        return false;
    size_t size = tp_dtype_size(a->dtype);
    for (int64_t i = 0; i < a->dim[0]; i++)
        if (memcmp((const char *)a->data + (size_t)(i * a->stride) * size,
                   (const char *)b->data + (size_t)(i * b->stride) * size,
                   (size_t)a->dim[1] * size) != 0)
            return false;
    return true;
}
