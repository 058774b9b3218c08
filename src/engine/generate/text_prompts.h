/* text_prompts.h - what to continue: texts, conversations, JSON lines.
 *
 * A row of a JSONL file is a string or an object with one of
 *   messages   a conversation, for the chat template (with tools, if it brings some)
 *   prompt     text, or a conversation
 *   question, text
 * or with the key that the caller names; "adapter" is the name of one beside the model, or null. */
#ifndef TP_ENGINE_GENERATE_TEXT_PROMPTS_H
#define TP_ENGINE_GENERATE_TEXT_PROMPTS_H

#include "engine/generate/text_model.h"

enum { TP_PROMPT_UNNAMED = -1 };

typedef struct {
    char *place; /* "prompts.jsonl:7" or "prompt 2": for messages */
    tp_ids ids;
    tp_buf text; /* what the ids say, the template applied */
    int32_t
        adapter; /* of those beside the model, from 1; 0: none; TP_PROMPT_UNNAMED: nobody said */
} tp_text_prompt;

typedef struct {
    tp_text_prompt *items;
    size_t n, cap;
} tp_prompt_list;

typedef struct {
    bool chat;       /* plain text is a user's message */
    const char *key; /* of a row; NULL: look for the known ones */
} tp_prompt_options;

TP_CHECKED tp_status tp_prompt_list_add_text(tp_prompt_list *p, tp_text_model *m, const char *place,
                                             const char *text, size_t n,
                                             const tp_prompt_options *options, tp_error *err);
/* "-" is standard input. */
TP_CHECKED tp_status tp_prompt_list_add_file(tp_prompt_list *p, tp_text_model *m, const char *path,
                                             const tp_prompt_options *options, tp_error *err);
/* All of standard input as one text. */
TP_CHECKED tp_status tp_prompt_list_add_input(tp_prompt_list *p, tp_text_model *m,
                                              const tp_prompt_options *options, tp_error *err);
void tp_prompt_list_release(tp_prompt_list *p);

#endif
