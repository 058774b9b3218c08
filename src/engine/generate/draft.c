/* draft.c - what is tried as the next tokens of a text: speculative decoding by prompt lookup
 * (A. Saxena, 2023; `prompt_lookup_num_tokens` of transformers, the method "ngram" of vLLM).
 *
 * Where the last ids of a text stood in it before, what followed them there is tried:
 *
 *     x a b c y a b | c y a b c y ...
 *
 * "a b" was followed by "c y a b", and behind the end of the text the draft follows itself.  Of
 * runs of last ids the longest counts, and of equals the latest.
 *
 * A token that is wrong costs a row.  So a text's next draft is one longer than what was right of
 * its last one, and twice as long where all was (the idea: `num_assistant_tokens_schedule` of
 * transformers): the draft of a text that repeats itself is soon as long as it may be, of another
 * it stays at a token.
 */
#include "base/platform.h"
#include "engine/generate/engine_internal.h"

enum { DEFAULT_LOOKUP = 5, DEFAULT_ROWS = 16, MOST_TOKENS = 4096 };

tp_status tp_draft_read_options(tp_drafting *o, int64_t max_running, tp_error *err)
{
    if (o->tokens == 0) {
        *o = (tp_drafting){0};
        return TP_OK;
    }
    if (o->tokens < 0 || o->tokens > MOST_TOKENS || o->rows < 0)
        return tp_fail(err, TP_ERR_CONFIG, "drafts of %lld tokens in %lld rows; expected 0 to %d",
                       (long long)o->tokens, (long long)o->rows, MOST_TOKENS);
    /* As in vLLM, one of the two alone says both. */
    if (o->lookup_max == 0)
        o->lookup_max = o->lookup_min ? o->lookup_min : DEFAULT_LOOKUP;
    if (o->lookup_min == 0)
        o->lookup_min = o->lookup_max;
    if (o->lookup_min < 1 || o->lookup_max < o->lookup_min)
        return tp_fail(err, TP_ERR_CONFIG,
                       "prompt_lookup_min is %lld, prompt_lookup_max %lld; expected 1 or more, and "
                       "no shorter run than that",
                       (long long)o->lookup_min, (long long)o->lookup_max);
    o->rows = TP_MIN(o->rows ? o->rows : DEFAULT_ROWS, max_running * (1 + o->tokens));
    return TP_OK;
}

/* How many ids before `end` are the last ones of the text, `most` at most. */
static int64_t run_before(const sample *s, int64_t end, int64_t most)
{
    int64_t length = sample_length(s), n = 0;
    while (n < TP_MIN(most, end) && sample_token(s, end - 1 - n) == sample_token(s, length - 1 - n))
        n++;
    return n;
}

/* The place behind the run, or 0. */
static int64_t look_up(const sample *s, int64_t least, int64_t most)
{
    int64_t longest = least - 1, place = 0;
    for (int64_t end = sample_length(s) - 1; end > longest && longest < most; end--) {
        int64_t n = run_before(s, end, most);
        if (n > longest) {
            longest = n;
            place = end;
        }
    }
    return place;
}

void tp_draft_next(tp_engine *e, sample *s, int64_t room)
{
    const tp_drafting *o = &e->options.drafting;
    int64_t length = sample_length(s);
    int64_t n = TP_MIN(s->most_draft ? TP_MIN(s->most_draft, o->tokens) : o->tokens, room);
    n = TP_MIN(n, s->request->max_new - s->n - 1); /* behind the last one nothing is drawn */
    n = TP_MIN(n, e->options.max_length - length - 1);
    if (n <= 0 || s->is_plain)
        return;
    int64_t place = look_up(s, o->lookup_min, o->lookup_max);
    if (place == 0)
        return;
    n = tp_schedule_reserve(e, s, n);
    for (int64_t i = 0; i < n; i++) /* behind the end of the text the draft itself goes on */
        s->ids[s->n + i] = sample_token(s, place + i);
    s->n_draft = n;
}

void tp_draft_note(sample *s, int64_t tried, int64_t right)
{
    if (tried > 0)
        s->most_draft = right == tried ? 2 * tried : right + 1;
}
