/* prompts.h - what to continue: words of the command line, standard input, JSON lines.
 *
 * A row of a JSONL file is a string or an object with one of
 *   messages   a conversation, for the chat template (with tools, if it brings some)
 *   prompt     text, or a conversation
 *   question, text
 * or with the key that the command line names. */
#ifndef TP_CLI_PROMPTS_H
#define TP_CLI_PROMPTS_H

#include "cli/text_model.h"

typedef struct {
    char *place; /* "prompts.jsonl:7" or "prompt 2": for messages */
    tp_ids ids;
    tp_buf text; /* what the ids say, the template applied */
} tp_text_prompt;

typedef struct {
    tp_text_prompt *items;
    size_t n, cap;
} tp_text_prompts;

typedef struct {
    bool chat;       /* plain text is a user's message */
    const char *key; /* of a row; NULL: look for the known ones */
} tp_prompt_options;

TP_CHECKED tp_status tp_prompts_add_text(tp_text_prompts *p, tp_text_model *m, const char *place,
                                         const char *text, size_t n,
                                         const tp_prompt_options *options, tp_error *err);
/* "-" is standard input. */
TP_CHECKED tp_status tp_prompts_add_file(tp_text_prompts *p, tp_text_model *m, const char *path,
                                         const tp_prompt_options *options, tp_error *err);
/* All of standard input as one text. */
TP_CHECKED tp_status tp_prompts_add_input(tp_text_prompts *p, tp_text_model *m,
                                          const tp_prompt_options *options, tp_error *err);
void tp_prompts_release(tp_text_prompts *p);

#endif
