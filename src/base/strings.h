/* strings.h - a growing byte buffer, slices, and the small text chores.
 *
 * tp_buf always keeps a NUL after its last byte, so `buf.data` can be handed to
 * C functions; `len` does not count it.  A zeroed tp_buf is empty and valid.
 * Exhausted memory ends the call (no_memory.h): these buffers hold small host data. */
#ifndef TP_BASE_STRINGS_H
#define TP_BASE_STRINGS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "temper/text.h"

typedef struct {
    char *data; /* never NULL after the first append */
    size_t len, cap;
} tp_buf;

typedef struct {
    const char *data; /* not NUL-terminated */
    size_t len;
} tp_slice;

#define TP_SLICE(literal) ((tp_slice){(literal), sizeof(literal) - 1})

void tp_buf_release(tp_buf *buf); /* frees and zeroes; NULL is a no-op */
void tp_buf_clear(tp_buf *buf);   /* keeps the memory */
void tp_buf_reserve(tp_buf *buf, size_t extra);
void tp_buf_add(tp_buf *buf, const void *bytes, size_t n);
void tp_buf_addc(tp_buf *buf, char c);
void tp_buf_adds(tp_buf *buf, const char *s);
void tp_buf_addf(tp_buf *buf, const char *fmt, ...) TP_PRINTF(2, 3);
void tp_buf_vaddf(tp_buf *buf, const char *fmt, va_list ap);
/* In a function whose last parameters are `fmt, ...`: what they say, appended. */
#define TP_BUF_FORMAT(buf, fmt)          \
    do {                                 \
        va_list ap_;                     \
        va_start(ap_, fmt);              \
        tp_buf_vaddf((buf), (fmt), ap_); \
        va_end(ap_);                     \
    } while (0)
/* "tokenising rows.jsonl  34%  12.0 s, about 23.3 s to go"; share NaN: unknown. */
void tp_buf_add_working(tp_buf *buf, const char *what, double share, double seconds);
/* The text with a NUL; "" when nothing was ever added. */
const char *tp_buf_str(const tp_buf *buf);

tp_slice tp_slice_of(const char *s); /* strlen */
bool tp_slice_eq(tp_slice a, tp_slice b);
bool tp_slice_is(tp_slice a, const char *s);

/* For a tp_human_bytes() and the like in an argument: room for its text, to the block's end. */
#define TP_ROOM ((char[32]){0})

/* "3 step%s": what the word ends in behind the number. */
static inline const char *tp_plural(uint64_t n) { return n == 1 ? "" : "s"; }

bool tp_str_starts(const char *s, const char *prefix);
bool tp_str_ends(const char *s, const char *suffix);
/* What stands behind the last `c`, as the name in a path; all of it where there is none. */
const char *tp_str_after(const char *s, char c);
/* For qsort() of an array of texts. */
int tp_str_order(const void *a, const void *b);

/* UTF-8.  Decode one code point at s (n bytes left); returns its length, or 0
 * when the bytes are not valid UTF-8 (overlong, surrogate, > U+10FFFF). */
size_t tp_utf8_decode(const char *s, size_t n, uint32_t *ret_cp);
/* The bytes of the byte order mark that the text begins with: 3, or 0. */
static inline size_t tp_utf8_mark(const char *s, size_t n)
{
    return n >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}
size_t tp_utf8_encode(uint32_t cp, char out[4]);
size_t tp_utf8_valid_len(const char *s, size_t n); /* bytes before the first fault */
bool tp_utf8_valid(const char *s, size_t n);

#endif
