/* pretokenize.h - cutting text into the words that BPE merges within.
 *
 * A pre-tokenizer is a list of steps, each of which cuts the pieces that the one
 * before left; the last step is always ByteLevel.  The four that matter (GPT-2,
 * SmolLM2, Llama 3, Qwen2) are recognised by their regular expressions and run as
 * hand-written scanners; other expressions run in PCRE2, whose Unicode tables are
 * 14.0: letters assigned later are not letters to it.
 *
 * A byte that is not UTF-8 is a character of its own, of no class. */
#ifndef TP_TEXT_TOKENIZER_PRETOKENIZE_H
#define TP_TEXT_TOKENIZER_PRETOKENIZE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "text/json/json.h"

/* The end of the word that begins at `at` < n. */
typedef size_t (*tp_word_scanner)(const char *text, size_t n, size_t at);

size_t tp_scan_gpt2(const char *text, size_t n, size_t at);
size_t tp_scan_smollm2(const char *text, size_t n, size_t at); /* single digits, then GPT-2 */
size_t tp_scan_llama3(const char *text, size_t n, size_t at);
size_t tp_scan_qwen2(const char *text, size_t n, size_t at);

extern const char tp_regex_gpt2[], tp_regex_llama3[], tp_regex_qwen2[];

typedef enum {
    TP_SPLIT_ISOLATED,
    TP_SPLIT_REMOVED,
    TP_SPLIT_MERGED_WITH_PREVIOUS,
    TP_SPLIT_MERGED_WITH_NEXT,
    TP_SPLIT_CONTIGUOUS
} tp_split_behavior;

typedef struct tp_regex tp_regex;

typedef struct {
    enum {
        TP_CUT_SCAN,        /* `scan`, isolated */
        TP_CUT_REGEX,       /* `regex` */
        TP_CUT_LITERAL,     /* occurrences of `literal` */
        TP_CUT_DIGITS,      /* every numeric character */
        TP_CUT_PUNCTUATION, /* every punctuation character */
        TP_CUT_BYTE_LEVEL   /* the last step; `scan` or the whole piece */
    } kind;
    tp_split_behavior behavior;
    bool invert;
    bool add_prefix_space;
    tp_word_scanner scan; /* BYTE_LEVEL: NULL when the pieces are the words */
    tp_regex *regex;
    tp_slice literal;
} tp_cut;

typedef struct {
    tp_cut *cuts;
    size_t n;
} tp_pretokenizer;

/* From the value of "pre_tokenizer"; `name` is what errors call the file. */
TP_CHECKED tp_status tp_pretokenizer_parse(tp_arena *arena, const char *name, const tp_json *spec,
                                           tp_pretokenizer *ret, tp_error *err);
void tp_pretokenizer_release(tp_pretokenizer *pretokenizer);         /* the compiled expressions */
bool tp_pretokenizer_has_regex(const tp_pretokenizer *pretokenizer); /* for PCRE2 */

/* The value of "pre_tokenizer" that one of the four scanners above stands for. */
void tp_pretokenizer_write(tp_json_w *w, tp_word_scanner scan);

#define TP_BYTE_LEVEL(prefix, regex)                          \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": " prefix \
    ", \"trim_offsets\": true, \"use_regex\": " regex "}"

/* Work space of one thread; a zeroed one is empty and valid. */
typedef struct {
    struct tp_cut_match {
        size_t begin, end;
        bool is_match;
    } * matches, *pieces, *next_pieces;
    size_t n_matches, matches_cap, n_pieces, pieces_cap, n_next, next_cap;
    void *match_data, *match_context, *jit_stack; /* PCRE2's */
    tp_buf shadow;                                /* text with bytes that are not UTF-8 replaced */
    tp_buf prefixed;
    bool has_given_up; /* a search hit a limit, and it was said */
} tp_cut_space;

void tp_cut_space_release(tp_cut_space *space);

/* One word, which begins at byte `at` of the text.  Its first `inserted` bytes (0 or
 * 1: a prefixed space) are not in the text. */
typedef void (*tp_word_fn)(void *context, const char *word, size_t n, size_t at, size_t inserted);

void tp_pretokenize(const tp_pretokenizer *pretokenizer, tp_cut_space *space, const char *text,
                    size_t n, tp_word_fn emit, void *context);

/* For pretokenize.c: the same through PCRE2. */
TP_CHECKED tp_status tp_regex_compile(const char *pattern, size_t n, tp_regex **ret, tp_error *err);
void tp_regex_free(tp_regex *regex);
enum { TP_REGEX_VERSION_MAX = 32 };
/* The version of Unicode that the properties of regular expressions are of. */
void tp_regex_unicode_version(char ret[TP_REGEX_VERSION_MAX]);
/* Append the matches in text[begin..end) to space->matches, with what lies between. */
void tp_regex_find_all(const tp_regex *regex, tp_cut_space *space, const char *text, size_t begin,
                       size_t end);
void tp_regex_space_release(tp_cut_space *space);
static inline void tp_cut_add_match(tp_cut_space *space, size_t begin, size_t end, bool is_match)
{
    *TP_VEC_PUSH(space->matches, space->n_matches, space->matches_cap) =
        (struct tp_cut_match){begin, end, is_match};
}

#endif
