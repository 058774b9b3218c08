# Processes that share the layers: the same losses and weights as of one, for families with grouped heads, norms of heads, biases, a
# table of an odd number of rows; with shares of the data beside it; resumed with any number that shares.
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
model qwen2.json qwen2 261 false
model qwen3.json qwen3 260 true
cat >gpt2.json <<'END'
{"model_type": "gpt2", "vocab_size": 263, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
 "activation_function": "gelu_new", "initializer_range": 0.05}
END
words="sft.max_num_steps=30 sft.val_period=15 checkpointing.save_period=15 policy.precision=float32
       policy.train_micro_batch_size=2 data.arithmetic.digits=2"
key=distributed.tensor_parallel_size

# shellcheck disable=SC2086
for family in llama qwen2 qwen3 gpt2; do
    run train --quiet tiny.yaml $words policy.model_config=$family.json run.dir=$family engine.threads=1
    expect 0
    for way in 2/2 4/2 4/4; do
        ranks ${way%/*} train --quiet tiny.yaml $words policy.model_config=$family.json run.dir=shared $key=${way#*/}
        expect 0
        nearly $family shared 1e-5 1e-4
        is "memory of a rank, $family on $way" "$("$TOOL" get shared/run.json memory.measured_peak_bytes)" \
            "$("$TOOL" get shared/run.json memory.planned_peak_bytes)"
        is "files of the model, $family on $way" "$(ls shared/checkpoints/step-30/model)" "$(ls $family/checkpoints/step-30/model)"
        mv shared $family-${way%/*}-${way#*/}
    done
done
is "who shares" "$("$TOOL" get llama-4-2/run.json distributed.tensor_parallel_size)" 2

# What is sent together, and when, changes no bit.
# shellcheck disable=SC2086
ranks 4 train --quiet tiny.yaml $words policy.model_config=llama.json run.dir=plain $key=2 distributed.bucket_mib=0.004 \
    'engine.disable_passes=[overlap,bucket]'
expect 0
nearly llama-4-2 plain 0 0

# Resumed by another number of processes that share, by none that do, and by one alone.
# shellcheck disable=SC2086
ranks 4 train --quiet tiny.yaml $words policy.model_config=llama.json run.dir=stopped sft.max_num_steps=15 $key=2
expect 0
for way in 4/4 2/2 3/1 1/1; do
    cp -r stopped on
    # shellcheck disable=SC2086
    ranks ${way%/*} train --quiet --resume tiny.yaml $words policy.model_config=llama.json run.dir=on $key=${way#*/}
    expect 0
    nearly llama on 1e-5 1e-4
    rm -rf on
done
# DPO: the reference is computed together, its answers are kept for all.
dpo_alone llama 7
ranks 4 train --quiet dpo.yaml run.dir=dpo-shared $key=2 data.cache_dir=cache
expect 0
nearly dpo dpo-shared 1e-5 1e-4
ranks 4 train --quiet dpo.yaml run.dir=dpo-on dpo.max_num_steps=15 $key=2
expect 0
ranks 2 train --quiet --resume dpo.yaml run.dir=dpo-on $key=2
expect 0
nearly dpo dpo-on 1e-5 1e-4

# NeMo RL's names mean the same where there are several processes, and nothing where there is one.
# shellcheck disable=SC2086
ranks 2 train --quiet tiny.yaml $words policy.model_config=llama.json run.dir=theirs policy.dtensor_cfg.tensor_parallel_size=2
expect 0
nearly llama-2-2 theirs 0 0
is "who shares, in their words" "$("$TOOL" get theirs/run.json distributed.tensor_parallel_size)" 2

# What does not go together is named before anything is written.
# refused WORDS WANTED...
refused() {
    more=$1
    shift
    # shellcheck disable=SC2086
    ranks 2 train --quiet tiny.yaml policy.model_config=llama.json run.dir=refused $more
    expect 2 "$@"
    [ ! -e refused ] || fail "a refused run leaves a folder: $more"
}
refused $key=3 "$key=3: 2 processes cannot share the layers by 3: start a multiple of that (mpirun -n 3; temper plan --ranks 3)"
refused "$key=2 policy.peft.enabled=true policy.peft.dropout=0.1" "$key=2 is not supported together with policy.peft.dropout"
refused "$key=2 policy.peft.enabled=true policy.peft.base=nf4" "$key=2 is not supported together with policy.peft.base in few bits"
refused "$key=2 policy.activation_compression=int8" "$key=2 is not supported together with policy.activation_compression=int8"
refused "$key=2 policy.optimizer.name=adamw_8bit" "$key=2 is not supported together with an optimizer that looks at"
refused "$key=2 engine.disable_passes=[tensor-parallel]" "engine.disable_passes: without tensor-parallel processes do not share the layers"
sed 's/"num_key_value_heads": 4/"num_key_value_heads": 1/' llama.json >grouped.json
refused "$key=2 policy.model_config=grouped.json" "$key=2: the model's 8 heads of attention and 1 of keys and values must be multiples of it"
run train --quiet tiny.yaml policy.model_config=llama.json run.dir=refused $key=2
expect 2 "$key=2: 1 process cannot share the layers by 2"
finish
