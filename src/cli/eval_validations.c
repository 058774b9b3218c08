/* eval_validations.c - the validations of a run, step by step. */
#include <math.h>
#include <string.h>

#include "base/files.h"
#include "cli/cli.h"
#include "cli/eval_compare.h"
#include "cli/eval_report.h"
#include "engine/evaluate/validation_read.h"

bool tp_eval_is_run(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return tp_dir_exists(path) || strcmp(name, "metrics.jsonl") == 0 ||
           strcmp(name, "metrics.json") == 0;
}

static void print_number(double v, const char *format, int width)
{
    char text[32];
    if (isnan(v))
        snprintf(text, sizeof text, "-");
    else
        snprintf(text, sizeof text, format, v);
    printf("  %*s", width, text);
}

static void print_point(const tp_validation_series *s, const tp_validation_point *p)
{
    char value[32], lo[32], hi[32], interval[72];
    snprintf(interval, sizeof interval, "%s .. %s", tp_eval_share(p->lo, lo),
             tp_eval_share(p->hi, hi));
    printf("  %8lld  %9s  %17s", (long long)p->step, tp_eval_share(p->accuracy, value),
           isnan(p->lo) ? "-" : interval);
    print_number(p->n, "%.0f", 7);
    if (s->is_dpo) {
        print_number(p->loss, "%.4f", 8);
        print_number(p->chosen - p->rejected, "%+.4g", 9);
    } else {
        print_number(p->pass_k, "%.4f", 9);
    }
    printf("\n");
}

static void print_series(const char *path, const tp_validation_series *s, double level)
{
    printf("%s: validation%s%s of %s at %zu step%s\n", path, s->name[0] ? " " : "", s->name,
           s->is_dpo ? "DPO" : "GRPO", s->n, s->n == 1 ? "" : "s");
    printf("  %8s  %9s  %13g%% ci  %7s", "step", "accuracy", 100 * level,
           s->is_dpo ? "pairs" : "prompts");
    printf(s->is_dpo ? "  %8s  %9s\n" : "  %9s%s\n", s->is_dpo ? "loss" : "any right",
           s->is_dpo ? "margin" : "");
    for (size_t i = 0; i < s->n; i++)
        print_point(s, &s->points[i]);
    if (!isnan(s->change)) {
        printf("  last - first: %+.4f", s->change);
        if (!isnan(s->change_lo))
            printf(", %g%% interval %+.4f .. %+.4f", 100 * level, s->change_lo, s->change_hi);
        printf("\n");
    }
    printf(s->is_dpo
               ? "  accuracy: the share of pairs whose chosen answer gained more; margin: rewards "
                 "chosen - rejected, not times beta.\n"
               : "  accuracy: the mean reward; the interval counts prompts, so it is wide for many "
                 "answers each.\n  any right: NeMo RL's pass_k, which is no unbiased pass@k; "
                 "'temper eval' has that.\n");
    if (!isnan(s->change))
        printf("  The change takes its two ends for independent; compared %s it would be surer.\n",
               s->is_dpo ? "pair by pair" : "prompt by prompt");
}

static void interval(tp_json_w *w, double lo, double hi)
{
    tp_json_w_key(w, "ci");
    if (isnan(lo)) {
        tp_json_w_null(w);
        return;
    }
    tp_json_w_begin(w, '[');
    tp_json_w_f64(w, lo);
    tp_json_w_f64(w, hi);
    tp_json_w_end(w, ']');
}

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
        interval(w, p->lo, p->hi);
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
    interval(w, s->change_lo, s->change_hi);
    tp_json_w_end(w, '}');
    tp_json_w_end(w, '}');
}

static void print_json(const char *path, const tp_validations *v, double level)
{
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 2);
    tp_json_w_begin(&w, '{');
    tp_json_w_put_str(&w, "file", path);
    tp_json_w_put_f64(&w, "level", level);
    tp_json_w_put_begin(&w, "validations", '[');
    for (size_t i = 0; i < v->n; i++)
        write_series(&v->series[i], &w);
    tp_json_w_end(&w, ']');
    tp_json_w_end(&w, '}');
    puts(tp_buf_str(&out));
    tp_buf_release(&out);
}

int tp_eval_summarize_run(const char *path, const tp_eval_file_options *o)
{
    tp_validations v;
    tp_error err = {0};
    if (tp_validations_read(path, o->level, &v, &err) != TP_OK)
        return tp_cli_fail(&err);
    if (o->json)
        print_json(path, &v, o->level);
    else
        for (size_t i = 0; i < v.n; i++)
            print_series(path, &v.series[i], o->level);
    tp_validations_release(&v);
    return 0;
}
