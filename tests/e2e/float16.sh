# A run in float16: it learns as in float32, gradients that overflow cost an update and not the run,
# and the loss scale is part of what a resumed run goes on with, bit for bit.
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/e2e/runs.sh"
STEPS=8 EVERY=4
write_recipe tiny.yaml
train() {
    run train --quiet tiny.yaml sft.val_period=0 checkpointing.save_period=4 "$@"
    expect 0
}
train run.dir=f32 sft.max_num_steps=8 policy.precision=float32
train run.dir=f16 sft.max_num_steps=8 policy.precision=float16
near=$(awk -v a="$("$TOOL" get f32/run.json result.loss)" -v b="$("$TOOL" get f16/run.json result.loss)" \
    'BEGIN { d = a - b; print (d < 0.01 * a && d > -0.01 * a) ? "near" : a " " b }')
is "loss in float16 beside that in float32" "$near" near
is "scale" "$("$TOOL" get f16/checkpoints/step-8/state.json loss_scale)" 65536
is "overflows" "$("$TOOL" get f16/run.json result.overflow_steps)" 0
grep -q '"train/loss_scale":65536' f16/metrics.jsonl || fail "no loss scale in the metrics"

# From 2^40 on the scale is halved until gradients fit; it grows again after three updates.
scale="policy.precision=float16 policy.grad_scaler.init_scale=1099511627776 policy.grad_scaler.backoff_factor=0.001953125 policy.grad_scaler.growth_interval=3"
train run.dir=whole sft.max_num_steps=8 $scale
train run.dir=parts sft.max_num_steps=4 $scale
train run.dir=parts sft.max_num_steps=8 $scale --resume
same_end whole parts
n=$("$TOOL" get whole/run.json result.overflow_steps)
[ "$n" -gt 0 ] || fail "nothing overflowed at 2^40"
is "steps without an update" "$(grep -c '"train/overflow":1' whole/metrics.jsonl)" "$n"
is "skipped steps, which others are" "$("$TOOL" get whole/run.json result.skipped_steps)" 0
is "scale of both" "$("$TOOL" get parts/checkpoints/step-8/state.json loss_scale)" \
    "$("$TOOL" get whole/checkpoints/step-8/state.json loss_scale)"
is "updates" "$("$TOOL" get whole/checkpoints/step-8/state.json updates)" $((8 - n))
finish
