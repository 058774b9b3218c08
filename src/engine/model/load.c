/* load.c - weights into the memory that a graph computes with. */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/files.h"
#include "base/platform.h"
#include "base/working.h"
#include "engine/model/adapter_internal.h"
#include "engine/model/frozen.h"
#include "engine/model/rope.h"
#include "engine/model/weights.h"

static tp_status declare_adapter(const tp_lora *l, tp_states *states, tp_error *err)
{
    for (size_t i = 0; i < l->n_params; i++) {
        tp_tensor adapter = tp_param_tensor(&l->params[i]);
        TP_TRY(tp_states_declare(states, &adapter, err));
    }
    return TP_OK;
}

tp_status tp_model_declare(const tp_model *model, int64_t max_positions, tp_states *states,
                           tp_error *err)
{
    for (size_t i = 0; i < model->n_params; i++) {
        tp_tensor parts[TP_PARAM_PARTS];
        int n_parts = tp_param_parts(&model->params[i], &states->arena, parts);
        for (int k = 0; k < n_parts; k++)
            TP_TRY(tp_states_declare(states, &parts[k], err));
    }
    if (model->lora)
        TP_TRY(declare_adapter(model->lora, states, err));
    for (size_t i = 0; i < model->n_beside; i++)
        TP_TRY(declare_adapter(model->beside[i], states, err));
    if (model->rope.theta == 0)
        return TP_OK;
    tp_tensor table = tp_rope_tensor(max_positions, model->info.head_dim);
    return tp_states_declare(states, &table, err);
}

/* In place: every element ends before it begins. */
static void narrow(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tp_bf16 half = tp_f32_to_bf16(x[i]);
        memcpy((char *)x + i * sizeof half, &half, sizeof half);
    }
}

/* Piece by piece: what lies between the file and the device stays in the cache. */
static tp_status load_param(const tp_weights *w, size_t index, const tp_tensor *state,
                            XXH3_state_t *hash, bool *ret_is_finite, tp_error *err)
{
    const tp_param *p = &w->model->params[index];
    int64_t rows = tp_weights_rows(p), piece = tp_weights_piece(w, index);
    size_t row = (size_t)tp_weights_row_length(p);
    size_t size = tp_dtype_size(state->dtype);
    TP_FREED float *wide = malloc((size_t)piece * row * sizeof *wide);
    tp_status status =
        wide ? TP_OK : tp_fail(err, TP_ERR_NOMEM, "cannot load '%s': out of memory", p->name);
    *ret_is_finite = true;
    for (int64_t i = 0; i < rows && status == TP_OK; i += piece) {
        int64_t n = TP_MIN(rows - i, piece);
        bool is_finite = true;
        status = tp_weights_read(w, index, i, n, wide, &is_finite, err);
        *ret_is_finite &= is_finite;
        if (status == TP_OK && hash)
            XXH3_128bits_update(hash, wide, (size_t)n * row * sizeof *wide);
        if (status == TP_OK && state->dtype == TP_DTYPE_BF16)
            narrow(wide, (size_t)n * row);
        if (status == TP_OK)
            status =
                tp_tensor_write(state, (size_t)i * row * size, wide, (size_t)n * row * size, err);
    }
    return status;
}

/* All of it at once: what a block is multiplied with depends on the whole. */
static tp_status load_packed(const tp_weights *w, size_t index, tp_states *states,
                             XXH3_state_t *hash, bool *ret_is_finite, tp_error *err)
{
    const tp_param *p = &w->model->params[index];
    int64_t rows = tp_weights_rows(p), row = tp_weights_row_length(p);
    size_t bytes = (size_t)(rows * row) * sizeof(float);
    TP_FREED float *wide = malloc(bytes);
    if (!wide)
        return tp_fail(err, TP_ERR_NOMEM, "cannot load '%s': out of memory", p->name);
    TP_TRY(tp_weights_read(w, index, 0, rows, wide, ret_is_finite, err));
    if (hash)
        XXH3_128bits_update(hash, wide, bytes);
    if (!*ret_is_finite)
        return tp_fail(err, TP_ERR_NUMERIC,
                       "%s: tensor '%s' holds NaN or infinity, which %s cannot keep: the model "
                       "is broken",
                       w->model->folder, p->name, p->storage == TP_BASE_INT8 ? "int8" : "nf4");
    return tp_param_pack(p, states, wide, err);
}

static tp_status load_one(const tp_weights *w, size_t index, tp_states *states, XXH3_state_t *hash,
                          bool *ret_is_finite, tp_error *err)
{
    const tp_param *p = &w->model->params[index];
    const tp_tensor *state = tp_states_find(states, p->name);
    if (tp_param_is_packed(p))
        return load_packed(w, index, states, hash, ret_is_finite, err);
    if (!state || !state->span.buffer)
        return tp_fail(err, TP_ERR_ARG, "tensor '%s' has no memory to be loaded into", p->name);
    return load_param(w, index, state, hash, ret_is_finite, err);
}

static tp_status load_all(const tp_weights *w, tp_states *states, XXH3_state_t *hash,
                          tp_load_report *ret, tp_error *err)
{
    tp_load_report report = w->report;
    size_t n = w->model->n_params;
    TP_OWN(tp_job) job = {0};
    tp_job_begin(&job, n, "reading the weights");
    for (size_t i = 0; i < n; i++) {
        const char *name = w->model->params[i].name;
        bool is_finite;
        TP_TRY(load_one(w, i, states, hash, &is_finite, err));
        tp_job_add(1);
        if (is_finite || report.has_nonfinite)
            continue;
        report.has_nonfinite = true;
        snprintf(report.nonfinite_name, sizeof report.nonfinite_name, "%s", name);
    }
    *ret = report;
    return TP_OK;
}

/* Of which a rank has not all, so that nobody sees by its weights whether others have the same. */
static bool are_divided(const tp_states *states)
{
    return states->copies > 1 || states->parts >> TP_ROLE_WEIGHT & 1;
}

/* The base of an adapter has a name by what is in it. */
static tp_status load_and_name(const tp_weights *w, tp_states *states, tp_load_report *ret,
                               tp_error *err)
{
    if (!tp_model_has_adapter(w->model) && !are_divided(states))
        return load_all(w, states, NULL, ret, err);
    XXH3_state_t *hash = XXH3_createState();
    TP_HAVE(hash);
    XXH3_128bits_reset(hash);
    tp_status status = load_all(w, states, hash, ret, err);
    if (status == TP_OK)
        tp_hash_digest(hash, ret->fingerprint);
    XXH3_freeState(hash);
    return status;
}

tp_status tp_model_load(const tp_model *model, tp_states *states, tp_load_report *ret,
                        tp_error *err)
{
    TP_CLEANUP(tp_weights_close) tp_weights w = {0};
    TP_TRY(tp_weights_open(model, &w, err));
    TP_TRY(load_and_name(&w, states, ret, err));
    if (tp_model_adapter_folder(model))
        TP_TRY(
            tp_adapter_load(model, tp_model_adapter_folder(model), TP_ADAPTER_LIVE, states, err));
    for (size_t i = 0; i < model->n_beside; i++) {
        const tp_lora *l = model->beside[i];
        TP_TRY(tp_lora_load(l, l->folder, TP_ADAPTER_LIVE, states, err));
    }
    return TP_OK;
}
