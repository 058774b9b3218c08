/* leak.c - a test for growth after the warm-up. */
#include "instrument/analyze/leak.h"

#include <math.h>

#include "base/platform.h"
#include "stats/changepoint.h"
#include "stats/trend.h"

static const double ALPHA = 0.01, LEVEL = 0.95, SMALLEST_BYTES = 1024, SMALLEST_SHARE = 1e-6;
enum { CORRECT_FROM = 30, SEARCH_UP_TO = 400 };

const char *tp_leak_verdict_name(tp_leak_verdict verdict)
{
    static const char *const names[] = {"cannot tell", "no growth shown", "grew, then stopped",
                                        "growing"};
    return names[verdict];
}

/* Does memory grow in another way behind `at`?  A trend is as steep on both sides of its middle. */
static tp_status has_bend(const double *y, size_t n, size_t at, bool *ret, tp_error *err)
{
    tp_theil_sen_result before, behind;
    TP_TRY(tp_theil_sen(NULL, y, at, LEVEL, &before, err));
    TP_TRY(tp_theil_sen(NULL, y + at, n - at, LEVEL, &behind, err));
    *ret = behind.hi < before.lo || behind.lo > before.hi;
    return TP_OK;
}

/* The steps that belong to warm-up: up to the last change of level in the first half at which
 * memory begins to grow in another way. */
static tp_status find_warm_up(const double *y, size_t n, size_t *ret, tp_error *err)
{
    size_t drop = 0;
    for (bool is_bend = n <= SEARCH_UP_TO; is_bend;) {
        tp_level_split split = {0};
        TP_TRY(tp_edivisive(y + drop, n - drop, 3, false, &split, err));
        size_t to = drop + split.tau;
        is_bend = split.tau > 0 && to <= n / 2 && n - to >= TP_LEAK_MIN_STEPS;
        if (is_bend)
            TP_TRY(has_bend(y + drop, n - drop, split.tau, &is_bend, err));
        drop = is_bend ? to : drop;
    }
    *ret = TP_MAX(drop, TP_LEAK_MIN_WARM_UP);
    return TP_OK;
}

static tp_status rising(const double *y, size_t n, double *ret_p, bool *ret_corrected,
                        tp_error *err)
{
    tp_mann_kendall_result mk;
    TP_TRY(tp_mann_kendall(NULL, y, n, 0.05, &mk, err));
    *ret_corrected = n >= CORRECT_FROM && mk.corrected_p_increasing > mk.p_increasing;
    *ret_p = *ret_corrected ? mk.corrected_p_increasing : mk.p_increasing;
    return TP_OK;
}

/* Equal values at the end, no more than stood still between two rises: a stair, of what grows now
 * and then.  What stood still before the first of them is no step of it. */
static bool is_stair(const double *y, size_t n)
{
    size_t run = 0, longest = 0;
    bool has_risen = false;
    for (size_t i = 0; i < n; i++) {
        bool is_level = i > 0 && y[i] == y[i - 1];
        if (!is_level && has_risen && run > longest)
            longest = run;
        has_risen |= i > 0 && !is_level;
        run = is_level ? run + 1 : 1;
    }
    return run > 1 && run <= longest;
}

/* Is the last third flat?  A steady leak is not. */
static tp_status is_flat_at_the_end(const double *y, size_t n, double smallest, bool *ret,
                                    tp_error *err)
{
    size_t third = n / 3;
    tp_theil_sen_result sen;
    *ret = false;
    if (third < 4)
        return TP_OK;
    TP_TRY(tp_theil_sen(NULL, y + n - third, third, LEVEL, &sen, err));
    *ret = fabs(sen.slope) < smallest && !is_stair(y, n);
    return TP_OK;
}

tp_status tp_leak_test(const double *y, size_t n, const tp_leak_options *o, tp_leak *ret,
                       tp_error *err)
{
    tp_leak r = {.n_steps = n,
                 .p_rising = (double)NAN,
                 .slope = (double)NAN,
                 .lo = (double)NAN,
                 .hi = (double)NAN,
                 .smallest_slope = (double)NAN,
                 .last_bytes = n ? y[n - 1] : (double)NAN,
                 .steps_to_limit = (double)NAN};
    tp_theil_sen_result sen;
    bool is_flat = false;
    if (n < (o->is_warm ? TP_LEAK_MIN_WARM_STEPS : TP_LEAK_MIN_WARM_UP + TP_LEAK_MIN_STEPS)) {
        *ret = r;
        return TP_OK;
    }
    if (!o->is_warm)
        TP_TRY(find_warm_up(y, n, &r.n_dropped, err));
    r.n_used = n - r.n_dropped;
    const double *used = y + r.n_dropped;
    r.smallest_slope =
        fmax(fmax(SMALLEST_BYTES, o->grain_bytes), SMALLEST_SHARE * fabs(r.last_bytes));
    TP_TRY(rising(used, r.n_used, &r.p_rising, &r.is_corrected, err));
    TP_TRY(tp_theil_sen(NULL, used, r.n_used, LEVEL, &sen, err));
    TP_TRY(is_flat_at_the_end(used, r.n_used, r.smallest_slope, &is_flat, err));
    r.slope = sen.slope;
    r.lo = sen.lo;
    r.hi = sen.hi;
    bool rises = r.p_rising < ALPHA && r.lo > r.smallest_slope;
    r.verdict = !rises ? TP_LEAK_NONE : is_flat ? TP_LEAK_PLATEAU : TP_LEAK_GROWING;
    if (r.verdict == TP_LEAK_GROWING && o->limit_bytes > r.last_bytes)
        r.steps_to_limit = (o->limit_bytes - r.last_bytes) / r.slope;
    *ret = r;
    return TP_OK;
}

tp_status tp_leak_group(const double *y, size_t n, double *ret_p, double *ret_slope, tp_error *err)
{
    bool is_corrected;
    tp_theil_sen_result sen;
    *ret_p = *ret_slope = (double)NAN;
    if (n < TP_LEAK_MIN_STEPS)
        return TP_OK;
    TP_TRY(rising(y, n, ret_p, &is_corrected, err));
    TP_TRY(tp_theil_sen(NULL, y, n, LEVEL, &sen, err));
    *ret_slope = sen.slope;
    return TP_OK;
}
