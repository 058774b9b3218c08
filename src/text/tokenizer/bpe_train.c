/* bpe_train.c - each distinct word is kept once, as symbols with a count.
 *
 * Every pair of neighbours knows its count and the words it was seen in.  A merge
 * visits those words alone and adjusts the counts of the pairs around each place.
 * The best pair comes from a heap whose entries may be out of date: an entry is
 * right when its count is the pair's count now. */
#include "text/tokenizer/bpe_train.h"

#include <stdlib.h>
#include <string.h>

#include "text/tokenizer/bpe.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Open addressing from a 64-bit hash to an index; equality is up to the caller. */
typedef struct {
    struct index_slot {
        uint64_t hash;
        uint32_t index; /* + 1; 0 is empty */
    } * slots;
    size_t mask, n; /* mask + 1 slots */
} index_table;

typedef struct {
    size_t bytes; /* where its bytes are in the pool */
    size_t n_bytes;
    uint32_t *symbols; /* after counting: ids */
    size_t n_symbols;
    int64_t count;
} word_entry;

typedef struct {
    uint32_t left, right;
    int64_t count;
    bool merged;     /* has a rank already */
    bool increased;  /* since it was last queued */
    uint32_t *words; /* where it has been seen; may be out of date */
    size_t n_words, words_cap;
} pair_entry;

typedef struct {
    int64_t count;
    uint32_t left, right, pair;
} queued;

struct tp_bpe_trainer {
    tp_buf pool; /* bytes of words, then of tokens */
    word_entry *words;
    size_t n_words, words_cap;
    index_table word_index, pair_index, token_index;
    pair_entry *pairs;
    size_t n_pairs, pairs_cap;
    struct token_bytes {
        size_t at, n;
    } * tokens;
    size_t n_tokens, tokens_cap;
    tp_bpe_merge *merges;
    size_t n_merges, merges_cap;
    queued *heap;
    size_t n_heap, heap_cap;
    uint32_t *changed; /* pairs whose count rose during one merge */
    size_t n_changed, changed_cap;
};

/* The array with room for one more element. */
static void *reserve(void *array, size_t n, size_t *cap, size_t size)
{
    if (n < *cap)
        return array;
    *cap = 2 * *cap + 16;
    return tp_grow(array, *cap, size);
}

static void index_insert(index_table *table, uint64_t hash, uint32_t index)
{
    if (2 * (table->n + 1) > table->mask) {
        index_table bigger = {.mask = table->mask ? 2 * table->mask + 1 : 1023};
        bigger.slots = tp_grow(NULL, bigger.mask + 1, sizeof *bigger.slots);
        memset(bigger.slots, 0, (bigger.mask + 1) * sizeof *bigger.slots);
        for (size_t i = 0; table->slots && i <= table->mask; i++)
            if (table->slots[i].index)
                index_insert(&bigger, table->slots[i].hash, table->slots[i].index - 1);
        free(table->slots);
        *table = bigger;
    }
    size_t slot = hash & table->mask;
    while (table->slots[slot].index)
        slot = (slot + 1) & table->mask;
    table->slots[slot] = (struct index_slot){hash, index + 1};
    table->n++;
}

/* The next entry with this hash; start with *slot = hash.  -1 at the end. */
static int64_t index_next(const index_table *table, uint64_t hash, uint64_t *slot)
{
    for (; table->slots && table->slots[*slot & table->mask].index; (*slot)++) {
        struct index_slot found = table->slots[*slot & table->mask];
        if (found.hash == hash) {
            (*slot)++;
            return (int64_t)found.index - 1;
        }
    }
    return -1;
}

static size_t add_token(tp_bpe_trainer *t, size_t at, size_t n)
{
    t->tokens = reserve(t->tokens, t->n_tokens, &t->tokens_cap, sizeof *t->tokens);
    t->tokens[t->n_tokens] = (struct token_bytes){at, n};
    index_insert(&t->token_index, XXH3_64bits(t->pool.data + at, n), (uint32_t)t->n_tokens);
    return t->n_tokens++;
}

tp_bpe_trainer *tp_bpe_trainer_new(void)
{
    tp_bpe_trainer *t = tp_grow(NULL, 1, sizeof *t);
    *t = (tp_bpe_trainer){0};
    /* In the order of the characters that spell them. */
    for (uint32_t cp = 0; t->n_tokens < 256; cp++) {
        int byte = tp_byte_of_char(cp);
        if (byte < 0)
            continue;
        tp_buf_addc(&t->pool, (char)byte);
        add_token(t, t->pool.len - 1, 1);
    }
    return t;
}

void tp_bpe_trainer_free(tp_bpe_trainer *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n_words; i++)
        free(t->words[i].symbols);
    for (size_t i = 0; i < t->n_pairs; i++)
        free(t->pairs[i].words);
    free(t->words);
    free(t->pairs);
    free(t->tokens);
    free(t->merges);
    free(t->heap);
    free(t->changed);
    free(t->word_index.slots);
    free(t->pair_index.slots);
    free(t->token_index.slots);
    tp_buf_release(&t->pool);
    free(t);
}

void tp_bpe_trainer_add(tp_bpe_trainer *t, const char *word, size_t n)
{
    uint64_t hash = XXH3_64bits(word, n), slot = hash;
    for (int64_t i; (i = index_next(&t->word_index, hash, &slot)) >= 0;) {
        word_entry *known = &t->words[i];
        if (known->n_bytes == n && memcmp(t->pool.data + known->bytes, word, n) == 0) {
            known->count++;
            return;
        }
    }
    TP_ASSERT(t->n_words < UINT32_MAX);
    t->words = reserve(t->words, t->n_words, &t->words_cap, sizeof *t->words);
    t->words[t->n_words] = (word_entry){.bytes = t->pool.len, .n_bytes = n, .count = 1};
    tp_buf_add(&t->pool, word, n);
    index_insert(&t->word_index, hash, (uint32_t)t->n_words++);
}

static uint64_t pair_hash(uint32_t left, uint32_t right)
{
    uint64_t key = (uint64_t)left << 32 | right;
    return XXH3_64bits(&key, sizeof key);
}

static uint32_t pair_of(tp_bpe_trainer *t, uint32_t left, uint32_t right)
{
    uint64_t hash = pair_hash(left, right), slot = hash;
    for (int64_t i; (i = index_next(&t->pair_index, hash, &slot)) >= 0;)
        if (t->pairs[i].left == left && t->pairs[i].right == right)
            return (uint32_t)i;
    t->pairs = reserve(t->pairs, t->n_pairs, &t->pairs_cap, sizeof *t->pairs);
    t->pairs[t->n_pairs] = (pair_entry){.left = left, .right = right};
    index_insert(&t->pair_index, hash, (uint32_t)t->n_pairs);
    return (uint32_t)t->n_pairs++;
}

static void raise_count(tp_bpe_trainer *t, uint32_t left, uint32_t right, uint32_t word)
{
    uint32_t index = pair_of(t, left, right);
    pair_entry *pair = &t->pairs[index];
    pair->count += t->words[word].count;
    if (pair->n_words == 0 || pair->words[pair->n_words - 1] != word) {
        pair->words = reserve(pair->words, pair->n_words, &pair->words_cap, sizeof *pair->words);
        pair->words[pair->n_words++] = word;
    }
    if (!pair->increased) {
        pair->increased = true;
        t->changed = reserve(t->changed, t->n_changed, &t->changed_cap, sizeof *t->changed);
        t->changed[t->n_changed++] = index;
    }
}

static void lower_count(tp_bpe_trainer *t, uint32_t left, uint32_t right, uint32_t word)
{
    t->pairs[pair_of(t, left, right)].count -= t->words[word].count;
}

static bool is_better(queued a, queued b)
{
    if (a.count != b.count)
        return a.count > b.count;
    return a.left != b.left ? a.left < b.left : a.right < b.right;
}

static void queue_pair(tp_bpe_trainer *t, uint32_t index)
{
    const pair_entry *pair = &t->pairs[index];
    queued entry = {pair->count, pair->left, pair->right, index};
    t->heap = reserve(t->heap, t->n_heap, &t->heap_cap, sizeof *t->heap);
    size_t i = t->n_heap++;
    for (; i > 0 && is_better(entry, t->heap[(i - 1) / 2]); i = (i - 1) / 2)
        t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = entry;
}

static queued take_best(tp_bpe_trainer *t)
{
    queued best = t->heap[0], last = t->heap[--t->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < t->n_heap; i = child) {
        if (child + 1 < t->n_heap && is_better(t->heap[child + 1], t->heap[child]))
            child++;
        if (!is_better(t->heap[child], last))
            break;
        t->heap[i] = t->heap[child];
    }
    t->heap[i] = last;
    return best;
}

static void queue_changed(tp_bpe_trainer *t)
{
    for (size_t i = 0; i < t->n_changed; i++) {
        pair_entry *pair = &t->pairs[t->changed[i]];
        pair->increased = false;
        if (pair->count > 0)
            queue_pair(t, t->changed[i]);
    }
    t->n_changed = 0;
}

static void count_pairs(tp_bpe_trainer *t)
{
    uint32_t id_of_byte[256];
    for (uint32_t id = 0; id < 256; id++)
        id_of_byte[(uint8_t)t->pool.data[t->tokens[id].at]] = id;
    for (uint32_t w = 0; w < t->n_words; w++) {
        word_entry *word = &t->words[w];
        word->symbols = tp_grow(NULL, word->n_bytes, sizeof *word->symbols);
        word->n_symbols = word->n_bytes;
        for (size_t i = 0; i < word->n_bytes; i++)
            word->symbols[i] = id_of_byte[(uint8_t)t->pool.data[word->bytes + i]];
        for (size_t i = 0; i + 1 < word->n_symbols; i++)
            raise_count(t, word->symbols[i], word->symbols[i + 1], w);
    }
    queue_changed(t);
}

static uint32_t merged_token(tp_bpe_trainer *t, uint32_t left, uint32_t right)
{
    struct token_bytes a = t->tokens[left], b = t->tokens[right];
    size_t at = t->pool.len, n = a.n + b.n;
    tp_buf_reserve(&t->pool, n);
    tp_buf_add(&t->pool, t->pool.data + a.at, a.n);
    tp_buf_add(&t->pool, t->pool.data + b.at, b.n);
    uint64_t hash = XXH3_64bits(t->pool.data + at, n), slot = hash;
    for (int64_t i; (i = index_next(&t->token_index, hash, &slot)) >= 0;) {
        if (t->tokens[i].n != n ||
            memcmp(t->pool.data + t->tokens[i].at, t->pool.data + at, n) != 0)
            continue;
        t->pool.len = at;
        return (uint32_t)i;
    }
    return (uint32_t)add_token(t, at, n);
}

/* Left to right; what a merge has written is the left neighbour of the next. */
static void merge_in_word(tp_bpe_trainer *t, uint32_t w, uint32_t left, uint32_t right,
                          uint32_t merged)
{
    word_entry *word = &t->words[w];
    uint32_t *symbols = word->symbols;
    size_t n = word->n_symbols, out = 0;
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == n || symbols[i] != left || symbols[i + 1] != right) {
            symbols[out++] = symbols[i];
            continue;
        }
        if (out > 0) {
            lower_count(t, symbols[out - 1], left, w);
            raise_count(t, symbols[out - 1], merged, w);
        }
        if (i + 2 < n) {
            lower_count(t, right, symbols[i + 2], w);
            raise_count(t, merged, symbols[i + 2], w);
        }
        symbols[out++] = merged;
        i++;
    }
    word->n_symbols = out;
}

static void merge_pair(tp_bpe_trainer *t, uint32_t index)
{
    uint32_t left = t->pairs[index].left, right = t->pairs[index].right;
    uint32_t merged = merged_token(t, left, right);
    /* A merged pair comes up again when another merge makes one of its halves anew:
     * it has its rank already. */
    if (!t->pairs[index].merged) {
        t->pairs[index].merged = true;
        t->merges = reserve(t->merges, t->n_merges, &t->merges_cap, sizeof *t->merges);
        t->merges[t->n_merges++] = (tp_bpe_merge){left, right};
    }
    TP_FREED uint32_t *words = t->pairs[index].words;
    size_t n_words = t->pairs[index].n_words;
    t->pairs[index].words = NULL;
    t->pairs[index].n_words = t->pairs[index].words_cap = 0;
    for (size_t i = 0; i < n_words; i++)
        merge_in_word(t, words[i], left, right, merged);
    t->pairs[index].count = 0;
    queue_changed(t);
}

void tp_bpe_trainer_run(tp_bpe_trainer *t, uint32_t n_tokens)
{
    count_pairs(t);
    while (t->n_tokens < n_tokens && t->n_heap) {
        queued best = take_best(t);
        int64_t count = t->pairs[best.pair].count;
        if (count == best.count)
            merge_pair(t, best.pair);
        else if (count > 0 && count < best.count)
            queue_pair(t, best.pair);
    }
}

uint32_t tp_bpe_trainer_n_tokens(const tp_bpe_trainer *t) { return (uint32_t)t->n_tokens; }

tp_slice tp_bpe_trainer_token(const tp_bpe_trainer *t, uint32_t id)
{
    return (tp_slice){t->pool.data + t->tokens[id].at, t->tokens[id].n};
}

size_t tp_bpe_trainer_n_merges(const tp_bpe_trainer *t) { return t->n_merges; }

tp_bpe_merge tp_bpe_trainer_merge(const tp_bpe_trainer *t, size_t rank) { return t->merges[rank]; }
