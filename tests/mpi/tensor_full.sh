# Processes that share the layers, each with its part of its slices of weights (ZeRO 3), also node by node: the losses and weights of one, the
# same bits whatever is sent together and when, memory as planned, checkpoints that any number goes on with.
. "$SOURCE/tests/cli/lib.sh"
. "$MPI_LIB"
write_recipe tiny.yaml
sed -i 's/lr: 1.0e-2/lr: 1.0e-3/' tiny.yaml
# model FAMILY VOCABULARY TIED: its configuration, as FAMILY-VOCABULARY-TIED.json
model() {
    if [ "$1" = llama ]; then
        cat >"$1-$2-$3.json" <<END
{"model_type": "llama", "vocab_size": $2, "hidden_size": 32, "intermediate_size": 60, "num_hidden_layers": 2,
 "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 8, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
 "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": $3, "initializer_range": 0.05}
END
    else
        cat >"$1-$2-$3.json" <<END
{"model_type": "gpt2", "vocab_size": $2, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
 "activation_function": "gelu_new", "tie_word_embeddings": $3, "initializer_range": 0.05}
END
    fi
}
# Several micro-batches in a step for every process; a staging buffer that is small beside the model.
words="sft.max_num_steps=30 sft.val_period=15 checkpointing.save_period=15 policy.precision=float32
       policy.train_micro_batch_size=2 data.arithmetic.digits=2 distributed.bucket_mib=0.01"
key=distributed.tensor_parallel_size
full=distributed.strategy=full_shard
hybrid="distributed.strategy=hybrid distributed.ranks_per_node=4"
adapters="policy.peft.enabled=true policy.peft.dim=4 policy.peft.target_modules=all-linear"
# as_planned RUN
as_planned() {
    is "memory of a rank, $1" "$("$TOOL" get "$1/run.json" memory.measured_peak_bytes)" \
        "$("$TOOL" get "$1/run.json" memory.planned_peak_bytes)"
}
# sft RANKS WORDS...: those of the recipe go before.
sft() {
    n=$1
    shift
    # shellcheck disable=SC2086
    ranks "$n" train --quiet tiny.yaml $words "$@"
    expect 0
}

# 261 and 263 tokens are not two equal parts of a vocabulary, 264 are.
for family in llama-261-true llama-261-false llama-264-false gpt2-263-true gpt2-263-false gpt2-264-true; do
    # shellcheck disable=SC2046
    model $(echo $family | tr - ' ')
    # shellcheck disable=SC2086
    run train --quiet tiny.yaml $words policy.model_config=$family.json run.dir=$family engine.threads=1
    expect 0
    sft 4 policy.model_config=$family.json run.dir=$family-full $key=2 $full
    nearly $family $family-full 1e-5 1e-4
    as_planned $family-full
    sft 4 policy.model_config=$family.json run.dir=other $key=2 $full distributed.bucket_mib=0.004 'engine.disable_passes=[overlap]'
    nearly $family-full other 0 0
    rm -rf other
done
# A half of the slices that two have in full with shard_gradients, but for a cache line each.
sft 4 policy.model_config=gpt2-263-true.json run.dir=whole $key=2 distributed.strategy=shard_gradients
whole=$("$TOOL" get whole/run.json memory.planned_bytes_by_kind.weights)
part=$("$TOOL" get gpt2-263-true-full/run.json memory.planned_bytes_by_kind.weights)
[ "$part" -ge $((whole / 2)) ] && [ "$part" -le $((whole / 2 + whole / 20)) ] || fail "a half of the weights, $whole, is $part"
rm -rf whole

# Three that have the same slices, four that share, two nodes of two by two, rows that are shared as well.
for family in llama-261-false gpt2-263-true; do
    for way in "6 $key=2 $full" "4 $key=4 $full" "8 $key=2 $hybrid" "4 $key=2 $full distributed.sequence_parallel=true" \
        "4 $key=2 $full distributed.reshard_after_forward=false" "4 $key=2 $full policy.recompute=full"; do
        # shellcheck disable=SC2086
        sft ${way%% *} policy.model_config=$family.json run.dir=other ${way#* }
        nearly $family other 1e-5 1e-4
        as_planned other
        rm -rf other
    done
done
# With one micro-batch in a step who keeps what changes no bit: with adapters, in bf16, with another optimizer.
sed 's/optimizer: .*/optimizer: {name: torch.optim.SGD, kwargs: {lr: 1.0e-2, momentum: 0.9}}/' tiny.yaml >sgd.yaml
for more in "tiny.yaml $adapters" "tiny.yaml policy.precision=bfloat16" sgd.yaml; do
    for strategy in ddp full_shard; do
        # shellcheck disable=SC2086
        ranks 4 train --quiet $more sft.max_num_steps=12 policy.train_micro_batch_size=8 policy.model_config=gpt2-263-true.json \
            run.dir=$strategy $key=2 distributed.strategy=$strategy
        expect 0
        as_planned $strategy
    done
    nearly ddp full_shard 0 0
    rm -rf ddp full_shard
done
# Gradients in fewer bits.
for way in "4 $full" "8 $hybrid"; do
    # shellcheck disable=SC2086
    sft ${way%% *} policy.model_config=gpt2-263-true.json run.dir=int8 $key=2 ${way#* } distributed.compress=int8 sft.max_num_steps=6
    as_planned int8
    # shellcheck disable=SC2086
    sft ${way%% *} policy.model_config=gpt2-263-true.json run.dir=other $key=2 ${way#* } distributed.compress=int8 sft.max_num_steps=6 \
        distributed.bucket_mib=0.004 'engine.disable_passes=[overlap]'
    nearly int8 other 0 0
    rm -rf int8 other
done

# Stopped, and resumed by others; and by these what others have begun.
for begun in "4 $key=2 $full" "8 $key=2 $hybrid"; do
    # shellcheck disable=SC2086
    sft ${begun%% *} policy.model_config=gpt2-263-true.json run.dir=stopped sft.max_num_steps=15 ${begun#* }
    for way in "6 $key=2 $full" "8 $key=2 $hybrid" "4 $key=2 distributed.strategy=shard_gradients" "3 $full" "1 $key=1"; do
        cp -r stopped on
        # shellcheck disable=SC2086
        sft ${way%% *} --resume policy.model_config=gpt2-263-true.json run.dir=on ${way#* }
        nearly gpt2-263-true on 1e-5 1e-4
        rm -rf on
    done
    rm -rf stopped
done
sft 3 policy.model_config=gpt2-263-true.json run.dir=on sft.max_num_steps=15 $full
sft 4 --resume policy.model_config=gpt2-263-true.json run.dir=on $key=2 $full
nearly gpt2-263-true on 1e-5 1e-4

# DPO and GRPO.
dpo_alone llama-261-true 8
ranks 4 train --quiet dpo.yaml run.dir=shared $key=2 $full
expect 0
nearly dpo shared 1e-5 1e-4
rm -rf base dpo shared
run train --quiet tiny.yaml policy.model_config=llama-261-true.json run.dir=base sft.max_num_steps=120 sft.val_period=0 \
    checkpointing.save_period=1000 policy.train_global_batch_size=64 policy.train_micro_batch_size=64 data.arithmetic.n_examples=5000
expect 0
write_grpo "seed: 6"
run train --quiet grpo.yaml run.dir=one engine.threads=1
expect 0
ranks 4 train --quiet grpo.yaml run.dir=shared $key=2 $full
expect 0
nearly one shared 1e-5 1e-4
as_planned shared

run plan grpo.yaml --ranks 4 $key=2 $full distributed.gathered_copy=false
expect 2 "$key=2 is not supported together with distributed.gathered_copy=false"
ranks 4 train --quiet tiny.yaml policy.model_config=llama-261-true.json run.dir=refused $key=2 distributed.strategy=hybrid distributed.ranks_per_node=2
expect 2 "distributed.strategy=hybrid: 4 processes, of which 2 share the layers, are not several nodes of the same number of them"
[ ! -e refused ] || fail "a refused run leaves a folder"
finish
