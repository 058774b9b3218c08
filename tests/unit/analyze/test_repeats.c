/* Several recordings of the same work, and two groups of them. */
#include "trace_text.h"

#include <math.h>
#include <stdio.h>

#include "instrument/analyze/repeats.h"
#include "instrument/report/trace_stats.h"

/* Two steps with one gemm each, of `gemm_us` together 2 * gemm_us, and what `extra` adds. */
static tp_trace_file *recording(int number, int gemm_us, const char *extra)
{
    tp_buf text = {0};
    char name[32];
    for (int i = 0; i < 2; i++) {
        tp_buf_addf(
            &text,
            "%s{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%d\",\"pid\":9,"
            "\"tid\":1,\"ts\":%d,\"dur\":%d,\"args\":{}},",
            i ? "," : "", i + 1, 1000 * i, gemm_us + 400);
        tp_buf_addf(
            &text,
            "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":9,"
            "\"tid\":1,\"ts\":%d,\"dur\":5,\"args\":{\"correlation\":%d}},",
            1000 * i + 10, i + 1);
        tp_buf_addf(
            &text,
            "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":%d,"
            "\"dur\":%d,\"args\":{\"device\":0,\"stream\":7,\"correlation\":%d}}",
            1000 * i + 20, gemm_us, i + 1);
    }
    tp_buf_adds(&text, extra);
    snprintf(name, sizeof name, "run-%d.json", number);
    tp_trace_file *file = read_trace(name, tp_buf_str(&text));
    tp_buf_release(&text);
    return file;
}

static void add(tp_repeats *r, int group, int gemm_us, const char *extra)
{
    const tp_select_options options = {.scope = TP_SCOPE_ALL};
    tp_trace_file *file = recording((int)r->n_files, gemm_us, extra);
    tp_error err = {0};
    if (tp_repeats_add(r, file, group, &options, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_trace_close(file);
}

static void conclude(tp_repeats *r)
{
    tp_error err = {0};
    if (tp_repeats_conclude(r, &err) != TP_OK)
        fail_msg("%s", err.message);
}

static const tp_repeat_row *find(const tp_repeats *r, tp_figure_table table, const char *name)
{
    const tp_repeat_table *t = &r->tables[table];
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(tp_string_get(&r->names, t->rows[i].name), name) == 0)
            return &t->rows[i];
    fail_msg("no row %s", name);
    return NULL;
}

static void near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%.17g is not %.17g", value, expected);
}

/* A kernel of 1 us on another device is that much more, in the file that has it. */
static void devices_of_a_file_are_added_up(void **state)
{
    static const char stray[] =
        ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"stray\",\"pid\":1,\"tid\":7,\"ts\":30,"
        "\"dur\":1,\"args\":{\"device\":1,\"stream\":7}}";
    TP_OWN(tp_buf) notes = {0};
    tp_repeats r;
    tp_repeats_init(&r, 2, false);
    add(&r, 0, 50, "");
    add(&r, 0, 50, stray);
    conclude(&r);
    tp_trace_stats_notes(&r, &notes);

    const tp_repeat_row *busy = find(&r, TP_FIGURES_TOTALS, "device busy");
    near(busy->values[0], 100000);
    near(busy->values[1], 101000);
    assert_non_null(strstr(tp_buf_str(&notes), "of a file together: 1 to 2 devices"));
    tp_repeats_release(&r);
}

static void a_mean_over_files_has_its_t_interval(void **state)
{
    tp_repeats r;
    tp_repeats_init(&r, 3, false);
    add(&r, 0, 50, "");
    add(&r, 0, 55, "");
    add(&r, 0, 60, "," KERNEL("relu", 7, 1500, 7, 0));
    conclude(&r);

    const tp_repeat_row *gemm = find(&r, TP_FIGURES_KERNELS, "gemm");
    assert_int_equal(gemm->of[0].n, 3);
    near(gemm->of[0].mean, 110000);
    near(gemm->of[0].sd, 10000);
    near(gemm->of[0].cv, 1. / 11);
    near(gemm->of[0].median, 110000);
    near(gemm->of[0].min, 100000);
    near(gemm->of[0].max, 120000);
    near(gemm->of[0].t_ci.lo, 85158.622882496689); /* 110000 -+ 4.30265273 * 10000 / sqrt 3 */
    near(gemm->of[0].t_ci.hi, 134841.37711750331);
    assert_true(isnan(gemm->of[0].bca.lo));
    assert_string_equal(gemm->of[0].bca.why, "fewer than 8 files");
    near(gemm->calls_of[0].mean, 2);
    near(gemm->mean_of[0].mean, 55000);

    /* Missing is not 0. */
    const tp_repeat_row *relu = find(&r, TP_FIGURES_KERNELS, "relu");
    assert_int_equal(relu->of[0].n, 1);
    near(relu->of[0].mean, 7000);
    assert_true(isnan(relu->of[0].t_ci.lo));
    assert_string_equal(relu->of[0].why, "one file: nothing to vary");

    near(find(&r, TP_FIGURES_TOTALS, "step (host), mean")->of[0].mean, 455000);
    near(find(&r, TP_FIGURES_TOTALS, "launches")->of[0].mean, 2);
    near(find(&r, TP_FIGURES_TOTALS, "kernels")->of[0].mean, 7. / 3);
    tp_repeats_release(&r);
}

static void per_step_divides(void **state)
{
    tp_repeats r;
    tp_repeats_init(&r, 1, true);
    add(&r, 0, 50, "," KERNEL("late", 7, 5000, 7, 0)); /* outside of steps */
    conclude(&r);
    near(find(&r, TP_FIGURES_KERNELS, "gemm")->of[0].mean, 50000);
    near(find(&r, TP_FIGURES_KERNELS, "gemm")->calls_of[0].mean, 1);
    near(find(&r, TP_FIGURES_TOTALS, "compute")->of[0].mean, 50000);
    assert_int_equal(r.tables[TP_FIGURES_KERNELS].n, 1);
    tp_repeats_release(&r);
}

static void per_step_needs_steps(void **state)
{
    tp_repeats r;
    tp_error err = {0};
    const tp_select_options options = {.scope = TP_SCOPE_ALL};
    tp_trace_file *file = read_trace("bare.json", KERNEL("gemm", 7, 0, 7, 0));
    tp_repeats_init(&r, 1, true);
    assert_int_equal(tp_repeats_add(&r, file, 0, &options, &err), TP_ERR_ARG);
    assert_non_null(strstr(err.message, "'bare.json' marks no steps"));
    tp_trace_close(file);
    tp_repeats_release(&r);
}

/* The others 10, 11, 12, 11: mean 11, sd 0.8165; t = 39 / (0.8165 sqrt(5/4)) = 42.72 with 3
 * degrees of freedom, p two-sided, times 5. */
static void the_outlier_is_found(void **state)
{
    const double values[] = {10, 11, 12, 50, 11}, regular[] = {10, 11, 12, 13, 11};
    const double equal[] = {3, 3, 3, 3}, one_differs[] = {3, 3, 4, 3};
    double p;
    assert_int_equal(tp_find_outlier(values, 5, &p), 3);
    near(p, 1.4112993015754807e-4);
    assert_int_equal(tp_find_outlier(regular, 5, &p), 3);
    assert_true(p > 0.05);
    assert_int_equal(tp_find_outlier(equal, 4, &p), TP_NO_FILE);
    assert_true(isnan(p));
    assert_int_equal(tp_find_outlier(one_differs, 4, &p), 2);
    assert_true(p == 0);
    assert_int_equal(tp_find_outlier(values, 2, &p), TP_NO_FILE);
}

static void the_outlier_file_is_named(void **state)
{
    const int us[] = {50, 51, 52, 250, 51};
    tp_repeats r;
    tp_repeats_init(&r, 5, false);
    for (int i = 0; i < 5; i++)
        add(&r, 0, us[i], "");
    conclude(&r);
    assert_int_equal(find(&r, TP_FIGURES_TOTALS, "compute")->outlier[0], 3);
    assert_int_equal(find(&r, TP_FIGURES_TOTALS, "launches")->outlier[0], TP_NO_FILE);
    assert_int_equal(find(&r, TP_FIGURES_KERNELS, "gemm")->outlier[0], 3);
    assert_int_equal(r.files[4].twin, 1); /* 51 twice */
    tp_repeats_release(&r);
}

static void two_groups_of_four_can_differ(void **state)
{
    tp_repeats r;
    tp_repeats_init(&r, 8, false);
    for (int i = 0; i < 8; i++)
        add(&r, i >= 4, i < 4 ? 100 + i : 116 + i, i < 4 ? "" : "," KERNEL("new", 7, 1700, 1, 0));
    conclude(&r);
    const tp_repeat_row *gemm = find(&r, TP_FIGURES_KERNELS, "gemm");
    near(gemm->ratio, 1.1970662790778808);
    near(gemm->lo, 1.1728526256308385);
    near(gemm->hi, 1.2217798256971646);
    near(gemm->p_ranks, 2. / 70);
    assert_int_equal(gemm->verdict, TP_CHANGE_WORSE);
    assert_int_equal(find(&r, TP_FIGURES_TOTALS, "launches")->verdict, TP_CHANGE_SAME);
    assert_int_equal(find(&r, TP_FIGURES_TOTALS, "exposed communication")->verdict,
                     TP_CHANGE_SAME); /* 0 everywhere */
    /* A constant that became another one: the order of the files decides. */
    assert_int_equal(find(&r, TP_FIGURES_TOTALS, "kernels")->verdict, TP_CHANGE_WORSE);
    const tp_repeat_row *appeared = find(&r, TP_FIGURES_KERNELS, "new");
    assert_int_equal(appeared->verdict, TP_CHANGE_NOT_SHOWN);
    assert_string_equal(appeared->why, "in no file of the first group");
    assert_true(isnan(appeared->ratio));
    tp_repeats_release(&r);
}

static void three_files_a_side_show_nothing(void **state)
{
    tp_repeats r;
    tp_repeats_init(&r, 6, false);
    for (int i = 0; i < 6; i++)
        add(&r, i >= 3, i < 3 ? 100 + i : 300 + i, "");
    conclude(&r);
    assert_int_equal(find(&r, TP_FIGURES_KERNELS, "gemm")->verdict, TP_CHANGE_NOT_SHOWN);
    tp_repeats_release(&r);
}

static void a_tight_interval_around_one_is_the_same(void **state)
{
    tp_repeats r;
    tp_repeats_init(&r, 8, false);
    for (int i = 0; i < 8; i++)
        add(&r, i >= 4, i < 4 ? 500 + i : 497 + i, "");
    conclude(&r);
    assert_int_equal(find(&r, TP_FIGURES_KERNELS, "gemm")->verdict, TP_CHANGE_SAME);
    tp_repeats_release(&r);
}

static void eight_files_are_enough_for_a_bootstrap(void **state)
{
    tp_repeats r;
    tp_repeats_init(&r, 8, false);
    for (int i = 0; i < 8; i++)
        add(&r, 0, 100 + i * i, "");
    conclude(&r);
    const tp_repeat_summary *s = &find(&r, TP_FIGURES_TOTALS, "compute")->of[0];
    assert_true(s->bca.lo > s->min && s->bca.lo < s->mean);
    assert_true(s->bca.hi > s->mean && s->bca.hi < s->max);
    assert_string_equal(find(&r, TP_FIGURES_TOTALS, "launches")->of[0].bca.why,
                        "all files have the same value");
    tp_repeats_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_of_a_file_are_added_up),
        cmocka_unit_test(a_mean_over_files_has_its_t_interval),
        cmocka_unit_test(per_step_divides),
        cmocka_unit_test(per_step_needs_steps),
        cmocka_unit_test(the_outlier_is_found),
        cmocka_unit_test(the_outlier_file_is_named),
        cmocka_unit_test(two_groups_of_four_can_differ),
        cmocka_unit_test(three_files_a_side_show_nothing),
        cmocka_unit_test(a_tight_interval_around_one_is_the_same),
        cmocka_unit_test(eight_files_are_enough_for_a_bootstrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
