/* env_format.c - rewards for how an answer is written: a pattern, or tags.
 *
 * Patterns run with bounded effort; one that gives up over a completion excludes it. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string.h>

#include "base/platform.h"
#include "engine/reward/environment_rows.h"

enum { MATCH_LIMIT = 1000 * 1000, HEAP_LIMIT_KIB = 64 * 1024 };
enum { MATCH_SEARCH, MATCH_WHOLE };

typedef struct {
    const char *pattern;
    int match;
    tp_str_list tags;
    const char *think_tag, *answer_tag;
} settings;

/* clang-format off */
static const tp_option rows[] = {
    TEXT("pattern", pattern, "null", "Regular expression (PCRE2; a dot matches newlines too): 1 where it matches.")
    WORD("match", match, "search", "search|whole", "The pattern matches somewhere, or the whole of the text.")
    TEXTS("tags", tags, "[]", "1 where each of these tags opens and closes exactly once, in this order.")
    TEXT("think_tag", think_tag, "think", "Without pattern and tags, as NeMo RL: 0.25 for this pair of tags ...")
    TEXT("answer_tag", answer_tag, "answer", "... and 0.75 for this one.")
};
/* clang-format on */

static tp_status open_format(const void *settings_, const tp_environment_context *context,
                             void **ret_state, tp_error *err)
{
    (void)context;
    const settings *o = settings_;
    *ret_state = NULL;
    if (!o->pattern)
        return TP_OK;
    if (o->tags.n)
        return tp_fail(err, TP_ERR_CONFIG, "format has a pattern and tags; set one of them");
    int code = 0;
    PCRE2_SIZE at = 0;
    uint32_t how =
        PCRE2_UTF | PCRE2_UCP | PCRE2_DOTALL | PCRE2_NEVER_BACKSLASH_C | PCRE2_MATCH_INVALID_UTF;
    if (o->match == MATCH_WHOLE)
        how |= PCRE2_ANCHORED | PCRE2_ENDANCHORED;
    pcre2_code *compiled =
        pcre2_compile((PCRE2_SPTR)o->pattern, PCRE2_ZERO_TERMINATED, how, &code, &at, NULL);
    if (!compiled) {
        char message[160];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message);
        return tp_fail(err, TP_ERR_CONFIG, "format: pattern \"%.200s\", character %zu: %s",
                       o->pattern, (size_t)at + 1, message);
    }
    (void)pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE); /* a matter of speed only */
    *ret_state = compiled;
    return TP_OK;
}

static void close_format(void *state) { pcre2_code_free(state); }

static void score_pattern(const pcre2_code *code, const tp_completion *c, tp_reward *ret)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    pcre2_match_context *context = pcre2_match_context_create(NULL);
    TP_ASSERT(data && context);
    pcre2_set_match_limit(context, MATCH_LIMIT);
    pcre2_set_heap_limit(context, HEAP_LIMIT_KIB);
    int rc = pcre2_match(code, (PCRE2_SPTR)c->text, c->n_text, 0, 0, data, context);
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH) {
        tp_reward_give(ret, rc >= 0, TP_CORRECT_UNKNOWN, NULL);
        return;
    }
    char message[160];
    pcre2_get_error_message(rc, (PCRE2_UCHAR *)message, sizeof message);
    tp_reward_exclude(ret, TP_REWARD_REFUSED, "the pattern gave up: %s", message);
}

/* Bytes from `text` where `word` stands, SIZE_MAX if nowhere. */
static size_t find(const char *text, size_t n, const char *word)
{
    const char *p = n ? memmem(text, n, word, strlen(word)) : NULL;
    return p ? (size_t)(p - text) : SIZE_MAX;
}

static size_t count_word(const char *text, size_t n, const char *word)
{
    size_t count = 0, len = strlen(word), at;
    while ((at = find(text, n, word)) != SIZE_MAX) {
        text += at + len;
        n -= at + len;
        count++;
    }
    return count;
}

static double score_tags(const settings *o, const tp_completion *c)
{
    size_t from = 0;
    for (size_t i = 0; i < o->tags.n; i++) {
        for (int k = 0; k < 2; k++) {
            TP_OWN(tp_buf) word = {0};
            tp_buf_addf(&word, k ? "</%s>" : "<%s>", o->tags.v[i]);
            size_t at = find(c->text + from, c->n_text - from, word.data);
            if (at == SIZE_MAX || count_word(c->text, c->n_text, word.data) != 1)
                return 0;
            from += at + word.len;
        }
    }
    return 1;
}

/* <tag> ... </tag> somewhere. */
static bool has_pair(const tp_completion *c, const char *tag)
{
    TP_OWN(tp_buf) open = {0}, close = {0};
    tp_buf_addf(&open, "<%s>", tag);
    tp_buf_addf(&close, "</%s>", tag);
    size_t at = find(c->text, c->n_text, open.data);
    if (at == SIZE_MAX)
        return false;
    at += open.len;
    return find(c->text + at, c->n_text - at, close.data) != SIZE_MAX;
}

/* Form says nothing about being right: `correct` stays unknown. */
static void score(const void *settings_, void *state, const tp_completion *c, tp_reward *ret)
{
    const settings *o = settings_;
    if (state)
        score_pattern(state, c, ret);
    else if (o->tags.n)
        tp_reward_give(ret, score_tags(o, c), TP_CORRECT_UNKNOWN, NULL);
    else
        tp_reward_give(ret, 0.25 * has_pair(c, o->think_tag) + 0.75 * has_pair(c, o->answer_tag),
                       TP_CORRECT_UNKNOWN, NULL);
}

const tp_environment_kind tp_env_format = {.name = "format",
                                           .doc =
                                               "Rewards a pattern or tags, whatever the answer is.",
                                           .settings = {rows, TP_COUNTOF(rows), sizeof(settings)},
                                           .open = open_format,
                                           .close = close_format,
                                           .score = score};
