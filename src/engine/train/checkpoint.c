/* checkpoint.c - a session saved beside what is there, and loaded. */
#include "engine/train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/platform.h"
#include "engine/model/adapter.h"
#include "engine/model/safetensors.h"
#include "engine/train/parts.h"
#include "engine/train/step_history.h"
#include "text/json/json.h"

enum { MASTER_NAME = 512 };

/* ---- writing ---- */

/* What a weight in f32 is called beside a model that is stored in another type. */
static const char *master_name(const tp_tensor *weight, char out[MASTER_NAME])
{
    snprintf(out, MASTER_NAME, "master.%s", weight->name);
    return out;
}

/* f32 weights are in model/ already when it is stored in f32. */
static bool belongs_to_optimizer(const tp_tensor *s, tp_dtype model_dtype)
{
    if (s->within) /* its whole is there */
        return false;
    return s->role == TP_ROLE_MOMENT || s->role == TP_ROLE_ERROR ||
           (s->role == TP_ROLE_WEIGHT && model_dtype != TP_DTYPE_F32);
}

/* A tensor of which this rank has a part is written as if it were whole. */
static void write_as_whole(const tp_states *states, tp_parts *parts, const tp_ranks *ranks,
                           const tp_tensor *own, tp_tensor_out *out)
{
    const tp_tensor *weight = tp_states_find(states, own->of);
    *parts = (tp_parts){ranks, own, tp_parts_count(states, own)};
    out->rank = weight->rank;
    memcpy(out->dim, weight->dim, sizeof out->dim);
    out->source = parts;
    out->read = tp_parts_read;
}

static tp_status save_optimizer(const tp_states *states, const tp_ranks *ranks,
                                tp_dtype model_dtype, const char *path, tp_error *err)
{
    tp_tensor_out *out = calloc(states->n + 1, sizeof *out);
    tp_parts *parts = calloc(states->n + 1, sizeof *parts);
    tp_arena names;
    TP_HAVE(out);
    TP_HAVE(parts);
    tp_status status = tp_arena_init(&names, 256 << 20, err);
    if (status != TP_OK) {
        free(parts);
        free(out);
        return status;
    }
    size_t n = 0;
    for (size_t i = 0; i < states->n; i++) {
        const tp_tensor *s = &states->items[i];
        if (!belongs_to_optimizer(s, model_dtype))
            continue;
        char master[MASTER_NAME];
        bool is_master = s->role == TP_ROLE_WEIGHT;
        out[n] = (tp_tensor_out){.name = is_master ? tp_arena_strdup(&names, master_name(s, master))
                                                   : s->name,
                                 .dtype = s->dtype,
                                 .rank = s->rank,
                                 .dim = {tp_tensor_dim(s, 0), tp_tensor_dim(s, 1)},
                                 .source = s,
                                 .read = tp_tensor_read,
                                 .src_dtype = s->dtype};
        if (s->shard.count > 1 && !s->keeps_part)
            write_as_whole(states, &parts[n], ranks, s, &out[n]);
        n++;
    }
    char hash[33];
    uint64_t bytes;
    status = tp_safetensors_write(path, out, n, hash, &bytes, err);
    tp_arena_release(&names);
    free(parts);
    free(out);
    return status;
}

static void put_history(tp_json_w *w, const char *key, const tp_step_history *h)
{
    int64_t n = tp_step_history_length(h, TP_STEP_HISTORY);
    if (n == 0)
        return;
    tp_json_w_put_begin(w, key, '[');
    for (int64_t i = 0; i < n; i++)
        tp_json_w_f64(w, tp_step_history_at(h, n, i));
    tp_json_w_end(w, ']');
}

/* What most runs have nothing of. */
static void put_stability(tp_json_w *w, const tp_train_state *s)
{
    const struct {
        const char *key;
        int64_t v;
    } counts[] = {
        {"overflows", s->overflows}, {"unscheduled", s->unscheduled}, {"restores", s->restores}};
    for (size_t i = 0; i < TP_COUNTOF(counts); i++)
        if (counts[i].v)
            tp_json_w_put_i64(w, counts[i].key, counts[i].v);
    if (s->loss_scale != 0) {
        tp_json_w_put_f64(w, "loss_scale", s->loss_scale);
        tp_json_w_put_i64(w, "growth_tracker", s->growth_tracker);
    }
    put_history(w, "norms", &s->norms);
    put_history(w, "losses", &s->losses);
}

static void write_state_json(const tp_train_state *s, tp_buf *out)
{
    tp_json_w w;
    tp_json_w_init(&w, out, 2);
    tp_json_w_begin(&w, '{');
    const struct {
        const char *key;
        int64_t v;
    } numbers[] = {{"format", 1},           {"step", s->step},
                   {"updates", s->updates}, {"skipped", s->skipped},
                   {"tokens", s->tokens},   {"best_step", s->best_step},
                   {"prompts", s->prompts}, {"skipped_in_row", s->skipped_in_row}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        tp_json_w_put_i64(&w, numbers[i].key, numbers[i].v);
    char seed[32];
    snprintf(seed, sizeof seed, "%" PRIu64, s->seed);
    tp_json_w_put_str(&w, "seed", seed);
    tp_json_w_put_str(&w, "run_id", s->run_id);
    tp_json_w_put_str(&w, "run_name", s->run_name);
    tp_json_w_put_f64(&w, "metric", s->metric);
    tp_json_w_put_f64(&w, "best_metric", s->best_metric);
    tp_json_w_put_f64(&w, "val_loss", s->val_loss);
    tp_json_w_put_f64(&w, "val_accuracy", s->val_accuracy);
    tp_json_w_put_f64(&w, "loss", s->last_loss);
    tp_json_w_put_f64(&w, "best_reward", s->best_reward);
    put_stability(&w, s);
    if (s->lr_factor > 0 && s->lr_factor != 1)
        tp_json_w_put_f64(&w, "lr_factor", s->lr_factor);
    tp_json_w_put_str(&w, "optimizer", s->optimizer);
    tp_json_w_put_str(&w, "model_fingerprint", s->model_fingerprint);
    tp_json_w_put_str(&w, "data_fingerprint", s->data_fingerprint);
    if (s->settings[0])
        tp_json_w_put_str(&w, "settings", s->settings);
    if (s->base_fingerprint[0])
        tp_json_w_put_str(&w, "base_fingerprint", s->base_fingerprint);
    tp_json_w_end(&w, '}');
    tp_buf_addc(out, '\n');
}

static tp_status write_file(const char *path, const tp_buf *text, tp_error *err)
{
    tp_writer *w;
    TP_TRY(tp_writer_open(&w, path, err));
    tp_status status = tp_writer_write(w, text->data, text->len, err);
    if (status != TP_OK) {
        tp_writer_abandon(w);
        return status;
    }
    return tp_writer_close(w, NULL, NULL, err);
}

/* Entries for every regular file of folder/sub, one level of folders deep. */
static tp_status list_files(const char *folder, const char *sub, tp_json_w *w, uint64_t *bytes,
                            tp_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, sub);
    DIR *dir = opendir(path);
    if (!dir)
        return tp_fail(err, TP_ERR_IO, "cannot list '%s': %s", path, strerror(errno));
    tp_status status = TP_OK;
    for (struct dirent *e; status == TP_OK && (e = readdir(dir));) {
        char file[8192], name[4096], hash[33];
        struct stat st;
        if (e->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s%s%s", sub, *sub ? "/" : "", e->d_name);
        snprintf(file, sizeof file, "%s/%s", folder, name);
        if (stat(file, &st) != 0 || !S_ISREG(st.st_mode))
            continue;
        status = tp_file_hash(file, hash, err);
        tp_json_w_begin(w, '{');
        tp_json_w_put_str(w, "path", name);
        tp_json_w_put_i64(w, "bytes", st.st_size);
        tp_json_w_put_str(w, "xxh3_128", hash);
        tp_json_w_end(w, '}');
        *bytes += (uint64_t)st.st_size;
    }
    closedir(dir);
    return status;
}

static tp_status write_manifest(const char *folder, const tp_train_state *state, uint64_t *bytes,
                                tp_error *err)
{
    tp_buf text = {0};
    tp_json_w w;
    tp_json_w_init(&w, &text, 1);
    tp_json_w_begin(&w, '{');
    tp_json_w_put_i64(&w, "format", 1);
    tp_json_w_put_str(&w, "temper", TEMPER_VERSION);
    tp_json_w_put_i64(&w, "step", state->step);
    tp_json_w_put_begin(&w, "files", '[');
    tp_status status = list_files(folder, "", &w, bytes, err);
    if (status == TP_OK)
        status = list_files(folder, "model", &w, bytes, err);
    tp_json_w_end(&w, ']');
    tp_json_w_end(&w, '}');
    tp_buf_addc(&text, '\n');
    char path[4096];
    snprintf(path, sizeof path, "%s/manifest.json", folder);
    if (status == TP_OK)
        status = write_file(path, &text, err);
    tp_buf_release(&text);
    return status;
}

tp_status tp_checkpoint_check_space(const char *root, size_t need, tp_error *err)
{
    struct statvfs v;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", root);
    /* What does not exist yet will be where its parent is. */
    while (statvfs(folder, &v) != 0) {
        char *slash = strrchr(folder, '/');
        if (errno != ENOENT || strcmp(folder, ".") == 0 || strcmp(folder, "/") == 0)
            return TP_OK; /* cannot tell: the write itself will */
        if (slash)
            slash[slash == folder] = 0;
        else
            snprintf(folder, sizeof folder, ".");
    }
    double have = (double)v.f_bavail * (double)v.f_frsize;
    char a[32], b[32];
    if ((double)need <= have)
        return TP_OK;
    return tp_fail(err, TP_ERR_OUTPUT,
                   "a checkpoint needs %s, '%s' has %s free: make room or set "
                   "checkpointing.checkpoint_dir",
                   tp_human_bytes((double)need, a), root, tp_human_bytes(have, b));
}

/* Of an adapter's base nothing is saved: state.json says which one it is. */
static tp_status save_model(const tp_checkpoint_options *o, tp_session *session, const char *path,
                            tp_error *err)
{
    const tp_model *model = tp_session_model(session);
    const tp_states *states = tp_session_states(session);
    return tp_model_has_adapter(model)
               ? tp_adapter_save(model, states, path, &o->companions, err)
               : tp_model_save(model, states, path, o->model_dtype, 0, &o->companions, err);
}

static tp_status write_contents(const char *folder, const tp_checkpoint_options *o,
                                tp_session *session, const tp_train_state *state, uint64_t *bytes,
                                tp_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/model", folder);
    TP_TRY(tp_dir_make(path, err));
    TP_TRY(save_model(o, session, path, err));
    TP_TRY(tp_dir_sync(path, err));
    if (o->save_optimizer) {
        snprintf(path, sizeof path, "%s/optimizer.safetensors", folder);
        bool is_adapter = tp_model_has_adapter(tp_session_model(session));
        TP_TRY(save_optimizer(tp_session_states(session),
                              &tp_session_get_options(session)->compile.ranks,
                              is_adapter ? TP_DTYPE_F32 : o->model_dtype, path, err));
    }
    tp_buf text = {0};
    write_state_json(state, &text);
    snprintf(path, sizeof path, "%s/state.json", folder);
    tp_status status = write_file(path, &text, err);
    tp_buf_release(&text);
    if (status != TP_OK)
        return status;
    TP_TRY(write_manifest(folder, state, bytes, err));
    return tp_dir_sync(folder, err);
}

/* A name that nobody has: damaged-step-4, damaged-step-4-2 ... */
static tp_status set_aside(const tp_checkpoint_options *o, const char *path, int64_t step,
                           tp_error *err)
{
    char aside[4096];
    for (int i = 1;; i++) {
        snprintf(aside, sizeof aside,
                 i == 1 ? "%s/damaged-step-%" PRId64 : "%s/damaged-step-%" PRId64 "-%d", o->root,
                 step, i);
        struct stat st;
        if (lstat(aside, &st) != 0)
            break;
    }
    TP_TRY(tp_rename_synced(path, aside, err));
    tp_log(TP_LOG_WARNING, "checkpoint", "'%s' was damaged and is now '%s'", path, aside);
    return TP_OK;
}

/* What has the name of the checkpoint already: the same, saved before (*ret_is_done), or
 * something that makes room, or somebody else's. */
static tp_status look_at_place(const tp_checkpoint_options *o, const tp_train_state *state,
                               const char *path, bool *ret_is_done, tp_error *err)
{
    struct stat st;
    tp_train_state there;
    *ret_is_done = false;
    if (lstat(path, &st) != 0)
        return TP_OK;
    if (!S_ISDIR(st.st_mode) || tp_checkpoint_read_state(path, &there, NULL) != TP_OK)
        return set_aside(o, path, state->step, err);
    if (strcmp(there.run_id, state->run_id) != 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' belongs to run '%s': it stays; choose another "
                       "checkpointing.checkpoint_dir",
                       path, there.run_name);
    *ret_is_done = tp_checkpoint_verify(path, NULL) == TP_OK;
    return *ret_is_done ? TP_OK : set_aside(o, path, state->step, err);
}

static tp_status write_beside(const tp_checkpoint_options *o, tp_session *session,
                              const tp_train_state *state, const char *final, uint64_t *bytes,
                              tp_error *err)
{
    char tmp[4096];
    snprintf(tmp, sizeof tmp, "%s/.tmp-step-%" PRId64 ".%d", o->root, state->step, getpid());
    TP_TRY(tp_dir_remove(tmp, err));
    TP_TRY(tp_dir_make(tmp, err));
    tp_status status = write_contents(tmp, o, session, state, bytes, err);
    if (status == TP_OK)
        status = tp_rename_synced(tmp, final, err);
    tp_error ignored;
    if (status != TP_OK && tp_dir_remove(tmp, &ignored) != TP_OK)
        tp_log(TP_LOG_DEBUG, "checkpoint", "%s", ignored.message);
    return status;
}

static tp_status save(const tp_checkpoint_options *o, tp_session *session,
                      const tp_train_state *state, uint64_t *ret_bytes, tp_error *err)
{
    tp_session_plan plan;
    char final[4096];
    uint64_t bytes = 0;
    bool is_done;
    snprintf(final, sizeof final, "%s/step-%" PRId64, o->root, state->step);
    tp_status status = look_at_place(o, state, final, &is_done, err);
    if (status == TP_OK && !is_done) {
        tp_session_get_plan(session, &plan);
        TP_TRY(tp_dir_make(o->root, err));
        TP_TRY(tp_checkpoint_check_space(o->root, plan.checkpoint_bytes, err));
        status = write_beside(o, session, state, final, &bytes, err);
    }
    if (status != TP_OK)
        return tp_error_prefix(err, status, "while saving '%s': ", final);
    if (ret_bytes)
        *ret_bytes = bytes;
    return TP_OK;
}

tp_status tp_checkpoint_save(const tp_checkpoint_options *o, tp_session *session,
                             const tp_train_state *state, uint64_t *ret_bytes, tp_error *err)
{
    const tp_ranks *ranks = &tp_session_get_options(session)->compile.ranks;
    tp_states *states = tp_session_states(session);
    if (tp_comm_rank(ranks->comm) > 0) /* rank 0 writes, from what the others hand it */
        return tp_parts_serve(ranks, states, err);
    tp_part_reader together = states->reader;
    states->reader.read = tp_parts_ask;
    tp_status status = save(o, session, state, ret_bytes, err);
    states->reader = together;
    tp_error untold;
    tp_status told = tp_parts_done(ranks->comm, &untold);
    if (status == TP_OK && told != TP_OK && err)
        *err = untold;
    return status != TP_OK ? status : told;
}

/* ---- loading ---- */

static tp_status copy_tensor(const tp_safetensors *st, const char *name, const tp_states *states,
                             tp_tensor *into, const char *path, tp_error *err)
{
    const tp_tensor_entry *e = tp_safetensors_find(st, name);
    if (!e)
        return tp_fail(err, TP_ERR_FORMAT, "'%s' lacks tensor '%s'", path, name);
    bool is_part = into->shard.count > 1 && !into->keeps_part;
    size_t size = tp_dtype_size(into->dtype), begin = 0, end;
    size_t bytes = size * (is_part ? tp_parts_count(states, into) : tp_tensor_count(into));
    if (!e->is_known || e->dtype != into->dtype || e->bytes != bytes)
        return tp_fail(err, TP_ERR_FORMAT, "'%s': tensor '%s' has another type than the run's",
                       path, name);
    if (is_part)
        tp_shard_part(bytes / size, into->shard, &begin, &end);
    return tp_tensor_write(into, 0, (const char *)e->data + begin * size,
                           tp_tensor_count(into) * size, err);
}

/* What `from` ranks kept of a gradient, added up, is now kept by those whose parts they are: the
 * next exchange adds it to the sums. */
static tp_status hand_over_errors(const tp_tensor_entry *e, const tp_ranks *ranks,
                                  const tp_tensor *into, size_t n, tp_error *err)
{
    enum { CHUNK = 1 << 16 };
    size_t width = (size_t)into->dim[1], begin, end;
    size_t row = (size_t)ranks->rank * width;
    float *sum = calloc(CHUNK, sizeof *sum);
    TP_HAVE(sum);
    tp_status status = TP_OK;
    tp_shard_part(n, tp_ranks_shard(ranks), &begin, &end);
    for (size_t at = 0; at < width && status == TP_OK; at += CHUNK) {
        size_t count = TP_MIN((size_t)CHUNK, width - at);
        memset(sum, 0, CHUNK * sizeof *sum);
        for (int64_t r = 0; e && r < e->dim[0]; r++)
            for (size_t k = TP_MAX(begin, at); k < TP_MIN(end, at + count); k++) {
                float x;
                memcpy(&x, (const float *)e->data + (size_t)r * width + k, sizeof x);
                sum[k - at] += x;
            }
        status = tp_tensor_write(into, (row + at) * sizeof *sum, sum, count * sizeof *sum, err);
    }
    free(sum);
    return status;
}

/* A checkpoint of another number of ranks, or without compression, has other ones. */
static tp_status load_errors(const tp_safetensors *st, const tp_states *states,
                             const tp_ranks *ranks, tp_tensor *into, const char *path,
                             int64_t *ret_ranks, tp_error *err)
{
    const tp_tensor_entry *e = tp_safetensors_find(st, into->name);
    if (e && (!e->is_known || e->dtype != into->dtype || e->rank != 2 || e->dim[1] != into->dim[1]))
        return tp_fail(err, TP_ERR_FORMAT, "'%s': tensor '%s' has another type than the run's",
                       path, into->name);
    *ret_ranks = e ? e->dim[0] : 0;
    if (e && e->dim[0] == into->dim[0])
        return copy_tensor(st, into->name, states, into, path, err);
    return hand_over_errors(e, ranks, into, tp_parts_count(states, into), err);
}

static bool has_errors_of(const tp_safetensors *st, const tp_tensor *weight)
{
    char name[MASTER_NAME];
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
    if (ranks->rank > 0)
        return;
    if (has_any && !has_own)
        tp_log(TP_LOG_WARNING, "checkpoint",
               "what was kept of compressed gradients is dropped: this run sends them whole");
    else if (has_own && from && from != ranks->ranks)
        tp_log(TP_LOG_WARNING, "checkpoint",
               "what %lld ranks kept of compressed gradients is added up and sent by %d",
               (long long)from, ranks->ranks);
}

static bool has_masters(const tp_safetensors *st, const tp_states *states)
{
    char name[MASTER_NAME];
    for (size_t i = 0; i < states->n; i++)
        if (states->items[i].role == TP_ROLE_WEIGHT &&
            tp_safetensors_find(st, master_name(&states->items[i], name)))
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
        char name[MASTER_NAME];
        if (s->role == TP_ROLE_MOMENT)
            status = copy_tensor(st, s->name, states, s, path, err);
        if (s->role == TP_ROLE_ERROR) {
            has_errors = true;
            status = load_errors(st, states, ranks, s, path, &from, err);
        }
        if (s->role == TP_ROLE_WEIGHT && !s->within && masters)
            status = copy_tensor(st, master_name(s, name), states, s, path, err);
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
