/* countdown.h - reach a number with given numbers, + - * / and brackets.
 *
 * Answers are expressions of whole numbers, read by a parser of bounded depth and
 * evaluated in exact fractions: 1/3 * 3 is 1.  Questions are made backwards, from an
 * expression with a whole value, so each has a solution; question `index` of a split is a
 * function of (options, split, index), and a hash of numbers and target decides the
 * split, so the two share no question. */
#ifndef TP_ENGINE_REWARD_COUNTDOWN_H
#define TP_ENGINE_REWARD_COUNTDOWN_H

#include "base/error.h"
#include "base/strings.h"
#include "engine/data/arithmetic.h"
#include "engine/reward/rational.h"

enum { TP_COUNTDOWN_NUMBERS = 8, TP_EXPRESSION_NUMBERS = 64, TP_EXPRESSION_DEPTH = 64 };

/* ---- expressions ---- */

typedef struct {
    int64_t numbers[TP_EXPRESSION_NUMBERS]; /* in the order written */
    int n_numbers;
    bool has_value; /* false: a division by zero, or beyond 128 bits */
    tp_rational value;
} tp_expression;

/* "(3+5)*7", "(3 + 5) × 7 = 56": the part behind "=" is not looked at.  Also − · ÷ \times
 * \cdot \div, square brackets, signs in front of operands.  False, with a reason in
 * why[80], when the text is no expression. */
bool tp_expression_read(tp_slice text, tp_expression *ret, char why[80]);

/* ---- questions ---- */

typedef struct {
    uint64_t seed;
    int64_t min_numbers, max_numbers; /* 2..8 */
    int64_t max_number, max_target;   /* numbers 1..max_number, targets 1..max_target */
    const char *operators;            /* some of "+-*" and "/" */
    double validation_share;          /* (0, 1) */
    int form;                         /* tp_countdown_form */
} tp_countdown_options;

typedef enum {
    TP_COUNTDOWN_INSTRUCT, /* in words, the answer in <answer> tags */
    TP_COUNTDOWN_PLAIN     /* "3 5 7=56:" */
} tp_countdown_form;

typedef struct {
    int64_t numbers[TP_COUNTDOWN_NUMBERS];
    int n_numbers;
    int64_t target;
    char solution[160];
} tp_countdown;

TP_CHECKED tp_status tp_countdown_check(const tp_countdown_options *options, tp_error *err);
/* `options` must have passed the check. */
void tp_countdown_make(const tp_countdown_options *options, tp_split split, uint64_t index,
                       tp_countdown *ret);
tp_split tp_countdown_split(const tp_countdown_options *options, const tp_countdown *question);
/* The question as it is asked; appends. */
void tp_countdown_ask(tp_countdown_form form, const int64_t *numbers, int n, int64_t target,
                      tp_buf *out);

#endif
