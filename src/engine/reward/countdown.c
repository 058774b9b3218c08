/* countdown.c - making countdown problems backwards from a solution, and scoring expressions in
 * exact fractions. */
#include "engine/reward/countdown.h"

#include <string.h>

#include "base/rng.h"

enum { MAX_TRIES = 100000, LARGEST = 1000000 };
enum { STREAM_DRAW = 0x636f756e, STREAM_SPLIT = 0x63736c74 };

/* ---- splits ---- */

static void sort_numbers(int64_t *v, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && v[j - 1] > v[j]; j--) {
            int64_t t = v[j];
            v[j] = v[j - 1];
            v[j - 1] = t;
        }
}

tp_split tp_countdown_split(const tp_countdown_options *options, const tp_countdown *question)
{
    int64_t sorted[TP_COUNTDOWN_NUMBERS] = {0};
    memcpy(sorted, question->numbers, (size_t)question->n_numbers * sizeof *sorted);
    sort_numbers(sorted, question->n_numbers);
    uint64_t hash = (uint64_t)question->target;
    uint32_t random[4];
    for (int i = 0; i < question->n_numbers; i++) {
        tp_philox(hash, STREAM_SPLIT, (uint64_t)sorted[i], random);
        hash = (uint64_t)random[1] << 32 | random[2];
    }
    bool held_out = (double)(uint32_t)hash * 0x1p-32 < options->validation_share;
    return held_out ? TP_SPLIT_VALIDATION : TP_SPLIT_TRAIN;
}

/* ---- making ---- */

/* A value with the expression that makes it. */
typedef struct {
    int64_t value;
    char text[160];
} term;

/* a op b, where it is a positive whole number of reasonable size. */
static bool combine(const term *a, char op, const term *b, term *ret)
{
    term r;
    if (op == '/' && (b->value == 0 || a->value % b->value != 0))
        return false;
    r.value = op == '+'   ? a->value + b->value
              : op == '-' ? a->value - b->value
              : op == '*' ? a->value * b->value
                          : a->value / b->value;
    if (r.value < 1 || r.value > LARGEST)
        return false;
    int n = snprintf(r.text, sizeof r.text, "(%s%c%s)", a->text, op, b->text);
    if (n < 0 || (size_t)n >= sizeof r.text)
        return false;
    *ret = r;
    return true;
}

/* Two terms become one until one is left. */
static bool draw_question(const tp_countdown_options *o, tp_rng *rng, tp_countdown *ret)
{
    term terms[TP_COUNTDOWN_NUMBERS];
    uint64_t spread = (uint64_t)(o->max_numbers - o->min_numbers + 1);
    int n = (int)o->min_numbers + (int)tp_rng_below(rng, spread);
    ret->n_numbers = n;
    for (int i = 0; i < n; i++) {
        terms[i].value = 1 + (int64_t)tp_rng_below(rng, (uint64_t)o->max_number);
        ret->numbers[i] = terms[i].value;
        snprintf(terms[i].text, sizeof terms[i].text, "%lld", (long long)terms[i].value);
    }
    while (n > 1) {
        uint64_t i = tp_rng_below(rng, (uint64_t)n), j = tp_rng_below(rng, (uint64_t)n - 1);
        j += j >= i;
        char op = o->operators[tp_rng_below(rng, strlen(o->operators))];
        term joined;
        if (!combine(&terms[i], op, &terms[j], &joined))
            return false;
        terms[i < j ? i : j] = joined;
        terms[i < j ? j : i] = terms[--n];
    }
    if (terms[0].value > o->max_target)
        return false;
    ret->target = terms[0].value;
    /* Without the outermost pair of brackets. */
    size_t len = strlen(terms[0].text);
    snprintf(ret->solution, sizeof ret->solution, "%.*s", (int)len - 2, terms[0].text + 1);
    return true;
}

static bool draw_in_split(const tp_countdown_options *o, tp_split split, tp_rng *rng,
                          tp_countdown *ret)
{
    for (int i = 0; i < MAX_TRIES; i++)
        if (draw_question(o, rng, ret) && tp_countdown_split(o, ret) == split)
            return true;
    return false;
}

void tp_countdown_make(const tp_countdown_options *options, tp_split split, uint64_t index,
                       tp_countdown *ret)
{
    uint64_t stream = ((uint64_t)STREAM_DRAW << 33) + 2 * index + (uint64_t)split;
    tp_rng rng = tp_rng_make(options->seed, stream);
    bool found = draw_in_split(options, split, &rng, ret);
    TP_ASSERT(found);
}

tp_status tp_countdown_check(const tp_countdown_options *o, tp_error *err)
{
    if (o->min_numbers < 2 || o->max_numbers > TP_COUNTDOWN_NUMBERS ||
        o->min_numbers > o->max_numbers)
        return tp_fail(err, TP_ERR_CONFIG,
                       "data.countdown has %lld to %lld numbers; 2 to %d are possible",
                       (long long)o->min_numbers, (long long)o->max_numbers, TP_COUNTDOWN_NUMBERS);
    const char *operators = o->operators;
    if (!operators || !operators[0] || strspn(operators, "+-*/") != strlen(operators))
        return tp_fail(err, TP_ERR_CONFIG,
                       "data.countdown.operators is \"%.20s\"; some of + - * / are needed",
                       operators ? operators : "");
    for (int split = 0; split < TP_SPLITS; split++) {
        /* A stream apart from those of the questions. */
        tp_rng rng = tp_rng_make(o->seed, STREAM_DRAW);
        tp_countdown question;
        if (!draw_in_split(o, (tp_split)split, &rng, &question))
            return tp_fail(err, TP_ERR_CONFIG,
                           "data.countdown finds no question for %s; raise max_number or "
                           "max_target, or change validation_share",
                           tp_split_name((tp_split)split));
    }
    return TP_OK;
}

void tp_countdown_ask(tp_countdown_form form, const int64_t *numbers, int n, int64_t target,
                      tp_buf *out)
{
    if (form == TP_COUNTDOWN_PLAIN) {
        for (int i = 0; i < n; i++)
            tp_buf_addf(out, "%s%lld", i ? " " : "", (long long)numbers[i]);
        tp_buf_addf(out, "=%lld:", (long long)target);
        return;
    }
    tp_buf_adds(out, "Using each of the numbers ");
    for (int i = 0; i < n; i++)
        tp_buf_addf(out, "%s%lld", i == 0 ? "" : i + 1 < n ? ", " : " and ", (long long)numbers[i]);
    tp_buf_addf(out,
                " exactly once, with +, -, *, / and brackets, write an expression that equals "
                "%lld. Give the expression between <answer> and </answer>.",
                (long long)target);
}
