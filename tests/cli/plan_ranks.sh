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
# ... and gradients kept in parts are scattered in every micro-batch.
is "strategy" "$("$TOOL" get four.json distributed.strategies.2.strategy)" shard_gradients
is "scattered in parts" "$("$TOOL" get four.json distributed.strategies.2.reduce_scatter_bytes)" $((weights * 3 / 4))
# Weights in parts are gathered for both passes, in the bf16 of products; those of the last product once.
is "strategy" "$("$TOOL" get four.json distributed.strategies.3.strategy)" full_shard
gathered=$("$TOOL" get four.json distributed.strategies.3.all_gather_bytes)
[ "$gathered" -gt $((weights * 3 / 8)) ] && [ "$gathered" -le $((weights * 3 / 4)) ] || fail "$gathered bytes are gathered of $weights"
[ "$("$TOOL" get four.json distributed.strategies.3.planned_peak_bytes)" -lt "$("$TOOL" get four.json distributed.strategies.2.planned_peak_bytes)" ] ||
    fail "full_shard takes no less than shard_gradients"
run plan tiny.yaml --ranks 4 --json distributed.ranks_per_node=2
expect 0
is "strategy" "$("$TOOL" get out distributed.strategies.4.strategy)" hybrid
"$TOOL" get four.json distributed.strategies.1.why >/dev/null || fail "nobody says why a strategy is not the best"

run plan tiny.yaml --ranks 64 --network 10Gbit/50us
expect 0
expect_out "64 ranks, network 10Gbit/50us" "ddp" "shard_optimizer" "the best here"
run plan tiny.yaml --ranks 2
expect 0
expect_out "network unknown"

# Ranks that share the layers: half of every matrix each, and the same norms; what they sum is of T x C numbers: forward and backward of
# the parts of two layers (8), and the embedding, the gradient in front of the head, 24 bytes of losses; no gradients.
sed 's/"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16/"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8/' \
    tiny.json >shared.json
shares="policy.model_config=shared.json policy.precision=float32 policy.train_micro_batch_size=16 distributed.tensor_parallel_size=2"
# shellcheck disable=SC2086
run plan tiny.yaml --ranks 2 --json $shares
expect 0
norms=$((5 * 32 * 4))
is "weights of a rank that shares" "$("$TOOL" get out memory.weights)" $(((weights - norms) / 2 + norms))
is "who shares" "$("$TOOL" get out distributed.tensor_parallel_size)" 2
tokens=$("$TOOL" get out tokens_per_micro_batch)
is "sums of a layer" "$("$TOOL" get out distributed.strategies.0.all_reduce_bytes)" $((tokens * (10 * 32 * 4 + 24)))
grep -q shard_optimizer out && fail "other strategies are planned where nobody has the same part of the layers"
activations=$("$TOOL" get out memory.activations)
optimizer_of_two=$("$TOOL" get out memory.optimizer)
# shellcheck disable=SC2086
run plan tiny.yaml --ranks 4 $shares
expect 0
expect_out "2 ranks share the layers (tensor parallelism), 2 the data" "shard_optimizer" "full_shard"
# shellcheck disable=SC2086
run plan tiny.yaml --ranks 4 --json $shares distributed.strategy=shard_optimizer
expect 0
part=$("$TOOL" get out memory.optimizer)
[ "$part" -ge $((optimizer_of_two / 2)) ] && [ "$part" -le $((optimizer_of_two / 2 + optimizer_of_two / 10)) ] ||
    fail "half of $optimizer_of_two is $part"

# With rows shared the sums are scattered (half of the bytes) and what is read whole is gathered: for two layers six times each (forward, again
# for the backward pass, gradients), around the head twice, in front of the embedding's gradient once; losses and gradients of norms are sums.
# shellcheck disable=SC2086
run plan tiny.yaml --ranks 2 --json $shares distributed.sequence_parallel=true
expect 0
is "who shares rows" "$("$TOOL" get out distributed.sequence_parallel)" true
is "scattered rows" "$("$TOOL" get out distributed.strategies.0.reduce_scatter_bytes)" $((tokens * 10 * 32 * 4 / 2))
is "gathered rows" "$("$TOOL" get out distributed.strategies.0.all_gather_bytes)" $((tokens * 15 * 32 * 4 / 2))
is "sums beside them" "$("$TOOL" get out distributed.strategies.0.all_reduce_bytes)" $((tokens * 24 + norms))
less=$("$TOOL" get out memory.activations)
[ "$less" -lt $((activations * 9 / 10)) ] || fail "activations take $less bytes in place of $activations"
# shellcheck disable=SC2086
run plan tiny.yaml --ranks 2 $shares distributed.sequence_parallel=true
expect 0
expect_out "2 ranks share the layers (tensor parallelism) and their rows (sequence parallelism), 1 the data"
run plan tiny.yaml --ranks 2 distributed.sequence_parallel=true
expect 2 "distributed.sequence_parallel: no processes share the layers, and so none share rows: set distributed.tensor_parallel_size as well"
# shellcheck disable=SC2086
run plan tiny.yaml --ranks 3 $shares
expect 2 "distributed.tensor_parallel_size=2: 3 processes cannot share the layers by 2"
sed 's/"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16/"num_attention_heads": 7, "num_key_value_heads": 7, "head_dim": 4/
    s/"intermediate_size": 64/"intermediate_size": 29/' tiny.json >seven.json
run plan tiny.yaml --ranks 7 policy.model_config=seven.json distributed.tensor_parallel_size=7
expect 2 "gate_proj.weight' has 29 rows, which leave none for the last"
# shellcheck disable=SC2086
run plan tiny.yaml $shares
expect 2 "1 process cannot share the layers by 2"

# Compressed gradients: matrices in fewer bits; what is kept of them is memory.
whole=$("$TOOL" get four.json distributed.strategies.0.bytes_sent)
run plan tiny.yaml --ranks 4 --network 100Gbit/2us --json distributed.compress=int8 distributed.ranks_per_node=2
expect 0
is "format" "$("$TOOL" get out distributed.compress)" int8
is "uncompressed" "$("$TOOL" get out distributed.strategies.0.uncompressed_bytes)" "$whole"
sent=$("$TOOL" get out distributed.strategies.0.bytes_sent)
[ $((35 * sent)) -lt $((10 * whole)) ] && [ $((40 * sent)) -gt $((10 * whole)) ] || fail "$sent bytes in place of $whole"
twice=$("$TOOL" get out distributed.strategies.4.bytes_sent)
is "strategy" "$("$TOOL" get out distributed.strategies.4.strategy)" hybrid
[ "$twice" -lt "$("$TOOL" get out distributed.strategies.4.uncompressed_bytes)" ] || fail "hybrid: $twice bytes are not compressed"
more=$(($("$TOOL" get out memory.optimizer) - optimizer))
[ "$more" -gt $((weights * 8 / 10)) ] || fail "errors that are kept take $more bytes"
run plan tiny.yaml --ranks 4 distributed.compress=int8
expect 0
expect_out "are sent in place of" "gradients in int8"

# One of them sends nothing, and says so in the same words; as many as are no power of two, and more than the batch has sequences.
give_ceilings
run plan tiny.yaml --ranks 1 --network 1Gbit/1us --json
expect 0
is "ranks" "$("$TOOL" get out distributed.ranks)" 1
is "strategy" "$("$TOOL" get out distributed.strategy)" ddp
for figure in bytes_sent exposed_s hidden_s; do
    is "$figure of one rank" "$("$TOOL" get out distributed.$figure)" 0
done
is "efficiency" "$("$TOOL" get out distributed.strategies.0.efficiency)" 1
for n in 7 1000; do
    run plan tiny.yaml --ranks $n --network 1Gbit/1us --json
    expect 0
    is "ranks" "$("$TOOL" get out distributed.ranks)" $n
done
run plan tiny.yaml --ranks 2 policy.clip_grad_value=1
expect 2 "policy.clip_grad_value is not supported with several processes"

# Where nothing fits, nothing is the best.
run plan tiny.yaml --ranks 2 --network 1Gbit/1us engine.memory_limit=100KiB
expect 5
expect_out "does not fit"
run plan tiny.yaml --ranks 64 --network 1Gbit/2us/torus-4x8
expect 2 "has 32 nodes, 64 ranks need 64"
run plan tiny.yaml --ranks 64 --ranks-per-node 2 --network 1Gbit/2us/torus-4x8 policy.train_global_batch_size=64
expect 0
run plan tiny.yaml --ranks 2 --network fast
expect 2 "a network is bandwidth/latency, as in 100Gbit/2us, and its shape" "100Gbit/2us/torus-16x8x8" "not 'fast'"
run plan tiny.yaml --network 1Gbit/1us
expect 2 "give their number (--ranks)"
# Ranks of a host share its memory; a torus takes longer than a switch, for the same bytes.
run plan tiny.yaml --ranks 4 --json --network 100Mbit/1us
all=$("$TOOL" get out memory.limit_bytes)
flat=$("$TOOL" get out distributed.strategies.0.exposed_s)
sent=$("$TOOL" get out distributed.strategies.0.bytes_sent)
run plan tiny.yaml --ranks 4 --ranks-per-node 2 --json --network 100Mbit/1us/torus-4
expect 0
half=$("$TOOL" get out memory.limit_bytes)
[ $((all / 2 - half)) -le 1 ] && [ $((all / 2 - half)) -ge 0 ] || fail "a rank of two on a host may take $half of $all"
is "bytes on a torus" "$("$TOOL" get out distributed.strategies.0.bytes_sent)" "$sent"
ring=$("$TOOL" get out distributed.strategies.0.exposed_s)
[ "$flat" = null ] || awk -v a="$flat" -v b="$ring" 'BEGIN {exit !(b > 1.5 * a)}' || fail "$ring s on a torus, $flat s on a switch"
run plan tiny.yaml --ranks 2 --ranks-per-node 3
expect 2 "3 of 2 ranks cannot share a host (--ranks-per-node)"
run plan tiny.yaml --ranks 2 --ranks-per-node few
expect 2 "--ranks-per-node is a number of processes, not 'few'"
run plan tiny.yaml --ranks none
expect 2 "--ranks is a number of processes, not 'none'"
finish
