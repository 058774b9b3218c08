/* environment_fixture.h - an environment from a few words of YAML, and one verdict. */
#ifndef TP_TESTS_ENVIRONMENT_FIXTURE_H
#define TP_TESTS_ENVIRONMENT_FIXTURE_H

#include <string.h>

#include "base/platform.h"
#include "engine/reward/environment.h"

typedef struct {
    const tp_json *env, *data;
} fixture_options;

static const tp_option fixture_table[] = {
    {.name = "env", .type = TP_OPT_SECTION, .offset = offsetof(fixture_options, env)},
    {.name = "data", .type = TP_OPT_SECTION, .offset = offsetof(fixture_options, data)},
};

typedef struct {
    tp_config *config;
    tp_environment *env;
    tp_error err;
} fixture;

/* `words` are overrides, "env.math.tolerance=0.1", up to NULL. */
static tp_status fixture_config(fixture *f, const char *const *words)
{
    fixture_options o;
    *f = (fixture){0};
    TP_TRY(tp_config_load(&f->config, NULL, &f->err));
    for (; *words; words++)
        TP_TRY(tp_config_override(f->config, *words, &f->err));
    return tp_config_bind(f->config, fixture_table, TP_COUNTOF(fixture_table), &o, &f->err);
}

static tp_status fixture_open(fixture *f, const char *name, const char *const *words)
{
    TP_TRY(fixture_config(f, words));
    return tp_environment_open(f->config, name, &f->env, &f->err);
}

static void fixture_close(fixture *f)
{
    tp_environment_close(f->env);
    tp_config_release(f->config);
    *f = (fixture){0};
}

/* The verdicts over n completions of one prompt. */
static inline tp_rewards fixture_score(fixture *f, const char *truth, const tp_json *row,
                                       const char *const *texts, size_t n)
{
    tp_prompt prompt = {.id = "test:1", .text = "question", .truth = truth, .row = row};
    tp_completion completions[64];
    tp_rewards rewards = {0};
    if (n > 64)
        abort();
    for (size_t i = 0; i < n; i++)
        completions[i] = (tp_completion){
            .prompt = &prompt, .text = texts[i], .n_text = strlen(texts[i]), .sample = (uint32_t)i};
    if (tp_environment_score(f->env, completions, n, NULL, &rewards, &f->err) != TP_OK)
        rewards = (tp_rewards){0};
    return rewards;
}

#endif
