/* test_losses.c - the losses of GRPO and DPO as functions of log-probabilities: values by
 * hand, gradients against differences.  Against PyTorch: tests/reference/test_rl_losses.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "engine/algorithms/loss_policy.h"
#include "engine/algorithms/loss_preference.h"
#include "support/draws.h"

static tp_policy_loss plain_loss(void)
{
    return (tp_policy_loss){.clip_min = 0.2,
                            .clip_max = 0.2,
                            .dual_clip = NAN,
                            .token_level = true,
                            .length_divisor = NAN,
                            .truncate_min = NAN,
                            .truncate_max = NAN,
                            .kl_type = TP_KL_K3,
                            .kl_input_clamp = 20,
                            .kl_output_clamp = 10};
}

/* One token of ratio e^(lp - prev) with advantage A. */
static double one_token(const tp_policy_loss *o, double lp, double prev, double gen, double A,
                        double *ret_gradient)
{
    const float l = (float)lp, p = (float)prev, g = (float)gen;
    tp_policy_sequence s = {.logp = &l, .prev = &p, .gen = &g, .advantage = &A, .n = 1};
    tp_policy_norm norm = {1, 1, 1};
    tp_policy_sums sums;
    tp_policy_sums_init(&sums);
    tp_policy_loss_add(o, &norm, &s, &sums, ret_gradient);
    return sums.loss;
}

#define NEAR(got, want)                                          \
    do {                                                         \
        double got_ = (got), want_ = (want);                     \
        if (!(fabs(got_ - want_) <= 1e-6 * (1 + fabs(want_))))   \
            fail_msg("%s is %.9f, not %.9f", #got, got_, want_); \
    } while (0)

static void ratios_are_clipped(void **state)
{
    tp_policy_loss o = plain_loss();
    double g;
    NEAR(one_token(&o, -1, -1, -1, 2, &g), -2);
    NEAR(g, -2);
    NEAR(one_token(&o, log(1.5), 0, 0, 1, &g), -1.2); /* too far up: no gradient */
    NEAR(g, 0);
    NEAR(one_token(&o, log(1.5), 0, 0, -1, &g), 1.5); /* but the way back stays open */
    NEAR(g, 1.5);
    NEAR(one_token(&o, log(0.5), 0, 0, -1, &g), 0.8);
    NEAR(g, 0);
    NEAR(one_token(&o, log(0.5), 0, 0, 1, &g), -0.5);
    NEAR(g, -0.5);
    o.clip_max = 0.6; /* clip higher */
    NEAR(one_token(&o, log(1.5), 0, 0, 1, &g), -1.5);
}

static void dual_clip_bounds_the_worst(void **state)
{
    tp_policy_loss o = plain_loss();
    double g;
    o.dual_clip = 3;
    NEAR(one_token(&o, log(5), 0, 0, -2, &g), 6);
    NEAR(g, 0);
    NEAR(one_token(&o, log(2), 0, 0, -2, &g), 4);
    NEAR(g, 4);
}

static void cispo_keeps_the_gradient(void **state)
{
    tp_policy_loss o = plain_loss();
    double g;
    o.cispo = true;
    NEAR(one_token(&o, log(1.5), 0, 0, 2, &g), -2 * 1.2 * log(1.5));
    NEAR(g, -2.4);
}

static void importance_is_truncated(void **state)
{
    tp_policy_loss o = plain_loss();
    double g;
    o.correction = true; /* exp(prev - gen) */
    NEAR(one_token(&o, 0, 0, -log(4), 1, &g), -4);
    o.truncation = TP_TRUNCATE_CLAMP;
    o.truncate_max = 2;
    NEAR(one_token(&o, 0, 0, -log(4), 1, &g), -2);
    o.truncate_min = 0.5;
    NEAR(one_token(&o, -2, -2, -2 + log(4), 1, &g), -0.5);
    o.truncation = TP_TRUNCATE_ZERO;
    NEAR(one_token(&o, 0, 0, -log(4), 1, &g), 0);
    NEAR(g, 0);
    NEAR(one_token(&o, 0, 0, -log(1.5), 1, &g), -1.5);
    o.truncation = TP_TRUNCATE_SEQUENCES;
    NEAR(one_token(&o, 0, 0, -log(4), 1, &g), 0);
    NEAR(one_token(&o, 0, 0, -INFINITY, 1, &g), 0); /* infinite weights are none */
}

static void divergences_and_their_clamps(void **state)
{
    tp_policy_loss o = plain_loss();
    const double lp = -1, ref = -0.5;
    o.kl_type = TP_KL_K1;
    NEAR(tp_policy_kl(&o, lp, ref, NULL), -0.5);
    o.kl_type = TP_KL_K2;
    NEAR(tp_policy_kl(&o, lp, ref, NULL), 0.125);
    o.kl_type = TP_KL_K3;
    NEAR(tp_policy_kl(&o, lp, ref, NULL), exp(0.5) - 1 - 0.5);
    NEAR(tp_policy_kl(&o, -30, 0, NULL), 10); /* e^20 - 21, clamped */
    o.kl_output_clamp = NAN;
    NEAR(tp_policy_kl(&o, -30, 0, NULL), exp(20) - 21);
    o.kl_input_clamp = NAN;
    NEAR(tp_policy_kl(&o, 0, -30, NULL), exp(-30) - 1 + 30);
}

/* ---- gradients against differences, for every combination ---- */

enum { N = 6, SEQUENCES = 3 };

typedef struct {
    float logp[SEQUENCES][N], prev[SEQUENCES][N], gen[SEQUENCES][N], ref[SEQUENCES][N];
    double advantage[SEQUENCES][N];
    size_t n[SEQUENCES];
} numbers;

static void draw(numbers *x, uint64_t seed)
{
    tp_rng rng = tp_rng_make(seed, 1);
    for (int s = 0; s < SEQUENCES; s++) {
        x->n[s] = (size_t)(N - s);
        for (int k = 0; k < N; k++) {
            double lp = -0.2 - 2 * tp_rng_uniform(&rng);
            x->logp[s][k] = (float)lp;
            x->prev[s][k] = (float)(lp + 0.3 * draw_normal(&rng));
            x->gen[s][k] = (float)((double)x->prev[s][k] + 0.1 * draw_normal(&rng));
            x->ref[s][k] = (float)(lp + 0.5 * draw_normal(&rng));
            x->advantage[s][k] = draw_normal(&rng);
        }
    }
}

static double total(const tp_policy_loss *o, const numbers *x, double (*ret_gradient)[N])
{
    tp_policy_norm norm = {0, SEQUENCES, 0};
    tp_policy_sums sums;
    double unused[N];

    tp_policy_sums_init(&sums);
    for (int s = 0; s < SEQUENCES; s++) {
        norm.tokens += (double)x->n[s];
        norm.positive_tokens += s == 1 ? (double)x->n[s] : 0;
    }
    for (int s = 0; s < SEQUENCES; s++) {
        tp_policy_sequence q = {.logp = x->logp[s],
                                .prev = x->prev[s],
                                .gen = x->gen[s],
                                .ref = x->ref[s],
                                .advantage = x->advantage[s],
                                .n = x->n[s],
                                .is_positive = s == 1};
        tp_policy_loss_add(o, &norm, &q, &sums, ret_gradient ? ret_gradient[s] : unused);
    }
    return sums.loss;
}

static void check_gradient(const tp_policy_loss *o, uint64_t seed, const char *what)
{
    numbers x;
    double gradient[SEQUENCES][N];
    draw(&x, seed);
    total(o, &x, gradient);
    for (int s = 0; s < SEQUENCES; s++)
        for (size_t k = 0; k < x.n[s]; k++) {
            const float h = 1.0f / 1024, at = x.logp[s][k];
            x.logp[s][k] = at + h;
            double up = total(o, &x, NULL), step = (double)x.logp[s][k];
            x.logp[s][k] = at - h;
            double down = total(o, &x, NULL);
            step -= (double)x.logp[s][k];
            x.logp[s][k] = at;
            double slope = (up - down) / step;
            if (fabs(slope - gradient[s][k]) > 2e-5 * (1 + fabs(slope)))
                fail_msg("%s, seed %llu, token %d.%zu: %.8f, differences say %.8f", what,
                         (unsigned long long)seed, s, k, gradient[s][k], slope);
        }
}

/* The value of the weight exp(lp - sg(lp)) is 1, so differences do not see it: its part of
 * the gradient is the divergence itself. */
static void check_score_function_part(void **state)
{
    tp_policy_loss o = plain_loss();
    numbers x;
    double with[SEQUENCES][N], without[SEQUENCES][N];
    draw(&x, 3);
    o.kl_penalty = 0;
    total(&o, &x, without);
    o.kl_penalty = 0.3;
    total(&o, &x, with);
    double tokens = N + (N - 1) + (N - 2);
    for (int s = 0; s < SEQUENCES; s++)
        for (size_t k = 0; k < x.n[s]; k++) {
            double lp = (double)x.logp[s][k], log_ratio = (double)x.ref[s][k] - lp;
            double k3 = exp(log_ratio) - 1 - log_ratio, slope = 1 - exp(log_ratio);
            NEAR(with[s][k] - without[s][k], 0.3 * (k3 + slope) / tokens);
        }
}

static void gradients_are_exact(void **state)
{
    for (uint64_t seed = 1; seed <= 4; seed++)
        for (int level = 0; level < 3; level++) {
            tp_policy_loss o = plain_loss();
            o.token_level = level == 0;
            o.length_divisor = level == 2 ? 32 : NAN;
            check_gradient(&o, seed, "plain");
            o.correction = true;
            o.truncation = TP_TRUNCATE_CLAMP;
            o.truncate_max = 1.05;
            check_gradient(&o, seed, "truncated");
            o.dual_clip = 1.1;
            check_gradient(&o, seed, "dual clip");
            o.positive_nll = 0.5;
            check_gradient(&o, seed, "positive");
            o = plain_loss();
            o.token_level = level == 0;
            o.ratio = TP_RATIO_NONE;
            check_gradient(&o, seed, "reinforce");
            o = plain_loss();
            o.token_level = false;
            o.ratio = TP_RATIO_SEQUENCE;
            o.correction = level == 1;
            check_gradient(&o, seed, "sequence ratio");
            o = plain_loss();
            o.kl_penalty = 0.2;
            o.kl_from_generator = true; /* here the weight varies with lp */
            o.kl_type = (tp_kl_type)level;
            check_gradient(&o, seed, "divergence");
        }
}

/* lp = -1, ref = -1.5, on policy: x = -0.5, k3 = e^x - 1 - x, its slope in lp is 1 - e^x. */
static void the_sampling_probability_may_be_left_out_of_the_divergence(void **state)
{
    tp_policy_loss o = plain_loss();
    const float lp = -1, ref = -1.5f;
    const double nothing = 0;
    double with, without;
    tp_policy_norm norm = {1, 1, 0};
    tp_policy_sums sums;
    tp_policy_sequence s = {.logp = &lp, .gen = &lp, .ref = &ref, .advantage = &nothing, .n = 1};
    o.kl_penalty = 1;
    o.kl_type = TP_KL_K3;
    tp_policy_sums_init(&sums);
    tp_policy_loss_add(&o, &norm, &s, &sums, &with);
    NEAR(with, 0.5); /* 1 - e^x + k3 = -x */
    o.kl_without_sampling = true;
    tp_policy_loss_add(&o, &norm, &s, &sums, &without);
    NEAR(without, 0.3934693402873666);
}

/* lp = -3, -1 and ref = 0 with differences clamped to 2: the first has a divergence, e^2 - 3, and
 * no gradient, whatever it is weighed by; the second one the whole. */
static void what_is_clamped_on_the_way_in_has_no_gradient(void **state)
{
    tp_policy_loss o = plain_loss();
    const float lp[] = {-3, -1, -2}, ref[] = {0, 0, 0};
    const double nothing[] = {0, 0, 0};
    double g[3];
    tp_policy_sequence s = {
        .logp = lp, .prev = lp, .gen = lp, .ref = ref, .advantage = nothing, .n = 3};
    tp_policy_norm norm = {1, 1, 0};
    tp_policy_sums sums;
    o.kl_penalty = 1;
    o.kl_input_clamp = 2;
    o.kl_output_clamp = NAN;
    for (int generator = 0; generator < 2; generator++) {
        o.kl_from_generator = generator;
        tp_policy_sums_init(&sums);
        tp_policy_loss_add(&o, &norm, &s, &sums, g);
        NEAR(sums.loss, 2 * (exp(2) - 3) + exp(1) - 2);
        NEAR(g[0], 0);
        NEAR(g[1], 1 - exp(1) + exp(1) - 2);
        NEAR(g[2], 1 - exp(2) + exp(2) - 3); /* at the bound, not beyond */
    }
}

/* Parts of the loss are means as it is, by tokens or by answers, and are not weighed: two answers
 * of one and two tokens, k1 = lp - ref of 1, 2 and 4, the second one rewarded. */
static void parts_of_the_loss_are_reduced_as_it_is(void **state)
{
    tp_policy_loss o = plain_loss();
    const float lp[] = {-1, -2, -3}, ref[] = {-2, -4, -7};
    const double nothing[] = {0, 0, 0};
    double g[3];
    tp_policy_norm norm = {3, 2, 2};
    tp_policy_sums sums;
    o.kl_penalty = 0.5;
    o.kl_type = TP_KL_K1;
    o.positive_nll = 0.1;
    for (int level = 0; level < 2; level++) {
        o.token_level = level == 0;
        tp_policy_sums_init(&sums);
        const tp_policy_sequence first = {lp, lp, lp, ref, nothing, 1, false};
        const tp_policy_sequence second = {lp + 1, lp + 1, lp + 1, ref + 1, nothing, 2, true};
        tp_policy_loss_add(&o, &norm, &first, &sums, g);
        tp_policy_loss_add(&o, &norm, &second, &sums, g);
        NEAR(sums.kl, o.token_level ? 7.0 / 3 : (1.0 + 3) / 2);
        NEAR(sums.nll, 2.5);
        NEAR(sums.loss, 0.5 * sums.kl + 0.1 * sums.nll);
    }
}

static void on_policy_needs_no_old_log_probabilities(void **state)
{
    tp_policy_loss o = plain_loss();
    numbers x;
    double a[N], b[N];
    tp_policy_norm norm = {N, 1, 0};
    tp_policy_sums sums;
    draw(&x, 9);
    memcpy(x.prev, x.logp, sizeof x.prev);
    tp_policy_sequence s = {
        .logp = x.logp[0], .prev = x.prev[0], .gen = x.gen[0], .advantage = x.advantage[0], .n = N};
    tp_policy_sums_init(&sums);
    tp_policy_loss_add(&o, &norm, &s, &sums, a);
    s.prev = NULL;
    tp_policy_sums_init(&sums);
    tp_policy_loss_add(&o, &norm, &s, &sums, b);
    assert_memory_equal(a, b, sizeof a);
    assert_true(sums.ratio == N && sums.clipped_low == 0 && sums.clipped_high == 0);
}

/* ---- preferences ---- */

static double pair(const tp_preference_loss *o, double chosen, double rejected, double *up,
                   double *down)
{
    tp_preference_sums sums = {0};
    tp_preference_side c = {chosen, -10, 4}, r = {rejected, -12, 6};
    tp_preference_loss_add(o, 1, &c, &r, &sums, up, down);
    return sums.loss;
}

static void equal_policies_lose_ln_two(void **state)
{
    tp_preference_loss o = {.beta = 0.05, .preference_weight = 1};
    tp_preference_sums sums = {0};
    tp_preference_side c = {-10, -10, 4}, r = {-12, -12, 6};
    double up, down;
    tp_preference_loss_add(&o, 1, &c, &r, &sums, &up, &down);
    NEAR(sums.loss, 0.6931471805599453);
    NEAR(up, -0.025);
    NEAR(down, 0.025);
    assert_true(sums.accuracy == 0); /* a tie is lost */
}

static void preference_losses_by_hand(void **state)
{
    tp_preference_loss o = {.beta = 0.5, .preference_weight = 1};
    double up, down;
    /* d = (-9 + 10) - (-13 + 12) = 2, beta d = 1 */
    NEAR(pair(&o, -9, -13, &up, &down), log(1 + exp(-1)));
    o.label_smoothing = 0.1;
    NEAR(pair(&o, -9, -13, &up, &down), 0.9 * log(1 + exp(-1)) + 0.1 * log(1 + exp(1)));
    o.sft_weight = 0.2;
    NEAR(pair(&o, -9, -13, &up, &down), 0.9 * log(1 + exp(-1)) + 0.1 * log(1 + exp(1)) + 0.2 * 9);
    o = (tp_preference_loss){.beta = 0.5, .preference_weight = 1, .average = true};
    NEAR(pair(&o, -9, -13, &up, &down), log(1 + exp(-0.5 * (1.0 / 4 + 1.0 / 6))));
    o = (tp_preference_loss){.kind = TP_PREFERENCE_IPO, .beta = 0.5, .preference_weight = 1};
    NEAR(pair(&o, -9, -13, &up, &down), 1);
    o.kind = TP_PREFERENCE_SIGMOID; /* far out: no overflow */
    NEAR(pair(&o, -5000, -13, &up, &down), 0.5 * (5000 - 11));
    NEAR(pair(&o, -9, -5000, &up, &down), 0);
}

static void preference_gradients_are_exact(void **state)
{
    tp_preference_loss cases[] = {
        {.beta = 0.3, .preference_weight = 1},
        {.beta = 0.3, .preference_weight = 0.7, .label_smoothing = 0.2, .sft_weight = 0.4},
        {.beta = 0.3,
         .preference_weight = 1,
         .average = true,
         .sft_weight = 1,
         .sft_average = true},
        {.kind = TP_PREFERENCE_IPO, .beta = 0.3, .preference_weight = 1, .average = true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double up, down, unused;
        const double h = 1e-5, c = -9.3, r = -12.2;
        pair(&cases[i], c, r, &up, &down);
        double slope_c = (pair(&cases[i], c + h, r, &unused, &unused) -
                          pair(&cases[i], c - h, r, &unused, &unused)) /
                         (2 * h);
        double slope_r = (pair(&cases[i], c, r + h, &unused, &unused) -
                          pair(&cases[i], c, r - h, &unused, &unused)) /
                         (2 * h);
        NEAR(up, slope_c);
        NEAR(down, slope_r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ratios_are_clipped),
        cmocka_unit_test(dual_clip_bounds_the_worst),
        cmocka_unit_test(cispo_keeps_the_gradient),
        cmocka_unit_test(importance_is_truncated),
        cmocka_unit_test(divergences_and_their_clamps),
        cmocka_unit_test(check_score_function_part),
        cmocka_unit_test(gradients_are_exact),
        cmocka_unit_test(the_sampling_probability_may_be_left_out_of_the_divergence),
        cmocka_unit_test(what_is_clamped_on_the_way_in_has_no_gradient),
        cmocka_unit_test(parts_of_the_loss_are_reduced_as_it_is),
        cmocka_unit_test(on_policy_needs_no_old_log_probabilities),
        cmocka_unit_test(equal_policies_lose_ln_two),
        cmocka_unit_test(preference_losses_by_hand),
        cmocka_unit_test(preference_gradients_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
