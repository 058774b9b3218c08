/* Two traces, and several ranks of one. */
#include "trace_text.h"

#include <math.h>
#include <stdlib.h>

#include "instrument/analyze/compare.h"
#include "instrument/analyze/ranks.h"

/* `n` steps of 1 ms with one gemm each, of `us` microseconds plus a little that varies. */
static tp_trace_file *steps_of(int n, int us, const char *extra)
{
    tp_buf text = {0};
    for (int i = 0; i < n; i++) {
        int ts = 1000 * i, dur = us + i * 7 % 5;
        tp_buf_addf(
            &text,
            "%s{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%d\",\"pid\":9,"
            "\"tid\":1,\"ts\":%d,\"dur\":%d,\"args\":{}},",
            i ? "," : "", i + 1, ts, us + 400 + i * 3 % 4);
        tp_buf_addf(
            &text,
            "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":9,"
            "\"tid\":1,\"ts\":%d,\"dur\":5,\"args\":{\"correlation\":%d}},",
            ts + 10, i + 1);
        tp_buf_addf(
            &text,
            "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm\",\"pid\":0,\"tid\":7,\"ts\":%d,"
            "\"dur\":%d,\"args\":{\"device\":0,\"stream\":7,\"correlation\":%d}}",
            ts + 20, dur, i + 1);
    }
    tp_buf_adds(&text, extra);
    tp_trace_file *file = read_trace("steps.json", tp_buf_str(&text));
    tp_buf_release(&text);
    return file;
}

static tp_comparison compare(tp_trace_file *before, tp_trace_file *after)
{
    tp_selection a = select_all(before), b = select_all(after);
    tp_comparison c;
    tp_error err = {0};
    if (tp_compare(&a, &b, &c, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_selection_release(&a);
    tp_selection_release(&b);
    return c;
}

static const tp_compare_row *find(const tp_comparison *c, const tp_compare_table *t,
                                  const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(tp_string_get(&c->names, t->rows[i].name), name) == 0)
            return &t->rows[i];
    fail_msg("no row %s", name);
    return NULL;
}

static void a_faster_kernel_is_better(void **state)
{
    tp_trace_file *before = steps_of(8, 300, ""), *after = steps_of(8, 200, "");

    tp_comparison c = compare(before, after);
    const tp_compare_row *gemm = find(&c, &c.kernels, "gemm");

    assert_true(c.is_paired);
    assert_int_equal(gemm->before_count, 8);
    assert_int_equal((int64_t)llround(gemm->after_step - gemm->before_step), -100000);
    assert_int_equal(find(&c, &c.totals, "compute")->presence, TP_COMPARE_IN_BOTH);
    tp_comparison_release(&c);
    tp_trace_close(before);
    tp_trace_close(after);
}

static void a_verdict_needs_evidence(void **state)
{
    tp_trace_file *before = steps_of(8, 300, ""), *after = steps_of(9, 200, "");
    tp_trace_file *few = steps_of(3, 200, "");

    tp_comparison shown = compare(before, after), not_shown = compare(before, few);

    assert_false(shown.is_paired);
    assert_int_equal(find(&shown, &shown.kernels, "gemm")->verdict, TP_CHANGE_BETTER);
    assert_true(find(&shown, &shown.kernels, "gemm")->e.hi < -90000);
    assert_int_equal(find(&not_shown, &not_shown.kernels, "gemm")->verdict, TP_CHANGE_NOT_SHOWN);
    assert_true(isnan(find(&not_shown, &not_shown.kernels, "gemm")->e.lo));
    tp_comparison_release(&shown);
    tp_comparison_release(&not_shown);
    tp_trace_close(before);
    tp_trace_close(after);
    tp_trace_close(few);
}

static void what_is_new_and_what_is_gone(void **state)
{
    tp_trace_file *before = steps_of(2, 300, "," KERNEL("old", 7, 900, 10, 99));
    tp_trace_file *after = steps_of(2, 300, "," KERNEL("new", 7, 900, 10, 99));

    tp_comparison c = compare(before, after);

    assert_int_equal(find(&c, &c.kernels, "old")->presence, TP_COMPARE_DISAPPEARED);
    assert_int_equal(find(&c, &c.kernels, "new")->presence, TP_COMPARE_APPEARED);
    assert_int_equal(find(&c, &c.kernels, "gemm")->presence, TP_COMPARE_IN_BOTH);
    tp_comparison_release(&c);
    tp_trace_close(before);
    tp_trace_close(after);
}

/* No spread, and more than the margin. */
static void steps_that_are_all_alike_are_compared_as_they_are(void **state)
{
    tp_trace_file *before = steps_of(8, 300, ""), *after = steps_of(8, 400, "");
    tp_trace_file *near = steps_of(8, 301, "");
    tp_comparison worse = compare(before, after), better = compare(after, before);
    tp_comparison same = compare(before, near);
    const tp_compare_row *row = find(&worse, &worse.kernels, "gemm");
    assert_int_equal(row->verdict, TP_CHANGE_WORSE);
    assert_true(row->e.lo == row->e.hi && row->e.lo == row->after_step - row->before_step);
    assert_int_equal(find(&better, &better.kernels, "gemm")->verdict, TP_CHANGE_BETTER);
    assert_int_equal(find(&same, &same.kernels, "gemm")->verdict, TP_CHANGE_SAME);
    tp_comparison_release(&worse);
    tp_comparison_release(&better);
    tp_comparison_release(&same);
    tp_trace_close(before);
    tp_trace_close(after);
    tp_trace_close(near);
}

static void equal_traces_are_the_same(void **state)
{
    tp_trace_file *file = steps_of(8, 300, "");

    tp_comparison c = compare(file, file);

    for (size_t i = 0; i < c.totals.n; i++)
        assert_int_equal(c.totals.rows[i].verdict, TP_CHANGE_SAME);
    tp_comparison_release(&c);
    tp_trace_close(file);
}

/* Of every device by itself: as long as a step of it, and its parts add up. */
static void devices_are_compared_together(void **state)
{
    tp_trace_file *file = read_turns();
    tp_comparison c = compare(file, file);
    (void)state;
    assert_int_equal(find(&c, &c.totals, "exposed communication")->after_ns, 200000);
    assert_int_equal(find(&c, &c.totals, "compute")->after_ns, 200000);
    assert_int_equal(find(&c, &c.totals, "device span")->after_ns, 400000);
    tp_comparison_release(&c);
    tp_trace_close(file);
}

/* ---- ranks ---- */

/* Collectives that end together at 100, 200, ... on a clock that is off; rank 1 arrives
 * last at all of them. */
static tp_trace_file *rank_of(int late, int clock)
{
    tp_buf text = {0};
    for (int i = 0; i < 10; i++)
        tp_buf_addf(
            &text,
            "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce\",\"pid\":0,"
            "\"tid\":7,\"ts\":%d,\"dur\":%d,\"args\":{\"device\":0,\"stream\":7,"
            "\"correlation\":%d,\"Collective name\":\"allreduce\",\"In msg nelems\":1000,"
            "\"Out msg nelems\":1000,\"Group size\":2,\"dtype\":\"Float\"}}",
            i ? "," : "", 100 * (i + 1) - 50 + late + clock, 50 - late, i + 1);
    tp_trace_file *file = read_trace("rank.json", tp_buf_str(&text));
    tp_buf_release(&text);
    return file;
}

/* Marks of Gloo do not say the group: they are counted, so that this can be told. */
static void collectives_of_gloo_are_counted(void **state)
{
    tp_trace_file *file = read_trace(
        "gloo.json", NOTE("gloo:all_reduce", 1, 0, 100) "," NOTE("gloo:barrier", 1, 200, 10));
    tp_selection s = select_all(file);
    const tp_selection *list[1] = {&s};
    const int64_t ranks[1] = {0};
    tp_rank_table t;
    (void)state;
    tp_ranks_make(list, ranks, 1, &t);
    assert_int_equal(t.ranks[0].by_gloo, 2);
    tp_ranks_release(&t);
    tp_selection_release(&s);
    tp_trace_close(file);
}

/* A fill of 1 us on another device is that much more, not half of all. */
static void a_stray_fill_on_another_device_changes_little(void **state)
{
    tp_buf text = {0};
    for (int i = 0; i < 10; i++)
        tp_buf_addf(
            &text,
            ",{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaMemsetAsync\",\"pid\":9,"
            "\"tid\":1,\"ts\":%d,\"dur\":2,\"args\":{\"correlation\":%d}},"
            "{\"ph\":\"X\",\"cat\":\"gpu_memset\",\"name\":\"Memset (Device)\",\"pid\":1,"
            "\"tid\":7,\"ts\":%d,\"dur\":1,\"args\":{\"device\":1,\"stream\":7,"
            "\"correlation\":%d}}",
            1000 * i + 16, 100 + i, 1000 * i + 30, 100 + i);
    tp_trace_file *before = steps_of(10, 500, ""), *after = steps_of(10, 500, tp_buf_str(&text));
    tp_comparison c = compare(before, after);
    const tp_compare_row *busy = find(&c, &c.totals, "device busy");
    (void)state;
    assert_int_equal(find(&c, &c.totals, "compute")->verdict, TP_CHANGE_SAME);
    assert_int_equal(busy->verdict, TP_CHANGE_SAME);
    assert_int_equal((int64_t)(busy->after_step - busy->before_step), 1000);
    assert_int_equal(c.before_devices, 1);
    assert_int_equal(c.after_devices, 2);
    tp_comparison_release(&c);
    tp_trace_close(before);
    tp_trace_close(after);
    tp_buf_release(&text);
}

static void a_rank_has_the_time_of_all_its_devices(void **state)
{
    tp_trace_file *file = read_turns();
    tp_selection s = select_all(file);
    const tp_selection *list[1] = {&s};
    const int64_t ranks[1] = {0};
    tp_rank_table t;
    (void)state;
    tp_ranks_make(list, ranks, 1, &t);
    assert_int_equal(t.ranks[0].n_devices, 2);
    assert_int_equal(t.ranks[0].sum.exposed_comm_ns, 200000);
    assert_int_equal(t.ranks[0].sum.overlap_ns, 0);
    tp_ranks_release(&t);
    tp_selection_release(&s);
    tp_trace_close(file);
}

static void the_straggler_is_found_behind_the_clocks(void **state)
{
    tp_trace_file *files[2] = {rank_of(0, 0), rank_of(30, 100000)};
    tp_selection s[2] = {select_all(files[0]), select_all(files[1])};
    const tp_selection *list[2] = {&s[0], &s[1]};
    const int64_t ranks[2] = {0, 1};
    tp_rank_table t;

    tp_ranks_make(list, ranks, 2, &t);

    assert_int_equal(t.matched, 10);
    assert_int_equal(t.ranks[1].offset_ns, 100000000);
    assert_int_equal(t.ranks[1].offset_spread_ns, 0);
    assert_int_equal(t.ranks[0].wait_ns, 10 * 30000);
    assert_int_equal(t.ranks[1].wait_ns, 0);
    assert_int_equal(t.ranks[1].last_to_arrive, 10);
    assert_int_equal(t.straggler, 1);
    assert_int_equal(t.n_collectives, 1);
    assert_int_equal(t.collectives[0].transfer_p50_ns, 20000);
    assert_int_equal(t.collectives[0].bytes, 4000);
    assert_true(fabs(t.collectives[0].busbw - 0.2e9) < 1);
    tp_ranks_release(&t);
    for (int i = 0; i < 2; i++) {
        tp_selection_release(&s[i]);
        tp_trace_close(files[i]);
    }
}

/* One kernel of communication, of 40 us less what it came late, that ends at `end`. */
static void add_comm(tp_buf *text, const char *name, int end, int late, const char *group,
                     int number, const char *more)
{
    tp_buf_addf(
        text,
        "%s{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"nccl\",\"pid\":0,\"tid\":7,\"ts\":%d,"
        "\"dur\":%d,\"args\":{\"device\":0,\"stream\":7,\"Collective name\":\"%s\",\"In msg "
        "nelems\":10,\"Out msg nelems\":10,\"dtype\":\"Float\",\"Process Group Name\":\"%s\","
        "\"Seq\":%d%s}}",
        text->len ? "," : "", end - 40 + late, 40 - late, name, group, number, more);
}

static void ranks_of(tp_buf *texts, size_t n, tp_rank_table *ret)
{
    tp_trace_file *files[4];
    tp_selection s[4];
    const tp_selection *list[4];
    const int64_t ranks[4] = {0, 1, 2, 3};
    for (size_t i = 0; i < n; i++) {
        files[i] = read_trace("rank.json", tp_buf_str(&texts[i]));
        s[i] = select_all(files[i]);
        list[i] = &s[i];
    }
    tp_ranks_make(list, ranks, n, ret);
    for (size_t i = 0; i < n; i++) {
        tp_selection_release(&s[i]);
        tp_trace_close(files[i]);
        tp_buf_release(&texts[i]);
    }
}

/* PyTorch counts collectives and what goes between two ranks apart, both as "Seq". */
static void a_send_is_no_collective_of_the_same_number(void **state)
{
    tp_buf texts[2] = {{0}};
    tp_rank_table t;
    for (int rank = 0; rank < 2; rank++)
        for (int i = 1; i <= 3; i++) {
            add_comm(&texts[rank], "allreduce", 200 * i, rank ? 15 : 0, "0", i,
                     ",\"Group size\":2");
            add_comm(&texts[rank], rank ? "recv" : "send", 200 * i + 100, 0, "0", i,
                     ",\"Group size\":2");
        }
    ranks_of(texts, 2, &t);
    assert_int_equal(t.matched, 6);
    assert_int_equal(t.ranks[0].wait_ns, 3 * 15000);
    assert_int_equal(t.straggler, 1);
    tp_ranks_release(&t);
}

/* Of a pipeline, rank 1 has its second transfer with rank 2, which has its first. */
static void what_goes_between_two_ranks_meets_by_both(void **state)
{
    tp_buf texts[3] = {{0}}, blind[3] = {{0}};
    /* PyTorch names the other end alone. */
    const char *from_0 = ",\"Group size\":3,\"Src Rank\":0",
               *to_1 = ",\"Group size\":3,\"Dst Rank\":1";
    const char *from_1 = ",\"Group size\":3,\"Src Rank\":1",
               *to_2 = ",\"Group size\":3,\"Dst Rank\":2";
    tp_rank_table t;
    add_comm(&texts[0], "send", 100, 0, "0", 1, to_1);
    add_comm(&texts[1], "recv", 100, 10, "0", 1, from_0);
    add_comm(&texts[1], "send", 200, 20, "0", 2, to_2);
    add_comm(&texts[2], "recv", 200, 0, "0", 1, from_1);
    ranks_of(texts, 3, &t);
    assert_int_equal(t.matched, 2);
    assert_int_equal(t.ranks[0].wait_ns, 10000);
    assert_int_equal(t.ranks[2].wait_ns, 20000);
    assert_int_equal(t.straggler, 1);
    tp_ranks_release(&t);

    add_comm(&blind[0], "send", 100, 0, "0", 1, ",\"Group size\":3");
    add_comm(&blind[1], "recv", 100, 0, "0", 1, ",\"Group size\":3");
    add_comm(&blind[2], "recv", 200, 0, "0", 1, ",\"Group size\":3");
    ranks_of(blind, 3, &t);
    assert_int_equal(t.matched, 0);
    assert_int_equal(t.ranks[2].pairs_unknown, 1);
    tp_ranks_release(&t);
}

static void groups_that_share_nothing_are_judged_apart(void **state)
{
    enum { RANKS = 4 };
    tp_buf texts[RANKS] = {{0}};
    tp_rank_table t;
    for (int rank = 0; rank < RANKS; rank++)
        for (int i = 1; i <= 3; i++)
            add_comm(&texts[rank], "allreduce", 200 * i + 5000 * rank, rank == 2 ? 30 : 0,
                     rank < 2 ? "a" : "b", i, ",\"Group size\":2");
    ranks_of(texts, RANKS, &t);
    assert_int_equal(t.n_sets, 2);
    assert_int_equal(t.matched, 6);
    assert_int_equal(t.ranks[3].set, 1);
    assert_int_equal(t.ranks[3].offset_ns, 5000000);
    assert_int_equal(t.ranks[3].wait_ns, 3 * 30000);
    assert_int_equal(t.straggler, 2);
    tp_ranks_release(&t);
}

/* One that shares nothing is in no set, wherever it stands. */
static void a_rank_alone_is_no_set(void **state)
{
    enum { RANKS = 3 };
    tp_buf texts[RANKS] = {{0}};
    tp_rank_table t;
    for (int rank = 0; rank < RANKS; rank++)
        for (int i = 1; i <= 2; i++)
            add_comm(&texts[rank], "allreduce", 200 * i, 0, rank ? "a" : "b", i,
                     ",\"Group size\":2");
    ranks_of(texts, RANKS, &t);
    assert_int_equal(t.n_sets, 1);
    assert_int_equal(t.matched, 2);
    assert_int_equal(t.ranks[0].offset_ns, TP_UNKNOWN);
    assert_int_equal(t.ranks[1].offset_ns, 0);
    tp_ranks_release(&t);
}

/* Ranks 0 and 2 share nothing but rank 1. */
static void clocks_are_aligned_over_others(void **state)
{
    enum { RANKS = 3 };
    tp_buf texts[RANKS] = {{0}};
    tp_rank_table t;
    for (int rank = 0; rank < RANKS; rank++)
        for (int i = 1; i <= 3; i++) {
            if (rank < 2)
                add_comm(&texts[rank], "allreduce", 400 * i + 700 * rank, 0, "a", i,
                         ",\"Group size\":2");
            if (rank > 0)
                add_comm(&texts[rank], "allreduce", 400 * i + 100 + 700 * rank, rank == 1 ? 10 : 0,
                         "b", i, ",\"Group size\":2");
        }
    ranks_of(texts, RANKS, &t);
    assert_int_equal(t.n_sets, 1);
    assert_int_equal(t.ranks[2].offset_ns, 1400000);
    assert_int_equal(t.ranks[2].wait_ns, 3 * 10000);
    tp_ranks_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_faster_kernel_is_better),
        cmocka_unit_test(a_verdict_needs_evidence),
        cmocka_unit_test(what_is_new_and_what_is_gone),
        cmocka_unit_test(equal_traces_are_the_same),
        cmocka_unit_test(steps_that_are_all_alike_are_compared_as_they_are),
        cmocka_unit_test(devices_are_compared_together),
        cmocka_unit_test(a_stray_fill_on_another_device_changes_little),
        cmocka_unit_test(a_rank_has_the_time_of_all_its_devices),
        cmocka_unit_test(collectives_of_gloo_are_counted),
        cmocka_unit_test(the_straggler_is_found_behind_the_clocks),
        cmocka_unit_test(a_send_is_no_collective_of_the_same_number),
        cmocka_unit_test(what_goes_between_two_ranks_meets_by_both),
        cmocka_unit_test(groups_that_share_nothing_are_judged_apart),
        cmocka_unit_test(a_rank_alone_is_no_set),
        cmocka_unit_test(clocks_are_aligned_over_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
