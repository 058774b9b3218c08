/* kernels.c - the table of the ref backend: every op that is computed has a kernel. */
#include "engine/backend/ref/kernels.h"

static const tp_kernel *const kernels[] = {
#define OP(name) &tp_ref_##name,
#define UNCOMPUTED(name)
#include "engine/ir/ops.def"
};

const tp_backend tp_backend_ref = {
    .name = "ref",
    .kernels = kernels,
    .n_kernels = sizeof kernels / sizeof kernels[0],
};
