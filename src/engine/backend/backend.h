/* backend.h - what a device must be able to do.
 *
 * A backend is one const table: kernels (fastest first) and how to get memory.
 * `ref` implements every op in plain loops and is the meaning of all of them:
 * other backends are tested against it, and the planner falls back to it.
 *
 * A launch is one node with its operands bound to memory.  Kernels read it,
 * never write it, never allocate, and write exactly their outputs. */
#ifndef TP_ENGINE_BACKEND_BACKEND_H
#define TP_ENGINE_BACKEND_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"
#include "base/error.h"
#include "engine/ir/ops.h"
#include "engine/tensor/dtype.h"

typedef struct {
    void *data; /* NULL: absent optional input, or an output nobody reads */
    tp_dtype dtype;
    uint8_t rank;             /* 1 or 2 */
    int64_t dim[TP_MAX_RANK]; /* rank 1: dim[0] elements, dim[1] = 1 */
    int64_t stride;           /* elements from row to row; rank 1: 1 */
} tp_operand;

typedef struct tp_kernel tp_kernel;

typedef struct {
    tp_op op;
    uint8_t n_in, n_out;
    bool accumulate; /* the accumulator input holds something to add to; when false it is
                        overwritten (first micro-batch of a step) */
    uint16_t threads;
    tp_attrs attrs;
    tp_operand in[TP_MAX_IN], out[TP_MAX_OUT];
    void *workspace; /* at least kernel->workspace() bytes, 64-byte aligned */
    size_t workspace_bytes;
    const tp_kernel *kernel;
} tp_launch;

/* One way to compute one op.  Several may exist; the planner takes the first
 * whose isa the machine has and whose accepts() says yes. */
struct tp_kernel {
    const char *name; /* "linear/amx-bf16": appears in plans and traces */
    tp_op op;
    tp_isa isa; /* least instruction set level needed */
    bool is_always_usable; /* of no level: plain C of ref, or one that chooses a level itself */
    /* (optional) by shapes, dtypes, strides, attributes; data pointers are not bound yet, but
     * absent operands have rank 0.  NULL accepts everything. */
    bool (*accepts)(const tp_launch *launch);
    /* (optional) bytes of workspace; NULL means none */
    size_t (*workspace)(const tp_launch *launch);
    void (*run)(const tp_launch *launch);
};

typedef struct {
    const char *name;
    const tp_kernel *const *kernels; /* array of n_kernels, fastest first */
    size_t n_kernels;
    /* (optional) decides once per process which kernels may be used; tp_kernel_find() calls it,
     * and whoever asks for tp_cpu_isa() before */
    void (*prepare)(void);
} tp_backend;

extern const tp_backend tp_backend_ref, tp_backend_cpu;

/* The first kernel of `backend` able to run `launch`, else the one of `ref`.
 * Never NULL for a valid launch. */
const tp_kernel *tp_kernel_find(const tp_backend *backend, const tp_launch *launch);
/* The same for prepare() itself. */
const tp_kernel *tp_kernel_find_prepared(const tp_backend *backend, const tp_launch *launch);
const tp_backend *tp_backend_find(const char *name); /* "ref", "cpu"; NULL when unknown */

#endif
