/* Every tensor of the files is looked at once and finds its parameter by name; what
 * is left over on either side is reported.  Files of a bare model (without a head)
 * lack the prefix "model." or "transformer.". */
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "engine/model/convert.h"
#include "engine/model/family.h"
#include "engine/model/shards.h"

enum { CHUNK = 16 << 10 }; /* elements converted at a time */

typedef struct {
    const tp_model *model;
    tp_states *states;
    const tp_safetensors *file; /* the one being read */
    const char **from;          /* parameter -> file that gave it */
    const tp_tensor_entry *embedding, *tied_head;
    const tp_safetensors *head_file; /* of tied_head */
    tp_dtype *dtypes;                /* parameter -> what its file has */
    tp_load_report report;
} loading;

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

static void note_unused(tp_load_report *report, const char *name)
{
    size_t used = strlen(report->unused_names), room = sizeof report->unused_names - used;
    report->n_unused++;
    if (strlen(name) + 3 <= room)
        snprintf(report->unused_names + used, room, "%s%s", used ? ", " : "", name);
}

static void describe_shape(const int64_t *dim, int rank, char *out, size_t n)
{
    size_t at = (size_t)snprintf(out, n, "[");
    for (int i = 0; i < rank && at < n; i++)
        at += (size_t)snprintf(out + at, n - at, "%s%lld", i ? ", " : "", (long long)dim[i]);
    if (at < n)
        snprintf(out + at, n - at, "]");
}

static tp_status check_tensor(const loading *l, const tp_param *p, const tp_tensor_entry *e,
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

/* Piece by piece: what lies between the file and the device stays in the cache. */
static tp_status write_converted(const tp_tensor_entry *e, const tp_tensor *state,
                                 bool *ret_is_finite, tp_error *err)
{
    float wide[CHUNK];
    size_t n = state->bytes / sizeof *wide, size = tp_dtype_size(e->dtype);
    *ret_is_finite = true;
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t count = TP_MIN(n - i, (size_t)CHUNK);
        const char *from = (const char *)e->data + i * size;
        *ret_is_finite &= tp_convert_to_f32(from, e->dtype, wide, count);
        TP_TRY(tp_tensor_write(state, i * sizeof *wide, wide, count * sizeof *wide, err));
    }
    return TP_OK;
}

static tp_status load_tensor(loading *l, const tp_param *p, const tp_tensor_entry *e, tp_error *err)
{
    size_t index = (size_t)(p - l->model->params);
    TP_TRY(check_tensor(l, p, e, err));
    if (l->from[index])
        return tp_fail(err, TP_ERR_FORMAT, "tensor '%s' is in %s and again in %s", p->name,
                       l->from[index], tp_safetensors_name(l->file));
    l->from[index] = tp_safetensors_name(l->file);
    tp_tensor *state = tp_states_find(l->states, p->name);
    if (!state || !state->span.buffer)
        return tp_fail(err, TP_ERR_ARG, "tensor '%s' has no memory to be loaded into", p->name);
    bool is_finite;
    TP_TRY(write_converted(e, state, &is_finite, err));
    if (!is_finite && !l->report.has_nonfinite) {
        l->report.has_nonfinite = true;
        snprintf(l->report.nonfinite_name, sizeof l->report.nonfinite_name, "%s", p->name);
    }
    l->dtypes[index] = e->dtype;
    if (strcmp(p->name, l->model->embedding_name) == 0) {
        l->embedding = e;
        l->report.file_dtype = e->dtype;
    }
    l->report.n_loaded++;
    l->report.n_bytes += e->bytes;
    return TP_OK;
}

static tp_status load_file(loading *l, tp_error *err)
{
    for (size_t i = 0; i < tp_safetensors_count(l->file); i++) {
        const tp_tensor_entry *e = tp_safetensors_at(l->file, i);
        const tp_param *p = resolve(l->model, e->name);
        if (p)
            TP_TRY(load_tensor(l, p, e, err));
        else if (l->model->info.tied && strcmp(e->name, "lm_head.weight") == 0) {
            l->tied_head = e;
            l->head_file = l->file;
        } else if (!is_ignored(l->model->family, e->name))
            note_unused(&l->report, e->name);
    }
    return TP_OK;
}

/* Files of a tied model may hold the head as well, a copy then, or the head alone. */
static tp_status settle_tied_head(loading *l, tp_error *err)
{
    l->report.head_was_tied_copy = l->tied_head && l->embedding;
    if (!l->tied_head || l->embedding)
        return TP_OK;
    l->file = l->head_file;
    l->report.head_was_embedding = true;
    return load_tensor(l, tp_model_find_param(l->model, l->model->embedding_name), l->tied_head,
                       err);
}

/* The types that differ from the embedding's. */
static void note_dtypes(loading *l)
{
    for (size_t i = 0; i < l->model->n_params; i++) {
        if (!l->from[i] || l->dtypes[i] == l->report.file_dtype || l->report.n_other_dtype++)
            continue;
        l->report.other_dtype = l->dtypes[i];
        snprintf(l->report.other_dtype_name, sizeof l->report.other_dtype_name, "%s",
                 l->model->params[i].name);
    }
}

/* ---- is there a head beside the embedding that differs from it? ---- */

static const tp_tensor_entry *find_entry(const tp_shards *shards, const char *name)
{
    const tp_tensor_entry *e = NULL;
    for (size_t i = 0; i < shards->n && !e; i++)
        e = tp_safetensors_find(shards->files[i], name);
    return e;
}

/* As numbers, whatever type each is stored in. */
static bool are_equal(const tp_tensor_entry *a, const tp_tensor_entry *b, size_t n)
{
    enum { BLOCK = 4096 };
    float x[BLOCK], y[BLOCK];
    if (a->dtype == b->dtype)
        return a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
    size_t wa = tp_dtype_size(a->dtype), wb = tp_dtype_size(b->dtype);
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t count = TP_MIN(n - at, (size_t)BLOCK);
        tp_convert_to_f32((const char *)a->data + at * wa, a->dtype, x, count);
        tp_convert_to_f32((const char *)b->data + at * wb, b->dtype, y, count);
        if (memcmp(x, y, count * sizeof *x) != 0)
            return false;
    }
    return true;
}

static bool is_table(const tp_model *model, const tp_tensor_entry *e)
{
    return e && e->is_known && tp_convert_is_float(e->dtype) && e->rank == 2 &&
           e->dim[0] == model->info.vocab && e->dim[1] == model->info.hidden;
}

bool tp_model_file_has_own_head(const tp_model *model)
{
    tp_shards shards = {0};
    if (tp_shards_open(model->folder, &shards, NULL) != TP_OK)
        return false; /* loading will say what is wrong */
    const char *bare = model->embedding_name + strlen(model->family->prefix);
    const tp_tensor_entry *head = find_entry(&shards, "lm_head.weight");
    const tp_tensor_entry *table = find_entry(&shards, model->embedding_name);
    if (!table)
        table = find_entry(&shards, bare);
    bool has_own = is_table(model, head) && is_table(model, table) &&
                   !are_equal(head, table, (size_t)(head->dim[0] * head->dim[1]));
    tp_shards_close(&shards);
    return has_own;
}

static tp_status check_complete(const loading *l, tp_error *err)
{
    if (l->report.n_loaded == l->model->n_params)
        return TP_OK;
    tp_buf names = {0};
    size_t n = 0;
    for (size_t i = 0; i < l->model->n_params; i++) {
        if (l->from[i])
            continue;
        if (n++ && names.len < 600)
            tp_buf_adds(&names, ", ");
        if (names.len < 600)
            tp_buf_adds(&names, l->model->params[i].name);
        else if (!tp_str_ends(names.data, "..."))
            tp_buf_adds(&names, "...");
    }
    bool lacks_head = n == 1 && !l->from[l->model->n_params - 1] && !l->model->info.tied;
    tp_status status = tp_fail(err, TP_ERR_FORMAT, "%s: %zu of %zu tensors are missing: %s%s",
                               l->model->folder, n, l->model->n_params, names.data,
                               lacks_head ? "; if the head is the embedding, config.json must say "
                                            "\"tie_word_embeddings\": true"
                                          : "");
    tp_buf_release(&names);
    return status;
}

static tp_status load_all(loading *l, const tp_shards *shards, tp_error *err)
{
    for (size_t i = 0; i < shards->n; i++) {
        l->file = shards->files[i];
        TP_TRY(load_file(l, err));
    }
    TP_TRY(settle_tied_head(l, err));
    note_dtypes(l);
    return check_complete(l, err);
}

tp_status tp_model_load(const tp_model *model, tp_states *states, tp_load_report *ret,
                        tp_error *err)
{
    if (!model->folder)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s was opened without its folder; give the folder to load weights",
                       model->config_path);
    tp_shards shards;
    TP_TRY(tp_shards_open(model->folder, &shards, err));
    loading l = {.model = model,
                 .states = states,
                 .from = calloc(model->n_params, sizeof *l.from),
                 .dtypes = calloc(model->n_params, sizeof *l.dtypes),
                 .report = {.n_expected = model->n_params, .n_files = shards.n}};
    TP_ASSERT(l.from && l.dtypes);
    tp_status status = load_all(&l, &shards, err);
    if (status == TP_OK)
        *ret = l.report;
    free(l.from);
    free(l.dtypes);
    tp_shards_close(&shards);
    return status;
}
