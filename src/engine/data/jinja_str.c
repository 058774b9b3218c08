/* jinja_str.c - the methods of strings. */
#include "engine/data/jinja_str.h"

#include <string.h>

#include "base/platform.h"
#include "engine/data/jinja_format.h"

enum { BYTES_PER_TURN = 1024 };

tp_status tp_jinja_append(tp_jinja_builder *b, const tp_any *value)
{
    if (b->n == b->cap) {
        size_t cap = 2 * b->cap + 8;
        void *values;
        TP_TRY(tp_jinja_take(b->run, cap, sizeof *b->values, &values));
        if (b->n)
            memcpy(values, b->values, b->n * sizeof *b->values);
        b->values = values;
        b->cap = cap;
    }
    b->values[b->n++] = *value;
    return tp_jinja_charge(b->run, 1);
}

tp_status tp_jinja_build(tp_jinja_builder *b, tp_any_type type, tp_any *ret)
{
    tp_any *values;
    TP_TRY(tp_any_new_list(b->run, type, b->n, ret, &values));
    if (b->n)
        memcpy(values, b->values, b->n * sizeof *values);
    return TP_OK;
}

static tp_status append_text(tp_jinja_builder *b, const char *s, size_t n)
{
    tp_any text = tp_any_text(s, n);
    return tp_jinja_append(b, &text);
}

tp_status tp_jinja_change_case(tp_jinja_run *run, tp_python_case to, tp_slice s, tp_any *ret)
{
    void *out = NULL;
    TP_TRY(tp_jinja_charge(run, s.len / BYTES_PER_TURN + 1));
    TP_TRY(tp_jinja_take(run, 3 * s.len + 1, 1, &out));
    *ret = tp_any_text(out, tp_python_change_case(to, s.data, s.len, out));
    return TP_OK;
}

/* Is the character at s[at..at + len) to be stripped? */
static bool is_stripped(tp_slice s, size_t at, size_t len, const tp_slice *chars)
{
    size_t space_len;
    if (!chars)
        return tp_python_space_at(s.data + at, len, &space_len);
    return chars->len && memmem(chars->data, chars->len, s.data + at, len) != NULL;
}

tp_slice tp_jinja_strip(tp_slice s, const tp_slice *chars, bool left, bool right)
{
    size_t begin = 0, end = s.len;
    while (left && begin < end) {
        size_t len = tp_utf8_length(s.data + begin, end - begin);
        if (!is_stripped(s, begin, len, chars))
            break;
        begin += len;
    }
    while (right && begin < end) {
        size_t at = end - 1;
        while (at > begin && ((uint8_t)s.data[at] & 0xc0) == 0x80)
            at--;
        if (!is_stripped(s, at, end - at, chars))
            break;
        end = at;
    }
    return (tp_slice){s.data + begin, end - begin};
}

/* Where `part` is in s from byte `at` on; SIZE_MAX when it is not. */
static size_t find_part(tp_slice s, tp_slice part, size_t at)
{
    if (at > s.len)
        return SIZE_MAX;
    if (part.len == 0)
        return at;
    const char *found = at < s.len ? memmem(s.data + at, s.len - at, part.data, part.len) : NULL;
    return found ? (size_t)(found - s.data) : SIZE_MAX;
}

static size_t find_last(tp_slice s, tp_slice part)
{
    if (part.len == 0)
        return s.len;
    for (size_t at = s.len; at >= part.len; at--)
        if (memcmp(s.data + at - part.len, part.data, part.len) == 0)
            return at - part.len;
    return SIZE_MAX;
}

tp_status tp_jinja_replace(tp_jinja_run *run, tp_slice s, tp_slice from, tp_slice to, int64_t count,
                           tp_any *ret)
{
    tp_jinja_text out = {.run = run};
    size_t at = 0;
    bool at_end = false;
    for (; count != 0 && !at_end; count--) {
        size_t found = find_part(s, from, at), next;
        if (found == SIZE_MAX)
            break;
        /* An empty text is before each character and at the end. */
        next = found + from.len;
        at_end = from.len == 0 && found == s.len;
        TP_TRY(tp_jinja_add(&out, s.data + at, found - at));
        TP_TRY(tp_jinja_add(&out, to.data, to.len));
        if (from.len == 0 && !at_end) {
            next = found + tp_utf8_length(s.data + found, s.len - found);
            TP_TRY(tp_jinja_add(&out, s.data + found, next - found));
        }
        at = next;
        TP_TRY(tp_jinja_charge(run, 1));
    }
    TP_TRY(tp_jinja_charge(run, s.len / BYTES_PER_TURN));
    TP_TRY(tp_jinja_add(&out, s.data + at, s.len - at));
    *ret = tp_jinja_text_value(&out);
    return TP_OK;
}

static tp_status pad(tp_jinja_run *run, tp_slice s, int64_t before, int64_t after, tp_slice fill,
                     tp_any *ret)
{
    tp_jinja_text out = {.run = run};
    if (tp_utf8_count(fill.data, fill.len) != 1)
        return tp_jinja_fail(run, "the fill of a padded text must be one character");
    if (before > TP_JINJA_MAX_WIDTH || after > TP_JINJA_MAX_WIDTH)
        return tp_jinja_fail(run, "a field wider than %d characters", TP_JINJA_MAX_WIDTH);
    for (int64_t i = 0; i < before; i++)
        TP_TRY(tp_jinja_add(&out, fill.data, fill.len));
    TP_TRY(tp_jinja_add(&out, s.data, s.len));
    for (int64_t i = 0; i < after; i++)
        TP_TRY(tp_jinja_add(&out, fill.data, fill.len));
    *ret = tp_jinja_text_value(&out);
    return TP_OK;
}

tp_status tp_jinja_center(tp_jinja_run *run, tp_slice s, int64_t width, tp_slice fill, tp_any *ret)
{
    int64_t room = width - (int64_t)tp_utf8_count(s.data, s.len);
    if (room <= 0)
        return pad(run, s, 0, 0, fill, ret);
    int64_t before = room / 2 + (room & width & 1);
    return pad(run, s, before, room - before, fill, ret);
}

/* Length of the line end at s[at], or 0. */
static size_t line_end(tp_slice s, size_t at)
{
    uint32_t cp = 0;
    size_t len = tp_utf8_length(s.data + at, s.len - at);
    tp_utf8_decode(s.data + at, len, &cp);
    if (cp == '\r' && at + 1 < s.len && s.data[at + 1] == '\n')
        return 2;
    bool ends = (cp >= 10 && cp <= 13) || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 ||
                cp == 0x2028 || cp == 0x2029;
    return ends ? len : 0;
}

tp_status tp_jinja_splitlines(tp_jinja_run *run, tp_slice s, bool keep_ends, tp_any *ret)
{
    tp_jinja_builder b = {.run = run};
    size_t begin = 0;
    for (size_t at = 0; at < s.len;) {
        size_t end = line_end(s, at);
        if (!end) {
            at += tp_utf8_length(s.data + at, s.len - at);
            continue;
        }
        TP_TRY(append_text(&b, s.data + begin, at - begin + (keep_ends ? end : 0)));
        at += end;
        begin = at;
    }
    if (begin < s.len)
        TP_TRY(append_text(&b, s.data + begin, s.len - begin));
    return tp_jinja_build(&b, TP_ANY_LIST, ret);
}

bool tp_jinja_is_cased(tp_slice s, bool upper)
{
    bool any = false;
    for (size_t at = 0, len; at < s.len; at += len) {
        uint32_t cp = 0;
        len = tp_utf8_length(s.data + at, s.len - at);
        tp_utf8_decode(s.data + at, len, &cp);
        bool is_upper = tp_python_is_upper(cp), is_lower = tp_python_is_lower(cp);
        if (tp_python_is_title(cp) || (upper ? is_lower : is_upper))
            return false;
        any |= upper ? is_upper : is_lower;
    }
    return any;
}

/* --- methods --- */

static tp_status case_method(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                             const char *what, tp_python_case to, tp_any *ret)
{
    TP_TRY(tp_jinja_bind(run, what, args, NULL, 0, 0, NULL));
    return tp_jinja_change_case(run, to, self->text, ret);
}

static tp_status m_upper(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    return case_method(run, self, args, "upper()", TP_CASE_UPPER, ret);
}

static tp_status m_lower(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    return case_method(run, self, args, "lower()", TP_CASE_LOWER, ret);
}

static tp_status m_title(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    return case_method(run, self, args, "title()", TP_CASE_TITLE, ret);
}

static tp_status m_capitalize(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                              tp_any *ret)
{
    return case_method(run, self, args, "capitalize()", TP_CASE_CAPITAL, ret);
}

static tp_status m_swapcase(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                            tp_any *ret)
{
    return case_method(run, self, args, "swapcase()", TP_CASE_SWAP, ret);
}

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
        at = from_right ? find_last(part, wanted) : find_part(part, wanted, 0);
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
        size_t found = find_part(part, wanted, at);
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
        TP_TRY(append_text(b, s.data, end));
        s = tp_jinja_strip((tp_slice){s.data + end, s.len - end}, NULL, true, false);
    }
    return s.len ? append_text(b, s.data, s.len) : TP_OK;
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
        TP_TRY(append_text(b, s.data + begin, s.len - begin));
        s = tp_jinja_strip((tp_slice){s.data, begin}, NULL, false, true);
    }
    return s.len ? append_text(b, s.data, s.len) : TP_OK;
}

static tp_status split_on(tp_jinja_builder *b, tp_slice s, tp_slice sep, int64_t most)
{
    for (; most != 0; most--) {
        size_t found = find_part(s, sep, 0);
        if (found == SIZE_MAX)
            break;
        TP_TRY(append_text(b, s.data, found));
        s = (tp_slice){s.data + found + sep.len, s.len - found - sep.len};
    }
    return append_text(b, s.data, s.len);
}

static tp_status rsplit_on(tp_jinja_builder *b, tp_slice s, tp_slice sep, int64_t most)
{
    for (; most != 0; most--) {
        size_t found = find_last(s, sep);
        if (found == SIZE_MAX)
            break;
        TP_TRY(append_text(b, s.data + found + sep.len, s.len - found - sep.len));
        s.len = found;
    }
    return append_text(b, s.data, s.len);
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
    size_t found = from_right ? find_last(s, sep) : find_part(s, sep, 0);
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
    TP_TRY(tp_jinja_bind(run, "splitlines()", args, (const char *const[]){"keepends"}, 1, 0,
                         &keep));
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

static tp_status pad_method(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                            const char *what, char side, tp_any *ret)
{
    tp_any out[2];
    tp_slice fill = TP_SLICE(" ");
    int64_t width = 0;
    TP_TRY(tp_jinja_bind(run, what, args, (const char *const[]){NULL, NULL}, 2, 1, out));
    TP_TRY(tp_jinja_want_int(run, what, &out[0], &width));
    if (out[1].type != TP_ANY_MISSING)
        TP_TRY(tp_jinja_want_text(run, what, &out[1], &fill));
    if (side == '^')
        return tp_jinja_center(run, self->text, width, fill, ret);
    int64_t room = width - (int64_t)tp_utf8_count(self->text.data, self->text.len);
    return pad(run, self->text, side == '>' ? room : 0, side == '<' ? room : 0, fill, ret);
}

static tp_status m_ljust(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    return pad_method(run, self, args, "ljust()", '<', ret);
}

static tp_status m_rjust(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    return pad_method(run, self, args, "rjust()", '>', ret);
}

static tp_status m_center(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                          tp_any *ret)
{
    return pad_method(run, self, args, "center()", '^', ret);
}

static tp_status m_zfill(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                         tp_any *ret)
{
    tp_any out;
    int64_t width = 0;
    tp_slice s = self->text;
    tp_jinja_text text = {.run = run};
    TP_TRY(tp_jinja_bind(run, "zfill()", args, (const char *const[]){NULL}, 1, 1, &out));
    TP_TRY(tp_jinja_want_int(run, "zfill()", &out, &width));
    size_t sign = s.len && (s.data[0] == '-' || s.data[0] == '+');
    int64_t room = width - (int64_t)tp_utf8_count(s.data, s.len);
    tp_any digits;
    TP_TRY(pad(run, (tp_slice){s.data + sign, s.len - sign}, room, 0, TP_SLICE("0"), &digits));
    TP_TRY(tp_jinja_add(&text, s.data, sign));
    TP_TRY(tp_jinja_add(&text, digits.text.data, digits.text.len));
    *ret = tp_jinja_text_value(&text);
    return TP_OK;
}

/* True when the text is not empty and all its characters are such. */
static tp_status all_method(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                            const char *what, bool (*is)(uint32_t), bool of_empty, tp_any *ret)
{
    tp_slice s = self->text;
    TP_TRY(tp_jinja_bind(run, what, args, NULL, 0, 0, NULL));
    TP_TRY(tp_jinja_charge(run, s.len / BYTES_PER_TURN));
    bool all = s.len ? true : of_empty;
    for (size_t at = 0, len; at < s.len && all; at += len) {
        uint32_t cp = 0;
        len = tp_utf8_length(s.data + at, s.len - at);
        tp_utf8_decode(s.data + at, len, &cp);
        all = is(cp);
    }
    *ret = tp_any_bool(all);
    return TP_OK;
}

static bool is_ascii(uint32_t cp)
{
    return cp < 128;
}

static tp_status m_isascii(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    return all_method(run, self, args, "isascii()", is_ascii, true, ret);
}

static tp_status m_isalpha(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    return all_method(run, self, args, "isalpha()", tp_python_is_alpha, false, ret);
}

static tp_status m_isalnum(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    return all_method(run, self, args, "isalnum()", tp_python_is_alnum, false, ret);
}

static tp_status m_isdigit(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    return all_method(run, self, args, "isdigit()", tp_python_is_digit, false, ret);
}

static tp_status m_isdecimal(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                             tp_any *ret)
{
    return all_method(run, self, args, "isdecimal()", tp_python_is_decimal, false, ret);
}

static tp_status m_isnumeric(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                             tp_any *ret)
{
    return all_method(run, self, args, "isnumeric()", tp_python_is_numeric, false, ret);
}

static tp_status m_isspace(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    return all_method(run, self, args, "isspace()", tp_python_is_space, false, ret);
}

static tp_status m_isprintable(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                               tp_any *ret)
{
    return all_method(run, self, args, "isprintable()", tp_python_is_printable, true, ret);
}

static tp_status m_isupper(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    TP_TRY(tp_jinja_bind(run, "isupper()", args, NULL, 0, 0, NULL));
    *ret = tp_any_bool(tp_jinja_is_cased(self->text, true));
    return TP_OK;
}

static tp_status m_islower(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    TP_TRY(tp_jinja_bind(run, "islower()", args, NULL, 0, 0, NULL));
    *ret = tp_any_bool(tp_jinja_is_cased(self->text, false));
    return TP_OK;
}

/* Capitals after what has no case, small letters after what has. */
static tp_status m_istitle(tp_jinja_run *run, const tp_any *self, const tp_jinja_args *args,
                           tp_any *ret)
{
    tp_slice s = self->text;
    bool after_cased = false, any = false;
    TP_TRY(tp_jinja_bind(run, "istitle()", args, NULL, 0, 0, NULL));
    *ret = tp_any_bool(false);
    for (size_t at = 0, len; at < s.len; at += len) {
        uint32_t cp = 0;
        len = tp_utf8_length(s.data + at, s.len - at);
        tp_utf8_decode(s.data + at, len, &cp);
        bool capital = tp_python_is_upper(cp) || tp_python_is_title(cp);
        bool small = tp_python_is_lower(cp);
        if ((capital && after_cased) || (small && !after_cased))
            return TP_OK;
        after_cased = capital || small;
        any |= after_cased;
    }
    *ret = tp_any_bool(any);
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

const tp_jinja_function *tp_jinja_str_method(tp_slice name)
{
    static const tp_jinja_function methods[] = {
        {"capitalize", m_capitalize},   {"casefold", m_unsupported},
        {"center", m_center},           {"count", m_count},
        {"encode", m_unsupported},      {"endswith", m_endswith},
        {"expandtabs", m_unsupported},  {"find", m_find},
        {"format", tp_jinja_str_format}, {"format_map", m_unsupported},
        {"index", m_index},             {"isalnum", m_isalnum},
        {"isalpha", m_isalpha},         {"isascii", m_isascii},
        {"isdecimal", m_isdecimal},     {"isdigit", m_isdigit},
        {"isidentifier", m_unsupported}, {"islower", m_islower},
        {"isnumeric", m_isnumeric},     {"isprintable", m_isprintable},
        {"isspace", m_isspace},         {"istitle", m_istitle},
        {"isupper", m_isupper},         {"join", m_join},
        {"ljust", m_ljust},             {"lower", m_lower},
        {"lstrip", m_lstrip},           {"maketrans", m_unsupported},
        {"partition", m_partition},     {"removeprefix", m_removeprefix},
        {"removesuffix", m_removesuffix}, {"replace", m_replace},
        {"rfind", m_rfind},             {"rindex", m_rindex},
        {"rjust", m_rjust},             {"rpartition", m_rpartition},
        {"rsplit", m_rsplit},           {"rstrip", m_rstrip},
        {"split", m_split},             {"splitlines", m_splitlines},
        {"startswith", m_startswith},   {"strip", m_strip},
        {"swapcase", m_swapcase},       {"title", m_title},
        {"translate", m_unsupported},   {"upper", m_upper},
        {"zfill", m_zfill}};
    for (size_t i = 0; i < TP_COUNTOF(methods); i++)
        if (tp_slice_is(name, methods[i].name))
            return &methods[i];
    return NULL;
}
