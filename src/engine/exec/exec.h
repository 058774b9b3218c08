/* exec.h - a compiled graph: a flat list of launches.
 *
 * Executors are made by a program (program.h), which runs them.  Here is what goes in, what
 * comes out, and what it is made of.  Running walks the list: no allocation, no look-up, no
 * shape logic. */
#ifndef TP_ENGINE_EXEC_EXEC_H
#define TP_ENGINE_EXEC_EXEC_H

#include "engine/backend/backend.h"
#include "engine/device/states.h"
#include "engine/exec/traffic.h"
#include "engine/ir/graph.h"
#include "engine/passes/pass.h"

/* One launch as seen by reports. */
typedef struct {
    const char *label; /* of the node, or the op's name */
    const char *kernel;
    tp_op op;
    uint8_t phase;
    bool is_clone; /* recomputed */
    int16_t block;
    bool by_rows;                  /* what it does goes with the rows of an input */
    double flops, bytes;           /* per run of all rows, by shapes */
    double row_bytes;              /* of them, those that go with the rows */
    uint64_t count, ns;            /* so far */
    double done_flops, done_bytes; /* so far, of what was not left out (work.h) */
    bool varies;                   /* rows have been set: each run may have had others */
} tp_launch_info;

/* What a run with that share of the rows costs. */
tp_cost tp_launch_cost(const tp_launch_info *launch, double share);
/* Whether what it did is known: not that of attention to a cache, whose context is another for
 * every row. */
bool tp_launch_is_counted(const tp_launch_info *launch);

typedef struct tp_exec tp_exec;

/* Inputs by name; -1 when the graph does not read it (writing to -1 is a no-op). */
int tp_exec_input(const tp_exec *exec, const char *name);
/* The first `rows` rows (elements of a vector); -1: all.  What was written stays until
 * another executor of the pool is written to.  `data` must stay as it is until the next run
 * is over. */
TP_CHECKED tp_status tp_exec_write(tp_exec *exec, int input, const void *data, int64_t rows,
                                   tp_error *err);
/* `bytes` of graph output k from `offset` on, as the last run left it: until the next run of
 * any executor of the pool. */
TP_CHECKED tp_status tp_exec_read(const tp_exec *exec, uint32_t k, size_t offset, void *to,
                                  size_t bytes, tp_error *err);
/* Its shape and type. */
const tp_operand *tp_exec_output(const tp_exec *exec, uint32_t k);

/* What `host` launches write: fn gets the operand and the result, n floats each, and must not
 * keep them.  NULL: the result is the operand. */
typedef void (*tp_host_fn)(void *user, const float *x, float *y, int64_t n);
void tp_exec_set_host(tp_exec *exec, tp_host_fn fn, void *user);

/* From the next run on, use the first n rows only of an input and of everything that is as long as
 * it (rows.h).  Memory is planned for all rows, so n is at most the input's; 0 leaves launches out
 * whose first operand has such rows.  Kernels add in the order planned for all rows: what the rows
 * left out would not have changed is the same bit for bit.  What ranks exchange keeps its size. */
void tp_exec_set_rows(tp_exec *exec, int input, int64_t n);

/* Which launches that are a matter of all ranks do anything; from the beginning all. */
void tp_exec_set_talk(tp_exec *exec, tp_talk talk);
const tp_traffic *tp_exec_traffic(const tp_exec *exec); /* NULL: there are none */

/* A run in a network that is simulated, with a rank's own traffic: what communicates does, launch i
 * takes seconds[i]. */
TP_CHECKED tp_status tp_exec_rehearse(const tp_exec *exec, tp_traffic *traffic, tp_talk talk,
                                      const double *seconds, tp_error *err);

/* tp_program_run(), slowly, looking at every output: *ret is the first launch that wrote a
 * NaN or an infinity (with finite operands before it), or -1. */
TP_CHECKED tp_status tp_exec_run_checked(tp_exec *exec, bool accumulate, int *ret_first_bad,
                                         tp_error *err);

size_t tp_exec_launch_count(const tp_exec *exec);
const tp_launch_info *tp_exec_launch(const tp_exec *exec, size_t i);
void tp_exec_reset_times(tp_exec *exec);
/* Whether runs from here on count for the launches: in `count`, `ns` and what was done. */
void tp_exec_set_counted(tp_exec *exec, bool is_counted);
size_t tp_exec_arena_bytes(const tp_exec *exec);
size_t tp_exec_live_peak_bytes(const tp_exec *exec);
/* Sum over launches per run; `contractions_only` leaves out elementwise work. */
double tp_exec_flops(const tp_exec *exec, bool contractions_only);
double tp_exec_bytes(const tp_exec *exec);

/* Every copy becomes its weight again, rounded and laid out as its record says.  Whole copies of
 * weights that are kept in parts only where it `gathers`: a matter of all ranks. */
TP_CHECKED tp_status tp_refresh_shadows(const tp_states *states, tp_device *device, bool gathers,
                                        tp_error *err);
/* Bytes of the latter, and of what they pass through. */
size_t tp_gathered_bytes(const tp_states *states);
size_t tp_gathered_room(const tp_states *states);

/* Text: one line per launch with kernel, shapes, offsets. */
void tp_exec_print(const tp_exec *exec, tp_buf *out);

#endif
