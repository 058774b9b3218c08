/* report.c - a profile and its comparison with another, as text and as JSON. */
#include "instrument/profile/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/order.h"
#include "base/platform.h"
#include "base/share.h"
#include "base/strings.h"
#include "instrument/report/grid.h"
#include "stats/descriptive.h"

enum { OPERATORS = 16, BOTTLENECKS = 8 };

static double mean(const double *v, int64_t n) { return tp_mean(v, (size_t)n); }

/* ---- text ---- */

/* "12.3 ms [12.1 ms, 12.6 ms]": the mean with its 95 % interval. */
static void add_interval(const double *v, int64_t n, tp_buf *out)
{
    char a[32], b[32], c[32];
    tp_description d;
    if (tp_describe(v, (size_t)n, 0.95, &d, NULL) != TP_OK)
        return;
    tp_buf_addf(out, "%s", tp_human_seconds(d.mean, a));
    if (!d.t_ci.why)
        tp_buf_addf(out, " [%s, %s]", tp_human_seconds(fmax(d.t_ci.lo, 0), b),
                    tp_human_seconds(d.t_ci.hi, c));
    tp_buf_addf(out, ", median %s, from %s", tp_human_seconds(d.median, a),
                tp_human_seconds(d.min, b));
    tp_buf_addf(out, " to %s", tp_human_seconds(d.max, c));
}

static void add_head(const tp_profile_report *r, tp_buf *out)
{
    char a[32], b[32];
    const tp_profile_data *d = r->data;
    double s = mean(d->step_s, d->n_done);
    double used = mean(d->used_tokens, d->n_done), trained = mean(d->trained_tokens, d->n_done);
    double padded = mean(d->padded_tokens, d->n_done);
    tp_buf_addf(out, "profile \"%s\" of %s: %lld warm-up, %lld timed and %lld recorded steps\n\n",
                r->name, r->recipe, (long long)d->warmup, (long long)d->n_done,
                (long long)d->recorded);
    tp_buf_addf(out, "%-16s ", "step");
    add_interval(d->step_s, d->n_done, out);
    tp_buf_addf(out, "\n%-16s %s tokens/s trained, %s with those not trained, %.1f %% padding\n",
                "throughput", tp_human_count(trained / s, a), tp_human_count(used / s, b),
                100 * padded / (used + padded));
    double samples = mean(d->samples, d->n_done);
    tp_buf_addf(out, "%-16s %s samples a step, %s samples/s\n", "batch", tp_human_count(samples, a),
                tp_human_count(samples / s, b));
    tp_buf_addf(out, "%-16s %s parameters, %d thread%s, processor %.0f %% busy, ", "work",
                tp_human_count((double)d->parameters, a), d->threads,
                tp_plural((uint64_t)d->threads), 100 * d->cpu_s / (d->wall_s * d->threads));
    if (isnan(d->mfu))
        tp_buf_addf(out, "MFU unknown ('temper doctor' measures the machine)\n");
    else
        tp_buf_addf(out, "MFU %.1f %%\n", 100 * d->mfu);
}

typedef struct {
    const tp_profile_op *op;
    double s;
} ranked;

TP_ORDER(by_time, ranked, TP_COMPARE(y->s, x->s))

static int rank_ops(const tp_profile_data *d, ranked *rows)
{
    for (int i = 0; i < d->n_ops; i++)
        rows[i] = (ranked){&d->ops[i], mean(d->ops[i].s, d->n_done)};
    qsort(rows, (size_t)d->n_ops, sizeof *rows, by_time);
    return d->n_ops;
}

static void put_known(tp_grid *g, const char *format, double v)
{
    if (isnan(v))
        tp_grid_unknown(g);
    else
        tp_grid_textf(g, format, v);
}

static void put_share(tp_grid *g, const tp_profile_data *d, const tp_profile_op *op, double s)
{
    TP_OWN(tp_buf) text = {0};
    tp_share_put(tp_share_of(op->limit_s, op->arithmetic_s, s), 0, &text);
    tp_grid_text(g, d->machine ? tp_buf_str(&text) + strspn(tp_buf_str(&text), " ") : NULL);
}

static void put_operator(const tp_profile_report *r, const ranked *row, double step_s, tp_grid *g)
{
    const tp_profile_data *d = r->data;
    const tp_profile_op *op = row->op;
    tp_description t;
    bool has_interval =
        tp_describe(op->s, (size_t)d->n_done, 0.95, &t, NULL) == TP_OK && !t.t_ci.why;
    tp_grid_text(g, op->name);
    tp_grid_text(g, op->part ? op->part : "");
    tp_grid_textf(g, "%.0f", op->launches);
    tp_grid_textf(g, "%.3f", row->s * 1e3);
    if (has_interval)
        tp_grid_textf(g, "[%.3f, %.3f]", fmax(t.t_ci.lo, 0) * 1e3, t.t_ci.hi * 1e3);
    else
        tp_grid_unknown(g);
    tp_grid_textf(g, "%.1f%%", 100 * row->s / step_s);
    put_known(g, "%.1f", op->flops / row->s * 1e-9);
    put_known(g, "%.1f", op->bytes / row->s * 1e-9);
    put_share(g, d, op, row->s);
}

/* A row that is no operator. */
static void put_rest(tp_grid *g, const char *name, double s, double step_s)
{
    tp_grid_text(g, name);
    tp_grid_text(g, "");
    tp_grid_text(g, "");
    tp_grid_textf(g, "%.3f", s * 1e3);
    tp_grid_text(g, "");
    tp_grid_textf(g, "%.1f%%", 100 * s / step_s);
    for (int i = 0; i < 3; i++)
        tp_grid_text(g, "");
}

static void add_columns(tp_grid *g, bool has_limit)
{
    static const char *const figures[] = {"launches", "ms/step", "95 % interval",
                                          "share",    "GFLOP/s", "GB/s"};
    tp_grid_column(g, "name", "operator", TP_CELL_TEXT);
    tp_grid_column(g, "part", "part", TP_CELL_TEXT);
    for (size_t i = 0; i < TP_COUNTOF(figures); i++)
        tp_grid_column(g, figures[i], figures[i], TP_CELL_FIGURE);
    if (has_limit)
        tp_grid_column(g, "limit", "of limit", TP_CELL_FIGURE);
    else
        tp_grid_hidden(g, "limit", TP_CELL_FIGURE);
}

static void add_operators(const tp_profile_report *r, tp_buf *out)
{
    ranked rows[TP_PROFILE_OPS];
    const tp_profile_data *d = r->data;
    double step_s = mean(d->step_s, d->n_done), rest = 0, all = 0;
    int n = rank_ops(d, rows);
    bool any_unknown = false;
    unsigned seen = 0;
    TP_OWN(tp_grid) g = {0};
    add_columns(&g, d->machine != NULL);
    for (int i = 0; i < n && rows[i].s > 0; i++) {
        all += rows[i].s;
        if (i >= OPERATORS) {
            rest += rows[i].s;
            continue;
        }
        put_operator(r, &rows[i], step_s, &g);
        seen |= 1u << tp_share_of(rows[i].op->limit_s, rows[i].op->arithmetic_s, rows[i].s).kind;
        any_unknown |= isnan(rows[i].op->bytes);
    }
    if (rest > 0)
        put_rest(&g, "others", rest, step_s);
    put_rest(&g, "outside operators", step_s - all, step_s);
    tp_buf_addc(out, '\n');
    tp_grid_print(&g, 0, r->width, out);
    tp_share_put_notes(seen, out);
    if (any_unknown)
        tp_buf_adds(out, TP_SHARE_VARIES);
}

/* Seconds per step and launches of a part. */
static double part_seconds(const tp_profile_data *d, const char *part, double *ret_launches)
{
    double s = 0;
    *ret_launches = 0;
    for (int i = 0; i < d->n_ops; i++)
        if (d->ops[i].part && strcmp(d->ops[i].part, part) == 0) {
            s += mean(d->ops[i].s, d->n_done);
            *ret_launches += d->ops[i].launches;
        }
    return s;
}

static bool is_first_of_part(const tp_profile_data *d, int at)
{
    for (int i = 0; i < at; i++)
        if (d->ops[i].part && strcmp(d->ops[i].part, d->ops[at].part) == 0)
            return false;
    return true;
}

/* What the launches ran for, in order of a step; adds up to the step. */
static void add_parts(const tp_profile_data *d, tp_buf *out)
{
    double step_s = mean(d->step_s, d->n_done), all = 0, launches;
    tp_buf_addf(out, "\n%-24s %8s %10s %7s\n", "launches for", "launches", "ms/step", "share");
    for (int i = 0; i < d->n_ops; i++) {
        if (!d->ops[i].part || !is_first_of_part(d, i))
            continue;
        double s = part_seconds(d, d->ops[i].part, &launches);
        all += s;
        if (s > 0)
            tp_buf_addf(out, "%-24s %8.0f %10.3f %6.1f%%\n", d->ops[i].part, launches, s * 1e3,
                        100 * s / step_s);
    }
    tp_buf_addf(out, "%-24s %8s %10.3f %6.1f%%\n", "outside operators", "", (step_s - all) * 1e3,
                100 * (step_s - all) / step_s);
    tp_buf_addf(out, "%-24s %8s %10.3f %6.1f%%\n", "step", "", step_s * 1e3, 100.0);
}

static void add_phases(const tp_profile_data *d, tp_buf *out)
{
    double wall = tp_profile_wall_s(d);
    tp_buf_addf(out, "\n%-24s %10s %7s\n", "phase", "ms/step", "share");
    for (int k = 0; k < d->n_phases; k++) {
        double s = mean(d->phases[k].s, d->n_done);
        if (s > 0)
            tp_buf_addf(out, "%-24s %10.3f %6.1f%%\n", d->phases[k].name, s * 1e3, 100 * s / wall);
    }
    tp_buf_addf(out, "%-24s %10.3f %6.1f%%\n", "wall", wall * 1e3, 100.0);
}

static void add_memory(const tp_profile_report *r, tp_buf *out)
{
    char a[32], b[32];
    const tp_profile_data *d = r->data;
    tp_profile_growth g = tp_profile_leak(d);
    tp_buf_addf(out, "\n%-24s %12s %12s\n", "memory", "mean", "most");
    for (int k = 0; k < d->n_kinds; k++) {
        tp_description t;
        if (tp_describe(d->kinds[k].bytes, (size_t)d->n_done, 0.95, &t, NULL) == TP_OK && t.max > 0)
            tp_buf_addf(out, "%-24s %12s %12s\n", d->kinds[k].title, tp_human_bytes(t.mean, a),
                        tp_human_bytes(t.max, b));
    }
    tp_buf_addf(out, "%-24s %12s %12s (planned %s)\n", "peak", "",
                tp_human_bytes((double)d->peak_bytes, a),
                tp_human_bytes((double)d->planned_bytes, b));
    tp_buf_addf(out, "%-24s %12s %12s\n", "resident",
                tp_human_bytes(mean(d->rss_bytes, d->n_done), a),
                tp_human_bytes(d->rss_bytes[d->n_done - 1], b));
    if (g.leak.verdict == TP_LEAK_CANNOT_TELL)
        tp_buf_addf(out, "growth: unknown, %s (--steps 10)\n", g.why);
    else if (g.leak.verdict == TP_LEAK_GROWING)
        tp_buf_addf(out, "growth: %s a step, p = %.2g, most of it in %s\n",
                    tp_human_bytes(g.leak.slope, a), g.leak.p_rising, g.owner->title);
    else if (g.leak.verdict == TP_LEAK_PLATEAU)
        tp_buf_addf(out, "growth: memory grew, then stopped\n");
    else
        tp_buf_addf(out, "growth: none shown over %lld step%s\n", (long long)d->n_done,
                    tp_plural((uint64_t)d->n_done));
}

static void add_bottlenecks(const tp_profile_report *r, tp_buf *out)
{
    char cost[32];
    const tp_findings *f = r->bottlenecks;
    if (f->n == 0)
        tp_buf_addf(out, "\nbottlenecks: none above 2 %% of a step\n");
    else
        tp_buf_addf(out, "\nbottlenecks\n");
    for (size_t i = 0; i < f->n && i < BOTTLENECKS; i++) {
        const tp_finding *b = &f->list[i];
        tp_buf_addf(out, "  %-6s  %s", tp_severity_name(b->severity), b->title);
        if (b->cost_ns != TP_UNKNOWN)
            tp_buf_addf(out, ": up to %s a step",
                        tp_human_seconds((double)b->cost_ns * 1e-9, cost));
        tp_buf_addf(out, "\n          %s\n          try: %s\n", b->evidence, b->advice);
    }
    if (f->n > BOTTLENECKS)
        tp_buf_addf(out, "  and %zu smaller ones (--json has them)\n", f->n - BOTTLENECKS);
}

static void put_ms(tp_grid *g, double seconds) { put_known(g, "%.3f", seconds * 1e3); }

static void put_compared(const char *name, const tp_profile_change *c, tp_grid *g)
{
    bool is_new = isnan(c->before_s), is_gone = isnan(c->after_s);
    tp_grid_text(g, name);
    put_ms(g, c->before_s);
    put_ms(g, c->after_s);
    put_known(g, "%.3f", is_new || is_gone ? (double)NAN : c->ratio);
    if (is_new || is_gone || isnan(c->lo))
        tp_grid_unknown(g);
    else
        tp_grid_textf(g, "[%.3f, %.3f]", c->lo, c->hi);
    tp_grid_text(g, is_new ? "new" : is_gone ? "gone" : tp_change_name(c->verdict));
}

void tp_profile_comparison_text(const tp_profile_comparison *c, int width, tp_buf *out)
{
    static const char *const figures[] = {"before", "after", "ratio", "95 % interval"};
    TP_OWN(tp_grid) g = {0};
    char a[32], b[32];
    tp_buf_addf(out, "\nagainst \"%s\" of %s%s%s\n\n", c->name, c->made, c->notes[0] ? ": " : "",
                c->notes);
    tp_grid_column(&g, "name", "ms/step", TP_CELL_TEXT);
    for (size_t i = 0; i < TP_COUNTOF(figures); i++)
        tp_grid_column(&g, figures[i], figures[i], TP_CELL_FIGURE);
    tp_grid_column(&g, "verdict", "verdict", TP_CELL_TEXT);
    put_compared("step", &c->step, &g);
    for (int i = 0; i < c->n_ops; i++)
        put_compared(c->ops[i].name, &c->ops[i], &g);
    tp_grid_print(&g, 0, width, out);
    if (!isnan(c->before_peak))
        tp_buf_addf(out, "peak memory %s before, %s after\n", tp_human_bytes(c->before_peak, a),
                    tp_human_bytes(c->after_peak, b));
    tp_buf_addf(out, "(intervals are over the steps of one run on each side, p-values of operators "
                     "adjusted after Holm;\n what differs from run to run is not in them: repeat "
                     "both before deciding on a few per cent)\n");
}

void tp_profile_text(const tp_profile_report *r, tp_buf *out)
{
    add_head(r, out);
    add_operators(r, out);
    add_parts(r->data, out);
    add_phases(r->data, out);
    add_memory(r, out);
    add_bottlenecks(r, out);
    if (r->comparison)
        tp_profile_comparison_text(r->comparison, r->width, out);
    tp_buf_addf(out, "\nkept as \"%s\": %s/profile.json", r->name, r->dir);
    if (r->trace)
        tp_buf_addf(out, "; trace of the recorded steps: %s", r->trace);
    tp_buf_addc(out, '\n');
}

/* ---- JSON ---- */

static void put_identity(const tp_profile_report *r, tp_json_w *w)
{
    char made[32];
    const tp_profile_data *d = r->data;
    tp_wall_iso(tp_wall_s(), made);
    tp_json_w_put_i64(w, "schema", 1);
    tp_json_w_put_str(w, "name", r->name);
    tp_json_w_put_str(w, "made", made);
    tp_json_w_put_str(w, "temper", TEMPER_VERSION);
    tp_json_w_put_str(w, "recipe", r->recipe);
    tp_json_w_put_str(w, "machine", d->machine);
    tp_json_w_put_i64(w, "threads", d->threads);
    tp_json_w_put_i64(w, "parameters", d->parameters);
    tp_json_w_put_i64(w, "warmup_steps", d->warmup);
    tp_json_w_put_i64(w, "timed_steps", d->n_done);
    tp_json_w_put_i64(w, "recorded_steps", d->recorded);
}

static void put_step(const tp_profile_data *d, tp_json_w *w)
{
    tp_description t;
    double s = mean(d->step_s, d->n_done);
    tp_json_w_put_f64s(w, "step_s", d->step_s, (size_t)d->n_done);
    if (tp_describe(d->step_s, (size_t)d->n_done, 0.95, &t, NULL) == TP_OK) {
        tp_json_w_put_known(w, "step_mean_s", t.mean);
        tp_json_w_put_known(w, "step_mean_low_s", t.t_ci.lo);
        tp_json_w_put_known(w, "step_mean_high_s", t.t_ci.hi);
        tp_json_w_put_known(w, "step_median_s", t.median);
    }
    tp_json_w_put_known(w, "batch_samples", mean(d->samples, d->n_done));
    tp_json_w_put_known(w, "samples_per_s", mean(d->samples, d->n_done) / s);
    tp_json_w_put_known(w, "used_tokens_per_step", mean(d->used_tokens, d->n_done));
    tp_json_w_put_known(w, "trained_tokens_per_s", mean(d->trained_tokens, d->n_done) / s);
    tp_json_w_put_known(w, "used_tokens_per_s", mean(d->used_tokens, d->n_done) / s);
    tp_json_w_put_known(w, "padding_ratio",
                        mean(d->padded_tokens, d->n_done) /
                            (mean(d->padded_tokens, d->n_done) + mean(d->used_tokens, d->n_done)));
    tp_json_w_put_known(w, "waited_for_data_s", mean(d->wait_s, d->n_done));
    tp_json_w_put_known(w, "processor_utilization", d->cpu_s / (d->wall_s * d->threads));
    tp_json_w_put_known(w, "mfu", d->mfu);
}

static void put_operators(const tp_profile_report *r, tp_json_w *w)
{
    ranked rows[TP_PROFILE_OPS];
    const tp_profile_data *d = r->data;
    int n = rank_ops(d, rows);
    tp_json_w_put_begin(w, "operators", '[');
    for (int i = 0; i < n && rows[i].s > 0; i++) {
        const tp_profile_op *op = rows[i].op;
        tp_json_w_begin(w, '{');
        tp_json_w_put_str(w, "name", op->name);
        tp_json_w_put_str(w, "part", op->part);
        double launches = round(op->launches * (double)d->n); /* summed up as shares of steps */
        tp_json_w_put_known(w, "launches_per_step", launches / (double)d->n);
        tp_json_w_put_known(w, "mean_s", rows[i].s);
        tp_json_w_put_known(w, "flops_per_step", op->flops);
        tp_json_w_put_known(w, "bytes_per_step", op->bytes);
        tp_json_w_put_known(w, "limit_s", op->limit_s);
        tp_json_w_put_f64s(w, "s", op->s, (size_t)d->n_done);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}

static void put_memory(const tp_profile_data *d, tp_json_w *w)
{
    tp_profile_growth g = tp_profile_leak(d);
    tp_json_w_put_known(w, "peak_bytes", (double)d->peak_bytes);
    tp_json_w_put_known(w, "planned_peak_bytes", (double)d->planned_bytes);
    tp_json_w_put_f64s(w, "memory_bytes", d->memory_bytes, (size_t)d->n_done);
    tp_json_w_put_f64s(w, "resident_bytes", d->rss_bytes, (size_t)d->n_done);
    tp_json_w_put_begin(w, "memory_by_kind", '{');
    for (int k = 0; k < d->n_kinds; k++)
        tp_json_w_put_known(w, d->kinds[k].name, mean(d->kinds[k].bytes, d->n_done));
    tp_json_w_end(w, '}');
    tp_json_w_put_begin(w, "memory_growth", '{');
    tp_json_w_put_str(w, "verdict",
                      g.leak.verdict == TP_LEAK_CANNOT_TELL ? NULL
                      : g.leak.verdict == TP_LEAK_GROWING   ? "grows"
                      : g.leak.verdict == TP_LEAK_PLATEAU   ? "grew, then stopped"
                                                            : "none shown");
    tp_json_w_put_str(w, "why", g.why);
    tp_json_w_put_known(w, "bytes_per_step", g.leak.slope);
    tp_json_w_put_known(w, "low", g.leak.lo);
    tp_json_w_put_known(w, "high", g.leak.hi);
    tp_json_w_put_known(w, "p", g.leak.p_rising);
    tp_json_w_put_str(w, "owner", g.leak.verdict == TP_LEAK_GROWING ? g.owner->name : NULL);
    tp_json_w_end(w, '}');
}

static void put_bottlenecks(const tp_findings *f, tp_json_w *w)
{
    tp_json_w_put_begin(w, "bottlenecks", '[');
    for (size_t i = 0; i < f->n; i++) {
        const tp_finding *b = &f->list[i];
        double cost_s = b->cost_ns == TP_UNKNOWN ? (double)NAN : (double)b->cost_ns * 1e-9;
        tp_json_w_begin(w, '{');
        tp_json_w_put_str(w, "severity", tp_severity_name(b->severity));
        tp_json_w_put_str(w, "what", b->title);
        tp_json_w_put_known(w, "cost_s_per_step", cost_s);
        tp_json_w_put_str(w, "evidence", b->evidence);
        tp_json_w_put_str(w, "try", b->advice);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}

static void put_change(const tp_profile_change *c, tp_json_w *w)
{
    tp_json_w_begin(w, '{');
    if (c->name[0])
        tp_json_w_put_str(w, "name", c->name);
    tp_json_w_put_known(w, "before_s", c->before_s);
    tp_json_w_put_known(w, "after_s", c->after_s);
    tp_json_w_put_known(w, "ratio", c->ratio);
    tp_json_w_put_known(w, "low", c->lo);
    tp_json_w_put_known(w, "high", c->hi);
    tp_json_w_put_known(w, "p", c->e.p);
    tp_json_w_put_str(w, "verdict",
                      isnan(c->before_s)  ? "new"
                      : isnan(c->after_s) ? "gone"
                                          : tp_change_name(c->verdict));
    tp_json_w_end(w, '}');
}

void tp_profile_comparison_write(const tp_profile_comparison *c, tp_json_w *w)
{
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, "against", c->name);
    tp_json_w_put_str(w, "made", c->made);
    tp_json_w_put_str(w, "notes", c->notes[0] ? c->notes : NULL);
    tp_json_w_put_str(w, "verdict", tp_change_name(c->step.verdict));
    tp_json_w_key(w, "step");
    put_change(&c->step, w);
    tp_json_w_put_begin(w, "operators", '[');
    for (int i = 0; i < c->n_ops; i++)
        put_change(&c->ops[i], w);
    tp_json_w_end(w, ']');
    tp_json_w_put_known(w, "before_peak_bytes", c->before_peak);
    tp_json_w_put_known(w, "after_peak_bytes", c->after_peak);
    tp_json_w_end(w, '}');
}

void tp_profile_write(const tp_profile_report *r, tp_json_w *w)
{
    const tp_profile_data *d = r->data;
    tp_json_w_begin(w, '{');
    put_identity(r, w);
    put_step(d, w);
    tp_json_w_put_begin(w, "phases_s", '{');
    for (int k = 0; k < d->n_phases; k++)
        tp_json_w_put_f64s(w, d->phases[k].name, d->phases[k].s, (size_t)d->n_done);
    tp_json_w_end(w, '}');
    put_operators(r, w);
    put_memory(d, w);
    put_bottlenecks(r->bottlenecks, w);
    if (r->recorded) {
        tp_json_w_put_raw(w, "recorded", r->recorded);
    }
    if (r->comparison) {
        tp_json_w_key(w, "comparison");
        tp_profile_comparison_write(r->comparison, w);
    }
    tp_json_w_end(w, '}');
}
