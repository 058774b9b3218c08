# Containers and ulimit: what bounds memory and processors is found, named, and kept to.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml

# A made-up container of 60 MiB and one processor.
mkdir -p box/proc/self box/sys/fs/cgroup/pod
echo "0::/pod/run" >box/proc/self/cgroup
: >box/sys/fs/cgroup/cgroup.controllers
echo 62914560 >box/sys/fs/cgroup/pod/memory.max
echo "100000 100000" >box/sys/fs/cgroup/pod/cpu.max
export TEMPER_SYSTEM_ROOT="$work/box"
run doctor --seconds 0.1
expect 0
expect_out "limit 60.0 MiB: cgroup memory.max of /pod" "1: cgroup cpu.max of /pod" \
    "ceilings         unknown: measuring this machine takes 192.0 MiB, the memory limit is 60.0 MiB (cgroup memory.max of /pod)"
run plan tiny.yaml
expect 0
expect_out "(engine.memory_fraction 0.9 of 60.0 MiB: cgroup memory.max of /pod)"
run train tiny.yaml run.name=boxed
expect 0
is "threads in a quota of one processor" "$("$TOOL" get runs/boxed/run.json machine.threads)" 1
echo 50000 >box/sys/fs/cgroup/pod/memory.max
run generate runs/boxed -m 2 "1+1="
expect 5 "cgroup memory.max of /pod"
unset TEMPER_SYSTEM_ROOT

run doctor --seconds 0.1 --json
expect 0
"$TOOL" get out memory_limits.0.source | grep -q "physical memory" || fail "doctor names no limit of memory"
"$TOOL" get out processor_limits.0.source | grep -q "processors online" || fail "doctor names no limit of processors"

# More threads than processors disturb each other: such a measurement is shown, not kept.
export XDG_CACHE_HOME="$work/disturbed"
run doctor --seconds 0.1 --threads $(($(nproc) * 8))
expect 0
expect_out "DISTURBED: its " "these figures are not kept"
[ ! -e disturbed/temper/machine.json ] || fail "a disturbed measurement was kept"
export XDG_CACHE_HOME="$work/cache"

# A machine that was busy when it was measured is not measured again at every start, but later.
export XDG_CACHE_HOME="$work/busy"
# was_busy TRIES SECONDS_AGO
was_busy() {
    give_ceilings
    # no verdict: what is due is minutes away, or past
    sed -i "s/\"measured_at\": 1.7e9/\"measured_at\": $(($(date +%s) - $2)), \"busy_tries\": $1/" busy/temper/machine.json
}
was_busy 1 60
run train tiny.yaml run.name=busy-1
expect 0 "MFU and shares of limits are unknown: this machine was busy when it was measured; the next try is due in"
grep -q "measuring this machine" err && fail "measured again after a minute"
is "MFU" "$("$TOOL" get runs/busy-1/run.json mfu)" null
run plan tiny.yaml --json
is "a step on a busy machine" "$("$TOOL" get out predicted_step_s)" null
was_busy 1 601
run train tiny.yaml run.name=busy-2
expect 0 "measuring this machine"
was_busy 3 601
run train tiny.yaml run.name=busy-3
expect 0 "this machine was busy each time it was measured"
was_busy 99 80000
run train tiny.yaml run.name=busy-4
expect 0 "this machine was busy each time it was measured"
was_busy 99 86401
run train tiny.yaml run.name=busy-5
expect 0 "measuring this machine"
export XDG_CACHE_HOME="$work/cache"

# A batch system's limit of the address space: the plan and a modest rest is enough, and what is
# too much is refused before anything is made.
planned=$("$TEMPER" plan --json tiny.yaml policy.train_micro_batch_size=16 >plan.json &&
    "$TOOL" get plan.json memory.planned_peak_bytes)
room=$((planned / 1024 + 160 * 1024))
if (ulimit -v 4000000 && exec "$TEMPER" version) >/dev/null 2>&1; then # a sanitizer needs more
    (ulimit -v $room && exec "$TEMPER" train tiny.yaml run.name=bounded policy.train_micro_batch_size=16 \
        engine.threads=2) >out 2>err </dev/null
    is "exit status in an address space of the plan and 160 MiB" $? 0
    (ulimit -v $room && exec "$TEMPER" train tiny.yaml run.name=over policy.train_global_batch_size=32768 \
        policy.train_micro_batch_size=32768) >out 2>err </dev/null
    is "exit status of what is too large for the address space" $? 5
    grep -q "does not fit: needs .*RLIMIT_AS (ulimit -v), what is left of it" err || fail "RLIMIT_AS is not named"
    [ ! -e runs/over ] || fail "a refused run left a folder"
fi

# A real cgroup, where this machine lets us make one.
group=/sys/fs/cgroup/memory/temper-test-$$ limit=memory.limit_in_bytes
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then group=/sys/fs/cgroup/temper-test-$$ limit=memory.max; fi
if mkdir "$group" 2>/dev/null && echo 62914560 2>/dev/null >"$group/$limit"; then
    sh -c "echo \$\$ >$group/cgroup.procs && exec '$TEMPER' plan tiny.yaml" >out 2>err </dev/null
    is "exit status in a cgroup" $? 0
    grep -q "of 60.0 MiB: cgroup $limit of .*temper-test-" out || fail "the limit of a real cgroup is not seen"
    sh -c "echo \$\$ >$group/cgroup.procs && exec '$TEMPER' plan tiny.yaml policy.train_global_batch_size=32768 \
        policy.train_micro_batch_size=32768" >out 2>err </dev/null
    is "exit status of what does not fit a cgroup" $? 5
else
    echo "no cgroup can be made here: that part is skipped"
fi
rmdir "$group" 2>/dev/null
finish
