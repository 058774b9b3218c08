# Runs on guard: tensors in an address space of their own, work on a thread of its own, copies as late as they may be.
# SFT and its resume, GRPO with a reference and DPO leave the same bits there as on ref, whose kernels they are.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml

# trained NAME WORDS...: on both, to the same weights.
trained() {
    name=$1
    shift
    for backend in ref guard; do
        run train --quiet "$@" run.dir="$name-$backend" engine.backend=$backend
        expect 0
    done
    for file in $(cd "$name-ref" && find checkpoints -name '*.safetensors'); do
        cmp "$name-ref/$file" "$name-guard/$file" || fail "$name: $file differs on guard"
    done
    is "loss of $name" "$("$TOOL" get "$name-guard/run.json" result.loss)" "$("$TOOL" get "$name-ref/run.json" result.loss)"
}

small="policy.train_global_batch_size=4 policy.train_micro_batch_size=2 policy.max_total_sequence_length=16 data.arithmetic.digits=1
       sft.val_period=0"
# shellcheck disable=SC2086
trained sft tiny.yaml $small sft.max_num_steps=4 checkpointing.save_period=2
# shellcheck disable=SC2086
trained bf16 tiny.yaml $small sft.max_num_steps=2 checkpointing.save_period=2 policy.precision=bfloat16 policy.recompute=full

# A resumed run goes on with what it read back from the device.
# shellcheck disable=SC2086
run train --quiet tiny.yaml $small sft.max_num_steps=2 checkpointing.save_period=2 run.dir=again engine.backend=guard
expect 0
# shellcheck disable=SC2086
run train --quiet --resume tiny.yaml $small sft.max_num_steps=4 checkpointing.save_period=2 run.dir=again engine.backend=guard
expect 0
for file in model/model.safetensors optimizer.safetensors; do
    cmp again/checkpoints/step-4/$file sft-guard/checkpoints/step-4/$file || fail "resumed: $file differs"
done

cat >grpo.yaml <<'RECIPE'
grpo: {num_prompts_per_step: 2, num_generations_per_prompt: 4, max_num_steps: 2, val_period: 0}
policy:
  model_name: sft-ref/checkpoints/step-4/model
  tokenizer: {chat_template: null}
  train_global_batch_size: 8
  train_micro_batch_size: 4
  max_total_sequence_length: 16
  generation: {max_new_tokens: 4, max_running: 3}
loss_fn: {reference_policy_kl_penalty: 0.05}
data:
  train: {dataset_name: arithmetic}
  arithmetic: {n_examples: 20, n_validation: 4, digits: 1, operators: "+"}
checkpointing: {save_period: 2}
RECIPE
trained grpo grpo.yaml

printf '{"prompt": "1+1=", "chosen": "2", "rejected": "3"}\n{"prompt": "2+1=", "chosen": "3", "rejected": "5"}\n' >pairs.jsonl
trained dpo "$SOURCE/recipes/dpo.yaml" policy.model_name=sft-ref/checkpoints/step-4/model policy.tokenizer.chat_template=null \
    data.train.data_path=pairs.jsonl data.train.split_validation_size=0 policy.train_global_batch_size=2 \
    policy.train_micro_batch_size=1 policy.max_total_sequence_length=16 dpo.max_num_steps=2 data.cache_dir=cache
finish
