/* levers.h - the table of levers inside: levels, states, what a plan without each of them says.
 *
 * A row is a line of levers.def; nothing outside it tests which lever it is. */
#ifndef TP_ENGINE_TRAIN_LEVERS_H
#define TP_ENGINE_TRAIN_LEVERS_H

#include "engine/exec/machine.h"
#include "engine/passes/plugin.h"
#include "engine/train/options.h"
#include "engine/train/plan.h"
#include "temper/levers.h"

enum { TP_LEVERS_MOST = 64 };

/* What a lever gave, once a run is over. */
typedef struct {
    const char *what, *unit; /* "padding", "share"; what NULL: nothing is known */
    double value;
} tp_lever_measure;

typedef struct trainer trainer;

/* ---- a row of the table ---- */

/* What a plan with the lever the other way can tell about it. */
enum { TP_TELLS_BYTES = 1, TP_TELLS_SECONDS = 2, TP_TELLS_LAUNCHES = 4 };

typedef struct {
    tp_lever shown;
    unsigned told;
    /* (optional) state and reason where the settings do not say them */
    void (*look)(const tp_train_options *o, tp_lever_report *r);
    /* (optional) */
    tp_lever_measure (*measure)(const trainer *t);
} tp_lever_row;

/* ---- what is said of them ---- */

/* The row of a plug-in's pass, as long as the reports that name it. */
typedef struct {
    tp_lever_row row;
    char name[64], off[96];
} tp_plugin_lever;

typedef struct {
    tp_lever_report v[TP_LEVERS_MOST];
    tp_lever_measure measured[TP_LEVERS_MOST];
    int n;
    tp_plugin_lever plugins[TP_PLUGINS_MOST]; /* `v` points to them: reports are not copied */
} tp_lever_reports;

/* Before binding: every lever's keys that the configuration leaves open are set as its
 * optimization.level says, with the origin "level advanced".  `table` has the keys there are. */
TP_CHECKED tp_status tp_level_apply(tp_config *config, const tp_option *table, size_t n,
                                    tp_error *err);
/* Did the user set the key? */
bool tp_level_left_open(const tp_config *config, const char *key);

/* States of the levers that this configuration has; savings stay unknown. */
void tp_levers_look(const tp_config *config, const tp_train_options *o, tp_lever_reports *ret);
/* The same once more, of reports that are there: savings stay. */
void tp_levers_look_again(const tp_config *config, const tp_train_options *o,
                          tp_lever_reports *levers);
/* What each saves: the run is planned once more with each of them the other way. */
void tp_levers_predict(const tp_config *config, const tp_train_options *o, const tp_model *model,
                       const tp_run_plan *now, bool resumes, const tp_machine *machine,
                       tp_lever_reports *levers);

/* Did the plan see that the lever finds nothing to do here? */
bool tp_lever_is_idle(const tp_lever_report *r);
/* What they gave in this run so far. */
void tp_levers_measure(const trainer *t, tp_lever_reports *levers);

/* "levers": [{"name", "state", "why", "predicted", "measured"}] */
void tp_levers_put(const tp_lever_reports *levers, tp_json_w *w);

/* ---- the table ---- */

extern const tp_lever_row tp_lever_rows[];
extern const size_t tp_lever_row_count;

/* The next of "key=value key=value"; false behind the last. */
bool tp_setting_next(const char **text, tp_slice *ret_key, tp_slice *ret_value);

#endif
