/* jinja_str.c - what methods and filters of strings share. */
#include "text/template/jinja_str.h"

#include <string.h>

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

tp_status tp_jinja_append_text(tp_jinja_builder *b, const char *s, size_t n)
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

size_t tp_jinja_find(tp_slice s, tp_slice part, size_t at)
{
    if (at > s.len)
        return SIZE_MAX;
    if (part.len == 0)
        return at;
    const char *found = at < s.len ? memmem(s.data + at, s.len - at, part.data, part.len) : NULL;
    return found ? (size_t)(found - s.data) : SIZE_MAX;
}

size_t tp_jinja_find_last(tp_slice s, tp_slice part)
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
        size_t found = tp_jinja_find(s, from, at), next;
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

tp_status tp_jinja_pad_text(tp_jinja_run *run, tp_slice s, int64_t before, int64_t after,
                            tp_slice fill, tp_any *ret)
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
        return tp_jinja_pad_text(run, s, 0, 0, fill, ret);
    int64_t before = room / 2 + (room & width & 1);
    return tp_jinja_pad_text(run, s, before, room - before, fill, ret);
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
        TP_TRY(tp_jinja_append_text(&b, s.data + begin, at - begin + (keep_ends ? end : 0)));
        at += end;
        begin = at;
    }
    if (begin < s.len)
        TP_TRY(tp_jinja_append_text(&b, s.data + begin, s.len - begin));
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

const tp_jinja_function *tp_jinja_str_method(tp_slice name)
{
    const tp_jinja_function *found = tp_jinja_find_function(tp_jinja_search_methods, name);
    return found ? found : tp_jinja_find_function(tp_jinja_shape_methods, name);
}
