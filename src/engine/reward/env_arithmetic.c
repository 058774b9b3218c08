/* env_arithmetic.c - the sums of data/arithmetic.h as an environment: the same questions
 * that supervised training has, with answers that can be checked. */
#include "base/platform.h"
#include "engine/data/arithmetic.h"
#include "engine/reward/answer.h"
#include "engine/reward/environment_rows.h"
#include "engine/reward/number.h"

enum { COMPARE_FORM, COMPARE_NUMBER };

typedef struct {
    int compare;
} settings;

/* clang-format off */
static const tp_option rows[] = {
    WORD("compare", compare, "form", "form|number", "form: the whole answer as the corpus writes it (behind \">\" where there are steps); number: the last number must be the result, for models that talk.")
};
/* clang-format on */

/* Steps may be any; what counts stands behind the last ">". */
static tp_slice final_part(tp_slice text)
{
    for (size_t i = text.len; i-- > 0;)
        if (text.data[i] == '>')
            return (tp_slice){text.data + i + 1, text.len - i - 1};
    return text;
}

static void score_form(const tp_completion *c, tp_reward *ret)
{
    tp_slice answer = final_part(tp_answer_trim((tp_slice){c->text, c->n_text}));
    tp_slice truth = final_part(tp_answer_trim(tp_slice_of(c->prompt->truth)));
    bool right = tp_slice_eq(answer, truth);
    TP_OWN(tp_buf) spelled = {0};
    tp_buf_add(&spelled, answer.data, answer.len);
    tp_reward_give(ret, right, right ? TP_CORRECT_YES : TP_CORRECT_NO,
                   answer.len ? tp_buf_str(&spelled) : NULL);
}

static void score_number(const tp_completion *c, int64_t result, tp_reward *ret)
{
    tp_number v = {0};
    char answer[TP_RATIONAL_TEXT];
    bool found = tp_number_last((tp_slice){c->text, c->n_text}, &v);
    bool right = found && v.is_exact && tp_rational_equal(v.exact, (tp_rational){result, 1});
    v.is_percent &= !right; /* a vote for the result */
    if (found)
        tp_number_text(&v, answer);
    tp_reward_give(ret, right, right ? TP_CORRECT_YES : TP_CORRECT_NO, found ? answer : NULL);
}

static void score(const void *settings_, void *state, const tp_completion *c, tp_reward *ret)
{
    (void)state;
    const settings *o = settings_;
    int64_t result;
    if (o->compare == COMPARE_FORM && c->prompt->truth)
        score_form(c, ret);
    else if (o->compare == COMPARE_NUMBER &&
             tp_json_i64(tp_json_get(c->prompt->row, "result"), &result))
        score_number(c, result, ret);
    else
        tp_reward_exclude(ret, TP_REWARD_REFUSED,
                          "%s is no question of the arithmetic corpus; for questions of a file "
                          "use env.math or env.exact",
                          c->prompt->id);
}

/* ---- questions ---- */

typedef struct {
    tp_made_counts counts;
    double ignored_mistakes;
    tp_arithmetic_options options;
} generator;

/* clang-format off */
#undef HOLDER
#define HOLDER generator
static const tp_option generator_rows[] = {
    TP_MADE_ROWS(counts)
    COUNT("digits", options.digits, "2", 1, 9, "Most digits of an operand.")
    TEXT("operators", options.operators, "\"+-\"", "Any of + - *.")
    WORD("form", options.form, "plain", "plain|reversed|steps", "How answers are written: as usual, lowest digit first, or with the steps.")
    FLAG("negative", options.negative, "false", "Allow differences below zero.")
    REAL("word_problems", options.word_problems, "0.0", 0, 1, "Share of questions asked in words.")
    REAL("validation_share", options.validation_share, "0.1", 1e-6, 0.999999, "Share of all questions kept for validation.")
    REAL("mistakes", ignored_mistakes, "0.0", 0, 1, "For supervised training; expected answers are always right.")
};
/* clang-format on */

static tp_status check(void *generator_, tp_error *err)
{
    generator *g = generator_;
    g->options.seed = g->counts.seed;
    return tp_arithmetic_check(&g->options, err);
}

static void make(const void *generator_, tp_split split, uint64_t index, tp_made_prompt *ret)
{
    const generator *g = generator_;
    tp_arithmetic q;
    tp_arithmetic_make(&g->options, split, index, &q);
    tp_buf_adds(&ret->text, q.prompt);
    tp_buf_adds(&ret->truth, q.answer);
    tp_buf_addf(&ret->row, "{\"a\":%lld,\"operation\":\"%c\",\"b\":%lld,\"result\":%lld}",
                (long long)q.a, q.operation, (long long)q.b, (long long)q.result);
}

static void describe(const void *generator_, tp_buf *out)
{
    tp_arithmetic_describe(&((const generator *)generator_)->options, out);
}

const tp_environment_kind tp_env_arithmetic = {
    .name = "arithmetic",
    .doc = "1 for the result of a made-up sum.",
    .settings = {rows, TP_COUNTOF(rows), sizeof(settings)},
    .score = score,
    .generator = {generator_rows, TP_COUNTOF(generator_rows), sizeof(generator)},
    .check = check,
    .make = make,
    .describe = describe};
