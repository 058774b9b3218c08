/* jinja_str_search.c - methods of strings that look for text, cut and join. */
#include "text/template/jinja_str.h"

#include <string.h>

#include "base/platform.h"

enum { BYTES_PER_TURN = 1024 };
enum { BOTH, LEFT, RIGHT }; /* sides of a text: variants of functions */

static tp_status m_strip(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_slice set;
    bool is_space = c->arg[0].type == TP_ANY_MISSING || c->arg[0].type == TP_ANY_NONE;
    if (!is_space)
        TP_TRY(tp_jinja_want_text(run, c->what, &c->arg[0], &set));
    TP_TRY(tp_jinja_charge(run, c->self->text.len / BYTES_PER_TURN));
    tp_slice s = tp_jinja_strip(c->self->text, is_space ? NULL : &set, c->variant != RIGHT,
                                c->variant != LEFT);
    *ret = tp_any_text(s.data, s.len);
    return TP_OK;
}

/* The part of a string between two positions in code points, as find() and others
 * take them; *ret_before is the number of code points in front of it. */
static tp_status part_between(tp_jinja_run *run, const char *what, tp_slice s, const tp_any *start,
                              const tp_any *stop, tp_slice *ret, int64_t *ret_before)
{
    int64_t n = (int64_t)tp_utf8_count(s.data, s.len), from = 0, to = n;
    if (start->type != TP_ANY_NONE)
        TP_TRY(tp_jinja_want_int(run, what, start, &from));
    if (stop->type != TP_ANY_NONE)
        TP_TRY(tp_jinja_want_int(run, what, stop, &to));
    TP_TRY(tp_jinja_charge(run, s.len / BYTES_PER_TURN));
    from = from < 0 ? TP_MAX(from + n, 0) : from;
    to = to < 0 ? TP_MAX(to + n, 0) : TP_MIN(to, n);
    *ret_before = from;
    *ret = (tp_slice){NULL, 0};
    if (from > to)
        return TP_OK; /* nothing, not even an empty text, is in there */
    size_t begin = tp_utf8_offset(s.data, s.len, (size_t)from);
    size_t len = tp_utf8_offset(s.data + begin, s.len - begin, (size_t)(to - from));
    *ret = (tp_slice){s.data + begin, len};
    return TP_OK;
}

/* startswith() and endswith() with one text or a tuple of them. */
static tp_status m_has_affix(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_slice part;
    int64_t before;
    TP_TRY(part_between(run, c->what, c->self->text, &c->arg[1], &c->arg[2], &part, &before));
    bool is_tuple = c->arg[0].type == TP_ANY_TUPLE;
    size_t n = is_tuple ? c->arg[0].items->n : 1;
    *ret = tp_any_bool(false);
    for (size_t i = 0; i < n; i++) {
        tp_slice affix;
        const tp_any *v = is_tuple ? &c->arg[0].items->values[i] : &c->arg[0];
        TP_TRY(tp_jinja_want_text(run, c->what, v, &affix));
        if (!part.data || affix.len > part.len)
            continue;
        const char *at = part.data + (c->variant == RIGHT ? part.len - affix.len : 0);
        ret->truth |= affix.len == 0 || memcmp(at, affix.data, affix.len) == 0;
    }
    return TP_OK;
}

static tp_status m_remove_affix(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_slice affix, s = c->self->text;
    TP_TRY(tp_jinja_want_text(run, c->what, &c->arg[0], &affix));
    size_t at = c->variant == RIGHT ? s.len - TP_MIN(affix.len, s.len) : 0;
    if (affix.len && affix.len <= s.len && memcmp(s.data + at, affix.data, affix.len) == 0) {
        s.data += c->variant == RIGHT ? 0 : affix.len;
        s.len -= affix.len;
    }
    *ret = tp_any_text(s.data, s.len);
    return TP_OK;
}

/* find(), rfind(), index(), rindex(): a position in code points, -1 for none. */
static tp_status m_find(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_slice wanted, part;
    int64_t before;
    TP_TRY(tp_jinja_want_text(run, c->what, &c->arg[0], &wanted));
    TP_TRY(part_between(run, c->what, c->self->text, &c->arg[1], &c->arg[2], &part, &before));
    size_t at = SIZE_MAX;
    if (part.data)
        at =
            c->variant == RIGHT ? tp_jinja_find_last(part, wanted) : tp_jinja_find(part, wanted, 0);
    *ret = tp_any_int(at == SIZE_MAX ? -1 : before + (int64_t)tp_utf8_count(part.data, at));
    return TP_OK;
}

static tp_status m_index(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    TP_TRY(m_find(run, c, ret));
    return ret->integer < 0 ? tp_jinja_fail(run, "%s: the text is not found", c->what) : TP_OK;
}

static tp_status m_count(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_slice wanted, part;
    int64_t before;
    tp_integer n = 0;
    TP_TRY(tp_jinja_want_text(run, c->what, &c->arg[0], &wanted));
    TP_TRY(part_between(run, c->what, c->self->text, &c->arg[1], &c->arg[2], &part, &before));
    if (wanted.len == 0 && part.data)
        n = (tp_integer)tp_utf8_count(part.data, part.len) + 1;
    for (size_t at = 0; wanted.len && part.data; n++) {
        size_t found = tp_jinja_find(part, wanted, at);
        if (found == SIZE_MAX)
            break;
        at = found + wanted.len;
    }
    *ret = tp_any_int(n);
    return TP_OK;
}

static tp_status m_replace(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_slice from, to;
    int64_t count = -1;
    TP_TRY(tp_jinja_want_text(run, c->what, &c->arg[0], &from));
    TP_TRY(tp_jinja_want_text(run, c->what, &c->arg[1], &to));
    TP_TRY(tp_jinja_want_int(run, "replace(): count", &c->arg[2], &count));
    return tp_jinja_replace(run, c->self->text, from, to, count, ret);
}

static tp_status split_space(tp_jinja_builder *b, tp_slice s, int64_t most)
{
    s = tp_jinja_strip(s, NULL, true, false);
    for (; s.len && most != 0; most--) {
        size_t end = 0, len;
        while (end < s.len && !tp_python_space_at(s.data + end, s.len - end, &len))
            end += tp_utf8_length(s.data + end, s.len - end);
        TP_TRY(tp_jinja_append_text(b, s.data, end));
        s = tp_jinja_strip((tp_slice){s.data + end, s.len - end}, NULL, true, false);
    }
    return s.len ? tp_jinja_append_text(b, s.data, s.len) : TP_OK;
}

/* The same from the right: pieces come last first. */
static tp_status rsplit_space(tp_jinja_builder *b, tp_slice s, int64_t most)
{
    s = tp_jinja_strip(s, NULL, false, true);
    for (; s.len && most != 0; most--) {
        size_t begin = s.len;
        while (begin > 0) {
            size_t at = begin - 1, len;
            while (at > 0 && ((uint8_t)s.data[at] & 0xc0) == 0x80)
                at--;
            if (tp_python_space_at(s.data + at, begin - at, &len))
                break;
            begin = at;
        }
        TP_TRY(tp_jinja_append_text(b, s.data + begin, s.len - begin));
        s = tp_jinja_strip((tp_slice){s.data, begin}, NULL, false, true);
    }
    return s.len ? tp_jinja_append_text(b, s.data, s.len) : TP_OK;
}

static tp_status split_on(tp_jinja_builder *b, tp_slice s, tp_slice sep, int64_t most)
{
    for (; most != 0; most--) {
        size_t found = tp_jinja_find(s, sep, 0);
        if (found == SIZE_MAX)
            break;
        TP_TRY(tp_jinja_append_text(b, s.data, found));
        s = (tp_slice){s.data + found + sep.len, s.len - found - sep.len};
    }
    return tp_jinja_append_text(b, s.data, s.len);
}

static tp_status rsplit_on(tp_jinja_builder *b, tp_slice s, tp_slice sep, int64_t most)
{
    for (; most != 0; most--) {
        size_t found = tp_jinja_find_last(s, sep);
        if (found == SIZE_MAX)
            break;
        TP_TRY(tp_jinja_append_text(b, s.data + found + sep.len, s.len - found - sep.len));
        s.len = found;
    }
    return tp_jinja_append_text(b, s.data, s.len);
}

static tp_status m_split(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_slice sep = {0};
    int64_t most = -1;
    tp_jinja_builder b = {.run = run};
    TP_TRY(tp_jinja_want_int(run, c->what, &c->arg[1], &most));
    TP_TRY(tp_jinja_charge(run, c->self->text.len / BYTES_PER_TURN));
    if (c->arg[0].type == TP_ANY_MISSING || c->arg[0].type == TP_ANY_NONE) {
        TP_TRY((c->variant == RIGHT ? rsplit_space : split_space)(&b, c->self->text, most));
    } else {
        TP_TRY(tp_jinja_want_text(run, c->what, &c->arg[0], &sep));
        if (sep.len == 0)
            return tp_jinja_fail(run, "%s: the separator is empty", c->what);
        TP_TRY((c->variant == RIGHT ? rsplit_on : split_on)(&b, c->self->text, sep, most));
    }
    for (size_t i = 0, j = b.n; c->variant == RIGHT && i + 1 < j; i++) {
        tp_any v = b.values[i];
        b.values[i] = b.values[--j];
        b.values[j] = v;
    }
    return tp_jinja_build(&b, TP_ANY_LIST, ret);
}

static tp_status m_partition(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_any *values;
    tp_slice sep, s = c->self->text;
    TP_TRY(tp_jinja_want_text(run, c->what, &c->arg[0], &sep));
    if (sep.len == 0)
        return tp_jinja_fail(run, "%s: the separator is empty", c->what);
    TP_TRY(tp_jinja_charge(run, s.len / BYTES_PER_TURN));
    size_t found = c->variant == RIGHT ? tp_jinja_find_last(s, sep) : tp_jinja_find(s, sep, 0);
    TP_TRY(tp_any_new_list(run, TP_ANY_TUPLE, 3, ret, &values));
    for (size_t i = 0; i < 3; i++)
        values[i] = tp_any_text("", 0);
    if (found == SIZE_MAX) {
        values[c->variant == RIGHT ? 2 : 0] = *c->self;
        return TP_OK;
    }
    values[0] = tp_any_text(s.data, found);
    values[1] = c->arg[0];
    values[2] = tp_any_text(s.data + found + sep.len, s.len - found - sep.len);
    return TP_OK;
}

static tp_status m_splitlines(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    bool keep_ends = false;
    TP_TRY(tp_jinja_want_flag(run, c->what, &c->arg[0], &keep_ends));
    return tp_jinja_splitlines(run, c->self->text, keep_ends, ret);
}

static tp_status m_join(tp_jinja_run *run, const tp_jinja_invocation *c, tp_any *ret)
{
    tp_any element;
    tp_any_walk walk;
    bool more = false;
    tp_jinja_text out = {.run = run};
    TP_TRY(tp_any_walk_begin(run, &c->arg[0], &walk));
    for (size_t i = 0;; i++) {
        tp_slice s;
        TP_TRY(tp_any_walk_next(run, &walk, &element, &more));
        if (!more)
            break;
        TP_TRY(tp_jinja_want_text(run, c->what, &element, &s));
        if (i)
            TP_TRY(tp_jinja_add(&out, c->self->text.data, c->self->text.len));
        TP_TRY(tp_jinja_add(&out, s.data, s.len));
    }
    *ret = tp_jinja_text_value(&out);
    return TP_OK;
}

const tp_jinja_function tp_jinja_search_methods[] = {
    {"count()", m_count, "_ [_ _]", 0, NULL},
    {"endswith()", m_has_affix, "_ [_ _]", RIGHT, NULL},
    {"find()", m_find, "_ [_ _]", LEFT, NULL},
    {"format()", tp_jinja_str_format, NULL, 0, NULL},
    {"index()", m_index, "_ [_ _]", LEFT, NULL},
    {"join()", m_join, "_", 0, NULL},
    {"lstrip()", m_strip, "[_]", LEFT, NULL},
    {"partition()", m_partition, "_", LEFT, NULL},
    {"removeprefix()", m_remove_affix, "_", LEFT, NULL},
    {"removesuffix()", m_remove_affix, "_", RIGHT, NULL},
    {"replace()", m_replace, "_ _ [_]", 0, NULL},
    {"rfind()", m_find, "_ [_ _]", RIGHT, NULL},
    {"rindex()", m_index, "_ [_ _]", RIGHT, NULL},
    {"rpartition()", m_partition, "_", RIGHT, NULL},
    {"rsplit()", m_split, "[sep maxsplit]", RIGHT, NULL},
    {"rstrip()", m_strip, "[_]", RIGHT, NULL},
    {"split()", m_split, "[sep maxsplit]", LEFT, NULL},
    {"splitlines()", m_splitlines, "[keepends]", 0, NULL},
    {"startswith()", m_has_affix, "_ [_ _]", LEFT, NULL},
    {"strip()", m_strip, "[_]", BOTH, NULL},
    {0}};
