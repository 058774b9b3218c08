/* dimensions.c - the questions that are asked of runs, one row each. */
#include "instrument/analyze/runs/dimension.h"

#include <math.h>

const tp_dimension tp_dimensions[] = {
    {"training", "improvement of the training metric, first to last fifth", "share", 1, 0,
     tp_dimension_training},
    {"inference", "speed of generation or evaluation", "1/s or s", 1, NAN, tp_dimension_inference},
    {"memory", "growth of memory over the run", "share", -1, 0.1, tp_dimension_memory},
    {"convergence", "share of the fitted way to the plateau that was gone", "share", 1, 0.9,
     tp_dimension_convergence},
    {"generalization", "validation loss above training loss", "share of training loss", -1, 0.2,
     tp_dimension_generalization},
    {"robustness", "spread of the result over runs", "share of the mean", -1, 0.1,
     tp_dimension_robustness},
    {"scalability", "share of the work that does not scale (Amdahl)", "share", -1, 0.1,
     tp_dimension_scalability},
    {"efficiency", "model FLOP/s over the peak of the hardware", "share", 1, 0.3,
     tp_dimension_efficiency},
};
const size_t tp_n_dimensions = sizeof tp_dimensions / sizeof *tp_dimensions;
