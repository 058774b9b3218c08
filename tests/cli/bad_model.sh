# Damaged model folders: an error that names the file, exit status 2, no crash.
. "$SOURCE/tests/cli/lib.sh"
reference=$SOURCE/tests/data/reference/llama
[ -d "$reference" ] || { echo "tests/data/reference is not there"; exit 77; }

fresh() {
    rm -rf model
    cp -r "$reference" model
    chmod -R u+w model
    printf '{"text": "hello there"}\n' >rows.jsonl
}

# No tokenizer of the folder's own: doctor looks at the weights all the same.
look() {
    run doctor --cached --seconds 0.2 "$SOURCE/recipes/sft.yaml" policy.model_name=model \
        data.train.data_path=rows.jsonl policy.max_total_sequence_length=64
}

fresh
look
grep -q '^weights  *ok: ' out || fail "undamaged weights"

size=$(wc -c <model/model.safetensors)
for bytes in 0 4 8 100 $((size / 2)) $((size - 1)); do
    fresh
    truncate -s "$bytes" model/model.safetensors
    look
    grep -q '^weights  *FAILED: .*model.safetensors' out || fail "weights cut to $bytes bytes"
    expect 2
done

# Any bit of the header: found, or harmless (white space, another name for an unused tensor);
# never a crash.
for bit in 0 7 12 33 60 64 65 90 150 300 700 1111 2222 3333 4444; do
    fresh
    "$TOOL" flip model/model.safetensors "$bit"
    look
    [ "$status" -le 2 ] || fail "bit $bit of model.safetensors: exit status $status"
done

for change in '"hidden_size": 40|"hidden_size": 99999999999' '"num_hidden_layers": 2|"num_hidden_layers": -3' \
    '"vocab_size": 131|"vocab_size": 1e300' '"num_attention_heads": 4|"num_attention_heads": 0' \
    '"head_dim": 10|"head_dim": 2147483648' '"model_type": "llama"|"model_type": "mamba"' \
    '"num_hidden_layers": 2|"num_hidden_layers": "two"'; do
    fresh
    sed -i "s|${change%%|*}|${change#*|}|" model/config.json
    run plan "$SOURCE/recipes/sft.yaml" policy.model_name=model data.train.data_path=rows.jsonl
    expect 2 config.json
done

fresh
echo '{"model_type": ' >model/config.json
run plan "$SOURCE/recipes/sft.yaml" policy.model_name=model data.train.data_path=rows.jsonl
expect 2 config.json

fresh
run generate model hello
expect 2 tokenizer.json
run generate nosuch hello
expect 2 "there is no model 'nosuch'; models are not downloaded"
# Folders that were fetched in part, or in another form.
run generate model hello
expect 2 "model has no tokenizer.json; fetch all files of the model"
: >model/tokenizer.model
run generate model hello
expect 2 "model has its tokenizer in tokenizer.model; convert it: python -c" "T.from_pretrained('model').save_pretrained('model')"
fresh
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n' >model/model.safetensors
look
expect_out "model/model.safetensors is a pointer of git LFS, not the file itself: 'git lfs pull' in its folder fetches it"
rm model/model.safetensors
look
expect_out "model has neither model.safetensors nor model.safetensors.index.json; fetch all files of the model"
fresh
run train --quiet "$SOURCE/recipes/sft.yaml" policy.model_name=model/config.json data.train.data_path=rows.jsonl
expect 2 "policy.model_name is 'model/config.json': name the folder, in which are config.json and tokenizer.json"
fresh
fresh
cp "$SOURCE/tests/data/tokenizers/gpt2.json" model/tokenizer.json
run generate model hello
expect 2 "they do not belong together"
run train --quiet "$SOURCE/recipes/sft.yaml" policy.model_name=model data.train.data_path=rows.jsonl \
    policy.max_total_sequence_length=64
expect 2 "they do not belong together"
finish
