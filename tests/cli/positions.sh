# What a model and a tokenizer have no room for: plan, doctor, config and train say the same of it.
. "$SOURCE/tests/cli/lib.sh"
make_model # 128 positions, 280 ids at most
write_recipe tiny.yaml

# Learned positions end with their table.
cat >gpt2.json <<'END'
{"model_type": "gpt2", "vocab_size": 260, "n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 64}
END
for command in plan "doctor --seconds 0.1" train; do
    run $command tiny.yaml policy.model_config=gpt2.json policy.max_total_sequence_length=65
    is "$command above the table" $status 2
    cat out err >said
    grep -q 'policy.max_total_sequence_length is 65, the model has 64 positions, which are learned (gpt2.json: n_positions): set it to at most 64' said ||
        fail "$command does not say what is wrong with 65 positions"
done
run plan tiny.yaml policy.model_config=gpt2.json policy.max_total_sequence_length=64
expect 0

# Rotations are computed for any position: once a warning.
sft="$SOURCE/recipes/sft.yaml policy.model_name=model policy.tokenizer.chat_template=null data.train.data_path=text.jsonl
    data.train.split_validation_size=0 policy.train_global_batch_size=2 policy.train_micro_batch_size=1 sft.max_num_steps=1"
warns() { # LIMIT: so far the model goes
    for command in plan "doctor --seconds 0.1" "train --progress plain"; do
        rm -rf runs
        run $command $sft policy.max_total_sequence_length=$(($1 + 1))
        is "$command beyond $1" $status 0
        cat out err >said
        is "warnings of $command beyond $1" \
            "$(tr '\n' ' ' <said | tr -s ' ' | grep -o "policy.max_total_sequence_length is $(($1 + 1)), the model was made for sequences of up to $1 (model/config.json: max_position_embeddings)" | wc -l)" 1
        rm -rf runs
        run $command $sft policy.max_total_sequence_length=$1
        is "$command up to $1" $status 0
        cat out err | grep -q "the model was made for" && fail "$command warns at $1 already"
    done
}
warns 128
# Of scaled rotations that is how far they go, not where they began.
scaling='"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}'
sed -i "s/\"rope_theta\"/$scaling, &/" model/config.json
grep -q llama3 model/config.json || fail "the model's rotations are not scaled"
warns 128

# An id that the tokenizer has not.
printf '{"question": "the quick", "answer": "1"}\n{"question": "brown fox", "answer": "2"}\n' >rows.jsonl
write_grpo "num_generations_per_prompt: 2, max_num_steps: 1" "exact: {}"
for id in 4711 2.5; do
    for command in plan config "doctor --seconds 0.1" train; do
        run $command grpo.yaml "policy.generation.stop_token_ids=[1,$id]"
        is "$command of id $id" $status 2
        cat out err >said
        grep -q "policy.generation.stop_token_ids: $id is no id of the tokenizer, which has 0 to [0-9]*" said ||
            fail "$command does not say that $id is no id"
    done
done
run plan grpo.yaml 'policy.generation.stop_token_ids=[1,2]'
expect 0
for command in config "doctor --seconds 0.1" eval; do
    run $command generation.model_name=model data.data_path=rows.jsonl 'env.exact={}' generation.vllm_cfg.max_model_len=32 \
        tokenizer.chat_template=null 'generation.stop_token_ids=[4711]'
    is "$command of an evaluation" $status 2
    cat out err >said
    grep -q "generation.stop_token_ids: 4711 is no id of the tokenizer" said || fail "$command does not say that 4711 is no id"
done
finish
