/* added_tokens.c - finds added tokens, leftmost and longest first, by a trie over bytes. */
#include "text/tokenizer/added_tokens.h"

#include <string.h>

#include "base/platform.h"
#include "text/unicode/unicode_class.h"

void tp_added_init(tp_added_set *set, tp_arena *arena, size_t n_tokens, size_t n_bytes)
{
    TP_ASSERT(n_bytes < UINT32_MAX && n_tokens < INT32_MAX);
    *set = (tp_added_set){
        .nodes = tp_arena_array(arena, struct tp_trie_node, n_bytes + 1),
        .n_nodes = 1,
        .nodes_cap = (uint32_t)n_bytes + 1,
        .tokens = tp_arena_array(arena, tp_added_token, n_tokens),
    };
    set->nodes[0].token = -1;
}

static uint32_t find_child(const tp_added_set *set, uint32_t node, uint8_t byte)
{
    uint32_t child = set->nodes[node].child;
    while (child && set->nodes[child].byte != byte)
        child = set->nodes[child].sibling;
    return child;
}

bool tp_added_put(tp_added_set *set, tp_added_token token, const char *text, size_t n)
{
    uint32_t node = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t byte = (uint8_t)text[i];
        uint32_t child = find_child(set, node, byte);
        if (!child) {
            TP_ASSERT(set->n_nodes < set->nodes_cap);
            child = set->n_nodes++;
            set->nodes[child] =
                (struct tp_trie_node){.sibling = set->nodes[node].child, .token = -1, .byte = byte};
            set->nodes[node].child = child;
        }
        node = child;
    }
    if (set->nodes[node].token >= 0)
        return false;
    uint8_t start = (uint8_t)text[0];
    set->n_starts += !set->starts[start];
    set->starts[start] = true;
    set->start = start;
    set->nodes[node].token = (int32_t)set->n_tokens;
    set->tokens[set->n_tokens++] = token;
    return true;
}

/* The longest token at `at`, or NULL. */
static const tp_added_token *longest_at(const tp_added_set *set, const char *text, size_t n,
                                        size_t at, size_t *ret_end)
{
    const tp_added_token *best = NULL;
    uint32_t node = 0;
    while (at < n && (node = find_child(set, node, (uint8_t)text[at])) != 0) {
        at++;
        if (set->nodes[node].token >= 0) {
            best = &set->tokens[set->nodes[node].token];
            *ret_end = at;
        }
    }
    return best;
}

static bool is_word_at(const char *text, size_t n)
{
    uint32_t cp;
    return tp_utf8_decode(text, n, &cp) && tp_unicode_is_word(cp);
}

/* Where the last character before `at` > 0 begins. */
static size_t previous_character(const char *text, size_t at)
{
    size_t begin = at - 1;
    while (begin > 0 && at - begin < 4 && ((uint8_t)text[begin] & 0xc0) == 0x80)
        begin--;
    uint32_t cp;
    return tp_utf8_decode(text + begin, at - begin, &cp) == at - begin ? begin : at - 1;
}

static bool stands_alone(const char *text, size_t n, size_t begin, size_t end)
{
    if (begin > 0) {
        size_t before = previous_character(text, begin);
        if (is_word_at(text + before, begin - before))
            return false;
    }
    return end == n || !is_word_at(text + end, n - end);
}

static size_t strip_left(const char *text, size_t least, size_t at)
{
    while (at > least) {
        size_t len, before = previous_character(text, at);
        if (tp_class_at(text + before, at - before, &len) != TP_CLASS_SPACE)
            break;
        at = before;
    }
    return at;
}

static size_t strip_right(const char *text, size_t n, size_t at)
{
    size_t len;
    while (at < n && tp_class_at(text + at, n - at, &len) == TP_CLASS_SPACE)
        at += len;
    return at;
}

/* The first byte from `at` on with which a token may begin, or n. */
static size_t next_start(const tp_added_set *set, const char *text, size_t n, size_t at)
{
    if (set->n_starts > 1) {
        while (at < n && !set->starts[(uint8_t)text[at]])
            at++;
        return at;
    }
    const char *found = set->n_starts && at < n ? memchr(text + at, set->start, n - at) : NULL;
    return found ? (size_t)(found - text) : n;
}

void tp_added_split(const tp_added_set *set, const char *text, size_t n, bool parse_special,
                    tp_added_fn part, void *context)
{
    size_t done = 0; /* the end of the last part */
    for (size_t at = 0; (at = next_start(set, text, n, at)) < n;) {
        size_t end = at;
        const tp_added_token *token = longest_at(set, text, n, at, &end);
        if (!token) {
            at++;
            continue;
        }
        size_t begin = at;
        at = end;
        /* What does not count is passed over whole: no token begins inside it. */
        if (token->special && !parse_special)
            continue;
        if (token->single_word && !stands_alone(text, n, begin, end))
            continue;
        if (token->lstrip)
            begin = TP_MAX(strip_left(text, 0, begin), done);
        if (token->rstrip)
            end = strip_right(text, n, end);
        if (begin >= end)
            continue; /* an earlier token's rstrip took all of it */
        if (done < begin)
            part(context, NULL, done, begin);
        part(context, token, begin, end);
        done = end;
    }
    if (done < n)
        part(context, NULL, done, n);
}
