/* shortest.c - a double between its neighbours, as integers.
 *
 * With v = m 2^e and a p that makes v 10^p a number of 18 or 19 digits,
 *     v 10^p = m 5^p 2^(e+p),
 * and m 5^p fits 128 bits for p of 1 to 28.  The halves of the way to both neighbours likewise, so
 * all three are exact.  Digits are then dropped as long as the interval still holds a shorter
 * number (Steele and White 1990; the ends belong to it when m is even, as reading rounds ties to
 * even). */
#include "text/json/shortest.h"

#include <math.h>
#include <string.h>

typedef unsigned __int128 wide;

/* value / 2^shift, and whether nothing was lost. */
static uint64_t part(wide value, int shift, bool *ret_exact)
{
    if (shift <= 0) {
        *ret_exact = true;
        return (uint64_t)(value << -shift);
    }
    *ret_exact = (value & (((wide)1 << shift) - 1)) == 0;
    return (uint64_t)(value >> shift);
}

typedef struct {
    uint64_t low, at, high;
    bool low_zeros; /* nothing but zeros was dropped of `low` */
    bool at_zeros;  /* likewise of `at`, before the last digit */
    unsigned last;  /* digit dropped of `at` */
} window;

static void drop_digit(window *w)
{
    w->low_zeros &= w->low % 10 == 0;
    w->at_zeros &= w->last == 0;
    w->last = (unsigned)(w->at % 10);
    w->low /= 10;
    w->at /= 10;
    w->high /= 10;
}

bool tp_shortest_digits(double v, uint64_t *ret_digits, int *ret_exponent)
{
    uint64_t bits;
    if (!(v >= 1e-10 && v < 1e16))
        return false;
    memcpy(&bits, &v, sizeof bits);
    uint64_t m = (bits & 0xfffffffffffff) | 0x10000000000000;
    int e = (int)(bits >> 52) - 1075;
    bool is_even = (m & 1) == 0, is_power = m == 0x10000000000000;
    /* 0.30103 is a little above log10 2 */
    int p = 17 - (int)floor((e + 52) * 0.30103);
    wide scale = 1;
    for (int i = 0; i < p; i++)
        scale *= 5;
    /* in quarters of a unit in the last place */
    int shift = -(e - 2 + p);
    bool exact_low, exact_at, exact_high;
    window w = {.low = part((4 * (wide)m - (is_power ? 1 : 2)) * scale, shift, &exact_low),
                .at = part(4 * (wide)m * scale, shift, &exact_at),
                .high = part((4 * (wide)m + 2) * scale, shift, &exact_high)};
    int dropped = 0;
    w.low_zeros = exact_low && is_even;
    w.at_zeros = exact_at;
    w.high -= exact_high && !is_even;
    for (; w.high / 10 > w.low / 10; dropped++)
        drop_digit(&w);
    for (; w.low_zeros && w.low && w.low % 10 == 0; dropped++)
        drop_digit(&w);
    if (!dropped) /* does not happen: no double needs 18 digits */
        return false;
    bool is_tie = w.last == 5 && w.at_zeros;
    bool up = w.last > 5 || (w.last == 5 && !(is_tie && w.at % 2 == 0));
    bool low_is_out = w.at == w.low && !w.low_zeros;
    *ret_digits = w.at + (up || low_is_out);
    *ret_exponent = dropped - p;
    while (*ret_digits && *ret_digits % 10 == 0) {
        *ret_digits /= 10;
        ++*ret_exponent;
    }
    return true;
}
