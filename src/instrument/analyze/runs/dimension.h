/* dimension.h - a question about one run or several: one row of dimensions.c.
 *
 * A dimension fills value, interval, method, n and inputs, or says why it cannot.  Thresholds and
 * verdicts are the same for all: analysis.c.  Formulas: docs/formats/analysis.md. */
#ifndef TP_INSTRUMENT_ANALYZE_RUNS_DIMENSION_H
#define TP_INSTRUMENT_ANALYZE_RUNS_DIMENSION_H

#include "instrument/analyze/runs/curve.h"

enum { TP_DIMENSION_INPUTS = 24 };

typedef struct {
    const char *key;
    double value; /* NaN: `text` */
    char text[120];
} tp_dimension_input;

typedef struct {
    double value, lo, hi; /* NaN: unknown */
    size_t n;
    char method[120];
    char why[600];    /* not empty: there is no value, and why */
    bool is_lost;     /* the run came to nothing, so it fails without a value; `why` says so */
    bool has_failed;  /* it should have one, but the computation broke down */
    char advice[240]; /* what to do when it is bad */
    tp_dimension_input inputs[TP_DIMENSION_INPUTS];
    size_t n_inputs;
    size_t n_odd; /* of its metrics' values, NaN or infinite */
} tp_dimension_figures;

typedef struct {
    tp_metrics *const *runs;
    size_t n_runs;
    const double *sizes; /* of each run: threads, ranks, ...; NULL: from its settings */
    double level;
    double target; /* of the reward or the loss; NaN: nobody asks when it is reached */
} tp_dimension_question;

typedef struct {
    const char *name, *about, *unit;
    /* Better above (1) or below (-1) the threshold; NaN: judged only when one is given. */
    int direction;
    double threshold;
    void (*ask)(const tp_dimension_question *q, tp_dimension_figures *ret);
} tp_dimension;

extern const tp_dimension tp_dimensions[];
extern const size_t tp_n_dimensions;

void tp_dimension_training(const tp_dimension_question *q, tp_dimension_figures *f);
void tp_dimension_inference(const tp_dimension_question *q, tp_dimension_figures *f);
void tp_dimension_memory(const tp_dimension_question *q, tp_dimension_figures *f);
void tp_dimension_convergence(const tp_dimension_question *q, tp_dimension_figures *f);
void tp_dimension_generalization(const tp_dimension_question *q, tp_dimension_figures *f);
void tp_dimension_robustness(const tp_dimension_question *q, tp_dimension_figures *f);
void tp_dimension_scalability(const tp_dimension_question *q, tp_dimension_figures *f);
void tp_dimension_efficiency(const tp_dimension_question *q, tp_dimension_figures *f);

void tp_dimension_input_number(tp_dimension_figures *f, const char *key, double value);
void tp_dimension_input_text(tp_dimension_figures *f, const char *key, const char *text);
/* The metric under `key`, and how many of its values are not finite. */
void tp_dimension_input_metric(tp_dimension_figures *f, const char *key, const tp_curve *c);
/* What else there is of a validation loss, which is not judged. */
void tp_dimension_input_other_sets(tp_dimension_figures *f, tp_metrics *m, const char *tag);

/* Each is false, and the figures say why, where the run has no such metric; where it has no finite
 * value; where it does not end with one. */
bool tp_dimension_has_metric(tp_dimension_figures *f, const tp_curve *c, const char *what,
                             tp_run_role a, tp_run_role b);
bool tp_dimension_has_values(tp_dimension_figures *f, const tp_curve *c);
bool tp_dimension_has_end(tp_dimension_figures *f, const tp_curve *c);

#endif
