/* test_options.c - options of training runs and what must hold across keys. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/platform.h"
#include "engine/train/options.h"

static tp_config *config;
static tp_train_options o;
static tp_error err;
static char scratch[64];

static int enter(void **state)
{
    memset(&err, 0, sizeof err);
    return chdir(TP_SOURCE_DIR);
}

static int leave(void **state)
{
    tp_config_release(config);
    config = NULL;
    return 0;
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

/* The least that a run needs. */
static void load_minimum(void)
{
    load(NULL);
    override("policy.model_name=model");
    override("data.train.data_path=train.jsonl");
}

static void the_defaults_are_those_of_nemo_rl(void **state)
{
    load_minimum();
    bind_well();

    assert_int_equal(o.seed, 42);
    assert_int_equal(o.loop.max_num_epochs, 1);
    assert_int_equal(o.loop.max_num_steps, 60);
    assert_int_equal(o.loop.val_period, 10);
    assert_int_equal(o.loop.val_batches, 8);
    assert_int_equal(o.loop.val_global_batch_size, 32);
    assert_true(o.loop.val_at_start);
    assert_int_equal(o.policy.train_global_batch_size, 32);
    assert_int_equal(o.policy.train_micro_batch_size, 1);
    assert_int_equal(o.policy.max_total_sequence_length, 1024);
    assert_int_equal(o.policy.precision, TP_PRECISION_BFLOAT16);
    assert_true(o.policy.max_grad_norm == 1.0);
    assert_true(o.policy.optimizer.lr == 5e-6);
    assert_true(o.policy.optimizer.weight_decay == 0.1);
    expect_adamw(0.9, 0.98, 1e-5);
    assert_null(o.policy.scheduler);
    assert_string_equal(o.checkpointing.metric_name, "val:val_loss");
    assert_int_equal(o.checkpointing.save_period, 10);
    assert_int_equal(o.checkpointing.keep_top_k, 3);
    assert_false(o.checkpointing.higher_is_better);
    assert_true(isnan(o.checkpointing.must_save_by_s));
    assert_null(tp_config_notice(config));
}

static void defaults_follow_what_they_refer_to(void **state)
{
    load_minimum();
    override("run.name=x");
    override("sft.seed=7");
    override("policy.max_total_sequence_length=256");
    override("policy.train_micro_batch_size=4");
    override("data.default.input_key=question");
    bind_well();

    assert_string_equal(o.run_dir, "runs/x");
    assert_string_equal(o.checkpointing.checkpoint_dir, "runs/x/checkpoints");
    assert_string_equal(o.policy.tokenizer_name, "model");
    assert_string_equal(o.policy.chat_template, "default");
    assert_true(o.policy.packing.enabled);
    assert_int_equal(o.policy.packing.train_mb_tokens, 1024);
    assert_int_equal(o.data.max_input_seq_length, 256);
    assert_int_equal(o.seed, 7);
    assert_int_equal(o.data.arithmetic.of.seed, 7);
    assert_string_equal(o.data.train.rows.input_key, "question");
    assert_string_equal(o.data.validation.rows.input_key, "question");
    assert_null(o.data.train.rows.output_key);
    assert_true(isnan(o.data.train.split_validation_size));
}

static void recomputation_has_two_names(void **state)
{
    load_minimum();
    bind_well();
    assert_int_equal(o.policy.recompute, TP_RECOMPUTE_NONE);

    load_minimum();
    override("policy.dtensor_cfg.activation_checkpointing=true");
    bind_well();
    assert_int_equal(o.policy.recompute, TP_RECOMPUTE_FULL);

    load_minimum();
    override("policy.recompute=every:3");
    bind_well();
    assert_int_equal(o.policy.recompute, TP_RECOMPUTE_EVERY);
    assert_int_equal(o.policy.recompute_every, 3);
}

static void times_and_ranges_are_read(void **state)
{
    load_minimum();
    override("profile.steps=3:5");
    override("checkpointing.checkpoint_must_save_by=01:02:03:04");
    override("checkpointing.keep_top_k=null");
    override("engine.isa=avx512");
    override("progress=json");
    override("train.nonfinite_policy=skip");
    bind_well();

    assert_int_equal(o.profile_start, 3);
    assert_int_equal(o.profile_stop, 5);
    assert_true(o.checkpointing.must_save_by_s == 93784);
    assert_true(o.checkpointing.keep_top_k == TP_OPT_UNSET_INT);
    assert_int_equal(o.engine.isa, 3);
    assert_int_equal(o.progress, TP_PROGRESS_JSON);
    assert_int_equal(o.train.nonfinite_policy, TP_BAD_SKIP);
}

static void mistakes_are_explained(void **state)
{
    static const char *const cases[][2] = {
        {"policy.model_name=null",
         "command line: policy.model_name: must be set; add policy.model_name=FOLDER, or "
         "policy.init=random and policy.model_config=FILE for a model from scratch"},
        {"policy.init=random",
         "default: policy.model_config: must be set when policy.init is random; give the path of "
         "a config.json"},
        {"policy.tokenizer.name=null",
         "command line: policy.tokenizer.name: must be set, or policy.tokenizer.train_vocab_size "
         "for a tokenizer of the run's own"},
        {"policy.tokenizer.train_vocab_size=300",
         "command line: policy.tokenizer.train_vocab_size: there is a tokenizer already, model; "
         "set one of the two to null"},
        {"policy.dynamic_batching.enabled=true",
         "command line: policy.dynamic_batching.enabled: packing and dynamic batching exclude "
         "each other; set policy.sequence_packing.enabled=false"},
        {"policy.sequence_packing.train_mb_tokens=1000",
         "command line: policy.sequence_packing.train_mb_tokens: 1000 tokens do not hold a "
         "sequence of policy.max_total_sequence_length, 1024"},
        {"data.train.data_path=null",
         "command line: data.train.data_path: must be set to a JSONL file, or "
         "data.train.dataset_name to arithmetic"},
        {"data.arithmetic.operators=+/",
         "command line: data.arithmetic.operators: expected one or more of + - *, as in \"+-\""},
        {"policy.optimizer.kwargs.betas=[0.9]",
         "command line: policy.optimizer.kwargs.betas: expected two numbers below 1, as in "
         "[0.9, 0.98]"},
        {"checkpointing.metric_name=val_loss",
         "command line: checkpointing.metric_name: \"val_loss\" ranks no checkpoints of sft; "
         "known: val:val_loss, train:loss, or null for the newest"},
        {"policy.optimizer.kwargs.amsgrad=true",
         "command line: policy.optimizer.kwargs.amsgrad: true is refused, as the result would be "
         "another: The largest second moments so far are not kept; set it to false"},
        {"policy.optimizer.kwargs.maximize=true",
         "command line: policy.optimizer.kwargs.maximize: true is refused, as the result would be "
         "another: Losses are made smaller; set it to false"},
        {"checkpointing.metric_name=val:accuracy",
         "command line: checkpointing.metric_name: \"val:accuracy\" ranks no checkpoints of sft; "
         "known: val:val_loss, train:loss, or null for the newest"},
        {"profile.steps=5:5",
         "command line: profile.steps: \"5:5\" is no range of steps; write start:stop, from 1 and "
         "without stop, as in 3:5 for steps 3 and 4"},
        {"profile.steps=3: 5",
         "command line: profile.steps: \"3: 5\" is no range of steps; write start:stop, from 1 and "
         "without stop, as in 3:5 for steps 3 and 4"},
        {"checkpointing.checkpoint_must_save_by=01:30",
         "command line: checkpointing.checkpoint_must_save_by: \"01:30\" is no duration; write "
         "days:hours:minutes:seconds, as in 00:03:50:00"},
        {"policy.max_grad_nrom=1",
         "command line: unknown key policy.max_grad_nrom; did you mean policy.max_grad_norm?"},
        {"policy.optimizer.lr=1", "command line: unknown key policy.optimizer.lr; did you mean "
                                  "policy.optimizer.kwargs.lr?"},
        {"ppo.num_prompts_per_step=8",
         "command line: unknown key ppo; known keys at the top are loss_fn, env, async_rl, "
         "data_plane, reward_penalties, on_policy_distillation, seed, run, progress, optimization, "
         "sft, policy, data, checkpointing, logger, engine, "
         "distributed, train, monitor, performance_analysis, profile"},
        {"policy.precision=fp16",
         "command line: policy.precision: \"fp16\" is not one of float32, bfloat16, float16"},
        {"policy.draft={enabled: true}",
         "command line: policy.draft.enabled: true is refused, as the result would "
         "be another: No draft model is trained; set it to false"},
        {"policy.dtensor_cfg.lora_cfg={enabled: true, dropout: 0.1}",
         "default: policy.dtensor_cfg.lora_cfg.dropout_position: dropout on the adapter's output "
         "(post) is "
         "not supported; pre drops its input, as PEFT does"},
        {"policy.dtensor_cfg.lora_cfg={enabled: true, target_modules: [q_proj]}",
         "command line: policy.dtensor_cfg.lora_cfg.target_modules: match_all_linear is true, "
         "which "
         "takes all of them: set it to false"},
        {"policy.dtensor_cfg.lora_cfg={enabled: true, match_all_linear: false}",
         "default: policy.dtensor_cfg.lora_cfg.target_modules: must name modules when "
         "match_all_linear is "
         "false"},
        {"policy={peft: {enabled: true}, dtensor_cfg: {lora_cfg: {enabled: true}}}",
         "command line: policy.dtensor_cfg.lora_cfg.enabled: policy.peft.enabled is true as well: "
         "say it in one of the two"},
    };
    for (size_t i = 0; i < TP_COUNTOF(cases); i++) {
        load_minimum();
        override(cases[i][0]);
        assert_true(tp_train_options_bind(config, &o, &err) != TP_OK);
        assert_string_equal(err.message, cases[i][1]);
    }
}

/* The last micro-batch of a step is smaller then; the loss is the mean over the step's tokens. */
static void micro_batches_need_not_divide_the_batch(void **state)
{
    load_minimum();
    override("policy.train_micro_batch_size=5");
    override("policy.sequence_packing.enabled=false");
    bind_well();
}

static void bad_schedules_are_found_before_the_run(void **state)
{
    load_minimum();
    override("policy.scheduler=[{name: LinearRL}]");
    assert_int_equal(tp_train_options_bind(config, &o, &err), TP_ERR_CONFIG);
    assert_memory_equal(err.message, "command line: ", 14);
    assert_non_null(strstr(err.message, "LinearRL"));
}

static void schedules_take_what_torch_takes(void **state)
{
    static const char *const refused[][2] = {
        {"{name: CosineAnnealingLR}", "CosineAnnealingLR needs 'T_max', a whole number from 1"},
        {"{name: ExponentialLR}", "ExponentialLR needs 'gamma', from 0 to 1000"},
        {"{name: StepLR, kwargs: {gamma: 0.5}}", "StepLR needs 'step_size', a whole number from 1"},
        {"{name: LinearLR, kwargs: {start_factor: 0}}",
         "'start_factor' of LinearLR must be above 0 and up to 1"},
        {"{name: LinearLR, kwargs: {start_factor: 1.5}}",
         "'start_factor' of LinearLR must be above 0 and up to 1"},
        {"{name: LinearLR, kwargs: {end_factor: -0.1}}",
         "'end_factor' of LinearLR must be from 0 to 1"},
        {"{name: LinearLR, kwargs: {end_factor: 1.1}}",
         "'end_factor' of LinearLR must be from 0 to 1"},
        {"{name: LinearLR, kwargs: {total_iters: 2.5}}",
         "'total_iters' of LinearLR must be a whole number from 1"},
        {"{name: ConstantLR, kwargs: {factor: 2}}", "'factor' of ConstantLR must be from 0 to 1"},
        {"{name: StepLR, kwargs: {step_size: 0}}",
         "'step_size' of StepLR must be a whole number from 1"},
        {"{name: StepLR, kwargs: {step_size: 3, last_epoch: 7}}",
         "'last_epoch' of StepLR must be -1: a run resumes by itself"},
        {"{name: ExponentialLR, kwargs: {gamma: x}}",
         "'gamma' of ExponentialLR must be from 0 to 1000"},
        {"{name: ExponentialLR, kwargs: {gamma: 0.5, eta_min: 0}}",
         "ExponentialLR does not take 'eta_min'"},
        {"{name: LinearLR, kwarg: {total_iters: 9}}",
         "'kwarg' beside LinearLR; an entry is {name, kwargs}"},
        {"{name: LinearLR, kwargs: 7}", "kwargs of LinearLR must be a mapping"},
        {"{name: OneCycleLR}", "'OneCycleLR' is not supported; supported are LinearLR, ConstantLR, "
                               "CosineAnnealingLR, StepLR, ExponentialLR"},
        {"[]", "a list without a schedule; null keeps the rate constant"},
    };
    for (size_t i = 0; i < TP_COUNTOF(refused); i++) {
        char text[128], says[256];
        load_minimum();
        snprintf(text, sizeof text, "policy.scheduler=%s", refused[i][0]);
        snprintf(says, sizeof says, "command line: policy.scheduler: %s", refused[i][1]);
        override(text);
        assert_int_equal(tp_train_options_bind(config, &o, &err), TP_ERR_CONFIG);
        assert_string_equal(err.message, says);
    }
}

/* A recipe with every key that NeMo RL's own SFT recipes use. */
static const char nemo_rl_recipe[] =
    "sft: {max_num_epochs: 1, max_num_steps: 60, val_period: 10, val_batches: 8,\n"
    "      val_global_batch_size: 32, val_micro_batch_size: 1, val_at_start: true,\n"
    "      val_at_end: false, seed: 42}\n"
    "checkpointing: {enabled: true, checkpoint_dir: results/sft, metric_name: 'val:val_loss',\n"
    "      higher_is_better: false, keep_top_k: 3, save_period: 10, checkpoint_must_save_by: "
    "null,\n"
    "      model_save_format: safetensors, save_consolidated: false}\n"
    "policy:\n"
    "  model_name: some/model\n"
    "  tokenizer: {name: '${policy.model_name}', chat_template: '{{ messages }}',\n"
    "      chat_template_kwargs: null}\n"
    "  train_global_batch_size: 32\n"
    "  train_micro_batch_size: 1\n"
    "  max_total_sequence_length: 1024\n"
    "  precision: bfloat16\n"
    "  offload_optimizer_for_logprob: false\n"
    "  dtensor_cfg:\n"
    "    _v2: true\n"
    "    enabled: true\n"
    "    env_vars: {A: b}\n"
    "    cpu_offload: False\n"
    "    sequence_parallel: false\n"
    "    activation_checkpointing: false\n"
    "    tensor_parallel_size: 1\n"
    "    context_parallel_size: 1\n"
    "    custom_parallel_plan: null\n"
    "    automodel_kwargs: {}\n"
    "    lora_cfg: {enabled: False, target_modules: [], dim: 8, alpha: 32}\n"
    "  dynamic_batching:\n"
    "    enabled: false\n"
    "    train_mb_tokens: ${mul:${policy.max_total_sequence_length}, "
    "${policy.train_micro_batch_size}}\n"
    "    sequence_length_round: 64\n"
    "  sequence_packing:\n"
    "    enabled: False\n"
    "    train_mb_tokens: ${mul:${policy.max_total_sequence_length}, "
    "${policy.train_micro_batch_size}}\n"
    "    algorithm: modified_first_fit_decreasing\n"
    "    sequence_length_round: 64\n"
    "  make_sequence_length_divisible_by: ${policy.dtensor_cfg.tensor_parallel_size}\n"
    "  max_grad_norm: 1.0\n"
    "  optimizer:\n"
    "    name: torch.optim.AdamW\n"
    "    kwargs: {lr: 5.0e-6, weight_decay: 0.1, betas: [0.9, 0.98], eps: 1e-5,\n"
    "        foreach: False, fused: False}\n"
    "  megatron_cfg: {enabled: false, optimizer: {clip_grad: '${policy.max_grad_norm}'}}\n"
    "data:\n"
    "  max_input_seq_length: ${policy.max_total_sequence_length}\n"
    "  add_bos: true\n"
    "  add_eos: true\n"
    "  add_generation_prompt: false\n"
    "  shuffle: true\n"
    "  num_workers: 1\n"
    "  train: {dataset_name: ResponseDataset, data_path: a.jsonl, split: train}\n"
    "  validation: {dataset_name: ResponseDataset, data_path: b.jsonl, split: validation}\n"
    "  default: {prompt_file: null, system_prompt_file: null, processor: sft_processor,\n"
    "      input_key: question, output_key: answer}\n"
    "logger:\n"
    "  log_dir: logs\n"
    "  wandb_enabled: true\n"
    "  tensorboard_enabled: true\n"
    "  mlflow_enabled: false\n"
    "  swanlab_enabled: false\n"
    "  monitor_gpus: true\n"
    "  wandb: {project: p, name: 'n-${data.train.dataset_name}'}\n"
    "  tensorboard: {log_dir: x}\n"
    "  gpu_monitoring: {collection_interval: 10, flush_interval: 10}\n"
    "cluster: {gpus_per_node: 1, num_nodes: 1}\n";

static void recipes_of_nemo_rl_bind_as_they_are(void **state)
{
    snprintf(scratch, sizeof scratch, "/tmp/temper-options-XXXXXX");
    assert_non_null(mkdtemp(scratch));
    char path[128];
    snprintf(path, sizeof path, "%s/sft.yaml", scratch);
    assert_int_equal(tp_file_write_atomic(path, nemo_rl_recipe, sizeof nemo_rl_recipe - 1, NULL),
                     TP_OK);

    load(path);
    bind_well();

    assert_string_equal(o.policy.tokenizer_name, "some/model");
    assert_string_equal(o.data.train.rows.input_key, "question");
    assert_string_equal(o.data.validation.data_path, "b.jsonl");
    assert_false(o.policy.packing.enabled);
    assert_true(o.logger.tensorboard_enabled);
    assert_string_equal(o.logger.tensorboard_dir, "x");
    assert_null(o.logger.prometheus_path);
    assert_string_equal(tp_config_notice(config),
                        "keys without effect here, or without all of it:\n"
                        "  Sequences are packed first fit, longest first: "
                        "policy.sequence_packing.algorithm\n"
                        "  Packed sequences are not rounded: "
                        "policy.sequence_packing.sequence_length_round\n"
                        "  Models are always written whole: checkpointing.save_consolidated\n"
                        "  Logs are in run.dir: logger.log_dir\n"
                        "  Nothing is sent over a network: logger.tensorboard_enabled and "
                        "logger.prometheus.path write files: logger.wandb_enabled\n"
                        "  No GPU is watched through Ray: logger.monitor_gpus");
    assert_int_equal(tp_dir_remove(scratch, NULL), TP_OK);
}

static bool is_open(const char *key)
{
    const char *text = tp_json_str(tp_config_find(config, key));
    return text && !strcmp(text, "\?\?\?");
}

static void every_recipe_binds(void **state)
{
    static const char *const to_be_set[] = {"policy.model_name", "data.train.data_path",
                                            "data.validation.data_path"};
    DIR *dir = opendir("recipes");
    assert_non_null(dir);
    int n = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (!tp_str_ends(entry->d_name, ".yaml") || strstr(entry->d_name, "eval"))
            continue; /* those of evaluations have keys of their own */
        char path[300];
        snprintf(path, sizeof path, "recipes/%s", entry->d_name);
        load(path);
        for (size_t i = 0; i < TP_COUNTOF(to_be_set); i++) {
            if (!is_open(to_be_set[i]))
                continue;
            char text[128];
            snprintf(text, sizeof text, "%s=some.jsonl", to_be_set[i]);
            override(text);
        }
        bind_well();
        assert_null(tp_config_notice(config));
        n++;
    }
    closedir(dir);
    assert_true(n >= 7);
}

static void recipes_say_what_has_to_be_set(void **state)
{
    load("recipes/sft.yaml");
    assert_int_equal(tp_train_options_bind(config, &o, &err), TP_ERR_CONFIG);
    assert_string_equal(
        err.message, "must be set (they are \?\?\?): policy.model_name (recipes/sft.yaml:16), "
                     "data.train.data_path (recipes/sft.yaml:37); write them in the recipe or add "
                     "policy.model_name=... and so on to the command line");
}

static void every_key_is_documented(void **state)
{
    size_t n_keys;
    tp_option *table = tp_train_options_of(NULL, NULL, &n_keys);
    for (size_t i = 0; i < n_keys; i++) {
        const tp_option *option = &table[i];
        assert_non_null(option->doc);
        size_t n = strlen(option->doc);
        if (n < 6 || option->doc[n - 1] != '.')
            fail_msg("%s: \"%s\" is no sentence", option->name, option->doc);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(option->name, table[j].name);
    }
    free(table);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, enter, leave)

/* The arguments of torch.optim.AdamW (2.9), but params. */
static void every_argument_of_adamw_is_known(void **state)
{
    static const char *const arguments[] = {
        "lr",       "betas",   "eps",        "weight_decay",   "amsgrad",
        "maximize", "foreach", "capturable", "differentiable", "fused"};
    size_t n;
    tp_option *table = tp_train_options_of(tp_algorithms[0], tp_optimizer_at(0), &n);
    for (size_t a = 0; a < sizeof arguments / sizeof *arguments; a++) {
        char key[80];
        bool is_known = false;
        snprintf(key, sizeof key, "policy.optimizer.kwargs.%s", arguments[a]);
        for (size_t i = 0; i < n; i++)
            is_known |= strcmp(table[i].name, key) == 0;
        if (!is_known)
            fail_msg("%s is unknown", key);
    }
    free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_argument_of_adamw_is_known),
        CASE(the_defaults_are_those_of_nemo_rl),
        CASE(defaults_follow_what_they_refer_to),
        CASE(recomputation_has_two_names),
        CASE(times_and_ranges_are_read),
        CASE(mistakes_are_explained),
        CASE(micro_batches_need_not_divide_the_batch),
        CASE(bad_schedules_are_found_before_the_run),
        CASE(schedules_take_what_torch_takes),
        CASE(recipes_of_nemo_rl_bind_as_they_are),
        CASE(every_recipe_binds),
        CASE(recipes_say_what_has_to_be_set),
        CASE(every_key_is_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
