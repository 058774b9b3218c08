/* levers.c - the rows of levers.def, what a level sets, and the overrides of a choice of levers. */
#include "engine/train/levers.h"

#include <string.h>

#include "base/platform.h"

/* ---- settings: "key=value key=value" ---- */

bool tp_setting_next(const char **text, tp_slice *ret_key, tp_slice *ret_value)
{
    const char *p = *text + strspn(*text, " ");
    size_t n = strcspn(p, " "), key = strcspn(p, "=");
    *text = p + n;
    if (n == 0)
        return false;
    TP_ASSERT(key < n);
    *ret_key = (tp_slice){p, key};
    *ret_value = (tp_slice){p + key + 1, n - key - 1};
    return true;
}

typedef struct {
    tp_slice key;
    tp_buf value;
} setting;

typedef struct {
    setting v[TP_LEVERS_MOST];
    int n;
} settings;

static void settings_release(settings *s)
{
    for (int i = 0; i < s->n; i++)
        tp_buf_release(&s->v[i].value);
}

/* A list gets what both have; anything else is what was said last. */
static void settings_add(settings *s, tp_slice key, const char *value, size_t n)
{
    int i = 0;
    while (i < s->n && !tp_slice_eq(s->v[i].key, key))
        i++;
    TP_ASSERT(i < TP_LEVERS_MOST);
    tp_buf *old = &s->v[i].value;
    if (i == s->n)
        s->v[s->n++] = (setting){.key = key};
    if (old->len && *old->data == '[' && n > 1 && *value == '[') {
        bool is_empty = old->len == 2;
        if (n > 2) {
            old->len--;
            tp_buf_addf(old, "%s%.*s", is_empty ? "" : ", ", (int)n - 1, value + 1);
        }
        return;
    }
    tp_buf_clear(old);
    tp_buf_add(old, value, n);
}

static void settings_add_text(settings *s, const char *text)
{
    tp_slice key, value;
    while (tp_setting_next(&text, &key, &value))
        settings_add(s, key, value.data, value.len);
}

/* ---- the rows, for everybody ---- */

const tp_lever *tp_lever_at(size_t i)
{
    return i < tp_lever_row_count ? &tp_lever_rows[i].shown : NULL;
}

const tp_lever *tp_lever_find(const char *name)
{
    for (size_t i = 0; name && i < tp_lever_row_count; i++)
        if (strcmp(tp_lever_rows[i].shown.name, name) == 0)
            return &tp_lever_rows[i].shown;
    return NULL;
}

const char *tp_lever_state_name(tp_lever_state state)
{
    static const char *const names[] = {"off", "on", "fell back"};
    return (unsigned)state < TP_COUNTOF(names) ? names[state] : "unknown";
}

/* One block: pointers, and behind them what they point to. */
static tp_status hand_out(const settings *s, char ***ret, size_t *ret_n, tp_error *err)
{
    size_t bytes = sizeof(char *);
    for (int i = 0; i < s->n; i++)
        bytes += sizeof(char *) + s->v[i].key.len + s->v[i].value.len + 2;
    char **list = calloc(1, bytes);
    if (!list)
        return tp_fail(err, TP_ERR_NOMEM, "tp_lever_overrides: out of memory");
    char *at = (char *)(list + s->n + 1), *end = (char *)list + bytes;
    for (int i = 0; i < s->n; i++) {
        list[i] = at;
        at += snprintf(at, (size_t)(end - at), "%.*s=%s", (int)s->v[i].key.len, s->v[i].key.data,
                       tp_buf_str(&s->v[i].value)) +
              1;
    }
    *ret = list;
    *ret_n = (size_t)s->n;
    return TP_OK;
}

tp_status tp_lever_overrides(const tp_lever_choice *choices, size_t n, char ***ret, size_t *ret_n,
                             tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_OWN(settings) s = {0};
    if (!ret || !ret_n || (n && !choices))
        return tp_fail(err, TP_ERR_ARG, "tp_lever_overrides: an argument is NULL");
    for (size_t i = 0; i < n; i++)
        if (!choices[i].lever)
            return tp_fail(err, TP_ERR_ARG, "tp_lever_overrides: lever %zu of %zu is NULL", i, n);
    for (size_t i = 0; i < n; i++)
        settings_add_text(&s, choices[i].is_on ? choices[i].lever->on : choices[i].lever->off);
    return hand_out(&s, ret, ret_n, err);
}

/* ---- levels ---- */

static const char *const level_names[TP_LEVELS] = {"basic", "advanced", "ultra"};
#define LEVEL_KEY "optimization.level"
#define LEVEL_ORIGIN "level "

bool tp_level_left_open(const tp_config *config, const char *key)
{
    const char *origin = tp_config_origin(config, key);
    return !origin || strcmp(origin, "default") == 0 || tp_str_starts(origin, LEVEL_ORIGIN);
}

static const tp_option *option_of(const tp_option *table, size_t n, tp_slice key)
{
    for (size_t i = 0; i < n; i++)
        if (tp_slice_is(key, table[i].name) && !table[i].belongs_to)
            return &table[i];
    return NULL;
}

/* A word that is none is found when the configuration is bound. */
static tp_status find_level(const tp_config *config, int *ret, tp_error *err)
{
    const tp_json *value = tp_config_find(config, LEVEL_KEY);
    const char *word = value ? tp_json_str(value) : NULL;
    *ret = TP_LEVEL_ADVANCED;
    if (word && strstr(word, "${"))
        return tp_config_fail(config, LEVEL_KEY, err,
                              "must be a word, no reference: levers follow from it");
    for (int i = 0; word && i < TP_LEVELS; i++)
        if (strcmp(word, level_names[i]) == 0)
            *ret = i;
    return TP_OK;
}

static void collect(int level, const tp_option *table, size_t n, settings *s)
{
    for (size_t i = 0; i < tp_lever_row_count; i++) {
        const char *text = tp_lever_rows[i].shown.level[level];
        tp_slice key, value;
        if (text) {
            settings_add_text(s, text);
            continue;
        }
        for (text = tp_lever_rows[i].shown.off; tp_setting_next(&text, &key, &value);) {
            const tp_option *option = option_of(table, n, key);
            const char *usual = option && option->default_value ? option->default_value : "null";
            settings_add(s, key, usual, strlen(usual));
        }
    }
}

/* A section that refers to another (`${...}`) has its own values. */
static bool may_be_set(const tp_config *config, const char *key)
{
    char part[128];
    snprintf(part, sizeof part, "%s", key);
    for (char *dot; (dot = strrchr(part, '.'));) {
        *dot = 0;
        const tp_json *section = tp_config_find(config, part);
        if (section && section->type != TP_JSON_OBJECT && section->type != TP_JSON_NULL)
            return false;
    }
    return tp_config_find(config, key) == NULL;
}

tp_status tp_level_apply(tp_config *config, const tp_option *table, size_t n, tp_error *err)
{
    int level;
    TP_OWN(settings) s = {0};
    TP_OWN(tp_buf) text = {0};
    TP_TRY(find_level(config, &level, err));
    const char *const origins[TP_LEVELS] = {"level basic", "level advanced", "level ultra"};
    collect(level, table, n, &s);
    for (int i = 0; i < s.n; i++) {
        const setting *x = &s.v[i];
        tp_buf_clear(&text);
        tp_buf_addf(&text, "%.*s", (int)x->key.len, x->key.data);
        if (!option_of(table, n, x->key) || !may_be_set(config, text.data))
            continue;
        tp_buf_addf(&text, "=%s", tp_buf_str(&x->value));
        TP_TRY(tp_config_set(config, text.data, origins[level], err));
    }
    return TP_OK;
}
