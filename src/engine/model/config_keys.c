/* config_keys.c - the tables config_keys.def and generation_keys.def, and files held against them.
 */
#include "engine/model/config_keys.h"

#include <string.h>

#include "base/platform.h"

enum {
    LLAMA = TP_KEYS_LLAMA,
    QWEN2 = TP_KEYS_QWEN2,
    QWEN3 = TP_KEYS_QWEN3,
    GPT2 = TP_KEYS_GPT2,
    DECODERS = LLAMA | QWEN2 | QWEN3,
    ALL = DECODERS | GPT2
};

#define USED(families, key, example, why) {families, key, TP_KEY_USED, NULL, example, why},
#define FIXED(families, key, fallback, example, why) \
    {families, key, TP_KEY_FIXED, fallback, example, why},
#define SEEN(families, key, example, why) {families, key, TP_KEY_SEEN, NULL, example, why},
#define HARMLESS(families, key, example, why) {families, key, TP_KEY_HARMLESS, NULL, example, why},
const tp_config_key tp_config_keys[] = {
#include "engine/model/config_keys.def"
};
const size_t tp_config_key_count = TP_COUNTOF(tp_config_keys);
#undef USED
#undef FIXED
#undef HARMLESS

#define USED(key, example, why) {ALL, key, TP_KEY_USED, NULL, example, why},
#define FIXED(key, fallback, example, why) {ALL, key, TP_KEY_FIXED, fallback, example, why},
#define HARMLESS(key, example, why) {ALL, key, TP_KEY_HARMLESS, NULL, example, why},
const tp_config_key tp_generation_keys[] = {
#include "engine/model/generation_keys.def"
};
const size_t tp_generation_key_count = TP_COUNTOF(tp_generation_keys);

typedef struct {
    const tp_config_key *v;
    size_t n;
} table;
static const tp_config_key *find(const table *t, unsigned family, tp_slice key)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].families & family && tp_slice_is(key, t->v[i].key))
            return &t->v[i];
    return NULL;
}

/* Is `v` what the JSON text says?  Null says that nothing is set. */
static bool is_value(const tp_json *v, const char *text)
{
    double number, wanted;
    bool word;
    if (v->type == TP_JSON_NULL)
        return true;
    if (v->type == TP_JSON_OBJECT || v->type == TP_JSON_ARRAY)
        return v->n == 0 && strcmp(text, "{}") == 0;
    if (tp_json_bool(v, &word))
        return strcmp(text, word ? "true" : "false") == 0;
    return tp_json_f64(v, &number) && sscanf(text, "%lf", &wanted) == 1 && number == wanted;
}

static void note_unknown(tp_buf *unknown, const tp_json *v)
{
    enum { ENOUGH = 400 };
    if (unknown->len < ENOUGH)
        tp_buf_addf(unknown, "%s%.60s", unknown->len ? ", " : "", v->key.data);
    else if (!tp_str_ends(tp_buf_str(unknown), "..."))
        tp_buf_adds(unknown, ", ...");
}

/* `others`: what may be there beside the table, unheeded. */
static tp_status check(const table *t, const table *others, const tp_fields *c, unsigned family,
                       tp_buf *unknown, tp_error *err)
{
    for (const tp_json *v = c->object->child; v; v = v->next) {
        const tp_config_key *key = find(t, family, v->key);
        bool is_known = key || (others && find(others, family, v->key));
        if (!is_known && v->type != TP_JSON_NULL && unknown)
            note_unknown(unknown, v);
        if (!key || key->verdict != TP_KEY_FIXED || is_value(v, key->fallback))
            continue;
        bool has_value = strcmp(key->fallback, "null") != 0 && key->fallback[0] != '{';
        return tp_fields_fail(c, key->key, TP_ERR_UNSUPPORTED, err, "%s%s%s%s", key->why,
                              has_value ? "; only " : "", has_value ? key->fallback : "",
                              has_value ? " is supported" : "");
    }
    return TP_OK;
}

tp_status tp_config_keys_check(const tp_fields *c, unsigned family, tp_buf *unknown, tp_error *err)
{
    const table own = {tp_config_keys, tp_config_key_count};
    const table others = {tp_generation_keys, tp_generation_key_count};
    return check(&own, &others, c, family, unknown, err);
}

tp_status tp_generation_keys_check(const tp_fields *c, tp_buf *unknown, tp_error *err)
{
    const table own = {tp_generation_keys, tp_generation_key_count};
    return check(&own, NULL, c, ALL, unknown, err);
}
