/* stop_text.c - what ends an answer: ids, and strings in text that arrives token by token. */
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

void tp_sample_text(const tp_tokenizer *tokenizer, const tp_sample_result *s, tp_buf *out)
{
    bool has_stop_id = s->finish == TP_FINISH_STOP && s->stop_string < 0 && s->n > 0;
    tp_tokenizer_decode(tokenizer, s->ids, s->n - has_stop_id, true, out);
}

void tp_stop_ids_find(const tp_model *model, const tp_tokenizer *tokenizer, tp_ids *out)
{
    const tp_model_info *info = tp_model_get_info(model);
    for (int i = 0; i < info->n_eos; i++)
        tp_ids_add(out, (int32_t)info->eos[i]);
    if (tokenizer && tp_tokenizer_eos(tokenizer) >= 0)
        tp_ids_add(out, tp_tokenizer_eos(tokenizer));
}
