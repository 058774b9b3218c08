/* streamed_answer.h - the text of one sample as its tokens come.
 *
 * Whole characters only; what might be the beginning of a stop string waits until it is
 * clear that it is not, and the stop string itself is never part of the text. */
#ifndef TP_ENGINE_GENERATE_STREAMED_ANSWER_H
#define TP_ENGINE_GENERATE_STREAMED_ANSWER_H

#include "engine/generate/engine.h"

typedef struct {
    const tp_tokenizer *tokenizer;
    const char *const *stops; /* stop strings, n_stops of them */
    int n_stops;
    size_t n_seen; /* tokens taken so far */
    tp_decode_stream stream;
    tp_buf text;  /* may hold what waits */
    size_t ready; /* bytes of it that are final */
} tp_streamed_answer;

void tp_streamed_answer_begin(tp_streamed_answer *a, const tp_tokenizer *tokenizer,
                              const char *const *stops, int n_stops);
/* Take what is new in `r`; `is_stop` says whether its last id is a stop id. */
void tp_streamed_answer_update(tp_streamed_answer *a, const tp_sample_result *r, bool last_is_stop);
void tp_streamed_answer_release(tp_streamed_answer *a);

#endif
