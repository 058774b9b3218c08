/* levers.h - what makes a run faster or smaller, one row a lever: what it does, how it is switched,
 * what the plan says that it gives.
 *
 *     for (size_t i = 0; (lever = tp_lever_at(i)); i++)
 *         printf("%s: on %s, off %s\n", lever->name, lever->on, lever->off);
 *
 * `optimization.level` sets all of them that a recipe does not set itself.
 *
 * Threads: any, at once. */
#ifndef TEMPER_LEVERS_H
#define TEMPER_LEVERS_H

#include "temper/error.h"
#include "temper/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As words of optimization.level: "basic", "advanced", "ultra". */
typedef enum { TP_LEVEL_BASIC, TP_LEVEL_ADVANCED, TP_LEVEL_ULTRA, TP_LEVELS } tp_level;

/* Settings are texts "key=value", with a blank between two. */
typedef struct {
    const char *name; /* "fuse-swiglu" */
    const char *what; /* one sentence */
    const char *on, *off;
    const char *level[TP_LEVELS]; /* NULL: the keys' own defaults */
    bool may_change_bits;         /* of losses and weights, by rounding */
} tp_lever;

TP_API const tp_lever *tp_lever_at(size_t i); /* NULL behind the last one */
TP_API const tp_lever *tp_lever_find(const char *name);

typedef struct {
    const tp_lever *lever;
    bool is_on;
} tp_lever_choice;

/* The overrides that put n levers as they are chosen, one "key=value" a text: levers that share a
 * list (engine.disable_passes) are put into one, so that overrides of single levers, one behind
 * the other, would not do.  One block, to be freed with tp_free(*ret). */
TP_API TP_CHECKED tp_status tp_lever_overrides(const tp_lever_choice *choices, size_t n,
                                               char ***ret, size_t *ret_n, tp_error *err);

typedef enum { TP_LEVER_OFF, TP_LEVER_ON, TP_LEVER_FELL_BACK } tp_lever_state;
TP_API const char *tp_lever_state_name(tp_lever_state state); /* "off", "on", "fell back" */

/* A lever in one configuration.  What it saves: with the lever rather than without it, all others
 * as they are; NaN: the plan cannot tell. */
typedef struct {
    const tp_lever *lever;
    tp_lever_state state;
    char why[192];      /* who has set it: "level advanced", "sft.yaml:12"; or why it fell back */
    double saved_bytes; /* of the planned peak */
    double saved_s;     /* of a step at the machine's ceilings */
    double saved_launches; /* of a micro-batch, forward and backward */
} tp_lever_report;

/* Every lever that the configuration has; `config`, `overrides` as for tp_training_run().  Costs
 * a plan for each; reads no data.  tp_free(*ret), which frees the levers of plug-ins as well. */
TP_API TP_CHECKED tp_status tp_training_levers(const char *config, const char *const *overrides,
                                               size_t n_overrides, tp_lever_report **ret,
                                               size_t *ret_n, tp_error *err);

#ifdef __cplusplus
}
#endif

#endif
