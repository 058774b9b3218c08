/* study.c - flags, progress and signals of commands that measure many short runs. */
#include "cli/study.h"

#include <signal.h>

#include "cli/cli.h"

/* A second signal waits like the first: what is measured are processes, which must end first. */
static void on_signal(int number)
{
    tp_experiment_interrupt();
    if (!tp_cli_should_stop(NULL))
        tp_cli_ask_to_stop(number);
}

static void show_progress(void *user, const char *line)
{
    (void)user;
    tp_waiting_say(line);
}

int tp_study_options(const char *command, const tp_study_flags *f, tp_experiment_options *ret)
{
    *ret = (tp_experiment_options){.timeout_s = f->timeout_s,
                                   .steps = f->steps,
                                   .margin = f->margin,
                                   .no_warm_up = f->warm_up == 0,
                                   .warm_up = f->warm_up,
                                   .has_seed = true,
                                   .seed = f->seed,
                                   .folder = f->out,
                                   .form = tp_cli_form(f->json, false, false),
                                   .width = tp_cli_width(),
                                   .progress = f->quiet ? NULL : show_progress,
                                   .note = f->quiet ? NULL : tp_cli_note};
    if (f->budget && !tp_cli_time(f->budget, &ret->budget_s))
        return tp_cli_refuse(command, "--budget takes a time (30s, 10m, 1h), not '%s'", f->budget);
    return 0;
}

void tp_study_catch_signals(void)
{
    tp_cli_catch(SIGINT, on_signal);
    tp_cli_catch(SIGTERM, on_signal);
}

int tp_study_finish(tp_status done, char *text, const tp_error *err)
{
    return tp_cli_stopped(tp_cli_print(done, text, err));
}
