/* keys.c - the keys of a file that is imported: rows of the table, values, roles, and what they set
 * in the recipe. */
#include "config/import/import.h"

#include <math.h>
#include <string.h>

#include "config/import/import_rows.h"

const char *tp_import_state_name(tp_import_state state)
{
    static const char *const names[] = {"used", "without effect", "to be set", "refused",
                                        "unknown"};
    return names[state];
}

size_t tp_import_count(const tp_import *im, tp_import_state state)
{
    size_t n = 0;
    for (size_t i = 0; i < im->n_keys; i++)
        n += im->keys[i].state == state;
    return n;
}

bool tp_import_is(const tp_import *im, const char *algorithm)
{
    return !strcmp(im->algorithm, algorithm);
}

/* ---- rows ---- */

bool tp_import_matches(const tp_import_row *row, const char *key)
{
    size_t n = strlen(row->key);
    return row->key[n - 1] == '*' ? !strncmp(row->key, key, n - 1) : !strcmp(row->key, key);
}

/* The row of a key: its own before one that stands for many. */
const tp_import_row *tp_import_find(const tp_import *im, unsigned for_whom, const char *key)
{
    const tp_import_row *found = NULL;
    for (const tp_import_row *row = im->source->rows; row->key; row++)
        if ((row->who & for_whom) && tp_import_matches(row, key) &&
            (!found || found->key[strlen(found->key) - 1] == '*'))
            found = row;
    return found;
}

bool tp_import_is_section(const tp_import *im, const char *key)
{
    size_t n = strlen(key);
    for (const tp_import_row *row = im->source->rows; row->key; row++)
        if (!strncmp(row->key, key, n) && row->key[n] == '.')
            return true;
    return false;
}

tp_import_key *tp_import_add(tp_import *im, tp_import_key key)
{
    if (im->n_keys == im->room) {
        size_t room = im->room ? 2 * im->room : 64;
        tp_import_key *keys = tp_arena_array(&im->arena, tp_import_key, room);
        if (im->n_keys)
            memcpy(keys, im->keys, im->n_keys * sizeof *keys);
        im->keys = keys;
        im->room = room;
    }
    im->keys[im->n_keys] = key;
    return &im->keys[im->n_keys++];
}

/* "@.max_num_steps" with the algorithm's section. */
const char *tp_import_target(tp_import *im, const char *target)
{
    TP_OWN(tp_buf) out = {0};
    for (const char *p = target; *p; p++)
        if (*p == '@')
            tp_buf_adds(&out, im->algorithm);
        else
            tp_buf_addc(&out, *p);
    return tp_arena_strdup(&im->arena, tp_buf_str(&out));
}

/* ---- values ---- */

void tp_import_value(const tp_json *value, tp_buf *out)
{
    enum { LONGEST = 60 };
    TP_OWN(tp_buf) text = {0};
    if (value && value->type == TP_JSON_STRING && value->text.len < LONGEST &&
        !strpbrk(value->text.data, "\n\t"))
        tp_buf_add(&text, value->text.data, value->text.len);
    else if (value && value->type == TP_JSON_NUMBER)
        tp_buf_add(&text, value->text.data, value->text.len);
    else
        tp_json_text(value, &text);
    size_t n = text.len;
    if (n > LONGEST)
        n = tp_utf8_valid_len(text.data, LONGEST - 3);
    tp_buf_add(out, tp_buf_str(&text), n);
    if (n < text.len)
        tp_buf_adds(out, "...");
}

/* A value as it is written in `accepted` and in tables of words. */
const char *tp_import_spelled(tp_import *im, const tp_json *v)
{
    if (tp_json_word(v))
        return tp_json_word(v);
    TP_OWN(tp_buf) text = {0};
    tp_json_text(v, &text);
    return tp_arena_strdup(&im->arena, tp_buf_str(&text));
}

bool tp_import_one_of(const char *word, const char *words)
{
    size_t n = strlen(word);
    for (const char *p = words; *p;) {
        size_t len = strcspn(p, "|");
        if (len == n && !strncmp(p, word, n))
            return true;
        p += len + (p[len] == '|');
    }
    return false;
}

/* ---- the recipe ---- */

static const char *origin_of(tp_import *im, const tp_import_key *key)
{
    if (!key)
        return im->source->title;
    if (key->line)
        return tp_arena_printf(&im->arena, "%s:%u %s", im->path, key->line, key->key);
    return tp_arena_printf(&im->arena, "%s's default, %s", im->source->title, key->key);
}

void tp_import_set(tp_import *im, tp_import_key *from, const char *target, const char *value)
{
    if (im->status != TP_OK)
        return;
    if (from)
        from->is_set = true;
    const char *text = tp_arena_printf(&im->arena, "%s=%s", tp_import_target(im, target), value);
    im->status = tp_config_set(im->recipe, text, origin_of(im, from), &im->err);
}

void tp_import_put(tp_import *im, const char *role, const char *target, const char *fmt, ...)
{
    char value[1024];
    TP_FORMAT(value, fmt);
    tp_import_set(im, tp_import_role(im, role), target, value);
}

/* As YAML on one line; ${ is no interpolation there. */
void tp_import_put_json(tp_import *im, tp_import_key *from, const char *target,
                        const tp_json *value)
{
    TP_OWN(tp_buf) text = {0}, safe = {0};
    tp_json_text(value, &text);
    for (const char *p = tp_buf_str(&text); *p; p++) {
        if (p[0] == '$' && p[1] == '{')
            tp_buf_adds(&safe, "\\\\");
        tp_buf_addc(&safe, *p);
    }
    tp_import_set(im, from, target, tp_buf_str(&safe));
}

/* ---- roles ---- */

static bool is_null(const tp_import_key *key)
{
    return !key || !key->value || key->value->type == TP_JSON_NULL;
}

/* Of two names of one thing: what the file says, and of two in it the newer one, which the table
 * has first. */
static bool goes_before(const tp_import_key *a, const tp_import_key *b)
{
    if (!a->line != !b->line)
        return a->line != 0;
    return is_null(a) != is_null(b) ? !is_null(a) : a->row < b->row;
}

tp_import_key *tp_import_role(tp_import *im, const char *role)
{
    tp_import_key *found = NULL;
    for (size_t i = 0; role && i < im->n_keys; i++) {
        const tp_import_row *row = im->keys[i].row;
        if (row && row->role && !strcmp(row->role, role) &&
            (!found || goes_before(&im->keys[i], found)))
            found = &im->keys[i];
    }
    return found;
}

bool tp_import_given(tp_import *im, const char *role)
{
    const tp_import_key *key = tp_import_role(im, role);
    return key && key->line;
}

void tp_import_mark(tp_import *im, const char *role, tp_import_state state, const char *fmt, ...)
{
    char text[512];
    TP_FORMAT(text, fmt);
    tp_import_key *key = tp_import_role(im, role);
    if (!key)
        key = tp_import_add(im, (tp_import_key){.key = tp_arena_strdup(&im->arena, role)});
    if (key->state > state)
        return;
    key->state = state;
    key->remark = *text ? tp_arena_strdup(&im->arena, text) : key->remark;
}

double tp_import_number(tp_import *im, const char *role)
{
    double v;
    const tp_import_key *key = tp_import_role(im, role);
    if (is_null(key))
        return NAN;
    const char *text = tp_json_str(key->value);
    if ((tp_json_f64(key->value, &v) || (text && tp_str_to_f64(text, &v))) && isfinite(v))
        return v;
    tp_import_mark(im, role, TP_IMPORT_REFUSED, "Expected a number.");
    return NAN;
}

bool tp_import_flag(tp_import *im, const char *role)
{
    const tp_import_key *key = tp_import_role(im, role);
    const char *word = is_null(key) ? NULL : tp_json_str(key->value);
    bool v = false;
    double number;
    if (word && tp_import_one_of(word, "yes|Yes|YES|on|On|ON|no|No|NO|off|Off|OFF"))
        return strchr("yYoO", *word) && (word[1] | 32) != 'f'; /* in quotes, on a command line */
    if (!is_null(key) && tp_json_f64(key->value, &number) && (number == 0 || number == 1))
        return number == 1;
    if (!is_null(key) && !tp_json_bool(key->value, &v))
        tp_import_mark(im, role, TP_IMPORT_REFUSED, "Expected true or false.");
    return v;
}

const char *tp_import_word(tp_import *im, const char *role)
{
    const tp_import_key *key = tp_import_role(im, role);
    return is_null(key) ? NULL : tp_import_spelled(im, key->value);
}
