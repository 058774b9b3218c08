# A checkpoint is written by all ranks at once, each its own ranges: the files of one process, which another number of ranks
# goes on from.  A rank that cannot write, or is killed while it does, leaves the checkpoint before.
. "$SOURCE/tests/cli/lib.sh"
. "$MPI_LIB"
write_recipe tiny.yaml
words="sft.max_num_steps=4 sft.val_period=0 checkpointing.save_period=2 policy.precision=bfloat16 policy.train_micro_batch_size=2
       policy.sequence_packing.enabled=false"
host=$(hostname)

# same_files RUN OTHER: their newest checkpoints, file by file.
same_files() {
    for file in model/model.safetensors model/config.json optimizer.safetensors; do
        cmp "$1/checkpoints/step-4/$file" "$2/checkpoints/step-4/$file" || fail "$file of $2 is not that of $1"
    done
}

# Whose part of an update it is changes no bit, so files that are put together from parts are those of replicas.  Of parts two
# ranks write two halves; three have ranges that end within a tensor, and empty ones.
for n in 2 3; do
    # shellcheck disable=SC2086
    ranks $n train --quiet tiny.yaml $words run.dir=ddp-$n
    expect 0
    # shellcheck disable=SC2086
    ranks $n train --quiet tiny.yaml $words run.dir=parts-$n distributed.strategy=shard_optimizer
    expect 0
    same_files ddp-$n parts-$n
done
# shellcheck disable=SC2086
ranks 4 train --quiet tiny.yaml $words run.dir=full distributed.strategy=full_shard policy.train_micro_batch_size=4
expect 0
# shellcheck disable=SC2086
ranks 4 train --quiet tiny.yaml $words run.dir=ddp-4 policy.train_micro_batch_size=4
expect 0
same_files ddp-4 full

# One process goes on from it.
# shellcheck disable=SC2086
run train --quiet --resume tiny.yaml $words run.dir=full engine.threads=1 sft.max_num_steps=6 policy.train_micro_batch_size=4
expect 0
is "steps" "$("$TOOL" get full/run.json step)" 6
ls -A full/checkpoints | grep -q '^\.tmp' && fail "something unfinished is left"

# Rank 1 works in a folder of its own, as on a host that shares none: what all have rank 0 writes alone, the same bytes.
mkdir other
cp tiny.yaml tiny.json other/
apart() {
    last="mpirun, the second elsewhere: $*"
    timeout 500 mpirun --oversubscribe -n 1 "$TEMPER" train --quiet tiny.yaml engine.threads=1 "$@" : \
        -n 1 -wdir "$PWD/other" "$TEMPER" train --quiet tiny.yaml engine.threads=1 "$@" >out 2>err </dev/null
    status=$?
}
# shellcheck disable=SC2086
apart $words run.dir=apart
expect 0
same_files ddp-2 apart
for strategy in shard_optimizer full_shard; do
    # shellcheck disable=SC2086
    apart $words run.dir=no distributed.strategy=$strategy
    expect 2 "rank 1 ($host) does not see the folder"
    [ -e no/checkpoints/step-2 ] && fail "$strategy: something was saved"
    rm -rf no
done

# Rank 1 may write no file beyond 16 KiB, as on a full disk: its host is named, and the checkpoint before is what there is.
cp -r parts-2 full-disk
last="mpirun, the disk of the second full"
# shellcheck disable=SC2086
timeout 500 mpirun --oversubscribe -n 1 "$TEMPER" train --quiet --resume tiny.yaml $words engine.threads=1 run.dir=full-disk \
    sft.max_num_steps=8 distributed.strategy=shard_optimizer : \
    -n 1 sh -c 'trap "" XFSZ; ulimit -f 32; exec "$@"' sh "$TEMPER" train --quiet --resume tiny.yaml $words engine.threads=1 run.dir=full-disk \
    sft.max_num_steps=8 distributed.strategy=shard_optimizer >out 2>err </dev/null
status=$?
[ $status != 0 ] || fail "$last: the run succeeded"
grep -q "rank 1 ($host): .*cannot write .*step-6" err || fail "$last: $(cat err)"
is "checkpoints" "$(ls full-disk/checkpoints | tr '\n' ' ')" "step-2 step-4 "
ls -A full-disk/checkpoints | grep -q '^\.tmp' && fail "the half checkpoint is left"
# shellcheck disable=SC2086
ranks 3 train --quiet --resume tiny.yaml $words run.dir=full-disk sft.max_num_steps=8 distributed.strategy=shard_optimizer
expect 0
is "steps" "$("$TOOL" get full-disk/run.json step)" 8

# Rank 1 is killed while it writes step 4.
last="mpirun, the second killed while it writes step 4"
one="$TEMPER train --quiet tiny.yaml $words engine.threads=1 run.dir=killed distributed.strategy=full_shard"
# shellcheck disable=SC2086
TEMPER_TEST_SIGNAL=9:sync:step-4 timeout 500 mpirun --oversubscribe -n 1 $one : \
    -n 1 -x TEMPER_TEST_SIGNAL -x LD_PRELOAD="$BUILD/tests/libsignal_at_step.so" $one >out 2>err </dev/null
status=$?
[ $status != 0 ] || fail "$last: the run succeeded"
is "checkpoints" "$(ls killed/checkpoints | tr '\n' ' ')" "step-2 "
# shellcheck disable=SC2086
ranks 3 train --quiet --resume tiny.yaml $words run.dir=killed distributed.strategy=full_shard
expect 0
is "steps" "$("$TOOL" get killed/run.json step)" 4
ls -A killed/checkpoints | grep -q '^\.tmp' && fail "the half checkpoint is left"
finish
