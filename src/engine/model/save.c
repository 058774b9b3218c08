/* save.c - a model written as shards with their index, in a folder. */
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/order.h"
#include "base/platform.h"
#include "base/working.h"
#include "engine/model/adapter_internal.h"
#include "engine/model/safetensors.h"
#include "text/json/json.h"

static const size_t default_shard_bytes = (size_t)5 << 30;

typedef struct {
    const tp_model *model;
    const char *folder;
    const tp_companions *companions;
    tp_tensor_out *tensors; /* in the order of the parameters */
    size_t *shard;          /* parameter -> shard, from 0 */
    size_t n_shards, n_bytes, max_shard_bytes;
    tp_dtype dtype;
    tp_shard among; /* those that write the tensors */
} saving;

typedef tp_status (*shard_writer)(const char *path, const tp_tensor_out *tensors, size_t n,
                                  tp_error *err);

static tp_status check_room(const saving *s, tp_error *err)
{
    enum { HEADER_PER_TENSOR = 256, SMALL_FILES = 64 << 10 };
    struct statvfs fs;
    size_t companions;
    TP_TRY(tp_companions_size(s->companions, &companions, err));
    size_t bytes = s->n_bytes + companions + s->model->n_params * HEADER_PER_TENSOR +
                   s->model->config_len + SMALL_FILES;
    if (statvfs(s->folder, &fs) != 0 || fs.f_blocks == 0)
        return TP_OK; /* it cannot be told; writing will show */
    double available = (double)fs.f_bavail * (double)fs.f_frsize;
    if ((double)bytes <= available)
        return TP_OK;
    return tp_fail(
        err, TP_ERR_OUTPUT,
        "cannot save the model to %s: it takes %s, the disk has %s free; free some space "
        "or choose another folder",
        s->folder, tp_human_bytes((double)bytes, TP_ROOM), tp_human_bytes(available, TP_ROOM));
}

static tp_status gather(saving *s, const tp_states *states, tp_error *err)
{
    size_t filled = 0;
    s->n_shards = 1;
    for (size_t i = 0; i < s->model->n_params; i++) {
        const tp_param *p = &s->model->params[i];
        const tp_tensor *state = tp_states_find(states, p->name);
        if (!state || !state->span.buffer)
            return tp_fail(err, TP_ERR_ARG, "tensor '%s' is not in memory", p->name);
        size_t bytes = tp_tensor_count(state) * tp_dtype_size(s->dtype);
        if (filled && bytes > s->max_shard_bytes - TP_MIN(filled, s->max_shard_bytes)) {
            s->n_shards++;
            filled = 0;
        }
        filled += bytes;
        s->n_bytes += bytes;
        s->shard[i] = s->n_shards - 1;
        s->tensors[i] = tp_tensor_out_of(state, p->name, s->dtype, s->among);
    }
    return TP_OK;
}

static void shard_name(const saving *s, size_t shard, char out[64])
{
    if (s->n_shards == 1)
        snprintf(out, 64, "model.safetensors");
    else
        snprintf(out, 64, "model-%05zu-of-%05zu.safetensors", shard + 1, s->n_shards);
}

static tp_status write_shards(const saving *s, shard_writer write, tp_error *err)
{
    TP_OWN(tp_buf) path = {0};
    for (size_t k = 0, first = 0; k < s->n_shards; k++) {
        char name[64];
        size_t end = first;
        while (end < s->model->n_params && s->shard[end] == k)
            end++;
        shard_name(s, k, name);
        tp_buf_clear(&path);
        tp_buf_addf(&path, "%s/%s", s->folder, name);
        TP_TRY(write(path.data, s->tensors + first, end - first, err));
        first = end;
    }
    return TP_OK;
}

TP_ORDER(by_name, tp_tensor_out *const, strcmp((*x)->name, (*y)->name))

static void describe_shards(const saving *s, const tp_tensor_out **sorted, tp_buf *out)
{
    size_t n = s->model->n_params;
    tp_json_w w = tp_json_w_open(out, 2, '{');
    tp_json_w_put_begin(&w, "metadata", '{');
    tp_json_w_put_i64(&w, "total_parameters", s->model->param_count);
    tp_json_w_put_i64(&w, "total_size", (int64_t)s->n_bytes);
    tp_json_w_end(&w, '}');
    tp_json_w_put_begin(&w, "weight_map", '{');
    for (size_t i = 0; i < n; i++) {
        char name[64];
        shard_name(s, s->shard[sorted[i] - s->tensors], name);
        tp_json_w_put_str(&w, sorted[i]->name, name);
    }
    tp_json_w_end(&w, '}');
    tp_json_w_close(&w, '}');
}

static tp_status write_index(const saving *s, tp_error *err)
{
    size_t n = s->model->n_params;
    TP_FREED const tp_tensor_out **sorted = tp_new(n, sizeof *sorted);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &s->tensors[i];
    qsort(sorted, n, sizeof *sorted, by_name);
    TP_OWN(tp_buf) text = {0};
    describe_shards(s, sorted, &text);
    return tp_model_write_text(s->folder, "model.safetensors.index.json", &text, err);
}

static tp_status write_config(const saving *s, tp_error *err)
{
    const tp_model *m = s->model;
    const char *dtype = s->dtype == TP_DTYPE_F32    ? "float32"
                        : s->dtype == TP_DTYPE_BF16 ? "bfloat16"
                                                    : "float16";
    TP_OWN(tp_buf) text = {0};
    TP_TRY(tp_fields_rewrite(m->config_path, m->config_text, m->config_len, dtype,
                             m->family->architecture, &text, err));
    return tp_model_write_text(s->folder, "config.json", &text, err);
}

static tp_status save_frame(const saving *s, tp_error *err)
{
    TP_TRY(tp_dir_make(s->folder, err));
    TP_TRY(check_room(s, err));
    TP_TRY(write_shards(s, tp_safetensors_frame, err));
    if (s->n_shards > 1)
        TP_TRY(write_index(s, err));
    TP_TRY(write_config(s, err));
    TP_TRY(tp_companions_write(s->companions, s->folder, err));
    return tp_dir_sync(s->folder, err);
}

static tp_status save_tensors(const saving *s, tp_error *err)
{
    TP_OWN(tp_job) job = {0};
    tp_job_begin(&job, s->n_bytes / (size_t)TP_MAX(s->among.count, 1), "writing %s", s->folder);
    return write_shards(s, tp_safetensors_fill, err);
}

static tp_status save(saving s, const tp_states *states,
                      tp_status (*write)(const saving *s, tp_error *err), tp_error *err)
{
    static const tp_companions none;
    if (s.dtype != TP_DTYPE_F32 && s.dtype != TP_DTYPE_BF16 && s.dtype != TP_DTYPE_F16)
        return tp_fail(err, TP_ERR_ARG, "models are saved as f32, bf16 or f16, not %s",
                       tp_dtype_name(s.dtype));
    s.companions = s.companions ? s.companions : &none;
    s.max_shard_bytes = s.max_shard_bytes ? s.max_shard_bytes : default_shard_bytes;
    s.tensors = tp_new(s.model->n_params, sizeof *s.tensors);
    s.shard = tp_new(s.model->n_params, sizeof *s.shard);
    tp_status status = gather(&s, states, err);
    if (status == TP_OK)
        status = write(&s, err);
    free(s.tensors);
    free(s.shard);
    return status;
}

tp_status tp_model_save_frame(const tp_model *model, const tp_states *states, const char *folder,
                              tp_dtype dtype, size_t max_shard_bytes,
                              const tp_companions *companions, tp_error *err)
{
    saving s = {.model = model,
                .folder = folder,
                .companions = companions,
                .dtype = dtype,
                .max_shard_bytes = max_shard_bytes};
    return save(s, states, save_frame, err);
}

tp_status tp_model_save_share(const tp_model *model, const tp_states *states, const char *folder,
                              tp_dtype dtype, size_t max_shard_bytes, tp_shard among, tp_error *err)
{
    saving s = {.model = model,
                .folder = folder,
                .dtype = dtype,
                .max_shard_bytes = max_shard_bytes,
                .among = among};
    return save(s, states, save_tensors, err);
}

tp_status tp_model_save(const tp_model *model, const tp_states *states, const char *folder,
                        tp_dtype dtype, size_t max_shard_bytes, const tp_companions *companions,
                        tp_error *err)
{
    TP_TRY(tp_model_save_frame(model, states, folder, dtype, max_shard_bytes, companions, err));
    return tp_model_save_share(model, states, folder, dtype, max_shard_bytes, (tp_shard){0, 1},
                               err);
}
