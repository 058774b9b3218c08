/* test_train_progress.c - what a run says of work that goes on for long, and how the screen shows
 * it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/train_progress.h"
#include "base/clock.h"
#include "base/strings.h"
#include "base/terminal.h"

/* ---- the screen ---- */

static void keep(void *user, const char *text, size_t n) { tp_buf_add(user, text, n); }

/* What a screen has shown after events about work, one for each of n times; ends with an example
 * where there is a text. */
static void expect_screen(int mode, const double *seconds, size_t n, const char *example,
                          const char *wanted)
{
    TP_OWN(tp_buf) shown = {0};
    const tp_training_screen screen = {.size = sizeof screen, .print = keep, .user = &shown};
    tp_progress p;
    tp_progress_init(&p, mode, &screen);
    for (size_t i = 0; i < n; i++) {
        const tp_train_event e = {.kind = TP_EVENT_WORKING,
                                  .text = "tokenising rows.jsonl",
                                  .work_s = seconds[i],
                                  .work_share = seconds[i] / 50};
        tp_progress_event(&p, &e);
    }
    if (example)
        tp_progress_event(&p, &(tp_train_event){.kind = TP_EVENT_EXAMPLE, .text = example});
    assert_string_equal(tp_buf_str(&shown), wanted);
}

static void a_log_has_a_line_now_and_then(void **state)
{
    const double seconds[] = {10, 11, 12, 19, 20, 21, 39, 40};

    expect_screen(TP_PROGRESS_PLAIN, seconds, 8, NULL,
                  "tokenising rows.jsonl  20%  10.0 s, about 40.0 s to go\n"
                  "tokenising rows.jsonl  40%  20.0 s, about 30.0 s to go\n"
                  "tokenising rows.jsonl  80%  40.0 s, about 10.0 s to go\n");
}

static void the_next_work_is_told_from_its_tenth_second_on(void **state)
{
    const double seconds[] = {10, 11, 20, 10, 11};

    expect_screen(TP_PROGRESS_PLAIN, seconds, 5, NULL,
                  "tokenising rows.jsonl  20%  10.0 s, about 40.0 s to go\n"
                  "tokenising rows.jsonl  40%  20.0 s, about 30.0 s to go\n"
                  "tokenising rows.jsonl  20%  10.0 s, about 40.0 s to go\n");
}

static void json_has_an_event(void **state)
{
    const double seconds[] = {10, 11};

    expect_screen(TP_PROGRESS_JSON, seconds, 2, NULL,
                  "{\"event\":\"working\",\"step\":0,\"text\":\"tokenising rows.jsonl\","
                  "\"work_s\":10,\"work_share\":0.2}\n");
}

static void a_block_has_one_line_that_goes_before_what_follows(void **state)
{
    const double seconds[] = {10, 11};
    TP_OWN(tp_buf) wanted = {0};
    tp_buf_addf(&wanted, "tokenising rows.jsonl  20%%  10.0 s, about 40.0 s to go%s\n%s%s%s",
                tp_style(TP_LINE_ERASE), tp_style(TP_LINE_UP), tp_style(TP_LINE_BEGIN),
                tp_style(TP_BELOW_ERASE));
    tp_buf_addf(&wanted, "tokenising rows.jsonl  22%%  11.0 s, about 39.0 s to go%s\n%s%s%s",
                tp_style(TP_LINE_ERASE), tp_style(TP_LINE_UP), tp_style(TP_LINE_BEGIN),
                tp_style(TP_BELOW_ERASE));
    tp_buf_adds(&wanted, "rows  text\n");

    expect_screen(TP_PROGRESS_BLOCK, seconds, 2, "rows  text", tp_buf_str(&wanted));
}

static void quiet_is_quiet(void **state)
{
    const double seconds[] = {10, 20};

    expect_screen(TP_PROGRESS_QUIET, seconds, 2, NULL, "");
}

/* ---- the block, by its width ---- */

static int columns;
static int get_columns(void *user) { return columns; }

/* The first line after step 61 of 400. */
static void expect_head(int width, const char *wanted)
{
    TP_OWN(tp_buf) shown = {0}, line = {0};
    const tp_training_screen screen = {
        .size = sizeof screen, .print = keep, .user = &shown, .columns = get_columns};
    const tp_run_plan plan = {0};
    const tp_metric_bus bus = {0};
    const tp_train_event e = {.kind = TP_EVENT_STEP,
                              .algorithm = tp_algorithms[0],
                              .metrics = &bus,
                              .plan = &plan,
                              .model_name = "models/SmolLM2-135M-Instruct",
                              .run_name = "sft",
                              .step = 61,
                              .max_steps = 400,
                              .elapsed_s = 4.5,
                              .eta_s = 25,
                              .eta_low_s = 24,
                              .eta_high_s = 26,
                              .last_checkpoint_step = -1};
    tp_progress p;
    columns = width;
    tp_progress_init(&p, TP_PROGRESS_BLOCK, &screen);
    tp_progress_event(&p, &e);
    tp_buf_addf(&line, "%s%s\n", wanted, tp_style(TP_LINE_ERASE));
    assert_true(shown.len > line.len);
    shown.data[line.len] = 0;
    assert_string_equal(shown.data, line.data);
}

static void a_narrow_screen_keeps_the_time_to_go(void **state)
{
    expect_head(120, "SFT SmolLM2-135M-Instruct  run sft  step 61/400 ▕██▍             ▏ 15%  "
                     "elapsed 4.5 s  ETA 25.0 s (24.0 s-26.0 s)");
    expect_head(100, "SFT SmolLM2-135M-Instruct  run sft  step 61/400 ▕██▍             ▏ 15%  "
                     "elapsed 4.5 s  ETA 25.0 s");
    expect_head(80, "SFT SmolLM2-135M-Instruct  run sft  step 61/400  15%  ETA 25.0 s");
    expect_head(40, "run sft  step 61/400  15%  ETA 25.0 s");
    expect_head(24, "step 61/400 ETA 25.0 s");
}

/* Before the first update there is no learning rate: an event without metrics. */
static void a_learning_rate_that_is_not_known_says_so(void **state)
{
    TP_OWN(tp_buf) block = {0}, json = {0};
    const tp_run_plan plan = {0};
    const tp_metric_bus bus = {0};
    columns = 200;
    for (size_t i = 0; tp_algorithms[i]; i++) {
        const tp_training_screen screen = {
            .size = sizeof screen, .print = keep, .user = &block, .columns = get_columns};
        const tp_train_event e = {.kind = TP_EVENT_STEP,
                                  .algorithm = tp_algorithms[i],
                                  .metrics = &bus,
                                  .plan = &plan,
                                  .run_name = "r",
                                  .max_steps = 4,
                                  .eta_s = NAN};
        tp_progress p;
        tp_buf_clear(&block);
        tp_progress_init(&p, TP_PROGRESS_BLOCK, &screen);
        tp_progress_event(&p, &e);
        assert_non_null(strstr(block.data, "lr unknown"));
        const tp_training_screen events = {.size = sizeof events, .print = keep, .user = &json};
        tp_progress_init(&p, TP_PROGRESS_JSON, &events);
        tp_progress_event(&p, &e);
        assert_non_null(strstr(json.data, "\"lr\":null"));
    }
}

/* ---- when it is told ---- */

typedef struct {
    int n;
    char text[64];
    double share;
} told;

static void listen(void *user, const tp_train_event *e)
{
    told *to = user;
    assert_int_equal(e->kind, TP_EVENT_WORKING);
    to->n++;
    snprintf(to->text, sizeof to->text, "%s", e->text);
    to->share = e->work_share;
}

static void what_has_gone_on_for_ten_seconds_is_told(void **state)
{
    told to = {0};
    const tp_train_hooks hooks = {.observe = listen, .user = &to};
    trainer t = {.hooks = &hooks};

    tp_trainer_working(&t, "reading", 1, 4);
    assert_int_equal(to.n, 0); /* it begins */
    t.work.begin_s = t.work.told_s = tp_clock_s() - 11;
    tp_trainer_working(&t, "reading", 2, 4);

    assert_int_equal(to.n, 1);
    assert_string_equal(to.text, "reading");
    assert_true(to.share == 0.5);
}

static void another_work_begins_anew(void **state)
{
    told to = {0};
    const tp_train_hooks hooks = {.observe = listen, .user = &to};
    trainer t = {.hooks = &hooks};

    tp_trainer_working(&t, "reading", 1, 4);
    t.work.begin_s = t.work.told_s = tp_clock_s() - 11;
    tp_trainer_working(&t, "tokenising", 1, 4);
    t.work.begin_s = t.work.told_s = tp_clock_s() - 11;
    tp_trainer_working(&t, "tokenising", 0, 4); /* the same once more */

    assert_int_equal(to.n, 0);
}

static void a_share_that_nobody_knows_is_none(void **state)
{
    told to = {0};
    const tp_train_hooks hooks = {.observe = listen, .user = &to};
    trainer t = {.hooks = &hooks, .state = {.step = 4}};

    tp_trainer_stepping(&t, "answers", 0, 0);
    t.work.begin_s = t.work.told_s = tp_clock_s() - 11;
    tp_trainer_stepping(&t, "answers", 0, 0);

    assert_string_equal(to.text, "step 5, answers");
    assert_true(isnan(to.share));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_has_a_line_now_and_then),
        cmocka_unit_test(the_next_work_is_told_from_its_tenth_second_on),
        cmocka_unit_test(json_has_an_event),
        cmocka_unit_test(a_block_has_one_line_that_goes_before_what_follows),
        cmocka_unit_test(quiet_is_quiet),
        cmocka_unit_test(a_narrow_screen_keeps_the_time_to_go),
        cmocka_unit_test(a_learning_rate_that_is_not_known_says_so),
        cmocka_unit_test(what_has_gone_on_for_ten_seconds_is_told),
        cmocka_unit_test(another_work_begins_anew),
        cmocka_unit_test(a_share_that_nobody_knows_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
