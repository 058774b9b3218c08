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
#include "instrument/bench/history.h"

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

/* A session of one benchmark; `metric` NULL: what no row may be. */
static tp_status add_session(const char *commit, const char *host, const char *metric, double value)
{
    tp_bench_report r;
    const double samples[] = {value, value + 1, value + 2};
    assert_int_equal(tp_bench_report_init(&r, NULL), TP_OK);
    r.started = "2026-01-01T00:00:00Z";
    r.has_commit = true;
    snprintf(r.commit.id, sizeof r.commit.id, "%s", commit);
    snprintf(r.host.fingerprint, sizeof r.host.fingerprint, "%s", host);
    tp_bench_result *result = tp_bench_report_add(&r, "train/x", 1);
    result->work = 10;
    result->rounds = 3;
    result->metrics[0] = (tp_bench_metric){
        .metric = {.name = metric, .unit = "tokens/s", .direction = TP_HIGHER_IS_BETTER},
        .b = samples,
        .n_b = 3,
        .side_b = {.median = value + 1, .lower = NAN, .upper = NAN}};
    tp_result_fail(&r, tp_bench_report_add(&r, "train/failed", 1), "crashed");
    tp_status status = tp_history_record(path, &r, NULL);
    tp_bench_report_release(&r);
    return status;
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
    assert_string_equal(p->direction, "higher");
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
    assert_int_equal(tp_history_open(path, &h, NULL), TP_OK);
    assert_int_equal(tp_history_read(h, host, look, &s, NULL), TP_OK);
    tp_history_close(h);
    return s;
}

static void sessions_are_kept_with_their_samples(void **state)
{
    tp_history *h;
    assert_int_equal(tp_history_open(path, &h, NULL), TP_ERR_IO);
    assert_int_equal(add_session("aaa", "host1", "throughput", 10), TP_OK);
    assert_int_equal(add_session("bbb", "host1", "throughput", 20), TP_OK);
    assert_int_equal(add_session("ccc", "host2", "throughput", 30), TP_OK);
    /* a row that cannot be written: nothing of its session is kept */
    assert_int_equal(add_session("ddd", "host1", NULL, 40), TP_ERR_OUTPUT);

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
    assert_int_equal(tp_history_open(other, &h, &err), TP_ERR_IO);
    assert_non_null(strstr(err.message, "history '"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_are_kept_with_their_samples),
        cmocka_unit_test(what_is_no_history_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
