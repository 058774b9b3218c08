/* shortest.c - a double between its neighbours, as integers.
 *
 * With v = m 2^e and a p that makes v 10^p a number of 18 or 19 digits,
 *     v 10^p = m 5^p 2^(e+p),
 * and m 5^p fits 128 bits for p of 1 to 28.  The halves of the way to both neighbours likewise, so
 * all three are exact.  As many digits are then dropped as leave a number in the interval
 * (Steele and White 1990; the ends belong to it when m is even, as reading rounds ties to even). */
#include "text/json/shortest.h"

#include <string.h>

typedef unsigned __int128 wide;

/* 5^p: what fits 64 bits. */
/* clang-format off */
static const uint64_t fives[] = {
    1, 5, 25, 125, 625, 3125, 15625, 78125, 390625, 1953125, 9765625, 48828125, 244140625,
    1220703125, 6103515625, 30517578125, 152587890625, 762939453125, 3814697265625,
    19073486328125, 95367431640625, 476837158203125, 2384185791015625, 11920928955078125,
    59604644775390625, 298023223876953125, 1490116119384765625, 7450580596923828125
};
/* clang-format on */

static uint64_t ten_to(int n) { return fives[n] << n; }

/* As many digits as may go while a shorter number lies between *low and high; *low loses them. */
static int drop_spare(uint64_t *low, uint64_t high)
{
    int n = 0;
    for (; high / 10000 > *low / 10000; n += 4)
        high /= 10000, *low /= 10000;
    for (; high / 10 > *low / 10; n++)
        high /= 10, *low /= 10;
    return n;
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
    int p = 17 - ((e + 52) * 78913 >> 18); /* 78913 / 2^18 is log10 2: p is 2 to 28 */
    /* in eighths of a unit in the last place */
    wide unit = p < 28 ? fives[p] : (wide)5 * fives[27];
    wide at = 8 * m * unit, low = at - (is_power ? 2 : 4) * unit, high = at + 4 * unit;
    int shift = 3 - e - p;
    const wide below = ((wide)1 << shift) - 1;
    uint64_t first = (uint64_t)(low >> shift), middle = (uint64_t)(at >> shift);
    uint64_t last = (uint64_t)(high >> shift) - (!(high & below) && !is_even);
    uint64_t least = first;
    int spare = drop_spare(&least, last);
    if (!spare) /* does not happen: no double needs 18 digits */
        return false;
    /* the lower end itself may be the shortest */
    bool has_low = is_even && !(low & below) && first % ten_to(spare) == 0;
    while (has_low && first >= ten_to(spare + 1) && first % ten_to(spare + 1) == 0)
        spare++;
    uint64_t ten = ten_to(spare - 1), digits = middle / ten;
    unsigned next = (unsigned)(digits % 10);
    bool is_tie = next == 5 && digits * ten == middle && !(at & below);
    digits /= 10;
    bool up = next > 5 || (next == 5 && !(is_tie && digits % 2 == 0));
    bool low_is_out = !has_low && digits == least;
    *ret_digits = digits + (up || low_is_out);
    *ret_exponent = spare - p;
    while (*ret_digits && *ret_digits % 10 == 0) {
        *ret_digits /= 10;
        ++*ret_exponent;
    }
    return true;
}
