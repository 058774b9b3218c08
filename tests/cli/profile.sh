# Recording chosen steps, and `temper profile`.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml
unset NRL_NSYS_PROFILE_STEP_RANGE NRL_NSYS_WORKER_PATTERNS NVTX_INJECTION64_PATH
give_ceilings
trace() { "$TOOL" get "runs/$1" "$2"; }
steps() { grep -o 'ProfilerStep#[0-9]*' "$1" | sort -u | tr '\n' ' '; }

# Exactly the steps asked for, with tables at the end.
run train --progress plain tiny.yaml run.name=some profile.steps=3:5
if grep -q TEMPER_TRACE_OFF err; then
    echo "tracing is compiled out"
    exit 77
fi
expect 0
expect_out "profile of steps 3 to 4" "self ms" "total ms" "GFLOP/s" "of limit" "outside operators" \
    "memory by operator" "memory by kind" "trace: runs/some/trace/steps-3-4.json"
is "steps of the trace" "$(steps runs/some/trace/steps-3-4.json)" "ProfilerStep#3 ProfilerStep#4 "
for what in '"cat":"cpu_op","name":"temper::linear"' '"Input Dims":\[\[' '"\[memory\]"' \
    '"Total Allocated":' '"ph":"C".*"name":"train/loss".*"args":{"value":' '"Module Hierarchy":"layers.0.q_proj"' \
    '"ph":"s"' '"ph":"f"' '"name":"data worker"' '"name":"fill micro-batch"' \
    '"phase":"backward"' '"flops":' '"kernel":"'; do
    grep -q "$what" runs/some/trace/steps-3-4.json || fail "the trace lacks $what"
done
is "dropped events" "$(trace some/trace/steps-3-4.json temper.dropped_events)" 0

run train --json tiny.yaml run.name=json profile.steps=2:3
expect 0
tail -n 1 out >last.json
is "steps in JSON" "$("$TOOL" get last.json profile.steps)" 1
[ "$("$TOOL" get last.json profile.operators.0.self_ns)" -gt 0 ] || fail "no operator in JSON"
is "phases of JSON add up" "$(for p in setup data forward backward grad_norm optimizer validation \
    checkpointing logging unaccounted; do "$TOOL" get last.json profile.phases_s.$p; done |
    awk -v wall="$("$TOOL" get last.json profile.wall_s)" '{ s += $1 }
        END { print (s - wall < 1e-9 && wall - s < 1e-9) ? "yes" : "no" }')" yes

# `temper trace` reads the same figures from the file, to the nanosecond.
if "$TEMPER" help | grep -q '^ *trace '; then
    run trace --json runs/json/trace/steps-2-2.json
    expect 0
    for i in 0 1 2; do
        is "name of operator $i" "$("$TOOL" get out operators.$i.name)" \
            "$("$TOOL" get last.json profile.operators.$i.name)"
        is "calls of operator $i" "$("$TOOL" get out operators.$i.calls)" \
            "$("$TOOL" get last.json profile.operators.$i.count)"
        is "self time of operator $i" "$("$TOOL" get out operators.$i.host_self_ns)" \
            "$("$TOOL" get last.json profile.operators.$i.self_ns)"
    done
fi

# NeMo RL's variables: both or neither, ranges from 1, patterns over the workers' names.
export NRL_NSYS_PROFILE_STEP_RANGE=2:4
run train --quiet tiny.yaml run.name=env1
expect 2 "NRL_NSYS_PROFILE_STEP_RANGE is set and NRL_NSYS_WORKER_PATTERNS is not"
[ -e runs/env1 ] && fail "a refused run left a folder"
unset NRL_NSYS_PROFILE_STEP_RANGE
export NRL_NSYS_WORKER_PATTERNS='*policy*'
run train --quiet tiny.yaml run.name=env1
expect 2 "NRL_NSYS_WORKER_PATTERNS is set and NRL_NSYS_PROFILE_STEP_RANGE is not"
for range in 0:3 4:4 5:3 3 3: :3 a:b "3 :5" 3:5:7 -1:3 +1:3 3:5x 99999999999999999999:5; do
    NRL_NSYS_PROFILE_STEP_RANGE=$range run train --quiet tiny.yaml run.name=env1
    expect 2 "NRL_NSYS_PROFILE_STEP_RANGE: \"$range\" is no range of steps"
done
export NRL_NSYS_PROFILE_STEP_RANGE=2:4
run train --progress plain tiny.yaml run.name=env2
expect 0
is "steps by environment" "$(steps runs/env2/trace/steps-2-3.json)" "ProfilerStep#2 ProfilerStep#3 "
NRL_NSYS_WORKER_PATTERNS='vllm*, temper_policy_?orker' run train --progress plain tiny.yaml run.name=env3
expect 0
expect_out 'pattern "vllm*" names no worker of this run (temper_policy_worker)'
[ -e runs/env3/trace/steps-2-3.json ] || fail "the other pattern was not heard"
NRL_NSYS_WORKER_PATTERNS='*vllm*,*foo*,*policy*' run train --progress plain tiny.yaml run.name=env7 sft.max_num_steps=1
expect 0
expect_out 'pattern "*vllm*", "*foo*" names no worker of this run (temper_policy_worker)'
NRL_NSYS_WORKER_PATTERNS=' ,,' run train --quiet tiny.yaml run.name=env8
expect 2 'NRL_NSYS_WORKER_PATTERNS: " ,," has no pattern in it; write names or wildcards'
NRL_NSYS_WORKER_PATTERNS='dtensor_policy_worker' run train --progress plain tiny.yaml run.name=env4
expect 0
expect_out 'pattern "dtensor_policy_worker" names no worker' 'nothing is profiled'
[ -e runs/env4/trace ] && fail "a worker that no pattern names was profiled"
run train --progress plain tiny.yaml run.name=env5 profile.steps=4:5
expect 0
expect_out "profile.steps is set: NRL_NSYS_PROFILE_STEP_RANGE has no effect"
is "the configuration wins" "$(ls runs/env5/trace)" steps-4-4.json
NRL_NSYS_PROFILE_STEP_RANGE=50:60 run train --progress plain tiny.yaml run.name=env6
expect 0
expect_out "NRL_NSYS_PROFILE_STEP_RANGE asks for steps 50 to 59, which this run did not reach"
unset NRL_NSYS_PROFILE_STEP_RANGE NRL_NSYS_WORKER_PATTERNS
run train --progress plain tiny.yaml run.name=workers profile.steps=2:3 'profile.workers="*gen*"'
expect 0
expect_out 'pattern "*gen*" names no worker'
for patterns in , ' ' '""'; do
    run train --quiet tiny.yaml run.name=none profile.steps=2:3 "profile.workers=$patterns"
    expect 2 "has no pattern in it; write names or wildcards"
done
run train --quiet tiny.yaml run.name=none 'profile.workers="*policy*"'
expect 2 "profile.workers: it is set and profile.steps is not; set that too, or take this back by profile.workers=\"*\""
grep -q NRL_NSYS err && fail "variables that are not set are named"
NRL_NSYS_PROFILE_STEP_RANGE=2:3 NRL_NSYS_WORKER_PATTERNS='*policy*' run train --quiet tiny.yaml run.name=none 'profile.workers="*policy*"'
expect 2 "profile.workers=\"*\" (NRL_NSYS_PROFILE_STEP_RANGE has its patterns in NRL_NSYS_WORKER_PATTERNS)"
[ -e runs/none ] && fail "a refused run left a folder"
# What the message says helps over a recipe that records.
{ cat tiny.yaml && echo 'profile: {steps: "2:3", workers: "*policy*"}'; } >recorded.yaml
run train --quiet recorded.yaml run.name=taken-back sft.max_num_steps=2 profile.steps=null "profile.workers=*"
expect 0
[ -e runs/taken-back/trace ] && fail "steps were recorded that were taken back"
run train --progress plain tiny.yaml run.name=late profile.steps=5:90
expect 0
is "a range that the run ends in" "$(steps runs/late/trace/steps-5-89.json)" \
    "ProfilerStep#5 ProfilerStep#6 "
expect_out "profile of steps 5 to 6"

NVTX_INJECTION64_PATH=/nowhere.so run train --progress plain tiny.yaml run.name=nvtx sft.max_num_steps=1
expect 0
expect_out "NVTX_INJECTION64_PATH names no NVTX tool that can be loaded (/nowhere.so)"

# A run that generates has two workers; each can be recorded without the other.
run train --quiet tiny.yaml run.dir=base sft.max_num_steps=2 sft.val_period=0
expect 0
cat >grpo.yaml <<'END'
grpo: {num_prompts_per_step: 2, num_generations_per_prompt: 2, max_num_steps: 3, max_num_epochs: 100, val_period: 0}
policy:
  model_name: base/checkpoints/step-2/model
  tokenizer: {chat_template: null}
  train_global_batch_size: 4
  train_micro_batch_size: 4
  max_total_sequence_length: 16
  generation: {max_new_tokens: 4, max_running: 4}
data:
  train: {dataset_name: arithmetic}
  arithmetic: {n_examples: 200, n_validation: 20, digits: 1, operators: "+"}
END
for worker in policy generation; do
    run train --quiet grpo.yaml run.dir=of-$worker profile.steps=2:3 "profile.workers=\"*$worker*\""
    expect 0
done
grep -q '"name":"generation"' of-generation/trace/steps-2-2.json || fail "no generation"
grep -q '"name":"generation"' of-policy/trace/steps-2-2.json && fail "generation with the policy"
grep -q '"temper::adamw"' of-policy/trace/steps-2-2.json || fail "no update"
grep -q '"temper::adamw"' of-generation/trace/steps-2-2.json && fail "an update with generation"
run profile grpo.yaml --warm-up 1 --steps 3 --record 1 --name grpo
expect 0
expect_out 'profile "grpo" of grpo.yaml' "generation" "reward" "launches for" "reference" "update"
cp runs/profiles/grpo/profile.json grpo.json
for part in generation reference train update; do
    grep -q "\"part\": *\"$part\"" grpo.json || fail "no operator of $part"
done
tr -d ' \n' <grpo.json >flat.json
grep -q '"name":"paged_attention","part":"generation"' flat.json || fail "no attention over the cache"
grep -q '"name":"paged_attention","part":"generation","launches_per_step":[^}]*"bytes_per_step":null' flat.json ||
    fail "bytes of attention whose context varies are claimed"
grep -q '"name":"linear_panels","part":"generation","launches_per_step":[^}]*"bytes_per_step":[0-9]' flat.json ||
    fail "bytes of a product whose rows vary are not known"

# The table that ends a run is of its steps, whatever was validated between them, and of all that ran in them.
launches() { tr '}' '\n' <$1.json | sed -n 's/.*"kernel":"\([^"]*\)","recomputed.*"launches_per_step":\([^,]*\).*/\1 \2/p' | sort; }
for recipe in tiny grpo; do
    section=sft
    [ $recipe = grpo ] && section=grpo
    run train --json $recipe.yaml run.dir=$recipe-plain $section.val_period=0 $section.max_num_steps=3
    expect 0
    tail -n 1 out >plain.json
    run train --json $recipe.yaml run.dir=$recipe-validated $section.val_period=1 $section.val_at_start=true $section.max_num_steps=3
    expect 0
    tail -n 1 out >validated.json
    is "launches of $recipe with validation" "$(launches validated)" "$(launches plain)"
    grep -q '"event":"validation"' out || fail "$recipe did not validate"
done
for operator in linear_panels paged_attention sample linear_ce adamw; do
    grep -q "\"operator\":\"$operator\"" plain.json || fail "no $operator in the table of GRPO"
done
grep -q '"operator":"paged_attention"[^}]*"bytes_per_step":null' plain.json || fail "bytes of attention whose context varies are claimed at the end"

# Baseline, analysis, bottlenecks, in one command.
run profile tiny.yaml --warm-up 1 --steps 4 --record 1 --name before
expect 0
expect_out 'profile "before" of tiny.yaml: 1 warm-up, 4 timed and 1 recorded steps' "tokens/s trained" \
    "95 % interval" "outside operators" "bottlenecks" "try: " "growth: unknown, fewer than ten"
[ -e runs/profiles/before/profile.json ] || fail "the profile was not kept"
[ -e runs/profiles/before/checkpoints ] && fail "profiling wrote checkpoints"
run profile tiny.yaml --name before
expect 2 'there is a profile named "before"' "--replace"
# An address sanitizer holds back what was freed, and frames that were left: that would be growth.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}quarantine_size_mb=0:thread_local_quarantine_size_kb=0:detect_stack_use_after_return=0"
run profile tiny.yaml --warm-up 0 --steps 10 --record 1 --against before --json
expect 0
cp out profile.json
is "steps timed" "$("$TOOL" get profile.json timed_steps)" 10
is "growth" "$("$TOOL" get profile.json memory_growth.verdict | head -c 4)" "none"
"$TOOL" get profile.json comparison.verdict | grep -Eqx 'better|worse|same|not shown' ||
    fail "no verdict"
is "against" "$("$TOOL" get profile.json comparison.against)" before
"$TOOL" get profile.json bottlenecks.0.evidence >/dev/null || fail "a bottleneck without evidence"
"$TOOL" get profile.json recorded.operators.0.total_ns >/dev/null || fail "no recorded operators"
run profile tiny.yaml --warm-up 1 --steps 2 --record 1 --name before --replace train.nonfinite_policy=restore train.spike_policy=restore
expect 0
run profile tiny.yaml --against nothing
expect 2 'there is no profile named "nothing"'
run profile tiny.yaml --name a/b
expect 2 '"a/b" is no name for a profile'
run profile tiny.yaml --steps 1
expect 2 "--steps takes a whole number from 2"
echo '{"schema": 9}' >runs/profiles/before/profile.json
run profile tiny.yaml --against before
expect 2 "is no profile that this version reads"
finish
