#include "engine/rl/eval_summary.h"

#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "stats/descriptive.h"
#include "stats/proportions.h"
#include "stats/special.h"
#include "stats/two_sample.h"

/* ---- estimates ---- */

static tp_eval_estimate unknown(const char *why)
{
    return (tp_eval_estimate){
        .value = NAN, .se = NAN, .lo = NAN, .hi = NAN, .why = why, .why_ci = why};
}

/* The mean of one value per prompt; its interval is still to come. */
static tp_eval_estimate mean_of(const double *v, size_t m)
{
    if (m == 0)
        return unknown("no prompt has a verdict");
    tp_eval_estimate e = {.value = tp_mean(v, m), .lo = NAN, .hi = NAN, .n_prompts = m};
    e.se = m > 1 ? tp_sd(v, m) / sqrt((double)m) : NAN;
    e.why_ci = m > 1 ? NULL : "one prompt says nothing about others";
    return e;
}

static void add_student(tp_eval_estimate *e, double level)
{
    if (e->why || e->why_ci)
        return;
    tp_interval ci = tp_t_interval(e->value, e->se, (double)e->n_prompts - 1, level);
    e->lo = ci.lo;
    e->hi = ci.hi;
    e->why_ci = ci.why;
}

/* Wilson's interval for a mean of values in [0, 1]: as if so many independent prompts with
 * outcomes 0 and 1 had been asked as give the same standard error. */
static void add_wilson(tp_eval_estimate *e, double level)
{
    if (e->why || e->why_ci)
        return;
    double p = e->value, m = (double)e->n_prompts;
    double z = tp_normal_quantile(0.5 + level / 2), t = tp_t_quantile(0.5 + level / 2, m - 1);
    double effective = e->se > 0 ? p * (1 - p) / (e->se * e->se) : m;
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
    double *scratch; /* n */
} summing;

static tp_eval_estimate sum_pass(const summing *s, int64_t k)
{
    size_t m = 0, judged = 0;
    for (size_t i = 0; i < s->n; i++) {
        judged += s->prompts[i].n > 0;
        if (s->prompts[i].n >= k)
            s->scratch[m++] = tp_pass_at_k(s->prompts[i].n, s->prompts[i].correct, k);
    }
    if (m == 0 && judged)
        return unknown("no prompt has as many samples");
    tp_eval_estimate e = mean_of(s->scratch, m);
    add_wilson(&e, s->level);
    return e;
}

static tp_eval_estimate sum_reward(const summing *s)
{
    size_t m = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->prompts[i].n > 0)
            s->scratch[m++] = s->prompts[i].reward_sum / (double)s->prompts[i].n;
    tp_eval_estimate e = mean_of(s->scratch, m);
    add_student(&e, s->level);
    return e;
}

static tp_eval_estimate sum_majority(const summing *s)
{
    size_t m = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->prompts[i].n > 0 && !isnan(s->prompts[i].majority))
            s->scratch[m++] = s->prompts[i].majority;
    if (m == 0)
        return unknown("no prompt has answers to vote on");
    tp_eval_estimate e = mean_of(s->scratch, m);
    add_wilson(&e, s->level);
    return e;
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
    tp_eval_summary s = {.level = level, .n_k = n_k, .any_correct = NAN, .pass_sum = NAN};
    summing sum = {prompts, n, level, calloc(n + 1, sizeof(double))};
    TP_ASSERT(sum.scratch);
    size_t any = 0;
    for (size_t i = 0; i < n; i++) {
        s.n_prompts += prompts[i].n > 0;
        s.n_unjudged += prompts[i].n == 0;
        s.n_samples += prompts[i].n;
        s.n_excluded += prompts[i].excluded;
        any += prompts[i].correct > 0;
    }
    for (size_t i = 0; i < n_k; i++) {
        s.k[i] = k[i];
        s.pass[i] = sum_pass(&sum, k[i]);
    }
    s.reward = sum_reward(&sum);
    s.majority = sum_majority(&sum);
    if (s.n_prompts)
        s.any_correct = (double)any / (double)s.n_prompts;
    if (n_k && !s.pass[0].why)
        s.pass_sum = s.pass[0].value * (double)s.pass[0].n_prompts;
    free(sum.scratch);
    *ret = s;
    return TP_OK;
}

/* ---- two evaluations ---- */

typedef struct {
    size_t n;
    double *a, *b, *ra, *rb; /* pass@1 and mean reward of the prompts judged in both */
    bool is_single;          /* one sample each */
} pairs;

static tp_status gather(const tp_eval_prompt *a, const tp_eval_prompt *b, size_t n, pairs *p,
                        size_t *ret_left_out, tp_error *err)
{
    p->is_single = true;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(a[i].id, b[i].id) != 0)
            return tp_fail(err, TP_ERR_CONFIG,
                           "prompt %zu is %.100s in the one and %.100s in the other evaluation: "
                           "they do not ask the same questions",
                           i, a[i].id, b[i].id);
        if (a[i].n == 0 || b[i].n == 0) {
            ++*ret_left_out;
            continue;
        }
        double na = (double)a[i].n, nb = (double)b[i].n;
        p->a[p->n] = (double)a[i].correct / na;
        p->b[p->n] = (double)b[i].correct / nb;
        p->ra[p->n] = a[i].reward_sum / na;
        p->rb[p->n++] = b[i].reward_sum / nb;
        p->is_single &= a[i].n == 1 && b[i].n == 1;
    }
    return TP_OK;
}

/* Every prompt moved by the same amount: t is not defined, the signs are. */
static double p_of(const tp_t_test *t, const double *x, const double *y, size_t n)
{
    double sum = 0;
    if (!isnan(t->p.two))
        return t->p.two;
    for (size_t i = 0; i < n; i++)
        sum += fabs(x[i] - y[i]);
    if (n < 2)
        return NAN;
    return sum == 0 ? 1 : fmin(1, ldexp(2, -(int)TP_MIN(n, (size_t)2000)));
}

static void compare_pass(const pairs *p, tp_eval_paired *r)
{
    tp_t_test t = tp_paired_t(p->b, p->a, p->n, r->level);
    for (size_t i = 0; i < p->n; i++) {
        r->only_a += p->a[i] > p->b[i];
        r->only_b += p->b[i] > p->a[i];
        r->ties += p->a[i] == p->b[i];
    }
    r->a = tp_mean(p->a, p->n);
    r->b = tp_mean(p->b, p->n);
    r->difference = r->b - r->a;
    r->se = t.se;
    r->lo = t.ci.lo;
    r->hi = t.ci.hi;
    r->p = r->p_t = p_of(&t, p->b, p->a, p->n);
    r->test = isnan(t.p.two) ? "sign" : "paired t";
    if (p->is_single) {
        r->p = r->p_mcnemar = tp_mcnemar((int64_t)r->only_a, (int64_t)r->only_b).p_exact;
        r->test = "mcnemar";
    }
    if (p->n < 2)
        r->why = "fewer than two prompts were judged in both";
}

static void compare_reward(const pairs *p, tp_eval_paired *r)
{
    tp_t_test t = tp_paired_t(p->rb, p->ra, p->n, r->level);
    r->reward_difference = tp_mean(p->rb, p->n) - tp_mean(p->ra, p->n);
    r->reward_lo = t.ci.lo;
    r->reward_hi = t.ci.hi;
    r->reward_p = p_of(&t, p->rb, p->ra, p->n);
}

tp_status tp_eval_compare_prompts(const tp_eval_prompt *a, const tp_eval_prompt *b, size_t n,
                                  double level, tp_eval_paired *ret, tp_error *err)
{
    double *block = calloc(4 * n + 4, sizeof *block);
    TP_ASSERT(block);
    pairs p = {.a = block, .b = block + n, .ra = block + 2 * n, .rb = block + 3 * n};
    tp_eval_paired r = {.level = level, .p_mcnemar = NAN, .test = "none"};
    tp_status status = gather(a, b, n, &p, &r.n_left_out, err);
    if (status == TP_OK && p.n == 0)
        status = tp_fail(err, TP_ERR_CONFIG, "no prompt has a verdict in both evaluations");
    if (status == TP_OK) {
        r.n_prompts = p.n;
        compare_pass(&p, &r);
        compare_reward(&p, &r);
        *ret = r;
    }
    free(block);
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

/* NaN is null here: a number that is not known. */
static void number(tp_json_w *w, double v)
{
    if (isnan(v))
        tp_json_w_null(w);
    else
        tp_json_w_f64(w, v);
}

static void interval(tp_json_w *w, double lo, double hi)
{
    if (isnan(lo) || isnan(hi)) {
        tp_json_w_null(w);
        return;
    }
    tp_json_w_begin(w, '[');
    tp_json_w_f64(w, lo);
    tp_json_w_f64(w, hi);
    tp_json_w_end(w, ']');
}

enum { FIELD_VALUE, FIELD_SE, FIELD_CI };

static void estimate(tp_json_w *w, const char *key, const tp_eval_estimate *e, int field)
{
    tp_json_w_key(w, key);
    if (field == FIELD_CI)
        interval(w, e->lo, e->hi);
    else
        number(w, field == FIELD_SE ? e->se : e->value);
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
    tp_json_w_key(w, "se");
    tp_json_w_begin(w, '{');
    estimates(s, w, FIELD_SE);
    tp_json_w_end(w, '}');
    tp_json_w_key(w, level);
    tp_json_w_begin(w, '{');
    estimates(s, w, FIELD_CI);
    tp_json_w_end(w, '}');
    tp_json_w_key(w, "n_prompts");
    tp_json_w_i64(w, (int64_t)s->n_prompts);
    tp_json_w_key(w, "n_samples");
    tp_json_w_i64(w, s->n_samples);
    tp_json_w_key(w, "n_excluded");
    tp_json_w_i64(w, s->n_excluded);
    tp_json_w_key(w, "n_unjudged_prompts");
    tp_json_w_i64(w, (int64_t)s->n_unjudged);
    tp_json_w_key(w, "nemo_rl");
    tp_json_w_begin(w, '{');
    tp_json_w_key(w, "validation_pass_k");
    number(w, s->any_correct);
    tp_json_w_key(w, "eval_pass_k_sum");
    number(w, s->pass_sum);
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
    } counts[] = {{"n_prompts", p->n_prompts},
                  {"n_left_out", p->n_left_out},
                  {"a_better", p->only_a},
                  {"b_better", p->only_b},
                  {"equal", p->ties}};
    level_key(p->level, level);
    tp_json_w_key(w, "difference");
    number(w, p->difference);
    tp_json_w_key(w, level);
    interval(w, p->lo, p->hi);
    for (size_t i = 0; i < TP_COUNTOF(numbers); i++) {
        tp_json_w_key(w, numbers[i].key);
        number(w, numbers[i].value);
    }
    tp_json_w_key(w, "test");
    tp_json_w_str(w, p->test);
    for (size_t i = 0; i < TP_COUNTOF(counts); i++) {
        tp_json_w_key(w, counts[i].key);
        tp_json_w_i64(w, (int64_t)counts[i].value);
    }
    tp_json_w_key(w, "reward");
    tp_json_w_begin(w, '{');
    tp_json_w_key(w, "difference");
    number(w, p->reward_difference);
    tp_json_w_key(w, level);
    interval(w, p->reward_lo, p->reward_hi);
    tp_json_w_key(w, "p");
    number(w, p->reward_p);
    tp_json_w_end(w, '}');
}
