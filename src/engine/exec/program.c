/* program.c - from a set of graphs to launches over one plan of memory. */
#include "engine/exec/program.h"

#include <string.h>

#include "base/platform.h"
#include "engine/exec/exec_build.h"
#include "engine/passes/pipeline.h"

enum { MAX_GRAPHS = 32 }; /* bits of a set of graphs */

typedef struct {
    const char *name;
    tp_states *states;
    double avg_context;
    tp_graph graph;
    tp_exec *exec; /* NULL until it is compiled */
} part;

struct tp_program {
    tp_program_options options;
    part parts[MAX_GRAPHS];
    int n;
    tp_exec_pool pool;
};

tp_status tp_program_create(const tp_program_options *options, tp_program **ret, tp_error *err)
{
    static const char *const stages[] = {"graph", "plan", NULL};
    TP_TRY(tp_passes_check(options->dump_stages, options->n_dump_stages, stages, err));
    tp_program *p = tp_new(1, sizeof *p);
    p->options = *options;
    *ret = p;
    return TP_OK;
}

void tp_program_free(tp_program *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->n; i++) {
        tp_exec_free(p->parts[i].exec);
        tp_graph_release(&p->parts[i].graph);
    }
    tp_exec_pool_release(&p->pool);
    free(p);
}

const tp_program_options *tp_program_get_options(const tp_program *p) { return &p->options; }

tp_status tp_program_add(tp_program *p, const char *name, tp_states *states, double avg_context,
                         int *ret, tp_error *err)
{
    TP_ASSERT(p->n < MAX_GRAPHS);
    part *added = &p->parts[p->n];
    TP_TRY(tp_graph_init(&added->graph, err));
    added->name = name;
    added->states = states;
    added->avg_context = avg_context;
    added->graph.parts = states->parts;
    *ret = p->n++;
    return TP_OK;
}

tp_graph *tp_program_graph(const tp_program *p, int graph)
{
    return (tp_graph *)(uintptr_t)&p->parts[graph].graph;
}

/* ---- stages as text ---- */

bool tp_program_is_stage(const char *stage, tp_buf *known)
{
    static const char *const others[] = {"graph", "plan", "fuse"};
    for (size_t i = 0; i < TP_COUNTOF(others); i++)
        if (strcmp(stage, others[i]) == 0)
            return true;
    if (tp_pass_find(stage))
        return true;
    tp_buf_adds(known, "graph, plan, fuse");
    for (const tp_pass *const *pass = tp_pass_pipeline; *pass; pass++)
        tp_buf_addf(known, ", %s", (*pass)->name);
    return false;
}

static bool is_asked_for(const tp_program *p, const char *stage)
{
    for (size_t i = 0; p->options.dump && i < p->options.n_dump_stages; i++)
        if (tp_pass_named(p->options.dump_stages[i], stage))
            return true;
    return false;
}

static void dump(const tp_program *p, const part *from, const char *stage)
{
    TP_OWN(tp_buf) text = {0};
    if (!is_asked_for(p, stage))
        return;
    if (from->exec)
        tp_exec_print(from->exec, &text);
    else
        tp_graph_print(&from->graph, &text);
    p->options.dump(p->options.dump_user, from->name, stage, tp_buf_str(&text));
}

static void observe(void *user, const char *pass, size_t graph)
{
    const tp_program *p = user;
    dump(p, &p->parts[graph], pass);
}

/* ---- compiling ---- */

static tp_status plan(tp_program *p, part *x, tp_error *err)
{
    const tp_exec_options options = {.device = p->options.device,
                                     .share_memory = p->options.share_memory,
                                     .tuning = p->options.tuning,
                                     .avg_context = x->avg_context,
                                     .ranks = p->options.ranks};
    TP_TRY(tp_exec_create(&x->graph, &options, &x->exec, err));
    tp_exec_pool_fit(&p->pool, x->exec);
    dump(p, x, "plan");
    for (uint32_t i = 1; i < x->graph.n_nodes; i++) {
        const tp_tensor *t = x->graph.values[x->graph.nodes[i].out[0]].tensor;
        if (t)
            TP_TRY(tp_states_declare(x->states, t, err));
    }
    return TP_OK;
}

tp_status tp_program_compile(tp_program *p, tp_error *err)
{
    tp_graph *set[MAX_GRAPHS];
    tp_pass_options passes = p->options.passes;
    passes.ranks = p->options.ranks.ranks;
    passes.tensor = p->options.ranks.tensor;
    passes.node = p->options.ranks.node;
    passes.part = tp_ranks_shard(&p->options.ranks);
    passes.bucket_bytes = p->options.ranks.bucket_bytes;
    passes.observe = observe;
    passes.observe_user = p;
    for (int i = 0; i < p->n; i++) {
        set[i] = &p->parts[i].graph;
        dump(p, &p->parts[i], "graph");
    }
    TP_TRY(tp_passes_run(set, (size_t)p->n, &passes, err));
    for (int i = 0; i < p->n; i++)
        TP_TRY(plan(p, &p->parts[i], err));
    return TP_OK;
}

tp_status tp_program_alloc(tp_program *p, tp_states *states, tp_error *err)
{
    TP_TRY(tp_states_alloc(states, p->options.device, err));
    if (!p->pool.arena)
        TP_TRY(tp_exec_pool_alloc(&p->pool, p->options.device, err));
    for (int i = 0; i < p->n; i++)
        if (p->parts[i].states == states)
            TP_TRY(tp_exec_bind(p->parts[i].exec, states, &p->pool, err));
    return TP_OK;
}

/* ---- running, and what it is made of ---- */

int tp_program_find(const tp_program *p, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->parts[i].name, name) == 0)
            return i;
    return -1;
}

int tp_program_count(const tp_program *p) { return p->n; }

tp_exec *tp_program_exec(const tp_program *p, int graph) { return p->parts[graph].exec; }

tp_status tp_program_run(const tp_program *p, int graph, bool accumulate, tp_error *err)
{
    return tp_exec_run(p->parts[graph].exec, accumulate, err);
}

static bool uses(const part *x, const tp_states *states, const char *tensor)
{
    return x->states == states && tp_graph_find(&x->graph, tensor) != 0;
}

/* Is this the first of the parts before `end` that has these states? */
static bool is_first_of(const tp_program *p, int i)
{
    for (int k = 0; k < i; k++)
        if (p->parts[k].states == p->parts[i].states)
            return false;
    return true;
}

void tp_program_bytes(const tp_program *p, size_t ret[TP_MEM_KINDS])
{
    memset(ret, 0, TP_MEM_KINDS * sizeof *ret);
    for (int i = 0; i < p->n; i++) {
        size_t bytes[TP_MEM_KINDS] = {0};
        if (is_first_of(p, i))
            tp_states_bytes(p->parts[i].states, bytes);
        for (int k = 0; k < TP_MEM_KINDS; k++)
            ret[k] += bytes[k];
        if (is_first_of(p, i))
            ret[TP_MEM_WORKSPACE] += tp_gathered_room(p->parts[i].states);
    }
    ret[TP_MEM_ACTIVATIONS] += p->pool.arena_bytes;
    ret[TP_MEM_WORKSPACE] += p->pool.workspace_bytes + p->pool.staging_bytes;
    ret[TP_MEM_DATA] += p->pool.input_bytes;
}

/* A part of it is used by some of the graphs. */
static bool uses_part(const part *x, const tp_states *states, const char *tensor)
{
    for (size_t i = 0; i < states->n; i++) {
        const tp_tensor *t = &states->items[i];
        if (t->within && strcmp(t->within, tensor) == 0 && uses(x, states, t->name))
            return true;
    }
    return false;
}

static void add_used_tensors(const tp_program *p, const tp_states *states, uint32_t graphs,
                             size_t ret[TP_MEM_KINDS])
{
    for (size_t t = 0; t < states->n; t++) {
        const tp_tensor *tensor = &states->items[t];
        bool is_used = false;
        for (int i = 0; i < p->n && !is_used; i++)
            is_used = (graphs >> i & 1) && (uses(&p->parts[i], states, tensor->name) ||
                                            (p->options.ranks.ranks > 1 && !tensor->within &&
                                             uses_part(&p->parts[i], states, tensor->name)));
        ret[tp_role_memory(tensor->role)] += is_used ? tp_tensor_room(tensor) : 0;
    }
}

void tp_program_used_bytes(const tp_program *p, uint32_t graphs, size_t ret[TP_MEM_KINDS])
{
    tp_exec_pool shared = {0};
    memset(ret, 0, TP_MEM_KINDS * sizeof *ret);
    for (int i = 0; i < p->n; i++) {
        if (is_first_of(p, i))
            add_used_tensors(p, p->parts[i].states, graphs, ret);
        if (graphs >> i & 1)
            tp_exec_pool_fit(&shared, p->parts[i].exec);
    }
    ret[TP_MEM_ACTIVATIONS] += shared.arena_bytes;
    ret[TP_MEM_WORKSPACE] += shared.workspace_bytes + shared.staging_bytes;
    ret[TP_MEM_DATA] += shared.input_bytes;
}
