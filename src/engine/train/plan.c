/* plan.c - bytes and seconds of a run's graphs, and what to do when they are too many. */
#include "engine/train/plan.h"

#include <math.h>

#include "base/limits.h"
#include "base/platform.h"
#include "engine/train/algorithm.h"

/* ---- bytes ---- */

static size_t sum_of(const size_t bytes[TP_MEM_KINDS])
{
    size_t sum = 0;
    for (int k = 0; k < TP_MEM_KINDS; k++)
        sum += bytes[k];
    return sum;
}

static size_t loader_bytes(const tp_train_options *o) { return tp_trainer_needs(o).loader_bytes; }

static uint32_t bit_of(const tp_program *program, const char *graph)
{
    int i = tp_program_find(program, graph);
    return i < 0 ? 0 : 1u << i;
}

/* What the whole set takes less without these graphs. */
static size_t share_of(const tp_program *program, uint32_t graphs)
{
    size_t all[TP_MEM_KINDS], others[TP_MEM_KINDS];
    tp_program_used_bytes(program, UINT32_MAX, all);
    tp_program_used_bytes(program, ~graphs, others);
    return sum_of(all) - sum_of(others);
}

const char *tp_plan_phase_name(tp_plan_phase phase)
{
    static const char *const names[TP_PLAN_PHASES] = {
        "load", "train", "evaluate", "generate", "reference", "update", "checkpoint"};
    return names[phase];
}

size_t tp_plan_phase_bytes(const tp_run_plan *p, tp_plan_phase phase)
{
    return sum_of(p->phases[phase]);
}

static void plan_phases(const tp_run_graphs *g, const tp_train_options *o, tp_run_plan *p)
{
    const tp_program *program = g->program;
    size_t own[TP_MEM_KINDS]; /* without the reference, which is loaded and not saved */
    const uint32_t graphs[TP_PLAN_PHASES] = {[TP_PLAN_TRAIN] = bit_of(program, "train"),
                                             [TP_PLAN_EVALUATE] = bit_of(program, "eval"),
                                             [TP_PLAN_GENERATE] = bit_of(program, "generate"),
                                             [TP_PLAN_REFERENCE] = bit_of(program, "reference"),
                                             [TP_PLAN_UPDATE] = bit_of(program, "norm") |
                                                                bit_of(program, "clip") |
                                                                bit_of(program, "update")};
    for (int i = 0; i < TP_PLAN_PHASES; i++)
        if (graphs[i])
            tp_program_used_bytes(program, graphs[i], p->phases[i]);
    for (int i = 0; i < TP_PLAN_PHASES; i++) /* batches come from the loaders */
        if (i == TP_PLAN_TRAIN || i == TP_PLAN_EVALUATE || (i == TP_PLAN_REFERENCE && graphs[i]))
            p->phases[i][TP_MEM_DATA] += loader_bytes(o);
    tp_states_bytes(tp_session_states(g->session), own);
    static const tp_mem_kind loaded[] = {TP_MEM_WEIGHTS, TP_MEM_SHADOW, TP_MEM_CONSTANTS};
    static const tp_mem_kind saved[] = {TP_MEM_WEIGHTS, TP_MEM_OPTIMIZER};
    for (size_t i = 0; i < TP_COUNTOF(loaded); i++)
        p->phases[TP_PLAN_LOAD][loaded[i]] = p->bytes[loaded[i]];
    for (size_t i = 0; i < TP_COUNTOF(saved); i++)
        p->phases[TP_PLAN_CHECKPOINT][saved[i]] = own[saved[i]];
}

static void plan_bytes(const tp_train_options *o, const tp_run_graphs *g, tp_run_plan *p)
{
    tp_session_get_plan(g->session, &p->session);
    tp_program_bytes(g->program, p->bytes);
    p->bytes[TP_MEM_DATA] += loader_bytes(o);
    p->peak_bytes = sum_of(p->bytes);
    p->generator_bytes = share_of(g->program, bit_of(g->program, "generate"));
    p->reference_bytes = share_of(g->program, bit_of(g->program, "reference"));
    plan_phases(g, o, p);
}

/* ---- work and time ---- */

typedef struct {
    double flops, bytes, s;
} work;

double tp_launch_seconds(const tp_machine *m, tp_dtype dtype, const tp_launch_info *l)
{
    bool contracts = (tp_ops[l->op]->traits & TP_OP_CONTRACTS) != 0;
    return m ? tp_machine_seconds(m, dtype, contracts ? l->flops : 0, l->bytes) : NAN;
}

/* Of a run with that share of the rows. */
static work work_of(const tp_exec *exec, const tp_machine *m, tp_dtype dtype, double share)
{
    work w = {.s = m ? 0 : NAN};
    for (size_t i = 0; i < tp_exec_launch_count(exec); i++) {
        tp_launch_info l = *tp_exec_launch(exec, i);
        tp_cost cost = tp_launch_cost(&l, share);
        l.flops = cost.flops;
        l.bytes = cost.bytes;
        w.flops += tp_ops[l.op]->traits & TP_OP_CONTRACTS ? l.flops : 0;
        w.bytes += l.bytes;
        w.s += tp_launch_seconds(m, dtype, &l);
    }
    return w;
}

static void add_work(tp_run_plan *p, work w, double times, double *ret_s)
{
    p->flops += times * w.flops;
    p->moved_bytes += times * w.bytes;
    *ret_s += times * w.s;
}

/* Micro-batches that `n` full sequences (pairs of a DPO batch) make. */
static double micro_batches(const tp_train_options *o, int64_t n)
{
    int64_t room = tp_trainer_is_packed(o) ? tp_trainer_token_budget(o) / tp_trainer_unit_tokens(o)
                                           : o->policy.train_micro_batch_size;
    return ceil((double)n / (double)TP_MAX(room, 1));
}

/* Of the places of those micro-batches, the share that full sequences take. */
static double share_filled(const tp_train_options *o, int64_t n)
{
    double each = (double)tp_trainer_unit_tokens(o);
    double places = micro_batches(o, n) * (double)tp_trainer_token_budget(o);
    return o->engine.padding_free ? fmin((double)n * each / places, 1) : 1;
}

/* Rows of a step of generation: answers in flight, as many as the cache holds. */
static int64_t rows_in_flight(const tp_train_options *o, const tp_model *model,
                              const tp_run_graphs *g, int64_t answers)
{
    tp_engine_options e = tp_trainer_engine_options(o, NULL);
    double block = (double)tp_model_cache_block_bytes(model, TP_ENGINE_BLOCK_TOKENS, e.cache_dtype);
    double each = block * ceil((double)e.max_length / TP_ENGINE_BLOCK_TOKENS);
    double room = floor((double)tp_engine_get_stats(g->engine).cache_bytes / each);
    return TP_MAX(TP_MIN(TP_MIN(answers, e.max_running), (int64_t)room), 1);
}

/* One token of each answer in flight at a time; before that the prompts, in full steps. */
static tp_status add_generation(const tp_train_options *o, const tp_model *model,
                                const tp_run_graphs *g, const tp_machine *m, tp_run_plan *p,
                                tp_error *err)
{
    tp_engine *decode;
    tp_states states;
    tp_engine_options options = tp_trainer_engine_options(o, g->device);
    tp_dtype dtype = options.compute_dtype;
    tp_algorithm_needs needs = tp_trainer_needs(o);
    int64_t answers = needs.sequences;
    int64_t rows = rows_in_flight(o, model, g, answers), length = o->generation.max_new_tokens;
    length = TP_MIN(length, o->policy.max_total_sequence_length - 1);
    options.max_running = options.step_tokens = rows;
    options.drafting = (tp_drafting){0}; /* how often drafts are right no plan can tell */
    TP_TRY(tp_states_init(&states, err));
    tp_status status = tp_engine_create(model, &options, &states, &decode, err);
    if (status == TP_OK) {
        double prompts = (double)(o->policy.max_total_sequence_length - length);
        work prefill = work_of(tp_engine_exec(g->engine), m, dtype, 1);
        double filling = ceil(prompts * (double)needs.prompts / TP_ENGINE_STEP_TOKENS);
        double decoding = ceil((double)answers / (double)rows) * (double)length;
        add_work(p, prefill, filling, &p->generation_s);
        add_work(p, work_of(tp_engine_exec(decode), m, dtype, 1), decoding, &p->generation_s);
        p->generation_steps = filling + decoding;
        tp_engine_free(decode);
    }
    tp_states_release(&states);
    return status;
}

static tp_status plan_step(const tp_train_options *o, const tp_model *model, const tp_run_graphs *g,
                           const tp_machine *m, tp_run_plan *p, tp_error *err)
{
    tp_dtype dtype = tp_session_get_options(g->session)->compile.passes.compute_dtype;
    tp_algorithm_needs needs = tp_trainer_needs(o);
    int64_t batch = o->policy.train_global_batch_size, n = needs.sequences;
    p->updates = ceil((double)n / (double)batch);
    p->micro_batches = p->updates * ceil(micro_batches(o, batch) / TP_MAX(o->ranks.ranks, 1));
    double share = share_filled(o, batch);
    work train = work_of(tp_session_exec(g->session, "train"), m, dtype, share);
    work eval = work_of(tp_session_exec(g->session, "eval"), m, dtype, share);
    p->micro_s = work_of(tp_session_exec(g->session, "train"), m, dtype, 1).s;
    add_work(p, train, p->micro_batches, &p->training_s);
    double update = p->session.update_bytes;
    add_work(p, (work){.bytes = update, .s = m ? update / m->update_bytes : NAN}, p->updates,
             &p->update_s);
    if (needs.scores_policy > 0)
        add_work(p, eval, p->micro_batches * needs.scores_policy, &p->logprob_s);
    if (needs.reference)
        add_work(p, eval, p->micro_batches, &p->reference_s);
    if (g->engine)
        TP_TRY(add_generation(o, model, g, m, p, err));
    p->step_s = p->training_s + p->update_s + p->logprob_s + p->reference_s + p->generation_s;
    return TP_OK;
}

/* ---- the plan ---- */

/* Processes on one host share its memory; engine.memory_limit is of each. */
tp_memory_allowance tp_memory_allowed(const tp_train_options *o)
{
    tp_limits limits;
    tp_limits_memory(&limits);
    const tp_limit *least = tp_limits_least(&limits);
    int sharers = TP_MAX(o->ranks.on_host, 1);
    double fraction = o->engine.memory_fraction, of = least->value / sharers;
    tp_memory_allowance a = {.bytes = floor(fraction * of), .fraction = fraction, .of = of};
    snprintf(a.source, sizeof a.source, "%s", least->source);
    if (sharers > 1)
        snprintf(a.source, sizeof a.source, "a process's share of %s, of %d", least->source,
                 sharers);
    if (o->engine.memory_limit_bytes < a.bytes) {
        a = (tp_memory_allowance){.bytes = floor(o->engine.memory_limit_bytes)};
        snprintf(a.source, sizeof a.source, "engine.memory_limit");
    }
    if (o->least_memory > 0 && o->least_memory < a.bytes) {
        a = (tp_memory_allowance){.bytes = o->least_memory};
        snprintf(a.source, sizeof a.source, "the rank that has the least memory");
    }
    return a;
}

tp_status tp_run_plan_make(const tp_train_options *o, const tp_model *model,
                           const tp_run_graphs *graphs, const tp_machine *machine, tp_run_plan *ret,
                           tp_error *err)
{
    tp_run_plan p = {.parameters = tp_model_param_count(model),
                     .micro_tokens = tp_trainer_token_budget(o),
                     .allowance = tp_memory_allowed(o)};
    plan_bytes(o, graphs, &p);
    TP_TRY(plan_step(o, model, graphs, machine, &p, err));
    p.fits = (double)p.peak_bytes <= p.allowance.bytes;
    *ret = p;
    return TP_OK;
}

tp_status tp_run_plan_compute(const tp_train_options *o, const tp_model *model, bool resumes,
                              const tp_machine *machine, tp_run_plan *ret, tp_error *err)
{
    TP_OWN(tp_run_graphs) graphs = {0};
    tp_run_graphs_options more = {.resumes = resumes};
    TP_TRY(tp_run_graphs_create(o, model, &more, &graphs, err));
    return tp_run_plan_make(o, model, &graphs, machine, ret, err);
}
