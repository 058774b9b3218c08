/* rounds.c - runs in random order, within a budget, and what became of them. */
#include "instrument/experiment/rounds.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "base/vec.h"
#include "stats/stats.h"

enum { MOST_FAILURES = 2, ORDER_STREAM = 0x61626c };

const char *tp_trial_state_name(tp_trial_state state)
{
    static const char *const names[TP_TRIAL_STATES] = {
        "done", "refused", "does not fit", "not finite", "killed", "timed out", "failed"};
    return names[state];
}

const char *tp_trial_figure_name(tp_trial_figure figure)
{
    static const char *const names[TP_FIGURES] = {"step_time", "tokens_per_s", "peak_memory",
                                                  "resident_memory", "cost"};
    return names[figure];
}

tp_status tp_experiment_init(tp_experiment *x, const tp_trial_runner *runner, uint64_t seed,
                             double budget_s, tp_error *err)
{
    *x = (tp_experiment){.runner = *runner, .seed = seed};
    TP_TRY(tp_arena_init(&x->arena, (size_t)1 << 32, err));
    x->end_s = runner->now_s(runner->user) + budget_s;
    return TP_OK;
}

void tp_experiment_release(tp_experiment *x)
{
    free(x->variants);
    free(x->samples);
    tp_arena_release(&x->arena);
}

static bool has_settings(const tp_variant *v, const char *const *settings, size_t n)
{
    if (v->n_settings != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (strcmp(v->settings[i], settings[i]) != 0)
            return false;
    return true;
}

size_t tp_experiment_variant(tp_experiment *x, const char *name, const char *const *settings,
                             size_t n_settings)
{
    for (size_t i = 0; i < x->n_variants; i++)
        if (has_settings(&x->variants[i], settings, n_settings))
            return i;
    const char **copy = tp_arena_array(&x->arena, const char *, n_settings + 1);
    for (size_t i = 0; i < n_settings; i++)
        copy[i] = tp_arena_strdup(&x->arena, settings[i]);
    *TP_VEC_PUSH(x->variants, x->n_variants, x->cap_variants) =
        (tp_variant){.name = tp_arena_strdup(&x->arena, name),
                     .settings = copy,
                     .n_settings = n_settings,
                     .expected_s = NAN};
    return x->n_variants - 1;
}

/* ---- time ---- */

double tp_experiment_left_s(const tp_experiment *x)
{
    return x->end_s - x->runner.now_s(x->runner.user);
}

/* Of a variant that never ran: as the slowest of the others. */
static double expected(const tp_experiment *x, size_t variant)
{
    double most = 0;
    if (!isnan(x->variants[variant].expected_s))
        return x->variants[variant].expected_s;
    for (size_t i = 0; i < x->n_variants; i++)
        most = fmax(most, x->variants[i].expected_s); /* fmax leaves a NaN out */
    return most;
}

double tp_experiment_expected_s(const tp_experiment *x, const size_t *which, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if (!x->variants[which[i]].is_out)
            sum += expected(x, which[i]);
    return sum;
}

/* ---- running ---- */

static void note_end(tp_variant *v, const tp_trial *t)
{
    v->expected_s = t->wall_s;
    if (t->state == TP_TRIAL_DONE)
        return;
    bool is_final = t->state == TP_TRIAL_REFUSED || t->state == TP_TRIAL_NO_MEMORY ||
                    t->state == TP_TRIAL_NOT_FINITE;
    v->failures++;
    v->why = t->why;
    v->is_out = is_final || v->failures >= MOST_FAILURES;
}

static tp_status run(tp_experiment *x, tp_trial_sample *s, tp_error *err)
{
    tp_variant *v = &x->variants[s->variant];
    tp_status status = x->runner.run(x->runner.user, &x->arena, v, x->n_runs, &s->trial, err);
    if (status == TP_ERR_INTERRUPTED) {
        x->is_interrupted = true;
        return TP_OK;
    }
    TP_TRY(status);
    x->n_runs++;
    note_end(v, &s->trial);
    *TP_VEC_PUSH(x->samples, x->n_samples, x->cap_samples) = *s;
    return x->keep ? x->keep(x->user, v, s, err) : TP_OK;
}

static void draw_order(uint64_t seed, int stage, size_t round, const size_t *which, size_t n,
                       size_t *order)
{
    tp_rng rng =
        tp_rng_make(seed, ORDER_STREAM + ((uint64_t)stage << 56) + ((uint64_t)round << 24));
    memcpy(order, which, n * sizeof *order);
    for (size_t i = n; i > 1; i--) {
        size_t at = tp_rng_below(&rng, i), kept = order[at];
        order[at] = order[i - 1];
        order[i - 1] = kept;
    }
}

tp_status tp_experiment_round(tp_experiment *x, int stage, size_t round, const size_t *which,
                              size_t n, tp_error *err)
{
    TP_FREED size_t *order = tp_vec_new(n + 1, sizeof *order);
    draw_order(x->seed, stage, round, which, n, order);
    for (size_t i = 0; i < n && !tp_experiment_is_over(x); i++) {
        tp_trial_sample s = {.stage = stage, .round = round, .turn = i, .variant = order[i]};
        if (x->variants[order[i]].is_out)
            continue;
        if (expected(x, order[i]) > tp_experiment_left_s(x))
            x->is_out_of_time = true;
        else {
            if (x->begin)
                x->begin(x->user, &x->variants[order[i]], i, n);
            TP_TRY(run(x, &s, err));
        }
    }
    return TP_OK;
}

/* ---- asking ---- */

const tp_trial *tp_experiment_trial(const tp_experiment *x, int stage, size_t round, size_t variant)
{
    for (size_t i = 0; i < x->n_samples; i++) {
        const tp_trial_sample *s = &x->samples[i];
        if (s->stage == stage && s->round == round && s->variant == variant &&
            s->trial.state == TP_TRIAL_DONE)
            return &s->trial;
    }
    return NULL;
}

size_t tp_experiment_rounds(const tp_experiment *x, int stage)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n_samples; i++)
        if (x->samples[i].stage == stage && x->samples[i].round >= n)
            n = x->samples[i].round + 1;
    return n;
}

static size_t samples_of(const tp_experiment *x, int stage, size_t round)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n_samples; i++)
        n += x->samples[i].stage == stage && x->samples[i].round == round;
    return n;
}

size_t tp_experiment_whole_rounds(const tp_experiment *x, int stage)
{
    size_t n = tp_experiment_rounds(x, stage);
    bool was_cut = tp_experiment_is_over(x);
    bool is_short = n > 1 && samples_of(x, stage, n - 1) < samples_of(x, stage, n - 2);
    return was_cut && is_short ? n - 1 : n;
}

size_t tp_experiment_pairs(const tp_experiment *x, int stage, size_t variant_a, size_t variant_b,
                           tp_trial_figure figure, double *a, double *b)
{
    size_t n = 0, rounds = tp_experiment_rounds(x, stage);
    for (size_t r = 0; r < rounds; r++) {
        const tp_trial *one = tp_experiment_trial(x, stage, r, variant_a);
        const tp_trial *other = tp_experiment_trial(x, stage, r, variant_b);
        if (!one || !other)
            continue;
        a[n] = one->values[figure];
        b[n++] = other->values[figure];
    }
    return n;
}

double tp_experiment_median(const tp_experiment *x, int stage, size_t variant,
                            tp_trial_figure figure)
{
    double *v = tp_vec_new(x->n_samples + 1, sizeof *v), median = NAN;
    size_t n = 0;
    for (size_t i = 0; i < x->n_samples; i++) {
        const tp_trial_sample *s = &x->samples[i];
        if ((stage < 0 || s->stage == stage) && s->variant == variant &&
            s->trial.state == TP_TRIAL_DONE && isfinite(s->trial.values[figure]))
            v[n++] = s->trial.values[figure];
    }
    if (n > 0 && tp_median(v, n, &median, NULL) != TP_OK)
        median = NAN;
    free(v);
    return median;
}
