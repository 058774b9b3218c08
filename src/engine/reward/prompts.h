/* prompts.h - where the questions come from.
 *
 * A source is a JSONL file (whatever its keys, see data/schema.h) or a generator that
 * an environment brings along (arithmetic, countdown).  Prompt `index` is a pure
 * function of the source and the index, so a run can be resumed anywhere and two
 * evaluations ask the same questions.  Sources are read-only once open: threads may
 * share one. */
#ifndef TP_ENGINE_REWARD_PROMPTS_H
#define TP_ENGINE_REWARD_PROMPTS_H

#include "config/config.h"
#include "engine/data/arithmetic.h"
#include "engine/data/schema.h"
#include "text/tokenizer/tokenizer.h"

/* One question; what it points to lives in the arena it was made in, or in the source. */
typedef struct {
    const char *id;          /* "arithmetic/validation/12", "gsm8k_test.jsonl:12" */
    const tp_json *messages; /* [{"role", "content"}] up to the model's turn */
    const tp_json *tools;    /* for the chat template, or NULL */
    const char *text;        /* the contents one after the other: without a chat template */
    const char *truth;       /* the expected answer as text; NULL: the source names none */
    const tp_json *row;      /* all that the source says about it, an object; NULL: nothing */
} tp_prompt;

/* Names as under data.train and data.validation; zeroed means default. */
typedef struct {
    const char *dataset_name; /* a generator of tp_environment_kinds, or any name with: */
    const char *data_path;    /* a JSONL file */
    tp_schema_options rows;   /* of the file, without the texts of its files; these stay */
    tp_split split;
    double split_validation_size; /* share of a file that belongs to validation; 0: all rows
                                     belong to either split */
    uint64_t seed;                /* of that division, and of a generator that names none */
    uint64_t max_samples;         /* first so many prompts; 0: all */

    /* Settings of a generator: the section data.<dataset_name> of a bound configuration;
     * NULL: its defaults. */
    tp_config *config;
    const tp_json *generator;
} tp_prompts_options;

typedef struct tp_prompts tp_prompts;

/* Is there where questions come from: a file's path, or a generator's name? */
TP_CHECKED tp_status tp_prompts_check_source(const char *dataset_name, const char *data_path,
                                             tp_error *err);

TP_CHECKED tp_status tp_prompts_open(const tp_prompts_options *options, tp_prompts **ret,
                                     tp_error *err);
void tp_prompts_close(tp_prompts *prompts); /* NULL is a no-op */

uint64_t tp_prompts_count(const tp_prompts *prompts);
bool tp_prompts_are_made(const tp_prompts *prompts); /* by a generator, not read from a file */
/* index < count.  One prompt takes at most tp_prompts_arena_bytes() of the arena. */
TP_CHECKED tp_status tp_prompts_get(const tp_prompts *prompts, uint64_t index, tp_arena *arena,
                                    tp_prompt *ret, tp_error *err);
size_t tp_prompts_arena_bytes(const tp_prompts *prompts);
/* Everything that decides the prompts, in one line: for logs and fingerprints. */
void tp_prompts_describe(const tp_prompts *prompts, tp_buf *out);

/* Prompts as token ids: through the chat template with the model's turn opened, or the
 * contents one after the other.  `chat_template` is NULL (the tokenizer's own), "" (none)
 * or Jinja text; add_bos puts the beginning-of-sequence token first where the tokenizer has
 * one and it is not there.  `variables` (NULL, or an object that stays) are further ones of
 * the template. */
typedef struct tp_prompt_encoder tp_prompt_encoder;
TP_CHECKED tp_status tp_prompt_encoder_new(const tp_tokenizer *tokenizer, const char *chat_template,
                                           const tp_json *variables, bool add_bos,
                                           tp_prompt_encoder **ret, tp_error *err);
void tp_prompt_encoder_free(tp_prompt_encoder *encoder); /* NULL is a no-op */
/* Appends; not thread-safe.  (optional) ret_text: what the ids spell. */
TP_CHECKED tp_status tp_prompt_encode(tp_prompt_encoder *encoder, const tp_prompt *prompt,
                                      tp_ids *ids, tp_buf *ret_text, tp_error *err);
/* Every prompt of a file once, so that one that the template refuses is told before the work
 * begins; *ret_too_long of them have no tokens, or leave no room for one more in
 * `max_length`.  Made-up questions are alike: of them none is looked at. */
TP_CHECKED tp_status tp_prompts_check(const tp_prompts *prompts, tp_prompt_encoder *encoder,
                                      int64_t max_length, bool (*should_stop)(void *user),
                                      void *user, uint64_t *ret_too_long, tp_error *err);

#endif
