# temper ablate: what is run, what is said, what is left behind.  Times decide nothing here.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml

# ---- two levers, in JSON ----
run ablate tiny.yaml --lever recompute:policy.recompute=full/none \
    --lever bf16:policy.precision=bfloat16/float32 --rounds 1 --steps 3 --warm-up 1 --pairs 1 --json -q
expect 0
is "first lever" "$("$TOOL" get out levers.0.name)" recompute
is "second lever" "$("$TOOL" get out levers.1.name)" bf16
is rounds "$("$TOOL" get out rounds)" 1
is "verdict of one round" "$("$TOOL" get out levers.0.step_time.verdict)" "not shown"
is "interval of one round" "$("$TOOL" get out levers.0.step_time.ci95)" null
is "recomputed losses" "$("$TOOL" get out levers.0.loss.verdict)" "bit-identical"
is "steps of the losses" "$("$TOOL" get out levers.0.loss.steps)" 4
is "planned bytes are exact" "$("$TOOL" get out levers.0.peak_memory.exact)" true
for key in levers.0.step_time.effect levers.0.tokens_per_s.effect levers.0.peak_memory.ci95.1 \
    all_off.step_time.effect all_off.peak_memory.verdict; do
    "$TOOL" get out $key >/dev/null || fail "no $key in ablate --json"
done
is "runs: one for the start, 4 variants, and those of the pair" "$("$TOOL" get out runs)" 9
folder=runs/tiny-ablate
for file in report.json report.md effects.svg samples.jsonl; do
    [ -s "$folder/$file" ] || fail "no $folder/$file"
done
is "files left" "$(ls "$folder" | wc -l)" 4
is "raw samples" "$(wc -l <"$folder/samples.jsonl")" 9
[ ! -e runs/tiny ] || fail "the recipe's own run folder was made"
cmp -s out "$folder/report.json" || fail "report.json is not what --json prints"

# ---- a table; folders are never written over ----
run ablate tiny.yaml --lever nothing:run.name=one/two --rounds 1 --steps 1 --warm-up 0 -q
expect 0
expect_out "nothing" "bit-identical" "Evidence: runs/tiny-ablate-2"
# On a narrow screen every part of the table names its rows.
export COLUMNS=60
run ablate tiny.yaml --lever nothing:run.name=one/two --rounds 1 --steps 1 --warm-up 0 --out narrow -q
unset COLUMNS
expect 0
[ "$(grep -c "^nothing  " out)" -ge 2 ] || fail "a part of the table has no names"
run ablate tiny.yaml --lever nothing:run.name=one/two --rounds 1 --out "$folder" -q
expect 2 "is there already; --out names another folder"

# ---- levers of the table: those named, by name ----
run ablate tiny.yaml --levers fuse-swiglu,fuse-residual-norm --rounds 1 --steps 1 --warm-up 0 \
    --pairs 0 --json --out two -q
expect 0
is "a lever by name" "$("$TOOL" get out levers.0.name)" fuse-swiglu
is "a run without it" "$(grep -c '"without fuse-swiglu","settings":\["engine.disable_passes=\[fuse-swiglu\]"' two/samples.jsonl)" 1
is "a run without any" "$(grep -c '"none","settings":\["engine.disable_passes=\[fuse-swiglu, fuse-residual-norm\]"' two/samples.jsonl)" 1

# A list that levers share has what the recipe has in it; a plug-in is a lever by its name.
run ablate tiny.yaml "engine.plugins=[$BUILD/examples/libpass.so]" engine.disable_passes=[cse] \
    --levers fuse-swiglu,drop-scale-by-one --rounds 1 --steps 1 --warm-up 0 --pairs 0 --json --out list -q
expect 0
is "a plug-in by name" "$("$TOOL" get out levers.1.name)" drop-scale-by-one
for settings in '"all","settings":["engine.disable_passes=[cse]"]' \
    '"without fuse-swiglu","settings":["engine.disable_passes=[fuse-swiglu, cse]"]' \
    '"without drop-scale-by-one","settings":["engine.disable_passes=[drop-scale-by-one, cse]"]' \
    '"none","settings":["engine.disable_passes=[fuse-swiglu, drop-scale-by-one, cse]"]'; do
    grep -qF "$settings" list/samples.jsonl || fail "no run with $settings"
done

# ---- what is measured is what was asked for ----
# A run has no checkpoint to go back to, and memory that is short changes none of its settings.
mkdir -p box/proc/self box/sys/fs/cgroup/pod
echo "0::/pod" >box/proc/self/cgroup
: >box/sys/fs/cgroup/cgroup.controllers
echo 67108864 >box/sys/fs/cgroup/pod/memory.max
echo 63000000 >box/sys/fs/cgroup/pod/memory.current
echo "inactive_file 1000" >box/sys/fs/cgroup/pod/memory.stat
TEMPER_SYSTEM_ROOT=$work/box run ablate tiny.yaml policy.precision=float32 train.nonfinite_policy=restore \
    train.spike_policy=restore --lever recompute:policy.recompute=full/none --rounds 1 --steps 5 --warm-up 0 \
    --json --out watched -q
expect 0
is "recomputed losses where memory is short" "$("$TOOL" get out levers.0.loss.verdict)" "bit-identical"

# ---- levers that would undo each other ----
run ablate tiny.yaml --lever a:policy.precision=bfloat16/float32 --levers mixed-precision --rounds 1 --steps 2 --out other
expect 2 "levers 'a' and 'mixed-precision' both set policy.precision"
run ablate tiny.yaml --lever 'a:engine.disable_passes=[]/[cse]' --levers dce --rounds 1 --steps 2 --out other
expect 2 "both set engine.disable_passes"
run ablate tiny.yaml --lever a:run.name=x/y --lever b:run.name=x/z --rounds 1 --steps 2 --out other
expect 2 "both set run.name"
run ablate tiny.yaml --lever a:run.name=x/y --lever b:++run.name=x/z --rounds 1 --steps 2 --out other
expect 2 "both set run.name"
[ ! -e other ] || fail "a refused ablation leaves a folder"

# ---- what every run sets itself is no lever ----
for lever in checkpointing.enabled=true/false sft.max_num_steps=1/2 sft.val_period=1/0 run.dir=a/b; do
    run ablate tiny.yaml --lever "own:$lever" --rounds 1 --steps 2 --out other
    expect 2 "${lever%%=*} is no lever: every run sets it itself"
    [ ! -e other ] || fail "a refused ablation leaves a folder"
done
while read -r key lever; do # other spellings
    run ablate tiny.yaml --lever "own:$lever" --rounds 1 --steps 2 --out other
    expect 2 "$key is no lever: every run sets it itself"
done <<'END'
sft.val_period ++sft.val_period=5/0
sft.val_period sft={val_period: 3}/{val_period: 0}
checkpointing.enabled checkpointing={enabled: true}/{enabled: false}
logger.prometheus.path logger={prometheus: {path: x}}/{prometheus: {path: y}}
END

# ---- what fails has a name, and the others go on ----
# (A weight grows a million times at every step: it is infinite after a few, however its sums are rounded.)
run ablate tiny.yaml policy.optimizer.kwargs.weight_decay=1000 --lever bad:policy.recompute=none/nonsense \
    --lever nan:policy.optimizer.kwargs.lr=1.0e-6/1000 --lever fine:run.name=one/two \
    --rounds 1 --steps 12 --pairs 0 --json --out failing
expect 0 "without bad: refused: " "without nan: not finite: "
is "the one that fails" "$("$TOOL" get out levers.0.step_time.effect)" null
case $("$TOOL" get out levers.0.step_time.why) in
*"recompute 'nonsense' is unknown"*) ;;
*) fail "the failed variant's reason is '$("$TOOL" get out levers.0.step_time.why)'" ;;
esac
case $("$TOOL" get out levers.2.step_time.effect) in
[0-9]*) ;;
*) fail "the lever beside the failing ones has no effect" ;;
esac
run ablate tiny.yaml --lever wrong:policy.recompute=nonsense/none --rounds 1 --out none -q
expect 2 "recompute 'nonsense' is unknown"
[ ! -e none ] || fail "a folder without a measurement stays"

# ---- too little time is said, not guessed ----
run ablate tiny.yaml --lever nothing:run.name=one/two --budget 1ms --out short -q
expect 2 "no time is left"

# ---- wrong words ----
OMPI_COMM_WORLD_SIZE=2 run ablate tiny.yaml --lever a:run.name=1/2 --rounds 1
expect 2 "ablate and tune measure runs of one process: start them without mpirun"
run ablate tiny.yaml --lever nonsense
expect 2 "'nonsense' is no lever; one is NAME:KEY=ON/OFF"
run ablate tiny.yaml --lever a:b=1/2 --lever a:c=1/2
expect 2 "there are two levers 'a'"
run ablate tiny.yaml --levers fuse-swiglu,x
expect 2 "there is no lever 'x'; there are mixed-precision, packing, "
run ablate missing.yaml --lever a:b=1/2
expect 2 "missing.yaml"
run ablate tiny.yaml --lever a:run.name=1/2 --budget soon
expect 2 "--budget takes a time"

# ---- Ctrl-C ends with what is there ----
"$TEMPER" ablate tiny.yaml --lever nothing:run.name=one/two --rounds 5000 --steps 2 --warm-up 0 \
    --out stopped -q >out 2>err </dev/null &
pid=$!
wait_until '[ -s stopped/samples.jsonl ] && [ "$(wc -l <stopped/samples.jsonl)" -ge 3 ]'
kill -INT $pid
wait $pid
is "status after Ctrl-C" $? 130
expect_out "Interrupted: this is what was measured until then."
[ -s stopped/report.json ] || fail "no report after Ctrl-C"
is "interrupted" "$("$TOOL" get stopped/report.json interrupted)" true
is "folders of runs left" "$(ls -d stopped/run-* 2>/dev/null | wc -l)" 0

# A run that ends before it is warm says what to change.
run ablate tiny.yaml --lever a:policy.recompute=full/none --rounds 1 --steps 5 --warm-up 20 sft.max_num_epochs=1 --out short
expect 2 "none is left; raise the limits of the run (max_num_steps, max_num_epochs) or lower --warm-up"

finish
