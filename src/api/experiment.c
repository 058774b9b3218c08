/* experiment.c - experiments: the levers of the engine, measured by the instrument. */
#include "temper/experiment.h"

#include <string.h>

#include "api/training.h"
#include "base/arena.h"
#include "base/sized.h"
#include "base/strings.h"
#include "engine/comm/comm.h"
#include "engine/train/levers.h"
#include "engine/train/recipe.h"
#include "instrument/bench/process.h"
#include "instrument/experiment/ablation.h"
#include "instrument/experiment/tune.h"
#include "temper/levers.h"

enum { MOST_LEVERS = 256 };

/* A lever of the table, or one of the command line: NAME:KEY=ON/OFF. */
typedef struct {
    const tp_lever *known;
    const char *on, *off; /* "KEY=ON"; of an own one */
} chosen_lever;

typedef struct {
    tp_arena arena;
    tp_lever_report *reports; /* which the rows are of */
    tp_set_lever levers[MOST_LEVERS];
    chosen_lever rows[MOST_LEVERS];
    size_t n;
    const tp_lever *off[MOST_LEVERS]; /* not chosen, and off in the recipe */
    size_t n_off;
} chosen;

/* ---- settings ---- */

/* Is it off by its word in a list that others are in as well? */
static bool shares_list(const tp_lever *lever) { return lever && strstr(lever->off, "=["); }

/* A list is said whole: with one lever of it come all that the recipe has in it. */
static size_t known_choices(const chosen *c, const tp_put *put, tp_lever_choice *ret)
{
    size_t n = 0;
    bool has_list = false;
    for (size_t i = 0; i < c->n; i++)
        if (c->rows[i].known && put[i] != TP_PUT_AS_IS) {
            ret[n++] = (tp_lever_choice){c->rows[i].known, put[i] == TP_PUT_ON};
            has_list |= shares_list(c->rows[i].known);
        }
    for (size_t i = 0; has_list && i < c->n; i++)
        if (shares_list(c->rows[i].known) && put[i] == TP_PUT_AS_IS &&
            c->levers[i].recipe == TP_PUT_OFF)
            ret[n++] = (tp_lever_choice){c->rows[i].known, false};
    for (size_t i = 0; has_list && i < c->n_off; i++)
        ret[n++] = (tp_lever_choice){c->off[i], false};
    return n;
}

/* Matches tp_lever_set.settings: of the table in one, since levers share lists. */
static tp_status settings_of(void *user, const tp_put *put, tp_arena *arena,
                             const char *const **ret, size_t *ret_n, tp_error *err)
{
    const chosen *c = user;
    tp_lever_choice choices[2 * MOST_LEVERS];
    char **shared;
    size_t n_shared, n = 0;
    TP_TRY(tp_lever_overrides(choices, known_choices(c, put, choices), &shared, &n_shared, err));
    const char **all = tp_arena_array(arena, const char *, n_shared + c->n + 1);
    for (size_t i = 0; i < n_shared; i++)
        all[n++] = tp_arena_strdup(arena, shared[i]);
    tp_free(shared);
    for (size_t i = 0; i < c->n; i++)
        if (!c->rows[i].known && put[i] != TP_PUT_AS_IS)
            all[n++] = put[i] == TP_PUT_ON ? c->rows[i].on : c->rows[i].off;
    *ret = all;
    *ret_n = n;
    return TP_OK;
}

/* ---- which levers ---- */

static tp_slice own_key(const chosen_lever *row)
{
    const char *key = row->on + strspn(row->on, "+");
    return (tp_slice){key, strcspn(key, "=")};
}

static bool sets_key(const chosen_lever *row, tp_slice key)
{
    if (!row->known)
        return tp_slice_eq(own_key(row), key);
    tp_slice its, value;
    bool found = false;
    for (const char *text = row->known->on; tp_setting_next(&text, &its, &value);)
        found |= tp_slice_eq(its, key);
    for (const char *text = row->known->off; tp_setting_next(&text, &its, &value);)
        found |= tp_slice_eq(its, key);
    return found;
}

/* Levers of the table are made for each other; an own one would undo what another does. */
static tp_status check_apart(const chosen *c, const tp_set_lever *lever, const chosen_lever *row,
                             tp_error *err)
{
    for (size_t i = 0; i < c->n; i++) {
        const chosen_lever *other = &c->rows[i];
        if (strcmp(c->levers[i].name, lever->name) == 0)
            return tp_fail(err, TP_ERR_ARG, "there are two levers '%s'", lever->name);
        if (row->known && other->known)
            continue;
        tp_slice key = own_key(row->known ? other : row);
        if (sets_key(row->known ? row : other, key))
            return tp_fail(err, TP_ERR_ARG,
                           "levers '%s' and '%s' both set %.*s, one would undo the other: measure "
                           "them one after the other",
                           c->levers[i].name, lever->name, (int)key.len, key.data);
    }
    return TP_OK;
}

static tp_status add(chosen *c, const tp_set_lever *lever, const chosen_lever *row, tp_error *err)
{
    TP_TRY(check_apart(c, lever, row, err));
    if (c->n == MOST_LEVERS)
        return tp_fail(err, TP_ERR_ARG, "more than %d levers", MOST_LEVERS);
    c->levers[c->n] = *lever;
    c->rows[c->n++] = *row;
    return TP_OK;
}

static tp_status add_own(chosen *c, const char *text, tp_error *err)
{
    const char *colon = strchr(text, ':');
    const char *equals = colon ? strchr(colon, '=') : NULL;
    const char *slash = equals ? strrchr(equals, '/') : NULL;
    if (!slash || colon == text || equals == colon + 1)
        return tp_fail(err, TP_ERR_ARG,
                       "'%.200s' is no lever; one is NAME:KEY=ON/OFF, as in "
                       "recompute:policy.recompute=full/none",
                       text);
    const char *key = tp_arena_strndup(&c->arena, colon + 1, (size_t)(equals - colon));
    chosen_lever row = {
        .on = tp_arena_printf(&c->arena, "%s%.*s", key, (int)(slash - equals - 1), equals + 1),
        .off = tp_arena_printf(&c->arena, "%s%s", key, slash + 1)};
    tp_set_lever lever = {.name = tp_arena_strndup(&c->arena, text, (size_t)(colon - text)),
                          .what = tp_arena_printf(&c->arena, "%s on, %s off", row.on, row.off),
                          .recipe = TP_PUT_AS_IS};
    return add(c, &lever, &row, err);
}

static tp_status fail_unknown(const char *name, tp_error *err)
{
    TP_OWN(tp_buf) names = {0};
    const tp_lever *lever;
    for (size_t i = 0; (lever = tp_lever_at(i)); i++)
        tp_buf_addf(&names, "%s%s", i ? ", " : "", lever->name);
    return tp_fail(err, TP_ERR_ARG, "there is no lever '%.100s'; there are %s", name,
                   tp_buf_str(&names));
}

/* Those of plug-ins are known to their configuration alone. */
static tp_status check_names(const tp_ablate_options *o, const tp_lever_report *reports, size_t n,
                             tp_error *err)
{
    for (size_t i = 0; i < o->n_levers; i++) {
        bool is_known = tp_lever_find(o->levers[i]) != NULL;
        for (size_t k = 0; k < n && !is_known; k++)
            is_known = strcmp(reports[k].lever->name, o->levers[i]) == 0;
        if (!is_known)
            return fail_unknown(o->levers[i], err);
    }
    return TP_OK;
}

static bool is_named(const tp_ablate_options *o, const char *name)
{
    for (size_t i = 0; i < o->n_levers; i++)
        if (strcmp(o->levers[i], name) == 0)
            return true;
    return false;
}

/* Passes that find nothing in the graphs of this configuration are not looked at unless they are
 * named. */
static void say_idle(const tp_ablate_options *o, const tp_lever_report *reports, size_t n)
{
    TP_OWN(tp_buf) names = {0};
    for (size_t i = 0; i < n; i++)
        if (tp_lever_is_idle(&reports[i]))
            tp_buf_addf(&names, "%s%s", names.len ? ", " : "", reports[i].lever->name);
    if (names.len && o->common.note) {
        tp_buf_adds(&names, ": nothing to do here by the plan, not measured");
        o->common.note(o->common.user, names.data);
    }
}

/* Those that the configuration has, in the order of the table: all, unless some are named or own
 * ones are given. */
static tp_status add_known(chosen *c, const tp_ablate_options *o, const char *config,
                           const char *const *overrides, size_t n, tp_error *err)
{
    size_t n_reports;
    if (o->n_levers == 0 && o->n_own > 0)
        return TP_OK;
    TP_TRY(tp_training_levers(config, overrides, n, &c->reports, &n_reports, err));
    const tp_lever_report *reports = c->reports;
    tp_status status = check_names(o, reports, n_reports, err);
    for (size_t i = 0; i < n_reports && status == TP_OK; i++) {
        const tp_lever *known = reports[i].lever;
        tp_set_lever lever = {.name = known->name,
                              .what = known->what,
                              .recipe = reports[i].state == TP_LEVER_OFF ? TP_PUT_OFF : TP_PUT_ON};
        bool is_wanted = o->n_levers ? is_named(o, known->name) : !tp_lever_is_idle(&reports[i]);
        if (is_wanted)
            status = add(c, &lever, &(chosen_lever){.known = known}, err);
        else if (o->n_levers && shares_list(known) && lever.recipe == TP_PUT_OFF)
            c->off[c->n_off++] = known;
    }
    if (o->n_levers == 0)
        say_idle(o, reports, n_reports);
    return status;
}

static tp_status choose(chosen *c, const tp_ablate_options *o, const char *config,
                        const char *const *overrides, size_t n, tp_error *err)
{
    for (size_t i = 0; i < o->n_own; i++)
        TP_TRY(add_own(c, o->own[i], err));
    TP_TRY(add_known(c, o, config, overrides, n, err));
    return c->n ? TP_OK
                : tp_fail(err, TP_ERR_ARG, "the configuration has none of the levers named");
}

/* ---- the public functions ---- */

/* What both need: the levers, and what is done with them. */
typedef tp_status (*use)(const void *options, const tp_lever_set *set, const char *config,
                         const char *const *overrides, size_t n, char **ret, tp_error *err);

static tp_status with_levers(const tp_ablate_options *which, use then, const void *options,
                             const char *config, const char *const *overrides, size_t n, char **ret,
                             tp_error *err)
{
    if (tp_comm_is_launched())
        return tp_fail(err, TP_ERR_ARG,
                       "ablate and tune measure runs of one process: start them without mpirun");
    TP_TRY(tp_recipe_check_again(config, err));
    TP_FREED chosen *c = tp_new(1, sizeof *c);
    tp_status status = tp_arena_init(&c->arena, 64 << 20, err);
    if (status == TP_OK)
        status = choose(c, which, config, overrides, n, err);
    const tp_lever_set set = {.levers = c->levers,
                              .n = c->n,
                              .settings = settings_of,
                              .recipe = tp_recipe_heir,
                              .user = c};
    if (status == TP_OK)
        status = then(options, &set, config, overrides, n, ret, err);
    tp_arena_release(&c->arena);
    tp_free(c->reports);
    return status;
}

static tp_status ablate(const void *options, const tp_lever_set *set, const char *config,
                        const char *const *overrides, size_t n, char **ret, tp_error *err)
{
    return tp_ablate(config, overrides, n, options, set, ret, err);
}

static tp_status tune(const void *options, const tp_lever_set *set, const char *config,
                      const char *const *overrides, size_t n, char **ret, tp_error *err)
{
    return tp_tune(config, overrides, n, options, set, ret, err);
}

tp_status tp_ablate_run(const char *config, const char *const *overrides, size_t n_overrides,
                        const tp_ablate_options *options, char **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(ret && (overrides || !n_overrides), err);
    tp_ablate_options o;
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_ablate_options", err));
    TP_NEED((o.levers || !o.n_levers) && (o.own || !o.n_own), err);
    return with_levers(&o, ablate, &o, config, overrides, n_overrides, ret, err);
}

tp_status tp_tune_run(const char *config, const char *const *overrides, size_t n_overrides,
                      const tp_tune_options *options, char **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    TP_NEED(ret && (overrides || !n_overrides), err);
    tp_tune_options o;
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_tune_options", err));
    const tp_ablate_options all = {.common = o.common};
    if (o.goal < TP_GOAL_TOKENS_PER_S || o.goal > TP_GOAL_COST || o.memory_bytes < 0)
        return tp_fail(err, TP_ERR_ARG, "tp_tune_run: there is no such goal, or memory is below 0");
    return with_levers(&all, tune, &o, config, overrides, n_overrides, ret, err);
}

void tp_experiment_interrupt(void) { tp_process_interrupt(); }
