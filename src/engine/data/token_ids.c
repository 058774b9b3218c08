/* token_ids.c - a list of numbers held against a vocabulary. */
#include "engine/data/token_ids.h"

#include <math.h>

tp_status tp_token_ids_read(const tp_config *config, const char *key, const tp_f64_list *list,
                            const tp_tokenizer *tokenizer, tp_ids *out, tp_error *err)
{
    int32_t n = tp_tokenizer_vocab_size(tokenizer);
    for (size_t i = 0; i < list->n; i++) {
        if (list->v[i] != floor(list->v[i]) || !(list->v[i] >= 0) || list->v[i] >= n)
            return tp_config_fail(config, key, err,
                                  "%.17g is no id of the tokenizer, which has 0 to %d", list->v[i],
                                  n - 1);
        tp_ids_add(out, (int32_t)list->v[i]);
    }
    return TP_OK;
}

tp_status tp_token_ids_check(const tp_config *config, const char *key, const tp_f64_list *list,
                             const char *folder, tp_error *err)
{
    tp_tokenizer *tokenizer;
    if (list->n == 0 || tp_tokenizer_load(folder, &tokenizer, NULL) != TP_OK)
        return TP_OK;
    TP_OWN(tp_ids) ids = {0};
    tp_status status = tp_token_ids_read(config, key, list, tokenizer, &ids, err);
    tp_tokenizer_free(tokenizer);
    return status;
}
