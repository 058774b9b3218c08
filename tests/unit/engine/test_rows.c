/* test_rows.c - a run with fewer rows than a graph was made for. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/platform.h"
#include "engine/exec/exec_build.h"
#include "engine/exec/rows.h"
#include "property/evaluate.h"
#include "support/devices.h"

static void parse(const char *text, tp_graph *ret)
{
    tp_error err;
    if (tp_graph_parse("t", text, strlen(text), ret, &err) != TP_OK)
        fail_msg("%s", err.message);
}

/* What is as long as the ids: columns of log-sum-exps and rows of their gradients, but neither
 * weights nor their gradients, nor where sequences start, nor the rows of a table. */
static void lengths_follow_the_letters_of_signatures(void **state)
{
    (void)state;
    static const char text[] =
        "%1 = input i32[6] \"ids\"\n%2 = state f32[9,8] \"table\" role=weight\n"
        "%3 = embed %1, %2\n%4 = input i32[7] \"cu\"\n"
        "%5, %6, %7 = split %3 {n0=4, n1=2, n2=2}\n"
        "%8, %9 = attention %5, %6, %7, %4 {heads=2, kv_heads=1, head_dim=2, scale=1}\n"
        "%10, %11, %12 = attention_grad %5, %6, %7, %8, %9, %8, %4 "
        "{heads=2, kv_heads=1, head_dim=2, scale=1}\n"
        "%13 = linear_dw %8, %10 \"dw\"\n%14 = input i32[3] \"last\"\n%15 = embed %14, %8\n"
        "output %13\noutput %15\n";
    enum { IDS = 1, LAST = 14 };
    static const struct {
        tp_ref value, rows, columns;
    } wanted[] = {{2, 0, 0},   {3, IDS, 0},  {4, 4, 0},    {7, IDS, 0}, {8, IDS, 0},
                  {9, 0, IDS}, {10, IDS, 0}, {12, IDS, 0}, {13, 0, 0},  {15, LAST, 0}};
    tp_graph g;
    tp_arena arena;
    parse(text, &g);
    MUST(tp_arena_init(&arena, 1 << 20, NULL));
    const tp_rows *rows = tp_rows_find(&g, &arena);
    for (size_t i = 0; i < TP_COUNTOF(wanted); i++) {
        assert_int_equal(rows[wanted[i].value].of[0].input, wanted[i].rows);
        assert_int_equal(rows[wanted[i].value].of[1].input, wanted[i].columns);
    }
    tp_arena_release(&arena);
    tp_graph_release(&g);
}

/* A share of three rows, from the third on, of as many as there are; gathered they are all again. */
static void a_share_counts_what_is_in_it(void **state)
{
    (void)state;
    static const char text[] = "%1 = input f32[7,4] \"x\"\n"
                               "%2 = scatter_rows %1 {n0=3, n1=3, bucket=1}\n"
                               "%3 = wait %2 {bucket=1}\n%4 = silu %3\n"
                               "%5 = gather_rows %4 {n0=7, n1=3, bucket=2}\n"
                               "%6 = wait %5 {bucket=2}\noutput %6\n";
    static const struct {
        int64_t of, in_share;
    } wanted[] = {{7, 3}, {5, 2}, {3, 0}, {0, 0}};
    tp_graph g;
    tp_arena arena;
    parse(text, &g);
    MUST(tp_arena_init(&arena, 1 << 20, NULL));
    const tp_rows *rows = tp_rows_find(&g, &arena);
    for (size_t i = 0; i < TP_COUNTOF(wanted); i++) {
        assert_int_equal(tp_rows_of(&rows[4].of[0], wanted[i].of), wanted[i].in_share);
        assert_int_equal(tp_rows_of(&rows[6].of[0], wanted[i].of), wanted[i].of);
    }
    tp_arena_release(&arena);
    tp_graph_release(&g);
}

/* y = x w and dw = dy^T x, of 64 rows; a product of very few is another. */
enum { ALL = 64, FEW = 40 };
static const char product[] = "%1 = input f32[64,4] \"x\"\n%2 = input f32[64,2] \"dy\"\n"
                              "%3 = state f32[2,4] \"w\" role=weight\n"
                              "%4 = linear %1, %3\n%5 = linear_dw %1, %2\noutput %4\noutput %5\n";

typedef struct {
    tp_graph g;
    environment env;
    tp_exec *exec;
    tp_exec_pool pool;
} setup;

static void begin(setup *s, const char *text, const char *backend)
{
    tp_device *device = device_of(backend, 1);
    const tp_exec_options options = {.device = device, .share_memory = true};
    tp_error err;
    *s = (setup){0};
    parse(text, &s->g);
    environment_init(&s->env, 1, false);
    environment_add(&s->env, &s->g);
    environment_next_batch(&s->env, 0);
    if (tp_exec_create(&s->g, &options, &s->exec, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_exec_pool_fit(&s->pool, s->exec);
    MUST(tp_exec_pool_alloc(&s->pool, device, NULL));
    MUST(tp_exec_bind(s->exec, &s->env.states, &s->pool, NULL));
}

static void end(setup *s)
{
    tp_exec_free(s->exec);
    tp_exec_pool_release(&s->pool);
    environment_release(&s->env);
    tp_graph_release(&s->g);
}

static void run(setup *s, const float *x, const float *dy, int64_t rows)
{
    const float *data[] = {x, dy};
    static const char *const names[] = {"x", "dy"};
    for (int i = 0; i < 2; i++) {
        int input = tp_exec_input(s->exec, names[i]);
        tp_exec_set_rows(s->exec, input, rows);
        MUST(tp_exec_write(s->exec, input, data[i], rows, NULL));
    }
    MUST(tp_exec_run(s->exec, false, NULL));
}

static void check_first_rows(const char *backend)
{
    float x[4 * ALL], dy[2 * ALL] = {0}, y[2 * ALL], dw[8];
    setup s;
    for (int i = 0; i < 4 * ALL; i++)
        x[i] = sinf((float)i);
    for (int i = 0; i < 2 * FEW; i++)
        dy[i] = cosf((float)i);
    begin(&s, product, backend);
    run(&s, x, dy, ALL);
    memcpy(y, data_at(tp_exec_output(s.exec, 0)), sizeof y);
    memcpy(dw, data_at(tp_exec_output(s.exec, 1)), sizeof dw);
    float *now = data_at(tp_exec_output(s.exec, 0));
    for (int i = 0; i < 2 * ALL; i++)
        now[i] = 7;

    run(&s, x, dy, FEW);

    assert_int_equal(tp_exec_output(s.exec, 0)->dim[0], FEW);
    assert_memory_equal(now, y, 2 * FEW * sizeof *y);
    for (int i = 2 * FEW; i < 2 * ALL; i++)
        assert_true(now[i] == 7);
    assert_memory_equal(data_at(tp_exec_output(s.exec, 1)), dw, sizeof dw);
    run(&s, x, dy, ALL); /* and back */
    assert_memory_equal(data_at(tp_exec_output(s.exec, 0)), y, sizeof y);
    end(&s);
}

static void fewer_rows_are_the_first_of_all_of_them(void **state)
{
    (void)state;
    check_first_rows("ref");
    check_first_rows("cpu");
}

/* Half of the rows are half of the arithmetic, but the weight is read whole. */
static void work_is_that_of_the_rows(void **state)
{
    (void)state;
    float x[4 * ALL] = {0}, dy[2 * ALL] = {0};
    setup s;
    begin(&s, product, "ref");
    run(&s, x, dy, ALL / 2);
    for (size_t i = 0; i < 2; i++) { /* the product and that of its gradient */
        const tp_launch_info *l = tp_exec_launch(s.exec, i);
        assert_true(l->flops == 1024 && l->done_flops == 512);
        assert_true(l->bytes == 4 * (256 + 128 + 8) && l->done_bytes == 4 * (128 + 64 + 8));
        assert_true(tp_launch_is_counted(l));
    }
    assert_true(tp_exec_flops(s.exec, true) == 2048); /* of the plan */
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_follow_the_letters_of_signatures),
        cmocka_unit_test(a_share_counts_what_is_in_it),
        cmocka_unit_test(fewer_rows_are_the_first_of_all_of_them),
        cmocka_unit_test(work_is_that_of_the_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
