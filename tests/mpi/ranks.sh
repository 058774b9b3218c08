# A run of several processes is the run of one: the same losses and weights within rounding, and the same bits whatever is
# sent together, when, and who keeps the optimizer's state.  Interrupted on 4 ranks it goes on with 2 or 3.
. "$SOURCE/tests/cli/lib.sh"
. "$MPI_LIB"
write_recipe tiny.yaml
sed -i 's/lr: 1.0e-2/lr: 1.0e-3/' tiny.yaml
words="sft.max_num_steps=30 sft.val_period=15 checkpointing.save_period=15 policy.precision=float32
       policy.train_micro_batch_size=2 data.arithmetic.digits=2"

# shellcheck disable=SC2086
run train --quiet tiny.yaml $words run.dir=one engine.threads=1
expect 0

for n in 2 3 4; do
    # shellcheck disable=SC2086
    ranks $n train --quiet tiny.yaml $words run.dir=ddp-$n
    expect 0
    nearly one ddp-$n 1e-5 1e-4
    # shellcheck disable=SC2086
    ranks $n train --quiet tiny.yaml $words run.dir=shard-$n distributed.strategy=shard_optimizer \
        distributed.bucket_mib=0.004 'engine.disable_passes=[overlap]'
    expect 0
    nearly ddp-$n shard-$n 0 0
done

is "memory of a rank" "$("$TOOL" get shard-3/run.json memory.measured_peak_bytes)" "$("$TOOL" get shard-3/run.json memory.planned_peak_bytes)"
is "ranks of the run" "$("$TOOL" get ddp-3/run.json distributed.ranks)" 3
is "strategy of the run" "$("$TOOL" get shard-3/run.json distributed.strategy)" shard_optimizer
for key in bytes_sent exposed_s hidden_s; do
    "$TOOL" get ddp-2/run.json distributed.$key >/dev/null || fail "run.json lacks distributed.$key"
done
# Each of two ranks sends half of the gradients and half of the sums: in 30 steps 60 times the weights, and little else.
weights=$("$TOOL" get ddp-2/run.json memory.planned_bytes_by_kind.weights)
sent=$("$TOOL" get ddp-2/run.json distributed.bytes_sent)
[ "$sent" -ge $((60 * weights)) ] && [ "$sent" -le $((66 * weights)) ] || fail "$sent bytes sent, weights are $weights"

# bf16: every rank has the same copies.
# shellcheck disable=SC2086
ranks 2 train --quiet tiny.yaml $words run.dir=bf16 policy.precision=bfloat16
expect 0
# shellcheck disable=SC2086
ranks 2 train --quiet tiny.yaml $words run.dir=bf16-shard policy.precision=bfloat16 distributed.strategy=shard_optimizer
expect 0
nearly bf16 bf16-shard 0 0

# More ranks than there are micro-batches: some have nothing to do, and take part.
# shellcheck disable=SC2086
run train --quiet tiny.yaml $words run.dir=few engine.threads=1 sft.max_num_steps=3 policy.train_micro_batch_size=8
expect 0
# shellcheck disable=SC2086
ranks 4 train --quiet tiny.yaml $words run.dir=few-4 sft.max_num_steps=3 policy.train_micro_batch_size=8 \
    policy.sequence_packing.enabled=false
expect 0
nearly few few-4 1e-5 1e-4

# A micro-batch that nobody set is no larger than a rank's share.
sed '/train_micro_batch_size/d' tiny.yaml >open.yaml
for n in 1 4; do
    ranks $n train --quiet open.yaml sft.max_num_steps=3 policy.precision=float32 run.dir=open-$n
    expect 0
    is "sequences of a micro-batch on $n ranks" "$(sed -n 's/^ *train_micro_batch_size: \([0-9]*\) .*/\1/p' open-$n/config.yaml)" $((16 / n))
done
nearly open-1 open-4 1e-5 1e-4

# Resumed with other numbers of ranks, and by one process alone.
# shellcheck disable=SC2086
ranks 4 train --quiet tiny.yaml $words run.dir=stopped sft.max_num_steps=15 distributed.strategy=shard_optimizer
expect 0
for n in 1 2 3; do
    cp -r stopped on-$n
    # shellcheck disable=SC2086
    ranks $n train --quiet --resume tiny.yaml $words run.dir=on-$n distributed.strategy=shard_optimizer
    expect 0
    nearly one on-$n 1e-5 1e-4
done

# DPO: pairs are divided, the reference is everybody's.
dpo_alone one 7
for n in 2 3; do
    ranks $n train --quiet dpo.yaml run.dir=dpo-$n
    expect 0
    nearly dpo dpo-$n 1e-5 1e-4
    for strategy in shard_gradients full_shard; do
        ranks $n train --quiet dpo.yaml run.dir=dpo-$strategy-$n distributed.strategy=$strategy
        expect 0
        nearly dpo dpo-$strategy-$n 1e-5 1e-4
    done
done
finish
