# Processes that share the layers and the rows of norms (sequence parallelism): the same losses and weights as of one, for every family,
# less memory for activations, the bytes that the plan says; resumed with any number that shares rows, or none that does.
. "$SOURCE/tests/cli/lib.sh"
. "$MPI_LIB"
write_recipe tiny.yaml
sed -i 's/lr: 1.0e-2/lr: 1.0e-3/' tiny.yaml
# model FILE TYPE VOCABULARY TIED
model() {
    cat >"$1" <<END
{"model_type": "$2", "vocab_size": $3, "hidden_size": 32, "intermediate_size": 60, "num_hidden_layers": 2,
 "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 8, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
 "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": $4, "initializer_range": 0.05}
END
}
model llama.json llama 260 true
model qwen3.json qwen3 261 false
cat >gpt2.json <<'END'
{"model_type": "gpt2", "vocab_size": 263, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
 "activation_function": "gelu_new", "initializer_range": 0.05}
END
# Micro-batches of 51 tokens: of four processes the last has fewer rows than the others.
words="sft.max_num_steps=30 sft.val_period=15 checkpointing.save_period=15 policy.precision=float32
       policy.train_global_batch_size=12 policy.train_micro_batch_size=3 policy.max_total_sequence_length=17 data.arithmetic.digits=2"
key=distributed.tensor_parallel_size
rows=distributed.sequence_parallel=true
# as_planned RUN
as_planned() {
    is "memory of a rank, $1" "$("$TOOL" get "$1/run.json" memory.measured_peak_bytes)" \
        "$("$TOOL" get "$1/run.json" memory.planned_peak_bytes)"
}

# shellcheck disable=SC2086
for family in llama qwen3 gpt2; do
    run train --quiet tiny.yaml $words policy.model_config=$family.json run.dir=$family engine.threads=1
    expect 0
    for way in 2-2 4-2 4-4; do
        ranks ${way%-*} train --quiet tiny.yaml $words policy.model_config=$family.json run.dir=$family-$way $key=${way#*-} $rows
        expect 0
        nearly $family $family-$way 1e-5 1e-4
        as_planned $family-$way
    done
done
is "who shares rows" "$("$TOOL" get llama-4-2/run.json distributed.sequence_parallel)" true

# What is sent together, and when, changes no bit, nor does what is computed again or left out.
# shellcheck disable=SC2086
for more in "distributed.bucket_mib=0.004 engine.disable_passes=[overlap,bucket]" policy.recompute=selective policy.recompute=full \
    engine.padding_free=false; do
    ranks 4 train --quiet tiny.yaml $words policy.model_config=llama.json run.dir=plain $key=4 $rows $more
    expect 0
    nearly llama-4-4 plain 0 0
    as_planned plain
    rm -rf plain
done

# Resumed by ranks that do not share rows, by others that do, by one alone.
# shellcheck disable=SC2086
ranks 4 train --quiet tiny.yaml $words policy.model_config=llama.json run.dir=stopped sft.max_num_steps=15 $key=2 $rows
expect 0
# shellcheck disable=SC2086
for way in "4 $key=4 $rows" "2 $key=2" "1 $key=1"; do
    cp -r stopped on
    ranks ${way%% *} train --quiet --resume tiny.yaml $words policy.model_config=llama.json run.dir=on ${way#* }
    expect 0
    nearly llama on 1e-5 1e-4
    rm -rf on
done

# A step sends what the plan says, besides what the ranks tell each other of its figures.
# sent STEPS
sent() {
    # shellcheck disable=SC2086
    ranks 2 train --quiet tiny.yaml $words policy.model_config=llama.json run.dir=sent sft.val_period=0 checkpointing.enabled=false \
        policy.sequence_packing.enabled=false sft.max_num_steps="$1" $key=2 $rows
    expect 0
    "$TOOL" get sent/run.json distributed.bytes_sent
    rm -rf sent
}
# shellcheck disable=SC2086
run plan tiny.yaml $words policy.model_config=llama.json policy.sequence_packing.enabled=false --ranks 2 --json $key=2 $rows
expect 0
planned=$((2 * $("$TOOL" get out distributed.strategies.0.bytes_sent)))
more=$(sent 3) && less=$(sent 2)
step=$((more - less))
[ $((100 * (step - planned))) -le "$planned" ] && [ "$step" -ge "$planned" ] || fail "a step sends $step bytes, planned are $planned"

# DPO and adapters.
dpo_alone llama 7
ranks 4 train --quiet dpo.yaml run.dir=dpo-shared $key=2 $rows data.cache_dir=cache
expect 0
nearly dpo dpo-shared 1e-5 1e-4
# B begins with zeros, so that A's first gradients are rounding, which AdamW makes steps of with a small eps.
adapters="policy.peft.enabled=true policy.peft.dim=4 policy.peft.target_modules=all-linear policy.optimizer.kwargs.eps=1.0e-5"
# shellcheck disable=SC2086
for family in llama gpt2; do
    run train --quiet tiny.yaml $words policy.model_config=$family.json run.dir=lora engine.threads=1 $adapters
    expect 0
    ranks 2 train --quiet tiny.yaml $words policy.model_config=$family.json run.dir=lora-rows $key=2 $rows $adapters
    expect 0
    nearly lora lora-rows 1e-6 1e-5
    as_planned lora-rows
    rm -rf lora lora-rows
done
# In bf16 rows are gathered in bf16.
# shellcheck disable=SC2086
ranks 2 train --quiet tiny.yaml $words policy.model_config=llama.json run.dir=bf16 policy.precision=bfloat16 $key=2 $rows
expect 0
as_planned bf16

# NeMo RL's names mean the same.
# shellcheck disable=SC2086
ranks 2 train --quiet tiny.yaml $words policy.model_config=llama.json run.dir=theirs policy.dtensor_cfg.tensor_parallel_size=2 \
    policy.dtensor_cfg.sequence_parallel=true
expect 0
nearly llama-2-2 theirs 0 0
is "who shares rows, in their words" "$("$TOOL" get theirs/run.json distributed.sequence_parallel)" true
# shellcheck disable=SC2086
ranks 2 train --quiet tiny.yaml $words policy.model_config=llama.json run.dir=refused $rows
expect 2 "distributed.sequence_parallel: no processes share the layers, and so none share rows: set distributed.tensor_parallel_size as well"
[ ! -e refused ] || fail "a refused run leaves a folder"
finish
