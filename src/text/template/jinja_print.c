/* jinja_print.c - growing text, and values as Python prints them: str(), repr() and
 * json.dumps(). */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_run.h"

static void reserve(tp_jinja_text *text, size_t extra)
{
    tp_jinja_run *run = text->run;
    size_t need = text->len + extra;
    if (extra > run->max_output || need > run->max_output)
        tp_jinja_fail(run, "the text becomes longer than %zu bytes", run->max_output);
    if (need <= text->cap)
        return;
    size_t cap = TP_MAX(2 * text->cap, need + 64);
    tp_arena *arena = &run->arena;
    bool is_last = text->data && text->data + text->cap == arena->base + arena->used &&
                   tp_arena_room(arena) >= cap - text->cap;
    if (is_last) { /* nothing was taken since: grow in place */
        tp_jinja_take(run, cap - text->cap, 1);
    } else {
        char *moved = tp_jinja_take(run, cap, 1);
        text->data = text->len ? memcpy(moved, text->data, text->len) : moved;
    }
    text->cap = cap;
}

void tp_jinja_add(tp_jinja_text *text, const char *s, size_t n)
{
    reserve(text, n);
    if (n)
        memcpy(text->data + text->len, s, n);
    text->len += n;
}

void tp_jinja_add_slice(tp_jinja_text *text, tp_slice s) { tp_jinja_add(text, s.data, s.len); }

void tp_jinja_adds(tp_jinja_text *text, const char *s) { tp_jinja_add(text, s, strlen(s)); }

void tp_jinja_addf(tp_jinja_text *text, const char *fmt, ...)
{
    char few[256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(few, sizeof few, fmt, ap);
    va_end(ap);
    TP_ASSERT(n >= 0 && (size_t)n < sizeof few);
    tp_jinja_add(text, few, (size_t)n);
}

void tp_jinja_add_times(tp_jinja_text *text, tp_slice s, int64_t times)
{
    for (int64_t i = 0; i < times && s.len; i++)
        tp_jinja_add_slice(text, s);
}

tp_any tp_jinja_text_value(const tp_jinja_text *text)
{
    return tp_any_text((tp_slice){text->data ? text->data : "", text->len});
}

/* --- texts in quotes --- */

static void repr_text(tp_jinja_text *out, tp_slice s)
{
    bool has_single = s.len && memchr(s.data, '\'', s.len);
    char quote = has_single && !memchr(s.data, '"', s.len) ? '"' : '\'';
    char escaped[TP_PYTHON_NUMBER_MAX];
    tp_jinja_add(out, &quote, 1);
    for (size_t at = 0; at < s.len;) {
        size_t begin = at;
        uint32_t cp = tp_python_next(s, &at);
        if (cp == (uint32_t)quote || cp == '\\')
            tp_jinja_addf(out, "\\%c", (int)cp);
        else if (cp == '\n' || cp == '\r' || cp == '\t')
            tp_jinja_adds(out, cp == '\n' ? "\\n" : cp == '\r' ? "\\r" : "\\t");
        else if (tp_python_is_printable(cp))
            tp_jinja_add(out, s.data + begin, at - begin);
        else
            tp_jinja_add(out, escaped, tp_python_escape(cp, escaped));
    }
    tp_jinja_add(out, &quote, 1);
}

static void json_text(tp_jinja_text *out, tp_slice s, bool ensure_ascii)
{
    static const char special[] = "\"\\\n\r\t\f\b", letters[] = "\"\\nrtfb";
    size_t done = 0;
    tp_jinja_adds(out, "\"");
    for (size_t at = 0, begin; at < s.len;) {
        begin = at;
        uint32_t cp = tp_python_next(s, &at);
        const char *found = cp && cp < 128 ? strchr(special, (int)cp) : NULL;
        if (!found && cp >= 32 && (cp < 127 || !ensure_ascii))
            continue;
        tp_jinja_add(out, s.data + done, begin - done);
        done = at;
        if (found)
            tp_jinja_addf(out, "\\%c", letters[found - special]);
        else if (cp < 0x10000)
            tp_jinja_addf(out, "\\u%04x", (unsigned)cp);
        else
            tp_jinja_addf(out, "\\u%04x\\u%04x", 0xd800 + ((unsigned)(cp - 0x10000) >> 10),
                          0xdc00 + ((unsigned)(cp - 0x10000) & 0x3ff));
    }
    tp_jinja_add(out, s.data + done, s.len - done);
    tp_jinja_adds(out, "\"");
}

/* --- values --- */

typedef struct {
    tp_jinja_text *out;
    const tp_jinja_json_options *json; /* NULL: repr() */
    size_t depth;                      /* of what is being printed */
} printer;

static const tp_jinja_json_options python = {.item_separator = {", ", 2},
                                             .key_separator = {": ", 2}};

static const tp_jinja_json_options *style(const printer *p) { return p->json ? p->json : &python; }

static void print_value(printer *p, tp_any v);

static void new_line(printer *p)
{
    if (!style(p)->has_indent)
        return;
    tp_jinja_adds(p->out, "\n");
    tp_jinja_add_times(p->out, style(p)->indent, (int64_t)p->depth);
}

/* In front of element `i`. */
static void print_separator(printer *p, size_t i)
{
    if (i)
        tp_jinja_add_slice(p->out, style(p)->item_separator);
    new_line(p);
}

/* Brackets around what is one level down; `n` elements are in them. */
static void open_bracket(printer *p, const char *bracket)
{
    p->depth++;
    tp_jinja_adds(p->out, bracket);
}

static void close_bracket(printer *p, size_t n, const char *bracket)
{
    p->depth--;
    if (n)
        new_line(p);
    tp_jinja_adds(p->out, bracket);
}

static void print_elements(printer *p, tp_any v)
{
    bool is_tuple = v.type == TP_ANY_TUPLE && !p->json;
    tp_any_walk walk = tp_any_walk_begin(p->out->run, v);
    size_t i = 0;
    open_bracket(p, is_tuple ? "(" : "[");
    for (tp_any element; tp_any_walk_next(p->out->run, &walk, &element); i++) {
        print_separator(p, i);
        print_value(p, element);
    }
    close_bracket(p, i, !is_tuple ? "]" : i == 1 ? ",)" : ")");
}

static void print_key(printer *p, tp_any key)
{
    bool is_quoted = p->json && key.type != TP_ANY_STR;
    if (is_quoted && (key.type < TP_ANY_NONE || key.type > TP_ANY_FLOAT))
        tp_jinja_fail(p->out->run, "tojson: a '%s' cannot be a key", tp_any_type_name(key));
    tp_jinja_adds(p->out, is_quoted ? "\"" : "");
    print_value(p, key);
    tp_jinja_adds(p->out, is_quoted ? "\"" : "");
}

static void print_dict(printer *p, const struct tp_any_dict *dict)
{
    struct tp_any_entry *entries = dict->entries;
    if (style(p)->sort_keys && dict->n) {
        entries = tp_jinja_take(p->out->run, dict->n, sizeof *entries);
        memcpy(entries, dict->entries, dict->n * sizeof *entries);
        tp_any_sort(p->out->run, entries, dict->n, false);
    }
    open_bracket(p, "{");
    for (size_t i = 0; i < dict->n; i++) {
        print_separator(p, i);
        print_key(p, entries[i].key);
        tp_jinja_add_slice(p->out, style(p)->key_separator);
        print_value(p, entries[i].value);
    }
    close_bracket(p, dict->n, "}");
}

static void print_float(printer *p, double value)
{
    char number[TP_PYTHON_NUMBER_MAX];
    if (p->json && !isfinite(value))
        tp_jinja_adds(p->out, isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
    else
        tp_jinja_add(p->out, number, tp_python_float(value, number));
}

/* What JSON does not have. */
static void print_object(printer *p, tp_any v)
{
    tp_jinja_text *out = p->out;
    if (p->json)
        tp_jinja_want_defined(out->run, v);
    if (p->json)
        tp_jinja_fail(out->run, "tojson: a '%s' is not JSON", tp_any_type_name(v));
    switch ((tp_any_type)v.type) {
    case TP_ANY_MISSING:
    case TP_ANY_UNDEFINED:
        tp_jinja_adds(out, "Undefined");
        return;
    case TP_ANY_VIEW:
        tp_jinja_addf(out, "%s(", tp_any_type_name(v));
        print_elements(p, v);
        tp_jinja_adds(out, ")");
        return;
    case TP_ANY_RANGE:
        tp_jinja_addf(out, "range(%lld, %lld", (long long)v.range->start, (long long)v.range->stop);
        if (v.range->step != 1)
            tp_jinja_addf(out, ", %lld", (long long)v.range->step);
        tp_jinja_adds(out, ")");
        return;
    case TP_ANY_NAMESPACE:
        tp_jinja_adds(out, "<Namespace ");
        print_dict(p, v.dict);
        tp_jinja_adds(out, ">");
        return;
    case TP_ANY_MACRO:
        tp_jinja_adds(out, "<Macro ");
        if (v.macro->definition->text.len)
            repr_text(out, v.macro->definition->text);
        else
            tp_jinja_adds(out, "anonymous");
        tp_jinja_adds(out, ">");
        return;
    case TP_ANY_LOOP:
        out->run->print_loop(out, v.loop);
        return;
    case TP_ANY_ITERATOR:
        tp_jinja_fail(out->run, "the result of map, select and the like is printed; put "
                                "'|list' or '|join' behind it");
    default:
        tp_jinja_fail(out->run, "a '%s' cannot be printed", tp_any_type_name(v));
    }
}

static void print_value(printer *p, tp_any v)
{
    char number[TP_PYTHON_NUMBER_MAX];
    tp_jinja_text *out = p->out;
    tp_jinja_charge(out->run, 1);
    if (p->depth > TP_JINJA_MAX_VALUE_DEPTH)
        tp_jinja_fail(out->run, "a value nested deeper than %d cannot be printed",
                      TP_JINJA_MAX_VALUE_DEPTH);
    switch ((tp_any_type)v.type) {
    case TP_ANY_NONE:
        tp_jinja_adds(out, p->json ? "null" : "None");
        return;
    case TP_ANY_BOOL:
        if (p->json)
            tp_jinja_adds(out, v.truth ? "true" : "false");
        else
            tp_jinja_adds(out, v.truth ? "True" : "False");
        return;
    case TP_ANY_INT:
        tp_jinja_add(out, number, tp_python_integer(v.integer, number));
        return;
    case TP_ANY_FLOAT:
        print_float(p, v.real);
        return;
    case TP_ANY_STR:
        if (p->json) {
            json_text(out, v.text, p->json->ensure_ascii);
            return;
        }
        tp_jinja_adds(out, v.is_safe ? "Markup(" : "");
        repr_text(out, v.text);
        tp_jinja_adds(out, v.is_safe ? ")" : "");
        return;
    case TP_ANY_LIST:
    case TP_ANY_TUPLE:
        print_elements(p, v);
        return;
    case TP_ANY_DICT:
        print_dict(p, v.dict);
        return;
    default:
        print_object(p, v);
    }
}

void tp_any_repr(tp_jinja_text *out, tp_any v) { print_value(&(printer){.out = out}, v); }

void tp_jinja_json(tp_jinja_text *out, tp_any v, const tp_jinja_json_options *options)
{
    print_value(&(printer){.out = out, .json = options}, v);
}

void tp_any_str(tp_jinja_text *out, tp_any v)
{
    if (v.type == TP_ANY_STR)
        tp_jinja_add_slice(out, v.text);
    else if (v.type != TP_ANY_UNDEFINED)
        tp_any_repr(out, v);
}

tp_slice tp_any_to_text(tp_jinja_run *run, tp_any v)
{
    tp_jinja_text text = {.run = run};
    if (v.type == TP_ANY_STR)
        return v.text;
    tp_any_str(&text, v);
    return tp_jinja_text_value(&text).text;
}

tp_any tp_jinja_escape_html(tp_jinja_run *run, tp_slice s)
{
    static const char special[] = "&<>'\"";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    tp_jinja_text text = {.run = run};
    size_t done = 0;
    for (size_t i = 0; i < s.len; i++) {
        const char *found = s.data[i] ? strchr(special, s.data[i]) : NULL;
        if (!found)
            continue;
        tp_jinja_add(&text, s.data + done, i - done);
        tp_jinja_adds(&text, entities[found - special]);
        done = i + 1;
    }
    tp_jinja_add_slice(&text, tp_python_from(s, done));
    tp_any escaped = tp_jinja_text_value(&text);
    escaped.is_safe = true;
    return escaped;
}

tp_any tp_any_undefined_of(tp_jinja_run *run, tp_any object, tp_any key, bool is_unsafe)
{
    struct tp_any_undefined what = {.object = tp_any_type_name(object),
                                    .is_element = key.type != TP_ANY_STR,
                                    .is_unsafe = is_unsafe};
    /* The message alone needs it: a key that cannot be printed goes without. */
    if (key.type <= TP_ANY_STR)
        what.name = tp_any_to_text(run, key);
    return tp_any_undefined(run, what);
}
