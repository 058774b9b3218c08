/* answer.h - which part of a completion is the answer.
 *
 * Slices point into the text they were found in; a missing answer is a slice whose data
 * is NULL.  Of several answers of a kind the last one counts: a model may correct
 * itself, and may not hedge by writing many. */
#ifndef TP_ENGINE_REWARD_ANSWER_H
#define TP_ENGINE_REWARD_ANSWER_H

#include "base/strings.h"

/* \boxed{...}, \fbox{...} with balanced braces, or \boxed 7. */
tp_slice tp_answer_boxed(tp_slice text);
/* The rest of the line behind the last `marker` ("####", "Answer:"). */
tp_slice tp_answer_after(tp_slice text, const char *marker);
/* The contents of the last closed <tag>...</tag>. */
tp_slice tp_answer_in_tag(tp_slice text, const char *tag);
/* The last line that is not blank. */
tp_slice tp_answer_last_line(tp_slice text);
/* Without white space at both ends. */
tp_slice tp_answer_trim(tp_slice text);

/* Mathematics spelled one way: no spaces but between digits ("3 4"; not in "10\,000"), no dollar
 * signs, \left, \text{} ..., lower case.  Appends. */
void tp_answer_normalize(tp_slice text, tp_buf *out);

typedef struct {
    bool ignore_case;
    bool only_alphanumeric; /* letters and digits of all scripts, nothing else */
    bool squeeze_spaces;    /* runs of white space become one space */
} tp_answer_spelling;
/* Trimmed text in that spelling; appends. */
void tp_answer_spell(tp_slice text, const tp_answer_spelling *how, tp_buf *out);

#endif
