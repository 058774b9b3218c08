/* fake_nvml.c - an NVML of three devices: one 30 % busy, one 70 % and then 90 %, one that
 * answers nothing. */
#define EXPORT __attribute__((visibility("default")))

enum { OK = 0, NOT_FOUND = 6 };

typedef struct {
    unsigned gpu, memory;
} utilization;
typedef struct {
    unsigned long long total, available, used;
} memory_info;

static int devices[3];

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetCount_v2(unsigned *ret);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret);
EXPORT int nvmlDeviceGetUtilizationRates(void *device, utilization *ret);
EXPORT int nvmlDeviceGetMemoryInfo(void *device, memory_info *ret);

int nvmlInit_v2(void) { return OK; }

int nvmlDeviceGetCount_v2(unsigned *ret)
{
    *ret = 3;
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret)
{
    if (index > 1)
        return NOT_FOUND;
    *ret = &devices[index];
    return OK;
}

int nvmlDeviceGetUtilizationRates(void *device, utilization *ret)
{
    static unsigned busy = 70;
    if (device == &devices[0]) {
        *ret = (utilization){30, 5};
        return OK;
    }
    *ret = (utilization){busy, 5};
    busy = 90;
    return OK;
}

int nvmlDeviceGetMemoryInfo(void *device, memory_info *ret)
{
    unsigned long long gib = 1ull << 30;
    *ret = device == &devices[0] ? (memory_info){80 * gib, 79 * gib, gib}
                                 : (memory_info){80 * gib, 77 * gib, 3 * gib};
    return OK;
}
