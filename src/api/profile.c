/* profile.c - profile before optimising: warm up, time some steps, record a few, name what costs
 * most, keep the figures to compare with later. */
#include "temper/profile.h"

#include <stdlib.h>
#include <string.h>

#include "api/ceilings.h"
#include "api/profile.h"
#include "api/training.h"
#include "base/files.h"
#include "base/sized.h"
#include "engine/train/algorithm.h"
#include "engine/train/recipe.h"
#include "instrument/profile/report.h"

enum { ARENA_BYTES = 256 << 20 };

typedef struct {
    const tp_profile_options *o;
    const char *recipe, *dir;
    tp_profile_data data;
    const tp_machine *machine;
    const tp_json *baseline;
    int64_t steps; /* done in this run */
    bool is_stopped;
    char **text; /* what is said in the end */
    tp_status status;
    tp_error err;
} session;

static int64_t all_steps(const tp_profile_options *o) { return o->warm_up + o->steps + o->record; }

/* ---- the end: analyse, keep, say ---- */

static tp_status keep(const session *s, const tp_profile_report *r, tp_error *err)
{
    char path[200];
    tp_buf out = {0}, text = {0};
    tp_json_w w;
    bool is_json = s->o->form == TP_FORM_JSON;
    snprintf(path, sizeof path, "%s/profile.json", s->dir);
    tp_json_w_init(&w, &out, is_json ? 2 : 1);
    tp_profile_write(r, &w);
    tp_buf_addc(&out, '\n');
    tp_status status = tp_file_write_atomic(path, out.data, out.len, err);
    if (status == TP_OK && !is_json)
        tp_profile_text(r, &text);
    if (status == TP_OK)
        *s->text = is_json ? out.data : text.data;
    if (status != TP_OK || !is_json)
        tp_buf_release(&out);
    return status;
}

/* What the recorded steps hold, as JSON. */
static void put_recorded(const session *s, const tp_train_event *e, tp_buf *out)
{
    tp_trace_summary summary;
    tp_json_w w;
    if (!e->profile)
        return;
    tp_json_w_init(&w, out, 0);
    tp_trace_summarize(&summary);
    tp_json_profile(e, s->machine, &summary, &w);
    tp_trace_summary_release(&summary);
}

static tp_status conclude(session *s, const tp_train_event *e, tp_error *err)
{
    tp_findings bottlenecks;
    tp_profile_comparison comparison;
    TP_OWN(tp_buf) recorded = {0};
    tp_profile_collect_end(&s->data, e, s->machine);
    if (s->baseline)
        TP_TRY(tp_profile_compare(s->baseline, s->o->against, &s->data, &comparison, err));
    if (s->baseline && s->o->worse)
        *s->o->worse = comparison.step.verdict == TP_CHANGE_WORSE;
    tp_profile_bottlenecks(&s->data, &bottlenecks);
    put_recorded(s, e, &recorded);
    const tp_profile_report r = {.name = s->o->name,
                                 .recipe = s->recipe,
                                 .dir = s->dir,
                                 .data = &s->data,
                                 .comparison = s->baseline ? &comparison : NULL,
                                 .trace = e->profile ? e->profile->path : NULL,
                                 .recorded = recorded.data,
                                 .bottlenecks = &bottlenecks,
                                 .width = s->o->width ? s->o->width : 110};
    return keep(s, &r, err);
}

/* ---- the run ---- */

static void tell_progress(const session *s)
{
    const tp_profile_options *o = s->o;
    const char *what = s->steps <= o->warm_up              ? "warming up"
                       : s->steps <= o->warm_up + o->steps ? "timing"
                                                           : "recording";
    if (o->progress)
        o->progress(o->user, s->steps, all_steps(o), what);
}

/* What takes long within a step, or before the first. */
static void tell_work(const session *s, const tp_train_event *e)
{
    TP_OWN(tp_buf) text = {0};
    if (s->steps)
        tp_buf_adds(&text, e->text);
    else
        tp_buf_add_working(&text, e->text, e->work_share, e->work_s);
    if (s->o->progress)
        s->o->progress(s->o->user, s->steps, all_steps(s->o), text.data);
}

static void observe(void *user, const tp_train_event *e)
{
    session *s = user;
    if (e->kind == TP_EVENT_STEP) {
        tp_profile_collect(&s->data, e, ++s->steps);
        tell_progress(s);
    }
    if (e->kind == TP_EVENT_WORKING)
        tell_work(s, e);
    if (e->kind == TP_EVENT_NOTICE && s->o->note)
        s->o->note(s->o->user, e->text);
    if (e->kind == TP_EVENT_START && s->o->warm_up == 0)
        tp_profile_collect(&s->data, e, 0);
    if (e->kind == TP_EVENT_FINISHED && s->data.n_done == s->data.n && e->session && !s->is_stopped)
        s->status = conclude(s, e, &s->err);
}

static bool should_stop(void *user)
{
    session *s = user;
    s->is_stopped |= s->o->should_stop && s->o->should_stop(s->o->user);
    return s->is_stopped || s->steps >= all_steps(s->o);
}

static tp_status train(session *s, tp_recipe *recipe, tp_error *err)
{
    tp_train_hooks hooks = {
        .observe = observe, .user = s, .should_stop = should_stop, .machine = s->machine};
    tp_status status = tp_train_run(recipe->config, &recipe->options, &hooks, err);
    if (status != TP_OK && status != TP_ERR_INTERRUPTED)
        return status;
    if (s->is_stopped)
        return tp_fail(err, TP_ERR_INTERRUPTED, "stopped at step %lld of %lld; nothing is kept",
                       (long long)s->steps, (long long)all_steps(s->o));
    if (s->data.n_done < s->data.n)
        return tp_fail(err, TP_ERR_CONFIG,
                       "the run ended after %lld of %lld steps; raise its limits (max_num_steps, "
                       "max_num_epochs) or lower --warm-up, --steps or --record",
                       (long long)s->steps, (long long)all_steps(s->o));
    if (s->status != TP_OK)
        *err = s->err;
    return s->status;
}

/* ---- the beginning ---- */

enum { OVERRIDES = 12 };

/* What profiling needs different from the recipe; `text` outlives the words. */
static size_t add_overrides(const tp_profile_options *f, const char *dir, const tp_train_options *o,
                            char text[OVERRIDES][256], const char **words, size_t n)
{
    int k = 0;
    const char *section = o->algorithm->name;
    int64_t first = f->warm_up + f->steps + 1, all = f->warm_up + f->steps + f->record;
    snprintf(text[k++], 256, "run.dir=%s", dir);
    snprintf(text[k++], 256, "profile.steps=%lld:%lld", (long long)first, (long long)all + 1);
    snprintf(text[k++], 256, "profile.workers=\"*\"");
    snprintf(text[k++], 256, "checkpointing.enabled=false");
    snprintf(text[k++], 256, "checkpointing.checkpoint_must_save_by=null");
    if (o->train.nonfinite_policy == TP_BAD_RESTORE) /* there is no checkpoint to go back to */
        snprintf(text[k++], 256, "train.nonfinite_policy=skip");
    if (o->train.spike_policy == TP_BAD_RESTORE + 1)
        snprintf(text[k++], 256, "train.spike_policy=skip");
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
static tp_status open_recipe(const session *s, const char *config, const char **words, size_t n,
                             char text[OVERRIDES][256], tp_recipe *ret, tp_error *err)
{
    TP_TRY(tp_recipe_check_again(config, err));
    TP_TRY(tp_recipe_open(config, words, n, ret, err));
    n = add_overrides(s->o, s->dir, &ret->options, text, words, n);
    tp_recipe_close(ret);
    return tp_recipe_open(config, words, n, ret, err);
}

/* The folder is free, or holds a profile that may go. */
static tp_status clear_place(const tp_profile_options *o, const char *dir, tp_error *err)
{
    char path[200];
    snprintf(path, sizeof path, "%s/profile.json", dir);
    bool is_profile = tp_file_exists(path), is_ours = is_profile,
         may_go = o->replace || strcmp(o->name, "latest") == 0;
    if (!tp_dir_exists(dir))
        return TP_OK;
    if (is_profile && !may_go)
        return tp_fail(err, TP_ERR_ARG,
                       "there is a profile named \"%s\" (%s); --replace it or choose another "
                       "--name",
                       o->name, dir);
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

static tp_status run_recipe(session *s, tp_recipe *recipe, tp_error *err)
{
    tp_machine machine;
    TP_TRY(tp_train_options_check_files(recipe->config, &recipe->options, err));
    TP_TRY(clear_place(s->o, s->dir, err));
    if (tp_ceilings_find(&recipe->options, s->o->note, s->o->user, &machine))
        s->machine = &machine;
    tp_profile_collect_begin(&s->data, s->o->warm_up, s->o->steps, s->o->record);
    tp_status status = train(s, recipe, err);
    tp_profile_data_release(&s->data);
    return status;
}

static tp_status run(session *s, const char *config, const char **words, size_t n, tp_error *err)
{
    char text[OVERRIDES][256];
    TP_CLEANUP(tp_recipe_close) tp_recipe recipe = {0};
    TP_OWN(tp_arena) arena = {0};
    TP_TRY(tp_arena_init(&arena, ARENA_BYTES, err));
    if (s->o->against)
        TP_TRY(tp_profile_load(s->o->against, &arena, &s->baseline, err));
    TP_TRY(open_recipe(s, config, words, n, text, &recipe, err));
    return run_recipe(s, &recipe, err);
}

static tp_status check_steps(const tp_profile_options *o, tp_error *err)
{
    bool fits = o->warm_up >= 0 && o->warm_up <= TP_PROFILE_STEPS && o->steps >= 2 &&
                o->steps <= TP_PROFILE_STEPS && o->record >= 1 && o->record <= 1000;
    return fits ? TP_OK
                : tp_fail(err, TP_ERR_ARG,
                          "a profile has 0 to %d steps of warm-up, 2 to %d timed and 1 to 1000 "
                          "recorded ones",
                          TP_PROFILE_STEPS, TP_PROFILE_STEPS);
}

tp_status tp_profile_run(const char *config, const char *const *overrides, size_t n,
                         const tp_profile_options *options, char **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_profile_options o;
    char dir[128];
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_profile_options", err));
    o.warm_up = o.no_warm_up ? 0 : o.warm_up ? o.warm_up : 3;
    o.steps = o.steps ? o.steps : 10;
    o.record = o.record ? o.record : 2;
    o.name = o.name ? o.name : "latest";
    TP_TRY(check_steps(&o, err));
    TP_TRY(tp_profile_dir(o.name, dir, sizeof dir, err));
    TP_FREED const char **words = tp_new(n + OVERRIDES, sizeof *words);
    if (n)
        memcpy(words, overrides, n * sizeof *words);
    session s = {.o = &o, .recipe = config ? config : "the defaults", .dir = dir, .text = ret};
    return run(&s, config, words, n, err);
}
