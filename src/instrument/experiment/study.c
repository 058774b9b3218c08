/* study.c - the folder, the pilot run, the raw samples, and what is said about how it went. */
#include "instrument/experiment/study.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"

enum { MOST_FOLDERS = 1000, LEAST_STEPS = 5, MOST_STEPS = 40, PILOT_STEPS = 3 };

/* Above these the machine counts as busy. */
static const double BUSY_OTHERS = 0.10, BUSY_PRESSURE = 0.20;

static tp_experiment_options complete(const tp_experiment_options *given)
{
    tp_experiment_options o = *given;
    o.budget_s = o.budget_s > 0 ? o.budget_s : 600;
    o.timeout_s = o.timeout_s > 0 ? o.timeout_s : 600;
    o.warm_up = o.no_warm_up ? 0 : o.warm_up > 0 ? o.warm_up : 2;
    o.seed = o.has_seed ? o.seed : 1;
    o.margin = o.margin > 0 ? o.margin : 0.01;
    o.width = o.width > 0 ? o.width : 110;
    return o;
}

/* ---- remarks ---- */

static void note(const tp_study *s, const char *fmt, ...) TP_PRINTF(2, 3);
static void note(const tp_study *s, const char *fmt, ...)
{
    TP_OWN(tp_buf) text = {0};
    if (!s->o.note)
        return;
    TP_BUF_FORMAT(&text, fmt);
    s->o.note(s->o.user, tp_buf_str(&text));
}

/* ---- the folder ---- */

static tp_status find_program(tp_study *s, tp_error *err)
{
    if (s->o.program) {
        if (strlen(s->o.program) >= sizeof s->program)
            return tp_fail(err, TP_ERR_ARG, "the path of the program is too long");
        strcpy(s->program, s->o.program);
        return TP_OK;
    }
    ssize_t n = readlink("/proc/self/exe", s->program, sizeof s->program - 1);
    if (n <= 0)
        return tp_fail(err, TP_ERR_IO, "/proc/self/exe cannot be read");
    s->program[n] = 0;
    return TP_OK;
}

static bool is_there(const char *path) { return tp_dir_exists(path) || tp_file_exists(path); }

static tp_status choose_folder(tp_study *s, tp_error *err)
{
    const char *run = tp_json_str(tp_json_get(tp_json_get(s->tree, "run"), "dir"));
    int n = 0;
    if (s->o.folder && is_there(s->o.folder))
        return tp_fail(err, TP_ERR_ARG, "'%s' is there already; --out names another folder",
                       s->o.folder);
    if (s->o.folder)
        n = snprintf(s->folder, sizeof s->folder, "%s", s->o.folder);
    for (int i = 1; !s->o.folder && i <= MOST_FOLDERS; i++) {
        char number[16] = "";
        if (i > 1)
            snprintf(number, sizeof number, "-%d", i);
        n = snprintf(s->folder, sizeof s->folder, "%s-%s%s", run ? run : "runs/temper", s->verb,
                     number);
        if (!is_there(s->folder))
            break;
    }
    if (n < 0 || (size_t)n >= sizeof s->folder || is_there(s->folder))
        return tp_fail(err, TP_ERR_OUTPUT, "no folder for the results beside '%s'; --out names one",
                       run ? run : "runs");
    return tp_dir_make(s->folder, err);
}

static double read_pressure(void)
{
    double share = NAN;
    FILE *f = fopen("/proc/pressure/cpu", "r");
    if (f && fscanf(f, "some avg10=%lf", &share) != 1)
        share = NAN;
    if (f)
        fclose(f);
    return share / 100;
}

/* ---- raw samples ---- */

static void write_sample(const tp_variant *v, const tp_trial_sample *s, tp_buf *out)
{
    const tp_trial *t = &s->trial;
    tp_json_w w = tp_json_w_open(out, 0, '{');
    tp_json_w_put_i64(&w, "stage", s->stage);
    tp_json_w_put_i64(&w, "round", (int64_t)s->round + 1);
    tp_json_w_put_i64(&w, "turn", (int64_t)s->turn + 1);
    tp_json_w_put_str(&w, "variant", v->name);
    tp_json_w_put_begin(&w, "settings", '[');
    for (size_t i = 0; i < v->n_settings; i++)
        tp_json_w_str(&w, v->settings[i]);
    tp_json_w_end(&w, ']');
    tp_json_w_put_str(&w, "state", tp_trial_state_name(t->state));
    tp_json_w_put_str(&w, "why", t->why);
    for (int f = 0; f < TP_FIGURES; f++)
        tp_json_w_put_known(&w, tp_trial_figure_name((tp_trial_figure)f), t->values[f]);
    tp_json_w_put_known(&w, "wall_s", t->wall_s);
    tp_json_w_put_known(&w, "others", t->others);
    tp_json_w_put_i64(&w, "warm_up", (int64_t)t->n_warm_up);
    tp_json_w_put_f64s(&w, "step_s", t->step_s, t->n_steps);
    tp_json_w_put_f64s(&w, "step_tokens_per_s", t->tokens_per_s, t->n_steps);
    tp_json_w_put_f64s(&w, "losses", t->losses, t->n_steps);
    tp_json_w_close(&w, '}');
}

static tp_status keep(void *user, const tp_variant *v, const tp_trial_sample *sample, tp_error *err)
{
    tp_study *s = user;
    TP_OWN(tp_buf) text = {0};
    write_sample(v, sample, &text);
    bool ok = fwrite(text.data, 1, text.len, s->samples) == text.len && fflush(s->samples) == 0;
    if (sample->trial.state != TP_TRIAL_DONE)
        note(s, "%s: %s: %s", v->name, tp_trial_state_name(sample->trial.state),
             sample->trial.why ? sample->trial.why : "");
    return ok ? TP_OK
              : tp_fail(err, TP_ERR_OUTPUT, "%s/samples.jsonl cannot be written: %s", s->folder,
                        strerror(errno));
}

/* "levers, round 3 of 40, run 2 of 12: without fuse, at most 2m05s to go" */
static void begin_run(void *user, const tp_variant *v, size_t turn, size_t n)
{
    const tp_study *s = user;
    TP_OWN(tp_buf) text = {0};
    char left[32];
    double spent = s->x.runner.now_s(s->x.runner.user) - s->stage_s;
    if (!s->o.progress)
        return;
    tp_buf_addf(&text, "%s, run %zu of %zu: %s", s->stage, turn + 1, n, v->name);
    if (!isnan(s->left_s))
        tp_buf_addf(&text, ", at most %s to go",
                    tp_human_seconds(fmax(s->left_s - spent, 0), left));
    s->o.progress(s->o.user, text.data);
}

/* ---- beginning and end ---- */

static tp_status open_samples(tp_study *s, tp_error *err)
{
    const char *path = tp_arena_printf(&s->x.arena, "%s/samples.jsonl", s->folder);
    s->samples = fopen(path, "wbe");
    if (!s->samples)
        return tp_fail(err, TP_ERR_OUTPUT, "'%s' cannot be written: %s", path, strerror(errno));
    return TP_OK;
}

static tp_status look(tp_study *s, tp_error *err)
{
    TP_TRY(tp_trainings_look(&s->trainings, NULL, &s->x.arena, &s->tree, err));
    s->trainings.recipe = s->tree;
    s->trainings.section = tp_trainings_section(s->tree);
    if (!s->trainings.section)
        return tp_fail(err, TP_ERR_CONFIG,
                       "the configuration trains nothing: it has no "
                       "max_num_steps");
    return TP_OK;
}

tp_status tp_study_open(tp_study *s, const char *verb, const tp_experiment_options *options,
                        const char *config, const char *const *overrides, size_t n, tp_error *err)
{
    *s = (tp_study){.o = complete(options), .verb = verb, .start_s = tp_clock_s()};
    s->may_warm_up_less = options->warm_up <= 0 && !options->no_warm_up;
    s->trainings = (tp_trainings){.program = s->program,
                                  .config = config,
                                  .settings = overrides,
                                  .n_settings = n,
                                  .timeout_s = s->o.timeout_s,
                                  .n_warm_up = (size_t)s->o.warm_up,
                                  .n_steps = PILOT_STEPS};
    tp_trial_runner runner = {
        .run = tp_trainings_run, .now_s = tp_trainings_now_s, .user = &s->trainings};
    TP_TRY(tp_experiment_init(&s->x, &runner, (uint64_t)s->o.seed, s->o.budget_s, err));
    s->x.begin = begin_run;
    s->x.keep = keep;
    s->x.user = s;
    s->busy_at_start = read_pressure();
    TP_TRY(find_program(s, err));
    TP_TRY(look(s, err));
    TP_TRY(choose_folder(s, err));
    s->trainings.folder = s->folder;
    if (s->busy_at_start > BUSY_PRESSURE)
        note(s,
             "the machine is busy: in %.0f %% of the last ten seconds something waited "
             "for a processor (/proc/pressure/cpu); intervals will be wide",
             100 * s->busy_at_start);
    return open_samples(s, err);
}

void tp_study_close(tp_study *s)
{
    bool is_empty = true;
    for (size_t i = 0; i < s->x.n_samples; i++)
        is_empty &= s->x.samples[i].trial.state != TP_TRIAL_DONE;
    if (s->samples)
        fclose(s->samples);
    if (s->samples && (is_empty || s->is_worthless))
        (void)!tp_dir_remove(s->folder, NULL); /* nothing was measured that anybody could miss */
    tp_experiment_release(&s->x);
}

/* Steps of a run such that the time that is left holds so many runs. */
static double steps_within(const tp_study *s, size_t runs, double start_s, double step_s)
{
    double room_s = tp_experiment_left_s(&s->x) / (double)runs - start_s;
    return floor(room_s / step_s) - (double)s->trainings.n_warm_up;
}

/* Short steps cost little more than the start of the program does; of long ones a run has as many
 * as let the budget hold the runs that are wanted.  Fewer than pay for the start of a run are worth
 * less runs: with c of time that is not measured, steps of s, and steps that differ from one
 * another as much as runs do, the mean of all is the most precise at sqrt(c / s) steps a run.  The
 * runs that are needed fit all the same, as long as one step does. */
static void choose_steps(tp_study *s, const tp_trial *t, size_t wanted, size_t needed,
                         double *ret_run_s)
{
    tp_trainings *how = &s->trainings;
    double step_s = fmax(t->values[TP_FIGURE_STEP_TIME], 1e-3);
    double start_s = fmax(t->wall_s - (double)(how->n_warm_up + PILOT_STEPS) * step_s, 0);
    if (s->may_warm_up_less && steps_within(s, wanted, start_s, step_s) < 1)
        how->n_warm_up = 1;
    double enough = fmin(fmax(ceil(1 / step_s), LEAST_STEPS), MOST_STEPS);
    double worth = fmin(round(sqrt(start_s / step_s + (double)how->n_warm_up)),
                        steps_within(s, needed, start_s, step_s));
    double n = fmax(fmin(enough, steps_within(s, wanted, start_s, step_s)), fmax(worth, 1));
    how->n_steps = s->o.steps > 0 ? (size_t)s->o.steps : (size_t)n;
    *ret_run_s = start_s + (double)(how->n_warm_up + how->n_steps) * step_s;
}

tp_status tp_study_pilot(tp_study *s, size_t variant, int stage, size_t wanted, size_t needed,
                         tp_error *err)
{
    tp_study_stage(s, NAN, "a first run, which is not counted");
    TP_TRY(tp_experiment_round(&s->x, stage, 0, &variant, 1, err));
    const tp_variant *v = &s->x.variants[variant];
    const tp_trial *t = tp_experiment_trial(&s->x, stage, 0, variant);
    if (s->x.is_interrupted)
        return tp_fail(err, TP_ERR_INTERRUPTED, "interrupted before anything was measured");
    if (!t) {
        tp_trial_state state =
            s->x.n_samples ? s->x.samples[s->x.n_samples - 1].trial.state : TP_TRIAL_FAILED;
        return tp_fail(err,
                       state == TP_TRIAL_NO_MEMORY    ? TP_ERR_NOMEM
                       : state == TP_TRIAL_NOT_FINITE ? TP_ERR_NUMERIC
                                                      : TP_ERR_CONFIG,
                       "the run that all others are compared with ('%s') %s: %.1000s", v->name,
                       state == TP_TRIAL_DONE ? "was not begun" : tp_trial_state_name(state),
                       v->why ? v->why : "no time is left");
    }
    choose_steps(s, t, wanted, needed, &s->x.variants[variant].expected_s);
    return TP_OK;
}

const char *tp_study_precision(const tp_study *s)
{
    return tp_json_str(tp_json_get(tp_json_get(s->tree, "policy"), "precision"));
}

void tp_study_end(tp_study *s)
{
    s->spent_s = tp_clock_s() - s->start_s;
    if (s->o.progress)
        s->o.progress(s->o.user, NULL);
}

/* On average over the runs; NaN: unknown. */
static double share_of_others(const tp_study *s)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < s->x.n_samples; i++) {
        double others = s->x.samples[i].trial.others;
        if (!isnan(others)) {
            sum += others;
            n++;
        }
    }
    return n ? sum / (double)n : (double)NAN;
}

/* ---- saying ---- */

void tp_study_stage(tp_study *s, double left_s, const char *fmt, ...)
{
    TP_FORMAT(s->stage, fmt);
    s->left_s = left_s;
    s->stage_s = s->x.runner.now_s(s->x.runner.user);
}

tp_status tp_study_save(const tp_study *s, const char *name, const tp_buf *text, tp_error *err)
{
    char path[sizeof s->folder + 64];
    snprintf(path, sizeof path, "%s/%s", s->folder, name);
    return tp_file_write_atomic(path, tp_buf_str(text), text->len, err);
}

static void put_failures(const tp_study *s, tp_json_w *w)
{
    tp_json_w_put_begin(w, "failures", '[');
    for (size_t i = 0; i < s->x.n_samples; i++) {
        const tp_trial_sample *sample = &s->x.samples[i];
        if (sample->trial.state == TP_TRIAL_DONE)
            continue;
        tp_json_w_begin(w, '{');
        tp_json_w_put_str(w, "variant", s->x.variants[sample->variant].name);
        tp_json_w_put_str(w, "state", tp_trial_state_name(sample->trial.state));
        tp_json_w_put_str(w, "why", sample->trial.why);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}

void tp_study_write(const tp_study *s, tp_json_w *w)
{
    tp_json_w_put_str(w, "temper", TEMPER_VERSION);
    tp_json_w_put_str(w, "config", s->trainings.config);
    tp_json_w_put_str(w, "folder", s->folder);
    tp_json_w_put_i64(w, "seed", s->o.seed);
    tp_json_w_put_i64(w, "runs", (int64_t)s->x.n_runs);
    tp_json_w_put_i64(w, "warm_up_steps", (int64_t)s->trainings.n_warm_up);
    tp_json_w_put_i64(w, "steps", (int64_t)s->trainings.n_steps);
    tp_json_w_put_f64(w, "margin", s->o.margin);
    tp_json_w_put_f64(w, "budget_s", s->o.budget_s);
    tp_json_w_put_f64(w, "spent_s", s->spent_s);
    tp_json_w_put_bool(w, "interrupted", s->x.is_interrupted);
    tp_json_w_put_bool(w, "out_of_time", s->x.is_out_of_time);
    tp_json_w_put_known(w, "processors_of_others", share_of_others(s));
    tp_json_w_put_known(w, "pressure_at_start", s->busy_at_start);
    put_failures(s, w);
}

void tp_study_remarks(const tp_study *s, tp_buf *out)
{
    double others = share_of_others(s);
    size_t n_failed = 0;
    for (size_t i = 0; i < s->x.n_samples; i++)
        n_failed += s->x.samples[i].trial.state != TP_TRIAL_DONE;
    if (others > BUSY_OTHERS)
        tp_buf_addf(out,
                    "The machine was busy: other programs had %.0f %% of its processors while runs "
                    "were measured.\n",
                    100 * others);
    if (s->x.is_interrupted)
        tp_buf_adds(out, "Interrupted: this is what was measured until then.\n");
    if (n_failed)
        tp_buf_addf(out, "%zu of %zu runs failed.\n", n_failed, s->x.n_samples);
    for (size_t i = 0; i < s->x.n_variants; i++)
        if (s->x.variants[i].why)
            tp_buf_addf(out, "  %s: %s\n", s->x.variants[i].name, s->x.variants[i].why);
}
