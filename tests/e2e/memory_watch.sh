# Memory that is short under way: the run takes less from the next step on, says so, and ends at the
# weights of a run that had those settings from there on; so does one that is resumed.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml
fixed="policy.precision=float32 sft.val_period=0 sft.val_at_end=false checkpointing.save_period=1 checkpointing.keep_top_k=null"
same_weights() {
    for file in model/model.safetensors optimizer.safetensors; do
        cmp "$1/checkpoints/step-$2/$file" "$3/checkpoints/step-$2/$file" || fail "$file of $1 is not that of $3"
    done
}

# What changes no bit comes first: recomputation, twice.
run train tiny.yaml run.dir=short $fixed train.inject_pressure=[2,3]
expect 0
expect_out "step 2: memory is short: as train.inject_pressure says; from here on policy.recompute=selective, planned peak" \
    "step 3: memory is short: as train.inject_pressure says; from here on policy.recompute=full, planned peak"
is "the lever" "$("$TOOL" get short/run.json levers.2.name) $("$TOOL" get short/run.json levers.2.state), $("$TOOL" get short/run.json levers.2.why)" \
    "recompute on, memory watch"
is "step of the first change" "$("$TOOL" get short/run.json memory_watch.0.step)" 2
is "the second change" "$("$TOOL" get short/run.json memory_watch.1.change)" "policy.recompute=full"
[ "$("$TOOL" get short/run.json memory_watch.1.planned_bytes_after)" -lt "$("$TOOL" get short/run.json memory_watch.0.planned_bytes_before)" ] ||
    fail "the planned peak is no lower"
run train -q tiny.yaml run.dir=calm $fixed
expect 0
same_weights short 6 calm
is "changes of a calm run" "$("$TOOL" get calm/run.json memory_watch)" "[]"

# Then smaller micro-batches: as a run that goes on from that step with them.
small="$fixed policy.recompute=full"
run train tiny.yaml run.dir=smaller $small train.inject_pressure=[3]
expect 0
expect_out "step 3: memory is short" "from here on policy.sequence_packing.train_mb_tokens=32"
run train -q tiny.yaml run.dir=given $small sft.max_num_steps=3
expect 0
run train tiny.yaml run.dir=given $small policy.sequence_packing.train_mb_tokens=32 --resume
expect 0
expect_out "--resume goes on with another policy.sequence_packing.train_mb_tokens: 64 -> 32"
same_weights smaller 6 given
cmp -s smaller/checkpoints/step-6/model/model.safetensors calm/checkpoints/step-6/model/model.safetensors &&
    fail "smaller micro-batches change no bit: the test shows nothing"

# Stopped and resumed with the same recipe, the smaller micro-batches stay; or not, as is asked for.
run train -q tiny.yaml run.dir=parts $small train.inject_pressure=[3] sft.max_num_steps=4
expect 0
run train tiny.yaml run.dir=parts $small --resume
expect 0
expect_out "memory was short before: the run goes on with policy.sequence_packing.train_mb_tokens=32"
same_weights smaller 6 parts

# The checkpoint of the very step has them: cut there, the run goes on as it would have.
is "settings of step 3" "$("$TOOL" get smaller/checkpoints/step-3/state.json settings)" "policy.sequence_packing.train_mb_tokens=32"
cp -r smaller cut
rm -r cut/checkpoints/step-[456]
run train tiny.yaml run.dir=cut $small --resume
expect 0
expect_out "memory was short before: the run goes on with policy.sequence_packing.train_mb_tokens=32"
same_weights smaller 6 cut

# Nothing left to change: said once, and the run goes on.
run train tiny.yaml run.dir=least $small policy.sequence_packing.train_mb_tokens=16 engine.loss_chunk=1 train.inject_pressure=[1,2]
expect 0
expect_out "step 1: memory is short: as train.inject_pressure says; nothing is changed: no setting of Temper makes it smaller"
is "times that it is said" "$(grep -c 'memory is short' out)" 1
is "what was changed then" "$("$TOOL" get least/run.json memory_watch.0.change)" "null"

# Without injection: what a cgroup has in use is held against its limit; what of it is files can be had back.
mkdir -p box/proc/self box/sys/fs/cgroup/pod
echo "0::/pod" >box/proc/self/cgroup
: >box/sys/fs/cgroup/cgroup.controllers
echo 67108864 >box/sys/fs/cgroup/pod/memory.max
echo 63000000 >box/sys/fs/cgroup/pod/memory.current
echo "inactive_file 1000" >box/sys/fs/cgroup/pod/memory.stat
TEMPER_SYSTEM_ROOT=$work/box run train tiny.yaml run.dir=pod $fixed
expect 0
expect_out "step 1: memory is short: 60.1 MiB of 64.0 MiB are in use (cgroup memory.max of /pod); from here on policy.recompute=selective"
same_weights pod 6 calm
TEMPER_SYSTEM_ROOT=$work/box run train tiny.yaml run.dir=off $fixed engine.memory_watch=null
expect 0
is "changes where nothing is watched" "$("$TOOL" get off/run.json memory_watch)" "[]"
echo "inactive_file 50000000" >box/sys/fs/cgroup/pod/memory.stat
TEMPER_SYSTEM_ROOT=$work/box run train tiny.yaml run.dir=files $fixed
expect 0
is "changes where files take it" "$("$TOOL" get files/run.json memory_watch)" "[]"
echo 1073741824 >box/sys/fs/cgroup/pod/memory.max
echo 1000000000 >box/sys/fs/cgroup/pod/memory.current
TEMPER_SYSTEM_ROOT=$work/box run train tiny.yaml run.dir=others $fixed
expect 0
is "changes where the run has next to nothing of it" "$("$TOOL" get others/run.json memory_watch)" "[]"

# Preferences and rollouts: the same weights as without where what is changed changes no bit.
make_model
make_pairs
cat >dpo.yaml <<'E'
dpo: {max_num_epochs: 9, max_num_steps: 4, val_period: 0, val_at_end: false}
policy:
  model_name: model
  precision: float32
  tokenizer: {chat_template: null}
  train_global_batch_size: 4
  max_total_sequence_length: 32
data: {train: {data_path: pairs.jsonl}}
checkpointing: {save_period: 4}
E
run train -q dpo.yaml run.dir=dpo
expect 0
run train dpo.yaml run.dir=dpo-short train.inject_pressure=[1,2]
expect 0
expect_out "from here on policy.recompute=full"
same_weights dpo 4 dpo-short
cat >grpo.yaml <<'E'
grpo: {num_prompts_per_step: 2, num_generations_per_prompt: 4, max_num_steps: 3, val_period: 0}
policy:
  model_name: model
  precision: float32
  tokenizer: {chat_template: null}
  train_global_batch_size: 8
  max_total_sequence_length: 64
  generation: {max_new_tokens: 8, max_running: 256}
loss_fn: {reference_policy_kl_penalty: 0.1}
data:
  train: {dataset_name: arithmetic}
  arithmetic: {n_examples: 50, n_validation: 5, digits: 1, operators: "+"}
train: {max_unrewarded: 100}
checkpointing: {save_period: 3}
E
run train -q grpo.yaml run.dir=grpo
expect 0
run train grpo.yaml run.dir=grpo-short train.inject_pressure=[1,2]
expect 0
expect_out "from here on policy.recompute=selective" "from here on policy.generation.cache_mib="
same_weights grpo 3 grpo-short
finish
