/* env_length.c - rewards that depend on the length of an answer alone.
 *
 * DAPO's soft limit: from max_response_length - overlong_buffer_length on, the reward
 * falls in a straight line to -overlong_buffer_penalty at max_response_length, and no
 * further.  Beside it a price per token.  Lengths are tokens, or characters where the
 * ids are not known. */
#include <math.h>

#include "base/platform.h"
#include "engine/reward/environment_rows.h"

typedef struct {
    int64_t max_response_length, overlong_buffer_length;
    double overlong_buffer_penalty, per_token;
} settings;

/* clang-format off */
static const tp_option rows[] = {
    COUNT("max_response_length", max_response_length, "null", 1, INFINITY, "Length at which the whole penalty is due; null = no limit.")
    COUNT("overlong_buffer_length", overlong_buffer_length, "128", 1, INFINITY, "Length over which the penalty grows.")
    REAL("overlong_buffer_penalty", overlong_buffer_penalty, "1.0", 0, 1e6, "The whole penalty, which it never exceeds.")
    REAL("per_token", per_token, "0.0", -1e6, 1e6, "Reward of every token; below 0 it is a price.")
};
/* clang-format on */

static void score(const void *settings_, void *state, const tp_completion *c, tp_reward *ret)
{
    (void)state;
    const settings *o = settings_;
    double length = (double)(c->ids ? c->n_ids : c->n_text), reward = o->per_token * length;
    if (o->max_response_length != TP_OPT_UNSET_INT) {
        double buffer = (double)o->overlong_buffer_length;
        double over = (length - ((double)o->max_response_length - buffer)) / buffer;
        reward -= o->overlong_buffer_penalty * fmin(fmax(over, 0), 1);
    }
    tp_reward_give(ret, reward + 0.0, TP_CORRECT_UNKNOWN, NULL);
}

const tp_environment_kind tp_env_length = {
    .name = "length",
    .doc = "A penalty for answers near the limit, and a price per token.",
    .settings = {rows, TP_COUNTOF(rows), sizeof(settings)},
    .score = score};
