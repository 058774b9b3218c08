/* doctor_checks.c - a training, an evaluation or a finished run, looked at by the code that
 * would use it. */
#include "cli/doctor_checks.h"

#include <stdarg.h>
#include <string.h>

#include "base/files.h"
#include "cli/cli.h"
#include "cli/eval_job.h"
#include "cli/recipe.h"

static void add(tp_doctor_checks *c, const char *what, tp_found found, const char *text)
{
    c->v = realloc(c->v, (c->n + 1) * sizeof *c->v);
    TP_ASSERT(c->v);
    tp_doctor_check *k = &c->v[c->n++];
    *k = (tp_doctor_check){.what = strdup(what), .text = strdup(text), .found = found};
    TP_ASSERT(k->what && k->text);
}

static void add_note(tp_doctor_checks *c, const char *text)
{
    add(c, "note", TP_FOUND_OK, text);
    c->v[c->n - 1].is_note = true;
}

static void on_finding(void *user, const tp_train_finding *f)
{
    add(user, f->what, f->found, f->text);
}

/* ---- training ---- */

static void on_event(void *user, const tp_train_event *e)
{
    if (e->kind == TP_EVENT_NOTICE)
        add_note(user, e->text);
}

static tp_status look_at_training(char **words, int n, bool resume, tp_doctor_stop *should_stop,
                                  tp_doctor_checks *ret, tp_error *err)
{
    tp_recipe recipe;
    tp_train_hooks hooks = {
        .observe = on_event, .user = ret, .resume = resume, .should_stop = should_stop};
    TP_TRY(tp_cli_open_recipe(words, n, &recipe, err));
    add(ret, "configuration", TP_FOUND_OK, words[0]);
    tp_train_check(recipe.config, &recipe.options, &hooks, on_finding, ret);
    tp_recipe_close(&recipe);
    return TP_OK;
}

/* ---- evaluation ---- */

typedef tp_status stage(tp_eval_job *j, tp_error *err);

static bool passes(tp_doctor_checks *c, const char *what, stage *open, tp_eval_job *j)
{
    tp_error err = {0};
    if (open(j, &err) == TP_OK)
        return true;
    add(c, what, TP_FOUND_FAILED, err.message);
    return false;
}

static void look_at_model(tp_eval_job *j, tp_doctor_checks *c)
{
    char text[300];
    if (!passes(c, "model", tp_eval_job_open_model, j))
        return;
    snprintf(text, sizeof text, "%s, %lld parameters", tp_model_get_info(j->model)->family,
             (long long)tp_model_param_count(j->model));
    add(c, "model", TP_FOUND_OK, text);
    if (j->nonfinite[0]) {
        snprintf(text, sizeof text, "tensor '%.200s' holds NaN or infinity", j->nonfinite);
        add(c, "weights", TP_FOUND_FAILED, text);
    }
    if (j->n_too_long) {
        snprintf(text, sizeof text,
                 "%llu questions leave no room for an answer and are left out "
                 "(generation.vllm_cfg.max_model_len)",
                 (unsigned long long)j->n_too_long);
        add_note(c, text);
    }
}

static void ask_judge(tp_eval_job *j, tp_doctor_checks *c)
{
    tp_error err = {0};
    tp_buf text = {0};
    bool ok = tp_environment_try(j->env, j->prompts, NULL, &text, &err) == TP_OK;
    add(c, "judge", ok ? TP_FOUND_OK : TP_FOUND_FAILED, ok ? tp_buf_str(&text) : err.message);
    tp_buf_release(&text);
}

static tp_status look_at_evaluation(char **words, int n, tp_doctor_stop *should_stop,
                                    tp_doctor_checks *ret, tp_error *err)
{
    tp_eval_job j = {0};
    tp_status status = tp_eval_job_bind(&j, words, n, err);
    if (status == TP_OK) {
        add(ret, "configuration", TP_FOUND_OK, words[0]);
        const char *notice = tp_config_notice(j.config);
        if (notice)
            add_note(ret, notice);
        bool judged = passes(ret, "environment", tp_eval_job_open_judge, &j);
        if (judged) {
            tp_environment_set_watch(j.env, &(tp_environment_watch){.should_stop = should_stop});
            add(ret, "environment", TP_FOUND_OK, tp_buf_str(&j.env_text));
        }
        bool asked = passes(ret, "questions", tp_eval_job_open_questions, &j);
        if (asked)
            add(ret, "questions", TP_FOUND_OK, tp_buf_str(&j.data_text));
        if (judged && asked)
            ask_judge(&j, ret);
        look_at_model(&j, ret);
    }
    tp_eval_job_close(&j);
    return status;
}

/* ---- which of them it is ---- */

/* An evaluation has a section eval, or generates at the top level. */
static tp_status is_evaluation(char **words, int n, bool *ret, tp_error *err)
{
    tp_config *config = NULL;
    bool has_file = n > 0 && !strchr(words[0], '=');
    tp_status status = tp_config_load(&config, has_file ? words[0] : NULL, err);
    for (int i = has_file; i < n && status == TP_OK; i++)
        status = tp_config_override(config, words[i], err);
    if (status == TP_OK)
        *ret = tp_config_find(config, "eval") || tp_config_find(config, "generation");
    tp_config_release(config);
    return status;
}

static tp_status look_at_folder(const char *dir, tp_doctor_checks *ret, tp_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/run.json", dir);
    if (!tp_file_exists(path))
        return tp_fail(err, TP_ERR_CONFIG,
                       "'%s' is a folder without run.json; name a configuration or the folder of a "
                       "run",
                       dir);
    tp_run_inspect(dir, on_finding, ret);
    return TP_OK;
}

tp_status tp_doctor_look(char **words, int n, bool resume, tp_doctor_stop *should_stop,
                         tp_doctor_checks *ret, tp_error *err)
{
    bool evaluates;
    if (n == 1 && tp_dir_exists(words[0]))
        return look_at_folder(words[0], ret, err);
    TP_TRY(is_evaluation(words, n, &evaluates, err));
    return evaluates ? look_at_evaluation(words, n, should_stop, ret, err)
                     : look_at_training(words, n, resume, should_stop, ret, err);
}

size_t tp_doctor_failures(const tp_doctor_checks *checks)
{
    size_t n = 0;
    for (size_t i = 0; i < checks->n; i++)
        n += checks->v[i].found == TP_FOUND_FAILED;
    return n;
}

void tp_doctor_release(tp_doctor_checks *checks)
{
    for (size_t i = 0; i < checks->n; i++) {
        free(checks->v[i].what);
        free(checks->v[i].text);
    }
    free(checks->v);
    *checks = (tp_doctor_checks){0};
}
