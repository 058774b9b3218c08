# A base in 8 or 4 bits under generate, chat, eval and merge, with an adapter and without: the same as the base of floats that these bits
# stand for.
. "$SOURCE/tests/cli/lib.sh"
make_model
cat >gpt2.json <<'END'
{"model_type": "gpt2", "vocab_size": 280, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 128, "initializer_range": 0.05}
END
run train --quiet "$SOURCE/recipes/sft.yaml" policy.init=random policy.model_name=null policy.model_config=gpt2.json \
    policy.tokenizer.name=model policy.tokenizer.chat_template=null data.train.data_path=text.jsonl \
    data.train.split_validation_size=0 policy.max_total_sequence_length=32 run.dir=seed
expect 0
mv seed/checkpoints/step-1/model gpt2
rm -rf seed
printf '{"messages": [{"role": "user", "content": "%s"}]}\n' hello "the quick brown" "two and two" >chats.jsonl
printf '"%s"\n' "the quick" "the lazy" "user and" >texts.jsonl

# adapt MODEL RUN LEARNING_RATE [KEY=VALUE...]: an adapter; with a rate of 0 it changes nothing.
adapt() {
    from=$1 to=$2 rate=$3
    shift 3
    run train --quiet "$SOURCE/recipes/sft.yaml" policy.model_name="$from" policy.tokenizer.chat_template=null \
        data.train.data_path=text.jsonl data.train.split_validation_size=0 policy.max_total_sequence_length=32 \
        policy.train_global_batch_size=2 sft.max_num_epochs=4 policy.optimizer.kwargs.lr="$rate" policy.scheduler=null \
        policy.peft.enabled=true policy.peft.dim=4 policy.peft.alpha=16 policy.precision=float32 run.dir="$to" "$@"
    expect 0
}
# answers MODEL PRECISION [FLAG...]: ids and log-probabilities of all prompts.
answers() {
    of=$1 in=$2
    shift 2
    run generate --max-new-tokens 8 --precision "$in" --json --prompts texts.jsonl "$@" "$of"
    expect 0
    cp out answers
}

# Without an adapter: bit for bit the model of the numbers that the bits stand for.
for model in model gpt2; do
    adapt $model none-$model 0
    run merge none-$model same-$model --dtype float32
    expect 0
    for precision in float32 bfloat16; do
        answers $model $precision
        cp answers plain-$precision
        answers same-$model $precision
        cmp -s answers plain-$precision || fail "an adapter that learned nothing changes $model"
    done
    for base in int8 nf4; do
        run merge none-$model $base-$model --dtype float32 --base $base
        expect 0
        for precision in float32 bfloat16; do
            answers $base-$model $precision
            cp answers wanted
            answers $model $precision --base $base
            cmp -s answers wanted || fail "$model in $base and $precision: other answers than those of its floats"
            cmp -s answers plain-$precision && fail "--base $base changes nothing of $model"
            answers none-$model $precision --base $base
            # With an adapter GPT-2's GELU is not fused with its product, which rounds once more in bf16.
            [ "$model $precision" = "gpt2 bfloat16" ] || cmp -s answers wanted ||
                fail "$model in $base and $precision with an adapter that learned nothing"
        done
    done
done

# With one: as merged with that base, as far as one rounding to float32 goes.
# nearly WHAT A B: the same ids, log-probabilities within 1e-5
nearly() {
    for file in "$2" "$3"; do
        sed 's/.*"ids":\(\[[^]]*\]\),"logprobs":\(\[[^]]*\]\).*/\1 \2/' "$file" >"$file.numbers"
    done
    awk '{ print $1 }' "$2.numbers" >one
    awk '{ print $1 }' "$3.numbers" >two
    cmp -s one two || fail "$1: other ids"
    awk '{ print $2 }' "$2.numbers" | tr -d '[]' | tr ',' '\n' >one
    awk '{ print $2 }' "$3.numbers" | tr -d '[]' | tr ',' '\n' >two
    paste one two | awk '{ d = $1 - $2; if (d > 1e-5 || d < -1e-5) exit 1 }' || fail "$1: log-probabilities differ by more than 1e-5"
}
for base in int8 nf4; do
    for kind in lora dora; do
        dora=$([ $kind = dora ] && echo true || echo false)
        adapt model $kind-$base 0.02 policy.peft.base=$base policy.peft.use_dora=$dora
        run merge $kind-$base merged-$kind-$base --dtype float32 --base $base
        expect 0
        answers merged-$kind-$base float32
        cp answers wanted
        answers $kind-$base float32 --base $base
        nearly "$kind over $base" answers wanted
        answers $kind-$base float32
        cmp -s answers wanted && fail "$kind over $base: the base is not in $base"
    done
done

# chat and eval
for base in int8 nf4; do
    printf 'hello\nagain\n' | "$TEMPER" chat --max-new-tokens 6 --temperature 0 --base $base model >talk 2>err || fail "chat --base $base"
    printf 'hello\nagain\n' | "$TEMPER" chat --max-new-tokens 6 --temperature 0 $base-model >wanted 2>err || fail "chat"
    cmp -s talk wanted || fail "chat over $base: other answers than those of its floats"
    printf '{"question": "what is %s", "answer": "#### %s"}\n' one+one 2 two+two 4 >sums.jsonl
    for model in model $base-model; do
        bits=$([ $model = model ] && echo $base || echo auto)
        run eval generation.model_name=$model generation.base="$bits" data.data_path=sums.jsonl generation.max_new_tokens=6 \
            tokenizer.chat_template=null generation.vllm_cfg.max_model_len=64 env.math.num_workers=1 --out $model.json
        expect 0
        for i in 0 1; do "$TOOL" get $model.json prompts.$i.samples.0.text; done >texts-$model
    done
    cmp -s texts-model texts-$base-model || fail "eval over $base: other answers than those of its floats"
done

# A GGUF file is kept in few bits as well.
run export model f32.gguf --type F32
expect 0
answers model float32 --base nf4
cp answers wanted
answers f32.gguf float32 --base nf4
cmp -s answers wanted || fail "a GGUF file in nf4 is another model than its folder"

# What cannot be is said by name.
run generate --base int4 model x
expect 2 "int4" "int8"
run merge --base nf4 model nothing
expect 2 "'model' is no adapter"
run eval generation.model_name=model generation.base=int4 data.data_path=sums.jsonl
expect 2 "generation.base" "int8"
finish
