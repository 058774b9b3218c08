/* wrap.c - text that is wider than the screen, broken at blanks. */
#include "base/wrap.h"

#include <string.h>

#include "base/platform.h"

/* Bytes of an escape sequence ("\033[1;31m") at s, or 0. */
static size_t sequence_at(const char *s, size_t n)
{
    if (n < 3 || s[0] != '\033' || s[1] != '[')
        return 0;
    size_t i = 2;
    while (i < n && (unsigned char)s[i] < 0x40)
        i++;
    return i < n ? i + 1 : 0;
}

/* Bytes of the character at s with the sequences in front of it. */
static size_t character_at(const char *s, size_t n)
{
    size_t i = 0;
    for (size_t k; (k = sequence_at(s + i, n - i)) > 0;)
        i += k;
    i += i < n;
    while (i < n && ((unsigned char)s[i] & 0xC0) == 0x80)
        i++;
    return i;
}

size_t tp_columns_of(const char *s, size_t n)
{
    size_t columns = 0;
    for (size_t i = 0; i < n;) {
        size_t sequence = sequence_at(s + i, n - i);
        columns += sequence == 0 && ((unsigned char)s[i] & 0xC0) != 0x80;
        i += sequence ? sequence : 1;
    }
    return columns;
}

size_t tp_columns_skip(const char *s, size_t n, size_t count)
{
    size_t i = 0;
    while (i < n && count--)
        i += character_at(s + i, n - i);
    return i;
}

static size_t widest_word(const char *s, size_t n)
{
    size_t widest = 0;
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && s[end] != ' ')
            end++;
        widest = TP_MAX(widest, tp_columns_of(s + i, end - i));
        i = end + 1;
    }
    return widest;
}

/* Where a line goes on: under the text behind its label, or behind its own indentation; further to
 * the left where a word needs it. */
static size_t hanging(const char *s, size_t n, size_t room)
{
    size_t indent = strspn(s, " "), i = indent;
    while (i + 2 < n && !(s[i] == ' ' && s[i + 1] == ' '))
        i++;
    size_t gap = i;
    while (i < n && s[i] == ' ')
        i++;
    bool is_label = i < n && gap > indent && i > gap + 1 && !strchr(".,:;", s[gap - 1]);
    size_t column = is_label ? tp_columns_of(s, i) : indent + 2, widest = widest_word(s, n);
    return column <= room / 2 && column + widest <= room ? column : 2 + widest <= room ? 2 : 0;
}

static void add_line(tp_buf *out, const char *s, size_t n, size_t room)
{
    size_t hang = hanging(s, n, room), indent = 0, least = strspn(s, " ");
    while (n > 0 && tp_columns_of(s, n) + indent > room) {
        size_t cut = tp_columns_skip(s, n, room - indent);
        while (cut > least && s[cut] != ' ')
            cut--;
        if (cut <= least) /* a word that is wider than the screen stands alone */
            for (cut = least; cut < n && s[cut] != ' ';)
                cut++;
        size_t end = cut;
        while (end > 0 && s[end - 1] == ' ')
            end--;
        tp_buf_addf(out, "%*s", (int)indent, "");
        tp_buf_add(out, s, end);
        while (cut < n && s[cut] == ' ')
            cut++;
        s += cut;
        n -= cut;
        if (n)
            tp_buf_addc(out, '\n');
        indent = hang;
        least = 0;
        if (!n)
            return;
    }
    tp_buf_addf(out, "%*s", (int)indent, "");
    tp_buf_add(out, s, n);
}

void tp_add_wrapped(tp_buf *out, const char *text, size_t n, size_t room)
{
    for (size_t i = 0; i < n;) {
        const char *end = memchr(text + i, '\n', n - i);
        size_t len = end ? (size_t)(end - text) - i : n - i;
        add_line(out, text + i, len, room);
        if (end)
            tp_buf_addc(out, '\n');
        i += len + (end != NULL);
    }
}
