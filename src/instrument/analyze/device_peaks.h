/* device_peaks.h - what devices can do, by the data sheets of their vendors. */
#ifndef TP_INSTRUMENT_ANALYZE_DEVICE_PEAKS_H
#define TP_INSTRUMENT_ANALYZE_DEVICE_PEAKS_H

#include "instrument/analyze/selection.h"

typedef struct {
    const char *device;  /* its name without maker and brand */
    double half, single; /* FLOP/s: 16-bit matrix units; 32-bit without TF32; both dense */
    double memory;       /* bytes/s */
    double link;         /* bytes/s to the host, one way */
} tp_device_peaks;

/* Of the devices of the selection; NULL: it has none, one is not known, or they are not alike. */
const tp_device_peaks *tp_device_peaks_of(const tp_selection *selection);

#endif
