/* trainings.h - runs of `temper train`, `temper plan` and `temper config` as child processes, and
 * what their files say.
 *
 * The engine is asked by its command line and its files alone.  A run gets a folder of its own
 * below the experiment's, no validation, no checkpoint, no other sink; run.json and metrics.jsonl
 * are read and the folder goes.  The user's own run folder is never named. */
#ifndef TP_INSTRUMENT_EXPERIMENT_TRAININGS_H
#define TP_INSTRUMENT_EXPERIMENT_TRAININGS_H

#include "instrument/experiment/rounds.h"
#include "text/json/json.h"

typedef struct {
    const char *program;         /* temper */
    const char *config;          /* the recipe; NULL: settings alone */
    const char *const *settings; /* the user's, before those of a variant */
    size_t n_settings;
    const char *folder;        /* of the experiment */
    double timeout_s;          /* of one run */
    size_t n_warm_up, n_steps; /* left out; and measured */
    const tp_json *recipe;     /* resolved; of tp_trainings_look() */
    const char *section;       /* "sft": where max_num_steps is in it */
} tp_trainings;

/* Read the configuration with the variant's settings (NULL: none of them): the resolved tree.
 * A configuration that is refused is TP_ERR_CONFIG with the program's own words. */
TP_CHECKED tp_status tp_trainings_look(const tp_trainings *t, const tp_variant *variant,
                                       tp_arena *arena, const tp_json **ret, tp_error *err);
/* The member that has max_num_steps: "sft"; NULL: none. */
const char *tp_trainings_section(const tp_json *tree);

/* What `temper plan --json` says.  NULL in *ret: refused, *ret_why has its words. */
TP_CHECKED tp_status tp_trainings_plan(const tp_trainings *t, const tp_variant *variant,
                                       tp_arena *arena, const tp_json **ret, const char **ret_why,
                                       tp_error *err);

/* TP_ERR_CONFIG where the variant sets what every run sets itself, after it. */
TP_CHECKED tp_status tp_trainings_check(const tp_trainings *t, const tp_variant *variant,
                                        tp_arena *arena, tp_error *err);

/* Matches tp_trial_runner.run for a tp_trainings. */
tp_status tp_trainings_run(void *trainings, tp_arena *arena, const tp_variant *variant,
                           size_t number, tp_trial *ret, tp_error *err);
double tp_trainings_now_s(void *trainings);

#endif
