/* test_stability.c - the loss scale against torch.amp.GradScaler and against its rules written down
 * once more, what is unusual beside the steps before, and the watchdog. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/rng.h"
#include "engine/train/guards.h"
#include "text/json/json.h"

static tp_error err;

/* ---- loss scale ---- */

static double number(const tp_json *row, const char *key)
{
    double value = NAN;
    assert_true(tp_json_f64(tp_json_get(row, key), &value));
    return value;
}

static void expect_sequence(const tp_json *run)
{
    tp_loss_scaler s = {.scale = (float)number(run, "init_scale"),
                        .growth_factor = number(run, "growth_factor"),
                        .backoff_factor = number(run, "backoff_factor"),
                        .growth_interval = (int64_t)number(run, "growth_interval")};
    for (const tp_json *row = tp_json_get(run, "rows")->child; row; row = row->next) {
        assert_true((double)s.scale == number(row, "scale_before"));
        tp_loss_scaler_update(&s, number(row, "found_inf") > 0);
        assert_true((double)s.scale == number(row, "scale_after"));
        assert_int_equal(s.growth_tracker, (int64_t)number(row, "growth_tracker"));
    }
}

static void the_scale_follows_torch(void **unused)
{
    (void)unused;
    static const char path[] = TP_SOURCE_DIR "/tests/data/reference/optimizers/gradscaler.json";
    tp_buf text = {0};
    tp_arena arena;
    const tp_json *root;
    int n = 0;
    assert_int_equal(tp_file_read(path, 1 << 20, &text, &err), TP_OK);
    assert_int_equal(tp_arena_init(&arena, 16 << 20, &err), TP_OK);
    assert_int_equal(tp_json_parse(&arena, path, text.data, text.len, NULL, &root, &err), TP_OK);
    for (const tp_json *run = root->child; run; run = run->next, n++)
        expect_sequence(run);
    assert_int_equal(n, 4);
    tp_arena_release(&arena);
    tp_buf_release(&text);
}

/* After any sequence the scale is its first value times one factor for each overflow and one for
 * each whole interval between overflows, unless it would have become infinite. */
static void any_sequence_follows_the_rules(void **unused)
{
    (void)unused;
    for (uint64_t seed = 0; seed < 200; seed++) {
        const int64_t interval = 1 + (int64_t)(seed % 7);
        tp_loss_scaler s = {
            .scale = 65536, .growth_factor = 2, .backoff_factor = 0.5, .growth_interval = interval};
        int exponent = 16;
        int64_t run = 0;
        tp_rng rng = tp_rng_make(seed, 1);
        for (int i = 0; i < 300; i++) {
            bool overflowed = tp_rng_below(&rng, 9) < 2;
            run = overflowed ? 0 : run + 1;
            exponent += overflowed ? -1 : run % interval == 0 && exponent < 127;
            tp_loss_scaler_update(&s, overflowed);
            assert_true(s.scale == ldexpf(1, exponent));
            assert_int_equal(s.growth_tracker, run % interval);
        }
    }
}

static void a_scale_that_helps_no_more_is_an_error(void **unused)
{
    (void)unused;
    tp_loss_scaler s = {.scale = 65536, .growth_factor = 2, .backoff_factor = 0.5};
    s.growth_interval = 2000;
    int n = 0;
    while (tp_loss_scaler_check(&s, &err) == TP_OK && n < 1000) {
        tp_loss_scaler_update(&s, true);
        n++;
    }
    assert_true(s.scale > 0);
    assert_int_equal(n, 144); /* 2^-128 */
    assert_int_equal(err.status, TP_ERR_NUMERIC);
}

/* ---- what is unusual ---- */

static void a_percentile_is_of_the_last_numbers(void **unused)
{
    (void)unused;
    tp_step_history h = {0};
    assert_true(isnan(tp_step_history_percentile(&h, 100, 50)));
    for (int i = 1; i <= 300; i++)
        tp_step_history_add(&h, i);
    assert_true(tp_step_history_percentile(&h, 100, 0) == 201);
    assert_true(tp_step_history_percentile(&h, 100, 5) == 206);
    assert_true(tp_step_history_percentile(&h, 100, 100) == 300);
    assert_true(tp_step_history_at(&h, 3, 0) == 298);
}

static void a_spike_is_counted_in_robust_deviations(void **unused)
{
    (void)unused;
    tp_step_history h = {0};
    for (int i = 0; i < 9; i++)
        tp_step_history_add(&h, 1 + 0.1 * i);
    assert_true(isnan(tp_step_history_spike(&h, 50, 100))); /* too few to tell */
    tp_step_history_add(&h, 1.9);
    tp_step_history_add(&h, 1.4);
    /* median 1.4, median distance from it 0.2 */
    assert_true(fabs(tp_step_history_spike(&h, 50, 4.3652) - 10) < 1e-9);
    assert_true(tp_step_history_spike(&h, 50, 0) < 0);
    assert_true(isnan(tp_step_history_spike(&h, 50, NAN)));
}

static void losses_that_are_all_alike_have_a_spread_still(void **unused)
{
    (void)unused;
    tp_step_history h = {0};
    for (int i = 0; i < 20; i++)
        tp_step_history_add(&h, 2);
    assert_true(fabs(tp_step_history_spike(&h, 50, 2.02) - 1) < 1e-9);
}

/* ---- watchdog ---- */

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t said;
    int64_t what;
    int n;
} listener;

static void hear(void *user, int64_t what, double limit_s)
{
    listener *l = user;
    assert_true(limit_s == 0.001);
    pthread_mutex_lock(&l->lock);
    l->what = what;
    l->n++;
    pthread_cond_signal(&l->said);
    pthread_mutex_unlock(&l->lock);
}

static void what_takes_too_long_is_said_once(void **unused)
{
    (void)unused;
    listener l = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    tp_watchdog *w;
    assert_int_equal(tp_watchdog_start(hear, &l, &w, &err), TP_OK);
    tp_watchdog_begin(w, 6, NAN); /* not watched */
    tp_watchdog_end(w);
    tp_watchdog_begin(w, 7, 0.001);
    pthread_mutex_lock(&l.lock);
    while (l.n == 0)
        pthread_cond_wait(&l.said, &l.lock);
    pthread_mutex_unlock(&l.lock);
    tp_watchdog_end(w);
    tp_watchdog_begin(w, 8, 1000); /* done in time */
    tp_watchdog_stop(w);
    assert_int_equal(l.what, 7);
    assert_int_equal(l.n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_scale_follows_torch),
        cmocka_unit_test(any_sequence_follows_the_rules),
        cmocka_unit_test(a_scale_that_helps_no_more_is_an_error),
        cmocka_unit_test(a_percentile_is_of_the_last_numbers),
        cmocka_unit_test(a_spike_is_counted_in_robust_deviations),
        cmocka_unit_test(losses_that_are_all_alike_have_a_spread_still),
        cmocka_unit_test(what_takes_too_long_is_said_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
