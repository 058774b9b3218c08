/* checkpoint.c - a session saved beside what is there, by all ranks at once.
 *
 * The first rank makes the files, in which tensors are zeros, each rank writes what it has of them,
 * and when all is on the disk the first one writes the manifest and gives the folder its name.
 * Nothing is sent but that it is done. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/platform.h"
#include "base/working.h"
#include "engine/model/adapter.h"
#include "engine/model/safetensors.h"
#include "engine/train/checkpoint_internal.h"
#include "engine/train/guards.h"
#include "engine/train/parts.h"
#include "text/json/json.h"

/* ---- writing ---- */

const char *tp_master_name(const tp_tensor *weight, char out[TP_MASTER_NAME])
{
    snprintf(out, TP_MASTER_NAME, "master.%s", weight->name);
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

typedef tp_status (*tensors_writer)(const char *path, const tp_tensor_out *tensors, size_t n,
                                    tp_error *err);

static tp_tensor_out describe(const tp_tensor *s, tp_shard among, tp_arena *names)
{
    char master[TP_MASTER_NAME];
    bool is_master = s->role == TP_ROLE_WEIGHT;
    const char *name = is_master ? tp_arena_strdup(names, tp_master_name(s, master)) : s->name;
    return tp_tensor_out_of(s, name, s->dtype, among);
}

static tp_status write_optimizer(const tp_states *states, tp_dtype model_dtype, const char *path,
                                 tp_shard among, tensors_writer write, tp_error *err)
{
    TP_OWN(tp_arena) names = {0};
    size_t n = 0;
    TP_TRY(tp_arena_init(&names, 256 << 20, err));
    TP_FREED tp_tensor_out *out = tp_new(states->n + 1, sizeof *out);
    for (size_t i = 0; i < states->n; i++)
        if (belongs_to_optimizer(&states->items[i], model_dtype))
            out[n++] = describe(&states->items[i], among, &names);
    return write(path, out, n, err);
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
    tp_json_w w = tp_json_w_open(out, 2, '{');
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
    if (s->is_unvalidated)
        tp_json_w_put_bool(&w, "validation_due", true);
    if (s->is_between)
        tp_json_w_put_bool(&w, "between_periods", true);
    if (s->goal_metric[0]) {
        tp_json_w_put_str(&w, "goal_metric", s->goal_metric);
        tp_json_w_put_f64(&w, "goal_value", s->goal_value);
    }
    if (s->settings[0])
        tp_json_w_put_str(&w, "settings", s->settings);
    if (s->base_fingerprint[0])
        tp_json_w_put_str(&w, "base_fingerprint", s->base_fingerprint);
    tp_json_w_close(&w, '}');
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
static bool saves_adapter(tp_session *session)
{
    return tp_model_has_adapter(tp_session_model(session));
}

static tp_dtype dtype_of(const tp_checkpoint_options *o, tp_session *session)
{
    return saves_adapter(session) ? TP_DTYPE_F32 : o->model_dtype;
}

/* All but what tensors hold. */
static tp_status write_frame(const char *folder, const tp_checkpoint_options *o,
                             tp_session *session, const tp_train_state *state, tp_error *err)
{
    char path[4096];
    const tp_model *model = tp_session_model(session);
    const tp_states *states = tp_session_states(session);
    snprintf(path, sizeof path, "%s/model", folder);
    TP_TRY(tp_dir_make(path, err));
    if (saves_adapter(session))
        TP_TRY(tp_adapter_save_frame(model, states, path, &o->companions, err));
    else
        TP_TRY(tp_model_save_frame(model, states, path, o->model_dtype, 0, &o->companions, err));
    snprintf(path, sizeof path, "%s/optimizer.safetensors", folder);
    if (o->save_optimizer)
        TP_TRY(write_optimizer(states, dtype_of(o, session), path, (tp_shard){0},
                               tp_safetensors_frame, err));
    TP_OWN(tp_buf) text = {0};
    write_state_json(state, &text);
    return tp_model_write_text(folder, "state.json", &text, err);
}

/* What this rank writes of the tensors. */
static tp_status write_share(const char *folder, const tp_checkpoint_options *o,
                             tp_session *session, tp_shard among, tp_error *err)
{
    char path[4096];
    const tp_model *model = tp_session_model(session);
    const tp_states *states = tp_session_states(session);
    snprintf(path, sizeof path, "%s/model", folder);
    if (saves_adapter(session))
        TP_TRY(tp_adapter_save_share(model, states, path, among, err));
    else
        TP_TRY(tp_model_save_share(model, states, path, o->model_dtype, 0, among, err));
    snprintf(path, sizeof path, "%s/optimizer.safetensors", folder);
    return o->save_optimizer ? write_optimizer(states, dtype_of(o, session), path, among,
                                               tp_safetensors_fill, err)
                             : TP_OK;
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

/* Where a checkpoint is written, and what it will be called. */
typedef struct {
    char beside[4096], final[4096];
    bool is_there; /* saved before */
    bool replaces; /* ... without the validation that this one has behind it */
} place;

/* What has the name of the checkpoint already: the same, saved before, or something that makes
 * room, or somebody else's. */
static tp_status look_at_place(const tp_checkpoint_options *o, const tp_train_state *state,
                               place *p, tp_error *err)
{
    struct stat st;
    tp_train_state there;
    const char *path = p->final;
    if (lstat(path, &st) != 0)
        return TP_OK;
    if (!S_ISDIR(st.st_mode) || tp_checkpoint_read_state(path, &there, NULL) != TP_OK)
        return set_aside(o, path, state->step, err);
    if (strcmp(there.run_id, state->run_id) != 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' belongs to run '%s': it stays; choose another "
                       "checkpointing.checkpoint_dir",
                       path, there.run_name);
    p->replaces = there.is_unvalidated && !state->is_unvalidated;
    p->is_there = !p->replaces && tp_checkpoint_verify(path, NULL) == TP_OK;
    return p->replaces || p->is_there ? TP_OK : set_aside(o, path, state->step, err);
}

/* On the first rank: room is made for it. */
static tp_status open_place(const tp_checkpoint_options *o, tp_session *session,
                            const tp_train_state *state, place *p, tp_error *err)
{
    tp_session_plan plan;
    TP_TRY(look_at_place(o, state, p, err));
    if (p->is_there)
        return TP_OK;
    tp_session_get_plan(session, &plan);
    TP_TRY(tp_dir_make(o->root, err));
    TP_TRY(tp_checkpoint_check_space(o->root, plan.checkpoint_bytes, err));
    TP_TRY(tp_dir_remove(p->beside, err));
    TP_TRY(tp_dir_make(p->beside, err));
    return write_frame(p->beside, o, session, state, err);
}

static tp_status write_contents(const place *p, const tp_checkpoint_options *o, tp_session *session,
                                int64_t step, const tp_file_sums *sums, uint64_t *bytes,
                                tp_error *err)
{
    tp_comm *comm = tp_session_get_options(session)->compile.ranks.comm;
    tp_shard among = {tp_comm_rank(comm), tp_comm_size(comm)};
    TP_OWN(tp_job) job = {0};
    tp_session_plan plan;
    tp_session_get_plan(session, &plan);
    tp_job_begin(&job, plan.checkpoint_bytes / (size_t)among.count, "writing %s", p->final);
    if (o->first_writes_all)
        among = (tp_shard){0, among.index == 0};
    tp_status status = among.count ? write_share(p->beside, o, session, among, err) : TP_OK;
    TP_TRY(tp_comm_agree(comm, status, err));
    tp_job_release(&job);
    return tp_manifest_write(p->beside, comm, among, step, sums, bytes, err);
}

static tp_status put_in_place(const place *p, tp_error *err)
{
    if (!p->replaces)
        return tp_rename_synced(p->beside, p->final, err);
    bool done; /* where a file system cannot, the old one stays, and its validation is made again */
    TP_TRY(tp_exchange_synced(p->beside, p->final, &done, err));
    return tp_dir_remove(p->beside, err);
}

static tp_status save(const tp_checkpoint_options *o, tp_session *session,
                      const tp_train_state *state, place *p, const tp_file_sums *sums,
                      uint64_t *bytes, tp_error *err)
{
    tp_comm *comm = tp_session_get_options(session)->compile.ranks.comm;
    bool is_first = tp_comm_rank(comm) == 0;
    tp_status status = is_first ? open_place(o, session, state, p, err) : TP_OK;
    TP_TRY(tp_comm_agree(comm, status, err));
    TP_TRY(tp_comm_broadcast(comm, p, sizeof *p, 0, err));
    if (p->is_there)
        return TP_OK;
    TP_TRY(write_contents(p, o, session, state->step, sums, bytes, err));
    status = is_first ? put_in_place(p, err) : TP_OK;
    return tp_comm_agree(comm, status, err);
}

tp_status tp_checkpoint_save(const tp_checkpoint_options *o, tp_session *session,
                             const tp_train_state *state, uint64_t *ret_bytes, tp_error *err)
{
    place p = {0};
    uint64_t bytes = 0;
    bool is_first = tp_comm_rank(tp_session_get_options(session)->compile.ranks.comm) == 0;
    snprintf(p.final, sizeof p.final, "%s/step-%" PRId64, o->root, state->step);
    snprintf(p.beside, sizeof p.beside, "%s/.tmp-step-%" PRId64 ".%d", o->root, state->step,
             getpid());
    tp_file_sums *sums = tp_file_sums_begin();
    tp_status status = save(o, session, state, &p, sums, &bytes, err);
    tp_file_sums_end(sums);
    tp_error ignored;
    if (status != TP_OK && is_first && tp_dir_remove(p.beside, &ignored) != TP_OK)
        tp_log(TP_LOG_DEBUG, "checkpoint", "%s", ignored.message);
    if (status != TP_OK)
        return tp_error_prefix(err, status, "while saving '%s': ", p.final);
    if (ret_bytes)
        *ret_bytes = bytes;
    return TP_OK;
}

/* ---- who writes ---- */

/* Whether ranks have something of their own to save. */
static bool has_parts(const tp_states *states)
{
    for (size_t i = 0; i < states->n; i++) {
        const tp_tensor *s = &states->items[i];
        bool is_saved = s->role == TP_ROLE_ADAPTER || belongs_to_optimizer(s, TP_DTYPE_BF16);
        if (is_saved && (s->shard.count > 1 || tp_is_sliced(s)))
            return true;
    }
    return false;
}

tp_status tp_checkpoint_meet(const char *root, const char *run_id, tp_session *session,
                             bool *ret_first_writes_all, tp_error *err)
{
    tp_comm *comm = tp_session_get_options(session)->compile.ranks.comm;
    int n = tp_comm_size(comm);
    char sign[4096];
    *ret_first_writes_all = false;
    if (n == 1)
        return TP_OK;
    TP_FREED bool *sees = tp_new((size_t)n, sizeof *sees);
    snprintf(sign, sizeof sign, "%s/.tmp-step-0.%s.%d", root, run_id, getpid());
    tp_status status = tp_comm_rank(comm) == 0 ? tp_dir_make(sign, err) : TP_OK;
    status = tp_comm_agree(comm, status, err);
    if (status == TP_OK)
        status = tp_comm_broadcast(comm, sign, sizeof sign, 0, err);
    bool sees_it = tp_dir_exists(sign);
    if (status == TP_OK)
        status = tp_comm_gather(comm, &sees_it, sizeof sees_it, sees, err);
    if (tp_comm_rank(comm) == 0 && tp_dir_exists(sign) && status == TP_OK)
        status = tp_dir_remove(sign, err);
    int blind = 0;
    while (blind < n && sees[blind])
        blind++;
    *ret_first_writes_all = blind < n;
    if (status == TP_OK && blind < n && has_parts(tp_session_states(session)))
        status = tp_fail(err, TP_ERR_CONFIG,
                         "rank %d (%s) does not see the folder '%s' of rank 0 (%s), and has parts "
                         "of its own to save in it: let checkpointing.checkpoint_dir be where all "
                         "hosts see it, or take distributed.strategy=ddp and no "
                         "distributed.tensor_parallel_size",
                         blind, tp_comm_host(comm, blind), root, tp_comm_host(comm, 0));
    return tp_comm_agree(comm, status, err);
}

/* ---- whether a checkpoint belongs to this model ---- */

void tp_model_fingerprint(const tp_model *model, char ret[33])
{
    size_t n;
    const tp_param *params = tp_model_params(model, &n);
    TP_OWN(tp_buf) text = {0};
    for (size_t i = 0; i < n; i++)
        tp_buf_addf(&text, "%s %lld %lld\n", params[i].name, (long long)params[i].dim[0],
                    (long long)params[i].dim[1]);
    params = tp_model_trained(model, &n);
    for (size_t i = 0; tp_model_has_adapter(model) && i < n; i++)
        tp_buf_addf(&text, "%s %lld %lld\n", params[i].name, (long long)params[i].dim[0],
                    (long long)params[i].dim[1]);
    tp_hash_bytes(text.data, text.len, ret);
}
