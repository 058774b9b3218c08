/* grpo_answers.c - answers of a rollout as they are kept, and what follows from a verdict. */
#include <math.h>

#include "engine/algorithms/grpo_ranks.h"

void tp_grpo_reserve(grpo_rollout *r, uint32_t groups, uint32_t samples)
{
    if (r->n_groups + groups > r->cap_groups) {
        r->cap_groups = 2 * (r->n_groups + groups);
        r->groups = tp_grow(r->groups, r->cap_groups, sizeof *r->groups);
    }
    if (r->n_samples + samples > r->cap_samples) {
        r->cap_samples = 2 * (r->n_samples + samples);
        r->samples = tp_grow(r->samples, r->cap_samples, sizeof *r->samples);
    }
}

bool tp_grpo_can_train(const trainer *t, const grpo_sample *s)
{
    return s->n_answer > 0 && !(options(t)->overlong_filtering && grpo_was_cut(s));
}

/* Names of what a program measured are the judge's. */
static const char *keep_verdict(grpo *g, const tp_reward *verdict)
{
    TP_OWN(tp_buf) text = {0};
    tp_json_w w = tp_json_w_open(&text, 0, '{');
    if (verdict->correct != TP_CORRECT_UNKNOWN)
        tp_json_w_put_bool(&w, "correct", verdict->correct == TP_CORRECT_YES);
    if (verdict->answer)
        tp_json_w_put_str(&w, "answer", verdict->answer);
    if (verdict->why)
        tp_json_w_put_str(&w, "why", verdict->why);
    if (verdict->n_parts)
        tp_json_w_put_begin(&w, "parts", '{');
    for (size_t i = 0; i < verdict->n_parts; i++)
        tp_json_w_put_known(&w, verdict->parts[i].name, verdict->parts[i].value);
    if (verdict->n_parts)
        tp_json_w_end(&w, '}');
    tp_json_w_end(&w, '}');
    return tp_arena_strndup(&g->arena, text.data, text.len);
}

void tp_grpo_settle(trainer *t, grpo_sample *s, const tp_reward *verdict, grpo_counts *counts)
{
    s->status = verdict->status;
    s->correct = verdict->correct;
    s->verdict = t->o->log_samples ? keep_verdict(t->own, verdict) : NULL;
    s->raw_reward = verdict->reward;
    s->is_valid = verdict->status == TP_REWARD_OK && isfinite(verdict->reward) && s->n_answer > 0;
    s->scaled_reward = tp_reward_scale(&options(t)->scaling, s->raw_reward);
    s->reward =
        tp_reward_shape(&options(t)->shaping, s->scaled_reward, s->n_answer, grpo_was_cut(s));
    s->is_trained = s->is_valid && tp_grpo_can_train(t, s);
    counts->by_status[verdict->status]++;
    counts->overlong_filtered += s->is_valid && !s->is_trained;
}
