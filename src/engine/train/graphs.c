/* graphs.c - from options to every graph of a run. */
#include "engine/train/graphs.h"

#include <math.h>
#include <unistd.h>

#include "base/affinity.h"
#include "base/cpu.h"
#include "base/files.h"
#include "base/huge_pages.h"
#include "base/locked_memory.h"
#include "base/platform.h"
#include "engine/passes/plugin.h"
#include "engine/train/algorithm.h"
#include "engine/train/levers.h"
#include "engine/train/plan_ranks.h"

int tp_trainer_threads(const tp_train_options *o)
{
    if (o->threads_here)
        return o->threads_here;
    if (o->engine.threads != TP_OPT_UNSET_INT)
        return (int)o->engine.threads;
    return tp_cpu_count();
}

tp_status tp_trainer_machine(const tp_train_options *o, tp_machine *ret, bool *ret_found,
                             tp_error *err)
{
    int threads = tp_trainer_threads(o), whole = tp_cpu_count(); /* a bound process has fewer */
    const int sizes[] = {threads, whole, (int)sysconf(_SC_NPROCESSORS_ONLN)};
    *ret_found = false;
    for (size_t i = 0; i < (o->threads_here ? TP_COUNTOF(sizes) : 1) && !*ret_found; i++)
        TP_TRY(tp_machine_load(&tp_backend_cpu, sizes[i], ret, ret_found, err));
    if (*ret_found && ret->threads != threads)
        tp_machine_take_part(ret, threads);
    return TP_OK;
}

tp_affinity tp_trainer_affinity(const tp_train_options *o)
{
    bool shares = o->threads_here && o->threads_here < tp_cpu_count();
    return shares ? TP_AFFINITY_NONE : (tp_affinity)o->engine.affinity;
}

bool tp_trainer_is_packed(const tp_train_options *o)
{
    return o->policy.packing.enabled || o->policy.dynamic_batching.enabled;
}

static tp_dtype compute_dtype_of(const tp_train_options *o)
{
    static const tp_dtype dtypes[] = {[TP_PRECISION_FLOAT32] = TP_DTYPE_F32,
                                      [TP_PRECISION_BFLOAT16] = TP_DTYPE_BF16,
                                      [TP_PRECISION_FLOAT16] = TP_DTYPE_F16};
    return dtypes[o->policy.precision];
}

/* What attention computes at a time, see backend/cpu/attention_block.h. */
int32_t tp_trainer_alignment(const tp_train_options *o)
{
    return o->policy.precision == TP_PRECISION_BFLOAT16 ? o->algorithm->alignment : 0;
}

int64_t tp_trainer_unit_tokens(const tp_train_options *o)
{
    return o->algorithm->sequences_per_unit * o->policy.max_total_sequence_length;
}

static int64_t asked_budget(const tp_train_options *o)
{
    if (o->policy.packing.enabled)
        return o->policy.packing.train_mb_tokens;
    if (o->policy.dynamic_batching.enabled)
        return o->policy.dynamic_batching.train_mb_tokens;
    return tp_trainer_unit_tokens(o) * o->policy.train_micro_batch_size;
}

/* An aligned pair that fits the budget asked for needs at most one gap more. */
int64_t tp_trainer_token_budget(const tp_train_options *o)
{
    return asked_budget(o) + tp_trainer_alignment(o);
}

tp_status tp_trainer_find_folder(const char *path, const char *file, tp_buf *ret, tp_error *err)
{
    bool is_found = !tp_dir_exists(path) || tp_file_exists(tp_path_of("%s/%s", path, file).text);
    if (!is_found)
        return tp_checkpoint_find_model(path, ret, err);
    tp_buf_adds(ret, path);
    return TP_OK;
}

/* What a sequence may be in transformers, too: rotations are computed for any position, learned
 * positions end with their table.  max_position_embeddings says how far the scaled rotations of
 * llama3 go, not where they began. */
tp_status tp_run_check_positions(const tp_train_options *o, const tp_model *model, tp_buf *said,
                                 tp_error *err)
{
    const tp_model_info *info = tp_model_get_info(model);
    long long asked = o->policy.max_total_sequence_length, has = info->max_positions;
    bool is_trained = o->policy.init != TP_INIT_RANDOM;
    char place[TP_MODEL_PLACE];
    if (asked <= has)
        return TP_OK;
    tp_model_positions_place(model, place);
    if (info->rope_theta == 0)
        return tp_fail(err, TP_ERR_CONFIG,
                       "policy.max_total_sequence_length is %lld, the model has %lld positions, "
                       "which are learned (%s): set it to at most %lld",
                       asked, has, place, has);
    if (said && is_trained)
        tp_buf_addf(said,
                    "policy.max_total_sequence_length is %lld, the model was made for sequences of "
                    "up to %lld (%s): longer ones are trained as well, at positions that it may "
                    "never have seen",
                    asked, has, place);
    return TP_OK;
}

tp_status tp_run_model_open(const tp_train_options *o, tp_model **ret, tp_buf *ret_path,
                            tp_error *err)
{
    bool random = o->policy.init == TP_INIT_RANDOM;
    const char *path = random ? o->policy.model_config : o->policy.model_name;
    if (!path)
        return tp_fail(err, TP_ERR_CONFIG,
                       random ? "policy.init=random needs policy.model_config=FILE (a config.json)"
                              : "policy.model_name=DIR is needed: a Hugging Face folder to start "
                                "from (or policy.init=random with policy.model_config)");
    tp_buf own = {0}, *folder = ret_path ? ret_path : &own;
    tp_status status = tp_trainer_find_folder(path, "config.json", folder, err);
    tp_model *model = NULL;
    if (status == TP_OK)
        status = tp_model_open(folder->data, &model, err);
    if (status == TP_OK)
        status = tp_peft_attach(o, model, err);
    if (status == TP_OK)
        status = tp_run_check_positions(o, model, NULL, err);
    tp_buf_release(&own);
    TP_HAND_OVER(status, ret, model, tp_model_free(model));
}

tp_algorithm_needs tp_trainer_needs(const tp_train_options *o)
{
    tp_algorithm_needs needs = {0};
    o->algorithm->needs(o, &needs);
    return needs;
}

/* Of a block. */
static int topk_of(const tp_train_options *o)
{
    return (int)ceil(o->distributed.topk * TP_WIRE_LARGEST_BLOCK);
}

/* Precision, recomputation and plug-ins are asked for by name, so they stay without compilation. */
static tp_status create_program(const tp_train_options *o, tp_device *device,
                                const tp_run_graphs_options *more, tp_program **ret, tp_error *err)
{
    static const char *const every_pass[] = {"cse", "dce", "fuse", "pack-weights", "schedule"};
    bool none = o->policy.compile_mode == TP_COMPILE_NONE;
    tp_ranks ranks = o->ranks;
    ranks.bucket_bytes = (size_t)(o->distributed.bucket_mib * 1048576.0);
    ranks.node = o->distributed.strategy == TP_STRATEGY_HYBRID ? o->ranks.node : 0;
    const tp_program_options options = {
        .device = device,
        .passes = {.compute_dtype = compute_dtype_of(o),
                   .recompute = o->policy.recompute,
                   .recompute_every = o->policy.recompute_every,
                   .compresses = o->policy.activation_compression == TP_COMPRESSION_INT8,
                   .loss_chunk = (int32_t)o->engine.loss_chunk,
                   .gathers_again = o->distributed.reshard_after_forward,
                   .shards_optimizer = o->distributed.strategy >= TP_STRATEGY_SHARD_OPTIMIZER,
                   .shares_rows = tp_ranks_share_rows(o),
                   .wire = o->distributed.compress,
                   .wire_keep = o->distributed.compress == TP_WIRE_TOPK ? topk_of(o) : 0,
                   .keeps_errors = o->distributed.error_feedback,
                   .disabled = none ? every_pass : o->engine.disable_passes.v,
                   .n_disabled = none ? TP_COUNTOF(every_pass) : o->engine.disable_passes.n},
        .share_memory = !none && o->engine.in_place,
        .tuning = o->policy.compile_mode != TP_COMPILE_MAX_AUTOTUNE ? TP_TUNE_OFF
                  : more->measures_kernels                          ? TP_TUNE_MEASURE
                                                                    : TP_TUNE_KNOWN,
        .ranks = ranks,
        .dump_stages = o->engine.dump.v,
        .n_dump_stages = o->engine.dump.n,
        .dump = more->dump,
        .dump_user = more->dump_user};
    return tp_program_create(&options, ret, err);
}

/* What a rank keeps its part of alone. */
static uint32_t parts_of(const tp_train_options *o)
{
    const uint32_t weights = 1u << TP_ROLE_WEIGHT | 1u << TP_ROLE_COPY | 1u << TP_ROLE_ADAPTER;
    return 1u << TP_ROLE_ERROR |
           (o->distributed.strategy >= TP_STRATEGY_SHARD_OPTIMIZER ? 1u << TP_ROLE_MOMENT : 0) |
           (o->distributed.strategy >= TP_STRATEGY_SHARD_GRADIENTS ? 1u << TP_ROLE_GRADIENT : 0) |
           (o->distributed.strategy >= TP_STRATEGY_FULL_SHARD ? weights : 0);
}

static tp_status create_session(const tp_train_options *o, const tp_model *model,
                                const tp_run_graphs_options *more, tp_program *program,
                                bool is_reference, tp_session *policy, tp_session **ret,
                                tp_error *err)
{
    tp_session_options options = {.program = program,
                                  .tokens = tp_trainer_token_budget(o),
                                  .max_positions = o->policy.max_total_sequence_length,
                                  .temperature = (float)tp_trainer_needs(o).temperature,
                                  .avg_context = more->avg_context,
                                  .clips_value = isfinite(o->policy.clip_grad_value),
                                  .clips_adaptively = isfinite(o->policy.adaptive_clip_factor),
                                  .optimizer = &o->policy.optimizer,
                                  .keeps_padding = !o->engine.padding_free,
                                  .weighed = o->algorithm->is_weighted,
                                  .forward_only = is_reference,
                                  .parts = parts_of(o),
                                  .name = "reference"};
    if (is_reference && tp_model_has_adapter(model))
        options.shares = policy;
    else if (more->takes_over)
        options.takes_over = is_reference ? more->takes_over->reference : more->takes_over->session;
    return tp_session_create(model, &options, ret, err);
}

tp_status tp_trainer_force_isa(const tp_train_options *o, tp_error *err)
{
    return o->engine.isa > 0 ? tp_cpu_force_isa((tp_isa)(o->engine.isa - 1), err) : TP_OK;
}

static tp_status open_device(const tp_train_options *o, tp_device **ret, tp_error *err)
{
    const tp_backend *backend = tp_backend_find(o->engine.backend);
    const tp_device_options options = {.threads = tp_trainer_threads(o)};
    if (!backend)
        return tp_fail(err, TP_ERR_CONFIG, "engine.backend is '%s'; expected cpu, ref or guard",
                       o->engine.backend);
    TP_TRY(tp_trainer_force_isa(o, err));
    tp_huge_pages_use(o->engine.huge_pages);
    tp_locked_memory_use(o->data.pin_memory);
    tp_affinity_use(tp_trainer_affinity(o));
    return tp_device_open(backend, &options, ret, err);
}

static int64_t or_zero(int64_t n) { return n == TP_OPT_UNSET_INT ? 0 : n; }

static tp_drafting drafting_of(const tp_train_options *o)
{
    return (tp_drafting){.tokens = or_zero(o->generation.drafting.tokens),
                         .lookup_max = or_zero(o->generation.drafting.lookup_max),
                         .lookup_min = or_zero(o->generation.drafting.lookup_min),
                         .rows = or_zero(o->generation.drafting.rows)};
}

tp_engine_options tp_trainer_engine_options(const tp_train_options *o, tp_device *device)
{
    double cache = o->generation.cache_mib;
    tp_dtype dtype = compute_dtype_of(o);
    bool gathers = o->ranks.ranks > 1 && o->distributed.strategy >= TP_STRATEGY_FULL_SHARD &&
                   !o->distributed.gathered_copy;
    return (tp_engine_options){.device = device,
                               .gathers = gathers,
                               .comm = gathers ? o->ranks.comm : NULL,
                               .compute_dtype = dtype,
                               .cache_dtype = dtype,
                               .max_length = o->policy.max_total_sequence_length,
                               .max_running = o->generation.max_running,
                               .drafting = drafting_of(o),
                               .cache_bytes = isfinite(cache) ? (size_t)(cache * 1048576.0) : 0};
}

/* The generator's caches and copies of the weights are declared in the session's states. */
static tp_status create_engine(const tp_train_options *o, const tp_model *model,
                               const tp_run_graphs_options *more, tp_run_graphs *g, tp_error *err)
{
    tp_engine_options options = tp_trainer_engine_options(o, g->device);
    options.program = g->program;
    options.tokenizer = more->tokenizer;
    options.n_tokens = more->tokenizer ? tp_tokenizer_vocab_size(more->tokenizer) : 0;
    return tp_engine_create(model, &options, tp_session_states(g->session), &g->engine, err);
}

static tp_status load_plugins(const tp_str_list *paths, tp_error *err)
{
    TP_TRY(tp_plugins_use(paths->v, paths->n, err));
    for (size_t i = 0; i < paths->n; i++)
        if (tp_lever_find(tp_plugin_name(i)))
            return tp_fail(err, TP_ERR_CONFIG, "plug-in '%s': there is a lever of the name %s",
                           tp_plugin_path(i), tp_plugin_name(i));
    return TP_OK;
}

/* With an adapter off, the base is there for nothing.  One that is done with is not made again. */
static bool has_reference(const tp_train_options *o, const tp_model *model,
                          const tp_run_graphs_options *more)
{
    bool begins = more->resumes || tp_model_has_adapter(model);
    if (more->takes_over)
        return more->takes_over->reference != NULL;
    return tp_trainer_needs(o).reference || (o->algorithm->resumes_with_reference && begins);
}

static tp_status create(const tp_train_options *o, const tp_model *model,
                        const tp_run_graphs_options *more, tp_run_graphs *g, tp_error *err)
{
    TP_TRY(load_plugins(&o->engine.plugins, err));
    if (more->takes_over)
        g->device = more->takes_over->device;
    else
        TP_TRY(open_device(o, &g->device, err));
    TP_TRY(tp_ranks_check_model(o, model, err));
    TP_TRY(create_program(o, g->device, more, &g->program, err));
    TP_TRY(create_session(o, model, more, g->program, false, NULL, &g->session, err));
    if (o->algorithm->generates)
        TP_TRY(create_engine(o, model, more, g, err));
    if (has_reference(o, model, more))
        TP_TRY(create_session(o, model, more, g->program, true, g->session, &g->reference, err));
    return tp_program_compile(g->program, err);
}

tp_status tp_run_graphs_create(const tp_train_options *o, const tp_model *model,
                               const tp_run_graphs_options *more, tp_run_graphs *ret, tp_error *err)
{
    tp_run_graphs g = {0};
    tp_status status = create(o, model, more, &g, err);
    if (status != TP_OK) {
        if (more->takes_over)
            g.device = NULL;
        tp_run_graphs_release(&g);
        return status;
    }
    if (more->takes_over)
        more->takes_over->device = NULL;
    *ret = g;
    return TP_OK;
}

void tp_run_graphs_release(tp_run_graphs *g)
{
    tp_engine_free(g->engine);
    tp_program_free(g->program);
    tp_session_free(g->reference);
    tp_session_free(g->session);
    tp_device_close(g->device);
    *g = (tp_run_graphs){0};
}
