# Activations in 8 bits: the same loss at first, less memory, as planned; gradients off by little, which is
# measured and said; the same bits after a resume.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml
sed -i 's/"hidden_size": *[0-9]*/"hidden_size": 64/' tiny.json
fixed="sft.val_period=0 sft.val_at_end=false policy.sequence_packing.train_mb_tokens=128 policy.train_global_batch_size=32"
loss() { # FOLDER STEP
    sed -n 's/.*"step":'"$2"',"axis":"train".*"train\/loss":\([-0-9.e]*\).*/\1/p' "$1/metrics.jsonl"
}
planned() { "$TOOL" get "$1/run.json" memory.planned_peak_bytes; }
for precision in float32 bfloat16 float16; do
    run train -q tiny.yaml run.dir=exact-$precision $fixed policy.precision=$precision
    expect 0
    run train tiny.yaml run.dir=int8-$precision $fixed policy.precision=$precision policy.activation_compression=int8
    expect 0
    expect_out "int8-activations   on" "activations in 8 bits: gradients are off by 0." "gradient error"
    is "loss of the first step in $precision" "$(loss int8-$precision 1)" "$(loss exact-$precision 1)"
    [ "$(loss int8-$precision 6)" != "$(loss exact-$precision 6)" ] || fail "$precision: nothing was compressed"
    is "measured bytes of $precision" "$("$TOOL" get int8-$precision/run.json memory.measured_peak_bytes)" "$(planned int8-$precision)"
    error=$("$TOOL" get int8-$precision/run.json levers.3.measured.value)
    is "the lever" "$("$TOOL" get int8-$precision/run.json levers.3.name) $("$TOOL" get int8-$precision/run.json levers.3.measured.what)" \
        "int8-activations gradient error"
    awk -v x="$error" 'BEGIN { exit !(x > 1e-4 && x < 0.03) }' || fail "$precision: gradients are off by $error"
done
[ "$(planned int8-float32)" -lt "$(planned exact-float32)" ] || fail "it saves nothing in float32"

# With recomputation what enters a block waits in 8 bits; a resumed run ends at the same bits.
for more in policy.recompute=full policy.recompute=selective; do
    run train tiny.yaml run.dir=$more $fixed $more policy.activation_compression=int8
    expect 0
    expect_out "gradients are off by "
done
run train -q tiny.yaml run.dir=whole $fixed policy.activation_compression=int8 data.num_workers=0
expect 0
run train -q tiny.yaml run.dir=parts $fixed policy.activation_compression=int8 sft.max_num_steps=3 checkpointing.save_period=3
expect 0
run train -q tiny.yaml run.dir=parts $fixed policy.activation_compression=int8 --resume
expect 0
cmp whole/checkpoints/step-6/model/model.safetensors parts/checkpoints/step-6/model/model.safetensors || fail "a resumed run differs"

# Losses in plain C as well.
make_model
make_pairs
cat >dpo.yaml <<'E'
dpo: {max_num_epochs: 9, max_num_steps: 3, val_period: 0, val_at_end: false}
policy:
  model_name: model
  tokenizer: {chat_template: null}
  train_global_batch_size: 4
  max_total_sequence_length: 32
  activation_compression: int8
data: {train: {data_path: pairs.jsonl}}
checkpointing: {enabled: false}
E
run train dpo.yaml run.dir=dpo
expect 0
expect_out "activations in 8 bits: gradients are off by "
run train tiny.yaml run.dir=no policy.activation_compression=int4
expect 2 'policy.activation_compression: "int4" is not one of none, int8'
finish
