/* device_peaks.c - a table. */
#include "instrument/analyze/device_peaks.h"

#include <string.h>

/* The first that fits; links are PCIe with 16 lanes of the device's generation. */
static const tp_device_peaks rows[] = {{"B200", 2250e12, 75e12, 8000e9, 64e9},
                                       {"H200", 989e12, 67e12, 4800e9, 64e9},
                                       {"H100 PCIe", 756e12, 51e12, 2000e9, 64e9},
                                       {"H100 NVL", 835e12, 60e12, 3900e9, 64e9},
                                       {"H100", 989e12, 67e12, 3350e9, 64e9},
                                       {"A100 80GB", 312e12, 19.5e12, 1935e9, 32e9},
                                       {"A100-PCIE-40GB", 312e12, 19.5e12, 1555e9, 32e9},
                                       {"A100-SXM4-80GB", 312e12, 19.5e12, 2039e9, 32e9},
                                       {"A100", 312e12, 19.5e12, 1555e9, 32e9},
                                       {"V100", 125e12, 15.7e12, 900e9, 16e9},
                                       {"L40S", 362e12, 91.6e12, 864e9, 32e9},
                                       {"A10G", 125e12, 31.2e12, 600e9, 32e9},
                                       {"L4", 121e12, 30.3e12, 300e9, 32e9},
                                       {"T4", 65e12, 8.1e12, 320e9, 16e9},
                                       {"MI300X", 1307e12, 163.4e12, 5300e9, 64e9},
                                       {"MI250X", 383e12, 95.7e12, 3277e9, 32e9},
                                       {"RTX 4090", 165e12, 82.6e12, 1008e9, 32e9},
                                       {"RTX 3090", 71e12, 35.6e12, 936e9, 32e9}};

const tp_device_peaks *tp_device_peaks_of(const tp_selection *s)
{
    const tp_events *e = s->events;
    for (size_t i = 0; i < e->info.n_devices && s->n_devices; i++) {
        if (e->info.devices[i].id != s->device_ids[0])
            continue;
        const char *name = tp_events_str(e, e->info.devices[i].name);
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            if (strstr(name, rows[k].device))
                return &rows[k];
        return NULL;
    }
    return NULL;
}
