/* test_run_truth.c - every figure of runs that others wrote, as their own readers have it.
 *
 * tests/data/runs has a few; a folder shared/runs beside the checkout has more. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/files.h"
#include "temper/analysis.h"
#include "text/json/json.h"

static bool is_same_number(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static double number_of(const tp_json *v)
{
    double d = NAN;
    const char *text = tp_json_str(v);
    if (text)
        return strtod(text, NULL); /* "NaN", "Infinity", "-Infinity" */
    (void)tp_json_f64(v, &d);
    return d;
}

static void compare_series(const char *run, const tp_json *want, const tp_metric_point *p, size_t n)
{
    if (n != want->n)
        fail_msg("%s, %s: %zu points, not %zu", run, want->key.data, n, want->n);
    const tp_json *x = want->child;
    for (size_t i = 0; i < n; i++, x = x->next) {
        int64_t step = TP_STEP_NONE;
        (void)tp_json_i64(tp_json_at(x, 0), &step);
        if (p[i].step != step || !is_same_number(p[i].wall_time, number_of(tp_json_at(x, 1))) ||
            !is_same_number(p[i].value, number_of(tp_json_at(x, 2))))
            fail_msg("%s, %s, point %zu: [%lld, %.17g, %.17g]", run, want->key.data, i,
                     (long long)p[i].step, p[i].wall_time, p[i].value);
    }
}

static void compare_run(const char *folder, const tp_json *run, tp_points_view view)
{
    char path[4096];
    tp_metrics *m;
    tp_error err;
    snprintf(path, sizeof path, "%s/%s", folder, run->key.data);
    if (tp_metrics_open(path, NULL, &m, &err) != TP_OK)
        fail_msg("%s", err.message);
    for (const tp_json *tag = run->child; tag; tag = tag->next) {
        const tp_metric_point *p = NULL;
        size_t index = tp_metrics_find(m, tag->key.data);
        if (index == SIZE_MAX)
            fail_msg("%s: no metric '%s'", run->key.data, tag->key.data);
        size_t n = tp_metrics_points(m, index, view, &p);
        compare_series(run->key.data, tag, p, n);
    }
    for (size_t i = 0; i < tp_metrics_count(m); i++) {
        const tp_metric_point *p;
        if (!tp_json_get(run, tp_metrics_tag(m, i)) && tp_metrics_points(m, i, view, &p))
            fail_msg("%s: '%s' is a metric of no other reader", run->key.data,
                     tp_metrics_tag(m, i));
    }
    tp_metrics_close(m);
}

/* Every run of the truth file in `folder`, by the reader that `view` stands for. */
static void compare_folder(const char *folder, const char *truth, tp_points_view view)
{
    char path[4096];
    tp_buf text = {0};
    tp_arena arena = {0};
    const tp_json *root;
    tp_error err = {0};
    snprintf(path, sizeof path, "%s/%s", folder, truth);
    assert_int_equal(tp_file_read(path, 0, &text, &err), TP_OK);
    assert_int_equal(tp_arena_init(&arena, 256 << 20, &err), TP_OK);
    assert_int_equal(tp_json_parse(&arena, path, text.data, text.len, NULL, &root, &err), TP_OK);
    assert_true(root->n > 0);
    for (const tp_json *run = root->child; run; run = run->next)
        compare_run(folder, run, view);
    tp_arena_release(&arena);
    tp_buf_release(&text);
}

static const char *shared_runs(void)
{
    static const char folder[] = TP_SOURCE_DIR "/../shared/runs";
    static const char further[] = TP_SOURCE_DIR "/../../shared/runs";
    if (tp_dir_exists(folder))
        return folder;
    if (tp_dir_exists(further))
        return further;
    print_message("no folder shared/runs beside the checkout\n");
    skip();
    return NULL;
}

static void truth_native(void **state)
{
    compare_folder(TP_SOURCE_DIR "/tests/data/runs", "truth.json", TP_POINTS_NATIVE);
}

static void truth_all(void **state)
{
    compare_folder(TP_SOURCE_DIR "/tests/data/runs", "truth_all.json", TP_POINTS_ALL);
}

static void truth_accumulator(void **state)
{
    compare_folder(TP_SOURCE_DIR "/tests/data/runs", "truth_legacy.json", TP_POINTS_ACCUMULATOR);
}

static void truth_fast(void **state)
{
    compare_folder(TP_SOURCE_DIR "/tests/data/runs", "truth_fast.json", TP_POINTS_FAST);
}

static void shared_truth_native(void **state)
{
    compare_folder(shared_runs(), "truth.json", TP_POINTS_NATIVE);
}

static void shared_truth_all(void **state)
{
    compare_folder(shared_runs(), "truth_all.json", TP_POINTS_ALL);
}

static void shared_truth_accumulator(void **state)
{
    compare_folder(shared_runs(), "truth_legacy.json", TP_POINTS_ACCUMULATOR);
}

static void shared_truth_fast(void **state)
{
    compare_folder(shared_runs(), "truth_fast.json", TP_POINTS_FAST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truth_native),
        cmocka_unit_test(truth_all),
        cmocka_unit_test(truth_accumulator),
        cmocka_unit_test(truth_fast),
        cmocka_unit_test(shared_truth_native),
        cmocka_unit_test(shared_truth_all),
        cmocka_unit_test(shared_truth_accumulator),
        cmocka_unit_test(shared_truth_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
