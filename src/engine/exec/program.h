/* program.h - a set of graphs, compiled and planned as one.
 *
 * What trains, evaluates, measures gradients, updates, generates and what a policy is compared
 * with are graphs of one set: one pipeline goes over all of them, one memory plan holds the
 * largest of them, and every option reaches each.  Compiling costs milliseconds and allocates
 * nothing large, so it is also how a run is predicted.
 *
 *     tp_program_create(&options, &program, &err);
 *     tp_program_add(program, "train", &states, 0, &train, &err);
 *     ... build into tp_program_graph(program, train) ...
 *     tp_program_compile(program, &err);          passes, kernels, plan; declares the tensors
 *     tp_program_alloc(program, &states, &err);   memory
 *     tp_program_run(program, train, true, &err);
 *
 * Graphs of a set run one after the other: they share their activations, workspace and inputs,
 * and tensors by name where they share their states. */
#ifndef TP_ENGINE_EXEC_PROGRAM_H
#define TP_ENGINE_EXEC_PROGRAM_H

#include "engine/exec/exec.h"
#include "engine/exec/tune.h"

typedef struct {
    tp_device *device; /* outlives the program */
    tp_pass_options passes;
    bool share_memory;       /* in-place results and views */
    tp_kernel_tuning tuning; /* of kernels */
    tp_ranks ranks;
    /* (optional) text of the stages asked for: "graph", a pass or family of them, "plan" */
    const char *const *dump_stages;
    size_t n_dump_stages;
    void (*dump)(void *user, const char *graph, const char *stage, const char *text);
    void *dump_user;
} tp_program_options;

typedef struct tp_program tp_program;

TP_CHECKED tp_status tp_program_create(const tp_program_options *options, tp_program **ret,
                                       tp_error *err);
void tp_program_free(tp_program *program); /* NULL is a no-op */
const tp_program_options *tp_program_get_options(const tp_program *program);
/* Is it a stage that can be dumped?  Else `known` gets the list of those that can. */
bool tp_program_is_stage(const char *stage, tp_buf *known);

/* An empty graph, to be filled before the program is compiled.  Its persistent tensors are in
 * `states`, which outlives the program's last run; *ret is the graph's number from now on.
 * `avg_context`: see tp_node_cost(). */
TP_CHECKED tp_status tp_program_add(tp_program *program, const char *name, tp_states *states,
                                    double avg_context, int *ret, tp_error *err);
tp_graph *tp_program_graph(const tp_program *program, int graph);

TP_CHECKED tp_status tp_program_compile(tp_program *program, tp_error *err);
/* Memory for `states`, which graphs of the set refer to, and what all graphs share. */
TP_CHECKED tp_status tp_program_alloc(tp_program *program, tp_states *states, tp_error *err);

int tp_program_find(const tp_program *program, const char *name); /* -1: there is none */
int tp_program_count(const tp_program *program);                  /* of graphs */
/* Its inputs, outputs, launches and times. */
tp_exec *tp_program_exec(const tp_program *program, int graph);

/* `accumulate` false: gradient buffers are overwritten (first micro-batch).  Returns when
 * everything has run; an error is the device's. */
TP_CHECKED tp_status tp_program_run(const tp_program *program, int graph, bool accumulate,
                                    tp_error *err);

/* ---- the plan ---- */

/* Bytes by kind of everything: each tensor once, and what the graphs share. */
void tp_program_bytes(const tp_program *program, size_t ret[TP_MEM_KINDS]);
/* The part of them that graphs of the set work with; `graphs` has one bit for each. */
void tp_program_used_bytes(const tp_program *program, uint32_t graphs, size_t ret[TP_MEM_KINDS]);

#endif
