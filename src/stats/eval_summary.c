/* eval_summary.c - what an evaluation shows: shares and means with intervals, clustered by
 * question, and two evaluations paired by prompt. */
#include "stats/eval_summary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/order.h"
#include "base/platform.h"
#include "stats/descriptive.h"
#include "stats/proportions.h"
#include "stats/special.h"

/* ---- estimates ---- */

static tp_eval_estimate unknown(const char *why)
{
    return (tp_eval_estimate){
        .value = NAN, .se = NAN, .lo = NAN, .hi = NAN, .why = why, .why_ci = why};
}

/* ---- clusters ---- */

typedef struct {
    const char *question;
    size_t index;
} asked;

TP_ORDER(by_question, asked, strcmp(x->question, y->question) ?: TP_COMPARE(x->index, y->index))

/* The first prompt that asks the same is the name of a cluster. */
static void find_clusters(const tp_eval_prompt *prompts, size_t n, int64_t *ret)
{
    TP_FREED asked *list = tp_new(n + 1, sizeof *list);
    size_t m = 0;
    for (size_t i = 0; i < n; i++) {
        ret[i] = (int64_t)i;
        if (prompts[i].question)
            list[m++] = (asked){prompts[i].question, i};
    }
    qsort(list, m, sizeof *list, by_question);
    for (size_t i = 1; i < m; i++)
        if (strcmp(list[i - 1].question, list[i].question) == 0)
            ret[list[i].index] = ret[list[i - 1].index];
}

/* One value per prompt with the cluster it belongs to. */
typedef struct {
    double *value;
    int64_t *cluster;
    size_t n;
    double scale; /* of a difference: the largest of what was subtracted */
} sample;

/* What rounding leaves of values of this size. */
static double rounding(double scale) { return 1e-12 * scale; }

static sample sample_new(size_t n)
{
    sample s = {.value = tp_new(n + 1, sizeof(double)), .cluster = tp_new(n + 1, sizeof(int64_t))};
    return s;
}

static void sample_release(sample *s)
{
    free(s->value);
    free(s->cluster);
}

static double mean_reward(const tp_eval_prompt *p)
{
    return p->n ? (double)(p->reward_sum / p->n) : NAN;
}

/* The mean of one value per prompt; its interval is still to come. */
static tp_eval_estimate mean_of(const sample *s)
{
    tp_clustered c;
    if (s->n == 0)
        return unknown("no prompt has a verdict");
    tp_eval_estimate e = {
        .value = tp_mean(s->value, s->n), .se = NAN, .lo = NAN, .hi = NAN, .n_prompts = s->n};
    /* Counts are finite and memory is enough: it cannot fail. */
    if (tp_clustered_mean(s->value, s->cluster, s->n, 0.95, &c, NULL) == TP_OK) {
        e.n_questions = c.n_clusters;
        e.se = c.se_cr1;
    }
    e.why_ci = e.n_questions > 1 ? NULL : "one prompt says nothing about others";
    return e;
}

static void add_student(tp_eval_estimate *e, double level)
{
    if (!e->why && !e->why_ci && e->se <= rounding(fabs(e->value)))
        e->why_ci = "every prompt has the same reward";
    if (e->why || e->why_ci)
        return;
    tp_interval ci = tp_t_interval(e->value, e->se, (double)e->n_questions - 1, level);
    e->lo = ci.lo;
    e->hi = ci.hi;
    e->why_ci = ci.why;
}

/* Wilson's interval for a mean of values in [0, 1]: as if so many independent prompts with
 * outcomes 0 and 1 had been asked as give the same standard error.  That error is no better known
 * than the rarer side was seen: near 0 and 1 they are no more than the questions. */
static void add_wilson(tp_eval_estimate *e, double level)
{
    if (e->why || e->why_ci)
        return;
    double p = e->value, m = (double)e->n_questions;
    double z = tp_normal_quantile(0.5 + level / 2), t = tp_t_quantile(0.5 + level / 2, m - 1);
    double most = m * fmax(1, m * p * (1 - p));
    double effective = e->se > rounding(1) ? fmin(most, p * (1 - p) / (e->se * e->se)) : m;
    effective *= z / t * (z / t);
    tp_interval ci = tp_wilson(p * effective, effective, level);
    e->lo = ci.lo;
    e->hi = ci.hi;
    e->why_ci = ci.why;
}

/* ---- one evaluation ---- */

typedef struct {
    const tp_eval_prompt *prompts;
    size_t n;
    double level;
    int64_t *cluster;
    sample scratch;
} summing;

static void take(summing *s, size_t i, double value)
{
    s->scratch.value[s->scratch.n] = value;
    s->scratch.cluster[s->scratch.n++] = s->cluster[i];
}

static tp_eval_estimate sum_pass(summing *s, int64_t k)
{
    size_t judged = 0;
    s->scratch.n = 0;
    for (size_t i = 0; i < s->n; i++) {
        judged += s->prompts[i].n > 0;
        if (s->prompts[i].n >= k)
            take(s, i, tp_pass_at_k(s->prompts[i].n, s->prompts[i].correct, k));
    }
    if (s->scratch.n == 0 && judged)
        return unknown("no prompt has as many samples");
    tp_eval_estimate e = mean_of(&s->scratch);
    add_wilson(&e, s->level);
    return e;
}

static tp_eval_estimate sum_reward(summing *s)
{
    s->scratch.n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->prompts[i].n > 0)
            take(s, i, mean_reward(&s->prompts[i]));
    tp_eval_estimate e = mean_of(&s->scratch);
    add_student(&e, s->level);
    return e;
}

static tp_eval_estimate sum_majority(summing *s)
{
    s->scratch.n = 0;
    bool has_votes = false;
    for (size_t i = 0; i < s->n; i++)
        has_votes |= s->prompts[i].n > 0 && !isnan(s->prompts[i].majority);
    if (!has_votes)
        return unknown("no prompt has answers to vote on");
    for (size_t i = 0; i < s->n; i++) /* where nobody answered the vote is not right */
        if (s->prompts[i].n > 0)
            take(s, i, isnan(s->prompts[i].majority) ? 0 : s->prompts[i].majority);
    tp_eval_estimate e = mean_of(&s->scratch);
    add_wilson(&e, s->level);
    return e;
}

/* 1 - C(n-c, k) / C(n, k) with the sum of the rewards for c, a whole number or not. */
static double nemo_pass(const tp_eval_prompt *p, int64_t k)
{
    double n = (double)p->n, c = (double)p->reward_sum, miss = 1;
    if (fabs(c - rint(c)) < 1e-9) /* a mean times n, read from a file */
        c = rint(c);
    if (!(c >= 0))
        return NAN;
    if (n - c < (double)k)
        return 1;
    for (double i = n - c + 1; i < n + 1; i++)
        miss *= 1 - (double)k / i;
    return 1 - miss;
}

static void add_nemo(const tp_eval_prompt *prompts, size_t n, const int64_t *k, tp_eval_summary *s)
{
    double any = 0, sum = 0;
    size_t n_summed = 0;
    for (size_t i = 0; i < n; i++) {
        if (prompts[i].n > 0)
            any += prompts[i].n_rewarded < 0 ? NAN : prompts[i].n_rewarded > 0;
        if (k && prompts[i].n >= *k) {
            sum += nemo_pass(&prompts[i], *k);
            n_summed++;
        }
    }
    s->any_rewarded = any / (double)s->n_prompts;
    s->pass_sum = n_summed ? sum : NAN;
}

static tp_status check_k(const int64_t *k, size_t n_k, tp_error *err)
{
    if (n_k > TP_EVAL_MAX_K)
        return tp_fail(err, TP_ERR_ARG, "%zu values of k; at most %d", n_k, TP_EVAL_MAX_K);
    for (size_t i = 0; i < n_k; i++)
        if (k[i] < 1 || (i > 0 && k[i] <= k[i - 1]))
            return tp_fail(err, TP_ERR_ARG, "the values of k must be positive and ascend");
    return TP_OK;
}

tp_status tp_eval_summarize(const tp_eval_prompt *prompts, size_t n, const int64_t *k, size_t n_k,
                            double level, tp_eval_summary *ret, tp_error *err)
{
    TP_TRY(check_k(k, n_k, err));
    tp_eval_summary s = {.level = level, .n_k = n_k};
    summing sum = {.prompts = prompts,
                   .n = n,
                   .level = level,
                   .cluster = tp_new(n + 1, sizeof(int64_t)),
                   .scratch = sample_new(n)};
    find_clusters(prompts, n, sum.cluster);
    for (size_t i = 0; i < n; i++) {
        s.n_prompts += prompts[i].n > 0;
        s.n_unjudged += prompts[i].n == 0;
        s.n_samples += prompts[i].n;
        s.n_excluded += prompts[i].excluded;
    }
    for (size_t i = 0; i < n_k; i++) {
        s.k[i] = k[i];
        s.pass[i] = sum_pass(&sum, k[i]);
    }
    s.reward = sum_reward(&sum);
    s.majority = sum_majority(&sum);
    add_nemo(prompts, n, n_k ? k : NULL, &s);
    s.n_questions = s.reward.n_questions;
    free(sum.cluster);
    sample_release(&sum.scratch);
    *ret = s;
    return TP_OK;
}

/* ---- two evaluations ---- */

typedef struct {
    sample pass, reward; /* b - a of the prompts judged in both */
    double a, b;         /* sums of pass@1 */
    bool is_single;      /* one sample each */
} pairs;

static tp_status gather(const tp_eval_prompt *a, const tp_eval_prompt *b, size_t n, pairs *p,
                        tp_eval_paired *r, tp_error *err)
{
    TP_FREED int64_t *cluster = tp_new(n + 1, sizeof *cluster);
    find_clusters(a, n, cluster);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(a[i].id, b[i].id) != 0)
            return tp_fail(err, TP_ERR_CONFIG,
                           "prompt %zu is %.100s in the one and %.100s in the other evaluation: "
                           "they do not ask the same questions",
                           i, a[i].id, b[i].id);
        if (a[i].n == 0 || b[i].n == 0) {
            r->n_left_out++;
            continue;
        }
        double x = (double)a[i].correct / (double)a[i].n, y = (double)b[i].correct / (double)b[i].n;
        double u = mean_reward(&a[i]), v = mean_reward(&b[i]);
        size_t m = p->pass.n++;
        p->reward.n++;
        p->a += x;
        p->b += y;
        p->pass.value[m] = y - x;
        p->reward.value[m] = v - u;
        p->reward.scale = fmax(p->reward.scale, fmax(fabs(u), fabs(v)));
        p->pass.cluster[m] = p->reward.cluster[m] = cluster[i];
        p->is_single &= a[i].n == 1 && b[i].n == 1;
        r->only_a += x > y;
        r->only_b += y > x;
        r->ties += x == y;
    }
    return TP_OK;
}

/* Student's test and interval of a mean difference over clusters. */
typedef struct {
    double se, lo, hi, p;
    const char *test;
    size_t n_clusters;
} difference;

/* Every question moved by the same amount, the mean: t is not defined, the signs are. */
static difference without_spread(bool none, size_t n_clusters)
{
    difference r = {.se = 0, .lo = NAN, .hi = NAN, .n_clusters = n_clusters};
    r.test = none ? "all equal" : "sign";
    r.p = none ? 1 : fmin(1, ldexp(2, -(int)TP_MIN(n_clusters, (size_t)2000)));
    return r;
}

static difference test_difference(const sample *d, double level)
{
    difference r = {.se = NAN, .lo = NAN, .hi = NAN, .p = NAN, .test = "none"};
    tp_clustered c;
    if (tp_clustered_mean(d->value, d->cluster, d->n, level, &c, NULL) != TP_OK)
        return r;
    r.n_clusters = c.n_clusters;
    if (c.n_clusters < 2)
        return r;
    if (c.se_cr1 <= rounding(d->scale))
        return without_spread(fabs(c.mean) <= rounding(d->scale), c.n_clusters);
    double df = (double)c.n_clusters - 1;
    tp_interval ci = tp_t_interval(c.mean, c.se_cr1, df, level);
    r.test = "paired t";
    r.se = c.se_cr1;
    r.lo = ci.lo;
    r.hi = ci.hi;
    r.p = tp_t_two_sided(c.mean / c.se_cr1, df);
    return r;
}

static void compare_pass(const pairs *p, tp_eval_paired *r)
{
    difference d = test_difference(&p->pass, r->level);
    double n = (double)p->pass.n;
    r->n_prompts = p->pass.n;
    r->n_questions = d.n_clusters;
    r->a = p->a / n;
    r->b = p->b / n;
    r->difference = tp_mean(p->pass.value, p->pass.n);
    r->se = d.se;
    r->lo = d.lo;
    r->hi = d.hi;
    r->p = r->p_t = d.p;
    r->test = d.test;
    if (p->is_single && d.n_clusters == p->pass.n) {
        r->p = r->p_mcnemar = tp_mcnemar((int64_t)r->only_a, (int64_t)r->only_b);
        r->test = "mcnemar";
    }
    if (d.n_clusters < 2)
        r->why = "fewer than two questions were judged in both";
}

static void compare_reward(const pairs *p, tp_eval_paired *r)
{
    difference d = test_difference(&p->reward, r->level);
    r->reward_difference = tp_mean(p->reward.value, p->reward.n);
    r->reward_lo = d.lo;
    r->reward_hi = d.hi;
    r->reward_p = d.p;
}

static tp_change judge(double change, double p, double level)
{
    if (!(p < 1 - level) || change == 0)
        return TP_CHANGE_NOT_SHOWN;
    return change > 0 ? TP_CHANGE_BETTER : TP_CHANGE_WORSE;
}

/* Rewards of 0 and 1 are what pass@1 has been tested on: no second test says otherwise. */
static void judge_both(const pairs *p, tp_eval_paired *r)
{
    bool is_same = memcmp(p->pass.value, p->reward.value, p->pass.n * sizeof(double)) == 0;
    r->verdict = judge(r->difference, r->p, r->level);
    r->reward_verdict = is_same ? r->verdict : judge(r->reward_difference, r->reward_p, r->level);
}

tp_status tp_eval_compare_prompts(const tp_eval_prompt *a, const tp_eval_prompt *b, size_t n,
                                  double level, tp_eval_paired *ret, tp_error *err)
{
    pairs p = {.pass = sample_new(n), .reward = sample_new(n), .is_single = true};
    p.pass.scale = 1;
    tp_eval_paired r = {.level = level, .p_mcnemar = NAN, .test = "none"};
    tp_status status = gather(a, b, n, &p, &r, err);
    if (status == TP_OK && p.pass.n == 0)
        status = tp_fail(err, TP_ERR_CONFIG, "no prompt has a verdict in both evaluations");
    if (status == TP_OK) {
        compare_pass(&p, &r);
        compare_reward(&p, &r);
        judge_both(&p, &r);
        *ret = r;
    }
    sample_release(&p.pass);
    sample_release(&p.reward);
    return status;
}

/* ---- JSON ---- */

/* "ci95"; other levels say which. */
static void level_key(double level, char out[32])
{
    char digits[32];
    tp_json_f64_text(round(level * 1e6) / 1e4, digits);
    snprintf(out, 32, "ci%.20s", digits);
}

enum { FIELD_VALUE, FIELD_SE, FIELD_CI };

static void estimate(tp_json_w *w, const char *key, const tp_eval_estimate *e, int field)
{
    if (field == FIELD_CI)
        tp_json_w_put_interval(w, key, e->lo, e->hi);
    else
        tp_json_w_put_known(w, key, field == FIELD_SE ? e->se : e->value);
}

static void estimates(const tp_eval_summary *s, tp_json_w *w, int field)
{
    char key[32];
    for (size_t i = 0; i < s->n_k; i++) {
        snprintf(key, sizeof key, "pass_at_%lld", (long long)s->k[i]);
        estimate(w, key, &s->pass[i], field);
    }
    estimate(w, "mean_reward", &s->reward, field);
    estimate(w, "majority", &s->majority, field);
}

void tp_eval_summary_json(const tp_eval_summary *s, tp_json_w *w)
{
    char level[32];
    level_key(s->level, level);
    estimates(s, w, FIELD_VALUE);
    tp_json_w_put_begin(w, "se", '{');
    estimates(s, w, FIELD_SE);
    tp_json_w_end(w, '}');
    tp_json_w_put_begin(w, level, '{');
    estimates(s, w, FIELD_CI);
    tp_json_w_end(w, '}');
    tp_json_w_put_i64(w, "n_prompts", (int64_t)s->n_prompts);
    tp_json_w_put_i64(w, "n_questions", (int64_t)s->n_questions);
    tp_json_w_put_i64(w, "n_samples", s->n_samples);
    tp_json_w_put_i64(w, "n_excluded", s->n_excluded);
    tp_json_w_put_i64(w, "n_unjudged_prompts", (int64_t)s->n_unjudged);
    tp_json_w_put_begin(w, "nemo_rl", '{');
    tp_json_w_put_known(w, "validation_pass_k", s->any_rewarded);
    tp_json_w_put_known(w, "eval_pass_k_sum", s->pass_sum);
    tp_json_w_end(w, '}');
}

void tp_eval_paired_json(const tp_eval_paired *p, tp_json_w *w)
{
    char level[32];
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"p", p->p},
                   {"p_paired_t", p->p_t},
                   {"p_mcnemar", p->p_mcnemar},
                   {"se", p->se},
                   {"a", p->a},
                   {"b", p->b}};
    const struct {
        const char *key;
        size_t value;
    } counts[] = {{"n_prompts", p->n_prompts},   {"n_questions", p->n_questions},
                  {"n_left_out", p->n_left_out}, {"a_better", p->only_a},
                  {"b_better", p->only_b},       {"equal", p->ties}};
    level_key(p->level, level);
    tp_json_w_put_known(w, "difference", p->difference);
    tp_json_w_put_interval(w, level, p->lo, p->hi);
    for (size_t i = 0; i < TP_COUNTOF(numbers); i++)
        tp_json_w_put_known(w, numbers[i].key, numbers[i].value);
    tp_json_w_put_str(w, "test", p->test);
    tp_json_w_put_str(w, "verdict", tp_change_name(p->verdict));
    for (size_t i = 0; i < TP_COUNTOF(counts); i++)
        tp_json_w_put_i64(w, counts[i].key, (int64_t)counts[i].value);
    tp_json_w_put_begin(w, "reward", '{');
    tp_json_w_put_known(w, "difference", p->reward_difference);
    tp_json_w_put_interval(w, level, p->reward_lo, p->reward_hi);
    tp_json_w_put_known(w, "p", p->reward_p);
    tp_json_w_put_str(w, "verdict", tp_change_name(p->reward_verdict));
    tp_json_w_end(w, '}');
}

/* ---- numbers for people ---- */

const char *tp_eval_share(double v, char out[32])
{
    if (isnan(v))
        snprintf(out, 32, "-");
    else
        tp_human_value(v + 0.0, 4, out);
    return out;
}

const char *tp_eval_p(double p, char out[32])
{
    if (isnan(p))
        snprintf(out, 32, "-");
    else if (p == 0)
        snprintf(out, 32, "< 1e-300");
    else
        snprintf(out, 32, p < 1e-3 ? "%.1e" : "%.4f", p);
    return out;
}
