/* environment_try.c - does the judge judge?  One question before the work begins. */
#include <string.h>

#include "base/clock.h"
#include "engine/reward/environment.h"
#include "engine/reward/environment_kind.h"

enum { A_FEW = 16 };
static const double PATIENCE_S = 30;

/* The caller's watch, and an end after a while. */
typedef struct {
    tp_environment_watch outer;
    double end;
} patience;

static bool outer_stops(const patience *p)
{
    return p->outer.should_stop && p->outer.should_stop(p->outer.user);
}

static bool is_over(void *user)
{
    const patience *p = user;
    return tp_clock_s() > p->end || outer_stops(p);
}

static void say(void *user, const char *text)
{
    const patience *p = user;
    if (p->outer.say)
        p->outer.say(p->outer.user, text);
}

static tp_status look_at(const tp_reward *r, const char *what, double seconds, tp_buf *ret_text,
                         tp_error *err)
{
    if (ret_text->len)
        tp_buf_adds(ret_text, "; ");
    if (r->status == TP_REWARD_OK)
        tp_buf_addf(ret_text, "reward %g for %s, in %.2g s", r->reward, what, seconds);
    else if (strstr(r->why, TP_NO_TRUTH))
        return tp_fail(err, TP_ERR_CONFIG, "%s", r->why);
    else if (r->status == TP_REWARD_REFUSED)
        tp_buf_addf(ret_text, "no reward for %s: %s", what, r->why);
    else
        return tp_fail(err, TP_ERR_CONFIG, "asked about %s, the judge gave no reward (%s): %s",
                       what, tp_reward_status_name(r->status), r->why);
    return TP_OK;
}

static tp_status ask(tp_environment *env, const tp_prompt *prompt, tp_pool *pool, tp_buf *ret_text,
                     tp_error *err)
{
    patience p = {tp_environment_get_watch(env), tp_clock_s() + PATIENCE_S};
    tp_environment_watch watch = {is_over, say, &p};
    const char *truth = prompt->truth ? prompt->truth : "";
    tp_completion completion = {.prompt = prompt, .text = truth, .n_text = strlen(truth)};
    TP_OWN(tp_rewards) rewards = {0};
    double start = tp_clock_s();
    tp_environment_set_watch(env, &watch);
    tp_status status = tp_environment_score(env, &completion, 1, pool, &rewards, err);
    tp_environment_set_watch(env, &p.outer);
    if (status == TP_ERR_INTERRUPTED && !outer_stops(&p))
        status = tp_fail(err, TP_ERR_CONFIG,
                         "the judge gave no answer within %g s, which is as long as a check waits",
                         PATIENCE_S);
    if (status == TP_OK)
        status = look_at(&rewards.v[0], *truth ? "the expected answer" : "an empty answer",
                         tp_clock_s() - start, ret_text, err);
    return status;
}

tp_status tp_environment_try(tp_environment *env, const tp_prompts *prompts, tp_pool *pool,
                             tp_buf *ret_text, tp_error *err)
{
    TP_OWN(tp_arena) arena = {0};
    tp_prompt prompt;
    TP_TRY(tp_arena_init(&arena, tp_prompts_arena_bytes(prompts), err));
    /* One of the first few that says what is expected, if one does; else the first. */
    uint64_t n = tp_prompts_count(prompts), most = n < A_FEW ? n : A_FEW;
    for (uint64_t i = 0; i <= most; i++) {
        tp_arena_rewind(&arena, 0);
        TP_TRY(tp_prompts_get(prompts, i < most ? i : 0, &arena, &prompt, err));
        if (prompt.truth)
            break;
    }
    return ask(env, &prompt, pool, ret_text, err);
}

tp_status tp_environment_check_answers(tp_environment *env, const tp_prompts *prompts,
                                       tp_pool *pool, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    return tp_environment_is_outside(env) ? TP_OK
                                          : tp_environment_try(env, prompts, pool, &text, err);
}
