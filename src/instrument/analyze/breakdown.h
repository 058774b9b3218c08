/* breakdown.h - where the time of the device went.
 *
 *     span = compute + exposed communication + exposed memory traffic + idle
 *
 * over device activities (kernels, copies, fills), in whole nanoseconds and without
 * remainder.  Each class is the length of the union of its activities: two kernels
 * at once count once.  Communication is exposed while no compute runs; memory traffic
 * while neither runs; idle is what remains between the first start and the last end.
 *
 * What one device computes hides nothing of what another one sends.  Figures of several devices are
 * therefore those of each by itself, added up: a mean would fall with a device that hardly works.
 * All of them merged into one is a figure of its own, and shown as that. */
#ifndef TP_INSTRUMENT_ANALYZE_BREAKDOWN_H
#define TP_INSTRUMENT_ANALYZE_BREAKDOWN_H

#include "instrument/analyze/periods.h"

typedef enum { TP_WORK_COMPUTE, TP_WORK_COMM, TP_WORK_MEM, TP_WORK_COUNT } tp_work;

/* Something that ran on a device. */
typedef struct {
    int64_t start, end;
    uint32_t event;  /* in the trace */
    uint32_t name;   /* interned in the trace */
    uint32_t device; /* number in the selection's list of devices */
    uint8_t work;    /* tp_work */
    bool is_kernel;
} tp_activity;

typedef struct {
    int64_t start, end; /* first start, last end */
    int64_t span_ns, busy_ns, idle_ns;
    int64_t compute_ns, comm_ns, mem_ns;
    int64_t exposed_comm_ns, exposed_mem_ns;
    int64_t overlap_ns; /* communication while compute runs */
} tp_breakdown;

enum { TP_ALL_DEVICES = -1 };

/* Activities in order of their starts; `device`, or TP_ALL_DEVICES: merged.  False when there is
 * none. */
bool tp_breakdown_make(const tp_activity *v, size_t n, int64_t device, tp_breakdown *ret);

/* Every device by itself (NULL: not wanted), and all of them added up.  Returns how many have
 * work. */
size_t tp_breakdown_add_up(const tp_activity *v, size_t n, size_t n_devices,
                           tp_breakdown *ret_by_device, tp_breakdown *ret_sum);

/* The union of a class (or of all: TP_WORK_COUNT), normal. */
void tp_breakdown_union(const tp_activity *v, size_t n, int64_t device, tp_work work,
                        tp_periods *ret);

/* 100 * part / whole, rounded to three decimals; NaN when whole is 0. */
double tp_percent(int64_t part, int64_t whole);

#endif
