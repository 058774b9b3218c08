/* two_commands.c - any two commands against each other. */
#include <string.h>

#include "instrument/bench/command.h"
#include "instrument/bench/session.h"

static const char *joined(const char *const *words, size_t n, tp_arena *arena)
{
    TP_OWN(tp_buf) text = {0};
    for (size_t i = 0; i < n; i++)
        tp_buf_addf(&text, "%s%s", i ? " " : "", words[i]);
    return tp_arena_strdup(arena, tp_buf_str(&text));
}

/* A peak below our own size is seen as ours.  On both sides that leaves nothing to compare;
 * on one, the difference is at least what is seen. */
static void note_memory(tp_bench_report *r, const tp_command_subject *a,
                        const tp_command_subject *b)
{
    tp_bench_metric *m = tp_result_metric(&r->results[0], tp_bench_memory_name);
    char text[32];
    if (!m || (a->is_memory_resolved && b->is_memory_resolved))
        return;
    bool neither = !a->is_memory_resolved && !b->is_memory_resolved;
    tp_human_bytes((double)(a->floor_bytes > b->floor_bytes ? a->floor_bytes : b->floor_bytes),
                   text);
    m->is_compared &= !neither;
    m->note =
        neither ? tp_bench_report_printf(r,
                                         "not resolved: a peak below this program's own %s cannot "
                                         "be told from it",
                                         text)
                : tp_bench_report_printf(r,
                                         "the peak of %s is at most %s, this program's own: the "
                                         "difference is at least this",
                                         a->is_memory_resolved ? "B" : "A", text);
}

static tp_status finish(const tp_bench_setup *f, tp_bench_report *r, tp_bench_show *show,
                        tp_error *err)
{
    TP_TRY(tp_gate_settle(r, err));
    r->exit_status = tp_gate_conclude(r, &f->gate).exit_status;
    tp_bench_show_json(show, r);
    tp_bench_show_verdicts(show, r, &f->gate);
    return tp_bench_save(f, r, false, err);
}

static tp_status measure(const tp_bench_setup *f, tp_bench_report *r, const char *const *argv_a,
                         const char *const *argv_b, tp_error *err)
{
    tp_command_subject side_a, side_b;
    TP_OWN(tp_bench_show) show = {0};
    tp_command_options options = {.timeout_s = f->o.timeout_s,
                                  .seed = (uint64_t)f->o.seed,
                                  .allow_failure = f->o.ignore_failure,
                                  .count_instructions = f->o.instructions};
    tp_command_subject_init(&side_a, argv_a, &options);
    tp_command_subject_init(&side_b, argv_b, &options);
    const char *name = f->o.name ? f->o.name : "command";
    tp_bench_show_init(&show, f, true, 1, (int)strlen(name));
    tp_bench_show_heading(&show, r);
    enum { FAMILY = 2 }; /* time and memory */
    tp_bench_note_rounds(f, FAMILY);
    tp_bench_plan plan =
        tp_bench_make_plan(f, true, FAMILY, f->o.budget_s > 0 ? f->o.budget_s : 60);
    plan.fresh = 0;
    plan.observe = tp_bench_show_progress;
    plan.user = &show;
    r->rule = plan.rule;
    tp_status status = tp_bench_measure(r, name, &plan, &side_a.subject, &side_b.subject, err);
    tp_bench_show_clear(&show);
    if (status == TP_OK) {
        note_memory(r, &side_a, &side_b);
        status = finish(f, r, &show, err);
    }
    return status;
}

tp_status tp_session_commands(const tp_bench_setup *f, const char *const *a, size_t n_a,
                              const char *const *b, size_t n_b, int *ret_exit, tp_error *err)
{
    TP_OWN(tp_bench_report) r = {0};
    const char *const *argv_a, *const *argv_b;
    TP_TRY(tp_bench_check_save(f, err));
    TP_TRY(tp_bench_report_init(&r, err));
    tp_bench_describe(&r, f);
    tp_status status = tp_command_words(&r.arena, a, n_a, &argv_a, err);
    if (status == TP_OK)
        status = tp_command_words(&r.arena, b, n_b, &argv_b, err);
    if (status == TP_OK) {
        r.side_a = joined(a, n_a, &r.arena);
        r.side_b = joined(b, n_b, &r.arena);
        status = measure(f, &r, argv_a, argv_b, err);
    }
    *ret_exit = status == TP_OK ? r.exit_status : -1;
    return status;
}
