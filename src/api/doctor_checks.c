/* doctor_checks.c - a training, an evaluation or a finished run, looked at by the code that
 * would use it. */
#include "api/doctor.h"

#include <stdlib.h>

#include "api/find_recipe.h"
#include "api/training.h"
#include "base/files.h"
#include "base/strings.h"
#include "engine/evaluate/eval_job.h"
#include "engine/train/fit.h"
#include "engine/train/plan_ranks.h"
#include "engine/train/recipe.h"
#include "engine/train/trainer.h"
#include "temper/config.h"

static void add(tp_doctor_checks *c, const char *what, tp_finding_kind kind, const char *text)
{
    c->v = tp_grow(c->v, c->n + 1, sizeof *c->v);
    c->v[c->n++] =
        (tp_diagnosis_finding){.what = tp_strdup(what), .text = tp_strdup(text), .kind = kind};
}

static void add_note(void *checks, const char *text) { add(checks, "note", TP_FINDING_NOTE, text); }

static void on_finding(void *user, const tp_train_finding *f)
{
    static const tp_finding_kind kinds[] = {[TP_FOUND_OK] = TP_FINDING_OK,
                                            [TP_FOUND_FAILED] = TP_FINDING_FAILED,
                                            [TP_FOUND_UNKNOWN] = TP_FINDING_UNKNOWN};
    add(user, f->what, kinds[f->found], f->text);
}

/* ---- training ---- */

typedef struct {
    const tp_doctor_options *o;
    tp_doctor_checks *checks;
} looking;

static void on_event(void *user, const tp_train_event *e)
{
    const looking *l = user;
    if (e->kind == TP_EVENT_NOTICE)
        add_note(l->checks, e->text);
}

static bool is_stopped(void *user)
{
    const looking *l = user;
    return l->o->should_stop && l->o->should_stop(l->o->user);
}

static tp_status look_at_training(tp_recipe *recipe, const tp_doctor_options *o,
                                  tp_doctor_checks *ret, tp_error *err)
{
    looking l = {.o = o, .checks = ret};
    const tp_train_hooks hooks = {
        .observe = on_event, .user = &l, .resume = o->resume, .should_stop = is_stopped};
    TP_TRY(tp_recipe_bind(recipe, false, err));
    TP_TRY(tp_recipe_fit(recipe, false, err));
    tp_train_options alone = recipe->options; /* the doctor is one process */
    TP_TRY(tp_ranks_divide(&alone, err));
    TP_TRY(tp_training_check_rules(recipe->config, &recipe->options, err));
    add(ret, "configuration", TP_FINDING_OK, o->config ? o->config : "defaults");
    tp_train_check(recipe->config, &recipe->options, &hooks, on_finding, ret);
    return TP_OK;
}

/* ---- evaluation ---- */

typedef tp_status stage(tp_eval_job *j, tp_error *err);

static bool passes(tp_doctor_checks *c, const char *what, stage *open, tp_eval_job *j)
{
    tp_error err = {0};
    if (open(j, &err) == TP_OK)
        return true;
    add(c, what, TP_FINDING_FAILED, err.message);
    return false;
}

static void look_at_model(tp_eval_job *j, tp_doctor_checks *c)
{
    char text[300];
    tp_error err = {0};
    if (tp_eval_job_open_model(j, add_note, c, &err) != TP_OK) {
        add(c, "model", TP_FINDING_FAILED, err.message);
        return;
    }
    snprintf(text, sizeof text, "%s, %lld parameters", tp_model_get_info(j->m.model)->family,
             (long long)tp_model_param_count(j->m.model));
    add(c, "model", TP_FINDING_OK, text);
    if (j->m.nonfinite[0]) {
        snprintf(text, sizeof text, "tensor '%.200s' holds NaN or infinity", j->m.nonfinite);
        add(c, "weights", TP_FINDING_FAILED, text);
    }
    if (j->n_too_long) {
        snprintf(text, sizeof text,
                 "%llu question%s left out, without room for an answer "
                 "(generation.vllm_cfg.max_model_len)",
                 (unsigned long long)j->n_too_long, tp_plural((uint64_t)j->n_too_long));
        add_note(c, text);
    }
}

static void ask_judge(tp_eval_job *j, tp_doctor_checks *c)
{
    tp_error err = {0};
    TP_OWN(tp_buf) text = {0};
    bool ok = tp_environment_try(j->env, j->prompts, NULL, &text, &err) == TP_OK;
    add(c, "judge", ok ? TP_FINDING_OK : TP_FINDING_FAILED, ok ? tp_buf_str(&text) : err.message);
}

/* `config` becomes the job's. */
static tp_status look_at_evaluation(tp_config *config, const tp_doctor_options *o,
                                    tp_doctor_checks *ret, tp_error *err)
{
    TP_CLEANUP(tp_eval_job_close) tp_eval_job j = {0};
    TP_TRY(tp_eval_job_bind(&j, config, err));
    add(ret, "configuration", TP_FINDING_OK, o->config ? o->config : "defaults");
    const char *notice = tp_config_notice(j.config);
    if (notice)
        add_note(ret, notice);
    bool judged = passes(ret, "environment", tp_eval_job_open_judge, &j);
    if (judged) {
        tp_environment_set_watch(
            j.env, &(tp_environment_watch){.should_stop = o->should_stop, .user = o->user});
        add(ret, "environment", TP_FINDING_OK, tp_buf_str(&j.env_text));
    }
    bool asked = passes(ret, "questions", tp_eval_job_open_questions, &j);
    if (asked)
        add(ret, "questions", TP_FINDING_OK, tp_buf_str(&j.data_text));
    if (judged && asked)
        ask_judge(&j, ret);
    look_at_model(&j, ret);
    return TP_OK;
}

/* ---- which of them it is ---- */

static tp_status look_at_folder(const char *dir, tp_doctor_checks *ret, tp_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/run.json", dir);
    if (!tp_file_exists(path))
        TP_TRY(tp_recipe_refuse_model(dir, err));
    if (!tp_file_exists(path))
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' is a folder without run.json; name a configuration or the folder of a "
                       "run",
                       dir);
    tp_run_inspect(dir, on_finding, ret);
    return TP_OK;
}

static tp_status load_recipe(const tp_doctor_options *o, tp_config **ret, tp_error *err)
{
    TP_FREED char *path = NULL;
    if (o->config)
        TP_TRY(tp_recipe_find(o->config, &path, err));
    return tp_recipe_load(path, o->overrides, o->n_overrides, ret, err);
}

tp_status tp_doctor_look(const tp_doctor_options *o, tp_doctor_checks *ret, tp_error *err)
{
    tp_recipe recipe = {0};
    if (o->config && o->n_overrides == 0 && tp_dir_exists(o->config))
        return look_at_folder(o->config, ret, err);
    TP_TRY(load_recipe(o, &recipe.config, err));
    if (tp_recipe_is_evaluation(recipe.config))
        return look_at_evaluation(recipe.config, o, ret, err);
    tp_status status = look_at_training(&recipe, o, ret, err);
    tp_recipe_close(&recipe);
    return status;
}

void tp_doctor_release(tp_doctor_checks *checks)
{
    for (size_t i = 0; i < checks->n; i++) {
        free((char *)checks->v[i].what);
        free((char *)checks->v[i].text);
    }
    free(checks->v);
    *checks = (tp_doctor_checks){0};
}
