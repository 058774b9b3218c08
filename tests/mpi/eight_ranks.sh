# Eight ranks, more than there are processors, against one process: SFT, DPO and GRPO for 30 steps in float32, with every
# strategy: losses within 1e-5, weights within 1e-4.  Resumed on three from a step that four have saved.
. "$SOURCE/tests/cli/lib.sh"
. "$MPI_LIB"
write_recipe tiny.yaml
sed -i 's/lr: 1.0e-2/lr: 1.0e-3/' tiny.yaml
words="sft.max_num_steps=30 sft.val_period=15 checkpointing.save_period=15 policy.precision=float32
       policy.train_micro_batch_size=1 data.arithmetic.digits=2"

# against ONE WORDS...: every strategy on 8 ranks
against() {
    one=$1
    shift
    for strategy in ddp shard_optimizer shard_gradients full_shard hybrid; do
        more=""
        [ $strategy = hybrid ] && more=distributed.ranks_per_node=4
        # shellcheck disable=SC2086
        ranks 8 train --quiet "$@" run.dir=$one-$strategy distributed.strategy=$strategy $more
        expect 0
        nearly $one $one-$strategy 1e-5 1e-4
        rm -rf "${one:?}-$strategy"
    done
}

# shellcheck disable=SC2086
run train --quiet tiny.yaml $words run.dir=sft engine.threads=1
expect 0
# shellcheck disable=SC2086
against sft tiny.yaml $words
for strategy in full_shard hybrid; do
    # shellcheck disable=SC2086
    ranks 4 train --quiet tiny.yaml $words run.dir=resumed sft.max_num_steps=15 distributed.strategy=$strategy \
        distributed.ranks_per_node=2
    expect 0
    # shellcheck disable=SC2086
    ranks 3 train --quiet --resume tiny.yaml $words run.dir=resumed distributed.strategy=full_shard
    expect 0
    nearly sft resumed 1e-5 1e-4
    rm -rf resumed
done

dpo_alone sft 12
against dpo dpo.yaml

# A policy that knows some of it, so that rewards are spread.
run train --quiet tiny.yaml run.dir=warm sft.max_num_steps=120 sft.val_period=0 checkpointing.save_period=1000 \
    policy.train_global_batch_size=64 policy.train_micro_batch_size=64 data.arithmetic.n_examples=5000 \
    policy.optimizer.kwargs.lr=0.01
expect 0
cat >grpo.yaml <<'RECIPE'
grpo: {num_prompts_per_step: 9, num_generations_per_prompt: 6, max_num_steps: 30, max_num_epochs: 100,
       val_period: 15, max_val_samples: 8}
policy:
  model_name: warm/checkpoints/step-120/model
  tokenizer: {chat_template: null}
  train_global_batch_size: 54
  train_micro_batch_size: 3
  max_total_sequence_length: 16
  precision: float32
  generation: {max_new_tokens: 5, max_running: 16}
  optimizer: {kwargs: {lr: 1.0e-5}}
loss_fn: {reference_policy_kl_penalty: 0.01}
data:
  train: {dataset_name: arithmetic}
  arithmetic: {n_examples: 200, n_validation: 20, digits: 1, operators: "+"}
checkpointing: {save_period: 15, metric_name: "val:accuracy", higher_is_better: true}
RECIPE
run train --quiet grpo.yaml run.dir=grpo engine.threads=1
expect 0
against grpo grpo.yaml
finish
