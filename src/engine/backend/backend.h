/* backend.h - launches, kernels, and the backends there are.
 *
 * `ref` implements every op in plain loops and is the meaning of all of them: other backends
 * are tested against it, and where kernels see the process's own memory the planner falls back
 * to it.  `cpu` is the processor's own kernels.  `guard` is `ref` in an address space of its
 * own and on a thread of its own: what runs on it touches tensors through the device alone.
 *
 * A launch is one node with its operands bound to places.  Whoever makes launches gives spans;
 * the device sets the pointers when it runs them.  Kernels read a launch, never write it, never
 * allocate, and write exactly their outputs. */
#ifndef TP_ENGINE_BACKEND_BACKEND_H
#define TP_ENGINE_BACKEND_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"
#include "base/error.h"
#include "base/team.h"
#include "engine/device/device.h"
#include "engine/device/dtype.h"
#include "engine/ir/ops.h"

typedef struct {
    void *data;   /* for kernels, set by the device: NULL for an absent optional input or an
                     output that nobody reads */
    tp_span span; /* where it lies; no buffer: absent */
    tp_dtype dtype;
    uint8_t rank;             /* 1 or 2 */
    int64_t dim[TP_MAX_RANK]; /* rank 1: dim[0] elements, dim[1] = 1 */
    int64_t stride;           /* elements from row to row; rank 1: 1 */
} tp_operand;

typedef struct tp_kernel tp_kernel;

struct tp_launch {
    tp_op op;
    uint8_t n_in, n_out;
    bool accumulate; /* the accumulator input holds something to add to; when false it is
                        overwritten (first micro-batch of a step) */
    /* 0, or the rows of the first operand that memory and the order of additions are planned for:
     * this run has the first of them only */
    int64_t planned_rows;
    uint16_t threads; /* the work is divided by */
    tp_team *team;    /* for kernels, set by the device: who does it; NULL: the caller */
    tp_attrs attrs;
    tp_operand in[TP_MAX_IN], out[TP_MAX_OUT];
    void *workspace; /* for kernels: at least kernel->workspace() bytes, 64-byte aligned */
    tp_span workspace_span;
    size_t workspace_bytes;
    const tp_kernel *kernel;
};

static inline int64_t tp_launch_planned_rows(const struct tp_launch *l)
{
    return l->planned_rows ? l->planned_rows : l->in[0].dim[0];
}

/* One way to compute one op.  Several may exist; the planner takes the first
 * whose isa the machine has and whose accepts() says yes. */
struct tp_kernel {
    const char *name; /* "linear/amx-bf16": appears in plans and traces */
    tp_op op;
    tp_isa isa;            /* least instruction set level needed */
    bool is_always_usable; /* of no level: plain C of ref, or one that chooses a level itself */
    /* (optional) by shapes, dtypes, strides, attributes; data pointers are not bound yet, but
     * absent operands have rank 0.  NULL accepts everything. */
    bool (*accepts)(const tp_launch *launch);
    /* (optional) bytes of workspace, by the same as accepts(); NULL means none.  Asked through
     * tp_kernel_workspace(). */
    size_t (*workspace)(const tp_launch *launch);
    void (*run)(const tp_launch *launch);
};

extern const tp_backend tp_backend_ref, tp_backend_cpu, tp_backend_guard;

/* The first kernel of the device's backend able to run `launch`, else, where it can see the
 * memory, the one of `ref`; NULL when there is none. */
const tp_kernel *tp_kernel_find(const tp_device *device, const tp_launch *launch);
/* The same before the backend is prepared: for its own self-test. */
const tp_kernel *tp_kernel_find_prepared(const tp_backend *backend, const tp_launch *launch);
/* Kernels of the device's backend able to run it, in order; returns how many of them, `most` at
 * most. */
size_t tp_kernels_usable(const tp_device *device, const tp_launch *launch, const tp_kernel **ret,
                         size_t most);
/* Bytes of workspace of `launch` by that kernel.  Addresses do not count, whether operands are
 * bound or not: what is planned before is what the kernel finds when it runs. */
size_t tp_kernel_workspace(const tp_kernel *kernel, const tp_launch *launch);

const tp_backend *tp_backend_find(const char *name); /* "ref", "cpu", "guard"; NULL: unknown */

#endif
