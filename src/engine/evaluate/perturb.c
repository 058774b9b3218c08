/* perturb.c - order, white space, case and digits of a question. */
#include "engine/evaluate/perturb.h"

#include <string.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* ---- order ---- */

/* The items between `begin` and `end`, parted by ", " or ",", from last to first. */
static void turn_items(const char *begin, const char *end, tp_buf *out)
{
    for (const char *to = end;;) {
        const char *from = to;
        while (from > begin && from[-1] != ',')
            from--;
        const char *first = from, *last = to;
        while (first < last && is_blank(*first))
            first++;
        while (last > first && is_blank(last[-1]))
            last--;
        tp_buf_addf(out, "%s", to == end ? "" : ", ");
        tp_buf_add(out, first, (size_t)(last - first));
        if (from == begin)
            return;
        to = from - 1;
    }
}

static bool is_bullet(const char *line, const char *end)
{
    while (line < end && is_blank(*line))
        line++;
    return end - line > 2 && strchr("-*", *line) && line[1] == ' ';
}

static const char *line_end(const char *at, const char *end)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return newline ? newline : end;
}

/* Lists in brackets of one line, in lines that are no bullet. */
static void turn_brackets(const char *at, const char *end, tp_buf *out)
{
    while (at < end) {
        const char *open = memchr(at, '[', (size_t)(end - at));
        const char *close = open ? memchr(open, ']', (size_t)(end - open)) : NULL;
        if (!close) {
            tp_buf_add(out, at, (size_t)(end - at));
            return;
        }
        tp_buf_add(out, at, (size_t)(open + 1 - at));
        turn_items(open + 1, close, out);
        tp_buf_addc(out, ']');
        at = close + 1;
    }
}

/* Lines of a list with bullets from last to first; *at is behind them. */
static void turn_bullets(const char **at, const char *end, tp_buf *out)
{
    const char *begin = *at, *stop = begin;
    while (stop < end && is_bullet(stop, line_end(stop, end)))
        stop = line_end(stop, end) + (line_end(stop, end) < end);
    bool has_newline = stop > begin && stop[-1] == '\n';
    for (const char *to = stop - has_newline;;) {
        const char *from = to;
        while (from > begin && from[-1] != '\n')
            from--;
        tp_buf_add(out, from, (size_t)(to - from));
        if (from == begin)
            break;
        tp_buf_addc(out, '\n');
        to = from - 1;
    }
    if (has_newline)
        tp_buf_addc(out, '\n');
    *at = stop;
}

static void turn_lists(const char *text, size_t n, tp_buf *out)
{
    const char *at = text, *end = text + n;
    while (at < end) {
        const char *stop = line_end(at, end);
        if (is_bullet(at, stop)) {
            turn_bullets(&at, end, out);
        } else {
            turn_brackets(at, stop, out);
            if (stop < end)
                tp_buf_addc(out, '\n');
            at = stop + (stop < end);
        }
    }
}

/* ---- white space ---- */

static void widen(const char *text, size_t n, tp_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        bool is_gap = text[i] == ' ' && i > 0 && i + 1 < n && !strchr(" \t\n", text[i - 1]) &&
                      !strchr(" \t\n", text[i + 1]);
        tp_buf_adds(out, is_gap ? " " : "");
        tp_buf_addc(out, text[i]);
    }
}

/* ---- case ---- */

/* Small letters; capital ones where there is no other.  ASCII alone. */
static void change_case(const char *text, size_t n, tp_buf *out)
{
    bool has_capitals = false;
    for (size_t i = 0; i < n; i++)
        has_capitals |= text[i] >= 'A' && text[i] <= 'Z';
    for (size_t i = 0; i < n; i++) {
        bool turns = is_letter(text[i]) && (text[i] <= 'Z') == has_capitals;
        tp_buf_addc(out, turns ? (char)(text[i] ^ 0x20) : text[i]);
    }
}

/* ---- digits ---- */

/* A whole number that stands by itself: no part of a name, a fraction or a number with commas. */
static bool stands_alone(const char *text, size_t n, size_t from, size_t to)
{
    bool is_tied = from > 0 && (is_letter(text[from - 1]) || strchr("_.,/\\", text[from - 1]));
    if (to < n && (is_letter(text[to]) || text[to] == '_' || text[to] == '/'))
        is_tied = true;
    if (to + 1 < n && strchr(".,", text[to]) && is_digit(text[to + 1]))
        is_tied = true;
    return !is_tied && !(to - from > 1 && text[from] == '0');
}

/* 1234567 is 1,234,567, and 7 is 07. */
static void write_number(const char *digits, size_t n, tp_buf *out)
{
    if (n < 4)
        tp_buf_addc(out, '0');
    for (size_t i = 0; i < n; i++) {
        if (n >= 4 && i > 0 && (n - i) % 3 == 0)
            tp_buf_addc(out, ',');
        tp_buf_addc(out, digits[i]);
    }
}

static void change_numbers(const char *text, size_t n, tp_buf *out)
{
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && is_digit(text[end]))
            end++;
        if (end > i && stands_alone(text, n, i, end))
            write_number(text + i, end - i, out);
        else
            tp_buf_add(out, text + i, end > i ? end - i : 1);
        i = end > i ? end : i + 1;
    }
}

/* ---- prompts ---- */

static const tp_perturbation perturbations[] = {
    {"order", turn_lists},
    {"space", widen},
    {"case", change_case},
    {"digits", change_numbers},
};

const tp_perturbation *tp_perturbation_find(const char *name)
{
    for (size_t i = 0; i < sizeof perturbations / sizeof *perturbations; i++)
        if (strcmp(perturbations[i].name, name) == 0)
            return &perturbations[i];
    return NULL;
}

static tp_slice rewrite(const tp_perturbation *p, tp_arena *arena, tp_slice text, bool *changed)
{
    TP_OWN(tp_buf) out = {0};
    p->apply(text.data, text.len, &out);
    *changed |= out.len != text.len || (out.len && memcmp(out.data, text.data, out.len) != 0);
    const char *copy = tp_arena_strndup(arena, tp_buf_str(&out), out.len);
    tp_slice written = {copy, out.len};
    return written;
}

/* Strings of the member `content`, also of the parts that it may be a list of. */
static tp_json *rewrite_value(const tp_perturbation *p, tp_arena *arena, const tp_json *v,
                              bool *changed)
{
    tp_json *copy = tp_arena_new(arena, tp_json), **end = &copy->child;
    *copy = *v;
    if (v->type == TP_JSON_STRING)
        copy->text = rewrite(p, arena, v->text, changed);
    for (const tp_json *c = v->child; c; c = c->next) {
        bool is_text = v->type == TP_JSON_ARRAY || strcmp(c->key.data, "content") == 0 ||
                       strcmp(c->key.data, "text") == 0;
        tp_json *child = tp_arena_new(arena, tp_json);
        *child = *c;
        *end = is_text ? rewrite_value(p, arena, c, changed) : child;
        end = &(*end)->next;
    }
    *end = NULL;
    return copy;
}

static bool is_users(const tp_json *message)
{
    const char *role = tp_json_str(tp_json_get(message, "role"));
    return role && strcmp(role, "user") == 0;
}

static tp_json *rewrite_messages(const tp_perturbation *p, tp_arena *arena, const tp_json *list,
                                 bool *changed)
{
    tp_json *copy = tp_arena_new(arena, tp_json), **end = &copy->child;
    *copy = *list;
    for (const tp_json *c = list->child; c; c = c->next) {
        *end = tp_arena_new(arena, tp_json);
        **end = *c;
        if (is_users(c))
            *end = rewrite_value(p, arena, c, changed);
        end = &(*end)->next;
    }
    *end = NULL;
    return copy;
}

bool tp_perturb_prompt(const tp_perturbation *p, tp_arena *arena, const tp_prompt *prompt,
                       tp_prompt *ret)
{
    bool changed = false;
    *ret = *prompt;
    if (prompt->messages)
        ret->messages = rewrite_messages(p, arena, prompt->messages, &changed);
    if (prompt->text)
        ret->text = rewrite(p, arena, tp_slice_of(prompt->text), &changed).data;
    return changed;
}
