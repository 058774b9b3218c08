# Processes that share the layers, each with its part of the optimizer's state (ZeRO 1): the bits of those that all have all of it, less
# memory, and checkpoints that any number goes on with.
. "$SOURCE/tests/cli/lib.sh"
. "$MPI_LIB"
write_recipe tiny.yaml
sed -i 's/lr: 1.0e-2/lr: 1.0e-3/' tiny.yaml
cat >llama.json <<'END'
{"model_type": "llama", "vocab_size": 261, "hidden_size": 32, "intermediate_size": 60, "num_hidden_layers": 2,
 "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 8, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
 "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false, "initializer_range": 0.05}
END
cat >gpt2.json <<'END'
{"model_type": "gpt2", "vocab_size": 263, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
 "activation_function": "gelu_new", "initializer_range": 0.05}
END
words="sft.max_num_steps=30 sft.val_period=15 checkpointing.save_period=15 policy.precision=float32
       policy.train_micro_batch_size=2 data.arithmetic.digits=2"
key=distributed.tensor_parallel_size
sharded=distributed.strategy=shard_optimizer
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

# shellcheck disable=SC2086
for family in llama gpt2; do
    run train --quiet tiny.yaml $words policy.model_config=$family.json run.dir=$family engine.threads=1
    expect 0
    ranks 4 train --quiet tiny.yaml $words policy.model_config=$family.json run.dir=ddp $key=2
    expect 0
    ranks 4 train --quiet tiny.yaml $words policy.model_config=$family.json run.dir=$family-4-2 $key=2 $sharded
    expect 0
    nearly ddp $family-4-2 0 0
    nearly $family $family-4-2 1e-5 1e-4
    as_planned $family-4-2
    less $family-4-2 ddp
    rm -rf ddp
    [ $family = llama ] || continue
    for way in 2-2 4-4 6-2; do
        ranks ${way%-*} train --quiet tiny.yaml $words policy.model_config=$family.json run.dir=$family-$way $key=${way#*-} $sharded
        expect 0
        nearly $family $family-$way 1e-5 1e-4
        as_planned $family-$way
    done
done
# Moments lie whole in the files, where those of one process do: the headers are the same.
for run in llama llama-4-2 llama-6-2; do
    file=$run/checkpoints/step-30/optimizer.safetensors
    head -c $(($(od -An -tu8 -N8 $file) + 8)) $file >$run.header
    grep -q adam_m.model.norm.weight $run.header || fail "no moments in $run"
done
cmp -s llama.header llama-4-2.header || fail "other moments are saved by four"
cmp -s llama.header llama-6-2.header || fail "other moments are saved by six"

# With their rows shared as well, with adapters, in bf16, with another optimizer.
# shellcheck disable=SC2086
ranks 4 train --quiet tiny.yaml $words policy.model_config=llama.json run.dir=rows $key=2 $sharded distributed.sequence_parallel=true
expect 0
nearly llama rows 1e-5 1e-4
as_planned rows
adapters="policy.peft.enabled=true policy.peft.dim=4 policy.peft.target_modules=all-linear"
sed 's/optimizer: .*/optimizer: {name: torch.optim.SGD, kwargs: {lr: 1.0e-2, momentum: 0.9}}/' tiny.yaml >sgd.yaml
for more in "tiny.yaml $adapters" "tiny.yaml policy.precision=bfloat16" sgd.yaml; do
    # shellcheck disable=SC2086
    ranks 4 train --quiet $more $words policy.model_config=llama.json run.dir=ddp $key=2
    expect 0
    # shellcheck disable=SC2086
    ranks 4 train --quiet $more $words policy.model_config=llama.json run.dir=less $key=2 $sharded
    expect 0
    nearly ddp less 0 0
    as_planned less
    rm -rf ddp less
done

# Stopped, and resumed by others; and by these what others have begun.
# shellcheck disable=SC2086
ranks 4 train --quiet tiny.yaml $words policy.model_config=llama.json run.dir=stopped sft.max_num_steps=15 $key=2 $sharded
expect 0
# shellcheck disable=SC2086
for way in "4 $key=2 $sharded" "6 $key=2 $sharded" "4 $key=4" "3 $sharded" "1 $key=1"; do
    cp -r stopped on
    ranks ${way%% *} train --quiet --resume tiny.yaml $words policy.model_config=llama.json run.dir=on ${way#* }
    expect 0
    nearly llama on 1e-5 1e-4
    rm -rf on
done
# shellcheck disable=SC2086
ranks 3 train --quiet tiny.yaml $words policy.model_config=llama.json run.dir=other sft.max_num_steps=15 $sharded
expect 0
# shellcheck disable=SC2086
ranks 4 train --quiet --resume tiny.yaml $words policy.model_config=llama.json run.dir=other $key=2 $sharded
expect 0
nearly llama other 1e-5 1e-4

ranks 2 train --quiet tiny.yaml policy.model_config=llama.json run.dir=refused $sharded 'engine.disable_passes=[shard-update]'
expect 2 "engine.disable_passes: without shard-update gradients would count once for every process"
[ ! -e refused ] || fail "a refused run leaves a folder"
finish
