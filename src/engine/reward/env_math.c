/* env_math.c - answers that are numbers, or mathematics that is spelled one way.
 *
 * First the place of the answer is found (a box, a marker, a tag, the last number), then
 * it is compared with the expected one: as numbers when both are, else letter by letter in
 * the normal spelling of answer.h. */
#include <string.h>

#include "base/platform.h"
#include "engine/reward/answer.h"
#include "engine/reward/environment_rows.h"
#include "engine/reward/number.h"

enum { FROM_AUTO, FROM_BOXED, FROM_MARKER, FROM_TAG, FROM_LAST, FROM_WHOLE };
enum { VERIFY_MATH, VERIFY_ENGLISH_MULTICHOICE };

typedef struct {
    int answer_from, verifier_type;
    const char *marker, *tag;
    bool strict, only_numbers;
    double tolerance, relative_tolerance;
} settings;

/* The rows of a kind: where the answer stands by default, and whether it must stand there. */
/* clang-format off */
#define MATH_ROWS(from, is_strict, numbers) { \
    WORD("answer_from", answer_from, from, "auto|boxed|marker|tag|last|whole", "Where the answer stands; auto: the box, else the marker, else the tag, else the last number.") \
    TEXT("marker", marker, "\"####\"", "Text that announces the answer.") \
    TEXT("tag", tag, "answer", "Name of the tag around the answer.") \
    FLAG("strict", strict, is_strict, "An answer that does not stand in its place is none; else the last number counts.") \
    FLAG("only_numbers", only_numbers, numbers, "The expected answer must be a number; else text is compared as text.") \
    REAL("tolerance", tolerance, "0.0", 0, 1e300, "Largest difference that still counts as equal.") \
    REAL("relative_tolerance", relative_tolerance, "0.0", 0, 1, "The same as a share of the expected answer.") \
    WORD("verifier_type", verifier_type, "math", "math|english_multichoice", "english_multichoice: the letter behind the last \"Answer:\" is compared.") \
    ROW("math_verify_impl", TP_OPT_ENUM, TP_OPT_NOT_STORED, "hf_math_verify", "Temper has a verifier of its own.", .ignored = true, .choices = "hf_math_verify|dapo_math_verify") \
}
/* clang-format on */

static const tp_option math_rows[] = MATH_ROWS("auto", "false", "false");
static const tp_option expression_rows[] = MATH_ROWS("tag", "true", "false");
static const tp_option numeric_rows[] = MATH_ROWS("auto", "false", "true");
static const tp_option gsm8k_rows[] = MATH_ROWS("marker", "true", "true");

/* ---- the place ---- */

static tp_slice find_at(const settings *o, int place, tp_slice text)
{
    switch (place) {
    case FROM_BOXED:
        return tp_answer_boxed(text);
    case FROM_MARKER:
        return tp_answer_after(text, o->marker);
    case FROM_TAG:
        return tp_answer_in_tag(text, o->tag);
    case FROM_WHOLE:
        return tp_answer_trim(text);
    default:
        return (tp_slice){0};
    }
}

/* *place: the one that the settings name, of FROM_AUTO the one that the text has. */
static tp_slice find_place(const settings *o, tp_slice text, int *place)
{
    static const int in_turn[] = {FROM_BOXED, FROM_MARKER, FROM_TAG};
    tp_slice found = {0};
    *place = o->answer_from;
    if (*place != FROM_AUTO)
        return find_at(o, *place, text);
    for (size_t i = 0; i < TP_COUNTOF(in_turn) && !found.data; i++)
        found = find_at(o, *place = in_turn[i], text);
    return found;
}

/* What the model answers: a slice, and a number if there is one in it. */
typedef struct {
    tp_slice text;
    bool has_number;
    tp_number number;
} reply;

/* In its place an answer must be a number and nothing else, unless its line goes on in
 * words ("#### 42 apples in all, or 6 for each"): then the first number of it. */
static reply find_reply(const settings *o, tp_slice text, bool wants_number)
{
    int place;
    reply r = {.text = find_place(o, text, &place)};
    if (r.text.data && r.text.len) {
        r.has_number = tp_number_only(r.text, &r.number);
        if (!r.has_number && wants_number && (place == FROM_MARKER || place == FROM_TAG))
            r.has_number = tp_number_in_words(r.text, &r.number);
        return r;
    }
    if (o->strict && o->answer_from != FROM_LAST && o->answer_from != FROM_AUTO)
        return (reply){0};
    if (!wants_number) {
        r.text = tp_answer_last_line(text);
        return r;
    }
    r.has_number = tp_number_last(text, &r.number);
    if (r.has_number)
        r.text = (tp_slice){text.data + r.number.begin, r.number.end - r.number.begin};
    return r;
}

/* ---- comparing ---- */

static bool same_spelling(tp_slice a, tp_slice b)
{
    TP_OWN(tp_buf) x = {0}, y = {0};
    tp_answer_normalize(a, &x);
    tp_answer_normalize(b, &y);
    return x.len == y.len && x.len && memcmp(x.data, y.data, x.len) == 0;
}

static void give(tp_reward *ret, bool right, const reply *r)
{
    char number[TP_RATIONAL_TEXT];
    TP_OWN(tp_buf) text = {0};
    const char *answer = NULL;
    if (r->has_number) {
        tp_number_text(&r->number, number);
        answer = number;
    } else if (r->text.data) {
        tp_answer_normalize(r->text, &text);
        answer = tp_buf_str(&text);
    }
    tp_reward_give(ret, right ? 1 : 0, right ? TP_CORRECT_YES : TP_CORRECT_NO, answer);
}

/* The expected answer: behind "####", in a box, or as it is. */
static tp_slice find_truth(const char *truth)
{
    tp_slice whole = tp_answer_trim(tp_slice_of(truth)), found = tp_answer_after(whole, "####");
    if (!found.data)
        found = tp_answer_boxed(whole);
    return found.data ? found : whole;
}

static void score_math(const settings *o, const tp_completion *c, tp_reward *ret)
{
    tp_slice truth = find_truth(c->prompt->truth);
    tp_number expected = {0};
    bool is_number = tp_number_only(truth, &expected);
    if (!is_number && o->only_numbers) {
        tp_reward_exclude(ret, TP_REWARD_REFUSED, "the expected answer of %s is no number: '%.80s'",
                          c->prompt->id, c->prompt->truth);
        return;
    }
    reply r = find_reply(o, (tp_slice){c->text, c->n_text}, is_number);
    bool right = false;
    if (is_number && r.has_number)
        right = tp_number_equal(&r.number, &expected, o->tolerance, o->relative_tolerance);
    if (!right && r.text.data)
        right = same_spelling(r.text, truth);
    if (right) /* in a vote all that are right are one answer */
        r = (reply){.text = truth, .has_number = is_number, .number = expected};
    give(ret, right, &r);
}

/* ---- choices, as NeMo RL reads them ---- */

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

/* Behind mark-up that may stand around a letter, and behind the blanks that are given. */
static size_t skip_markup(tp_slice text, size_t at, const char *blanks)
{
    static const char *const known[] = {"**",  "}$",        "$",         "{",       "\\$",   "\\{",
                                        "\\(", "\\mathrm{", "\\mathbf{", "\\boxed", "\\text"};
    for (size_t from = SIZE_MAX; from != at;) {
        from = at;
        for (size_t i = 0; i < TP_COUNTOF(known); i++)
            if (text.len - at >= strlen(known[i]) &&
                memcmp(text.data + at, known[i], strlen(known[i])) == 0)
                at += strlen(known[i]);
        while (at < text.len && text.data[at] && strchr(blanks, text.data[at]))
            at++;
    }
    return at;
}

/* The letter of an expected answer that is one and nothing else; 0: it is not. */
static char find_choice(const char *truth)
{
    tp_slice text = tp_answer_trim(tp_slice_of(truth));
    size_t at = skip_markup(text, 0, "");
    bool is_one = at < text.len && is_letter(text.data[at]);
    return is_one && skip_markup(text, at + 1, "") == text.len ? text.data[at] : 0;
}

/* The letter behind the last "Answer:", of the case of the one that is expected; else 0. */
static char find_chosen(tp_slice text, char expected)
{
    static const char word[] = "answer";
    char letter = 0;
    for (size_t i = 0; i + sizeof word <= text.len; i++) {
        if (strncasecmp(text.data + i, word, sizeof word - 1) != 0)
            continue;
        size_t at = skip_markup(text, i + sizeof word - 1, " \t\r\n\v\f");
        if (at >= text.len || text.data[at] != ':')
            continue;
        at = skip_markup(text, at + 1, " \t");
        if (at < text.len && is_letter(text.data[at]) &&
            is_capital(text.data[at]) == is_capital(expected))
            letter = text.data[at];
    }
    return letter;
}

static void score_choice(const tp_completion *c, tp_reward *ret)
{
    char expected = find_choice(c->prompt->truth), answer[2] = {0};
    if (!expected) {
        tp_reward_exclude(ret, TP_REWARD_REFUSED,
                          "the expected answer of %s is no letter alone, such as C: '%.80s'",
                          c->prompt->id, c->prompt->truth);
        return;
    }
    answer[0] = find_chosen((tp_slice){c->text, c->n_text}, expected);
    bool right = answer[0] == expected;
    tp_reward_give(ret, right, right ? TP_CORRECT_YES : TP_CORRECT_NO, answer[0] ? answer : NULL);
}

static void score(const void *o, void *state, const tp_completion *c, tp_reward *ret)
{
    (void)state;
    const settings *s = o;
    if (!c->prompt->truth)
        tp_reward_lacks_truth(ret, c->prompt->id);
    else if (s->verifier_type == VERIFY_ENGLISH_MULTICHOICE)
        score_choice(c, ret);
    else
        score_math(s, c, ret);
}

#define TP_MATH_KIND(title, rows, text)                                                           \
    {                                                                                             \
        .name = title, .doc = text,                                                               \
        .settings = {.options = rows, .n = sizeof rows / sizeof *rows, .size = sizeof(settings)}, \
        .score = score                                                                            \
    }

const tp_environment_kind tp_env_math = TP_MATH_KIND(
    "math", math_rows, "1 for the expected number or formula: boxed, marked, tagged or last.");
const tp_environment_kind tp_env_math_default =
    TP_MATH_KIND("math_default", math_rows, "NeMo RL's other name of math.");
const tp_environment_kind tp_env_math_expr = TP_MATH_KIND(
    "math_expr", expression_rows, "1 for the expected number or formula inside <answer> tags.");
const tp_environment_kind tp_env_numeric =
    TP_MATH_KIND("numeric", numeric_rows, "1 for the expected number: boxed, marked or last.");
const tp_environment_kind tp_env_gsm8k =
    TP_MATH_KIND("gsm8k", gsm8k_rows, "1 for the expected number behind \"####\".");
