/* backend.c - which kernel runs a launch: the first row of the device's backend that can, else
 * the meaning of the op. */
#include "engine/backend/backend.h"

#include <string.h>

#include "base/cpu.h"
#include "base/platform.h"
#include "engine/device/device_backend.h"

static const tp_backend *const backends[] = {&tp_backend_cpu, &tp_backend_ref, &tp_backend_guard};

static bool usable(const tp_kernel *k, const tp_launch *launch)
{
    return k->op == launch->op && (k->is_always_usable || tp_cpu_may_use(k->isa)) &&
           (!k->accepts || k->accepts(launch));
}

static const tp_kernel *first_usable(const tp_backend *backend, const tp_launch *launch)
{
    for (const tp_kernel *const *k = backend->kernels; *k; k++)
        if (usable(*k, launch))
            return *k;
    return NULL;
}

const tp_kernel *tp_kernel_find_prepared(const tp_backend *backend, const tp_launch *launch)
{
    const tp_kernel *k = first_usable(backend, launch);
    return k || !backend->is_host ? k : first_usable(&tp_backend_ref, launch);
}

const tp_kernel *tp_kernel_find(const tp_device *device, const tp_launch *launch)
{
    return tp_kernel_find_prepared(tp_device_backend(device), launch);
}

size_t tp_kernel_workspace(const tp_kernel *kernel, const tp_launch *launch)
{
    if (!kernel->workspace)
        return 0;
    tp_launch unbound = *launch;
    for (int i = 0; i < TP_MAX_IN; i++)
        unbound.in[i].data = NULL;
    for (int i = 0; i < TP_MAX_OUT; i++)
        unbound.out[i].data = NULL;
    unbound.workspace = NULL;
    return kernel->workspace(&unbound);
}

size_t tp_kernels_usable(const tp_device *device, const tp_launch *launch, const tp_kernel **ret,
                         size_t most)
{
    size_t n = 0;
    for (const tp_kernel *const *k = tp_device_backend(device)->kernels; *k && n < most; k++)
        if (usable(*k, launch))
            ret[n++] = *k;
    return n;
}

const tp_backend *tp_backend_find(const char *name)
{
    for (size_t i = 0; i < TP_COUNTOF(backends); i++)
        if (strcmp(name, backends[i]->name) == 0)
            return backends[i];
    return NULL;
}
