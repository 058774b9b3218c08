/* json.h - reading and writing JSON.
 *
 * Two readers over one scanner:
 *   - a pull parser (tp_json_reader) for large files: one token at a time, no
 *     allocation, numbers left as text so that the caller decides;
 *   - a document (tp_json) in an arena for small files: configurations, headers,
 *     tokenizers.
 * Strict mode (zeroed options) is RFC 8259 with duplicate keys and lone
 * surrogates refused; each tolerance is an option of its own.
 * Errors say "name:line:column: what is wrong; what to do", columns counted in
 * characters from 1.  Depth is limited to TP_JSON_MAX_DEPTH. */
#ifndef TP_TEXT_JSON_JSON_H
#define TP_TEXT_JSON_JSON_H

#include "base/arena.h"
#include "base/error.h"
#include "base/strings.h"

enum { TP_JSON_MAX_DEPTH = 64 };

typedef enum {
    TP_JSON_NULL,
    TP_JSON_FALSE,
    TP_JSON_TRUE,
    TP_JSON_NUMBER,
    TP_JSON_STRING,
    TP_JSON_ARRAY,
    TP_JSON_OBJECT
} tp_json_type;

/* A value; siblings are linked in document order, so member order is kept. */
typedef struct tp_json tp_json;
struct tp_json {
    tp_json_type type;
    uint32_t line;         /* where it starts in the text, from 1 */
    size_t n;              /* array, object: number of children */
    tp_json *child, *next; /* first child; next sibling */
    tp_slice key;          /* inside an object: the member's name, unescaped, NUL-terminated */
    tp_slice text;         /* string: unescaped, NUL-terminated (may hold NULs);
                              number: as written, NUL-terminated */
};

typedef struct {
    bool allow_nan;       /* NaN, Infinity, -Infinity are numbers */
    bool allow_duplicate; /* the last of two equal keys wins on look-up */
    bool allow_surrogate; /* a lone \ud800 .. \udfff reads as U+FFFD */
    bool allow_many;      /* reader only: values may follow one another, as in JSONL */
    uint32_t first_line;  /* number of the text's first line in errors; 0 means 1 */
    size_t max_bytes;     /* document only: larger texts are refused; 0 = no limit */
} tp_json_options;

/* What Python's json.dumps writes and json.loads takes. */
#define TP_JSON_TOLERANT \
    ((tp_json_options){.allow_nan = true, .allow_duplicate = true, .allow_surrogate = true})

/* Parse the whole text as one value; trailing non-space is an error.  `name` is
 * what errors call the text ("model/config.json").  Everything is in `arena`; an
 * arena that is too small is an error too, at most 64 bytes per byte of text. */
TP_CHECKED tp_status tp_json_parse(tp_arena *arena, const char *name, const char *text, size_t n,
                                   const tp_json_options *options, const tp_json **ret,
                                   tp_error *err);

/* The same of a file of at most `max_bytes`; a zeroed arena is made as large as that takes. */
TP_CHECKED tp_status tp_json_read(tp_arena *arena, const char *path, size_t max_bytes,
                                  const tp_json_options *options, const tp_json **ret,
                                  tp_error *err);

/* Look-ups that never fail: a missing member is NULL, and NULL in gives NULL out. */
const tp_json *tp_json_get(const tp_json *object, const char *key);
const tp_json *tp_json_find(const tp_json *object, tp_slice key);
const tp_json *tp_json_at(const tp_json *array, size_t index);

/* The first member whose key another one before it has already, or NULL. */
const tp_json *tp_json_duplicate(const tp_json *object);

/* Conversions: false when the value is NULL or of another type (or, for i64, not
 * an exact integer in range). */
bool tp_json_i64(const tp_json *v, int64_t *ret);
bool tp_json_f64(const tp_json *v, double *ret);
bool tp_json_bool(const tp_json *v, bool *ret);
const char *tp_json_str(const tp_json *v); /* NULL when not a string */
/* "null", "true", "false", a string's text, a number as written; NULL for NULL, arrays and objects.
 */
const char *tp_json_word(const tp_json *v);

/* The pull parser.
 *
 *     tp_json_reader r;
 *     tp_json_reader_init(&r, name, text, n, NULL);
 *     do
 *         TP_TRY(tp_json_reader_next(&r, &token, err));
 *     while (token.type != TP_JSON_TOKEN_END);
 *
 * The grammar is checked in full, duplicate keys are not (that needs memory). */
typedef enum {
    TP_JSON_TOKEN_END, /* the text is complete */
    TP_JSON_TOKEN_BEGIN_OBJECT,
    TP_JSON_TOKEN_END_OBJECT,
    TP_JSON_TOKEN_BEGIN_ARRAY,
    TP_JSON_TOKEN_END_ARRAY,
    TP_JSON_TOKEN_KEY,
    TP_JSON_TOKEN_STRING,
    TP_JSON_TOKEN_NUMBER,
    TP_JSON_TOKEN_TRUE,
    TP_JSON_TOKEN_FALSE,
    TP_JSON_TOKEN_NULL
} tp_json_token_type;

typedef struct {
    tp_json_token_type type;
    bool has_escapes; /* key, string: text is raw and needs tp_json_unescape() */
    uint64_t offset;  /* of its first byte in the whole text */
    uint64_t line;    /* from 1 */
    tp_slice text; /* key, string: between the quotes; number: as written; in the reader's text */
} tp_json_token;

typedef struct {
    const char *name;
    const char *begin, *at, *end; /* the text and the place in it */
    const char *line_start;       /* first byte of the current line */
    uint64_t line;                /* from 1 */
    uint64_t objects;             /* bit d: level d is an object, else an array */
    int depth;
    int expect; /* private: what the grammar allows next */
    tp_json_options options;
} tp_json_reader;

void tp_json_reader_init(tp_json_reader *r, const char *name, const char *text, size_t n,
                         const tp_json_options *options);
TP_CHECKED tp_status tp_json_reader_next(tp_json_reader *r, tp_json_token *ret, tp_error *err);
/* Right after BEGIN_*: read up to and including the matching END_*. */
TP_CHECKED tp_status tp_json_reader_skip(tp_json_reader *r, tp_error *err);
/* Fill *err with "name:line:column: " of the token and the message. */
tp_status tp_json_reader_fail(const tp_json_reader *r, const tp_json_token *at, tp_error *err,
                              const char *fmt, ...) TP_PRINTF(4, 5);

/* Resolve the escapes of a raw string that the reader accepted.  `out` holds
 * raw.len bytes; returns the bytes used.  No NUL is added. */
size_t tp_json_unescape(tp_slice raw, char *out);

/* Writing: the caller keeps track of commas by using these in order.
 *     tp_json_w w; tp_json_w_init(&w, &buf, 2);
 *     tp_json_w_begin(&w, '{'); tp_json_w_put_i64(&w, "a", 1);
 *     tp_json_w_end(&w, '}'); */
typedef struct {
    tp_buf *out;
    int indent; /* spaces per level; 0 = one line */
    int depth;
    bool need_comma, after_key;
    bool keeps_words; /* parsed values: NaN, Infinity and -Infinity stay words */
} tp_json_w;

void tp_json_w_init(tp_json_w *w, tp_buf *out, int indent);
void tp_json_w_begin(tp_json_w *w, char bracket); /* '{' or '[' */
void tp_json_w_end(tp_json_w *w, char bracket);   /* '}' or ']' */
void tp_json_w_key(tp_json_w *w, const char *key);
void tp_json_w_str(tp_json_w *w, const char *s); /* NULL writes null */
void tp_json_w_strn(tp_json_w *w, const char *s, size_t n);
void tp_json_w_i64(tp_json_w *w, int64_t v);
void tp_json_w_f64(tp_json_w *w, double v); /* shortest that reads back; non-finite as "NaN",
                                               "Infinity", "-Infinity" strings */
void tp_json_w_bool(tp_json_w *w, bool v);
void tp_json_w_null(tp_json_w *w);
/* A parsed value, numbers as they were written; NaN and infinities as strings. */
void tp_json_w_value(tp_json_w *w, const tp_json *v);
/* A value on one line, behind what `out` has; of NULL nothing. */
void tp_json_text(const tp_json *v, tp_buf *out);
/* The same for who reads it with allow_nan: NaN and infinities are the words that they were, which
 * JSON lacks. */
void tp_json_text_tolerant(const tp_json *v, tp_buf *out);
void tp_json_w_raw(tp_json_w *w, const char *s); /* a ready value */

/* A key and its value. */
void tp_json_w_put_str(tp_json_w *w, const char *key, const char *s);
void tp_json_w_put_i64(tp_json_w *w, const char *key, int64_t v);
void tp_json_w_put_f64(tp_json_w *w, const char *key, double v);
void tp_json_w_put_bool(tp_json_w *w, const char *key, bool v);
void tp_json_w_put_strn(tp_json_w *w, const char *key, const char *s, size_t n);
void tp_json_w_put_null(tp_json_w *w, const char *key);
void tp_json_w_put_value(tp_json_w *w, const char *key, const tp_json *v); /* NULL: null */
void tp_json_w_put_raw(tp_json_w *w, const char *key, const char *s);
void tp_json_w_put_begin(tp_json_w *w, const char *key, char bracket);
/* Where a NaN stands for a figure that nobody knows: it becomes null.  What came out as NaN is a
 * result, and put_f64() writes it as "NaN". */
void tp_json_w_put_known(tp_json_w *w, const char *key, double v);
void tp_json_w_put_i64_if(tp_json_w *w, const char *key, bool is_known, int64_t v);
/* Infinities become null as well. */
void tp_json_w_put_finite(tp_json_w *w, const char *key, double v);
/* [lo, hi], or null where one is not known. */
void tp_json_w_put_interval(tp_json_w *w, const char *key, double lo, double hi);
/* A list of numbers (key NULL: without one); on one line whatever the indentation. */
void tp_json_w_put_f64s(tp_json_w *w, const char *key, const double *v, size_t n);
void tp_json_w_put_f64_line(tp_json_w *w, const char *key, const double *v, size_t n);

/* A text that is one object or one list: begun, and ended with the end of its line. */
tp_json_w tp_json_w_open(tp_buf *out, int indent, char bracket);
void tp_json_w_close(tp_json_w *w, char bracket);

/* Append `s` as a JSON string literal (with quotes); invalid UTF-8 is replaced by U+FFFD. */
void tp_json_quote(tp_buf *out, const char *s, size_t n);

/* A finite number in the fewest digits that read back as the same double: "0.1",
 * "5", "1e-7", "1e22", "-0.0".  Returns the length. */
size_t tp_json_f64_text(double v, char out[32]);

/* A number written where there are TP_JSON_NUMBER_ROOM bytes (all of them may be written to),
 * without a NUL: the end of it.  Non-finite ones are strings, as tp_json_w_f64() has them. */
enum { TP_JSON_NUMBER_ROOM = 48 };
char *tp_json_put_i64(char *out, int64_t v);
char *tp_json_put_f64(char *out, double v);

#endif
