/* Every tensor of the files is looked at once and finds its parameter by name; what
 * is left over on either side is reported.  Files of a bare model (without a head)
 * lack the prefix "model." or "transformer.". */
#include <stdlib.h>
#include <string.h>

#include "engine/model/convert.h"
#include "engine/model/family.h"
#include "engine/model/shards.h"

typedef struct {
    const tp_model *model;
    tp_states *states;
    const tp_safetensors *file; /* the one being read */
    const char **from;          /* parameter -> file that gave it */
    const tp_tensor_entry *embedding, *tied_head;
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

static tp_status load_tensor(loading *l, const tp_param *p, const tp_tensor_entry *e, tp_error *err)
{
    size_t index = (size_t)(p - l->model->params);
    TP_TRY(check_tensor(l, p, e, err));
    if (l->from[index])
        return tp_fail(err, TP_ERR_FORMAT, "tensor '%s' is in %s and again in %s", p->name,
                       l->from[index], tp_safetensors_name(l->file));
    l->from[index] = tp_safetensors_name(l->file);
    tp_state *state = tp_states_find(l->states, p->name);
    if (!state || !state->data)
        return tp_fail(err, TP_ERR_ARG, "tensor '%s' has no memory to be loaded into", p->name);
    size_t n = state->bytes / sizeof(float);
    if (!tp_convert_to_f32(e->data, e->dtype, state->data, n) && !l->report.has_nonfinite) {
        l->report.has_nonfinite = true;
        snprintf(l->report.nonfinite_name, sizeof l->report.nonfinite_name, "%s", p->name);
    }
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
        else if (l->model->info.tied && strcmp(e->name, "lm_head.weight") == 0)
            l->tied_head = e;
        else if (!is_ignored(l->model->family, e->name))
            note_unused(&l->report, e->name);
    }
    return TP_OK;
}

/* Files of a tied model may hold the head as well; it must be the embedding. */
static void compare_tied_head(loading *l)
{
    const tp_tensor_entry *a = l->embedding, *b = l->tied_head;
    if (!b)
        return;
    bool is_equal = a && a->dtype == b->dtype && a->bytes == b->bytes &&
                    (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0);
    l->report.head_was_tied_copy = is_equal;
    l->report.head_was_ignored = !is_equal;
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
    compare_tied_head(l);
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
                 .report = {.n_expected = model->n_params, .n_files = shards.n}};
    TP_ASSERT(l.from);
    tp_status status = load_all(&l, &shards, err);
    if (status == TP_OK)
        *ret = l.report;
    free(l.from);
    tp_shards_close(&shards);
    return status;
}
