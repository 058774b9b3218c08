/* checkpoint_folder.c - the folder of a run's checkpoints: whose it is, what is in it, what may go.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/log.h"
#include "base/order.h"
#include "base/platform.h"
#include "base/vec.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/checkpoint/folder_lock.h"
#include "text/gguf/gguf.h"

static bool parse_step(const char *name, int64_t *ret)
{
    return tp_str_starts(name, "step-") && tp_str_to_i64(name + 5, ret) && *ret >= 0;
}

typedef struct {
    int64_t *v;
    size_t n, cap;
} step_list;

TP_ORDER(newest_first, int64_t, TP_COMPARE(*y, *x))

static tp_status list_steps(const char *root, step_list *ret, tp_error *err)
{
    *ret = (step_list){0};
    DIR *dir = opendir(root);
    if (!dir) {
        if (errno == ENOENT)
            return TP_OK;
        return tp_fail(err, TP_ERR_IO, "cannot list '%s': %s", root, strerror(errno));
    }
    for (struct dirent *e; (e = readdir(dir));) {
        int64_t step;
        if (!parse_step(e->d_name, &step))
            continue;
        *TP_VEC_PUSH(ret->v, ret->n, ret->cap) = step;
    }
    closedir(dir);
    if (ret->n)
        qsort(ret->v, ret->n, sizeof *ret->v, newest_first);
    return TP_OK;
}

/* Folders that an interrupted save of a process that is gone left behind; a process that
 * has just begun has none of its own, whatever their number says. */
static tp_status remove_leftovers(const char *root, bool just_begun, tp_error *err)
{
    DIR *dir = opendir(root);
    if (!dir)
        return TP_OK;
    tp_status status = TP_OK;
    for (struct dirent *e; status == TP_OK && (e = readdir(dir));) {
        const char *dot = strrchr(e->d_name, '.');
        int64_t pid;
        if (!tp_str_starts(e->d_name, ".tmp-step-") || !tp_str_to_i64(dot + 1, &pid))
            continue;
        bool is_own = pid == getpid();
        if (is_own && !just_begun)
            continue;
        char path[4096], proc[64];
        snprintf(proc, sizeof proc, "/proc/%" PRId64, pid);
        snprintf(path, sizeof path, "%s/%s", root, e->d_name);
        if (is_own || access(proc, F_OK) != 0)
            status = tp_dir_remove(path, err);
    }
    closedir(dir);
    return status;
}

/* ---- whose it is ---- */

static char *step_path(const char *root, int64_t step, char out[4096])
{
    snprintf(out, 4096, "%s/step-%" PRId64, root, step);
    return out;
}

tp_status tp_checkpoint_list(const char *root, int64_t **ret_steps, size_t *ret_n, tp_error *err)
{
    step_list steps;
    TP_TRY(list_steps(root, &steps, err));
    *ret_steps = steps.v;
    *ret_n = steps.n;
    return TP_OK;
}

/* "step-4, step-2 and 3 more" */
static void name_steps(const step_list *steps, char *out, size_t size)
{
    size_t at = 0;
    out[0] = 0;
    for (size_t i = 0; i < steps->n && i < 3; i++)
        at += (size_t)snprintf(out + at, size - at, "%sstep-%" PRId64, i ? ", " : "", steps->v[i]);
    if (steps->n > 3)
        snprintf(out + at, size - at, " and %zu more", steps->n - 3);
}

/* The newest checkpoint that can say whose it is. */
static bool find_owner(const char *root, const step_list *steps, tp_train_state *ret)
{
    char path[4096];
    for (size_t i = 0; i < steps->n; i++)
        if (tp_checkpoint_read_state(step_path(root, steps->v[i], path), ret, NULL) == TP_OK)
            return true;
    return false;
}

static tp_status refuse_used(const char *root, const step_list *steps, tp_error *err)
{
    char names[200];
    tp_train_state owner;
    name_steps(steps, names, sizeof names);
    bool is_known = find_owner(root, steps, &owner) && owner.run_name[0];
    return tp_fail(err, TP_ERR_CONFIG,
                   "'%s' holds checkpoints%s%s%s (%s), which a new run would mix with its own: "
                   "choose another checkpointing.checkpoint_dir, move them away, or continue "
                   "their run with --resume",
                   root, is_known ? " of run '" : "", is_known ? owner.run_name : "",
                   is_known ? "'" : "", names);
}

static tp_status refuse_foreign(const char *root, const step_list *steps, const char *run_id,
                                tp_error *err)
{
    char path[4096];
    tp_train_state s;
    for (size_t i = 0; i < steps->n; i++)
        if (tp_checkpoint_read_state(step_path(root, steps->v[i], path), &s, NULL) == TP_OK &&
            strcmp(s.run_id, run_id) != 0)
            return tp_fail(err, TP_ERR_CONFIG,
                           "'%s' belongs to another run%s%s%s: give this run a "
                           "checkpointing.checkpoint_dir of its own",
                           path, s.run_name[0] ? ", '" : "", s.run_name, s.run_name[0] ? "'" : "");
    return TP_OK;
}

tp_status tp_checkpoint_owner(const char *root, tp_train_state *ret, bool *ret_found, tp_error *err)
{
    step_list steps;
    TP_TRY(list_steps(root, &steps, err));
    *ret_found = find_owner(root, &steps, ret);
    free(steps.v);
    return TP_OK;
}

tp_status tp_checkpoint_check_claim(const char *root, const char *run_id, bool resume,
                                    tp_error *err)
{
    step_list steps;
    TP_TRY(list_steps(root, &steps, err));
    tp_status status = TP_OK;
    if (resume)
        status = refuse_foreign(root, &steps, run_id, err);
    else if (steps.n)
        status = refuse_used(root, &steps, err);
    free(steps.v);
    return status;
}

tp_status tp_checkpoint_claim(const char *root, const char *run_id, bool resume, int *ret_lock,
                              tp_error *err)
{
    TP_TRY(
        tp_checkpoint_check_claim(root, run_id, resume, err)); /* without disturbing whose it is */
    TP_TRY(tp_dir_make(root, err));
    if (ret_lock)
        TP_TRY(tp_folder_lock(root, "choose another checkpointing.checkpoint_dir", ret_lock, err));
    TP_TRY(tp_checkpoint_check_claim(root, run_id, resume, err));
    return remove_leftovers(root, true, err);
}

/* ---- what is in it ---- */

tp_status tp_checkpoint_find(const char *root, const char *run_id, tp_buf *ret_path,
                             size_t *ret_steps, tp_error *err)
{
    step_list steps;
    size_t n = 0;
    tp_buf_clear(ret_path);
    TP_TRY(list_steps(root, &steps, err));
    for (size_t i = 0; i < steps.n && !ret_path->len; i++) {
        tp_error why = {0};
        tp_train_state state;
        char path[4096];
        step_path(root, steps.v[i], path);
        if (run_id && tp_checkpoint_read_state(path, &state, NULL) == TP_OK &&
            strcmp(state.run_id, run_id) != 0)
            continue;
        n++;
        if (tp_checkpoint_verify(path, &why) == TP_OK)
            tp_buf_adds(ret_path, path);
        else
            tp_log(TP_LOG_WARNING, "checkpoint", "passing over '%s': %s", path, why.message);
    }
    free(steps.v);
    if (ret_steps)
        *ret_steps = n;
    return TP_OK;
}

/* The newest checkpoint of the run in folder `path`, wherever it keeps them. */
static tp_status find_in_run(const char *path, tp_buf *newest, tp_error *err)
{
    TP_OWN(tp_buf) root = {0};
    TP_OWN(tp_run_record) record = {0};
    tp_buf_addf(&root, "%s/run.json", path);
    bool is_run = tp_file_exists(root.data);
    tp_status status = is_run ? tp_run_record_read(path, &record, err) : TP_OK;
    const char *id = record.id[0] ? record.id : NULL;
    if (status == TP_OK && record.checkpoint_dir[0])
        status = tp_checkpoint_find(record.checkpoint_dir, id, newest, NULL, err);
    tp_buf_clear(&root);
    tp_buf_addf(&root, "%s/checkpoints", path);
    if (status == TP_OK && !newest->len)
        status = tp_checkpoint_find(root.data, id, newest, NULL, err);
    if (status == TP_OK && !newest->len && is_run)
        status = tp_fail(err, TP_ERR_CONFIG, "run '%s' has no checkpoint that is whole in '%s'",
                         path, record.checkpoint_dir[0] ? record.checkpoint_dir : root.data);
    else if (status == TP_OK && !newest->len && !tp_dir_exists(path))
        status = tp_fail(err, TP_ERR_CONFIG, "there is no model '%s'; " TP_MODEL_REMEDY, path);
    else if (status == TP_OK && !newest->len)
        status = tp_fail(err, TP_ERR_CONFIG,
                         "'%s' is neither a model folder (config.json), nor a checkpoint, nor "
                         "a run with checkpoints",
                         path);
    return status;
}

/* `path`/`below` holds a model or an adapter. */
static bool holds_model(const char *path, const char *below)
{
    static const char *const names[] = {"config.json", "adapter_config.json"};
    bool holds = false;
    for (size_t i = 0; i < TP_COUNTOF(names); i++) {
        TP_OWN(tp_buf) probe = {0};
        tp_buf_addf(&probe, "%s/%s%s", path, below, names[i]);
        holds |= tp_file_exists(probe.data);
    }
    return holds;
}

tp_status tp_checkpoint_find_model(const char *path, tp_buf *ret_folder, tp_error *err)
{
    TP_OWN(tp_buf) newest = {0};
    if (tp_gguf_is_file(path)) {
        tp_buf_adds(ret_folder, path);
        return TP_OK;
    }
    if (tp_file_exists(path))
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' is a file, and no GGUF file; name that, or the folder of the model, "
                       "checkpoint or run",
                       path);
    if (holds_model(path, ""))
        tp_buf_adds(ret_folder, path);
    else if (holds_model(path, "model/"))
        tp_buf_addf(ret_folder, "%s/model", path);
    else {
        TP_TRY(find_in_run(path, &newest, err));
        tp_buf_addf(ret_folder, "%s/model", newest.data);
    }
    return TP_OK;
}

/* ---- pruning ---- */

typedef struct {
    int64_t step;
    double metric;
    bool is_due; /* saved when the period says so */
} candidate;

/* Those of the period first, and best first; those without a metric last, newest first among them.
 */
static int by_rank(const void *a, const void *b, void *higher_is_better)
{
    const candidate *x = a, *y = b;
    bool higher = *(const bool *)higher_is_better;
    if (x->is_due != y->is_due)
        return x->is_due ? -1 : 1;
    if (isnan(x->metric) != isnan(y->metric))
        return isnan(x->metric) ? 1 : -1;
    if (!isnan(x->metric) && x->metric != y->metric)
        return (x->metric > y->metric) == higher ? -1 : 1;
    return x->step < y->step ? 1 : -1;
}

static tp_status remove_step(const char *root, int64_t step, tp_error *err)
{
    /* Out of sight first, so that a crash while deleting leaves no half checkpoint. */
    char path[4096], aside[4096];
    step_path(root, step, path);
    snprintf(aside, sizeof aside, "%s/.tmp-step-%" PRId64 ".%d", root, step, getpid());
    TP_TRY(tp_rename_synced(path, aside, err));
    return tp_dir_remove(aside, err);
}

tp_status tp_checkpoint_prune(const char *root, const char *run_id, int64_t keep,
                              bool higher_is_better, tp_error *err)
{
    step_list steps;
    TP_TRY(remove_leftovers(root, false, err));
    if (keep <= 0)
        return TP_OK;
    TP_TRY(list_steps(root, &steps, err));
    TP_FREED candidate *all = tp_new(steps.n + 1, sizeof *all);
    size_t n = 0;
    for (size_t i = 0; i < steps.n; i++) {
        char path[4096];
        tp_train_state state;
        step_path(root, steps.v[i], path);
        if (tp_checkpoint_read_state(path, &state, NULL) == TP_OK &&
            strcmp(state.run_id, run_id) == 0)
            all[n++] = (candidate){steps.v[i], state.metric, !state.is_between};
    }
    qsort_r(all, n, sizeof *all, by_rank, &higher_is_better);
    tp_status status = TP_OK;
    int64_t newest = -1;
    for (size_t i = 0; i < n; i++)
        newest = all[i].step > newest ? all[i].step : newest;
    for (size_t i = 0; i < n && status == TP_OK; i++) {
        bool is_kept = (i < (size_t)keep && all[i].is_due) || all[i].step == newest;
        if (!is_kept)
            status = remove_step(root, all[i].step, err);
    }
    free(steps.v);
    return status;
}
