/* experiment.c - ablations and tuning: the levers of the engine, measured by the instrument. */
#include "temper/experiment.h"

#include <string.h>

#include "base/arena.h"
#include "base/sized.h"
#include "base/strings.h"
#include "instrument/bench/process.h"
#include "instrument/experiment/ablate.h"

enum { MOST_LEVERS = 256 };

/* A lever of the command line: NAME:KEY=ON/OFF. */
typedef struct {
    const char *on, *off; /* "KEY=ON" */
} own_lever;

typedef struct {
    tp_arena arena;
    tp_ablated levers[MOST_LEVERS];
    own_lever own[MOST_LEVERS];
    size_t n;
} chosen;

/* ---- which levers ---- */

static tp_status read_own(chosen *c, const char *text, tp_error *err)
{
    const char *colon = strchr(text, ':');
    const char *equals = colon ? strchr(colon, '=') : NULL;
    const char *slash = equals ? strrchr(equals, '/') : NULL;
    if (!slash || colon == text || equals == colon + 1)
        return tp_fail(err, TP_ERR_ARG,
                       "'%.200s' is no lever; one is NAME:KEY=ON/OFF, as in "
                       "recompute:policy.recompute=true/false",
                       text);
    if (c->n == MOST_LEVERS)
        return tp_fail(err, TP_ERR_ARG, "more than %d levers", MOST_LEVERS);
    const char *key = tp_arena_strndup(&c->arena, colon + 1, (size_t)(equals - colon));
    c->own[c->n] = (own_lever){
        .on = tp_arena_printf(&c->arena, "%s%.*s", key, (int)(slash - equals - 1), equals + 1),
        .off = tp_arena_printf(&c->arena, "%s%s", key, slash + 1)};
    c->levers[c->n] = (tp_ablated){
        .name = tp_arena_strndup(&c->arena, text, (size_t)(colon - text)),
        .what = tp_arena_printf(&c->arena, "%s on, %s off", c->own[c->n].on, c->own[c->n].off)};
    c->n++;
    return TP_OK;
}

static tp_status settings_of(void *user, const bool *on, tp_arena *arena, const char *const **ret,
                             size_t *ret_n, tp_error *err)
{
    const chosen *c = user;
    (void)err;
    const char **all = tp_arena_array(arena, const char *, c->n + 1);
    for (size_t i = 0; i < c->n; i++)
        all[i] = on[i] ? c->own[i].on : c->own[i].off;
    *ret = all;
    *ret_n = c->n;
    return TP_OK;
}

static tp_status choose(chosen *c, const tp_ablate_options *o, tp_error *err)
{
    for (size_t i = 0; i < o->n_own; i++)
        TP_TRY(read_own(c, o->own[i], err));
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(c->levers[i].name, c->levers[k].name) == 0)
                return tp_fail(err, TP_ERR_ARG, "there are two levers '%s'", c->levers[i].name);
    return c->n ? TP_OK : tp_fail(err, TP_ERR_ARG, "no lever to look at");
}

/* ---- the public functions ---- */

tp_status tp_ablate_run(const char *config, const char *const *overrides, size_t n_overrides,
                        const tp_ablate_options *options, char **ret, tp_error *err)
{
    TP_NEED(ret && (overrides || !n_overrides), err);
    tp_ablate_options o;
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_ablate_options", err));
    TP_NEED((o.levers || !o.n_levers) && (o.own || !o.n_own), err);
    chosen *c = calloc(1, sizeof *c);
    if (!c)
        return tp_fail(err, TP_ERR_NOMEM, "no memory for the levers");
    tp_status status = tp_arena_init(&c->arena, 64 << 20, err);
    if (status == TP_OK)
        status = choose(c, &o, err);
    const tp_lever_set set = {.levers = c->levers, .n = c->n, .settings = settings_of, .user = c};
    if (status == TP_OK)
        status = tp_ablate(config, overrides, n_overrides, &o, &set, ret, err);
    tp_arena_release(&c->arena);
    free(c);
    return status;
}

void tp_experiment_interrupt(void) { tp_process_interrupt(); }
