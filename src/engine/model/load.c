/* load.c - weights into the memory that a graph computes with. */
#include <stdlib.h>

#include "base/platform.h"
#include "engine/model/weights.h"

/* Piece by piece: what lies between the file and the device stays in the cache. */
static tp_status load_param(const tp_weights *w, size_t index, const tp_tensor *state,
                            bool *ret_is_finite, tp_error *err)
{
    const tp_param *p = &w->model->params[index];
    int64_t rows = tp_weights_rows(p), piece = tp_weights_piece(w, index);
    size_t row = (size_t)tp_weights_row_length(p);
    float *wide = malloc((size_t)piece * row * sizeof *wide);
    tp_status status =
        wide ? TP_OK : tp_fail(err, TP_ERR_NOMEM, "cannot load '%s': out of memory", p->name);
    *ret_is_finite = true;
    for (int64_t i = 0; i < rows && status == TP_OK; i += piece) {
        int64_t n = TP_MIN(rows - i, piece);
        bool is_finite = true;
        status = tp_weights_read(w, index, i, n, wide, &is_finite, err);
        *ret_is_finite &= is_finite;
        if (status == TP_OK)
            status = tp_tensor_write(state, (size_t)i * row * sizeof *wide, wide,
                                    (size_t)n * row * sizeof *wide, err);
    }
    free(wide);
    return status;
}

static tp_status load_all(const tp_weights *w, tp_states *states, tp_load_report *ret,
                          tp_error *err)
{
    tp_load_report report = w->report;
    for (size_t i = 0; i < w->model->n_params; i++) {
        const char *name = w->model->params[i].name;
        const tp_tensor *state = tp_states_find(states, name);
        bool is_finite;
        if (!state || !state->span.buffer)
            return tp_fail(err, TP_ERR_ARG, "tensor '%s' has no memory to be loaded into", name);
        TP_TRY(load_param(w, i, state, &is_finite, err));
        if (is_finite || report.has_nonfinite)
            continue;
        report.has_nonfinite = true;
        snprintf(report.nonfinite_name, sizeof report.nonfinite_name, "%s", name);
    }
    *ret = report;
    return TP_OK;
}

tp_status tp_model_load(const tp_model *model, tp_states *states, tp_load_report *ret,
                        tp_error *err)
{
    tp_weights w;
    TP_TRY(tp_weights_open(model, &w, err));
    tp_status status = load_all(&w, states, ret, err);
    tp_weights_close(&w);
    return status;
}
