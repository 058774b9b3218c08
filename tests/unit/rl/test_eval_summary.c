#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/platform.h"
#include "base/rng.h"
#include "stats/eval_summary.h"

static tp_error err;

static void close_to(double got, double expected)
{
    if (!(fabs(got - expected) <= 1e-6 * fmax(1, fabs(expected))))
        fail_msg("%.9g is not %.9g", got, expected);
}

static tp_eval_summary summarize(const tp_eval_prompt *p, size_t n, const int64_t *k, size_t n_k)
{
    tp_eval_summary s;
    if (tp_eval_summarize(p, n, k, n_k, 0.95, &s, &err) != TP_OK)
        fail_msg("%s", err.message);
    return s;
}

/* The vectors of the estimator: (n, c, k) -> value. */
static void pass_at_k_of_one_prompt(void **state)
{
    static const struct {
        int64_t n, c, k;
        double value;
    } vectors[] = {{16, 4, 1, .25}, {16, 4, 4, .7280219780219780},
                   {16, 1, 8, .5},  {10, 3, 5, .9166666667},
                   {10, 0, 5, 0},   {10, 10, 10, 1}};
    for (size_t i = 0; i < TP_COUNTOF(vectors); i++) {
        tp_eval_prompt p = {.id = "x", .n = vectors[i].n, .correct = vectors[i].c};
        close_to(summarize(&p, 1, &vectors[i].k, 1).pass[0].value, vectors[i].value);
    }
}

/* The mean over prompts, not the sum; NeMo RL's two conventions beside it. */
static void the_mean_over_prompts_is_reported(void **state)
{
    static const tp_eval_prompt p[] = {
        {.id = "a", .n = 4, .correct = 4, .n_rewarded = 4, .reward_sum = 4, .majority = 1},
        {.id = "b", .n = 4, .correct = 1, .n_rewarded = 1, .reward_sum = 1, .majority = 0},
        {.id = "c", .n = 4, .correct = 0, .reward_sum = 0, .majority = NAN}}; /* no answer */
    const int64_t k[] = {1, 2, 4};

    tp_eval_summary s = summarize(p, 3, k, 3);

    close_to(s.pass[0].value, 1.25 / 3);
    close_to(s.pass[1].value, 1.5 / 3);
    close_to(s.pass[2].value, 2.0 / 3);
    close_to(s.majority.value, 1.0 / 3);
    close_to(s.any_rewarded, 2.0 / 3);
    close_to(s.pass_sum, 1.25);
    /* sd of (1, .25, 0) over sqrt 3 */
    close_to(s.pass[0].se, 0.3004626063);
    assert_int_equal(s.n_samples, 12);
    assert_true(s.pass[0].lo >= 0 && s.pass[0].hi <= 1);
}

/* NeMo RL counts rewards, not right answers; its numbers from its own eval_pass_k() in double. */
static void rewards_that_are_parts_count_for_nemo(void **state)
{
    tp_eval_prompt p[] = {{.id = "a", .n = 4, .correct = 0, .n_rewarded = 2, .reward_sum = 1.5L},
                          {.id = "b", .n = 4, .correct = 1, .n_rewarded = 1, .reward_sum = 1},
                          {.id = "c", .n = 4},
                          {.id = "d", .excluded = 4}};
    const int64_t k = 2;
    tp_eval_summary s = summarize(p, 4, &k, 1);
    close_to(s.any_rewarded, 2.0 / 3);
    close_to(s.pass[0].value, 0.5 / 3);
    close_to(s.pass_sum, 1 - (1 - 2 / 3.5) * (1 - 2 / 4.5) + 0.5);
    p[1].reward_sum = 1 + 1e-16L * 3; /* rounding is no reward */
    close_to(summarize(p, 4, &k, 1).pass_sum, s.pass_sum);
    p[2].reward_sum = -1;
    assert_true(isnan(summarize(p, 4, &k, 1).pass_sum));
    p[2].n_rewarded = -1;
    assert_true(isnan(summarize(p, 4, &k, 1).any_rewarded));
}

/* A reward may be of any size. */
static void huge_rewards_have_a_mean(void **state)
{
    static const tp_eval_prompt p[] = {{.id = "a", .n = 4, .reward_sum = 4e308L},
                                       {.id = "b", .n = 4, .reward_sum = -4e308L},
                                       {.id = "c", .n = 4, .reward_sum = 6e308L}};
    const int64_t k = 1;
    tp_eval_summary s = summarize(p, 3, &k, 1);
    assert_true(fabs(s.reward.value / 5e307 - 1) < 1e-12);
    /* sd of (1, -1, 1.5) e308 over sqrt 3 */
    assert_true(fabs(s.reward.se / 0.7637626158e308 - 1) < 1e-9);
}

/* R: m <- c(1,.5,.25,0,.75); t.test(m)$conf.int */
static void mean_reward_has_students_interval(void **state)
{
    static const tp_eval_prompt p[] = {{.id = "a", .n = 4, .reward_sum = 4},
                                       {.id = "b", .n = 4, .reward_sum = 2},
                                       {.id = "c", .n = 4, .reward_sum = 1},
                                       {.id = "d", .n = 4, .reward_sum = 0},
                                       {.id = "e", .n = 4, .reward_sum = 3}};
    const int64_t k = 1;
    tp_eval_summary s = summarize(p, 5, &k, 1);
    close_to(s.reward.value, 0.5);
    close_to(s.reward.se, 0.1767766953);
    close_to(s.reward.lo, 0.0091892);
    close_to(s.reward.hi, 0.9908108);
}

/* With one sample per prompt the effective number of prompts is M - 1 times M / (M - 1):
 * Wilson at n = (M - 1) (z/t)^2. */
static void single_samples_give_wilson(void **state)
{
    tp_eval_prompt p[100];
    for (int i = 0; i < 100; i++)
        p[i] = (tp_eval_prompt){.id = "x", .n = 1, .correct = i < 90};
    const int64_t k = 1;
    tp_eval_summary s = summarize(p, 100, &k, 1);
    double n = 99 * pow(1.959963985 / 1.984216952, 2), z2 = 3.841458821, mid = (0.9 + z2 / (2 * n)),
           half = 1.959963985 * sqrt(0.09 / n + z2 / (4 * n * n)), scale = 1 + z2 / n;
    close_to(s.pass[0].lo, (mid - half) / scale);
    close_to(s.pass[0].hi, (mid + half) / scale);
}

static void all_right_is_not_certain(void **state)
{
    tp_eval_prompt p[20];
    for (int i = 0; i < 20; i++)
        p[i] = (tp_eval_prompt){.id = "x", .n = 8, .correct = 8, .reward_sum = 8};
    const int64_t k = 1;
    tp_eval_summary s = summarize(p, 20, &k, 1);
    close_to(s.pass[0].value, 1);
    assert_true(s.pass[0].lo > 0.75 && s.pass[0].lo < 0.9);
    close_to(s.pass[0].hi, 1);
}

/* 3 questions whose answers are nearly all right, and that spread hardly: Wilson at 3 (z/t)^2, as
 * where all are. */
static void nearly_all_right_is_not_certain(void **state)
{
    const int64_t k[] = {1, 16, 32};
    tp_eval_prompt p[3];
    for (int i = 0; i < 3; i++)
        p[i] = (tp_eval_prompt){.id = "x", .n = 32, .correct = 16 + i};
    tp_eval_summary s = summarize(p, 3, k, 3);
    assert_true(s.pass[1].value < 1 && s.pass[1].se < 1e-6);
    close_to(s.pass[1].lo, s.pass[2].lo);
    double n = 3 * pow(1.959963985 / 4.302652730, 2);
    close_to(s.pass[2].lo, n / (n + 3.841458821));
}

/* Rounding is no spread: a third and a third that was computed otherwise. */
static void rounding_is_no_spread(void **state)
{
    const int64_t k = 1;
    tp_eval_prompt p[4];
    for (int i = 0; i < 4; i++)
        p[i] = (tp_eval_prompt){.id = "x", .n = 3, .correct = 1, .reward_sum = 0.3L};
    p[3].reward_sum = 0.3L + 1e-17L;
    p[2].reward_sum = 3 * (long double)0.1;
    tp_eval_summary s = summarize(p, 4, &k, 1);
    assert_string_equal(s.reward.why_ci, "every prompt has the same reward");
}

static void what_is_not_known_says_why(void **state)
{
    static const tp_eval_prompt p[] = {{.id = "a", .n = 2, .correct = 1, .reward_sum = 1},
                                       {.id = "b", .n = 0, .excluded = 4, .majority = NAN}};
    const int64_t k[] = {1, 4};

    tp_eval_summary s = summarize(p, 2, k, 2);

    assert_int_equal(s.n_prompts, 1);
    assert_int_equal(s.n_unjudged, 1);
    assert_int_equal(s.n_excluded, 4);
    close_to(s.pass[0].value, 0.5);
    assert_true(isnan(s.pass[0].lo));
    assert_string_equal(s.pass[0].why_ci, "one prompt says nothing about others");
    assert_true(isnan(s.pass[1].value));
    assert_string_equal(s.pass[1].why, "no prompt has as many samples");
    s = summarize(p + 1, 1, k, 2);
    assert_string_equal(s.pass[0].why, "no prompt has a verdict");
}

/* Coverage: prompts with random success rates, eight samples each.  The binomial tail at
 * 1500 tries makes 0.93 to 0.975 safe for any interval that deserves its level. */
static void intervals_cover(void **state)
{
    enum { TRIES = 1500, PROMPTS = 60, SAMPLES = 8 };
    tp_rng rng = tp_rng_make(11, 3);
    int covered = 0;
    for (int i = 0; i < TRIES; i++) {
        tp_eval_prompt p[PROMPTS];
        for (int j = 0; j < PROMPTS; j++) {
            double u = tp_rng_uniform(&rng), rate = u * u; /* mean 1/3 */
            p[j] = (tp_eval_prompt){.id = "x", .n = SAMPLES};
            for (int m = 0; m < SAMPLES; m++)
                p[j].correct += tp_rng_uniform(&rng) < rate;
        }
        const int64_t k = 1;
        tp_eval_summary s = summarize(p, PROMPTS, &k, 1);
        covered += s.pass[0].lo <= 1.0 / 3 && 1.0 / 3 <= s.pass[0].hi;
    }
    assert_in_range(covered, (int)(0.93 * TRIES), (int)(0.975 * TRIES));
}

/* One question of twenty is never answered: ten that lack it say nothing of it.  Where the spread
 * alone decided, 71 % of the intervals held. */
static void intervals_cover_what_few_questions_show(void **state)
{
    enum { TRIES = 1500, PROMPTS = 10, SAMPLES = 64 };
    tp_rng rng = tp_rng_make(12, 3);
    const int64_t k = 1;
    int covered = 0;
    for (int i = 0; i < TRIES; i++) {
        tp_eval_prompt p[PROMPTS];
        for (int j = 0; j < PROMPTS; j++) {
            double rate = tp_rng_uniform(&rng) < 0.05 ? 0 : 0.999;
            p[j] = (tp_eval_prompt){.id = "x", .n = SAMPLES};
            for (int m = 0; m < SAMPLES; m++)
                p[j].correct += tp_rng_uniform(&rng) < rate;
        }
        tp_eval_summary s = summarize(p, PROMPTS, &k, 1);
        covered += s.pass[0].lo <= 0.95 * 0.999 && 0.95 * 0.999 <= s.pass[0].hi;
    }
    assert_true(covered >= (int)(0.95 * TRIES));
}

/* McNemar: 10 discordant, 1 against 9: p = 2 P(Bin(10, 1/2) <= 1) = 22/1024. */
static void single_answers_are_compared_by_mcnemar(void **state)
{
    tp_eval_prompt a[20], b[20];
    for (int i = 0; i < 20; i++) {
        a[i] = (tp_eval_prompt){.id = "x", .n = 1, .correct = i == 0 || i >= 10};
        b[i] = (tp_eval_prompt){.id = "x", .n = 1, .correct = i != 0};
        a[i].reward_sum = (double)a[i].correct;
        b[i].reward_sum = (double)b[i].correct;
    }
    tp_eval_paired r;
    assert_int_equal(tp_eval_compare_prompts(a, b, 20, 0.95, &r, &err), TP_OK);
    assert_string_equal(r.test, "mcnemar");
    close_to(r.p, 22.0 / 1024);
    close_to(r.difference, 0.4);
    assert_int_equal(r.only_a, 1);
    assert_int_equal(r.only_b, 9);
    assert_int_equal(r.ties, 10);
    /* R: d <- c(-1, rep(1,9), rep(0,10)); t.test(d) */
    close_to(r.lo, 0.120013638);
    close_to(r.hi, 0.679986362);
    close_to(r.p_t, 0.0075234841);
}

static void many_samples_are_compared_by_t(void **state)
{
    static const tp_eval_prompt a[] = {{.id = "1", .n = 4, .correct = 1, .reward_sum = 1},
                                       {.id = "2", .n = 4, .correct = 0, .reward_sum = 0},
                                       {.id = "3", .n = 4, .correct = 2, .reward_sum = 2},
                                       {.id = "4", .n = 0, .excluded = 4}};
    static const tp_eval_prompt b[] = {{.id = "1", .n = 2, .correct = 2, .reward_sum = 2},
                                       {.id = "2", .n = 4, .correct = 2, .reward_sum = 2},
                                       {.id = "3", .n = 4, .correct = 4, .reward_sum = 4},
                                       {.id = "4", .n = 4, .correct = 4, .reward_sum = 4}};
    tp_eval_paired r;
    assert_int_equal(tp_eval_compare_prompts(a, b, 4, 0.95, &r, &err), TP_OK);
    assert_string_equal(r.test, "paired t");
    assert_int_equal(r.n_prompts, 3);
    assert_int_equal(r.n_left_out, 1);
    close_to(r.difference, 1.75 / 3);
    /* d = (.75, .5, .5): sd = .1443, se = .0833, t = 7 with 2 df */
    close_to(r.se, 0.0833333333);
    close_to(r.p, 0.0198039);
}

static void the_same_move_everywhere(void **state)
{
    tp_eval_prompt a[10], b[10];
    for (int i = 0; i < 10; i++) {
        a[i] = (tp_eval_prompt){.id = "x", .n = 4, .correct = 1, .reward_sum = 1};
        b[i] = (tp_eval_prompt){.id = "x", .n = 4, .correct = 3, .reward_sum = 3};
    }
    tp_eval_paired r;
    assert_int_equal(tp_eval_compare_prompts(a, b, 10, 0.95, &r, &err), TP_OK);
    close_to(r.difference, 0.5);
    close_to(r.p, 2.0 / 1024);
    assert_string_equal(r.test, "sign");
    assert_int_equal(tp_eval_compare_prompts(a, a, 10, 0.95, &r, &err), TP_OK);
    close_to(r.p, 1);
}

static tp_eval_paired paired(const tp_eval_prompt *a, const tp_eval_prompt *b, size_t n)
{
    tp_eval_paired r;
    if (tp_eval_compare_prompts(a, b, n, 0.95, &r, &err) != TP_OK)
        fail_msg("%s", err.message);
    return r;
}

/* Where the differences have no spread but rounding's, or cancel within each question, the signs
 * are tested: two questions show nothing. */
static void no_spread_is_no_evidence(void **state)
{
    tp_eval_prompt a[4] = {{.id = "1", .n = 3, .reward_sum = 0.1L},
                           {.id = "2", .n = 3, .correct = 2, .reward_sum = 2 + 0.1L}};
    tp_eval_prompt b[4] = {{.id = "1", .n = 3, .correct = 1, .reward_sum = 1 + 0.1L},
                           {.id = "2", .n = 3, .correct = 3, .reward_sum = 3 + 0.1L}};
    tp_eval_paired r = paired(a, b, 2);
    assert_string_equal(r.test, "sign");
    close_to(r.p, 0.5);
    close_to(r.reward_p, 0.5);
    assert_int_equal(r.verdict, TP_CHANGE_NOT_SHOWN);
    assert_int_equal(r.reward_verdict, TP_CHANGE_NOT_SHOWN);
    assert_true(isnan(r.lo) && isnan(r.reward_lo));
    for (int i = 0; i < 4; i++) { /* each question gains one of two */
        a[i] = (tp_eval_prompt){.id = "x", .question = i < 2 ? "p" : "q", .n = 2};
        b[i] = a[i];
        b[i].correct = 2 * (i % 2);
        b[i].reward_sum = b[i].correct;
    }
    r = paired(a, b, 4);
    assert_string_equal(r.test, "sign");
    close_to(r.p, 0.5);
    for (int i = 0; i < 4; i++) /* one gains what the other loses */
        a[i].correct = 2 * (i % 2 == 0);
    r = paired(a, b, 4);
    close_to(r.p, 1);
}

/* Rewards that move by the rounding of their sums alone have not moved. */
static void rounding_is_no_move(void **state)
{
    tp_eval_prompt a[12], b[12];
    for (int i = 0; i < 12; i++) {
        a[i] = (tp_eval_prompt){.id = "x", .n = 1, .reward_sum = 0.3};
        b[i] = (tp_eval_prompt){.id = "x", .n = 1, .reward_sum = 0.1 + 0.2};
    }
    tp_eval_paired r = paired(a, b, 12);
    close_to(r.reward_p, 1);
}

/* Prompts that ask the same are one cluster: twice the same evaluation is not twice the
 * evidence. */
static void the_same_question_twice_is_one_cluster(void **state)
{
    enum { N = 40 };
    static char questions[N][8];
    tp_eval_prompt once[N], twice[2 * N], other[2 * N];
    for (int i = 0; i < N; i++) {
        snprintf(questions[i], sizeof questions[i], "%d", i);
        once[i] = (tp_eval_prompt){.id = "x",
                                   .question = questions[i],
                                   .n = 1,
                                   .correct = i % 3 == 0,
                                   .reward_sum = i % 2};
        twice[i] = twice[N + i] = once[i];
        other[i] = once[i];
        other[i].correct = i % 4 == 0;
        other[N + i] = other[i];
    }
    const int64_t k = 1;
    tp_eval_summary a = summarize(once, N, &k, 1), b = summarize(twice, 2 * N, &k, 1);
    assert_int_equal(b.n_prompts, 2 * N);
    assert_int_equal(b.n_questions, N);
    close_to(b.pass[0].value, a.pass[0].value);
    close_to(b.pass[0].se, a.pass[0].se);
    close_to(b.pass[0].lo, a.pass[0].lo);
    close_to(b.reward.hi, a.reward.hi);

    tp_eval_paired p, q;
    assert_int_equal(tp_eval_compare_prompts(once, other, N, 0.95, &p, &err), TP_OK);
    assert_int_equal(tp_eval_compare_prompts(twice, other, 2 * N, 0.95, &q, &err), TP_OK);
    assert_int_equal(q.n_questions, N);
    assert_string_equal(p.test, "mcnemar");
    assert_string_equal(q.test, "paired t");
    close_to(q.lo, p.lo);
    close_to(q.p, p.p_t);
}

static void other_questions_are_refused(void **state)
{
    static const tp_eval_prompt a[] = {{.id = "f:1", .n = 1}, {.id = "f:2", .n = 1}};
    static const tp_eval_prompt b[] = {{.id = "f:1", .n = 1}, {.id = "f:3", .n = 1}};
    tp_eval_paired r;
    assert_int_equal(tp_eval_compare_prompts(a, b, 2, 0.95, &r, &err), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "f:2 in the one and f:3 in the other"));
}

static void json_of_a_summary(void **state)
{
    static const tp_eval_prompt p[] = {
        {.id = "a", .n = 2, .correct = 2, .n_rewarded = 2, .reward_sum = 2, .majority = NAN},
        {.id = "b", .n = 2, .correct = 0, .reward_sum = 0, .majority = NAN, .excluded = 1}};
    const int64_t k[] = {1, 8};
    tp_eval_summary s = summarize(p, 2, k, 2);
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 0);
    tp_json_w_begin(&w, '{');
    tp_eval_summary_json(&s, &w);
    tp_json_w_end(&w, '}');
    const char *text = tp_buf_str(&out);
    static const char *const parts[] = {
        "{\"pass_at_1\":0.5,\"pass_at_8\":null,\"mean_reward\":0.5,\"majority\":null,",
        "\"ci95\":{\"pass_at_1\":[",
        "\"n_prompts\":2,\"n_questions\":2,\"n_samples\":4,\"n_excluded\":1",
        "\"nemo_rl\":{\"validation_pass_k\":0.5,\"eval_pass_k_sum\":1}",
    };
    for (size_t i = 0; i < TP_COUNTOF(parts); i++)
        if (!strstr(text, parts[i]))
            fail_msg("'%s' is not in %s", parts[i], text);
    tp_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pass_at_k_of_one_prompt),
        cmocka_unit_test(the_mean_over_prompts_is_reported),
        cmocka_unit_test(rewards_that_are_parts_count_for_nemo),
        cmocka_unit_test(huge_rewards_have_a_mean),
        cmocka_unit_test(mean_reward_has_students_interval),
        cmocka_unit_test(single_samples_give_wilson),
        cmocka_unit_test(all_right_is_not_certain),
        cmocka_unit_test(nearly_all_right_is_not_certain),
        cmocka_unit_test(rounding_is_no_spread),
        cmocka_unit_test(what_is_not_known_says_why),
        cmocka_unit_test(intervals_cover),
        cmocka_unit_test(intervals_cover_what_few_questions_show),
        cmocka_unit_test(single_answers_are_compared_by_mcnemar),
        cmocka_unit_test(many_samples_are_compared_by_t),
        cmocka_unit_test(the_same_move_everywhere),
        cmocka_unit_test(no_spread_is_no_evidence),
        cmocka_unit_test(rounding_is_no_move),
        cmocka_unit_test(the_same_question_twice_is_one_cluster),
        cmocka_unit_test(other_questions_are_refused),
        cmocka_unit_test(json_of_a_summary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
