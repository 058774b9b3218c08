/* config_keys.h - every key of config.json and generation_config.json that transformers obeys, and
 * what becomes of it. */
#ifndef TP_ENGINE_MODEL_CONFIG_KEYS_H
#define TP_ENGINE_MODEL_CONFIG_KEYS_H

#include "base/strings.h"
#include "engine/model/fields.h"

/* Families, one bit each. */
enum { TP_KEYS_LLAMA = 1, TP_KEYS_QWEN2 = 2, TP_KEYS_QWEN3 = 4, TP_KEYS_GPT2 = 8 };

typedef enum {
    TP_KEY_USED,    /* read, and changes the model */
    TP_KEY_FIXED,   /* accepted with its default alone */
    TP_KEY_SEEN,    /* read by code of its own, which refuses what it cannot do */
    TP_KEY_HARMLESS /* changes nothing that is computed */
} tp_key_verdict;

typedef struct {
    unsigned families;
    const char *key;
    tp_key_verdict verdict;
    const char *fallback; /* FIXED: the one value, as JSON */
    const char *example;  /* a value other than the default, as JSON: for tests */
    const char *why;
} tp_config_key;

extern const tp_config_key tp_config_keys[], tp_generation_keys[];
extern const size_t tp_config_key_count, tp_generation_key_count;

/* Refuse what would change the result and is not done here; append the names of the keys
 * that both tables lack to `unknown`, comma-separated. */
TP_CHECKED tp_status tp_config_keys_check(const tp_fields *c, unsigned family, tp_buf *unknown,
                                          tp_error *err);

/* The same of generation's keys; unknown: NULL where the other keys are a model's. */
TP_CHECKED tp_status tp_generation_keys_check(const tp_fields *c, tp_buf *unknown, tp_error *err);

#endif
