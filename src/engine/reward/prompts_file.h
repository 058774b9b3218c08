/* prompts_file.h - the rows of a JSONL file as prompts.
 *
 * A row asks with "messages" (an answer of the assistant at its end is what is expected),
 * or with a text or message list under "prompt", "question", "problem", "instruction" or
 * "input"; what is expected stands under "answer", "solution", "ground_truth",
 * "expected_answer", "completion", "output", "target" or "label".  Configuration can
 * name both. */
#ifndef TP_ENGINE_REWARD_PROMPTS_FILE_H
#define TP_ENGINE_REWARD_PROMPTS_FILE_H

#include "engine/data/schema.h"
#include "engine/reward/environment_kind.h"

/* The arena needs tp_prompt_row_arena_bytes(). */
TP_CHECKED tp_status tp_prompt_row_read(const tp_schema_options *options, const tp_row *row,
                                        tp_arena *arena, tp_prompt *ret, tp_error *err);
size_t tp_prompt_row_arena_bytes(const tp_schema_options *options, size_t longest_row);

#endif
