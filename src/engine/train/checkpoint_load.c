/* checkpoint_load.c - a session as a checkpoint has it. */
#include <string.h>

#include "base/files.h"
#include "base/log.h"
#include "base/platform.h"
#include "engine/model/adapter.h"
#include "engine/model/safetensors.h"
#include "engine/train/checkpoint_internal.h"
#include "engine/train/parts.h"

static tp_status copy_tensor(const tp_safetensors *st, const char *name, tp_tensor *into,
                             const char *path, tp_error *err)
{
    const tp_tensor_entry *e = tp_safetensors_find(st, name);
    if (!e)
        return tp_fail(err, TP_ERR_FORMAT, "'%s' lacks tensor '%s'", path, name);
    size_t bytes = tp_dtype_size(into->dtype) * tp_tensor_count(into);
    if (!e->is_known || e->dtype != into->dtype || e->bytes != bytes)
        return tp_fail(err, TP_ERR_FORMAT, "'%s': tensor '%s' has another type than the run's",
                       path, name);
    return tp_tensor_write(into, 0, e->data, bytes, err);
}

/* What `from` ranks kept of a gradient, added up, is now kept by those whose parts they are: the
 * next exchange adds it to the sums. */
static tp_status hand_over_errors(const tp_tensor_entry *e, const tp_ranks *ranks,
                                  const tp_tensor *into, size_t n, tp_error *err)
{
    enum { CHUNK = 1 << 16 };
    size_t width = (size_t)into->dim[1], begin, end;
    size_t row = (size_t)tp_ranks_row(ranks).index * width;
    TP_FREED float *sum = tp_new(CHUNK, sizeof *sum);
    const tp_tensor part = {.shard = tp_ranks_shard(ranks)};
    tp_tensor_share(&part, n, (tp_shard){ranks->rank, ranks->ranks}, &begin, &end);
    for (size_t at = 0; at < width; at += CHUNK) {
        size_t count = TP_MIN((size_t)CHUNK, width - at);
        memset(sum, 0, CHUNK * sizeof *sum);
        for (int64_t r = 0; e && r < e->dim[0]; r++)
            for (size_t k = TP_MAX(begin, at); k < TP_MIN(end, at + count); k++) {
                float x;
                memcpy(&x, (const float *)e->data + (size_t)r * width + k, sizeof x);
                sum[k - at] += x;
            }
        TP_TRY(tp_tensor_write(into, (row + at) * sizeof *sum, sum, count * sizeof *sum, err));
    }
    return TP_OK;
}

/* Whether rows can be handed over: not where other ranks share the layers, or others than did. */
static bool fit_errors(const tp_safetensors *st, const tp_states *states, const tp_ranks *ranks)
{
    for (size_t i = 0; i < states->n; i++) {
        const tp_tensor *s = &states->items[i];
        const tp_tensor_entry *e =
            s->role == TP_ROLE_ERROR ? tp_safetensors_find(st, s->name) : NULL;
        if (e && (e->dim[1] != s->dim[1] || (ranks->tensor.count > 1 && e->dim[0] != s->dim[0])))
            return false;
    }
    return true;
}

/* A checkpoint of another number of ranks, or without compression, has other ones. */
static tp_status load_errors(const tp_safetensors *st, const tp_states *states,
                             const tp_ranks *ranks, tp_tensor *into, const char *path,
                             int64_t *ret_ranks, tp_error *err)
{
    const tp_tensor_entry *e = tp_safetensors_find(st, into->name);
    if (e && (!e->is_known || e->dtype != into->dtype || e->rank != 2))
        return tp_fail(err, TP_ERR_FORMAT, "'%s': tensor '%s' has another type than the run's",
                       path, into->name);
    e = fit_errors(st, states, ranks) ? e : NULL;
    *ret_ranks = e ? e->dim[0] : 0;
    if (e && e->dim[0] == into->dim[0])
        return copy_tensor(st, into->name, into, path, err);
    return hand_over_errors(e, ranks, into, tp_parts_count(states, into), err);
}

static bool has_errors_of(const tp_safetensors *st, const tp_tensor *weight)
{
    char name[TP_MASTER_NAME];
    snprintf(name, sizeof name, "error.%s", weight->name);
    return weight->role == TP_ROLE_WEIGHT && tp_safetensors_find(st, name);
}

/* What was kept of gradients, and is not there any more, or in another way. */
static void say_errors(const tp_safetensors *st, const tp_states *states, const tp_ranks *ranks,
                       int64_t from, bool has_own)
{
    bool has_any = false;
    for (size_t i = 0; i < states->n; i++)
        has_any |= has_errors_of(st, &states->items[i]);
    if (tp_ranks_row(ranks).index > 0)
        return;
    if (has_any && has_own && !from)
        tp_log(TP_LOG_WARNING, "checkpoint",
               "what was kept of compressed gradients is dropped: other ranks shared the layers");
    else if (has_any && !has_own)
        tp_log(TP_LOG_WARNING, "checkpoint",
               "what was kept of compressed gradients is dropped: this run sends them whole");
    else if (has_own && from && from != tp_ranks_processes(ranks))
        tp_log(TP_LOG_WARNING, "checkpoint",
               "what %lld ranks kept of compressed gradients is added up and sent by %d",
               (long long)from, tp_ranks_processes(ranks));
}

static bool has_masters(const tp_safetensors *st, const tp_states *states)
{
    char name[TP_MASTER_NAME];
    for (size_t i = 0; i < states->n; i++)
        if (states->items[i].role == TP_ROLE_WEIGHT &&
            tp_safetensors_find(st, tp_master_name(&states->items[i], name)))
            return true;
    return false;
}

static tp_status load_optimizer(const char *path, tp_session *session, tp_error *err)
{
    tp_safetensors *st;
    TP_TRY(tp_safetensors_open(path, &st, err));
    const tp_states *states = tp_session_states(session);
    const tp_ranks *ranks = &tp_session_get_options(session)->compile.ranks;
    bool masters = has_masters(st, states), has_errors = false;
    int64_t from = 0;
    tp_status status = TP_OK;
    for (size_t i = 0; i < states->n && status == TP_OK; i++) {
        tp_tensor *s = &states->items[i];
        char name[TP_MASTER_NAME];
        if (s->role == TP_ROLE_MOMENT && !s->within)
            status = copy_tensor(st, s->name, s, path, err);
        if (s->role == TP_ROLE_ERROR) {
            has_errors = true;
            status = load_errors(st, states, ranks, s, path, &from, err);
        }
        if (s->role == TP_ROLE_WEIGHT && !s->within && masters)
            status = copy_tensor(st, tp_master_name(s, name), s, path, err);
    }
    if (status == TP_OK)
        say_errors(st, states, ranks, from, has_errors);
    tp_safetensors_close(st);
    return status;
}

static tp_status load_weights(const char *path, tp_session *session, tp_dtype *ret_dtype,
                              tp_error *err)
{
    char folder[4096];
    tp_model *saved;
    tp_load_report report = {0};
    snprintf(folder, sizeof folder, "%s/model", path);
    *ret_dtype = TP_DTYPE_F32;
    if (tp_model_has_adapter(tp_session_model(session)))
        return tp_adapter_load(tp_session_model(session), folder, TP_ADAPTER_LIVE,
                               tp_session_states(session), err);
    TP_TRY(tp_model_open(folder, &saved, err));
    tp_status status = tp_model_load(saved, tp_session_states(session), &report, err);
    tp_model_free(saved);
    *ret_dtype = report.file_dtype;
    return status;
}

tp_status tp_checkpoint_load(const char *path, tp_session *session, tp_train_state *ret_state,
                             tp_error *err)
{
    char file[4096];
    TP_TRY(tp_checkpoint_read_state(path, ret_state, err));
    TP_TRY(load_weights(path, session, &ret_state->model_dtype, err));
    snprintf(file, sizeof file, "%s/optimizer.safetensors", path);
    if (!tp_file_exists(file))
        return tp_fail(err, TP_ERR_FORMAT,
                       "'%s' has no optimizer.safetensors (saved with "
                       "checkpointing.save_optimizer=false): it can be a "
                       "policy.model_name, not resumed",
                       path);
    TP_TRY(load_optimizer(file, session, err));
    TP_TRY(tp_session_weights_changed(session, err));
    return TP_OK;
}
