# What a run writes and prints: run.json, metrics.jsonl, config.yaml, --json, --quiet, pipes.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml
give_ceilings

run train tiny.yaml
expect 0
expect_out "step 6/6" "validation loss" "operator" "planned     measured" "unaccounted" "run folder: runs/tiny"
json=runs/tiny/run.json
for key in memory.planned_peak_bytes memory.measured_peak_bytes time.wall_s time.phases_s.forward \
    time.unaccounted_s throughput.trained_tokens_per_s mfu mfu_formula seed host attempt; do
    "$TOOL" get $json $key >/dev/null || fail "run.json has no $key"
done
is state "$("$TOOL" get $json state)" finished
is step "$("$TOOL" get $json step)" 6
planned=$("$TOOL" get $json memory.planned_peak_bytes)
measured=$("$TOOL" get $json memory.measured_peak_bytes)
[ $((planned * 20)) -le $((measured * 21)) ] && [ $((measured * 20)) -le $((planned * 21)) ] ||
    fail "planned $planned and measured $measured bytes differ by more than 5 %"

# Phases and unaccounted add up to the wall time.
total=$(for phase in $("$TOOL" keys $json time.phases_s); do
    "$TOOL" get $json "time.phases_s.$phase"
done | awk -v u="$("$TOOL" get $json time.unaccounted_s)" '{ s += $1 } END { printf "%.6f", s + u }')
awk -v a="$total" -v b="$("$TOOL" get $json time.wall_s)" 'BEGIN { exit !(a - b < 1e-3 && b - a < 1e-3) }' ||
    fail "phases make $total s"

is "records of metrics.jsonl" "$("$TOOL" lines runs/tiny/metrics.jsonl)" 9 # 6 steps, validation at 0, 3, 6
is "checkpoints kept" "$(ls runs/tiny/checkpoints | tr '\n' ' ')" "step-4 step-6 "
run config runs/tiny/config.yaml
expect 0
expect_out "max_num_steps: 6"

run train tiny.yaml
expect 2 "run 'runs/tiny' exists: continue it with --resume"

# Micro-batches that no step fills: computed whole, that is said; their padding is left out.
run train tiny.yaml run.name=wide policy.train_micro_batch_size=32 engine.padding_free=false
expect 0
expect_out "% of what was computed was padding: steps have" "engine.padding_free=true would leave it out"
run train tiny.yaml run.name=fitting policy.train_micro_batch_size=32
expect 0
if grep -q "was padding" out; then fail "padding was computed"; fi

run train --json tiny.yaml run.name=json
expect 0
"$TOOL" lines out >/dev/null || fail "train --json printed something that is no JSON"
tail -n 1 out >last
is "last event" "$("$TOOL" get last event)" tables
"$TOOL" get last operators.0.kernel >/dev/null || fail "no operators in the closing tables"
# Work is of a step, as launches and time are: an update is the same one, however many there were.
update() { tr '}' '\n' <$1 | sed -n 's/.*"operator":"adamw".*"flops_per_step":\([^,]*\),"bytes_per_step":\([^,]*\).*/\1 \2/p'; }
run train --json tiny.yaml run.name=short sft.max_num_steps=1
expect 0
tail -n 1 out >short
[ -n "$(update short)" ] || fail "no work of updates in the closing tables"
is "work of an update" "$(update last)" "$(update short)"
"$TOOL" get last memory.measured_peak_bytes >/dev/null || fail "no memory in the closing tables"
"$TOOL" get last phases_s.forward >/dev/null || fail "no phases in the closing tables"

run train --quiet tiny.yaml run.name=quiet
expect 0
[ ! -s out ] && [ ! -s err ] || fail "--quiet printed something"

# A ceiling that was measured on a busy machine is no ceiling.
export XDG_CACHE_HOME=$PWD/busy
give_ceilings 1000
run train tiny.yaml run.name=busy
expect 0
cat err out >both
grep -q "MFU is unknown; the next run measures again" both ||
    fail "nothing about the ceiling"
grep -q "^linear .* ?$" out || fail "a share of a ceiling of 1000 FLOP/s"
grep -q "^(?: above the measured ceiling, which is too low; 'temper doctor' measures again)$" out ||
    fail "the table of operators takes the ceiling for true"
is "MFU over a ceiling of 1000 FLOP/s" "$("$TOOL" get runs/busy/run.json mfu)" null
key=$("$TOOL" get doctor.json fingerprint)
is "the ceiling, doubted" "$("$TOOL" get busy/temper/machine.json "$key.doubted")" true
# It is measured once more, and the better of each is kept: what is too high here stays.
sed -i 's/"copy_bytes": [^,]*/"copy_bytes": 1e+15/' busy/temper/machine.json
run train tiny.yaml run.name=again
expect 0
cat out err | grep -q "measuring this machine for MFU, once more: a run was faster than what is on file" ||
    fail "it is not measured once more"
is "measured again" "$("$TOOL" get busy/temper/machine.json "$key.measured_again")" true
is "doubted no more" "$("$TOOL" get busy/temper/machine.json "$key.doubted")" false
is "the better of both" "$("$TOOL" get busy/temper/machine.json "$key.copy_bytes")" 1000000000000000
[ "$("$TOOL" get busy/temper/machine.json "$key.unit_f32_flops")" != 1000 ] || fail "the ceiling was not raised"
# What was measured twice begins no third run with a measurement, however low it is.
sed -i 's/"\(gemm\|unit\)_\(f32\|bf16\)_flops": [^,]*/"\1_\2_flops": 1000/' busy/temper/machine.json
for name in third fourth; do
    run train tiny.yaml run.name=$name
    expect 0
    cat out err | grep -q "measuring this machine" && fail "$name: measured for ever"
done
is "not doubted twice" "$("$TOOL" get busy/temper/machine.json "$key.doubted")" false
export XDG_CACHE_HOME="$work/cache"

# What the disk did not take is no success: how many records are lost is said, and --quiet hides it not.
cp tiny.yaml lost.yaml
(ulimit -f 32 && exec "$TEMPER" train --quiet lost.yaml run.name=lost sft.max_num_steps=60 sft.val_period=0 \
    checkpointing.enabled=false) >out 2>err
is "exit status of a run whose records are lost" $? 4
records=$(grep -c '"axis":"train"' runs/lost/metrics.jsonl)
[ "$records" -lt 60 ] || fail "the limit was no limit"
grep -q "metrics.jsonl' lacks [0-9]* records of this run, which could not be written" err || fail "nothing is said of lost records"
is "state of a run whose records are lost" "$("$TOOL" get runs/lost/run.json state)" failed

# Whoever reads may leave: the run stops as after Ctrl-C, with everything whole, and goes on later.
sed 's/max_num_steps: 6/max_num_steps: 100000/' tiny.yaml >long.yaml
{
    "$TEMPER" train long.yaml run.name=pipe 2>err
    echo $? >piped_status
} | head -n 40 >out
is "exit status without a reader" "$(cat piped_status)" 141
grep -q "^temper: nobody reads the output any more: stopped at step [0-9]*; go on with --resume" err ||
    fail "nothing is said of the reader"
is "state behind a closed pipe" "$("$TOOL" get runs/pipe/run.json state)" interrupted
stopped=$("$TOOL" get runs/pipe/run.json step)
[ -d "runs/pipe/checkpoints/step-$stopped" ] || fail "no checkpoint of step $stopped"
"$TOOL" lines runs/pipe/metrics.jsonl >/dev/null || fail "metrics.jsonl is not whole"
run doctor --cached runs/pipe
expect 0
run train long.yaml run.name=pipe --resume "sft.max_num_steps=$((stopped + 2))"
expect 0
expect_out "step $((stopped + 2))/$((stopped + 2))"
if [ -w /dev/full ]; then
    "$TEMPER" plan tiny.yaml >/dev/full 2>err
    is "exit status with a full disk" $? 4
    grep -q "standard output could not be written" err || fail "nothing about the full disk"
fi

# A trace of chosen steps, and the text of chosen stages.
run train --quiet tiny.yaml run.name=traced profile.steps=2:4 engine.dump=[graph,fuse-swiglu,plan]
[ ! -e runs/traced/dump/train.cse.txt ] || fail "engine.dump wrote what was not asked for"
expect 0
"$TOOL" get runs/traced/trace/steps-2-3.json traceEvents.0.name >/dev/null || fail "no Chrome trace"
for stage in graph fuse-swiglu plan; do
    [ -s runs/traced/dump/train.$stage.txt ] || fail "engine.dump wrote no train.$stage.txt"
done

# What the run used, with averages and maxima.
is "batch size of the run" "$("$TOOL" get runs/traced/run.json custom_metrics.train/batch_size.mean)" 16
is "largest learning rate" "$("$TOOL" get runs/traced/run.json custom_metrics.train/lr.max)" 0.01
is "parameters" "$("$TOOL" get runs/traced/run.json custom_metrics.model/parameters.last)" 26912

# Numbers that are not finite end the run with a status of their own.
run train tiny.yaml run.name=nan policy.optimizer.kwargs.lr=1000 policy.init_std=10 policy.max_grad_norm=null \
    policy.optimizer.kwargs.weight_decay=1000 policy.scheduler=null sft.max_num_steps=200 policy.precision=float32 \
    checkpointing.enabled=false
expect 6 "is not finite (loss"
finish
