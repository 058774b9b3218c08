# Adapters on a frozen base: interrupted runs end where the uninterrupted one does, on every backend; checkpoints hold the adapter
# alone and know their base; DPO's and GRPO's reference is the base; merged, the model answers as base and adapter do.
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/e2e/runs.sh"
make_model
write_recipe plain.yaml
sed 's/  init: random/  peft: {enabled: true, dim: 4, alpha: 8}\n  model_name: model/; s/  model_config: tiny.json//;
     s/  tokenizer: .*/  tokenizer: {chat_template: null}/' plain.yaml >tiny.yaml

# same_adapters A B STEP: the adapter, and what the optimizer keeps.
same_adapters() {
    for file in model/adapter_model.safetensors optimizer.safetensors; do
        cmp "$1/checkpoints/step-$3/$file" "$2/checkpoints/step-$3/$file" || fail "$2: $file is not that of $1"
    done
}

# ---- interrupted and resumed: with dropout in force, and the base in few bits ----
# survives RUN KEY=VALUE...: the same bits, ended and killed after step 4 as in one go.
survives() {
    whole=$1
    shift
    run train --quiet tiny.yaml sft.max_num_steps=8 checkpointing.save_period=3 run.dir="$whole" "$@"
    expect 0
    for signal in TERM KILL; do
        interrupt $signal 4 "$TEMPER" train --quiet tiny.yaml sft.max_num_steps=8 checkpointing.save_period=3 \
            run.dir="$whole-$signal" "$@"
        run train --quiet tiny.yaml sft.max_num_steps=8 checkpointing.save_period=3 run.dir="$whole-$signal" --resume "$@"
        expect 0
        same_adapters "$whole" "$whole-$signal" 8
    done
}
survives whole policy.peft.dropout=0.2
survives dora policy.peft.use_dora=true policy.peft.base=nf4 policy.peft.dropout=0.2
survives rslora policy.peft.use_rslora=true policy.peft.base=int8 policy.recompute=full
run train --quiet tiny.yaml run.dir=undropped sft.max_num_steps=8 checkpointing.save_period=3
expect 0
cmp -s whole/checkpoints/step-8/optimizer.safetensors undropped/checkpoints/step-8/optimizer.safetensors &&
    fail "dropout has no effect"

# ---- what a checkpoint holds ----
[ -e whole/checkpoints/step-8/model/config.json ] && fail "a checkpoint of an adapter holds a whole model"
for key in r lora_alpha peft_type task_type; do
    "$TOOL" get whole/checkpoints/step-8/model/adapter_config.json $key
done >out
is "adapter_config.json" "$(tr '\n' ' ' <out)" "4 8 LORA CAUSAL_LM "

# ... and of which base: another one is refused.
cp -r model other
"$TOOL" flip other/model.safetensors 60001
run train --quiet tiny.yaml sft.max_num_steps=9 run.dir=undropped policy.model_name=other --resume
expect 2 "is an adapter of another base" "'other'"
run train --quiet tiny.yaml sft.max_num_steps=9 run.dir=undropped policy.peft.dim=8 --resume
expect 2 "was saved from another model"

# ---- ref and guard leave the same bits; bf16, DoRA, recomputation ----
small="policy.train_global_batch_size=4 policy.train_micro_batch_size=2 sft.val_period=0 sft.max_num_steps=2"
for kind in "policy.peft.base=int8" "policy.peft.base=nf4 policy.precision=float32" "policy.precision=float32" "policy.peft.use_dora=true" "policy.recompute=full policy.peft.dropout=0.3" "policy.peft.use_dora=true policy.peft.dropout=0.3"; do
    for backend in ref guard; do
        # shellcheck disable=SC2086
        run train --quiet tiny.yaml $small $kind run.dir=$backend engine.backend=$backend
        expect 0
    done
    echo "ref and guard: $kind"
    same_adapters ref guard 2
    rm -rf ref guard
done

# ---- planned and measured ----
run train --progress plain tiny.yaml run.dir=measured sft.max_num_steps=2
expect 0
expect_out "(planned / measured 1.0000)" "adapter: LoRA of rank 4, alpha 8, on 14 modules; 4096 parameters are trained"

for base in int8 nf4; do # a GRPO that generates from it as well comes below
    run train --progress plain tiny.yaml run.dir=measured-$base sft.max_num_steps=2 policy.peft.base=$base
    expect 0
    expect_out "(planned / measured 1.0000)"
done

# ---- an adapter goes on from its folder ----
run train --quiet tiny.yaml run.dir=on policy.peft.enabled=false policy.model_name=undropped sft.max_num_steps=2
expect 0
run train --quiet tiny.yaml run.dir=twice policy.model_name=undropped sft.max_num_steps=2
expect 2 "is an adapter already"

# ---- merged, and alone ----
answer() { # MODEL
    run generate --max-new-tokens 8 --precision float32 --json "$1" "3+4="
    expect 0
    "$TOOL" get out ids
}
adapted=$(answer undropped)
run merge undropped merged
expect 0
expect_out "wrote merged: " "with the adapters of 14 modules, in f32"
is "the answer of the merged model" "$(answer merged)" "$adapted"
run merge undropped merged
expect 2 "'merged' is there already"
# An adapter that was trained with dropout answers without it; a config.json beside it, as some trainers
# leave one, is not taken for a model of its own.
run train --quiet tiny.yaml run.dir=both sft.max_num_steps=2 policy.peft.use_dora=true policy.peft.dropout=0.5
expect 0
dropped=$(answer both)
cp model/config.json both/checkpoints/step-2/model
is "the answer beside a config.json" "$(answer both)" "$dropped"
mv both/checkpoints/step-2/model/adapter_model.safetensors both/checkpoints/step-2/model/adapter_model.bin
run generate both/checkpoints/step-2/model x
expect 2 "has its tensors in adapter_model.bin"
run merge model nothing
expect 2 "'model' is no adapter"
# DoRA divides by the length of a row, which is 0 where base and adapter are.
run train --quiet tiny.yaml run.dir=zero sft.max_num_steps=1 policy.peft.use_dora=true policy.optimizer.kwargs.lr=0
expect 0
cp model/model.safetensors kept
n=$(od -An -t u8 -N 8 model/model.safetensors | tr -d ' ')
head -c $(($(wc -c <kept) - 8 - n)) /dev/zero | dd of=model/model.safetensors bs=65536 oflag=seek_bytes seek=$((8 + n)) conv=notrunc 2>/dev/null
run merge zero nothing
expect 2 "row 0 is zero, and DoRA divides by its length"
mv kept model/model.safetensors
run train tiny.yaml run.dir=halves policy.peft.base=bfloat16 policy.precision=float16
expect 2 "a base in bfloat16 needs policy.precision=bfloat16"
run export undropped out.gguf
expect 2 "merge it into its base first"

# ---- DPO and GRPO: the base is the reference, from the first step and after a resume ----
cat >pairs.jsonl <<'END'
{"prompt": "1+1=", "chosen": "2", "rejected": "3"}
{"prompt": "2+1=", "chosen": "3", "rejected": "8"}
{"prompt": "4+3=", "chosen": "7", "rejected": "1"}
{"prompt": "2+2=", "chosen": "4", "rejected": "5"}
END
cat >dpo.yaml <<'END'
dpo: {max_num_epochs: 100, max_num_steps: 6, val_period: 0}
policy:
  model_name: model
  peft: {enabled: true, dim: 4}
  tokenizer: {chat_template: null}
  train_global_batch_size: 4
  max_total_sequence_length: 16
  sequence_packing: {train_mb_tokens: 64}
  optimizer: {kwargs: {lr: 1.0e-2, weight_decay: 0.0, eps: 1.0e-8}}
data:
  train: {data_path: pairs.jsonl}
checkpointing: {save_period: 3}
END
cat >grpo.yaml <<'END'
grpo: {num_prompts_per_step: 2, num_generations_per_prompt: 4, max_num_steps: 6, val_period: 0}
policy:
  model_name: model
  peft: {enabled: true, dim: 4}
  tokenizer: {chat_template: null}
  max_total_sequence_length: 16
  train_global_batch_size: 8
  generation: {max_new_tokens: 4}
  optimizer: {kwargs: {lr: 1.0e-2, weight_decay: 0.0, eps: 1.0e-8}}
loss_fn: {reference_policy_kl_penalty: 0.1}
data:
  train: {dataset_name: arithmetic}
  arithmetic: {n_examples: 50, n_validation: 8, digits: 1, operators: "+"}
checkpointing: {save_period: 3}
train: {max_unrewarded: 100}
END
for algorithm in dpo grpo; do
    for start in model undropped; do
        more="policy.model_name=$start"
        [ $start = model ] || more="$more policy.peft.enabled=false"
        # shellcheck disable=SC2086
        run train --quiet $algorithm.yaml $more run.dir=$algorithm-$start
        expect 0
        # shellcheck disable=SC2086
        run train --quiet $algorithm.yaml $more run.dir=$algorithm-$start-part $algorithm.max_num_steps=3
        expect 0
        rm -f cache/temper/*.reference
        # shellcheck disable=SC2086
        run train --quiet $algorithm.yaml $more run.dir=$algorithm-$start-part --resume
        expect 0
        same_adapters $algorithm-$start $algorithm-$start-part 6
    done
done
for base in int8 nf4; do
    run train --quiet grpo.yaml run.dir=grpo-$base policy.peft.base=$base grpo.max_num_steps=2
    expect 0
done
first=$(sed -n 's/.*"step":1,"axis":"train".*"train.loss":\([-0-9.e]*\).*/\1/p' dpo-model/metrics.jsonl)
awk -v x="$first" 'BEGIN { exit !(x > 0.6931466 && x < 0.6931478) }' || fail "DPO's first loss is $first, not ln 2"
# Of the reference there is nothing but its graph.
run plan grpo.yaml
expect 0
cp out with
run plan grpo.yaml loss_fn.reference_policy_kl_penalty=0
expect 0
is "weights with a reference" "$(grep '^weights' with | head -1)" "$(grep '^weights' out | head -1)"
# Rollouts draw from logits that are not rounded, though the base is in bf16.
run plan --print=generate grpo.yaml policy.precision=bfloat16
expect 0
is "the type of logits" "$(sed -n 's/.*lm_head.*-> \([a-z0-9]*\)\[.*/\1/p' out)" f32
finish
