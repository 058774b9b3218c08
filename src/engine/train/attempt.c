/* attempt.c - a run that begins or goes on: whose checkpoints these are, where they end, and
 * what has changed since the attempt before. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/files.h"
#include "engine/model/adapter.h"
#include "engine/train/recipe.h"
#include "engine/train/trainer_internal.h"
#include "text/json/tree.h"

enum { MAX_CONFIG = 16 << 20 };

/* ---- whose checkpoints these are ---- */

/* run.json is gone.  Checkpoints in the run's own folder, or with its name, are the run's. */
static tp_status adopt(trainer *t, tp_error *err)
{
    tp_train_state owner;
    bool found;
    char own[4096];
    TP_TRY(tp_checkpoint_owner(t->checkpoint_dir, &owner, &found, err));
    bool is_own = tp_files_are_same(t->checkpoint_dir, tp_run_path(t->run, "checkpoints", own)) ||
                  strcmp(owner.run_name, tp_run_name(t->run)) == 0;
    if (found && is_own)
        tp_run_adopt(t->run, owner.run_id);
    return TP_OK;
}

/* Neither written to nor read from. */
static bool is_unused(const trainer *t)
{
    return !t->o->checkpointing.enabled && !(t->hooks->resume && tp_dir_exists(t->checkpoint_dir));
}

tp_status tp_attempt_check_claim(trainer *t, tp_error *err)
{
    return is_unused(t) ? TP_OK
                        : tp_checkpoint_check_claim(t->checkpoint_dir, tp_run_id(t->run),
                                                    t->hooks->resume, err);
}

tp_status tp_attempt_claim(trainer *t, tp_error *err)
{
    bool resume = t->hooks->resume;
    if (is_unused(t))
        return TP_OK;
    if (resume && !tp_run_before(t->run))
        TP_TRY(adopt(t, err));
    bool is_run_folder =
        tp_files_are_same(t->checkpoint_dir, tp_run_dir(t->run)); /* locked already */
    t->made_checkpoint_dir = !tp_dir_exists(t->checkpoint_dir);
    return tp_checkpoint_claim(t->checkpoint_dir, tp_run_id(t->run), resume,
                               is_run_folder ? NULL : &t->checkpoint_lock, err);
}

void tp_attempt_let_go(trainer *t)
{
    char path[4096];
    if (t->checkpoint_lock < 0)
        return;
    snprintf(path, sizeof path, "%s/.lock", t->checkpoint_dir);
    if (t->made_checkpoint_dir && !tp_run_has_begun(t->run)) {
        unlink(path);
        rmdir(t->checkpoint_dir);
    }
    close(t->checkpoint_lock);
}

void tp_attempt_identify(trainer *t)
{
    snprintf(t->state.run_id, sizeof t->state.run_id, "%s", tp_run_id(t->run));
    snprintf(t->state.run_name, sizeof t->state.run_name, "%s", tp_run_name(t->run));
}

/* ---- where they end ---- */

static tp_status check_resume(const trainer *t, const tp_train_state *saved, const char *path,
                              tp_error *err)
{
    if (strcmp(saved->model_fingerprint, t->state.model_fingerprint) != 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' was saved from another model: its weights have "
                       "other names or shapes",
                       path);
    if (strcmp(saved->optimizer, t->state.optimizer) != 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' was saved with the optimizer %s, this run has %s "
                       "(policy.optimizer.name): its state is another. Start a new run from its "
                       "model/ folder",
                       path, saved->optimizer, t->state.optimizer);
    if (strcmp(saved->base_fingerprint, t->state.base_fingerprint) != 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' is an adapter of another base: the weights of '%s' are not those that "
                       "it was trained on",
                       path, tp_model_base_folder(t->model));
    if (saved->seed != t->state.seed)
        return tp_fail(err, TP_ERR_CONFIG, "'%s' was saved with seed %llu, this run has %llu", path,
                       (unsigned long long)saved->seed, (unsigned long long)t->state.seed);
    if (strcmp(saved->data_fingerprint, t->state.data_fingerprint) != 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' was saved with other %s, or by another version: what is learned from "
                       "would not go on where it was. Start a new run from its model/ folder",
                       path, t->a->fixed);
    return TP_OK;
}

/* Weights, moments, and where the run was. */
static tp_status take_state(trainer *t, const char *path, tp_error *err)
{
    tp_train_state saved = {0};
    TP_TRY(tp_checkpoint_load(path, t->session, &saved, err));
    t->state = saved;
    tp_attempt_identify(t);
    t->file_dtype = saved.model_dtype;
    t->val_loss = saved.val_loss;
    t->val_accuracy = saved.val_accuracy;
    t->validated_step = -1;
    t->last_loss = saved.last_loss;
    t->last_checkpoint_step = saved.step;
    t->saved_unvalidated = saved.is_unvalidated;
    return TP_OK;
}

static tp_status load(trainer *t, const char *path, tp_error *err)
{
    tp_train_state saved = {0};
    TP_TRY(tp_checkpoint_read_state(path, &saved, err));
    TP_TRY(check_resume(t, &saved, path, err));
    TP_TRY(take_state(t, path, err));
    tp_metric_restore(&t->metrics, "train", "train/loss", t->last_loss);
    if (t->a->val_loss)
        tp_metric_restore(&t->metrics, "validation", t->a->val_loss, t->val_loss);
    if (t->a->val_accuracy)
        tp_metric_restore(&t->metrics, "validation", t->a->val_accuracy, t->val_accuracy);
    tp_trainer_notice(t, "resumed from '%s' at step %lld (no batches to skip)", path,
                      (long long)t->state.step);
    return TP_OK;
}

/* Nothing to go on from: only a run that never saved anything may begin at 0. */
static tp_status begin_anew(const trainer *t, size_t n_damaged, tp_error *err)
{
    const tp_run_record *before = tp_run_before(t->run);
    if (n_damaged)
        return tp_fail(err, TP_ERR_CONFIG,
                       "none of the %zu checkpoints of run '%s' in '%s' is whole: repair them, or "
                       "choose another run.name to start anew",
                       n_damaged, tp_run_name(t->run), t->checkpoint_dir);
    if (before && before->checkpoint_dir[0] && tp_dir_exists(before->checkpoint_dir) &&
        !tp_files_are_same(before->checkpoint_dir, t->checkpoint_dir))
        return tp_fail(err, TP_ERR_CONFIG,
                       "run '%s' has its checkpoints in '%s', checkpointing.checkpoint_dir is '%s'",
                       tp_run_name(t->run), before->checkpoint_dir, t->checkpoint_dir);
    if (before && before->step > 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "run '%s' has done %" PRId64 " steps, and '%s' has no checkpoint of it to "
                       "go on from: choose another run.name to start anew",
                       tp_run_name(t->run), before->step, t->checkpoint_dir);
    tp_trainer_notice(t, "there is no checkpoint to resume from: starting at step 0");
    return TP_OK;
}

tp_status tp_attempt_resume(trainer *t, bool *ret_resumed, tp_error *err)
{
    TP_OWN(tp_buf) path = {0};
    size_t n_steps;
    *ret_resumed = false;
    TP_TRY(tp_checkpoint_find(t->checkpoint_dir, tp_run_id(t->run), &path, &n_steps, err));
    *ret_resumed = path.len > 0;
    return *ret_resumed ? load(t, path.data, err) : begin_anew(t, n_steps, err);
}

/* ---- back to a checkpoint ---- */

/* The newest that was saved before the bad steps, and is whole; a newer one of the run would be
 * resumed from in its place, so it goes. */
static tp_status find_good(trainer *t, char path[4096], tp_error *err)
{
    int64_t *steps = NULL;
    size_t n = 0;
    tp_status status = tp_checkpoint_list(t->checkpoint_dir, &steps, &n, err);
    bool is_found = false;
    for (size_t i = 0; status == TP_OK && i < n && !is_found; i++) {
        tp_train_state saved = {0};
        snprintf(path, 4096, "%s/step-%" PRId64, t->checkpoint_dir, steps[i]);
        if (tp_checkpoint_read_state(path, &saved, NULL) != TP_OK ||
            strcmp(saved.run_id, t->state.run_id) != 0)
            continue;
        is_found = saved.skipped_in_row == 0 && tp_checkpoint_verify(path, NULL) == TP_OK;
        if (!is_found && saved.skipped_in_row > 0)
            status = tp_dir_remove(path, err);
    }
    free(steps);
    if (status == TP_OK && !is_found)
        status = tp_fail(err, TP_ERR_NUMERIC,
                         "%lld bad steps in a row, and '%s' has no checkpoint from before them to "
                         "go back to: set checkpointing.save_period",
                         (long long)t->state.skipped_in_row, t->checkpoint_dir);
    return status;
}

/* Counts of what happened are those of the whole run; all else is the checkpoint's. */
tp_status tp_attempt_restore(trainer *t, tp_error *err)
{
    char path[4096];
    const tp_train_state before = t->state;
    t->must_restore = false;
    TP_TRY(find_good(t, path, err));
    TP_TRY(take_state(t, path, err));
    bool is_same = t->restored_step == t->state.step;
    t->n_restores_from = is_same ? t->n_restores_from + 1 : 1;
    t->restored_step = t->state.step;
    t->state.skipped = before.skipped;
    t->state.overflows = before.overflows;
    t->state.restores = before.restores + 1;
    t->state.lr_factor = before.lr_factor; /* alarms do not say it again */
    memcpy(t->state.settings, before.settings, sizeof before.settings);
    if (t->n_restores_from > t->o->train.max_restores)
        return tp_fail(err, TP_ERR_NUMERIC,
                       "bad steps came again after the run went back to step %lld %lld times "
                       "(train.max_restores): they are no accident",
                       (long long)t->state.step, (long long)t->o->train.max_restores);
    tp_trainer_take_scale(t);
    if (t->a->rewind)
        t->a->rewind(t);
    tp_trainer_notice(t, "step %lld was bad, as %lld before it: back to '%s'",
                      (long long)before.step, (long long)before.skipped_in_row - 1, path);
    return TP_OK;
}

/* ---- what has changed ---- */

static void add_change(trainer *t, const char *key, const char *from, const char *to)
{
    if (t->changes.len)
        tp_buf_adds(&t->changes, ", ");
    tp_json_w w = tp_json_w_open(&t->changes, 0, '{');
    tp_json_w_put_str(&w, "key", key);
    tp_json_w_put_str(&w, "from", from);
    tp_json_w_put_str(&w, "to", to);
    tp_json_w_end(&w, '}');
    tp_trainer_notice(t, "--resume goes on with another %s: %s -> %s", key, from, to);
}

static void value_text(const tp_json *value, tp_buf *out)
{
    tp_buf_clear(out);
    tp_json_text(value, out);
    if (!value)
        tp_buf_adds(out, "unset");
}

/* One name further; returns it with a NUL behind it. */
static const char *descend(tp_buf *key, size_t n, tp_slice name)
{
    key->len = n;
    tp_buf_addf(key, "%s%.*s", n ? "." : "", (int)name.len, name.data);
    return key->data + n + (n ? 1 : 0);
}

static void compare(trainer *t, const tp_json *old, const tp_json *new, tp_buf *key)
{
    size_t n = key->len;
    bool is_section = old && new && old->type == TP_JSON_OBJECT &&new->type == TP_JSON_OBJECT;
    for (const tp_json *m = is_section ? new->child : NULL; m; m = m->next) {
        const char *name = descend(key, n, m->key);
        compare(t, tp_json_get(old, name), m, key);
    }
    for (const tp_json *m = is_section ? old->child : NULL; m; m = m->next) {
        const char *name = descend(key, n, m->key);
        if (!tp_json_get(new, name))
            compare(t, m, NULL, key);
    }
    if (is_section || tp_json_same(old, new))
        return;
    TP_OWN(tp_buf) a = {0}, b = {0};
    value_text(old, &a);
    value_text(new, &b);
    add_change(t, tp_buf_str(key), a.data, b.data);
}

tp_status tp_attempt_compare(trainer *t, tp_error *err)
{
    char path[4096];
    TP_CLEANUP(tp_recipe_close) tp_recipe old = {0};
    TP_OWN(tp_buf) key = {0};
    tp_error why;
    const tp_run_record *before = tp_run_before(t->run);
    (void)err;
    if (!t->hooks->resume || !before)
        return TP_OK;
    const char *isa = tp_isa_name(tp_cpu_isa());
    if (before->isa[0] && strcmp(before->isa, isa) != 0)
        add_change(t, "instruction set", before->isa, isa);
    if (before->model[0] && strcmp(before->model, t->model_folder) != 0)
        add_change(t, "model folder", before->model, t->model_folder);
    tp_run_path(t->run, "config.yaml", path);
    if (tp_recipe_open(path, NULL, 0, &old, &why) != TP_OK) {
        tp_trainer_notice(t, "what --resume changes cannot be told: %s", why.message);
        t->has_other_config = true;
        return TP_OK;
    }
    size_t n = t->changes.len;
    compare(t, tp_config_resolved(old.config), tp_config_resolved(t->config), &key);
    t->has_other_config = t->changes.len > n;
    return TP_OK;
}

/* The configuration that ran before stays under the number of its attempt. */
static tp_status keep_config(trainer *t, tp_error *err)
{
    char path[4096], name[64];
    TP_OWN(tp_buf) text = {0};
    tp_run_path(t->run, "config.yaml", path);
    if (!t->has_other_config || !tp_file_exists(path))
        return TP_OK;
    snprintf(name, sizeof name, "config.attempt-%d.yaml", tp_run_attempt(t->run) - 1);
    TP_TRY(tp_file_read(path, MAX_CONFIG, &text, err));
    return tp_run_write(t->run, name, &text, err);
}

tp_status tp_attempt_write_config(trainer *t, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    TP_TRY(keep_config(t, err));
    tp_config_write(t->config, &text);
    return tp_run_write(t->run, "config.yaml", &text, err);
}

bool tp_attempt_has_nothing_to_do(const trainer *t)
{
    const tp_run_record *before = tp_run_before(t->run);
    return t->hooks->resume && before && before->is_finished && tp_trainer_is_done(t) &&
           !t->state.is_unvalidated;
}

/* ---- run.json ---- */

void tp_attempt_put(const trainer *t, const char *state, tp_json_w *w)
{
    char iso[32];
    const tp_run_record *before = tp_run_before(t->run);
    tp_json_w_put_begin(w, "attempts", '[');
    if (before && before->attempts.len)
        tp_json_w_raw(w, before->attempts.data);
    tp_json_w_begin(w, '{');
    tp_json_w_put_i64(w, "attempt", tp_run_attempt(t->run));
    tp_json_w_put_str(w, "state", state);
    tp_wall_iso(t->started_wall, iso);
    tp_json_w_put_str(w, "started", iso);
    tp_json_w_put_i64(w, "first_step", t->first_step);
    tp_json_w_put_i64(w, "step", t->state.step);
    tp_json_w_put_begin(w, "changes", '[');
    if (t->changes.len)
        tp_json_w_raw(w, t->changes.data);
    tp_json_w_end(w, ']');
    tp_json_w_end(w, '}');
    tp_json_w_end(w, ']');
}
