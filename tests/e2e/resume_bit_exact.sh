# Interrupted by SIGTERM, by SIGINT and by kill -9 at several moments, then resumed: the last
# checkpoint is byte for byte that of an uninterrupted run.
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/e2e/runs.sh"
STEPS=20
write_recipe tiny.yaml
train_to_end whole || fail "the uninterrupted run failed"

for signal in TERM INT KILL; do
    for step in 1 7 13; do
        dir=$signal-$step
        interrupt $signal $step "$TEMPER" train --quiet tiny.yaml run.dir=$dir sft.max_num_steps=$STEPS \
            checkpointing.save_period=$EVERY
        start "$dir" --resume
        wait "$pid" || fail "$dir: resuming failed"
        same_end whole "$dir"
        is "$dir: attempts" "$("$TOOL" get "$dir/run.json" attempt)" 2
    done
done

# One attempt per step: every step a run of its own.
STEPS=6 EVERY=1
train_to_end six || fail "the run of six steps failed"
for step in 1 2 3 4 5 6; do
    resume=$([ "$step" = 1 ] || echo --resume)
    "$TEMPER" train --quiet tiny.yaml run.dir=bits sft.max_num_steps=$step checkpointing.save_period=1 $resume \
        >out 2>err || fail "attempt for step $step failed"
done
same_end six bits

# A validation that a signal ends is made by the attempt that resumes, here also the last one.
validations() { grep -c '"step":'$2',"axis":"validation"' "$1/metrics.jsonl"; }
for step in 3 6; do
    dir=due-$step
    interrupt TERM $step "$TEMPER" train --quiet tiny.yaml run.dir=$dir sft.max_num_steps=6 checkpointing.save_period=1
    is "$dir: validations before" "$(validations $dir $step)" 0
    grep -q '"validation_due": true' $dir/checkpoints/step-$step/state.json || fail "$dir: no validation is due"
    is "$dir: ranked by" "$("$TOOL" get $dir/checkpoints/step-$step/state.json metric)" NaN
    start $dir --resume
    wait "$pid" || fail "$dir: resuming failed"
    is "$dir: validations" "$(validations $dir $step)" 1
    same_end six $dir
    is "$dir: checkpoints kept" "$(ls $dir/checkpoints)" "$(ls six/checkpoints)"
    is "$dir: ranked by" "$("$TOOL" get $dir/checkpoints/step-6/state.json metric)" \
        "$("$TOOL" get six/checkpoints/step-6/state.json metric)"
    "$TEMPER" train tiny.yaml run.dir=$dir sft.max_num_steps=6 checkpointing.save_period=1 --resume >out 2>err ||
        fail "$dir: a finished run"
    grep -q "nothing is left to do" out || fail "$dir goes on"
    is "$dir: validations at the end" "$(validations $dir $step)" 1
done

# A checkpoint is ranked by a validation of its own weights, and without one not at all: the best stays.
run train --quiet tiny.yaml run.dir=ranked sft.max_num_steps=5 sft.val_period=2 sft.val_at_end=false \
    checkpointing.save_period=1 checkpointing.keep_top_k=1
expect 0
is "ranked: checkpoints kept" "$(ls ranked/checkpoints | tr '\n' ' ')" "step-4 step-5 "
is "ranked: the last one by" "$("$TOOL" get ranked/checkpoints/step-5/state.json metric)" NaN
is "ranked: the best one" "$("$TOOL" get ranked/checkpoints/step-5/state.json best_step)" 4

# The last checkpoint, between two of the period, takes no place of the best, and goes when it is the newest no more.
between="sft.val_period=0 sft.val_at_end=false checkpointing.metric_name=null checkpointing.save_period=2 checkpointing.keep_top_k=1"
# shellcheck disable=SC2086
run train --quiet tiny.yaml run.dir=between sft.max_num_steps=5 $between
expect 0
is "between: checkpoints kept" "$(ls between/checkpoints | tr '\n' ' ')" "step-4 step-5 "
# shellcheck disable=SC2086
run train --quiet tiny.yaml run.dir=between sft.max_num_steps=7 $between --resume
expect 0
is "between: checkpoints kept of a longer run" "$(ls between/checkpoints | tr '\n' ' ')" "step-6 step-7 "

# What a resumed run may not change.
run train --quiet tiny.yaml run.dir=six sft.max_num_steps=8 --resume seed=1
expect 2 "seed"
run train --quiet tiny.yaml run.dir=six sft.max_num_steps=8 --resume policy.train_global_batch_size=8
expect 2 "batch size"

# A damaged checkpoint is passed over for the one before.
"$TOOL" flip bits/checkpoints/step-6/optimizer.safetensors 9999
"$TEMPER" train --quiet tiny.yaml run.dir=bits sft.max_num_steps=6 checkpointing.save_period=1 --resume >out 2>err ||
    fail "resuming past a damaged checkpoint failed"
grep -q "step-6" err || fail "nothing is said about the damaged checkpoint"
same_end six bits
finish
