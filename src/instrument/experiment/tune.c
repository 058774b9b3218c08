/* tune.c - `temper tune`: the space of a recipe, its search, and the recipe that comes out. */

#include <math.h>

#include "base/cpu.h"
#include "base/files.h"
#include "instrument/experiment/search.h"
#include "instrument/experiment/study.h"
#include "instrument/experiment/tune.h"

enum {
    MOST_CANDIDATES = 48,
    MOST_CONFIRMING = 40,
    WANTED_RUNS = 2 * MOST_CANDIDATES, /* each once, and as many for races and confirming */
    NEEDED_RUNS = 2 * (TP_SEARCH_LEAST_RACE + TP_FACTOR_LEAST)
};
static const double RACE_SHARE = 0.7;

/* ---- asking the plan ---- */

static tp_status plan(void *user, const tp_variant *variant, tp_search_plan *ret, tp_error *err)
{
    tp_study *s = user;
    const tp_json *json;
    TP_OWN(tp_buf) text = {0};
    tp_buf_addf(&text, "planning candidate %zu: %s", s->x.n_variants, variant->name);
    if (s->o.progress)
        s->o.progress(s->o.user, text.data);
    *ret = (tp_search_plan){.peak_bytes = NAN, .step_s = NAN};
    TP_TRY(tp_trainings_plan(&s->trainings, variant, &s->x.arena, &json, &ret->why, err));
    if (!json || !tp_json_bool(tp_json_get(json, "fits"), &ret->fits) ||
        !tp_json_f64(tp_json_get(tp_json_get(json, "memory"), "planned_peak_bytes"),
                     &ret->peak_bytes))
        return TP_OK;
    ret->is_known = true;
    (void)!tp_json_f64(tp_json_get(json, "predicted_step_s"), &ret->step_s);
    return TP_OK;
}

/* Tokens of a micro-batch as the recipe runs: what it leaves open the plan chooses.  0: unknown. */
static tp_status tokens_at_once(tp_study *s, int64_t *ret, tp_error *err)
{
    const tp_json *json;
    const char *why;
    *ret = 0;
    TP_TRY(tp_trainings_plan(&s->trainings, NULL, &s->x.arena, &json, &why, err));
    if (json)
        (void)!tp_json_i64(tp_json_get(json, "tokens_per_micro_batch"), ret);
    return TP_OK;
}

static void show_progress(void *user, const char *what, size_t left, double left_s)
{
    tp_study_stage(user, left_s, "%s, %zu left", what, left);
}

/* ---- the recipe ---- */

static tp_status write_recipe(const tp_tuning *t, const tp_lever_set *set, tp_error *err)
{
    const tp_study *s = t->study;
    const tp_variant *v = &s->x.variants[t->search->candidates[t->kept].variant];
    size_t n = 0, all = s->trainings.n_settings + v->n_settings;
    const char **settings = tp_arena_array(&t->study->x.arena, const char *, all + 1);
    TP_FREED char *parent = s->trainings.config ? realpath(s->trainings.config, NULL) : NULL;
    TP_OWN(tp_buf) text = {0};
    for (size_t i = 0; i < s->trainings.n_settings; i++)
        settings[n++] = s->trainings.settings[i];
    for (size_t i = 0; i < v->n_settings; i++)
        settings[n++] = v->settings[i];
    tp_tune_heading(t, &text);
    TP_TRY(set->recipe(parent ? parent : s->trainings.config, settings, n, &text, err));
    return tp_file_write_atomic(t->recipe, text.data, text.len, err);
}

/* It has to run as it is. */
static tp_status check_recipe(const tp_tuning *t, tp_error *err)
{
    const tp_json *tree;
    tp_trainings alone = t->study->trainings;
    alone.config = t->recipe;
    alone.n_settings = 0;
    return tp_trainings_look(&alone, NULL, &t->study->x.arena, &tree, err);
}

/* ---- the whole ---- */

/* A recipe above the limit is no answer. */
static tp_status check_limit(const tp_search *s, tp_error *err)
{
    char limit[32], least[32];
    double smallest = INFINITY;
    for (size_t i = 0; i < s->n; i++)
        smallest = fmin(smallest, s->candidates[i].plan.peak_bytes); /* fmin leaves a NaN out */
    tp_human_bytes(s->o.memory_bytes, limit);
    tp_human_bytes(smallest, least);
    if (smallest > s->o.memory_bytes)
        return tp_fail(err, TP_ERR_NOMEM,
                       "of %zu setting%s planned none fits into %s: the smallest needs %s%s", s->n,
                       tp_plural(s->n), limit, least,
                       s->n == 1 ? "; there was no time to plan others (--budget)" : "");
    return tp_fail(err, TP_ERR_NOMEM,
                   "the recipe is above %s, and none of the settings below it (%s and more) was "
                   "measured: %s; --budget gives more time",
                   limit, least, s->why_not ? s->why_not : "there was no time");
}

static tp_status finish(tp_tuning *t, const tp_lever_set *set, char **ret, tp_error *err)
{
    tp_study *s = t->study;
    tp_search *search = t->search;
    bool is_too_large = search->candidates[0].plan.peak_bytes > search->o.memory_bytes;
    tp_buf text = {0};
    tp_study_end(s);
    s->is_worthless = is_too_large && search->winner == 0 && !s->x.is_interrupted;
    if (s->is_worthless)
        return check_limit(search, err);
    t->kept = search->is_confirmed || is_too_large ? search->winner : 0;
    t->recipe = tp_arena_printf(&s->x.arena, "%s/recipe.yaml", s->folder);
    TP_TRY(write_recipe(t, set, err));
    if (!s->x.is_interrupted) /* no child starts after an interruption */
        TP_TRY(check_recipe(t, err));
    TP_TRY(tp_tune_save(t, err));
    if (s->o.form == TP_FORM_JSON)
        tp_tune_json(t, &text);
    else
        tp_tune_text(t, TP_FORM_TEXT, &text);
    *ret = text.data;
    return TP_OK;
}

static tp_status search_and_report(tp_study *s, const tp_tune_options *o, const tp_lever_set *set,
                                   const tp_space *space, char **ret, tp_error *err)
{
    TP_OWN(tp_search) search = {0};
    tp_tuning tuning = {.study = s, .search = &search, .space = space};
    const tp_search_options options = {.goal = o->goal,
                                       .memory_bytes =
                                           o->memory_bytes > 0 ? (double)o->memory_bytes : INFINITY,
                                       .race_share = RACE_SHARE,
                                       .most_candidates = MOST_CANDIDATES,
                                       .most_confirming = MOST_CONFIRMING,
                                       .plan = plan,
                                       .progress = show_progress,
                                       .user = s};
    tp_status status = tp_search_init(&search, &s->x, space, &options, err);
    if (status == TP_OK)
        status = tp_study_pilot(s, search.candidates[0].variant, TP_STAGE_TRIED, WANTED_RUNS,
                                NEEDED_RUNS, err);
    if (status == TP_OK)
        status = tp_search_run(&search, s->o.margin, err);
    if (status == TP_ERR_INTERRUPTED && s->x.n_samples > 0) { /* while it planned */
        s->x.is_interrupted = true;
        status = TP_OK;
    }
    if (status == TP_OK)
        status = finish(&tuning, set, ret, err);
    return status;
}

tp_status tp_tune(const char *config, const char *const *overrides, size_t n,
                  const tp_tune_options *options, const tp_lever_set *set, char **ret,
                  tp_error *err)
{
    TP_CLEANUP(tp_study_close) tp_study s = {0};
    TP_OWN(tp_buf) ignored = {0};
    TP_TRY(set->recipe(config, overrides, n, &ignored, err)); /* before time is spent */
    tp_status status = tp_study_open(&s, "tune", &options->common, config, overrides, n, err);
    tp_space *space = status == TP_OK ? tp_arena_new(&s.x.arena, tp_space) : NULL;
    int64_t tokens = 0;
    if (status == TP_OK)
        status = tokens_at_once(&s, &tokens, err);
    if (status == TP_OK)
        status = tp_space_make(space, set, s.tree, tokens, tp_cpu_count(), options->allow_precision,
                               &s.x.arena, err);
    if (status == TP_OK)
        status = search_and_report(&s, options, set, space, ret, err);
    return status;
}
