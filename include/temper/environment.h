/* environment.h - judging answers from a shared library of your own.
 *
 * A library that exports three functions can say what an answer is worth:
 *
 *     env: {mine: {type: library, path: ./libmine.so, settings: {strict: true}}}
 *
 *     #include <temper/environment.h>
 *     TP_JUDGE_EXPORT tp_judge_open_function tp_judge_open;
 *     TP_JUDGE_EXPORT tp_judge_score_function tp_judge_score;
 *     TP_JUDGE_EXPORT tp_judge_close_function tp_judge_close;
 *
 *     int tp_judge_open(const char *settings, void **state, char *message, size_t n) ...
 *
 * It runs inside the trainer: a crash or an endless loop in it is one of the trainer.  For
 * judges that may do such things there are programs (docs/formats/environment.md). */
#ifndef TEMPER_ENVIRONMENT_H
#define TEMPER_ENVIRONMENT_H

#include "temper/api.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TP_JUDGE_EXPORT __attribute__((visibility("default")))
#else
#define TP_JUDGE_EXPORT
#endif

/* An answer to judge.  Texts end with a NUL and live until the function returns. */
typedef struct {
    size_t size;           /* of this struct, as the trainer knows it */
    const char *prompt_id; /* unique in its data set */
    const char *prompt;    /* all messages one after the other */
    const char *truth;     /* the expected answer; NULL: there is none */
    const char *row;       /* the row of the data set as JSON; NULL: there is none */
    const char *completion;
    size_t completion_bytes; /* it may hold NULs */
    size_t n_tokens;
    uint32_t sample;   /* which of the prompt's answers, from 0 */
    bool is_truncated; /* cut off by the limit on tokens */
} tp_judge_question;

/* Filled in advance: reward NaN, correct -1, texts empty. */
typedef struct {
    size_t size;
    double reward;     /* not finite: the sample is left out and counted */
    int correct;       /* 1, 0; -1: not said */
    char answer[512];  /* what was taken for the answer, for majority votes */
    char message[512]; /* why there is no verdict, when -1 is returned */
} tp_judge_verdict;

/* `settings` is the section of that name as JSON ("{}" when there is none).  0, or -1 with
 * a sentence in message[0..n). */
typedef int tp_judge_open_function(const char *settings, void **state, char *message, size_t n);
/* 0, or -1: no verdict, the sample is left out and counted.  Called by one thread at a
 * time, unless the configuration says `thread_safe: true`. */
typedef int tp_judge_score_function(void *state, const tp_judge_question *question,
                                    tp_judge_verdict *verdict);
typedef void tp_judge_close_function(void *state);

#ifdef __cplusplus
}
#endif

#endif
