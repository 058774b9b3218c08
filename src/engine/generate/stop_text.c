/* stop_text.c - finds stop strings in text that arrives token by token. */
#include <string.h>

#include "engine/generate/engine_internal.h"

/* Only the end of the text can be new: what was there before has been searched. */
int32_t tp_stop_text_next(const tp_engine *e, sample *s, int32_t id)
{
    const request *r = s->request;
    if (r->n_stop_strings == 0)
        return -1;
    size_t before = s->text.len;
    tp_tokenizer_decode_next(e->options.tokenizer, &s->stream, id, true, &s->text);
    size_t from = before >= r->longest_stop ? before - r->longest_stop + 1 : 0;
    int32_t found = -1;
    const char *first = NULL;
    for (size_t i = 0; i < r->n_stop_strings && s->text.len > from; i++) {
        const char *at = memmem(s->text.data + from, s->text.len - from, r->stop_strings[i],
                                strlen(r->stop_strings[i]));
        if (at && (!first || at < first)) {
            first = at;
            found = (int32_t)i;
        }
    }
    return found;
}
