# runs.sh - sourced after lib.sh by tests that interrupt runs: a recipe whose runs take some
# seconds and save often, and a comparison of what they leave.
STEPS=${STEPS:-40}
EVERY=${EVERY:-5}

train_to_end() {
    "$TEMPER" train --quiet tiny.yaml run.dir="$1" "${ALGORITHM:-sft}.max_num_steps=$STEPS" \
        checkpointing.save_period="$EVERY" >out 2>err
}

# Start a run in the background; its id is $pid.
start() {
    "$TEMPER" train --quiet tiny.yaml run.dir="$1" "${ALGORITHM:-sft}.max_num_steps=$STEPS" \
        checkpointing.save_period="$EVERY" ${2:-} >out 2>err &
    pid=$!
}

# A run that raises a signal when the record of a step is on disk: interrupt SIGNAL STEP COMMAND...; it is
# the step that decides, whatever the machine is busy with.
interrupt() {
    case $1 in INT) number=2 ;; KILL) number=9 ;; TERM) number=15 ;; esac
    step=$2 wanted=$((128 + number))
    shift 2
    LD_PRELOAD=$BUILD/tests/libsignal_at_step.so \
        TEMPER_TEST_SIGNAL=$number:$step "$@" >out 2>err
    is "$*: exit status" $? $wanted
}

# GRPO on one-digit sums from the model in base/, which programs judge, into tiny.yaml:
# write_judged_recipe VAL_PERIOD MICRO_BATCH NEW_TOKENS RUNNING; judge.sh is the test's own.
write_judged_recipe() {
    cat >tiny.yaml <<END
grpo: {num_prompts_per_step: 4, num_generations_per_prompt: 4, max_num_steps: 3, max_num_epochs: 100, val_period: $1, max_val_samples: 4}
policy:
  model_name: base/checkpoints/step-40/model
  tokenizer: {chat_template: null}
  train_global_batch_size: 8
  train_micro_batch_size: $2
  max_total_sequence_length: 16
  generation: {max_new_tokens: $3, max_running: $4}
  optimizer: {kwargs: {lr: 1.0e-3}}
loss_fn: {reference_policy_kl_penalty: 0.05}
env: {mine: {type: program, command: [sh, judge.sh], num_workers: 2}}
data:
  train: {dataset_name: arithmetic, env_name: mine}
  arithmetic: {n_examples: 200, n_validation: 20, digits: 1, operators: "+"}
checkpointing: {save_period: 1, keep_top_k: 2}
END
}

# The files of the last checkpoint that decide everything that follows.
same_end() {
    for file in model/model.safetensors optimizer.safetensors; do
        cmp "$1/checkpoints/step-$STEPS/$file" "$2/checkpoints/step-$STEPS/$file" ||
            fail "$2: $file is not that of the uninterrupted run"
    done
    leftovers=$(find "$2" -name '.*tmp-*' | wc -l)
    is "leftovers in $2" "$leftovers" 0
}
