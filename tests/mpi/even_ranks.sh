# Sequences of all lengths, packed: every rank has as many micro-batches as the others, whatever is learned, and it is the run
# of one process within rounding.
. "$SOURCE/tests/cli/lib.sh"
. "$MPI_LIB"
write_recipe tiny.yaml
packed="policy.sequence_packing.enabled=true policy.precision=float32"

micro_batches() { sed -n 's/.*"train\/num_micro_batches": *\([0-9]*\).*/\1/p' "$1/metrics.jsonl"; }
updates=1 # of a step
odd_steps() { micro_batches "$1" | awk -v each=$((2 * updates)) '$1 % each {n++} END {print n + 0}'; }

# even RECIPE SETTINGS...: of one process some steps have an odd number, of two ranks none, as they share them evenly.
even() {
    name=${1%.yaml}
    run train --quiet "$@" run.dir=$name-one engine.threads=1
    expect 0
    [ "$(odd_steps $name-one)" -gt 0 ] || fail "$name: steps of one process are even: $(micro_batches $name-one | tr '\n' ' ')"
    for strategy in ddp full_shard; do
        ranks 2 train --quiet "$@" run.dir=$name-$strategy distributed.strategy=$strategy
        expect 0
        is "$name, $strategy: steps with an odd number of micro-batches" "$(odd_steps $name-$strategy)" 0
        # In the first step of DPO the policy is the reference: which answer is ahead is rounding.
        [ $name = dpo ] && sed -i '/"step": *1,/d' $name-one/metrics.jsonl $name-$strategy/metrics.jsonl
        nearly $name-one $name-$strategy 1e-5 1e-4
    done
    ranks 2 train --quiet "$@" run.dir=$name-apart distributed.bucket_mib=0.004 'engine.disable_passes=[overlap]'
    expect 0
    [ $name = dpo ] && sed -i '/"step": *1,/d' $name-apart/metrics.jsonl
    nearly $name-ddp $name-apart 0 0
}

# shellcheck disable=SC2086
even tiny.yaml $packed policy.sequence_packing.train_mb_tokens=33 sft.max_num_steps=30 sft.val_period=15 \
    data.arithmetic.digits=3 checkpointing.save_period=30 'policy.optimizer.kwargs.lr=1.0e-3'

# Pairs of 8 to 40 bytes.
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    long=$(printf '%*s' $((i * i % 17)) '' | tr ' ' 9)
    printf '{"prompt": "%s+3=", "chosen": "%s", "rejected": "%s%s"}\n' $i $((i + 3)) "$long" $i
done >pairs.jsonl
cat >dpo.yaml <<RECIPE
dpo: {max_num_epochs: 1000, max_num_steps: 30, val_period: 15, val_batches: 0, val_global_batch_size: 8}
policy:
  model_name: base
  tokenizer: {name: tiny-one/tokenizer, chat_template: null}
  train_global_batch_size: 7
  max_total_sequence_length: 32
  optimizer: {kwargs: {lr: 1.0e-3}}
data:
  train: {data_path: pairs.jsonl, split_validation_size: 0.2}
checkpointing: {save_period: 15}
RECIPE
cp -r tiny-one/checkpoints/step-30/model base
# shellcheck disable=SC2086
even dpo.yaml $packed policy.sequence_packing.train_mb_tokens=64

rm -r base
run train --quiet tiny.yaml run.dir=base sft.max_num_steps=120 sft.val_period=0 checkpointing.save_period=1000 \
    policy.train_global_batch_size=64 policy.train_micro_batch_size=64 data.arithmetic.n_examples=5000
expect 0
write_grpo
updates=2
# shellcheck disable=SC2086
even grpo.yaml $packed policy.sequence_packing.train_mb_tokens=35
finish
