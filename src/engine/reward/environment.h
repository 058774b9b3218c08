/* environment.h - what an answer is worth.
 *
 *     prompts ----> generation ----> completions ----> environment ----> rewards
 *     (prompts.h)                                       env.<name>
 *
 * An environment turns a batch of completions into one verdict each: a finite reward, or
 * the reason why there is none (not a number, too late, crashed, nonsense, refused).  A
 * verdict without a reward is never a 0: whoever uses it leaves the sample out and
 * counts it.  The reward is a weighted sum of one or more reward functions; each of them
 * reports its part.
 *
 * What there is stands in one table, tp_environment_kinds: functions that look at text
 * (exact, math, gsm8k, countdown, format, length ...), and outside judges (program,
 * library).  The built-in ones are pure: the same verdict whatever the number of
 * threads. */
#ifndef TP_ENGINE_REWARD_ENVIRONMENT_H
#define TP_ENGINE_REWARD_ENVIRONMENT_H

#include "base/threads.h"
#include "engine/reward/prompts.h"

/* One answer to be judged. */
typedef struct {
    const tp_prompt *prompt;
    const char *text; /* without special tokens; NUL-terminated, may hold NULs */
    size_t n_text;
    const int32_t *ids; /* (optional) */
    size_t n_ids;
    uint32_t sample;   /* which of the prompt's samples, from 0 */
    bool is_truncated; /* ended by the limit on tokens, not by itself */
} tp_completion;

typedef enum {
    TP_REWARD_OK,
    TP_REWARD_NAN,      /* the judge said NaN or an infinity */
    TP_REWARD_TIMEOUT,  /* no verdict in time */
    TP_REWARD_CRASHED,  /* the judge died over it */
    TP_REWARD_NONSENSE, /* it said something that is no verdict */
    TP_REWARD_REFUSED,  /* it said that it cannot judge this one */
    TP_REWARD_KINDS
} tp_reward_status;

/* "ok", "nan", "timeout", "crashed", "nonsense", "refused" */
const char *tp_reward_status_name(tp_reward_status status);

typedef enum { TP_CORRECT_NO, TP_CORRECT_YES, TP_CORRECT_UNKNOWN } tp_correct;

typedef struct {
    char *name; /* of a reward function, or whatever a program measured */
    double value;
} tp_reward_part;

typedef struct {
    tp_reward_status status;
    double reward; /* finite if status is ok, else NaN */
    tp_correct correct;
    char *answer; /* what was taken for the answer, spelled one way: for majority votes;
                     NULL: none was found */
    char *why;    /* status is not ok: one sentence; else NULL */
    tp_reward_part *parts;
    size_t n_parts;
} tp_reward;

/* One verdict per completion, in their order. */
typedef struct {
    tp_reward *v;
    size_t n;
    uint64_t counts[TP_REWARD_KINDS]; /* by status; they add up to n */
    double seconds;
} tp_rewards;
void tp_rewards_release(tp_rewards *rewards); /* zeroed is a no-op */

typedef struct tp_environment tp_environment;

/* `env.<name>` of a configuration that was bound with `env` as a section.  The section's
 * `type` is a row of the table (default: its name); `reward_functions`, a list of {name,
 * weight, and that function's own keys}, makes a weighted sum instead.  A name that is
 * a row needs no section.  `config` must outlive the environment. */
TP_CHECKED tp_status tp_environment_open(tp_config *config, const char *name, tp_environment **ret,
                                         tp_error *err);
/* Is there such an environment, and are its settings right?  No program is started. */
TP_CHECKED tp_status tp_environment_check(tp_config *config, const char *name, tp_error *err);
void tp_environment_close(tp_environment *env); /* ends its programs; NULL is a no-op */

/* Which environment a configuration means: `env_name` (of data.<split>, may be NULL); else
 * the one that the generator `dataset_name` belongs to; else the only one under env.  `key` is what
 * would say so, for messages. */
enum { TP_ENVIRONMENT_NAME = 128 };
TP_CHECKED tp_status tp_environment_choose(const tp_config *config, const char *env_name,
                                           const char *dataset_name, const char *key,
                                           char ret[TP_ENVIRONMENT_NAME], tp_error *err);

/* Whether foreign code judges, a program or a library: worth to be asked while other answers are
 * still generated (judging.h). */
bool tp_environment_is_outside(const tp_environment *env);

/* Waiting for outside judges, which may take long.  All members may be NULL. */
typedef struct {
    bool (*should_stop)(void *user);           /* true: give up what is not answered yet */
    void (*say)(void *user, const char *text); /* what is waited for, what was lost */
    void *user;
} tp_environment_watch;
void tp_environment_set_watch(tp_environment *env, const tp_environment_watch *watch);
tp_environment_watch tp_environment_get_watch(const tp_environment *env);

/* Judge n completions; returns when every one has its verdict, which for outside
 * judges is bounded by their time limits.  Fails only when the environment is beyond
 * repair (a program that keeps dying), or with TP_ERR_INTERRUPTED when the watch
 * asks to stop: then its programs have a few seconds to end; *ret is overwritten. */
TP_CHECKED tp_status tp_environment_score(tp_environment *env, const tp_completion *completions,
                                          size_t n, tp_pool *pool, tp_rewards *ret, tp_error *err);

/* Ask about one answer, the expected one of the first prompt, and say how it was judged (appended
 * to ret_text).  Fails when there is no verdict; waits half a minute at most. */
TP_CHECKED tp_status tp_environment_try(tp_environment *env, const tp_prompts *prompts,
                                        tp_pool *pool, tp_buf *ret_text, tp_error *err);
/* Before a run: questions without expected answers, and an environment that compares with them,
 * are a failure.  Foreign code is not asked. */
TP_CHECKED tp_status tp_environment_check_answers(tp_environment *env, const tp_prompts *prompts,
                                                  tp_pool *pool, tp_error *err);

/* Everything that decides the verdicts, in one line: for logs and fingerprints. */
void tp_environment_describe(const tp_environment *env, tp_buf *out);

/* Outside judges: what happened so far. */
typedef struct {
    uint64_t started, died, killed, late_answers; /* programs; answers after their time */
} tp_environment_counts;
tp_environment_counts tp_environment_get_counts(const tp_environment *env);

#endif
