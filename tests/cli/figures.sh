# One quantity, one number: what `temper plan`, the library and the run itself plan is the same to
# the byte, and what is measured is within 1 % of it, also on a machine that was never measured.
. "$SOURCE/tests/cli/lib.sh"
make_model
cat >rows.jsonl <<'END'
{"question": "the quick", "answer": "#### 1"}
{"question": "brown fox", "answer": "#### 2"}
{"question": "jumps over", "answer": "#### 3"}
{"question": "the lazy dog", "answer": "#### 4"}
END
for i in 1 2 3 4 5 6 7 8; do
    echo '{"prompt": "the quick", "chosen": " brown fox", "rejected": " lazy dog"}'
done >pairs.jsonl
for i in 1 2 3 4 5 6 7 8 9 10; do
    echo '{"text": "the quick brown fox jumps over the lazy dog"}'
done >texts.jsonl

write_grpo "num_generations_per_prompt: 4, max_num_steps: 1" "math: {}"
cat >dpo.yaml <<'END'
dpo: {max_num_steps: 1, val_period: 0}
policy:
  model_name: model
  tokenizer: {chat_template: null}
  train_global_batch_size: 4
  train_micro_batch_size: 2
  max_total_sequence_length: 32
data: {train: {data_path: pairs.jsonl}}
checkpointing: {save_period: 1}
END
cat >sft.yaml <<'END'
sft: {max_num_steps: 1, val_period: 0}
policy:
  model_name: model
  tokenizer: {chat_template: null}
  train_global_batch_size: 4
  train_micro_batch_size: 2
  max_total_sequence_length: 32
data: {train: {data_path: texts.jsonl}}
END

n=0
kinds="weights shadow gradients optimizer activations kv_cache workspace constants data"
# same RECIPE KEY=VALUE...: three plans and a measurement; every kind of memory counts.
same() {
    n=$((n + 1))
    recipe=$1
    shift
    run plan --json "$recipe" "$@"
    expect 0
    mv out plan.json
    library=$("$TOOL" plan "$recipe" "$@") || fail "the library has no plan of $recipe $*"
    is "library's plan of $recipe $*" "$library" "$("$TOOL" get plan.json memory.planned_peak_bytes)"
    XDG_CACHE_HOME=$work/fresh-$n run train "$recipe" "$@" run.name=r$n
    expect 0
    json=runs/r$n/run.json
    is "run's plan of $recipe $*" "$("$TOOL" get $json memory.planned_peak_bytes)" "$library"
    for kind in $kinds; do
        is "run's plan of $kind, $recipe $*" "$("$TOOL" get $json memory.planned_bytes_by_kind.$kind)" \
            "$("$TOOL" get plan.json memory.$kind)"
        near "$kind of $recipe $*" "$("$TOOL" get $json memory.planned_bytes_by_kind.$kind)" \
            "$("$TOOL" get $json memory.peak_bytes_by_kind.$kind)"
    done
    measured=$("$TOOL" get $json memory.measured_peak_bytes)
    near "peak of $recipe $*" "$library" "$measured"
    shown=$(sed -n 's/.*planned \/ measured \([0-9.]*\)).*/\1/p' out)
    near "the closing table of $recipe $*" "$(echo "$shown" | tr -d .)" 10000
}

near() { # WHAT PLANNED MEASURED: within 1 %
    awk -v p="$2" -v m="$3" 'BEGIN { d = p - m; if (d < 0) d = -d; exit !(d * 100 <= m) }' ||
        fail "$1: planned $2, measured $3"
}

same sft.yaml
same sft.yaml policy.precision=bfloat16 policy.recompute=full
same sft.yaml policy.sequence_packing.enabled=true policy.sequence_packing.train_mb_tokens=96 \
    data.train.split_validation_size=0.2 sft.val_global_batch_size=2 sft.val_period=1
same sft.yaml data.num_workers=2 data.prefetch_factor=3 policy.recompute=selective
same dpo.yaml
same dpo.yaml policy.precision=bfloat16 policy.recompute=every:2 data.train.split_validation_size=0.3 \
    dpo.val_global_batch_size=2 dpo.val_period=1
same grpo.yaml
same grpo.yaml loss_fn.reference_policy_kl_penalty=0.01
same grpo.yaml loss_fn.reference_policy_kl_penalty=0.01 policy.precision=bfloat16 \
    policy.recompute=full policy.generation.cache_mib=1
same grpo.yaml policy.sequence_packing.enabled=true policy.sequence_packing.train_mb_tokens=64 \
    grpo.val_period=1 grpo.max_val_samples=2 data.train.split_validation_size=0.5

# A resumed run of DPO holds the first weights as well for a while; the plan says how much.
run plan --json dpo.yaml
more=$("$TOOL" get out memory.more_when_resumed_bytes)
first=$("$TOOL" get out memory.planned_peak_bytes)
run train --resume dpo.yaml run.name=r5 dpo.max_num_steps=2
expect 0
is "plan of the resumed run" "$("$TOOL" get runs/r5/run.json memory.planned_peak_bytes)" $((first + more))
near "peak of the resumed run" $((first + more)) "$("$TOOL" get runs/r5/run.json memory.measured_peak_bytes)"

# A plan reads no data: a recipe that does not name it, or names one that is not there.
run plan sft.yaml data.train.data_path=nothing.jsonl
expect 0
run plan sft.yaml data.train.data_path=null
expect 0
run plan "$SOURCE/recipes/grpo.yaml" policy.model_name=model policy.max_total_sequence_length=64
expect 0
run train sft.yaml data.train.data_path=null run.name=none
expect 2 "data.train.data_path"

# Too much: the first line says so, with the levers; a run and doctor say the same.
too_much="sft.yaml policy.train_global_batch_size=2048 policy.train_micro_batch_size=2048 \
    engine.memory_fraction=0.0101"
needs=$(TEMPER_SYSTEM_ROOT=$work/small; export TEMPER_SYSTEM_ROOT
    mkdir -p small/proc/self small/sys/fs/cgroup/box
    echo "0::/box/inner" >small/proc/self/cgroup
    : >small/sys/fs/cgroup/cgroup.controllers
    echo 104857600 >small/sys/fs/cgroup/box/memory.max
    "$TEMPER" plan $too_much >out 2>err
    echo $?)
is "exit status of a plan that does not fit" "$needs" 5
head -n 1 out | grep -q "^does not fit: needs .*, limit 1.01 MiB (engine.memory_fraction 0.0101 of 100.0 MiB: cgroup memory.max of /box)$" ||
    fail "the first line of the plan does not give the verdict"
grep -q "with policy.sequence_packing.train_mb_tokens=64 it needs .* and fits" out || fail "no lever is named"
head -n 1 out >verdict
TEMPER_SYSTEM_ROOT=$work/small run train $too_much run.name=refused
expect 5 "$(cat verdict)"
[ ! -e runs/refused ] || fail "a refused run left a folder"
finish
