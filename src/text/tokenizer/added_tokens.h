/* added_tokens.h - finding the added tokens in a text, leftmost and longest first.
 *
 * There are two sets: tokens that are looked for in the text as given, and tokens
 * ("normalized") that are looked for after normalisation, in what the first set
 * left. */
#ifndef TP_TEXT_TOKENIZER_ADDED_TOKENS_H
#define TP_TEXT_TOKENIZER_ADDED_TOKENS_H

#include "base/arena.h"
#include "base/strings.h"

typedef struct {
    int32_t id;
    bool single_word; /* only where no word character touches it */
    bool lstrip;      /* takes the white space before it too */
    bool rstrip;      /* and after it */
    bool special;
} tp_added_token;

/* A trie over bytes.  Node 0 is the root; a node's children are linked through
 * `sibling`, and 0 ends a list. */
typedef struct {
    struct tp_trie_node {
        uint32_t child, sibling;
        int32_t token; /* index into tokens, or -1 */
        uint8_t byte;
    } * nodes;
    uint32_t n_nodes, nodes_cap;
    tp_added_token *tokens;
    uint32_t n_tokens;
    bool starts[256]; /* bytes that some token begins with */
    uint8_t start;    /* one of them: all of them where n_starts is 1 */
    uint32_t n_starts;
} tp_added_set;

/* Room for n_tokens tokens of n_bytes in all. */
void tp_added_init(tp_added_set *set, tp_arena *arena, size_t n_tokens, size_t n_bytes);
/* `text` is not empty; false when it is in the set already. */
bool tp_added_put(tp_added_set *set, tp_added_token token, const char *text, size_t n);

/* The parts of a text in order: `token` is NULL for text between added tokens.  A
 * part with a token includes the white space that it strips. */
typedef void (*tp_added_fn)(void *context, const tp_added_token *token, size_t begin, size_t end);

/* With parse_special false, special tokens are text like any other. */
void tp_added_split(const tp_added_set *set, const char *text, size_t n, bool parse_special,
                    tp_added_fn part, void *context);

#endif
