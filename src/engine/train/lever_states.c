/* lever_states.c - how the levers of a run stand, what the plan and the run say that they give. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/affinity.h"
#include "base/cpu.h"
#include "base/huge_pages.h"
#include "base/locked_memory.h"
#include "base/platform.h"
#include "base/strings.h"
#include "engine/passes/plugin.h"
#include "engine/train/recipe.h"
#include "engine/train/trainer_internal.h"

static TP_PRINTF(3, 4) void say(tp_lever_report *r, tp_lever_state state, const char *fmt, ...)
{
    TP_FORMAT(r->why, fmt);
    r->state = state;
}

/* ---- states that take a look ---- */

static bool runs_passes(const tp_train_options *o, tp_lever_report *r)
{
    if (o->policy.compile_mode != TP_COMPILE_NONE)
        return true;
    say(r, TP_LEVER_OFF, "policy.compile_mode is none");
    return false;
}

static void look_disabled(const tp_train_options *o, tp_lever_report *r)
{
    const tp_str_list *disabled = &o->engine.disable_passes;
    bool is_off = tp_pass_is_disabled(disabled->v, disabled->n, r->lever->name);
    r->state = is_off ? TP_LEVER_OFF : TP_LEVER_ON;
}

static void look_pass(const tp_train_options *o, tp_lever_report *r)
{
    if (runs_passes(o, r))
        look_disabled(o, r);
}

static void look_in_place(const tp_train_options *o, tp_lever_report *r)
{
    if (runs_passes(o, r))
        r->state = o->engine.in_place ? TP_LEVER_ON : TP_LEVER_OFF;
}

static void look_recompute(const tp_train_options *o, tp_lever_report *r)
{
    r->state = o->policy.recompute == TP_RECOMPUTE_NONE ? TP_LEVER_OFF : TP_LEVER_ON;
}

static void look_compress(const tp_train_options *o, tp_lever_report *r)
{
    const char *errors = o->distributed.error_feedback ? "what is lost is sent later" : "lossy";
    if (o->distributed.compress == TP_WIRE_PLAIN)
        return;
    look_disabled(o, r);
    if (r->state == TP_LEVER_OFF)
        return;
    if (o->ranks.ranks < 2)
        say(r, TP_LEVER_FELL_BACK, "one process sends nothing");
    else
        say(r, TP_LEVER_ON, "%s, %s", tp_wire_name((tp_wire_kind)o->distributed.compress), errors);
}

static void look_isa(const tp_train_options *o, tp_lever_report *r)
{
    tp_isa best = tp_cpu_detect(), isa = tp_cpu_isa();
    bool is_asked = o->engine.isa > 0 || getenv("TEMPER_ISA");
    r->state = isa == TP_ISA_PORTABLE ? TP_LEVER_OFF : TP_LEVER_ON;
    if (!is_asked && isa != best && tp_cpu_is_passed_over(best))
        say(r, r->state, "%s, faster here than %s", tp_isa_name(isa), tp_isa_name(best));
    else if (!is_asked && isa != best)
        say(r, TP_LEVER_FELL_BACK, "%s: %s is left out, see temper doctor", tp_isa_name(isa),
            tp_isa_name(best));
    else if (*tp_cpu_withheld())
        say(r, TP_LEVER_FELL_BACK, "%s: %s", tp_isa_name(isa), tp_cpu_withheld());
    else if (!is_asked)
        say(r, r->state, "%s, the best here", tp_isa_name(isa));
}

static void look_tuned(const tp_train_options *o, tp_lever_report *r)
{
    tp_tune_report found = tp_tune_get_report();
    r->state = o->policy.compile_mode == TP_COMPILE_MAX_AUTOTUNE ? TP_LEVER_ON : TP_LEVER_OFF;
    if (r->state == TP_LEVER_OFF)
        return;
    if (found.why[0])
        say(r, TP_LEVER_FELL_BACK, "%s", found.why);
    else
        say(r, TP_LEVER_ON, "%d of %d shapes changed%s", found.changed, found.shapes,
            found.shapes ? "" : " so far");
}

static void look_threads(const tp_train_options *o, tp_lever_report *r)
{
    int asked = tp_trainer_threads(o), processors = tp_cpu_count();
    r->state = asked > 1 ? TP_LEVER_ON : TP_LEVER_OFF;
    if (asked > processors)
        say(r, TP_LEVER_FELL_BACK, "%d processor%s, %d asked for", processors,
            processors == 1 ? "" : "s", asked);
    else if (o->engine.threads == TP_OPT_UNSET_INT)
        say(r, r->state, asked > 1 ? "%d processors" : "%d processor", asked);
}

static void look_affinity(const tp_train_options *o, tp_lever_report *r)
{
    char why[128];
    tp_affinity asked = (tp_affinity)o->engine.affinity;
    if (asked == TP_AFFINITY_NONE)
        return;
    if (tp_trainer_affinity(o) != asked)
        say(r, TP_LEVER_FELL_BACK,
            "processes share processors; mpirun --bind-to core divides them");
    else if (tp_affinity_refused(asked, tp_trainer_threads(o), why, sizeof why))
        say(r, TP_LEVER_FELL_BACK, "%s", why);
    else
        r->state = TP_LEVER_ON;
}

/* A lever that the system may refuse, which says why. */
#define LOOK(name, asked, refused)                                         \
    static void look_##name(const tp_train_options *o, tp_lever_report *r) \
    {                                                                      \
        char why[128];                                                     \
        r->state = (asked) ? TP_LEVER_ON : TP_LEVER_OFF;                   \
        if ((asked) && refused)                                            \
            say(r, TP_LEVER_FELL_BACK, "%s", why);                         \
    }
LOOK(numa, o->engine.numa, tp_numa_interleave_refused(why, sizeof why))
LOOK(huge_pages, o->engine.huge_pages, tp_huge_pages_refused(why, sizeof why))
LOOK(pinned, o->data.pin_memory,
     tp_locked_memory_refused(tp_trainer_needs(o).loader_bytes, why, sizeof why))

/* ---- what was measured ---- */

static tp_lever_measure measure_padding(const trainer *t)
{
    double all = (double)(t->used_tokens + t->padded_tokens);
    return (tp_lever_measure){"padding", "share", all > 0 ? (double)t->padded_tokens / all : NAN};
}

static tp_lever_measure measure_recompute(const trainer *t)
{
    double ns = 0;
    const tp_exec *e = t->session ? tp_session_exec(t->session, "train") : NULL;
    for (size_t i = 0; e && i < tp_exec_launch_count(e); i++)
        if (tp_exec_launch(e, i)->is_clone)
            ns += (double)tp_exec_launch(e, i)->ns;
    return (tp_lever_measure){"recomputed", "s", e ? ns * 1e-9 : NAN};
}

static tp_lever_measure measure_gradient_error(const trainer *t)
{
    return (tp_lever_measure){"gradient error", "share", t->gradient_error};
}

static tp_lever_measure measure_wait(const trainer *t)
{
    return (tp_lever_measure){"waited for data", "s",
                              t->loader ? tp_loader_get_stats(t->loader).waited_s : NAN};
}

static tp_lever_measure measure_drafts(const trainer *t)
{
    double all = (double)t->drafted_tokens;
    return (tp_lever_measure){"tried and right", "share",
                              all > 0 ? (double)t->accepted_tokens / all : NAN};
}

static tp_lever_measure measure_compress(const trainer *t)
{
    bool has_any = t->wire.plain_bytes > 0;
    return (tp_lever_measure){"not sent", "bytes",
                              has_any ? t->wire.plain_bytes - (double)t->traffic.encoded_bytes
                                      : NAN};
}

static tp_lever_measure measure_huge_pages(const trainer *t)
{
    (void)t;
    return (tp_lever_measure){"in huge pages", "bytes", tp_huge_pages_in_use()};
}

static tp_lever_measure measure_pinned(const trainer *t)
{
    return (tp_lever_measure){"locked", "bytes",
                              t->o->data.pin_memory ? tp_locked_memory_in_use() : NAN};
}

/* ---- the table ---- */

#define BYTES TP_TELLS_BYTES
#define SECONDS TP_TELLS_SECONDS
#define LAUNCHES TP_TELLS_LAUNCHES
#define NOTHING 0
#define CHANGES_BITS true
#define SAME_BITS false
#define LOOK_SETTINGS NULL
#define LEVEL_ON(on, off) on
#define LEVEL_OFF(on, off) off
#define LEVEL_USUAL(on, off) NULL
#define LEVER(its_name, text, its_on, its_off, basic, advanced, ultra, bits, tells, looks,  \
              measures)                                                                     \
    {.shown = {.name = its_name,                                                            \
               .what = text,                                                                \
               .on = its_on,                                                                \
               .off = its_off,                                                              \
               .level = {LEVEL_##basic(its_on, its_off), LEVEL_##advanced(its_on, its_off), \
                         LEVEL_##ultra(its_on, its_off)},                                   \
               .may_change_bits = bits},                                                    \
     .told = tells,                                                                         \
     .look = looks,                                                                         \
     .measure = measures},
const tp_lever_row tp_lever_rows[] = {
#include "engine/train/levers.def"
};
const size_t tp_lever_row_count = TP_COUNTOF(tp_lever_rows);
_Static_assert(TP_COUNTOF(tp_lever_rows) <= TP_LEVERS_MOST, "levers.def has too many rows");

/* A lever is the first member of its row. */
static const tp_lever_row *row_of(const tp_lever *lever)
{
    return (const tp_lever_row *)(const void *)lever;
}

void tp_levers_measure(const trainer *t, tp_lever_reports *levers)
{
    for (int i = 0; i < levers->n; i++) {
        const tp_lever_row *row = row_of(levers->v[i].lever);
        if (row->measure)
            levers->measured[i] = row->measure(t);
    }
}

/* NaN is not zero: a plan without seconds cannot say so of a row that would change them. */
bool tp_lever_is_idle(const tp_lever_report *r)
{
    unsigned told = row_of(r->lever)->told;
    return told & TP_TELLS_LAUNCHES && r->saved_launches == 0 && r->saved_bytes == 0 &&
           (isnan(r->saved_s) || r->saved_s == 0);
}

#define DISABLED "engine.disable_passes="

/* ---- looking ---- */

static bool value_is(const tp_json *value, tp_slice text)
{
    const char *word = tp_json_word(value);
    return word && tp_slice_is(text, word);
}

static bool has_keys(const tp_config *config, const tp_lever *lever)
{
    tp_slice key, value;
    char name[128];
    for (const char *text = lever->off; tp_setting_next(&text, &key, &value);) {
        snprintf(name, sizeof name, "%.*s", (int)key.len, key.data);
        if (!tp_config_find(config, name))
            return false;
    }
    return true;
}

/* Off where every setting is as "off" has it; the reason is who set the first. */
static void look_settings(const tp_config *config, tp_lever_report *r)
{
    tp_slice key, value;
    char name[128];
    bool is_off = true;
    for (const char *text = r->lever->off; tp_setting_next(&text, &key, &value);) {
        snprintf(name, sizeof name, "%.*s", (int)key.len, key.data);
        is_off &= value_is(tp_config_find(config, name), value);
        if (!r->why[0])
            snprintf(r->why, sizeof r->why, "%s", tp_config_origin(config, name));
    }
    r->state = is_off ? TP_LEVER_OFF : TP_LEVER_ON;
}

/* A plug-in is a pass like the others; its row is made as it is asked for. */
static const tp_lever *plugin_lever(size_t i, tp_plugin_lever *ret)
{
    snprintf(ret->name, sizeof ret->name, "%s", tp_plugin_name(i));
    snprintf(ret->off, sizeof ret->off, DISABLED "[%s]", ret->name);
    ret->row = (tp_lever_row){.shown = {.name = ret->name,
                                        .what = "A pass of a shared object.",
                                        .on = DISABLED "[]",
                                        .off = ret->off,
                                        .may_change_bits = true},
                              .told = BYTES | SECONDS};
    return &ret->row.shown;
}

static void look_plugins(const tp_config *config, const tp_train_options *o, tp_lever_reports *ret)
{
    for (size_t i = 0; i < tp_plugins_count() && ret->n < TP_LEVERS_MOST; i++) {
        tp_lever_report *r = &ret->v[ret->n++];
        *r = (tp_lever_report){.lever = plugin_lever(i, &ret->plugins[i]),
                               .saved_bytes = NAN,
                               .saved_s = NAN,
                               .saved_launches = NAN};
        look_settings(config, r);
        if (o->policy.compile_mode !=
            TP_COMPILE_NONE) /* which leaves out other passes than these */
            look_disabled(o, r);
        if (r->state == TP_LEVER_ON)
            say(r, TP_LEVER_ON, "%s, %lld change%s", tp_config_origin(config, "engine.plugins"),
                (long long)tp_plugin_changes(i), tp_plural((uint64_t)(tp_plugin_changes(i))));
    }
}

void tp_levers_look(const tp_config *config, const tp_train_options *o, tp_lever_reports *ret)
{
    *ret = (tp_lever_reports){0};
    for (size_t i = 0; i < tp_lever_row_count; i++) {
        const tp_lever_row *row = &tp_lever_rows[i];
        if (!has_keys(config, &row->shown))
            continue;
        tp_lever_report *r = &ret->v[ret->n++];
        *r = (tp_lever_report){
            .lever = &row->shown, .saved_bytes = NAN, .saved_s = NAN, .saved_launches = NAN};
        look_settings(config, r);
        if (row->look)
            row->look(o, r);
    }
    look_plugins(config, o, ret);
}

void tp_levers_look_again(const tp_config *config, const tp_train_options *o,
                          tp_lever_reports *levers)
{
    tp_lever_reports now;
    tp_levers_look(config, o, &now);
    for (int i = 0; i < now.n && i < levers->n; i++) {
        levers->v[i].state = now.v[i].state;
        memcpy(levers->v[i].why, now.v[i].why, sizeof now.v[i].why);
    }
}

/* ---- planning with the lever the other way ---- */

/* A lever that is a word of a list: all others of the list stay. */
static tp_status turn_pass(tp_config *config, const tp_train_options *o,
                           const tp_lever_choice *choice, tp_error *err)
{
    const tp_str_list *now = &o->engine.disable_passes;
    TP_OWN(tp_buf) text = {0};
    tp_buf_adds(&text, DISABLED "[");
    if (!choice->is_on)
        tp_buf_adds(&text, choice->lever->name);
    for (size_t i = 0; i < now->n; i++)
        if (strcmp(now->v[i], choice->lever->name) != 0)
            tp_buf_addf(&text, "%s%s", tp_str_ends(text.data, "[") ? "" : ", ", now->v[i]);
    tp_buf_adds(&text, "]");
    return tp_config_override(config, text.data, err);
}

static tp_status turn(tp_config *config, const tp_train_options *o, const tp_lever_choice *choice,
                      tp_error *err)
{
    TP_FREED char **overrides = NULL;
    size_t n = 0;
    if (tp_str_starts(choice->lever->off, DISABLED))
        return turn_pass(config, o, choice, err);
    TP_TRY(tp_lever_overrides(choice, 1, &overrides, &n, err));
    for (size_t i = 0; i < n; i++)
        TP_TRY(tp_config_override(config, overrides[i], err));
    return TP_OK;
}

static tp_status plan_with(const tp_config *config, const tp_train_options *o,
                           const tp_lever_choice *choice, const tp_model *model, bool resumes,
                           const tp_machine *machine, tp_run_plan *ret, tp_error *err)
{
    TP_CLEANUP(tp_recipe_close) tp_recipe other = {0};
    TP_TRY(tp_config_copy(config, &other.config, err));
    TP_TRY(turn(other.config, o, choice, err));
    TP_TRY(tp_recipe_bind(&other, true, err));
    tp_recipe_place(&other, o); /* no key says where it runs */
    return tp_run_plan_compute(&other.options, model, resumes, machine, ret, err);
}

static void predict(const tp_run_plan *now, const tp_run_plan *other, unsigned told,
                    tp_lever_report *r)
{
    double sign = r->state == TP_LEVER_OFF ? -1 : 1;
    if (told & TP_TELLS_BYTES)
        r->saved_bytes = sign * ((double)other->peak_bytes - (double)now->peak_bytes) + 0.0;
    if (told & TP_TELLS_SECONDS) /* + 0.0: no -0 */
        r->saved_s = sign * (other->step_s - now->step_s) + 0.0;
    if (told & TP_TELLS_LAUNCHES)
        r->saved_launches =
            sign * ((double)other->session.n_launches - (double)now->session.n_launches) + 0.0;
}

void tp_levers_predict(const tp_config *config, const tp_train_options *o, const tp_model *model,
                       const tp_run_plan *now, bool resumes, const tp_machine *machine,
                       tp_lever_reports *levers)
{
    for (int i = 0; i < levers->n; i++) {
        tp_lever_report *r = &levers->v[i];
        const tp_lever_row *row = row_of(r->lever);
        const tp_lever_choice choice = {r->lever, r->state == TP_LEVER_OFF};
        tp_run_plan other;
        tp_error ignored;
        if (row->told &&
            plan_with(config, o, &choice, model, resumes, machine, &other, &ignored) == TP_OK)
            predict(now, &other, row->told, r);
    }
}

/* ---- JSON ---- */

static void put_measured(const tp_lever_measure *m, tp_json_w *w)
{
    if (!m->what || isnan(m->value)) {
        tp_json_w_put_str(w, "measured", NULL);
        return;
    }
    tp_json_w_put_begin(w, "measured", '{');
    tp_json_w_put_str(w, "what", m->what);
    tp_json_w_put_f64(w, "value", m->value);
    tp_json_w_put_str(w, "unit", m->unit);
    tp_json_w_end(w, '}');
}

void tp_levers_put(const tp_lever_reports *levers, tp_json_w *w)
{
    tp_json_w_put_begin(w, "levers", '[');
    for (int i = 0; i < levers->n; i++) {
        const tp_lever_report *r = &levers->v[i];
        tp_json_w_begin(w, '{');
        tp_json_w_put_str(w, "name", r->lever->name);
        tp_json_w_put_str(w, "state", tp_lever_state_name(r->state));
        tp_json_w_put_str(w, "why", r->why);
        tp_json_w_put_begin(w, "predicted", '{');
        tp_json_w_put_known(w, "saved_bytes", r->saved_bytes);
        tp_json_w_put_known(w, "saved_s", r->saved_s);
        tp_json_w_put_known(w, "saved_launches", r->saved_launches);
        tp_json_w_end(w, '}');
        put_measured(&levers->measured[i], w);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
}
