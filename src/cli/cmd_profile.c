/* cmd_profile.c - profile before optimising, in one command: warm up, time some steps, record
 * a few, name what costs most, keep the figures to compare with later. */
#include <signal.h>
#include <string.h>

#include "base/files.h"
#include "base/terminal.h"
#include "cli/ceilings.h"
#include "cli/cli.h"
#include "cli/profile_print.h"
#include "cli/recipe.h"
#include "engine/train/algorithm.h"

enum { BOTTLENECKS = 32, ARENA_BYTES = 256 << 20 };

typedef struct {
    bool json, replace;
    int64_t warmup, steps, record;
    const char *name, *against, *isa;
} flags;

static const tp_flag flag_table[] = {
    TP_NUMBER("warmup", 'w', "N", INT, warmup, 0, TP_PROFILE_STEPS,
              "steps before anything is measured (3)"),
    TP_NUMBER("steps", 'n', "N", INT, steps, 2, TP_PROFILE_STEPS,
              "steps that are timed, nothing being recorded (10)"),
    TP_NUMBER("record", 0, "N", INT, record, 1, 1000,
              "steps recorded as a trace, after the timed ones (2)"),
    TP_TEXT("name", 0, "NAME", name, "keep the profile under this name (latest)"),
    TP_SWITCH("replace", 0, replace, "an existing profile of that name is replaced"),
    TP_TEXT("against", 'a', "NAME", against, "compare with the profile kept under this name"),
    TP_SWITCH("json", 0, json, "the profile as one JSON object"),
    TP_TEXT("isa", 0, "LEVEL", isa, "the same as engine.isa=LEVEL"),
    {0}};

typedef struct {
    const flags *f;
    const char *recipe, *dir;
    tp_profile_data data;
    const tp_machine *machine;
    const tp_json *baseline;
    int64_t steps; /* done in this run */
    tp_status status;
    tp_error err;
} session;

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    if (stop_signal)
        _exit(128 + number);
    stop_signal = number;
}

/* ---- the end: analyse, keep, print ---- */

static tp_status keep(const session *s, const tp_profile_report *r, tp_error *err)
{
    char path[200];
    tp_buf out = {0};
    tp_json_w w;
    snprintf(path, sizeof path, "%s/profile.json", s->dir);
    tp_json_w_init(&w, &out, s->f->json ? 2 : 1);
    tp_profile_write(r, &w);
    tp_buf_addc(&out, '\n');
    tp_status status = tp_file_write_atomic(path, out.data, out.len, err);
    if (status == TP_OK && s->f->json)
        fwrite(out.data, 1, out.len, stdout);
    tp_buf_release(&out);
    return status;
}

static tp_status conclude(session *s, const tp_train_event *e, tp_error *err)
{
    tp_bottleneck bottlenecks[BOTTLENECKS];
    tp_profile_comparison comparison;
    tp_trace_summary summary;
    tp_profile_data_finish(&s->data, e);
    if (s->baseline)
        TP_TRY(
            tp_profile_compare(s->baseline, s->f->against, &s->data, s->machine, &comparison, err));
    tp_trace_summarize(&summary);
    tp_profile_report r = {.name = s->f->name,
                           .recipe = s->recipe,
                           .dir = s->dir,
                           .data = &s->data,
                           .machine = s->machine,
                           .comparison = s->baseline ? &comparison : NULL,
                           .event = e,
                           .summary = &summary,
                           .bottlenecks = bottlenecks};
    r.n_bottlenecks = tp_profile_bottlenecks(&s->data, s->machine, bottlenecks, BOTTLENECKS);
    tp_status status = keep(s, &r, err);
    if (status == TP_OK && !s->f->json) {
        tp_buf out = {0};
        tp_profile_text(&r, &out);
        fwrite(out.data, 1, out.len, stdout);
        tp_buf_release(&out);
    }
    fflush(stdout);
    tp_trace_summary_release(&summary);
    return status;
}

static void show_progress(const session *s)
{
    int64_t all = s->f->warmup + s->f->steps + s->f->record;
    const char *what = s->steps <= s->f->warmup                 ? "warming up"
                       : s->steps <= s->f->warmup + s->f->steps ? "timing"
                                                                : "recording";
    if (tp_cli_terminal(stderr))
        fprintf(stderr, "%s%sstep %lld/%lld, %s", tp_style(TP_LINE_BEGIN), tp_style(TP_LINE_ERASE),
                (long long)s->steps, (long long)all, what);
    if (tp_cli_terminal(stderr) && s->steps == all)
        tp_cli_erase_line(stderr);
}

static void observe(void *user, const tp_train_event *e)
{
    session *s = user;
    if (e->kind == TP_EVENT_STEP) {
        tp_profile_data_step(&s->data, e, ++s->steps);
        show_progress(s);
    }
    if (e->kind == TP_EVENT_NOTICE && !s->f->json)
        fprintf(stderr, "note: %s\n", e->text);
    if (e->kind == TP_EVENT_START && s->f->warmup == 0)
        tp_profile_data_step(&s->data, e, 0);
    if (e->kind == TP_EVENT_FINISHED && s->data.n_done == s->data.n && e->session && !stop_signal)
        s->status = conclude(s, e, &s->err);
}

static bool should_stop(void *user)
{
    const session *s = user;
    return stop_signal || s->steps >= s->f->warmup + s->f->steps + s->f->record;
}

static tp_status train(session *s, tp_recipe *recipe, tp_error *err)
{
    tp_train_result result;
    tp_train_hooks hooks = {
        .observe = observe, .user = s, .should_stop = should_stop, .machine = s->machine};
    int64_t wanted = s->f->warmup + s->f->steps + s->f->record;
    tp_status status = tp_train_run(recipe->config, &recipe->options, &hooks, &result, err);
    if (status != TP_OK && status != TP_ERR_INTERRUPTED)
        return status;
    if (stop_signal)
        return tp_fail(err, TP_ERR_INTERRUPTED, "stopped at step %lld of %lld; nothing is kept",
                       (long long)s->steps, (long long)wanted);
    if (s->data.n_done < s->data.n)
        return tp_fail(err, TP_ERR_CONFIG,
                       "the run ended after %lld of %lld steps; raise its limits (max_num_steps, "
                       "max_num_epochs) or lower --warmup, --steps or --record",
                       (long long)s->steps, (long long)wanted);
    if (s->status != TP_OK)
        *err = s->err;
    return s->status;
}

/* ---- the beginning ---- */

enum { OVERRIDES = 9 };

/* What profiling needs different from the recipe; `text` outlives the words. */
static int add_overrides(const flags *f, const char *dir, const tp_train_options *o,
                         char text[OVERRIDES][256], char **words, int n)
{
    int k = 0;
    const char *section = o->algorithm->name;
    int64_t first = f->warmup + f->steps + 1, all = f->warmup + f->steps + f->record;
    snprintf(text[k++], 256, "run.dir=%s", dir);
    snprintf(text[k++], 256, "profile.steps=%lld:%lld", (long long)first, (long long)all + 1);
    snprintf(text[k++], 256, "profile.workers=\"*\"");
    snprintf(text[k++], 256, "checkpointing.enabled=false");
    snprintf(text[k++], 256, "%s.val_period=0", section);
    snprintf(text[k++], 256, "%s.val_at_start=false", section);
    snprintf(text[k++], 256, "%s.val_at_end=false", section);
    snprintf(text[k++], 256, "%s.max_num_epochs=1000000000", section);
    if (o->loop.max_num_steps < all) /* a recipe that ends too early is made longer */
        snprintf(text[k++], 256, "%s.max_num_steps=%lld", section, (long long)all);
    for (int i = 0; i < k; i++)
        words[n++] = text[i];
    return n;
}

/* Opened once to know its algorithm, and again as it is to run. */
static tp_status open_recipe(const flags *f, const char *dir, char text[OVERRIDES][256],
                             char **words, int n, tp_recipe *ret, tp_error *err)
{
    TP_TRY(tp_cli_open_recipe(words, n, ret, err));
    n = add_overrides(f, dir, &ret->options, text, words, n);
    tp_recipe_close(ret);
    return tp_cli_open_recipe(words, n, ret, err);
}

/* The folder is free, or holds a profile that may go. */
static tp_status clear_place(const flags *f, const char *dir, tp_error *err)
{
    char path[200];
    snprintf(path, sizeof path, "%s/profile.json", dir);
    bool is_profile = tp_file_exists(path), is_ours = is_profile,
         may_go = f->replace || strcmp(f->name, "latest") == 0;
    if (!tp_dir_exists(dir))
        return TP_OK;
    if (is_profile && !may_go)
        return tp_fail(err, TP_ERR_ARG,
                       "there is a profile named \"%s\" (%s); --replace it or choose another "
                       "--name",
                       f->name, dir);
    snprintf(path, sizeof path, "%s/.lock", dir); /* a profile that did not get to its end */
    is_ours |= tp_file_exists(path);
    if (!is_ours)
        return tp_fail(err, TP_ERR_ARG,
                       "%s holds no profile and is left alone; choose another --name", dir);
    snprintf(path, sizeof path, "%s/checkpoints", dir);
    if (tp_dir_exists(path))
        return tp_fail(err, TP_ERR_ARG,
                       "%s holds checkpoints and is left alone; choose another "
                       "--name",
                       dir);
    return tp_dir_remove(dir, err);
}

static tp_status run(const flags *f, char **words, int n, tp_error *err)
{
    char dir[128], text[OVERRIDES][256], isa[64];
    tp_machine machine;
    tp_recipe recipe;
    tp_arena arena;
    session s = {.f = f, .recipe = words[0], .dir = dir};
    TP_TRY(tp_profile_dir(f->name, dir, sizeof dir, err));
    TP_TRY(tp_arena_init(&arena, ARENA_BYTES, err));
    n = tp_cli_add_isa(words, n, f->isa, isa);
    tp_status status = TP_OK;
    if (f->against)
        status = tp_profile_load(f->against, &arena, &s.baseline, err);
    if (status == TP_OK)
        status = open_recipe(f, dir, text, words, n, &recipe, err);
    if (status == TP_OK) {
        status = clear_place(f, dir, err);
        if (status == TP_OK && tp_cli_ceilings(&recipe.options, f->json, &machine))
            s.machine = &machine;
        tp_profile_data_init(&s.data, f->warmup, f->steps, f->record);
        if (status == TP_OK)
            status = train(&s, &recipe, err);
        tp_profile_data_release(&s.data);
        tp_recipe_close(&recipe);
    }
    tp_arena_release(&arena);
    return status;
}

int tp_cmd_profile(int argc, char **argv)
{
    flags f = {.warmup = 3, .steps = 10, .record = 2, .name = "latest"};
    char *words[argc + OVERRIDES + 2];
    tp_error err = {0};
    const tp_usage usage = {
        .command = "profile",
        .arguments = "CONFIG [KEY=VALUE...]",
        .summary = "Profile a recipe before optimising it: operators, phases, memory, bottlenecks.",
        .flags = flag_table,
        .details = "Trains a few steps without checkpoints or validation and prints where a "
                   "step's time and memory go, what to try, and what it would save at most.  The "
                   "figures stay in runs/profiles/NAME; --against compares with an earlier one.",
        .min_words = 1,
        .max_words = -1};
    int n = tp_cli_parse(&usage, argc, argv, &f, words);
    if (n < 0)
        return n == -2 ? 0 : 2;
    tp_cli_catch(SIGINT, on_signal);
    tp_cli_catch(SIGTERM, on_signal);
    if (run(&f, words, n, &err) == TP_OK)
        return 0;
    int status = tp_cli_fail(&err);
    return stop_signal ? 128 + stop_signal : status;
}
