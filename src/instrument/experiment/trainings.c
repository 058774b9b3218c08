/* trainings.c - one short run of the engine in a child process, and its figures out of run.json and
 * metrics.jsonl. */
#include "instrument/experiment/trainings.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/terminal.h"
#include "instrument/bench/disturbance.h"
#include "instrument/bench/process.h"
#include "stats/stats.h"
#include "temper/analysis.h"
#include "temper/exit_status.h"
#include "text/yaml/yaml.h"

enum { MOST_TEXT = 16 << 20, MOST_ERRORS = 64 << 10, MOST_WORDS = 256 };

/* Of a processor that is hired a GiB of memory costs about an eighth: what a machine that is billed
 * by both would take for a token, in seconds of a processor. */
static const double GIB_PER_PROCESSOR = 8;

/* ---- a command line ---- */

typedef struct {
    const char *words[MOST_WORDS];
    size_t n;
} line;

static tp_status add(line *l, const char *word, tp_error *err)
{
    if (l->n + 1 >= MOST_WORDS)
        return tp_fail(err, TP_ERR_ARG, "more than %d settings for one run", MOST_WORDS - 8);
    l->words[l->n++] = word;
    l->words[l->n] = NULL;
    return TP_OK;
}

static tp_status begin(line *l, const tp_trainings *t, const char *command,
                       const tp_variant *variant, tp_error *err)
{
    l->n = 0;
    TP_TRY(add(l, t->program, err));
    TP_TRY(add(l, command, err));
    if (t->config)
        TP_TRY(add(l, t->config, err));
    for (size_t i = 0; i < t->n_settings; i++)
        TP_TRY(add(l, t->settings[i], err));
    for (size_t i = 0; variant && i < variant->n_settings; i++)
        TP_TRY(add(l, variant->settings[i], err));
    return TP_OK;
}

/* Where a child's standard error goes: memory. */
static tp_status open_errors(int *ret, tp_error *err)
{
    *ret = memfd_create("errors", MFD_CLOEXEC);
    return *ret > 0 ? TP_OK
                    : tp_fail(err, TP_ERR_IO, "no memory for what a run says: %s", strerror(errno));
}

/* The last thing that the program said of itself, in one line; NULL: nothing. */
static const char *read_errors(int fd, tp_arena *arena)
{
    char text[MOST_ERRORS];
    TP_OWN(tp_buf) shown = {0};
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    const char *last = text, *at = text;
    while ((at = strstr(at, "temper: "))) {
        at += strlen("temper: ");
        last = at;
    }
    tp_buf_add_shown(&shown, last, strcspn(last, "\n"), true);
    return shown.len ? tp_arena_strdup(arena, shown.data) : NULL;
}

/* Run to the end and read the JSON that it prints. */
static tp_status ask(const tp_trainings *t, const line *l, tp_arena *arena, const tp_json **ret,
                     int *ret_exit, const char **ret_why, tp_error *err)
{
    TP_OWN(tp_buf) out = {0};
    tp_process_usage usage;
    tp_process_command command = {.argv = l->words, .timeout_s = t->timeout_s};
    TP_TRY(open_errors(&command.error_fd, err));
    tp_status status = tp_process_read(&command, MOST_TEXT, &out, &usage, err);
    *ret = NULL;
    *ret_why = NULL;
    if (status == TP_OK) {
        *ret_exit = usage.exit_status;
        *ret_why = read_errors(command.error_fd, arena);
    }
    if (status == TP_OK && out.len > 0) {
        const char *text = tp_arena_strndup(arena, out.data, out.len);
        tp_json_options options = TP_JSON_TOLERANT;
        if (tp_json_parse(arena, l->words[1], text, out.len, &options, ret, NULL) != TP_OK)
            *ret = NULL;
    }
    close(command.error_fd);
    return status;
}

tp_status tp_trainings_look(const tp_trainings *t, const tp_variant *variant, tp_arena *arena,
                            const tp_json **ret, tp_error *err)
{
    line l;
    int ended;
    const char *why;
    TP_TRY(begin(&l, t, "config", variant, err));
    TP_TRY(add(&l, "--json", err));
    TP_TRY(ask(t, &l, arena, ret, &ended, &why, err));
    if (ended == 0 && *ret)
        return TP_OK;
    return tp_fail(err, TP_ERR_CONFIG, "%s", why ? why : "'temper config' said nothing");
}

const char *tp_trainings_section(const tp_json *tree)
{
    for (const tp_json *v = tree ? tree->child : NULL; v; v = v->next)
        if (v->type == TP_JSON_OBJECT && tp_json_get(v, "max_num_steps"))
            return v->key.data;
    return NULL;
}

tp_status tp_trainings_plan(const tp_trainings *t, const tp_variant *variant, tp_arena *arena,
                            const tp_json **ret, const char **ret_why, tp_error *err)
{
    line l;
    int ended;
    TP_TRY(begin(&l, t, "plan", variant, err));
    TP_TRY(add(&l, "--json", err));
    TP_TRY(ask(t, &l, arena, ret, &ended, ret_why, err));
    if (!*ret && !*ret_why)
        *ret_why = "'temper plan' said nothing";
    return TP_OK;
}

/* ---- what a run left ---- */

static const char *series(tp_metrics *m, tp_arena *arena, const char *tag, size_t *ret_n,
                          const double **ret)
{
    const tp_metric_point *points;
    size_t index = tp_metrics_find(m, tag);
    size_t n = index == SIZE_MAX ? 0 : tp_metrics_curve(m, index, &points);
    double *values = tp_arena_array(arena, double, n + 1);
    for (size_t i = 0; i < n; i++)
        values[i] = points[i].value;
    *ret = values;
    *ret_n = n;
    return n ? NULL : tp_arena_printf(arena, "it recorded no %s", tag);
}

static double median_behind(const double *v, size_t n, size_t left_out)
{
    double median = NAN;
    if (n <= left_out || tp_median(v + left_out, n - left_out, &median, NULL) != TP_OK)
        return NAN;
    return median;
}

static const char *read_metrics(const tp_trainings *t, const char *folder, tp_arena *arena,
                                tp_trial *ret)
{
    tp_metrics *m;
    tp_error err = {0};
    size_t n_tokens, n_losses;
    if (tp_metrics_open(folder, NULL, &m, &err) != TP_OK)
        return tp_arena_strdup(arena, err.message);
    const char *why = series(m, arena, "timing/train/total_step_time", &ret->n_steps, &ret->step_s);
    if (!why)
        why = series(m, arena, "performance/tokens_per_sec", &n_tokens, &ret->tokens_per_s);
    if (!why)
        why = series(m, arena, "train/loss", &n_losses, &ret->losses);
    tp_metrics_close(m);
    if (!why && (n_tokens != ret->n_steps || n_losses != ret->n_steps))
        why = "its metrics have gaps";
    if (!why && ret->n_steps <= t->n_warm_up)
        why = tp_arena_printf(
            arena,
            "%zu steps, of which %zu warm up: none is left; raise the limits of the "
            "run (max_num_steps, max_num_epochs) or lower --warm-up",
            ret->n_steps, t->n_warm_up);
    if (why)
        return why;
    ret->n_warm_up = t->n_warm_up;
    ret->values[TP_FIGURE_STEP_TIME] = median_behind(ret->step_s, ret->n_steps, t->n_warm_up);
    ret->values[TP_FIGURE_TOKENS] = median_behind(ret->tokens_per_s, ret->n_steps, t->n_warm_up);
    return NULL;
}

static const char *read_summary(const char *folder, tp_arena *arena, tp_trial *ret)
{
    tp_error err = {0};
    const tp_json *run;
    double threads = NAN;
    const char *path = tp_arena_printf(arena, "%s/run.json", folder);
    if (tp_json_read(arena, path, MOST_TEXT, &TP_JSON_TOLERANT, &run, &err) != TP_OK)
        return tp_arena_strdup(arena, err.message);
    const tp_json *memory = tp_json_get(run, "memory");
    (void)!tp_json_f64(tp_json_get(memory, "measured_peak_bytes"),
                       &ret->values[TP_FIGURE_PEAK_MEMORY]);
    (void)!tp_json_f64(tp_json_get(tp_json_get(run, "machine"), "threads"), &threads);
    ret->values[TP_FIGURE_COST] =
        (threads + ret->values[TP_FIGURE_PEAK_MEMORY] / 0x1p30 / GIB_PER_PROCESSOR) /
        ret->values[TP_FIGURE_TOKENS];
    return NULL;
}

/* ---- how it ended ---- */

/* What is said behind the same words, without them. */
static const char *without(const char *said, const char *words)
{
    size_t n = strlen(words);
    return tp_str_starts(said, words) && tp_str_starts(said + n, ": ") ? said + n + 2 : said;
}

static void judge_end(const tp_trainings *t, const tp_process_usage *u, const char *said,
                      tp_arena *arena, tp_trial *ret)
{
    if (u->has_timed_out) {
        ret->state = TP_TRIAL_TIMED_OUT;
        ret->why = tp_arena_printf(arena, "it took longer than %.3g s; --timeout allows more",
                                   t->timeout_s);
    } else if (u->signal) {
        ret->state = TP_TRIAL_KILLED;
        ret->why =
            tp_arena_printf(arena, "ended by signal %d (%s)%s", u->signal, strsignal(u->signal),
                            u->signal == 9 ? "; the kernel does so when memory is short" : "");
    } else if (u->exit_status != TP_EXIT_OK) {
        ret->state = u->exit_status == TP_EXIT_INPUT     ? TP_TRIAL_REFUSED
                     : u->exit_status == TP_EXIT_MEMORY  ? TP_TRIAL_NO_MEMORY
                     : u->exit_status == TP_EXIT_NUMERIC ? TP_TRIAL_NOT_FINITE
                                                         : TP_TRIAL_FAILED;
        ret->why = said ? without(said, tp_trial_state_name(ret->state))
                        : tp_arena_printf(arena, "exit status %d", u->exit_status);
    }
}

/* What other programs took of the processors: all that was busy, less the child's own. */
static double share_of_others(const tp_machine_reading *before, const tp_machine_reading *after,
                              const tp_process_usage *u)
{
    double ticks = (double)sysconf(_SC_CLK_TCK);
    if (before->all_ticks < 0 || after->all_ticks <= before->all_ticks)
        return NAN;
    double all = (double)(after->all_ticks - before->all_ticks) / ticks;
    double idle = (double)(after->idle_ticks - before->idle_ticks) / ticks;
    return fmax(0, (all - idle - u->user_s - u->system_s) / all);
}

static tp_status train(const tp_trainings *t, const line *l, tp_arena *arena, tp_trial *ret,
                       tp_error *err)
{
    tp_machine_reading before, after;
    tp_process_usage usage;
    tp_process_command command = {.argv = l->words, .timeout_s = t->timeout_s};
    TP_TRY(open_errors(&command.error_fd, err));
    tp_machine_read(NULL, &before);
    tp_status status = tp_process_run(&command, &usage, err);
    tp_machine_read(NULL, &after);
    const char *said = read_errors(command.error_fd, arena);
    close(command.error_fd);
    TP_TRY(status);
    ret->wall_s = (double)usage.wall_ns * 1e-9;
    ret->others = share_of_others(&before, &after, &usage);
    if (usage.peak_bytes > usage.floor_bytes)
        ret->values[TP_FIGURE_RESIDENT] = (double)usage.peak_bytes;
    judge_end(t, &usage, said, arena, ret);
    return TP_OK;
}

/* A run without checkpoints passes over bad steps where the recipe would go back to one; it ends
 * where that would be. */
static tp_status add_policies(line *l, const tp_trainings *t, tp_arena *arena, tp_error *err)
{
    static const char *const keys[] = {"nonfinite_policy", "spike_policy"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *word = tp_json_str(tp_json_get(tp_json_get(t->recipe, "train"), keys[i]));
        if (word && strcmp(word, "restore") == 0)
            TP_TRY(add(l, tp_arena_printf(arena, "train.%s=skip", keys[i]), err));
    }
    return TP_OK;
}

/* Settings that make a run short, leave nothing behind and let nobody change what is measured,
 * after all others. */
static tp_status add_limits(line *l, const tp_trainings *t, const char *folder, tp_arena *arena,
                            tp_error *err)
{
    static const char *const always[] = {"checkpointing.enabled=false",
                                         "logger.tensorboard_enabled=false",
                                         "logger.prometheus.path=null",
                                         "profile.steps=null",
                                         "engine.dump=[]",
                                         "engine.memory_watch=null",
                                         "checkpointing.checkpoint_must_save_by=null"};
    static const char *const of_section[] = {"val_period=0", "val_at_start=false",
                                             "val_at_end=false"};
    TP_TRY(add(l, tp_arena_printf(arena, "run.dir=%s", folder), err));
    TP_TRY(add(l, tp_arena_printf(arena, "logger.log_dir=%s", folder), err));
    TP_TRY(add(
        l, tp_arena_printf(arena, "%s.max_num_steps=%zu", t->section, t->n_warm_up + t->n_steps),
        err));
    for (size_t i = 0; i < sizeof of_section / sizeof *of_section; i++)
        TP_TRY(add(l, tp_arena_printf(arena, "%s.%s", t->section, of_section[i]), err));
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        TP_TRY(add(l, always[i], err));
    TP_TRY(add_policies(l, t, arena, err));
    return add(l, "--quiet", err);
}

/* Whether a setting, "key=value", "++key=value" or "section={key: value}", sets the key. */
static bool sets(const char *setting, tp_slice key, tp_arena *arena)
{
    setting += strspn(setting, "+");
    size_t n = strcspn(setting, "=");
    if (n > key.len || strncmp(setting, key.data, n) != 0 || !setting[n])
        return false;
    const tp_json *v;
    const char *rest = tp_arena_strndup(arena, key.data + n, key.len - n), *value = setting + n + 1;
    if (!*rest)
        return true;
    if (*rest != '.' || tp_yaml_parse(arena, "a lever", value, strlen(value), &v, NULL) != TP_OK)
        return false;
    while (v && *rest == '.') {
        size_t length = strcspn(rest + 1, ".");
        v = tp_json_get(v, tp_arena_strndup(arena, rest + 1, length));
        rest += 1 + length;
    }
    return v;
}

tp_status tp_trainings_check(const tp_trainings *t, const tp_variant *variant, tp_arena *arena,
                             tp_error *err)
{
    line own = {.n = 0};
    TP_TRY(add_limits(&own, t, "", arena, err));
    for (size_t i = 0; i < variant->n_settings; i++) {
        for (size_t k = 0; k < own.n; k++) {
            tp_slice key = {own.words[k], strcspn(own.words[k], "=")};
            if (sets(variant->settings[i], key, arena))
                return tp_fail(err, TP_ERR_CONFIG,
                               "%.*s is no lever: every run sets it itself, so that it is short, "
                               "validates nothing and leaves nothing behind",
                               (int)key.len, key.data);
        }
    }
    return TP_OK;
}

tp_status tp_trainings_run(void *trainings, tp_arena *arena, const tp_variant *variant,
                           size_t number, tp_trial *ret, tp_error *err)
{
    const tp_trainings *t = trainings;
    line l;
    tp_trial trial = {.others = NAN};
    for (int i = 0; i < TP_FIGURES; i++)
        trial.values[i] = NAN;
    const char *folder = tp_arena_printf(arena, "%s/run-%zu", t->folder, number);
    TP_TRY(begin(&l, t, "train", variant, err));
    TP_TRY(add_limits(&l, t, folder, arena, err));
    tp_status status = train(t, &l, arena, &trial, err);
    if (status == TP_OK && trial.state == TP_TRIAL_DONE) {
        trial.why = read_metrics(t, folder, arena, &trial);
        if (!trial.why)
            trial.why = read_summary(folder, arena, &trial);
        if (trial.why)
            trial.state = TP_TRIAL_FAILED;
    }
    tp_error ignored = {0};
    tp_status removed = tp_dir_remove(folder, &ignored);
    if (status == TP_OK && removed != TP_OK)
        return tp_fail(err, TP_ERR_OUTPUT, "%s", ignored.message);
    if (status == TP_OK)
        *ret = trial;
    return status;
}

double tp_trainings_now_s(void *trainings)
{
    (void)trainings;
    return tp_clock_s();
}
