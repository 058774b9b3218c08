/* environment.c - kinds of rewards by configuration, alone or summed, and their verdicts. */
#include "engine/reward/environment.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/platform.h"
#include "config/option_rows.h"
#include "engine/reward/environment_kind.h"

enum { MAX_FUNCTIONS = 16 };

/* Keys that every environment and every reward function may have. */
typedef struct {
    const char *type, *name;
    double weight;
    bool normalize_weights;
    const tp_json *functions;
    int64_t num_workers;
} common;

typedef struct {
    const tp_environment_kind *kind;
    const char *name; /* of its part in the verdicts */
    void *settings, *state;
    double weight;
} function;

struct tp_environment {
    char *name;
    tp_config *own; /* for a name without a section; else NULL */
    tp_config *config;
    function functions[MAX_FUNCTIONS];
    size_t n;
    double divisor; /* of the weighted sum */
    tp_environment_watch watch;
    bool only_checks; /* nothing is started */
};

/* ---- settings ---- */

/* clang-format off */
#define HOLDER common
#define HOLDER_AT 0
static const tp_option common_rows[] = {
    TEXT("type", type, "null", "Kind of environment; null = the section's name.")
    COUNT("num_workers", num_workers, "null", 1, 1024, "Programs of a pool; the built-in environments use the engine's threads.")
    ROW("stop_strings", TP_OPT_SECTION, TP_OPT_NOT_STORED, NULL, "See generation.stop_strings.", .ignored = true)
};

static const tp_option sum_rows[] = {
    TREE("reward_functions", functions, "null", "List of {name, weight, keys of that function}.")
    FLAG("normalize_weights", normalize_weights, "true", "Divide by the sum of the weights, as NeMo RL does.")
};

static const tp_option function_rows[] = {
    TEXT("name", name, "\?\?\?", "Kind of function.")
    REAL("weight", weight, "1.0", -1e6, 1e6, "Factor of its reward.")
};
/* clang-format on */

/* Bind a section through the rows of a kind (may be NULL) and further ones, whose members
 * live in *ret.  The block that is returned holds the kind's settings. */
static tp_status bind_section(tp_config *config, const tp_json *section,
                              const tp_environment_kind *kind, const tp_option *const more[2],
                              const size_t n_more[2], void **ret_settings, common *ret,
                              tp_error *err)
{
    size_t n_kind = kind ? kind->settings.n : 0;
    size_t base = kind ? (kind->settings.size + 15) / 16 * 16 : 0;
    size_t n = n_kind + n_more[0] + n_more[1];
    TP_FREED tp_option *table = tp_new(n, sizeof *table);
    char *block = tp_new(1, base + sizeof(common));
    if (n_kind)
        memcpy(table, kind->settings.options, n_kind * sizeof *table);
    size_t at = n_kind;
    for (int part = 0; part < 2; part++)
        for (size_t i = 0; i < n_more[part]; i++, at++) {
            table[at] = more[part][i];
            if (table[at].offset != TP_OPT_NOT_STORED)
                table[at].offset += base;
        }
    tp_status status = section ? tp_config_bind_section(config, section, table, n, block, err)
                               : tp_config_bind(config, table, n, block, err);
    if (status != TP_OK) {
        free(block);
        return status;
    }
    memcpy(ret, block + base, sizeof *ret);
    *ret_settings = block;
    return TP_OK;
}

/* ---- opening ---- */

static tp_status unknown_kind(const char *place, const char *name, tp_error *err)
{
    TP_OWN(tp_buf) known = {0};
    for (const tp_environment_kind *const *k = tp_environment_kinds; *k; k++)
        tp_buf_addf(&known, "%s%s", k == tp_environment_kinds ? "" : ", ", (*k)->name);
    return tp_fail(err, TP_ERR_CONFIG,
                   "%s: there is no environment \"%.60s\"; there "
                   "are %s",
                   place, name, tp_buf_str(&known));
}

static tp_status add_function(tp_environment *env, const tp_environment_kind *kind,
                              const char *name, void *settings, const common *c, tp_error *err)
{
    function *f = &env->functions[env->n];
    *f = (function){.kind = kind, .name = name, .settings = settings, .weight = c->weight};
    env->n++; /* from here on closing frees it */
    if (!kind->open || env->only_checks)
        return TP_OK;
    tp_environment_context context = {
        .name = env->name, .num_workers = c->num_workers, .watch = &env->watch};
    tp_status status = kind->open(settings, &context, &f->state, err);
    return status == TP_OK ? TP_OK : tp_error_prefix(err, status, "env.%s: ", env->name);
}

static tp_status open_single(tp_environment *env, const tp_environment_kind *kind,
                             const tp_json *section, tp_error *err)
{
    const tp_option *more[2] = {common_rows, sum_rows};
    size_t n_more[2] = {TP_COUNTOF(common_rows), TP_COUNTOF(sum_rows)};
    void *settings;
    common c;
    TP_TRY(bind_section(env->config, section, kind, more, n_more, &settings, &c, err));
    c.weight = 1;
    return add_function(env, kind, kind->name, settings, &c, err);
}

static tp_status open_function(tp_environment *env, const tp_json *element, tp_error *err)
{
    const tp_option *more[2] = {common_rows, function_rows};
    size_t n_more[2] = {TP_COUNTOF(common_rows), TP_COUNTOF(function_rows)};
    const char *name = tp_json_str(tp_json_get(element, "name"));
    char place[100];
    snprintf(place, sizeof place, "env.%.60s.reward_functions", env->name);
    if (!name)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s: an element needs a name, as in {name: math, "
                       "weight: 1.0}",
                       place);
    if (env->n == MAX_FUNCTIONS)
        return tp_fail(err, TP_ERR_CONFIG, "%s: there are more than %d", place, MAX_FUNCTIONS);
    const char *type = tp_json_str(tp_json_get(element, "type"));
    const tp_environment_kind *kind = tp_environment_kind_find(type ? type : name);
    if (!kind)
        return unknown_kind(place, type ? type : name, err);
    void *settings;
    common c;
    TP_TRY(bind_section(env->config, element, kind, more, n_more, &settings, &c, err));
    return add_function(env, kind, name, settings, &c, err);
}

static tp_status open_sum(tp_environment *env, const tp_json *section, tp_error *err)
{
    const tp_option *more[2] = {common_rows, sum_rows};
    size_t n_more[2] = {TP_COUNTOF(common_rows), TP_COUNTOF(sum_rows)};
    TP_FREED void *nothing = NULL;
    common c;
    TP_TRY(bind_section(env->config, section, NULL, more, n_more, &nothing, &c, err));
    if (!c.functions || c.functions->type != TP_JSON_ARRAY || c.functions->n == 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "env.%s.reward_functions must be a list, as in [{name: math, weight: 0.8}, "
                       "{name: format, weight: 0.2}]",
                       env->name);
    double sum = 0;
    for (const tp_json *e = c.functions->child; e; e = e->next) {
        TP_TRY(open_function(env, e, err));
        sum += env->functions[env->n - 1].weight;
    }
    if (c.normalize_weights && !(fabs(sum) > 1e-12))
        return tp_fail(err, TP_ERR_CONFIG,
                       "env.%s.reward_functions: the weights add up to 0; set "
                       "normalize_weights: false for a plain sum",
                       env->name);
    env->divisor = c.normalize_weights ? sum : 1;
    return TP_OK;
}

static tp_status open_section(tp_environment *env, const tp_json *section, tp_error *err)
{
    const tp_json *functions = tp_json_get(section, "reward_functions");
    if (functions && functions->type != TP_JSON_NULL)
        return open_sum(env, section, err);
    const char *type = tp_json_str(tp_json_get(section, "type"));
    const tp_environment_kind *kind = tp_environment_kind_find(type ? type : env->name);
    char place[100];
    snprintf(place, sizeof place, "env.%.60s", env->name);
    return kind ? open_single(env, kind, section, err)
                : unknown_kind(place, type ? type : env->name, err);
}

static tp_status open_named(tp_config *config, const char *name, bool only_checks,
                            tp_environment **ret, tp_error *err)
{
    tp_environment *env = tp_new(1, sizeof *env);
    *env = (tp_environment){
        .name = tp_strdup(name), .config = config, .divisor = 1, .only_checks = only_checks};
    const tp_json *all = config ? tp_config_find(config, "env") : NULL;
    const tp_json *section = tp_json_get(all, name);
    tp_status status = TP_OK;
    if (section && section->type == TP_JSON_NULL)
        section = NULL;
    if (!section) {
        status = tp_config_load(&env->own, NULL, err);
        env->config = env->own;
    }
    if (status == TP_OK)
        status = open_section(env, section, err);
    TP_HAND_OVER(status, ret, env, tp_environment_close(env));
}

tp_status tp_environment_open(tp_config *config, const char *name, tp_environment **ret,
                              tp_error *err)
{
    return open_named(config, name, false, ret, err);
}

tp_status tp_environment_check(tp_config *config, const char *name, tp_error *err)
{
    tp_environment *env;
    TP_TRY(open_named(config, name, true, &env, err));
    tp_environment_close(env);
    return TP_OK;
}

void tp_environment_close(tp_environment *env)
{
    if (!env)
        return;
    for (size_t i = 0; i < env->n; i++) {
        function *f = &env->functions[i];
        if (f->kind->close && f->state)
            f->kind->close(f->state);
        free(f->settings);
    }
    tp_config_release(env->own);
    free(env->name);
    free(env);
}

void tp_environment_set_watch(tp_environment *env, const tp_environment_watch *watch)
{
    env->watch = *watch;
}

tp_environment_watch tp_environment_get_watch(const tp_environment *env) { return env->watch; }

tp_status tp_environment_choose(const tp_config *config, const char *env_name,
                                const char *dataset_name, const char *key,
                                char ret[TP_ENVIRONMENT_NAME], tp_error *err)
{
    const tp_json *all = config ? tp_config_find(config, "env") : NULL;
    const tp_environment_kind *kind = dataset_name ? tp_environment_kind_find(dataset_name) : NULL;
    bool asks = kind && kind->make, is_only = all && all->type == TP_JSON_OBJECT && all->n == 1;
    tp_slice name = {0};
    if (env_name)
        name = tp_slice_of(env_name);
    else if (is_only) /* also for questions of a generator, judged in another way */
        name = all->child->key;
    else if (asks)
        name = tp_slice_of(kind->name);
    else if (all && all->n > 1)
        return tp_fail(err, TP_ERR_CONFIG,
                       "env has %zu environments; name the one that judges with %s", all->n, key);
    else
        return tp_fail(err, TP_ERR_CONFIG,
                       "nothing says what an answer is worth; add a section "
                       "such as env.math, or %s",
                       key);
    if (name.len >= TP_ENVIRONMENT_NAME)
        return tp_fail(err, TP_ERR_CONFIG,
                       "the name of an environment has %zu bytes, at most %d "
                       "are possible",
                       name.len, TP_ENVIRONMENT_NAME - 1);
    snprintf(ret, TP_ENVIRONMENT_NAME, "%.*s", (int)name.len, name.data);
    return TP_OK;
}

bool tp_environment_is_outside(const tp_environment *env)
{
    bool any = false;
    for (size_t i = 0; i < env->n; i++)
        any |= env->functions[i].kind->is_outside;
    return any;
}

/* ---- scoring ---- */

typedef struct {
    const function *f;
    const tp_completion *completions;
    tp_reward *verdicts;
} job;

static tp_status score_one(void *context, size_t index, int worker, tp_error *err)
{
    (void)worker, (void)err;
    const job *j = context;
    j->f->kind->score(j->f->settings, j->f->state, &j->completions[index], &j->verdicts[index]);
    return TP_OK;
}

static tp_status score_function(const function *f, const tp_completion *completions, size_t n,
                                tp_pool *pool, tp_reward *ret, tp_error *err)
{
    if (f->kind->score_all)
        return f->kind->score_all(f->settings, f->state, completions, n, ret, err);
    job j = {f, completions, ret};
    return tp_pool_for(pool, n, score_one, &j, err);
}

/* Add one function's verdict to the sum; the first exclusion wins. */
static void add_verdict(const tp_environment *env, const function *f, tp_reward *from,
                        tp_reward *sum)
{
    for (size_t i = 0; i < from->n_parts; i++)
        tp_reward_add_part(sum, from->parts[i].name, from->parts[i].value);
    if (from->status == TP_REWARD_OK)
        tp_reward_add_part(sum, f->name, from->reward);
    if (sum->status != TP_REWARD_OK)
        return;
    if (from->status != TP_REWARD_OK) {
        tp_reward_exclude(sum, from->status, "%s: %s", f->name, from->why);
        return;
    }
    sum->reward += f->weight * from->reward / env->divisor;
    if (from->correct == TP_CORRECT_NO || sum->correct == TP_CORRECT_UNKNOWN)
        sum->correct = from->correct;
    if (!sum->answer && from->answer) {
        sum->answer = from->answer;
        from->answer = NULL;
    }
}

static tp_status score_sum(const tp_environment *env, const tp_completion *completions, size_t n,
                           tp_pool *pool, tp_reward *ret, tp_error *err)
{
    for (size_t i = 0; i < n; i++)
        ret[i].reward = 0;
    for (size_t k = 0; k < env->n; k++) {
        TP_FREED tp_reward *verdicts = tp_rewards_new(n);
        tp_status status = score_function(&env->functions[k], completions, n, pool, verdicts, err);
        for (size_t i = 0; i < n; i++) {
            if (status == TP_OK)
                add_verdict(env, &env->functions[k], &verdicts[i], &ret[i]);
            tp_reward_release(&verdicts[i]);
        }
        TP_TRY(status);
    }
    return TP_OK;
}

tp_status tp_environment_score(tp_environment *env, const tp_completion *completions, size_t n,
                               tp_pool *pool, tp_rewards *ret, tp_error *err)
{
    double start = tp_clock_s();
    tp_rewards all = {.v = tp_rewards_new(n), .n = n};
    const function *f = &env->functions[0];
    bool is_single = env->n == 1 && f->weight == 1 && env->divisor == 1;
    tp_status status = is_single ? score_function(f, completions, n, pool, all.v, err)
                                 : score_sum(env, completions, n, pool, all.v, err);
    if (status != TP_OK) {
        tp_rewards_release(&all);
        return status;
    }
    for (size_t i = 0; i < n; i++) {
        /* A sum may overflow although its parts did not. */
        if (all.v[i].status == TP_REWARD_OK && !isfinite(all.v[i].reward))
            tp_reward_exclude(&all.v[i], TP_REWARD_NAN, "the reward is not finite");
        all.counts[all.v[i].status]++;
    }
    all.seconds = tp_clock_s() - start;
    *ret = all;
    return TP_OK;
}

/* ---- asking ---- */

/* What was set, as JSON; defaults are left out. */
static void describe_settings(const tp_environment *env, tp_buf *out)
{
    const tp_json *section = tp_json_get(tp_config_find(env->config, "env"), env->name);
    size_t n = 0;
    for (const tp_json *m = section ? section->child : NULL; m; m = m->next) {
        char path[300];
        snprintf(path, sizeof path, "env.%s.%.*s", env->name, (int)m->key.len, m->key.data);
        const char *origin = tp_config_origin(env->config, path);
        if (!origin || strcmp(origin, "default") == 0 || m->type == TP_JSON_NULL)
            continue;
        tp_buf_addf(out, "%s%.*s ", n++ ? ", " : "; ", (int)m->key.len, m->key.data);
        tp_json_text(m, out);
    }
}

void tp_environment_describe(const tp_environment *env, tp_buf *out)
{
    bool is_named = env->n == 1 && strcmp(env->name, env->functions[0].kind->name) == 0;
    tp_buf_adds(out, env->name);
    for (size_t i = 0; i < env->n && !is_named; i++) {
        const function *f = &env->functions[i];
        tp_buf_addf(out, "%s %s", i ? "," : ":", f->kind->name);
        if (env->n > 1)
            tp_buf_addf(out, " times %g", f->weight);
    }
    if (!env->own)
        describe_settings(env, out);
}

tp_environment_counts tp_environment_get_counts(const tp_environment *env)
{
    tp_environment_counts sum = {0};
    for (size_t i = 0; i < env->n; i++) {
        const function *f = &env->functions[i];
        if (!f->kind->counts)
            continue;
        tp_environment_counts c = f->kind->counts(f->state);
        sum.started += c.started;
        sum.died += c.died;
        sum.killed += c.killed;
        sum.late_answers += c.late_answers;
    }
    return sum;
}
