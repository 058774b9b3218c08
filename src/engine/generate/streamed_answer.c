/* streamed_answer.c - a growing answer: what of its text is final, and where a stop string cuts it.
 */
#include "engine/generate/streamed_answer.h"

#include <string.h>

void tp_streamed_answer_begin(tp_streamed_answer *a, const tp_tokenizer *tokenizer,
                              const char *const *stops, int n_stops)
{
    tp_buf text = a->text;
    tp_buf_clear(&text);
    *a = (tp_streamed_answer){
        .tokenizer = tokenizer, .stops = stops, .n_stops = n_stops, .text = text};
}

/* Bytes at the end of the text that a stop string might begin with. */
static size_t undecided(const tp_streamed_answer *a)
{
    size_t most = 0;
    for (int i = 0; i < a->n_stops; i++) {
        size_t n = strlen(a->stops[i]) - 1;
        n = n < a->text.len ? n : a->text.len;
        while (n > most && memcmp(a->text.data + a->text.len - n, a->stops[i], n) != 0)
            n--;
        most = n > most ? n : most;
    }
    return most;
}

static void cut_at_stop(tp_streamed_answer *a)
{
    size_t end = a->text.len;
    for (int i = 0; i < a->n_stops && a->text.len > 0; i++) {
        const char *at = memmem(a->text.data, a->text.len, a->stops[i], strlen(a->stops[i]));
        if (at && (size_t)(at - a->text.data) < end)
            end = (size_t)(at - a->text.data);
    }
    a->text.len = end;
    if (a->text.data)
        a->text.data[end] = 0;
}

void tp_streamed_answer_update(tp_streamed_answer *a, const tp_sample_result *r, bool last_is_stop)
{
    size_t n = r->n - (last_is_stop && r->n > 0);
    for (; a->n_seen < n; a->n_seen++)
        tp_tokenizer_decode_next(a->tokenizer, &a->stream, r->ids[a->n_seen], true, &a->text);
    if (r->finish == TP_FINISH_NONE) {
        a->ready = a->text.len - undecided(a);
        return;
    }
    tp_tokenizer_decode_next(a->tokenizer, &a->stream, -1, true, &a->text);
    if (r->stop_string >= 0)
        cut_at_stop(a);
    a->ready = a->text.len;
}

void tp_streamed_answer_release(tp_streamed_answer *a)
{
    tp_buf_release(&a->text);
    *a = (tp_streamed_answer){0};
}
