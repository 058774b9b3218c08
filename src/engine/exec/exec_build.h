/* exec_build.h - making an executor and giving it memory.  For exec/program.c alone: whoever
 * wants to run a graph adds it to a program.
 *
 * Creating an executor chooses a kernel for every node and plans the memory;
 * nothing large is allocated.  Binding gives it memory: persistent tensors by name, and a pool
 * (activation arena, workspace, inputs) that the executors of one program share because they
 * run one after the other.
 *
 *     graph --create--> launches with offsets --bind--> launches with spans --run--> */
#ifndef TP_ENGINE_EXEC_EXEC_BUILD_H
#define TP_ENGINE_EXEC_EXEC_BUILD_H

#include "engine/exec/exec.h"
#include "engine/exec/tune.h"

typedef struct {
    tp_device *device;
    bool share_memory; /* in-place results and views */
    tp_kernel_tuning tuning;
    double avg_context; /* for costs: mean keys per query in attention; 0 = unknown */
    tp_ranks ranks;
} tp_exec_options;

TP_CHECKED tp_status tp_exec_create(const tp_graph *g, const tp_exec_options *options,
                                    tp_exec **ret, tp_error *err);
void tp_exec_free(tp_exec *exec); /* NULL is a no-op */

/* Memory shared by the executors of a program. */
typedef struct {
    tp_buffer *arena, *workspace, *inputs;
    size_t arena_bytes, workspace_bytes, input_bytes;
    void *staging; /* on the host: what ranks exchange */
    size_t staging_bytes;
} tp_exec_pool;
/* Grow the pool's sizes to what `exec` needs (call for each, then alloc). */
void tp_exec_pool_fit(tp_exec_pool *pool, const tp_exec *exec);
TP_CHECKED tp_status tp_exec_pool_alloc(tp_exec_pool *pool, tp_device *device, tp_error *err);
void tp_exec_pool_release(tp_exec_pool *pool);

/* Every state of the graph must be in `states`, allocated, of the same type. */
TP_CHECKED tp_status tp_exec_bind(tp_exec *exec, const tp_states *states, const tp_exec_pool *pool,
                                  tp_error *err);

TP_CHECKED tp_status tp_exec_run(tp_exec *exec, bool accumulate, tp_error *err);

#endif
