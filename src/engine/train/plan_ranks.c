/* plan_ranks.c - several processes on a network that is described, not there. */
#include "engine/train/plan_ranks.h"

#include <math.h>
#include <string.h>

#include "base/platform.h"
#include "base/strings.h"
#include "engine/train/algorithm.h"

/* ---- one strategy ---- */

static void add_bytes(tp_collective_kind kind, double bytes, double times, tp_strategy_plan *p)
{
    double *to[] = {[TP_ALL_REDUCE] = &p->all_reduce_bytes,
                    [TP_REDUCE_SCATTER] = &p->reduce_scatter_bytes,
                    [TP_ALL_GATHER] = &p->all_gather_bytes};
    *to[kind] += times * bytes;
}

/* A run of the graph: what is begun goes out one after another while launches go on, and is waited
 * for where the graph waits for it. */
static void play(const tp_exec *e, const tp_machine *m, tp_dtype dtype, const tp_network *network,
                 tp_talk talk, double times, tp_strategy_plan *p)
{
    const tp_traffic *t = tp_exec_traffic(e);
    size_t n = tp_exec_launch_count(e);
    double now = 0, free_at = 0, all = 0, exposed = 0, *done = tp_new(n + 1, sizeof *done);
    for (size_t i = 0; i < n; i++) {
        const tp_launch_info *l = tp_exec_launch(e, i);
        if (!(tp_ops[l->op]->traits & TP_OP_COMMUNICATES)) {
            now += tp_launch_seconds(m, dtype, l);
            continue;
        }
        int bucket = tp_traffic_bucket(t, i);
        if (bucket < 0 || !tp_traffic_is_told(t, i, talk))
            continue;
        if (l->op == TP_OP_wait) {
            double late = fmax(done[bucket] - now, 0);
            exposed += isnan(done[bucket]) || isnan(now) ? NAN : late;
            now += late;
            continue;
        }
        tp_begun begun = tp_traffic_begun(t, i);
        double s = tp_network_seconds(network, tp_traffic_kind(t, i), &begun);
        free_at = fmax(free_at, now) + s;
        done[bucket] = isnan(now) || isnan(s) ? NAN : free_at;
        all += s;
        add_bytes(tp_traffic_kind(t, i), begun.bytes, times, p);
        p->plain_bytes += times * begun.plain_bytes;
        p->rounds += times * begun.rounds;
    }
    free(done);
    p->exposed_s += times * exposed;
    p->hidden_s += times * (all - exposed);
}

/* All runs of a graph in a step; NULL: there is no such graph, or it tells nothing. */
static void play_graph(const tp_run_graphs *graphs, const char *name, const tp_machine *m,
                       const tp_network *network, tp_talk talk, double times, tp_strategy_plan *p)
{
    int g = tp_program_find(graphs->program, name);
    const tp_exec *e = g < 0 ? NULL : tp_program_exec(graphs->program, g);
    tp_dtype dtype = tp_session_get_options(graphs->session)->compile.passes.compute_dtype;
    if (e && tp_exec_traffic(e) && times > 0)
        play(e, m, dtype, network, talk, times, p);
}

bool tp_strategy_is_possible(const tp_train_options *o, int ranks, int i, tp_train_options *ret)
{
    *ret = *o;
    ret->ranks = (tp_ranks){.ranks = ranks, .on_host = o->ranks.on_host};
    ret->distributed.strategy = i;
    if (tp_ranks_check(ret, NULL) != TP_OK || tp_ranks_divide(ret, NULL) != TP_OK)
        return false;
    bool has_others = ret->ranks.tensor.count < 2 || ret->ranks.ranks > 1; /* of the same layers */
    return (has_others || i == TP_STRATEGY_DDP) && tp_ranks_find_nodes(ret, NULL) == TP_OK;
}

tp_status tp_strategy_plan_make(const tp_train_options *o, const tp_model *model,
                                const tp_machine *m, const tp_network *network,
                                tp_strategy_plan *ret, tp_run_graphs *ret_graphs, tp_error *err)
{
    tp_run_graphs graphs;
    tp_run_graphs_options more = {0};
    tp_run_plan plan;
    TP_TRY(tp_run_graphs_create(o, model, &more, &graphs, err));
    tp_status status = tp_run_plan_make(o, model, &graphs, m, &plan, err);
    if (status == TP_OK) {
        *ret = (tp_strategy_plan){.strategy = tp_strategy_name(o->distributed.strategy),
                                  .peak_bytes = plan.peak_bytes,
                                  .fits = plan.fits,
                                  .compute_s = plan.step_s};
        tp_algorithm_needs needs = tp_trainer_needs(o);
        ret->gathered_bytes = tp_gathered_bytes(tp_session_states(graphs.session));
        double updates = plan.updates, micro = plan.micro_batches;
        play_graph(&graphs, "train", m, network, TP_TALK_ALL, updates, ret);
        double others = ret->rounds;
        play_graph(&graphs, "train", m, network, TP_TALK_PARTS, micro - updates, ret);
        ret->rounds_each = micro > updates ? (ret->rounds - others) / (micro - updates) : 0;
        play_graph(&graphs, "gather", m, network, TP_TALK_ALL, updates, ret);
        if (needs.scores_policy > 0)
            play_graph(&graphs, "eval", m, network, TP_TALK_ALL, micro * needs.scores_policy, ret);
        double before = ret->all_gather_bytes;
        play_graph(&graphs, "generate", m, network, TP_TALK_ALL, plan.generation_steps, ret);
        ret->generation_bytes = ret->all_gather_bytes - before;
        if (needs.reference)
            play_graph(&graphs, "reference", m, network, TP_TALK_ALL, micro, ret);
        ret->step_s = ret->compute_s + ret->exposed_s;
    }
    if (status == TP_OK && ret_graphs)
        *ret_graphs = graphs;
    else
        tp_run_graphs_release(&graphs);
    return status;
}

/* ---- all of them ---- */

static bool is_better(const tp_strategy_plan *a, const tp_strategy_plan *b)
{
    if (a->fits != b->fits)
        return a->fits;
    if (!isnan(a->step_s) && !isnan(b->step_s) && fabs(a->step_s - b->step_s) > 0.01 * b->step_s)
        return a->step_s < b->step_s;
    return a->peak_bytes < b->peak_bytes;
}

static void explain(const tp_strategy_plan *best, tp_strategy_plan *p)
{
    char a[32];
    if (p == best)
        snprintf(p->why, sizeof p->why, "the best here");
    else if (!p->fits)
        snprintf(p->why, sizeof p->why, "does not fit");
    else if (p->step_s > 1.01 * best->step_s)
        snprintf(p->why, sizeof p->why, "%s a step slower: %s",
                 tp_human_seconds(p->step_s - best->step_s, a),
                 p->exposed_s - best->exposed_s > best->compute_s - p->compute_s &&
                         p->exposed_s - best->exposed_s > p->compute_s - best->compute_s
                     ? "more of its communication is exposed"
                     : "more is copied for what is sent and gathered");
    else
        snprintf(p->why, sizeof p->why, "takes %s more memory%s",
                 tp_human_bytes((double)p->peak_bytes - (double)best->peak_bytes, a),
                 isnan(p->step_s) ? "" : " and is no faster");
}

tp_status tp_ranks_plan_make(const tp_train_options *o, const tp_model *model,
                             const tp_machine *machine, int ranks, const tp_network *network,
                             tp_ranks_plan *ret, tp_error *err)
{
    static const tp_network unknown = {.bytes_per_s = NAN, .latency_s = NAN};
    tp_ranks_plan p = {.ranks = ranks,
                       .sharers = TP_MAX(o->ranks.tensor.count, 1),
                       .shares_rows = tp_ranks_share_rows(o),
                       .network = network ? *network : unknown,
                       .format = tp_wire_name((tp_wire_kind)o->distributed.compress),
                       .best = -1};
    tp_run_plan alone;
    tp_train_options one = *o;
    one.ranks = (tp_ranks){0};
    TP_TRY(tp_run_plan_compute(&one, model, false, machine, &alone, err));
    p.alone_s = alone.step_s;
    for (int i = 0; i < (ranks > 1 ? TP_STRATEGIES : 1); i++) { /* one process divides nothing */
        tp_train_options with;
        if (!tp_strategy_is_possible(o, ranks, i, &with))
            continue;
        TP_TRY(tp_strategy_plan_make(&with, model, machine, &p.network, &p.v[p.n++], NULL, err));
    }
    for (int i = 0; i < p.n; i++)
        if (p.v[i].fits && (p.best < 0 || is_better(&p.v[i], &p.v[p.best])))
            p.best = i;
    for (int i = 0; i < p.n; i++)
        explain(p.best < 0 ? NULL : &p.v[p.best], &p.v[i]);
    *ret = p;
    return TP_OK;
}

/* Of one process doing all of it; 1: no time is lost.  NaN: unknown. */
static double efficiency_of(const tp_ranks_plan *p, const tp_strategy_plan *s)
{
    return p->alone_s / (s->step_s * p->ranks);
}

/* ---- what it says ---- */

static double sent(const tp_strategy_plan *s)
{
    return s->all_reduce_bytes + s->reduce_scatter_bytes + s->all_gather_bytes;
}

static const char *seconds(double s, char out[32])
{
    return isnan(s) ? "unknown" : tp_human_seconds(s, out);
}

void tp_ranks_plan_text(const tp_ranks_plan *p, tp_buf *out)
{
    char a[32], b[32], c[32], d[32], e[32];
    tp_buf_addf(out, "%d rank%s, network %s (estimates; bytes are sent by each rank in a step)\n\n",
                p->ranks, tp_plural((uint64_t)p->ranks),
                p->network.text[0] ? p->network.text : "unknown (--network 100Gbit/2us)");
    tp_buf_addf(out, "%-16s %11s %11s %10s %10s %10s %10s\n", "strategy", "memory", "sent",
                "exposed", "hidden", "step", "efficiency");
    for (int i = 0; i < p->n; i++) {
        const tp_strategy_plan *s = &p->v[i];
        double efficiency = efficiency_of(p, s);
        tp_buf_addf(out, "%-16s %11s %11s %10s %10s %10s ", s->strategy,
                    tp_human_bytes((double)s->peak_bytes, a), tp_human_bytes(sent(s), b),
                    seconds(s->exposed_s, c), seconds(s->hidden_s, d), seconds(s->step_s, e));
        if (isnan(efficiency))
            tp_buf_addf(out, "%10s", "unknown");
        else
            tp_buf_addf(out, "%8.0f %%", 100 * efficiency);
        tp_buf_addf(out, "  %s\n", s->why);
    }
    if (p->sharers > 1)
        tp_buf_addf(out, "%d ranks share the layers (tensor parallelism)%s, %d the data\n",
                    p->sharers, p->shares_rows ? " and their rows (sequence parallelism)" : "",
                    p->ranks / p->sharers);
    for (int i = 0; i < p->n; i++) {
        const tp_strategy_plan *s = &p->v[i];
        tp_buf_addf(out,
                    "%s: all_reduce %s, reduce_scatter %s, all_gather %s, %.0f messages in a row\n",
                    s->strategy, tp_human_bytes(s->all_reduce_bytes, a),
                    tp_human_bytes(s->reduce_scatter_bytes, b),
                    tp_human_bytes(s->all_gather_bytes, c), s->rounds);
        if (s->plain_bytes > sent(s))
            tp_buf_addf(out, "%s: %s are sent in place of %s, gradients in %s\n", s->strategy,
                        tp_human_bytes(sent(s), a), tp_human_bytes(s->plain_bytes, b), p->format);
        if (s->gathered_bytes)
            tp_buf_addf(out,
                        "%s: generation keeps a gathered copy of the weights, %s on every rank\n",
                        s->strategy, tp_human_bytes((double)s->gathered_bytes, a));
        if (s->generation_bytes > 0)
            tp_buf_addf(out,
                        "%s: generation gathers weights layer by layer, %s a step of the run\n",
                        s->strategy, tp_human_bytes(s->generation_bytes, a));
    }
}

void tp_ranks_plan_put(const tp_ranks_plan *p, tp_json_w *w)
{
    const tp_strategy_plan *best = p->best < 0 ? NULL : &p->v[p->best];
    tp_json_w_put_begin(w, "distributed", '{');
    tp_json_w_put_i64(w, "ranks", p->ranks);
    tp_json_w_put_i64(w, "tensor_parallel_size", p->sharers);
    tp_json_w_put_bool(w, "sequence_parallel", p->shares_rows);
    tp_json_w_put_str(w, "network", p->network.text[0] ? p->network.text : NULL);
    tp_json_w_put_str(w, "strategy", best ? best->strategy : NULL);
    tp_json_w_put_str(w, "compress", p->format);
    tp_json_w_put_known(w, "bytes_sent", best ? sent(best) : NAN);
    tp_json_w_put_known(w, "exposed_s", best ? best->exposed_s : NAN);
    tp_json_w_put_known(w, "hidden_s", best ? best->hidden_s : NAN);
    tp_json_w_put_begin(w, "strategies", '[');
    for (int i = 0; i < p->n; i++) {
        const tp_strategy_plan *s = &p->v[i];
        tp_json_w_begin(w, '{');
        tp_json_w_put_str(w, "strategy", s->strategy);
        tp_json_w_put_i64(w, "planned_peak_bytes", (int64_t)s->peak_bytes);
        tp_json_w_put_bool(w, "fits", s->fits);
        tp_json_w_put_i64(w, "all_reduce_bytes", (int64_t)s->all_reduce_bytes);
        tp_json_w_put_i64(w, "reduce_scatter_bytes", (int64_t)s->reduce_scatter_bytes);
        tp_json_w_put_i64(w, "all_gather_bytes", (int64_t)s->all_gather_bytes);
        tp_json_w_put_i64(w, "bytes_sent", (int64_t)sent(s));
        tp_json_w_put_i64(w, "uncompressed_bytes", (int64_t)s->plain_bytes);
        tp_json_w_put_i64(w, "gathered_copy_bytes", (int64_t)s->gathered_bytes);
        tp_json_w_put_i64(w, "generation_gather_bytes", (int64_t)s->generation_bytes);
        tp_json_w_put_known(w, "exposed_s", s->exposed_s);
        tp_json_w_put_known(w, "hidden_s", s->hidden_s);
        tp_json_w_put_known(w, "step_s", s->step_s);
        tp_json_w_put_known(w, "efficiency", efficiency_of(p, s));
        tp_json_w_put_str(w, "why", s->why);
        tp_json_w_end(w, '}');
    }
    tp_json_w_end(w, ']');
    tp_json_w_end(w, '}');
}
