/* evaluate.c - prompts in flight, samples judged and counted. */
#include "engine/evaluate/evaluate.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/platform.h"
#include "engine/reward/environment_kind.h"

enum { CHUNK = 256, QUEUE_AHEAD = 256, STEPS_BETWEEN_LOOKS = 8 };
#define ARENA_BYTES ((size_t)1 << 30) /* of address space */

/* A prompt in flight. */
typedef struct {
    size_t index;
    int64_t request;
} flight;

typedef struct {
    tp_engine *engine;
    const tp_tokenizer *tokenizer;
    const tp_prompts *source;
    tp_prompt_encoder *encoder;
    tp_environment *env;
    const tp_evaluate_options *o;
    tp_evaluation *e;
    int64_t longest; /* prompt and answer */
    tp_arena arena, perturbed;
    tp_ids ids;
    tp_buf text;
    flight *flights;
    size_t n_flights, next;    /* the next prompt to submit */
    size_t *waiting;           /* prompts whose answers wait for their verdict */
    size_t n_waiting, portion; /* prompts that the arena holds */
    tp_evaluator_progress progress;
    double started;
    tp_error *err;
} evaluation;

/* Whatever bytes it has. */
static char *copy(const tp_buf *text)
{
    return memcpy(tp_new(text->len + 1, 1), tp_buf_str(text), text->len);
}

/* ---- asking ---- */

/* All samples of a prompt that is not asked at all. */
static void leave_out(evaluation *v, size_t index, const char *why)
{
    for (int64_t j = 0; j < v->e->n_samples; j++)
        tp_reward_exclude(&v->e->prompts[index].samples[j].reward, TP_REWARD_REFUSED, "%s", why);
    v->waiting[v->n_waiting++] = index;
}

/* *ret_is_asked: false where a perturbation changes nothing. */
static tp_status prepare(evaluation *v, size_t index, tp_evaluation_prompt *p, bool *ret_is_asked)
{
    tp_prompt prompt, asked;
    tp_arena_rewind(&v->arena, 0);
    tp_arena_rewind(&v->perturbed, 0);
    tp_buf_clear(&v->text);
    v->ids.len = 0;
    TP_TRY(tp_prompts_get(v->source, index, &v->arena, &prompt, v->err));
    asked = prompt;
    *ret_is_asked = !v->o->perturbation ||
                    tp_perturb_prompt(v->o->perturbation, &v->perturbed, &prompt, &asked);
    TP_TRY(tp_prompt_encode(v->encoder, &asked, &v->ids, &v->text, v->err));
    p->id = tp_strdup(prompt.id);
    p->question = tp_strdup(prompt.text);
    p->prompt = copy(&v->text);
    p->truth = tp_strdup(prompt.truth);
    p->n_prompt_tokens = (int64_t)v->ids.len;
    v->e->counts[index].id = p->id;
    v->e->counts[index].question = p->prompt;
    return TP_OK;
}

static tp_status submit(evaluation *v, size_t index)
{
    char why[160];
    tp_evaluation_prompt *p = &v->e->prompts[index];
    bool is_asked;
    TP_TRY(prepare(v, index, p, &is_asked));
    if (!is_asked) {
        v->e->n_unchanged++;
        leave_out(v, index, "the perturbation leaves it as it is");
        return TP_OK;
    }
    if (v->ids.len == 0 || p->n_prompt_tokens >= v->longest) {
        if (v->ids.len == 0)
            snprintf(why, sizeof why, "the prompt is empty");
        else
            snprintf(why, sizeof why, "the prompt has %lld tokens, at most %lld fit",
                     (long long)p->n_prompt_tokens, (long long)v->longest - 1);
        leave_out(v, index, why);
        return TP_OK;
    }
    tp_request request = {.prompt = v->ids.data,
                          .n_prompt = v->ids.len,
                          .n_samples = v->e->n_samples,
                          .max_new_tokens = v->o->max_new_tokens,
                          .sampling = v->o->sampling,
                          .seed = v->o->seed,
                          .stream = (uint64_t)index * (uint64_t)v->e->n_samples,
                          .stop_ids = v->o->stop_ids,
                          .n_stop_ids = v->o->n_stop_ids,
                          .stop_strings = v->o->stop_strings,
                          .n_stop_strings = v->o->n_stop_strings};
    flight f = {.index = index};
    tp_status status = tp_engine_submit(v->engine, &request, &f.request, v->err);
    if (status != TP_OK)
        return tp_error_prefix(v->err, status, "%s: ", p->id);
    v->flights[v->n_flights++] = f;
    return TP_OK;
}

/* Keep the engine supplied without holding all prompts at once. */
static tp_status submit_some(evaluation *v)
{
    while (v->next < v->e->n && v->n_flights * (size_t)v->e->n_samples < QUEUE_AHEAD &&
           v->n_waiting < CHUNK)
        TP_TRY(submit(v, v->next++));
    if (v->next < v->e->n && v->n_flights == 0 && v->n_waiting == 0)
        TP_TRY(submit(v, v->next++));
    return TP_OK;
}

/* ---- answers ---- */

static void keep_answer(evaluation *v, const tp_sample_result *r, tp_evaluation_sample *s)
{
    tp_buf_clear(&v->text);
    tp_sample_text(v->tokenizer, r, &v->text);
    s->text = copy(&v->text);
    s->n_text = v->text.len;
    s->n_tokens = (int64_t)r->n;
    s->finish = r->finish;
    v->e->n_answers++;
    v->e->n_new_tokens += r->n;
    v->e->n_truncated += r->finish == TP_FINISH_LENGTH;
    if (r->finish == TP_FINISH_NONFINITE)
        tp_reward_exclude(&s->reward, TP_REWARD_NAN,
                          "the model's logits are not finite: its weights are broken");
    else if (r->finish == TP_FINISH_CAPACITY)
        tp_reward_exclude(&s->reward, TP_REWARD_REFUSED,
                          "the KV cache cannot hold the answer even alone");
}

/* Requests whose samples have all ended leave the engine. */
static void collect(evaluation *v)
{
    size_t kept = 0;
    for (size_t i = 0; i < v->n_flights; i++) {
        flight f = v->flights[i];
        bool is_done = true;
        for (int64_t j = 0; j < v->e->n_samples && is_done; j++)
            is_done = tp_engine_sample(v->engine, f.request, j).finish != TP_FINISH_NONE;
        if (!is_done) {
            v->flights[kept++] = f;
            continue;
        }
        for (int64_t j = 0; j < v->e->n_samples; j++) {
            tp_sample_result r = tp_engine_sample(v->engine, f.request, j);
            keep_answer(v, &r, &v->e->prompts[f.index].samples[j]);
        }
        tp_engine_forget(v->engine, f.request);
        v->waiting[v->n_waiting++] = f.index;
    }
    v->n_flights = kept;
}

/* ---- verdicts ---- */

static double evaluation_vote(const tp_evaluation_sample *samples, int64_t n,
                              const char **ret_winner)
{
    int64_t best = 0, n_best = 0, right = 0;
    *ret_winner = NULL;
    for (int64_t i = 0; i < n; i++) {
        const char *answer = samples[i].reward.answer;
        int64_t votes = 0;
        bool is_first = true;
        for (int64_t j = 0; answer && j < n; j++)
            if (samples[j].reward.answer && strcmp(samples[j].reward.answer, answer) == 0) {
                votes++;
                is_first &= j >= i;
            }
        if (!votes || !is_first || votes < best)
            continue;
        if (votes > best) {
            best = votes;
            n_best = right = 0;
        }
        n_best++;
        right += samples[i].is_correct;
        *ret_winner = n_best == 1 ? answer : NULL;
    }
    return n_best ? (double)right / (double)n_best : NAN;
}

static void count_sample(evaluation *v, tp_eval_prompt *c, tp_evaluation_sample *s)
{
    v->e->statuses[s->reward.status]++;
    if (s->reward.status != TP_REWARD_OK) {
        c->excluded++;
        v->progress.excluded++;
        return;
    }
    if (s->reward.correct == TP_CORRECT_UNKNOWN) {
        s->is_correct = s->reward.reward >= v->o->success_threshold;
        v->e->n_threshold++;
    } else {
        s->is_correct = s->reward.correct == TP_CORRECT_YES;
    }
    c->n++;
    c->correct += s->is_correct;
    c->n_rewarded += s->reward.reward > 0;
    c->reward_sum += (long double)s->reward.reward;
    v->progress.correct += s->is_correct;
}

static void count_prompt(evaluation *v, size_t index)
{
    tp_evaluation_prompt *p = &v->e->prompts[index];
    const char *winner;
    for (int64_t j = 0; j < v->e->n_samples; j++)
        count_sample(v, &v->e->counts[index], &p->samples[j]);
    v->e->counts[index].majority = evaluation_vote(p->samples, v->e->n_samples, &winner);
    p->majority = tp_strdup(winner);
    v->progress.done += (size_t)v->e->n_samples;
}

/* Judge what has text and no verdict yet; the prompts are made once more for it, which
 * is cheaper than keeping them. */
static tp_status judge(evaluation *v, const size_t *indices, size_t n_indices,
                       tp_completion *completions, tp_evaluation_sample **samples, tp_prompt *made)
{
    size_t n = 0;
    TP_OWN(tp_rewards) rewards = {0};
    tp_arena_rewind(&v->arena, 0);
    for (size_t i = 0; i < n_indices; i++) {
        tp_evaluation_prompt *p = &v->e->prompts[indices[i]];
        TP_TRY(tp_prompts_get(v->source, indices[i], &v->arena, &made[i], v->err));
        for (int64_t j = 0; j < v->e->n_samples; j++) {
            tp_evaluation_sample *s = &p->samples[j];
            if (s->reward.status != TP_REWARD_OK)
                continue;
            samples[n] = s;
            completions[n++] = (tp_completion){.prompt = &made[i],
                                               .text = s->text,
                                               .n_text = s->n_text,
                                               .n_ids = (size_t)s->n_tokens,
                                               .sample = (uint32_t)j,
                                               .is_truncated = s->finish == TP_FINISH_LENGTH};
        }
    }
    TP_TRY(tp_environment_score(v->env, completions, n, v->o->pool, &rewards, v->err));
    for (size_t i = 0; i < n; i++) {
        samples[i]->reward = rewards.v[i];
        rewards.v[i] = (tp_reward){0};
    }
    v->e->judge_s += rewards.seconds;
    return TP_OK;
}

static tp_status judge_waiting(evaluation *v)
{
    size_t portion = TP_MIN(v->portion, v->n_waiting), most = portion * (size_t)v->e->n_samples;
    TP_FREED tp_completion *completions = tp_new(most + 1, sizeof *completions);
    TP_FREED tp_evaluation_sample **samples = tp_new(most + 1, sizeof(void *));
    TP_FREED tp_prompt *made = tp_new(portion + 1, sizeof *made);
    tp_status status = TP_OK;
    for (size_t i = 0; i < v->n_waiting && status == TP_OK; i += portion)
        status =
            judge(v, v->waiting + i, TP_MIN(portion, v->n_waiting - i), completions, samples, made);
    TP_TRY(status);
    for (size_t i = 0; i < v->n_waiting; i++)
        count_prompt(v, v->waiting[i]);
    v->n_waiting = 0;
    return TP_OK;
}

/* ---- the loop ---- */

static tp_status tell(evaluation *v)
{
    double now = tp_clock_s();
    v->progress.seconds = now - v->started;
    v->progress.tokens_per_s =
        v->e->generate_s > 0 ? (double)v->e->n_new_tokens / v->e->generate_s : 0;
    if (v->o->on_progress && !v->o->on_progress(v->o->user, &v->progress))
        return tp_fail(v->err, TP_ERR_INTERRUPTED,
                       "the evaluation was stopped after %llu of %llu "
                       "answers",
                       (unsigned long long)v->progress.done, (unsigned long long)v->progress.n);
    return TP_OK;
}

static tp_status run(evaluation *v)
{
    while (v->progress.done < v->progress.n) {
        TP_TRY(submit_some(v));
        double start = tp_clock_s();
        bool is_busy = true;
        for (int i = 0; i < STEPS_BETWEEN_LOOKS && is_busy; i++)
            TP_TRY(tp_engine_step(v->engine, &is_busy, v->err));
        v->e->generate_s += tp_clock_s() - start;
        collect(v);
        bool enough = v->n_waiting * (size_t)v->e->n_samples >= CHUNK;
        if (enough || v->n_flights == 0)
            TP_TRY(judge_waiting(v));
        TP_TRY(tell(v));
    }
    return TP_OK;
}

static tp_status prepare_all(evaluation *v)
{
    tp_evaluation *e = v->e;
    size_t bytes = tp_prompts_arena_bytes(v->source);
    e->prompts = tp_new(e->n + 1, sizeof *e->prompts);
    e->counts = tp_new(e->n + 1, sizeof *e->counts);
    v->flights = tp_new(e->n + 1, sizeof *v->flights);
    v->waiting = tp_new(e->n + 1, sizeof *v->waiting);
    for (size_t i = 0; i < e->n; i++) {
        tp_evaluation_sample *samples = tp_new((size_t)e->n_samples, sizeof *samples);
        for (int64_t j = 0; j < e->n_samples; j++)
            samples[j].reward = (tp_reward){.reward = NAN, .correct = TP_CORRECT_UNKNOWN};
        e->prompts[i].samples = samples;
    }
    v->progress.n = e->n * (size_t)e->n_samples;
    /* Room for all prompts of a chunk, unless they are huge. */
    v->portion = TP_MIN(TP_MAX(ARENA_BYTES / bytes, (size_t)1), (size_t)(CHUNK + QUEUE_AHEAD + 1));
    TP_TRY(tp_arena_init(&v->perturbed, v->o->perturbation ? 4 * bytes + (1 << 20) : 1, v->err));
    return tp_arena_init(&v->arena, v->portion * bytes, v->err);
}

tp_status tp_evaluate(tp_engine *engine, const tp_tokenizer *tokenizer, const tp_prompts *prompts,
                      tp_prompt_encoder *encoder, tp_environment *env,
                      const tp_evaluate_options *options, tp_evaluation *ret, tp_error *err)
{
    tp_evaluation e = {.n = tp_prompts_count(prompts),
                       .n_samples = options->n_samples > 0 ? options->n_samples : 1};
    evaluation v = {.engine = engine,
                    .tokenizer = tokenizer,
                    .source = prompts,
                    .encoder = encoder,
                    .env = env,
                    .o = options,
                    .e = &e,
                    .longest = options->max_length,
                    .started = tp_clock_s(),
                    .err = err};
    tp_status status = prepare_all(&v);
    if (status == TP_OK)
        status = run(&v);
    for (size_t i = 0; i < v.n_flights; i++)
        tp_engine_forget(engine, v.flights[i].request);
    e.seconds = tp_clock_s() - v.started;
    free(v.flights);
    free(v.waiting);
    tp_arena_release(&v.arena);
    tp_arena_release(&v.perturbed);
    tp_ids_release(&v.ids);
    tp_buf_release(&v.text);
    TP_HAND_OVER(status, ret, e, tp_evaluation_release(&e));
}

void tp_evaluation_release(tp_evaluation *e)
{
    for (size_t i = 0; e->prompts && i < e->n; i++) {
        tp_evaluation_prompt *p = &e->prompts[i];
        for (int64_t j = 0; p->samples && j < e->n_samples; j++) {
            free(p->samples[j].text);
            tp_reward_release(&p->samples[j].reward);
        }
        free(p->samples);
        free(p->id);
        free(p->question);
        free(p->prompt);
        free(p->truth);
        free(p->majority);
    }
    free(e->prompts);
    free(e->counts);
    *e = (tp_evaluation){0};
}

tp_status tp_evaluation_check_verdicts(const tp_evaluation *e, tp_error *err)
{
    size_t n = e->n * (size_t)e->n_samples;
    uint64_t judged = 0;
    for (size_t i = 0; i < e->n; i++)
        judged += (uint64_t)e->counts[i].n;
    for (size_t i = 0; i < n && !judged; i++) {
        const tp_reward *r =
            &e->prompts[i / (size_t)e->n_samples].samples[i % (size_t)e->n_samples].reward;
        if (r->status != TP_REWARD_OK)
            return tp_fail(err, TP_ERR_CONFIG, "none of %zu answers got a verdict; %s: %s", n,
                           tp_reward_status_name(r->status), r->why ? r->why : "left out");
    }
    return TP_OK;
}
