/* picture_text.c - text in a picture: its width in DejaVu Sans, shortening, escaping, lines. */
#include <string.h>

#include "base/terminal.h"
#include "instrument/report/picture_internal.h"

/* Advance widths of DejaVu Sans 2.37 for code points 32 to 126, in thousandths of an em. */
static const uint16_t advance[95] = {
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838};

/* One code point of `text`, and the bytes that it takes; bytes that are no UTF-8 count one. */
static double width_at(const char *text, size_t n, size_t *ret_bytes)
{
    uint32_t cp = 0;
    size_t bytes = tp_utf8_decode(text, n, &cp);
    *ret_bytes = bytes ? bytes : 1;
    return cp >= 32 && cp < 127 ? advance[cp - 32] / 1000.0 : 1;
}

static double width_of(const char *text, size_t n, double size)
{
    double ems = 0;
    for (size_t i = 0, bytes; i < n; i += bytes)
        ems += width_at(text + i, n - i, &bytes);
    return ems * size;
}

double tp_text_width(const char *text, double size) { return width_of(text, strlen(text), size); }

static void escape(tp_buf *out, const char *text, size_t n)
{
    for (size_t i = 0, bytes; i < n; i += bytes) {
        uint32_t cp = 0;
        bytes = tp_utf8_decode(text + i, n - i, &cp);
        if (bytes == 0) {
            tp_buf_adds(out, "\xef\xbf\xbd"); /* U+FFFD */
            bytes = 1;
        } else if (cp == '&')
            tp_buf_adds(out, "&amp;");
        else if (cp == '<')
            tp_buf_adds(out, "&lt;");
        else if (cp == '>')
            tp_buf_adds(out, "&gt;");
        else if (cp == '"')
            tp_buf_adds(out, "&quot;");
        else if (!tp_is_unsafe(cp) && cp != 0xfffe && cp != 0xffff)
            tp_buf_add(out, text + i, bytes);
    }
}

void tp_markup_escape(tp_buf *out, const char *text) { escape(out, text, strlen(text)); }

/* The bytes of the longest beginning (or end) of the text within `room`. */
static size_t head_within(const char *text, size_t n, double room, double size)
{
    size_t at = 0, bytes;
    for (double w = 0; at < n; at += bytes) {
        w += width_at(text + at, n - at, &bytes) * size;
        if (w > room)
            break;
    }
    return at;
}

static size_t tail_within(const char *text, size_t n, double room, double size)
{
    size_t at = 0, bytes;
    for (double w = width_of(text, n, size); at < n && w > room; at += bytes)
        w -= width_at(text + at, n - at, &bytes) * size;
    return n - at;
}

void tp_svg_text(tp_buf *out, double x, double y, double size, tp_text_anchor anchor, double room,
                 const char *style, const char *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    size_t n = strlen(text);
    tp_buf_addf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.4g\" text-anchor=\"%s\"", x, y,
                size, anchors[anchor]);
    if (*style)
        tp_buf_addf(out, " class=\"%s\"", style);
    tp_buf_addc(out, '>');
    if (width_of(text, n, size) <= room + 0.01) /* a room of just this width, rounded */
        escape(out, text, n);
    else {
        double half = (room - size) / 2; /* "…" is one em wide */
        size_t head = head_within(text, n, half, size), tail = tail_within(text, n, half, size);
        escape(out, text, head);
        tp_buf_adds(out, "…");
        escape(out, text + n - tail, tail);
        tp_buf_adds(out, "<title>");
        escape(out, text, n);
        tp_buf_adds(out, "</title>");
    }
    tp_buf_adds(out, "</text>\n");
}

int tp_svg_paragraph(tp_buf *out, double x, double y, double size, double room, int most,
                     const char *style, const char *text)
{
    int lines = 0;
    size_t n = strlen(text);
    while (n && lines < most) {
        size_t fits = head_within(text, n, room, size), end = fits;
        if (fits < n && lines + 1 < most) {
            while (end > 0 && text[end] != ' ')
                end--;
            end = end ? end : fits ? fits : n; /* a word that is wider than the room is cut */

        } else
            end = n;
        if (out) {
            TP_FREED char *line = tp_strndup(text, end);
            tp_svg_text(out, x, y + size * 1.3 * lines, size, TP_START, room, style, line);
        }
        text += end;
        n -= end;
        while (n && *text == ' ') {
            text++;
            n--;
        }
        lines++;
    }
    return lines;
}
