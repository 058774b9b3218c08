/* eval_report.c - an evaluation written as text, as JSON and in NeMo RL's layout. */
#include "engine/evaluate/eval_report.h"

#include <math.h>
#include <string.h>

#include "base/files.h"
#include "base/output.h"
#include "base/platform.h"
#include "base/strings.h"
#include "base/terminal.h"
#include "engine/reward/answer.h"

/* ---- text ---- */

/* One line, printable, at most so many bytes of it. */
static void add_excerpt(tp_buf *out, const char *text, size_t most)
{
    size_t n = 0, end = strlen(text);
    while (end && (text[end - 1] == '\n' || text[end - 1] == ' '))
        end--;
    for (const char *p = text; p < text + end; p++, n++) {
        if (n >= most && ((unsigned char)*p & 0xc0) != 0x80) {
            tp_buf_adds(out, "...");
            return;
        }
        if (*p == '\n')
            tp_buf_adds(out, "\\n");
        else
            tp_buf_addc(out, (unsigned char)*p < ' ' || *p == 0x7f ? ' ' : *p);
    }
}

static void add_estimate(tp_buf *out, const char *name, const tp_eval_estimate *e)
{
    char value[32], lo[32], hi[32];
    if (e->why) {
        tp_buf_addf(out, "  %-14s %8s   %s\n", name, "-", e->why);
        return;
    }
    tp_buf_addf(out, "  %-14s %8s", name, tp_eval_share(e->value, value));
    if (isnan(e->lo))
        tp_buf_addf(out, "   (no interval: %s)\n", e->why_ci ? e->why_ci : "not defined");
    else
        tp_buf_addf(out, "   %8s .. %-8s  %8zu\n", tp_eval_share(e->lo, lo),
                    tp_eval_share(e->hi, hi), e->n_prompts);
}

static void add_header(const tp_eval_report *r, tp_buf *out)
{
    const tp_eval_options *o = r->options;
    tp_buf_addf(out, "%s: %s, %s parameters, %s\n", r->model, r->family,
                tp_human_count((double)r->n_parameters, TP_ROOM),
                o->generation.precision ? "bfloat16" : "float32");
    tp_buf_addf(out, "%s\n", r->data);
    tp_buf_addf(out, "judged by %s\n", r->env);
    tp_buf_addf(out, "%lld answer%s to each at temperature %g, seed %lld\n",
                (long long)r->evaluation->n_samples, r->evaluation->n_samples == 1 ? "" : "s",
                o->generation.temperature, (long long)o->eval.seed);
}

static void add_estimates(const tp_eval_report *r, tp_buf *out)
{
    const tp_eval_summary *s = r->summary;
    char name[32];
    tp_buf_addf(out, "\n  %-14s %8s   %g%% interval (by prompt)  prompts\n", "", "value",
                100 * s->level);
    for (size_t i = 0; i < s->n_k; i++) {
        snprintf(name, sizeof name, "pass@%lld", (long long)s->k[i]);
        add_estimate(out, name, &s->pass[i]);
    }
    if (r->evaluation->n_samples > 1) {
        snprintf(name, sizeof name, "majority@%lld", (long long)r->evaluation->n_samples);
        add_estimate(out, name, &s->majority);
    }
    add_estimate(out, "mean reward", &s->reward);
    if (s->n_questions && s->n_questions < s->n_prompts)
        tp_buf_addf(out, "  %zu prompts ask %zu different questions: equal ones are one cluster.\n",
                    s->n_prompts, s->n_questions);
}

/* NeMo RL has two other numbers of the same name. */
static void add_conventions(const tp_eval_report *r, tp_buf *out)
{
    const tp_eval_summary *s = r->summary;
    char any[32], sum[32];
    if (r->evaluation->n_samples > 1 && !isnan(s->any_rewarded))
        tp_buf_addf(
            out,
            "\n  In NeMo RL's conventions: validation pass_k = %s (any of %lld rewards above "
            "0),\n  eval_pass_k() = %s (the sum over prompts of pass@%lld, with the sum of "
            "rewards).\n",
            tp_eval_share(s->any_rewarded, any), (long long)r->evaluation->n_samples,
            tp_eval_share(s->pass_sum, sum), (long long)s->k[0]);
}

static const tp_reward *first_excluded(const tp_evaluation *e, const char **ret_id)
{
    for (size_t i = 0; i < e->n; i++)
        for (int64_t j = 0; j < e->n_samples; j++)
            if (e->prompts[i].samples[j].reward.status != TP_REWARD_OK) {
                *ret_id = e->prompts[i].id;
                return &e->prompts[i].samples[j].reward;
            }
    return NULL;
}

static void add_left_out(const tp_eval_report *r, bool colour, tp_buf *out)
{
    const tp_evaluation *e = r->evaluation;
    const char *id = "";
    const tp_reward *first = first_excluded(e, &id);
    if (!first)
        return;
    tp_buf_addf(
        out, "\n  %sleft out: %lld of %llu answers:", colour ? tp_style(TP_STYLE_YELLOW) : "",
        (long long)r->summary->n_excluded, (unsigned long long)(e->n * (uint64_t)e->n_samples));
    const char *separator = " ";
    for (int s = TP_REWARD_OK + 1; s < TP_REWARD_KINDS; s++)
        if (e->statuses[s]) {
            tp_buf_addf(out, "%s%llu %s", separator, (unsigned long long)e->statuses[s],
                        tp_reward_status_name((tp_reward_status)s));
            separator = ", ";
        }
    tp_buf_addf(out, "%s\n  the first: %s: ", colour ? tp_style(TP_STYLE_PLAIN) : "", id);
    add_excerpt(out, first->why, 200);
    tp_buf_addc(out, '\n');
    if (r->judges.died || r->judges.killed)
        tp_buf_addf(
            out, "  judging programs: %llu started, %llu died, %llu killed, %llu late answers\n",
            (unsigned long long)r->judges.started, (unsigned long long)r->judges.died,
            (unsigned long long)r->judges.killed, (unsigned long long)r->judges.late_answers);
}

static void add_work(const tp_eval_report *r, tp_buf *out)
{
    const tp_evaluation *e = r->evaluation;
    uint64_t n = e->n_answers;
    char seconds[32], rate[32];
    tp_buf_addf(out, "\n  %llu answer%s of %.1f tokens on average, %llu cut off by the limit\n",
                (unsigned long long)n, tp_plural((uint64_t)n),
                n ? (double)e->n_new_tokens / (double)n : 0, (unsigned long long)e->n_truncated);
    if (e->n_threshold)
        tp_buf_addf(out,
                    "  %llu answer%s with a reward alone, not judged right or wrong: right from a "
                    "reward of %g on\n",
                    (unsigned long long)e->n_threshold, tp_plural((uint64_t)e->n_threshold),
                    r->options->eval.success_threshold);
    tp_buf_addf(out, "  %s", tp_human_seconds(e->seconds, seconds));
    tp_buf_addf(
        out, ": generating %.1f s, %s tokens/s; judging %.1f s\n", e->generate_s,
        tp_human_count(e->generate_s > 0 ? (double)e->n_new_tokens / e->generate_s : 0, rate),
        e->judge_s);
}

/* ---- the table of prompts ---- */

static double share(const tp_eval_prompt *p)
{
    return p->n ? (double)p->correct / (double)p->n : 2; /* those without a verdict last */
}

static int harder(const void *a, const void *b, void *counts_)
{
    const tp_eval_prompt *counts = counts_;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    double x = share(&counts[i]), y = share(&counts[j]);
    return x < y ? -1 : x > y ? 1 : i < j ? -1 : i > j;
}

static void add_prompt(const tp_eval_report *r, size_t i, tp_buf *out)
{
    const tp_evaluation_prompt *p = &r->evaluation->prompts[i];
    const tp_eval_prompt *c = &r->evaluation->counts[i];
    char right[40];
    if (c->n)
        snprintf(right, sizeof right, "%lld/%lld", (long long)c->correct, (long long)c->n);
    else
        snprintf(right, sizeof right, "-");
    tp_buf_addf(out, "  %7s  %-28s  ", right, p->id);
    add_excerpt(out, p->question, 48);
    if (p->truth) { /* of a worked solution the result */
        tp_slice result = tp_answer_after(tp_slice_of(p->truth), "####");
        tp_buf_adds(out, "  expected ");
        add_excerpt(out, result.data ? result.data : p->truth, 24);
    }
    if (p->majority) {
        tp_buf_adds(out, "  said ");
        add_excerpt(out, p->majority, 24);
    }
    tp_buf_addc(out, '\n');
}

static void add_prompts(const tp_eval_report *r, int64_t n_rows, tp_buf *out)
{
    const tp_evaluation *e = r->evaluation;
    size_t never = 0, always = 0, *order = tp_new(e->n + 1, sizeof *order);
    for (size_t i = 0; i < e->n; i++) {
        order[i] = i;
        never += e->counts[i].n && e->counts[i].correct == 0;
        always += e->counts[i].n && e->counts[i].correct == e->counts[i].n;
    }
    qsort_r(order, e->n, sizeof *order, harder, e->counts);
    tp_buf_addf(out, "\n  prompts: %zu never right, %zu always, %zu sometimes%s\n", never, always,
                r->summary->n_prompts - never - always, n_rows > 0 ? "; the hardest:" : "");
    for (size_t i = 0; i < e->n && (int64_t)i < n_rows; i++)
        add_prompt(r, order[i], out);
    free(order);
}

/* ---- robustness ---- */

static void add_perturbed(const tp_eval_report *r, tp_buf *out)
{
    char a[32], b[32], p[32];
    if (!r->n_perturbed)
        return;
    tp_buf_addf(out, "\n  %-8s %7s  %8s %9s  %8s   %g%% interval        p (Holm)  verdict\n",
                "written", "prompts", "as it is", "otherwise", "change", 100 * r->summary->level);
    for (size_t i = 0; i < r->n_perturbed; i++) {
        const tp_eval_perturbed *x = &r->perturbed[i];
        const tp_eval_paired *d = &x->paired;
        tp_buf_addf(out, "  %-8s %7zu", x->kind->name, x->n_changed);
        if (isnan(d->difference)) {
            tp_buf_addf(out, "  %s\n", x->n_changed ? d->why : "it changes none of them");
            continue;
        }
        tp_buf_addf(out, "  %8s %9s  %+8.4f", tp_eval_share(d->a, a), tp_eval_share(d->b, b),
                    d->difference);
        if (isnan(d->lo))
            tp_buf_addf(out, "   %-20s", "-");
        else
            tp_buf_addf(out, "   %+.4f .. %+.4f  ", d->lo, d->hi);
        tp_buf_addf(out, "  %8s  %s\n", tp_eval_p(x->p_adjusted, p), tp_change_name(x->verdict));
    }
    tp_buf_adds(out, "  (pass@1 of the prompts that the perturbation changes, paired by prompt)\n");
}

void tp_eval_report_text(const tp_eval_report *r, int64_t n_rows, bool colour, tp_buf *out)
{
    add_header(r, out);
    add_estimates(r, out);
    add_conventions(r, out);
    add_left_out(r, colour, out);
    add_perturbed(r, out);
    add_work(r, out);
    add_prompts(r, n_rows, out);
}

/* ---- JSON ---- */

static void write_sample(tp_json_w *w, const tp_evaluation_sample *s)
{
    const tp_reward *r = &s->reward;
    tp_json_w_begin(w, '{');
    if (s->text)
        tp_json_w_put_strn(w, "text", s->text, s->n_text);
    else
        tp_json_w_put_null(w, "text");
    tp_json_w_put_i64(w, "n_tokens", s->n_tokens);
    tp_json_w_put_str(w, "finish", s->text ? tp_finish_name(s->finish) : NULL);
    tp_json_w_put_str(w, "status", tp_reward_status_name(r->status));
    tp_json_w_put_known(w, "reward", r->reward);
    tp_json_w_key(w, "correct");
    if (r->status == TP_REWARD_OK)
        tp_json_w_bool(w, s->is_correct);
    else
        tp_json_w_null(w);
    tp_json_w_put_str(w, "answer", r->answer);
    if (r->why)
        tp_json_w_put_str(w, "why", r->why);
    if (r->n_parts) {
        tp_json_w_put_begin(w, "parts", '{');
        for (size_t i = 0; i < r->n_parts; i++)
            tp_json_w_put_known(w, r->parts[i].name, r->parts[i].value);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, '}');
}

static void write_prompt(const tp_eval_report *r, size_t i, bool samples, tp_json_w *w)
{
    const tp_evaluation_prompt *p = &r->evaluation->prompts[i];
    const tp_eval_prompt *c = &r->evaluation->counts[i];
    tp_json_w_begin(w, '{');
    tp_json_w_put_str(w, "id", p->id);
    tp_json_w_put_str(w, "prompt", p->prompt);
    tp_json_w_put_str(w, "truth", p->truth);
    tp_json_w_put_i64(w, "n", c->n);
    tp_json_w_put_i64(w, "correct", c->correct);
    tp_json_w_put_i64(w, "rewarded", c->n_rewarded);
    tp_json_w_put_i64(w, "excluded", c->excluded);
    tp_json_w_put_known(w, "pass_at_1", c->n ? (double)c->correct / (double)c->n : NAN);
    tp_json_w_put_known(w, "mean_reward", c->n ? (double)(c->reward_sum / c->n) : NAN);
    tp_json_w_put_known(w, "majority", c->majority);
    tp_json_w_put_str(w, "majority_answer", p->majority);
    if (samples) {
        tp_json_w_put_begin(w, "samples", '[');
        for (int64_t j = 0; j < r->evaluation->n_samples; j++)
            write_sample(w, &p->samples[j]);
        tp_json_w_end(w, ']');
    }
    tp_json_w_end(w, '}');
}

static void write_work(const tp_eval_report *r, tp_json_w *w)
{
    const tp_evaluation *e = r->evaluation;
    tp_json_w_put_begin(w, "excluded", '{');
    for (int s = TP_REWARD_OK + 1; s < TP_REWARD_KINDS; s++)
        tp_json_w_put_i64(w, tp_reward_status_name((tp_reward_status)s), (int64_t)e->statuses[s]);
    tp_json_w_end(w, '}');
    tp_json_w_put_i64(w, "n_tokens", (int64_t)e->n_new_tokens);
    tp_json_w_put_i64(w, "n_truncated", (int64_t)e->n_truncated);
    tp_json_w_put_known(w, "seconds", e->seconds);
    tp_json_w_put_known(w, "generate_s", e->generate_s);
    tp_json_w_put_known(w, "judge_s", e->judge_s);
}

static void write_perturbed(const tp_eval_report *r, tp_json_w *w)
{
    tp_json_w_put_begin(w, "robustness", '[');
    for (size_t i = 0; i < r->n_perturbed; i++) {
        const tp_eval_perturbed *x = &r->perturbed[i];
        tp_json_w_begin(w, '{');
        tp_json_w_put_str(w, "perturbation", x->kind->name);
        tp_json_w_put_i64(w, "n_changed", (int64_t)x->n_changed);
        tp_json_w_put_known(w, "p_adjusted", x->p_adjusted);
        tp_json_w_put_str(w, "verdict_adjusted", tp_change_name(x->verdict));
        tp_eval_paired_json(&x->paired, w);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}

void tp_eval_report_json(const tp_eval_report *r, bool samples, int indent, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, indent, '{');
    tp_json_w_put_str(&w, "kind", "temper-eval");
    tp_json_w_put_i64(&w, "version", 1);
    tp_json_w_put_str(&w, "model", r->model);
    tp_json_w_put_str(&w, "data", r->data);
    tp_json_w_put_str(&w, "env", r->env);
    tp_json_w_put_i64(&w, "num_tests_per_prompt", r->evaluation->n_samples);
    tp_json_w_put_known(&w, "temperature", r->options->generation.temperature);
    tp_json_w_put_i64(&w, "seed", r->options->eval.seed);
    tp_json_w_put_begin(&w, "summary", '{');
    tp_eval_summary_json(r->summary, &w);
    write_work(r, &w);
    tp_json_w_end(&w, '}');
    if (r->n_perturbed)
        write_perturbed(r, &w);
    tp_json_w_put_begin(&w, "prompts", '[');
    for (size_t i = 0; i < r->evaluation->n; i++)
        write_prompt(r, i, samples, &w);
    tp_json_w_end(&w, ']');
    if (samples) {
        tp_json_w_put_value(&w, "config", tp_config_resolved(r->config));
    }
    tp_json_w_close(&w, '}');
}

/* ---- NeMo RL's files ---- */

static void nemo_config(const tp_eval_report *r, tp_buf *out)
{
    const tp_eval_options *o = r->options;
    tp_json_w w = tp_json_w_open(out, 2, '{');
    tp_json_w_put_str(&w, "model_name", o->generation.model_name);
    tp_json_w_put_str(&w, "dataset_name",
                      o->data.dataset_name ? o->data.dataset_name : o->data.data_path);
    tp_json_w_put_str(&w, "metric", o->eval.metric == TP_EVAL_CONS_AT_K ? "cons@k" : "pass@k");
    tp_json_w_put_i64(&w, "k_value", o->n_k ? o->k[o->n_k - 1] : 1);
    tp_json_w_put_i64(&w, "num_tests_per_prompt", r->evaluation->n_samples);
    tp_json_w_put_known(&w, "temperature", o->generation.temperature);
    tp_json_w_put_known(&w, "top_p", o->generation.top_p);
    tp_json_w_put_i64(&w, "top_k",
                      o->generation.top_k == TP_OPT_UNSET_INT ? -1 : o->generation.top_k);
    tp_json_w_close(&w, '}');
}

static void nemo_data(const tp_eval_report *r, tp_buf *out)
{
    const tp_evaluation *e = r->evaluation;
    tp_json_w w = tp_json_w_open(out, 0, '{');
    tp_json_w_put_begin(&w, "evaluation_data", '[');
    for (size_t i = 0; i < e->n; i++)
        for (int64_t j = 0; j < e->n_samples; j++) {
            const tp_evaluation_sample *s = &e->prompts[i].samples[j];
            tp_json_w_begin(&w, '{');
            tp_json_w_put_str(&w, "prompt", e->prompts[i].prompt);
            tp_json_w_put_strn(&w, "response", s->text ? s->text : "", s->n_text);
            tp_json_w_put_known(&w, "reward", s->reward.reward);
            tp_json_w_put_str(&w, "message_log", e->prompts[i].prompt);
            tp_json_w_put_str(&w, "extra_env_info", e->prompts[i].truth);
            tp_json_w_put_i64(&w, "sample_index", (int64_t)i * e->n_samples + j);
            tp_json_w_end(&w, '}');
        }
    tp_json_w_end(&w, ']');
    tp_json_w_close(&w, '}');
}

/* A config.json without evaluation_data.json is a model's. */
tp_status tp_eval_report_check_nemo(const char *folder, tp_error *err)
{
    char config[4200], data[4200];
    if (!folder)
        return TP_OK;
    snprintf(config, sizeof config, "%s/config.json", folder);
    snprintf(data, sizeof data, "%s/evaluation_data.json", folder);
    if (tp_file_exists(config) && !tp_file_exists(data))
        return tp_fail(err, TP_ERR_CONFIG,
                       "eval.save_path: '%.200s' has a config.json that is of no evaluation and "
                       "would be lost; choose another folder",
                       folder);
    tp_status status = tp_dir_check(folder, err);
    return status == TP_OK ? TP_OK : tp_error_prefix(err, status, "eval.save_path: ");
}

tp_status tp_eval_report_nemo(const tp_eval_report *r, const char *folder, tp_error *err)
{
    const struct {
        const char *name;
        void (*write)(const tp_eval_report *, tp_buf *);
    } files[] = {{"config.json", nemo_config}, {"evaluation_data.json", nemo_data}};
    TP_TRY(tp_eval_report_check_nemo(folder, err));
    TP_TRY(tp_dir_make(folder, err));
    for (size_t i = 0; i < TP_COUNTOF(files); i++) {
        char path[4200];
        TP_OWN(tp_buf) text = {0};
        snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        files[i].write(r, &text);
        TP_TRY(tp_output_put(path, text.data, text.len, err));
    }
    return TP_OK;
}
