# Each lever is refused what it needs, one at a time: the run goes on to its last step, says what fell back
# and why, and run.json says so, too.
. "$SOURCE/tests/cli/lib.sh"
unset TEMPER_ISA # each case says its own
write_recipe tiny.yaml
preload=$BUILD/tests/librefuse.so
[ -f "$preload" ] || exit 77
mkdir empty
fixed="sft.max_num_steps=3 sft.val_period=0 sft.val_at_end=false"
best=$(TEMPER_ISA=amx "$TEMPER" version --json | sed -n 's/.*"isa": "\(.*\)".*/\1/p')
[ "$best" != portable ] || exit 77
hwloc=1
"$TEMPER" plan tiny.yaml engine.affinity=close 2>&1 | grep hwloc && hwloc=

# lever or -, what it says, and how it is refused: variables for env(1), then overrides
n=0
while IFS='|' read -r lever words variables overrides; do
    case $lever in '' | '#'*) continue ;; esac
    n=$((n + 1))
    case $lever in affinity | numa-interleave) [ -n "$hwloc" ] || continue ;; esac
    # shellcheck disable=SC2086
    env $variables "$TEMPER" train --progress plain tiny.yaml run.name=case-$n $fixed $overrides >out 2>err </dev/null
    status=$?
    [ $status = 0 ] || fail "$lever ($variables $overrides): exit status $status: $(tail -n 1 err)"
    grep -qF "$words" out err runs/case-$n/run.json || fail "$lever ($variables $overrides): nothing says '$words'"
    is "$lever: state" "$("$TOOL" get runs/case-$n/run.json state)" finished
    is "$lever: steps" "$("$TOOL" get runs/case-$n/run.json step)" 3
    [ "$lever" = - ] && continue
    grep -q "^$lever  *fell back " out || fail "$lever did not fall back"
    sed -n '/"levers"/,$p' runs/case-$n/run.json | tr -d ' \n' | grep -q "\"name\":\"$lever\",\"state\":\"fellback\"" ||
        fail "$lever: run.json does not say that it fell back"
done <<E
huge-pages|madvise: Invalid argument|LD_PRELOAD=$preload TEMPER_TEST_REFUSE=madvise|
huge-pages|the kernel has none|TEMPER_SYSTEM_ROOT=$work/empty|
affinity|sched_setaffinity: Operation not permitted|LD_PRELOAD=$preload TEMPER_TEST_REFUSE=sched_setaffinity|engine.affinity=close engine.threads=1
affinity|3 threads, 2 processors|HWLOC_SYNTHETIC=pu:2|engine.affinity=spread engine.threads=3
numa-interleave|one NUMA node|HWLOC_SYNTHETIC=pu:2|engine.numa=interleave
pinned-batches|mlock: Cannot allocate memory|LD_PRELOAD=$preload TEMPER_TEST_REFUSE=mlock|data.pin_memory=true
threads|processors, 4096 asked for|A=b|engine.threads=4096
vector-kernels|is left out, see temper doctor|TEMPER_BREAK_ISA=$best:wrong|
vector-kernels|is left out, see temper doctor|TEMPER_BREAK_ISA=$best:sigill|policy.precision=float16
vector-kernels|is left out, see temper doctor|TEMPER_BREAK_ISA=$best:wrong|policy.optimizer.name=adamw_8bit
-|the token cache goes to|XDG_CACHE_HOME=/dev/null/cache|
-|the trace's clock is CLOCK_MONOTONIC_RAW|LD_PRELOAD=$preload TEMPER_TEST_REFUSE=tsc|profile.steps=1:3
-|gradients overflow float16 at loss scale|A=b|policy.precision=float16 policy.grad_scaler.init_scale=1e30
-|memory is short|A=b|train.inject_pressure=[1]
-|could not|XDG_CACHE_HOME=/dev/null/cache|policy.compile_mode=max-autotune
E
[ $n = 15 ] || fail "$n cases ran"
finish
