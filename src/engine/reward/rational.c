/* rational.c - fractions of 128-bit integers, reduced by Euclid's algorithm, every overflow
 * refused. */
#include "engine/reward/rational.h"

#include <stdio.h>

__extension__ typedef unsigned __int128 uint128;

static const tp_int128 most_negative = (tp_int128)((uint128)1 << 127);

static tp_int128 gcd(tp_int128 a, tp_int128 b)
{
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b) {
        tp_int128 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

bool tp_rational_make(tp_int128 num, tp_int128 den, tp_rational *ret)
{
    if (den == 0 || num == most_negative || den == most_negative)
        return false;
    tp_int128 common = gcd(num, den);
    if (den < 0)
        common = -common;
    *ret = (tp_rational){num / common, den / common};
    return true;
}

static bool mul(tp_int128 a, tp_int128 b, tp_int128 *ret)
{
    return !__builtin_mul_overflow(a, b, ret);
}

/* Over the least common denominator, so that sums of like fractions stay small. */
static bool sum(tp_rational a, tp_rational b, bool subtract, tp_rational *ret)
{
    tp_int128 common = gcd(a.den, b.den), left, right, num, den;
    if (!mul(a.num, b.den / common, &left) || !mul(b.num, a.den / common, &right) ||
        !mul(a.den, b.den / common, &den))
        return false;
    bool lost = subtract ? __builtin_sub_overflow(left, right, &num)
                         : __builtin_add_overflow(left, right, &num);
    return !lost && tp_rational_make(num, den, ret);
}

bool tp_rational_add(tp_rational a, tp_rational b, tp_rational *ret)
{
    return sum(a, b, false, ret);
}

bool tp_rational_sub(tp_rational a, tp_rational b, tp_rational *ret)
{
    return sum(a, b, true, ret);
}

bool tp_rational_mul(tp_rational a, tp_rational b, tp_rational *ret)
{
    /* Crosswise reduction first: what is left is the reduced product. */
    tp_int128 p = gcd(a.num, b.den), q = gcd(b.num, a.den), num, den;
    p = p ? p : 1;
    q = q ? q : 1;
    if (!mul(a.num / p, b.num / q, &num) || !mul(a.den / q, b.den / p, &den))
        return false;
    return tp_rational_make(num, den, ret);
}

bool tp_rational_div(tp_rational a, tp_rational b, tp_rational *ret)
{
    tp_rational inverse;
    return b.num != 0 && tp_rational_make(b.den, b.num, &inverse) &&
           tp_rational_mul(a, inverse, ret);
}

bool tp_rational_equal(tp_rational a, tp_rational b) { return a.num == b.num && a.den == b.den; }

double tp_rational_f64(tp_rational a) { return (double)((long double)a.num / (long double)a.den); }

/* Digits of v before `end`; returns where they begin. */
static char *digits(uint128 v, char *end)
{
    do {
        *--end = (char)('0' + (int)(v % 10));
        v /= 10;
    } while (v);
    return end;
}

char *tp_rational_text(tp_rational a, char out[TP_RATIONAL_TEXT])
{
    char num[48], den[48];
    num[47] = den[47] = 0;
    uint128 size = a.num < 0 ? -(uint128)a.num : (uint128)a.num;
    const char *n = digits(size, num + 47), *d = digits((uint128)a.den, den + 47);
    snprintf(out, TP_RATIONAL_TEXT, "%s%s%s%s", a.num < 0 ? "-" : "", n, a.den == 1 ? "" : "/",
             a.den == 1 ? "" : d);
    return out;
}
