# A rank that is stopped for a while is named and the run goes on; one whose disk is full, or that is another version, ends it with
# its number.  Different data: ranks_faults.sh.  Killed: kill_ranks.sh.
. "$SOURCE/tests/cli/lib.sh"
. "$MPI_LIB"
write_recipe tiny.yaml
host=$(hostname)

# Rank 1 stops itself in a step, until it is named and for TEMPER_PAUSE s (0 without): the others say for whom they wait, and nothing
# of the run changes.
stops=19
words="train tiny.yaml sft.max_num_steps=300 sft.val_period=0 checkpointing.save_period=100 sft.max_num_epochs=100000"
one="$TEMPER $words run.dir=stopped engine.threads=1"
# shellcheck disable=SC2086
TEMPER_TEST_SIGNAL=$stops:20 \
    mpirun --oversubscribe -n 1 $one : -n 1 -x TEMPER_TEST_SIGNAL -x LD_PRELOAD="$BUILD/tests/libsignal_at_step.so" $one : \
    -n 1 $one >out 2>err </dev/null &
pid=$!
last="a run with a rank that is stopped"
wait_until 'slow=$(process_of "$pid" 1)'
wait_until 'grep -q "^State:[^A-Z]*T" "/proc/$slow/status"'
wait_until 'grep -q "waits for rank 1 ($host, process $slow) for [0-9]* s" err'
sleep "${TEMPER_PAUSE:-0}" # no verdict: longer by hand
kill -CONT "$slow"
wait $pid
status=$?
expect 0
# shellcheck disable=SC2086
ranks 3 $words --quiet run.dir=free
expect 0
nearly free stopped 0 0

# Another version of the program on one rank.
cp "$TEMPER" other
printf 'x' >>other
last="two versions"
TEMPER_MPI=$PLUG_IN timeout 500 mpirun --oversubscribe -x TEMPER_MPI -n 1 "$TEMPER" train --quiet tiny.yaml run.dir=two engine.threads=1 : \
    -n 1 ./other train --quiet tiny.yaml run.dir=two engine.threads=1 >out 2>err </dev/null
status=$?
expect 2 "ranks do not have the same program: rank 1 ($host) differs from rank 0 ($host)"

# The disk is full on the rank that writes: every rank ends, with the file's name, and with room it goes on.
if [ "$(id -u)" = 0 ] && mkdir -p place && mount -t tmpfs -o size=3m none place 2>/dev/null; then
    trap 'umount -l "$work/place"; rm -rf "$work"' EXIT
    mkdir place/run
    ranks 3 train --quiet tiny.yaml run.dir=place/run sft.max_num_steps=4000 sft.max_num_epochs=100000 sft.val_period=0 \
        checkpointing.save_period=50 checkpointing.keep_top_k=100
    expect 4 "a checkpoint needs" "free: make room"
    [ "$(grep -c "^temper: " err)" = 1 ] || fail "the failure is told more than once"
    mount -o remount,size=20m place
    ranks 3 train --quiet --resume tiny.yaml run.dir=place/run sft.max_num_steps=600 sft.max_num_epochs=100000 sft.val_period=0 \
        checkpointing.save_period=50 checkpointing.keep_top_k=2
    expect 0
    is "steps after the disk was full" "$("$TOOL" get place/run/run.json step)" 600
else
    echo "not tested: a full disk (nothing can be mounted here)"
fi
finish
