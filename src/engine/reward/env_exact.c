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

/* clang-format off */
#define EXACT_ROWS(from, spelling) { \
    WORD("answer_from", answer_from, from, "whole|tag|marker|boxed|last_line", "Where the answer stands.") \
    TEXT("tag", tag, "answer", "Name of the tag around the answer.") \
    TEXT("marker", marker, "\"####\"", "Text that announces the answer.") \
    FLAG("ignore_case", how.ignore_case, spelling, "Capital and small letters are the same.") \
    FLAG("only_alphanumeric", how.only_alphanumeric, spelling, "Only letters and digits count.") \
    FLAG("squeeze_spaces", how.squeeze_spaces, "false", "A run of white space is one space; at both ends it never counts.") \
}
/* clang-format on */

static const tp_option exact_rows[] = EXACT_ROWS("whole", "false");
static const tp_option alnum_rows[] = EXACT_ROWS("tag", "true");

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
        tp_reward_lacks_truth(ret, c->prompt->id);
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
