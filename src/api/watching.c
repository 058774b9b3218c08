/* watching.c - samples become metrics, metrics are heard by alarms, and alarms do what they are to.
 */
#include "api/watching.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "engine/train/recipe.h"
#include "instrument/monitor/alarm_feed.h"
#include "temper/trace.h"

/* A named pipe without a reader is an error, not a wait. */
enum { FOR_LINES = O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC };

static const double command_limit_s = 60;

/* A rule over a figure that no run of Temper has would never say anything. */
static tp_status check_metrics(const tp_alarm_set *set, tp_error *err)
{
    for (size_t i = 0; i < set->n; i++)
        for (size_t k = 0; k < set->alarms[i].rule.n; k++) {
            const tp_alarm_condition *c = &set->alarms[i].rule.conditions[k];
            tp_nearest near = {.word = c->subject};
            bool is_known = false;
            for (size_t m = 0; m < TP_METRIC_DEFS; m++) {
                is_known |= tp_alarm_rank(c, tp_metric_defs[m].name) >= 0;
                tp_nearest_offer(&near, tp_metric_defs[m].name);
            }
            if (!is_known)
                return tp_fail(err, TP_ERR_CONFIG, "'%.200s': no metric is called '%s'%s%s%s",
                               set->alarms[i].rule.text, c->subject,
                               near.best ? "; did you mean '" : " (docs/guide/metrics.md)",
                               near.best ? near.best : "", near.best ? "'?" : "");
        }
    return TP_OK;
}

tp_status tp_watching_read(tp_watching *w, const tp_config *config, const tp_train_options *options,
                           tp_error *err)
{
    char where[64], path[128];
    tp_error why = {0};
    *w = (tp_watching){.o = options};
    tp_status status = tp_alarm_plan_read(&w->plan, options->monitor.alarms, where, &why);
    if (status != TP_OK) {
        snprintf(path, sizeof path, "monitor.alarms%s", where);
        status = tp_config_fail(config, path, err, "%s", why.message);
    } else if (check_metrics(&w->plan.set, &why) != TP_OK) {
        status = tp_config_fail(config, "monitor.alarms", err, "%s", why.message);
    }
    if (status != TP_OK)
        tp_watching_release(w);
    return status;
}

void tp_watching_release(tp_watching *w) { tp_alarm_plan_release(&w->plan); }

/* ---- hearing ---- */

static void hear(void *user, const tp_metric_record *record)
{
    tp_watching *w = user;
    double start = tp_clock_s();
    for (size_t i = 0; i < record->n; i++)
        tp_alarm_set_see(&w->plan.set, record->points[i].def->name, (double)record->step,
                         record->wall_s, record->points[i].value);
    w->cost_s += tp_clock_s() - start;
}

static bool has_rule(const tp_alarm_set *set, const char *text)
{
    for (size_t i = 0; i < set->n; i++)
        if (strcmp(set->alarms[i].rule.text, text) == 0)
            return true;
    return false;
}

/* Rules that the attempt before did not have are still to say what is true.  Its configuration is
 * kept where it was another. */
static void note_new_rules(tp_watching *w)
{
    char path[4096], where[64];
    tp_error ignored;
    TP_CLEANUP(tp_recipe_close) tp_recipe before = {0};
    TP_CLEANUP(tp_alarm_plan_release) tp_alarm_plan had = {0};
    snprintf(path, sizeof path, "%s/config.attempt-%d.yaml", w->run_dir, w->attempt - 1);
    if (!tp_file_exists(path) || tp_recipe_read_sizes(path, NULL, 0, &before, &ignored) != TP_OK ||
        tp_alarm_plan_read(&had, before.options.monitor.alarms, where, &ignored) != TP_OK)
        return;
    for (size_t i = 0; i < w->plan.set.n; i++)
        w->plan.set.alarms[i].is_on &= has_rule(&had.set, w->plan.set.alarms[i].rule.text);
}

/* What the attempts before heard: a rule that was true then has said so. */
static void hear_before(tp_watching *w, int64_t step)
{
    tp_metrics *m;
    tp_error ignored;
    TP_OWN(tp_alarm_feed) feed = {.until = (double)step};
    if (!step || !w->plan.set.n || w->attempt < 2 ||
        tp_metrics_open(w->run_dir, NULL, &m, &ignored) != TP_OK)
        return;
    tp_alarm_feed_run(&feed, &w->plan.set, m);
    tp_metrics_close(m);
    w->n_done = w->plan.set.n_events;
    note_new_rules(w);
}

/* ---- samples ---- */

static void publish(tp_watching *w)
{
    tp_monitor_sample s;
    tp_monitor_report r = {.size = sizeof r};
    double start = tp_clock_s();
    while (tp_monitor_take(w->monitor, &s)) {
        tp_monitor_read_report(w->monitor, &r);
        tp_metric_begin_sample(w->bus, "time", s.step, s.wall_time);
        for (size_t i = 0; i < s.n; i++)
            tp_metric_put(w->bus, s.figures[i].name, s.figures[i].value);
        if (strcmp(s.group, "training") == 0 && r.elapsed_s > 0)
            tp_metric_put(w->bus, "monitor/cost_share", (r.cost_s + w->cost_s) / r.elapsed_s);
        tp_metric_end(w->bus);
    }
    w->cost_s += tp_clock_s() - start;
}

void tp_watching_begin(tp_watching *w, tp_metric_bus *bus, const tp_train_event *start)
{
    tp_error why;
    const tp_monitor_options options = {.size = sizeof options,
                                        .training_s = w->o->monitor.training_s,
                                        .inference_s = w->o->monitor.inference_s,
                                        .memory_s = w->o->monitor.memory_s};
    w->bus = bus;
    w->attempt = start->attempt;
    w->started_s = tp_clock_s();
    snprintf(w->run_dir, sizeof w->run_dir, "%s", start->run_dir);
    hear_before(w, start->step);
    if (w->plan.set.n)
        tp_metric_subscribe(bus, hear, w);
    if (!w->o->monitor.enabled)
        return;
    if (tp_monitor_start(&options, &w->monitor, &why) == TP_OK)
        tp_monitor_at(w->monitor, start->step);
    else
        tp_log(TP_LOG_WARNING, "monitor", "%s; the run goes on without it", why.message);
}

void tp_watching_note(tp_watching *w, const tp_train_event *event)
{
    if (!w->monitor || !event->metrics || event->kind == TP_EVENT_FINISHED)
        return;
    tp_monitor_at(w->monitor, event->step);
    publish(w);
}

/* ---- what an alarm does ---- */

static void reap(tp_watching *w, double limit_s)
{
    for (int i = 0; i < TP_WATCHING_COMMANDS; i++) {
        pid_t pid = w->commands[i].pid;
        int status;
        if (pid <= 0)
            continue;
        if (waitpid(pid, &status, WNOHANG) == pid) {
            tp_child_kill(pid); /* and what it started */
            w->commands[i].pid = 0;
        } else if (tp_clock_s() - w->commands[i].started_s > limit_s) {
            tp_log(TP_LOG_WARNING, "alarm", "a command took longer than %.0f s and is ended",
                   limit_s);
            tp_child_kill(pid);
            (void)!waitpid(pid, &status, 0);
            w->commands[i].pid = 0;
        }
    }
}

static char **environment_of(const tp_watching *w, const tp_alarm_event *e, char **ret_own)
{
    extern char **environ;
    size_t n = 0, used = 0;
    const tp_alarm *a = &w->plan.set.alarms[e->alarm];
    tp_buf own[5] = {{0}};
    tp_buf_addf(&own[0], "TEMPER_ALARM=%s", a->name);
    tp_buf_addf(&own[1], "TEMPER_ALARM_RULE=%s", a->rule.text);
    tp_buf_addf(&own[2], "TEMPER_ALARM_STEP=%.0f", e->step);
    tp_buf_addf(&own[3], "TEMPER_ALARM_TEXT=%s", e->text);
    tp_buf_addf(&own[4], "TEMPER_ALARM_RUN=%s", w->run_dir);
    while (environ[n])
        n++;
    char **envp = tp_new(n + 6, sizeof *envp);
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "TEMPER_ALARM", 12) != 0)
            envp[used++] = environ[i];
    for (int i = 0; i < 5; i++)
        envp[used++] = ret_own[i] = own[i].data;
    return envp;
}

/* Its output goes into alarms.log of the run. */
static void start_command(tp_watching *w, const tp_alarm_event *e, const tp_alarm_deed *deed)
{
    char path[4096], *own[5];
    int slot = 0;
    while (slot < TP_WATCHING_COMMANDS && w->commands[slot].pid)
        slot++;
    if (slot == TP_WATCHING_COMMANDS) {
        tp_log(TP_LOG_WARNING, "alarm", "'%s' is not run: %d commands are at work already",
               deed->argv[0], TP_WATCHING_COMMANDS);
        return;
    }
    snprintf(path, sizeof path, "%s/alarms.log", w->run_dir);
    int log = open(path, FOR_LINES, 0644);
    TP_FREED char **envp = environment_of(w, e, own);
    const tp_child child = {.argv = deed->argv,
                            .envp = envp,
                            .in = TP_CHILD_NULL,
                            .out = log >= 0 ? log : TP_CHILD_NULL,
                            .err = log >= 0 ? log : TP_CHILD_NULL};
    int failure = tp_child_start(&child, &w->commands[slot].pid);
    if (failure) {
        w->commands[slot].pid = 0;
        tp_log(TP_LOG_WARNING, "alarm", "'%s' cannot be run: %s", deed->argv[0], strerror(failure));
    }
    w->commands[slot].started_s = tp_clock_s();
    if (log >= 0)
        close(log);
    for (int i = 0; i < 5; i++)
        free(own[i]);
}

static void mark(const tp_watching *w, const tp_alarm_event *e)
{
    char path[4096];
    TP_OWN(tp_buf) line = {0};
    const tp_alarm *a = &w->plan.set.alarms[e->alarm];
    snprintf(path, sizeof path, "%s/alarms.jsonl", w->run_dir);
    tp_json_w j = tp_json_w_open(&line, 0, '{');
    tp_json_w_put_known(&j, "t", e->wall);
    tp_json_w_put_i64(&j, "attempt", w->attempt);
    tp_json_w_put_i64(&j, "step", (int64_t)e->step);
    tp_json_w_put_str(&j, "name", a->name);
    tp_json_w_put_str(&j, "rule", a->rule.text);
    tp_json_w_put_str(&j, "tag", e->tag);
    tp_json_w_put_f64(&j, "value", e->value);
    tp_json_w_put_str(&j, "text", e->text);
    tp_json_w_close(&j, '}');
    TP_MARK("alarm", line.data);
    int fd = open(path, FOR_LINES, 0644);
    if (fd < 0 || write(fd, line.data, line.len) != (ssize_t)line.len)
        tp_log(TP_LOG_WARNING, "alarm", "cannot write '%s': %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
}

static void act(tp_watching *w, const tp_alarm_event *e, tp_train_request *r)
{
    const tp_alarm_deed *deed = &w->plan.deeds[e->alarm];
    const char *name = w->plan.set.alarms[e->alarm].name;
    if (deed->does & TP_ALARM_SAY)
        tp_log(TP_LOG_WARNING, "alarm", "step %.0f: %s: %s", e->step, name, e->text);
    if (deed->does & TP_ALARM_MARK)
        mark(w, e);
    if (deed->argv[0])
        start_command(w, e, deed);
    bool asks = deed->lower_rate > 0 || deed->does & (TP_ALARM_CHECKPOINT | TP_ALARM_STOP);
    if (!asks)
        return;
    if (deed->lower_rate > 0)
        r->lr_factor = (r->lr_factor > 0 ? r->lr_factor : 1) * deed->lower_rate;
    r->checkpoint |= (deed->does & TP_ALARM_CHECKPOINT) != 0;
    if (!r->stop) /* the reason of the first that stops */
        snprintf(r->why, sizeof r->why, "%s: %.300s", name, e->text);
    r->stop |= (deed->does & TP_ALARM_STOP) != 0;
}

bool tp_watching_request(tp_watching *w, tp_train_request *ret)
{
    tp_train_request r = {.lr_factor = 0};
    reap(w, command_limit_s);
    for (; w->n_done < w->plan.set.n_events; w->n_done++)
        act(w, &w->plan.set.events[w->n_done], &r);
    *ret = r;
    return r.lr_factor > 0 || r.checkpoint || r.stop;
}

/* ---- the end ---- */

static bool has_commands(const tp_watching *w)
{
    for (int i = 0; i < TP_WATCHING_COMMANDS; i++)
        if (w->commands[i].pid > 0)
            return true;
    return false;
}

/* Commands have their time, also behind the end. */
static void end_commands(tp_watching *w)
{
    for (reap(w, command_limit_s); has_commands(w); reap(w, command_limit_s))
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static void write_report(const tp_watching *w, const tp_monitor_report *r)
{
    char path[4096];
    TP_OWN(tp_buf) out = {0};
    tp_error why;
    snprintf(path, sizeof path, "%s/monitor.json", w->run_dir);
    tp_json_w j = tp_json_w_open(&out, 2, '{');
    tp_json_w_put_i64(&j, "attempt", w->attempt);
    tp_json_w_put_f64(&j, "elapsed_s", r->elapsed_s);
    tp_json_w_put_f64(&j, "cost_s", r->cost_s + w->cost_s);
    tp_json_w_put_known(&j, "cost_share", (r->cost_s + w->cost_s) / r->elapsed_s);
    tp_json_w_put_i64(&j, "samples", (int64_t)r->samples);
    tp_json_w_put_i64(&j, "samples_lost", (int64_t)r->lost);
    tp_json_w_put_i64(&j, "alarms", (int64_t)w->plan.set.n_events);
    tp_json_w_close(&j, '}');
    if (tp_file_write_atomic(path, out.data, out.len, &why) != TP_OK)
        tp_log(TP_LOG_WARNING, "monitor", "%s", why.message);
}

void tp_watching_end(tp_watching *w)
{
    tp_monitor_report r = {.size = sizeof r};
    tp_train_request ignored;
    if (w->monitor) {
        tp_monitor_stop(w->monitor);
        publish(w);
        tp_monitor_read_report(w->monitor, &r);
        write_report(w, &r);
        tp_monitor_close(w->monitor);
        w->monitor = NULL;
    }
    tp_watching_request(w, &ignored); /* what the last samples made them say */
    end_commands(w);
}
