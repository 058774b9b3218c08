/* strings.c - growing buffers, slices, edit distance, numbers and UTF-8. */
#include "base/strings.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "base/working.h"

void tp_buf_release(tp_buf *buf)
{
    if (!buf)
        return;
    free(buf->data);
    *buf = (tp_buf){0};
}

void tp_buf_clear(tp_buf *buf)
{
    buf->len = 0;
    if (buf->data)
        buf->data[0] = 0;
}

void tp_buf_reserve(tp_buf *buf, size_t extra)
{
    size_t need;
    if (__builtin_add_overflow(buf->len, extra, &need) || __builtin_add_overflow(need, 1, &need))
        tp_no_memory(SIZE_MAX);
    if (need <= buf->cap)
        return;
    size_t cap = buf->cap ? buf->cap : 64;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    char *data = realloc(buf->data, cap);
    if (!data)
        tp_no_memory(cap);
    data[buf->len] = 0;
    buf->data = data;
    buf->cap = cap;
}

void tp_buf_add(tp_buf *buf, const void *bytes, size_t n)
{
    tp_buf_reserve(buf, n);
    if (n)
        memcpy(buf->data + buf->len, bytes, n);
    buf->len += n;
    buf->data[buf->len] = 0;
}

void tp_buf_addc(tp_buf *buf, char c) { tp_buf_add(buf, &c, 1); }

void tp_buf_adds(tp_buf *buf, const char *s) { tp_buf_add(buf, s, strlen(s)); }

void tp_buf_vaddf(tp_buf *buf, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    TP_ASSERT(n >= 0);
    tp_buf_reserve(buf, (size_t)n);
    vsnprintf(buf->data + buf->len, (size_t)n + 1, fmt, ap);
    buf->len += (size_t)n;
}

void tp_buf_addf(tp_buf *buf, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tp_buf_vaddf(buf, fmt, ap);
    va_end(ap);
}

const char *tp_buf_str(const tp_buf *buf) { return buf->data ? buf->data : ""; }

tp_slice tp_slice_of(const char *s) { return (tp_slice){s, strlen(s)}; }

bool tp_slice_eq(tp_slice a, tp_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

bool tp_slice_is(tp_slice a, const char *s) { return tp_slice_eq(a, tp_slice_of(s)); }

bool tp_str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

const char *tp_str_after(const char *s, char c)
{
    const char *last = strrchr(s, c);
    return last ? last + 1 : s;
}

int tp_str_order(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool tp_str_ends(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

size_t tp_str_distance(const char *a, const char *b)
{
    enum { MAX = 128 };
    size_t n = strlen(a), m = strlen(b);
    if (n >= MAX || m >= MAX)
        return n > m ? n : m;
    size_t row[MAX + 1];
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[m];
}

bool tp_str_to_i64(const char *s, int64_t *ret)
{
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno || end == s || *end)
        return false;
    *ret = v;
    return true;
}

bool tp_str_to_f64(const char *s, double *ret)
{
    char *end;
    errno = 0;
    double v = strtod(s, &end);
    if (end == s || *end || (errno == ERANGE && fabs(v) > 1))
        return false;
    *ret = v;
    return true;
}

size_t tp_utf8_decode(const char *s, size_t n, uint32_t *ret_cp)
{
    if (n == 0)
        return 0;
    const unsigned char *u = (const unsigned char *)s;
    if (u[0] < 0x80) {
        *ret_cp = u[0];
        return 1;
    }
    size_t len = u[0] >= 0xf0 ? 4 : u[0] >= 0xe0 ? 3 : 2;
    if (u[0] < 0xc2 || u[0] > 0xf4 || len > n)
        return 0;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t cp = u[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((u[i] & 0xc0) != 0x80)
            return 0;
        cp = cp << 6 | (u[i] & 0x3fu);
    }
    if (cp < least[len] || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
        return 0;
    *ret_cp = cp;
    return len;
}

size_t tp_utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

size_t tp_utf8_valid_len(const char *s, size_t n)
{
    uint32_t cp;
    size_t at = 0;
    while (at < n) {
        size_t len = tp_utf8_decode(s + at, n - at, &cp);
        if (!len)
            break;
        at += len;
    }
    return at;
}

bool tp_utf8_valid(const char *s, size_t n) { return tp_utf8_valid_len(s, n) == n; }

char *tp_human_value(double v, int decimals, char *out)
{
    if (isnan(v))
        snprintf(out, 32, "NaN");
    else if (isinf(v))
        snprintf(out, 32, v > 0 ? "Infinity" : "-Infinity");
    else if (fabs(v) >= 1e9)
        snprintf(out, 32, "%.6g", v);
    else if (v != 0 && fabs(v) < 0.5 * pow(10, -decimals)) /* that is not 0 */
        snprintf(out, 32, "%.2g", v);
    else
        snprintf(out, 32, "%.*f", decimals, v);
    return out;
}

bool tp_str_to_bytes(const char *text, double *ret)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"", 1},         {"B", 1},    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
                 {"TiB", 0x1p40}, {"kB", 1e3}, {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12}};
    char *end;
    double v = strtod(text, &end);
    if (end == text || *text == '-' || *text == ' ' || !isfinite(v) || v <= 0)
        return false;
    end += strspn(end, " ");
    for (size_t i = 0; i < TP_COUNTOF(units); i++)
        if (strcmp(end, units[i].name) == 0) {
            *ret = v * units[i].bytes;
            return *ret >= 1;
        }
    return false;
}

/* A unit is the largest of which the rounded figure is at least 1: 999.6 is 1 k, not 1000. */

char *tp_human_bytes(double bytes, char *out)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int u = 0;
    while (fabs(bytes) >= 1023.95 && u < 5) {
        bytes /= 1024;
        u++;
    }
    snprintf(out, 32, u == 0 ? "%.0f %s" : bytes < 10 ? "%.2f %s" : "%.1f %s", bytes, units[u]);
    return out;
}

char *tp_human_count(double count, char *out)
{
    static const char *const units[] = {"", " k", " M", " G", " T", " P"};
    int u = 0;
    while (fabs(count) >= 999.5 && u < 5) {
        count /= 1000;
        u++;
    }
    snprintf(out, 32, u == 0 && count == floor(count) ? "%.0f%s" : "%.3g%s", count, units[u]);
    return out;
}

char *tp_human_seconds(double seconds, char *out)
{
    if (seconds < 0 || !isfinite(seconds))
        snprintf(out, 32, "unknown");
    else if (seconds < 0.99995e-3)
        snprintf(out, 32, "%.1f us", seconds * 1e6);
    else if (seconds < 0.99995)
        snprintf(out, 32, "%.1f ms", seconds * 1e3);
    else if (seconds < 59.95)
        snprintf(out, 32, "%.1f s", seconds);
    else if (seconds < 60)
        snprintf(out, 32, "1m00s");
    else if (seconds < 3600)
        snprintf(out, 32, "%dm%02ds", (int)(seconds / 60), (int)fmod(seconds, 60));
    else if (seconds < 48 * 3600)
        snprintf(out, 32, "%dh%02dm", (int)(seconds / 3600), (int)(fmod(seconds, 3600) / 60));
    else
        snprintf(out, 32, "%.0fd%02dh", floor(fmin(seconds, 1e18) / 86400),
                 (int)(fmod(seconds, 86400) / 3600));
    return out;
}

void tp_buf_add_working(tp_buf *out, const char *what, double share, double seconds)
{
    char so_far[32], left[32];
    tp_buf_adds(out, what);
    if (!isnan(share))
        tp_buf_addf(out, "  %.0f%%", 100 * share);
    tp_buf_addf(out, "  %s", tp_human_seconds(seconds, so_far));
    if (share > 0 && share < 1)
        tp_buf_addf(out, ", about %s to go", tp_human_seconds(seconds * (1 - share) / share, left));
}

char *tp_working_text(const char *what, double share, double seconds)
{
    tp_buf text = {0};
    tp_buf_add_working(&text, what, share, seconds);
    return text.data;
}

double tp_working_next(double seconds)
{
    return seconds < TP_WORK_SILENT_S ? TP_WORK_SILENT_S : seconds + fmin(seconds, 60);
}

void tp_nearest_offer(tp_nearest *near, const char *candidate)
{
    size_t distance = tp_str_distance(near->word, candidate);
    size_t n = strlen(near->word), limit = n < 4 ? 1 : n < 7 ? 2 : 3;
    if (distance <= limit && (!near->best || distance < near->distance)) {
        near->best = candidate;
        near->distance = distance;
    }
}
