/* logits.h - what an engine thinks of the token after a prompt. */
#ifndef TP_TESTS_SUPPORT_LOGITS_H
#define TP_TESTS_SUPPORT_LOGITS_H

#include "engine/generate/engine_internal.h"

/* f32 [vocab]; nothing may be in flight. */
static inline tp_status logits_after(tp_engine *engine, const int32_t *prompt, size_t n,
                                     float *logits, tp_error *err)
{
    int64_t id;
    tp_request r = {.prompt = prompt, .n_prompt = n, .max_new_tokens = 1};
    TP_TRY(tp_engine_submit(engine, &r, &id, err));
    TP_TRY(tp_engine_run(engine, err));
    tp_engine_forget(engine, id);
    size_t vocab = (size_t)tp_exec_output(engine->exec, TP_ENGINE_OUT_LOGITS)->dim[1];
    return tp_exec_read(engine->exec, TP_ENGINE_OUT_LOGITS, 0, logits, vocab * sizeof *logits, err);
}

#endif
