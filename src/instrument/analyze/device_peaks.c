/* device_peaks.c - a table. */
#include "instrument/analyze/device_peaks.h"

#include <string.h>

#include "base/strings.h"

/* By the whole name but for maker and brand: a name that is nearly one of these is another device
 * (a part of one, a laptop's, the next one).  Links are PCIe with 16 lanes of the device's
 * generation, or what takes its place.  A device of an MI250X is one of its two dies. */
static const tp_device_peaks rows[] = {{"B200", 2250e12, 75e12, 8000e9, 64e9},
                                       {"GH200 480GB", 990e12, 67e12, 4000e9, 450e9},
                                       {"H200", 989e12, 67e12, 4800e9, 64e9},
                                       {"H200 NVL", 836e12, 60e12, 4800e9, 64e9},
                                       {"H100 PCIe", 756e12, 51e12, 2000e9, 64e9},
                                       {"H100 NVL", 835e12, 60e12, 3900e9, 64e9},
                                       {"H100 80GB HBM3", 989e12, 67e12, 3350e9, 64e9},
                                       {"H100", 989e12, 67e12, 3350e9, 64e9},
                                       {"A100 80GB PCIe", 312e12, 19.5e12, 1935e9, 32e9},
                                       {"A100-PCIE-40GB", 312e12, 19.5e12, 1555e9, 32e9},
                                       {"A100-SXM4-80GB", 312e12, 19.5e12, 2039e9, 32e9},
                                       {"A100-SXM4-40GB", 312e12, 19.5e12, 1555e9, 32e9},
                                       {"A100-PG509-200", 312e12, 19.5e12, 1555e9, 32e9},
                                       {"A100", 312e12, 19.5e12, 1555e9, 32e9},
                                       {"V100-SXM2-16GB", 125e12, 15.7e12, 900e9, 16e9},
                                       {"V100-SXM2-32GB", 125e12, 15.7e12, 900e9, 16e9},
                                       {"V100-PCIE-16GB", 112e12, 14e12, 900e9, 16e9},
                                       {"V100-PCIE-32GB", 112e12, 14e12, 900e9, 16e9},
                                       {"L40S", 362e12, 91.6e12, 864e9, 32e9},
                                       {"L40", 181e12, 90.5e12, 864e9, 32e9},
                                       {"A10", 125e12, 31.2e12, 600e9, 32e9},
                                       {"L4", 121e12, 30.3e12, 300e9, 32e9},
                                       {"T4", 65e12, 8.1e12, 320e9, 16e9},
                                       {"MI300X", 1307e12, 163.4e12, 5300e9, 64e9},
                                       {"MI250X", 191.5e12, 47.9e12, 1638e9, 32e9},
                                       {"RTX 4090", 165e12, 82.6e12, 1008e9, 32e9},
                                       {"RTX 3090", 71e12, 35.6e12, 936e9, 32e9}};

static const tp_device_peaks *peaks_of(const char *name)
{
    static const char *const brands[] = {"NVIDIA ", "Tesla ", "GeForce ", "AMD ", "Instinct "};
    for (size_t i = 0; i < sizeof brands / sizeof *brands; i++)
        if (tp_str_starts(name, brands[i]))
            name += strlen(brands[i]);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (strcmp(name, rows[k].device) == 0)
            return &rows[k];
    return NULL;
}

const tp_device_peaks *tp_device_peaks_of(const tp_selection *s)
{
    const tp_device_peaks *peaks = s->n_devices ? peaks_of(tp_selection_device_name(s, 0)) : NULL;
    for (size_t d = 1; d < s->n_devices && peaks; d++)
        if (peaks_of(tp_selection_device_name(s, d)) != peaks)
            return NULL;
    return peaks;
}
