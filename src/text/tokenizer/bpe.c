/* bpe.c - the merges of a word by a heap, with a cache of words. */
#include "text/tokenizer/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "base/strings.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { FLAT_MAX = 40 }; /* longest word merged in a flat array */

#define NO_RANK UINT32_MAX
#define NONE UINT32_MAX

static bool is_plain(uint32_t byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

/* The bytes that are not printable are spelled, in order, from U+0100 on. */
static uint32_t char_of_byte(uint32_t byte)
{
    if (is_plain(byte))
        return byte;
    uint32_t spare = byte <= 32 ? byte : byte <= 160 ? byte - 127 + 33 : 33 + 34;
    return 256 + spare;
}

size_t tp_byte_spell(uint8_t byte, char out[2])
{
    char utf8[4];
    size_t n = tp_utf8_encode(char_of_byte(byte), utf8);
    memcpy(out, utf8, n);
    return n;
}

int tp_byte_of_char(uint32_t cp)
{
    if (cp < 256)
        return is_plain(cp) ? (int)cp : -1;
    uint32_t spare = cp - 256;
    if (spare <= 32)
        return (int)spare;
    if (spare < 33 + 34)
        return (int)(spare - 33 + 127);
    return spare == 33 + 34 ? 173 : -1;
}

static uint32_t table_size(size_t n)
{
    size_t size = 16;
    while (size < 2 * n)
        size *= 2;
    TP_ASSERT(size <= UINT32_MAX);
    return (uint32_t)size;
}

void tp_bpe_init(tp_bpe *bpe, tp_arena *arena, size_t n_tokens, int32_t n_ids, size_t n_merges)
{
    uint32_t n_spellings = table_size(n_tokens), n_pairs = table_size(n_merges);
    *bpe = (tp_bpe){
        .tokens = tp_arena_array(arena, tp_token, n_ids),
        .n_ids = n_ids,
        .by_spelling = tp_arena_array(arena, uint32_t, n_spellings),
        .spelling_mask = n_spellings - 1,
        .pairs = tp_arena_array(arena, struct tp_bpe_pair, n_pairs),
        .pair_mask = n_pairs - 1,
        .merged = tp_arena_array(arena, uint32_t, n_merges),
    };
    for (uint32_t i = 0; i < n_pairs; i++)
        bpe->pairs[i].rank = NO_RANK;
}

/* The bytes that a spelling stands for; false when a character spells none. */
static bool decode_spelling(const char *spelling, size_t n, char *out, uint32_t *ret_n)
{
    uint32_t n_bytes = 0, cp;
    for (size_t i = 0, len; i < n; i += len) {
        len = tp_utf8_decode(spelling + i, n - i, &cp);
        int byte = len ? tp_byte_of_char(cp) : -1;
        if (byte < 0)
            return false;
        out[n_bytes++] = (char)byte;
    }
    *ret_n = n_bytes;
    return true;
}

void tp_bpe_set_token(tp_bpe *bpe, tp_arena *arena, int32_t id, const char *spelling, size_t n,
                      bool is_literal)
{
    tp_token *token = &bpe->tokens[id];
    char *bytes = tp_arena_array(arena, char, n + 1);
    token->spelling = tp_arena_strndup(arena, spelling, n);
    token->spelling_len = (uint32_t)n;
    token->bytes = bytes;
    if (is_literal || !decode_spelling(spelling, n, bytes, &token->n_bytes)) {
        token->bytes = token->spelling;
        token->n_bytes = token->spelling_len;
    }
}

static bool is_spelled(const tp_token *token, const char *spelling, size_t n)
{
    return token->spelling_len == n && memcmp(token->spelling, spelling, n) == 0;
}

bool tp_bpe_index_token(tp_bpe *bpe, int32_t id)
{
    const tp_token *token = &bpe->tokens[id];
    uint32_t slot = (uint32_t)XXH3_64bits(token->spelling, token->spelling_len);
    for (;; slot++) {
        uint32_t *entry = &bpe->by_spelling[slot & bpe->spelling_mask];
        if (!*entry) {
            *entry = (uint32_t)id + 1;
            break;
        }
        if (is_spelled(&bpe->tokens[*entry - 1], token->spelling, token->spelling_len))
            return false;
    }
    bpe->longest_spelling = TP_MAX(bpe->longest_spelling, token->spelling_len);
    return true;
}

int32_t tp_bpe_find(const tp_bpe *bpe, const char *spelling, size_t n)
{
    uint32_t slot = (uint32_t)XXH3_64bits(spelling, n);
    for (;; slot++) {
        uint32_t entry = bpe->by_spelling[slot & bpe->spelling_mask];
        if (!entry)
            return -1;
        if (is_spelled(&bpe->tokens[entry - 1], spelling, n))
            return (int32_t)(entry - 1);
    }
}

static uint32_t pair_slot(uint32_t left, uint32_t right)
{
    return (uint32_t)(((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u >> 32);
}

void tp_bpe_add_merge(tp_bpe *bpe, uint32_t left, uint32_t right, uint32_t rank, uint32_t merged)
{
    uint32_t slot = pair_slot(left, right);
    struct tp_bpe_pair *pair;
    for (;; slot++) {
        pair = &bpe->pairs[slot & bpe->pair_mask];
        if (pair->rank == NO_RANK || (pair->left == left && pair->right == right))
            break;
    }
    *pair = (struct tp_bpe_pair){left, right, rank};
    bpe->merged[rank] = merged;
}

static uint32_t bpe_rank(const tp_bpe *bpe, uint32_t left, uint32_t right)
{
    for (uint32_t slot = pair_slot(left, right);; slot++) {
        const struct tp_bpe_pair *pair = &bpe->pairs[slot & bpe->pair_mask];
        if (pair->rank == NO_RANK || (pair->left == left && pair->right == right))
            return pair->rank;
    }
}

void tp_bpe_finish(tp_bpe *bpe)
{
    bpe->n_missing_bytes = 0;
    for (int byte = 0; byte < 256; byte++) {
        char spelling[2];
        size_t n = tp_byte_spell((uint8_t)byte, spelling);
        bpe->byte_id[byte] = tp_bpe_find(bpe, spelling, n);
        bpe->n_missing_bytes += bpe->byte_id[byte] < 0;
    }
}

void tp_bpe_space_release(tp_bpe_space *space)
{
    free(space->id);
    free(space->rank);
    free(space->prev);
    free(space->next);
    free(space->heap);
    free(space->spelling);
    *space = (tp_bpe_space){0};
}

static void add(tp_ids *ids, tp_ids *starts, uint32_t id, int32_t start)
{
    tp_ids_add(ids, (int32_t)id);
    if (starts)
        tp_ids_add(starts, start);
}

static void encode_flat(const tp_bpe *bpe, const char *word, size_t n, tp_ids *ids, tp_ids *starts,
                        int32_t base)
{
    uint32_t id[FLAT_MAX], rank[FLAT_MAX];
    uint8_t at[FLAT_MAX];
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t byte_id = bpe->byte_id[(uint8_t)word[i]];
        if (byte_id < 0)
            continue;
        at[len] = (uint8_t)i;
        id[len++] = (uint32_t)byte_id;
    }
    for (size_t i = 0; i + 1 < len; i++)
        rank[i] = bpe_rank(bpe, id[i], id[i + 1]);

    while (len > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < len; i++)
            if (rank[i] < rank[best])
                best = i;
        if (rank[best] == NO_RANK)
            break;
        id[best] = bpe->merged[rank[best]];
        len--;
        size_t moved = len - best - 1;
        memmove(&id[best + 1], &id[best + 2], moved * sizeof *id);
        memmove(&at[best + 1], &at[best + 2], moved * sizeof *at);
        memmove(&rank[best], &rank[best + 1], moved * sizeof *rank);
        if (best > 0)
            rank[best - 1] = bpe_rank(bpe, id[best - 1], id[best]);
        if (best + 1 < len)
            rank[best] = bpe_rank(bpe, id[best], id[best + 1]);
    }
    for (size_t i = 0; i < len; i++)
        add(ids, starts, id[i], base + at[i]);
}

static void sift_down(uint64_t *heap, size_t n, size_t i)
{
    uint64_t value = heap[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= value)
            break;
        heap[i] = heap[child];
    }
    heap[i] = value;
}

static void heap_push(tp_bpe_space *space, uint64_t value)
{
    if (space->n_heap == space->heap_cap) {
        space->heap_cap = 2 * space->heap_cap + 64;
        space->heap = tp_grow(space->heap, space->heap_cap, sizeof *space->heap);
    }
    size_t i = space->n_heap++;
    for (; i > 0 && space->heap[(i - 1) / 2] > value; i = (i - 1) / 2)
        space->heap[i] = space->heap[(i - 1) / 2];
    space->heap[i] = value;
}

static uint64_t heap_pop(tp_bpe_space *space)
{
    uint64_t top = space->heap[0];
    space->heap[0] = space->heap[--space->n_heap];
    if (space->n_heap)
        sift_down(space->heap, space->n_heap, 0);
    return top;
}

/* The pair that starts at `at` has new neighbours: note its rank and queue it. */
static void refresh(const tp_bpe *bpe, tp_bpe_space *space, uint32_t at)
{
    uint32_t right = space->next[at];
    uint32_t rank = right == NONE ? NO_RANK : bpe_rank(bpe, space->id[at], space->id[right]);
    space->rank[at] = rank;
    if (rank != NO_RANK)
        heap_push(space, (uint64_t)rank << 32 | at);
}

/* One node for each byte that has an id; returns the first, or NONE. */
static uint32_t link_word(const tp_bpe *bpe, tp_bpe_space *space, const char *word, size_t n)
{
    uint32_t first = NONE, last = NONE;
    for (uint32_t i = 0; i < n; i++) {
        int32_t id = bpe->byte_id[(uint8_t)word[i]];
        space->rank[i] = NO_RANK;
        if (id < 0)
            continue;
        space->id[i] = (uint32_t)id;
        space->prev[i] = last;
        space->next[i] = NONE;
        if (last == NONE)
            first = i;
        else
            space->next[last] = i;
        last = i;
    }
    return first;
}

static void space_reserve(tp_bpe_space *space, size_t n)
{
    if (n > space->cap) {
        space->cap = n;
        space->id = tp_grow(space->id, n, sizeof *space->id);
        space->rank = tp_grow(space->rank, n, sizeof *space->rank);
        space->prev = tp_grow(space->prev, n, sizeof *space->prev);
        space->next = tp_grow(space->next, n, sizeof *space->next);
    }
    if (n > space->heap_cap) {
        space->heap_cap = n;
        space->heap = tp_grow(space->heap, n, sizeof *space->heap);
    }
}

static void encode_long(const tp_bpe *bpe, tp_bpe_space *space, const char *word, size_t n,
                        tp_ids *ids, tp_ids *starts, int32_t base)
{
    space_reserve(space, n);
    uint32_t first = link_word(bpe, space, word, n);
    if (first == NONE)
        return;

    space->n_heap = 0;
    for (uint32_t at = first; space->next[at] != NONE; at = space->next[at]) {
        space->rank[at] = bpe_rank(bpe, space->id[at], space->id[space->next[at]]);
        if (space->rank[at] != NO_RANK)
            space->heap[space->n_heap++] = (uint64_t)space->rank[at] << 32 | at;
    }
    for (size_t i = space->n_heap / 2; i-- > 0;)
        sift_down(space->heap, space->n_heap, i);

    while (space->n_heap) {
        uint64_t top = heap_pop(space);
        uint32_t rank = (uint32_t)(top >> 32), at = (uint32_t)top;
        if (space->rank[at] != rank)
            continue; /* a neighbour merged meanwhile */
        uint32_t right = space->next[at], after = space->next[right];
        space->id[at] = bpe->merged[rank];
        space->next[at] = after;
        space->rank[right] = NO_RANK;
        if (after != NONE)
            space->prev[after] = at;
        refresh(bpe, space, at);
        if (space->prev[at] != NONE)
            refresh(bpe, space, space->prev[at]);
    }
    for (uint32_t at = first; at != NONE; at = space->next[at])
        add(ids, starts, space->id[at], base + (int32_t)at);
}

/* The id of the word as a whole, or -1. */
static int32_t whole_word(const tp_bpe *bpe, tp_bpe_space *space, const char *word, size_t n)
{
    if (n > bpe->longest_spelling)
        return -1;
    if (2 * n > space->spelling_cap) {
        space->spelling_cap = 2 * n + 64;
        space->spelling = tp_grow(space->spelling, space->spelling_cap, 1);
    }
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += tp_byte_spell((uint8_t)word[i], space->spelling + len);
    return tp_bpe_find(bpe, space->spelling, len);
}

void tp_bpe_encode(const tp_bpe *bpe, tp_bpe_space *space, const char *word, size_t n, tp_ids *ids,
                   tp_ids *starts, int32_t base)
{
    TP_ASSERT(n <= INT32_MAX);
    if (bpe->ignore_merges) {
        int32_t id = whole_word(bpe, space, word, n);
        if (id >= 0) {
            add(ids, starts, (uint32_t)id, base);
            return;
        }
    }
    if (n <= FLAT_MAX)
        encode_flat(bpe, word, n, ids, starts, base);
    else
        encode_long(bpe, space, word, n, ids, starts, base);
}
