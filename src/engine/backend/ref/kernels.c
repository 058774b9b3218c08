/* kernels.c - the table of the ref backend: every op that is computed has a kernel. */
#include "engine/backend/ref/kernels.h"

#include "engine/backend/host.h"

const tp_kernel *const tp_ref_kernels[] = {
#define OP(name) &tp_ref_##name,
#define UNCOMPUTED(name)
#include "engine/ir/ops.def"
    NULL,
};

const tp_backend tp_backend_ref = {
    .name = "ref",
    .kernels = tp_ref_kernels,
    .is_host = true,
    .alloc = tp_host_alloc,
    .free = tp_host_free,
    .copy = tp_host_copy,
    .submit = tp_host_submit,
};
