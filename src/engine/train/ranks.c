/* ranks.c - a run of several processes: who they are, what they agree on before the first step, and
 * how the figures of their shares become those of the step.
 *
 * Every rank goes through the same steps in the same order.  Rank 0 has the run's folder, log and
 * display; the others have a folder that goes away with them. */
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "base/cpu.h"
#include "base/files.h"
#include "base/log.h"
#include "base/platform.h"
#include "engine/passes/pass.h"
#include "engine/train/plan_ranks.h"
#include "engine/train/trainer_internal.h"

const char *tp_strategy_name(int strategy)
{
    static const char *const names[TP_STRATEGIES] = {"ddp", "shard_optimizer", "shard_gradients",
                                                     "full_shard", "hybrid"};
    return names[strategy];
}

int tp_trainer_ranks(const trainer *t) { return tp_comm_size(t->comm); }
uint32_t tp_trainer_shares(const trainer *t) { return (uint32_t)TP_MAX(t->o->ranks.ranks, 1); }
uint32_t tp_trainer_share(const trainer *t) { return (uint32_t)t->o->ranks.rank; }
bool tp_trainer_reads_together(const trainer *t)
{
    return tp_trainer_ranks(t) > 1 &&
           (t->o->distributed.strategy >= TP_STRATEGY_FULL_SHARD || t->o->ranks.tensor.count > 1);
}

/* Of those that share the layers, which have the same figures, the first tells them. */
bool tp_trainer_tells(const trainer *t) { return t->o->ranks.tensor.index == 0; }
bool tp_trainer_is_first(const trainer *t) { return tp_comm_rank(t->comm) == 0; }

/* ---- joining ---- */

static tp_status check_compression(const tp_train_options *o, tp_error *err)
{
    const char *format = tp_wire_name((tp_wire_kind)o->distributed.compress);
    if (o->distributed.compress == TP_WIRE_PLAIN)
        return TP_OK;
    if (o->policy.precision == TP_PRECISION_FLOAT16 && o->distributed.error_feedback)
        return tp_fail(err, TP_ERR_CONFIG,
                       "distributed.compress=%s: what is kept of a gradient would be of another "
                       "loss scale the next time: take policy.precision=bfloat16, or "
                       "distributed.error_feedback=false",
                       format);
    return TP_OK;
}

/* What one rank would do without the others. */
static tp_status check_alone(const tp_train_options *o, tp_error *err)
{
    const struct {
        const char *key;
        bool is_set;
    } alone[] = {{"policy.clip_grad_value", isfinite(o->policy.clip_grad_value)},
                 {"policy.adaptive_clip_factor", isfinite(o->policy.adaptive_clip_factor)},
                 {"train.nonfinite_policy=restore", o->train.nonfinite_policy == TP_BAD_RESTORE},
                 {"train.spike_policy=restore", o->train.spike_policy == TP_BAD_RESTORE + 1}};
    for (size_t i = 0; i < TP_COUNTOF(alone); i++)
        if (alone[i].is_set)
            return tp_fail(err, TP_ERR_UNSUPPORTED, "%s is not supported with several processes",
                           alone[i].key);
    return TP_OK;
}

tp_status tp_ranks_check(const tp_train_options *o, tp_error *err)
{
    const tp_optimizer *optimizer = o->policy.optimizer.kind;
    if (!o->algorithm->runs_on_ranks)
        return tp_fail(err, TP_ERR_CONFIG,
                       "%s runs in one process: start it without mpirun or srun",
                       o->algorithm->title);
    if (o->distributed.strategy != TP_STRATEGY_DDP && optimizer->looks_at_whole)
        return tp_fail(err, TP_ERR_CONFIG,
                       "distributed.strategy=%s divides weights by elements, %s looks at whole "
                       "ones: take distributed.strategy=ddp, or another policy.optimizer.name",
                       tp_strategy_name(o->distributed.strategy), optimizer->name);
    TP_TRY(check_alone(o, err));
    TP_TRY(check_compression(o, err));
    if (tp_ranks_lack_pass(o, "shard"))
        return tp_fail(err, TP_ERR_CONFIG,
                       "engine.disable_passes: without shard every process would train a model of "
                       "its own");
    if (tp_ranks_lack_pass(o, "shard-update"))
        return tp_fail(err, TP_ERR_CONFIG,
                       "engine.disable_passes: without shard-update gradients would count once for "
                       "every process");
    return TP_OK;
}

static int ranks_of_first_host(const tp_comm *comm)
{
    int n = 0;
    while (n < tp_comm_size(comm) && strcmp(tp_comm_host(comm, n), tp_comm_host(comm, 0)) == 0)
        n++;
    return n;
}

/* Ranks that follow one another are a node: those of a host, unless somebody says how many. */
tp_status tp_ranks_find_nodes(tp_train_options *o, tp_error *err)
{
    tp_ranks *r = &o->ranks;
    int64_t asked = o->distributed.ranks_per_node;
    r->node = 0;
    if (o->distributed.strategy != TP_STRATEGY_HYBRID || r->ranks < 2)
        return TP_OK;
    int all = tp_ranks_processes(r), sharers = TP_MAX(r->tensor.count, 1);
    bool is_known = asked != TP_OPT_UNSET_INT;
    int64_t node = is_known     ? asked
                   : r->comm    ? ranks_of_first_host(r->comm)
                   : r->on_host ? r->on_host
                                : all;
    bool is_even = node > sharers && node % sharers == 0 && node < all && all % node == 0;
    for (int i = 0; is_even && !is_known && i < all; i++)
        is_even =
            strcmp(tp_comm_host(r->comm, i), tp_comm_host(r->comm, i / (int)node * (int)node)) == 0;
    char shared[64] = "";
    if (sharers > 1)
        snprintf(shared, sizeof shared, ", of which %d share the layers,", sharers);
    if (!is_even)
        return tp_fail(
            err, TP_ERR_CONFIG,
            "distributed.strategy=hybrid: %d processes%s are not several nodes of the same "
            "number of them%s; set distributed.ranks_per_node, or take "
            "distributed.strategy=full_shard",
            all, shared, is_known ? "" : " on hosts of their own");
    r->node = (int)node / sharers;
    return TP_OK;
}

tp_status tp_ranks_arrange(tp_train_options *o, tp_error *err)
{
    if (o->ranks.ranks > 1)
        TP_TRY(tp_ranks_check(o, err));
    TP_TRY(tp_ranks_divide(o, err));
    return tp_ranks_find_nodes(o, err);
}

/* What the host with the least allows a process is the limit of all, so that all choose alike. */
static tp_status agree_on_memory(const trainer *t, tp_train_options *own, tp_error *err)
{
    double least = -tp_memory_allowed(own).bytes;
    TP_TRY(tp_comm_max(t->comm, &least, 1, err));
    own->least_memory = -least;
    return TP_OK;
}

static void say(void *user, const char *text)
{
    const trainer *t = user;
    if (tp_trainer_is_first(t))
        tp_trainer_notice(t, "%s", text);
    else
        tp_log(TP_LOG_WARNING, "train", "%s", text);
}

static int n_hosts(const tp_comm *comm)
{
    int n = 0;
    for (int i = 0; i < tp_comm_size(comm); i++) {
        bool is_new = true;
        for (int k = 0; k < i && is_new; k++)
            is_new = strcmp(tp_comm_host(comm, i), tp_comm_host(comm, k)) != 0;
        n += is_new;
    }
    return n;
}

/* Its caller knew of one process. */
static void find_ceilings(trainer *t, const tp_train_options *own, tp_train_hooks *hooks)
{
    bool found;
    if (!own->threads_here)
        return;
    if (tp_trainer_machine(own, &t->machine, &found, NULL) != TP_OK)
        found = false;
    hooks->machine = found ? &t->machine : NULL;
}

tp_status tp_ranks_open(trainer *t, tp_train_options *own, tp_train_hooks *hooks, tp_error *err)
{
    if (!tp_comm_is_launched())
        return tp_ranks_divide(own, err);
    TP_TRY(tp_comm_open(&t->comm, err));
    own->ranks = (tp_ranks){.comm = t->comm,
                            .rank = tp_comm_rank(t->comm),
                            .ranks = tp_comm_size(t->comm),
                            .on_host = tp_comm_local_size(t->comm)};
    if (own->engine.threads == TP_OPT_UNSET_INT)
        own->threads_here = tp_comm_processors(t->comm);
    find_ceilings(t, own, hooks);
    if (!tp_trainer_is_first(t)) {
        hooks->observe = NULL;
        hooks->dump = NULL;
        hooks->listen = NULL;
        hooks->stop_listening = NULL;
        hooks->request = NULL;
    }
    tp_comm_on_notice(t->comm, say, t);
    TP_TRY(tp_comm_agree(t->comm, tp_ranks_arrange(own, err), err));
    TP_TRY(agree_on_memory(t, own, err));
    int hosts = n_hosts(t->comm), threads = tp_trainer_threads(own);
    char shared[64] = "";
    if (own->ranks.tensor.count > 1)
        snprintf(shared, sizeof shared, ", layers%s shared by %d",
                 tp_ranks_share_rows(own) ? " and rows" : "", own->ranks.tensor.count);
    tp_trainer_notice(t, "%d ranks on %d host%s (%s), %d thread%s each; strategy %s%s",
                      tp_comm_size(t->comm), hosts, hosts == 1 ? "" : "s",
                      tp_comm_transport(t->comm), threads, threads == 1 ? "" : "s",
                      tp_strategy_name(own->distributed.strategy), shared);
    return TP_OK;
}

/* ---- before the first step ---- */

tp_status tp_ranks_open_stage(trainer *t, const tp_trainer_stage *stage, tp_error *err)
{
    /* Graphs and weights leave no files, and take their time on every rank. */
    bool at_once = stage->gives & (TP_HAS_SESSION | TP_HAS_WEIGHTS);
    if (tp_trainer_reads_together(t)) /* what reads weights is of all */
        at_once |= (stage->gives & TP_IS_READY) != 0;
    bool is_first = tp_comm_local_rank(t->comm) == 0;
    if (!t->comm)
        return stage->open(t, err);
    tp_status status = at_once || is_first ? stage->open(t, err) : TP_OK;
    TP_TRY(tp_comm_agree(t->comm, status, err));
    if (!at_once)
        TP_TRY(tp_comm_agree(t->comm, is_first ? TP_OK : stage->open(t, err), err));
    if (stage->gives & TP_HAS_FOLDER) { /* whose run this is, rank 0 knows */
        char id[TP_RUN_ID];
        snprintf(id, sizeof id, "%s", tp_run_id(t->run));
        TP_TRY(tp_comm_broadcast(t->comm, id, sizeof id, 0, err));
        tp_run_adopt(t->run, id);
        tp_attempt_identify(t);
    }
    return TP_OK;
}

static void hash_config(const trainer *t, tp_comm_fact *fact)
{
    TP_OWN(tp_buf) text = {0};
    tp_config_write(t->config, &text);
    tp_hash_bytes(tp_buf_str(&text), text.len, fact->hash);
}

static void hash_model(const trainer *t, tp_comm_fact *fact)
{
    TP_OWN(tp_buf) text = {0};
    tp_buf_adds(&text, t->state.model_fingerprint);
    tp_model_describe(t->model, &text);
    tp_hash_bytes(tp_buf_str(&text), text.len, fact->hash);
}

static tp_status hash_weights(const trainer *t, tp_comm_fact *fact, tp_error *err)
{
    enum { CHUNK = 1 << 20 };
    tp_status status = TP_OK;
    const tp_states *states = tp_session_states(t->session);
    XXH3_state_t *hash = XXH3_createState();
    TP_FREED char *chunk = malloc(CHUNK);
    TP_ASSERT(hash && chunk && XXH3_128bits_reset(hash) == XXH_OK);
    (void)XXH3_128bits_update(hash, t->weights_fingerprint, sizeof t->weights_fingerprint);
    for (size_t i = 0; i < states->n; i++) {
        const tp_tensor *s = &states->items[i];
        bool is_weight = s->role == TP_ROLE_WEIGHT || s->role == TP_ROLE_ADAPTER;
        /* Of what is kept in parts every rank has another one. */
        if (!is_weight || s->within || s->keeps_part || tp_is_sliced(s))
            continue;
        for (size_t at = 0; at < s->bytes && status == TP_OK; at += CHUNK) {
            size_t n = TP_MIN(s->bytes - at, (size_t)CHUNK);
            status = tp_tensor_read(s, at, chunk, n, err);
            (void)XXH3_128bits_update(hash, chunk, n);
        }
    }
    tp_hash_digest(hash, fact->hash);
    XXH3_freeState(hash);
    return status;
}

/* What the ranks will say to each other, in which order, what of it goes together; and how much,
 * which is the same for those that have the same part of the layers. */
static void hash_schedule(const trainer *t, bool how_much, tp_comm_fact *fact)
{
    TP_OWN(tp_buf) text = {0};
    tp_buf_addf(&text, "%lld to %lld, seed %llu\n", (long long)t->state.step,
                (long long)t->max_steps, (unsigned long long)t->state.seed);
    for (int g = 0; g < tp_program_count(t->graphs.program); g++) {
        const tp_exec *e = tp_program_exec(t->graphs.program, g);
        for (size_t i = 0; i < tp_exec_launch_count(e); i++) {
            const tp_launch_info *l = tp_exec_launch(e, i);
            if (tp_ops[l->op]->traits & TP_OP_COMMUNICATES)
                tp_buf_addf(&text, "%d %s %s %d %.0f\n", g, tp_ops[l->op]->name, l->label,
                            tp_traffic_bucket(tp_exec_traffic(e), i), how_much ? l->bytes : 0);
        }
    }
    tp_hash_bytes(tp_buf_str(&text), text.len, fact->hash);
    fact->every = how_much ? t->o->ranks.tensor.count : 0;
}

tp_status tp_ranks_compare(trainer *t, tp_error *err)
{
    if (!t->comm)
        return TP_OK;
    enum { PROGRAM, ISA, CONFIG, MODEL, WEIGHTS, DATA, SCHEDULE, SIZES, N };
    tp_comm_fact facts[N] = {[PROGRAM] = {.what = "program"},
                             [ISA] = {.what = "instruction set (engine.isa)"},
                             [CONFIG] = {.what = "configuration"},
                             [MODEL] = {.what = "model"},
                             [WEIGHTS] = {.what = "weights"},
                             [DATA] = {.what = "training data"},
                             [SCHEDULE] = {.what = "schedule of communication"},
                             [SIZES] = {.what = "sizes of what is communicated"}};
    const tp_train_state *s = &t->state;
    const char *isa = tp_isa_name(tp_cpu_isa());
    tp_hash_bytes(isa, strlen(isa), facts[ISA].hash);
    hash_config(t, &facts[CONFIG]);
    hash_model(t, &facts[MODEL]);
    memcpy(facts[DATA].hash, s->data_fingerprint, sizeof facts[DATA].hash);
    hash_schedule(t, false, &facts[SCHEDULE]);
    hash_schedule(t, true, &facts[SIZES]);
    tp_status status = tp_file_hash("/proc/self/exe", facts[PROGRAM].hash, err);
    if (status == TP_OK)
        status = hash_weights(t, &facts[WEIGHTS], err);
    TP_TRY(tp_comm_agree(t->comm, status, err));
    TP_TRY(tp_comm_compare(t->comm, facts, N, err));
    if (t->o->checkpointing.enabled && !t->has_nothing_to_do)
        TP_TRY(tp_checkpoint_meet(t->checkpoint_dir, s->run_id, t->session, &t->first_writes_all,
                                  err));
    tp_comm_set_step(t->comm, s->step);
    return TP_OK;
}

/* ---- in a step ---- */

tp_status tp_ranks_agree_to_stop(trainer *t, bool *reason, tp_error *err)
{
    if (!t->comm)
        return TP_OK;
    bool is_asked = t->hooks->should_stop && t->hooks->should_stop(t->hooks->user);
    double any[2] = {is_asked, *reason};
    TP_TRY(tp_comm_max(t->comm, any, 2, err));
    t->stops = any[0] > 0;
    *reason = any[1] > 0;
    return TP_OK;
}

tp_status tp_ranks_join_text(trainer *t, char *where, size_t size, tp_error *err)
{
    int n = tp_trainer_ranks(t);
    if (n == 1)
        return TP_OK;
    TP_FREED char *all = tp_new((size_t)n, size);
    TP_TRY(tp_comm_gather(t->comm, where, size, all, err));
    for (int i = 0; i < n; i++)
        if (all[(size_t)i * size]) {
            snprintf(where, size, "rank %d: %s", i, all + (size_t)i * size);
            break;
        }
    return TP_OK;
}

tp_status tp_trainer_join(trainer *t, step_result *r, tp_error *err)
{
    if (!t->comm)
        return TP_OK;
    tp_comm_stats own = tp_comm_get_stats(t->comm);
    tp_wire_stats wire =
        tp_traffic_wire_stats(tp_exec_traffic(tp_session_exec(t->session, "train")));
    double n = tp_trainer_ranks(t), once = tp_trainer_tells(t);
    double v[] = {tp_trainer_tells(t) ? r->loss : 0, /* may be NaN */
                  once * r->flops,
                  once * (double)r->trained,
                  once * (double)r->used,
                  once * (double)r->padded,
                  once * (double)r->sequences,
                  once * r->n_micro,
                  (double)own.bytes_sent,
                  (double)own.messages,
                  own.exposed_s,
                  own.hidden_s,
                  (double)own.encoded_bytes,
                  wire.plain_bytes,
                  wire.square,
                  wire.lost};
    TP_TRY(tp_comm_sum(t->comm, v, TP_COUNTOF(v), err));
    r->loss = v[0];
    r->flops = v[1];
    r->trained = (int64_t)v[2];
    r->used = (int64_t)v[3];
    r->padded = (int64_t)v[4];
    r->sequences = (int64_t)v[5];
    r->n_micro = (uint32_t)v[6];
    t->traffic = (tp_comm_stats){.bytes_sent = (uint64_t)v[7],
                                 .messages = (uint64_t)v[8],
                                 .encoded_bytes = (uint64_t)v[11],
                                 .exposed_s = v[9] / n,
                                 .hidden_s = v[10] / n};
    r->wire_error = sqrt((v[14] - t->wire.lost) / (v[13] - t->wire.square)); /* 0/0: NaN */
    t->wire = (tp_wire_stats){v[12], v[13], v[14]};
    return TP_OK;
}

/* ---- afterwards ---- */

static void put_compression(const trainer *t, tp_json_w *w)
{
    const tp_train_options *o = t->o;
    if (o->distributed.compress == TP_WIRE_PLAIN) {
        tp_json_w_put_str(w, "compression", NULL);
        return;
    }
    tp_json_w_put_begin(w, "compression", '{');
    tp_json_w_put_str(w, "format", tp_wire_name((tp_wire_kind)o->distributed.compress));
    tp_json_w_put_bool(w, "error_feedback", o->distributed.error_feedback);
    tp_json_w_put_i64(w, "bytes_sent", (int64_t)t->traffic.encoded_bytes);
    tp_json_w_put_i64(w, "uncompressed_bytes", (int64_t)t->wire.plain_bytes);
    tp_json_w_put_known(w, "error", sqrt(t->wire.lost / t->wire.square));
    tp_json_w_end(w, '}');
}

void tp_ranks_put(const trainer *t, tp_json_w *w)
{
    if (!t->comm)
        return;
    tp_json_w_put_begin(w, "distributed", '{');
    tp_json_w_put_i64(w, "ranks", tp_trainer_ranks(t));
    tp_json_w_put_str(w, "strategy", tp_strategy_name(t->o->distributed.strategy));
    tp_json_w_put_i64(w, "tensor_parallel_size", TP_MAX(t->o->ranks.tensor.count, 1));
    tp_json_w_put_bool(w, "sequence_parallel", tp_ranks_share_rows(t->o));
    tp_json_w_put_str(w, "transport", tp_comm_transport(t->comm));
    tp_json_w_put_begin(w, "hosts", '[');
    for (int i = 0; i < tp_trainer_ranks(t); i++)
        tp_json_w_str(w, tp_comm_host(t->comm, i));
    tp_json_w_end(w, ']');
    tp_json_w_put_i64(w, "bytes_sent", (int64_t)t->traffic.bytes_sent);
    tp_json_w_put_i64(w, "messages", (int64_t)t->traffic.messages);
    tp_json_w_put_known(w, "exposed_s", t->traffic.exposed_s);
    tp_json_w_put_known(w, "hidden_s", t->traffic.hidden_s);
    put_compression(t, w);
    tp_json_w_end(w, '}');
}
