# temper plan: text, JSON, launches; nothing is written.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml

run plan tiny.yaml policy.precision=bfloat16
expect_out "second copy "
run plan tiny.yaml
expect 0
expect_out "parameters" "memory" "weights" "optimizer" "peak" "step time" "checkpoint"
[ ! -e runs ] || fail "plan wrote a run folder"

# 260*32 embedding (tied), per layer: q 32*32, k and v 16*32 each, o 32*32, three of 64*32,
# two norms of 32; one last norm of 32.
run plan --json tiny.yaml
expect 0
is parameters "$("$TOOL" get out parameters)" $((260 * 32 + 2 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 64 * 32 + 2 * 32) + 32))
is "tokens of a micro-batch" "$("$TOOL" get out tokens_per_micro_batch)" 64
is "bytes of the weights" "$("$TOOL" get out memory.weights)" $((4 * $("$TOOL" get out parameters)))
"$TOOL" get out memory.planned_peak_bytes >/dev/null || fail "no planned peak in plan --json"

# 16 full sequences of 16 tokens, one in each micro-batch of 24: a third of the places is not computed, all are planned.
half="policy.sequence_packing.train_mb_tokens=24"
run plan --json tiny.yaml $half
expect 0
is "micro-batches" "$("$TOOL" get out tokens_per_micro_batch)" 24
peak=$("$TOOL" get out memory.planned_peak_bytes) used=$("$TOOL" get out flops_per_step)
run plan --json tiny.yaml $half engine.padding_free=false
expect 0
is "peak of all places" "$("$TOOL" get out memory.planned_peak_bytes)" "$peak"
is "work of a step, of that of all places" "$(awk -v a="$used" -v b="$("$TOOL" get out flops_per_step)" 'BEGIN { printf "%.6f", a / b }')" 0.666667

run plan tiny.yaml --print train
expect 0
expect_out "linear" "attention_grad"
run plan tiny.yaml policy.compile_mode=none
expect 0
run plan tiny.yaml --isa portable
expect 0

# Without ceilings the time is unknown; measured once, it is predicted.
run doctor --seconds 0.2 --json
expect 0
"$TOOL" get out gemm_f32_flops_per_s >/dev/null || fail "doctor --json has no ceiling"
give_ceilings
run plan --json tiny.yaml
expect 0
case $("$TOOL" get out predicted_step_s) in
[0-9]*) ;;
*) fail "plan --json predicts no step time after doctor" ;;
esac

# By phase: what each works with; together are all kinds of it.
bytes() { "$TOOL" get out memory.by_phase.$1; }
parameters=$("$TOOL" get out parameters)
is "weights while it trains" "$(bytes train.weights)" $((4 * parameters))
is "gradients while it evaluates" "$(bytes evaluate.gradients)" 0
is "gradients while it updates" "$(bytes update.gradients)" $((4 * parameters + 8))
is "moments while it updates" "$(bytes update.optimizer)" $((8 * parameters))
is "bytes of a checkpoint" "$(bytes checkpoint.together)" $((12 * parameters))
if bytes generate.together >/dev/null 2>&1; then fail "SFT has a phase that generates"; fi

# Rollouts and reference are graphs of the same set: planned with it, and told the same options.
cat >rollouts.yaml <<'END'
grpo: {num_prompts_per_step: 2, num_generations_per_prompt: 4, max_num_steps: 1, val_period: 0}
policy:
  init: random
  model_config: tiny.json
  tokenizer: {name: null, chat_template: null, train_vocab_size: 260}
  train_global_batch_size: 8
  train_micro_batch_size: 4
  max_total_sequence_length: 16
  generation: {max_new_tokens: 4}
loss_fn: {reference_policy_kl_penalty: 0.01}
env: {arithmetic: {}}
data: {train: {dataset_name: arithmetic}, arithmetic: {n_examples: 200, n_validation: 20, digits: 1, operators: "+"}}
checkpointing: {enabled: false}
END
run plan rollouts.yaml
expect 0
expect_out "generate" "reference" "without generation it would be" "without the reference model it would be"
run plan --json rollouts.yaml
expect 0
for part in generation reference training update; do
    case $("$TOOL" get out predicted_${part}_s) in
    [0-9]*) ;;
    *) fail "plan --json predicts no time of $part" ;;
    esac
done
# What shares its memory does not add up.
peak=$("$TOOL" get out memory.planned_peak_bytes)
sum=0
for phase in train generate reference update; do sum=$((sum + $(bytes $phase.together))); done
[ "$sum" -gt "$peak" ] || fail "the phases need $sum bytes together, the run $peak"

run plan rollouts.yaml --print generate
expect 0
expect_out "linear_panels"
for off in policy.compile_mode=none 'engine.disable_passes=[pack-weights]'; do
    run plan rollouts.yaml --print generate "$off"
    expect 0
    if grep -q linear_panels out; then fail "$off does not reach the graph of rollouts"; fi
done
run plan rollouts.yaml --print reference policy.compile_mode=none
expect 0
if grep -q swiglu out; then fail "policy.compile_mode=none does not reach the reference"; fi
run plan tiny.yaml --print generate
expect 2 "--print takes train"

run train --quiet rollouts.yaml run.name=dumped 'engine.dump=[autocast,plan]'
expect 0
for graph in train eval norm update generate reference; do
    for stage in autocast plan; do
        [ -s runs/dumped/dump/$graph.$stage.txt ] || fail "engine.dump wrote no $graph.$stage.txt"
    done
done
grep -q 'role=copy of ' runs/dumped/dump/update.autocast.txt || fail "the update writes no copies"

# A step of the run is told beside the one that was planned.
run train rollouts.yaml run.name=timed
expect 0
expect_out "step on average"
for key in planned_step_s measured_step_s; do
    case $("$TOOL" get runs/timed/run.json time.$key) in
    [0-9]*) ;;
    *) fail "run.json has no time.$key" ;;
    esac
done

# Too much: the verdict in the first line, what each change saves, whether it then fits.
mkdir -p small/proc/self small/sys/fs/cgroup/box
echo "0::/box/inner" >small/proc/self/cgroup
: >small/sys/fs/cgroup/cgroup.controllers
echo 104857600 >small/sys/fs/cgroup/box/memory.max
too_much="tiny.yaml policy.train_global_batch_size=65536 policy.train_micro_batch_size=65536 policy.precision=float32"
TEMPER_SYSTEM_ROOT=$work/small run plan $too_much
expect 5
case $(head -n 1 out) in
"does not fit: needs "*) ;;
*) fail "the first line is no verdict" ;;
esac
is "changes that are named" "$(sed -n '2,4p' out | grep -c '^  with .* it needs .* less) and ')" 3
TEMPER_SYSTEM_ROOT=$work/small run plan --json $too_much
expect 5
is "fits" "$("$TOOL" get out fits)" false
for i in 0 1 2; do
    with=$("$TOOL" get out remedies.$i.planned_peak_bytes) saved=$("$TOOL" get out remedies.$i.saved_bytes)
    is "what change $i saves" $((with + saved)) "$("$TOOL" get out memory.planned_peak_bytes)"
done

# What train refuses before it begins, plan, doctor and config refuse in the same words.
refused() {
    words=$1
    shift
    for command in train plan "doctor --cached" config; do
        # shellcheck disable=SC2086
        run $command tiny.yaml run.name=never "$@"
        expect 2 "$words"
    done
    [ ! -e runs/never/run.json ] || fail "a run began: $words"
}
refused "policy.tokenizer.train_vocab_size: works with the generated corpus" policy.tokenizer.name=null \
    policy.tokenizer.train_vocab_size=300 data.train.dataset_name=null data.train.data_path=rows.jsonl
refused "monitor.alarms.0: 'x', column 2" 'monitor.alarms=[x]'
refused "there is no dimension 'speed'" performance_analysis.enabled=true 'performance_analysis.tasks=[speed]'
# What asks and what judges: nothing is opened, no judge is started.
judged() {
    words=$1
    shift
    for command in train plan "doctor --cached" config; do
        # shellcheck disable=SC2086
        run $command "$SOURCE/recipes/demo-grpo.yaml" policy.model_name=null policy.init=random \
            policy.model_config="$SOURCE/recipes/demo-model.json" policy.tokenizer.name=. run.name=never "$@"
        expect 2 "$words"
    done
}
judged 'there is no environment "nosuch"' data.train.env_name=nosuch
judged 'env has 2 environments; name the one that judges with data.default.env_name' data.train.dataset_name=null \
    data.train.data_path=rows.jsonl 'env={math: {}, exact: {}}'
judged '"OpenMathInstruct-2" makes no questions; arithmetic and countdown do' data.train.dataset_name=OpenMathInstruct-2

# A plan opens no data: what it needs can be asked before the data are there.
run plan tiny.yaml data.train.dataset_name=null data.train.data_path=nowhere.jsonl policy.tokenizer.name=. \
    policy.tokenizer.train_vocab_size=null
expect 0
for command in train plan "doctor --cached"; do
    # shellcheck disable=SC2086
    run $command tiny.yaml distributed.tensor_parallel_size=2
    expect 2 "1 process cannot share the layers by 2"
done
finish
