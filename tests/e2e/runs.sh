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

# The files of the last checkpoint that decide everything that follows.
same_end() {
    for file in model/model.safetensors optimizer.safetensors; do
        cmp "$1/checkpoints/step-$STEPS/$file" "$2/checkpoints/step-$STEPS/$file" ||
            fail "$2: $file is not that of the uninterrupted run"
    done
    leftovers=$(find "$2" -name '.*tmp-*' | wc -l)
    is "leftovers in $2" "$leftovers" 0
}
