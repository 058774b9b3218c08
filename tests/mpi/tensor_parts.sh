# Processes that share the layers, each with its part of gradients (ZeRO 2): the losses and weights of one, less memory, checkpoints that
# any number goes on with; and gradients in fewer bits.
. "$SOURCE/tests/cli/lib.sh"
. "$MPI_LIB"
write_recipe tiny.yaml
sed -i 's/lr: 1.0e-2/lr: 1.0e-3/' tiny.yaml
cat >llama.json <<'END'
{"model_type": "llama", "vocab_size": 261, "hidden_size": 32, "intermediate_size": 60, "num_hidden_layers": 2,
 "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 8, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
 "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": true, "initializer_range": 0.05}
END
cat >gpt2.json <<'END'
{"model_type": "gpt2", "vocab_size": 263, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
 "activation_function": "gelu_new", "initializer_range": 0.05}
END
# Several micro-batches in a step for every process; a staging buffer that is small beside the model.
words="sft.max_num_steps=30 sft.val_period=15 checkpointing.save_period=15 policy.precision=float32
       policy.train_micro_batch_size=2 data.arithmetic.digits=2 distributed.bucket_mib=0.01"
key=distributed.tensor_parallel_size
rows=distributed.sequence_parallel=true
adapters="policy.peft.enabled=true policy.peft.dim=4 policy.peft.target_modules=all-linear"
# as_planned RUN
as_planned() {
    is "memory of a rank, $1" "$("$TOOL" get "$1/run.json" memory.measured_peak_bytes)" \
        "$("$TOOL" get "$1/run.json" memory.planned_peak_bytes)"
}
# less RUN OTHER: the first takes less memory.
less() {
    [ "$("$TOOL" get "$1/run.json" memory.measured_peak_bytes)" -lt "$("$TOOL" get "$2/run.json" memory.measured_peak_bytes)" ] ||
        fail "$1 takes no less memory than $2"
}
# sft RANKS WORDS...: those of the recipe go before.
sft() {
    n=$1
    shift
    # shellcheck disable=SC2086
    ranks "$n" train --quiet tiny.yaml $words "$@"
    expect 0
}

for family in llama gpt2; do
    # shellcheck disable=SC2086
    run train --quiet tiny.yaml $words policy.model_config=$family.json run.dir=$family engine.threads=1
    expect 0
    for strategy in shard_optimizer shard_gradients; do
        sft 4 policy.model_config=$family.json run.dir=$family-$strategy $key=2 distributed.strategy=$strategy
        nearly $family $family-$strategy 1e-5 1e-4
        as_planned $family-$strategy
    done
    less $family-shard_gradients $family-shard_optimizer
done
# Parts that are not as long as one another; rows shared as well.
for way in "6 $key=2" "4 $key=2 $rows" "2 $key=2"; do
    # shellcheck disable=SC2086
    sft ${way%% *} policy.model_config=llama.json run.dir=other ${way#* } distributed.strategy=shard_gradients
    nearly llama other 1e-5 1e-4
    as_planned other
    rm -rf other
done
# When what is sent begins changes no bit.
sft 4 policy.model_config=llama.json run.dir=other $key=2 distributed.strategy=shard_gradients 'engine.disable_passes=[overlap]'
nearly llama-shard_gradients other 0 0
rm -rf other
# Nor, with one micro-batch in a step, who keeps what.
sed 's/optimizer: .*/optimizer: {name: torch.optim.SGD, kwargs: {lr: 1.0e-2, momentum: 0.9}}/' tiny.yaml >sgd.yaml
for more in "tiny.yaml $adapters" "tiny.yaml policy.precision=bfloat16" sgd.yaml; do
    for strategy in ddp shard_gradients; do
        # shellcheck disable=SC2086
        ranks 4 train --quiet $more sft.max_num_steps=12 policy.train_micro_batch_size=8 policy.model_config=llama.json run.dir=$strategy \
            $key=2 distributed.strategy=$strategy
        expect 0
        as_planned $strategy
    done
    nearly ddp shard_gradients 0 0
    rm -rf ddp shard_gradients
done

# Stopped, and resumed by others; and by these what others have begun.
sft 4 policy.model_config=llama.json run.dir=stopped sft.max_num_steps=15 $key=2 distributed.strategy=shard_gradients
for way in "6 $key=2 distributed.strategy=shard_gradients" "4 $key=2" "3 distributed.strategy=full_shard" "1 $key=1"; do
    cp -r stopped on
    # shellcheck disable=SC2086
    sft ${way%% *} --resume policy.model_config=llama.json run.dir=on ${way#* }
    nearly llama on 1e-5 1e-4
    rm -rf on
done
sft 3 policy.model_config=llama.json run.dir=on sft.max_num_steps=15 distributed.strategy=full_shard
sft 4 --resume policy.model_config=llama.json run.dir=on $key=2 distributed.strategy=shard_gradients
nearly llama on 1e-5 1e-4

# beside RUN RELATIVE: the loss of its last step, and of its validation, are those of gradients as they are.
beside() {
    for what in loss val_loss; do
        "$TOOL" get plain/run.json result.$what >a
        "$TOOL" get "$1/run.json" result.$what >b
        paste a b | awk -v most="$2" '{d = $1 - $2; exit !((d < 0 ? -d : d) <= most * $1)}' ||
            fail "$1: $what is $(cat b), $(cat a) without compression"
    done
}
# Gradients in fewer bits: what is kept of them goes with the checkpoint, to processes that share the layers alike.
for strategy in ddp shard_gradients; do
    sft 4 policy.model_config=gpt2.json run.dir=plain $key=2 distributed.strategy=$strategy sft.max_num_steps=12 checkpointing.save_period=6
    sft 4 policy.model_config=gpt2.json run.dir=bf16 $key=2 distributed.strategy=$strategy sft.max_num_steps=12 distributed.compress=bf16 \
        checkpointing.save_period=6
    beside bf16 1e-3
    int8="policy.model_config=gpt2.json $key=2 distributed.strategy=$strategy distributed.compress=int8 checkpointing.save_period=6"
    # shellcheck disable=SC2086
    sft 4 $int8 run.dir=int8 sft.max_num_steps=12
    beside int8 1e-2
    as_planned int8
    # shellcheck disable=SC2086
    sft 4 $int8 run.dir=other sft.max_num_steps=12 distributed.bucket_mib=0.004 'engine.disable_passes=[overlap]'
    nearly int8 other 0 0
    # shellcheck disable=SC2086
    sft 4 $int8 run.dir=half sft.max_num_steps=6
    cp -r half alone
    # shellcheck disable=SC2086
    sft 4 --resume $int8 run.dir=half sft.max_num_steps=12
    nearly int8 half 0 0
    # shellcheck disable=SC2086
    sft 2 --resume $int8 run.dir=alone $key=1 sft.max_num_steps=12
    grep -q "what was kept of compressed gradients is dropped: other ranks shared the layers" err || fail "nobody says that it is dropped"
    rm -rf plain bf16 int8 other half alone
done

# DPO and GRPO.
dpo_alone llama 8
ranks 4 train --quiet dpo.yaml run.dir=shared $key=2 distributed.strategy=shard_gradients
expect 0
nearly dpo shared 1e-5 1e-4
rm -rf base dpo shared
run train --quiet tiny.yaml policy.model_config=llama.json run.dir=base sft.max_num_steps=120 sft.val_period=0 \
    checkpointing.save_period=1000 policy.train_global_batch_size=64 policy.train_micro_batch_size=64 data.arithmetic.n_examples=5000
expect 0
write_grpo "seed: 6"
run train --quiet grpo.yaml run.dir=one engine.threads=1
expect 0
ranks 4 train --quiet grpo.yaml run.dir=shared $key=2 distributed.strategy=shard_gradients
expect 0
nearly one shared 1e-5 1e-4
as_planned shared
finish
