/* Several ranks of one job, side by side. */
#include <stdlib.h>
#include <string.h>

#include "instrument/report/trace_ranks.h"
#include "instrument/report/trace_report.h"

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* For people the name alone, unless two files share it. */
static const char *short_name(const char *const *paths, size_t n, size_t i)
{
    for (size_t k = 0; k < n; k++)
        if (k != i && strcmp(last_part(paths[k]), last_part(paths[i])) == 0)
            return paths[i];
    return last_part(paths[i]);
}

/* `paths` are those of the rows. */
static void fill_ranks(const tp_rank_table *t, const char *const *paths, tp_grid *g)
{
    g->title = "Ranks";
    tp_grid_column(g, "rank", "rank", TP_CELL_COUNT);
    tp_grid_column(g, "name", "file", TP_CELL_TEXT);
    tp_grid_column(g, "span_ns", "span", TP_CELL_NS);
    tp_grid_column(g, "compute_ns", "compute", TP_CELL_NS);
    tp_grid_column(g, "exposed_comm_ns", "exposed comm.", TP_CELL_NS);
    tp_grid_column(g, "hidden_comm_ns", "hidden", TP_CELL_NS);
    tp_grid_column(g, "exposed_mem_ns", "exposed mem.", TP_CELL_NS);
    tp_grid_column(g, "idle_ns", "idle", TP_CELL_NS);
    tp_grid_column(g, "collectives", "collectives", TP_CELL_COUNT);
    tp_grid_column(g, "matched", "matched", TP_CELL_COUNT);
    tp_grid_column(g, "wait_ns", "waited", TP_CELL_NS);
    tp_grid_column(g, "last_to_arrive", "last", TP_CELL_COUNT);
    tp_grid_hidden(g, "clock_offset_ns", TP_CELL_NS);
    tp_grid_column(g, "clock_spread_ns", "clock +-", TP_CELL_NS);
    tp_grid_hidden(g, "collective_ns", TP_CELL_NS);
    tp_grid_hidden(g, "set", TP_CELL_COUNT);
    tp_grid_hidden(g, "pairs_unknown", TP_CELL_COUNT);
    tp_grid_hidden(g, "file", TP_CELL_TEXT);
    for (size_t i = 0; i < t->n_ranks; i++) {
        const tp_rank_row *r = &t->ranks[i];
        bool is_known = r->has_work;
        tp_grid_int(g, r->rank);
        tp_grid_text(g, short_name(paths, t->n_ranks, i));
        tp_grid_known(g, is_known ? r->sum.span_ns : TP_UNKNOWN);
        tp_grid_known(g, is_known ? r->sum.compute_ns : TP_UNKNOWN);
        tp_grid_known(g, is_known ? r->sum.exposed_comm_ns : TP_UNKNOWN);
        tp_grid_known(g, is_known ? r->sum.overlap_ns : TP_UNKNOWN);
        tp_grid_known(g, is_known ? r->sum.exposed_mem_ns : TP_UNKNOWN);
        tp_grid_known(g, is_known ? r->sum.idle_ns : TP_UNKNOWN);
        tp_grid_int(g, r->collectives);
        tp_grid_int(g, r->matched);
        tp_grid_known(g, r->matched ? r->wait_ns : TP_UNKNOWN);
        tp_grid_int(g, r->last_to_arrive);
        tp_grid_known(g, r->offset_ns);
        tp_grid_known(g, r->offset_spread_ns);
        tp_grid_int(g, r->comm_ns);
        tp_grid_known(g, r->matched && t->n_sets ? (int64_t)r->set : TP_UNKNOWN);
        tp_grid_int(g, r->pairs_unknown);
        tp_grid_text(g, paths[i]);
    }
}

static void note_files(const tp_rank_table *t, tp_grid *g)
{
    size_t many = 0, by_gloo = 0;
    for (size_t i = 0; i < t->n_ranks; i++) {
        many += t->ranks[i].n_devices > 1;
        by_gloo += (size_t)t->ranks[i].by_gloo;
    }
    if (by_gloo)
        tp_grid_note(g, TP_NOTE_GLOO, by_gloo);
    if (many)
        tp_grid_note(g, "%zu file%s several devices: times are those of all of them together", many,
                     many == 1 ? " has" : "s have");
}

static void add_verdict(const tp_rank_table *t, tp_grid *g)
{
    char a[32], b[32];
    note_files(t, g);
    if (t->n_ranks < 2) {
        tp_grid_note(g, "one rank only: who waits for whom needs the files of several");
        return;
    }
    if (t->matched == 0) {
        tp_grid_note(g, "no collective occurs on two ranks: waiting cannot be told");
        return;
    }
    const tp_rank_row *s = &t->ranks[t->straggler];
    int64_t spread = 0, lost = 0, pairs_unknown = 0;
    size_t alone = 0;
    for (size_t i = 0; i < t->n_ranks; i++) {
        const tp_rank_row *r = &t->ranks[i];
        if (r->offset_spread_ns != TP_UNKNOWN && r->offset_spread_ns > spread)
            spread = r->offset_spread_ns;
        lost = tp_add_saturating(lost, r->set == s->set ? r->wait_ns : 0);
        pairs_unknown += r->pairs_unknown;
        alone += r->collectives > 0 && r->matched == 0;
    }
    tp_grid_note(g, "%lld collectives matched by %s; ranks waited %s in total",
                 (long long)t->matched, t->by_sequence ? "sequence number" : "order of occurrence",
                 tp_human_ns(t->lost_ns, a));
    tp_grid_note(g,
                 t->by_message
                     ? "clocks are aligned as measured between the ranks, at the start and at "
                       "the end: to +-%s"
                     : "clocks are aligned by the ends of collectives: to +-%s",
                 tp_human_ns(spread, b));
    if (t->n_sets > 1)
        tp_grid_note(
            g,
            "the ranks fall into %zu sets that share no collective: clocks are aligned, and "
            "waits compared, within each",
            t->n_sets);
    if (alone)
        tp_grid_note(g, "%zu rank%s no collective with another file: nothing is told of %s", alone,
                     alone == 1 ? " shares" : "s share", alone == 1 ? "it" : "them");
    if (pairs_unknown)
        tp_grid_note(g,
                     "%lld sends and receives are not matched: the files do not say between which "
                     "ranks they go",
                     (long long)pairs_unknown);
    if (lost / s->matched <= 2 * spread)
        tp_grid_note(g, "no straggler is shown: the waits are within what the clocks are known to");
    else
        tp_grid_note(g, "straggler: rank %lld, last in %lld of %lld collectives",
                     (long long)s->rank, (long long)s->last_to_arrive, (long long)s->matched);
}

static void fill_collectives(const tp_rank_table *t, tp_grid *g)
{
    g->title = "Collectives over all ranks";
    tp_grid_column(g, "collective", "collective", TP_CELL_TEXT);
    tp_grid_column(g, "bytes", "bytes", TP_CELL_BYTES);
    TP_GRID_MEMBER(g, "group_size", "ranks", TP_CELL_COUNT, tp_rank_collective, group_size);
    TP_GRID_MEMBER(g, "count", "count", TP_CELL_COUNT, tp_rank_collective, count);
    TP_GRID_MEMBER(g, "transfer_p50_ns", "transfer", TP_CELL_NS, tp_rank_collective,
                   transfer_p50_ns);
    TP_GRID_MEMBER(g, "algbw_bytes_per_s", "algbw", TP_CELL_RATE, tp_rank_collective, algbw);
    TP_GRID_MEMBER(g, "busbw_bytes_per_s", "busbw", TP_CELL_RATE, tp_rank_collective, busbw);
    TP_GRID_MEMBER(g, "skew_p50_ns", "skew median", TP_CELL_NS, tp_rank_collective, skew_p50_ns);
    TP_GRID_MEMBER(g, "skew_max_ns", "max", TP_CELL_NS, tp_rank_collective, skew_max_ns);
    TP_GRID_MEMBER(g, "skew_sum_ns", "sum", TP_CELL_NS, tp_rank_collective, skew_sum_ns);
    for (size_t i = 0; i < t->n_collectives; i++) {
        const tp_rank_collective *c = &t->collectives[i];
        tp_grid_text(g, tp_collective_name(c->collective));
        tp_grid_known(g, c->bytes < 0 ? TP_UNKNOWN : c->bytes);
        tp_grid_row(g, c);
    }
}

/* One that has the step is enough: another rank may have been recorded at other times. */
static tp_status check_steps(const tp_selection *sel, const char *const *paths, size_t n,
                             tp_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (tp_selection_check_steps(&sel[i], paths[i], NULL) == TP_OK)
            return TP_OK;
    return n ? tp_selection_check_steps(&sel[0], paths[0], err) : TP_OK;
}

tp_status tp_trace_report_ranks(const tp_trace_job *job, const tp_select_options *options,
                                tp_rank_grids *ret, tp_error *err)
{
    TP_FREED tp_selection *sel = tp_new(job->n + 1, sizeof *sel);
    TP_FREED const tp_selection **list = tp_new(job->n + 1, sizeof *list);
    TP_FREED int64_t *ranks = tp_new(job->n + 1, sizeof *ranks);
    TP_FREED const char **paths = tp_new(job->n + 1, sizeof *paths);
    TP_CLEANUP(tp_ranks_release) tp_rank_table table = {0};
    size_t n = 0;
    for (size_t i = 0; i < job->n; i++) {
        const tp_trace_file *f = job->files[i];
        if (!f->events)
            continue;
        tp_selection_make(f->events, options, &sel[n]);
        list[n] = &sel[n];
        paths[n] = f->path;
        ranks[n++] = f->rank == TP_UNKNOWN ? (int64_t)i : f->rank;
    }
    tp_status status = check_steps(sel, paths, n, err);
    if (status == TP_OK) {
        tp_ranks_make(list, ranks, n, &table);
        *ret = (tp_rank_grids){.ranks = {.name = "ranks"}, .collectives = {.name = "collectives"}};
        fill_ranks(&table, paths, &ret->ranks);
        add_verdict(&table, &ret->ranks);
        fill_collectives(&table, &ret->collectives);
    }
    for (size_t i = 0; i < n; i++)
        tp_selection_release(&sel[i]);
    return status;
}

void tp_rank_grids_release(tp_rank_grids *grids)
{
    tp_grid_release(&grids->ranks);
    tp_grid_release(&grids->collectives);
}
