/* bench_commands.c - `temper bench A --vs B`: any two commands against each other. */
#include <string.h>

#include "cli/bench.h"
#include "cli/cli.h"
#include "instrument/bench/command.h"

static const char *joined(char **words, int n, tp_arena *arena)
{
    tp_buf text = {0};
    for (int i = 0; i < n; i++)
        tp_buf_addf(&text, "%s%s", i ? " " : "", words[i]);
    const char *copy = tp_arena_strdup(arena, tp_buf_str(&text));
    tp_buf_release(&text);
    return copy;
}

/* The words of a side: --cmd's value first, then what stood around --vs. */
static int gather(const char *first, char **words, int n, char **out)
{
    int count = 0;
    if (first)
        out[count++] = (char *)first;
    for (int i = 0; i < n; i++)
        out[count++] = words[i];
    return count;
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

static int finish(const tp_bench_flags *f, tp_bench_report *r, tp_bench_show *show)
{
    tp_error err = {0};
    tp_buf json = {0};
    if (tp_gate_settle(r, &err) != TP_OK)
        return tp_cli_fail(&err);
    r->exit_status = tp_gate_conclude(r, &f->gate).exit_status;
    if (f->json) {
        tp_write_temper(r, &json);
        fputs(tp_buf_str(&json), stdout);
        tp_buf_release(&json);
    } else
        tp_bench_show_verdicts(show, r, &f->gate);
    if (tp_bench_save(f, r, false, &err) != TP_OK)
        return tp_cli_fail(&err);
    return r->exit_status;
}

static int measure(const tp_bench_flags *f, tp_bench_report *r, char **a, int n_a, char **b,
                   int n_b)
{
    tp_error err = {0};
    const char *const *argv_a, *const *argv_b;
    tp_command_subject side_a, side_b;
    tp_bench_show show;
    tp_command_options options = {.timeout_s = f->timeout_s,
                                  .seed = (uint64_t)f->seed,
                                  .allow_failure = f->ignore_failure,
                                  .count_instructions = f->instructions};
    if (tp_command_words(&r->arena, (const char *const *)a, (size_t)n_a, &argv_a, &err) != TP_OK ||
        tp_command_words(&r->arena, (const char *const *)b, (size_t)n_b, &argv_b, &err) != TP_OK)
        return tp_cli_fail(&err);
    tp_command_subject_init(&side_a, argv_a, &options);
    tp_command_subject_init(&side_b, argv_b, &options);
    r->side_a = joined(a, n_a, &r->arena);
    r->side_b = joined(b, n_b, &r->arena);
    const char *name = f->name ? f->name : "command";
    tp_bench_show_init(&show, f, true, 1, (int)strlen(name));
    tp_bench_show_heading(&show, r);
    /* Time and memory are two comparisons. */
    tp_bench_plan plan = tp_bench_make_plan(f, true, 2, f->budget_s > 0 ? f->budget_s : 60);
    plan.fresh = 0;
    plan.observe = tp_bench_show_progress;
    plan.user = &show;
    r->rule = plan.rule;
    tp_bench_catch_signals();
    tp_status status = tp_bench_measure(r, name, &plan, &side_a.subject, &side_b.subject, &err);
    tp_bench_show_clear(&show);
    if (status != TP_OK)
        return tp_cli_fail(&err);
    note_memory(r, &side_a, &side_b);
    return finish(f, r, &show);
}

int tp_bench_run_commands(const tp_bench_flags *f)
{
    tp_error err = {0};
    tp_bench_report r;
    char *a[f->n_command_words + 2], *b[f->n_vs_words + 2];
    int n_a = gather(f->command, f->command_words, f->n_command_words, a);
    int n_b = gather(f->vs, f->vs_words, f->n_vs_words, b);
    if (n_a == 0 || n_b == 0) {
        fprintf(stderr, "temper bench: two commands are needed: temper bench 'A' --vs 'B'\n");
        return TP_EXIT_INPUT;
    }
    if (tp_bench_report_init(&r, &err) != TP_OK)
        return tp_cli_fail(&err);
    tp_bench_describe(&r, f);
    int status = measure(f, &r, a, n_a, b, n_b);
    tp_bench_report_release(&r);
    return status;
}
