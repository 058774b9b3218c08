/* rational.h - fractions of 128-bit integers, exact or refused.
 *
 * Always reduced, the denominator positive, so equal numbers have equal members.  Every
 * operation returns false, and leaves *ret alone, when the result does not fit or does
 * not exist. */
#ifndef TP_ENGINE_REWARD_RATIONAL_H
#define TP_ENGINE_REWARD_RATIONAL_H

#include <stdbool.h>
#include <stdint.h>

__extension__ typedef __int128 tp_int128;

typedef struct {
    tp_int128 num, den;
} tp_rational;

bool tp_rational_make(tp_int128 num, tp_int128 den, tp_rational *ret); /* den may be negative */
bool tp_rational_add(tp_rational a, tp_rational b, tp_rational *ret);
bool tp_rational_sub(tp_rational a, tp_rational b, tp_rational *ret);
bool tp_rational_mul(tp_rational a, tp_rational b, tp_rational *ret);
bool tp_rational_div(tp_rational a, tp_rational b, tp_rational *ret);
bool tp_rational_equal(tp_rational a, tp_rational b);
double tp_rational_f64(tp_rational a);

/* "42", "-7/3"; at most 81 bytes with the NUL. */
enum { TP_RATIONAL_TEXT = 96 };
char *tp_rational_text(tp_rational a, char out[TP_RATIONAL_TEXT]);

#endif
