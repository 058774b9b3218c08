# GRPO on one-digit sums: interrupted by signals at several moments and resumed, it ends byte for byte where the
# uninterrupted run ends; rollouts are drawn again exactly as they were.
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/e2e/runs.sh"
write_recipe tiny.yaml
run train --quiet tiny.yaml run.dir=base sft.max_num_steps=120 sft.val_period=0 checkpointing.save_period=1000 \
    policy.train_global_batch_size=64 policy.train_micro_batch_size=64 data.arithmetic.n_examples=5000
expect 0

# Two updates per rollout, a reference, and groups without spread replaced: all that a step can carry along.
STEPS=8 EVERY=2
cat >tiny.yaml <<'END'
grpo: {num_prompts_per_step: 6, num_generations_per_prompt: 6, max_num_steps: 8, max_num_epochs: 100,
       val_period: 4, max_val_samples: 8, use_dynamic_sampling: true, batch_multiplier: 1.5}
policy:
  model_name: base/checkpoints/step-120/model
  tokenizer: {chat_template: null}
  train_global_batch_size: 18
  train_micro_batch_size: 8
  max_total_sequence_length: 16
  generation: {max_new_tokens: 5, max_running: 16}
  optimizer: {kwargs: {lr: 1.0e-3}}
data:
  train: {dataset_name: arithmetic}
  arithmetic: {n_examples: 200, n_validation: 20, digits: 1, operators: "+"}
checkpointing: {save_period: 2, keep_top_k: 2, metric_name: "val:accuracy", higher_is_better: true}
END
train_grpo() {
    "$TEMPER" train --quiet tiny.yaml run.dir="$1" grpo.max_num_steps=$STEPS checkpointing.save_period=$EVERY ${2:-} >out 2>err
}
train_grpo whole || fail "the uninterrupted run failed"

for signal in TERM KILL; do
    for step in 1 3 6; do
        dir=$signal-$step
        interrupt $signal $step "$TEMPER" train --quiet tiny.yaml run.dir=$dir grpo.max_num_steps=$STEPS \
            checkpointing.save_period=$EVERY
        sh -c 'echo half >"$0/samples/.step-9.jsonl.tmp-$$"' $dir # as if it had been killed while it wrote there
        train_grpo $dir --resume || fail "$dir: resuming failed"
        same_end whole $dir
        # A signal that is caught saves one more, a kill does not: the same are the best.
        [ $signal = TERM ] || is "$dir: checkpoints kept" "$(ls $dir/checkpoints | tr '\n' ' ')" \
            "$(ls whole/checkpoints | tr '\n' ' ')"
    done
done

# What a step measured does not depend on how often the run was begun: rewards of the last steps agree.
rewards() {
    sed -n 's/.*"step":'$2',"axis":"train".*"train\/reward":\([0-9.e-]*\).*/\1/p' "$1/metrics.jsonl" | tail -n 1
}
for step in 5 8; do
    is "reward of step $step after a kill" "$(rewards KILL-3 $step)" "$(rewards whole $step)"
done
[ -n "$(rewards whole 8)" ] || fail "there is no reward in metrics.jsonl"

# A run that reaches its goal is finished, also where the validation that says so came after a signal; asked for
# more it goes on.
goal() { # NAME THRESHOLD [--resume]
    run train tiny.yaml run.dir=$1 grpo.stop_at_validation_metric=accuracy grpo.stop_at_validation_threshold=$2 \
        grpo.max_num_steps=5 ${3:-}
    expect 0
}
goal reached 0
interrupt TERM 4 "$TEMPER" train --quiet tiny.yaml run.dir=late grpo.stop_at_validation_metric=accuracy \
    grpo.stop_at_validation_threshold=0 grpo.max_num_steps=5
goal late 0 --resume
for dir in reached late; do
    is "$dir: step" "$("$TOOL" get $dir/run.json step)" 4
    is "$dir: validations" "$(grep -c '"axis":"validation"' $dir/metrics.jsonl)" 1
    is "$dir: goal" "$("$TOOL" get $dir/checkpoints/step-4/state.json goal_metric)" accuracy
    goal $dir 0 --resume
    expect_out "all 4 steps are done: nothing is left to do"
    goal $dir 1e9 --resume
    is "$dir: step once more is asked of it" "$("$TOOL" get $dir/run.json step)" 5
done

# What a resumed run may not change.
run train --quiet tiny.yaml run.dir=whole grpo.max_num_steps=10 --resume grpo.num_generations_per_prompt=12 \
    policy.train_global_batch_size=18
expect 2 "saved with other data, judge, tokenizer, prompts or answers a step, batch size, longest sequence, shuffling, temperature of the rollouts or ids"
run train --quiet tiny.yaml run.dir=whole grpo.max_num_steps=10 --resume policy.max_total_sequence_length=15
expect 2 "longest sequence"
cp -r base/checkpoints/step-120/model ends
echo '{"eos_token_id": 3}' >ends/generation_config.json
run train --quiet tiny.yaml run.dir=whole grpo.max_num_steps=10 --resume policy.model_name=ends
expect 2 "ids that end an answer"
# Trained at the temperature of the rollouts: generator and training agree on every log-probability.
"$TEMPER" train --progress plain tiny.yaml run.dir=warm grpo.max_num_steps=1 policy.precision=float32 \
    policy.generation.temperature=0.6 grpo.seq_logprob_error_threshold=2 checkpointing.enabled=false >out 2>err ||
    fail "training at temperature 0.6 failed"
grep -q "logits divided by 0.6" out || fail "the temperature is not announced"
error=$(sed -n 's/.*"step":1,"axis":"train".*"train\/token_mult_prob_error":\([0-9.e-]*\).*/\1/p' warm/metrics.jsonl)
awk -v x="$error" 'BEGIN { exit !(x >= 1 && x < 1.0001) }' || fail "generator and training differ by $error"
finish
