/* plan.c - bytes and seconds of a run's graphs, and what to do when they are too many. */
#include "engine/train/plan.h"

#include <math.h>
#include <string.h>

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

static double seconds_of(const tp_exec *exec, const tp_machine *m, tp_dtype dtype)
{
    double s = 0;
    for (size_t i = 0; m && i < tp_exec_launch_count(exec); i++) {
        const tp_launch_info *l = tp_exec_launch(exec, i);
        bool contracts = (tp_ops[l->op]->traits & TP_OP_CONTRACTS) != 0;
        s += tp_machine_seconds(m, dtype, contracts ? l->flops : 0, l->bytes);
    }
    return m ? s : NAN;
}

static work work_of(const tp_exec *exec, const tp_machine *m, tp_dtype dtype)
{
    return (work){tp_exec_flops(exec, true), tp_exec_bytes(exec), seconds_of(exec, m, dtype)};
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
    int64_t each = o->policy.max_total_sequence_length * o->algorithm->sequences_per_unit;
    int64_t room = tp_trainer_is_packed(o) ? tp_trainer_token_budget(o) / each
                                           : o->policy.train_micro_batch_size;
    return ceil((double)n / (double)TP_MAX(room, 1));
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
    TP_TRY(tp_states_init(&states, err));
    tp_status status = tp_engine_create(model, &options, &states, &decode, err);
    if (status == TP_OK) {
        double prompts = (double)(o->policy.max_total_sequence_length - length);
        work prefill = work_of(tp_engine_exec(g->engine), m, dtype);
        add_work(p, prefill, ceil(prompts * (double)needs.prompts / TP_ENGINE_STEP_TOKENS),
                 &p->generation_s);
        add_work(p, work_of(tp_engine_exec(decode), m, dtype),
                 ceil((double)answers / (double)rows) * (double)length, &p->generation_s);
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
    p->micro_batches = p->updates * micro_batches(o, batch);
    work train = work_of(tp_session_exec(g->session, "train"), m, dtype);
    work eval = work_of(tp_session_exec(g->session, "eval"), m, dtype);
    p->micro_s = train.s;
    add_work(p, train, p->micro_batches, &p->training_s);
    double update = p->session.update_bytes;
    add_work(p, (work){.bytes = update, .s = m ? update / m->update_bytes : NAN}, p->updates,
             &p->update_s);
    if (needs.scores_policy)
        add_work(p, eval, p->micro_batches, &p->logprob_s);
    if (needs.reference)
        add_work(p, eval, p->micro_batches, &p->reference_s);
    if (g->engine)
        TP_TRY(add_generation(o, model, g, m, p, err));
    p->step_s = p->training_s + p->update_s + p->logprob_s + p->reference_s + p->generation_s;
    return TP_OK;
}

/* ---- the plan ---- */

static tp_memory_allowance memory_allowed(const tp_train_options *o)
{
    tp_limits limits;
    tp_limits_memory(&limits);
    const tp_limit *least = tp_limits_least(&limits);
    double fraction = o->engine.memory_fraction;
    tp_memory_allowance a = {
        .bytes = floor(fraction * least->value), .fraction = fraction, .of = least->value};
    snprintf(a.source, sizeof a.source, "%s", least->source);
    return a;
}

tp_status tp_run_plan_make(const tp_train_options *o, const tp_model *model,
                           const tp_run_graphs *graphs, const tp_machine *machine, tp_run_plan *ret,
                           tp_error *err)
{
    tp_run_plan p = {.parameters = tp_model_param_count(model),
                     .micro_tokens = tp_trainer_token_budget(o),
                     .allowance = memory_allowed(o)};
    plan_bytes(o, graphs, &p);
    TP_TRY(plan_step(o, model, graphs, machine, &p, err));
    p.fits = (double)p.peak_bytes <= p.allowance.bytes;
    *ret = p;
    return TP_OK;
}

tp_status tp_run_plan_compute(const tp_train_options *o, const tp_model *model, bool resumes,
                              const tp_machine *machine, tp_run_plan *ret, tp_error *err)
{
    tp_run_graphs graphs;
    tp_run_graphs_options more = {.resumes = resumes};
    TP_TRY(tp_run_graphs_create(o, model, &more, &graphs, err));
    tp_status status = tp_run_plan_make(o, model, &graphs, machine, ret, err);
    tp_run_graphs_release(&graphs);
    return status;
}

/* ---- when it does not fit ---- */

typedef struct {
    const tp_train_options *asked;
    const tp_model *model;
    bool resumes;
    size_t limit, before;
} search;

/* Bytes with other options; SIZE_MAX where there is no such plan. */
static size_t bytes_with(const search *s, const tp_train_options *o)
{
    tp_run_plan plan;
    return tp_run_plan_compute(o, s->model, s->resumes, NULL, &plan, NULL) == TP_OK
               ? plan.peak_bytes
               : SIZE_MAX;
}

/* Halve a number down to `least` as long as it does not fit, to a divisor of `whole` if that is
 * not 0; false when it is there already. */
static bool halve(const search *s, tp_train_options *o, int64_t *v, int64_t least, int64_t whole)
{
    if (*v <= least)
        return false;
    do {
        *v = TP_MAX(*v / 2, least);
        while (whole && whole % *v != 0)
            --*v;
    } while (*v > least && bytes_with(s, o) > s->limit);
    return true;
}

static bool with_recompute(const search *s, tp_train_options *o, char text[96])
{
    (void)s;
    snprintf(text, 96, "policy.recompute=full");
    bool is_new = o->policy.recompute != TP_RECOMPUTE_FULL;
    o->policy.recompute = TP_RECOMPUTE_FULL;
    return is_new;
}

static bool with_bf16(const search *s, tp_train_options *o, char text[96])
{
    (void)s;
    snprintf(text, 96, "policy.precision=bfloat16");
    bool is_new = o->policy.precision == TP_PRECISION_FLOAT32;
    o->policy.precision = TP_PRECISION_BFLOAT16;
    return is_new;
}

static bool with_smaller_batches(const search *s, tp_train_options *o, char text[96])
{
    bool packs = o->policy.packing.enabled, dynamic = o->policy.dynamic_batching.enabled;
    int64_t *tokens = packs     ? &o->policy.packing.train_mb_tokens
                      : dynamic ? &o->policy.dynamic_batching.train_mb_tokens
                                : &o->policy.train_micro_batch_size;
    int64_t pair = o->algorithm->sequences_per_unit;
    int64_t least = packs || dynamic ? pair * o->policy.max_total_sequence_length : 1;
    int64_t whole = packs || dynamic ? 0 : o->policy.train_global_batch_size;
    bool is_new = halve(s, o, tokens, least, whole);
    snprintf(text, 96, "policy.%s=%lld",
             packs     ? "sequence_packing.train_mb_tokens"
             : dynamic ? "dynamic_batching.train_mb_tokens"
                       : "train_micro_batch_size",
             (long long)*tokens);
    return is_new;
}

static bool with_smaller_cache(const search *s, tp_train_options *o, char text[96])
{
    if (!o->algorithm->generates)
        return false;
    tp_engine_options e = tp_trainer_engine_options(o, NULL);
    double token = (double)tp_model_cache_block_bytes(s->model, 1, e.cache_dtype);
    double one = token * (double)(e.max_length + TP_ENGINE_BLOCK_TOKENS) /
                 1048576.0; /* one answer, whole blocks */
    double now = isfinite(o->generation.cache_mib)
                     ? o->generation.cache_mib
                     : fmin(1024, one * (double)o->generation.max_running);
    int64_t mib = (int64_t)ceil(now), least = TP_MAX((int64_t)ceil(one), 1);
    if (mib <= least)
        return false;
    do {
        mib = TP_MAX(mib / 2, least);
        o->generation.cache_mib = (double)mib;
    } while (mib > least && bytes_with(s, o) > s->limit);
    snprintf(text, 96, "policy.generation.cache_mib=%lld", (long long)mib);
    return true;
}

static bool with_small_chunks(const search *s, tp_train_options *o, char text[96])
{
    (void)s;
    enum { ROWS = 64 };
    bool is_new = o->engine.loss_chunk == 0 || o->engine.loss_chunk > ROWS;
    o->engine.loss_chunk = ROWS;
    snprintf(text, 96, "engine.loss_chunk=%d", ROWS);
    return is_new;
}

typedef bool change_fn(const search *s, tp_train_options *o, char text[96]);
static change_fn *const changes[] = {with_recompute, with_smaller_batches, with_bf16,
                                     with_smaller_cache, with_small_chunks};
enum { N_CHANGES = sizeof changes / sizeof *changes };

typedef struct {
    tp_plan_lever lever;
    change_fn *change;
} candidate;

static int by_bytes(const void *a, const void *b)
{
    size_t x = ((const candidate *)a)->lever.peak_bytes;
    size_t y = ((const candidate *)b)->lever.peak_bytes;
    return x < y ? -1 : x > y;
}

static void apply_all(const search *s, const candidate *list, tp_plan_levers *levers)
{
    tp_train_options o = *s->asked;
    char text[96];
    for (int i = 0; i < levers->n; i++)
        (void)list[i].change(s, &o, text);
    levers->all.peak_bytes = bytes_with(s, &o);
    levers->all.fits = levers->all.peak_bytes <= s->limit;
}

void tp_run_plan_levers(const tp_train_options *o, const tp_model *model, bool resumes,
                        const tp_run_plan *plan, tp_plan_levers *ret)
{
    candidate list[N_CHANGES];
    int n = 0;
    search s = {o, model, resumes, (size_t)plan->allowance.bytes, plan->peak_bytes};
    for (int i = 0; i < N_CHANGES; i++) {
        tp_train_options changed = *o;
        candidate c = {.change = changes[i]};
        if (!changes[i](&s, &changed, c.lever.change))
            continue;
        c.lever.peak_bytes = bytes_with(&s, &changed);
        c.lever.fits = c.lever.peak_bytes <= s.limit;
        if (c.lever.peak_bytes < s.before)
            list[n++] = c;
    }
    qsort(list, (size_t)n, sizeof *list, by_bytes);
    *ret = (tp_plan_levers){.n = TP_MIN(n, TP_PLAN_LEVERS)};
    for (int i = 0; i < ret->n; i++)
        ret->v[i] = list[i].lever;
    apply_all(&s, list, ret);
}

static void add_lever(const tp_run_plan *plan, const char *change, const tp_plan_lever *l,
                      const char *separator, tp_buf *out)
{
    char a[32], b[32];
    tp_buf_addf(out, "%swith %s it needs %s (%s less) and %s", separator, change,
                tp_human_bytes((double)l->peak_bytes, a),
                tp_human_bytes((double)(plan->peak_bytes - l->peak_bytes), b),
                l->fits ? "fits" : "does not fit");
}

void tp_run_plan_verdict(const tp_run_plan *plan, const tp_plan_levers *levers,
                         const char *separator, tp_buf *out)
{
    char a[32], b[32], c[32];
    const tp_memory_allowance *m = &plan->allowance;
    tp_buf_addf(out, "%s: needs %s, limit %s (engine.memory_fraction %g of %s: %s)",
                plan->fits ? "fits" : "does not fit", tp_human_bytes((double)plan->peak_bytes, a),
                tp_human_bytes(m->bytes, b), m->fraction, tp_human_bytes(m->of, c), m->source);
    if (plan->fits || !levers)
        return;
    bool any_fits = false;
    for (int i = 0; i < levers->n; i++) {
        add_lever(plan, levers->v[i].change, &levers->v[i], separator, out);
        any_fits |= levers->v[i].fits;
    }
    if (!any_fits && levers->n > 1)
        add_lever(plan, "all of these", &levers->all, separator, out);
    if (levers->n == 0)
        tp_buf_addf(out, "%sno setting of Temper makes it smaller", separator);
}

tp_status tp_run_plan_check(const tp_train_options *o, const tp_model *model, bool resumes,
                            const tp_run_plan *plan, tp_error *err)
{
    if (plan->fits)
        return TP_OK;
    tp_buf text = {0};
    tp_plan_levers levers;
    tp_run_plan_levers(o, model, resumes, plan, &levers);
    tp_run_plan_verdict(plan, &levers, "; ", &text);
    tp_status status = tp_fail(err, TP_ERR_NOMEM, "%s", tp_buf_str(&text));
    tp_buf_release(&text);
    return status;
}
