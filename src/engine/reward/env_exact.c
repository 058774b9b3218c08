/* env_exact.c - answers that are text: right when they are the expected text. */
#include <string.h>

#include "engine/reward/answer.h"
#include "engine/reward/environment_rows.h"

enum { FROM_WHOLE, FROM_TAG, FROM_MARKER, FROM_BOXED, FROM_LAST_LINE };

typedef struct {
    int answer_from;
    const char *tag, *marker;
    tp_answer_spelling how;
} settings;

#define TP_EXACT_ROWS(from, spelling)                                                   \
    {                                                                                   \
        {.name = "answer_from",                                                         \
         .type = TP_OPT_ENUM,                                                           \
         .offset = offsetof(settings, answer_from),                                     \
         .default_value = from,                                                         \
         .choices = "whole|tag|marker|boxed|last_line",                                 \
         .doc = "Where the answer stands."},                                            \
            {.name = "tag",                                                             \
             .type = TP_OPT_STRING,                                                     \
             .offset = offsetof(settings, tag),                                         \
             .default_value = "answer",                                                 \
             .doc = "Name of the tag around the answer."},                              \
            {.name = "marker",                                                          \
             .type = TP_OPT_STRING,                                                     \
             .offset = offsetof(settings, marker),                                      \
             .default_value = "\"####\"",                                               \
             .doc = "Text that announces the answer."},                                 \
            {.name = "ignore_case",                                                     \
             .type = TP_OPT_BOOL,                                                       \
             .offset = offsetof(settings, how.ignore_case),                             \
             .default_value = spelling,                                                 \
             .doc = "Capital and small letters are the same."},                         \
            {.name = "only_alphanumeric",                                               \
             .type = TP_OPT_BOOL,                                                       \
             .offset = offsetof(settings, how.only_alphanumeric),                       \
             .default_value = spelling,                                                 \
             .doc = "Only letters and digits count."},                                  \
        {                                                                               \
            .name = "squeeze_spaces", .type = TP_OPT_BOOL,                              \
            .offset = offsetof(settings, how.squeeze_spaces), .default_value = "false", \
            .doc = "A run of white space is one space; at both ends it never counts."   \
        }                                                                               \
    }

static const tp_option exact_rows[] = TP_EXACT_ROWS("whole", "false");
static const tp_option alnum_rows[] = TP_EXACT_ROWS("tag", "true");

static tp_slice find_place(const settings *o, tp_slice text)
{
    switch (o->answer_from) {
    case FROM_TAG:
        return tp_answer_in_tag(text, o->tag);
    case FROM_MARKER:
        return tp_answer_after(text, o->marker);
    case FROM_BOXED:
        return tp_answer_boxed(text);
    case FROM_LAST_LINE:
        return tp_answer_last_line(text);
    default:
        return tp_answer_trim(text);
    }
}

static void score(const void *settings_, void *state, const tp_completion *c, tp_reward *ret)
{
    (void)state;
    const settings *o = settings_;
    if (!c->prompt->truth) {
        tp_reward_exclude(ret, TP_REWARD_REFUSED,
                          "%s has no expected answer; name its column with data.output_key",
                          c->prompt->id);
        return;
    }
    tp_slice found = find_place(o, (tp_slice){c->text, c->n_text});
    TP_OWN(tp_buf) answer = {0}, truth = {0};
    tp_answer_spell(tp_slice_of(c->prompt->truth), &o->how, &truth);
    if (found.data)
        tp_answer_spell(found, &o->how, &answer);
    bool right = found.data && answer.len == truth.len &&
                 (answer.len == 0 || memcmp(answer.data, truth.data, answer.len) == 0);
    tp_reward_give(ret, right, right ? TP_CORRECT_YES : TP_CORRECT_NO,
                   found.data ? tp_buf_str(&answer) : NULL);
}

const tp_environment_kind tp_env_exact = {
    .name = "exact",
    .doc = "1 for exactly the expected text.",
    .settings = {exact_rows, sizeof exact_rows / sizeof *exact_rows, sizeof(settings)},
    .score = score};
const tp_environment_kind tp_env_exact_alnum = {
    .name = "exact_alnum",
    .doc = "1 for the letters and digits of the expected text inside <answer> tags.",
    .settings = {alnum_rows, sizeof alnum_rows / sizeof *alnum_rows, sizeof(settings)},
    .score = score};
