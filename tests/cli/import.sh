# Configurations of other trainers: what each key becomes, and recipes that load.
. "$SOURCE/tests/cli/lib.sh"

# The recipe without remarks; 2e-05 is Python's spelling of 2e-5.
plain() {
    sed 's/ *#.*//; s/e-0/e-/' "$1"
}

# Defaults of the real TRL, all of them spelled out, are those that an empty file gets.
echo '{}' >empty.yaml
for algorithm in sft dpo grpo; do
    "$TOOL" get "$SOURCE/tests/data/reference/trl_defaults.json" $algorithm >$algorithm.json
    run config import --from trl --algorithm $algorithm $algorithm.json all.yaml
    expect 0
    run config import --from trl --algorithm $algorithm empty.yaml none.yaml
    expect 0
    expect_out "TRL for $algorithm, 0 keys"
    plain all.yaml >all
    plain none.yaml >none
    cmp -s all none || fail "$algorithm: $(diff none all)"
    run config none.yaml
    expect 0 "policy.scheduler.kwargs.total_iters"
done

# What training_args.to_json_string() writes is taken whole, and recognised by itself.
for algorithm in sft dpo grpo; do
    "$TOOL" get "$SOURCE/tests/data/reference/trl_defaults.json" written.$algorithm >args.json
    run config import args.json args.yaml
    expect 0
    expect_out "TRL for $algorithm"
    for line in "run:" "dir: out" "precision: float32" "max_num_steps: 20" "recompute: full" "total_iters: 20"; do
        grep -qF "$line" args.yaml || fail "$algorithm as written lacks '$line'"
    done
done
printf '%s\n' 'activation_checkpointing: false' 'max_steps: 3' >new.yaml
run config import new.yaml
expect_out "recompute: none"

printf '%s\n' 'use_peft: yes' 'use_dora: off' 'use_rslora: on' 'max_steps: 3' >new.yaml
run config import new.yaml
expect 0
expect_out "use_rslora: true" "enabled: true"
grep -q use_dora out && fail "off is on"
# DPOConfig stops all dropout unless it is told not to, GRPOConfig does not; SFTConfig has no such key.
for case in sft=0.2 dpo=0.0 grpo=0.2; do
    printf '%s\n' 'use_peft: true' 'lora_dropout: 0.2' 'max_steps: 3' >new.yaml
    run config import --algorithm "${case%=*}" --partly new.yaml
    grep -q "dropout: ${case#*=}" out || fail "dropout of adapters from TRL's $case"
done

# What the file says, by its keys alone, and that the recipe trains.
make_model
for i in 1 2 3 4 5 6 7; do
    echo '{"prompt": "the dog", "completion": " jumps"}'
done >rows.jsonl
cat >trl.yaml <<'END'
model_name_or_path: model
dataset_name: rows.jsonl
output_dir: runs/imported
learning_rate: 2e-3
num_train_epochs: 2
per_device_train_batch_size: 1
gradient_accumulation_steps: 2
max_length: 64
packing: false
bf16: false
gradient_checkpointing: false
lr_scheduler_type: cosine
warmup_steps: 2
logging_steps: 1
report_to: none
END
run config import trl.yaml recipe.yaml
expect 0
expect_out "trl.yaml: TRL for sft, 15 keys" "learning_rate: 2e-3  ->  policy.optimizer.kwargs.lr" \
    "without effect" "  packing: false"
run config --json recipe.yaml
for pair in sft.max_num_epochs=2 sft.max_num_steps=8 policy.train_global_batch_size=2 policy.precision=float32 \
    policy.optimizer.kwargs.weight_decay=0 policy.max_grad_norm=1 policy.recompute=none \
    policy.scheduler.0.kwargs.total_iters=2 policy.scheduler.1.kwargs.T_max=6 run.dir=runs/imported; do
    is "${pair%%=*}" "$("$TOOL" get out "${pair%%=*}")" "${pair#*=}"
done
run plan recipe.yaml
expect 0
run train --quiet recipe.yaml policy.tokenizer.chat_template=null
expect 0
is steps "$("$TOOL" get runs/imported/run.json step)" 8

# Refused and unknown keys are named together, and no recipe is written.
cat >bad.yaml <<'END'
learning_rate: 1e-5
packing: true
neftune_noise_alpha: 5
lr_scheduler_type: polynomial
lerning_rate: 3
optim: lion_8bit
END
run config import bad.yaml bad-recipe.yaml
expect 2 "bad.yaml: refused: neftune_noise_alpha, lr_scheduler_type, optim; unknown: lerning_rate"
expect_out "Did you mean learning_rate?"
[ ! -e bad-recipe.yaml ] || fail "a recipe was written although keys were refused"
run config import bad.yaml bad-recipe.yaml --partly
expect 0 "left out of the recipe"
[ -s bad-recipe.yaml ] || fail "--partly wrote no recipe"
printf '%s\n' 'max_steps: 3' 'lr_scheduler_type: cosine' "lr_scheduler_kwargs: '{\"num_cycles\": 2}'" >kwargs.yaml
run config import kwargs.yaml
expect 2 "refused: lr_scheduler_kwargs"
# A value that Temper refuses is refused where it came from.
echo 'learning_rate: -1
max_steps: 3' >low.yaml
run config import low.yaml
expect 2 "low.yaml:1 learning_rate: policy.optimizer.kwargs.lr"

# Conversations that are seen: TRL learns every word of them.
echo '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}' >talk.jsonl
printf '%s\n' 'dataset_name: talk.jsonl' 'max_steps: 3' 'max_length: 64' >talk.yaml
run config import talk.yaml
expect 2 "refused: assistant_only_loss" "--partly"
echo '{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}' >talk.jsonl
run config import talk.yaml
expect 2 "refused: assistant_only_loss"
echo 'assistant_only_loss: true' >>talk.yaml
run config import talk.yaml
expect 0

# TRL puts a chat template around conversations alone, and learns text where there are no messages and no prompt.
template() { # LINE-OF-ROWS ARGUMENT...: the recipe says that there is no template
    echo "$1" >plain.jsonl
    shift
    printf '%s\n' 'dataset_name: plain.jsonl' 'max_steps: 3' "$@" >plain.yaml
    run config import plain.yaml
    expect 0
    grep -q 'chat_template: null' out
}
template '{"prompt": "a", "completion": "b"}' 'max_length: 64' || fail "a template around strings"
grep -qF "Rows are plain text, around which TRL puts no chat template." err || fail "no remark"
template '{"prompt": "a", "chosen": "b", "rejected": "c"}' 'beta: 0.3' 'precompute_ref_log_probs: true' ||
    fail "a template around strings of pairs"
template '{"prompt": "a"}' 'num_generations: 8' 'reward_funcs: [accuracy_reward]' || fail "a template around prompts"
template '{"prompt": [{"role": "user", "content": "a"}], "completion": [{"role": "assistant", "content": "b"}]}' \
    'max_length: 64' && fail "no template around messages"
template '{"prompt": "a"}' 'num_generations: 8' 'reward_funcs: [accuracy_reward]' 'dataset_prompt_column: prompt' &&
    fail "no template around what a script makes messages of"
template '{"instruction": "a", "output": "b", "text": "c"}' 'max_length: 64' && fail "no template around a text"
grep -q 'text_key: text' out || fail "the text of Alpaca's rows"
template '{"prompt": "a", "completion": "b", "text": "c"}' 'max_length: 64' 'dataset_text_field: text'
grep -q 'text_key' out && fail "the text before the prompt"
for list in '"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]' \
    '"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]'; do
    template "{\"prompt\": \"a\", $list}" 'max_length: 64' 'assistant_only_loss: true' &&
        fail "no template around a conversation beside its prompt"
done
template '{"prompt": "a"}' 'max_length: 64' && fail "a prompt without completion is plain text"
# Of a file that is large the first line is read.
echo '{"prompt": "a", "completion": "b"}' >large.jsonl
truncate -s 300M large.jsonl
printf '%s\n' 'dataset_name: large.jsonl' 'max_steps: 3' 'max_length: 64' >plain.yaml
run config import plain.yaml
rm large.jsonl
expect 0
expect_out "chat_template: null"
printf '%s\n' 'dataset_name: some/set' 'max_steps: 3' 'max_length: null' >plain.yaml
run config import plain.yaml plain-recipe.yaml
expect 0
expect_out "for such policy.tokenizer.chat_template=null" "null there; a value is needed here."
run train plain-recipe.yaml policy.model_name=model data.train.data_path=rows.jsonl
expect 2 "policy.max_total_sequence_length: must be set (it is ???)"

# Preferences and rewards.
printf '%s\n' 'loss_type: ipo' 'beta: 0.3' 'precompute_ref_log_probs: true' 'max_steps: 4' >dpo.yaml
run config import dpo.yaml dpo-recipe.yaml
expect 0
grep -q "preference_loss: ipo" dpo-recipe.yaml || fail "loss_type"
grep -q "preference_average_log_probs: true" dpo-recipe.yaml || fail "ipo's means"
printf '%s\n' 'num_generations: 4' 'per_device_train_batch_size: 8' 'gradient_accumulation_steps: 2' 'loss_type: dr_grpo' \
    'max_completion_length: 100' 'reward_funcs: [accuracy_reward]' 'max_steps: 4' 'num_iterations: 1' >grpo.yaml
run config import grpo.yaml grpo-recipe.yaml
expect 0
for line in 'num_prompts_per_step: 4' 'num_generations_per_prompt: 4' 'train_global_batch_size: 16' 'length_divisor: 100' \
    'use_leave_one_out_baseline: false' 'max_new_tokens: 100' 'math: {}'; do
    grep -qF "$line" grpo-recipe.yaml || fail "grpo lacks $line"
done
printf '%s\n' 'num_generations: 3' 'per_device_train_batch_size: 8' 'num_iterations: 2' >bad.yaml
run config import bad.yaml
expect 2 "refused: num_generations, num_iterations"

# Axolotl, recognised by base_model.
cat >axolotl.yaml <<'END'
base_model: model
datasets:
  - path: rows.jsonl
    type: chat_template
adapter: qlora
load_in_4bit: true
lora_r: 4
lora_alpha: 8
lora_target_linear: true
micro_batch_size: 2
gradient_accumulation_steps: 1
num_epochs: 1
optimizer: adamw_bnb_8bit
learning_rate: 0.0002
bf16: auto
flash_attention: true
wandb_project: x
saves_per_epoch: 2
special_tokens: {pad_token: "<pad>"}
END
run config import axolotl.yaml axolotl-recipe.yaml
expect 0
expect_out "Axolotl for sft"
for line in 'base: nf4' 'target_modules: all-linear' 'name: bitsandbytes.optim.AdamW8bit' 'save_period: 2' 'T_max: 4'; do
    grep -qF "$line" axolotl-recipe.yaml || fail "axolotl lacks $line"
done
run plan axolotl-recipe.yaml
expect 0

# What only the user can say is asked for, and the recipe does not run before it is said.
asks() { # FILE KEY REMARK: it is imported, and KEY is ???
    run config import "$1" asks.yaml
    expect 0
    tr -s ' \n' ' ' <out | grep -qF -- "$3" || fail "$1: no remark '$3'"
    run config asks.yaml
    expect 0 "$2"
    run train asks.yaml
    expect 2
}
row() { # MEMBER...: the data set of axolotl.yaml
    sed "s|type: chat_template|$1|" axolotl.yaml >axolotl-row.yaml
}
row 'type: alpaca'
asks axolotl-row.yaml data.train.data_path "See that it has around them what type alpaca puts there."
row 'split: "train[:5%]"'
asks axolotl-row.yaml data.train.data_path "See that of the rows it has those of train[:5%]."
row 'message_property_mappings: {role: from, content: value}'
asks axolotl-row.yaml data.train.data_path 'members of a message are named role and content, not'
row 'message_property_mappings: {role: role, content: content}'
run config import axolotl-row.yaml
expect 0
expect_out "data_path: rows.jsonl"
row 'train_on_eos: all'
run config import axolotl-row.yaml
expect 2 "refused: datasets"
row 'shards: 8'
asks axolotl-row.yaml data.train.data_path "it has one of 8 parts"
(cat axolotl.yaml; echo 'chat_template: qwen3') >axolotl-row.yaml
asks axolotl-row.yaml policy.tokenizer.chat_template "Axolotl's template qwen3, or default"
(grep -v special_tokens axolotl.yaml; echo 'special_tokens: {eos_token: "<|im_end|>"}') >axolotl-row.yaml
asks axolotl-row.yaml policy.tokenizer.name "in which eos_token is that"
(cat axolotl.yaml; printf '%s\n' 'sample_packing: true' 'sequence_len: 512' 'gptq_groupsize:') >axolotl-row.yaml
asks axolotl-row.yaml policy.train_global_batch_size "A batch has 1024 tokens there, in rows of 512"
grep -q "T_max: .*???" asks.yaml || fail "the schedule ends somewhere"
# With the mean length of an example all of it follows: 1024 tokens are 8 examples of 128.
run config import axolotl-row.yaml packed.yaml --tokens 128 --rows 800
expect 0
expect_out "A batch has 1024 tokens there, in rows of 512: about 8 examples of 128 tokens."
grep -q "train_global_batch_size: 8 " packed.yaml || fail "the batch is not 8 examples"
grep -q '???' packed.yaml && fail "something is asked for although all is known"
for plugin in liger.LigerPlugin:0 cut_cross_entropy.CutCrossEntropyPlugin:0 spectrum.SpectrumPlugin:2; do
    (cat axolotl.yaml; echo "plugins: [axolotl.integrations.${plugin%:*}]") >axolotl-row.yaml
    run config import axolotl-row.yaml
    is "${plugin%:*}" $status "${plugin#*:}"
done

row 'type: completion'
run config import axolotl-row.yaml
expect 0
expect_out "text_key: text"
row 'type: chat_template'
run config import axolotl-row.yaml
expect_out "system_key: system"
row 'field_system: sys'
run config import axolotl-row.yaml
expect_out "system_key: sys"
(cat axolotl.yaml; echo 'test_datasets: [{path: rows.jsonl, type: completion}]') >axolotl-row.yaml
run config import axolotl-row.yaml
expect 0
expect_out "validation:" "text_key: text"
(cat axolotl.yaml; echo 'test_datasets: [{path: rows.jsonl, type: alpaca}]') >axolotl-row.yaml
asks axolotl-row.yaml data.validation.data_path "See that it has around them what type alpaca puts there."
# Processes that share a batch count once.
(cat axolotl.yaml; printf '%s\n' 'context_parallel_size: 2' 'tensor_parallel_size: 2') >axolotl-row.yaml
run config import axolotl-row.yaml --processes 8
expect_out "train_global_batch_size: 4 "
(cat axolotl.yaml; echo 'sequence_parallel_degree: 4') >axolotl-row.yaml
run config import axolotl-row.yaml --processes 8
expect_out "train_global_batch_size: 4 "
# The newer of two names goes before the older one, unless it is null.
echo 'context_parallel_size: 2' >>axolotl-row.yaml
run config import axolotl-row.yaml --processes 8
expect 0 "context_parallel_size goes before."
expect_out "train_global_batch_size: 8 "
sed -i 's/^context_parallel_size.*/context_parallel_size: null/' axolotl-row.yaml
run config import axolotl-row.yaml --processes 8
expect_out "train_global_batch_size: 4 "

# Keys that scripts around TRL add.
cat >handbook.yaml <<'END'
model_name_or_path: model
chat_template: "{% for m in messages %}{{ m['content'] }}{% endfor %}"
dataset_mixture: {datasets: [{id: a, weight: 1.0}, {id: b, weight: 1.0}], test_split_size: 10}
max_steps: 3
END
asks handbook.yaml data.train.data_path "One data set is read: put the rows of all into it."
grep -qF "{% for m in messages %}" asks.yaml || fail "the template is not taken"
printf '%s\n' 'num_generations: 4' 'per_device_train_batch_size: 8' 'max_steps: 4' 'reward_funcs: [accuracy, format]' \
    'reward_weights: [1.0, 0.1]' 'system_prompt: "Think."' 'dataset_prompt_column: problem' >r1.yaml
asks r1.yaml env "what a judge of the section env gives"
for line in 'system_prompt_file: .*???' 'prompt_key: problem'; do
    grep -q "$line" asks.yaml || fail "r1.yaml lacks $line"
done
printf '%s\n' 'eval: {seed: 1}' 'generation: {temperature: 0}' >evaluation.yaml
run config import evaluation.yaml
expect 2 "temper eval takes it as it is"

# The precision, in every spelling of a boolean; other words are refused.
precision() { # FILE VALUE PRECISION
    (grep -v '^bf16:' "$1"; echo "bf16: $2") >brief.yaml
    run config import brief.yaml
    expect 0
    expect_out "precision: $3"
}
for file in trl.yaml axolotl.yaml; do
    for value in off no 0 False '"no"'; do
        precision $file "$value" float32
    done
    for value in on yes 1 auto full null; do
        precision $file $value bfloat16
    done
    (grep -v '^bf16:' $file; echo "bf16: banana") >brief.yaml
    run config import brief.yaml
    expect 2 "refused: bf16"
done
(grep -v '^bf16:' axolotl.yaml; printf '%s\n' 'bf16: no' 'bfloat16: yes') >brief.yaml
run config import brief.yaml
expect_out "precision: bfloat16"

# YAML 1.1, as TRL and Axolotl read it.
(grep -v '^max_length:' trl.yaml; printf '%s\n' 'max_length: 1_024' 'seed: 017' 'eval_strategy: no' 'save_strategy: no') >old.yaml
run config import old.yaml
expect 0
expect_out "max_total_sequence_length: 1024" "seed: 15" "val_period: 0" "save_period: 1000000000"
(cat axolotl.yaml; printf '%s\n' 'train_on_inputs: off' 'group_by_length: off' 'eval_strategy: "no"') >old.yaml
run config import old.yaml
expect 0

# NeMo RL, with what it inherits and refers to.
cat >base.yaml <<'END'
dpo: {max_num_steps: 10, reference_policy_kl_penalty: 0.1}
policy:
  model_name: model
  train_global_batch_size: 8
  precision: bfloat16
  dtensor_cfg: {enabled: true, tensor_parallel_size: 2, cpu_offload: true}
data: {train: {dataset_name: HelpSteer3}}
cluster: {gpus_per_node: 8}
END
printf '%s\n' 'defaults: base.yaml' 'dpo: {val_global_batch_size: "${policy.train_global_batch_size}"}' >nemo.yaml
run config import nemo.yaml nemo-recipe.yaml
expect 0
expect_out "NeMo RL for dpo" "cluster.gpus_per_node: 8" "data.train.dataset_name: HelpSteer3  ->  data.train.data_path"
run config --json nemo-recipe.yaml
is interpolated "$("$TOOL" get out dpo.val_global_batch_size)" 8
printf '%s\n' 'defaults: base.yaml' 'dpo: {max_num_stepz: 1}' 'policy: {is_vlm: true}' >nemo.yaml
run config import nemo.yaml
expect 2 "refused: policy.is_vlm; unknown: dpo.max_num_stepz"

# What training refuses is refused, also where the data is still to be named.
printf '%s\n' 'defaults: base.yaml' 'checkpointing: {metric_name: val_loss}' >nemo.yaml
run config import nemo.yaml
expect 2 'nemo.yaml:2' '"val_loss" ranks no checkpoints of dpo'

# The import reads YAML 1.1, as OmegaConf does; a recipe says nothing that has two meanings.
cat >nemo.yaml <<'END'
defaults: base.yaml
dpo: {max_num_steps: 010}
policy: {tokenizer: {chat_template_kwargs: {enable_thinking: off, verbose: "on"}}}
END
run config import nemo.yaml nemo-recipe.yaml
expect 0
run config --json nemo-recipe.yaml
is steps "$("$TOOL" get out dpo.max_num_steps)" 8
is thinking "$("$TOOL" get out policy.tokenizer.chat_template_kwargs.enable_thinking)" false
is verbose "$("$TOOL" get out policy.tokenizer.chat_template_kwargs.verbose)" on
run config nemo.yaml
expect 2 "nemo.yaml:2:22: 010 is 10 in YAML 1.2 and 8 in YAML 1.1"
sed -i 's/010/10/' nemo.yaml
run config nemo.yaml
expect 2 "off is text in YAML 1.2 and false in YAML 1.1; write false, or \"off\" for the text"

# What TRL weighs by the ratio of a whole answer goes with its mean over answers; one over all answers counts those that are masked.
for case in 'importance_sampling_level: sequence=mean over answers' \
    'importance_sampling_level: sequence\nloss_type: grpo\nbeta: 0.1=ratio of the answer' \
    'mask_truncated_completions: true\nloss_type: grpo=counts those that are masked'; do
    # shellcheck disable=SC2059
    printf "num_generations: 4\nper_device_train_batch_size: 8\nmax_steps: 4\nmax_completion_length: 9\n${case%=*}\n" >answers.yaml
    run config import answers.yaml
    expect 2 "${case#*=}"
done
sed -i 's/mask.*/importance_sampling_level: sequence/' answers.yaml
run config import answers.yaml answers-recipe.yaml
expect 0
grep -qF 'sequence_level_importance_ratios: true' answers-recipe.yaml || fail "no ratio of answers"

# Without a number there is no divergence, and its weight is true, false or null, which is false.
divergence() { # FILE LINE STATUS TEXT
    { cat "$1" && echo "$2"; } >divergence.yaml
    run config import divergence.yaml
    expect "$3"
    grep -qF "$4" out err || fail "$1: $2: no '$4'"
}
printf '%s\n' 'num_generations: 4' 'per_device_train_batch_size: 8' 'max_steps: 4' 'max_completion_length: 9' >kl.yaml
divergence kl.yaml 'beta: null' 0 'reference_policy_kl_penalty: 0.0'
divergence kl.yaml 'epsilon: 0.3' 0 'use_bias_correction_kl: true'
for value in 0 'no' false null; do
    divergence kl.yaml "use_bias_correction_kl: $value" 0 'use_bias_correction_kl: false'
done
for value in maybe '[]' 2; do
    divergence kl.yaml "use_bias_correction_kl: $value" 2 'Expected true or false.'
done
# Axolotl's TRL has it off.
cat >kl.yaml <<'END'
base_model: model
rl: grpo
datasets: [{path: rows.jsonl, type: x.y}]
micro_batch_size: 8
learning_rate: 1e-5
max_steps: 4
trl:
  num_generations: 4
  max_completion_length: 9
  reward_funcs: [rewards.accuracy_reward]
  importance_sampling_level: sequence
  loss_type: grpo
END
divergence kl.yaml '  beta: null' 0 'reference_policy_kl_penalty: 0.0'
divergence kl.yaml '  beta: 0.04' 0 'use_bias_correction_kl: false'
divergence kl.yaml "$(printf '  beta: 0.04\n  use_bias_correction_kl: true')" 2 'ratio of the answer'

# Files that are something else.
echo '{"log_history": [], "global_step": 3}' >trainer_state.json
run config import trainer_state.json
expect 2 "trainer_state.json is the log of a run" "temper metrics"
printf 'PK\003\004' >training_args.bin
run config import training_args.bin
expect 2 "Python's pickle" "to_json_string"
echo 'colour: red' >other.yaml
run config import other.yaml
expect 2 "none of its keys" "--from"
run config import
expect 2 "expected a FILE"

# JSON, and a pipe.
"$TEMPER" config import - --json <trl.yaml >report.json 2>err || fail "from standard input"
is source "$("$TOOL" get report.json source)" trl
is state "$("$TOOL" get report.json keys.0.state)" used
is line "$("$TOOL" get report.json keys.3.line)" 4
finish
