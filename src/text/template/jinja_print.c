/* jinja_print.c - growing text, and values as Python prints them. */
#include <stdarg.h>
#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_run.h"
#include "text/template/python_text.h"

static tp_status reserve(tp_jinja_text *text, size_t extra)
{
    tp_jinja_run *run = text->run;
    size_t need = text->len + extra;
    if (extra > run->max_output || need > run->max_output)
        return tp_jinja_fail(run, "the text becomes longer than %zu bytes", run->max_output);
    if (need <= text->cap)
        return TP_OK;
    size_t cap = TP_MAX(2 * text->cap, need + 64);
    tp_arena *arena = &run->arena;
    bool is_last = text->data && text->data + text->cap == arena->base + arena->used &&
                   tp_arena_room(arena) >= cap - text->cap;
    void *memory = NULL;
    if (is_last) { /* nothing was taken since: grow in place */
        TP_TRY(tp_jinja_take(run, cap - text->cap, 1, &memory));
    } else {
        TP_TRY(tp_jinja_take(run, cap, 1, &memory));
        if (text->len)
            memcpy(memory, text->data, text->len);
        text->data = memory;
    }
    text->cap = cap;
    return TP_OK;
}

tp_status tp_jinja_add(tp_jinja_text *text, const char *s, size_t n)
{
    TP_TRY(reserve(text, n));
    if (n)
        memcpy(text->data + text->len, s, n);
    text->len += n;
    return TP_OK;
}

tp_status tp_jinja_adds(tp_jinja_text *text, const char *s)
{
    return tp_jinja_add(text, s, strlen(s));
}

tp_status tp_jinja_addf(tp_jinja_text *text, const char *fmt, ...)
{
    char few[256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(few, sizeof few, fmt, ap);
    va_end(ap);
    TP_ASSERT(n >= 0 && (size_t)n < sizeof few);
    return tp_jinja_add(text, few, (size_t)n);
}

tp_any tp_jinja_text_value(const tp_jinja_text *text)
{
    return tp_any_text(text->data ? text->data : "", text->len);
}

static tp_status repr_text(tp_jinja_text *out, tp_slice s)
{
    bool has_single = s.len && memchr(s.data, '\'', s.len);
    char quote = has_single && !memchr(s.data, '"', s.len) ? '"' : '\'';
    TP_TRY(tp_jinja_add(out, &quote, 1));
    for (size_t i = 0, len; i < s.len; i += len) {
        uint32_t cp = 0;
        len = tp_utf8_length(s.data + i, s.len - i);
        tp_utf8_decode(s.data + i, len, &cp);
        if (cp == (uint32_t)quote || cp == '\\')
            TP_TRY(tp_jinja_addf(out, "\\%c", (int)cp));
        else if (cp == '\n' || cp == '\r' || cp == '\t')
            TP_TRY(tp_jinja_adds(out, cp == '\n' ? "\\n" : cp == '\r' ? "\\r" : "\\t"));
        else if (tp_python_is_printable(cp))
            TP_TRY(tp_jinja_add(out, s.data + i, len));
        else
            TP_TRY(tp_jinja_addf(out,
                                 cp < 0x100     ? "\\x%02x"
                                 : cp < 0x10000 ? "\\u%04x"
                                                : "\\U%08x",
                                 (unsigned)cp));
    }
    return tp_jinja_add(out, &quote, 1);
}

static tp_status repr_at(tp_jinja_text *out, const tp_any *v, size_t depth);

static tp_status repr_items(tp_jinja_text *out, const struct tp_any_items *items, bool is_tuple,
                            size_t depth)
{
    TP_TRY(tp_jinja_adds(out, is_tuple ? "(" : "["));
    for (size_t i = 0; i < items->n; i++) {
        if (i)
            TP_TRY(tp_jinja_adds(out, ", "));
        TP_TRY(repr_at(out, &items->values[i], depth));
    }
    if (is_tuple)
        return tp_jinja_adds(out, items->n == 1 ? ",)" : ")");
    return tp_jinja_adds(out, "]");
}

static tp_status repr_dict(tp_jinja_text *out, const struct tp_any_dict *dict, size_t depth)
{
    TP_TRY(tp_jinja_adds(out, "{"));
    for (size_t i = 0; i < dict->n; i++) {
        if (i)
            TP_TRY(tp_jinja_adds(out, ", "));
        TP_TRY(repr_at(out, &dict->entries[i].key, depth));
        TP_TRY(tp_jinja_adds(out, ": "));
        TP_TRY(repr_at(out, &dict->entries[i].value, depth));
    }
    return tp_jinja_adds(out, "}");
}

static tp_status repr_view(tp_jinja_text *out, const tp_any *v, size_t depth)
{
    tp_any_walk walk;
    tp_any element;
    bool more = false;
    TP_TRY(tp_jinja_addf(out, "%s([", tp_any_type_name(v)));
    TP_TRY(tp_any_walk_begin(out->run, v, &walk));
    for (size_t i = 0;; i++) {
        TP_TRY(tp_any_walk_next(out->run, &walk, &element, &more));
        if (!more)
            return tp_jinja_adds(out, "])");
        if (i)
            TP_TRY(tp_jinja_adds(out, ", "));
        TP_TRY(repr_at(out, &element, depth));
    }
}

static tp_status repr_range(tp_jinja_text *out, const struct tp_any_range *range)
{
    TP_TRY(tp_jinja_addf(out, "range(%lld, %lld", (long long)range->start, (long long)range->stop));
    if (range->step != 1)
        TP_TRY(tp_jinja_addf(out, ", %lld", (long long)range->step));
    return tp_jinja_adds(out, ")");
}

static tp_status repr_at(tp_jinja_text *out, const tp_any *v, size_t depth)
{
    char number[TP_PYTHON_NUMBER_MAX];
    TP_TRY(tp_jinja_charge(out->run, 1));
    if (depth > TP_JINJA_MAX_VALUE_DEPTH)
        return tp_jinja_fail(out->run, "a value nested deeper than %d cannot be printed",
                             TP_JINJA_MAX_VALUE_DEPTH);
    switch ((tp_any_type)v->type) {
    case TP_ANY_MISSING:
    case TP_ANY_UNDEFINED:
        return tp_jinja_adds(out, "Undefined");
    case TP_ANY_NONE:
        return tp_jinja_adds(out, "None");
    case TP_ANY_BOOL:
        return tp_jinja_adds(out, v->truth ? "True" : "False");
    case TP_ANY_INT:
        return tp_jinja_add(out, number, tp_python_integer(v->integer, number));
    case TP_ANY_FLOAT:
        return tp_jinja_add(out, number, tp_python_float(v->real, number));
    case TP_ANY_STR:
        if (v->is_safe)
            TP_TRY(tp_jinja_adds(out, "Markup("));
        TP_TRY(repr_text(out, v->text));
        return v->is_safe ? tp_jinja_adds(out, ")") : TP_OK;
    case TP_ANY_LIST:
    case TP_ANY_TUPLE:
        return repr_items(out, v->items, v->type == TP_ANY_TUPLE, depth + 1);
    case TP_ANY_DICT:
        return repr_dict(out, v->dict, depth + 1);
    case TP_ANY_VIEW:
        return repr_view(out, v, depth + 1);
    case TP_ANY_RANGE:
        return repr_range(out, v->range);
    case TP_ANY_NAMESPACE:
        TP_TRY(tp_jinja_adds(out, "<Namespace "));
        TP_TRY(repr_dict(out, v->dict, depth + 1));
        return tp_jinja_adds(out, ">");
    case TP_ANY_MACRO:
        if (!v->macro->definition->name.len)
            return tp_jinja_adds(out, "<Macro anonymous>");
        TP_TRY(tp_jinja_adds(out, "<Macro "));
        TP_TRY(repr_text(out, v->macro->definition->name));
        return tp_jinja_adds(out, ">");
    case TP_ANY_LOOP:
        return out->run->print_loop(out, v->loop);
    case TP_ANY_ITERATOR:
        return tp_jinja_fail(out->run, "the result of map, select and the like is printed; put "
                                       "'|list' or '|join' behind it");
    default:
        return tp_jinja_fail(out->run, "a '%s' cannot be printed", tp_any_type_name(v));
    }
}

tp_status tp_any_repr(tp_jinja_text *out, const tp_any *v) { return repr_at(out, v, 0); }

tp_status tp_any_str(tp_jinja_text *out, const tp_any *v)
{
    if (v->type == TP_ANY_STR)
        return tp_jinja_add(out, v->text.data, v->text.len);
    return v->type == TP_ANY_UNDEFINED ? TP_OK : repr_at(out, v, 0);
}

tp_status tp_any_to_text(tp_jinja_run *run, const tp_any *v, tp_slice *ret)
{
    if (v->type == TP_ANY_STR) {
        *ret = v->text;
        return TP_OK;
    }
    tp_jinja_text text = {.run = run};
    TP_TRY(tp_any_str(&text, v));
    *ret = tp_jinja_text_value(&text).text;
    return TP_OK;
}

tp_status tp_jinja_escape_html(tp_jinja_run *run, tp_slice s, tp_any *ret)
{
    static const char special[] = "&<>'\"";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    tp_jinja_text text = {.run = run};
    for (size_t i = 0, begin = 0; i <= s.len; i++) {
        const char *found = i < s.len && s.data[i] ? strchr(special, s.data[i]) : NULL;
        if (i < s.len && !found)
            continue;
        TP_TRY(tp_jinja_add(&text, s.data + begin, i - begin));
        if (found)
            TP_TRY(tp_jinja_adds(&text, entities[found - special]));
        begin = i + 1;
    }
    *ret = tp_jinja_text_value(&text);
    ret->is_safe = true;
    return TP_OK;
}

tp_status tp_any_undefined_of(tp_jinja_run *run, const tp_any *object, const tp_any *key,
                              bool is_unsafe, tp_any *ret)
{
    struct tp_any_undefined what = {.object = tp_any_type_name(object), .is_unsafe = is_unsafe};
    if (key->type == TP_ANY_STR) {
        what.name = key->text;
    } else {
        what.is_element = true;
        tp_jinja_text text = {.run = run};
        /* The message alone needs it: a key that cannot be printed goes without. */
        if (key->type <= TP_ANY_FLOAT)
            TP_TRY(tp_any_repr(&text, key));
        what.name = (tp_slice){text.data, text.len};
    }
    return tp_any_new_undefined(run, what, ret);
}
