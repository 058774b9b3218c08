/* grpo.c - learning from rewards: opening, the step, validation. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/platform.h"
#include "base/strings.h"
#include "engine/algorithms/algorithms.h"
#include "engine/algorithms/grpo_internal.h"
#include "engine/data/render.h"
#include "engine/data/token_ids.h"

/* ---- what the configuration says ---- */

static tp_policy_loss loss_of(const tp_grpo_options *o)
{
    tp_policy_loss loss = o->loss;
    loss.ratio = o->sequence_ratio    ? TP_RATIO_SEQUENCE
                 : o->no_ratio        ? TP_RATIO_NONE
                 : o->on_policy_ratio ? TP_RATIO_ON_POLICY
                                      : TP_RATIO_TOKEN;
    loss.truncation = tp_grpo_truncation(o);
    loss.kl_penalty = o->kl_in_reward ? 0 : o->loss.kl_penalty;
    loss.kl_without_sampling = !o->kl_bias_correction;
    return loss;
}

static void choose_estimator(trainer *t)
{
    grpo *g = t->own;
    const tp_grpo_options *o = options(t);
    g->loss = loss_of(o);
    g->advantage = tp_advantage_of_kind(o->estimator, o->estimator_leave_one_out,
                                        o->estimator_normalize, o->minus_baseline);
    g->advantage.clip_low = o->advantage_clip_low;
    g->advantage.clip_high = o->advantage_clip_high;
}

/* ---- prompts and judges ---- */

static tp_status open_prompts(trainer *t, const tp_data_source_options *source, tp_split split,
                              tp_prompts **ret, tp_error *err)
{
    TP_OWN(tp_buf) generator = {0};
    if (source->dataset_name)
        tp_buf_addf(&generator, "data.%s", source->dataset_name);
    double share = source->split_validation_size;
    int64_t most = source->max_samples;
    tp_prompts_options options = {
        .dataset_name = source->dataset_name,
        .data_path = source->data_path,
        .rows = source->rows,
        .split = split,
        .split_validation_size = isfinite(share) ? share : 0,
        .seed = (uint64_t)t->o->seed,
        .max_samples = most == TP_OPT_UNSET_INT ? 0 : (uint64_t)most,
        .config = t->config,
        .generator = generator.len ? tp_config_find(t->config, tp_buf_str(&generator)) : NULL};
    return tp_prompts_open(&options, ret, err);
}

static bool should_stop(void *user) { return tp_trainer_should_stop(user); }

static void say(void *user, const char *text) { tp_trainer_notice(user, "%s", text); }

static tp_status open_environment(trainer *t, const tp_data_source_options *source,
                                  tp_environment **ret, tp_error *err)
{
    char name[TP_ENVIRONMENT_NAME];
    tp_environment_watch watch = {should_stop, say, t};
    TP_TRY(tp_grpo_environment(t->config, t->o, source, name, err));
    TP_TRY(tp_environment_open(t->config, name, ret, err));
    tp_environment_set_watch(*ret, &watch);
    return TP_OK;
}

static bool stop_reading(void *user)
{
    tp_trainer_working(user, "tokenising the prompts", 0, 0);
    return tp_trainer_should_stop(user);
}

static tp_status check_prompts(trainer *t, const tp_prompts *prompts, uint64_t *ret, tp_error *err)
{
    grpo *g = t->own;
    return tp_prompts_check(prompts, g->encoder, t->o->policy.max_total_sequence_length,
                            stop_reading, t, ret, err);
}

/* Validation prompts: a source of their own, else the held out part of the training's. */
static tp_status open_validation(trainer *t, tp_error *err)
{
    grpo *g = t->own;
    const tp_data_source_options *train = &t->o->data.train, *val = &t->o->data.validation;
    bool own = val->data_path || val->dataset_name;
    bool held_out = !train->data_path ||
                    (isfinite(train->split_validation_size) && train->split_validation_size > 0);
    tp_data_source_options source = own ? *val : *train;
    uint64_t ignored = 0;
    if (own)
        source.split_validation_size = NAN;
    if (own || held_out)
        TP_TRY(open_prompts(t, &source, TP_SPLIT_VALIDATION, &g->val_prompts, err));
    if (g->val_prompts && g->encoder)
        TP_TRY(check_prompts(t, g->val_prompts, &ignored, err));
    return own && val->env_name ? open_environment(t, val, &g->val_env, err) : TP_OK;
}

static void send_example(trainer *t, const tp_prompt *prompt, const tp_ids *ids)
{
    const grpo *g = t->own;
    TP_OWN(tp_buf) text = {0};
    tp_buf_adds(&text, "prompts: ");
    tp_prompts_describe(g->prompts, &text);
    tp_buf_adds(&text, "\njudged by: ");
    tp_environment_describe(g->env, &text);
    tp_buf_addf(&text, "\n%s, %zu token%s, expected: %s\n", prompt->id, ids->len,
                tp_plural((uint64_t)ids->len), prompt->truth ? prompt->truth : "(not said)");
    TP_FREED uint8_t *nothing = tp_new(ids->len + 1, 1);
    tp_render_show(t->tokenizer, ids->data, nothing, ids->len, 256, &text);
    tp_train_event event = {.kind = TP_EVENT_EXAMPLE, .text = tp_buf_str(&text)};
    tp_trainer_send(t, &event);
}

static tp_status show_example(trainer *t, tp_error *err)
{
    grpo *g = t->own;
    tp_prompt prompt;
    TP_OWN(tp_ids) ids = {0};
    TP_TRY(tp_prompts_get(g->prompts, 0, &g->arena, &prompt, err));
    TP_TRY(tp_prompt_encode(g->encoder, &prompt, &ids, NULL, err));
    send_example(t, &prompt, &ids);
    tp_arena_rewind(&g->arena, 0);
    return TP_OK;
}

/* Of choose_stops() those that the model alone names: versions before took no notice of them, and
 * their runs go on where there are none. */
static void describe_ends(const trainer *t, tp_buf *out)
{
    const tp_ids *stops = &((const grpo *)t->own)->stops;
    size_t n = (size_t)tp_model_get_info(t->model)->n_eos;
    for (size_t i = 0; i < n; i++) {
        bool is_named = false;
        for (size_t k = n; k < stops->len; k++)
            is_named |= stops->data[k] == stops->data[i];
        if (!is_named)
            tp_buf_addf(out, "|ends with %d", stops->data[i]);
    }
}

static void fingerprint(trainer *t)
{
    const grpo *g = t->own;
    TP_OWN(tp_buf) text = {0};
    tp_buf_adds(&text, "grpo|");
    tp_prompts_describe(g->prompts, &text);
    tp_buf_addc(&text, '|');
    tp_environment_describe(g->env, &text);
    tp_buf_addf(&text, "|%s|%d|%lld|%lld|%lld|%g|%lld", tp_tokenizer_fingerprint(t->tokenizer),
                t->o->data.shuffle, (long long)options(t)->num_prompts,
                (long long)options(t)->num_generations,
                (long long)t->o->policy.train_global_batch_size, t->o->generation.temperature,
                (long long)t->o->policy.max_total_sequence_length);
    describe_ends(t, &text);
    tp_trainer_fingerprint(t, tp_buf_str(&text));
}

/* ---- opening ---- */

/* The ends that model and tokenizer know, and what the configuration names. */
static tp_status choose_stops(trainer *t, tp_error *err)
{
    grpo *g = t->own;
    const tp_f64_list *ids = &t->o->generation.stop_token_ids;
    tp_stop_ids_find(t->model, t->tokenizer, &g->stops);
    TP_TRY(tp_token_ids_read(t->config, "policy.generation.stop_token_ids", ids, t->tokenizer,
                             &g->stops, err));
    if (g->stops.len == 0 && t->o->generation.stop_strings.n == 0)
        tp_trainer_notice(t, "neither the model nor the tokenizer names an end of sequence: every "
                             "answer takes policy.generation.max_new_tokens tokens");
    return TP_OK;
}

/* Address space for one step: texts, prompts and answers. */
static size_t arena_bytes(const trainer *t)
{
    const grpo *g = t->own;
    double draws = options(t)->dynamic_sampling
                       ? (double)options(t)->dynamic_max_batches * options(t)->batch_multiplier
                       : 1;
    double prompts =
        fmax(draws * (double)options(t)->num_prompts + 1, (double)options(t)->val_batch_size);
    double samples = fmax(draws * (double)(options(t)->num_prompts * options(t)->num_generations),
                          (double)(options(t)->val_batch_size * options(t)->val_generations));
    double longest = (double)t->o->policy.max_total_sequence_length;
    double bytes = prompts * ((double)tp_prompts_arena_bytes(g->prompts) + 64 * longest) +
                   samples * (64 * longest + 4096) + 64e6;
    return (size_t)fmin(bytes, 256e9);
}

static tp_status open_training_prompts(trainer *t, tp_error *err)
{
    grpo *g = t->own;
    const char *template_text;
    TP_TRY(tp_trainer_chat_template(t, &g->template_text, &template_text, err));
    TP_TRY(tp_prompt_encoder_new(t->tokenizer, template_text, t->o->policy.template_variables,
                                 t->o->data.add_bos, &g->encoder, err));
    TP_TRY(open_prompts(t, &t->o->data.train, TP_SPLIT_TRAIN, &g->prompts, err));
    return check_prompts(t, g->prompts, &g->too_long, err);
}

static tp_status open_training_environment(trainer *t, tp_error *err)
{
    grpo *g = t->own;
    return open_environment(t, &t->o->data.train, &g->env, err);
}

static tp_status count_steps(trainer *t, tp_error *err)
{
    const grpo *g = t->own;
    uint64_t prompts = tp_prompts_count(g->prompts);
    if (prompts == 0)
        return tp_fail(err, TP_ERR_CONFIG, "there are no prompts to learn from");
    tp_trainer_count_draws(t, prompts, tp_grpo_prompts_drawn(t->o));
    return TP_OK;
}

static void reserve_scratch(trainer *t)
{
    grpo *g = t->own;
    size_t batch = (size_t)t->o->policy.train_global_batch_size;
    g->sequences = tp_new(batch, sizeof *g->sequences);
    g->trained = tp_new(batch, sizeof *g->trained);
    g->gradient = tp_new((size_t)t->o->policy.max_total_sequence_length + 1, sizeof *g->gradient);
}

static tp_status open_algorithm(trainer *t, tp_error *err)
{
    grpo *g = tp_new(1, sizeof *g);
    t->own = g;
    g->val_any = NAN;
    choose_estimator(t);
    return tp_pool_create(&g->pool, tp_trainer_threads(t->o), err);
}

static tp_status open_steps(trainer *t, tp_error *err)
{
    grpo *g = t->own;
    TP_TRY(tp_arena_init(&g->arena, arena_bytes(t), err));
    TP_TRY(choose_stops(t, err));
    TP_TRY(count_steps(t, err));
    reserve_scratch(t);
    TP_TRY(tp_microbatch_init(&g->mb, (int32_t)tp_trainer_token_budget(t->o), err));
    t->avg_context = 0.25 * (double)t->o->policy.max_total_sequence_length;
    fingerprint(t);
    if (g->too_long)
        tp_trainer_notice(t,
                          "%llu prompt%s left out, without room for an answer "
                          "(policy.max_total_sequence_length)",
                          (unsigned long long)g->too_long, tp_plural((uint64_t)g->too_long));
    return show_example(t, err);
}

static void describe_prompts(const trainer *t, tp_buf *out)
{
    const grpo *g = t->own;
    tp_prompts_describe(g->prompts, out);
    if (g->too_long)
        tp_buf_addf(out, ", %llu leave no room for an answer", (unsigned long long)g->too_long);
}

static void describe_environment(const trainer *t, tp_buf *out)
{
    const grpo *g = t->own;
    tp_environment_describe(g->env, out);
}

static void describe_validation(const trainer *t, tp_buf *out)
{
    const grpo *g = t->own;
    if (g->val_prompts)
        tp_prompts_describe(g->val_prompts, out);
    else
        tp_buf_adds(out, "none (data.validation, data.train.split_validation_size)");
}

static const tp_trainer_stage stages[] = {
    {"rollouts", open_algorithm, NULL, 0, 0},
    {"training data", open_training_prompts, describe_prompts, TP_HAS_TOKENIZER, TP_HAS_DATA},
    {"environment", open_training_environment, describe_environment, 0, TP_HAS_JUDGE},
    {"validation data", open_validation, describe_validation, TP_HAS_TOKENIZER, 0},
    {"steps", open_steps, tp_trainer_describe_steps, TP_HAS_DATA | TP_HAS_JUDGE, TP_HAS_STEPS},
    {"judge", tp_grpo_ask_judge, tp_grpo_describe_judge, TP_HAS_DATA | TP_HAS_JUDGE, 0},
    {0}};

/* A resumed run that had reached it is done, unless more is asked of it now. */
static void recall_goal(trainer *t)
{
    const tp_grpo_options *o = options(t);
    t->reached_goal = o->stop_metric != TP_OPT_UNSET_ENUM &&
                      strcmp(t->state.goal_metric, tp_stop_metrics[o->stop_metric]) == 0 &&
                      t->state.goal_value >= o->stop_threshold;
    if (!t->reached_goal)
        t->state.goal_metric[0] = 0;
}

static tp_status ready(trainer *t, tp_error *err)
{
    recall_goal(t);
    TP_TRY(tp_grpo_take_graphs(t, err));
    if (t->graphs.reference)
        TP_TRY(tp_trainer_fill_reference(t, err));
    tp_grpo_tell_distribution(t);
    return TP_OK;
}

static int programs(const trainer *t, tp_train_program *ret)
{
    const grpo *g = t->own;
    int n = 0;
    if (g->engine)
        ret[n++] = (tp_train_program){"generation", tp_engine_exec(g->engine)};
    if (g->reference)
        ret[n++] = (tp_train_program){"reference", tp_session_exec(g->reference, "eval")};
    return n;
}

static void release_rollout(grpo_rollout *r)
{
    free(r->samples);
    free(r->groups);
    *r = (grpo_rollout){0};
}

static void close_grpo(trainer *t)
{
    grpo *g = t->own;
    if (!g)
        return;
    tp_environment_close(g->env);
    tp_environment_close(g->val_env);
    tp_judging_free(g->judging);
    tp_prompts_close(g->prompts);
    tp_prompts_close(g->val_prompts);
    tp_prompt_encoder_free(g->encoder);
    tp_pool_free(g->pool);
    tp_buf_release(&g->template_text);
    tp_buf_release(&g->judged);
    tp_arena_release(&g->arena);
    release_rollout(&g->rollout);
    tp_batch_release(&g->arrangement);
    tp_microbatch_release(&g->mb);
    tp_ids_release(&g->stops);
    free(g->sequences);
    free(g->trained);
    free(g->gradient);
    free(g);
}

/* ---- one step ---- */

static void begin_step(grpo *g)
{
    tp_arena_rewind(&g->arena, 0);
    g->rollout.n_samples = g->rollout.n_groups = 0;
    g->counts = (grpo_counts){.worst_error = NAN, .least_error = NAN};
    memset(&g->ahead, 0, sizeof g->ahead);
    g->n_updates = 0;
    g->grad_norm_max = 0;
    tp_policy_sums_init(&g->total);
    tp_engine_reset_stats(g->engine);
}

static tp_status step(trainer *t, step_result *r, tp_error *err)
{
    grpo *g = t->own;
    uint64_t drawn = 0;
    tp_phases_enter(&t->phases, TP_TIME_DATA);
    begin_step(g);
    /* Until something is learned a failure leaves all as it was. */
    t->step_is_void = true;
    TP_TRY(tp_grpo_rollout(t, &drawn, err));
    TP_TRY(tp_grpo_watch_judge(t, err));
    t->step_is_void = false;
    tp_status status = tp_grpo_learn(t, r, err);
    if (status == TP_ERR_INTERRUPTED)
        return status;
    t->state.prompts += (int64_t)drawn;
    t->generated_tokens += g->counts.answer_tokens;
    t->drafted_tokens += g->counts.engine.drafted_tokens;
    t->accepted_tokens += g->counts.engine.accepted_tokens;
    t->generation_s += g->counts.generation_s;
    r->lr = tp_trainer_lr(t, t->o->policy.optimizer.lr);
    tp_grpo_note_reward(t);
    tp_phases_enter(&t->phases, TP_TIME_LOGGING);
    tp_grpo_write_samples(t);
    return status;
}

/* ---- validation ---- */

typedef struct {
    grpo_counts counts;
    long double rewards; /* sum over samples with a reward */
    uint64_t judged, prompts, any;
} val_sums;

static void add_group(const grpo_rollout *r, const grpo_group *group, val_sums *s)
{
    bool any = false, judged = false;
    for (uint32_t i = 0; i < group->n; i++) {
        const grpo_sample *sample = &r->samples[group->first + i];
        if (!isfinite(sample->raw_reward))
            continue;
        s->rewards += (long double)sample->raw_reward;
        s->judged++;
        judged = true;
        any |= sample->raw_reward > 0;
    }
    s->prompts += judged;
    s->any += any;
}

static tp_status validate_part(trainer *t, uint64_t first, uint32_t n, val_sums *s, tp_error *err)
{
    grpo *g = t->own;
    TP_FREED uint64_t *indices = tp_new(n, sizeof *indices);
    TP_CLEANUP(release_rollout) grpo_rollout rollout = {0};
    for (uint32_t i = 0; i < n; i++)
        indices[i] = first + i;
    int64_t top_k = t->o->generation.val_top_k;
    grpo_draw draw = {.prompts = g->val_prompts,
                      .env = g->val_env ? g->val_env : g->env,
                      .indices = indices,
                      .n_prompts = n,
                      .n_samples = (uint32_t)options(t)->val_generations,
                      .stream = first,
                      /* apart from the streams of training, the same every time */
                      .seed = (uint64_t)t->o->seed ^ UINT64_C(0x76616c6964617465),
                      .sampling = {.temperature = t->o->generation.val_temperature,
                                   .top_k = top_k == TP_OPT_UNSET_INT ? 0 : top_k,
                                   .top_p = t->o->generation.val_top_p}};
    tp_arena_rewind(&g->arena, 0);
    TP_TRY(tp_grpo_generate(t, &draw, &rollout, &s->counts, err));
    for (uint32_t k = 0; k < rollout.n_groups; k++)
        add_group(&rollout, &rollout.groups[k], s);
    return TP_OK;
}

/* grpo.stop_at_validation_metric */
static void check_goal(trainer *t, double pass_k)
{
    double value = options(t)->stop_metric == TP_STOP_PASS_K ? pass_k : t->val_accuracy;
    if (options(t)->stop_metric == TP_OPT_UNSET_ENUM || t->reached_goal ||
        !(value >= options(t)->stop_threshold))
        return;
    const char *name = tp_stop_metrics[options(t)->stop_metric];
    t->reached_goal = true;
    snprintf(t->state.goal_metric, sizeof t->state.goal_metric, "%s", name);
    t->state.goal_value = value;
    tp_trainer_notice(t, "validation %s %.4f reaches grpo.stop_at_validation_threshold", name,
                      value);
}

static void record_validation(trainer *t, const val_sums *s, double seconds)
{
    grpo *g = t->own;
    t->val_accuracy = s->judged ? (double)(s->rewards / s->judged) : NAN;
    g->val_any = s->prompts ? (double)s->any / (double)s->prompts : NAN;
    double n = (double)s->counts.samples;
    tp_metric_bus *bus = &t->metrics;
    tp_trainer_begin_validation(t);
    tp_metric_put(bus, "validation/accuracy", t->val_accuracy);
    tp_metric_put(bus, "validation/avg_length", n > 0 ? (double)s->counts.answer_tokens / n : NAN);
    tp_metric_put(bus, "validation/pass_k", g->val_any);
    tp_metric_put(bus, "validation/num_prompts", (double)s->prompts);
    tp_metric_put(bus, "validation/num_samples", (double)s->judged);
    tp_metric_put(bus, "validation/num_excluded", n - (double)s->judged);
    tp_metric_put(bus, "validation/truncation_rate", grpo_cut_share(&s->counts));
    tp_metric_put(bus, "timing/validation/total_validation_time", seconds);
    tp_trainer_end_validation(t);
    check_goal(t, g->val_any);
}

static tp_status validate(trainer *t, tp_error *err)
{
    grpo *g = t->own;
    val_sums s = {0};
    double start = tp_clock_s();
    if (!g->val_prompts)
        return TP_OK;
    uint64_t n = tp_prompts_count(g->val_prompts), most = (uint64_t)options(t)->max_val_samples;
    uint64_t batch = (uint64_t)options(t)->val_batch_size;
    n = most > 0 && most < n ? most : n;
    for (uint64_t first = 0; first < n; first += batch)
        TP_TRY(validate_part(t, first, (uint32_t)TP_MIN(batch, n - first), &s, err));
    tp_grpo_note_validation(t, &s.counts);
    record_validation(t, &s, tp_clock_s() - start);
    return TP_OK;
}

/* ---- run.json ---- */

static void result(trainer *t, tp_json_w *w)
{
    const grpo *g = t->own;
    tp_json_w_put_known(w, "reward", tp_metric_latest(&t->metrics, "train/reward"));
    tp_json_w_put_known(w, "best_reward", t->state.best_reward);
    tp_json_w_put_known(w, "val_accuracy", t->val_accuracy);
    tp_json_w_put_i64(w, "prompts", t->state.prompts);
    tp_json_w_put_i64(w, "generated_tokens", t->generated_tokens);
    tp_json_w_put_begin(w, "rewards", '{');
    for (int k = 0; k < TP_REWARD_KINDS; k++)
        tp_json_w_put_i64(w, tp_reward_status_name((tp_reward_status)k),
                          g ? (int64_t)g->all_by_status[k] : 0);
    tp_json_w_end(w, '}');
}

static const char *const sections[] = {
    "loss_fn", "env", "async_rl", "data_plane", "reward_penalties", "on_policy_distillation", NULL};

static const tp_algorithm_default defaults[] = {
    {"seed", "${grpo.seed}"},
    {"run.name", "grpo"},
    {"policy.train_global_batch_size",
     "${mul:${grpo.num_prompts_per_step}, ${grpo.num_generations_per_prompt}}"},
    {"policy.train_micro_batch_size", "4"},
    {"policy.max_total_sequence_length", "512"},
    {"policy.optimizer.kwargs.weight_decay", "0.01"},
    {"policy.optimizer.kwargs.betas", "[0.9, 0.999]"},
    {"policy.optimizer.kwargs.eps", "1.0e-8"},
    {"checkpointing.metric_name", "val:accuracy"},
    {"checkpointing.higher_is_better", "true"},
    {NULL, NULL}};

static const tp_algorithm_ranking rankings[] = {{"val:accuracy", TP_RANK_BY_VAL_ACCURACY},
                                                {"train:loss", TP_RANK_BY_TRAIN_LOSS},
                                                {NULL, TP_RANK_BY_AGE}};

static const char *const source_keys[] = {"input_key", "output_key", "prompt_key", "chat_key",
                                          "tool_key",  "system_key", NULL};

const tp_algorithm tp_algorithm_grpo = {.name = "grpo",
                                        .title = "GRPO",
                                        .options = tp_grpo_keys,
                                        .sections = sections,
                                        .defaults = defaults,
                                        .rankings = rankings,
                                        .source_keys = source_keys,
                                        .val_accuracy = "validation/accuracy",
                                        .takes_max_samples = true,
                                        .takes_named_data = true,
                                        .fixed =
                                            "data, judge, tokenizer, prompts or answers a step, "
                                            "batch size, longest sequence, shuffling, "
                                            "temperature of the rollouts or ids that "
                                            "end an answer",
                                        .check = tp_grpo_check,
                                        .sequences_per_unit = 1,
                                        .is_weighted = true,
                                        .generates = true,
                                        .runs_on_ranks = true,
                                        .shares_layers = true,
                                        .needs = tp_grpo_needs,
                                        .stages = stages,
                                        .ready = ready,
                                        .replay = tp_grpo_replay,
                                        .resize = tp_grpo_resize,
                                        .step = step,
                                        .eval_part = "logprobs",
                                        .programs = programs,
                                        .validate = validate,
                                        .record = tp_grpo_record,
                                        .result = result,
                                        .close = close_grpo};
