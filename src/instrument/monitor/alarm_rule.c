/* alarm_rule.c - reads a rule, word by word. */
#include "instrument/monitor/alarm_rule.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/platform.h"
#include "base/strings.h"

static const struct {
    const char *name;
    tp_run_role role;
} quantities[] = {{"accuracy", TP_ROLE_ACCURACY},
                  {"clip fraction", TP_ROLE_CLIP_FRACTION},
                  {"data", TP_ROLE_DATA},
                  {"entropy", TP_ROLE_ENTROPY},
                  {"gradient norm", TP_ROLE_GRAD_NORM},
                  {"KL", TP_ROLE_KL},
                  {"learning rate", TP_ROLE_LEARNING_RATE},
                  {"length", TP_ROLE_LENGTH},
                  {"loss", TP_ROLE_LOSS},
                  {"memory", TP_ROLE_MEMORY},
                  {"own throughput", TP_ROLE_OWN_RATE},
                  {"reward", TP_ROLE_REWARD},
                  {"step time", TP_ROLE_STEP_TIME},
                  {"throughput", TP_ROLE_TRAIN_RATE},
                  {"validation loss", TP_ROLE_EVAL_LOSS}};

static const struct {
    const char *word;
    tp_alarm_predicate predicate;
    bool needs_amount;
} predicates[] = {{"above", TP_ALARM_ABOVE, true},    {"below", TP_ALARM_BELOW, true},
                  {"rises", TP_ALARM_RISES, true},    {"falls", TP_ALARM_FALLS, true},
                  {"flat", TP_ALARM_FLAT, false},     {"collapses", TP_ALARM_COLLAPSES, false},
                  {"is", TP_ALARM_NOT_FINITE, false}, {"repeats", TP_ALARM_REPEATS, false}};

static const struct {
    const char *word;
    double factor;
} units[] = {{"B", 1},
             {"kB", 1e3},
             {"MB", 1e6},
             {"GB", 1e9},
             {"TB", 1e12},
             {"KiB", 1024},
             {"MiB", 1048576.0},
             {"GiB", 1073741824.0},
             {"TiB", 1099511627776.0},
             {"ms", 1e-3},
             {"s", 1},
             {"min", 60},
             {"h", 3600}};

enum { WORD = 128 };

/* The words of the text; `at` is the beginning of the current one. */
typedef struct {
    const char *text, *at, *next;
    char word[WORD]; /* "" at the end */
    bool is_quoted;
    tp_error *err;
} words;

static tp_status fail(const words *w, const char *fmt, ...) TP_PRINTF(2, 3);
static tp_status fail(const words *w, const char *fmt, ...)
{
    char what[600];
    size_t column = 1;
    for (const char *c = w->text; c < w->at; c++)
        column += ((unsigned char)*c & 0xc0) != 0x80;
    TP_FORMAT(what, fmt);
    return tp_fail(w->err, TP_ERR_CONFIG, "'%.200s', column %zu: %s", w->text, column, what);
}

static bool is_space(char c) { return c == ' ' || c == '\t'; }

/* "10%" is two words, as "10 %" is. */
static tp_status next_word(words *w)
{
    const char *s = w->next;
    size_t n = 0;
    while (is_space(*s))
        s++;
    w->at = s;
    w->is_quoted = *s == '\'' || *s == '"';
    if (w->is_quoted) {
        const char *end = strchr(s + 1, *s);
        if (!end)
            return fail(w, "the quote does not end");
        n = (size_t)(end - s - 1);
        w->next = end + 1;
        s++;
        if (n == 0)
            return fail(w, "the name is empty");
    } else {
        bool is_number = (*s >= '0' && *s <= '9') || *s == '.';
        while (s[n] && !is_space(s[n]) && !(is_number && s[n] == '%'))
            n++;
        n += n == 0 && *s; /* '%' by itself */
        w->next = s + n;
    }
    if (n >= WORD)
        return fail(w, "a word of %zu bytes is longer than the %d that a name may have", n,
                    WORD - 1);
    memcpy(w->word, s, n);
    w->word[n] = 0;
    return TP_OK;
}

static bool is_word(const words *w, const char *word)
{
    return !w->is_quoted && strcasecmp(w->word, word) == 0;
}

static bool is_end(const words *w) { return !w->is_quoted && !w->word[0]; }

static int predicate_at(const words *w)
{
    for (size_t i = 0; i < TP_COUNTOF(predicates); i++)
        if (is_word(w, predicates[i].word))
            return (int)i;
    return -1;
}

/* Behind "expected here": the word that is there instead. */
static const char *instead(const words *w, char out[96])
{
    snprintf(out, 96, is_end(w) ? "; the rule ends" : ", not '%.60s'", w->word);
    return out;
}

static void list_quantities(tp_buf *out)
{
    for (size_t i = 0; i < TP_COUNTOF(quantities); i++)
        tp_buf_addf(out, "%s%s", i ? ", " : "", quantities[i].name);
}

/* Words up to the predicate.  A single one that is no quantity is the name of a metric. */
static tp_status read_subject(words *w, tp_alarm_condition *c)
{
    const char *begin = w->at;
    size_t n_words = 0;
    tp_buf name = {0};
    bool is_metric = w->is_quoted;
    c->role = -1;
    for (; !is_end(w) && predicate_at(w) < 0 && name.len < TP_ALARM_SUBJECT; n_words++) {
        tp_buf_addf(&name, "%s%s", n_words ? " " : "", w->word);
        tp_status status = next_word(w);
        if (status != TP_OK) {
            tp_buf_release(&name);
            return status;
        }
    }
    bool fits = name.len < TP_ALARM_SUBJECT;
    snprintf(c->subject, sizeof c->subject, "%s", tp_buf_str(&name));
    tp_buf_release(&name);
    for (size_t i = 0; i < TP_COUNTOF(quantities) && !is_metric; i++)
        if (strcasecmp(c->subject, quantities[i].name) == 0)
            c->role = (int)quantities[i].role;
    w->at = n_words != 1 ? begin : w->at;
    if (!fits)
        return fail(w, "a subject is at most %d bytes long", TP_ALARM_SUBJECT - 1);
    if (n_words == 0)
        return fail(w,
                    "a rule begins with what it listens to, as in 'train/loss rises by 3 sigma'");
    if (n_words > 1 && c->role < 0 && strpbrk(c->subject, "<>="))
        return fail(w, "comparisons are words: 'train/loss above 5', 'train/reward below 0.1'");
    if (n_words > 1 && c->role < 0) {
        TP_OWN(tp_buf) known = {0};
        list_quantities(&known);
        tp_status status =
            fail(w,
                 "'%.60s' is no quantity; there are %s; the name of a metric with spaces goes in "
                 "quotes",
                 c->subject, tp_buf_str(&known));
        return status;
    }
    return TP_OK;
}

static tp_status read_number(words *w, const char *what, double *ret)
{
    char text[96];
    if (!tp_str_to_f64(w->word, ret) || !isfinite(*ret) || w->is_quoted)
        return fail(w, "a number is expected %s%s", what, instead(w, text));
    return next_word(w);
}

static tp_status read_amount(words *w, tp_alarm_condition *c, bool takes_sigma)
{
    TP_TRY(read_number(w, "here", &c->amount));
    if (is_word(w, "%")) {
        c->unit = TP_ALARM_PERCENT;
        return next_word(w);
    }
    if (is_word(w, "sigma") || is_word(w, "sigmas")) {
        if (!takes_sigma)
            return fail(w, "sigma goes with rises and falls, as in 'rises by 3 sigma'");
        c->unit = TP_ALARM_SIGMA;
        return next_word(w);
    }
    for (size_t i = 0; i < TP_COUNTOF(units); i++)
        if (!w->is_quoted && strcmp(w->word, units[i].word) == 0) {
            c->amount *= units[i].factor;
            return next_word(w);
        }
    return TP_OK;
}

static tp_status read_window(words *w, tp_alarm_window *ret)
{
    static const struct {
        const char *word;
        double seconds; /* 0: steps */
    } lengths[] = {{"steps", 0}, {"step", 0}, {"s", 1}, {"min", 60}, {"h", 3600}};
    double most = 1e6;
    TP_TRY(next_word(w));
    const char *begin = w->at;
    if (is_word(w, "the")) {
        TP_TRY(next_word(w));
        ret->length = INFINITY;
        return is_word(w, "run") ? next_word(w) : fail(w, "'over the' goes on with 'run'");
    }
    TP_TRY(read_number(w, "for the length of the window", &ret->length));
    for (size_t i = 0; i < TP_COUNTOF(lengths); i++) {
        if (!is_word(w, lengths[i].word))
            continue;
        ret->is_time = lengths[i].seconds > 0;
        ret->length *= ret->is_time ? lengths[i].seconds : 1;
        if (!(ret->length > 0) || ret->length > most) {
            w->at = begin;
            return fail(w, "a window is longer than 0 and at most %.0f steps or seconds", most);
        }
        return next_word(w);
    }
    char text[96];
    return fail(w, "a window is so many steps, s, min or h%s", instead(w, text));
}

static tp_status read_windows(words *w, tp_alarm_condition *c)
{
    while (is_word(w, "over") || is_word(w, "for")) {
        tp_alarm_window *window = is_word(w, "over") ? &c->over : &c->hold;
        if (window->length > 0)
            return fail(w, "'%s' was said before", w->word);
        bool is_level = c->predicate == TP_ALARM_ABOVE || c->predicate == TP_ALARM_BELOW;
        if (window == &c->hold && !is_level)
            return fail(w, "'for' goes with above and below; write 'over'");
        if (window == &c->over && is_level)
            return fail(w, "'over' goes with a change; write 'for', as in 'above 1 for 5 steps'");
        if (c->predicate == TP_ALARM_NOT_FINITE)
            return fail(w, "'is not finite' has no window, one value is enough");
        TP_TRY(read_window(w, window));
        bool is_change = c->predicate == TP_ALARM_RISES || c->predicate == TP_ALARM_FALLS ||
                         c->predicate == TP_ALARM_FLAT;
        if (isinf(window->length) && !is_change)
            return fail(w, "'over the run' goes with rises, falls and flat");
    }
    return TP_OK;
}

static tp_status read_not_finite(words *w)
{
    char text[96];
    TP_TRY(next_word(w));
    if (!is_word(w, "not"))
        return fail(w, "'is' goes on with 'not finite'%s", instead(w, text));
    TP_TRY(next_word(w));
    if (!is_word(w, "finite"))
        return fail(w, "'is not' goes on with 'finite'%s", instead(w, text));
    return next_word(w);
}

static tp_status check_amount(words *w, const tp_alarm_condition *c, const char *begin)
{
    w->at = begin;
    bool is_change = c->predicate != TP_ALARM_ABOVE && c->predicate != TP_ALARM_BELOW;
    if (is_change && !(c->amount > 0))
        return fail(w, "a change is above 0: the word before it says which way it goes");
    if (c->predicate == TP_ALARM_COLLAPSES && (c->unit != TP_ALARM_PERCENT || c->amount >= 100))
        return fail(w, "'collapses to' takes per cent of the first values, below 100");
    return TP_OK;
}

static tp_status read_predicate(words *w, tp_alarm_condition *c)
{
    static const char *const before[] = {[TP_ALARM_RISES] = "by",
                                         [TP_ALARM_FALLS] = "by",
                                         [TP_ALARM_FLAT] = "within",
                                         [TP_ALARM_COLLAPSES] = "to",
                                         [TP_ALARM_REPEATS] = NULL};
    int i = predicate_at(w);
    if (i < 0)
        return fail(w,
                    "'%.60s' is followed by above, below, rises, falls, flat, collapses, repeats "
                    "or is not finite",
                    c->subject);
    c->predicate = predicates[i].predicate;
    c->amount = NAN;
    if (c->predicate == TP_ALARM_NOT_FINITE)
        return read_not_finite(w);
    TP_TRY(next_word(w));
    const char *word = before[c->predicate];
    bool has_word = word && is_word(w, word);
    if (has_word)
        TP_TRY(next_word(w));
    if (!predicates[i].needs_amount && !has_word)
        return TP_OK;
    const char *begin = w->at;
    TP_TRY(read_amount(w, c, c->predicate == TP_ALARM_RISES || c->predicate == TP_ALARM_FALLS));
    const char *after = w->at;
    TP_TRY(check_amount(w, c, begin));
    w->at = after;
    return TP_OK;
}

/* Memory in per cent is of what the run may have, which is another metric. */
static void settle(tp_alarm_condition *c)
{
    bool is_level = c->predicate == TP_ALARM_ABOVE || c->predicate == TP_ALARM_BELOW;
    if (c->role == TP_ROLE_MEMORY && is_level && c->unit == TP_ALARM_PERCENT)
        c->role = TP_ROLE_MEMORY_SHARE;
}

static tp_status read_rule(words *w, tp_alarm_rule *rule)
{
    TP_TRY(next_word(w));
    for (;;) {
        tp_alarm_condition *c = &rule->conditions[rule->n++];
        TP_TRY(read_subject(w, c));
        TP_TRY(read_predicate(w, c));
        TP_TRY(read_windows(w, c));
        settle(c);
        if (is_end(w))
            return TP_OK;
        if (!is_word(w, "and"))
            return fail(w,
                        "'%.60s' is not expected here; 'over 50 steps', 'for 5 steps' or 'and' "
                        "may follow",
                        w->word);
        if (rule->n == TP_ALARM_CONDITIONS)
            return fail(w, "a rule has at most %d conditions", TP_ALARM_CONDITIONS);
        TP_TRY(next_word(w));
    }
}

tp_status tp_alarm_rule_parse(const char *text, tp_alarm_rule *ret, tp_error *err)
{
    tp_alarm_rule rule = {0};
    words w = {.text = text, .at = text, .next = text, .err = err};
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' && *c != '\t')
            return tp_fail(err, TP_ERR_CONFIG, "a rule is one line of text without controls");
    size_t n = strlen(text);
    if (n >= sizeof rule.text)
        return tp_fail(err, TP_ERR_CONFIG, "a rule has %zu bytes, at most %zu are read", n,
                       sizeof rule.text - 1);
    if (!tp_utf8_valid(text, n))
        return tp_fail(err, TP_ERR_CONFIG, "a rule is UTF-8, this is not");
    TP_TRY(read_rule(&w, &rule));
    memcpy(rule.text, text, n + 1);
    *ret = rule;
    return TP_OK;
}

int tp_alarm_rank(const tp_alarm_condition *c, const char *tag)
{
    if (c->role >= 0)
        return tp_role_rank((tp_run_role)c->role, tag);
    return fnmatch(c->subject, tag, 0) == 0 ? 0 : -1;
}
