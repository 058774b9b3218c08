/* text_batch.c - many prompts together, their answers in order as they grow. */

#include "api/text_generator.h"
#include "base/clock.h"
#include "base/platform.h"
#include "engine/generate/text_prompts.h"
#include "engine/model/adapter.h"

enum { DEFAULT_NEW_TOKENS = 128, DEFAULT_RUNNING = 64 };

/* ---- prompts ---- */

struct tp_text_prompts {
    tp_text_generator *gen;
    tp_prompt_list list;
};

tp_status tp_text_prompts_new(tp_text_generator *gen, tp_text_prompts **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(gen && ret, err);
    TP_TRY(tp_text_model_need_tokenizer(&gen->m, err));
    tp_text_prompts *p = tp_new(1, sizeof *p);
    p->gen = gen;
    *ret = p;
    return TP_OK;
}

void tp_text_prompts_free(tp_text_prompts *p)
{
    if (!p)
        return;
    tp_prompt_list_release(&p->list);
    free(p);
}

tp_status tp_text_prompts_add(tp_text_prompts *p, const char *place, const char *text, size_t n,
                              bool chat, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(p && place && (text || !n), err);
    const tp_prompt_options options = {.chat = chat};
    return tp_prompt_list_add_text(&p->list, &p->gen->m, place, text, n, &options, err);
}

tp_status tp_text_prompts_add_file(tp_text_prompts *p, const char *path, const char *key, bool chat,
                                   tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(p && path, err);
    const tp_prompt_options options = {.chat = chat, .key = key};
    return tp_prompt_list_add_file(&p->list, &p->gen->m, path, &options, err);
}

tp_status tp_text_prompts_add_input(tp_text_prompts *p, bool chat, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(p, err);
    const tp_prompt_options options = {.chat = chat};
    return tp_prompt_list_add_input(&p->list, &p->gen->m, &options, err);
}

tp_status tp_text_prompts_set_adapter(tp_text_prompts *p, size_t index, const char *adapter,
                                      tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(p && index < p->list.n, err);
    return tp_text_generator_adapter(p->gen, adapter, &p->list.items[index].adapter, err);
}

size_t tp_text_prompts_count(const tp_text_prompts *p) { return p->list.n; }

/* ---- running ---- */

typedef struct {
    tp_text_generator *gen;
    const tp_text_request *request;
    const tp_prompt_list *prompts;
    tp_text_settings settings;
    tp_text_take *take;
    void *user;
    int64_t *ids; /* of the requests */
    int64_t samples;
    int32_t adapter;           /* of prompts that name none */
    size_t prompt;             /* the one to go out next ... */
    int64_t sample;            /* ... and which of its answers */
    tp_streamed_answer answer; /* begun when it has a tokenizer */
    size_t n_given;            /* bytes of it */
    double begin_s;
    int64_t n_done, by_finish[TP_FINISH_KINDS];
} batch;

static tp_text_work work_of(const batch *b)
{
    tp_engine_stats s = tp_engine_get_stats(b->gen->m.engine);
    return (tp_text_work){.done = b->n_done,
                          .n = (int64_t)b->prompts->n * b->samples,
                          .running = s.running,
                          .waiting = s.waiting,
                          .prompt_tokens = s.prefill_tokens + s.shared_tokens,
                          .new_tokens = s.decode_tokens,
                          .seconds = s.seconds,
                          .prefill_s = s.prefill_s,
                          .elapsed_s = tp_clock_s() - b->begin_s,
                          .kv_peak_bytes = s.peak_bytes,
                          .drafted_tokens = s.drafted_tokens,
                          .accepted_tokens = s.accepted_tokens,
                          .steps = s.steps};
}

static int32_t adapter_of(const batch *b, const tp_text_prompt *prompt)
{
    return prompt->adapter == TP_PROMPT_UNNAMED ? b->adapter : prompt->adapter;
}

static bool hand_out(batch *b, const tp_sample_result *r)
{
    const tp_text_prompt *prompt = &b->prompts->items[b->prompt];
    const tp_text_work work = work_of(b);
    int32_t adapter = adapter_of(b, prompt);
    const tp_text_answer answer = {
        .prompt = (int64_t)b->prompt,
        .sample = b->sample,
        .text = tp_buf_str(&b->answer.text),
        .n_text = b->answer.ready,
        .n_new = b->answer.ready - b->n_given,
        .finish = r->finish == TP_FINISH_NONE ? NULL : tp_finish_name(r->finish),
        .stop_string = r->stop_string >= 0 ? b->request->stop_strings[r->stop_string] : NULL,
        .prompt_text = tp_buf_str(&prompt->text),
        .n_prompt_text = prompt->text.len,
        .prompt_ids = prompt->ids.data,
        .n_prompt_ids = prompt->ids.len,
        .ids = r->ids,
        .n_ids = r->n,
        .logps = r->logp,
        .sampled_logps = r->sampled_logp,
        .work = &work,
        .adapter = adapter ? tp_model_adapter_name(b->gen->m.model, (size_t)adapter - 1) : NULL};
    b->n_given = b->answer.ready;
    return !b->take || b->take(b->user, &answer);
}

static void begin_next(batch *b)
{
    b->answer.tokenizer = NULL;
    b->n_given = 0;
    if (++b->sample == b->samples) {
        tp_engine_forget(b->gen->m.engine, b->ids[b->prompt]);
        b->sample = 0;
        b->prompt++;
    }
}

/* Everything that can go out now.  False: nobody takes any more. */
static bool give_ready(batch *b)
{
    const tp_text_request *request = b->request;
    while (b->prompt < b->prompts->n) {
        tp_sample_result r = tp_engine_sample(b->gen->m.engine, b->ids[b->prompt], b->sample);
        if (!b->answer.tokenizer)
            tp_streamed_answer_begin(&b->answer, b->gen->m.tokenizer, request->stop_strings,
                                     (int)request->n_stop_strings);
        tp_streamed_answer_update(&b->answer, &r, r.finish == TP_FINISH_STOP && r.stop_string < 0);
        b->n_done += r.finish != TP_FINISH_NONE;
        b->by_finish[r.finish]++;
        if (!hand_out(b, &r))
            return false;
        if (r.finish == TP_FINISH_NONE)
            return true;
        begin_next(b);
    }
    return true;
}

static tp_status submit_all(batch *b, tp_error *err)
{
    for (size_t i = 0; i < b->prompts->n; i++) {
        const tp_text_prompt *prompt = &b->prompts->items[i];
        TP_OWN(tp_ids) stops = {0};
        tp_request request;
        tp_status status = tp_text_generator_request(b->gen, b->request, &b->settings, &prompt->ids,
                                                     &stops, &request, err);
        if (status == TP_OK) {
            request.n_samples = b->samples;
            request.adapter = adapter_of(b, prompt);
            request.stream = (uint64_t)i * (uint64_t)b->samples;
            status = tp_engine_submit(b->gen->m.engine, &request, &b->ids[i], err);
        }
        if (status != TP_OK)
            return tp_error_prefix(err, status, "%s: ", prompt->place);
    }
    return TP_OK;
}

static tp_status check_answers(const batch *b, tp_error *err)
{
    for (int kind = 0; kind < TP_FINISH_KINDS; kind++) {
        tp_status status = TP_OK;
        if (b->by_finish[kind] > 0)
            status = tp_text_generator_check_finish(b->gen, (tp_finish)kind, err);
        if (status != TP_OK)
            return tp_error_prefix(err, status, "%lld of %lld answers ended because ",
                                   (long long)b->by_finish[kind], (long long)work_of(b).n);
    }
    return TP_OK;
}

static tp_status run_all(batch *b, tp_error *err)
{
    const tp_text_request *r = b->request;
    bool is_busy = true;
    b->begin_s = tp_clock_s();
    while (is_busy) {
        TP_TRY(tp_engine_step(b->gen->m.engine, &is_busy, err));
        if (!give_ready(b) || (r->should_stop && r->should_stop(r->user)))
            break;
    }
    return check_answers(b, err);
}

/* Prompts and answers as long as they are asked for, within what is allowed. */
static int64_t needed_length(const batch *b)
{
    const tp_text_generator *gen = b->gen;
    int64_t longest = 0, of_file = gen->m.defaults.max_length;
    for (size_t i = 0; i < b->prompts->n; i++)
        longest = TP_MAX(longest, (int64_t)b->prompts->items[i].ids.len);
    int64_t length = b->settings.max_new_tokens > 0 ? longest + b->settings.max_new_tokens
                                                    : TP_MAX(of_file, longest + 1);
    return gen->o.most_length ? TP_MIN(length, gen->o.most_length) : length;
}

static tp_status run(batch *b, tp_error *err)
{
    const tp_text_settings usual = {.max_new_tokens = DEFAULT_NEW_TOKENS};
    tp_text_generator *gen = b->gen;
    int64_t running = gen->o.max_running ? gen->o.max_running : DEFAULT_RUNNING;
    TP_TRY(tp_text_generator_adapter(gen, b->request->adapter, &b->adapter, err));
    TP_TRY(tp_text_generator_settle(gen, b->request, &usual, &b->settings, err));
    if (b->samples > 1 && b->settings.temperature == 0)
        tp_text_generator_notice(gen, "at temperature 0 all samples of a prompt are alike; give a "
                                      "temperature");
    TP_TRY(tp_text_generator_start(gen, needed_length(b),
                                   TP_MIN(running, (int64_t)b->prompts->n * b->samples), err));
    TP_TRY(submit_all(b, err));
    tp_engine_reset_stats(gen->m.engine);
    return run_all(b, err);
}

tp_status tp_text_generator_run(tp_text_generator *gen, const tp_text_prompts *prompts,
                                const tp_text_request *request, tp_text_take *take, void *user,
                                tp_text_work *ret_work, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_text_request r;
    if (!gen || !prompts || prompts->gen != gen || !prompts->list.n)
        return tp_fail(err, TP_ERR_ARG,
                       "tp_text_generator_run: the prompts are none, or another generator's");
    TP_TRY(tp_text_request_read(request, &r, err));
    batch b = {.gen = gen,
               .request = &r,
               .prompts = &prompts->list,
               .take = take,
               .user = user,
               .samples = r.samples ? r.samples : 1};
    b.ids = tp_new(b.prompts->n, sizeof *b.ids);
    for (size_t i = 0; i < b.prompts->n; i++)
        b.ids[i] = -1;
    tp_status status = run(&b, err);
    if (ret_work && gen->m.engine)
        *ret_work = work_of(&b);
    for (size_t i = b.prompt; i < b.prompts->n && gen->m.engine; i++)
        if (b.ids[i] >= 0)
            tp_engine_forget(gen->m.engine, b.ids[i]);
    tp_streamed_answer_release(&b.answer);
    free(b.ids);
    return status;
}

/* ---- JSON ---- */

static void write_ids(tp_json_w *w, const char *key, const int32_t *ids, size_t n)
{
    tp_json_w_put_begin(w, key, '[');
    for (size_t i = 0; i < n; i++)
        tp_json_w_i64(w, ids[i]);
    tp_json_w_end(w, ']');
}

static void write_floats(tp_json_w *w, const char *key, const float *x, size_t n)
{
    tp_json_w_put_begin(w, key, '[');
    for (size_t i = 0; i < n; i++) {
        char text[32];
        snprintf(text, sizeof text, "%.9g", (double)x[i]);
        tp_json_w_raw(w, text);
    }
    tp_json_w_end(w, ']');
}

void tp_text_answer_json(const tp_text_answer *a, char **ret_text, size_t *ret_n)
{
    tp_buf out = {0};
    tp_json_w w = tp_json_w_open(&out, 0, '{');
    tp_json_w_put_i64(&w, "index", a->prompt);
    tp_json_w_put_i64(&w, "sample", a->sample);
    if (a->adapter)
        tp_json_w_put_str(&w, "adapter", a->adapter);
    tp_json_w_put_strn(&w, "prompt", a->prompt_text, a->n_prompt_text);
    tp_json_w_put_strn(&w, "text", a->text, a->n_text);
    tp_json_w_put_str(&w, "finish_reason", a->finish ? a->finish : "running");
    tp_json_w_put_str(&w, "stop_string", a->stop_string);
    write_ids(&w, "prompt_ids", a->prompt_ids, a->n_prompt_ids);
    write_ids(&w, "ids", a->ids, a->n_ids);
    write_floats(&w, "logprobs", a->logps, a->n_ids);
    write_floats(&w, "sampled_logprobs", a->sampled_logps, a->n_ids);
    tp_json_w_close(&w, '}');
    *ret_text = out.data;
    *ret_n = out.len;
}
