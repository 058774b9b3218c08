/* gguf_weights.c - the tensors of a GGUF file as the parameters that they are. */
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "engine/model/ggml.h"
#include "engine/model/weights.h"

/* What saves of a model loaded from this type are written in. */
static tp_dtype dtype_of(uint32_t type)
{
    return type == TP_GGML_F16 ? TP_DTYPE_F16 : type == TP_GGML_BF16 ? TP_DTYPE_BF16 : TP_DTYPE_F32;
}

static tp_status check(const tp_weights *w, const tp_param *p, const tp_gguf_place *place,
                       const tp_gguf_tensor *t, tp_error *err)
{
    const tp_ggml_info *info = tp_ggml_info_of(t->type);
    char list[128];
    int64_t length, rows;
    if (!info || !info->is_read)
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "%s: byte %zu: tensor '%s' is %s%s; types that can be read are %s: export "
                       "the model as one of them",
                       tp_gguf_name(w->gguf), t->at, t->name,
                       info ? info->name : "of a type that is unknown here", "",
                       tp_ggml_readable(list));
    tp_gguf_shape(p, place, &length, &rows);
    if (t->rank <= 2 && t->dim[0] == length && t->dim[1] == rows)
        return TP_OK;
    return tp_fail(err, TP_ERR_FORMAT,
                   "%s: byte %zu: tensor '%s' has %lld rows of %lld, but its keys imply %lld of "
                   "%lld",
                   tp_gguf_name(w->gguf), t->at, t->name, (long long)t->dim[1],
                   (long long)t->dim[0], (long long)rows, (long long)length);
}

/* "15 Q4_0, 6 F32" */
static void describe(tp_weights *w)
{
    size_t counts[64] = {0}, at = 0, room = sizeof w->report.gguf_types;
    for (size_t i = 0; i < w->model->n_params; i++)
        if (w->tensors[i] && w->tensors[i]->type < TP_COUNTOF(counts))
            counts[w->tensors[i]->type]++;
    for (uint32_t type = 0; type < TP_COUNTOF(counts); type++) {
        if (!counts[type] || at >= room)
            continue;
        const tp_ggml_info *info = tp_ggml_info_of(type);
        w->report.is_quantised |= info->block > 1;
        at += (size_t)snprintf(w->report.gguf_types + at, room - at, "%s%zu %s", at ? ", " : "",
                               counts[type], info->name);
    }
}

tp_status tp_weights_find_in_gguf(tp_weights *w, tp_error *err)
{
    size_t n_used = 0;
    TP_TRY(tp_gguf_open(w->model->folder, &w->gguf, err));
    w->report.n_files = 1;
    TP_FREED bool *is_used = tp_new(tp_gguf_tensor_count(w->gguf) + 1, sizeof *is_used);
    tp_status status = TP_OK;
    for (size_t i = 0; i < w->model->n_params && status == TP_OK; i++) {
        const tp_param *p = &w->model->params[i];
        tp_gguf_place place;
        const tp_gguf_tensor *t =
            tp_gguf_place_of(w->model, p, &place) ? tp_gguf_find_tensor(w->gguf, place.name) : NULL;
        if (!t)
            continue;
        status = check(w, p, &place, t, err);
        if (status != TP_OK)
            break;
        tp_weights_take(w, i, tp_gguf_name(w->gguf), dtype_of(t->type), t->bytes);
        w->tensors[i] = t;
        is_used[t - tp_gguf_tensor_at(w->gguf, 0)] = true;
        n_used++;
    }
    for (size_t i = 0; i < tp_gguf_tensor_count(w->gguf) && status == TP_OK; i++) {
        const tp_gguf_tensor *t = tp_gguf_tensor_at(w->gguf, i);
        if (!is_used[i] && strcmp(t->name, "rope_freqs.weight") != 0)
            status = tp_fail(err, TP_ERR_UNSUPPORTED,
                             "%s: byte %zu: tensor '%.100s' is not known here and may change what "
                             "the model computes",
                             tp_gguf_name(w->gguf), t->at, t->name);
    }
    describe(w);
    return status;
}

/* ---- reading ---- */

static const char *row_of(const tp_gguf_tensor *t, int64_t row)
{
    return t->data + (size_t)row * (t->bytes / (size_t)t->dim[1]);
}

static void read_vector(const tp_weights *w, const tp_gguf_tensor *t, const tp_gguf_place *place,
                        float *row, float *out)
{
    tp_ggml_to_f32(t->type, t->data, row, (size_t)t->dim[0]);
    for (int64_t i = 0; i < t->dim[0]; i++)
        out[i] = row[place->layout == TP_GGUF_NEIGHBOURS ? tp_gguf_row(w->model, i) : i];
}

tp_status tp_weights_read_gguf(const tp_weights *w, size_t param, int64_t first, int64_t n,
                               float *out, tp_error *err)
{
    const tp_param *p = &w->model->params[param];
    const tp_gguf_tensor *t = w->tensors[param];
    size_t length = (size_t)t->dim[0];
    tp_gguf_place place;
    TP_FREED float *row = malloc(length * sizeof *row);
    if (!row || !tp_gguf_place_of(w->model, p, &place))
        return tp_fail(err, TP_ERR_NOMEM, "cannot read '%s': out of memory", p->name);
    if (p->rank == 1)
        read_vector(w, t, &place, row, out);
    else if (place.layout == TP_GGUF_TRANSPOSED)
        for (int64_t o = 0; o < t->dim[1]; o++) {
            tp_ggml_to_f32(t->type, row_of(t, o), row, length);
            for (int64_t i = 0; i < n; i++)
                out[i * t->dim[1] + o] = row[first + i];
        }
    else
        for (int64_t i = 0; i < n; i++) {
            int64_t from =
                place.layout == TP_GGUF_NEIGHBOURS ? tp_gguf_row(w->model, first + i) : first + i;
            tp_ggml_to_f32(t->type, row_of(t, from), out + (size_t)i * length, length);
        }
    return TP_OK;
}
