/* accelerator.c - NVML by its own names, loaded once, asked once a step. */
#include "engine/train/accelerator.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

/* NVML's binary interface, version 2 of the functions that have one. */
typedef void *device;
typedef struct {
    unsigned gpu, memory; /* percent of the last sampling period */
} utilization;
typedef struct {
    unsigned long long total, available, used;
} memory_info;

static struct {
    int (*init)(void);
    int (*count)(unsigned *ret);
    int (*handle)(unsigned index, device *ret);
    int (*utilization)(device device, utilization *ret);
    int (*memory)(device device, memory_info *ret);
    unsigned n;
    const char *why;
} nvml;

static bool find(void *library, const char *name, void *ret)
{
    void *symbol = dlsym(library, name);
    if (symbol)
        memcpy(ret, &symbol, sizeof symbol);
    return symbol;
}

static void attach(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    nvml.why = "no NVML";
    if (!library)
        return;
    nvml.why = "NVML lacks a function";
    if (!find(library, "nvmlInit_v2", &nvml.init) ||
        !find(library, "nvmlDeviceGetCount_v2", &nvml.count) ||
        !find(library, "nvmlDeviceGetHandleByIndex_v2", &nvml.handle) ||
        !find(library, "nvmlDeviceGetUtilizationRates", &nvml.utilization) ||
        !find(library, "nvmlDeviceGetMemoryInfo", &nvml.memory))
        return;
    nvml.why = "NVML does not start";
    if (nvml.init() != 0 || nvml.count(&nvml.n) != 0)
        return;
    nvml.why = nvml.n ? NULL : "NVML knows no device";
}

tp_accelerator_state tp_accelerator_read(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, attach);
    tp_accelerator_state s = {.utilization = (double)NAN,
                              .used_bytes = (double)NAN,
                              .total_bytes = (double)NAN,
                              .why = nvml.why};
    double share = 0, used = 0, total = 0;
    int n_shares = 0, n_memories = 0;
    for (unsigned i = 0; i < nvml.n && !nvml.why; i++) {
        device d;
        utilization u;
        memory_info m;
        if (nvml.handle(i, &d) != 0)
            continue;
        s.n++;
        if (nvml.utilization(d, &u) == 0 && u.gpu <= 100) {
            share += u.gpu / 100.0;
            n_shares++;
        }
        if (nvml.memory(d, &m) == 0) {
            used += (double)m.used;
            total += (double)m.total;
            n_memories++;
        }
    }
    if (n_shares)
        s.utilization = share / n_shares;
    if (n_memories) {
        s.used_bytes = used;
        s.total_bytes = total;
    }
    if (!s.why && !(n_shares && n_memories))
        s.why = "the devices do not tell";
    return s;
}
