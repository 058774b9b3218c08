# Several adapters in one batch: every answer is, bit for bit, what its adapter says alone.
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

# adapt MODEL RUN KEY=VALUE...
adapt() {
    from=$1 to=$2
    shift 2
    run train --quiet "$SOURCE/recipes/sft.yaml" policy.model_name="$from" policy.tokenizer.chat_template=null \
        data.train.data_path=text.jsonl data.train.split_validation_size=0 policy.max_total_sequence_length=32 \
        policy.train_global_batch_size=2 sft.max_num_epochs=4 policy.optimizer.kwargs.lr=0.02 policy.scheduler=null \
        policy.peft.enabled=true policy.precision=float32 run.dir="$to" "$@"
    expect 0
}
for model in model gpt2; do
    narrow=$([ $model = model ] && echo '[q_proj,v_proj]' || echo '[c_attn]')
    adapt $model $model-a policy.peft.dim=4 policy.peft.alpha=16
    adapt $model $model-b policy.peft.dim=8 policy.peft.use_rslora=true policy.peft.use_dora=true seed=7
    adapt $model $model-c policy.peft.dim=2 policy.peft.target_modules="$narrow" seed=9
done

# Seven prompts; who answers each: a letter, or - for the model itself.
i=0
for who in a b - c a - b; do
    i=$((i + 1))
    name=$([ $who = - ] && echo null || echo "\"$who\"")
    echo "{\"prompt\": \"the quick brown $i\", \"adapter\": $name}" >>rows.jsonl
    echo "{\"prompt\": \"the quick brown $i\"}" >>plain.jsonl
    echo $who >>who
done

# together MODEL FLAG...: all of them in one batch, into the file `together`.
together() {
    model=$1
    shift
    run generate --json --prompts rows.jsonl --adapter a=$model-a --adapter b=$model-b --adapter c=$model-c "$@" $model
    expect 0
    cp out together
}
# one_by_one MODEL FLAG...: each prompt's answer where all prompts ask its adapter alone, into `alone`.
one_by_one() {
    model=$1
    shift
    for who in a b c -; do
        run generate --json --prompts plain.jsonl "$@" $([ $who = - ] && echo $model || echo $model-$who)
        expect 0
        cp out alone-$who
    done
    : >alone
    for i in 1 2 3 4 5 6 7; do
        who=$(sed -n ${i}p who)
        sed -n "s/\"sample\":0,/&$([ "$who" = - ] || echo "\"adapter\":\"$who\",")/;${i}p" "alone-$who" >>alone
    done
}
flags="--max-new-tokens 10 --ignore-eos --temperature 0.8 --seed 3"
for kind in "model float32" "model bfloat16" "gpt2 float32" "model float32 nf4" "model bfloat16 int8"; do
    set -- $kind
    base=${3:+--base $3}
    # shellcheck disable=SC2086
    one_by_one $1 $flags --precision $2 $base
    # shellcheck disable=SC2086
    together $1 $flags --precision $2 $base
    cmp -s together alone || fail "$kind: together the answers are others"
    # shellcheck disable=SC2086
    together $1 $flags --precision $2 $base --batch 2 --threads 1
    cmp -s together alone || fail "$kind: two at a time the answers are others"
done
for who in b c -; do
    cmp -s alone-a alone-$who && fail "a and $who say the same: nothing was compared"
done

# Prompts without a name ask --use; in another order the adapters are the same.
run generate --json --max-new-tokens 6 --precision float32 --prompts plain.jsonl model-b
expect 0
cp out wanted
run generate --json --max-new-tokens 6 --precision float32 --prompts plain.jsonl --adapter c=model-c --adapter b=model-b --use b model
expect 0
sed 's/"adapter":"b",//' out >got
cmp -s got wanted || fail "--use b is not b"

# What cannot be is said by name.
run generate --adapter a=model-a --use x model hi
expect 2 "there is no adapter 'x'; there are a"
echo '{"prompt": "hi", "adapter": "x"}' >other.jsonl
run generate --adapter a=model-a --adapter b=model-b --prompts other.jsonl model
expect 2 "other.jsonl:1: there is no adapter 'x'; there are a, b"
run generate --prompts other.jsonl model
expect 2 "other.jsonl:1: there is no adapter 'x': none was given"
echo '{"prompt": "hi", "adapter": 3}' >other.jsonl
run generate --adapter a=model-a --prompts other.jsonl model
expect 2 "other.jsonl:1: 'adapter' is neither a name nor null"
run generate --adapter model-a model hi
expect 2 "--adapter is NAME=FOLDER, not 'model-a'"
run generate --adapter a=model-a --adapter a=model-b model hi
expect 2 "two adapters are called 'a'"
run generate --adapter a=model model hi
expect 2 "adapter 'a': 'model' is no adapter: it has no adapter_config.json"
run generate --adapter a=nowhere model hi
expect 2 "adapter 'a'" "nowhere"
run generate --adapter a=gpt2-a model hi
expect 2 "adapter 'a'" "no module is called"
run generate --adapter b=model-b model-a hi
expect 2 "is an adapter itself: several are put on the base"

# An adapter of another model that has the same shape: used, and said.
cp -r model other
run generate --max-new-tokens 2 --adapter a=model-a other hi
expect 0 "adapter 'a' is one of" "and is put on other"
run generate --max-new-tokens 2 --adapter a=model-a model hi
expect 0
grep -q "is put on" err && fail "an adapter of this model is said to be another's"
finish
