/* evaluate.c - an evaluation as one object of temper/evaluate.h, and those in files. */
#include "temper/evaluate.h"

#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/output.h"
#include "base/sized.h"
#include "engine/evaluate/eval_job.h"
#include "engine/evaluate/eval_report.h"
#include "engine/train/recipe.h"
#include "instrument/evaluations/eval_compare.h"
#include "stats/adjust.h"

struct tp_evaluator {
    tp_evaluator_options o;
    tp_eval_job j;
    tp_evaluation evaluation;
    tp_eval_summary summary;
    tp_eval_perturbed perturbed[TP_EVAL_MOST_PERTURBATIONS];
    size_t n_perturbed;
    bool has_run;
};

static void hand_out(tp_buf *text, char **ret_text, size_t *ret_n)
{
    tp_buf_adds(text, "");
    *ret_text = text->data;
    *ret_n = text->len;
}

/* ---- opening ---- */

static bool is_stopped(void *user)
{
    const tp_evaluator *e = user;
    return e->o.should_stop && e->o.should_stop(e->o.user);
}

static void notice(void *user, const char *text)
{
    const tp_evaluator *e = user;
    if (e->o.notice)
        e->o.notice(e->o.user, text);
}

static void add_notices(tp_evaluator *e)
{
    const tp_eval_options *o = &e->j.o;
    TP_OWN(tp_buf) text = {0};
    if (tp_config_notice(e->j.config))
        notice(e, tp_config_notice(e->j.config));
    if (o->generation.temperature == 0 && o->eval.num_tests_per_prompt > 1) {
        tp_buf_addf(&text,
                    "generation.temperature is 0: the %lld answers to a question are all the same",
                    (long long)o->eval.num_tests_per_prompt);
        notice(e, text.data);
    }
}

static tp_status open_parts(tp_evaluator *e, tp_config *config, tp_error *err)
{
    tp_eval_job *j = &e->j;
    TP_TRY(tp_eval_job_bind(j, config, err));
    TP_TRY(tp_output_check(e->o.out, err)); /* before the work, not after it */
    TP_TRY(tp_eval_job_force_isa(j, err));
    TP_TRY(tp_eval_job_open_judge(j, err));
    tp_environment_set_watch(j->env, &(tp_environment_watch){is_stopped, notice, e});
    TP_TRY(tp_eval_job_open_questions(j, err));
    TP_TRY(tp_environment_check_answers(j->env, j->prompts, NULL, err));
    add_notices(e);
    TP_TRY(tp_eval_job_open_model(j, notice, e, err));
    return tp_output_check(e->o.out, err); /* now that the inputs are known */
}

/* The config.yaml in a run folder is that of a training. */
static tp_status refuse_run(const char *config, tp_error *err)
{
    static const char name[] = "/config.yaml";
    if (!config || !tp_str_ends(config, name))
        return TP_OK;
    int n = (int)(strlen(config) - strlen(name));
    if (!tp_file_exists(tp_path_of("%.*s/run.json", n, config).text))
        return TP_OK;
    return tp_fail(err, TP_ERR_CONFIG,
                   "'%.*s' is a run, not a configuration of an evaluation; its model is evaluated "
                   "with generation.model_name=%.*s data.data_path=FILE 'env={math: {}}'",
                   n, config, n, config);
}

tp_status tp_evaluator_open(const char *config, const char *const *overrides, size_t n_overrides,
                            const tp_evaluator_options *options, tp_evaluator **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_evaluator_options o;
    tp_config *read = NULL;
    if (!ret)
        return tp_fail(err, TP_ERR_ARG, "tp_evaluator_open: ret is NULL");
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_evaluator_options", err));
    TP_TRY(refuse_run(config, err));
    TP_TRY(tp_recipe_load(config, overrides, n_overrides, &read, err));
    tp_evaluator *e = tp_new(1, sizeof *e);
    e->o = o;
    tp_status status = open_parts(e, read, err);
    if (status != TP_OK) {
        tp_evaluator_free(e);
        return status;
    }
    if (e->j.m.nonfinite[0]) {
        TP_OWN(tp_buf) text = {0};
        tp_buf_addf(&text, "the weights have values that are not finite, the first in %s",
                    e->j.m.nonfinite);
        notice(e, text.data);
    }
    *ret = e;
    return TP_OK;
}

void tp_evaluator_free(tp_evaluator *e)
{
    if (!e)
        return;
    tp_evaluation_release(&e->evaluation);
    tp_eval_job_close(&e->j);
    free(e);
}

/* ---- running ---- */

static bool on_progress(void *user, const tp_evaluator_progress *progress)
{
    const tp_evaluator *e = user;
    if (is_stopped(user))
        return false;
    if (e->o.progress)
        e->o.progress(e->o.user, progress);
    return true;
}

/* How it is said that no prompt can be compared. */
static tp_eval_paired unpaired(double level, const char *why)
{
    return (tp_eval_paired){.level = level,
                            .a = NAN,
                            .b = NAN,
                            .difference = NAN,
                            .se = NAN,
                            .lo = NAN,
                            .hi = NAN,
                            .p = NAN,
                            .p_t = NAN,
                            .p_mcnemar = NAN,
                            .reward_difference = NAN,
                            .reward_lo = NAN,
                            .reward_hi = NAN,
                            .reward_p = NAN,
                            .test = "none",
                            .why = why};
}

static bool has_pair(const tp_evaluation *a, const tp_evaluation *b)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->counts[i].n && b->counts[i].n)
            return true;
    return false;
}

/* The same questions, seeds and judge, written otherwise. */
static tp_status ask_again(tp_evaluator *e, const char *name, tp_error *err)
{
    TP_OWN(tp_evaluation) again = {0};
    tp_eval_perturbed *x = &e->perturbed[e->n_perturbed];
    *x = (tp_eval_perturbed){.kind = tp_perturbation_find(name), .n_prompts = e->evaluation.n};
    TP_TRY(tp_eval_job_run(&e->j, x->kind, on_progress, e, &again, err));
    x->n_changed = again.n - again.n_unchanged;
    tp_status status = TP_OK;
    if (has_pair(&e->evaluation, &again))
        status = tp_eval_compare_prompts(e->evaluation.counts, again.counts, again.n,
                                         e->j.o.eval.confidence_level, &x->paired, err);
    else
        x->paired = unpaired(e->j.o.eval.confidence_level, "no answer got a verdict both ways");
    e->n_perturbed += status == TP_OK;
    return status;
}

/* Those that cannot be told, as of no prompt, are no test more. */
static tp_status judge_perturbed(tp_evaluator *e, tp_error *err)
{
    double p[TP_EVAL_MOST_PERTURBATIONS], level = e->j.o.eval.confidence_level;
    for (size_t i = 0; i < e->n_perturbed; i++)
        p[i] = e->perturbed[i].paired.p;
    if (e->n_perturbed)
        TP_TRY(tp_adjust(TP_ADJUST_HOLM, p, e->n_perturbed, p, err));
    for (size_t i = 0; i < e->n_perturbed; i++) {
        tp_eval_perturbed *x = &e->perturbed[i];
        x->p_adjusted = p[i];
        x->verdict = !(p[i] < 1 - level)        ? TP_CHANGE_NOT_SHOWN
                     : x->paired.difference < 0 ? TP_CHANGE_WORSE
                                                : TP_CHANGE_BETTER;
    }
    return TP_OK;
}

tp_status tp_evaluator_run(tp_evaluator *e, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(e, err);
    tp_eval_job *j = &e->j;
    if (e->has_run)
        return tp_fail(err, TP_ERR_ARG, "tp_evaluator_run: it ran already; open another");
    TP_TRY(tp_eval_job_run(j, NULL, on_progress, e, &e->evaluation, err));
    TP_TRY(tp_eval_summarize(e->evaluation.counts, e->evaluation.n, j->o.k, j->o.n_k,
                             j->o.eval.confidence_level, &e->summary, err));
    for (size_t i = 0; i < j->o.eval.perturbations.n; i++)
        TP_TRY(ask_again(e, j->o.eval.perturbations.v[i], err));
    TP_TRY(judge_perturbed(e, err));
    e->has_run = true;
    return TP_OK;
}

/* ---- results ---- */

static tp_eval_report report_of(const tp_evaluator *e)
{
    const tp_eval_job *j = &e->j;
    return (tp_eval_report){.config = j->config,
                            .options = &j->o,
                            .model = tp_buf_str(&j->m.folder),
                            .family = tp_model_get_info(j->m.model)->family,
                            .n_parameters = tp_model_param_count(j->m.model),
                            .data = tp_buf_str(&j->data_text),
                            .env = tp_buf_str(&j->env_text),
                            .evaluation = &e->evaluation,
                            .summary = &e->summary,
                            .perturbed = e->perturbed,
                            .n_perturbed = e->n_perturbed,
                            .judges = tp_environment_get_counts(j->env)};
}

static tp_evaluation_result result_of(const tp_evaluator *e)
{
    const tp_eval_summary *s = &e->summary;
    const tp_evaluation *v = &e->evaluation;
    bool has_one = s->n_k > 0 && s->k[0] == 1;
    return (tp_evaluation_result){.prompts = v->n,
                                  .answers = v->n * (uint64_t)v->n_samples,
                                  .judged = s->n_samples,
                                  .excluded = s->n_excluded,
                                  .pass_at_1 = has_one ? s->pass[0].value : NAN,
                                  .pass_lo = has_one ? s->pass[0].lo : NAN,
                                  .pass_hi = has_one ? s->pass[0].hi : NAN,
                                  .reward = s->reward.value,
                                  .reward_lo = s->reward.lo,
                                  .reward_hi = s->reward.hi,
                                  .majority = s->majority.value,
                                  .level = s->level,
                                  .seconds = v->seconds,
                                  .generate_s = v->generate_s,
                                  .judge_s = v->judge_s,
                                  .new_tokens = v->n_new_tokens};
}

tp_status tp_evaluator_get_result(const tp_evaluator *e, tp_evaluation_result *ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(e && ret, err);
    TP_TRY(tp_sized_check(ret, "tp_evaluation_result", err));
    if (!e->has_run)
        return tp_fail(err, TP_ERR_ARG, "tp_evaluator_get_result: it has not run");
    tp_evaluation_result own = result_of(e);
    tp_sized_write(ret, &own, sizeof own);
    return tp_evaluation_check_verdicts(&e->evaluation, err);
}

void tp_evaluator_text(const tp_evaluator *e, int64_t rows, bool colour, char **ret_text,
                       size_t *ret_n)
{
    tp_eval_report r = report_of(e);
    tp_buf text = {0};
    tp_eval_report_text(&r, rows, colour, &text);
    hand_out(&text, ret_text, ret_n);
}

void tp_evaluator_json(const tp_evaluator *e, char **ret_text, size_t *ret_n)
{
    tp_eval_report r = report_of(e);
    tp_buf text = {0};
    tp_eval_report_json(&r, false, 2, &text);
    hand_out(&text, ret_text, ret_n);
}

tp_status tp_evaluator_write(const tp_evaluator *e, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(e, err);
    tp_eval_report r = report_of(e);
    TP_OWN(tp_buf) text = {0};
    if (e->o.out) {
        tp_eval_report_json(&r, true, 1, &text);
        TP_TRY(tp_output_put(e->o.out, text.data, text.len, err));
    }
    if (e->j.o.eval.save_path)
        TP_TRY(tp_eval_report_nemo(&r, e->j.o.eval.save_path, err));
    return TP_OK;
}

void tp_evaluator_keys(char **ret_text, size_t *ret_n)
{
    tp_buf text = {0};
    tp_eval_options_doc(&text);
    hand_out(&text, ret_text, ret_n);
}

/* ---- evaluations in files ---- */

static tp_status read_options(const tp_evaluation_file_options *options,
                              tp_evaluation_file_options *o, tp_error *err)
{
    TP_TRY(tp_sized_read(o, sizeof *o, options, "tp_evaluation_file_options", err));
    if (o->level != 0 && !(o->level > 0 && o->level < 1))
        return tp_fail(err, TP_ERR_ARG, "level is %g; expected a number between 0 and 1", o->level);
    o->level = o->level != 0 ? o->level : 0.95;
    o->threshold = o->has_threshold ? o->threshold : 1;
    return TP_OK;
}

tp_status tp_evaluation_summarize(const char *path, const tp_evaluation_file_options *options,
                                  char **ret_text, size_t *ret_n, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_evaluation_file_options o;
    tp_buf text = {0};
    TP_NEED(path && ret_text && ret_n, err);
    TP_TRY(read_options(options, &o, err));
    tp_status status = tp_eval_summarize_path(path, &o, &text, err);
    if (status == TP_OK)
        hand_out(&text, ret_text, ret_n);
    else
        tp_buf_release(&text);
    return status;
}

tp_status tp_evaluation_compare(const char *a, const char *b,
                                const tp_evaluation_file_options *options, char **ret_text,
                                size_t *ret_n, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_evaluation_file_options o;
    tp_buf text = {0};
    TP_NEED(a && b && ret_text && ret_n, err);
    TP_TRY(read_options(options, &o, err));
    tp_status status = tp_eval_compare_files(a, b, &o, &text, err);
    if (status == TP_OK)
        hand_out(&text, ret_text, ret_n);
    else
        tp_buf_release(&text);
    return status;
}
