/* text_generator.h - the generator of temper/generator.h from inside: chat.c talks with it. */
#ifndef TP_API_TEXT_GENERATOR_H
#define TP_API_TEXT_GENERATOR_H

#include "engine/generate/settings.h"
#include "engine/generate/streamed_answer.h"
#include "engine/generate/text_model.h"
#include "temper/generator.h"

struct tp_text_generator {
    tp_text_model m;
    tp_text_generator_options o;
    tp_engine_options engine; /* to start with */
    /* Of m.defaults, for the requests that do not ignore them. */
    tp_status refused;
    tp_error why_refused;
};

/* Say it to whoever opened the generator. */
void tp_text_generator_notice(void *generator, const char *text);
/* Memory and weights, unless they are there. */
TP_CHECKED tp_status tp_text_generator_start(tp_text_generator *gen, int64_t max_length,
                                             int64_t max_running, tp_error *err);
/* The caller's request, whole and checked. */
TP_CHECKED tp_status tp_text_request_read(const tp_text_request *theirs, tp_text_request *ret,
                                          tp_error *err);
/* What is unset: from the folder's file, else from `usual`. */
TP_CHECKED tp_status tp_text_generator_settle(tp_text_generator *gen, const tp_text_request *r,
                                              const tp_text_settings *usual, tp_text_settings *ret,
                                              tp_error *err);
/* The number of the adapter of this name, from 1; NULL: 0, the model itself. */
TP_CHECKED tp_status tp_text_generator_adapter(const tp_text_generator *gen, const char *name,
                                               int32_t *ret, tp_error *err);
/* Continue ids; `stream` is the number of the answer, for its random numbers.  (optional) *text
 * becomes the answer's. */
TP_CHECKED tp_status tp_text_generator_answer_ids(tp_text_generator *gen, const tp_ids *prompt,
                                                  const tp_text_request *request,
                                                  const tp_text_settings *settings, uint64_t stream,
                                                  tp_text_result *ret, tp_buf *text, tp_error *err);
/* An answer that ended so is an error: what is wrong, and the remedy. */
TP_CHECKED tp_status tp_text_generator_check_finish(const tp_text_generator *gen, tp_finish finish,
                                                    tp_error *err);
/* The engine's request for them; `stops` (zeroed) is released after it was submitted. */
TP_CHECKED tp_status tp_text_generator_request(const tp_text_generator *gen,
                                               const tp_text_request *r,
                                               const tp_text_settings *settings,
                                               const tp_ids *prompt, tp_ids *stops, tp_request *ret,
                                               tp_error *err);

#endif
