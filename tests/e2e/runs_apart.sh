# Whose checkpoints these are: two runs and one folder, a record that is gone, another
# configuration, nothing left to do.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml
sum() { cksum <"$1"; }
shared="checkpointing.checkpoint_dir=results"
small="sft.max_num_steps=2 sft.val_period=0 checkpointing.save_period=1"

run train -q tiny.yaml run.name=a $shared $small seed=1
expect 0
id=$("$TOOL" get runs/a/run.json id)
is "length of the identity" "${#id}" 32
is "owner of a checkpoint" "$("$TOOL" get results/step-2/state.json run_id)" "$id"
before=$(sum results/step-2/model/model.safetensors)
run train -q tiny.yaml run.name=b $shared $small seed=2 checkpointing.keep_top_k=1
expect 2 "'results' holds checkpoints of run 'a' (step-2, step-1)" "choose another checkpointing.checkpoint_dir"
is "the first run's weights" "$(sum results/step-2/model/model.safetensors)" "$before"
is "the first run's checkpoints" "$(ls results | tr '\n' ' ')" "step-1 step-2 "
mkdir -p runs/b
run train -q tiny.yaml run.name=b $shared $small seed=2 --resume
expect 2 "belongs to another run, 'a'"

# Wherever the checkpoints are, the run's folder stands for them.
run generate runs/a 1+1= -m 2
expect 0
run train -q tiny.yaml run.name=from-a policy.init=pretrained policy.model_config=null policy.model_name=runs/a policy.tokenizer.train_vocab_size=null policy.tokenizer.name=runs/a $small
expect 0
case "$("$TOOL" get runs/from-a/run.json model_folder)" in
*/results/step-2/model) ;;
*) fail "runs/a does not stand for its newest checkpoint" ;;
esac

# run.json is gone: what is there stays, and goes on.
mv runs/a/run.json gone.json
run train -q tiny.yaml run.name=a $shared $small
expect 2 "holds the metrics of a run whose run.json is gone"
run train -q tiny.yaml run.name=a checkpointing.checkpoint_dir=elsewhere $small
expect 2 "holds the metrics of a run"
run train -q tiny.yaml run.name=a $shared $small seed=1 sft.max_num_steps=3 --resume
expect 0
is "the identity found again" "$("$TOOL" get runs/a/run.json id)" "$id"

# Two at once: the second waits for nobody.
run train -q tiny.yaml run.name=slow checkpointing.checkpoint_dir=once sft.max_num_steps=2 checkpointing.save_period=1
expect 0
exec 9<>once/.lock
flock -n 9 || fail "the lock of a run that is over is still held"
run train -q tiny.yaml run.name=slow checkpointing.checkpoint_dir=once sft.max_num_steps=4 --resume
expect 2 "'once' is being written by" "choose another checkpointing.checkpoint_dir"
exec 9>&-
# Who only looks says the same, of a holder too that has not written its number yet.
exec 9<>runs/slow/.lock
flock -n 9 || fail "the lock of a run's folder is still held"
for who in "process 4711" "another process"; do
    printf %s "$who" | sed -n 's/^process //p' | tr -d '\n' >runs/slow/.lock
    for command in "train -q" "doctor --cached"; do
        # shellcheck disable=SC2086
        run $command tiny.yaml run.name=slow checkpointing.checkpoint_dir=once sft.max_num_steps=4 --resume
        is "$command of a run that is written" $status 2
        cat out err | grep -qF "'runs/slow' is being written by $who; choose another run.name" || fail "$command does not say who writes the run: $who"
    done
done
exec 9>&-

# What --resume changes is said and kept; what an attempt that was killed left of a file goes.
mkdir -p runs/slow/tokenizer
for left in runs/slow runs/slow/tokenizer; do printf x >"$left/.any.json.tmp-999999999"; done
run train tiny.yaml run.name=slow checkpointing.checkpoint_dir=once sft.max_num_steps=4 policy.optimizer.kwargs.lr=0.5 policy.optimizer.kwargs.eps=0.00000001 --resume
expect 0
is "leftovers" "$(find runs/slow -name '.*tmp-*')" ""
grep -q "another policy.optimizer.kwargs.eps" out && fail "1.0e-8 and 0.00000001 are one number"
expect_out "--resume goes on with another policy.optimizer.kwargs.lr: 1.0e-2 -> 0.5" \
    "--resume goes on with another sft.max_num_steps: 2 -> 4"
grep -q 'lr: 1.0e-2' runs/slow/config.attempt-1.yaml || fail "the first configuration is lost"
grep -q 'lr: 0.5' runs/slow/config.yaml || fail "config.yaml is not the newest"
is "attempts" "$("$TOOL" get runs/slow/run.json attempts.0.step) $("$TOOL" get runs/slow/run.json attempts.1.first_step)" "2 2"
is "a change" "$("$TOOL" get runs/slow/run.json attempts.1.changes.0.to)" 4

# Nothing is left to do, and the record stays.
cp runs/slow/run.json kept
run train tiny.yaml run.name=slow checkpointing.checkpoint_dir=once sft.max_num_steps=4 policy.optimizer.kwargs.lr=0.5 --resume
expect 0
expect_out "run 'slow' is finished, all 4 steps are done: nothing is left to do"
grep -q "ms/step" out && fail "tables of no step"
cmp -s runs/slow/run.json kept || fail "run.json of a finished run was written over"

# Nothing to go on from.
run train -q tiny.yaml run.name=slwo --resume
expect 2 "there is no run 'runs/slwo' to resume"
[ ! -e runs/slwo ] || fail "a mistyped name made a folder"
run train -q tiny.yaml run.name=slow checkpointing.checkpoint_dir=other sft.max_num_steps=6 --resume
expect 2 "has its checkpoints in" "checkpointing.checkpoint_dir is 'other'"
for step in once/step-*; do rm "$step/optimizer.safetensors"; done
run train -q tiny.yaml run.name=slow checkpointing.checkpoint_dir=once sft.max_num_steps=6 --resume
expect 2 "none of the" "is missing, the manifest lists it" "choose another run.name to start anew"

# Refused in set-up: nothing of it stays, and what was there does.
for words in "data.train.dataset_name=null data.train.data_path=nowhere.jsonl" \
    "data.train.dataset_name=null data.train.data_path=nowhere.jsonl checkpointing.checkpoint_dir=fresh/of/it" \
    "data.arithmetic.digits=40" "policy.model_config=tiny.json policy.max_total_sequence_length=4"; do
    # shellcheck disable=SC2086
    run train -q tiny.yaml run.dir=deep/er/refused $words
    expect 2
    [ ! -e deep ] && [ ! -e fresh ] || fail "$last: $(find deep fresh 2>/dev/null | tr '\n' ' ') stay"
done
mkdir -p own/refused && echo mine >own/refused/note
run train -q tiny.yaml run.dir=own/refused data.train.dataset_name=null data.train.data_path=nowhere.jsonl
expect 2
run runs own
expect_out "no run is here"
is "a folder that was there" "$(cat own/refused/note)" mine

# What has no place for its name steps aside.
mkdir -p late/step-2 && echo mine >late/step-2/note
run train -q tiny.yaml run.name=late checkpointing.checkpoint_dir=late $small
expect 2 "'late' holds checkpoints (step-2)"
is "a folder that is not ours" "$(cat late/step-2/note)" mine

for name in "" . .. ../up a/b "$(printf 'a\033[31m')"; do
    run train -q tiny.yaml "run.name=$name"
    expect 2 "run.name"
done
[ ! -e up ] || fail "a run outside runs/"

# A number that is not finite: the step is in the records.
diverging="policy.optimizer.kwargs.lr=1000 policy.optimizer.kwargs.weight_decay=1000 sft.max_num_steps=20 sft.val_period=0 policy.max_grad_norm=null"
run train tiny.yaml run.name=nan $diverging
expect 6 "is not finite (loss"
last=$(tail -n 1 runs/nan/metrics.jsonl)
bad=$(sed -n 's/.*temper: step \([0-9]*\) is not finite.*/\1/p' err) # which one depends on how sums are rounded
case $last in
*"\"step\":$bad,"*'"train/grad_norm":"NaN"'*) ;;
*) fail "the last record is not that of the bad step: $last" ;;
esac
is "loss in run.json" "$("$TOOL" get runs/nan/run.json result.loss)" \
    "$(printf '%s\n' "$last" | sed 's/.*"train\/loss":"*\([^",]*\).*/\1/')"
is "state in run.json" "$("$TOOL" get runs/nan/run.json state)" "stopped: not finite"
cat out err >both
grep -q -- "-nan" both && fail "-nan is printed"
run train tiny.yaml run.name=skip $diverging train.nonfinite_policy=skip train.max_skipped=2
expect 6 "in a row"
expect_out "the update is skipped"
is "skipped steps" "$("$TOOL" get runs/skip/run.json result.skipped_steps)" 3

# Where the disk is full: every file in turn, status 4, and the run goes on when there is room.
if mkdir disk && mount -t tmpfs -o size=300k none disk 2>/dev/null; then
    trap 'cd /; umount "$work/disk"; rm -rf "$work"' EXIT
    run train -q tiny.yaml run.dir=disk/run $small
    expect 4 "free"
    umount disk && mount -t tmpfs -o size=0,nr_inodes=2 none disk
    run train -q tiny.yaml run.dir=disk/run $small
    expect 4 "No space left"
fi
finish
