/* jinja_str_search.c - methods of strings that look for text, cut and join. */
#include "text/template/jinja_str.h"

#include <string.h>

#include "base/platform.h"
#include "text/template/jinja_format.h"

enum { BYTES_PER_TURN = 1024 };

static tp_status strip_method(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                              const char *what, bool left, bool right, tp_any *ret)
{
    tp_any chars;
    tp_slice set;
    TP_TRY(tp_jinja_bind(run, what, args, (const char *const[]){NULL}, 1, 0, &chars));
    bool is_space = chars.type == TP_ANY_MISSING || chars.type == TP_ANY_NONE;
    if (!is_space)
        TP_TRY(tp_jinja_want_text(run, what, &chars, &set));
    TP_TRY(tp_jinja_charge(run, self->text.len / BYTES_PER_TURN));
    tp_slice s = tp_jinja_strip(self->text, is_space ? NULL : &set, left, right);
    *ret = tp_any_text(s.data, s.len);
    return TP_OK;
}

static tp_status m_strip(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    return strip_method(run, self, args, "strip()", true, true, ret);
}

static tp_status m_lstrip(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                          tp_any *ret)
{
    return strip_method(run, self, args, "lstrip()", true, false, ret);
}

static tp_status m_rstrip(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                          tp_any *ret)
{
    return strip_method(run, self, args, "rstrip()", false, true, ret);
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
static tp_status affix_method(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                              const char *what, bool at_end, tp_any *ret)
{
    tp_any out[3];
    tp_slice part;
    int64_t before;
    TP_TRY(tp_jinja_bind(run, what, args, (const char *const[]){NULL, NULL, NULL}, 3, 1, out));
    TP_TRY(part_between(run, what, self->text, &out[1], &out[2], &part, &before));
    bool is_tuple = out[0].type == TP_ANY_TUPLE;
    size_t n = is_tuple ? out[0].items->n : 1;
    *ret = tp_any_bool(false);
    for (size_t i = 0; i < n; i++) {
        tp_slice affix;
        const tp_any *v = is_tuple ? &out[0].items->values[i] : &out[0];
        TP_TRY(tp_jinja_want_text(run, what, v, &affix));
        if (!part.data || affix.len > part.len)
            continue;
        const char *at = part.data + (at_end ? part.len - affix.len : 0);
        ret->truth |= affix.len == 0 || memcmp(at, affix.data, affix.len) == 0;
    }
    return TP_OK;
}

static tp_status m_startswith(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                              tp_any *ret)
{
    return affix_method(run, self, args, "startswith()", false, ret);
}

static tp_status m_endswith(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                            tp_any *ret)
{
    return affix_method(run, self, args, "endswith()", true, ret);
}

static tp_status remove_affix(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                              const char *what, bool at_end, tp_any *ret)
{
    tp_any out;
    tp_slice affix, s = self->text;
    TP_TRY(tp_jinja_bind(run, what, args, (const char *const[]){NULL}, 1, 1, &out));
    TP_TRY(tp_jinja_want_text(run, what, &out, &affix));
    size_t at = at_end ? s.len - TP_MIN(affix.len, s.len) : 0;
    if (affix.len && affix.len <= s.len && memcmp(s.data + at, affix.data, affix.len) == 0) {
        s.data += at_end ? 0 : affix.len;
        s.len -= affix.len;
    }
    *ret = tp_any_text(s.data, s.len);
    return TP_OK;
}

static tp_status m_removeprefix(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                                tp_any *ret)
{
    return remove_affix(run, self, args, "removeprefix()", false, ret);
}

static tp_status m_removesuffix(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                                tp_any *ret)
{
    return remove_affix(run, self, args, "removesuffix()", true, ret);
}

/* find(), rfind(), index(), rindex(): a position in code points, -1 for none. */
static tp_status find_method(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                             const char *what, bool from_right, tp_integer *ret)
{
    tp_any out[3];
    tp_slice wanted, part;
    int64_t before;
    TP_TRY(tp_jinja_bind(run, what, args, (const char *const[]){NULL, NULL, NULL}, 3, 1, out));
    TP_TRY(tp_jinja_want_text(run, what, &out[0], &wanted));
    TP_TRY(part_between(run, what, self->text, &out[1], &out[2], &part, &before));
    size_t at = SIZE_MAX;
    if (part.data)
        at = from_right ? tp_jinja_find_last(part, wanted) : tp_jinja_find(part, wanted, 0);
    *ret = at == SIZE_MAX ? -1 : before + (int64_t)tp_utf8_count(part.data, at);
    return TP_OK;
}

static tp_status m_find(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                        tp_any *ret)
{
    *ret = tp_any_int(0);
    return find_method(run, self, args, "find()", false, &ret->integer);
}

static tp_status m_rfind(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    *ret = tp_any_int(0);
    return find_method(run, self, args, "rfind()", true, &ret->integer);
}

static tp_status index_method(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                              const char *what, bool from_right, tp_any *ret)
{
    *ret = tp_any_int(0);
    TP_TRY(find_method(run, self, args, what, from_right, &ret->integer));
    return ret->integer < 0 ? tp_jinja_fail(run, "%s: the text is not found", what) : TP_OK;
}

static tp_status m_index(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    return index_method(run, self, args, "index()", false, ret);
}

static tp_status m_rindex(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                          tp_any *ret)
{
    return index_method(run, self, args, "rindex()", true, ret);
}

static tp_status m_count(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    tp_any out[3];
    tp_slice wanted, part;
    int64_t before;
    tp_integer n = 0;
    TP_TRY(tp_jinja_bind(run, "count()", args, (const char *const[]){NULL, NULL, NULL}, 3, 1, out));
    TP_TRY(tp_jinja_want_text(run, "count()", &out[0], &wanted));
    TP_TRY(part_between(run, "count()", self->text, &out[1], &out[2], &part, &before));
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

static tp_status m_replace(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    tp_any out[3];
    tp_slice from, to;
    int64_t count = -1;
    TP_TRY(
        tp_jinja_bind(run, "replace()", args, (const char *const[]){NULL, NULL, NULL}, 3, 2, out));
    TP_TRY(tp_jinja_want_text(run, "replace()", &out[0], &from));
    TP_TRY(tp_jinja_want_text(run, "replace()", &out[1], &to));
    TP_TRY(tp_jinja_want_int(run, "replace(): count", &out[2], &count));
    return tp_jinja_replace(run, self->text, from, to, count, ret);
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

static tp_status split_method(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                              const char *what, bool from_right, tp_any *ret)
{
    static const char *const names[] = {"sep", "maxsplit"};
    tp_any out[2];
    tp_slice sep = {0};
    int64_t most = -1;
    tp_jinja_builder b = {.run = run};
    TP_TRY(tp_jinja_bind(run, what, args, names, 2, 0, out));
    TP_TRY(tp_jinja_want_int(run, what, &out[1], &most));
    TP_TRY(tp_jinja_charge(run, self->text.len / BYTES_PER_TURN));
    if (out[0].type == TP_ANY_MISSING || out[0].type == TP_ANY_NONE) {
        TP_TRY((from_right ? rsplit_space : split_space)(&b, self->text, most));
    } else {
        TP_TRY(tp_jinja_want_text(run, what, &out[0], &sep));
        if (sep.len == 0)
            return tp_jinja_fail(run, "%s: the separator is empty", what);
        TP_TRY((from_right ? rsplit_on : split_on)(&b, self->text, sep, most));
    }
    for (size_t i = 0, j = b.n; from_right && i + 1 < j; i++) {
        tp_any v = b.values[i];
        b.values[i] = b.values[--j];
        b.values[j] = v;
    }
    return tp_jinja_build(&b, TP_ANY_LIST, ret);
}

static tp_status m_split(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    return split_method(run, self, args, "split()", false, ret);
}

static tp_status m_rsplit(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                          tp_any *ret)
{
    return split_method(run, self, args, "rsplit()", true, ret);
}

static tp_status partition_method(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                                  const char *what, bool from_right, tp_any *ret)
{
    tp_any out, *values;
    tp_slice sep, s = self->text;
    TP_TRY(tp_jinja_bind(run, what, args, (const char *const[]){NULL}, 1, 1, &out));
    TP_TRY(tp_jinja_want_text(run, what, &out, &sep));
    if (sep.len == 0)
        return tp_jinja_fail(run, "%s: the separator is empty", what);
    TP_TRY(tp_jinja_charge(run, s.len / BYTES_PER_TURN));
    size_t found = from_right ? tp_jinja_find_last(s, sep) : tp_jinja_find(s, sep, 0);
    TP_TRY(tp_any_new_list(run, TP_ANY_TUPLE, 3, ret, &values));
    for (size_t i = 0; i < 3; i++)
        values[i] = tp_any_text("", 0);
    if (found == SIZE_MAX) {
        values[from_right ? 2 : 0] = *self;
        return TP_OK;
    }
    values[0] = tp_any_text(s.data, found);
    values[1] = out;
    values[2] = tp_any_text(s.data + found + sep.len, s.len - found - sep.len);
    return TP_OK;
}

static tp_status m_partition(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                             tp_any *ret)
{
    return partition_method(run, self, args, "partition()", false, ret);
}

static tp_status m_rpartition(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                              tp_any *ret)
{
    return partition_method(run, self, args, "rpartition()", true, ret);
}

static tp_status m_splitlines(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                              tp_any *ret)
{
    tp_any keep;
    bool keep_ends = false;
    TP_TRY(
        tp_jinja_bind(run, "splitlines()", args, (const char *const[]){"keepends"}, 1, 0, &keep));
    TP_TRY(tp_jinja_want_flag(run, "splitlines()", &keep, &keep_ends));
    return tp_jinja_splitlines(run, self->text, keep_ends, ret);
}

static tp_status m_join(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                        tp_any *ret)
{
    tp_any list, element;
    tp_any_walk walk;
    bool more = false;
    tp_jinja_text out = {.run = run};
    TP_TRY(tp_jinja_bind(run, "join()", args, (const char *const[]){NULL}, 1, 1, &list));
    TP_TRY(tp_any_walk_begin(run, &list, &walk));
    for (size_t i = 0;; i++) {
        tp_slice s;
        TP_TRY(tp_any_walk_next(run, &walk, &element, &more));
        if (!more)
            break;
        TP_TRY(tp_jinja_want_text(run, "join()", &element, &s));
        if (i)
            TP_TRY(tp_jinja_add(&out, self->text.data, self->text.len));
        TP_TRY(tp_jinja_add(&out, s.data, s.len));
    }
    *ret = tp_jinja_text_value(&out);
    return TP_OK;
}

static tp_status m_unsupported(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                               tp_any *ret)
{
    (void)self, (void)args, (void)ret;
    return tp_jinja_unsupported(run, "casefold(), encode(), expandtabs(), format_map(), "
                                     "isidentifier(), maketrans() and translate() are not "
                                     "supported");
}

const tp_jinja_function tp_jinja_search_methods[] = {{"casefold", m_unsupported},
                                                     {"count", m_count},
                                                     {"encode", m_unsupported},
                                                     {"endswith", m_endswith},
                                                     {"expandtabs", m_unsupported},
                                                     {"find", m_find},
                                                     {"format", tp_jinja_str_format},
                                                     {"format_map", m_unsupported},
                                                     {"index", m_index},
                                                     {"isidentifier", m_unsupported},
                                                     {"join", m_join},
                                                     {"lstrip", m_lstrip},
                                                     {"maketrans", m_unsupported},
                                                     {"partition", m_partition},
                                                     {"removeprefix", m_removeprefix},
                                                     {"removesuffix", m_removesuffix},
                                                     {"replace", m_replace},
                                                     {"rfind", m_rfind},
                                                     {"rindex", m_rindex},
                                                     {"rpartition", m_rpartition},
                                                     {"rsplit", m_rsplit},
                                                     {"rstrip", m_rstrip},
                                                     {"split", m_split},
                                                     {"splitlines", m_splitlines},
                                                     {"startswith", m_startswith},
                                                     {"strip", m_strip},
                                                     {"translate", m_unsupported},
                                                     {NULL, NULL}};
