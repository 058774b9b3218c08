/* token_ids.h - ids of tokens that a configuration names. */
#ifndef TP_ENGINE_DATA_TOKEN_IDS_H
#define TP_ENGINE_DATA_TOKEN_IDS_H

#include "config/config.h"
#include "text/tokenizer/tokenizer.h"

/* The value of `key` as ids that the tokenizer has, behind those of `out`. */
TP_CHECKED tp_status tp_token_ids_read(const tp_config *config, const char *key,
                                       const tp_f64_list *list, const tp_tokenizer *tokenizer,
                                       tp_ids *out, tp_error *err);
/* The same before a tokenizer is open.  TP_OK where `folder` has none that can be read: whoever
 * needs it says so. */
TP_CHECKED tp_status tp_token_ids_check(const tp_config *config, const char *key,
                                        const tp_f64_list *list, const char *folder, tp_error *err);

#endif
