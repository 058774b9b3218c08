/* tune_report.c - the gain, its interval, and the candidates that were looked at. */
#include "base/wrap.h"
#include "instrument/experiment/tune.h"

#include <math.h>

#include "base/strings.h"
#include "base/wrap.h"
#include "instrument/report/grid.h"

static const char *goal_name(tp_goal goal)
{
    return goal == TP_GOAL_PEAK_MEMORY ? "peak_memory"
           : goal == TP_GOAL_COST      ? "cost"
                                       : "tokens_per_s";
}

/* What the recipe that is kept gains: nothing where it is the one that was given. */
static tp_factor gain_of(const tp_tuning *t, const tp_factor *measured)
{
    if (t->kept == t->search->winner && t->kept != 0)
        return *measured;
    return (tp_factor){.ratio = 1,
                       .lo = 1,
                       .hi = 1,
                       .p = NAN,
                       .p_adjusted = NAN,
                       .is_exact = true,
                       .verdict = TP_CHANGE_SAME};
}

/* "1.34 [1.29, 1.40]" */
static const char *factor_text(const tp_factor *f, char out[64])
{
    if (isnan(f->ratio))
        snprintf(out, 64, "unknown");
    else if (f->is_exact)
        snprintf(out, 64, "%.4g", f->ratio);
    else if (isnan(f->lo))
        snprintf(out, 64, "%.3f [?]", f->ratio);
    else
        snprintf(out, 64, "%.3f [%.3f, %.3f]", f->ratio, f->lo, f->hi);
    return out;
}

void tp_tune_heading(const tp_tuning *t, tp_buf *out)
{
    char tokens[64], memory[64];
    tp_factor by_tokens = gain_of(t, &t->search->tokens),
              by_memory = gain_of(t, &t->search->memory);
    const char *config = t->study->trainings.config ? t->study->trainings.config : "no file";
    if (t->kept == 0)
        tp_buf_addf(out, "# temper tune of %s, goal %s: nothing better was found\n", config,
                    goal_name(t->search->o.goal));
    else
        tp_buf_addf(out,
                    "# temper tune of %s, goal %s, over it on fresh rounds: tokens/s %s,\n# peak "
                    "memory %s\n",
                    config, goal_name(t->search->o.goal), factor_text(&by_tokens, tokens),
                    factor_text(&by_memory, memory));
}

/* ---- JSON ---- */

static void put_gain(tp_json_w *w, const char *key, const tp_factor *f)
{
    tp_json_w_put_begin(w, key, '{');
    tp_json_w_put_known(w, "ratio", f->ratio);
    tp_json_w_put_interval(w, "ci95", f->lo, f->hi);
    tp_json_w_put_str(w, "verdict", tp_change_name(f->verdict));
    tp_json_w_put_i64(w, "rounds", (int64_t)f->n);
    tp_json_w_put_str(w, "why", *f->why ? f->why : NULL);
    tp_json_w_end(w, '}');
}

static void put_candidates(const tp_tuning *t, tp_json_w *w)
{
    const tp_search *s = t->search;
    tp_json_w_put_begin(w, "candidates", '[');
    for (size_t i = 0; i < s->n; i++) {
        const tp_candidate *c = &s->candidates[i];
        const tp_variant *v = &s->x->variants[c->variant];
        tp_json_w_begin(w, '{');
        tp_json_w_put_str(w, "name", v->name);
        tp_json_w_put_begin(w, "settings", '[');
        for (size_t k = 0; k < v->n_settings; k++)
            tp_json_w_str(w, v->settings[k]);
        tp_json_w_end(w, ']');
        tp_json_w_put_known(w, "planned_peak_bytes", c->plan.peak_bytes);
        tp_json_w_put_known(w, "predicted_step_s", c->plan.step_s);
        tp_json_w_put_known(w, "raced", c->ratio);
        tp_json_w_put_i64(w, "raced_rounds", (int64_t)c->rounds);
        tp_json_w_put_str(w, "refused", c->plan.is_known ? NULL : c->plan.why);
        tp_json_w_put_str(w, "failed", v->why);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}

void tp_tune_json(const tp_tuning *t, tp_buf *out)
{
    const tp_search *s = t->search;
    tp_factor tokens = gain_of(t, &s->tokens), memory = gain_of(t, &s->memory),
              cost = gain_of(t, &s->cost);
    const tp_variant *kept = &s->x->variants[s->candidates[t->kept].variant];
    tp_json_w w = tp_json_w_open(out, 2, '{');
    tp_json_w_put_str(&w, "recipe", t->recipe);
    tp_json_w_put_i64(&w, "trials", (int64_t)s->x->n_runs);
    tp_json_w_put_begin(&w, "gain", '{');
    put_gain(&w, "tokens_per_s", &tokens);
    put_gain(&w, "peak_memory", &memory);
    put_gain(&w, "cost", &cost);
    tp_json_w_end(&w, '}');
    tp_json_w_put_str(&w, "goal", goal_name(s->o.goal));
    tp_json_w_put_known(&w, "memory_limit_bytes",
                        isinf(s->o.memory_bytes) ? (double)NAN : s->o.memory_bytes);
    tp_json_w_put_begin(&w, "settings", '[');
    for (size_t k = 0; k < kept->n_settings; k++)
        tp_json_w_str(&w, kept->settings[k]);
    tp_json_w_end(&w, ']');
    tp_json_w_put_bool(&w, "confirmed", s->is_confirmed);
    tp_json_w_put_str(&w, "why_not", s->why_not);
    tp_json_w_put_i64(&w, "planned", (int64_t)s->n);
    tp_json_w_put_i64(&w, "refused", (int64_t)s->n_refused);
    tp_json_w_put_i64(&w, "too_large", (int64_t)s->n_too_large);
    tp_json_w_put_i64(&w, "cannot_win", (int64_t)s->n_too_slow);
    tp_json_w_put_i64(&w, "races", (int64_t)s->n_races);
    put_candidates(t, &w);
    tp_study_write(t->study, &w);
    tp_json_w_close(&w, '}');
}

/* ---- text ---- */

static void fill_best(const tp_tuning *t, tp_grid *grid)
{
    const tp_search *s = t->search;
    enum { SHOWN = 8, LEAST_ROUNDS = 2 };
    TP_FREED bool *is_shown = tp_new(s->n + 1, sizeof *is_shown);
    grid->name = "candidates";
    grid->title = "Best of the races, over the recipe in the same rounds";
    tp_grid_column(grid, "settings", "settings", TP_CELL_TEXT);
    tp_grid_column(grid, "raced", s->o.goal == TP_GOAL_PEAK_MEMORY ? "bytes" : "time or cost",
                   TP_CELL_REAL);
    tp_grid_column(grid, "rounds", "rounds", TP_CELL_COUNT);
    tp_grid_column(grid, "planned_peak_bytes", "planned peak", TP_CELL_BYTES);
    for (int k = 0; k < SHOWN; k++) {
        size_t best = k == 0 ? s->winner : 0; /* it is there, however few its rounds */
        for (size_t i = 1; i < s->n && !(k == 0 && best); i++)
            if (!is_shown[i] && s->candidates[i].rounds >= LEAST_ROUNDS &&
                isfinite(s->candidates[i].score) &&
                (best == 0 || s->candidates[i].score < s->candidates[best].score))
                best = i;
        if (best == 0)
            break;
        const tp_candidate *c = &s->candidates[best];
        is_shown[best] = true;
        tp_grid_text(grid, s->x->variants[c->variant].name);
        tp_grid_real(grid, round(1000 * c->ratio) / 1000);
        tp_grid_int(grid, (int64_t)c->rounds);
        tp_grid_int(grid, (int64_t)c->plan.peak_bytes);
    }
}

static void say_gain(const tp_tuning *t, tp_buf *out)
{
    char tokens[64], memory[64], cost[64];
    const tp_search *s = t->search;
    const char *name = s->x->variants[s->candidates[t->kept].variant].name;
    if (t->kept == 0) {
        tp_buf_addf(out, "The recipe stays as it is: %s.\n",
                    s->why_not ? s->why_not : "nothing was better");
        if (s->winner == 0)
            return;
        tp_buf_addf(out, "The winner of the races (%s)",
                    s->x->variants[s->candidates[s->winner].variant].name);
    } else
        tp_buf_addf(out, "%s", name);
    tp_buf_addf(out,
                ", over the recipe on %zu fresh rounds: tokens/s %s, %s; peak memory %s, %s; cost "
                "of a token %s, %s.\n",
                s->tokens.n, factor_text(&s->tokens, tokens), tp_change_name(s->tokens.verdict),
                factor_text(&s->memory, memory), tp_change_name(s->memory.verdict),
                factor_text(&s->cost, cost), tp_change_name(s->cost.verdict));
    if (t->kept != 0 && s->why_not)
        tp_buf_addf(out, "It is kept because the recipe is over the memory limit: %s.\n",
                    s->why_not);
}

void tp_tune_text(const tp_tuning *t, tp_form form, tp_buf *out)
{
    const tp_search *s = t->search;
    const tp_study *study = t->study;
    TP_OWN(tp_grid) grid = {0};
    TP_OWN(tp_buf) prose = {0};
    if (form == TP_FORM_MARKDOWN)
        tp_buf_adds(out, "# Tuning\n\n");
    say_gain(t, &prose);
    tp_buf_addf(&prose,
                "%zu setting%s planned: %zu refused, %zu too large, %zu that cannot win; races: "
                "%zu, %zu runs of %zu steps after %zu of warm-up (seed %lld).\n",
                s->n - 1, tp_plural((uint64_t)(s->n - 1)), s->n_refused, s->n_too_large,
                s->n_too_slow, s->n_races, s->x->n_runs, study->trainings.n_steps,
                study->trainings.n_warm_up, (long long)study->o.seed);
    if (isnan(s->candidates[0].plan.step_s))
        tp_buf_adds(&prose, "The plan knows no times here: run 'temper doctor' once, and more is "
                            "discarded before it runs.\n");
    tp_study_remarks(study, &prose);
    if (form == TP_FORM_MARKDOWN)
        tp_buf_add(out, prose.data, prose.len);
    else
        tp_add_wrapped(out, tp_buf_str(&prose), prose.len, (size_t)study->o.width);
    fill_best(t, &grid);
    if (tp_grid_rows(&grid))
        tp_buf_addc(out, '\n');
    if (tp_grid_rows(&grid) && form == TP_FORM_MARKDOWN)
        tp_grid_markdown(&grid, 0, out);
    else if (tp_grid_rows(&grid))
        tp_grid_print(&grid, 0, study->o.width, out);
    tp_buf_addf(out, "\nRecipe: %s\n", t->recipe);
}

tp_status tp_tune_save(const tp_tuning *t, tp_error *err)
{
    TP_OWN(tp_buf) json = {0}, markdown = {0};
    tp_tune_json(t, &json);
    tp_tune_text(t, TP_FORM_MARKDOWN, &markdown);
    TP_TRY(tp_study_save(t->study, "report.json", &json, err));
    return tp_study_save(t->study, "report.md", &markdown, err);
}
