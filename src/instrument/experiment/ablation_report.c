/* ablation_report.c - what an ablation found, for people and for programs. */
#include "instrument/experiment/ablation.h"

#include <math.h>

#include "base/vec.h"
#include "base/wrap.h"
#include "instrument/report/grid.h"
#include "instrument/report/picture.h"

/* ---- JSON ---- */

static void put_effect(tp_json_w *w, const char *key, const tp_factor *e)
{
    tp_json_w_put_begin(w, key, '{');
    tp_json_w_put_known(w, "effect", e->ratio);
    tp_json_w_put_interval(w, "ci95", e->lo, e->hi);
    tp_json_w_put_str(w, "verdict", tp_change_name(e->verdict));
    tp_json_w_put_known(w, "p", e->p);
    tp_json_w_put_known(w, "p_adjusted", e->p_adjusted);
    tp_json_w_put_bool(w, "exact", e->is_exact);
    tp_json_w_put_i64(w, "rounds", (int64_t)e->n);
    tp_json_w_put_str(w, "why", *e->why ? e->why : NULL);
    tp_json_w_end(w, '}');
}

static void put_figures(tp_json_w *w, const tp_ablated_effect *e)
{
    static const tp_trial_figure shown[] = {TP_FIGURE_STEP_TIME, TP_FIGURE_TOKENS,
                                            TP_FIGURE_PEAK_MEMORY, TP_FIGURE_RESIDENT};
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        put_effect(w, tp_trial_figure_name(shown[i]), &e->figures[shown[i]]);
    tp_json_w_put_begin(w, "loss", '{');
    tp_json_w_put_str(w, "verdict", tp_loss_verdict_name(e->loss.verdict));
    tp_json_w_put_known(w, "largest_relative_difference", e->loss.largest);
    tp_json_w_put_i64(w, "steps", (int64_t)e->loss.n_steps);
    tp_json_w_end(w, '}');
}

static void put_pairs(tp_json_w *w, const tp_ablation *a)
{
    tp_json_w_put_begin(w, "interactions", '[');
    for (size_t i = 0; i < a->n_pairs; i++) {
        const tp_interaction *p = &a->pairs[i];
        tp_json_w_begin(w, '{');
        tp_json_w_put_begin(w, "levers", '[');
        tp_json_w_str(w, a->set->levers[p->a].name);
        tp_json_w_str(w, a->set->levers[p->b].name);
        tp_json_w_end(w, ']');
        put_effect(w, "step_time", &p->step_time);
        put_effect(w, "peak_memory", &p->peak_memory);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
    if (a->why_no_pairs)
        tp_json_w_put_str(w, "no_interactions", a->why_no_pairs);
}

void tp_ablation_json(const tp_ablation *a, const tp_study *s, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, 2, '{');
    tp_json_w_put_begin(&w, "levers", '[');
    for (size_t i = 0; i < a->set->n; i++) {
        tp_json_w_begin(&w, '{');
        tp_json_w_put_str(&w, "name", a->set->levers[i].name);
        tp_json_w_put_str(&w, "what", a->set->levers[i].what);
        put_figures(&w, &a->levers[i]);
        tp_json_w_end(&w, '}');
    }
    tp_json_w_end(&w, ']');
    tp_json_w_put_begin(&w, "all_off", '{');
    put_figures(&w, &a->all_off);
    tp_json_w_end(&w, '}');
    tp_json_w_put_i64(&w, "rounds", (int64_t)a->n_rounds);
    put_effect(&w, "sum", &a->sum);
    put_pairs(&w, a);
    tp_json_w_put_f64(&w, "loss_rounding", a->plan.loss_tolerance);
    tp_study_write(s, &w);
    tp_json_w_close(&w, '}');
}

/* ---- tables ---- */

static const char *ratio_text(const tp_factor *e, char out[64])
{
    if (isnan(e->ratio))
        return NULL;
    if (e->is_exact)
        snprintf(out, 64, "%.4g", e->ratio);
    else if (isnan(e->lo) || isnan(e->hi))
        snprintf(out, 64, "%.3f [?]", e->ratio);
    else
        snprintf(out, 64, "%.3f [%.3f, %.3f]", e->ratio, e->lo, e->hi);
    return out;
}

static const char *loss_text(const tp_loss_effect *e, char out[64])
{
    if (e->verdict == TP_LOSS_IDENTICAL || e->verdict == TP_LOSS_NOT_SHOWN)
        return tp_loss_verdict_name(e->verdict);
    snprintf(out, 64, "%s, %.1e", tp_loss_verdict_name(e->verdict), e->largest);
    return out;
}

static void add_row(const char *name, const tp_ablated_effect *e, tp_grid *grid)
{
    char text[64];
    const tp_factor *time = &e->figures[TP_FIGURE_STEP_TIME],
                    *tokens = &e->figures[TP_FIGURE_TOKENS],
                    *memory = &e->figures[TP_FIGURE_PEAK_MEMORY];
    tp_grid_text(grid, name);
    tp_grid_text(grid, ratio_text(time, text));
    tp_grid_text(grid, tp_change_name(time->verdict));
    tp_grid_text(grid, ratio_text(tokens, text));
    tp_grid_text(grid, ratio_text(memory, text));
    tp_grid_text(grid, tp_change_name(memory->verdict));
    tp_grid_text(grid, loss_text(&e->loss, text));
    if (e->is_left_out) /* all of them are said in one sentence */
        return;
    if (*time->why && (time->n == 0 || time->n >= TP_FACTOR_LEAST))
        tp_grid_note(grid, "%s: step time: %s", name, time->why);
    else if (*memory->why && memory->n == 0)
        tp_grid_note(grid, "%s: peak memory: %s", name, memory->why);
}

static void fill_levers(const tp_ablation *a, tp_grid *grid)
{
    grid->name = "levers";
    grid->title = "With the lever over without it, all others on";
    tp_grid_column(grid, "lever", "lever", TP_CELL_TEXT);
    tp_grid_column(grid, "step_time", "step time", TP_CELL_TEXT);
    tp_grid_column(grid, "step_time_verdict", "", TP_CELL_TEXT);
    tp_grid_column(grid, "tokens_per_s", "tokens/s", TP_CELL_TEXT);
    tp_grid_column(grid, "peak_memory", "peak memory", TP_CELL_TEXT);
    tp_grid_column(grid, "peak_memory_verdict", "", TP_CELL_TEXT);
    tp_grid_column(grid, "loss", "loss", TP_CELL_TEXT);
    for (size_t i = 0; i < a->set->n; i++)
        add_row(a->set->levers[i].name, &a->levers[i], grid);
    if (a->set->n > 1)
        add_row("all on / all off", &a->all_off, grid);
}

static void fill_pairs(const tp_ablation *a, tp_grid *grid)
{
    char text[64];
    grid->name = "interactions";
    grid->title = "What the first gives beside the second, over what it gives without";
    tp_grid_column(grid, "levers", "levers", TP_CELL_TEXT);
    tp_grid_column(grid, "step_time", "step time", TP_CELL_TEXT);
    tp_grid_column(grid, "step_time_verdict", "", TP_CELL_TEXT);
    tp_grid_column(grid, "peak_memory", "peak memory", TP_CELL_TEXT);
    for (size_t i = 0; i < a->n_pairs; i++) {
        const tp_interaction *p = &a->pairs[i];
        tp_buf names = {0};
        tp_buf_addf(&names, "%s, %s", a->set->levers[p->a].name, a->set->levers[p->b].name);
        tp_grid_text(grid, tp_buf_str(&names));
        tp_buf_release(&names);
        tp_grid_text(grid, ratio_text(&p->step_time, text));
        tp_grid_text(grid, p->step_time.verdict == TP_CHANGE_SAME     ? "they add up"
                           : p->step_time.verdict == TP_CHANGE_BETTER ? "more together"
                           : p->step_time.verdict == TP_CHANGE_WORSE  ? "less together"
                                                                      : "not shown");
        tp_grid_text(grid, ratio_text(&p->peak_memory, text));
    }
}

static void put_grid(tp_grid *grid, tp_form form, int width, tp_buf *out)
{
    if (form == TP_FORM_MARKDOWN)
        tp_grid_markdown(grid, 0, out);
    else
        tp_grid_print(grid, 0, width, out);
    tp_grid_release(grid);
}

static void say_how(const tp_ablation *a, const tp_study *s, tp_buf *out)
{
    char all[32], none[32], m[32], n[32];
    double t_all = tp_experiment_median(a->x, -1, a->all, TP_FIGURE_STEP_TIME);
    double t_none = tp_experiment_median(a->x, -1, a->none, TP_FIGURE_STEP_TIME);
    double m_all = tp_experiment_median(a->x, -1, a->all, TP_FIGURE_PEAK_MEMORY);
    double m_none = tp_experiment_median(a->x, -1, a->none, TP_FIGURE_PEAK_MEMORY);
    tp_buf_addf(
        out,
        "%zu round%s of %zu-step runs after %zu steps of warm-up, %zu runs in all, in random "
        "order (seed %lld).\n",
        a->n_rounds, a->n_rounds == 1 ? "" : "s", s->trainings.n_steps, s->trainings.n_warm_up,
        s->x.n_runs, (long long)s->o.seed);
    if (!isnan(t_all))
        tp_buf_addf(out, "All on: %s a step, %s.  ", tp_human_seconds(t_all, all),
                    tp_human_bytes(m_all, m));
    if (!isnan(t_none))
        tp_buf_addf(out, "All off: %s a step, %s.", tp_human_seconds(t_none, none),
                    tp_human_bytes(m_none, n));
    tp_buf_addc(out, '\n');
}

static void say_sum(const tp_ablation *a, tp_buf *out)
{
    char text[64];
    if (a->set->n > 1 && !isnan(a->sum.ratio))
        tp_buf_addf(out, "Step time: the single effects multiplied, over all together: %s%s.\n",
                    ratio_text(&a->sum, text),
                    a->sum.verdict == TP_CHANGE_SAME ? "; they add up" : "");
    if (a->why_no_pairs)
        tp_buf_addf(out, "No pairs of levers were looked at: %s.\n", a->why_no_pairs);
}

static void say_left_out(const tp_ablation *a, tp_buf *out)
{
    char time[32];
    size_t n = 0;
    for (size_t i = 0; i < a->set->n; i++)
        if (a->levers[i].is_left_out)
            tp_buf_addf(out, "%s%s", n++ ? ", " : "Left out: ", a->set->levers[i].name);
    if (n)
        tp_buf_addf(out,
                    ": the budget has no six rounds for them.  All take about %s (--budget); "
                    "--levers chooses.\n",
                    tp_human_seconds(a->whole_s, time));
}

static void say_rules(const tp_ablation *a, tp_buf *out)
{
    size_t n_effects = a->set->n > 1; /* all together */
    for (size_t i = 0; i < a->set->n; i++)
        n_effects += !a->levers[i].is_left_out;
    tp_buf_addf(out,
                "Intervals: 95 %%, of the Hodges-Lehmann estimate over rounds, exact by signed "
                "ranks; [?]: fewer than six rounds. Better and worse: the interval does not hold "
                "1, and p < 0.05 after Holm's "
                "correction (%zu effects of the figure). Same: all of the interval within "
                "%.3g %%. Rounding: no step's loss differs by more than %.2g of itself.\n",
                n_effects, 100 * a->plan.margin, a->plan.loss_tolerance);
}

void tp_ablation_text(const tp_ablation *a, const tp_study *s, tp_form form, tp_buf *out)
{
    tp_grid levers = {0}, pairs = {0};
    TP_OWN(tp_buf) prose = {0};
    if (form == TP_FORM_MARKDOWN)
        tp_buf_adds(out, "# Levers\n\n");
    say_how(a, s, out);
    tp_buf_addc(out, '\n');
    fill_levers(a, &levers);
    put_grid(&levers, form, s->o.width, out);
    tp_buf_addc(out, '\n');
    if (a->n_pairs) {
        fill_pairs(a, &pairs);
        put_grid(&pairs, form, s->o.width, out);
        tp_buf_addc(out, '\n');
    }
    say_left_out(a, &prose);
    say_sum(a, &prose);
    say_rules(a, &prose);
    tp_study_remarks(s, &prose);
    if (form == TP_FORM_MARKDOWN)
        tp_buf_addf(out, "%s\n![Effects](effects.svg)\n", tp_buf_str(&prose));
    else
        tp_add_wrapped(out, tp_buf_str(&prose), prose.len, (size_t)s->o.width);
}

/* ---- the picture ---- */

static tp_category category(const char *label, const tp_factor *e)
{
    return (tp_category){.label = label,
                         .value = 100 * (e->ratio - 1),
                         .lower = 100 * (e->lo - 1),
                         .upper = 100 * (e->hi - 1),
                         .reference = NAN};
}

/* Changes in per cent with their intervals, as one <svg>. */
static void draw(const tp_ablation *a, tp_buf *out)
{
    static const tp_trial_figure figures[] = {TP_FIGURE_STEP_TIME, TP_FIGURE_PEAK_MEMORY};
    static const char *const titles[] = {"Step time", "Peak memory"};
    tp_panel panels[2];
    size_t n = a->set->n + 1;
    TP_FREED tp_category *rows = tp_vec_new(2 * n, sizeof *rows);
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < a->set->n; i++)
            rows[k * n + i] = category(a->set->levers[i].name, &a->levers[i].figures[figures[k]]);
        rows[k * n + n - 1] = category("all on / all off", &a->all_off.figures[figures[k]]);
        panels[k] = (tp_panel){.kind = TP_PANEL_BARS,
                               .title = titles[k],
                               .x_label = "change with the lever / %",
                               .interval = "95 % interval over rounds, signed ranks",
                               .categories = rows + k * n,
                               .n_categories = n};
    }
    tp_picture picture = {.title = "What each lever gives",
                          .subtitle = "with it over without it, all others on",
                          .panels = panels,
                          .n_panels = 2,
                          .columns = 2};
    tp_picture_svg(&picture, out);
}

tp_status tp_ablation_save(const tp_ablation *a, const tp_study *s, tp_error *err)
{
    TP_OWN(tp_buf) json = {0}, markdown = {0}, picture = {0};
    tp_ablation_json(a, s, &json);
    tp_ablation_text(a, s, TP_FORM_MARKDOWN, &markdown);
    draw(a, &picture);
    TP_TRY(tp_study_save(s, "report.json", &json, err));
    TP_TRY(tp_study_save(s, "report.md", &markdown, err));
    return tp_study_save(s, "effects.svg", &picture, err);
}
