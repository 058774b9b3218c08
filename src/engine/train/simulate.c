/* simulate.c - a step of every rank in a simulated network. */
#include "engine/train/simulate.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cpu.h"
#include "base/files.h"
#include "base/platform.h"
#include "base/strings.h"
#include "base/working.h"

/* Micro-batches of an update that are gone through: the first, two like all that follow, the last.
 * The others take as long as the second of the two. */
enum { PLAYED = 4 };

/* What a rank leaves behind. */
typedef struct {
    double step_s, exposed_s, hidden_s, bytes_sent, messages;
    double repeated_s, repeated_bytes; /* of the step: what is not gone through */
    tp_error failure;
} rank_result;

/* A graph of the step. */
typedef struct {
    const tp_exec *exec; /* NULL: there is no such graph */
    double *seconds;     /* of its launches */
    double all_s;
} act;

/* The step that every rank goes through. */
typedef struct {
    act train, update, gather;
    double before_s, update_s;  /* generation and the like; of an update without messages */
    int updates, micro_batches; /* of an update */
    double bytes_per_s;
    char *nothing;
    size_t nothing_bytes;
    rank_result *results; /* shared */
} score;

/* ---- one rank ---- */

static tp_status play(const act *a, tp_traffic *traffic, tp_comm *comm, tp_talk talk, tp_error *err)
{
    if (a->exec && traffic)
        return tp_exec_rehearse(a->exec, traffic, talk, a->seconds, err);
    tp_comm_pass(comm, a->all_s);
    return TP_OK;
}

/* What a rank has done so far, or in a while. */
static rank_result look(tp_comm *comm)
{
    tp_comm_stats stats = tp_comm_get_stats(comm);
    return (rank_result){.step_s = tp_comm_now_s(comm),
                         .exposed_s = stats.exposed_s,
                         .hidden_s = stats.hidden_s,
                         .bytes_sent = (double)stats.bytes_sent,
                         .messages = (double)stats.messages};
}

/* The same once more, so many times. */
static void add_times(double times, const rank_result *from, const rank_result *to,
                      rank_result *sum)
{
    sum->exposed_s += times * (to->exposed_s - from->exposed_s);
    sum->hidden_s += times * (to->hidden_s - from->hidden_s);
    sum->bytes_sent += times * (to->bytes_sent - from->bytes_sent);
    sum->messages += times * (to->messages - from->messages);
}

/* *more gets what those did that are not gone through. */
static tp_status play_micro_batches(const score *s, tp_comm *comm, tp_traffic *traffic,
                                    rank_result *more, tp_error *err)
{
    int played = TP_MIN(s->micro_batches, PLAYED);
    for (int m = 0; m < played; m++) {
        rank_result before = look(comm);
        TP_TRY(play(&s->train, traffic, comm, m + 1 == played ? TP_TALK_ALL : TP_TALK_PARTS, err));
        rank_result after = look(comm);
        if (m == played - 2) {
            add_times(s->micro_batches - played, &before, &after, more);
            more->repeated_s += (s->micro_batches - played) * (after.step_s - before.step_s);
            more->repeated_bytes +=
                (s->micro_batches - played) * (after.bytes_sent - before.bytes_sent);
        }
    }
    return TP_OK;
}

static tp_status play_update(const score *s, tp_comm *comm, tp_traffic *const traffic[3],
                             rank_result *more, tp_error *err)
{
    double figures[11] = {0};
    TP_TRY(play_micro_batches(s, comm, traffic[0], more, err));
    TP_TRY(tp_comm_sum(comm, figures, 1, err)); /* the norm */
    if (traffic[1])
        TP_TRY(play(&s->update, traffic[1], comm, TP_TALK_ALL, err));
    else
        tp_comm_pass(comm, s->update_s);
    return play(&s->gather, traffic[2], comm, TP_TALK_ALL, err);
}

static tp_status play_step(const score *s, tp_comm *comm, tp_arena *arena, rank_result *more,
                           tp_error *err)
{
    const act *const acts[3] = {&s->train, &s->update, &s->gather};
    const tp_rehearsal how = {comm, s->nothing, s->bytes_per_s};
    tp_traffic *traffic[3];
    double figures[11] = {0};
    for (int i = 0; i < 3; i++)
        traffic[i] =
            acts[i]->exec ? tp_traffic_rehearse(tp_exec_traffic(acts[i]->exec), &how, arena) : NULL;
    tp_comm_pass(comm, s->before_s);
    for (int u = 0; u < s->updates; u++)
        TP_TRY(play_update(s, comm, traffic, more, err));
    TP_TRY(tp_comm_sum(comm, figures, TP_COUNTOF(figures), err));
    return tp_comm_max(comm, figures, 2, err); /* whether somebody is asked to stop */
}

static void live(tp_comm *comm, void *user)
{
    enum { TABLES = 64 << 20 }; /* of addresses */
    const score *s = user;
    rank_result *r = &s->results[tp_comm_rank(comm)];
    TP_OWN(tp_arena) arena = {0};
    double nobody = 0;
    tp_status status = tp_arena_init(&arena, TABLES, &r->failure);
    if (status == TP_OK)
        status = tp_comm_max(comm, &nobody, 1, &r->failure); /* all begin together */
    rank_result before = look(comm);
    if (status == TP_OK)
        status = play_step(s, comm, &arena, r, &r->failure);
    rank_result after = look(comm);
    add_times(1, &before, &after, r);
    r->step_s = after.step_s - before.step_s;
    r->failure.status = status;
}

/* ---- the step ---- */

static void add_act(const tp_program *program, const char *graph, const tp_machine *m,
                    tp_dtype dtype, tp_arena *arena, act *ret)
{
    int g = tp_program_find(program, graph);
    const tp_exec *e = g < 0 ? NULL : tp_program_exec(program, g);
    if (!e)
        return;
    ret->exec = e;
    ret->seconds = tp_arena_array(arena, double, tp_exec_launch_count(e) + 1);
    for (size_t i = 0; i < tp_exec_launch_count(e); i++) {
        const tp_launch_info *l = tp_exec_launch(e, i);
        if (!(tp_ops[l->op]->traits & TP_OP_COMMUNICATES)) /* those take what the network does */
            ret->seconds[i] = tp_launch_seconds(m, dtype, l);
        ret->all_s += ret->seconds[i];
    }
}

static tp_status make_score(const tp_run_graphs *g, const tp_run_plan *plan, const tp_machine *m,
                            int ranks, tp_arena *arena, score *s, tp_error *err)
{
    tp_dtype dtype = tp_session_get_options(g->session)->compile.passes.compute_dtype;
    *s = (score){.before_s = plan->generation_s + plan->logprob_s + plan->reference_s,
                 .update_s = plan->update_s / plan->updates,
                 .updates = (int)plan->updates,
                 .micro_batches = (int)(plan->micro_batches / plan->updates),
                 .bytes_per_s = m->copy_bytes};
    add_act(g->program, "train", m, dtype, arena, &s->train);
    add_act(g->program, "update", m, dtype, arena, &s->update);
    add_act(g->program, "gather", m, dtype, arena, &s->gather);
    const act *const acts[3] = {&s->train, &s->update, &s->gather};
    for (int i = 0; i < 3; i++)
        if (acts[i]->exec)
            s->nothing_bytes =
                TP_MAX(s->nothing_bytes, tp_traffic_staging_bytes(tp_exec_traffic(acts[i]->exec)));
    s->nothing_bytes += 4096;
    s->nothing =
        mmap(NULL, s->nothing_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    s->results = tp_world_share((size_t)ranks * sizeof *s->results);
    if (s->nothing == MAP_FAILED || !s->results)
        return tp_fail(err, TP_ERR_NOMEM, "no addresses for %zu bytes", s->nothing_bytes);
    return TP_OK;
}

/* The step if messages took no time. */
static double quiet_s(const score *s)
{
    bool talks = s->update.exec && tp_exec_traffic(s->update.exec);
    double update_s = talks ? s->update.all_s : s->update_s;
    return s->before_s +
           s->updates * (s->micro_batches * s->train.all_s + update_s + s->gather.all_s);
}

static void release_score(score *s, int ranks)
{
    if (s->nothing && s->nothing != MAP_FAILED)
        munmap(s->nothing, s->nothing_bytes);
    tp_world_unshare(s->results, (size_t)ranks * sizeof *s->results);
}

/* Worlds do not know of each other: as many are played at once as there are processors. */
enum { MOST_AT_ONCE = 4 };

typedef struct {
    tp_world *world;
    rank_result *results;
    tp_simulated_point *point;
} performance;

typedef struct {
    performance going[MOST_AT_ONCE]; /* in the order of their beginning */
    int n, most;
    double alone_s;
    size_t n_begun, n_points; /* of the whole simulation */
} stage;

/* ---- one point ---- */

static tp_world_spec spec_of(const tp_simulation_options *how, int ranks)
{
    return (tp_world_spec){.platform = how->platform,
                           .ranks = ranks,
                           .slow_link = how->slow_link,
                           .slow_factor = how->slow_factor};
}

/* Nothing went over them in what was not gone through. */
static void use_links_again(tp_world_result *world, double times)
{
    for (int i = 0; i < world->n_links; i++)
        world->links[i].busy_s *= times;
    world->median_busy_s *= times;
}

static tp_status collect(const rank_result *results, tp_simulated_point *p, tp_error *err)
{
    double repeated = 0, played_bytes = 0;
    for (int i = 0; i < p->ranks; i++) {
        const rank_result *r = &results[i];
        if (r->failure.status != TP_OK) {
            if (err)
                *err = r->failure;
            return r->failure.status;
        }
        p->step_s = fmax(p->step_s, r->step_s);
        repeated += r->repeated_s / p->ranks;
        p->exposed_s += r->exposed_s / p->ranks;
        p->hidden_s += r->hidden_s / p->ranks;
        p->bytes_sent += r->bytes_sent / p->ranks;
        played_bytes += (r->bytes_sent - r->repeated_bytes) / p->ranks;
        p->messages += r->messages;
    }
    p->step_s += repeated;
    use_links_again(&p->world, played_bytes > 0 ? p->bytes_sent / played_bytes : 1);
    return TP_OK;
}

static void say(const tp_simulation_options *how, const tp_simulated_point *p)
{
    char text[256];
    if (!how->note)
        return;
    snprintf(text, sizeof text, "%d ranks, %s: a step of %.4g s took %.1f s to simulate", p->ranks,
             p->strategy, p->step_s, p->took_s);
    how->note(how->user, text);
}

/* Of the one that began first. */
static tp_status finish(stage *all, const tp_simulation_options *how, tp_error *err)
{
    performance first = all->going[0];
    tp_simulated_point *p = first.point;
    memmove(all->going, all->going + 1, (size_t)--all->n * sizeof all->going[0]);
    tp_status status = tp_world_finish(first.world, &p->world, &p->took_s, err);
    if (status == TP_OK)
        status = collect(first.results, p, err);
    tp_world_unshare(first.results, (size_t)p->ranks * sizeof *first.results);
    if (status != TP_OK)
        return status;
    p->efficiency = all->alone_s / (p->step_s * p->ranks);
    p->compute_efficiency = all->alone_s / (p->compute_efficiency * p->ranks);
    say(how, p);
    return TP_OK;
}

/* The results are the stage's from here on. */
static tp_status begin(stage *all, const tp_simulation_options *how, score *s,
                       tp_simulated_point *p, tp_error *err)
{
    tp_world_spec spec = spec_of(how, p->ranks);
    spec.nothing = s->nothing;
    spec.nothing_bytes = s->nothing_bytes;
    if (all->n == all->most)
        TP_TRY(finish(all, how, err));
    performance next = {.results = s->results, .point = p};
    TP_TRY(tp_world_start(&spec, live, s, &next.world, err));
    s->results = NULL;
    all->going[all->n++] = next;
    return TP_OK;
}

/* With these buckets.  *ret_messages: more than are wanted, and nothing was simulated. */
static tp_status try_buckets(const tp_train_options *o, const tp_model *model, const tp_machine *m,
                             const tp_network *network, const tp_simulation_options *how,
                             double most, stage *all, tp_simulated_point *p, double *ret_messages,
                             tp_error *err)
{
    tp_strategy_plan strategy;
    TP_OWN(tp_run_graphs) graphs = {0};
    tp_run_plan plan;
    TP_OWN(tp_arena) arena = {0};
    score s = {0};
    TP_TRY(tp_strategy_plan_make(o, model, m, network, &strategy, &graphs, err));
    TP_TRY(tp_arena_init(&arena, 1 << 30, err));
    TP_TRY(tp_run_plan_make(o, model, &graphs, m, &plan, err));
    tp_status status = make_score(&graphs, &plan, m, p->ranks, &arena, &s, err);
    double others = fmax(plan.micro_batches / plan.updates - PLAYED, 0) * plan.updates;
    *ret_messages = strategy.rounds - others * strategy.rounds_each;
    p->strategy = strategy.strategy;
    p->formula_s = strategy.step_s;
    p->bucket_mib = o->distributed.bucket_mib;
    if (status == TP_OK)
        p->compute_efficiency = quiet_s(&s);
    if (status == TP_OK && *ret_messages <= most)
        status = begin(all, how, &s, p, err);
    release_score(&s, p->ranks);
    return status;
}

static tp_status simulate_point(const tp_train_options *o, const tp_model *model,
                                const tp_machine *m, const tp_network *network,
                                const tp_simulation_options *how, stage *all, tp_simulated_point *p,
                                tp_error *err)
{
    double messages = 0, before;
    double most =
        fmax(fmin(how->many_messages / p->ranks, 6 * how->few_messages), how->few_messages);
    tp_train_options with = *o;
    do { /* larger buckets, as long as that helps */
        before = messages;
        TP_TRY(try_buckets(&with, model, m, network, how, most, all, p, &messages, err));
        if (messages <= most)
            break;
        with.distributed.bucket_mib *= 2;
    } while (before == 0 || messages < before);
    if (messages > most) {
        with.distributed.bucket_mib /= 2;
        most = how->most_messages;
        TP_TRY(try_buckets(&with, model, m, network, how, most, all, p, &messages, err));
    }
    if (messages > most)
        return tp_fail(err, TP_ERR_UNSUPPORTED,
                       "each of %d ranks sends %.3g messages in a step with %s, the simulation "
                       "takes %.3g: take 2^k ranks, which need k rounds of messages and not one "
                       "for each rank",
                       p->ranks, messages, p->strategy, most);
    return TP_OK;
}

/* ---- all of them ---- */

static void no_step(tp_comm *comm, void *user) { (void)comm, (void)user; }

enum { MAX_PLATFORM = 16 << 20 };

/* What the plan's formula makes of the platform. */
static tp_status measure_network(const tp_simulation_options *how, int ranks, tp_network *ret,
                                 tp_world_result *world, tp_error *err)
{
    tp_world *empty;
    double took_s;
    const tp_world_spec spec = spec_of(how, ranks);
    TP_TRY(tp_world_start(&spec, no_step, NULL, &empty, err));
    TP_TRY(tp_world_finish(empty, world, &took_s, err));
    TP_OWN(tp_buf) xml = {0};
    TP_TRY(tp_file_read(how->platform, MAX_PLATFORM, &xml, err));
    *ret = (tp_network){.bytes_per_s = world->bytes_per_s,
                        .latency_s = world->latency_s,
                        .shape = tp_network_shape_of_platform(tp_buf_str(&xml))};
    return TP_OK;
}

static tp_simulated_point *add_point(tp_simulation *s, int ranks)
{
    tp_simulated_point *p = &s->points[s->n++];
    *p = (tp_simulated_point){.ranks = ranks};
    return p;
}

static size_t count_points(const tp_train_options *o, const tp_simulation_options *how)
{
    tp_train_options with;
    size_t count = 0;
    for (int n = how->factor; n / how->factor < how->ranks; n *= how->factor)
        for (int i = 0; i < TP_STRATEGIES && TP_MIN(n, how->ranks) >= how->from; i++)
            count += tp_strategy_is_possible(o, TP_MIN(n, how->ranks), i, &with);
    return count;
}

/* What the last one takes is not known from those before: it has the most ranks. */
static void tell_point(int ranks, int strategy, const stage *all)
{
    char text[128];
    snprintf(text, sizeof text, "playing %d ranks, %s (%zu of %zu)", ranks,
             tp_strategy_name(strategy), all->n_begun, all->n_points);
    tp_work_tell(text, 0, 0);
}

static tp_status simulate_ranks(const tp_train_options *o, const tp_model *model,
                                const tp_machine *m, const tp_simulation_options *how, int ranks,
                                stage *all, tp_simulation *s, tp_error *err)
{
    tp_network network;
    TP_TRY(measure_network(how, ranks, &network, &s->network, err));
    for (int i = 0; i < TP_STRATEGIES; i++) {
        tp_train_options with;
        if (!tp_strategy_is_possible(o, ranks, i, &with))
            continue;
        tp_simulated_point *p = add_point(s, ranks);
        all->n_begun++;
        tell_point(ranks, i, all);
        TP_TRY(simulate_point(&with, model, m, &network, how, all, p, err));
    }
    return TP_OK;
}

static void add_alone(const tp_train_options *o, tp_simulation *s)
{
    for (int i = 0; i < TP_STRATEGIES; i++) {
        tp_train_options with;
        bool has_nodes = o->distributed.ranks_per_node != TP_OPT_UNSET_INT;
        if (!tp_strategy_is_possible(o, 1, i, &with) || (i == TP_STRATEGY_HYBRID && !has_nodes))
            continue;
        tp_simulated_point *p = add_point(s, 1);
        p->strategy = tp_strategy_name(i);
        p->step_s = p->formula_s = s->alone_s;
        p->efficiency = p->compute_efficiency = 1;
        p->bucket_mib = o->distributed.bucket_mib;
    }
}

tp_status tp_simulation_make(const tp_train_options *o, const tp_model *model,
                             const tp_machine *machine, const tp_simulation_options *how,
                             tp_simulation *ret, tp_error *err)
{
    enum { MOST = 40 * TP_STRATEGIES };
    tp_simulation s = {.points = tp_new(MOST, sizeof *s.points)};
    tp_run_plan alone;
    tp_train_options one = *o;
    one.ranks = (tp_ranks){0};
    stage all = {.most = TP_MIN(tp_cpu_count(), MOST_AT_ONCE), .n_points = count_points(&one, how)};
    tp_status status = tp_run_plan_compute(&one, model, false, machine, &alone, err);
    if (status == TP_OK) {
        s.alone_s = all.alone_s = alone.step_s;
        s.micro_batches = alone.micro_batches / alone.updates;
        add_alone(&one, &s);
    }
    for (int n = how->factor; status == TP_OK && n / how->factor < how->ranks; n *= how->factor)
        if (TP_MIN(n, how->ranks) >= how->from)
            status =
                simulate_ranks(&one, model, machine, how, TP_MIN(n, how->ranks), &all, &s, err);
    while (all.n) {
        tp_status ended = finish(&all, how, status == TP_OK ? err : NULL);
        status = status == TP_OK ? ended : status;
    }
    if (status != TP_OK)
        tp_simulation_release(&s);
    *ret = s;
    return status;
}

void tp_simulation_release(tp_simulation *s)
{
    free(s->points);
    *s = (tp_simulation){0};
}
