/* alarm_series.c - windows of a series, and what may be said of them. */
#include "instrument/monitor/alarm_series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "base/vec.h"
#include "stats/descriptive.h"
#include "temper/text.h"

enum {
    LEAST_WINDOW = 15,
    LEAST_REST = 20, /* of the whole run, where no window was given */
    NEWEST_OF_RUN = 20,
    LEAST_ERRORS = 4,  /* standard errors that a change is above */
    SPREAD = 4,        /* windows from which the spread is taken */
    NEWEST = 8,        /* times the newest values: where it is as it is now */
    FIRST_OF_RUN = 10, /* for a collapse */
    ROOM = 64,         /* values that are kept at first, ... */
    USUAL = 8192,      /* ... and without a window that needs more */
    OF_RUN = 4096,     /* values that "all before" and a spread are taken from, at most */
    CHANGE_STEPS = 50,
    FLAT_STEPS = 100,
    REPEATED = 10,
    COLLAPSED = 5
};

void tp_alarm_series_release(tp_alarm_series *s)
{
    free(s->step);
    free(s->wall);
    free(s->value);
    free(s->scratch);
    *s = (tp_alarm_series){0};
}

/* The window of a change, where none was given too. */
static const tp_alarm_window *over_of(const tp_alarm_condition *c)
{
    static const tp_alarm_window of_change = {.length = CHANGE_STEPS},
                                 of_flat = {.length = FLAT_STEPS};
    bool is_change = c->predicate == TP_ALARM_RISES || c->predicate == TP_ALARM_FALLS;
    if (c->over.length > 0 || (!is_change && c->predicate != TP_ALARM_FLAT))
        return &c->over;
    return is_change ? &of_change : &of_flat;
}

/* Is the window longer than the newest half of what is kept? */
static bool is_wider(const tp_alarm_series *s, const tp_alarm_window *w)
{
    const double *at = w->is_time ? s->wall : s->step;
    return s->n && !isinf(w->length) && at[s->n - 1] - w->length < at[s->n / 2];
}

static void make_room(tp_alarm_series *s, const tp_alarm_condition *c)
{
    if (s->n < s->cap)
        return;
    bool is_short = s->cap >= USUAL && (is_wider(s, over_of(c)) || is_wider(s, &c->hold));
    if (s->cap < USUAL || (is_short && s->cap < 2 * (size_t)TP_ALARM_MOST_VALUES)) {
        s->cap = s->cap ? 2 * s->cap : ROOM;
        s->step = tp_vec_resize(s->step, s->cap, sizeof *s->step);
        s->wall = tp_vec_resize(s->wall, s->cap, sizeof *s->wall);
        s->value = tp_vec_resize(s->value, s->cap, sizeof *s->value);
        s->scratch = tp_vec_resize(s->scratch, s->cap, sizeof *s->scratch);
        return;
    }
    size_t kept = s->n / 2, from = s->n - kept;
    s->is_cut |= is_short;
    memmove(s->step, s->step + from, kept * sizeof *s->step);
    memmove(s->wall, s->wall + from, kept * sizeof *s->wall);
    memmove(s->value, s->value + from, kept * sizeof *s->value);
    s->n = kept;
}

void tp_alarm_series_add(tp_alarm_series *s, const tp_alarm_condition *c, double step, double wall,
                         double value)
{
    step = isnan(step) ? (double)s->n_seen : step;
    make_room(s, c);
    while (s->n && (s->step[s->n - 1] > step ||
                    (s->step[s->n - 1] == step && !(wall > s->wall[s->n - 1])))) {
        s->n--;
        s->rest.n = 0;
    }
    s->newest = value;
    s->n_seen++;
    if (!isfinite(value))
        return;
    if (s->n_first < sizeof s->first / sizeof *s->first)
        s->first[s->n_first++] = value;
    s->step[s->n] = step;
    s->wall[s->n] = wall;
    s->value[s->n++] = value;
}

/* ---- windows ---- */

/* Values of the window: 0 while it is not full. */
static size_t window_size(const tp_alarm_series *s, const tp_alarm_window *window)
{
    const double *at = window->is_time ? s->wall : s->step;
    size_t n = 0, most = s->n < TP_ALARM_MOST_VALUES ? s->n : TP_ALARM_MOST_VALUES;
    if (!s->n)
        return 0;
    double begin = at[s->n - 1] - window->length;
    if (!isfinite(begin)) /* a run without times */
        return 0;
    while (n < most && at[s->n - 1 - n] > begin)
        n++;
    bool is_full = n < s->n && at[s->n - 1 - n] <= begin;
    if (!is_full && n == s->n && n > 1) /* the first value of the run stands for its spacing too */
        is_full = at[0] - (at[1] - at[0]) <= begin;
    if (n < LEAST_WINDOW) {
        n = LEAST_WINDOW;
        is_full |= s->n >= n;
    }
    return is_full && s->n >= n ? n : 0;
}

static double median_of(tp_alarm_series *s, const double *value, size_t n)
{
    memcpy(s->scratch, value, n * sizeof *value);
    tp_sort(s->scratch, n);
    return tp_median_sorted(s->scratch, n);
}

/* The spread of n values about their line, and the correlation of neighbours. */
static void fit_spread(tp_alarm_series *s, const double *value, size_t n)
{
    double *scratch = s->scratch, sum = 0, moment = 0, centre = 0.5 * (double)(n - 1);
    for (size_t i = 0; i < n; i++) {
        sum += value[i];
        moment += ((double)i - centre) * value[i];
    }
    double mean = sum / (double)n;
    double slope = 12 * moment / ((double)n * ((double)n * (double)n - 1));
    double before = 0, product = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        double e = value[i] - mean - slope * ((double)i - centre);
        product += i ? e * before : 0;
        square += e * e;
        before = e;
        scratch[i] = fabs(e);
    }
    tp_sort(scratch, n);
    s->rest.sigma = 1.4826 * tp_median_sorted(scratch, n);
    double r = square > 0 ? product / square : 0;
    r = tp_lag1_unbiased(r, n, 2);
    s->rest.r = r < 0 ? 0 : r > 0.95 ? 0.95 : r;
    for (size_t i = 1; i < n; i++)
        scratch[i - 1] = fabs(value[i] - value[i - 1]);
    tp_sort(scratch, n - 1);
    s->rest.noise = 1.4826 * tp_median_sorted(scratch, n - 1) / M_SQRT2;
}

typedef struct {
    double before, now, d, se;
    double se_of_noise; /* from differences of neighbours alone, which no trend makes larger */
} shift;

/* The newest values against a level that is known from n_rest values. */
static shift shift_from(tp_alarm_series *s, double level, size_t n_new, size_t n_rest)
{
    shift x = {.before = level, .now = median_of(s, s->value + s->n - n_new, n_new)};
    double r = s->rest.r, pieces = 1 / (double)n_new + 1 / (double)n_rest;
    x.d = x.now - x.before;
    x.se = 1.2533 * s->rest.sigma * sqrt((1 + r) / (1 - r)) * sqrt(pieces);
    x.se_of_noise = 1.2533 * s->rest.noise * sqrt(pieces);
    return x;
}

/* The rest of long windows hardly changes from value to value: it is computed again when a 32nd of
 * it is new. */
static void know_rest(tp_alarm_series *s, size_t n_new, size_t n_rest)
{
    size_t before = s->n - n_new, most = SPREAD * (n_new + n_rest);
    bool is_fresh = s->rest.n && s->n_seen - s->rest.until <= s->rest.n / 32 &&
                    n_rest - s->rest.n <= s->rest.n / 32;
    if (is_fresh)
        return;
    size_t n = before < most ? before : most;
    n = TP_MIN(n, TP_MAX((size_t)OF_RUN, n_rest));
    size_t newest = n < NEWEST * n_new ? n : NEWEST * n_new;
    fit_spread(s, s->value + before - newest, newest);
    double noise_now = s->rest.noise; /* where noise grows, the spread of all is too small */
    fit_spread(s, s->value + before - n, n);
    s->rest.sigma = fmax(s->rest.sigma, noise_now);
    s->rest.median = median_of(s, s->value + before - n_rest, n_rest);
    s->rest.sigma = fmax(s->rest.sigma, fmax(1e-3 * fabs(s->rest.median), 1e-12));
    s->rest.n = n_rest;
    s->rest.until = s->n_seen;
}

static shift shift_of(tp_alarm_series *s, size_t n_new, size_t n_rest)
{
    know_rest(s, n_new, n_rest);
    return shift_from(s, s->rest.median, n_new, n_rest);
}

/* Against the first values of the run; false while it is too short. */
static bool shift_of_run(tp_alarm_series *s, shift *ret)
{
    if (s->n < 3 * (size_t)NEWEST_OF_RUN || s->n_first < NEWEST_OF_RUN)
        return false;
    know_rest(s, NEWEST_OF_RUN, 2 * (size_t)NEWEST_OF_RUN);
    *ret = shift_from(s, median_of(s, s->first, s->n_first), NEWEST_OF_RUN, s->n_first);
    return true;
}

/* ---- predicates ---- */

static const char *window_text(const tp_alarm_window *w, char out[48])
{
    char seconds[32];
    if (isinf(w->length))
        snprintf(out, 48, "the run");
    else if (w->is_time)
        snprintf(out, 48, "%s", tp_human_seconds(w->length, seconds));
    else
        snprintf(out, 48, "%.0f steps", w->length);
    return out;
}

/* NeMo RL's train/baseline_reward/pct_1 is, its masked_correct_pct is a share. */
static bool is_in_percent(const char *tag)
{
    return strchr(tag, '%') || strstr(tag, "percent") || strstr(tag, "/pct_");
}

typedef enum { HOLD_UNKNOWN, HOLD_FALSE, HOLD_TRUE } hold;

/* Whether all of a window is above or below.  A pause longer than the window tells nothing. */
static hold hold_of(const tp_alarm_series *s, const tp_alarm_window *w, bool is_above, double limit)
{
    const double *at = w->is_time ? s->wall : s->step;
    double begin = s->n ? at[s->n - 1] - w->length : NAN;
    size_t n = 0;
    if (!isfinite(begin)) /* a run without times */
        return HOLD_UNKNOWN;
    for (; n < s->n && at[s->n - 1 - n] > begin; n++) {
        double value = s->value[s->n - 1 - n];
        if (is_above ? !(value > limit) : !(value < limit))
            return HOLD_FALSE;
    }
    if (n > TP_ALARM_MOST_VALUES)
        return HOLD_UNKNOWN;
    if (n == s->n) /* the first value of the run stands for its spacing too */
        return n > 1 && at[0] - (at[1] - at[0]) <= begin ? HOLD_TRUE : HOLD_UNKNOWN;
    bool is_pause = w->is_time && at[s->n - n] - at[s->n - 1 - n] > w->length;
    return is_pause ? HOLD_UNKNOWN : HOLD_TRUE;
}

static bool level_holds(tp_alarm_series *s, const tp_alarm_condition *c, const char *tag,
                        char *text, size_t size)
{
    double limit = c->amount;
    char a[32], b[32], window[48];
    bool is_above = c->predicate == TP_ALARM_ABOVE;
    if (c->unit == TP_ALARM_PERCENT && !is_in_percent(tag))
        limit /= 100;
    if (!isfinite(s->newest) && !(isinf(s->newest) && (s->newest > 0) == is_above))
        return false;
    bool is_so = is_above ? s->newest > limit : s->newest < limit;
    if (is_so && c->hold.length > 0) {
        hold held = hold_of(s, &c->hold, is_above, limit);
        if (held == HOLD_UNKNOWN)
            return false;
        is_so = held == HOLD_TRUE;
    }
    s->n_judged++;
    if (!is_so)
        return false;
    snprintf(text, size, "%s, %s %s%s%s", tp_human_value(s->newest, 4, a),
             is_above ? "above" : "below", tp_human_value(limit, 4, b),
             c->hold.length > 0 ? " for " : "",
             c->hold.length > 0 ? window_text(&c->hold, window) : "");
    return true;
}

/* Whether there are values enough, and how the newest differ. */
static bool change_of(tp_alarm_series *s, const tp_alarm_window *window, bool is_of_run, shift *ret)
{
    size_t n_new = NEWEST_OF_RUN, n_rest;
    if (isinf(window->length))
        return shift_of_run(s, ret);
    if (is_of_run) {
        size_t most = s->n < OF_RUN ? s->n : OF_RUN;
        if (most < NEWEST_OF_RUN + LEAST_REST)
            return false;
        n_rest = most - n_new;
    } else {
        size_t n = window_size(s, window);
        if (!n)
            return false;
        n_new = n / 5;
        n_rest = n - n_new;
    }
    *ret = shift_of(s, n_new, n_rest);
    return true;
}

static bool change_holds(tp_alarm_series *s, const tp_alarm_condition *c, char *text, size_t size)
{
    bool is_of_run = c->over.length == 0 && c->unit == TP_ALARM_PERCENT;
    const tp_alarm_window *window = over_of(c);
    shift x;
    if (!change_of(s, window, is_of_run, &x))
        return false;
    s->n_judged++;
    double d = c->predicate == TP_ALARM_RISES ? x.d : -x.d, size_of = d;
    const char *unit = "";
    if (c->unit == TP_ALARM_PERCENT) {
        size_of = x.before != 0 ? 100 * d / fabs(x.before) : d > 0 ? INFINITY : 0;
        unit = " %";
    } else if (c->unit == TP_ALARM_SIGMA) {
        size_of = d / s->rest.sigma;
        unit = " sigma";
    }
    if (!(size_of >= c->amount) || !(d >= LEAST_ERRORS * x.se))
        return false;
    char a[32], b[32], amount[32], w[48] = "";
    snprintf(
        text, size, "%s by %s%s %s%s (%s to %s)", c->predicate == TP_ALARM_RISES ? "rose" : "fell",
        isinf(size_of) ? "any" : tp_human_value(size_of, 1, amount), unit,
        is_of_run ? "against the run before" : "within ", is_of_run ? "" : window_text(window, w),
        tp_human_value(x.before, 4, a), tp_human_value(x.now, 4, b));
    return true;
}

static bool flat_holds(tp_alarm_series *s, const tp_alarm_condition *c, char *text, size_t size)
{
    const tp_alarm_window *window = over_of(c);
    shift x;
    if (!change_of(s, window, false, &x))
        return false;
    s->n_judged++;
    double amount = isnan(c->amount) ? 1 : c->amount;
    bool is_share = isnan(c->amount) || c->unit == TP_ALARM_PERCENT;
    double within = is_share ? amount / 100 * fabs(x.before) : amount;
    char a[32], b[32], w[48];
    if (fabs(x.d) > fmax(within, 3 * x.se_of_noise))
        return false;
    snprintf(text, size, "no change within %s (%s to %s)", window_text(window, w),
             tp_human_value(x.before, 4, a), tp_human_value(x.now, 4, b));
    return true;
}

static bool collapse_holds(tp_alarm_series *s, const tp_alarm_condition *c, char *text, size_t size)
{
    double first[10];
    size_t n_first = sizeof first / sizeof *first;
    if (s->n_first < n_first || s->n_seen < n_first + COLLAPSED || s->n < COLLAPSED)
        return false;
    s->n_judged++;
    memcpy(first, s->first, sizeof first);
    tp_sort(first, n_first);
    double reference = tp_median_sorted(first, n_first),
           now = median_of(s, s->value + s->n - COLLAPSED, COLLAPSED);
    double share = isnan(c->amount) ? 10 : c->amount;
    char a[32], b[32];
    if (!(reference > 0) || !(now <= share / 100 * reference))
        return false;
    snprintf(text, size, "collapsed from %s to %s", tp_human_value(reference, 4, a),
             tp_human_value(now, 4, b));
    return true;
}

static size_t distinct(const double *x, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n && count < 3; i++) {
        bool is_new = true;
        for (size_t k = 0; k < i && is_new; k++)
            is_new = x[k] != x[i];
        count += is_new;
    }
    return count;
}

/* A fingerprint that comes again is the same batch; of any other figure ten in a row are asked for,
 * and that they differ among themselves. */
static bool repeat_holds(tp_alarm_series *s, const tp_alarm_condition *c, const char *tag,
                         char *text, size_t size)
{
    bool is_fingerprint = strstr(tag, "fingerprint") != NULL;
    size_t n = c->over.length > 0 ? (size_t)fmax(2, c->over.length) : is_fingerprint ? 3 : REPEATED;
    if (s->n < 2 * n)
        return false;
    s->n_judged++;
    const double *newest = s->value + s->n - n;
    if (!is_fingerprint && distinct(newest, n) < 3)
        return false;
    for (size_t period = 1; period + n <= s->n; period++) {
        size_t same = 0;
        while (same < n && newest[n - 1 - same] == (newest - period)[n - 1 - same])
            same++;
        if (same < n)
            continue;
        snprintf(text, size, "the newest %zu are those of %.0f steps before, exactly", n,
                 s->step[s->n - 1] - s->step[s->n - 1 - period]);
        return true;
    }
    return false;
}

bool tp_alarm_holds(tp_alarm_series *s, const tp_alarm_condition *c, const char *tag, char *text,
                    size_t size)
{
    bool is_finite = isfinite(s->newest);
    switch (c->predicate) {
    case TP_ALARM_ABOVE:
    case TP_ALARM_BELOW:
        return level_holds(s, c, tag, text, size);
    case TP_ALARM_NOT_FINITE:
        s->n_judged++;
        if (is_finite)
            return false;
        snprintf(text, size, "is %s", isnan(s->newest) ? "NaN" : "infinite");
        return true;
    case TP_ALARM_RISES:
    case TP_ALARM_FALLS:
        return is_finite && change_holds(s, c, text, size);
    case TP_ALARM_FLAT:
        return is_finite && flat_holds(s, c, text, size);
    case TP_ALARM_COLLAPSES:
        return is_finite && collapse_holds(s, c, text, size);
    case TP_ALARM_REPEATS:
        return is_finite && repeat_holds(s, c, tag, text, size);
    }
    return false;
}
