/* env_countdown.c - the game of countdown.h as an environment. */
#include "base/platform.h"
#include "engine/reward/answer.h"
#include "engine/reward/countdown.h"
#include "engine/reward/environment_rows.h"

enum { FROM_AUTO, FROM_TAG, FROM_BOXED, FROM_WHOLE, FROM_LAST_LINE };

typedef struct {
    int answer_from;
    const char *tag;
    bool use_all;
    double format_score;
} settings;

/* clang-format off */
static const tp_option rows[] = {
    WORD("answer_from", answer_from, "auto", "auto|tag|boxed|whole|last_line", "Where the expression stands; auto: the tag, else the box, else the last line.")
    TEXT("tag", tag, "answer", "Name of the tag around the expression.")
    FLAG("use_all", use_all, "true", "Every number must be used; else each at most once.")
    REAL("format_score", format_score, "0.0", -100, 100, "Reward of an expression that can be read but is not right.")
};
/* clang-format on */

/* ---- judging ---- */

/* The numbers and the target of a question; false when the row has none. */
static bool read_question(const tp_json *row, tp_countdown *ret)
{
    const tp_json *list = tp_json_get(row, "numbers");
    list = list ? list : tp_json_get(row, "nums");
    *ret = (tp_countdown){0};
    if (!list || list->type != TP_JSON_ARRAY || list->n > TP_COUNTDOWN_NUMBERS || !list->n ||
        !tp_json_i64(tp_json_get(row, "target"), &ret->target))
        return false;
    for (const tp_json *v = list->child; v; v = v->next)
        if (!tp_json_i64(v, &ret->numbers[ret->n_numbers++]))
            return false;
    return true;
}

/* Each number of the expression is one of the question, and none is used twice. */
static bool uses_numbers(const tp_expression *e, const tp_countdown *q, bool all)
{
    bool used[TP_COUNTDOWN_NUMBERS] = {false};
    for (int i = 0; i < e->n_numbers; i++) {
        int j = 0;
        while (j < q->n_numbers && (used[j] || q->numbers[j] != e->numbers[i]))
            j++;
        if (j == q->n_numbers)
            return false;
        used[j] = true;
    }
    return !all || e->n_numbers == q->n_numbers;
}

static tp_slice find_place(const settings *o, tp_slice text)
{
    tp_slice found = {0};
    if (o->answer_from == FROM_TAG || o->answer_from == FROM_AUTO)
        found = tp_answer_in_tag(text, o->tag);
    if (o->answer_from == FROM_BOXED || (o->answer_from == FROM_AUTO && !found.data))
        found = tp_answer_boxed(text);
    if (o->answer_from == FROM_LAST_LINE || (o->answer_from == FROM_AUTO && !found.data))
        found = tp_answer_last_line(text);
    return o->answer_from == FROM_WHOLE ? tp_answer_trim(text) : found;
}

static void score(const void *settings_, void *state, const tp_completion *c, tp_reward *ret)
{
    (void)state;
    const settings *o = settings_;
    tp_countdown question;
    tp_expression e;
    char why[80];
    if (!read_question(c->prompt->row, &question)) {
        tp_reward_exclude(ret, TP_REWARD_REFUSED,
                          "%s has no \"numbers\" (1 to %d) with a \"target\"", c->prompt->id,
                          TP_COUNTDOWN_NUMBERS);
        return;
    }
    tp_slice found = find_place(o, (tp_slice){c->text, c->n_text});
    if (!found.data || !tp_expression_read(found, &e, why)) {
        tp_reward_give(ret, 0, TP_CORRECT_NO, NULL);
        return;
    }
    TP_OWN(tp_buf) spelled = {0};
    tp_answer_normalize(found, &spelled);
    bool right = uses_numbers(&e, &question, o->use_all) && e.has_value &&
                 tp_rational_equal(e.value, (tp_rational){question.target, 1});
    tp_reward_give(ret, right ? 1 : o->format_score, right ? TP_CORRECT_YES : TP_CORRECT_NO,
                   tp_buf_str(&spelled));
}

/* ---- questions ---- */

typedef struct {
    tp_made_counts counts;
    tp_countdown_options options;
} generator;

/* clang-format off */
#undef HOLDER
#define HOLDER generator
static const tp_option generator_rows[] = {
    TP_MADE_ROWS(counts)
    COUNT("min_numbers", options.min_numbers, "3", 2, TP_COUNTDOWN_NUMBERS, "Fewest numbers of a question.")
    COUNT("max_numbers", options.max_numbers, "4", 2, TP_COUNTDOWN_NUMBERS, "Most numbers of a question.")
    COUNT("max_number", options.max_number, "20", 1, 1000, "Largest number given.")
    COUNT("max_target", options.max_target, "100", 1, 1e6, "Largest number to reach.")
    TEXT("operators", options.operators, "\"+-*/\"", "Operators a solution is made with.")
    WORD("form", options.form, "instruct", "instruct|plain", "How questions are asked: in words, or as \"3 5 7=56:\".")
    REAL("validation_share", options.validation_share, "0.1", 1e-6, 0.999999, "Share of all questions kept for validation.")
};
/* clang-format on */

static tp_status check(void *generator_, tp_error *err)
{
    generator *g = generator_;
    g->options.seed = (uint64_t)g->counts.seed;
    return tp_countdown_check(&g->options, err);
}

static void make(const void *generator_, tp_split split, uint64_t index, tp_made_prompt *ret)
{
    const generator *g = generator_;
    tp_countdown q;
    tp_countdown_make(&g->options, split, index, &q);
    tp_countdown_ask((tp_countdown_form)g->options.form, q.numbers, q.n_numbers, q.target,
                     &ret->text);
    tp_buf_adds(&ret->truth, q.solution);
    tp_buf_adds(&ret->row, "{\"numbers\":[");
    for (int i = 0; i < q.n_numbers; i++)
        tp_buf_addf(&ret->row, "%s%lld", i ? "," : "", (long long)q.numbers[i]);
    tp_buf_addf(&ret->row, "],\"target\":%lld,\"solution\":\"%s\"}", (long long)q.target,
                q.solution);
}

/* A row of a data set that gives numbers and a target and no wording. */
static bool ask(const tp_json *row, tp_buf *out)
{
    tp_countdown q;
    if (!read_question(row, &q))
        return false;
    tp_countdown_ask(TP_COUNTDOWN_INSTRUCT, q.numbers, q.n_numbers, q.target, out);
    return true;
}

static void describe(const void *generator_, tp_buf *out)
{
    const tp_countdown_options *o = &((const generator *)generator_)->options;
    tp_buf_addf(out,
                "countdown: seed %llu, %lld to %lld numbers up to %lld, targets up to %lld, "
                "operators %s, %s, %g held out",
                (unsigned long long)o->seed, (long long)o->min_numbers, (long long)o->max_numbers,
                (long long)o->max_number, (long long)o->max_target, o->operators,
                o->form == TP_COUNTDOWN_PLAIN ? "plain" : "in words", o->validation_share);
}

const tp_environment_kind tp_env_countdown = {
    .name = "countdown",
    .doc = "1 for an expression of the given numbers, each used once, that equals the target.",
    .settings = {rows, TP_COUNTOF(rows), sizeof(settings)},
    .score = score,
    .generator = {generator_rows, TP_COUNTOF(generator_rows), sizeof(generator)},
    .check = check,
    .make = make,
    .ask = ask,
    .describe = describe};
