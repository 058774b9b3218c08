/* weights.c - every tensor of the files is looked at once and finds its parameter by name; what
 * is left over on either side is reported.  Files of a bare model (without a head) lack the
 * prefix "model." or "transformer.". */
#include "engine/model/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "engine/model/convert.h"

enum { PIECE = 16 << 10 }; /* elements converted at a time: they stay in the cache */

/* While safetensors are gone through. */
typedef struct {
    tp_weights *w;
    const tp_model *model;
    const tp_safetensors *file; /* the one being read */
    const tp_tensor_entry *embedding, *tied_head;
    const tp_safetensors *head_file; /* of tied_head */
} finding;

static const tp_param *resolve(const tp_model *model, const char *name)
{
    const tp_param *p = tp_model_find_param(model, name);
    if (p)
        return p;
    char full[512];
    snprintf(full, sizeof full, "%s%s", model->family->prefix, name);
    return tp_model_find_param(model, full);
}

static bool is_ignored(const tp_family *family, const char *name)
{
    char dotted[512]; /* "attn.bias" of a bare layer ends in ".attn.bias" only with a dot */
    snprintf(dotted, sizeof dotted, ".%s", name);
    for (const char *const *end = family->ignored; *end; end++)
        if (tp_str_ends(dotted, *end))
            return true;
    return false;
}

static void describe_shape(const int64_t *dim, int rank, char *out, size_t n)
{
    size_t at = (size_t)snprintf(out, n, "[");
    for (int i = 0; i < rank && at < n; i++)
        at += (size_t)snprintf(out + at, n - at, "%s%lld", i ? ", " : "", (long long)dim[i]);
    if (at < n)
        snprintf(out + at, n - at, "]");
}

static tp_status check_tensor(const finding *l, const tp_param *p, const tp_tensor_entry *e,
                              tp_error *err)
{
    const char *file = tp_safetensors_name(l->file);
    if (!e->is_known || !tp_convert_is_float(e->dtype))
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "%s: tensor '%s' is %.40s; weights must be F32, BF16, F16 or F64", file,
                       e->name, e->dtype_name);
    bool fits = e->rank == p->rank && e->dim[0] == p->dim[0];
    if (fits && p->rank == 2)
        fits = e->dim[1] == p->dim[1];
    if (fits)
        return TP_OK;
    char have[200], want[64];
    describe_shape(e->dim, e->rank, have, sizeof have);
    describe_shape(p->dim, p->rank, want, sizeof want);
    bool is_vocab =
        strcmp(p->name, l->model->embedding_name) == 0 || strcmp(p->name, "lm_head.weight") == 0;
    return tp_fail(err, TP_ERR_FORMAT, "%s: tensor '%s' is %s, but %s implies %s%s", file, e->name,
                   have, l->model->config_path, want, is_vocab ? " ([vocab_size, width])" : "");
}

static tp_status take_tensor(finding *l, const tp_param *p, const tp_tensor_entry *e, tp_error *err)
{
    size_t index = (size_t)(p - l->model->params);
    TP_TRY(check_tensor(l, p, e, err));
    if (l->w->from[index])
        return tp_fail(err, TP_ERR_FORMAT, "tensor '%s' is in %s and again in %s", p->name,
                       l->w->from[index], tp_safetensors_name(l->file));
    tp_weights_take(l->w, index, tp_safetensors_name(l->file), e->dtype, e->bytes);
    l->w->entries[index] = e;
    if (strcmp(p->name, l->model->embedding_name) == 0)
        l->embedding = e;
    return TP_OK;
}

static tp_status look_through(finding *l, tp_error *err)
{
    for (size_t i = 0; i < tp_safetensors_count(l->file); i++) {
        const tp_tensor_entry *e = tp_safetensors_at(l->file, i);
        const tp_param *p = resolve(l->model, e->name);
        if (p)
            TP_TRY(take_tensor(l, p, e, err));
        else if (l->model->info.tied && strcmp(e->name, "lm_head.weight") == 0) {
            l->tied_head = e;
            l->head_file = l->file;
        } else if (!is_ignored(l->model->family, e->name))
            tp_weights_note_unused(l->w, e->name);
    }
    return TP_OK;
}

/* Files of a tied model may hold the head as well, a copy then, or the head alone. */
static tp_status settle_tied_head(finding *l, tp_error *err)
{
    if (!l->tied_head || l->embedding)
        return TP_OK;
    l->file = l->head_file;
    l->w->report.head_was_embedding = true;
    return take_tensor(l, tp_model_find_param(l->model, l->model->embedding_name), l->tied_head,
                       err);
}

/* The types that differ from the embedding's. */
static void note_dtypes(tp_weights *w)
{
    for (size_t i = 0; i < w->model->n_params; i++) {
        if (!w->from[i] || w->dtypes[i] == w->report.file_dtype || w->report.n_other_dtype++)
            continue;
        w->report.other_dtype = w->dtypes[i];
        snprintf(w->report.other_dtype_name, sizeof w->report.other_dtype_name, "%s",
                 w->model->params[i].name);
    }
}

/* As the file would call it. */
static void add_name(const tp_weights *w, const tp_param *p, tp_buf *out)
{
    tp_gguf_place place;
    bool is_there = w->gguf && tp_gguf_place_of(w->model, p, &place);
    tp_buf_adds(out, is_there ? place.name : p->name);
}

static tp_status check_complete(const tp_weights *w, tp_error *err)
{
    if (w->report.n_loaded == w->model->n_params)
        return TP_OK;
    TP_OWN(tp_buf) names = {0};
    size_t n = 0;
    for (size_t i = 0; i < w->model->n_params; i++) {
        if (w->from[i])
            continue;
        if (n++ && names.len < 600)
            tp_buf_adds(&names, ", ");
        if (names.len < 600)
            add_name(w, &w->model->params[i], &names);
        else if (!tp_str_ends(names.data, "..."))
            tp_buf_adds(&names, "...");
    }
    bool lacks_head = n == 1 && !w->from[w->model->n_params - 1] && !w->model->info.tied;
    return tp_fail(err, TP_ERR_FORMAT, "%s: %zu of %zu tensors are missing: %s%s", w->model->folder,
                   n, w->model->n_params, names.data,
                   lacks_head ? "; if the head is the embedding, config.json must say "
                                "\"tie_word_embeddings\": true"
                              : "");
}

static tp_status find_in_folder(tp_weights *w, tp_error *err)
{
    finding l = {.w = w, .model = w->model};
    TP_TRY(tp_shards_open(w->model->folder, &w->shards, err));
    w->report.n_files = w->shards.n;
    for (size_t i = 0; i < w->shards.n; i++) {
        l.file = w->shards.files[i];
        TP_TRY(look_through(&l, err));
    }
    return settle_tied_head(&l, err);
}

tp_status tp_weights_open(const tp_model *model, tp_weights *ret, tp_error *err)
{
    if (!model->folder)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s was opened without its folder; give the folder to load weights",
                       model->config_path);
    tp_weights w = {.model = model,
                    .from = tp_new(model->n_params, sizeof *w.from),
                    .dtypes = tp_new(model->n_params, sizeof *w.dtypes),
                    .entries = tp_new(model->n_params, sizeof *w.entries),
                    .tensors = tp_new(model->n_params, sizeof *w.tensors),
                    .report = {.n_expected = model->n_params}};
    tp_status status = model->is_gguf ? tp_weights_find_in_gguf(&w, err) : find_in_folder(&w, err);
    note_dtypes(&w);
    if (status == TP_OK)
        status = check_complete(&w, err);
    TP_HAND_OVER(status, ret, w, tp_weights_close(&w));
}

void tp_weights_close(tp_weights *w)
{
    tp_shards_close(&w->shards);
    tp_gguf_close(w->gguf);
    free(w->from);
    free(w->dtypes);
    free(w->entries);
    free(w->tensors);
    *w = (tp_weights){0};
}

/* ---- reading ---- */

int64_t tp_weights_rows(const tp_param *p) { return p->rank == 1 ? 1 : p->dim[0]; }
int64_t tp_weights_row_length(const tp_param *p) { return p->dim[p->rank == 1 ? 0 : 1]; }

int64_t tp_weights_piece(const tp_weights *w, size_t param)
{
    const tp_param *p = &w->model->params[param];
    int64_t rows = tp_weights_rows(p), fit = TP_MAX(PIECE / tp_weights_row_length(p), 1);
    tp_gguf_place place;
    /* Its rows are columns there: all of them are gone through for one. */
    if (w->gguf && tp_gguf_place_of(w->model, p, &place) && place.layout == TP_GGUF_TRANSPOSED)
        return rows;
    return TP_MIN(rows, fit);
}

static bool all_finite(const float *x, size_t n)
{
    bool is_finite = true;
    for (size_t i = 0; i < n; i++)
        is_finite &= isfinite(x[i]) != 0;
    return is_finite;
}

tp_status tp_weights_read(const tp_weights *w, size_t param, int64_t first, int64_t n, float *out,
                          bool *ret_is_finite, tp_error *err)
{
    const tp_param *p = &w->model->params[param];
    size_t length = (size_t)tp_weights_row_length(p), count = (size_t)n * length;
    if (w->gguf) {
        TP_TRY(tp_weights_read_gguf(w, param, first, n, out, err));
        *ret_is_finite = all_finite(out, count);
        return TP_OK;
    }
    const tp_tensor_entry *e = w->entries[param];
    const char *from = (const char *)e->data + (size_t)first * length * tp_dtype_size(e->dtype);
    *ret_is_finite = tp_convert_to_f32(from, e->dtype, out, count);
    return TP_OK;
}
