/* profile_steps.c - which steps of a run are recorded: of the configuration, or of NeMo RL's
 * variables of the environment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/train/profile.h"

/* Digits, a colon, digits. */
static bool read_range(const char *text, int64_t *start, int64_t *stop)
{
    char a[20] = "", b[20] = "";
    int used = 0;
    if (sscanf(text, "%18[0-9]:%18[0-9]%n", a, b, &used) != 2 || text[used])
        return false;
    *start = strtoll(a, NULL, 10);
    *stop = strtoll(b, NULL, 10);
    return *start >= 1 && *stop > *start;
}

const char *tp_profile_environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

bool tp_profile_next_pattern(const char **patterns, tp_slice *ret)
{
    const char *from = *patterns + strspn(*patterns, " ,");
    size_t n = strcspn(from, ",");
    *patterns = from + n;
    while (n > 0 && from[n - 1] == ' ')
        n--;
    *ret = (tp_slice){from, n};
    return n > 0;
}

static bool has_pattern(const char *patterns)
{
    tp_slice first;
    return tp_profile_next_pattern(&patterns, &first);
}

#define NO_PATTERN "\"%.60s\" has no pattern in it; write names or wildcards, as in \"*policy*\""

static tp_status read_environment(tp_train_options *o, tp_error *err)
{
    const char *range = tp_profile_environment(TP_PROFILE_RANGE_VARIABLE),
               *patterns = tp_profile_environment(TP_PROFILE_PATTERNS_VARIABLE);
    if (!range && !patterns)
        return TP_OK;
    if (!range || !patterns)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s is set and %s is not; set both, as in 3:5 and \"*policy*\", or neither",
                       range ? TP_PROFILE_RANGE_VARIABLE : TP_PROFILE_PATTERNS_VARIABLE,
                       range ? TP_PROFILE_PATTERNS_VARIABLE : TP_PROFILE_RANGE_VARIABLE);
    if (!read_range(range, &o->profile_start, &o->profile_stop))
        return tp_fail(err, TP_ERR_CONFIG,
                       TP_PROFILE_RANGE_VARIABLE
                       ": \"%.60s\" is no range of steps; write start:stop, from 1 "
                       "and without stop, as in 3:5 for steps 3 and 4",
                       range);
    if (!has_pattern(patterns))
        return tp_fail(err, TP_ERR_CONFIG, TP_PROFILE_PATTERNS_VARIABLE ": " NO_PATTERN, patterns);
    o->profile_workers = patterns;
    o->profile_origin = TP_PROFILE_RANGE_VARIABLE;
    return TP_OK;
}

tp_status tp_profile_bind(const tp_config *config, tp_train_options *o, tp_error *err)
{
    const char *text = o->profile_steps_text;
    o->profile_start = o->profile_stop = 0;
    if (!text && o->profile_workers && strcmp(o->profile_workers, "*") != 0)
        return tp_config_fail(config, "profile.workers", err,
                              "it is set and profile.steps is not; set that too, or take this "
                              "back by profile.workers=\"*\"%s",
                              tp_profile_environment(TP_PROFILE_RANGE_VARIABLE)
                                  ? " (" TP_PROFILE_RANGE_VARIABLE
                                    " has its patterns in " TP_PROFILE_PATTERNS_VARIABLE ")"
                                  : "");
    if (!text)
        return read_environment(o, err);
    if (o->profile_workers && !has_pattern(o->profile_workers))
        return tp_config_fail(config, "profile.workers", err, NO_PATTERN, o->profile_workers);
    o->profile_origin = "profile.steps";
    if (!read_range(text, &o->profile_start, &o->profile_stop))
        return tp_config_fail(config, "profile.steps", err,
                              "\"%.60s\" is no range of steps; write start:stop, from 1 and "
                              "without stop, as in 3:5 for steps 3 and 4",
                              text);
    return TP_OK;
}
