# Gradients in fewer bits: the same bits with the same ranks whatever is sent together and when, resumed or not; a loss beside
# that of gradients as they are; bytes as planned; what cannot be compressed is refused by name.
. "$SOURCE/tests/cli/lib.sh"
. "$MPI_LIB"
write_recipe tiny.yaml
sed -i 's/lr: 1.0e-2/lr: 1.0e-3/' tiny.yaml
words="sft.max_num_steps=12 sft.val_period=6 checkpointing.save_period=6 policy.precision=float32
       policy.train_micro_batch_size=2 data.arithmetic.digits=2 policy.sequence_packing.enabled=false"

# compressed N RUN FORMAT STRATEGY WORDS...
compressed() {
    n=$1 dir=$2 format=$3 strategy=$4
    shift 4
    # shellcheck disable=SC2086
    ranks $n train --quiet tiny.yaml $words run.dir=$dir distributed.compress=$format distributed.strategy=$strategy "$@"
    expect 0
}

# beside RUN RELATIVE: the loss of its last step, and of its validation, are those of gradients as they are.
beside() {
    for key in loss val_loss; do
        "$TOOL" get plain/run.json result.$key >a
        "$TOOL" get "$1/run.json" result.$key >b
        paste a b | awk -v most="$2" '{d = $1 - $2; exit !((d < 0 ? -d : d) <= most * $1)}' ||
            fail "$1: $key is $(cat b), $(cat a) without compression"
    done
}

# shellcheck disable=SC2086
ranks 2 train --quiet tiny.yaml $words run.dir=plain
expect 0
is "compression of the run" "$("$TOOL" get plain/run.json distributed.compression)" null

for strategy in ddp shard_optimizer shard_gradients full_shard; do
    compressed 2 bf16 bf16 $strategy
    beside bf16 1e-3
    compressed 2 int8 int8 $strategy
    beside int8 1e-2
    is "memory of a rank" "$("$TOOL" get int8/run.json memory.measured_peak_bytes)" \
        "$("$TOOL" get int8/run.json memory.planned_peak_bytes)"
    # Buckets and overlap change no bit; neither does an interruption.
    compressed 2 small int8 $strategy distributed.bucket_mib=0.004 'engine.disable_passes=[overlap]'
    nearly int8 small 0 0
    compressed 2 stopped int8 $strategy sft.max_num_steps=6
    compressed 2 stopped int8 $strategy --resume
    nearly int8 stopped 0 0
    rm -rf bf16 int8 small stopped
done

# Twice two: within the node, then between nodes.
for format in bf16 int8; do
    compressed 4 $format $format hybrid distributed.ranks_per_node=2
done
beside bf16 1e-3
beside int8 1e-2
is "memory of a rank of hybrid" "$("$TOOL" get int8/run.json memory.measured_peak_bytes)" \
    "$("$TOOL" get int8/run.json memory.planned_peak_bytes)"
compressed 4 small int8 hybrid distributed.ranks_per_node=2 distributed.bucket_mib=0.004 'engine.disable_passes=[overlap]'
nearly int8 small 0 0
compressed 4 stopped int8 hybrid distributed.ranks_per_node=2 sft.max_num_steps=6
cp -r stopped moved
compressed 4 stopped int8 hybrid distributed.ranks_per_node=2 --resume
nearly int8 stopped 0 0
compressed 4 moved int8 full_shard --resume
beside moved 1e-2
sent=$("$TOOL" get int8/run.json distributed.compression.bytes_sent)
whole=$("$TOOL" get int8/run.json distributed.compression.uncompressed_bytes)
[ $((10 * whole)) -gt $((35 * sent)) ] && [ $((10 * whole)) -lt $((40 * sent)) ] || fail "int8, hybrid: $sent bytes in place of $whole"
rm -rf bf16 int8 small stopped moved

# What was sent, in place of what: vectors go as they are.
compressed 4 bytes int8 ddp checkpointing.enabled=false
sent=$("$TOOL" get bytes/run.json distributed.compression.bytes_sent)
whole=$("$TOOL" get bytes/run.json distributed.compression.uncompressed_bytes)
[ $((10 * whole)) -gt $((35 * sent)) ] && [ $((10 * whole)) -lt $((40 * sent)) ] || fail "int8: $sent bytes in place of $whole"
is "format" "$("$TOOL" get bytes/run.json distributed.compression.format)" int8
run plan tiny.yaml --ranks 4 --json policy.precision=float32 policy.train_micro_batch_size=2 data.arithmetic.digits=2 \
    policy.sequence_packing.enabled=false distributed.compress=int8
expect 0
planned=$("$TOOL" get out distributed.strategies.0.bytes_sent)
all=$("$TOOL" get bytes/run.json distributed.bytes_sent)
[ $((4 * 12 * planned)) -le "$all" ] && [ "$all" -le $((4 * 12 * planned * 5 / 4)) ] || fail "$planned bytes planned a rank and step, $all sent"
grep -q '"train/compression_error"' bytes/metrics.jsonl || fail "nobody says what was kept back"

# Twice the same on four ranks.
for format in int8 fp16 topk; do
    compressed 4 $format $format ddp
    compressed 4 $format-again $format ddp 'engine.disable_passes=[overlap,bucket]'
    nearly $format $format-again 0 0
done
beside fp16 1e-3

# On another number of ranks what was kept is sent by those who are there; alone, or as it is, it is dropped.
compressed 4 moved topk ddp sft.max_num_steps=6
cp -r moved alone
compressed 2 moved topk shard_optimizer --resume
grep -q "what 4 ranks kept of compressed gradients is added up and sent by 2" err || fail "nobody says what becomes of it"
# shellcheck disable=SC2086
run train --quiet --resume tiny.yaml $words run.dir=alone engine.threads=1
expect 0
grep -q "what was kept of compressed gradients is dropped" err || fail "nobody says that it is dropped"

# Refused by name.
# shellcheck disable=SC2086
ranks 2 train --quiet tiny.yaml $words run.dir=no distributed.compress=bf16 policy.precision=float16
expect 2 "would be of another loss scale the next time"

# A gradient that is not finite is found, and forgotten.
compressed 2 bad int8 ddp train.inject_nan=[3] train.nonfinite_policy=skip
is "steps" "$("$TOOL" get bad/run.json step)" 12
finish
