/* A guarded stream is one of fopencookie(): stdio buffers as ever, and what it hands on is
 * filtered before write(2).  A style is a mark that begins with a byte that UTF-8 does not have
 * and holds a number drawn at the start, so text from outside cannot contain one. */
#include "base/terminal.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/platform.h"
#include "base/wrap.h"

enum { MARK = 20, KEEP = 32 }; /* bytes of a mark: FF, 16 digits, a letter, a NUL */

static const char *const sequences[] = {
    [TP_STYLE_PLAIN] = "\033[0m",         [TP_STYLE_BOLD] = "\033[1m",
    [TP_STYLE_DIM] = "\033[2m",           [TP_STYLE_GREEN] = "\033[32m",
    [TP_STYLE_BOLD_GREEN] = "\033[1;32m", [TP_STYLE_BOLD_RED] = "\033[1;31m",
    [TP_STYLE_YELLOW] = "\033[33m",       [TP_LINE_BEGIN] = "\r",
    [TP_LINE_ERASE] = "\033[K",           [TP_LINE_UP] = "\033[A",
    [TP_BELOW_ERASE] = "\033[J"};
enum { CODES = sizeof sequences / sizeof *sequences };

static char marks[CODES][MARK];
static size_t mark_len; /* 0: no guard */
static bool has_colour;

typedef struct {
    int fd;
    bool is_terminal, passes_data;
    char held[KEEP]; /* the beginning of a character or of a mark */
    size_t n_held;
    tp_buf out;
    size_t room;  /* 0: lines are as long as they are */
    tp_buf line;  /* with room: one that has not ended */
    tp_buf lines; /* that fit */
} guard;
static guard output = {.fd = STDOUT_FILENO}, errors = {.fd = STDERR_FILENO};

bool tp_is_unsafe(uint32_t c)
{
    return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c <= 0x9f) ||
           (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static void add_escaped(tp_buf *out, uint32_t c)
{
    if (c == '\r')
        tp_buf_adds(out, "\\r");
    else
        tp_buf_addf(out, c < 0x80 ? "\\x%02x" : "\\u%04x", (unsigned)c);
}

/* Eight of them at once, of which none is below 0x20 or above 0x7e. */
static bool are_printable(const char *s)
{
    const uint64_t ones = 0x0101010101010101;
    uint64_t eight;
    memcpy(&eight, s, sizeof eight);
    return ((eight | (eight - 0x20 * ones) | (eight + ones)) & 0x80 * ones) == 0;
}

/* Bytes from s on that need no look: printable ASCII, newlines and tabs. */
static size_t plain_run(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n)
        if (i + 8 <= n && are_printable(s + i))
            i += 8;
        else if ((s[i] >= 0x20 && s[i] < 0x7f) || s[i] == '\n' || s[i] == '\t')
            i++;
        else
            break;
    return i;
}

/* One character that plain_run() stopped at, or one byte that begins none. */
static size_t add_one(tp_buf *out, const char *s, size_t n)
{
    uint32_t c;
    size_t len = tp_utf8_decode(s, n, &c);
    if (len && !tp_is_unsafe(c))
        tp_buf_add(out, s, len);
    else if (len)
        add_escaped(out, c);
    else
        tp_buf_addf(out, "\\x%02x", (unsigned char)*s);
    return len ? len : 1;
}

void tp_buf_add_shown(tp_buf *out, const char *s, size_t n, bool one_line)
{
    for (size_t i = 0; i < n;) {
        size_t run = plain_run(s + i, n - i);
        if (one_line) {
            for (size_t k = 0; k < run; k++) {
                char c = s[i + k];
                if (c == '\n' || c == '\t')
                    tp_buf_adds(out, c == '\n' ? "\\n" : "\\t");
                else
                    tp_buf_addc(out, c);
            }
        } else {
            tp_buf_add(out, s + i, run);
        }
        i += run;
        if (i < n)
            i += add_one(out, s + i, n - i);
    }
}

char *tp_text_shown(const char *text, size_t n, bool one_line)
{
    tp_buf out = {0};
    tp_buf_add_shown(&out, text, n, one_line);
    tp_buf_adds(&out, ""); /* never NULL */
    return out.data;
}

char *tp_error_shown(const tp_error *err)
{
    tp_buf out = {0};
    const char *line = err->message;
    for (const char *next; (next = strstr(line, TP_ERROR_ITEM));
         line = next + strlen(TP_ERROR_ITEM)) {
        tp_buf_add_shown(&out, line, (size_t)(next - line), true);
        tp_buf_adds(&out, TP_ERROR_ITEM);
    }
    tp_buf_add_shown(&out, line, strlen(line), true);
    return out.data;
}

const char *tp_style(tp_terminal_code code) { return mark_len ? marks[code] : sequences[code]; }

void tp_terminal_colour(bool on) { has_colour = on; }

bool tp_terminal_has_colour(void) { return has_colour; }

/* The code whose mark is at s, or -1. */
static int mark_at(const char *s, size_t n)
{
    if (n < mark_len || memcmp(s, marks[0], mark_len - 1) != 0)
        return -1;
    int code = s[mark_len - 1] - 'a';
    return code >= 0 && code < CODES ? code : -1;
}

/* Might these last bytes go on as a character or as a mark? */
static bool is_unfinished(const char *s, size_t n)
{
    unsigned char c = (unsigned char)*s;
    if (c == 0xff)
        return n < mark_len && memcmp(s, marks[0], TP_MIN(n, mark_len - 1)) == 0;
    size_t len = c >= 0xf0 && c <= 0xf4  ? 4
                 : c >= 0xe0 && c < 0xf0 ? 3
                 : c >= 0xc2 && c < 0xe0 ? 2
                                         : 1;
    for (size_t i = 1; i < n && i < len; i++)
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return false;
    return n < len;
}

static void filter(guard *g, const char *s, size_t n, bool is_end)
{
    for (size_t i = 0; i < n;) {
        size_t run = plain_run(s + i, n - i);
        tp_buf_add(&g->out, s + i, run);
        i += run;
        if (i == n)
            return;
        int code = mark_at(s + i, n - i);
        if (code >= 0) {
            tp_buf_adds(&g->out, sequences[code]);
            i += mark_len;
        } else if (!is_end && is_unfinished(s + i, n - i)) {
            memcpy(g->held, s + i, n - i);
            g->n_held = n - i;
            return;
        } else {
            i += add_one(&g->out, s + i, n - i);
        }
    }
}

static bool write_all(int fd, const char *s, size_t n)
{
    while (n) {
        ssize_t put = write(fd, s, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        s += put;
        n -= (size_t)put;
    }
    return true;
}

/* Messages on a terminal keep to its width, each as it comes: nothing is held back, and a line that
 * is drawn again, which has no end, stays as it is. */
static bool put_message(const guard *g)
{
    struct winsize size;
    const char *text = tp_buf_str(&g->out), *end = memrchr(text, '\n', g->out.len);
    if (!end || memchr(text, '\r', g->out.len) || ioctl(g->fd, TIOCGWINSZ, &size) != 0 ||
        size.ws_col < 40)
        return write_all(g->fd, text, g->out.len);
    TP_OWN(tp_buf) wrapped = {0};
    size_t n = (size_t)(end - text) + 1;
    tp_add_wrapped(&wrapped, text, n, size.ws_col);
    tp_buf_add(&wrapped, text + n, g->out.len - n);
    return write_all(g->fd, tp_buf_str(&wrapped), wrapped.len);
}

/* What has been filtered, as it is written: with room whole lines that fit. */
static bool put(guard *g, bool is_end)
{
    if (g == &errors && g->is_terminal)
        return put_message(g);
    if (!g->room)
        return write_all(g->fd, tp_buf_str(&g->out), g->out.len);
    tp_buf_add(&g->line, tp_buf_str(&g->out), g->out.len);
    size_t n = g->line.len;
    while (!is_end && n > 0 && g->line.data[n - 1] != '\n')
        n--;
    tp_buf_clear(&g->lines);
    tp_add_wrapped(&g->lines, tp_buf_str(&g->line), n, g->room);
    tp_buf rest = {0};
    tp_buf_add(&rest, tp_buf_str(&g->line) + n, g->line.len - n);
    tp_buf_release(&g->line);
    g->line = rest;
    return write_all(g->fd, tp_buf_str(&g->lines), g->lines.len);
}

static ssize_t guarded_write(void *cookie, const char *s, size_t n)
{
    guard *g = cookie;
    bool is_data =
        (g->passes_data && !g->is_terminal) || (g == &output && !g->room && plain_run(s, n) == n);
    if (is_data && !g->n_held)
        return write_all(g->fd, s, n) ? (ssize_t)n : 0;
    TP_OWN(tp_buf) whole = {0};
    const char *from = s;
    size_t len = n;
    tp_buf_clear(&g->out);
    if (g->n_held) {
        tp_buf_add(&whole, g->held, g->n_held);
        tp_buf_add(&whole, s, n);
        from = whole.data;
        len = whole.len;
        g->n_held = 0;
    }
    filter(g, from, len, false);
    return put(g, false) ? (ssize_t)n : 0;
}

static bool make_marks(void)
{
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return false;
    for (int i = 0; i < CODES; i++)
        snprintf(marks[i], MARK, "\xff%016llx%c", (unsigned long long)number, 'a' + i);
    mark_len = strlen(marks[0]);
    return true;
}

static FILE *guarded(guard *g, int buffering)
{
    FILE *stream = fopencookie(g, "w", (cookie_io_functions_t){.write = guarded_write});
    if (stream)
        setvbuf(stream, NULL, buffering, BUFSIZ);
    g->is_terminal = isatty(g->fd) == 1;
    return stream;
}

bool tp_terminal_guard(void)
{
    if (mark_len || !make_marks())
        return mark_len != 0;
    FILE *out = guarded(&output, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
    FILE *err = guarded(&errors, _IONBF);
    if (!out || !err) {
        mark_len = 0;
        return false;
    }
    stdout = out;
    stderr = err;
    return true;
}

void tp_terminal_pass_data(void)
{
    fflush(stdout);
    output.passes_data = true;
}

void tp_terminal_wrap(int width)
{
    fflush(stdout);
    tp_buf_clear(&output.out);
    (void)put(&output, true);
    output.room = mark_len && width > 0 ? (size_t)width : 0;
}

static void end(guard *g)
{
    tp_buf_clear(&g->out);
    filter(g, g->held, g->n_held, true);
    g->n_held = 0;
    (void)put(g, true);
}

void tp_terminal_end(void)
{
    if (!mark_len)
        return;
    fflush(stdout);
    fflush(stderr);
    end(&output);
    end(&errors);
}

void tp_buf_add_sparkline(tp_buf *out, const double *v, size_t n)
{
    static const char *const levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < n; i++)
        if (isfinite(v[i])) {
            low = fmin(low, v[i]);
            high = fmax(high, v[i]);
        }
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(v[i]))
            tp_buf_addc(out, '!');
        else
            tp_buf_adds(out, levels[high > low ? (int)(7.99 * ((v[i] - low) / (high - low))) : 0]);
    }
}
