/* judge.c - a judge of one's own, as a shared library: is the answer a palindrome?
 *
 *     cc -shared -fPIC -I include examples/judge.c -o libjudge.so
 *
 *     env: {palindrome: {type: library, path: ./libjudge.so, settings: {shortest: 3}}}  */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <temper/environment.h>

TP_JUDGE_EXPORT tp_judge_open_function tp_judge_open;
TP_JUDGE_EXPORT tp_judge_score_function tp_judge_score;
TP_JUDGE_EXPORT tp_judge_close_function tp_judge_close;

typedef struct {
    size_t shortest;
} judge;

int tp_judge_open(const char *settings, void **state, char *message, size_t n)
{
    judge *j = malloc(sizeof *j);
    if (!j) {
        snprintf(message, n, "out of memory");
        return -1;
    }
    /* One number is all there is to find; a real judge would parse the JSON. */
    const char *shortest = strstr(settings, "\"shortest\":");
    j->shortest = shortest ? strtoul(shortest + 11, NULL, 10) : 1;
    *state = j;
    return 0;
}

int tp_judge_score(void *state, const tp_judge_question *question, tp_judge_verdict *verdict)
{
    const judge *j = state;
    const char *text = question->completion;
    size_t n = question->completion_bytes;
    if (question->is_truncated) {
        snprintf(verdict->message, sizeof verdict->message, "half an answer cannot be judged");
        return -1;
    }
    verdict->reward = n >= j->shortest;
    for (size_t i = 0; i < n / 2; i++)
        if (text[i] != text[n - 1 - i])
            verdict->reward = 0;
    verdict->correct = verdict->reward == 1;
    snprintf(verdict->answer, sizeof verdict->answer, "%s", text);
    return 0;
}

void tp_judge_close(void *state) { free(state); }
