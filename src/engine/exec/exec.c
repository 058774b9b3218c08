#include "engine/exec/exec.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/platform.h"
#include "engine/exec/launch_trace.h"
#include "engine/exec/work.h"

enum { ARENA_BYTES = 512 << 20 }; /* address space for tables */

typedef struct {
    const char *name;
    tp_operand **uses; /* operands to patch */
    uint32_t n_uses, cap_uses;
    tp_operand **rows; /* operands whose rows hang on this input */
    uint32_t n_rows;
    uint32_t *launches; /* of which these compute them */
    uint32_t n_launches;
    int64_t planned; /* rows */
} input;

struct tp_exec {
    tp_arena arena;
    const tp_graph *graph;
    tp_exec_options options;
    tp_memory_plan memory;
    tp_launch *launches;
    tp_launch_info *info;
    uint32_t *node_of; /* launch -> node */
    bool *is_off;      /* launches without rows */
    double *row_share; /* of the planned rows, per launch */
    uint64_t *began;   /* per launch, in ticks, while a traced run lasts */
    uint32_t *fresh;   /* launches whose accumulator is a persistent buffer as the step left it */
    tp_launch_trace trace;
    const char *arena_base; /* of the activations, once bound */
    size_t n, n_fresh;
    size_t workspace_bytes;
    input *inputs;
    int n_inputs;
    tp_operand *outputs;
    bool *is_read; /* value: some launch or the caller reads it */
    tp_host_fn host;
    void *host_user;
};

/* ---- creating ---- */

static tp_operand describe(const tp_exec *e, tp_ref ref)
{
    const tp_value *v = &e->graph->values[ref];
    return (tp_operand){.dtype = v->dtype,
                        .rank = v->rank,
                        .dim = {v->dim[0], v->dim[1]},
                        .stride = e->memory.places[ref].stride};
}

/* Accumulators of a launch: persistent ones hold what the step before left in them, so
 * the first micro-batch overwrites them; versions of this run are always added to.  A
 * launch knows one of the two. */
static tp_status note_accumulators(tp_exec *e, const tp_node *n, tp_error *err)
{
    int persistent = 0, versions = 0;
    for (int k = 0; k < n->n_out && (tp_ops[n->op]->traits & TP_OP_ACCUMULATES); k++) {
        tp_ref acc = tp_overwrites(n, k);
        bool is_source = (tp_ops[tp_def(e->graph, acc)->op]->traits & TP_OP_SOURCE) != 0;
        persistent += acc && is_source;
        versions += acc && !is_source;
    }
    if (persistent && versions)
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "op %s (%s) accumulates into a buffer for the first time and into another "
                       "again; share all of its weights with other nodes or none",
                       tp_ops[n->op]->name, n->label ? n->label : "unlabelled");
    if (persistent)
        e->fresh[e->n_fresh++] = (uint32_t)e->n;
    return TP_OK;
}

static tp_status make_launch(tp_exec *e, uint32_t node, tp_error *err)
{
    const tp_node *n = &e->graph->nodes[node];
    tp_launch *l = &e->launches[e->n];
    *l = (tp_launch){.op = n->op,
                     .n_in = n->n_in,
                     .n_out = n->n_out,
                     .attrs = n->attrs,
                     .threads = (uint16_t)e->options.threads,
                     .accumulate = true};
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k])
            l->in[k] = describe(e, n->in[k]);
    for (int k = 0; k < n->n_out; k++)
        l->out[k] = describe(e, n->out[k]);
    l->kernel = tp_kernel_find(e->options.backend, l);
    if (!l->kernel)
        return tp_fail(err, TP_ERR_UNSUPPORTED, "no kernel for op %s (%s)", tp_ops[n->op]->name,
                       n->label ? n->label : "unlabelled");
    l->workspace_bytes = l->kernel->workspace ? l->kernel->workspace(l) : 0;
    e->workspace_bytes =
        l->workspace_bytes > e->workspace_bytes ? l->workspace_bytes : e->workspace_bytes;
    TP_TRY(note_accumulators(e, n, err));
    tp_cost cost = tp_node_cost(e->graph, n, e->options.avg_context);
    e->info[e->n] = (tp_launch_info){.label = n->label ? n->label : tp_ops[n->op]->name,
                                     .kernel = l->kernel->name,
                                     .op = n->op,
                                     .phase = n->phase,
                                     .is_clone = n->is_clone,
                                     .block = n->block,
                                     .flops = cost.flops,
                                     .bytes = cost.bytes};
    e->node_of[e->n++] = node;
    return TP_OK;
}

static void find_reads(tp_exec *e)
{
    const tp_graph *g = e->graph;
    e->is_read = tp_arena_array(&e->arena, bool, g->n_values);
    for (uint32_t i = 1; i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i].n_in; k++)
            e->is_read[g->nodes[i].in[k]] = true;
    for (uint32_t k = 0; k < g->n_outputs; k++)
        e->is_read[g->outputs[k]] = true;
}

tp_status tp_exec_create(const tp_graph *g, const tp_exec_options *options, tp_exec **ret,
                         tp_error *err)
{
    tp_exec *e = calloc(1, sizeof *e);
    TP_ASSERT(e);
    tp_status status = tp_arena_init(&e->arena, ARENA_BYTES, err);
    if (status != TP_OK) {
        free(e);
        return status;
    }
    e->graph = g;
    e->options = *options;
    find_reads(e);
    status = tp_plan_memory(g, options->share_memory, &e->arena, &e->memory, err);
    e->launches = tp_arena_array(&e->arena, tp_launch, g->n_nodes);
    e->info = tp_arena_array(&e->arena, tp_launch_info, g->n_nodes);
    e->node_of = tp_arena_array(&e->arena, uint32_t, g->n_nodes);
    e->fresh = tp_arena_array(&e->arena, uint32_t, g->n_nodes);
    e->is_off = tp_arena_array(&e->arena, bool, g->n_nodes);
    e->row_share = tp_arena_array(&e->arena, double, g->n_nodes);
    e->began = tp_arena_array(&e->arena, uint64_t, g->n_nodes);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        e->row_share[i] = 1;
    e->inputs = tp_arena_array(&e->arena, input, g->n_nodes);
    e->outputs = tp_arena_array(&e->arena, tp_operand, g->n_outputs + 1);
    for (uint32_t i = 1; i < g->n_nodes && status == TP_OK; i++) {
        const tp_node *n = &g->nodes[i];
        if (n->op == TP_OP_input)
            e->inputs[e->n_inputs++].name = g->values[n->out[0]].name;
        if (!(tp_ops[n->op]->traits & TP_OP_SOURCE) && !e->memory.node_is_free[i])
            status = make_launch(e, i, err);
    }
    if (status != TP_OK) {
        tp_exec_free(e);
        return status;
    }
    tp_launch_trace_init(&e->trace, &e->arena, g, &e->memory, e->launches, e->info, e->node_of,
                         e->n);
    *ret = e;
    return TP_OK;
}

void tp_exec_free(tp_exec *e)
{
    if (!e)
        return;
    tp_arena_release(&e->arena);
    free(e);
}

/* ---- memory ---- */

void tp_exec_pool_fit(tp_exec_pool *pool, const tp_exec *e)
{
    if (e->memory.arena_bytes > pool->arena_bytes)
        pool->arena_bytes = e->memory.arena_bytes;
    if (e->workspace_bytes > pool->workspace_bytes)
        pool->workspace_bytes = e->workspace_bytes;
}

tp_status tp_exec_pool_alloc(tp_exec_pool *pool, tp_error *err)
{
    TP_TRY(tp_mem_alloc(TP_MEM_ACTIVATIONS, pool->arena_bytes, &pool->arena, err));
    tp_status status = tp_mem_alloc(TP_MEM_WORKSPACE, pool->workspace_bytes, &pool->workspace, err);
    if (status != TP_OK)
        tp_exec_pool_release(pool);
    return status;
}

void tp_exec_pool_release(tp_exec_pool *pool)
{
    tp_mem_free(pool->arena);
    tp_mem_free(pool->workspace);
    *pool = (tp_exec_pool){0};
}

static void add_use(tp_exec *e, const char *name, tp_operand *operand)
{
    input *in = &e->inputs[tp_exec_input(e, name)];
    if (in->n_uses == in->cap_uses) {
        in->cap_uses = in->cap_uses ? in->cap_uses * 2 : 8;
        tp_operand **uses = tp_arena_array(&e->arena, tp_operand *, in->cap_uses);
        if (in->n_uses)
            memcpy(uses, in->uses, in->n_uses * sizeof *uses);
        in->uses = uses;
    }
    in->uses[in->n_uses++] = operand;
}

static tp_status bind_operand(tp_exec *e, tp_ref ref, tp_operand *operand, const tp_states *states,
                              const tp_exec_pool *pool, tp_error *err)
{
    const tp_place *place = &e->memory.places[ref];
    const tp_value *root = &e->graph->values[place->root];
    if (place->kind == TP_PLACE_ARENA) {
        operand->data = (char *)pool->arena + e->memory.arena_offset[place->root] + place->offset;
        return TP_OK;
    }
    if (e->graph->nodes[root->node].op == TP_OP_input) {
        if (place->root != ref)
            return tp_fail(err, TP_ERR_UNSUPPORTED, "a view of input '%s' cannot be bound",
                           root->name);
        add_use(e, root->name, operand);
        return TP_OK;
    }
    const tp_state *s = tp_states_find(states, root->name);
    if (!s || !s->data)
        return tp_fail(err, TP_ERR_ARG, "tensor '%s' has no memory", root->name);
    if (s->dtype != root->dtype || s->rank != root->rank || s->dim[0] != root->dim[0] ||
        s->dim[1] != root->dim[1])
        return tp_fail(err, TP_ERR_ARG, "tensor '%s' differs from what the graph expects",
                       root->name);
    operand->data = (char *)s->data + place->offset;
    return TP_OK;
}

tp_status tp_exec_bind(tp_exec *e, const tp_states *states, const tp_exec_pool *pool, tp_error *err)
{
    TP_ASSERT(pool->arena_bytes >= e->memory.arena_bytes &&
              pool->workspace_bytes >= e->workspace_bytes);
    e->arena_base = pool->arena;
    for (int i = 0; i < e->n_inputs; i++)
        e->inputs[i].n_uses = 0;
    for (size_t i = 0; i < e->n; i++) {
        const tp_node *n = &e->graph->nodes[e->node_of[i]];
        tp_launch *l = &e->launches[i];
        l->workspace = pool->workspace;
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k])
                TP_TRY(bind_operand(e, n->in[k], &l->in[k], states, pool, err));
        for (int k = 0; k < n->n_out; k++)
            TP_TRY(bind_operand(e, n->out[k], &l->out[k], states, pool, err));
        for (int k = 0; k < n->n_out; k++) /* kernels leave out what nobody reads */
            if (!e->is_read[n->out[k]] && !tp_overwrites(n, k))
                l->out[k].data = NULL;
    }
    for (uint32_t k = 0; k < e->graph->n_outputs; k++) {
        e->outputs[k] = describe(e, e->graph->outputs[k]);
        TP_TRY(bind_operand(e, e->graph->outputs[k], &e->outputs[k], states, pool, err));
    }
    return TP_OK;
}

int tp_exec_input(const tp_exec *e, const char *name)
{
    for (int i = 0; i < e->n_inputs; i++)
        if (strcmp(e->inputs[i].name, name) == 0)
            return i;
    return -1;
}

void tp_exec_set_input(tp_exec *e, int index, const void *data)
{
    if (index < 0)
        return;
    for (uint32_t i = 0; i < e->inputs[index].n_uses; i++)
        e->inputs[index].uses[i]->data = (void *)(uintptr_t)data;
}

const tp_operand *tp_exec_output(const tp_exec *e, uint32_t k)
{
    TP_ASSERT(k < e->graph->n_outputs);
    return &e->outputs[k];
}

/* ---- fewer rows ---- */

/* Per value: 1 + the input on which its rows hang, or 0. */
static uint32_t *row_owners(const tp_exec *e, tp_arena *arena)
{
    const tp_graph *g = e->graph;
    uint32_t *owner = tp_arena_array(arena, uint32_t, g->n_values);
    for (uint32_t i = 1; i < g->n_nodes; i++) {
        const tp_node *n = &g->nodes[i];
        for (int k = 0; k < n->n_out; k++) {
            if (n->op == TP_OP_input)
                owner[n->out[k]] = (uint32_t)tp_exec_input(e, g->values[n->out[k]].name) + 1;
            else if (n->n_in > 0 && !tp_overwrites(n, k))
                owner[n->out[k]] = owner[n->in[0]];
        }
    }
    return owner;
}

/* Inputs of the same length that a node reads beside its first operand (positions beside
 * tokens) are given their rows by their own. */
static void list_rows(tp_exec *e, int which)
{
    input *in = &e->inputs[which];
    size_t most = e->n * (TP_MAX_IN + TP_MAX_OUT) + e->graph->n_outputs;
    in->rows = tp_arena_array(&e->arena, tp_operand *, most);
    in->launches = tp_arena_array(&e->arena, uint32_t, e->n);
    uint32_t *owner = row_owners(e, &e->arena);
    for (size_t i = 0; i < e->n; i++) {
        const tp_node *n = &e->graph->nodes[e->node_of[i]];
        tp_launch *l = &e->launches[i];
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k] && owner[n->in[k]] == (uint32_t)which + 1)
                in->rows[in->n_rows++] = &l->in[k];
        for (int k = 0; k < n->n_out; k++)
            if (owner[n->out[k]] == (uint32_t)which + 1)
                in->rows[in->n_rows++] = &l->out[k];
        if (n->n_in == 0 || owner[n->in[0]] != (uint32_t)which + 1)
            continue;
        in->launches[in->n_launches++] = (uint32_t)i;
        in->planned = TP_MAX(in->planned, l->in[0].dim[0]);
        e->info[i].varies = true;
        tp_launch_trace_vary(&e->trace, i, &e->arena, l, &e->info[i]);
    }
    for (uint32_t k = 0; k < e->graph->n_outputs; k++)
        if (owner[e->graph->outputs[k]] == (uint32_t)which + 1)
            in->rows[in->n_rows++] = &e->outputs[k];
}

void tp_exec_set_rows(tp_exec *e, int index, int64_t n)
{
    if (index < 0)
        return;
    input *in = &e->inputs[index];
    if (!in->rows)
        list_rows(e, index);
    for (uint32_t i = 0; i < in->n_rows; i++)
        in->rows[i]->dim[0] = n;
    for (uint32_t i = 0; i < in->n_launches; i++) {
        e->is_off[in->launches[i]] = n == 0;
        e->row_share[in->launches[i]] = (double)n / (double)TP_MAX(in->planned, 1);
    }
}

/* ---- running ---- */

static void set_accumulate(tp_exec *e, bool accumulate)
{
    for (size_t i = 0; i < e->n_fresh; i++)
        e->launches[e->fresh[i]].accumulate = accumulate;
}

void tp_exec_set_host(tp_exec *e, tp_host_fn fn, void *user)
{
    e->host = fn;
    e->host_user = user;
}

/* Looked at before: what a launch reads may be overwritten by what it writes. */
static tp_cost count_work(tp_exec *e, size_t i)
{
    tp_launch_info *info = &e->info[i];
    tp_cost cost = {.flops = info->flops, .bytes = info->bytes};
    if (tp_work_depends_on_data(info->op))
        cost = tp_work_of(&e->launches[i], cost, e->options.avg_context);
    info->done_flops += e->row_share[i] * cost.flops;
    info->done_bytes += e->row_share[i] * cost.bytes;
    return cost;
}

static void launch(const tp_exec *e, const tp_launch *l)
{
    l->kernel->run(l);
    if (l->op == TP_OP_host && e->host)
        e->host(e->host_user, l->in[0].data, l->out[0].data, l->in[0].dim[0]);
}

static void add_time(tp_exec *e, size_t i, uint64_t ns)
{
    e->info[i].ns += ns;
    e->info[i].count++;
}

/* Each launch lasted from where it began until the next one did, the last one until `end`, in
 * ticks of which all together are `ns`. */
static void add_times(tp_exec *e, uint64_t end, uint64_t ns)
{
    size_t first = 0;
    while (first < e->n && e->is_off[first])
        first++;
    if (first == e->n)
        return;
    double scale = end > e->began[first] ? (double)ns / (double)(end - e->began[first]) : 0;
    for (size_t i = e->n; i-- > first;) {
        if (e->is_off[i])
            continue;
        /* 0: recording was paused meanwhile */
        uint64_t began = e->began[i] && e->began[i] < end ? e->began[i] : end;
        add_time(e, i, (uint64_t)(scale * (double)(end - began)));
        end = began;
    }
}

/* A zone that is recorded reads the counter when it begins: asking the system's clock as well
 * would cost more than the event. */
static void run_traced(tp_exec *e)
{
    bool has_ticks = tp_trace_records_ticks();
    uint64_t from = tp_clock_ns();
    for (size_t i = 0; i < e->n; i++) {
        if (e->is_off[i]) {
            tp_launch_trace_skip(&e->trace, i, e->arena_base);
            continue;
        }
        tp_zone zone = tp_launch_trace_begin(&e->trace, i, e->arena_base);
        e->began[i] = has_ticks ? zone.start : tp_clock_ns();
        tp_cost cost = count_work(e, i);
        launch(e, &e->launches[i]);
        tp_launch_trace_end(&e->trace, i, e->arena_base, &zone, cost);
    }
    uint64_t until = tp_clock_ns();
    add_times(e, has_ticks ? tp_zone_begin(e->trace.sites).start : until, until - from);
}

void tp_exec_run(tp_exec *e, bool accumulate)
{
    set_accumulate(e, accumulate);
    if (tp_trace_enabled()) {
        run_traced(e);
        return;
    }
    uint64_t start = tp_clock_ns();
    for (size_t i = 0; i < e->n; i++) {
        if (e->is_off[i])
            continue;
        (void)count_work(e, i);
        launch(e, &e->launches[i]);
        uint64_t end = tp_clock_ns();
        add_time(e, i, end - start);
        start = end;
    }
}

static bool element_is_finite(const tp_operand *o, size_t at)
{
    switch (o->dtype) {
    case TP_DTYPE_F32:
        return isfinite(((const float *)o->data)[at]);
    case TP_DTYPE_BF16:
        return isfinite(tp_bf16_to_f32(((const tp_bf16 *)o->data)[at]));
    case TP_DTYPE_F16:
        return (((const uint16_t *)o->data)[at] & 0x7c00u) != 0x7c00u;
    case TP_DTYPE_F64:
        return isfinite(((const double *)o->data)[at]);
    default:
        return true;
    }
}

static bool row_is_finite(const tp_operand *o, int64_t row)
{
    for (int64_t j = 0; j < o->dim[1]; j++)
        if (!element_is_finite(o, (size_t)(row * o->stride + j)))
            return false;
    return true;
}

static bool is_finite(const tp_operand *o)
{
    if (!o->data)
        return true;
    for (int64_t i = 0; i < o->dim[0]; i++)
        if (!row_is_finite(o, i))
            return false;
    return true;
}

void tp_exec_run_checked(tp_exec *e, bool accumulate, int *ret_first_bad)
{
    *ret_first_bad = -1;
    set_accumulate(e, accumulate);
    for (size_t i = 0; i < e->n; i++) {
        launch(e, &e->launches[i]);
        for (int k = 0; k < e->launches[i].n_out && *ret_first_bad < 0; k++)
            if (!is_finite(&e->launches[i].out[k]))
                *ret_first_bad = (int)i;
    }
}

/* ---- reports ---- */

size_t tp_exec_launch_count(const tp_exec *e) { return e->n; }

const tp_launch_info *tp_exec_launch(const tp_exec *e, size_t i) { return &e->info[i]; }

void tp_exec_reset_times(tp_exec *e)
{
    for (size_t i = 0; i < e->n; i++) {
        e->info[i].ns = e->info[i].count = 0;
        e->info[i].done_flops = e->info[i].done_bytes = 0;
    }
}

size_t tp_exec_arena_bytes(const tp_exec *e) { return e->memory.arena_bytes; }

size_t tp_exec_workspace_bytes(const tp_exec *e) { return e->workspace_bytes; }

size_t tp_exec_live_peak_bytes(const tp_exec *e) { return e->memory.live_peak_bytes; }

double tp_exec_flops(const tp_exec *e, bool contractions_only)
{
    double sum = 0;
    for (size_t i = 0; i < e->n; i++)
        if (!contractions_only || (tp_ops[e->info[i].op]->traits & TP_OP_CONTRACTS))
            sum += e->info[i].flops;
    return sum;
}

double tp_exec_bytes(const tp_exec *e)
{
    double sum = 0;
    for (size_t i = 0; i < e->n; i++)
        sum += e->info[i].bytes;
    return sum;
}

static void print_operand(const tp_exec *e, tp_ref ref, tp_buf *out)
{
    if (!ref) {
        tp_buf_adds(out, " _");
        return;
    }
    const tp_value *v = &e->graph->values[ref];
    const tp_place *place = &e->memory.places[ref];
    tp_buf_addf(out, " %s[%lld,%lld]", tp_dtype_name(v->dtype), (long long)v->dim[0],
                (long long)v->dim[1]);
    if (place->kind == TP_PLACE_ARENA)
        tp_buf_addf(out, "@%zu", e->memory.arena_offset[place->root] + place->offset);
    else
        tp_buf_addf(out, "@%s", e->graph->values[place->root].name);
}

void tp_exec_print(const tp_exec *e, tp_buf *out)
{
    tp_buf_addf(out, "# %zu launches, arena %zu bytes, workspace %zu bytes\n", e->n,
                e->memory.arena_bytes, e->workspace_bytes);
    for (size_t i = 0; i < e->n; i++) {
        const tp_node *n = &e->graph->nodes[e->node_of[i]];
        tp_buf_addf(out, "%4zu %-28s %-36s", i, e->info[i].kernel, e->info[i].label);
        for (int k = 0; k < n->n_in; k++)
            print_operand(e, n->in[k], out);
        tp_buf_adds(out, " ->");
        for (int k = 0; k < n->n_out; k++)
            print_operand(e, n->out[k], out);
        tp_buf_addc(out, '\n');
    }
}
