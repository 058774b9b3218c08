/* yaml.c - events of libfyaml become a JSON tree: core schema, that of YAML 1.1, anchors, merge
 * keys. */
#include "text/yaml/yaml.h"

#include <ctype.h>
#include <errno.h>
#include <libfyaml.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"

/* libfyaml turns text into events; the tree is built here, so that depth, size
 * and expansion are bounded before memory is taken. */
typedef struct {
    tp_json *node, *last_child;
    tp_json *merge; /* the value of "<<", applied when the mapping ends */
    tp_slice key;
    uint32_t key_line, column; /* where the container begins */
    bool has_key, key_is_merge;
} frame;

typedef struct anchor {
    tp_slice name;
    tp_json *node;
    struct anchor *next; /* the one defined before it */
} anchor;

/* What becomes of a plain scalar that YAML 1.1 and 1.2 read in two ways. */
typedef enum { IS_REFUSED, IS_TEXT, IS_AS_IN_1_1 } two_ways;

typedef struct {
    tp_arena *arena;
    const char *name, *source, *source_end;
    two_ways two_ways;
    struct fy_parser *parser;
    frame stack[TP_YAML_MAX_DEPTH];
    int depth;
    tp_json *root;
    anchor *anchors;
    size_t n_nodes, n_anchors;
    int n_documents;
} builder;

/* Where an event begins. */
typedef struct {
    uint32_t line, column;
} place;

static place place_or(const struct fy_mark *mark, place otherwise)
{
    return mark ? (place){(uint32_t)mark->line + 1, (uint32_t)mark->column + 1} : otherwise;
}

static place place_of(struct fy_event *event)
{
    return place_or(fy_event_start_mark(event), (place){1, 1});
}

#define fail_at(b, at, err, ...) refuse((b), (at), (err), __LINE__, __VA_ARGS__)

static TP_PRINTF(5, 6) tp_status
    refuse(const builder *b, place at, tp_error *err, int source_line, const char *fmt, ...)
{
    char message[400];
    TP_FORMAT(message, fmt);
    return tp_error_set(err, TP_ERR_CONFIG, __FILE__, source_line, "%s:%u:%u: %s", b->name, at.line,
                        at.column, message);
}

static tp_status take(builder *b, place at, size_t size, size_t align, void **ret, tp_error *err)
{
    void *memory = tp_arena_try_alloc(b->arena, 1, size, align);
    if (!memory)
        return fail_at(b, at, err, "the file needs more than the %zu bytes reserved for it",
                       b->arena->reserved);
    *ret = memory;
    return TP_OK;
}

static tp_status copy_text(builder *b, place at, const char *text, size_t n, tp_slice *ret,
                           tp_error *err)
{
    void *memory = NULL;
    TP_TRY(take(b, at, n + 1, 1, &memory, err));
    if (n)
        memcpy(memory, text, n);
    *ret = (tp_slice){memory, n};
    return TP_OK;
}

static tp_status new_node(builder *b, place at, tp_json_type type, tp_json **ret, tp_error *err)
{
    if (b->n_nodes >= TP_YAML_MAX_NODES)
        return fail_at(b, at, err, "more than %d values, aliases expanded; simplify the file",
                       TP_YAML_MAX_NODES);
    void *memory = NULL;
    TP_TRY(take(b, at, sizeof(tp_json), _Alignof(tp_json), &memory, err));
    b->n_nodes++;
    tp_json *node = memory;
    node->type = type;
    node->line = at.line;
    *ret = node;
    return TP_OK;
}

static bool is_any(const char *text, size_t n, const char *const *words)
{
    for (; *words; words++) {
        if (strlen(*words) == n && !memcmp(*words, text, n))
            return true;
    }
    return false;
}

static size_t count_digits(const char *p) { return strspn(p, "0123456789"); }

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?, spelled as
 * JSON does; false when it is not a number. */
static bool spell_decimal(const char *p, tp_buf *out)
{
    if (*p == '-')
        tp_buf_addc(out, '-');
    p += *p == '-' || *p == '+';
    size_t whole = count_digits(p);
    const char *after = p + whole;
    size_t fraction = *after == '.' ? count_digits(after + 1) : 0;
    if (!whole && !fraction)
        return false;
    for (; whole > 1 && *p == '0'; whole--)
        p++;
    tp_buf_add(out, whole ? p : "0", whole ? whole : 1);
    p = after;
    if (*p == '.') {
        tp_buf_addc(out, '.');
        tp_buf_add(out, fraction ? p + 1 : "0", fraction ? fraction : 1);
        p += 1 + fraction;
    }
    if (*p == 'e' || *p == 'E') {
        size_t sign = p[1] == '-' || p[1] == '+';
        size_t digits = count_digits(p + 1 + sign);
        if (!digits)
            return false;
        tp_buf_add(out, p, 1 + sign + digits);
        p += 1 + sign + digits;
    }
    return *p == 0;
}

/* Digits of base 2, 8 or 16, as decimal text. */
static bool spell_in_base(const char *digits, int base, bool is_negative, tp_buf *out)
{
    const char *known = base == 2 ? "01" : base == 8 ? "01234567" : "0123456789abcdefABCDEF";
    errno = 0;
    unsigned long long value = strtoull(digits, NULL, base);
    if (errno || !*digits || digits[strspn(digits, known)])
        return false;
    tp_buf_addf(out, "%s%llu", is_negative && value ? "-" : "", value);
    return true;
}

/* 0o17 and 0x1f. */
static bool spell_based(const char *p, tp_buf *out)
{
    int base = p[0] != '0' ? 0 : p[1] == 'o' ? 8 : p[1] == 'x' ? 16 : 0;
    return base && spell_in_base(p + 2, base, false, out);
}

static const char *spell_non_finite(const char *p)
{
    static const char *const nan_words[] = {".nan", ".NaN", ".NAN", NULL};
    static const char *const inf_words[] = {".inf", ".Inf", ".INF", NULL};
    if (is_any(p, strlen(p), nan_words))
        return "NaN";
    const char *rest = p + (*p == '-' || *p == '+');
    if (is_any(rest, strlen(rest), inf_words))
        return *p == '-' ? "-Infinity" : "Infinity";
    return NULL;
}

/* The core schema's reading of a plain scalar; a number's spelling into `out`. */
static tp_json_type resolve_plain(const char *text, size_t n, tp_buf *out)
{
    static const char *const nulls[] = {"", "null", "Null", "NULL", "~", NULL};
    static const char *const trues[] = {"true", "True", "TRUE", NULL};
    static const char *const falses[] = {"false", "False", "FALSE", NULL};
    if (is_any(text, n, nulls))
        return TP_JSON_NULL;
    if (is_any(text, n, trues))
        return TP_JSON_TRUE;
    if (is_any(text, n, falses))
        return TP_JSON_FALSE;
    if (!strchr("0123456789+-.", text[0]) || memchr(text, 0, n))
        return TP_JSON_STRING;
    const char *special = spell_non_finite(text);
    if (special) {
        tp_buf_adds(out, special);
        return TP_JSON_NUMBER;
    }
    if (spell_based(text, out))
        return TP_JSON_NUMBER;
    tp_buf_clear(out);
    return spell_decimal(text, out) ? TP_JSON_NUMBER : TP_JSON_STRING;
}

/* ---- YAML 1.1, as PyYAML reads it ---- */

/* 190:20:30 and 190:20:30.15, in base 60; without _. */
static bool spell_sixties(const char *p, bool is_negative, tp_buf *out)
{
    bool begins_with_0 = *p == '0';
    uint64_t v = 0;
    for (; isdigit((unsigned char)*p); p++)
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return false;
    while (*p == ':') {
        size_t n = count_digits(p + 1);
        uint64_t part = n == 1 || n == 2 ? strtoull(p + 1, NULL, 10) : 60;
        if (part >= 60 || __builtin_mul_overflow(v, 60, &v) || __builtin_add_overflow(v, part, &v))
            return false;
        p += 1 + n;
    }
    tp_buf_addf(out, "%s%llu", is_negative ? "-" : "", (unsigned long long)v);
    if (*p != '.')
        return *p == 0 && !begins_with_0;
    tp_buf_addf(out, "%s%s", p, p[1] ? "" : "0");
    return !p[1 + count_digits(p + 1)];
}

/* Of the digits behind the sign: a point in front has no sign, and a sign in its exponent.
 * PyYAML's numbers have a point and a sign in the exponent, and any "_"; OmegaConf's, which may
 * lack either, have one "_" at a time, between digits. */
static bool is_old_decimal(const char *p, bool has_sign)
{
    const char *exponent = p + strcspn(p, "eE");
    bool is_signed = *exponent && (exponent[1] == '+' || exponent[1] == '-');
    if (*p == '.')
        return !has_sign && (!*exponent || is_signed);
    size_t whole = strspn(p, "0123456789_");
    bool is_loose = !*exponent || (p[whole] == '.' && is_signed);
    for (size_t i = 0; !is_loose && i < whole; i++)
        if (p[i] == '_' && !isdigit((unsigned char)p[i + 1]))
            return false;
    return true;
}

/* 0b101, 017, 0x1f, 1_000 and 1:30, all with a sign, and decimal numbers. */
static bool spell_old(const char *text, tp_buf *out)
{
    TP_OWN(tp_buf) digits = {0};
    bool is_negative = *text == '-';
    const char *p = text + (*text == '-' || *text == '+');
    size_t n = strspn(p, "0123456789_."), all = strlen(p);
    bool has_base = p[0] == '0' && (p[1] == 'x' || p[1] == 'b');
    if (!isdigit((unsigned char)p[*p == '.']))
        return false;
    if (has_base)
        n = all;
    for (size_t i = 0; i < all; i++)
        if (p[i] != '_' || i >= n)
            tp_buf_addc(&digits, p[i]);
    const char *d = tp_buf_str(&digits);
    if (strchr(d, ':'))
        return spell_sixties(d, is_negative, out);
    if (has_base)
        return spell_in_base(d + 2, d[1] == 'x' ? 16 : 2, is_negative, out);
    if (d[0] == '0' && all > 1 && !d[count_digits(d)])
        return spell_in_base(d, 8, is_negative, out);
    if (!is_old_decimal(p, p > text))
        return false;
    if (is_negative)
        tp_buf_addc(out, '-');
    return spell_decimal(d, out);
}

static tp_json_type resolve_old(const char *text, size_t n, tp_buf *out)
{
    static const char *const trues[] = {"yes", "Yes", "YES", "on", "On", "ON", NULL};
    static const char *const falses[] = {"no", "No", "NO", "off", "Off", "OFF", NULL};
    if (is_any(text, n, trues))
        return TP_JSON_TRUE;
    if (is_any(text, n, falses))
        return TP_JSON_FALSE;
    if (!memchr(text, 0, n) && spell_old(text, out))
        return TP_JSON_NUMBER;
    tp_buf_clear(out);
    tp_json_type type = resolve_plain(text, n, out);
    bool is_finite = type == TP_JSON_NUMBER && !strpbrk(tp_buf_str(out), "IN");
    return is_finite ? TP_JSON_STRING : type; /* 0o17, -.5 */
}

/* ---- one scalar ---- */

static const char *shown(tp_json_type type, tp_buf *number)
{
    return type == TP_JSON_NUMBER  ? tp_buf_str(number)
           : type == TP_JSON_TRUE  ? "true"
           : type == TP_JSON_FALSE ? "false"
                                   : "text";
}

/* Reads a plain scalar; a number's spelling into `out`. */
static tp_status resolve(const builder *b, place at, const char *text, size_t n, tp_json_type *ret,
                         tp_buf *out, tp_error *err)
{
    TP_OWN(tp_buf) number = {0};
    tp_json_type old = resolve_old(text, n, &number);
    *ret = resolve_plain(text, n, out);
    if (*ret == old && (old != TP_JSON_NUMBER || !strcmp(out->data, number.data)))
        return TP_OK;
    bool is_decimal = !text[strspn(text, "0123456789+-.eE")]; /* then one for Hydra: -.5, .5e3 */
    if (b->two_ways == IS_TEXT && *ret == TP_JSON_NUMBER && old == TP_JSON_STRING && is_decimal)
        return TP_OK;
    if (b->two_ways == IS_REFUSED) {
        const char *now = shown(*ret, out), *then = shown(old, &number);
        bool is_text = *ret == TP_JSON_STRING, are_numbers = *ret == old;
        return fail_at(b, at, err,
                       "%.60s is %.60s in YAML 1.2 and %.60s in YAML 1.1; write %.60s%s%.60s, or "
                       "\"%.60s\" for the text",
                       text, now, then, is_text ? then : now, are_numbers ? " or " : "",
                       are_numbers ? then : "", text);
    }
    *ret = b->two_ways == IS_TEXT ? TP_JSON_STRING : old;
    tp_buf_clear(out);
    tp_buf_adds(out, tp_buf_str(&number));
    return TP_OK;
}

/* Which of the core tags, or NULL. */
static const char *core_tag(struct fy_token *tag)
{
    static const char *const names[] = {"str", "int", "float", "bool", "null", "map", "seq"};
    static const char prefix[] = "tag:yaml.org,2002:";
    size_t n = 0;
    const char *text = fy_token_get_text(tag, &n);
    if (n == 1 && *text == '!')
        return "str";
    if (!text || n < sizeof prefix - 1 || memcmp(text, prefix, sizeof prefix - 1) != 0)
        return NULL;
    tp_slice name = {text + sizeof prefix - 1, n - (sizeof prefix - 1)};
    for (size_t i = 0; i < TP_COUNTOF(names); i++) {
        if (tp_slice_is(name, names[i]))
            return names[i];
    }
    return NULL;
}

static bool tag_fits(const char *tag, tp_json_type type)
{
    switch (type) {
    case TP_JSON_NULL:
        return !strcmp(tag, "null");
    case TP_JSON_TRUE:
    case TP_JSON_FALSE:
        return !strcmp(tag, "bool");
    case TP_JSON_NUMBER:
        return !strcmp(tag, "int") || !strcmp(tag, "float");
    case TP_JSON_OBJECT:
        return !strcmp(tag, "map");
    case TP_JSON_ARRAY:
        return !strcmp(tag, "seq");
    case TP_JSON_STRING:
        return !strcmp(tag, "str");
    default:
        return false;
    }
}

static tp_status find_tag(const builder *b, place at, struct fy_token *token, const char **ret,
                          tp_error *err)
{
    *ret = token ? core_tag(token) : NULL;
    if (token && !*ret)
        return fail_at(b, place_or(fy_token_start_mark(token), at), err,
                       "unknown tag; plain values need none, remove it");
    return TP_OK;
}

static tp_status check_tag(const builder *b, place at, struct fy_token *token, tp_json_type type,
                           tp_error *err)
{
    const char *tag;
    TP_TRY(find_tag(b, at, token, &tag, err));
    if (tag && !tag_fits(tag, type))
        return fail_at(b, place_or(fy_token_start_mark(token), at), err,
                       "the value is not what its tag !!%s says", tag);
    return TP_OK;
}

static tp_status name_anchor(builder *b, place at, struct fy_token *token, tp_json *node,
                             tp_error *err)
{
    if (!token)
        return TP_OK;
    if (b->n_anchors++ >= TP_YAML_MAX_ANCHORS)
        return fail_at(b, at, err, "more than %d anchors", TP_YAML_MAX_ANCHORS);
    void *memory = NULL;
    TP_TRY(take(b, at, sizeof(anchor), _Alignof(anchor), &memory, err));
    anchor *a = memory;
    size_t n = 0;
    const char *text = fy_token_get_text(token, &n);
    TP_TRY(copy_text(b, at, text, text ? n : 0, &a->name, err));
    a->node = node;
    a->next = b->anchors;
    b->anchors = a;
    return TP_OK;
}

/* Calls nest as deep as the tree does, and `depth` bounds that. */
static tp_status copy_tree(builder *b, place at, const tp_json *from, int depth, tp_json **ret,
                           tp_error *err)
{
    bool is_container = from->type == TP_JSON_OBJECT || from->type == TP_JSON_ARRAY;
    if (is_container && depth >= TP_YAML_MAX_DEPTH)
        return fail_at(b, at, err, "nested more than %d levels deep", TP_YAML_MAX_DEPTH);
    tp_json *copy = NULL;
    TP_TRY(new_node(b, at, from->type, &copy, err));
    *copy = *from;
    copy->child = copy->next = NULL;
    tp_json **link = &copy->child;
    for (const tp_json *child = from->child; child; child = child->next) {
        TP_TRY(copy_tree(b, at, child, depth + 1, link, err));
        link = &(*link)->next;
    }
    *ret = copy;
    return TP_OK;
}

/* Put a finished or opened node where the innermost container expects it. */
static tp_status attach(builder *b, place at, tp_json *node, tp_error *err)
{
    if (!b->depth) {
        b->root = node;
        return TP_OK;
    }
    frame *f = &b->stack[b->depth - 1];
    if (f->node->type == TP_JSON_OBJECT) {
        if (!f->has_key)
            return fail_at(b, at, err, "a key must be plain text, not a list, mapping or alias");
        f->has_key = false;
        node->key = f->key;
        node->line = f->key_line;
        if (f->key_is_merge) {
            if (f->merge)
                return fail_at(b, at, err, "a second << in one mapping; write << : [*a, *b]");
            f->merge = node;
            return TP_OK;
        }
    }
    *(f->last_child ? &f->last_child->next : &f->node->child) = node;
    f->last_child = node;
    f->node->n++;
    return TP_OK;
}

static bool expects_key(const builder *b)
{
    return b->depth && b->stack[b->depth - 1].node->type == TP_JSON_OBJECT &&
           !b->stack[b->depth - 1].has_key;
}

static tp_status take_key(builder *b, place at, const char *text, size_t n, bool is_plain,
                          tp_error *err)
{
    if (is_plain && n == 0)
        return fail_at(b, at, err, "a key is missing before ':'");
    frame *f = &b->stack[b->depth - 1];
    TP_TRY(copy_text(b, at, text, n, &f->key, err));
    f->has_key = true;
    f->key_line = at.line;
    f->key_is_merge = is_plain && n == 2 && !memcmp(text, "<<", 2);
    return TP_OK;
}

static tp_status new_scalar(builder *b, place at, const char *text, size_t n, bool is_plain,
                            struct fy_token *token, tp_json **ret, tp_error *err)
{
    TP_OWN(tp_buf) number = {0};
    tp_json_type type = TP_JSON_STRING;
    tp_json *node = NULL;
    const char *tag;
    TP_TRY(find_tag(b, at, token, &tag, err));
    if (tag ? strcmp(tag, "str") != 0 : is_plain) /* a tag says it of quoted ones too */
        TP_TRY(resolve(b, at, text, n, &type, &number, err));
    TP_TRY(check_tag(b, at, token, type, err));
    TP_TRY(new_node(b, at, type, &node, err));
    if (type == TP_JSON_NUMBER)
        TP_TRY(copy_text(b, at, number.data, number.len, &node->text, err));
    if (type == TP_JSON_STRING)
        TP_TRY(copy_text(b, at, text, n, &node->text, err));
    *ret = node;
    return TP_OK;
}

/* The column of the first line behind `from` that is not blank. */
static uint32_t next_column(const char *from, const char *end)
{
    const char *line = from;
    for (; from < end && strchr(" \r\n", *from); from++)
        if (*from != ' ')
            line = from + 1;
    return (uint32_t)(from - line) + 1;
}

static bool is_block(struct fy_event *event)
{
    enum fy_scalar_style style = fy_token_scalar_style(event->scalar.value);
    return style == FYSS_LITERAL || style == FYSS_FOLDED;
}

/* libfyaml 0.7 takes lines for an empty block's that are no deeper than the mapping or list
 * around it, and so the keys and entries that follow. */
static tp_status check_block(const builder *b, struct fy_event *event, const char *text,
                             tp_error *err)
{
    const struct fy_mark *mark = fy_event_start_mark(event);
    if (!b->depth || !mark || !text[strspn(text, " \n")] ||
        next_column(b->source + mark->input_pos, b->source_end) > b->stack[b->depth - 1].column)
        return TP_OK;
    return fail_at(b, ((place){(uint32_t)mark->line, 1}), err,
                   "an empty block of text; write \"\", or indent the lines that belong to it");
}

/* At the end of the file libfyaml 0.7 gives an empty block a NUL, and one a line feed that the
 * file does not end with. */
static size_t block_length(const builder *b, struct fy_event *event, const char *text)
{
    const struct fy_mark *end = fy_token_end_mark(event->scalar.value);
    size_t n = strlen(text);
    bool ends_file = end && b->source + end->input_pos == b->source_end;
    return n - (n && text[n - 1] == '\n' && ends_file && !strchr(" \r\n", b->source_end[-1]));
}

static tp_status take_scalar(builder *b, struct fy_event *event, tp_error *err)
{
    place at = place_of(event);
    const char *text = fy_token_get_text0(event->scalar.value);
    size_t n = text ? fy_token_get_text_length(event->scalar.value) : 0;
    text = text ? text : "";
    bool is_plain = fy_token_scalar_style(event->scalar.value) == FYSS_PLAIN;
    if (is_block(event)) {
        TP_TRY(check_block(b, event, text, err));
        n = block_length(b, event, text);
    }
    if (expects_key(b)) {
        if (event->scalar.anchor || event->scalar.tag)
            return fail_at(b, at, err, "a key takes neither anchor nor tag");
        return take_key(b, at, text, n, is_plain, err);
    }
    tp_json *node = NULL;
    TP_TRY(new_scalar(b, at, text, n, is_plain, event->scalar.tag, &node, err));
    TP_TRY(name_anchor(b, at, event->scalar.anchor, node, err));
    return attach(b, at, node, err);
}

static tp_status take_alias(builder *b, struct fy_event *event, tp_error *err)
{
    place at = place_of(event);
    size_t n = 0;
    const char *text = fy_token_get_text(event->alias.anchor, &n);
    tp_slice name = {text, text ? n : 0};
    const anchor *a = b->anchors;
    while (a && !tp_slice_eq(a->name, name))
        a = a->next;
    if (!a)
        return fail_at(b, at, err, "alias *%.*s has no anchor &%.*s before it", (int)TP_MIN(n, 100),
                       text, (int)TP_MIN(n, 100), text);
    for (int i = 0; i < b->depth; i++) {
        if (b->stack[i].node == a->node)
            return fail_at(b, at, err,
                           "alias *%.*s contains itself; a configuration cannot be "
                           "endless",
                           (int)TP_MIN(n, 100), text);
    }
    tp_json *copy = NULL;
    TP_TRY(copy_tree(b, at, a->node, b->depth, &copy, err));
    copy->line = at.line;
    copy->key = (tp_slice){0};
    return attach(b, at, copy, err);
}

static tp_status open_container(builder *b, place at, tp_json_type type, struct fy_token *tag,
                                struct fy_token *anchor_token, tp_error *err)
{
    if (b->depth == TP_YAML_MAX_DEPTH)
        return fail_at(b, at, err, "nested more than %d levels deep", TP_YAML_MAX_DEPTH);
    TP_TRY(check_tag(b, at, tag, type, err));
    tp_json *node = NULL;
    TP_TRY(new_node(b, at, type, &node, err));
    TP_TRY(name_anchor(b, at, anchor_token, node, err));
    TP_TRY(attach(b, at, node, err));
    b->stack[b->depth++] = (frame){.node = node, .column = at.column};
    return TP_OK;
}

static const tp_json *find_key(const tp_json *object, tp_slice key)
{
    for (const tp_json *v = object->child; v; v = v->next) {
        if (tp_slice_eq(v->key, key))
            return v;
    }
    return NULL;
}

/* The members of `from` that the mapping lacks come before its own, as in YAML
 * 1.1: what is written out wins.  Copied, because an alias may name `from` again;
 * what they contain is shared. */
static tp_status merge_one(builder *b, tp_json *object, const tp_json *from, tp_error *err)
{
    place at = {from->line, 1};
    if (from->type != TP_JSON_OBJECT)
        return fail_at(b, at, err, "<< takes a mapping or a list of mappings");
    tp_json *first = NULL, **link = &first;
    for (const tp_json *v = from->child; v; v = v->next) {
        if (find_key(object, v->key))
            continue;
        TP_TRY(new_node(b, at, v->type, link, err));
        **link = *v;
        (*link)->next = NULL;
        link = &(*link)->next;
        object->n++;
    }
    *link = object->child;
    object->child = first;
    return TP_OK;
}

static tp_status apply_merge(builder *b, frame *f, tp_error *err)
{
    if (!f->merge)
        return TP_OK;
    if (f->merge->type != TP_JSON_ARRAY)
        return merge_one(b, f->node, f->merge, err);
    for (const tp_json *v = f->merge->child; v; v = v->next)
        TP_TRY(merge_one(b, f->node, v, err));
    return TP_OK;
}

static tp_status close_container(builder *b, tp_error *err)
{
    frame *f = &b->stack[b->depth - 1];
    const tp_json *again = tp_json_duplicate(f->node);
    if (again)
        return fail_at(b, ((place){again->line, 1}), err,
                       "key \"%.200s\" appears twice in one mapping; remove one", again->key.data);
    TP_TRY(apply_merge(b, f, err));
    b->depth--;
    return TP_OK;
}

static tp_status take_event(builder *b, struct fy_event *event, tp_error *err)
{
    switch (event->type) {
    case FYET_DOCUMENT_START:
        if (b->n_documents++)
            return fail_at(b, place_of(event), err,
                           "a second document begins; one file holds one configuration");
        return TP_OK;
    case FYET_SCALAR:
        return take_scalar(b, event, err);
    case FYET_ALIAS:
        return take_alias(b, event, err);
    case FYET_MAPPING_START:
        return open_container(b, place_of(event), TP_JSON_OBJECT, event->mapping_start.tag,
                              event->mapping_start.anchor, err);
    case FYET_SEQUENCE_START:
        return open_container(b, place_of(event), TP_JSON_ARRAY, event->sequence_start.tag,
                              event->sequence_start.anchor, err);
    case FYET_MAPPING_END:
    case FYET_SEQUENCE_END:
        return close_container(b, err);
    default:
        return TP_OK;
    }
}

/* The first thing that libfyaml found wrong. */
static tp_status syntax_error(const builder *b, struct fy_diag *diag, tp_error *err)
{
    void *previous = NULL;
    const struct fy_diag_error *e = fy_diag_errors_iterate(diag, &previous);
    if (!e || !e->msg)
        return tp_fail(err, TP_ERR_CONFIG, "%s: not valid YAML", b->name);
    place at = {(uint32_t)TP_MAX(e->line, 1), (uint32_t)TP_MAX(e->column, 1)};
    return fail_at(b, at, err, "%s", e->msg);
}

static tp_status build(builder *b, struct fy_diag *diag, tp_error *err)
{
    struct fy_event *event;
    while ((event = fy_parser_parse(b->parser))) {
        bool is_end = event->type == FYET_STREAM_END;
        tp_status status = take_event(b, event, err);
        fy_parser_event_free(b->parser, event);
        if (is_end || status != TP_OK)
            return status;
    }
    return syntax_error(b, diag, err);
}

static tp_status check_text(const char *name, const char *text, size_t n, tp_error *err)
{
    if (n > TP_YAML_MAX_BYTES)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s: %zu bytes is more than the %d a configuration may have", name, n,
                       TP_YAML_MAX_BYTES);
    unsigned line = 1;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t len = tp_utf8_decode(text + i, n - i, &cp);
        if (!len)
            return tp_fail(err, TP_ERR_CONFIG, "%s:%u: invalid UTF-8; convert the file to UTF-8",
                           name, line);
        if (cp == 0)
            return tp_fail(err, TP_ERR_CONFIG, "%s:%u: a NUL byte; this is not a text file", name,
                           line);
        line += cp == '\n';
        i += len;
    }
    return TP_OK;
}

static struct fy_diag *silent_diag(void)
{
    struct fy_diag_cfg cfg;
    fy_diag_cfg_default(&cfg);
    cfg.fp = NULL;
    cfg.level = FYET_ERROR;
    cfg.colorize = false;
    struct fy_diag *diag = fy_diag_create(&cfg);
    if (diag)
        fy_diag_set_collect_errors(diag, true);
    return diag;
}

static tp_status parse_with(builder *b, struct fy_diag *diag, const char *text, size_t n,
                            tp_error *err)
{
    struct fy_parse_cfg cfg = {.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG |
                                        FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE |
                                        FYPCF_SLOPPY_FLOW_INDENTATION, /* as PyYAML */
                               .diag = diag};
    b->parser = fy_parser_create(&cfg);
    if (!b->parser)
        return tp_fail(err, TP_ERR_NOMEM, "%s: out of memory", b->name);
    tp_status status = fy_parser_set_string(b->parser, text, n) == 0
                           ? build(b, diag, err)
                           : tp_fail(err, TP_ERR_NOMEM, "%s: out of memory", b->name);
    fy_parser_destroy(b->parser);
    return status;
}

tp_status tp_yaml_parse_plain(tp_arena *arena, const char *name, const char *text,
                              const tp_json **ret, tp_error *err)
{
    builder b = {.arena = arena, .name = name, .two_ways = IS_TEXT};
    size_t n = strlen(text);
    TP_TRY(check_text(name, text, n, err));
    tp_json *node = NULL;
    TP_TRY(new_scalar(&b, (place){1, 1}, text, n, true, NULL, &node, err));
    *ret = node;
    return TP_OK;
}

static tp_status parse(tp_arena *arena, const char *name, const char *text, size_t n, two_ways how,
                       const tp_json **ret, tp_error *err)
{
    text = n ? text : "";
    TP_TRY(check_text(name, text, n, err));
    struct fy_diag *diag = silent_diag();
    if (!diag)
        return tp_fail(err, TP_ERR_NOMEM, "%s: out of memory", name);
    builder b = {
        .arena = arena, .name = name, .source = text, .source_end = text + n, .two_ways = how};
    size_t mark = tp_arena_mark(arena);
    tp_status status = parse_with(&b, diag, text, n, err);
    if (status == TP_OK && !b.root)
        status = new_node(&b, (place){1, 1}, TP_JSON_NULL, &b.root, err);
    if (status == TP_OK)
        *ret = b.root;
    else
        tp_arena_rewind(arena, mark);
    fy_diag_destroy(diag);
    return status;
}

tp_status tp_yaml_parse(tp_arena *arena, const char *name, const char *text, size_t n,
                        const tp_json **ret, tp_error *err)
{
    return parse(arena, name, text, n, IS_REFUSED, ret, err);
}

tp_status tp_yaml_parse_old(tp_arena *arena, const char *name, const char *text, size_t n,
                            const tp_json **ret, tp_error *err)
{
    return parse(arena, name, text, n, IS_AS_IN_1_1, ret, err);
}

tp_status tp_yaml_parse_words(tp_arena *arena, const char *name, const char *text, size_t n,
                              const tp_json **ret, tp_error *err)
{
    return parse(arena, name, text, n, IS_TEXT, ret, err);
}
