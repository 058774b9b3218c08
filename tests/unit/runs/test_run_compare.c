/* test_run_compare.c - two runs and two groups of runs: effects, corrections, verdicts. */
#include <math.h>

#include "base/platform.h"
#include "base/strings.h"
#include "instrument/analyze/runs/curve.h"
#include "run_files.h"
#include "trace/metric.h"

/* Values that a reader takes as random, and a test can repeat: -0.5 .. 0.5. */
static double noise(unsigned i)
{
    unsigned x = (i + 1) * 2654435761u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    x *= 3266489917u;
    return (double)(x ^ x >> 16) / 4294967296.0 - 0.5;
}

/* loss = 3 + shift, tps = 100, both with noise; lr the same everywhere. */
static void write_run(const char *name, double shift, unsigned seed, int steps)
{
    tp_buf text = {0};
    for (int i = 0; i < steps; i++)
        tp_buf_addf(&text,
                    "{\"step\": %d, \"train/loss\": %.6f, \"tokens_per_sec\": %.6f, \"lr\": 0.01, "
                    "\"train/kl\": %.6f}\n",
                    i, 3 + shift + 0.1 * noise(seed + (unsigned)i),
                    100 + 10 * noise(seed + 5000 + (unsigned)i),
                    0.5 + shift + 0.1 * noise(seed + 9000 + (unsigned)i));
    write_text(name, text.data);
    tp_buf_release(&text);
}

static const tp_compared_metric *metric(const tp_run_comparison *c, const char *name)
{
    for (size_t i = 0; i < tp_run_comparison_count(c); i++)
        if (strcmp(tp_run_comparison_metric(c, i)->name, name) == 0)
            return tp_run_comparison_metric(c, i);
    fail_msg("no metric '%s'", name);
    return NULL;
}

static void two_runs(void **state)
{
    write_run("a.jsonl", 0, 1, 200);
    write_run("b.jsonl", 0.2, 70001, 150);
    tp_metrics *a = open_run(run_path("a.jsonl")), *b = open_run(run_path("b.jsonl"));
    tp_run_comparison *c;
    assert_int_equal(tp_runs_compare(&a, 1, &b, 1, NULL, &c, NULL), TP_OK);
    const tp_compared_metric *loss = metric(c, "train/loss");
    assert_int_equal(loss->n, 150);
    assert_true(fabs(loss->effect - 0.2) < 0.02);
    assert_true(loss->ci_lo < 0.2 && 0.2 < loss->ci_hi && loss->ci_hi - loss->ci_lo < 0.05);
    assert_string_equal(loss->verdict, "worse");
    assert_string_equal(metric(c, "train/kl")->verdict, "changed");
    assert_string_equal(metric(c, "lr")->verdict, "same");
    assert_string_equal(metric(c, "tokens_per_sec")->verdict, "same");
    assert_true(metric(c, "train/loss")->p_adjusted >= metric(c, "train/loss")->p);
    char *json = tp_run_comparison_json(c);
    assert_non_null(strstr(json, "\"verdict\": \"worse\""));
    free(json);
    tp_run_comparison_free(c);
    tp_metrics_close(a);
    tp_metrics_close(b);
}

static void groups_of_seeds(void **state)
{
    tp_metrics *runs[6];
    for (unsigned i = 0; i < 6; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u.jsonl", i);
        /* a seed moves its whole run */
        write_run(name, (i < 3 ? 0 : -0.5) + 0.05 * (i % 3), 1000 * i, 100);
        runs[i] = open_run(run_path(name));
    }
    tp_run_comparison *c;
    assert_int_equal(tp_runs_compare(runs, 3, runs + 3, 3, NULL, &c, NULL), TP_OK);
    const tp_compared_metric *loss = metric(c, "train/loss");
    assert_int_equal(loss->n, 6);
    assert_string_equal(loss->verdict, "better");
    assert_non_null(strstr(loss->method, "means of 3 and 3 runs, Welch"));
    tp_run_comparison_free(c);
    assert_int_equal(tp_runs_compare(runs, 1, runs + 3, 3, NULL, &c, NULL), TP_OK);
    assert_string_equal(metric(c, "train/loss")->verdict, "not shown");
    tp_run_comparison_free(c);
    for (int i = 0; i < 6; i++)
        tp_metrics_close(runs[i]);
}

/* Memory that is planned has no spread over seeds; a score may have none by chance. */
static void what_is_fixed_differs(void **state)
{
    tp_metrics *runs[4];
    tp_run_comparison *c;
    for (int i = 0; i < 4; i++) {
        char name[16];
        tp_buf text = {0};
        snprintf(name, sizeof name, "%d.jsonl", i);
        for (int step = 1; step <= 3; step++)
            tp_buf_addf(&text, "{\"step\": %d, \"memory/allocated_bytes\": %d%s}\n", step,
                        (i < 2 ? 800 : 600) + step,
                        step < 3 ? ""
                        : i < 2  ? ", \"accuracy\": 0.5"
                                 : ", \"accuracy\": 0.6");
        write_text(name, text.data);
        tp_buf_release(&text);
        runs[i] = open_run(run_path(name));
    }
    assert_int_equal(tp_runs_compare(runs, 2, runs + 2, 2, NULL, &c, NULL), TP_OK);
    const tp_compared_metric *memory = metric(c, "memory/allocated_bytes");
    assert_string_equal(memory->verdict, "better");
    assert_true(memory->effect == -200 && memory->ci_lo == -200 && memory->ci_hi == -200);
    assert_string_equal(memory->method, "the runs of a side are alike at all 3 steps");
    assert_string_equal(metric(c, "accuracy")->verdict, "not shown");
    tp_run_comparison_free(c);
    for (int i = 0; i < 4; i++)
        tp_metrics_close(runs[i]);
}

/* One program's "loss" is another's "train/loss"; rates of a device are no rates of all. */
static void names_of_two_programs(void **state)
{
    tp_run_comparison *c;
    tp_buf ours = {0}, theirs = {0};
    for (int i = 1; i <= 10; i++) {
        tp_buf_addf(&ours,
                    "{\"step\": %d, \"train/loss\": %d, \"train/lr\": 1, \"validation/val_loss\":"
                    " 3, \"train/mine\": 4, \"performance/tokens_per_sec\": 9}\n",
                    i, 20 - i);
        tp_buf_addf(&theirs,
                    "{\"step\": %d, \"loss\": %d, \"learning_rate\": 1, \"eval_loss\": 3, "
                    "\"mine\": 4, \"throughput(tps)\": 9}\n",
                    i, 20 - i);
    }
    write_text("a.jsonl", ours.data);
    write_text("b.jsonl", theirs.data);
    tp_buf_release(&ours);
    tp_buf_release(&theirs);
    tp_metrics *a = open_run(run_path("a.jsonl")), *b = open_run(run_path("b.jsonl"));
    assert_int_equal(tp_runs_compare(&a, 1, &b, 1, NULL, &c, NULL), TP_OK);
    assert_int_equal(tp_run_comparison_count(c), 4);
    assert_string_equal(metric(c, "train/loss")->name_b, "loss");
    assert_string_equal(metric(c, "train/loss")->verdict, "same");
    assert_string_equal(metric(c, "train/lr")->name_b, "learning_rate");
    assert_string_equal(metric(c, "validation/val_loss")->name_b, "eval_loss");
    assert_string_equal(metric(c, "train/mine")->name_b, "mine");
    tp_run_comparison_free(c);
    /* A metric that A has by that name is itself, and no other's. */
    append_text("a.jsonl", "{\"step\": 11, \"loss\": 1}\n");
    bool changed;
    assert_int_equal(tp_metrics_refresh(a, &changed, NULL), TP_OK);
    assert_int_equal(tp_runs_compare(&a, 1, &b, 1, NULL, &c, NULL), TP_OK);
    assert_int_equal(tp_run_comparison_count(c), 4);
    assert_null(metric(c, "loss")->name_b);
    tp_run_comparison_free(c);
    tp_metrics_close(a);
    tp_metrics_close(b);
}

static void not_a_number_is_worse(void **state)
{
    write_text("a.jsonl", "{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"loss\": 1}\n");
    write_text("b.jsonl", "{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"loss\": NaN}\n");
    tp_metrics *a = open_run(run_path("a.jsonl")), *b = open_run(run_path("b.jsonl"));
    tp_run_comparison *c;
    assert_int_equal(tp_runs_compare(&a, 1, &b, 1, NULL, &c, NULL), TP_OK);
    assert_string_equal(metric(c, "loss")->verdict, "worse");
    assert_non_null(strstr(metric(c, "loss")->why, "0 in A, 1 in B"));
    tp_run_comparison_free(c);
    tp_metrics_close(a);
    tp_metrics_close(b);
}

static void options_that_mean_nothing(void **state)
{
    write_text("a.jsonl", "{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"loss\": 1}\n");
    tp_metrics *a = open_run(run_path("a.jsonl")), *none = NULL;
    const tp_compare_options wrong[] = {{.size = 0},
                                        {.size = sizeof *wrong, .level = 2},
                                        {.size = sizeof *wrong, .margin = -1},
                                        {.size = sizeof *wrong, .margin = NAN}};
    tp_run_comparison *c;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(tp_runs_compare(&a, 1, &a, 1, &wrong[i], &c, NULL), TP_ERR_ARG);
    assert_int_equal(tp_runs_compare(&a, 1, &none, 1, NULL, &c, NULL), TP_ERR_ARG);
    tp_metrics_close(a);
}

static void settings_that_differ(void **state)
{
    tp_metrics *a = open_run(TP_SOURCE_DIR "/tests/data/runs/trackio-manual/manual.db#run-a");
    tp_metrics *b = open_run(TP_SOURCE_DIR "/tests/data/runs/trackio-manual/manual.db#run-b");
    tp_run_comparison *c;
    assert_int_equal(tp_runs_compare(&a, 1, &b, 1, NULL, &c, NULL), TP_OK);
    assert_true(tp_run_comparison_settings(c) > 0);
    tp_run_comparison_free(c);
    tp_metrics_close(a);
    tp_metrics_close(b);
}

typedef struct {
    const char *tag;
    int direction;
} named;

static void check_directions(const named *known, size_t n)
{
    int wrong = 0;
    for (size_t i = 0; i < n; i++)
        if (tp_metric_direction(known[i].tag) != known[i].direction) {
            print_error("%s: %d\n", known[i].tag, tp_metric_direction(known[i].tag));
            wrong++;
        }
    assert_int_equal(wrong, 0);
}

static void directions(void **state)
{
    static const named known[] = {{"train/loss", -1},
                                  {"eval_loss", -1},
                                  {"validation-default_loss", -1},
                                  {"loss_scale", 0},
                                  {"train/reward", 1},
                                  {"reward_std", 0},
                                  {"acc_stderr", 0},
                                  {"logps/rejected", 0},
                                  {"rewards/has_e/mean", 1},
                                  {"rewards/chosen", 1},
                                  {"rewards/rejected", -1},
                                  {"rewards/nan", -1},
                                  {"answers_nonsense", -1},
                                  {"answers/refused", -1},
                                  {"accuracy_loss", -1},
                                  {"loss/accuracy", 1},
                                  {"reward_model/loss", -1},
                                  {"reward_time", -1},
                                  {"validation/accuracy", 1},
                                  {"grad_norm", 0},
                                  {"train/kl_penalty", 0},
                                  {"learning_rate", 0},
                                  {"timing/train/total_step_time", -1},
                                  {"timing/train/valid_tokens_per_sec_per_gpu", 1},
                                  {"train_samples_per_second", 1},
                                  {"tokens/s", 1},
                                  {"errors_per_second", -1},
                                  {"sec_per_step", -1},
                                  {"s_per_it", -1},
                                  {"idle_s_per_step", -1},
                                  {"mean_tokens_per_sample", 0},
                                  {"ray/node.0.gpu.0.mem_gb", -1},
                                  {"memory_free_gb", 1},
                                  {"custom", 0}};
    check_directions(known, TP_COUNTOF(known));
}

/* Every metric of Temper's own that has one; a new metric has to be thought about here. */
static void directions_of_own_metrics(void **state)
{
    static const char *const more[] = {"dpo/rewards_chosen_times_beta",
                                       "generation/live_tokens_per_sec",
                                       "memory/available_bytes",
                                       "performance/generation_tokens_per_sec",
                                       "performance/padded_tokens_per_sec",
                                       "performance/policy_and_reference_logprobs_tokens_per_sec",
                                       "performance/policy_training_tokens_per_sec",
                                       "performance/samples_per_sec",
                                       "performance/tokens_per_sec",
                                       "performance/trained_tokens_per_sec",
                                       "performance/undisturbed_tokens_per_sec",
                                       "rollout/best_reward",
                                       "rollout/raw_reward",
                                       "rollout/rewards/ok",
                                       "system/accelerator_utilization",
                                       "system/processor_utilization",
                                       "train/accuracy",
                                       "train/best_product_utilization",
                                       "train/filtered_reward",
                                       "train/reward",
                                       "train/rewards_chosen_mean",
                                       "train/train_fp_utilization",
                                       "validation-default/accuracy",
                                       "validation-default/rewards_chosen_mean",
                                       "validation/accuracy",
                                       "validation/pass_k"};
    static const char *const less[] = {"dpo/rewards_rejected_times_beta",
                                       "memory/",
                                       "rollout/rewards/",
                                       "system/involuntary_switches_per_sec",
                                       "system/pressure_memory_share",
                                       "timing/",
                                       "train/compression_error",
                                       "train/js_divergence_error",
                                       "train/loss",
                                       "train/max_seq_mult_prob_error",
                                       "train/mean_seq_mult_prob_error",
                                       "train/min_seq_mult_prob_error",
                                       "train/num_masked_seqs_by_logprob_error",
                                       "train/positive_nll_loss",
                                       "train/preference_loss",
                                       "train/rewards_rejected_mean",
                                       "train/sft_loss",
                                       "train/token_mult_prob_error",
                                       "validation-default/loss",
                                       "validation-default/preference_loss",
                                       "validation-default/rewards_rejected_mean",
                                       "validation-default/sft_loss",
                                       "validation/val_loss"};
    named all[TP_METRIC_DEFS];
    for (size_t i = 0; i < TP_METRIC_DEFS; i++) {
        all[i] = (named){tp_metric_defs[i].name, 0};
        for (size_t k = 0; k < TP_COUNTOF(less); k++)
            if (strcmp(less[k], all[i].tag) == 0 ||
                (tp_str_ends(less[k], "/") && tp_str_starts(all[i].tag, less[k])))
                all[i].direction = -1;
        for (size_t k = 0; k < TP_COUNTOF(more); k++)
            if (strcmp(more[k], all[i].tag) == 0)
                all[i].direction = 1;
    }
    check_directions(all, TP_METRIC_DEFS);
}

#define COMPARES(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        COMPARES(two_runs),
        COMPARES(groups_of_seeds),
        COMPARES(what_is_fixed_differs),
        COMPARES(names_of_two_programs),
        COMPARES(not_a_number_is_worse),
        COMPARES(options_that_mean_nothing),
        cmocka_unit_test(settings_that_differ),
        cmocka_unit_test(directions),
        cmocka_unit_test(directions_of_own_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
