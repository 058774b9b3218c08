/* test_working.c - what a long computation is at: who hears it, and how it is written. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/working.h"

typedef struct {
    int n;
    char what[64];
    uint64_t done, total;
} heard;

static void hear(void *user, const char *what, uint64_t done, uint64_t total)
{
    heard *h = user;
    h->n++;
    snprintf(h->what, sizeof h->what, "%s", what);
    h->done = done;
    h->total = total;
}

static void parts_add_up(void **state)
{
    heard h = {0};
    tp_working_listen(hear, &h);
    tp_job job;
    tp_job_begin(&job, 10, "writing %s", "model");
    assert_int_equal(h.done, 0); /* that it begins is told */
    tp_job_add(3);
    tp_job_add(4);
    assert_int_equal(h.n, 3);
    assert_string_equal(h.what, "writing model");
    assert_int_equal(h.done, 7);
    assert_int_equal(h.total, 10);
    tp_job_add(40); /* never more than all */
    assert_int_equal(h.done, 10);
    tp_job_release(&job);
    tp_job_add(1);
    assert_int_equal(h.n, 4);
    tp_working_listen(NULL, NULL);
}

static void a_part_of_a_work_is_none_of_its_own(void **state)
{
    heard h = {0};
    tp_job outer, inner;
    tp_working_listen(hear, &h);
    tp_job_begin(&outer, 8, "a checkpoint");
    tp_job_begin(&inner, 4, "a file of it");
    tp_job_add(4);
    tp_job_release(&inner);
    assert_string_equal(h.what, "a checkpoint");
    tp_job_add(2);
    assert_int_equal(h.done, 6);
    tp_job_release(&outer);
    tp_working_listen(NULL, NULL);
}

static void a_listener_gives_way_and_comes_back(void **state)
{
    heard first = {0}, second = {0};
    tp_working_listen(hear, &first);
    tp_work_listener before = tp_work_listen((tp_work_listener){hear, &second});
    tp_work_tell("a", 1, 0);
    (void)tp_work_listen(before);
    tp_work_tell("b", 1, 0);
    assert_string_equal(second.what, "a");
    assert_string_equal(first.what, "b");
    assert_int_equal(first.n, 1);
    tp_working_listen(NULL, NULL);
    tp_work_tell("c", 1, 0); /* nobody */
    assert_int_equal(first.n, 1);
}

static void writing_and_hashing_files_count_their_bytes(void **state)
{
    char path[] = "/tmp/tp_working_XXXXXX", hash[33];
    int fd = mkstemp(path);
    heard h = {0};
    tp_job job;
    tp_writer *w;
    tp_error err;
    assert_true(fd >= 0);
    close(fd);
    tp_working_listen(hear, &h);
    tp_job_begin(&job, 2000, "both");
    assert_int_equal(tp_writer_open(&w, path, &err), TP_OK);
    char bytes[1000] = {0};
    assert_int_equal(tp_writer_write(w, bytes, sizeof bytes, &err), TP_OK);
    assert_int_equal(tp_writer_close(w, NULL, &err), TP_OK);
    assert_int_equal(h.done, 1000);
    assert_int_equal(tp_file_hash(path, hash, &err), TP_OK);
    assert_int_equal(h.done, 2000);
    tp_job_release(&job);
    tp_working_listen(NULL, NULL);
    unlink(path);
}

static void what_is_left_at_once_is_not_heard_any_more(void **state)
{
    heard h = {0};
    tp_job job;
    tp_working_listen(hear, &h);
    tp_job_begin(&job, 2, "x");
    tp_work_forget();
    tp_job_add(1);
    assert_int_equal(h.n, 1);
}

static void expect_text(double share, double seconds, const char *wanted)
{
    char *text = tp_working_text("writing out", share, seconds);
    assert_string_equal(text, wanted);
    free(text);
}

static void the_time_to_go_is_said_where_it_is_known(void **state)
{
    expect_text(NAN, 12, "writing out  12.0 s");
    expect_text(0, 12, "writing out  0%  12.0 s");
    expect_text(0.25, 20, "writing out  25%  20.0 s, about 1m00s to go");
    expect_text(1, 20, "writing out  100%  20.0 s");
}

static void lines_that_stay_become_rarer(void **state)
{
    const double wanted[] = {10, 20, 40, 80, 140, 200};
    double at = 0;
    for (int i = 0; i < 6; i++) {
        at = tp_working_next(at);
        assert_true(at == wanted[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(a_part_of_a_work_is_none_of_its_own),
        cmocka_unit_test(a_listener_gives_way_and_comes_back),
        cmocka_unit_test(writing_and_hashing_files_count_their_bytes),
        cmocka_unit_test(what_is_left_at_once_is_not_heard_any_more),
        cmocka_unit_test(the_time_to_go_is_said_where_it_is_known),
        cmocka_unit_test(lines_that_stay_become_rarer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
