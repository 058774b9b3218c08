/* Recipes that were written for NeMo RL: every construct and key of theirs is used, has no effect
 * and is named for it, or is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/platform.h"
#include "engine/algorithms/grpo_options.h"
#include "engine/train/options.h"
#include "engine/train/schedule.h"

static char scratch[64];
static tp_config *config;
static tp_train_options o;
static tp_error err;

static int enter(void **state)
{
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/temper-foreign-XXXXXX");
    memset(&err, 0, sizeof err);
    return !mkdtemp(scratch) || chdir(scratch) != 0 || tp_dir_make("sub", NULL) != TP_OK;
}

static int leave(void **state)
{
    (void)state;
    tp_config_release(config);
    config = NULL;
    return chdir("/") != 0 || tp_dir_remove(scratch, NULL) != TP_OK;
}

static void put(const char *path, const char *text)
{
    assert_int_equal(tp_file_write_atomic(path, text, strlen(text), NULL), TP_OK);
}

static void load(const char *path)
{
    tp_config_release(config);
    config = NULL;
    if (tp_config_load(&config, path, &err) != TP_OK)
        fail_msg("%s", err.message);
}

static void override(const char *text)
{
    if (tp_config_override(config, text, &err) != TP_OK)
        fail_msg("%s", err.message);
}

static void bind_well(void)
{
    if (tp_train_options_bind(config, &o, &err) != TP_OK)
        fail_msg("%s", err.message);
}

static void expect_adamw(double beta1, double beta2, double eps)
{
    const tp_optimizer_settings *s = &o.policy.optimizer;
    tp_optimizer_scalars x;
    assert_ptr_equal(s->kind, &tp_optimizer_adamw);
    s->kind->scalars(s, &(tp_optimizer_step){.lr = s->lr, .t = 1}, &x);
    assert_true(x.v[1] == beta1 && x.v[2] == beta2 && x.v[3] == eps);
}

static void expect_refusal(const char *message)
{
    assert_int_equal(tp_train_options_bind(config, &o, &err), TP_ERR_CONFIG);
    assert_string_equal(err.message, message);
}

/* The keys and constructs of NeMo RL's GRPO recipes, in an order and with values of our own. */
static const char grpo[] =
    "grpo:\n"
    "  num_prompts_per_step: 4\n"
    "  num_generations_per_prompt: 2\n"
    "  max_rollout_turns: 1\n"
    "  val_period: -1\n"
    "  val_start_at: 6\n"
    "  val_batch_size: null\n"
    "  max_val_samples: null\n"
    "  val_num_generations_per_prompt: 2\n"
    "  stop_at_validation_metric: null\n"
    "  stop_at_validation_threshold: null\n"
    "  invalid_tool_call_advantage: null\n"
    "  malformed_thinking_advantage: null\n"
    "  advantage_clip_low: null\n"
    "  seq_logprob_error_threshold: null\n"
    "  adv_estimator: {name: grpo, normalize_rewards: \"${grpo.normalize_rewards}\"}\n"
    "  normalize_rewards: false\n"
    "  reward_shaping: {enabled: false, overlong_buffer_length: null, max_response_length: null,\n"
    "      overlong_buffer_penalty: null, stop_properly_penalty_coef: null}\n"
    "  async_grpo: {enabled: false, max_trajectory_age_steps: 1, in_flight_weight_updates: false}\n"
    "reward_penalties: {penalize_duplicated_reasoning: false, token_ids: null}\n"
    "on_policy_distillation: null\n"
    "data_plane: {enabled: false, impl: transfer_queue, storage_capacity: 10}\n"
    "loss_fn: {reference_policy_kl_penalty: 0.0, ratio_clip_c: null,\n"
    "    kl_input_clamp_value: null, truncated_importance_sampling_type: null}\n"
    "policy:\n"
    "  model_name: some/model\n"
    "  tokenizer: {name: \"${policy.model_name}\", use_fastokens: false,\n"
    "      chat_template_kwargs: null}\n"
    "  hf_config_overrides: {}\n"
    "  refit_buffer_size_gb: 4\n"
    "  draft: {enabled: false, model_name: null, loss_weight: 0.1, num_layers: null}\n"
    "  router_replay: {enabled: false}\n"
    "  dtensor_cfg: {enabled: true, tensor_parallel_size: 8, clear_cache_every_n_steps: null,\n"
    "      env_vars: {}, lora_cfg: {enabled: false, dim: 8}, moe_parallelizer: {a: b}}\n"
    "  megatron_cfg: {enabled: false, tensor_model_parallel_size: 4, fp8_cfg: {enabled: true}}\n"
    "  make_sequence_length_divisible_by: ${policy.dtensor_cfg.tensor_parallel_size}\n"
    "  sequence_packing: {enabled: true, algorithm: modified_ffd, fuse_loss: true,\n"
    "      train_mb_tokens: \"${mul:${policy.max_total_sequence_length}, 2}\"}\n"
    "  max_total_sequence_length: 64\n"
    "  optimizer: {name: torch.optim.AdamW, kwargs: {lr: 5.0e-6, eps: 1e-8, foreach: false}}\n"
    "  scheduler: null\n"
    "  generation:\n"
    "    backend: vllm\n"
    "    port_range_low: 3000\n"
    "    temperature: 0.5\n"
    "    top_k: null\n"
    "    val_temperature: ${.temperature}\n"
    "    val_top_k: ${.top_k}\n"
    "    stop_strings: null\n"
    "    stop_token_ids: null\n"
    "    bad_words: null\n"
    "    refit_cfg: {nixl: {device: cuda}}\n"
    "    mcore_generation_config: {max_tokens: 16384, parsers: []}\n"
    "    vllm_cfg: {precision: \"${policy.precision}\", kv_cache_dtype: auto}\n"
    "    vllm_kwargs: {}\n"
    "    colocated: {enabled: true, resources: {num_nodes: null}}\n"
    "data:\n"
    "  max_input_seq_length: null\n"
    "  use_multiple_dataloader: false\n"
    "  train: {dataset_name: Some-Set, split: train, data_path: q.jsonl}\n"
    "  validation: null\n"
    "  default: {prompt_file: cot.txt, processor: math_hf_data_processor, env_name: math}\n"
    "env: {math: {}}\n"
    "checkpointing: {checkpoint_dir: results/g, keep_top_k: null, metric_name: null,\n"
    "    model_save_format: null, ft_keep_latest_k: null, is_async: false}\n"
    "cluster: {gpus_per_node: 1, num_nodes: 1, segment_size: null, master_port_range_low: 1400}\n";

static void every_key_of_theirs_is_known(void **state)
{
    (void)state;
    put("base.yaml", grpo);
    put("sub/cot.txt", "{}");
    put("sub/r.yaml", "defaults: ../base.yaml\n"
                      "policy: {max_total_sequence_length: 32}\n"
                      "data: {_override_: true, train: {data_path: t.jsonl}, \n"
                      "    default: {prompt_file: cot.txt}}\n");
    load("base.yaml");
    bind_well();
    assert_string_equal(tp_config_notice(config),
                        "keys without effect here, or without all of it:\n"
                        "  Sequences are packed first fit, longest first: "
                        "policy.sequence_packing.algorithm\n"
                        "  Several processes share the layers by it, as by "
                        "distributed.tensor_parallel_size; one process has all: "
                        "policy.dtensor_cfg.tensor_parallel_size\n"
                        "  The model that is trained generates: policy.generation.backend, "
                        "policy.generation.colocated\n"
                        "  Sequences need no padding: policy.make_sequence_length_divisible_by");
    assert_int_equal(o.loop.val_period, -1);
    assert_int_equal(o.loop.val_start_at, 6);
    assert_int_equal(tp_grpo_options_of(&o)->val_batch_size, 256);
    assert_int_equal(tp_grpo_options_of(&o)->max_val_samples, 0);
    assert_int_equal(tp_grpo_options_of(&o)->val_generations, 2);
    assert_int_equal(o.data.max_input_seq_length, 64);
    assert_int_equal(o.generation.stop_strings.n, 0);
    assert_int_equal(o.generation.stop_token_ids.n, 0);
    assert_true(o.generation.val_temperature == 0.5);
    assert_false(tp_grpo_options_of(&o)->estimator_normalize);
    assert_int_equal(o.policy.packing.train_mb_tokens, 128);
    load("sub/r.yaml");
    bind_well();
    assert_int_equal(o.policy.packing.train_mb_tokens, 64);
    assert_string_equal(o.data.train.data_path, "t.jsonl");
    assert_string_equal(o.data.fallback.rows.prompt_file, "sub/cot.txt");
}

static void what_changes_the_result_is_refused(void **state)
{
    static const char *const cases[] = {
        "policy.draft.enabled=true",
        "policy.router_replay.enabled=true",
        "policy.hf_config_overrides={rope_theta: 5}",
        "policy.is_vlm=true",
        "policy.quant_cfg=x.yaml",
        "policy.generation.real_quant=true",
        "policy.generation.vllm_cfg.precision=fp8",
        "policy.generation.vllm_cfg.kv_cache_dtype=fp8",
        "policy.generation.bad_words=[a]",
        "grpo.async_grpo.enabled=true",
        "grpo.invalid_tool_call_advantage=-5",
        "grpo.malformed_thinking_advantage=-5",
        "grpo.adv_estimator.reward_weights=[1]",
        "grpo.adv_estimator.name=gdpo",
        "on_policy_distillation={enabled: true}",
        "reward_penalties.penalize_unwanted_tokens=true",
        "async_rl.sampler.max_staleness_versions=1",
        "data.use_multiple_dataloader=true",
        "data.validation.repeat=16",
        "policy.optimizer.kwargs.exp_avg_dtype=torch.bfloat16",
        "policy.optimizer.name=transformer_engine.pytorch.optimizers.fused_adam.FusedAdam",
        "policy.megatron_cfg={enabled: true, peft: {enabled: true}}"};
    (void)state;
    put("base.yaml", grpo);
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        load("base.yaml");
        override(cases[i]);
        if (tp_train_options_bind(config, &o, &err) != TP_ERR_CONFIG)
            fail_msg("%s was taken", cases[i]);
    }
    load("base.yaml");
    assert_int_equal(tp_config_override(config, "data.train=[{data_path: a}]", &err),
                     TP_ERR_CONFIG); /* over a mapping */
    override("data.train=null");
    override("data.train=[{data_path: a}]");
    assert_int_equal(tp_train_options_bind(config, &o, &err), TP_ERR_CONFIG);
}

static const char megatron[] =
    "sft: {max_num_steps: 5}\n"
    "policy:\n"
    "  model_name: m\n"
    "  max_grad_norm: 0.5\n"
    "  optimizer: null\n"
    "  megatron_cfg:\n"
    "    enabled: true\n"
    "    activation_checkpointing: true\n"
    "    tensor_model_parallel_size: 2\n"
    "    optimizer: {optimizer: adam, lr: 4.0e-6, min_lr: 1.0e-6, weight_decay: 0.25,\n"
    "        adam_beta1: 0.8, adam_beta2: 0.95, adam_eps: 1e-7, clip_grad: "
    "\"${policy.max_grad_norm}\"}\n"
    "    scheduler: {lr_decay_style: constant, lr_warmup_iters: 2, lr_warmup_init: 2.0e-6,\n"
    "        lr_decay_iters: 6}\n"
    "data: {train: {data_path: d.jsonl}}\n";

static void expect_rates(const char *file, const char *style, const double *wanted, int n)
{
    char text[100];
    tp_schedule s;
    load(file);
    snprintf(text, sizeof text, "policy.megatron_cfg.scheduler.lr_decay_style=%s", style);
    override(text);
    bind_well();
    assert_int_equal(tp_schedule_parse(o.policy.scheduler, &s, &err), TP_OK);
    for (int i = 0; i < n; i++)
        assert_true(fabs(tp_schedule_lr(&s, o.policy.optimizer.lr, i) * 1e6 - wanted[i]) < 1e-9);
}

static void megatron_s_optimizer_counts_while_it_is_enabled(void **state)
{
    (void)state;
    put("m.yaml", megatron);
    load("m.yaml");
    bind_well();
    assert_true(o.policy.optimizer.lr == 4.0e-6);
    assert_true(o.policy.optimizer.weight_decay == 0.25);
    expect_adamw(0.8, 0.95, 1e-7);
    assert_true(o.policy.max_grad_norm == 0.5);
    assert_int_equal(o.policy.recompute, TP_RECOMPUTE_FULL);
    assert_string_equal(tp_config_notice(config),
                        "keys without effect here, or without all of it:\n"
                        "  Decays all weights, while Megatron leaves out biases and norms: "
                        "policy.megatron_cfg.optimizer.weight_decay\n"
                        "  Several processes share the layers by it, as by "
                        "distributed.tensor_parallel_size; one process has all: "
                        "policy.megatron_cfg.tensor_model_parallel_size");
    expect_rates("m.yaml", "constant", (const double[]){2, 3, 4, 4, 4, 4, 4, 4}, 8);
    expect_rates("m.yaml", "linear", (const double[]){2, 3, 4, 3.25, 2.5, 1.75, 1, 1}, 8);
    expect_rates("m.yaml", "cosine",
                 (const double[]){2, 3, 4, 3.5606601717798212, 2.5, 1.4393398282201788, 1, 1}, 8);
}

/* A warm-up from 0, and a decay to it; torch's LinearLR begins above 0. */
static void megatron_s_rates_may_be_0(void **state)
{
    (void)state;
    put("zero.yaml", "defaults: m.yaml\n"
                     "policy: {megatron_cfg: {optimizer: {min_lr: 0},\n"
                     "         scheduler: {lr_warmup_init: 0.0, lr_warmup_iters: 4}}}\n");
    put("m.yaml", megatron);
    expect_rates("zero.yaml", "linear", (const double[]){0, 1, 2, 3, 4, 2, 0, 0}, 8);
    expect_rates("zero.yaml", "cosine", (const double[]){0, 1, 2, 3, 4, 2, 0, 0}, 8);
    put("one.yaml",
        "defaults: zero.yaml\npolicy: {megatron_cfg: {scheduler: {lr_warmup_iters: 1}}}\n");
    expect_rates("one.yaml", "constant", (const double[]){0, 4, 4}, 3);
}

static void what_megatron_asserts_is_refused_by_its_key(void **state)
{
    static const char *const cases[][2] = {
        {"optimizer.min_lr=5.0e-6", "optimizer.min_lr: must be from 0 to "},
        {"optimizer.min_lr=-1.0e-6", "optimizer.min_lr: must be from 0 to "},
        {"scheduler.lr_warmup_init=5.0e-6", "scheduler.lr_warmup_init: must be from 0 to "},
        {"scheduler.start_weight_decay=0.5", "scheduler.start_weight_decay: must be "},
        {"scheduler.end_weight_decay=0.5", "scheduler.end_weight_decay: must be "}};
    (void)state;
    put("m.yaml", megatron);
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        char text[100], says[200];
        bool is_rate = i < 3;
        load("m.yaml");
        snprintf(text, sizeof text, "+policy.megatron_cfg.%s", cases[i][0]);
        override(text);
        snprintf(says, sizeof says,
                 "command line: policy.megatron_cfg.%spolicy.megatron_cfg.optimizer.%s",
                 cases[i][1],
                 is_rate ? "lr, which is 4e-06"
                         : "weight_decay, which is 0.25: weight decay does not change");
        expect_refusal(says);
    }
    load("m.yaml");
    override("+policy.megatron_cfg.scheduler.start_weight_decay=0.25");
    override("+policy.megatron_cfg.scheduler.end_weight_decay=${policy.megatron_cfg.optimizer."
             "weight_decay}");
    bind_well();
}

static void clip_grad_of_megatron_counts(void **state)
{
    (void)state;
    put("m.yaml", megatron);
    load("m.yaml");
    override("policy.megatron_cfg.optimizer.clip_grad=0.0");
    bind_well();
    assert_true(isnan(o.policy.max_grad_norm));
    load("m.yaml");
    override("policy.megatron_cfg.optimizer.clip_grad=2.5");
    bind_well();
    assert_true(o.policy.max_grad_norm == 2.5);
}

static void no_optimizer_is_an_error(void **state)
{
    (void)state;
    put("m.yaml", megatron);
    load("m.yaml");
    override("policy.megatron_cfg.enabled=false");
    expect_refusal("m.yaml:5: policy.optimizer: there is no optimizer; give "
                   "policy.optimizer.kwargs.lr, or leave the key out for the defaults");
    load("m.yaml");
    override("policy.optimizer.kwargs.lr=1");
    expect_refusal("command line: policy.optimizer: policy.megatron_cfg is enabled, and its "
                   "optimizer and scheduler count; set policy.megatron_cfg.optimizer.lr and the "
                   "like, or policy.megatron_cfg.enabled=false");
}

static void a_file_that_trains_nothing_is_no_recipe(void **state)
{
    (void)state;
    put("p.yaml", "performance_analysis: {a: 1}\npolicy: {model_name: m}\n");
    load("p.yaml");
    expect_refusal("p.yaml: no section sft, dpo or grpo says what to train (there are: "
                   "performance_analysis, policy); add one; 'temper config import FILE' makes a "
                   "recipe of a file of TRL or Axolotl");
    put("config.json", "{\"model_type\": \"llama\", \"hidden_size\": 64}\n");
    load("config.json");
    expect_refusal("config.json: no section sft, dpo or grpo says what to train (there are: "
                   "model_type, hidden_size); it describes a model, whose folder is "
                   "policy.model_name");
    put("e.yaml", "generation: {model_name: m}\n");
    load("e.yaml");
    expect_refusal("e.yaml: no section sft, dpo or grpo says what to train (there are: "
                   "generation); evaluations are run by temper eval");
}

static void a_section_of_another_algorithm_is_named(void **state)
{
    (void)state;
    put("s.yaml", "sft: {}\nloss_fn: {ratio_clip_min: 0.2}\npolicy: {model_name: m}\n"
                  "data: {train: {data_path: d}}\n");
    load("s.yaml");
    expect_refusal("s.yaml:2: loss_fn is part of GRPO, and this configuration has a section sft");
}

static void a_goal_needs_a_metric_and_a_threshold(void **state)
{
    (void)state;
    put("base.yaml", grpo);
    load("base.yaml");
    override("grpo.stop_at_validation_threshold=0.5");
    expect_refusal("command line: grpo.stop_at_validation_threshold: of what? set "
                   "grpo.stop_at_validation_metric to accuracy or pass_k");
    load("base.yaml");
    override("grpo.stop_at_validation_metric=pass_k");
    expect_refusal("base.yaml:11: grpo.stop_at_validation_threshold: must be set where "
                   "grpo.stop_at_validation_metric is");
}

static void files_that_are_not_there_are_named_together(void **state)
{
    (void)state;
    put("sub/s.yaml", "sft: {}\npolicy: {model_name: Some/Model}\n"
                      "data: {train: {data_path: d.jsonl}}\n");
    load("sub/s.yaml");
    bind_well();
    assert_int_equal(tp_train_options_check_files(config, &o, &err), TP_ERR_IO);
    assert_string_equal(err.message,
                        "sub/s.yaml:2: policy.model_name: there is no 'Some/Model', neither here "
                        "nor in sub; models are not downloaded: 'hf download NAME --local-dir "
                        "FOLDER' fetches one\n"
                        "  sub/s.yaml:3: data.train.data_path: there is no 'd.jsonl', neither here "
                        "nor in sub");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, enter, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(every_key_of_theirs_is_known),
                                       CASE(what_changes_the_result_is_refused),
                                       CASE(megatron_s_optimizer_counts_while_it_is_enabled),
                                       CASE(megatron_s_rates_may_be_0),
                                       CASE(what_megatron_asserts_is_refused_by_its_key),
                                       CASE(clip_grad_of_megatron_counts),
                                       CASE(no_optimizer_is_an_error),
                                       CASE(a_file_that_trains_nothing_is_no_recipe),
                                       CASE(a_section_of_another_algorithm_is_named),
                                       CASE(a_goal_needs_a_metric_and_a_threshold),
                                       CASE(files_that_are_not_there_are_named_together)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
