/* render.h - an example as token ids, and which of them are to be learned.
 *
 * With a chat template the whole conversation is rendered and tokenised at once.
 * What the assistant wrote comes from the template's {% generation %} blocks, or,
 * where it has none, from prefixes: for the assistant's message i
 *
 *     before = render(messages[:i], add_generation_prompt)
 *     after  = render(messages[:i + 1])
 *
 * the span is what `after` adds to `before`.  That is only true when each is a
 * prefix of the whole, which is verified: templates that rewrite earlier turns are
 * refused.  A token that reaches into a span belongs to it.  With learn_header `before` has no
 * generation prompt, which then is part of the span.
 *
 * Without a template contents are joined as they are and each message is tokenised
 * on its own, so the ids of the prompt are a prefix of the ids of the whole, as
 * they will be in generation. */
#ifndef TP_ENGINE_DATA_RENDER_H
#define TP_ENGINE_DATA_RENDER_H

#include "engine/data/schema.h"
#include "text/template/chat.h"
#include "text/tokenizer/tokenizer.h"

typedef struct {
    const char *chat_template; /* NULL: the tokenizer's; "": none, contents are joined; else the
                                  template itself */
    const tp_json *variables;  /* further ones for the template, an object; or NULL */
    bool add_bos, add_eos;     /* where missing; no effect when the tokenizer names none */
    bool only_unmask_final;    /* learn the last message alone */
    bool learn_header;     /* and what the template puts before an answer, where prefixes tell */
    size_t max_seq_length; /* cut behind this many tokens; 0 = never */
} tp_render_options;

typedef struct tp_renderer tp_renderer; /* immutable: many threads may share one */

/* `tok` and what the options point to must outlive the renderer. */
TP_CHECKED tp_status tp_renderer_new(const tp_tokenizer *tok, const tp_render_options *options,
                                     tp_renderer **ret, tp_error *err);
void tp_renderer_free(tp_renderer *renderer); /* NULL is a no-op */
const tp_tokenizer *tp_renderer_tokenizer(const tp_renderer *renderer);
/* The template in use, or NULL. */
const char *tp_renderer_template(const tp_renderer *renderer);
/* Of conversations, with or without tools, learn_header says what is learned, and is set. */
bool tp_renderer_learns_headers(const tp_renderer *renderer);

/* Work space and result of one thread. */
typedef struct {
    tp_tokenizer_scratch *scratch;
    tp_template_memory memory;
    tp_ids ids, starts;
    tp_buf mask; /* one byte per id: 1 where the id is a target to learn; the first never is,
                    for nothing predicts it */
    tp_buf text, other;
    tp_spans spans; /* of `text`, in bytes, ascending */
    size_t spans_cap;
    size_t n_targets; /* ones in mask */
    bool truncated;   /* cut to max_seq_length */
    bool straddles;   /* a token begins before a learned span and reaches into it */
} tp_rendered;

void tp_rendered_init(tp_rendered *r, const tp_renderer *renderer);
void tp_rendered_release(tp_rendered *r); /* zeroed is a no-op */

/* Render and tokenise; the arena is rewound to where it was.  An example without
 * anything to learn is no error: n_targets is 0. */
TP_CHECKED tp_status tp_render(const tp_renderer *renderer, const tp_example *example,
                               const tp_row *row, tp_arena *arena, tp_rendered *ret, tp_error *err);

/* Print ids with their mask for people: lines with what is learned start with "> ",
 * others with "| "; control characters are escaped.  At most max_tokens of them; 0 = all. */
void tp_render_show(const tp_tokenizer *tok, const int32_t *ids, const uint8_t *mask, size_t n,
                    size_t max_tokens, tp_buf *out);

#endif
