# A whole fine-tuning from a Hugging Face folder, for every kind of row.
. "$SOURCE/tests/cli/lib.sh"
make_model

two() {
    printf '%s\n' "$2" "$2" >"$1.jsonl"
}
two messages '{"messages": [{"role": "user", "content": "the dog"}, {"role": "assistant", "content": "jumps"}]}'
two sharegpt '{"conversations": [{"from": "human", "value": "the dog"}, {"from": "gpt", "value": "jumps"}]}'
two prompt_completion '{"prompt": "the dog", "completion": " jumps"}'
two alpaca '{"instruction": "the dog", "input": "", "output": "jumps"}'
two input_output '{"input": "the dog", "output": " jumps"}'
two question_answer '{"question": "the dog", "answer": "jumps"}'
two text '{"text": "the dog jumps"}'

for kind in messages sharegpt prompt_completion alpaca input_output question_answer text; do
    for template in default null; do
        name=$kind-$template
        run train "$SOURCE/recipes/sft.yaml" policy.model_name=model data.train.data_path="$kind.jsonl" \
            policy.tokenizer.chat_template=$template data.train.split_validation_size=0 \
            policy.max_total_sequence_length=64 sft.max_num_epochs=2 run.name="$name"
        if [ $template = null ] && ! [ $kind = text ] && [ $status = 2 ]; then
            # Conversations need a template or two plain texts.
            grep -q template err || fail "$name: refused without a word about templates"
            continue
        fi
        expect 0
        expect_out "rows       $kind (detected)"
        is "$name: steps" "$("$TOOL" get "runs/$name/run.json" step)" 2
        for file in config.json model.safetensors tokenizer.json; do
            [ -s "runs/$name/checkpoints/step-2/model/$file" ] || fail "$name: no $file"
        done
    done
done

# What was saved is a folder that can be trained on.
run train --quiet "$SOURCE/recipes/sft.yaml" policy.model_name=runs/text-null/checkpoints/step-2/model \
    policy.tokenizer.chat_template=null data.train.data_path=text.jsonl \
    data.train.split_validation_size=0 policy.max_total_sequence_length=64 run.name=again
expect 0

# What was held out is not learned by who resumes, nor the other way round.
seq -f '{"text": "the fox %g"}' 40 >forty.jsonl
held() { # SHARE STEPS [--resume]
    run train --quiet "$SOURCE/recipes/sft.yaml" policy.model_name=model run.dir=held \
        policy.tokenizer.chat_template=null data.train.data_path=forty.jsonl sft.max_num_epochs=9 \
        policy.train_global_batch_size=4 policy.max_total_sequence_length=32 \
        data.train.split_validation_size="$1" sft.max_num_steps="$2" ${3:-}
}
held 0.1 2
expect 0
held 0.5 4 --resume
expect 2 "saved with other data"
held 0.1 4 --resume
expect 0
finish
