#include "engine/backend/backend.h"

#include <string.h>

#include "base/cpu.h"

static bool usable(const tp_kernel *k, const tp_launch *launch)
{
    return k->op == launch->op && (k->is_always_usable || tp_cpu_may_use(k->isa)) &&
           (!k->accepts || k->accepts(launch));
}

static const tp_kernel *first_usable(const tp_backend *backend, const tp_launch *launch)
{
    for (size_t i = 0; i < backend->n_kernels; i++)
        if (usable(backend->kernels[i], launch))
            return backend->kernels[i];
    return NULL;
}

const tp_kernel *tp_kernel_find(const tp_backend *backend, const tp_launch *launch)
{
    if (backend->prepare)
        backend->prepare();
    return tp_kernel_find_prepared(backend, launch);
}

const tp_kernel *tp_kernel_find_prepared(const tp_backend *backend, const tp_launch *launch)
{
    const tp_kernel *k = first_usable(backend, launch);
    return k ? k : first_usable(&tp_backend_ref, launch);
}

const tp_backend *tp_backend_find(const char *name)
{
    if (strcmp(name, "ref") == 0)
        return &tp_backend_ref;
    if (strcmp(name, "cpu") == 0)
        return &tp_backend_cpu;
    return NULL;
}
