/* train_show.c - a run with everything that a person sees of it: progress, levers, closing tables.
 */
#include <string.h>

#include "api/ceilings.h"
#include "api/profile.h"
#include "api/tables.h"
#include "api/train_progress.h"
#include "api/training.h"
#include "base/files.h"
#include "base/platform.h"
#include "base/sized.h"
#include "base/wrap.h"
#include "engine/comm/comm.h"
#include "engine/train/recipe.h"
#include "temper/train.h"

typedef struct {
    tp_progress progress;
    const tp_machine *machine;
    const char *dump_dir;
} watcher;

static bool should_stop(void *user)
{
    const watcher *w = user;
    const tp_training_screen *screen = w->progress.screen;
    return screen->should_stop && screen->should_stop(screen->user);
}

/* ---- closing tables ---- */

static void put_profile(const tp_train_event *e, const tp_machine *machine, tp_json_w *w)
{
    tp_trace_summary summary;
    tp_trace_summarize(&summary);
    tp_json_w_key(w, "profile");
    tp_json_profile(e, machine, &summary, w);
    tp_trace_summary_release(&summary);
}

static void add_profile(const tp_train_event *e, const tp_machine *machine, int width, tp_buf *out)
{
    tp_trace_summary summary;
    tp_trace_summarize(&summary);
    tp_buf_addc(out, '\n');
    tp_table_profile(e, machine, &summary, width, out);
    tp_trace_summary_release(&summary);
}

static void add_json_summary(const tp_train_event *e, const tp_machine *machine, tp_buf *out)
{
    tp_json_w w = tp_json_w_open(out, 0, '{');
    tp_json_w_put_str(&w, "event", "tables");
    tp_json_w_put_str(&w, "run_dir", e->run_dir);
    tp_json_w_key(&w, "operators");
    tp_json_operators(e, &w);
    tp_json_w_key(&w, "memory");
    tp_json_memory(e, &w);
    tp_json_w_put_known(&w, "planned_step_s", e->plan->step_s);
    tp_json_w_put_known(&w, "measured_step_s", e->mean_step_s);
    tp_json_w_key(&w, "phases_s");
    tp_json_phases(e->phase_s, &w);
    tp_levers_put(e->levers, &w);
    tp_json_w_key(&w, "custom_metrics");
    tp_custom_write(e->custom, &w);
    if (e->profile)
        put_profile(e, machine, &w);
    tp_json_w_close(&w, '}');
}

static void add_summary(const watcher *w, const tp_train_event *e, tp_buf *out)
{
    const tp_training_screen *screen = w->progress.screen;
    int width = screen->columns ? screen->columns(screen->user) : 110;
    tp_buf_addc(out, '\n');
    if (e->counted_steps > 0) {
        tp_error ignored;
        if (!tp_table_operators(e, w->machine, 16, width, out))
            (void)!tp_machine_doubt(w->machine, &ignored);
        tp_buf_addc(out, '\n');
    }
    tp_table_memory(e->plan, &e->memory, out);
    tp_table_step(e, out);
    tp_buf_addc(out, '\n');
    tp_table_phases(e->phase_s, out);
    tp_table_custom(e, out);
    tp_table_levers_measured(e->levers, out);
    if (e->profile)
        add_profile(e, w->machine, width, out);
    tp_buf_addf(out, "\nrun folder: %s\n", e->run_dir);
}

static void observe(void *user, const tp_train_event *e)
{
    watcher *w = user;
    const tp_training_screen *screen = w->progress.screen;
    tp_buf out = {0};
    tp_progress_event(&w->progress, e);
    if (e->kind != TP_EVENT_FINISHED || !e->session)
        return;
    tp_progress_end(&w->progress);
    if (w->progress.mode == TP_PROGRESS_JSON)
        add_json_summary(e, w->machine, &out);
    else if (w->progress.mode != TP_PROGRESS_QUIET)
        add_summary(w, e, &out);
    if (screen->is_terminal && screen->columns && w->progress.mode != TP_PROGRESS_JSON) {
        tp_buf wrapped = {0};
        tp_add_wrapped(&wrapped, tp_buf_str(&out), out.len, (size_t)screen->columns(screen->user));
        tp_buf_release(&out);
        out = wrapped;
    }
    if (out.len && screen->print)
        screen->print(screen->user, out.data, out.len);
    tp_buf_release(&out);
}

/* engine.dump: the text of the stages asked for, into RUN/dump/. */
static void dump(void *user, const char *graph, const char *stage, const char *text)
{
    const watcher *w = user;
    const tp_training_screen *screen = w->progress.screen;
    char path[4096];
    tp_error err = {0};
    if (tp_dir_make(w->dump_dir, &err) == TP_OK) {
        snprintf(path, sizeof path, "%s/%s.%s.txt", w->dump_dir, graph, stage);
        if (tp_file_write_atomic(path, text, strlen(text), &err) == TP_OK)
            return;
    }
    if (screen->note)
        screen->note(screen->user, err.message);
}

/* ---- the run ---- */

/* A word of the screen, or else the recipe's. */
static tp_status find_mode(const tp_training_screen *screen, int configured, int *ret,
                           tp_error *err)
{
    static const char *const words[] = {"auto", "block", "plain", "json", "quiet"};
    *ret = configured;
    if (!screen->mode)
        return TP_OK;
    for (size_t i = 0; i < TP_COUNTOF(words); i++)
        if (strcmp(words[i], screen->mode) == 0) {
            *ret = (int)i;
            return TP_OK;
        }
    return tp_fail(err, TP_ERR_ARG, "--progress is auto, block, plain, json or quiet, not '%.60s'",
                   screen->mode);
}

/* A slip in a path is told before anything is measured; of several processes all go on to tell
 * each other. */
static tp_status check_files(const tp_recipe *recipe, tp_error *err)
{
    return tp_comm_is_launched()
               ? TP_OK
               : tp_train_options_check_files(recipe->config, &recipe->options, err);
}

static tp_status run(const tp_recipe *recipe, const tp_training_screen *screen,
                     tp_training_result *ret, tp_error *err)
{
    char dump_dir[4096];
    int mode;
    tp_machine machine;
    tp_training_result result = {0};
    watcher w = {.dump_dir = dump_dir};
    TP_TRY(find_mode(screen, recipe->options.progress, &mode, err));
    snprintf(dump_dir, sizeof dump_dir, "%s/dump", recipe->options.run_dir);
    tp_progress_init(&w.progress, mode, screen);
    TP_TRY(check_files(recipe, err));
    bool quiet = mode == TP_PROGRESS_QUIET || mode == TP_PROGRESS_JSON;
    if (tp_ceilings_find(&recipe->options, quiet ? NULL : screen->note, screen->user, &machine))
        w.machine = &machine;
    tp_train_hooks hooks = {.observe = observe,
                            .user = &w,
                            .should_stop = should_stop,
                            .machine = w.machine,
                            .resume = screen->resume,
                            .dump = dump};
    tp_status status = tp_train_with_sinks(recipe->config, &recipe->options, &hooks, &result, err);
    tp_sized_write(ret, &result, sizeof result);
    return status;
}

tp_status tp_training_show(const char *config, const char *const *overrides, size_t n_overrides,
                           const tp_training_screen *screen, tp_training_result *ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_training_screen own;
    TP_CLEANUP(tp_recipe_close) tp_recipe recipe = {0};
    TP_TRY(tp_sized_read(&own, sizeof own, screen, "tp_training_screen", err));
    TP_TRY(tp_sized_check(ret, "tp_training_result", err));
    TP_TRY(tp_recipe_open(config, overrides, n_overrides, &recipe, err));
    return run(&recipe, &own, ret, err);
}
