# runs.sh - sourced after lib.sh by tests that interrupt runs: a recipe whose runs take some
# seconds and save often, and a comparison of what they leave.
STEPS=${STEPS:-40}
EVERY=${EVERY:-5}

train_to_end() {
    "$TEMPER" train --quiet tiny.yaml run.dir="$1" sft.max_num_steps="$STEPS" \
        checkpointing.save_period="$EVERY" >out 2>err
}

# Start a run in the background; its id is $pid.
start() {
    "$TEMPER" train --quiet tiny.yaml run.dir="$1" sft.max_num_steps="$STEPS" \
        checkpointing.save_period="$EVERY" ${2:-} >out 2>err &
    pid=$!
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
