/* accelerator.h - how busy the machine's accelerators are, asked of NVML at run time.
 *
 * Nothing is linked: libnvidia-ml.so.1 is loaded when it is there.  Where it is not, or does
 * not answer, the figures are unknown and `why` says so; they are never 0 instead. */
#ifndef TP_ENGINE_TRAIN_ACCELERATOR_H
#define TP_ENGINE_TRAIN_ACCELERATOR_H

#include <stddef.h>

typedef struct {
    int n;              /* devices; 0: unknown */
    double utilization; /* 0..1, mean of the devices that answered; NaN: unknown */
    double used_bytes;  /* of their memory, summed; NaN: unknown */
    double total_bytes;
    const char *why; /* unknown: the reason, "no NVML"; NULL when both are known */
} tp_accelerator_state;

/* Costs tens of microseconds per device.  From one thread at a time. */
tp_accelerator_state tp_accelerator_read(void);

#endif
