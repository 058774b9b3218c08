/* test_schedules.c - learning rates over 50 steps against torch's schedulers.
 *
 * tests/data/reference/schedules.inc was made by tools/reference/make_schedules.py. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/platform.h"
#include "engine/train/schedule.h"

enum { STEPS = 50 };

static const struct {
    const char *config;
    double rates[STEPS];
} cases[] = {
#include "data/reference/schedules.inc"
};

static void rates_are_those_of_torch(void **state)
{
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        tp_arena arena;
        tp_error err = {0};
        tp_schedule schedule;
        const tp_json *config;
        tp_json_options options = TP_JSON_TOLERANT;
        const char *text = cases[i].config;
        assert_int_equal(tp_arena_init(&arena, 1 << 20, &err), TP_OK);
        assert_int_equal(tp_json_parse(&arena, "case", text, strlen(text), &options, &config, &err),
                         TP_OK);
        if (tp_schedule_parse(config, &schedule, &err) != TP_OK)
            fail_msg("%s: %s", text, err.message);
        for (int64_t step = 0; step < STEPS; step++) {
            double rate = tp_schedule_lr(&schedule, 0.01, step), want = cases[i].rates[step];
            /* torch multiplies step by step; near 0 rounding is all that is left */
            if (fabs(rate - want) > 1e-12 + 1e-9 * want)
                fail_msg("%s: step %d: %.17g instead of %.17g", text, (int)step, rate, want);
        }
        tp_arena_release(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rates_are_those_of_torch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
