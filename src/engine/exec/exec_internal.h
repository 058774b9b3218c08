/* exec_internal.h - an executor, which exec.c makes and exec_run.c runs. */
#ifndef TP_ENGINE_EXEC_EXEC_INTERNAL_H
#define TP_ENGINE_EXEC_EXEC_INTERNAL_H

#include "engine/exec/exec_build.h"
#include "engine/exec/launch_trace.h"
#include "engine/exec/rows.h"

enum { TP_EXEC_BY_HOST = -1 }; /* decided by what the host answered */

/* A dimension of an operand that counts rows of an input. */
typedef struct {
    int64_t *dim;
    tp_row_count rows;
} tp_exec_row_dim;

/* A launch whose first operand has such rows. */
typedef struct {
    uint32_t launch;
    tp_row_count rows;
} tp_exec_row_launch;

typedef struct {
    const char *name;
    size_t offset, row_bytes; /* in the pool's inputs */
    const void *host;         /* what was written last */
    int64_t n;                /* rows of the graph's */
    tp_ref ref;
    tp_exec_row_dim *dims; /* made when rows are first set */
    uint32_t n_dims;
    tp_exec_row_launch *launches;
    uint32_t n_launches;
} tp_exec_input_place;

struct tp_exec {
    tp_arena arena;
    const tp_graph *graph;
    tp_exec_options options;
    tp_memory_plan memory;
    tp_launch *launches;
    tp_launch_info *info;
    uint32_t *node_of; /* launch -> node */
    tp_rows *rows;     /* per value */
    bool *is_off;      /* launches without rows */
    double *row_share; /* of the planned rows, per launch */
    uint64_t *began;   /* per launch, in ticks, while a traced run lasts */
    int *decided_by;   /* per launch, how much work it is: 1 + an input, TP_EXEC_BY_HOST, or 0 */
    uint32_t *fresh;   /* launches whose accumulator is a persistent buffer as the step left it */
    tp_launch_trace trace;
    const char *arena_base; /* of the activations, for traces: nobody may read there */
    size_t n, n_fresh;
    size_t workspace_bytes, input_bytes;
    tp_buffer *input_buffer;
    tp_exec_input_place *inputs;
    int n_inputs;
    tp_operand *outputs;
    bool *is_read;       /* value: some launch or the caller reads it */
    tp_traffic *traffic; /* NULL: nothing here is a matter of several ranks */
    tp_talk talk;
    bool is_uncounted; /* runs leave no trace in `info` */
    tp_host_fn host;
    void *host_user;
    float *host_x, *host_y; /* what it reads and writes */
};

#endif
