# temper plan --ranks: what one of several processes takes and sends, by strategy, without any MPI.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml

run plan tiny.yaml --json
expect 0
cp out one.json
weights=$("$TOOL" get one.json memory.weights)
optimizer=$("$TOOL" get one.json memory.optimizer)

run plan tiny.yaml --ranks 4 --network 100Gbit/2us --json distributed.strategy=shard_optimizer
expect 0
cp out four.json
# Every weight is divided in whole cache lines, so that a part may be a line longer than a fourth.
part=$("$TOOL" get four.json memory.optimizer)
[ "$part" -ge $((optimizer / 4)) ] && [ "$part" -le $((optimizer / 4 + optimizer / 20)) ] || fail "a fourth of $optimizer is $part"
is "weights of a rank" "$("$TOOL" get four.json memory.weights)" "$weights"
is "ranks" "$("$TOOL" get four.json distributed.ranks)" 4
is "network" "$("$TOOL" get four.json distributed.network)" 100Gbit/2us
# (N - 1) / N of the gradients twice, whoever keeps the optimizer's state.
is "ddp" "$("$TOOL" get four.json distributed.strategies.0.all_reduce_bytes)" $((weights * 3 / 2))
is "scattered" "$("$TOOL" get four.json distributed.strategies.1.reduce_scatter_bytes)" $((weights * 3 / 4))
is "gathered" "$("$TOOL" get four.json distributed.strategies.1.all_gather_bytes)" $((weights * 3 / 4))
# Savings are those of a rank: a pass that finds nothing to do saves nothing.
is "cse" "$(awk '/"name": "cse"/ {f = 1} f && /saved_bytes/ {gsub(/[^0-9-]/, ""); print; exit}' four.json)" 0
"$TOOL" get four.json distributed.strategies.1.why >/dev/null || fail "nobody says why a strategy is not the best"

run plan tiny.yaml --ranks 64 --network 10Gbit/50us
expect 0
expect_out "64 ranks, network 10Gbit/50us" "ddp" "shard_optimizer" "the best here"
run plan tiny.yaml --ranks 2
expect 0
expect_out "network unknown"

# Where nothing fits, nothing is the best.
run plan tiny.yaml --ranks 2 --network 1Gbit/1us engine.memory_limit=100KiB
expect 5
expect_out "does not fit"
run plan tiny.yaml --ranks 2 --network fast
expect 2 "a network is bandwidth/latency, as in 100Gbit/2us, not 'fast'"
run plan tiny.yaml --network 1Gbit/1us
expect 2 "give their number (--ranks)"
run plan tiny.yaml --ranks none
expect 2 "--ranks is a number of processes, not 'none'"
finish
