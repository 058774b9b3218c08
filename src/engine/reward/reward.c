/* reward.c - filling in and freeing verdicts. */
#include <math.h>

#include "engine/reward/environment_kind.h"

const char *tp_reward_status_name(tp_reward_status status)
{
    static const char *const names[TP_REWARD_KINDS] = {"ok",      "nan",      "timeout",
                                                       "crashed", "nonsense", "refused"};
    return names[status];
}

void tp_reward_give(tp_reward *r, double reward, tp_correct correct, const char *answer)
{
    if (!isfinite(reward)) {
        tp_reward_exclude(r, TP_REWARD_NAN, "the reward is %s", isnan(reward) ? "NaN" : "infinite");
        return;
    }
    free(r->answer);
    r->status = TP_REWARD_OK;
    r->reward = reward;
    r->correct = correct;
    r->answer = tp_strdup(answer);
}

void tp_reward_lacks_truth(tp_reward *r, const char *prompt_id)
{
    tp_reward_exclude(r, TP_REWARD_REFUSED, "%s " TP_NO_TRUTH, prompt_id);
}

void tp_reward_exclude(tp_reward *r, tp_reward_status status, const char *fmt, ...)
{
    char text[512];
    TP_FORMAT(text, fmt);
    free(r->why);
    free(r->answer);
    r->status = status;
    r->reward = NAN;
    r->correct = TP_CORRECT_UNKNOWN;
    r->answer = NULL;
    r->why = tp_strdup(text);
}

void tp_reward_add_part(tp_reward *r, const char *name, double value)
{
    r->parts = tp_grow(r->parts, r->n_parts + 1, sizeof *r->parts);
    r->parts[r->n_parts++] = (tp_reward_part){tp_strdup(name), value};
}

void tp_reward_release(tp_reward *r)
{
    for (size_t i = 0; i < r->n_parts; i++)
        free(r->parts[i].name);
    free(r->parts);
    free(r->answer);
    free(r->why);
    *r = (tp_reward){.reward = NAN, .correct = TP_CORRECT_UNKNOWN};
}

void tp_rewards_release(tp_rewards *rewards)
{
    for (size_t i = 0; i < rewards->n; i++)
        tp_reward_release(&rewards->v[i]);
    free(rewards->v);
    *rewards = (tp_rewards){0};
}

tp_reward *tp_rewards_new(size_t n)
{
    tp_reward *v = tp_new(n, sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = (tp_reward){.reward = NAN, .correct = TP_CORRECT_UNKNOWN};
    return v;
}
