/* grpo_judge.c - does anybody judge?  One question before a run, and an eye on steps in which
 * no answer got a reward. */
#include "base/strings.h"
#include "engine/algorithms/grpo_internal.h"

/* Of judges that are programs `temper doctor` alone asks: whether they work a run finds out. */
static tp_status ask(trainer *t, tp_environment *env, const tp_prompts *prompts, tp_error *err)
{
    grpo *g = t->own;
    return t->only_checks ? tp_environment_try(env, prompts, g->pool, &g->judged, err)
                          : tp_environment_check_answers(env, prompts, g->pool, err);
}

tp_status tp_grpo_ask_judge(trainer *t, tp_error *err)
{
    const grpo *g = t->own;
    TP_TRY(ask(t, g->env, g->prompts, err));
    return g->val_env ? ask(t, g->val_env, g->val_prompts, err) : TP_OK;
}

void tp_grpo_describe_judge(const trainer *t, tp_buf *out)
{
    const grpo *g = t->own;
    tp_buf_adds(out, tp_buf_str(&g->judged));
}

/* ---- steps without rewards ---- */

uint64_t tp_grpo_unrewarded(const grpo_counts *c)
{
    uint64_t n = 0;
    for (int k = 0; k < TP_REWARD_KINDS; k++)
        n += k == TP_REWARD_OK ? 0 : c->by_status[k];
    return n;
}

/* Nothing was learned from such a step, so the state is that of the step before. */
static tp_status end_run(trainer *t, tp_error *err)
{
    const grpo *g = t->own;
    t->step_is_void = true;
    return tp_fail(err, TP_ERR_CONFIG,
                   "no answer got a reward in %lld step%s in a row (train.max_unrewarded); %s",
                   (long long)g->unrewarded_steps, tp_plural((uint64_t)g->unrewarded_steps),
                   g->counts.why);
}

tp_status tp_grpo_watch_judge(trainer *t, tp_error *err)
{
    grpo *g = t->own;
    const grpo_counts *c = &g->counts;
    uint64_t missing = tp_grpo_unrewarded(c);
    for (int k = 0; k < TP_REWARD_KINDS; k++)
        g->all_by_status[k] += c->by_status[k];
    if (c->by_status[TP_REWARD_OK] || missing == 0) {
        g->unrewarded_steps = 0;
        return TP_OK;
    }
    g->unrewarded_steps++;
    if (g->unrewarded_steps >= t->o->train.max_unrewarded)
        return end_run(t, err);
    if (g->unrewarded_steps == 1)
        tp_trainer_notice(
            t,
            "step %lld: none of %llu answers got a reward, so nothing is learned; %s; "
            "the run ends after %lld such steps (train.max_unrewarded)",
            (long long)t->state.step + 1, (unsigned long long)missing, c->why,
            (long long)t->o->train.max_unrewarded);
    return TP_OK;
}

void tp_grpo_note_validation(trainer *t, const grpo_counts *c)
{
    uint64_t missing = tp_grpo_unrewarded(c);
    if (missing)
        tp_trainer_notice(t, "validation: %llu of %llu answers got no reward and are left out; %s",
                          (unsigned long long)missing,
                          (unsigned long long)(missing + c->by_status[TP_REWARD_OK]), c->why);
}
