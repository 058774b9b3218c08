/* jinja_str.c - the methods of strings, and what filters share with them. */
#include "text/template/jinja_str.h"

#include <string.h>

#include "base/platform.h"

enum { BOTH, LEFT, RIGHT }; /* sides of a text: variants of functions */

/* --- shared with filters --- */

/* Going through a text costs its length. */
static void charge_text(tp_jinja_run *run, tp_slice s)
{
    tp_jinja_charge(run, s.len / TP_JINJA_BYTES_PER_TURN);
}

tp_any tp_jinja_change_case(tp_jinja_run *run, tp_python_case to, tp_slice s)
{
    charge_text(run, s);
    char *out = tp_jinja_take(run, 3 * s.len + 1, 1);
    return tp_any_text((tp_slice){out, tp_python_change_case(to, s, out)});
}

/* Where `part` is in s from byte `at` on, or last; SIZE_MAX when it is not. */
static size_t find(tp_slice s, tp_slice part, size_t at)
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

tp_any tp_jinja_replace(tp_jinja_run *run, tp_slice s, tp_slice from, tp_slice to, int64_t count)
{
    tp_jinja_text out = {.run = run};
    size_t at = 0;
    bool at_end = false;
    charge_text(run, s);
    for (; count != 0 && !at_end; count--) {
        size_t found = find(s, from, at), next;
        if (found == SIZE_MAX)
            break;
        /* An empty text is before each character and at the end. */
        next = found + from.len;
        at_end = from.len == 0 && found == s.len;
        tp_jinja_add(&out, s.data + at, found - at);
        tp_jinja_add_slice(&out, to);
        if (from.len == 0 && !at_end) {
            tp_python_next(s, &next);
            tp_jinja_add(&out, s.data + found, next - found);
        }
        at = next;
        tp_jinja_charge(run, 1);
    }
    tp_jinja_add_slice(&out, tp_python_from(s, at));
    return tp_jinja_text_value(&out);
}

/* Length of the line end at s[at], or 0. */
static size_t line_end(tp_slice s, size_t at)
{
    size_t end = at;
    uint32_t cp = tp_python_next(s, &end);
    if (cp == '\r' && end < s.len && s.data[end] == '\n')
        return 2;
    bool ends = (cp >= 10 && cp <= 13) || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 ||
                cp == 0x2028 || cp == 0x2029;
    return ends ? end - at : 0;
}

static void append_text(tp_jinja_run *run, struct tp_any_items *list, const char *s, size_t n)
{
    tp_any_append(run, list, tp_any_text((tp_slice){s, n}));
}

tp_any tp_jinja_splitlines(tp_jinja_run *run, tp_slice s, bool keep_ends)
{
    tp_any lines = tp_any_new_list(run, TP_ANY_LIST, 0);
    size_t begin = 0;
    for (size_t at = 0; at < s.len;) {
        size_t end = line_end(s, at);
        if (!end) {
            tp_python_next(s, &at);
            continue;
        }
        append_text(run, lines.items, s.data + begin, at - begin + (keep_ends ? end : 0));
        begin = at += end;
    }
    if (begin < s.len)
        append_text(run, lines.items, s.data + begin, s.len - begin);
    return lines;
}

void tp_jinja_reverse(struct tp_any_items *list)
{
    for (size_t i = 0, j = list->n; i + 1 < j; i++) {
        tp_any v = list->values[i];
        list->values[i] = list->values[--j];
        list->values[j] = v;
    }
}

/* --- looking for text --- */

/* The part of self between the positions in arguments 1 and 2, which count code points;
 * *ret_before is the number of code points in front of it.  False: not even an empty text is
 * there. */
static bool part_between(tp_jinja_run *run, const tp_jinja_invocation *c, tp_slice *ret,
                         int64_t *ret_before)
{
    tp_slice s = c->self.text;
    charge_text(run, s);
    int64_t n = (int64_t)tp_python_count(s);
    int64_t from = tp_jinja_int_arg(c->arg[1], 0), to = tp_jinja_int_arg(c->arg[2], n);
    from = from < 0 ? TP_MAX(from + n, 0) : from;
    to = to < 0 ? TP_MAX(to + n, 0) : TP_MIN(to, n);
    if (from > to)
        return false;
    *ret_before = from;
    *ret = tp_python_from(s, tp_python_offset(s, (size_t)from));
    ret->len = tp_python_offset(*ret, (size_t)(to - from));
    return true;
}

static bool has_affix(tp_slice s, tp_slice affix, int side)
{
    size_t at = side == RIGHT && affix.len <= s.len ? s.len - affix.len : 0;
    return affix.len <= s.len &&
           (affix.len == 0 || memcmp(s.data + at, affix.data, affix.len) == 0);
}

/* startswith() and endswith() with one text or a tuple of them. */
static tp_any m_has_affix(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_slice part;
    int64_t before;
    bool is_there = part_between(run, c, &part, &before), found = false;
    const struct tp_any_items one = {.n = 1, .values = (tp_any[]){c->arg[0]}};
    const struct tp_any_items *all = c->arg[0].type == TP_ANY_TUPLE ? c->arg[0].items : &one;
    for (size_t i = 0; i < all->n; i++) {
        tp_slice affix = tp_jinja_want_text(run, c->what, all->values[i]);
        found |= is_there && has_affix(part, affix, c->variant);
    }
    return tp_any_bool(found);
}

static tp_any m_remove_affix(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    (void)run;
    tp_slice affix = c->arg[0].text, s = c->self.text;
    if (has_affix(s, affix, c->variant)) {
        s.data += c->variant == RIGHT ? 0 : affix.len;
        s.len -= affix.len;
    }
    return tp_any_text(s);
}

/* find(), rfind(): a position in code points, -1 for none. */
static tp_any m_find(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_slice wanted = c->arg[0].text, part;
    int64_t before;
    if (!part_between(run, c, &part, &before))
        return tp_any_int(-1);
    size_t at = c->variant == RIGHT ? find_last(part, wanted) : find(part, wanted, 0);
    return tp_any_int(
        at == SIZE_MAX ? -1 : before + (int64_t)tp_python_count((tp_slice){part.data, at}));
}

static tp_any m_index(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_any at = m_find(run, c);
    if (at.integer < 0)
        tp_jinja_fail(run, "%s: the text is not found", c->what);
    return at;
}

static tp_any m_count(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_slice wanted = c->arg[0].text, part;
    int64_t before;
    tp_integer n = 0;
    if (!part_between(run, c, &part, &before))
        return tp_any_int(0);
    if (wanted.len == 0)
        return tp_any_int((tp_integer)tp_python_count(part) + 1);
    for (size_t at = 0; (at = find(part, wanted, at)) != SIZE_MAX; at += wanted.len)
        n++;
    return tp_any_int(n);
}

static tp_any m_replace(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    return tp_jinja_replace(run, c->self.text, c->arg[0].text, c->arg[1].text,
                            tp_jinja_int_arg(c->arg[2], -1));
}

/* --- cutting and joining --- */

static tp_any m_strip(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    charge_text(run, c->self.text);
    const tp_slice *set = c->arg[0].type == TP_ANY_STR ? &c->arg[0].text : NULL;
    return tp_any_text(tp_python_strip(c->self.text, set, c->variant != RIGHT, c->variant != LEFT));
}

/* Takes the next piece off *s, on the right or on the left, together with the separator, which is
 * white space where `sep` is NULL; false when no separator is there. */
static bool cut(tp_slice *s, const tp_slice *sep, bool right, tp_slice *ret)
{
    size_t at = right ? s->len : 0, end;
    if (sep) {
        at = right ? find_last(*s, *sep) : find(*s, *sep, 0);
        if (at == SIZE_MAX)
            return false;
        end = at + sep->len;
    } else {
        while (right ? at > 0 : at < s->len) {
            size_t place = right ? tp_python_before(*s, at) : at, next = place;
            if (tp_python_is_space(tp_python_next(*s, &next)))
                break;
            at = right ? place : next;
        }
        end = at;
    }
    tp_slice before = {s->data, at}, behind = tp_python_from(*s, end);
    *ret = right ? behind : before;
    *s = right ? before : behind;
    if (!sep)
        *s = tp_python_strip(*s, NULL, !right, right);
    return true;
}

static tp_any m_split(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    bool right = c->variant == RIGHT;
    int64_t most = tp_jinja_int_arg(c->arg[1], -1);
    const tp_slice *sep = c->arg[0].type == TP_ANY_STR ? &c->arg[0].text : NULL;
    tp_slice s = c->self.text, piece;
    tp_any list = tp_any_new_list(run, TP_ANY_LIST, 0);
    charge_text(run, s);
    if (sep && sep->len == 0)
        tp_jinja_fail(run, "%s: the separator is empty", c->what);
    if (!sep)
        s = tp_python_strip(s, NULL, !right, right);
    for (; most != 0 && (sep || s.len) && cut(&s, sep, right, &piece); most--)
        tp_any_append(run, list.items, tp_any_text(piece));
    if (sep || s.len)
        tp_any_append(run, list.items, tp_any_text(s));
    if (right)
        tp_jinja_reverse(list.items);
    return list;
}

static tp_any m_partition(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_slice sep = c->arg[0].text, s = c->self.text;
    bool right = c->variant == RIGHT;
    if (sep.len == 0)
        tp_jinja_fail(run, "%s: the separator is empty", c->what);
    charge_text(run, s);
    size_t found = right ? find_last(s, sep) : find(s, sep, 0);
    tp_any parts = tp_any_new_list(run, TP_ANY_TUPLE, 3), *values = parts.items->values;
    for (size_t i = 0; i < 3; i++)
        values[i] = tp_any_text(TP_SLICE(""));
    if (found == SIZE_MAX) {
        values[right ? 2 : 0] = c->self;
        return parts;
    }
    values[0] = tp_any_text((tp_slice){s.data, found});
    values[1] = c->arg[0];
    values[2] = tp_any_text(tp_python_from(s, found + sep.len));
    return parts;
}

static tp_any m_splitlines(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    return tp_jinja_splitlines(run, c->self.text, tp_jinja_int_arg(c->arg[0], 0) != 0);
}

static tp_any m_join(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_jinja_text out = {.run = run};
    tp_any_walk walk = tp_any_walk_begin(run, c->arg[0]);
    bool first = true;
    for (tp_any element; tp_any_walk_next(run, &walk, &element); first = false) {
        tp_slice s = tp_jinja_want_text(run, c->what, element);
        if (!first)
            tp_jinja_add_slice(&out, c->self.text);
        tp_jinja_add_slice(&out, s);
    }
    return tp_jinja_text_value(&out);
}

/* --- shape --- */

static tp_any m_case(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    return tp_jinja_change_case(run, (tp_python_case)c->variant, c->self.text);
}

/* To a width: '<' and '>' say to which side the text goes, '^' is the middle, '0' fills zeros in
 * behind a sign. */
static tp_any m_pad(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    tp_jinja_text out = {.run = run};
    bool is_zero = c->variant == '0';
    tp_slice s = c->self.text;
    tp_slice fill = is_zero ? TP_SLICE("0") : tp_jinja_text_arg(c->arg[1], TP_SLICE(" "));
    int64_t width = tp_jinja_int_arg(c->arg[0], 0), room = width - (int64_t)tp_python_count(s);
    int64_t before = c->variant == '<'   ? 0
                     : c->variant == '^' ? room / 2 + (room & width & 1)
                                         : room;
    if (tp_python_count(fill) != 1)
        tp_jinja_fail(run, "the fill of a padded text must be one character");
    if (room > TP_JINJA_MAX_WIDTH)
        tp_jinja_fail(run, "a field wider than %d characters", TP_JINJA_MAX_WIDTH);
    if (room <= 0)
        return tp_any_text(s);
    size_t sign = is_zero && s.len && (s.data[0] == '-' || s.data[0] == '+');
    tp_jinja_add(&out, s.data, sign);
    tp_jinja_add_times(&out, fill, before);
    tp_jinja_add_slice(&out, tp_python_from(s, sign));
    tp_jinja_add_times(&out, fill, room - before);
    return tp_jinja_text_value(&out);
}

/* True when there are characters, and all of them are such. */
static tp_any m_all(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    static bool (*const is[])(uint32_t) = {tp_python_is_alnum, tp_python_is_alpha,
                                           tp_python_is_digit, tp_python_is_space};
    tp_slice s = c->self.text;
    bool all = s.len != 0;
    charge_text(run, s);
    for (size_t at = 0; at < s.len && all;)
        all = is[c->variant](tp_python_next(s, &at));
    return tp_any_bool(all);
}

static tp_any m_is_cased(tp_jinja_run *run, const tp_jinja_invocation *c)
{
    (void)run;
    return tp_any_bool(tp_python_is_cased(c->self.text, c->variant == TP_CASE_UPPER));
}

const tp_jinja_function tp_jinja_str_methods[] = {
    {"capitalize()", m_case, "", TP_CASE_CAPITAL},
    {"center()", m_pad, "_:i [_:s]", '^'},
    {"count()", m_count, "_:s [_:i? _:i?]", 0},
    {"endswith()", m_has_affix, "_ [_:i? _:i?]", RIGHT},
    {"find()", m_find, "_:s [_:i? _:i?]", LEFT},
    {"format()", tp_jinja_str_format, NULL, 0},
    {"index()", m_index, "_:s [_:i? _:i?]", LEFT},
    {"isalnum()", m_all, "", 0},
    {"isalpha()", m_all, "", 1},
    {"isdigit()", m_all, "", 2},
    {"islower()", m_is_cased, "", TP_CASE_LOWER},
    {"isspace()", m_all, "", 3},
    {"isupper()", m_is_cased, "", TP_CASE_UPPER},
    {"join()", m_join, "_", 0},
    {"ljust()", m_pad, "_:i [_:s]", '<'},
    {"lower()", m_case, "", TP_CASE_LOWER},
    {"lstrip()", m_strip, "[_:s?]", LEFT},
    {"partition()", m_partition, "_:s", LEFT},
    {"removeprefix()", m_remove_affix, "_:s", LEFT},
    {"removesuffix()", m_remove_affix, "_:s", RIGHT},
    {"replace()", m_replace, "_:s _:s [_:i]", 0},
    {"rfind()", m_find, "_:s [_:i? _:i?]", RIGHT},
    {"rindex()", m_index, "_:s [_:i? _:i?]", RIGHT},
    {"rjust()", m_pad, "_:i [_:s]", '>'},
    {"rpartition()", m_partition, "_:s", RIGHT},
    {"rsplit()", m_split, "[sep:s? maxsplit:i]", RIGHT},
    {"rstrip()", m_strip, "[_:s?]", RIGHT},
    {"split()", m_split, "[sep:s? maxsplit:i]", LEFT},
    {"splitlines()", m_splitlines, "[keepends:i]", 0},
    {"startswith()", m_has_affix, "_ [_:i? _:i?]", LEFT},
    {"strip()", m_strip, "[_:s?]", BOTH},
    {"swapcase()", m_case, "", TP_CASE_SWAP},
    {"title()", m_case, "", TP_CASE_TITLE},
    {"upper()", m_case, "", TP_CASE_UPPER},
    {"zfill()", m_pad, "_:i", '0'},
    {0}};
