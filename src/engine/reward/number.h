/* number.h - numbers as people and models write them.
 *
 *     42    -3.50    1,234,567    $5    7 apples    12%    3/4    1 1/2    2.5e-3
 *     \frac{3}{4}    1{,}000    1,\!000    6.02 \times 10^{23}    −8 (U+2212)    ½    1.000.000
 *     1 000
 *
 * What has no value is no number, and nothing in it is one: 1/0, \frac{1}{0}, 1,00, 0,245, 1.2.3.
 * Values are exact fractions as long as they fit 128 bits; beyond that only the nearest
 * double is known, and the digits decide. */
#ifndef TP_ENGINE_REWARD_NUMBER_H
#define TP_ENGINE_REWARD_NUMBER_H

#include <stddef.h>

#include "base/strings.h"
#include "engine/reward/rational.h"

typedef struct {
    bool is_exact;
    tp_rational exact; /* is_exact */
    uint64_t digits;   /* otherwise: a hash of the digits, 0 for a quotient */
    double value;
    bool is_percent;   /* a percent sign followed; the value is what stands before it */
    size_t begin, end; /* bytes of the text that it takes */
} tp_number;

/* The first number that begins at or behind `from`; false when there is none.  Reading
 * on from ret->end finds all of them, each byte looked at a bounded number of times. */
bool tp_number_next(tp_slice text, size_t from, tp_number *ret);
bool tp_number_last(tp_slice text, tp_number *ret);

/* The text is one number, perhaps with a currency sign, a unit ("9 (apples)"), the name of what it
 * is ("x = 3"), mark-up around it: nothing that makes it an expression ("7 i") or several
 * ("(1,200)").
 */
bool tp_number_only(tp_slice text, tp_number *ret);

/* The text is words that begin with or lead to a number: "42 apples in all, or 6 for each", and
 * *ret is the first.  Between two numbers stand two words or more: not "5 or 7", "1, 2", "7:30". */
bool tp_number_in_words(tp_slice text, tp_number *ret);

/* Three digits stand at `at`, as behind a mark of thousands. */
bool tp_number_group_at(tp_slice text, size_t at);

/* 12% equals 12% and 0.12 and, when only one of the two has the sign, 12.  Exact when
 * both are and the tolerances are 0; else |a - b| <= absolute or <= relative * |b|. */
bool tp_number_equal(const tp_number *a, const tp_number *b, double absolute, double relative);

/* One spelling per value, for votes: "42", "-7/3", "12%" as "3/25"; NUL-terminated. */
void tp_number_text(const tp_number *v, char out[TP_RATIONAL_TEXT]);

#endif
