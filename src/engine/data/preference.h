/* preference.h - pairs of a better and a worse answer, as token ids.
 *
 * Rows of a JSONL file in the shapes that are about:
 *
 *     {"prompt", "chosen", "rejected"}       strings or lists of messages (TRL, NeMo RL)
 *     {"chosen", "rejected"}                 the prompt is what both begin with
 *     {"prompt": text, "chosen": [..], "rejected": [..]} with whole conversations: they have
 *                                            the prompt, the text is a copy (UltraFeedback)
 *     {"context": [..], "completions": [{"rank", "completion": [..]}, ..]}
 *                                            two of them, the lower rank is better (NeMo RL)
 *
 * Both answers are rendered behind the prompt as SFT renders a conversation; what counts
 * is the last message.  Everything is in memory: answers are read in any order, again and
 * again, and preference sets are small beside the model. */
#ifndef TP_ENGINE_DATA_PREFERENCE_H
#define TP_ENGINE_DATA_PREFERENCE_H

#include "engine/data/render.h"

typedef struct {
    const int32_t *ids;
    const uint8_t *mask; /* 1 = part of the answer */
    int32_t n, n_targets;
} tp_preference_answer;

typedef struct {
    tp_preference_answer chosen, rejected;
    uint64_t line;
} tp_preference_pair;

typedef struct {
    const char *path;
    const char *prompt_key, *chosen_key, *rejected_key; /* NULL: "prompt", "chosen", "rejected" */
    const char *system_prompt, *prompt_template;        /* see schema.h */
    const char *separator;
    const tp_renderer *renderer; /* with only_unmask_final */
    int64_t skip_bad;            /* rows that may be left out because they are wrong; < 0: any */
    /* (optional), see corpus.h */
    bool (*progress)(void *user, const char *what, uint64_t done, uint64_t total);
    void *user;
} tp_preference_options;

typedef struct {
    tp_preference_pair *pairs;
    uint64_t n;
    const char *kind;      /* "prompt, chosen, rejected", ... */
    uint64_t n_bad;        /* rows left out because they are wrong */
    uint64_t n_empty;      /* rows left out because an answer had no tokens (or was cut off) */
    uint64_t n_truncated;  /* answers that were cut */
    uint64_t n_straddling; /* answers whose first token begins in the prompt */
    uint64_t n_equal;      /* pairs of equal answers */
    uint64_t n_early;      /* pairs that differ before their last message */
    uint64_t n_system;     /* pairs with a column "system" */
    uint64_t longest_pair; /* tokens */
    uint64_t n_tokens;
    char first_bad[512]; /* "" or the first message */
    char source_hash[33];
    tp_ids ids; /* memory of the pairs */
    tp_buf masks;
} tp_preferences;

TP_CHECKED tp_status tp_preferences_read(const tp_preference_options *options, tp_preferences *ret,
                                         tp_error *err);
void tp_preferences_release(tp_preferences *p); /* zeroed is a no-op */

/* One row: appends its two answers to p's memory and its pair, whose pointers are offsets
 * until the file is read.  For tests and the fuzzer. */
typedef struct tp_preference_reader tp_preference_reader;
TP_CHECKED tp_status tp_preference_reader_new(const tp_preference_options *options,
                                              size_t longest_row, tp_preference_reader **ret,
                                              tp_error *err);
void tp_preference_reader_free(tp_preference_reader *reader); /* NULL is a no-op */
TP_CHECKED tp_status tp_preference_read_row(tp_preference_reader *reader, const tp_row *row,
                                            tp_preferences *p, tp_error *err);

#endif
