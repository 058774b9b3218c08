/* validation_text.c - the validations of a run, step by step. */
#include <math.h>
#include <string.h>

#include "base/files.h"
#include "instrument/evaluations/validation_read.h"
#include "stats/eval_summary.h"

bool tp_validations_are_in(const char *path)
{
    const char *name = tp_str_after(path, '/');
    return tp_dir_exists(path) || strcmp(name, "metrics.jsonl") == 0 ||
           strcmp(name, "metrics.json") == 0;
}

static void add_number(tp_buf *out, double v, int digits, int width)
{
    char text[32];
    tp_buf_addf(out, "  %*s", width, isnan(v) ? "-" : tp_human_value(v, digits, text));
}

static void add_point(const tp_validation_series *s, const tp_validation_point *p, tp_buf *out)
{
    char value[32], lo[32], hi[32], interval[72];
    snprintf(interval, sizeof interval, "%s .. %s", tp_eval_share(p->lo, lo),
             tp_eval_share(p->hi, hi));
    tp_buf_addf(out, "  %8lld  %9s  %17s", (long long)p->step, tp_eval_share(p->accuracy, value),
                isnan(p->lo) ? "-" : interval);
    add_number(out, p->n, 0, 7);
    if (s->is_dpo) {
        add_number(out, p->loss, 4, 8);
        snprintf(value, sizeof value, "%+.4g", p->chosen - p->rejected);
        tp_buf_addf(out, "  %9s", isnan(p->chosen - p->rejected) ? "-" : value);
    } else {
        add_number(out, p->pass_k, 4, 9);
    }
    tp_buf_addf(out, "\n");
}

static void add_series(const char *path, const tp_validation_series *s, double level, tp_buf *out)
{
    tp_buf_addf(out, "%s: validation%s%s of %s at %zu step%s\n", path, s->name[0] ? " " : "",
                s->name, s->is_dpo ? "DPO" : "GRPO", s->n, s->n == 1 ? "" : "s");
    tp_buf_addf(out, "  %8s  %9s  %13g%% ci  %7s", "step", "accuracy", 100 * level,
                s->is_dpo ? "pairs" : "prompts");
    tp_buf_addf(out, s->is_dpo ? "  %8s  %9s\n" : "  %9s%s\n", s->is_dpo ? "loss" : "any right",
                s->is_dpo ? "margin" : "");
    for (size_t i = 0; i < s->n; i++)
        add_point(s, &s->points[i], out);
    if (!isnan(s->change)) {
        tp_buf_addf(out, "  last - first: %+.4f", s->change);
        if (!isnan(s->change_lo))
            tp_buf_addf(out, ", %g%% interval %+.4f .. %+.4f", 100 * level, s->change_lo,
                        s->change_hi);
        tp_buf_addf(out, "\n");
    }
    tp_buf_addf(
        out,
        s->is_dpo
            ? "  accuracy: the share of pairs whose chosen answer gained more; margin: rewards "
              "chosen - rejected, not times beta.\n"
            : "  accuracy: the mean reward; the interval counts prompts, so it is wide for many "
              "answers each.\n  any right: NeMo RL's pass_k, which is no unbiased pass@k; "
              "'temper eval' has that.\n");
    if (!isnan(s->change))
        tp_buf_addf(
            out,
            "  The change takes its two ends for independent; compared %s it would be surer.\n",
            s->is_dpo ? "pair by pair" : "prompt by prompt");
}

void tp_validations_text(const char *path, const tp_validations *v, double level, tp_buf *out)
{
    for (size_t i = 0; i < v->n; i++)
        add_series(path, &v->series[i], level, out);
}

/* ---- JSON ---- */

static void write_series(const tp_validation_series *s, tp_json_w *w)
{
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, "name", s->name);
    tp_json_w_put_str(w, "algorithm", s->is_dpo ? "dpo" : "grpo");
    tp_json_w_put_begin(w, "points", '[');
    for (size_t i = 0; i < s->n; i++) {
        const tp_validation_point *p = &s->points[i];
        tp_json_w_begin(w, '{');
        tp_json_w_put_i64(w, "step", p->step);
        tp_json_w_put_known(w, "accuracy", p->accuracy);
        tp_json_w_put_interval(w, "ci", p->lo, p->hi);
        tp_json_w_put_known(w, "n", p->n);
        tp_json_w_put_known(w, "loss", p->loss);
        tp_json_w_put_known(w, "rewards_chosen_mean", p->chosen);
        tp_json_w_put_known(w, "rewards_rejected_mean", p->rejected);
        tp_json_w_put_known(w, "pass_k", p->pass_k);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
    tp_json_w_put_begin(w, "change", '{');
    tp_json_w_put_known(w, "difference", s->change);
    tp_json_w_put_interval(w, "ci", s->change_lo, s->change_hi);
    tp_json_w_end(w, '}');
    tp_json_w_end(w, '}');
}

void tp_validations_json(const char *path, const tp_validations *v, double level, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, 2, '{');
    tp_json_w_put_str(&w, "file", path);
    tp_json_w_put_f64(&w, "level", level);
    tp_json_w_put_begin(&w, "validations", '[');
    for (size_t i = 0; i < v->n; i++)
        write_series(&v->series[i], &w);
    tp_json_w_end(&w, ']');
    tp_json_w_close(&w, '}');
}
