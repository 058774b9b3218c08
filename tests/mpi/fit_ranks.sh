# What a recipe leaves open is chosen for the ranks that there are: what each of them has of the run, and of its host's memory;
# the same on all of them, and by `temper plan --ranks` before.
. "$SOURCE/tests/cli/lib.sh"
. "$MPI_LIB"
cp "$SOURCE/recipes/demo-model.json" .
sed 's/^  max_num_steps: .*/  max_num_steps: 2/; s/n_examples: .*/n_examples: 2000/; s/val_period: .*/val_period: 0/' "$SOURCE/recipes/demo.yaml" >demo.yaml

# chosen RANKS WORD SETTINGS...: what the plan chooses, and that the run does so and takes as much; WORD "none": nothing.
on_host=1
chosen() {
    n=$1 pick=$2
    shift 2
    run plan demo.yaml --ranks "$n" --ranks-per-node $on_host --json "$@" engine.threads=1
    expect 0
    "$TOOL" get out chosen >plan.chosen
    bytes=$("$TOOL" get out memory.planned_peak_bytes)
    rm -rf run-$n
    ranks "$n" train demo.yaml run.dir=run-$n "$@"
    expect 0
    is "planned peak of $n ranks, $*" "$("$TOOL" get run-$n/run.json memory.planned_peak_bytes)" "$bytes"
    if [ "$pick" = none ]; then
        is "chosen by the plan for $n ranks, $*" "$(cat plan.chosen)" null
        grep -q "chosen to fit" out && fail "$n ranks, $*: something was chosen"
        return
    fi
    tr -s ' \n' ' ' <out >words.out
    grep -qF "note: $(cat plan.chosen)" words.out || fail "$n ranks, $*: not what the plan chose: $(cat plan.chosen)"
    grep -q ": $pick  # chosen to fit the memory" run-$n/config.yaml || fail "$n ranks, $*: $pick is not in config.yaml"
}

# One process needs 75.6 MiB; of four that have a part of the weights each 60.7.
run plan demo.yaml engine.memory_limit=70MiB
expect 0
expect_out "chosen to fit 70.0 MiB (engine.memory_limit): policy.recompute=full; it needs 62.1 MiB, and 75.6 MiB without"
chosen 4 none engine.memory_limit=70MiB distributed.strategy=full_shard
chosen 2 none engine.memory_limit=70MiB distributed.tensor_parallel_size=2
chosen 4 selective engine.memory_limit=70MiB distributed.strategy=hybrid distributed.ranks_per_node=2

# Where each has all of it, and what it sends, it is more than of one.
run plan demo.yaml engine.memory_limit=90MiB
expect 0
grep -q "chosen to fit" out && fail "one process fits"
chosen 2 selective engine.memory_limit=90MiB
chosen 2 none engine.memory_limit=90MiB distributed.strategy=shard_optimizer
chosen 2 selective engine.memory_limit=75MiB distributed.strategy=shard_gradients

# Ranks of a host have a share of its memory: half-way between what a large micro-batch takes as it is and with recomputation.
words="policy.sequence_packing.train_mb_tokens=8192"
for recompute in none selective; do
    run plan demo.yaml --ranks 2 --json $words policy.recompute=$recompute engine.memory_fraction=1 engine.threads=1
    expect 0
    "$TOOL" get out memory.planned_peak_bytes >peak.$recompute
done
fraction=$(awk -v a="$(cat peak.none)" -v b="$(cat peak.selective)" -v of="$("$TOOL" get out memory.limit_bytes)" \
    'BEGIN {f = (a + b) / of; if (f >= 0.01 && f <= 1) printf "%.6f", f}')
if [ -n "$fraction" ]; then # less than a hundredth of the memory is no setting
    run plan demo.yaml --ranks 2 $words engine.memory_fraction=$fraction
    expect 0
    grep -q "chosen to fit" out && fail "ranks on hosts of their own have all of the memory"
    on_host=2
    chosen 2 selective $words engine.memory_fraction=$fraction
fi

# Where nobody says threads, ranks of a host have a part of its processors each, in the plan as in the run.
run plan demo.yaml --ranks 2 --ranks-per-node 2 --json
expect 0
cp out plan.json
mpirun --bind-to none --oversubscribe -n 2 "$TEMPER" train demo.yaml run.dir=parts >out 2>err </dev/null || fail "the run failed"
is "planned peak with the threads that there are" "$("$TOOL" get parts/run.json memory.planned_peak_bytes)" \
    "$("$TOOL" get plan.json memory.planned_peak_bytes)"
i=0
while name=$("$TOOL" get plan.json levers.$i.name) && [ -n "$name" ]; do
    is "what $name saves" "$("$TOOL" get parts/run.json levers.$i.name) $("$TOOL" get parts/run.json levers.$i.predicted.saved_bytes)" \
        "$name $("$TOOL" get plan.json levers.$i.predicted.saved_bytes)"
    i=$((i + 1))
done 2>/dev/null
[ $i -gt 10 ] || fail "only $i levers"
finish
