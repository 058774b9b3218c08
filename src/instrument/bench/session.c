/* session.c - running a suite: alone, against another version, or with a baseline. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/platform.h"
#include "instrument/bench/command.h"
#include "instrument/bench/session.h"
#include "instrument/bench/worker.h"
#include "temper/exit_status.h"

/* Seconds per benchmark when no budget is given. */
static const double alone_s = 10, compared_s = 30;

typedef struct {
    const tp_bench_setup *f;
    tp_bench_suite suite;
    tp_bench_case *chosen;
    size_t n_chosen;
    tp_bench_report report;
    tp_bench_show show;
    bool compares; /* two sides are measured */
    char self[4096], other[4096], other_label[128];
    double start_s;
} session;

tp_bench_plan tp_bench_make_plan(const tp_bench_setup *f, bool compares, size_t n_family,
                                 double budget_s)
{
    tp_bench_plan plan = tp_bench_plan_default();
    plan.rule = f->rule;
    plan.rule.family = n_family;
    plan.rounds = (size_t)f->o.rounds + (compares && f->o.rounds % 2);
    size_t least = tp_rule_least_rounds(&plan.rule);
    if (compares && least > plan.min_rounds)
        plan.min_rounds = least;
    plan.max_rounds = f->o.max_rounds ? (size_t)f->o.max_rounds : compares ? 100 : 200;
    if (plan.min_rounds > plan.max_rounds)
        plan.min_rounds = plan.max_rounds;
    plan.budget_s = budget_s;
    plan.warm_up_s = budget_s / 10 < 2 ? budget_s / 10 : 2;
    plan.precision = f->o.interval_width;
    plan.seed = (uint64_t)f->o.seed;
    plan.fresh = (size_t)f->o.fresh;
    plan.read_machine = f->o.keep_disturbed ? NULL : tp_machine_read;
    return plan;
}

void tp_bench_note_rounds(const tp_bench_setup *f, size_t n_family)
{
    tp_bench_plan plan = tp_bench_make_plan(f, true, n_family, 1);
    size_t least = tp_rule_least_rounds(&plan.rule);
    if (plan.rounds && plan.rounds < least)
        tp_bench_note(f,
                      "%zu rounds are too few to ever show a regression among %zu comparisons; at "
                      "least %zu",
                      plan.rounds, n_family, least);
}

void tp_bench_describe(tp_bench_report *r, const tp_bench_setup *f)
{
    char when[32];
    tp_wall_iso(tp_wall_s(), when);
    r->started = tp_arena_strdup(&r->arena, when);
    tp_host_detect(&r->host);
    r->is_host_known = true;
    r->has_commit = tp_commit_detect(NULL, &r->commit);
    r->rule = f->rule;
    r->seed = (uint64_t)f->o.seed;
}

/* ---- which benchmarks ---- */

/* An option that changes what is measured changes the name: a baseline of one is none of
 * the other. */
static void override(const tp_bench_setup *f, tp_bench_case *c, tp_arena *arena)
{
    TP_OWN(tp_buf) suffix = {0};
    const struct {
        const char *key, *given, **member;
    } texts[] = {{"model", f->o.model, &c->model},
                 {"precision", f->o.precision, &c->precision},
                 {"backend", f->o.backend, &c->backend},
                 {"device", f->o.device, &c->device}};
    const struct {
        const char *key;
        int64_t given, *member;
    } numbers[] = {{"batch_size", f->o.batch_size, &c->batch_size},
                   {"sequence_length", f->o.sequence_length, &c->sequence_length},
                   {"steps", f->o.steps, &c->steps},
                   {"threads", f->o.threads, &c->threads}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!texts[i].given || strcmp(texts[i].given, *texts[i].member) == 0)
            continue;
        *texts[i].member = texts[i].given;
        tp_buf_addf(&suffix, ",%s=%s", texts[i].key, texts[i].given);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].given == 0 || numbers[i].given == *numbers[i].member)
            continue;
        *numbers[i].member = numbers[i].given;
        tp_buf_addf(&suffix, ",%s=%lld", numbers[i].key, (long long)numbers[i].given);
    }
    if (f->o.has_warm_up)
        c->warm_up = f->o.warm_up;
    if (suffix.len && !f->o.name)
        c->name = tp_arena_printf(arena, "%s@%s", c->name, suffix.data + 1);
}

/* --name, or --model without a pattern: one benchmark made of the options. */
static void choose_custom(session *s)
{
    const tp_bench_setup *f = s->f;
    tp_bench_case *c = &s->chosen[s->n_chosen++];
    *c = tp_bench_case_default();
    c->origin = "command line";
    c->kind = f->o.kind ? f->o.kind : "train";
    override(f, c, &s->suite.arena);
    if (f->o.name)
        c->name = f->o.name;
    else
        c->name =
            tp_arena_printf(&s->suite.arena, "%s/%s/%s/%lld", c->kind, tp_str_after(c->model, '/'),
                            c->precision, (long long)c->sequence_length);
}

/* A pattern without a benchmark is a slip of the keyboard, whatever the others match. */
static tp_status check_patterns(const session *s, tp_error *err)
{
    const tp_bench_setup *f = s->f;
    for (size_t p = 0; p < f->n_patterns; p++) {
        bool matches = false;
        for (size_t i = 0; i < s->suite.n && !matches; i++)
            matches = tp_bench_matches(s->suite.items[i].name, &f->patterns[p], 1);
        if (!matches)
            return tp_fail(err, TP_ERR_CONFIG,
                           "no benchmark matches '%.80s'; 'temper bench --list' names them",
                           f->patterns[p]);
    }
    return TP_OK;
}

static tp_status choose(session *s, tp_error *err)
{
    const tp_bench_setup *f = s->f;
    const char *cases = f->o.cases                     ? f->o.cases
                        : tp_dir_exists("bench/cases") ? "bench/cases"
                                                       : NULL;
    TP_TRY(tp_bench_suite_init(&s->suite, err));
    if (cases)
        TP_TRY(tp_bench_suite_add(&s->suite, cases, err));
    s->chosen = tp_arena_array(&s->suite.arena, tp_bench_case, s->suite.n + 1);
    if (f->o.name || (f->o.model && f->n_patterns == 0)) {
        choose_custom(s);
        return TP_OK;
    }
    for (size_t i = 0; i < s->suite.n; i++) {
        if (!tp_bench_matches(s->suite.items[i].name, f->patterns, f->n_patterns))
            continue;
        s->chosen[s->n_chosen] = s->suite.items[i];
        if (!s->suite.items[i].command)
            override(f, &s->chosen[s->n_chosen], &s->suite.arena);
        s->n_chosen++;
    }
    if (!f->o.baseline) /* which may know of others */
        TP_TRY(check_patterns(s, err));
    return s->n_chosen ? TP_OK
                       : tp_fail(err, TP_ERR_CONFIG,
                                 "no benchmark matches; 'temper bench --list' names them");
}

/* Which baselines were asked for: a benchmark that matches and was not measured has
 * vanished.  With options that rename, only what was chosen counts. */
static bool is_asked_for(void *user, const char *name)
{
    const session *s = user;
    const tp_bench_setup *f = s->f;
    for (size_t i = 0; i < s->n_chosen; i++) {
        if (strcmp(s->chosen[i].name, name) == 0)
            return true;
    }
    bool renames = f->o.name || f->o.model || f->o.precision || f->o.backend || f->o.device ||
                   f->o.batch_size || f->o.sequence_length || f->o.steps || f->o.threads;
    return !renames && !strchr(name, '@') && tp_bench_matches(name, f->patterns, f->n_patterns);
}

static void list(const session *s, tp_buf *out)
{
    for (size_t i = 0; i < s->n_chosen && !s->f->o.json; i++) {
        const tp_bench_case *c = &s->chosen[i];
        bool is_built_in = strcmp(c->origin, "built in") == 0;
        tp_buf_addf(out, "%-26s %-8s %-12s %-8s batch %lld, length %lld%s%s\n", c->name, c->kind,
                    c->command ? c->command : c->model, c->command ? "" : c->precision,
                    (long long)c->batch_size, (long long)c->sequence_length,
                    is_built_in ? "" : "  from ", is_built_in ? "" : c->origin);
    }
    if (!s->f->o.json)
        return;
    tp_json_w w = tp_json_w_open(out, 1, '[');
    for (size_t i = 0; i < s->n_chosen; i++) {
        TP_OWN(tp_buf) request = {0};
        tp_bench_case_request(&s->chosen[i], &request);
        tp_json_w_raw(&w, tp_buf_str(&request));
    }
    tp_json_w_close(&w, ']');
}

tp_status tp_session_list(const tp_bench_setup *setup, tp_buf *out, tp_error *err)
{
    session s = {.f = setup};
    tp_status status = choose(&s, err);
    if (status == TP_OK)
        list(&s, out);
    tp_bench_suite_release(&s.suite);
    return status;
}

/* ---- measuring ---- */

typedef union {
    tp_subject subject;
    tp_worker_subject worker;
    tp_command_subject command;
} any_subject;

/* What runs a case on the side whose program is `binary`. */
static tp_status make_subject(session *s, const tp_bench_case *c, const char *binary,
                              any_subject *ret, tp_error *err)
{
    tp_arena *arena = &s->report.arena;
    const char *const *argv;
    TP_OWN(tp_buf) request = {0};
    if (c->command)
        TP_TRY(tp_command_words(arena, &c->command, 1, &argv, err));
    if (strcmp(c->kind, "command") == 0) {
        tp_command_options options = {.timeout_s = s->f->o.timeout_s,
                                      .seed = (uint64_t)s->f->o.seed,
                                      .allow_failure = s->f->o.ignore_failure};
        tp_command_subject_init(&ret->command, argv, &options);
        return TP_OK;
    }
    if (!c->command) {
        const char **own = tp_arena_array(arena, const char *, 4);
        own[0] = binary;
        own[1] = "bench";
        own[2] = "worker";
        argv = own;
    }
    tp_bench_case_request(c, &request);
    tp_worker_subject_init(&ret->worker, argv, tp_arena_strdup(arena, request.data),
                           s->f->o.timeout_s, (uint64_t)s->f->o.seed, arena);
    return TP_OK;
}

static double budget_of(const session *s)
{
    if (s->f->o.budget_s <= 0)
        return s->compares ? compared_s : alone_s;
    double left = s->f->o.budget_s - (tp_clock_s() - s->start_s);
    double share = left / (double)(s->n_chosen - s->show.done);
    return share > 0.05 ? share : 0.05;
}

/* Speed and resident memory of each benchmark are noisy and judged together. */
static size_t family_of(const session *s) { return 2 * s->n_chosen; }

static tp_status measure_case(session *s, const tp_bench_case *c, tp_error *err)
{
    any_subject a, b;
    tp_bench_plan plan = tp_bench_make_plan(s->f, s->compares, family_of(s), budget_of(s));
    plan.observe = tp_bench_show_progress;
    plan.user = &s->show;
    s->show.each_s = plan.rounds ? (double)NAN : plan.budget_s;
    TP_TRY(make_subject(s, c, s->self, &b, err));
    if (s->compares)
        TP_TRY(make_subject(s, c, s->other, &a, err));
    TP_TRY(tp_bench_measure(&s->report, c->name, &plan, s->compares ? &a.subject : NULL, &b.subject,
                            err));
    tp_bench_show_result(&s->show, &s->report.results[s->report.n_results - 1]);
    return TP_OK;
}

/* Fewer rounds than planned for so many comparisons would be unfair to the early ones, so
 * e-values are judged again with the final family when everything is in. */
static void judge_again(session *s)
{
    size_t family = tp_gate_family(&s->report);
    for (size_t i = 0; i < s->report.n_results; i++) {
        tp_bench_result *result = &s->report.results[i];
        tp_rule rule = s->f->rule;
        rule.family = family ? family : 1;
        rule.is_sequential = result->is_sequential;
        for (size_t k = 0; k < result->n_metrics; k++) {
            tp_bench_metric *m = &result->metrics[k];
            if (m->is_compared && m->comparison.how == TP_COMPARED_PAIRED)
                tp_rule_paired(&rule, &m->metric, m->a, m->b, result->order, result->rounds,
                               &m->comparison);
        }
    }
}

static tp_status measure_all(session *s, tp_error *err)
{
    s->start_s = tp_clock_s();
    if (s->compares)
        tp_bench_note_rounds(s->f, family_of(s));
    for (size_t i = 0; i < s->n_chosen; i++)
        TP_TRY(measure_case(s, &s->chosen[i], err));
    return TP_OK;
}

/* ---- comparing ---- */

static tp_status read_baselines(const session *s, tp_baselines *ret, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    if (s->f->o.update_baseline && !tp_file_exists(s->f->o.baseline))
        return tp_baselines_init(ret, err);
    TP_TRY(tp_file_read(s->f->o.baseline, 64 << 20, &text, err));
    return tp_baselines_read(s->f->o.baseline, tp_buf_str(&text), text.len, ret, err);
}

/* Into what the file holds now: others may have written while this session measured. */
static tp_status merge_baselines(const session *s, tp_error *err)
{
    TP_OWN(tp_buf) text = {0};
    TP_OWN(tp_baselines) now = {0};
    TP_TRY(read_baselines(s, &now, err));
    TP_TRY(tp_baselines_update(&now, &s->report, err));
    tp_baselines_write(&now, &text);
    return tp_file_write_atomic(s->f->o.baseline, text.data, text.len, err);
}

static tp_status write_baselines(const session *s, tp_error *err)
{
    int turn = tp_file_turn(s->f->o.baseline);
    tp_status status = merge_baselines(s, err);
    if (turn >= 0)
        close(turn);
    return status;
}

/* baselines.json is an object by name; anything else is some tool's results. */
static bool is_results_file(const tp_bench_setup *f)
{
    TP_OWN(tp_bench_report) r = {0};
    if (tp_bench_load(f, f->o.baseline, &r, NULL) != TP_OK)
        return false;
    return true;
}

/* Ranks of few rounds cannot reach what many comparisons together ask for.  Means alone would, and
 * fail far too often where one side stalls now and then. */
static void note_few_rounds(const tp_bench_setup *f, const tp_bench_report *r)
{
    size_t rounds = 0, n = tp_gate_too_short(r, &rounds);
    if (n)
        tp_bench_note(f,
                      "%zu of %zu comparisons have too few rounds to ever show a regression among "
                      "so many; at least %zu on each side",
                      n, r->rule.family, rounds);
}

static tp_status compare_with_results(session *s, tp_error *err)
{
    TP_OWN(tp_bench_report) base = {0};
    TP_TRY(tp_bench_load(s->f, s->f->o.baseline, &base, err));
    TP_TRY(tp_gate_compare_stored(&base, &s->report, is_asked_for, s, err));
    note_few_rounds(s->f, &s->report);
    return TP_OK;
}

static tp_status judge(session *s, tp_baselines *baselines, bool *ret_judged, tp_error *err)
{
    *ret_judged = true;
    if (baselines)
        return tp_baselines_compare(baselines, &s->report, is_asked_for, s, err);
    if (s->f->o.baseline)
        return compare_with_results(s, err);
    *ret_judged = s->compares;
    if (!s->compares)
        return TP_OK;
    judge_again(s);
    return tp_gate_settle(&s->report, err);
}

static tp_status finish(session *s, tp_baselines *baselines, tp_error *err)
{
    const tp_bench_options *o = &s->f->o;
    tp_bench_report *r = &s->report;
    bool judged;
    TP_TRY(judge(s, baselines, &judged, err));
    r->exit_status = tp_gate_conclude(r, &s->f->gate).exit_status;
    if (o->update_baseline) {
        TP_TRY(write_baselines(s, err));
        r->exit_status = 0; /* what was measured is what is wanted from now on */
    }
    if (judged && !o->json && !s->compares)
        tp_buf_addc(&s->show.out, '\n');
    if (judged)
        tp_bench_show_verdicts(&s->show, r, &s->f->gate);
    if (o->update_baseline && !o->json)
        tp_buf_addf(&s->show.out, "%s updated: %zu benchmark%s of host %.8s\n", o->baseline,
                    r->n_results, r->n_results == 1 ? "" : "s", r->host.fingerprint);
    tp_bench_show_json(&s->show, r);
    return tp_bench_save(s->f, r, true, err);
}

static tp_status prepare_sides(session *s, tp_error *err)
{
    ssize_t n = readlink("/proc/self/exe", s->self, sizeof s->self - 1);
    if (n <= 0)
        return tp_fail(err, TP_ERR_IO, "/proc/self/exe cannot be read");
    s->self[n] = 0;
    s->report.side_b = tp_bench_report_printf(
        &s->report, "this temper %s, %s%s%.12s%s", TEMPER_VERSION, s->self,
        s->report.has_commit ? "; the folder is at commit " : "",
        s->report.has_commit ? s->report.commit.id : "",
        s->report.has_commit && s->report.commit.is_dirty ? " (changed)" : "");
    if (s->f->o.aa) {
        memcpy(s->other, s->self, sizeof s->self);
        s->report.side_a = "the same program (A/A)";
    } else if (s->f->o.against) {
        TP_TRY(tp_bench_other_version(s->f, s->other, s->other_label, err));
        s->report.side_a = s->other_label;
    } else if (s->f->o.baseline)
        s->report.side_a = s->f->o.baseline;
    return TP_OK;
}

static tp_status measure(session *s, int *ret_exit, tp_error *err)
{
    size_t widest = 0;
    for (size_t i = 0; i < s->n_chosen; i++)
        widest = TP_MAX(widest, strlen(s->chosen[i].name));
    s->compares = s->f->o.against || s->f->o.aa;
    tp_bench_describe(&s->report, s->f);
    tp_bench_show_init(&s->show, s->f, s->compares, s->n_chosen, (int)widest);
    tp_status status = prepare_sides(s, err);
    if (status == TP_OK) {
        tp_bench_show_heading(&s->show, &s->report);
        status = measure_all(s, err);
        tp_bench_show_clear(&s->show);
    }
    /* A version that does not build is one that could not be measured. */
    if (status == TP_ERR_IO)
        *ret_exit = TP_EXIT_UNMEASURED;
    return status;
}

static tp_status run(session *s, int *ret_exit, tp_error *err)
{
    const tp_bench_options *o = &s->f->o;
    TP_OWN(tp_baselines) baselines = {0};
    TP_TRY(tp_bench_check_save(s->f, err));
    TP_TRY(choose(s, err));
    /* Whatever can be wrong with the input is found before minutes are spent. */
    bool stored = o->baseline && !o->update_baseline && is_results_file(s->f);
    if (o->baseline && !stored)
        TP_TRY(read_baselines(s, &baselines, err));
    tp_status status = measure(s, ret_exit, err);
    if (status == TP_OK) {
        status = finish(s, o->baseline && !stored ? &baselines : NULL, err);
        *ret_exit = status == TP_OK ? s->report.exit_status : -1;
    }
    tp_bench_show_release(&s->show);
    return status;
}

tp_status tp_session_bench(const tp_bench_setup *setup, int *ret_exit, tp_error *err)
{
    session s = {.f = setup};
    *ret_exit = -1;
    TP_TRY(tp_bench_report_init(&s.report, err));
    tp_status status = run(&s, ret_exit, err);
    tp_bench_report_release(&s.report);
    tp_bench_suite_release(&s.suite);
    return status;
}

/* ---- results of two files ---- */

static tp_status compare_loaded(const tp_bench_setup *f, tp_bench_report *base,
                                tp_bench_report *current, tp_error *err)
{
    TP_OWN(tp_bench_show) show = {0};
    size_t widest = 0;
    TP_TRY(tp_gate_compare_stored(base, current, NULL, NULL, err));
    note_few_rounds(f, current);
    for (size_t i = 0; i < current->n_results; i++)
        widest = TP_MAX(widest, strlen(current->results[i].name));
    current->exit_status = tp_gate_conclude(current, &f->gate).exit_status;
    tp_bench_show_init(&show, f, true, current->n_results, (int)widest);
    tp_bench_show_heading(&show, current);
    tp_bench_show_verdicts(&show, current, &f->gate);
    tp_bench_show_json(&show, current);
    return tp_bench_save(f, current, false, err);
}

tp_status tp_session_compare(const tp_bench_setup *f, const char *before, const char *after,
                             int *ret_exit, tp_error *err)
{
    TP_OWN(tp_bench_report) base = {0}, current = {0};
    *ret_exit = -1;
    TP_TRY(tp_bench_check_save(f, err));
    tp_status status = tp_bench_load(f, before, &base, err);
    if (status == TP_OK)
        status = tp_bench_load(f, after, &current, err);
    if (status == TP_OK) {
        current.rule = f->rule;
        current.side_a = before;
        current.side_b = after;
        status = compare_loaded(f, &base, &current, err);
        *ret_exit = status == TP_OK ? current.exit_status : -1;
    }
    return status;
}
