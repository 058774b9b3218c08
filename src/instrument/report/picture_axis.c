/* picture_axis.c - axes: ticks at 1, 2 and 5 times powers of ten, and their texts. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "instrument/report/picture_internal.h"

static void widen(double *low, double *high)
{
    if (*low < *high)
        return;
    double middle = isfinite(*low) ? *low : 0, half = middle != 0 ? fabs(middle) * 0.05 : 1;
    *low = middle - half;
    *high = middle + half;
}

static void ticks_linear(tp_axis *a, int wanted)
{
    widen(&a->low, &a->high);
    double raw = a->high / wanted - a->low / wanted; /* a difference of the ends might overflow */
    double power = pow(10, floor(log10(raw)));
    double step = raw / power <= 1   ? power
                  : raw / power <= 2 ? 2 * power
                  : raw / power <= 5 ? 5 * power
                                     : 10 * power;
    double first = floor(a->low / step + 1e-9), last = ceil(a->high / step - 1e-9);
    for (double k = first; k <= last && a->n_ticks < TP_MAX_TICKS; k++) {
        if (isfinite(k * step))
            a->ticks[a->n_ticks++] = k * step;
    }
    a->low = fmax(first * step, -DBL_MAX);
    a->high = fmin(last * step, DBL_MAX);
}

/* The largest of 1, 2 and 5 times a power of ten that is not above v, or the smallest not below. */
static double round_125(double v, bool up)
{
    static const double steps[] = {1, 2, 5, 10};
    double power = pow(10, floor(log10(v) + 1e-9));
    int k = up ? 0 : 2;
    while (up ? k < 3 && steps[k] * power < v * (1 - 1e-9)
              : k > 0 && steps[k] * power > v * (1 + 1e-9))
        k += up ? 1 : -1;
    return steps[k] * power;
}

/* Ticks at 1, 2 and 5 within two decades, else at powers of ten. */
static void ticks_log(tp_axis *a, int wanted)
{
    if (!(a->low > 0) || !isfinite(a->high)) {
        a->low = 0.1;
        a->high = 10;
    }
    bool is_wide = a->high / a->low > 100;
    a->low = is_wide ? pow(10, floor(log10(a->low) + 1e-9)) : round_125(a->low, false);
    a->high = is_wide ? pow(10, ceil(log10(a->high) - 1e-9)) : round_125(a->high, true);
    if (!(a->low < a->high))
        a->high = round_125(a->low * 1.5, true);
    double decades = log10(a->high / a->low), most = fmin(wanted, TP_MAX_TICKS - 2);
    double factor = pow(10, fmax(1, ceil(decades / most)));
    for (double tick = a->low; tick <= a->high * (1 + 1e-9) && a->n_ticks < TP_MAX_TICKS;
         tick = is_wide ? tick * factor : round_125(tick * 1.5, true))
        a->ticks[a->n_ticks++] = tick;
}

void tp_axis_make(tp_axis *axis, double low, double high, bool is_log, int wanted)
{
    *axis = (tp_axis){.low = low, .high = high, .is_log = is_log};
    if (is_log)
        ticks_log(axis, wanted);
    else
        ticks_linear(axis, wanted);
}

double tp_axis_place(const tp_axis *a, double v)
{
    double share = a->is_log ? (log(v) - log(a->low)) / (log(a->high) - log(a->low))
                             : (v / 2 - a->low / 2) / (a->high / 2 - a->low / 2);
    return a->from + share * (a->to - a->from);
}

char *tp_axis_text(const tp_axis *a, int tick, char *out)
{
    static const char *const suffixes[] = {"", "k", "M", "G", "T"};
    double v = a->ticks[tick], most = fmax(fabs(a->low), fabs(a->high));
    double step = a->is_log ? v : a->n_ticks > 1 ? a->ticks[1] - a->ticks[0] : most;
    int thousands = 0;
    if (most >= 1e15 || most < 1e-3 || (a->is_log && (v >= 1e15 || v < 1e-3))) {
        int digits = a->is_log ? 3 : (int)fmin(15, fmax(3, ceil(log10(most / step)) + 1));
        snprintf(out, 32, "%.*g", digits, !a->is_log && fabs(v) < most * 1e-9 ? 0 : v);
        return out;
    }
    while ((a->is_log ? fabs(v) : most) >= 9999.5 && thousands < 4) {
        v /= 1000;
        most /= 1000;
        step /= 1000;
        thousands++;
    }
    int decimals = (int)fmax(0, ceil(-log10(step) - 1e-6));
    int most_decimals = (int)fmax(0, 14 - floor(log10(most))); /* that a number has */
    snprintf(out, 32, "%.*f%s", decimals > most_decimals ? most_decimals : decimals,
             fabs(v) < step * 1e-6 ? 0 : v, v == 0 ? "" : suffixes[thousands]);
    return out;
}

double tp_axis_text_width(const tp_axis *a, double size)
{
    double most = 0;
    char text[32];
    for (int i = 0; i < a->n_ticks; i++)
        most = fmax(most, tp_text_width(tp_axis_text(a, i, text), size));
    return most;
}
