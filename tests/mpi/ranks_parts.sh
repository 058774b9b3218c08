# What ranks keep their part of alone: the run of one process within rounding, the same bits whatever is sent together and
# when, memory as planned and as ZeRO's formulas say, and on it goes with another number of ranks.
. "$SOURCE/tests/cli/lib.sh"
. "$MPI_LIB"
write_recipe tiny.yaml
sed -i 's/lr: 1.0e-2/lr: 1.0e-3/' tiny.yaml
words="sft.max_num_steps=12 sft.val_period=6 checkpointing.save_period=6 policy.precision=float32
       policy.train_micro_batch_size=2 data.arithmetic.digits=2 policy.sequence_packing.enabled=false"
strategies="shard_gradients full_shard"

# kind RUN KIND: planned bytes of a kind of memory.
kind() {
    "$TOOL" get "$1/run.json" "memory.planned_bytes_by_kind.$2"
}

# shellcheck disable=SC2086
run train --quiet tiny.yaml $words run.dir=one engine.threads=1
expect 0
for n in 2 3 4; do
    # shellcheck disable=SC2086
    ranks $n train --quiet tiny.yaml $words run.dir=ddp-$n
    expect 0
    for strategy in $strategies; do
        # shellcheck disable=SC2086
        ranks $n train --quiet tiny.yaml $words run.dir=$strategy-$n distributed.strategy=$strategy
        expect 0
        nearly one $strategy-$n 1e-5 1e-4
        is "strategy of the run" "$("$TOOL" get $strategy-$n/run.json distributed.strategy)" $strategy
        is "memory of a rank of $strategy" "$("$TOOL" get $strategy-$n/run.json memory.measured_peak_bytes)" \
            "$("$TOOL" get $strategy-$n/run.json memory.planned_peak_bytes)"
        # shellcheck disable=SC2086
        ranks $n train --quiet tiny.yaml $words run.dir=plain-$n distributed.strategy=$strategy \
            distributed.bucket_mib=0.004 'engine.disable_passes=[overlap]'
        expect 0
        nearly $strategy-$n plain-$n 0 0
        rm -rf plain-$n
        [ $n = 3 ] || continue
        # shellcheck disable=SC2086
        ranks $n train --quiet tiny.yaml $words run.dir=single-$n distributed.strategy=$strategy \
            'engine.disable_passes=[bucket]'
        expect 0
        nearly $strategy-$n single-$n 0 0
        rm -rf single-$n
    done
done

# ZeRO (arXiv 1910.02054), figure 1: a rank has 1/N of the optimizer's state and of the gradients; a part of every tensor is
# longer by a cache line at most.
for what in optimizer gradients; do
    whole=$(kind ddp-4 $what)
    part=$(kind shard_gradients-4 $what)
    [ "$part" -ge $((whole / 4)) ] && [ "$part" -le $((whole / 4 + whole / 20)) ] || fail "a fourth of the $what, $whole, is $part"
done
is "weights of a rank" "$(kind shard_gradients-4 weights)" "$(kind ddp-4 weights)"
for what in optimizer gradients weights; do
    whole=$(kind ddp-4 $what)
    part=$(kind full_shard-4 $what)
    [ "$part" -ge $((whole / 4)) ] && [ "$part" -le $((whole / 4 + whole / 20)) ] || fail "a fourth of the $what, $whole, is $part"
done

# Weights that stay for the backward pass are sent once, and change no bit.
# shellcheck disable=SC2086
ranks 2 train --quiet tiny.yaml $words run.dir=kept distributed.strategy=full_shard distributed.reshard_after_forward=false
expect 0
nearly full_shard-2 kept 0 0
[ "$("$TOOL" get kept/run.json distributed.bytes_sent)" -lt "$("$TOOL" get full_shard-2/run.json distributed.bytes_sent)" ] ||
    fail "weights that stay are sent again"

# Two nodes of two: parts within a node, sums between them.
# shellcheck disable=SC2086
ranks 4 train --quiet tiny.yaml $words run.dir=hybrid distributed.strategy=hybrid distributed.ranks_per_node=2
expect 0
nearly one hybrid 1e-5 1e-4
is "memory of a rank of hybrid" "$("$TOOL" get hybrid/run.json memory.measured_peak_bytes)" \
    "$("$TOOL" get hybrid/run.json memory.planned_peak_bytes)"
is "weights of a rank of hybrid" "$(kind hybrid weights)" "$(kind full_shard-2 weights)"
# shellcheck disable=SC2086
ranks 4 train --quiet tiny.yaml $words run.dir=plain distributed.strategy=hybrid distributed.ranks_per_node=2 \
    distributed.bucket_mib=0.004 'engine.disable_passes=[overlap]'
expect 0
nearly hybrid plain 0 0
# shellcheck disable=SC2086
ranks 4 train --quiet tiny.yaml $words run.dir=stopped sft.max_num_steps=6 distributed.strategy=hybrid distributed.ranks_per_node=2
expect 0
# shellcheck disable=SC2086
ranks 3 train --quiet --resume tiny.yaml $words run.dir=stopped distributed.strategy=full_shard
expect 0
nearly one stopped 1e-5 1e-4
rm -rf stopped plain
# shellcheck disable=SC2086
ranks 3 train --quiet tiny.yaml $words run.dir=uneven distributed.strategy=hybrid distributed.ranks_per_node=2
expect 2 "3 processes are not several nodes of the same number of them; set distributed.ranks_per_node"
# shellcheck disable=SC2086
ranks 2 train --quiet tiny.yaml $words run.dir=alone distributed.strategy=hybrid
expect 2 "2 processes are not several nodes of the same number of them on hosts of their own"

# One micro-batch a rank: nothing is added up in another order than by ddp.
for strategy in $strategies; do
    for with in ddp $strategy; do
        # shellcheck disable=SC2086
        ranks 4 train --quiet tiny.yaml $words run.dir=once-$with distributed.strategy=$with policy.train_micro_batch_size=4 \
            sft.max_num_steps=6
        expect 0
    done
    nearly once-ddp once-$strategy 0 0
    rm -rf once-*
done

# bf16 with activations made again; a frozen base with an adapter.
for more in "policy.precision=bfloat16 policy.recompute=full" "policy.peft.enabled=true policy.peft.dim=4"; do
    for with in ddp $strategies; do
        # shellcheck disable=SC2086
        ranks 4 train --quiet tiny.yaml $words run.dir=$with distributed.strategy=$with policy.train_micro_batch_size=4 $more
        expect 0
    done
    for with in $strategies; do
        nearly ddp $with 0 0
        rm -rf $with
    done
    rm -rf ddp
done

# A base in codes is divided as such: a fourth of it on each rank, the same bits.
for base in int8 nf4; do
    for with in ddp full_shard; do
        # shellcheck disable=SC2086
        ranks 4 train --quiet tiny.yaml $words run.dir=$with distributed.strategy=$with policy.train_micro_batch_size=4 \
            policy.peft.enabled=true policy.peft.dim=4 policy.peft.base=$base policy.peft.target_modules=all-linear
        expect 0
    done
    nearly ddp full_shard 0 0
    whole=$(kind ddp weights)
    part=$(kind full_shard weights)
    [ "$part" -ge $((whole / 4)) ] && [ "$part" -le $((whole / 4 + whole / 10)) ] || fail "a fourth of $base weights, $whole, is $part"
    is "memory of a rank over $base" "$("$TOOL" get full_shard/run.json memory.measured_peak_bytes)" \
        "$("$TOOL" get full_shard/run.json memory.planned_peak_bytes)"
    rm -rf ddp full_shard
done

# Resumed with other numbers of ranks, by one alone, and by another strategy.
for strategy in $strategies; do
    # shellcheck disable=SC2086
    ranks 4 train --quiet tiny.yaml $words run.dir=stopped sft.max_num_steps=6 distributed.strategy=$strategy
    expect 0
    for n in 1 2 3; do
        cp -r stopped on-$n
        # shellcheck disable=SC2086
        ranks $n train --quiet --resume tiny.yaml $words run.dir=on-$n distributed.strategy=$strategy
        expect 0
        nearly one on-$n 1e-5 1e-4
    done
    cp -r stopped other
    # shellcheck disable=SC2086
    ranks 4 train --quiet --resume tiny.yaml $words run.dir=other distributed.strategy=shard_optimizer
    expect 0
    nearly one other 1e-5 1e-4
    rm -rf stopped on-* other
done

# A gradient that is not finite is found where it is.
for strategy in $strategies; do
    # shellcheck disable=SC2086
    ranks 2 train --quiet tiny.yaml $words run.dir=bad distributed.strategy=$strategy train.inject_nan=[3] \
        train.nonfinite_policy=skip
    expect 0
    is "steps" "$("$TOOL" get bad/run.json step)" 12
    rm -rf bad
done
finish
