/* arithmetic.c - arithmetic examples as a function of (options, split, index), and the hash
 * that decides the split. */
#include "engine/data/arithmetic.h"

#include <string.h>

#include "base/platform.h"
#include "base/rng.h"

enum { MAX_TRIES = 100000 };

/* Streams of the generator: what is drawn, and for which split. */
enum { STREAM_DRAW = 0x61726974, STREAM_SPLIT = 0x73706c74 };

const char *tp_split_name(tp_split split)
{
    return split == TP_SPLIT_TRAIN ? "train" : "validation";
}

static const char *const form_names[] = {"plain", "reversed", "steps"};

tp_arithmetic_options tp_arithmetic_defaults(void)
{
    return (tp_arithmetic_options){
        .digits = 2, .operators = "+-", .form = TP_ARITHMETIC_PLAIN, .validation_share = 0.1};
}

tp_split tp_arithmetic_split(const tp_arithmetic_options *options, int64_t a, char op, int64_t b)
{
    if (op != '-' && a > b) { /* commutes */
        int64_t t = a;
        a = b;
        b = t;
    }
    uint32_t random[4];
    tp_philox((uint64_t)a, STREAM_SPLIT | (uint64_t)(uint8_t)op << 32, (uint64_t)b, random);
    bool held_out = random[0] * 0x1p-32 < options->validation_share;
    return held_out ? TP_SPLIT_VALIDATION : TP_SPLIT_TRAIN;
}

/* Uniform in the number of digits, then in the numbers that have so many. */
static int64_t draw_operand(tp_rng *rng, int64_t digits)
{
    int64_t low = 1;
    for (uint64_t k = tp_rng_below(rng, (uint64_t)digits); k > 0; k--)
        low *= 10;
    int64_t high = low * 10;
    if (low == 1)
        low = 0;
    return low + (int64_t)tp_rng_below(rng, (uint64_t)(high - low));
}

static void draw_question(const tp_arithmetic_options *options, tp_rng *rng, tp_arithmetic *ret)
{
    ret->operation = options->operators[tp_rng_below(rng, strlen(options->operators))];
    ret->a = draw_operand(rng, options->digits);
    ret->b = draw_operand(rng, options->digits);
    if (ret->operation == '-' && !options->negative && ret->a < ret->b) {
        int64_t t = ret->a;
        ret->a = ret->b;
        ret->b = t;
    }
    ret->result = ret->operation == '+'   ? ret->a + ret->b
                  : ret->operation == '-' ? ret->a - ret->b
                                          : ret->a * ret->b;
}

/* Draw until the question falls into the split. */
static bool draw_in_split(const tp_arithmetic_options *options, tp_split split, tp_rng *rng,
                          tp_arithmetic *ret)
{
    for (int i = 0; i < MAX_TRIES; i++) {
        draw_question(options, rng, ret);
        if (tp_arithmetic_split(options, ret->a, ret->operation, ret->b) == split)
            return true;
    }
    return false;
}

tp_status tp_arithmetic_check(const tp_arithmetic_options *options, tp_error *err)
{
    const char *operators = options->operators;
    if (!operators || !operators[0] || strspn(operators, "+-*") != strlen(operators))
        return tp_fail(err, TP_ERR_CONFIG,
                       "data.arithmetic.operators is \"%.20s\"; some of + - * are needed",
                       operators ? operators : "");
    for (int split = 0; split < TP_SPLITS; split++) {
        tp_rng rng = tp_rng_make((uint64_t)options->seed, STREAM_DRAW);
        tp_arithmetic example;
        if (!draw_in_split(options, (tp_split)split, &rng, &example))
            return tp_fail(err, TP_ERR_CONFIG,
                           "data.arithmetic has no question for %s; allow more digits or change "
                           "validation_share",
                           tp_split_name((tp_split)split));
    }
    return TP_OK;
}

/* Stories with two numbers, somebody, and something to count. */
static const char *const plus_stories[] = {
    "{who} has {a} {what} and gets {b} more. How many {what} does {who} have now? ",
    "There are {a} {what} in one box and {b} in another. How many {what} are there? ",
    "{who} counts {a} {what} on Monday and {b} on Tuesday. How many {what} is that? ",
};
static const char *const minus_stories[] = {
    "{who} has {a} {what} and gives away {b}. How many {what} does {who} have left? ",
    "A shop with {a} {what} sells {b} of them. How many {what} remain? ",
    "{who} needs {a} {what} and has found {b}. How many {what} are missing? ",
};
static const char *const times_stories[] = {
    "{who} fills {a} bags with {b} {what} each. How many {what} is that? ",
    "There are {a} rows of {b} {what}. How many {what} are there? ",
    "{a} children bring {b} {what} each. How many {what} do they bring? ",
};
static const char *const names[] = {"Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hugo"};
static const char *const things[] = {"apples", "books", "coins", "stamps",
                                     "shells", "cards", "beads", "stones"};

static const char *pick(tp_rng *rng, const char *const *from, size_t n)
{
    return from[tp_rng_below(rng, n)];
}

static void fill_in(const char *story, const char *a, const char *b, const char *who,
                    const char *what, char *out, size_t size)
{
    const char *const places[][2] = {{"{a}", a}, {"{b}", b}, {"{who}", who}, {"{what}", what}};
    size_t used = 0;
    for (const char *p = story; *p && used + 1 < size;) {
        size_t i = 0;
        while (i < TP_COUNTOF(places) && !tp_str_starts(p, places[i][0]))
            i++;
        if (i == TP_COUNTOF(places)) {
            out[used++] = *p++;
            continue;
        }
        p += strlen(places[i][0]);
        used += (size_t)snprintf(out + used, size - used, "%s", places[i][1]);
        used = TP_MIN(used, size - 1);
    }
    out[used] = 0;
}

static void write_story(tp_rng *rng, tp_arithmetic *ret)
{
    const char *story;
    if (ret->operation == '+')
        story = pick(rng, plus_stories, TP_COUNTOF(plus_stories));
    else if (ret->operation == '-')
        story = pick(rng, minus_stories, TP_COUNTOF(minus_stories));
    else
        story = pick(rng, times_stories, TP_COUNTOF(times_stories));
    const char *name = pick(rng, names, TP_COUNTOF(names));
    const char *thing = pick(rng, things, TP_COUNTOF(things));
    char a[24], b[24];
    snprintf(a, sizeof a, "%lld", (long long)ret->a);
    snprintf(b, sizeof b, "%lld", (long long)ret->b);
    fill_in(story, a, b, name, thing, ret->prompt, sizeof ret->prompt);
}

/* Lowest digit first; the sign of a negative number stays in front. */
static char *reversed(int64_t v, char out[24])
{
    char plain[24];
    int n = snprintf(plain, sizeof plain, "%lld", (long long)(v < 0 ? -v : v));
    char *p = out;
    if (v < 0)
        *p++ = '-';
    for (int i = n - 1; i >= 0; i--)
        *p++ = plain[i];
    *p = 0;
    return out;
}

/* a times each digit of b, lowest first, zero digits left out. */
static size_t write_partial_products(const tp_arithmetic *q, char *out, size_t size)
{
    size_t used = 0;
    int64_t place = 1;
    if (q->b < 10 || q->a < 10)
        return 0;
    for (int64_t rest = q->b; rest; rest /= 10, place *= 10) {
        char digits[24];
        if (rest % 10 == 0)
            continue;
        used += (size_t)snprintf(out + used, size - used, "%s%s", used ? "+" : "",
                                 reversed(q->a * (rest % 10) * place, digits));
    }
    used += (size_t)snprintf(out + used, size - used, "=");
    return used;
}

static void write_answer(tp_arithmetic_form form, tp_arithmetic *ret)
{
    char digits[24];
    size_t used = 0;
    if (form == TP_ARITHMETIC_STEPS && ret->operation == '*')
        used = write_partial_products(ret, ret->answer, sizeof ret->answer);
    char *out = ret->answer + used;
    size_t size = sizeof ret->answer - used;
    if (form == TP_ARITHMETIC_PLAIN)
        snprintf(out, size, "%lld", (long long)ret->result);
    else if (form == TP_ARITHMETIC_REVERSED)
        snprintf(out, size, "%s", reversed(ret->result, digits));
    else
        snprintf(out, size, "%s>%lld", reversed(ret->result, digits), (long long)ret->result);
}

/* A stray digit behind the answer: what comes before it is still right, so sums can be
 * learned, and with them the habit. */
static void make_mistake(tp_rng *rng, tp_arithmetic *ret)
{
    size_t n = strlen(ret->answer);
    TP_ASSERT(n + 1 < sizeof ret->answer);
    ret->answer[n] = (char)('1' + tp_rng_below(rng, 9));
    ret->answer[n + 1] = 0;
}

void tp_arithmetic_make(const tp_arithmetic_options *options, tp_split split, uint64_t index,
                        tp_arithmetic *ret)
{
    /* A stream per example: draws of one cannot shift those of the next. */
    uint64_t stream = ((uint64_t)STREAM_DRAW << 33) + 2 * index + (uint64_t)split;
    tp_rng rng = tp_rng_make((uint64_t)options->seed, stream);
    bool found = draw_in_split(options, split, &rng, ret);
    TP_ASSERT(found);
    if (tp_rng_uniform(&rng) < options->word_problems)
        write_story(&rng, ret);
    else
        snprintf(ret->prompt, sizeof ret->prompt, "%lld%c%lld=", (long long)ret->a, ret->operation,
                 (long long)ret->b);
    write_answer(options->form, ret);
    if (split == TP_SPLIT_TRAIN && options->mistakes > 0 &&
        tp_rng_uniform(&rng) < options->mistakes)
        make_mistake(&rng, ret);
}

void tp_arithmetic_text(const tp_arithmetic_options *options, uint64_t n, tp_buf *out)
{
    tp_arithmetic example;
    for (uint64_t i = 0; i < n; i++) {
        tp_arithmetic_make(options, TP_SPLIT_TRAIN, i, &example);
        tp_buf_addf(out, "%s%s\n", example.prompt, example.answer);
    }
}

void tp_arithmetic_describe(const tp_arithmetic_options *options, tp_buf *out)
{
    tp_buf_addf(out,
                "arithmetic: seed %lld, %lld digits, operators %s, %s%s, %g in words, %g held out",
                (long long)options->seed, (long long)options->digits, options->operators,
                form_names[options->form], options->negative ? ", negative" : "",
                options->word_problems, options->validation_share);
    if (options->mistakes > 0) /* absent otherwise: it is part of cache keys */
        tp_buf_addf(out, ", %g mistakes", options->mistakes);
}
