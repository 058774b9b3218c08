/* kernels.h - what the kernels of a trace cost, by name.
 *
 * Durations are summed per full name; quantiles are nearest-rank: the smallest duration
 * that at least q of the launches do not exceed, so each is a duration that occurred.
 * Sums over streams may exceed the span: two kernels at once count twice here. */
#ifndef TP_INSTRUMENT_ANALYZE_KERNELS_H
#define TP_INSTRUMENT_ANALYZE_KERNELS_H

#include "base/strings.h"
#include "instrument/analyze/breakdown.h"

typedef struct {
    uint32_t name;  /* interned in the trace */
    uint32_t first; /* event number of one of them, for its details */
    uint8_t work;   /* tp_work */
    int64_t count;
    int64_t total_ns, min_ns, max_ns;
    int64_t p50_ns, p90_ns, p99_ns;
    double mean_ns, sd_ns; /* sample deviation; NaN for one launch */
} tp_kernel_row;

typedef struct {
    tp_kernel_row *rows; /* by total, descending; then by name */
    size_t n;
    int64_t kernels, total_ns;
} tp_kernel_table;

/* One that computes, and takes that long on average. */
bool tp_kernel_is_slow(const tp_kernel_row *kernel, int64_t average_ns);

/* The text of an interned name, for the order of equal totals. */
typedef tp_slice (*tp_name_text)(const void *names, uint32_t name);

/* `only_kernels`: leave out copies and fills. */
void tp_kernels_make(const tp_activity *v, size_t n, bool only_kernels, tp_name_text text,
                     const void *names, tp_kernel_table *ret);
void tp_kernels_release(tp_kernel_table *table);

/* Nearest-rank quantile of ascending values; n > 0, 0 < q <= 1. */
int64_t tp_rank_quantile(const int64_t *ascending, size_t n, double q);

/* Sums and differences that stop at the largest number instead of wrapping: broken files hold
 * durations of centuries, and these are reported by name elsewhere. */
int64_t tp_add_saturating(int64_t a, int64_t b);
int64_t tp_subtract_saturating(int64_t a, int64_t b);

#endif
