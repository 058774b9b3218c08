# TensorBoard event files and the Prometheus textfile of runs, whole, interrupted and resumed: read back, every figure
# is that of metrics.jsonl; where one cannot be written, that is said once and the run goes on.
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/e2e/runs.sh"
STEPS=12 EVERY=4
write_recipe tiny.yaml
events="logger.tensorboard_enabled=true"

# same_points RUN EVENTS FILES
same_points() {
    "$TOOL" points "$1" "$2" >out 2>err || fail "$2 does not hold what $1 recorded"
    [ "$(tail -n 1 out)" -gt 100 ] || fail "$1: $(tail -n 1 out) points are too few"
    is "event files of $1" "$(ls "$2" | wc -l)" "$3"
}

run train --quiet tiny.yaml run.dir=plain
expect 0
[ ! -e plain/tensorboard ] || fail "event files that nobody asked for"

run train --quiet tiny.yaml run.dir=whole sft.max_num_steps=$STEPS $events logger.prometheus.path=whole.prom
expect 0
is "what is said" "$(cat err)" ""
same_points whole whole/tensorboard 1
for line in 'temper_running{run="whole"} 0' 'temper_step{run="whole"} 12' 'temper_train_lr{run="whole"} 0.01'; do
    grep -qxF "$line" whole.prom || fail "whole.prom lacks $line"
done
is "files beside it" "$(find . -maxdepth 1 -name '*.tmp-*' | wc -l)" 0
# Event files in a run's folder are no run of their own.
run metrics whole
expect 0
expect_out "Temper's run folder"

for signal in TERM KILL; do
    interrupt $signal 6 "$TEMPER" train --quiet tiny.yaml run.dir=$signal sft.max_num_steps=$STEPS \
        checkpointing.save_period=$EVERY $events
    "$TEMPER" train --quiet tiny.yaml run.dir=$signal sft.max_num_steps=$STEPS checkpointing.save_period=$EVERY $events \
        --resume >out 2>err || fail "$signal: resuming failed"
    same_points $signal $signal/tensorboard 2
done
# Killed before the first checkpoint: it begins at 0 again, with its first validation.
interrupt KILL 2 "$TEMPER" train --quiet tiny.yaml run.dir=anew sft.max_num_steps=$STEPS checkpointing.save_period=$EVERY \
    sft.val_at_start=true $events
"$TEMPER" train --quiet tiny.yaml run.dir=anew sft.max_num_steps=$STEPS checkpointing.save_period=$EVERY $events \
    sft.val_at_start=true --resume >out 2>err || fail "anew: resuming failed"
same_points anew anew/tensorboard 2

# GRPO over what was learned, killed and resumed, in a folder of its own.
cat >grpo.yaml <<'END'
grpo: {num_prompts_per_step: 4, num_generations_per_prompt: 4, max_num_steps: 6, max_num_epochs: 100,
       val_period: 3, max_val_samples: 8}
policy:
  model_name: whole/checkpoints/step-12/model
  tokenizer: {chat_template: null}
  train_global_batch_size: 16
  train_micro_batch_size: 8
  max_total_sequence_length: 16
  generation: {max_new_tokens: 5, max_running: 16}
data:
  train: {dataset_name: arithmetic}
  arithmetic: {n_examples: 200, n_validation: 20, digits: 1, operators: "+"}
checkpointing: {save_period: 2, keep_top_k: 2, metric_name: null}
logger: {tensorboard_enabled: true, tensorboard: {log_dir: "logs/${run.name}"}}
END
interrupt KILL 3 "$TEMPER" train --quiet grpo.yaml run.dir=grpo
"$TEMPER" train --quiet grpo.yaml run.dir=grpo --resume >out 2>err || fail "grpo: resuming failed"
same_points grpo logs/grpo 2

# Where they cannot be written.
run train --quiet tiny.yaml run.dir=other $events logger.tensorboard.log_dir=logs/grpo
expect 0 "'logs/grpo' holds event files of another run" "logger.tensorboard.log_dir"
is "what is said" "$(wc -l <err)" 1
echo >file
run train --quiet tiny.yaml run.dir=hindered $events logger.tensorboard.log_dir=file/tb logger.prometheus.path=nowhere/x.prom
expect 0 "a file of that name is in the way" "nowhere/x.prom" "left out"
is "what is said" "$(wc -l <err)" 2
# Nor is anything replaced that the run reads, under any name, whether read or found in a cache, nor what is no file.
for i in 1 2 3 4 5 6 7 8; do echo '{"text": "1+1=2"}'; done >rows.jsonl
cp rows.jsonl kept
ln -s rows.jsonl link.prom && ln rows.jsonl hard.prom && mkfifo pipe.prom
for place in rows.jsonl link.prom hard.prom tiny.yaml; do
    cp tiny.yaml kept.yaml
    run train --quiet tiny.yaml run.dir="into-$place" policy.init=pretrained policy.model_config=null \
        policy.model_name=whole/checkpoints/step-12/model policy.tokenizer.train_vocab_size=null \
        policy.tokenizer.name=whole/checkpoints/step-12/model data.train.dataset_name=null data.train.data_path=rows.jsonl data.train.split_validation_size=0 sft.val_period=0 sft.max_num_steps=1 \
        checkpointing.enabled=false logger.prometheus.path="$place"
    expect 0 "cannot write to '$place': this command reads it" "left out"
    cmp -s rows.jsonl kept && cmp -s tiny.yaml kept.yaml || fail "an input is lost through $place"
done
timeout 500 "$TEMPER" train --quiet tiny.yaml run.dir=into-pipe sft.max_num_steps=1 logger.prometheus.path=pipe.prom >out 2>err </dev/null
is "status of a run that is to write to a pipe" $? 0
grep -q "'pipe.prom': it is a pipe or a device" err || fail "nothing about the pipe"
"$TOOL" points hindered whole/tensorboard >out 2>err && fail "runs of 6 and 12 steps have the same figures"
finish
