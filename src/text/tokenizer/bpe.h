/* bpe.h - byte pair encoding of one word, and the vocabulary behind it.
 *
 * A vocabulary is written with printable characters: each byte of a token is
 * spelled as one character below U+0144 ("Ġ" is a space).  Merging works on ids
 * alone: every pair of neighbours that may merge has a rank, and the pair of
 * lowest rank, leftmost first, merges until none is left.  Words of a few dozen
 * bytes are done in a flat array; longer ones with a linked list and a heap, so
 * that a word of n bytes costs O(n log n) whatever it holds. */
#ifndef TP_TEXT_TOKENIZER_BPE_H
#define TP_TEXT_TOKENIZER_BPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "text/tokenizer/ids.h"

/* Bytes and the characters that spell them. */
size_t tp_byte_spell(uint8_t byte, char out[2]); /* UTF-8; returns its length */
int tp_byte_of_char(uint32_t cp);                /* -1 when it spells no byte */

typedef struct {
    const char *spelling; /* as in the file, NUL-terminated; NULL: no token has this id */
    const char *bytes;    /* what it decodes to */
    uint32_t spelling_len, n_bytes;
    bool added, special;
} tp_token;

/* Invariant: pairs is a hash table with a power-of-two number of slots, at most
 * half full; an empty slot has rank UINT32_MAX.  So is by_spelling, with 0 for
 * empty and id + 1 otherwise; it holds the model's tokens, not the added ones. */
typedef struct {
    tp_token *tokens; /* n_ids of them */
    int32_t n_ids;
    uint32_t *by_spelling;
    uint32_t spelling_mask;
    size_t longest_spelling;

    struct tp_bpe_pair {
        uint32_t left, right, rank;
    } * pairs;
    uint32_t pair_mask;
    uint32_t *merged; /* by rank: the id that the pair becomes */

    int32_t byte_id[256]; /* -1: the vocabulary cannot spell this byte, which is dropped */
    int n_missing_bytes;
    bool ignore_merges; /* a word that is a token is taken whole */
} tp_bpe;

/* Tables for at most n_tokens model tokens with ids below n_ids, and n_merges merges. */
void tp_bpe_init(tp_bpe *bpe, tp_arena *arena, size_t n_tokens, int32_t n_ids, size_t n_merges);

/* Give `id` its spelling (copied into the arena).  It decodes to the bytes that its
 * characters spell; a literal one, or one with a character that spells no byte,
 * decodes to the spelling as it stands. */
void tp_bpe_set_token(tp_bpe *bpe, tp_arena *arena, int32_t id, const char *spelling, size_t n,
                      bool is_literal);

/* Make a model token findable; false when its spelling is there already. */
bool tp_bpe_index_token(tp_bpe *bpe, int32_t id);
int32_t tp_bpe_find(const tp_bpe *bpe, const char *spelling, size_t n); /* -1 when absent */

/* The later of two equal pairs wins. */
void tp_bpe_add_merge(tp_bpe *bpe, uint32_t left, uint32_t right, uint32_t rank, uint32_t merged);

/* After all tokens are set: which bytes can be spelled. */
void tp_bpe_finish(tp_bpe *bpe);

/* Work space of one thread; a zeroed one is empty and valid. */
typedef struct {
    uint32_t *id, *rank, *prev, *next; /* by byte of the word */
    uint64_t *heap;                    /* rank << 32 | position */
    size_t cap, n_heap, heap_cap;
    char *spelling;
    size_t spelling_cap;
} tp_bpe_space;

void tp_bpe_space_release(tp_bpe_space *space);

/* Append the ids of one word of n < 2^31 bytes; (optional) *starts gets the offset
 * in the word of each id's first byte, plus `base`. */
void tp_bpe_encode(const tp_bpe *bpe, tp_bpe_space *space, const char *word, size_t n, tp_ids *ids,
                   tp_ids *starts, int32_t base);

#endif
