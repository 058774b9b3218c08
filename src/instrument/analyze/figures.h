/* figures.h - one recording as a list of numbers, each under a name.
 *
 *     totals      window, step, span = compute + exposed communication + exposed memory
 *                 traffic + idle of the device, kernels, launches, memory
 *     phases      annotations of the host
 *     operators   device time that they launched; host self time where a file has no device
 *     kernels     device work
 *
 * Only what the file tells is in the list: a file without memory events has no peak, not a
 * peak of 0.  Names are numbers of a table that several files share, which is what makes
 * their figures comparable. */
#ifndef TP_INSTRUMENT_ANALYZE_FIGURES_H
#define TP_INSTRUMENT_ANALYZE_FIGURES_H

#include "instrument/analyze/selection.h"
#include "instrument/ingest/ingest.h"

typedef enum {
    TP_FIGURES_TOTALS,
    TP_FIGURES_PHASES,
    TP_FIGURES_OPERATORS,
    TP_FIGURES_KERNELS,
    TP_FIGURE_TABLES
} tp_figure_table;

typedef enum { TP_FIGURE_NS, TP_FIGURE_COUNT, TP_FIGURE_BYTES } tp_figure_unit;

typedef struct {
    uint32_t name;
    uint8_t table; /* tp_figure_table */
    uint8_t unit;  /* tp_figure_unit */
    double value;
    double calls; /* 0 for totals, else > 0 */
} tp_figure;

typedef struct {
    tp_figure *v;
    size_t n, cap;
    size_t n_devices; /* that have work */
    size_t steps;
    size_t n_stepless; /* as of the selection */
    int64_t stepless_ns;
    double step_mean_ns, step_sd_ns; /* NaN without steps, and sd with one */
} tp_figures;

/* `per_step`: only work of steps, times and counts divided by their number; TP_ERR_ARG when
 * the file has none. */
TP_CHECKED tp_status tp_figures_make(const tp_trace_file *file, const tp_select_options *options,
                                     bool per_step, tp_string_table *names, tp_figures *ret,
                                     tp_error *err);
void tp_figures_release(tp_figures *figures);

#endif
