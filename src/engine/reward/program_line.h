/* program_line.h - what a judging program says, one line at a time.
 *
 * The format is docs/formats/environment.md. */
#ifndef TP_ENGINE_REWARD_PROGRAM_LINE_H
#define TP_ENGINE_REWARD_PROGRAM_LINE_H

#include "engine/reward/environment_kind.h"

enum { TP_PROGRAM_NO_ID = -1 };

/* Fill a fresh verdict from a line; whatever the line is, it gets a status.  Returns the
 * id, or TP_PROGRAM_NO_ID when the line has none that can be read. */
int64_t tp_program_line_read(tp_slice line, tp_reward *ret);

/* The question to it, with a newline; appends. */
void tp_program_line_write(int64_t id, const char *environment, const tp_completion *completion,
                           tp_buf *out);

#endif
