#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "instrument/report/chart.h"
#include "instrument/store/history.h"

static char folder[] = "/tmp/temper-history-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/sub/bench.sqlite", folder);
    return 0;
}

static int remove_folder(void **state) { return tp_dir_remove(folder, NULL) == TP_OK ? 0 : -1; }

static void add_session(const char *commit, const char *host, double value, bool ends)
{
    tp_history *h;
    int64_t session, result;
    const double samples[] = {value, value + 1, value + 2};
    tp_history_session s = {
        .started = "2026-01-01T00:00:00Z", .commit = commit, .host = host, .seed = 1};
    tp_history_result r = {.name = "train/x", .work = 10, .rounds = 3};
    tp_history_metric m = {.name = "throughput",
                           .unit = "tokens/s",
                           .direction = "higher",
                           .kind = "noisy",
                           .median = value + 1,
                           .lower = NAN,
                           .upper = NAN,
                           .samples = samples,
                           .n = 3};
    assert_int_equal(tp_history_open(path, true, &h, NULL), TP_OK);
    assert_int_equal(tp_history_begin(h, &s, &session, NULL), TP_OK);
    assert_int_equal(tp_history_add_result(h, session, &r, &result, NULL), TP_OK);
    assert_int_equal(tp_history_add_metric(h, result, &m, NULL), TP_OK);
    if (ends)
        assert_int_equal(tp_history_end(h, NULL), TP_OK);
    tp_history_close(h);
}

typedef struct {
    int n;
    double sum;
    char commits[64];
} seen;

static tp_status look(void *user, const tp_history_point *p, tp_error *err)
{
    seen *s = user;
    assert_string_equal(p->name, "train/x");
    assert_string_equal(p->unit, "tokens/s");
    assert_int_equal(p->n, 3);
    assert_true(isnan(p->lower));
    s->n++;
    s->sum += p->samples[2];
    strcat(s->commits, p->commit);
    return TP_OK;
}

static seen read_all(const char *host)
{
    tp_history *h;
    seen s = {0};
    assert_int_equal(tp_history_open(path, false, &h, NULL), TP_OK);
    assert_int_equal(tp_history_read(h, host, look, &s, NULL), TP_OK);
    tp_history_close(h);
    return s;
}

static void sessions_are_kept_with_their_samples(void **state)
{
    tp_history *h;
    assert_int_equal(tp_history_open(path, false, &h, NULL), TP_ERR_IO);
    add_session("aaa", "host1", 10, true);
    add_session("bbb", "host1", 20, true);
    add_session("ccc", "host2", 30, true);
    add_session("ddd", "host1", 40, false); /* a crash: never ended */

    seen all = read_all(NULL), one = read_all("host1");
    assert_int_equal(all.n, 3);
    assert_string_equal(all.commits, "aaabbbccc");
    assert_true(all.sum == 12 + 22 + 32);
    assert_int_equal(one.n, 2);
    assert_string_equal(one.commits, "aaabbb");
}

static void what_is_no_history_is_refused(void **state)
{
    char other[64];
    tp_history *h;
    tp_error err = {0};
    snprintf(other, sizeof other, "%s/text", folder);
    assert_int_equal(tp_file_write_atomic(other, "this is not a database, just text", 33, NULL),
                     TP_OK);
    assert_int_equal(tp_history_open(other, true, &h, &err), TP_ERR_IO);
    assert_non_null(strstr(err.message, "history '"));
}

static void a_line_chart_is_well_formed_and_marks_the_change(void **state)
{
    const tp_chart_point points[] = {
        {.value = 1000, .lower = 990, .upper = 1010, .label = "a<b", .title = "x & y"},
        {.value = NAN, .lower = NAN, .upper = NAN},
        {.value = 1200, .lower = NAN, .upper = NAN, .is_marked = true}};
    tp_chart_line chart = {.title = "speed", .unit = "tokens/s", .points = points, .n = 3};
    tp_buf out = {0};
    tp_chart_write_line(&chart, &out);
    assert_true(tp_str_starts(out.data, "<svg "));
    assert_true(tp_str_ends(out.data, "</svg>\n"));
    assert_non_null(strstr(out.data, "a&lt;b"));
    assert_non_null(strstr(out.data, "x &amp; y"));
    assert_non_null(strstr(out.data, "class=\"mark\""));
    assert_null(strstr(out.data, "nan"));
    tp_buf_release(&out);
}

static void charts_of_nothing_and_of_one_value_are_drawn(void **state)
{
    tp_buf out = {0};
    tp_chart_line empty = {.title = "nothing"};
    tp_chart_write_line(&empty, &out);
    const double one[] = {5, 5, 5}, none[] = {NAN};
    const tp_chart_group groups[] = {{"a", one, 3}, {"b", none, 1}, {"c", NULL, 0}};
    tp_chart_boxes boxes = {.title = "boxes", .unit = "s", .groups = groups, .n = 3};
    tp_chart_write_boxes(&boxes, &out);
    assert_non_null(strstr(out.data, "class=\"box\""));
    assert_null(strstr(out.data, "nan"));
    assert_null(strstr(out.data, "inf"));
    tp_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_are_kept_with_their_samples),
        cmocka_unit_test(what_is_no_history_is_refused),
        cmocka_unit_test(a_line_chart_is_well_formed_and_marks_the_change),
        cmocka_unit_test(charts_of_nothing_and_of_one_value_are_drawn),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
