/* cmd_train.c - `temper train`: a run with its progress, its closing tables and its signals. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "api/ceilings.h"
#include "api/profile_tables.h"
#include "api/tables.h"
#include "api/training.h"
#include "base/files.h"
#include "cli/cli.h"
#include "cli/find_recipe.h"
#include "cli/progress.h"
#include "cli/recipe.h"

typedef struct {
    bool resume, quiet, json;
    const char *progress, *isa, *level;
} flags;

static const tp_flag flag_table[] = {
    TP_SWITCH("resume", 'r', resume, "continue the run from its newest checkpoint"),
    TP_SWITCH("quiet", 'q', quiet, "print errors only"),
    TP_TEXT("progress", 'p', "MODE", progress, "auto, block, plain, json or quiet"),
    TP_SWITCH("json", 0, json, "one JSON object per event, and the closing tables as the last one"),
    TP_TEXT("isa", 0, "LEVEL", isa, "the same as engine.isa=LEVEL"),
    TP_TEXT("level", 0, "LEVEL", level,
            "the same as optimization.level=LEVEL: basic, advanced, ultra"),
    {0}};

static volatile sig_atomic_t stop_signal;

/* The first signal asks the loop to stop after the step; the second ends at once. */
static void on_signal(int number)
{
    if (stop_signal)
        _exit(128 + number);
    stop_signal = number;
}

static void say(void *user, const char *text)
{
    (void)user;
    fprintf(stderr, "temper: %s\n", text);
}

typedef struct {
    tp_progress progress;
    const tp_machine *machine;
    const char *dump_dir;
    int64_t steps_here;
    bool json;
} watcher;

static bool should_stop(void *user)
{
    (void)user;
    return stop_signal != 0;
}

static void put_profile(const tp_train_event *e, const tp_machine *machine, tp_json_w *w)
{
    tp_trace_summary summary;
    tp_trace_summarize(&summary);
    tp_json_w_key(w, "profile");
    tp_json_profile(e, machine, &summary, w);
    tp_trace_summary_release(&summary);
}

static void add_profile(const tp_train_event *e, const tp_machine *machine, tp_buf *out)
{
    tp_trace_summary summary;
    tp_trace_summarize(&summary);
    tp_buf_addc(out, '\n');
    tp_table_profile(e, machine, &summary, out);
    tp_trace_summary_release(&summary);
}

static void print_json_summary(const tp_train_event *e, const tp_machine *machine, int64_t steps)
{
    tp_buf out = {0};
    tp_json_w w;
    tp_json_w_init(&w, &out, 0);
    tp_json_w_begin(&w, '{');
    tp_json_w_put_str(&w, "event", "tables");
    tp_json_w_put_str(&w, "run_dir", e->run_dir);
    tp_json_w_key(&w, "operators");
    tp_json_operators(e->session, steps, &w);
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
    tp_json_w_end(&w, '}');
    puts(tp_buf_str(&out));
    fflush(stdout);
    tp_buf_release(&out);
}

static void print_summary(const watcher *w, const tp_train_event *e)
{
    tp_buf out = {0};
    int64_t steps = e->step - e->first_step;
    tp_buf_addc(&out, '\n');
    if (steps > 0) {
        tp_error ignored;
        if (!tp_table_operators(e->session, w->machine, steps, 16, tp_cli_width(), &out))
            (void)!tp_machine_doubt(w->machine, &ignored);
        tp_buf_addc(&out, '\n');
    }
    tp_table_memory(e->plan, &e->memory, &out);
    tp_table_step(e, &out);
    tp_buf_addc(&out, '\n');
    tp_table_phases(e->phase_s, &out);
    tp_table_custom(e, &out);
    tp_table_levers_measured(e->levers, &out);
    if (e->profile)
        add_profile(e, w->machine, &out);
    tp_buf_addf(&out, "\nrun folder: %s\n", e->run_dir);
    fwrite(out.data, 1, out.len, stdout);
    fflush(stdout);
    tp_buf_release(&out);
}

static void print_levers(const tp_lever_reports *levers)
{
    tp_buf out = {0};
    tp_table_levers(levers, &out);
    tp_buf_addc(&out, '\n');
    fwrite(out.data, 1, out.len, stdout);
    tp_buf_release(&out);
}

static void observe(void *user, const tp_train_event *event)
{
    watcher *w = user;
    bool is_shown = !w->json && w->progress.mode != TP_PROGRESS_QUIET;
    if (event->kind == TP_EVENT_START && is_shown)
        print_levers(event->levers);
    tp_progress_event(&w->progress, event);
    if (event->kind == TP_EVENT_FINISHED && event->session) {
        tp_progress_end(&w->progress);
        if (w->json)
            print_json_summary(event, w->machine, event->step - event->first_step);
        else if (w->progress.mode != TP_PROGRESS_QUIET)
            print_summary(w, event);
    }
}

/* engine.dump: the text of the stages asked for, into RUN/dump/. */
static void dump(void *user, const char *graph, const char *stage, const char *text)
{
    const watcher *w = user;
    char path[4096];
    tp_error err = {0};
    if (tp_dir_make(w->dump_dir, &err) == TP_OK) {
        snprintf(path, sizeof path, "%s/%s.%s.txt", w->dump_dir, graph, stage);
        if (tp_file_write_atomic(path, text, strlen(text), &err) == TP_OK)
            return;
    }
    fprintf(stderr, "temper: %s\n", err.message);
}

static int progress_mode(const flags *f, int configured)
{
    static const char *const words[] = {"auto", "block", "plain", "json", "quiet"};
    if (f->quiet)
        return TP_PROGRESS_QUIET;
    if (f->json)
        return TP_PROGRESS_JSON;
    for (int i = 0; f->progress && i < 5; i++)
        if (strcmp(words[i], f->progress) == 0)
            return i;
    return f->progress ? -1 : configured;
}

static void catch_signals(void)
{
    tp_cli_catch(SIGINT, on_signal);
    tp_cli_catch(SIGTERM, on_signal);
    tp_cli_catch(SIGUSR1, on_signal);
}

static int run(tp_recipe *recipe, const flags *f, int mode)
{
    char dump_dir[4096];
    tp_error err = {0};
    tp_machine machine;
    tp_train_result result;
    watcher w = {.json = mode == TP_PROGRESS_JSON, .dump_dir = dump_dir};
    snprintf(dump_dir, sizeof dump_dir, "%s/dump", recipe->options.run_dir);
    tp_progress_init(&w.progress, mode);
    bool quiet = mode == TP_PROGRESS_QUIET || mode == TP_PROGRESS_JSON;
    if (tp_ceilings_find(&recipe->options, quiet ? NULL : say, NULL, &machine))
        w.machine = &machine;
    tp_train_hooks hooks = {.observe = observe,
                            .user = &w,
                            .should_stop = should_stop,
                            .machine = w.machine,
                            .resume = f->resume,
                            .dump = dump};
    catch_signals();
    tp_status status = tp_train_with_sinks(recipe->config, &recipe->options, &hooks, &result, &err);
    if (status == TP_ERR_INTERRUPTED) {
        fprintf(stderr, "temper: %s\n", err.message);
        return stop_signal ? 128 + stop_signal : result.was_asked_to ? TP_EXIT_WORSE : 0;
    }
    return status == TP_OK ? 0 : tp_cli_fail(&err);
}

int tp_cmd_train(int argc, char **argv)
{
    flags f = {0};
    char *words[argc + 2];
    tp_error err = {0};
    tp_recipe recipe;
    const tp_usage usage = {
        .command = "train",
        .arguments = "CONFIG [KEY=VALUE...]",
        .summary = "Train a model as the configuration says; writes a run folder.",
        .flags = flag_table,
        .details = "Ctrl-C or SIGTERM saves a checkpoint after the current step and stops; a "
                   "second one stops at once.  --resume continues bit for bit.",
        .min_words = 1,
        .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    char isa[TP_CLI_SETTING], level[TP_CLI_SETTING];
    n = tp_cli_add_setting(words, n, "engine.isa", f.isa, isa);
    n = tp_cli_add_setting(words, n, "optimization.level", f.level, level);
    if (tp_cli_open_recipe(words, n, &recipe, &err) != TP_OK)
        return tp_cli_fail(&err);
    int mode = progress_mode(&f, recipe.options.progress);
    if (mode < 0) {
        fprintf(stderr, "temper train: --progress is auto, block, plain, json or quiet, not '%s'\n",
                f.progress);
        tp_recipe_close(&recipe);
        return 2;
    }
    int status = run(&recipe, &f, mode);
    tp_recipe_close(&recipe);
    return status;
}
