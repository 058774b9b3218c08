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

static const tp_option rows[] = {
    {.name = "max_response_length",
     .type = TP_OPT_INT,
     .offset = offsetof(settings, max_response_length),
     .min = 1,
     .max = INFINITY,
     .doc = "Length at which the whole penalty is due; null = no limit."},
    {.name = "overlong_buffer_length",
     .type = TP_OPT_INT,
     .offset = offsetof(settings, overlong_buffer_length),
     .default_value = "128",
     .min = 1,
     .max = INFINITY,
     .doc = "Length over which the penalty grows."},
    {.name = "overlong_buffer_penalty",
     .type = TP_OPT_FLOAT,
     .offset = offsetof(settings, overlong_buffer_penalty),
     .default_value = "1.0",
     .max = 1e6,
     .doc = "The whole penalty."},
    {.name = "per_token",
     .type = TP_OPT_FLOAT,
     .offset = offsetof(settings, per_token),
     .default_value = "0.0",
     .min = -1e6,
     .max = 1e6,
     .doc = "Reward of every token; below 0 it is a price."},
};

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
