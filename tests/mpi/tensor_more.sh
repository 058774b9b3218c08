# Processes that share the layers: adapters, and answers of GRPO, which each process makes for itself with whole copies of the weights.
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
words="sft.max_num_steps=30 sft.val_period=15 checkpointing.save_period=15 policy.precision=float32
       policy.train_micro_batch_size=2 data.arithmetic.digits=2 policy.peft.enabled=true policy.peft.dim=4
       policy.peft.target_modules=all-linear"
key=distributed.tensor_parallel_size
# as_planned RUN
as_planned() {
    is "memory of a rank, $1" "$("$TOOL" get "$1/run.json" memory.measured_peak_bytes)" \
        "$("$TOOL" get "$1/run.json" memory.planned_peak_bytes)"
}

# shellcheck disable=SC2086
for family in llama gpt2; do
    run train --quiet tiny.yaml $words policy.model_config=$family.json run.dir=$family engine.threads=1
    expect 0
    for way in 2/2 4/2; do
        ranks ${way%/*} train --quiet tiny.yaml $words policy.model_config=$family.json run.dir=shared $key=${way#*/}
        expect 0
        nearly $family shared 1e-5 1e-4
        as_planned shared
        is "files of the adapter" "$(ls shared/checkpoints/step-30/model)" "$(ls $family/checkpoints/step-30/model)"
        rm -rf shared
    done
    # DoRA: lengths are those of whole rows, of which each process has a piece where inputs are divided.
    run train --quiet tiny.yaml $words policy.model_config=$family.json run.dir=dora policy.peft.use_dora=true engine.threads=1
    expect 0
    for way in "2 $key=2" "4 $key=4" "2 $key=2 distributed.sequence_parallel=true" "4 $key=2 distributed.strategy=full_shard"; do
        ranks ${way%% *} train --quiet tiny.yaml $words policy.model_config=$family.json run.dir=shared policy.peft.use_dora=true ${way#* }
        expect 0
        nearly dora shared 1e-5 1e-4
        as_planned shared
        is "files of DoRA" "$(ls shared/checkpoints/step-30/model)" "$(ls dora/checkpoints/step-30/model)"
        rm -rf shared
    done
    rm -rf dora
done
# shellcheck disable=SC2086
ranks 4 train --quiet tiny.yaml $words policy.model_config=gpt2.json run.dir=on $key=2 sft.max_num_steps=15
expect 0
# shellcheck disable=SC2086
ranks 3 train --quiet --resume tiny.yaml $words policy.model_config=gpt2.json run.dir=on
expect 0
nearly gpt2 on 1e-5 1e-4

# GRPO: the same answers, by the same prompts, with the whole weights of each rollout.
run train --quiet tiny.yaml policy.model_config=llama.json run.dir=base sft.max_num_steps=120 sft.val_period=0 \
    checkpointing.save_period=1000 policy.train_global_batch_size=64 policy.train_micro_batch_size=64 data.arithmetic.n_examples=5000
expect 0
write_grpo "seed: 6"
for more in "" "policy.peft.enabled=true policy.peft.dim=4 policy.peft.target_modules=all-linear"; do
    # shellcheck disable=SC2086
    run train --quiet grpo.yaml run.dir=one engine.threads=1 $more
    expect 0
    for way in "2 $key=2" "4 $key=2" "2 $key=2 distributed.sequence_parallel=true" "4 $key=2 distributed.strategy=shard_optimizer"; do
        # shellcheck disable=SC2086
        ranks ${way%% *} train --quiet grpo.yaml run.dir=shared ${way#* } $more
        expect 0
        nearly one shared 1e-5 1e-4
        as_planned shared
        for step in 1 12; do
            answers=$(grep -o '"answer": *"[^"]*"' one/samples/step-$step.jsonl | sort)
            [ -n "$answers" ] || fail "no answers of step $step"
            is "answers of step $step, $way" "$(grep -o '"answer": *"[^"]*"' shared/samples/step-$step.jsonl | sort)" "$answers"
        done
        rm -rf shared
    done
    rm -rf one
done
# In bf16, where products read copies of their slices and the generator others.
ranks 2 train --quiet grpo.yaml run.dir=shared $key=2 policy.precision=bfloat16
expect 0
as_planned shared
for more in "" "policy.peft.enabled=true policy.peft.dim=4 policy.peft.target_modules=all-linear"; do
    # shellcheck disable=SC2086
    ranks 2 train --quiet tiny.yaml policy.model_config=llama.json run.dir=bf16 policy.precision=bfloat16 $key=2 $more
    expect 0
    as_planned bf16
    rm -rf bf16
done
ranks 2 train --quiet grpo.yaml run.dir=refused $key=2 'engine.disable_passes=[pack-weights]'
expect 2 "engine.disable_passes: without pack-weights"
finish
