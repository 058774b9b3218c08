/* normalize.h - what happens to text between added tokens and pre-tokenizer.
 *
 * Bytes that are not UTF-8 pass unchanged and nothing composes across them.
 * Unicode forms follow utf8proc's tables. */
#ifndef TP_TEXT_TOKENIZER_NORMALIZE_H
#define TP_TEXT_TOKENIZER_NORMALIZE_H

#include "base/strings.h"

typedef enum {
    TP_NORMALIZE_NFC,
    TP_NORMALIZE_NFD,
    TP_NORMALIZE_NFKC,
    TP_NORMALIZE_NFKD,
    TP_NORMALIZE_LOWERCASE,
    TP_NORMALIZE_STRIP,
    TP_NORMALIZE_PREPEND, /* nothing in front of an empty text */
    TP_NORMALIZE_REPLACE
} tp_normalize_kind;

typedef struct {
    tp_normalize_kind kind;
    bool strip_left, strip_right;
    tp_slice from, to; /* REPLACE: from is not empty; PREPEND: to */
} tp_normalize_step;

typedef struct {
    const tp_normalize_step *steps;
    size_t n;
} tp_normalizer;

/* Pieces of normalised text and where they came from, in ascending order.  A byte
 * of an identical piece (of as many bytes as it came from) maps to its own place,
 * others to the piece's beginning. */
typedef struct {
    struct tp_norm_piece {
        size_t to, from;
        bool identical;
    } * pieces;
    size_t n, cap;
} tp_norm_map;

void tp_norm_map_release(tp_norm_map *map);
/* Where in the original text byte `at` of the normalised text came from. */
size_t tp_norm_map_find(const tp_norm_map *map, size_t at);

/* Work space of one thread; a zeroed one is empty and valid. */
typedef struct {
    int32_t *points; /* code points of one run */
    size_t n_points, cap;
    tp_buf spare;
    tp_norm_map before, step; /* of all steps before the last one, and of that one */
} tp_norm_space;

void tp_norm_space_release(tp_norm_space *space);

/* True when it is cheap to see that normalising changes nothing. */
bool tp_normalize_is_identity(const tp_normalizer *normalizer, const char *text, size_t n);

/* out = the normalised text; (optional) *map tells where it came from. */
void tp_normalize(const tp_normalizer *normalizer, tp_norm_space *space, const char *text, size_t n,
                  tp_buf *out, tp_norm_map *map);

#endif
