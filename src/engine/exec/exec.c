/* exec.c - from a graph to launches, their memory, and what is said of them.
 *
 * Everything here is in spans: operands get theirs when the executor is bound, and the device
 * turns them into pointers when it runs a launch. */
#include <string.h>

#include "base/platform.h"
#include "engine/exec/exec_internal.h"
#include "engine/exec/work.h"

enum {
    ARENA_BYTES = 512 << 20, /* address space for tables */
    INPUT_ALIGN = 64
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
 * the first micro-batch overwrites them; what nobody has written yet is always overwritten,
 * versions of this run are always added to.  A launch knows one of the three. */
static tp_status note_accumulators(tp_exec *e, const tp_node *n, tp_error *err)
{
    int persistent = 0, versions = 0, unwritten = 0;
    for (int k = 0; k < n->n_out && (tp_ops[n->op]->traits & TP_OP_ACCUMULATES); k++) {
        tp_ref acc = tp_overwrites(n, k);
        uint32_t traits = tp_ops[tp_def(e->graph, acc)->op]->traits;
        persistent += acc && (traits & TP_OP_SOURCE);
        unwritten += acc && (traits & TP_OP_UNWRITTEN);
        versions += acc && !(traits & (TP_OP_SOURCE | TP_OP_UNWRITTEN));
    }
    if ((persistent && versions) || (unwritten && (persistent || versions)))
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "op %s (%s) accumulates into a buffer for the first time and into another "
                       "again; share all of its weights with other nodes or none",
                       tp_ops[n->op]->name, n->label ? n->label : "unlabelled");
    if (persistent)
        e->fresh[e->n_fresh++] = (uint32_t)e->n;
    if (unwritten)
        e->launches[e->n].accumulate = false;
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
                     .threads = (uint16_t)tp_device_threads(e->options.device),
                     .accumulate = true};
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k])
            l->in[k] = describe(e, n->in[k]);
    for (int k = 0; k < n->n_out; k++)
        l->out[k] = describe(e, n->out[k]);
    l->kernel = tp_tuned_kernel(e->options.device, l, e->options.tuning,
                                tp_kernel_find(e->options.device, l));
    if (!l->kernel)
        return tp_fail(err, TP_ERR_UNSUPPORTED, "device '%s' has no kernel for op %s (%s)",
                       tp_device_name(e->options.device), tp_ops[n->op]->name,
                       n->label ? n->label : "unlabelled");
    l->workspace_bytes = tp_kernel_workspace(l->kernel, l);
    e->workspace_bytes =
        l->workspace_bytes > e->workspace_bytes ? l->workspace_bytes : e->workspace_bytes;
    TP_TRY(note_accumulators(e, n, err));
    tp_cost cost = tp_node_cost(e->graph, n, e->options.avg_context);
    bool by_rows = n->n_in > 0 && e->rows[n->in[0]].of[0].input;
    e->info[e->n] =
        (tp_launch_info){.label = n->label ? n->label : tp_ops[n->op]->name,
                         .kernel = l->kernel->name,
                         .op = n->op,
                         .phase = n->phase,
                         .is_clone = n->is_clone,
                         .block = n->block,
                         .by_rows = by_rows,
                         .flops = cost.flops,
                         .bytes = cost.bytes,
                         .row_bytes = !by_rows               ? 0
                                      : tp_ops[n->op]->bytes ? cost.bytes
                                                             : tp_rows_bytes(e->graph, n, e->rows)};
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

/* Inputs one behind another, each at a line of its own. */
static void place_input(tp_exec *e, const tp_value *v)
{
    int64_t columns = v->rank == 2 ? v->dim[1] : 1;
    tp_exec_input_place *in = &e->inputs[e->n_inputs++];
    in->name = v->name;
    in->ref = (tp_ref)(v - e->graph->values);
    in->n = v->dim[0];
    in->row_bytes = (size_t)columns * tp_dtype_size(v->dtype);
    in->offset = e->input_bytes;
    size_t bytes = (size_t)in->n * in->row_bytes;
    e->input_bytes += (bytes + INPUT_ALIGN - 1) / INPUT_ALIGN * INPUT_ALIGN;
}

static void find_deciding_values(tp_exec *e)
{
    for (size_t i = 0; i < e->n; i++) {
        int k = tp_work_operand(e->launches[i].op);
        tp_ref ref = k >= 0 ? e->graph->nodes[e->node_of[i]].in[k] : 0;
        if (ref && tp_def(e->graph, ref)->op == TP_OP_input)
            e->decided_by[i] = 1 + tp_exec_input(e, e->graph->values[ref].name);
        if (ref && tp_def(e->graph, ref)->op == TP_OP_host)
            e->decided_by[i] = TP_EXEC_BY_HOST;
    }
}

/* Room on the host for what a `host` launch reads and writes. */
static tp_status make_host_room(tp_exec *e, tp_error *err)
{
    size_t most = 0;
    for (size_t i = 0; i < e->n; i++)
        if (e->launches[i].op == TP_OP_host)
            most = TP_MAX(most, (size_t)e->launches[i].in[0].dim[0]);
    if (most == 0)
        return TP_OK;
    e->host_x = calloc(2 * most, sizeof *e->host_x);
    if (!e->host_x)
        return tp_fail(err, TP_ERR_NOMEM, "cannot plan a callback of %zu values: out of memory",
                       most);
    e->host_y = e->host_x + most;
    return TP_OK;
}

/* ---- fewer rows ---- */

/* What ranks exchange keeps its size: it is planned for all of them. */
static bool keeps_rows(const tp_launch *l) { return tp_ops[l->op]->traits & TP_OP_COMMUNICATES; }

static void list_dims(const tp_exec *e, tp_ref ref, tp_operand *operand, tp_exec_input_place *in)
{
    for (int d = 0; d < operand->rank; d++)
        if (e->rows[ref].of[d].input == in->ref)
            in->dims[in->n_dims++] = (tp_exec_row_dim){&operand->dim[d], e->rows[ref].of[d]};
}

/* Inputs of the same length that a node reads beside its first operand (positions beside
 * tokens) are given their rows by their own. */
static void list_rows(tp_exec *e, tp_exec_input_place *in)
{
    size_t most = e->n * (TP_MAX_IN + TP_MAX_OUT) + e->graph->n_outputs;
    in->dims = tp_arena_array(&e->arena, tp_exec_row_dim, most);
    in->launches = tp_arena_array(&e->arena, tp_exec_row_launch, e->n);
    for (size_t i = 0; i < e->n; i++) {
        const tp_node *n = &e->graph->nodes[e->node_of[i]];
        tp_launch *l = &e->launches[i];
        if (keeps_rows(l))
            continue;
        for (int k = 0; k < n->n_in; k++)
            list_dims(e, n->in[k], &l->in[k], in);
        for (int k = 0; k < n->n_out; k++)
            list_dims(e, n->out[k], &l->out[k], in);
        if (n->n_in == 0 || e->rows[n->in[0]].of[0].input != in->ref)
            continue;
        in->launches[in->n_launches++] = (tp_exec_row_launch){(uint32_t)i, e->rows[n->in[0]].of[0]};
        l->planned_rows = e->graph->values[n->in[0]].dim[0];
        e->info[i].varies = true;
        tp_launch_trace_vary(&e->trace, i, &e->arena, l, &e->info[i]);
    }
    for (uint32_t k = 0; k < e->graph->n_outputs; k++)
        list_dims(e, e->graph->outputs[k], &e->outputs[k], in);
}

/* A rank without rows of a share still has a gradient to begin with. */
static void set_launch_rows(tp_exec *e, const tp_exec_row_launch *at, int64_t n)
{
    const tp_launch *l = &e->launches[at->launch];
    int64_t rows = tp_rows_of(&at->rows, n);
    bool begins = n > 0 && (tp_ops[l->op]->traits & TP_OP_ACCUMULATES);
    e->is_off[at->launch] = rows == 0 && !begins;
    e->row_share[at->launch] = (double)rows / (double)l->planned_rows;
}

void tp_exec_set_rows(tp_exec *e, int index, int64_t n)
{
    if (index < 0)
        return;
    tp_exec_input_place *in = &e->inputs[index];
    TP_ASSERT(n >= 0 && n <= in->n);
    if (!in->dims && n == in->n)
        return;
    if (!in->dims)
        list_rows(e, in);
    for (uint32_t i = 0; i < in->n_dims; i++)
        *in->dims[i].dim = tp_rows_of(&in->dims[i].rows, n);
    for (uint32_t i = 0; i < in->n_launches; i++)
        set_launch_rows(e, &in->launches[i], n);
}

static bool has_shares(const tp_exec *e, const tp_exec_input_place *in)
{
    for (uint32_t ref = 0; ref < e->graph->n_values; ref++)
        if (e->rows[ref].of[0].input == in->ref && e->rows[ref].of[0].most > 0)
            return true;
    return false;
}

/* Of rows that ranks share the last of them may have fewer than is planned. */
static void set_shares(tp_exec *e)
{
    for (int i = 0; i < e->n_inputs; i++)
        if (has_shares(e, &e->inputs[i])) {
            list_rows(e, &e->inputs[i]);
            tp_exec_set_rows(e, i, e->inputs[i].n);
        }
}

/* ---- created ---- */

tp_status tp_exec_create(const tp_graph *g, const tp_exec_options *options, tp_exec **ret,
                         tp_error *err)
{
    tp_exec *e = tp_new(1, sizeof *e);
    tp_status status = tp_arena_init(&e->arena, ARENA_BYTES, err);
    if (status != TP_OK) {
        free(e);
        return status;
    }
    e->graph = g;
    e->options = *options;
    find_reads(e);
    e->rows = tp_rows_find(g, &e->arena);
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
    e->inputs = tp_arena_array(&e->arena, tp_exec_input_place, g->n_nodes);
    e->outputs = tp_arena_array(&e->arena, tp_operand, g->n_outputs + 1);
    for (uint32_t i = 1; i < g->n_nodes && status == TP_OK; i++) {
        const tp_node *n = &g->nodes[i];
        if (n->op == TP_OP_input)
            place_input(e, &g->values[n->out[0]]);
        if (!(tp_ops[n->op]->traits & TP_OP_SOURCE) && !e->memory.node_is_free[i])
            status = make_launch(e, i, err);
    }
    e->decided_by = tp_arena_array(&e->arena, int, e->n + 1);
    find_deciding_values(e);
    e->traffic = tp_traffic_plan(&options->ranks, e->launches, e->n, &e->arena);
    e->talk = TP_TALK_ALL;
    if (status == TP_OK)
        status = make_host_room(e, err);
    if (status != TP_OK) {
        tp_exec_free(e);
        return status;
    }
    tp_launch_trace_init(&e->trace, &e->arena, g, &e->memory, e->launches, e->info, e->node_of,
                         e->n);
    set_shares(e);
    *ret = e;
    return TP_OK;
}

void tp_exec_free(tp_exec *e)
{
    if (!e)
        return;
    tp_arena_release(&e->arena);
    free(e->host_x);
    free(e);
}

/* ---- memory ---- */

void tp_exec_pool_fit(tp_exec_pool *pool, const tp_exec *e)
{
    pool->arena_bytes = TP_MAX(pool->arena_bytes, e->memory.arena_bytes);
    pool->workspace_bytes = TP_MAX(pool->workspace_bytes, e->workspace_bytes);
    pool->input_bytes = TP_MAX(pool->input_bytes, e->input_bytes);
    pool->staging_bytes = TP_MAX(pool->staging_bytes, tp_traffic_staging_bytes(e->traffic));
}

tp_status tp_exec_pool_alloc(tp_exec_pool *pool, tp_device *device, tp_error *err)
{
    tp_status status =
        tp_buffer_alloc(device, TP_MEM_ACTIVATIONS, pool->arena_bytes, &pool->arena, err);
    if (status == TP_OK)
        status =
            tp_buffer_alloc(device, TP_MEM_WORKSPACE, pool->workspace_bytes, &pool->workspace, err);
    if (status == TP_OK)
        status = tp_buffer_alloc(device, TP_MEM_DATA, pool->input_bytes, &pool->inputs, err);
    if (status == TP_OK && pool->staging_bytes)
        status = tp_mem_alloc(TP_MEM_WORKSPACE, pool->staging_bytes, &pool->staging, err);
    if (status != TP_OK)
        tp_exec_pool_release(pool);
    return status;
}

void tp_exec_pool_release(tp_exec_pool *pool)
{
    tp_buffer_free(pool->arena);
    tp_buffer_free(pool->workspace);
    tp_buffer_free(pool->inputs);
    tp_mem_free(pool->staging);
    *pool = (tp_exec_pool){0};
}

static tp_status bind_operand(tp_exec *e, tp_ref ref, tp_operand *operand, const tp_states *states,
                              const tp_exec_pool *pool, tp_error *err)
{
    const tp_place *place = &e->memory.places[ref];
    const tp_value *root = &e->graph->values[place->root];
    if (place->kind == TP_PLACE_ARENA) {
        operand->span = (tp_span){pool->arena, e->memory.arena_offset[place->root] + place->offset};
        return TP_OK;
    }
    if (e->graph->nodes[root->node].op == TP_OP_input) {
        if (place->root != ref)
            return tp_fail(err, TP_ERR_UNSUPPORTED, "a view of input '%s' cannot be bound",
                           root->name);
        operand->span = (tp_span){pool->inputs, e->inputs[tp_exec_input(e, root->name)].offset};
        return TP_OK;
    }
    const tp_tensor *s = tp_states_find(states, root->name);
    if (!s || !s->span.buffer)
        return tp_fail(err, TP_ERR_ARG, "tensor '%s' has no memory", root->name);
    if (s->dtype != root->dtype || s->rank != root->rank || s->dim[0] != root->dim[0] ||
        s->dim[1] != root->dim[1])
        return tp_fail(err, TP_ERR_ARG, "tensor '%s' differs from what the graph expects",
                       root->name);
    operand->span = (tp_span){s->span.buffer, s->span.offset + place->offset};
    return TP_OK;
}

tp_status tp_exec_bind(tp_exec *e, const tp_states *states, const tp_exec_pool *pool, tp_error *err)
{
    TP_ASSERT(pool->arena_bytes >= e->memory.arena_bytes &&
              pool->workspace_bytes >= e->workspace_bytes && pool->input_bytes >= e->input_bytes);
    e->arena_base = (const char *)(uintptr_t)tp_span_address((tp_span){pool->arena, 0});
    e->input_buffer = pool->inputs;
    tp_traffic_bind(e->traffic, pool->staging);
    for (size_t i = 0; i < e->n; i++) {
        const tp_node *n = &e->graph->nodes[e->node_of[i]];
        tp_launch *l = &e->launches[i];
        l->workspace_span = (tp_span){pool->workspace, 0};
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k])
                TP_TRY(bind_operand(e, n->in[k], &l->in[k], states, pool, err));
        for (int k = 0; k < n->n_out; k++)
            TP_TRY(bind_operand(e, n->out[k], &l->out[k], states, pool, err));
        for (int k = 0; k < n->n_out; k++) /* kernels leave out what nobody reads */
            if (!e->is_read[n->out[k]] && !tp_overwrites(n, k))
                l->out[k].span = (tp_span){0};
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

tp_status tp_exec_write(tp_exec *e, int index, const void *data, int64_t rows, tp_error *err)
{
    if (index < 0)
        return TP_OK;
    tp_exec_input_place *in = &e->inputs[index];
    TP_ASSERT(rows <= in->n);
    in->host = data;
    size_t n = (size_t)(rows < 0 ? in->n : rows);
    return tp_span_write_early((tp_span){e->input_buffer, in->offset}, data, n * in->row_bytes,
                               err);
}

tp_status tp_exec_read(const tp_exec *e, uint32_t k, size_t offset, void *to, size_t bytes,
                       tp_error *err)
{
    tp_span from = tp_exec_output(e, k)->span;
    from.offset += offset;
    return tp_span_read(to, from, bytes, err);
}

const tp_operand *tp_exec_output(const tp_exec *e, uint32_t k)
{
    TP_ASSERT(k < e->graph->n_outputs);
    return &e->outputs[k];
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

void tp_exec_set_counted(tp_exec *e, bool is_counted) { e->is_uncounted = !is_counted; }

size_t tp_exec_arena_bytes(const tp_exec *e) { return e->memory.arena_bytes; }

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
