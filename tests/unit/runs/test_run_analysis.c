/* test_run_analysis.c - dimensions over made runs: values, verdicts, errors that stop no other. */
#include <math.h>

#include "instrument/report/run_dashboard.h"
#include "run_files.h"

static double noise(unsigned i)
{
    unsigned x = (i + 1) * 2654435761u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    x *= 3266489917u;
    return (double)(x ^ x >> 16) / 4294967296.0 - 0.5;
}

/* A run that learns and then overfits; memory stays. */
static void write_run(const char *name, unsigned seed, double loss_end, double step_time)
{
    tp_buf text = {0};
    for (unsigned i = 0; i < 300; i++) {
        double loss = loss_end + 2 * exp(-0.03 * i) + 0.02 * noise(seed + i);
        tp_buf_addf(&text,
                    "{\"step\": %u, \"train/loss\": %.6f, \"train/step_time\": %.6f, "
                    "\"memory/resident_bytes\": %d, \"mfu\": %.4f",
                    i, loss, step_time + 0.01 * noise(seed + 1000 + i), 1000000,
                    0.4 + 0.01 * noise(seed + 2000 + i));
        if (i % 10 == 9)
            tp_buf_addf(&text, ", \"eval_loss\": %.6f", loss + (i > 150 ? 0.004 * (i - 150) : 0));
        tp_buf_adds(&text, "}\n");
    }
    write_text(name, text.data);
    tp_buf_release(&text);
}

static const tp_analysis_dimension *dimension(const tp_analysis *a, const char *name)
{
    for (size_t i = 0; i < tp_analysis_count(a); i++)
        if (strcmp(tp_analysis_result(a, i)->name, name) == 0)
            return tp_analysis_result(a, i);
    fail_msg("no dimension '%s'", name);
    return NULL;
}

/* "": it is a number, or there is none. */
static const char *find_input(const tp_analysis *a, const char *name, const char *key,
                              double *ret_value)
{
    const char *text, *k;
    for (size_t i = 0; i < tp_analysis_count(a); i++)
        for (size_t n = 0; strcmp(tp_analysis_result(a, i)->name, name) == 0 &&
                           (k = tp_analysis_input(a, i, n, ret_value, &text));
             n++)
            if (strcmp(k, key) == 0)
                return text ? text : "";
    *ret_value = NAN;
    return "";
}

static double input(const tp_analysis *a, const char *name, const char *key)
{
    double value;
    (void)find_input(a, name, key, &value);
    return value;
}

static const char *text_input(const tp_analysis *a, const char *name, const char *key)
{
    double value;
    return find_input(a, name, key, &value);
}

/* All dimensions of a file with this text. */
static tp_analysis *judge(const char *name, tp_buf *text)
{
    tp_analysis *a;
    write_text(name, text->data);
    tp_buf_release(text);
    tp_metrics *m = open_run(run_path(name));
    assert_int_equal(tp_runs_analyze(&m, 1, NULL, &a, NULL), TP_OK);
    tp_metrics_close(m);
    return a;
}

static void one_run(void **state)
{
    tp_analysis *a;
    write_run("a.jsonl", 1, 1, 0.5);
    tp_metrics *m = open_run(run_path("a.jsonl"));
    assert_int_equal(tp_runs_analyze(&m, 1, NULL, &a, NULL), TP_OK);
    assert_int_equal(tp_analysis_count(a), 8);
    /* first fifth: 1 + 2 mean(e^-0.03t, t < 60) = 1.9406; last: 1.0008 */
    assert_true(fabs(dimension(a, "training")->value - 0.4843) < 0.01);
    assert_string_equal(dimension(a, "training")->verdict, "pass");
    assert_true(fabs(dimension(a, "convergence")->value - (1 - exp(-0.03 * 299))) < 0.002);
    assert_string_equal(dimension(a, "convergence")->verdict, "pass");
    assert_true(fabs(input(a, "convergence", "plateau_at") - 1) < 0.02);
    assert_true(fabs(input(a, "convergence", "half_life_steps") - log(2) / 0.03) < 2);
    assert_string_equal(dimension(a, "generalization")->verdict, "fail");
    double onset = input(a, "generalization", "overfitting_from_step");
    if (!(onset >= 150 && onset <= 250))
        fail_msg("overfitting from step %g", onset);
    assert_true(dimension(a, "memory")->value == 0);
    assert_string_equal(dimension(a, "memory")->verdict, "pass");
    assert_true(fabs(dimension(a, "efficiency")->value - 0.4) < 0.005);
    assert_string_equal(dimension(a, "robustness")->verdict, "unknown");
    assert_non_null(strstr(dimension(a, "robustness")->error, "at least 3 runs"));
    assert_non_null(strstr(dimension(a, "scalability")->error, "at least 3 runs"));
    tp_analysis_summary s = tp_analysis_summarize(a);
    assert_int_equal(s.ran, 8);
    assert_int_equal(s.succeeded, 5);
    assert_int_equal(s.failed, 3);
    assert_int_equal(s.unknown, 3);
    assert_int_equal(s.below_threshold, 1);
    tp_analysis_free(a);
    tp_metrics_close(m);
}

/* A loss of 1 + 2 e^(-0.03 t), recorded at every tenth step, which takes two seconds. */
static void time_to_a_target(void **state)
{
    const char *convergence = "convergence", *text = NULL, *key;
    tp_analysis_options options = {.size = sizeof options,
                                   .dimensions = &convergence,
                                   .n_dimensions = 1,
                                   .has_target = true,
                                   .target = 1.5};
    tp_buf rows = {0};
    tp_analysis *a;
    tp_error err = {0};
    double value = 0;
    for (int i = 0; i < 100; i++)
        tp_buf_addf(&rows, "{\"step\":%d,\"train/loss\":%.9g,\"train/step_time\":2}\n", 10 * i,
                    1 + 2 * exp(-0.03 * i) + 0.001 * (i % 2));
    write_text("ten.jsonl", rows.data);
    tp_buf_release(&rows);
    tp_metrics *m = open_run(run_path("ten.jsonl"));
    assert_int_equal(tp_runs_analyze(&m, 1, &options, &a, NULL), TP_OK);
    assert_true(fabs(input(a, convergence, "half_life_steps") - 10 * log(2) / 0.03) < 5);
    double steps = input(a, convergence, "steps_to_target"); /* 462.1 */
    assert_true(fabs(steps - 10 * log(4) / 0.03) < 5);
    assert_true(input(a, convergence, "steps_to_target_low") < steps);
    assert_true(input(a, convergence, "steps_to_target_high") > steps);
    assert_true(fabs(input(a, convergence, "seconds_to_target") - 2 * steps) < 1e-6);
    tp_analysis_free(a);

    options.target = 0.5;
    assert_int_equal(tp_runs_analyze(&m, 1, &options, &a, NULL), TP_OK);
    for (size_t i = 0; (key = tp_analysis_input(a, 0, i, &value, &text)); i++)
        if (strcmp(key, "steps_to_target") == 0)
            break;
    assert_string_equal(text, "never: the plateau of the curve is before it");
    tp_analysis_free(a);

    options.target = INFINITY;
    assert_int_equal(tp_runs_analyze(&m, 1, &options, &a, &err), TP_ERR_ARG);
    tp_metrics_close(m);
}

/* What others call their figures: each is found under the names of its role. */
static void names_of_others(void **state)
{
    static const char *const losses[] = {"train_loss", "Loss/train", "epoch_loss",
                                         "sunny-sun-1 - train/loss"};
    const char *training = "training";
    const tp_analysis_options options = {
        .size = sizeof options, .dimensions = &training, .n_dimensions = 1};
    for (size_t k = 0; k < sizeof losses / sizeof *losses; k++) {
        tp_buf text = {0};
        tp_buf_addf(&text, "current_steps,%s,%s__MIN\n", losses[k], losses[k]);
        for (int i = 0; i < 50; i++) /* 4 to 3.02 */
            tp_buf_addf(&text, "%d,%.2f,0\n", 5 * i, 4 - 0.02 * i);
        write_text("a.csv", text.data);
        tp_buf_release(&text);
        tp_metrics *m = open_run(run_path("a.csv"));
        tp_analysis *a;
        const tp_metric_point *p;
        assert_int_equal(tp_metrics_curve(m, 0, &p), 50);
        assert_int_equal(p[49].step, 245);
        assert_int_equal(tp_runs_analyze(&m, 1, &options, &a, NULL), TP_OK);
        if (fabs(tp_analysis_result(a, 0)->value - (3.91 - 3.11) / 3.91) > 1e-9)
            fail_msg("%s: %g, %s", losses[k], tp_analysis_result(a, 0)->value,
                     tp_analysis_result(a, 0)->error);
        tp_analysis_free(a);
        tp_metrics_close(m);
    }
}

static void efficiency_beside_other_limits(void **state)
{
    const char *efficiency = "efficiency";
    const tp_analysis_options options = {
        .size = sizeof options, .dimensions = &efficiency, .n_dimensions = 1};
    tp_buf text = {0};
    tp_analysis *a;
    for (int i = 0; i < 4; i++)
        tp_buf_addf(&text,
                    "{\"step\": %d, \"train/train_fp_utilization\": 0.25, "
                    "\"train/best_product_utilization\": 0.5, \"train/roofline_share\": 0.75, "
                    "\"performance/tokens_per_sec\": 2000, \"system/power_watts\": 100}\n",
                    i);
    write_text("a.jsonl", text.data);
    tp_buf_release(&text);
    tp_metrics *m = open_run(run_path("a.jsonl"));
    assert_int_equal(tp_runs_analyze(&m, 1, &options, &a, NULL), TP_OK);
    assert_true(dimension(a, efficiency)->value == 0.25);
    assert_true(input(a, efficiency, "of_best_product") == 0.5);
    assert_true(input(a, efficiency, "of_roofline") == 0.75);
    assert_true(input(a, efficiency, "watts") == 100);
    assert_true(input(a, efficiency, "joules_per_token") == 0.05);
    tp_analysis_free(a);
    tp_metrics_close(m);
}

/* nanoGPT's mfu is in percent. */
static void no_share_above_one(void **state)
{
    const char *efficiency = "efficiency";
    const tp_analysis_options options = {
        .size = sizeof options, .dimensions = &efficiency, .n_dimensions = 1};
    tp_analysis *a;
    write_text("a.csv", "step,mfu\n0,2.1\n1,2.2\n2,2.1\n3,2.2\n");
    write_text("b.csv", "step,mfu(%)\n0,2.1\n1,2.2\n2,2.1\n3,2.2\n");
    tp_metrics *m = open_run(run_path("a.csv")), *percent = open_run(run_path("b.csv"));
    assert_int_equal(tp_runs_analyze(&m, 1, &options, &a, NULL), TP_OK);
    assert_string_equal(dimension(a, efficiency)->verdict, "error");
    assert_non_null(strstr(dimension(a, efficiency)->error, "the mean of mfu is 2.15"));
    assert_true(isnan(dimension(a, efficiency)->value));
    tp_analysis_free(a);
    assert_int_equal(tp_runs_analyze(&percent, 1, &options, &a, NULL), TP_OK);
    assert_true(fabs(dimension(a, efficiency)->value - 0.0215) < 1e-9);
    tp_analysis_free(a);
    tp_metrics_close(m);
    tp_metrics_close(percent);
}

/* A run of 400 steps whose last 250 are NaN passes nothing. */
static void ends_that_are_no_number(void **state)
{
    static const char *const names[] = {"training", "convergence", "generalization"};
    const tp_analysis_options options = {
        .size = sizeof options, .dimensions = names, .n_dimensions = 3};
    tp_buf text = {0};
    tp_analysis *a;
    tp_buf_adds(&text, "step,loss,eval_loss\n");
    for (unsigned i = 0; i < 400; i++)
        if (i < 150)
            tp_buf_addf(&text, "%u,%.6f,%.6f\n", i, 1 + 2 * exp(-0.02 * i) + 0.02 * noise(i),
                        1 + 2 * exp(-0.02 * i) + 0.02 * noise(900 + i));
        else
            tp_buf_addf(&text, "%u,nan,nan\n", i);
    write_text("a.csv", text.data);
    tp_buf_release(&text);
    tp_metrics *m = open_run(run_path("a.csv"));
    assert_int_equal(tp_runs_analyze(&m, 1, &options, &a, NULL), TP_OK);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(dimension(a, names[i])->verdict, "fail");
        assert_non_null(strstr(dimension(a, names[i])->error, "the last one is that of step 149"));
    }
    assert_int_equal(tp_analysis_summarize(a).below_threshold, 3);
    tp_analysis_free(a);
    tp_metrics_close(m);
}

/* Its noise has neighbours that are correlated by phi. */
static tp_analysis *analyze_curve(const char *tag, double (*curve)(double), size_t n, double sd,
                                  double phi, unsigned seed)
{
    const char *convergence = "convergence";
    const tp_analysis_options options = {
        .size = sizeof options, .dimensions = &convergence, .n_dimensions = 1};
    tp_buf text = {0};
    tp_analysis *a;
    double e = 0;
    tp_buf_addf(&text, "step,%s\n", tag);
    for (unsigned i = 0; i < n; i++) {
        e = phi * e + sqrt(1 - phi * phi) * sqrt(12) * noise(seed * 10000 + i);
        tp_buf_addf(&text, "%u,%.9f\n", i, curve(i) + sd * e);
    }
    write_text("curve.csv", text.data);
    tp_buf_release(&text);
    tp_metrics *m = open_run(run_path("curve.csv"));
    assert_int_equal(tp_runs_analyze(&m, 1, &options, &a, NULL), TP_OK);
    tp_metrics_close(m);
    return a;
}

static double power_2(double t) { return 3 * pow(t + 1, -0.2) + 1; }
static double power_3(double t) { return 3 * pow(t + 1, -0.3) + 1; }
static double power_5(double t) { return 3 * pow(t + 1, -0.5) + 1; }
static double rises_again(double t)
{
    return 1 + 2 * exp(-t / 60) + (t > 200 ? (t - 200) / 50 : 0);
}
static double rises_late(double t)
{
    return 1 + 2 * exp(-t / 60) + (t > 380 ? 0.2 * (t - 380) : 0);
}
static double collapses(double t) { return 1 - exp(-t / 60) - (t > 330 ? 0.9 : 0); }
static double ended(double t) { return 1 + 2 * exp(-t / 60); }

/* What is no exponential has gone no share of its way. */
static void curves_that_are_others(void **state)
{
    static const struct {
        const char *tag;
        double (*curve)(double);
        size_t n;
        bool passes;
    } cases[] = {{"loss", power_2, 200, false},     {"loss", power_3, 200, false},
                 {"loss", power_5, 200, false},     {"loss", power_2, 1000, false},
                 {"loss", power_3, 1000, false},    {"loss", power_5, 1000, false},
                 {"loss", rises_again, 400, false}, {"loss", rises_late, 400, false},
                 {"reward", collapses, 400, false}, {"loss", ended, 300, true},
                 {"loss", ended, 479, true},        {"loss", ended, 1000, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned seed = 0; seed < 6; seed++) {
            tp_analysis *a = analyze_curve(cases[i].tag, cases[i].curve, cases[i].n,
                                           seed % 2 ? 0.1 : 0.02, seed % 3 * 0.3, seed);
            const tp_analysis_dimension *x = tp_analysis_result(a, 0);
            if ((strcmp(x->verdict, "pass") == 0) != cases[i].passes)
                fail_msg("case %zu, seed %u: %g, %s", i, seed, x->value, x->verdict);
            tp_analysis_free(a);
        }
}

/* Gaps that stay, whose neighbours are alike, begin no overfitting. */
static void alike_is_not_overfitting(void **state)
{
    const char *generalization = "generalization";
    const tp_analysis_options options = {
        .size = sizeof options, .dimensions = &generalization, .n_dimensions = 1};
    int n_found = 0;
    for (unsigned run = 0; run < 40; run++) {
        tp_buf text = {0};
        tp_analysis *a;
        double e = 0, phi = run % 2 ? 0.8 : 0.95;
        tp_buf_adds(&text, "step,loss,eval_loss\n");
        for (unsigned i = 0; i < 140; i++) {
            e = phi * e + sqrt(1 - phi * phi) * sqrt(12) * noise(run * 1000 + i);
            if (i >= 80)
                tp_buf_addf(&text, "%u,3,%.9f\n", i, 3.1 + 0.06 * e);
        }
        write_text("a.csv", text.data);
        tp_buf_release(&text);
        tp_metrics *m = open_run(run_path("a.csv"));
        assert_int_equal(tp_runs_analyze(&m, 1, &options, &a, NULL), TP_OK);
        n_found += !isnan(input(a, generalization, "overfitting_from_step"));
        tp_analysis_free(a);
        tp_metrics_close(m);
    }
    assert_in_range(n_found, 0, 5);
}

static void several_runs(void **state)
{
    static const double sizes[] = {1, 2, 4, 8};
    tp_metrics *m[4];
    tp_analysis *a;
    for (unsigned i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u.jsonl", i);
        write_run(name, 5000 * i, 1 + 0.01 * i, 2 * (0.2 + 0.8 / sizes[i]));
        m[i] = open_run(run_path(name));
    }
    const tp_analysis_options options = {.size = sizeof options, .sizes = sizes};
    assert_int_equal(tp_runs_analyze(m, 4, &options, &a, NULL), TP_OK);
    const tp_analysis_dimension *scaling = dimension(a, "scalability");
    assert_true(fabs(scaling->value - 0.2) < 0.01);
    assert_true(scaling->ci_lo < 0.2 && 0.2 < scaling->ci_hi);
    assert_string_equal(scaling->verdict, "fail");
    assert_true(fabs(input(a, "scalability", "largest_speedup") - 5) < 0.3);
    assert_int_equal(dimension(a, "robustness")->n, 4);
    assert_null(dimension(a, "robustness")->error);
    tp_analysis_free(a);
    for (int i = 0; i < 4; i++)
        tp_metrics_close(m[i]);
}

/* Of runs of Temper run.json says how many worked on each: 1, 2, 4 and 8 threads of all ranks. */
static void runs_that_say_how_many_worked(void **state)
{
    static const char *const records[] = {
        "{\"machine\": {\"threads\": 1}}", "{\"machine\": {\"threads\": 2}}",
        "{\"machine\": {\"threads\": 1}, \"distributed\": {\"ranks\": 4}}",
        "{\"machine\": {\"threads\": 2}, \"distributed\": {\"ranks\": 4}}"};
    static const double seconds[] = {1, 0.6, 0.4, 0.3}; /* 0.2 + 0.8 / N */
    tp_metrics *m[4];
    tp_analysis *a;
    for (int i = 0; i < 4; i++) {
        char text[200], name[32], folder[8] = {(char)('a' + i)};
        assert_int_equal(tp_dir_make(run_path(folder), NULL), TP_OK);
        snprintf(name, sizeof name, "%s/run.json", folder);
        write_text(name, records[i]);
        snprintf(name, sizeof name, "%s/config.yaml", folder);
        write_text(name, "cluster: {gpus_per_node: 1}\nengine: {threads: null}\n");
        snprintf(name, sizeof name, "%s/metrics.jsonl", folder);
        snprintf(text, sizeof text,
                 "{\"v\":1,\"t\":1.5,\"run\":\"r\",\"attempt\":1,\"step\":1,\"axis\":\"train\","
                 "\"m\":{\"timing/train/total_step_time\":%g}}\n",
                 seconds[i]);
        write_text(name, text);
        m[i] = open_run(run_path(folder));
    }
    assert_int_equal(tp_runs_analyze(m, 4, NULL, &a, NULL), TP_OK);
    const tp_analysis_dimension *scaling = dimension(a, "scalability");
    assert_null(scaling->error);
    assert_true(fabs(scaling->value - 0.2) < 1e-9);
    tp_analysis_free(a);
    for (int i = 0; i < 4; i++)
        tp_metrics_close(m[i]);
}

static void options_that_mean_nothing(void **state)
{
    tp_analysis *a;
    const char *none = NULL, *known = "efficiency";
    const double nan = NAN, infinite = INFINITY, negative = -1;
    write_run("a.jsonl", 1, 1, 0.5);
    tp_metrics *m = open_run(run_path("a.jsonl")), *missing = NULL;
    const tp_analysis_options fresh = {.size = sizeof fresh};
    tp_analysis_options o = {0};
    assert_int_equal(tp_runs_analyze(&m, 1, &o, &a, NULL), TP_ERR_ARG);
    o = fresh;
    o.level = 1;
    assert_int_equal(tp_runs_analyze(&m, 1, &o, &a, NULL), TP_ERR_ARG);
    o = fresh;
    o.dimensions = &none;
    o.n_dimensions = 1;
    assert_int_equal(tp_runs_analyze(&m, 1, &o, &a, NULL), TP_ERR_CONFIG);
    o = fresh;
    o.threshold_names = &known;
    o.thresholds = &nan;
    o.n_thresholds = 1;
    assert_int_equal(tp_runs_analyze(&m, 1, &o, &a, NULL), TP_ERR_CONFIG);
    o.thresholds = &infinite;
    assert_int_equal(tp_runs_analyze(&m, 1, &o, &a, NULL), TP_ERR_CONFIG);
    o = fresh;
    o.sizes = &negative;
    assert_int_equal(tp_runs_analyze(&m, 1, &o, &a, NULL), TP_ERR_CONFIG);
    assert_int_equal(tp_runs_analyze(&missing, 1, NULL, &a, NULL), TP_ERR_ARG);
    tp_metrics_close(m);
}

static void names_and_thresholds(void **state)
{
    tp_analysis *a;
    tp_error err = {0};
    write_run("a.jsonl", 1, 1, 0.5);
    tp_metrics *m = open_run(run_path("a.jsonl"));
    const char *unknown = "speed", *known = "efficiency";
    tp_analysis_options options = {
        .size = sizeof options, .dimensions = &unknown, .n_dimensions = 1};
    assert_int_equal(tp_runs_analyze(&m, 1, &options, &a, &err), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "training, inference, memory, convergence, generalization, "
                                        "robustness, scalability, efficiency"));
    const double threshold = 0.5;
    options.dimensions = &known;
    options.threshold_names = &known;
    options.thresholds = &threshold;
    options.n_thresholds = 1;
    assert_int_equal(tp_runs_analyze(&m, 1, &options, &a, &err), TP_OK);
    assert_int_equal(tp_analysis_count(a), 1);
    assert_string_equal(tp_analysis_result(a, 0)->verdict, "fail");
    char *json = tp_analysis_json(a), *report = tp_analysis_markdown(a, "a run");
    assert_non_null(strstr(json, "\"below_threshold\": 1"));
    assert_non_null(strstr(report, "| efficiency | 0.4"));
    assert_non_null(strstr(report, "What to do: "));
    free(json);
    free(report);
    tp_analysis_free(a);
    tp_metrics_close(m);
}

/* A preference run whose validation overfits: its parts, one of them first and 0, are not it. */
static void a_part_of_a_loss_is_not_the_loss(void **state)
{
    tp_buf whole = {0}, parts = {0};
    for (int i = 0; i < 60; i++) {
        tp_buf_addf(&whole,
                    "{\"step\":%d,\"train/loss\":1,\"validation-default/sft_loss\":0,"
                    "\"validation-default/preference_loss\":0.5,"
                    "\"validation-default/loss\":%g}\n",
                    i, 2 + 0.001 * (i % 3));
        tp_buf_addf(&parts,
                    "{\"step\":%d,\"train/loss\":1,"
                    "\"validation-default/preference_loss\":0.5,\"loss/val/aux\":0.5}\n",
                    i);
    }
    tp_analysis *a = judge("whole.jsonl", &whole);
    const char *validation = text_input(a, "generalization", "validation");
    assert_string_equal(validation, "validation-default/loss");
    assert_true(fabs(dimension(a, "generalization")->value - 1) < 0.01);
    assert_string_equal(dimension(a, "generalization")->verdict, "fail");
    tp_analysis_free(a);
    a = judge("parts.jsonl", &parts);
    assert_non_null(strstr(dimension(a, "generalization")->error, "no metric of validation loss"));
    tp_analysis_free(a);
}

/* Of several sets the first is judged, and the others are named: as transformers writes them into
 * its state, and for TensorBoard, also where their names hold a "/". */
static void sets_that_are_not_judged_are_named(void **state)
{
    static const char *const names[][2] = {{"eval_math_loss", "eval_code_loss"},
                                           {"eval/math_loss", "eval/code_loss"},
                                           {"eval_org/math_loss", "eval_x_loss"},
                                           {"eval/org/math_loss", "eval/org/code_loss"},
                                           {"validation-org/math/loss", "validation-code/loss"},
                                           {"val_loss", "loss/val"}};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        tp_buf text = {0};
        for (int i = 0; i < 30; i++)
            tp_buf_addf(&text, "{\"step\":%d,\"loss\":1,\"%s\":1.1,\"%s\":3}\n", i, names[k][0],
                        names[k][1]);
        tp_analysis *a = judge("sets.jsonl", &text);
        assert_string_equal(text_input(a, "generalization", "validation"), names[k][0]);
        assert_string_equal(text_input(a, "generalization", "not_judged"), names[k][1]);
        tp_analysis_free(a);
    }
}

static void sets_that_do_not_fit_are_counted(void **state)
{
    tp_buf text = {0};
    for (int i = 0; i < 30; i++) {
        tp_buf_addf(&text, "{\"step\":%d,\"loss\":1", i);
        for (int k = 0; k < 8; k++)
            tp_buf_addf(&text, ",\"eval_a_long_name_of_set_%d_loss\":1", k);
        tp_buf_adds(&text, "}\n");
    }
    tp_analysis *a = judge("many.jsonl", &text);
    assert_string_equal(text_input(a, "generalization", "not_judged"),
                        "eval_a_long_name_of_set_1_loss, eval_a_long_name_of_set_2_loss, "
                        "eval_a_long_name_of_set_3_loss and 4 more");
    tp_analysis_free(a);
}

/* Whatever is NaN from its first record on is a run that came to nothing, not one without metrics.
 */
static void what_was_never_finite_fails(void **state)
{
    tp_buf loss = {0}, reward = {0}, eval = {0};
    for (int i = 0; i < 60; i++) {
        tp_buf_addf(&loss, "{\"step\":%d,\"loss\":NaN,\"mfu\":NaN,\"mem-allocated-bytes\":NaN}\n",
                    i);
        tp_buf_addf(&reward, "{\"step\":%d,\"loss\":%d,\"reward\":Infinity}\n", i, 90 - i);
        tp_buf_addf(&eval, "{\"step\":%d,\"loss\":%d,\"eval_loss\":NaN}\n", i, 90 - i);
    }
    tp_analysis *a = judge("loss.jsonl", &loss);
    static const char *const names[] = {"training", "convergence"};
    for (int i = 0; i < 2; i++) {
        assert_string_equal(dimension(a, names[i])->verdict, "fail");
        assert_string_equal(dimension(a, names[i])->error,
                            "loss has no finite value: 60 are NaN or infinite");
        assert_true(input(a, names[i], "not_finite") == 60);
    }
    assert_string_equal(dimension(a, "efficiency")->error,
                        "mfu has no finite value: 60 are NaN or infinite");
    assert_non_null(strstr(dimension(a, "memory")->error, "mem-allocated-bytes has no finite"));
    assert_string_equal(text_input(a, "memory", "metric"), "mem-allocated-bytes");
    assert_true(input(a, "memory", "not_finite") == 60);
    assert_string_equal(text_input(a, "efficiency", "metric"), "mfu");
    assert_true(input(a, "efficiency", "not_finite") == 60);
    tp_analysis_free(a);
    a = judge("reward.jsonl", &reward); /* the loss falls, and is not what was learned from */
    for (int i = 0; i < 2; i++) {
        assert_string_equal(dimension(a, names[i])->verdict, "fail");
        assert_string_equal(text_input(a, names[i], "metric"), "reward");
    }
    tp_analysis_free(a);
    a = judge("eval.jsonl", &eval);
    assert_string_equal(dimension(a, "training")->verdict, "pass");
    assert_string_equal(dimension(a, "generalization")->verdict, "fail");
    assert_true(input(a, "generalization", "not_finite") == 60);
    tp_analysis_free(a);
}

/* A rate that was never finite hides no time; alone it is named. */
static void a_time_stands_in_for_a_rate_that_was_never_finite(void **state)
{
    tp_buf both = {0}, one = {0};
    for (int i = 0; i < 30; i++) {
        tp_buf_addf(&both, "{\"step\":%d,\"eval_samples_per_second\":NaN,\"eval_runtime\":2}\n", i);
        tp_buf_addf(&one, "{\"step\":%d,\"eval_samples_per_second\":NaN}\n", i);
    }
    tp_analysis *a = judge("both.jsonl", &both);
    assert_true(dimension(a, "inference")->value == 0.5);
    assert_string_equal(text_input(a, "inference", "metric"), "eval_runtime");
    tp_metrics *m = open_run(run_path("both.jsonl"));
    tp_buf page = {0};
    tp_run_dashboard_html(a, m, &page);
    assert_non_null(strstr(page.data, "eval_runtime / s"));
    tp_buf_release(&page);
    tp_metrics_close(m);
    tp_analysis_free(a);
    a = judge("one.jsonl", &one);
    assert_string_equal(dimension(a, "inference")->error,
                        "eval_samples_per_second has no finite value: 30 are NaN or infinite");
    assert_string_equal(text_input(a, "inference", "metric"), "eval_samples_per_second");
    assert_true(input(a, "inference", "not_finite") == 30);
    tp_analysis_free(a);
}

/* Where every evaluation is of a set with a name. */
static void the_speed_of_evaluations_of_sets(void **state)
{
    static const char *const names[][2] = {
        {"eval_math_samples_per_second", "eval_math_runtime"},
        {"eval/org/math_samples_per_second", "eval/org/math_runtime"}};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        for (int only_time = 0; only_time < 2; only_time++) {
            tp_buf text = {0};
            for (int i = 0; i < 30; i++)
                tp_buf_addf(&text, "{\"step\":%d,\"%s\":%s,\"%s\":2}\n", i, names[k][0],
                            only_time ? "null" : "8", names[k][1]);
            tp_analysis *a = judge("sets.jsonl", &text);
            assert_string_equal(text_input(a, "inference", "metric"), names[k][only_time]);
            tp_analysis_free(a);
        }
}

/* Every step to 100, then every tenth: a half-life of 13.9 steps, 1000 bytes more at each. */
static void steps_are_as_far_apart_as_they_are(void **state)
{
    const char *asked[] = {"convergence", "memory"};
    const tp_analysis_options options = {.size = sizeof options,
                                         .dimensions = asked,
                                         .n_dimensions = 2,
                                         .has_target = true,
                                         .target = 1.5};
    tp_buf rows = {0};
    tp_analysis *a;
    for (int i = 0; i < 200; i++) {
        int step = i < 100 ? i : 100 + 10 * (i - 100);
        tp_buf_addf(&rows, "{\"step\":%d,\"loss\":%.9g,\"mem-allocated-bytes\":%.9g}\n", step,
                    1 + 2 * exp(-0.05 * step) + 0.01 * noise((unsigned)i),
                    1e6 + 1e3 * step + 100 * noise((unsigned)i + 500));
    }
    write_text("uneven.jsonl", rows.data);
    tp_buf_release(&rows);
    tp_metrics *m = open_run(run_path("uneven.jsonl"));
    assert_int_equal(tp_runs_analyze(&m, 1, &options, &a, NULL), TP_OK);
    assert_true(fabs(input(a, "convergence", "half_life_steps") - log(2) / 0.05) < 0.2);
    assert_true(fabs(input(a, "convergence", "steps_to_95_percent") - log(20) / 0.05) < 1);
    assert_true(fabs(input(a, "convergence", "steps_to_target") - log(4) / 0.05) < 0.5);
    assert_string_equal(dimension(a, "convergence")->verdict, "pass");
    assert_true(fabs(input(a, "memory", "growth_per_step") - 1000) < 5);
    assert_string_equal(dimension(a, "memory")->verdict, "fail");
    /* from 1.0 to 2.09 MB with a median of 1.1 MB, and of 200 values one more than lies between */
    double rise = input(a, "memory", "growth_per_step") * 1090 / input(a, "memory", "median");
    assert_true(fabs(dimension(a, "memory")->value - rise * 200 / 199) < 1e-9);
    tp_analysis_free(a);
    tp_metrics_close(m);
}

/* Growth is of a step, also where a record is of ten; what is NaN takes no step away. */
static void gaps_and_records_are_no_steps(void **state)
{
    tp_buf rows = {0};
    for (int i = 0; i < 400; i++) {
        bool is_gap = i >= 100 && i < 300;
        tp_buf_addf(&rows, "{\"step\":%d,\"mem-allocated-bytes\":%d,\"loss\":", 10 * i,
                    1000000 + 1000 * i);
        if (is_gap)
            tp_buf_adds(&rows, "NaN}\n");
        else
            tp_buf_addf(&rows, "%.9g}\n", 1 + 2 * exp(-0.005 * i) + 0.01 * noise((unsigned)i));
    }
    tp_analysis *a = judge("gap.jsonl", &rows);
    assert_true(fabs(input(a, "memory", "growth_per_step") - 100) < 1e-6);
    assert_true(fabs(input(a, "convergence", "half_life_steps") - log(2) / 0.0005) < 30);
    assert_true(input(a, "convergence", "not_finite") == 200);
    tp_analysis_free(a);
}

/* Seeds: one without the metric decides nothing, and is counted as what it is. */
static void a_run_without_the_metric_is_not_lost(void **state)
{
    const char *robustness = "robustness";
    const tp_analysis_options options = {
        .size = sizeof options, .dimensions = &robustness, .n_dimensions = 1};
    tp_metrics *m[4];
    tp_analysis *a;
    write_text("0.jsonl", "{\"step\":1,\"other\":3}\n");
    m[0] = open_run(run_path("0.jsonl"));
    for (unsigned i = 1; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u.jsonl", i);
        write_run(name, i, 1, 0.5);
        m[i] = open_run(run_path(name));
    }
    assert_int_equal(tp_runs_analyze(m, 4, &options, &a, NULL), TP_OK);
    assert_null(dimension(a, robustness)->error);
    assert_string_equal(dimension(a, robustness)->verdict, "pass");
    assert_true(input(a, robustness, "runs_without_it") == 1);
    tp_analysis_free(a);
    tp_metrics_close(m[0]);
    write_text("0.jsonl", "{\"step\":1,\"eval_loss\":NaN}\n");
    m[0] = open_run(run_path("0.jsonl"));
    assert_int_equal(tp_runs_analyze(m, 4, &options, &a, NULL), TP_OK);
    assert_string_equal(dimension(a, robustness)->verdict, "fail");
    assert_non_null(dimension(a, robustness)->advice);
    tp_analysis_free(a);
    for (int i = 0; i < 4; i++)
        tp_metrics_close(m[i]);
}

/* Devices of a node times nodes; those that load data do none of the work. */
static void sizes_are_of_all_nodes(void **state)
{
    static const double seconds[] = {1, 0.6, 0.4}; /* 0.2 + 0.8 / N */
    tp_metrics *m[3];
    tp_analysis *a;
    for (int i = 0; i < 3; i++) {
        char text[200], name[32], folder[8] = {(char)('a' + i)};
        assert_int_equal(tp_dir_make(run_path(folder), NULL), TP_OK);
        snprintf(name, sizeof name, "%s/config.yaml", folder);
        snprintf(text, sizeof text, "cluster: {gpus_per_node: 1, num_nodes: %d}\nnum_workers: 7\n",
                 1 << i);
        write_text(name, text);
        snprintf(name, sizeof name, "%s/metrics.jsonl", folder);
        snprintf(text, sizeof text,
                 "{\"v\":1,\"t\":1.5,\"run\":\"r\",\"attempt\":1,\"step\":1,\"axis\":\"train\","
                 "\"m\":{\"timing/train/total_step_time\":%g}}\n",
                 seconds[i]);
        write_text(name, text);
        m[i] = open_run(run_path(folder));
    }
    assert_int_equal(tp_runs_analyze(m, 3, NULL, &a, NULL), TP_OK);
    assert_null(dimension(a, "scalability")->error);
    assert_true(fabs(dimension(a, "scalability")->value - 0.2) < 1e-9);
    tp_analysis_free(a);
    for (int i = 0; i < 3; i++) {
        char name[32];
        tp_metrics_close(m[i]);
        snprintf(name, sizeof name, "%c/config.yaml", 'a' + i);
        write_text(name, "num_workers: 2\n");
        m[i] = open_run(run_path((char[]){(char)('a' + i), 0}));
    }
    assert_int_equal(tp_runs_analyze(m, 3, NULL, &a, NULL), TP_OK);
    assert_non_null(strstr(dimension(a, "scalability")->error, "got 0"));
    tp_analysis_free(a);
    for (int i = 0; i < 3; i++)
        tp_metrics_close(m[i]);
}

/* What is said of values is so. */
static void reasons_are_the_right_ones(void **state)
{
    tp_buf falls = {0}, one = {0}, tiny = {0};
    tp_buf_adds(&one, "{\"step\":0,\"eval_loss\":1}\n");
    for (int i = 0; i < 60; i++) {
        tp_buf_addf(&falls, "{\"step\":%d,\"reward\":%g}\n", i,
                    exp(-0.1 * i) + 0.01 * noise((unsigned)i));
        tp_buf_addf(&one, "{\"step\":%d,\"loss\":1}\n", i);
        tp_buf_addf(&tiny, "{\"step\":%d,\"loss\":%g}\n", i, 1e-310 * (2 + noise((unsigned)i)));
    }
    tp_analysis *a = judge("falls.jsonl", &falls);
    assert_string_equal(dimension(a, "convergence")->error,
                        "no rising curve could be fitted: the metric falls");
    tp_analysis_free(a);
    a = judge("one.jsonl", &one);
    assert_string_equal(dimension(a, "generalization")->error,
                        "needs 3 evaluations or more, got 1");
    tp_analysis_free(a);
    a = judge("tiny.jsonl", &tiny);
    assert_non_null(strstr(dimension(a, "training")->error, "less than a number holds"));
    tp_analysis_free(a);
}

static void a_threshold_is_held_against_something(void **state)
{
    static const char *const twice[] = {"training", "training"}, *const other = "memory";
    static const double values[] = {0, 0.9};
    tp_analysis *a;
    tp_error err = {0};
    write_run("a.jsonl", 1, 1, 0.5);
    tp_metrics *m = open_run(run_path("a.jsonl"));
    tp_analysis_options o = {
        .size = sizeof o, .threshold_names = twice, .thresholds = values, .n_thresholds = 2};
    assert_int_equal(tp_runs_analyze(&m, 1, &o, &a, &err), TP_ERR_CONFIG);
    assert_string_equal(err.message, "training has two thresholds; give one");
    o = (tp_analysis_options){.size = sizeof o, .dimensions = twice, .n_dimensions = 2};
    assert_int_equal(tp_runs_analyze(&m, 1, &o, &a, &err), TP_ERR_CONFIG);
    assert_string_equal(err.message, "training is asked for twice; ask once");
    o.n_dimensions = 1;
    o.threshold_names = &other;
    o.thresholds = values;
    o.n_thresholds = 1;
    assert_int_equal(tp_runs_analyze(&m, 1, &o, &a, &err), TP_ERR_CONFIG);
    assert_non_null(strstr(err.message, "memory has a threshold but is not asked for"));
    tp_metrics_close(m);
}

/* Names of metrics are other people's text: neither markup nor lines of the report. */
static void names_are_no_markup_of_the_report(void **state)
{
    tp_buf rows = {0};
    for (int i = 0; i < 30; i++)
        tp_buf_addf(&rows, "{\"step\":%d,\"<img src=x>\\n# top ![a](b)\u202e - train/loss\":%d}\n",
                    i, 90 - i);
    tp_analysis *a = judge("markup.jsonl", &rows);
    char *report = tp_analysis_markdown(a, "a `run`");
    assert_non_null(strstr(report, "# a &#96;run&#96;\n"));
    assert_non_null(strstr(report, "- metric: &lt;img src=x&gt;\\n# top !&#91;a]"));
    assert_null(strstr(report, "<img"));
    assert_null(strstr(report, "\n# top"));
    free(report);
    tp_analysis_free(a);
}

/* How often the first line of a panel is put down anew; those of legends have one side, a dash. */
static int pieces_of(const char *svg)
{
    const char *line = svg;
    int n = 1;
    do
        line = strstr(line, "class=\"line\" stroke=\"#0072b2\" d=\"M") + 34;
    while (strspn(line, "M0123456789. h") == strcspn(line, "\""));
    for (; *line != '"'; line++)
        n += *line == 'M';
    return n;
}

static void the_dashboard_has_gaps_and_the_right_axis(void **state)
{
    for (int k = 0; k < 2; k++) {
        tp_buf rows = {0}, page = {0};
        tp_analysis *a;
        for (int i = 0; i < 300; i++)
            if (i >= 100 && i < 200)
                tp_buf_addf(&rows, "{\"step\":%d,\"loss\":NaN}\n", i);
            else
                tp_buf_addf(&rows, "{\"step\":%d,\"loss\":%g}\n", i,
                            100 * exp(-0.02 * i) - (k ? 10 : 0));
        write_text("drawn.jsonl", rows.data);
        tp_metrics *m = open_run(run_path("drawn.jsonl"));
        assert_int_equal(tp_runs_analyze(&m, 1, NULL, &a, NULL), TP_OK);
        tp_run_dashboard_html(a, m, &page);
        assert_int_equal(pieces_of(page.data), 2);
        assert_non_null(strstr(page.data, "median of up to 7 values"));
        assert_true((strstr(page.data, ">0.1</text>") != NULL) == !k); /* of logarithms */
        tp_buf_release(&rows);
        tp_buf_release(&page);
        tp_analysis_free(a);
        tp_metrics_close(m);
    }
}

/* A loss between values that are NaN: every second one by markers, five of six by lines, and the
 * medians of both, which no single NaN takes away. */
static void values_between_gaps_are_drawn(void **state)
{
    static const int every[] = {2, 6};
    for (int k = 0; k < 2; k++) {
        tp_buf rows = {0}, page = {0};
        for (int i = 0; i < 240; i++)
            if (i % every[k] == 0)
                tp_buf_addf(&rows, "{\"step\":%d,\"train/loss\":NaN}\n", i);
            else
                tp_buf_addf(&rows, "{\"step\":%d,\"train/loss\":%g}\n", i, 5 - 0.01 * i);
        tp_analysis *a = judge("scattered.jsonl", &rows);
        tp_metrics *m = open_run(run_path("scattered.jsonl"));
        tp_run_dashboard_html(a, m, &page);
        const char *training = strstr(page.data, "<svg x="), *median;
        char *end = strstr(training, "</svg>");
        *end = 0;
        int markers = 0;
        for (const char *at = training; (at = strstr(at, "<circle")); at++)
            markers++;
        assert_int_equal(markers, k ? 0 : 120);
        median = strstr(training, "class=\"line\" stroke=\"#d55e00\"");
        assert_non_null(median);
        median = strstr(median, " d=\"M");
        assert_non_null(median);
        assert_null(memchr(median + 5, 'M', strcspn(median + 5, "\"")));
        tp_buf_release(&page);
        tp_analysis_free(a);
        tp_metrics_close(m);
    }
}

/* What the list of runs says is of the dimensions that were asked. */
static void the_report_says_which_runs_were_asked(void **state)
{
    static const struct {
        const char *names[2], *says;
    } cases[] = {{{"training", "memory"}, "\nThe first run is judged:\n"},
                 {{"training", "robustness"}, "\nThe first run is judged, of robustness all:\n"},
                 {{"robustness", "scalability"}, "\nAll runs are judged:\n"}};
    write_run("a.jsonl", 1, 1, 0.5);
    write_run("b.jsonl", 2, 1, 0.5);
    tp_metrics *m[2] = {open_run(run_path("a.jsonl")), open_run(run_path("b.jsonl"))};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tp_analysis *a;
        const tp_analysis_options options = {
            .size = sizeof options, .dimensions = cases[i].names, .n_dimensions = 2};
        assert_int_equal(tp_runs_analyze(m, 2, &options, &a, NULL), TP_OK);
        char *report = tp_analysis_markdown(a, "two");
        if (!strstr(report, cases[i].says))
            fail_msg("no '%s' in %s", cases[i].says, report);
        free(report);
        tp_analysis_free(a);
    }
    tp_metrics_close(m[0]);
    tp_metrics_close(m[1]);
}

#define ANALYSIS(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ANALYSIS(one_run),
        ANALYSIS(time_to_a_target),
        ANALYSIS(names_of_others),
        ANALYSIS(efficiency_beside_other_limits),
        ANALYSIS(no_share_above_one),
        ANALYSIS(ends_that_are_no_number),
        ANALYSIS(curves_that_are_others),
        ANALYSIS(alike_is_not_overfitting),
        ANALYSIS(several_runs),
        ANALYSIS(runs_that_say_how_many_worked),
        ANALYSIS(names_and_thresholds),
        ANALYSIS(options_that_mean_nothing),
        ANALYSIS(a_part_of_a_loss_is_not_the_loss),
        ANALYSIS(sets_that_are_not_judged_are_named),
        ANALYSIS(sets_that_do_not_fit_are_counted),
        ANALYSIS(what_was_never_finite_fails),
        ANALYSIS(a_time_stands_in_for_a_rate_that_was_never_finite),
        ANALYSIS(the_speed_of_evaluations_of_sets),
        ANALYSIS(steps_are_as_far_apart_as_they_are),
        ANALYSIS(gaps_and_records_are_no_steps),
        ANALYSIS(a_run_without_the_metric_is_not_lost),
        ANALYSIS(sizes_are_of_all_nodes),
        ANALYSIS(reasons_are_the_right_ones),
        ANALYSIS(a_threshold_is_held_against_something),
        ANALYSIS(names_are_no_markup_of_the_report),
        ANALYSIS(the_report_says_which_runs_were_asked),
        ANALYSIS(the_dashboard_has_gaps_and_the_right_axis),
        ANALYSIS(values_between_gaps_are_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
