# Places of a micro-batch behind its last sequence are not computed: the same bits, fewer rows, and nothing else changes.
. "$SOURCE/tests/cli/lib.sh"
make_model
write_recipe tiny.yaml
# A step is 100 tokens or so: one micro-batch, of which less than half is used.
wide="policy.sequence_packing.train_mb_tokens=256 policy.train_global_batch_size=16"

figures() { grep -o '"\(train/loss\|validation/val_loss\|train/grad_norm\|train/reward\|train/accuracy\)":[-0-9.e]*' "$1/metrics.jsonl"; }
computed() { sed -n 's/.*"train\/padding_ratio":\([-0-9.e]*\).*/\1/p' "$1/metrics.jsonl" | tail -n 1; }

# same NAME CONFIG KEY=VALUE...: with and without, every figure and every file of the checkpoints.
same() {
    name=$1
    shift
    run train -q "$@" run.dir="$name"
    expect 0
    run train -q "$@" run.dir="$name-whole" engine.padding_free=false
    expect 0
    is "figures of $name" "$(figures "$name")" "$(figures "$name-whole")"
    (cd "$name" && find checkpoints -name '*.safetensors' | sort) >files
    [ -s files ] || fail "$name: no checkpoint"
    while read -r file; do
        cmp "$name/$file" "$name-whole/$file" || fail "$name: $file differs"
    done <files
    is "bytes of $name" "$("$TOOL" get "$name/run.json" memory.measured_peak_bytes)" "$("$TOOL" get "$name-whole/run.json" memory.measured_peak_bytes)"
    awk -v a="$(computed "$name")" -v b="$(computed "$name-whole")" 'BEGIN { exit !(a != "" && a < b - 0.1) }' ||
        fail "$name: $(computed "$name") of what was computed was padding, $(computed "$name-whole") without the lever"
}

# shellcheck disable=SC2086
for more in policy.precision=float32 policy.precision=float16 "policy.recompute=full engine.threads=3" policy.activation_compression=int8 \
    policy.compile_mode=none engine.loss_chunk=64 engine.backend=ref "engine.isa=portable policy.precision=float32" engine.isa=avx2; do
    same "${more%% *}" tiny.yaml $wide $more
done

# Adapters with dropout, in codes; answers that are compared; answers that are drawn.
sed 's/  init: random/  peft: {enabled: true, dim: 4, alpha: 8, dropout: 0.2}\n  model_name: model/; s/  model_config: tiny.json//;
     s/  tokenizer: .*/  tokenizer: {chat_template: null}/' tiny.yaml >adapter.yaml
same lora adapter.yaml $wide
same dora adapter.yaml $wide policy.peft.use_dora=true policy.peft.base=int8
make_pairs
cat >dpo.yaml <<'END'
dpo: {max_num_epochs: 9, max_num_steps: 3, val_period: 3}
policy:
  model_name: model
  tokenizer: {chat_template: null}
  train_global_batch_size: 4
  max_total_sequence_length: 32
  sequence_packing: {train_mb_tokens: 1024}
data: {train: {data_path: pairs.jsonl, split_validation_size: 0.25}}
checkpointing: {save_period: 3}
END
same dpo dpo.yaml
same dpo-float32 dpo.yaml policy.precision=float32
printf '{"question": "%s", "answer": "1"}\n' "the quick" "brown fox" >rows.jsonl
write_grpo "num_generations_per_prompt: 4, max_num_steps: 2, max_num_epochs: 9" 'math: {}'
same grpo grpo.yaml loss_fn.reference_policy_kl_penalty=0.01 loss_fn.force_on_policy_ratio=false \
    policy.train_micro_batch_size=16 policy.train_global_batch_size=8
finish
