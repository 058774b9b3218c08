/* arithmetic.h - an endless corpus of sums, made rather than collected.
 *
 * Example `index` of a split is a pure function of (options, split, index).  Whether
 * a question belongs to training or validation is decided by a hash of the numbers
 * in it (a + b and b + a count as one), so the splits cannot share a question,
 * whatever the seed, the length or the wording.
 *
 * Small models learn sums much faster when the digits come in the order in which a
 * carry moves, lowest first.  A share of the training answers may be wrong, as in data
 * that people wrote: what imitates them makes the same mistakes.  Forms of the answer to "23*45=":
 *
 *     plain      1035
 *     reversed   5301
 *     steps      511+029=5301>1035      (partial products, lowest digit first; sums
 *                                        and differences have the last two parts) */
#ifndef TP_ENGINE_DATA_ARITHMETIC_H
#define TP_ENGINE_DATA_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strings.h"

typedef enum {
    TP_ARITHMETIC_PLAIN,
    TP_ARITHMETIC_REVERSED,
    TP_ARITHMETIC_STEPS
} tp_arithmetic_form;
typedef enum { TP_SPLIT_TRAIN, TP_SPLIT_VALIDATION, TP_SPLITS } tp_split;

const char *tp_split_name(tp_split split); /* "train", "validation" */

typedef struct {
    int64_t seed;
    int64_t digits;          /* each operand has 1 to this many, uniformly; 1..9 */
    const char *operators;   /* any of "+-*" */
    int form;                /* tp_arithmetic_form */
    bool negative;           /* allow differences below zero */
    double word_problems;    /* share of questions asked in words, 0..1 */
    double validation_share; /* of all questions, (0, 1) */
    double mistakes;         /* share of the training answers with a stray digit behind, [0, 1) */
} tp_arithmetic_options;

tp_arithmetic_options tp_arithmetic_defaults(void); /* digits 2, "+-", plain, 0.1 held out */

/* Of options in their ranges: operators there are, and both splits have questions at all. */
TP_CHECKED tp_status tp_arithmetic_check(const tp_arithmetic_options *options, tp_error *err);

typedef struct {
    int64_t a, b, result;
    char operation;
    char prompt[200]; /* "23*45=", or a story that ends in "? " */
    char answer[256]; /* what is to be learned, in the form asked for */
} tp_arithmetic;

/* `options` must have passed the check. */
void tp_arithmetic_make(const tp_arithmetic_options *options, tp_split split, uint64_t index,
                        tp_arithmetic *ret);

/* Which split a op b belongs to. */
tp_split tp_arithmetic_split(const tp_arithmetic_options *options, int64_t a, char op, int64_t b);

/* Append examples 0..n-1 of the training split, one per line: to train a tokenizer. */
void tp_arithmetic_text(const tp_arithmetic_options *options, uint64_t n, tp_buf *out);

/* Append everything that decides the corpus, for cache keys and logs. */
void tp_arithmetic_describe(const tp_arithmetic_options *options, tp_buf *out);

#endif
