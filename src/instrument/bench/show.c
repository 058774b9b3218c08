/* show.c - results of a session as text: as they come, and at the end. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/terminal.h"
#include "instrument/bench/session.h"

enum { VALUE = 18, REDRAW_MS = 100 };

char *tp_bench_value(double v, const char *unit, char *out)
{
    char number[32];
    if (isnan(v))
        snprintf(out, 48, "unknown");
    else if (strcmp(unit, "bytes") == 0)
        snprintf(out, 48, "%s", tp_human_bytes(v, number));
    else if (strcmp(unit, "s") == 0) {
        const char *name = v < 1e-6 ? "ns" : v < 1e-3 ? "us" : v < 1 ? "ms" : "s";
        double scale = v < 1e-6 ? 1e9 : v < 1e-3 ? 1e6 : v < 1 ? 1e3 : 1;
        snprintf(out, 48, "%.4g %s", v * scale, name);
    } else {
        tp_human_count(v, number);
        size_t n = strlen(number);
        /* "4.6 GFLOP", but "29.5 k tokens/s" */
        bool attached = n > 0 && number[n - 1] > '9' && *unit >= 'A' && *unit <= 'Z';
        snprintf(out, 48, "%s%s%.24s", number, attached || !*unit ? "" : " ", unit);
    }
    return out;
}

void tp_bench_show_init(tp_bench_show *show, const tp_bench_setup *setup, bool compares,
                        size_t total, int name_width)
{
    *show = (tp_bench_show){.o = &setup->o,
                            .compares = compares,
                            .name_width = name_width < 9 ? 9 : name_width,
                            .total = total};
}

void tp_bench_show_release(tp_bench_show *show) { tp_buf_release(&show->out); }

static void bench_show_flush(tp_bench_show *show)
{
    if (show->out.len && show->o->print)
        show->o->print(show->o->user, show->out.data);
    tp_buf_clear(&show->out);
}

void tp_bench_show_json(tp_bench_show *show, const tp_bench_report *r)
{
    if (show->o->json)
        tp_write_temper(r, &show->out);
    bench_show_flush(show);
}

/* ---- the line that changes ---- */

void tp_bench_show_clear(tp_bench_show *show)
{
    if (show->has_line)
        show->o->progress(show->o->user, NULL);
    show->has_line = false;
}

/* Of this benchmark and of those behind it. */
static void say_what_is_left(const tp_bench_show *show, const tp_bench_progress *p, tp_buf *out)
{
    char text[32];
    size_t others = show->total - show->done - 1;
    double left = p->left_s + (others ? (double)others * show->each_s : 0);
    if (!isnan(left))
        tp_buf_addf(out, ", %s %s to go", p->n_planned ? "about" : "at most",
                    tp_human_seconds(left, text));
}

static void say_so_far(const tp_bench_progress *p, tp_buf *out)
{
    char value[48];
    if (p->comparison && isfinite(p->comparison->ratio_lower) &&
        isfinite(p->comparison->ratio_upper))
        tp_buf_addf(out, "  ratio %.3f [%.3f, %.3f]", p->comparison->ratio,
                    p->comparison->ratio_lower, p->comparison->ratio_upper);
    else if (p->summary && p->metric) {
        tp_buf_addf(out, "  %s", tp_bench_value(p->summary->median, p->metric->unit, value));
        if (isfinite(p->summary->lower))
            tp_buf_addf(out, " +-%.1f %%",
                        50 * (p->summary->upper - p->summary->lower) / p->summary->median);
    }
}

void tp_bench_show_progress(void *user, const tp_bench_progress *p)
{
    tp_bench_show *show = user;
    double now = tp_clock_s();
    if (!show->o->progress || (show->has_line && now - show->last_draw_s < REDRAW_MS * 1e-3))
        return;
    TP_OWN(tp_buf) line = {0};
    tp_buf_addf(&line, "[%zu/%zu] %s  ", show->done + 1, show->total, p->name);
    if (p->is_warming_up && p->round == 0)
        tp_buf_adds(&line, "setting up");
    else if (p->is_warming_up)
        tp_buf_addf(&line, "warming up, run %zu", p->round);
    else {
        tp_buf_addf(&line, "round %zu", p->round);
        if (p->n_planned)
            tp_buf_addf(&line, "/%zu", p->n_planned);
        tp_buf_addf(&line, ", %.0f s", p->elapsed_s);
        say_what_is_left(show, p, &line);
        say_so_far(p, &line);
    }
    if (line.len >= (size_t)show->o->width)
        line.data[show->o->width - 1] = 0;
    show->o->progress(show->o->user, line.data);
    show->has_line = true;
    show->last_draw_s = now;
}

/* ---- one side: what was measured ---- */

/* In front of figures; long names have a line of their own. */
static void put_name(const tp_bench_show *show, const char *name, tp_buf *out)
{
    enum { FIGURES = 2 + VALUE + 1 + 8 + 2 + VALUE - 6 + 1 + VALUE - 6 + 1 + 4 };
    if (show->name_width + FIGURES <= show->o->width)
        tp_buf_addf(out, "%-*s  ", show->name_width, name);
    else
        tp_buf_addf(out, "%s\n  ", name);
}

void tp_bench_show_heading(tp_bench_show *show, const tp_bench_report *r)
{
    tp_buf *out = &show->out;
    if (show->o->json)
        return;
    if (show->compares) {
        tp_buf_addf(out, "A  %s\nB  %s\n\n", r->side_a, r->side_b);
        bench_show_flush(show);
        return;
    }
    put_name(show, "benchmark", out);
    tp_buf_addf(out, "%-*s %8s  %-*s %-*s %4s\n", VALUE, "speed", "+- 95 %", VALUE - 6, "time",
                VALUE - 6, "peak memory", "n");
    bench_show_flush(show);
}

static void show_metric(const tp_bench_metric *m, tp_buf *out)
{
    char value[48], low[48], high[48];
    const tp_summary *s = &m->side_b;
    if (m->metric.kind == TP_METRIC_EXACT) {
        tp_buf_addf(out, "    %-16s %.15g %s (exact)\n", m->metric.name, s->median, m->metric.unit);
        return;
    }
    tp_buf_addf(out, "    %-16s %s", m->metric.name,
                tp_bench_value(s->median, m->metric.unit, value));
    if (isfinite(s->lower))
        tp_buf_addf(out, "  [%s, %s]", tp_bench_value(s->lower, m->metric.unit, low),
                    tp_bench_value(s->upper, m->metric.unit, high));
    if (s->sd > 0 && s->mean > 0)
        tp_buf_addf(out, "  sd %.2g %%", 100 * s->sd / s->mean);
    tp_buf_addf(out, "%s%s\n", m->note ? "  " : "", m->note ? m->note : "");
}

static void show_single(tp_bench_show *show, const tp_bench_result *result)
{
    tp_buf *out = &show->out;
    char speed[48], time_text[48] = "", memory_text[48] = "", width[16] = "";
    if (result->message || result->n_metrics == 0) {
        tp_buf_addf(out, "%-*s  FAILED: %s\n", show->name_width, result->name,
                    result->message ? result->message : "nothing was measured");
        return;
    }
    const tp_bench_metric *first = &result->metrics[0];
    const tp_bench_metric *time = tp_result_time(result);
    const tp_bench_metric *memory = tp_result_metric(result, tp_bench_memory_name);
    const tp_summary *s = &first->side_b;
    if (time && time != first)
        tp_bench_value(time->side_b.median, "s", time_text);
    if (memory)
        tp_bench_value(memory->side_b.median, "bytes", memory_text);
    if (isfinite(s->lower))
        snprintf(width, sizeof width, "%.2f %%", 50 * (s->upper - s->lower) / s->median);
    put_name(show, result->name, out);
    tp_buf_addf(out, "%-*s %8s  %-*s %-*s %4zu\n", VALUE,
                tp_bench_value(s->median, first->metric.unit, speed), width, VALUE - 6, time_text,
                VALUE - 6, memory_text, result->rounds);
    if (result->note)
        tp_buf_addf(out, "    %s\n", result->note);
    for (size_t k = 0; show->o->verbose && k < result->n_metrics; k++)
        show_metric(&result->metrics[k], &show->out);
}

/* ---- two sides: the difference ---- */

static const char *colour_of(const tp_bench_show *show, tp_bench_verdict v)
{
    static const tp_terminal_code styles[] = {[TP_GRAVITY_GOOD] = TP_STYLE_GREEN,
                                              [TP_GRAVITY_WARNING] = TP_STYLE_YELLOW,
                                              [TP_GRAVITY_ERROR] = TP_STYLE_BOLD_RED};
    tp_gravity gravity = tp_bench_verdict_gravity(v);
    return show->o->colour && gravity != TP_GRAVITY_NONE ? tp_style(styles[gravity]) : "";
}

static void show_verdict(tp_bench_show *show, tp_bench_verdict v)
{
    tp_buf *out = &show->out;
    const char *on = colour_of(show, v);
    tp_buf_addf(out, "%s%s%s (%s)", on, tp_bench_verdict_name(v),
                *on ? tp_style(TP_STYLE_PLAIN) : "", tp_bench_verdict_word(v));
}

/* "B is 4.1 % slower": with the word that fits the metric. */
static void show_sentence(const tp_bench_metric *m, tp_buf *out)
{
    const tp_bench_comparison *c = &m->comparison;
    double percent = 100 * (c->ratio - 1);
    bool is_time = strcmp(m->metric.unit, "s") == 0;
    bool is_rate = tp_str_ends(m->metric.unit, "/s") || tp_str_ends(m->metric.unit, "/sec");
    bool is_speed = m->metric.direction == TP_HIGHER_IS_BETTER &&
                    (is_rate || strcmp(m->metric.name, "throughput") == 0);
    const char *more = is_time ? "longer" : is_speed ? "faster" : "more";
    const char *less = is_time ? "shorter" : is_speed ? "slower" : "less";
    if (c->how == TP_COMPARED_EXACT && percent == 0)
        tp_buf_addf(out, "equal");
    else if (isinf(percent))
        tp_buf_addf(out, "%s than 0", more);
    else
        tp_buf_addf(out, "%.2f %% %s", fabs(percent), percent < 0 ? less : more);
    if (c->how == TP_COMPARED_EXACT)
        return;
    if (isfinite(c->ratio_lower) && isfinite(c->ratio_upper))
        tp_buf_addf(out, ", %.0f %% interval %+.2f to %+.2f %%", 100 * (1 - 2 * c->alpha),
                    100 * (c->ratio_lower - 1), 100 * (c->ratio_upper - 1));
    tp_buf_addf(out, ", n = %zu", c->n);
}

/* "+1.20 %" of the log of a slowdown; "undefined" for NaN. */
static const char *slowdown(double log_worse, char text[32])
{
    if (isnan(log_worse))
        snprintf(text, 32, "undefined");
    else
        snprintf(text, 32, "%+.2f %%", 100 * expm1(log_worse));
    return text;
}

static void show_slowdown(const char *what, double center, double lower, double upper, tp_buf *out)
{
    char a[32], b[32], c[32];
    tp_buf_addf(out, "      %-28s", what);
    if (!isnan(center))
        tp_buf_addf(out, " %s ", slowdown(center, a));
    tp_buf_addf(out, " [%s, %s]\n", slowdown(lower, b), slowdown(upper, c));
}

static void show_details(const tp_bench_comparison *c, tp_buf *out)
{
    char text[32];
    tp_buf_addf(out, "      tolerance %.3g %%", 100 * c->tolerance);
    if (!isnan(c->p))
        tp_buf_addf(out, "  p %.2g", c->p);
    if (!isnan(c->p_holm))
        tp_buf_addf(out, " (Holm %.2g)", c->p_holm);
    tp_buf_addf(out, "\n");
    if (c->how != TP_COMPARED_PAIRED)
        return;
    tp_buf_addf(
        out,
        "      e-values: worse %.3g, within %.3g; equal rounds %zu; smallest excess shown %.2g "
        "%%\n",
        exp(c->log_e_worse), exp(c->log_e_within), c->n_ties, 100 * c->mde);
    show_slowdown("slowdown, median", c->center, c->lower, c->upper, out);
    show_slowdown("... mean, paired t", c->mean, c->mean_lower, c->mean_upper, out);
    show_slowdown("... median, BCa bootstrap", NAN, c->boot_median_lower, c->boot_median_upper,
                  out);
    show_slowdown("... mean, BCa bootstrap", NAN, c->boot_mean_lower, c->boot_mean_upper, out);
    tp_buf_addf(out, "      %-28s %s\n", "... Hodges-Lehmann", slowdown(c->hodges_lehmann, text));
    show_slowdown("effect of the order", c->order_effect, c->order_lower, c->order_upper, out);
    if (!isnan(c->lag1))
        tp_buf_addf(out, "      %-28s %.2f (as good as %.0f independent rounds)\n",
                    "lag-1 autocorrelation", c->lag1, c->n_effective);
}

static void show_compared_metric(tp_bench_show *show, const tp_bench_metric *m)
{
    tp_buf *out = &show->out;
    char a[48], b[48];
    const tp_bench_comparison *c = &m->comparison;
    tp_buf_addf(out, "  %-14s %s -> %s  ", m->metric.name,
                tp_bench_value(m->side_a.median, m->metric.unit, a),
                tp_bench_value(m->side_b.median, m->metric.unit, b));
    show_sentence(m, out);
    tp_buf_addf(out, "  ");
    if (m->metric.is_informative)
        tp_buf_addf(out, "(shown, not judged)");
    else
        show_verdict(show, c->verdict);
    if (c->point != TP_BENCH_NONE && !m->metric.is_informative)
        tp_buf_addf(out, "  plain rule: %s",
                    c->point == TP_BENCH_REGRESSION ? "regression" : "no regression");
    tp_buf_addf(out, "\n");
    if (c->reason[0])
        tp_buf_addf(out, "      %s\n", c->reason);
    if (m->note)
        tp_buf_addf(out, "      %s\n", m->note);
    if (show->o->verbose)
        show_details(c, out);
}

/* What has a note instead of a verdict. */
static void show_unjudged(const tp_bench_metric *m, tp_buf *out)
{
    char a[48], b[48];
    tp_buf_addf(out, "  %-14s ", m->metric.name);
    if (m->metric.is_informative && m->n_a && m->n_b)
        tp_buf_addf(out, "%s -> %s  ", tp_bench_value(m->side_a.median, m->metric.unit, a),
                    tp_bench_value(m->side_b.median, m->metric.unit, b));
    tp_buf_addf(out, "%s\n", m->note);
}

static void show_compared(tp_bench_show *show, const tp_bench_result *result)
{
    tp_buf *out = &show->out;
    tp_buf_addf(out, "%-*s  ", show->name_width, result->name);
    show_verdict(show, result->verdict);
    if (result->message || result->note)
        tp_buf_addf(out, ": %s", result->message ? result->message : result->note);
    else if (result->verdict == TP_BENCH_MISSING)
        tp_buf_addf(out, ": in the baseline, but not measured");
    tp_buf_addf(out, "\n");
    for (size_t k = 0; k < result->n_metrics; k++) {
        const tp_bench_metric *m = &result->metrics[k];
        bool is_quiet = m->comparison.how == TP_COMPARED_EXACT &&
                        m->comparison.verdict == TP_BENCH_PASS && !show->o->verbose;
        if (m->is_compared && !is_quiet && (!m->metric.is_informative || show->o->verbose))
            show_compared_metric(show, m);
        else if (m->note)
            show_unjudged(m, out);
    }
}

/* Before the suite is judged as a whole: the ratio of the first metric, no verdict. */
static void show_provisional(tp_bench_show *show, const tp_bench_result *result)
{
    tp_buf *out = &show->out;
    tp_buf_addf(out, "%-*s  ", show->name_width, result->name);
    if (result->message || result->n_metrics == 0)
        tp_buf_addf(out, "FAILED: %s\n",
                    result->message ? result->message : "nothing was measured");
    else {
        tp_buf_addf(out, "%s  ", result->metrics[0].metric.name);
        show_sentence(&result->metrics[0], out);
        tp_buf_addf(out, "\n");
    }
}

void tp_bench_show_result(tp_bench_show *show, const tp_bench_result *result)
{
    tp_buf *out = &show->out;
    show->done++;
    tp_bench_show_clear(show);
    if (show->o->json)
        return;
    if (!show->compares)
        show_single(show, result);
    else if (show->total > 1)
        show_provisional(show, result);
    if (show->compares && show->total > 1 && show->done == show->total)
        tp_buf_addf(out, "\n");
    bench_show_flush(show);
}

static void show_exact_note(const tp_bench_report *r, tp_buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_results; i++) {
        for (size_t k = 0; k < r->results[i].n_metrics; k++) {
            const tp_bench_metric *m = &r->results[i].metrics[k];
            n += m->is_compared && m->comparison.how == TP_COMPARED_EXACT &&
                 m->comparison.verdict == TP_BENCH_PASS;
        }
    }
    if (n)
        tp_buf_addf(out, "\n%zu exact figures (memory, allocations, work) are not worse.\n", n);
}

void tp_bench_show_verdicts(tp_bench_show *show, const tp_bench_report *r,
                            const tp_gate_options *gate)
{
    tp_buf *out = &show->out;
    tp_gate_summary s = tp_gate_conclude(r, gate);
    TP_OWN(tp_buf) suspects = {0};
    tp_bench_show_clear(show);
    if (show->o->json)
        return;
    for (const tp_bench_result *x = NULL; (x = tp_bench_report_worst(r, x));)
        show_compared(show, x);
    if (!show->o->verbose)
        show_exact_note(r, &show->out);
    tp_buf_addf(out, "\n");
    tp_gate_say_counts(&s, out);
    tp_buf_addf(out, "\nplain rule (no interval): %zu regression%s%s\n", s.n_point_regressions,
                s.n_point_regressions == 1 ? "" : "s", r->rule.by_point ? "; it decides" : "");
    tp_gate_suspects(r, 0.1, &suspects);
    if (suspects.len)
        tp_buf_addf(out, "suspects (Benjamini-Hochberg, 10 %%): %s\n", suspects.data);
    tp_buf_addf(out, "%zu comparison%s judged together at alpha %g; exit status %d\n",
                r->rule.family, r->rule.family == 1 ? "" : "s", r->rule.alpha,
                r->exit_status >= 0 ? r->exit_status : s.exit_status);
    bench_show_flush(show);
}
