# temper plan: text, JSON, launches; nothing is written.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml

run plan tiny.yaml
expect 0
expect_out "parameters" "memory" "weights" "optimizer" "peak" "step time" "checkpoint"
[ ! -e runs ] || fail "plan wrote a run folder"

# 260*32 embedding (tied), per layer: q 32*32, k and v 16*32 each, o 32*32, three of 64*32,
# two norms of 32; one last norm of 32.
run plan --json tiny.yaml
expect 0
is parameters "$("$TOOL" get out parameters)" $((260 * 32 + 2 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 64 * 32 + 2 * 32) + 32))
is "tokens of a micro-batch" "$("$TOOL" get out tokens_per_micro_batch)" 64
is "bytes of the weights" "$("$TOOL" get out memory.weights)" $((4 * $("$TOOL" get out parameters)))
"$TOOL" get out memory.planned_peak_bytes >/dev/null || fail "no planned peak in plan --json"

run plan tiny.yaml --print train
expect 0
expect_out "linear" "attention_grad"
run plan tiny.yaml policy.compile_mode=none
expect 0
run plan tiny.yaml --isa portable
expect 0

# Without ceilings the time is unknown; measured once, it is predicted.
run doctor --seconds 0.2 --json
expect 0
"$TOOL" get out gemm_f32_flops_per_s >/dev/null || fail "doctor --json has no ceiling"
give_ceilings
run plan --json tiny.yaml
expect 0
case $("$TOOL" get out predicted_step_s) in
[0-9]*) ;;
*) fail "plan --json predicts no step time after doctor" ;;
esac
finish
