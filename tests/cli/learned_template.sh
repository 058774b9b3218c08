# A checkpoint prompts as the run learned: template, variables, whatever the base model said.
. "$SOURCE/tests/cli/lib.sh"
make_model
printf '%s\n' '{"messages":[{"role":"user","content":"2+2?"},{"role":"assistant","content":"4"}]}' \
    '{"messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"dog"}]}' >chat.jsonl
printf '{%% for m in messages %%}[{{ m["role"] }}] {{ m["content"] }}\n{%% endfor %%}' >tmpl.jinja
train() {
    run train -q "$SOURCE/recipes/sft.yaml" policy.model_name=model data.train.data_path=chat.jsonl \
        data.train.split_validation_size=0 policy.max_total_sequence_length=64 policy.train_global_batch_size=2 \
        sft.max_num_steps=1 "$@"
    expect 0
}
prompt() {
    run generate "$1" --chat "2+2?" -m 1 --json
    expect 0
    "$TOOL" get out prompt
}

train run.name=file policy.tokenizer.chat_template=tmpl.jinja
is "prompt with the template learned" "$(prompt runs/file)" "[user] 2+2?"
cmp -s tmpl.jinja runs/file/checkpoints/step-1/model/chat_template.jinja || fail "the template is not that of the run"
is "the copy for others" "$("$TOOL" get runs/file/checkpoints/step-1/model/tokenizer_config.json chat_template)" \
    "$(cat tmpl.jinja)"
is "the rest of tokenizer_config.json" \
    "$("$TOOL" get runs/file/checkpoints/step-1/model/tokenizer_config.json eos_token)" "<|im_end|>"

train run.name=text 'policy.tokenizer.chat_template="<{{ mood }}{{ tags }}>{% for m in messages %}{{ m.content }};{% endfor %}"' \
    'policy.tokenizer.chat_template_kwargs={mood: "calm", tags: [1, null, {a: .nan, b: -.inf}]}'
is "prompt with its variables" "$(prompt runs/text)" "<calm[1, None, {'a': nan, 'b': -inf}]>2+2?;"

train run.name=joined policy.tokenizer.chat_template=null
is "prompt of contents joined" "$(prompt runs/joined)" "2+2?"

train run.name=own
is "prompt of the model's own" "$(prompt runs/own | head -n 1)" "<|im_start|>user"
cmp -s model/tokenizer_config.json runs/own/checkpoints/step-1/model/tokenizer_config.json ||
    fail "nothing was to be changed"

# A template for tools beside the default is kept, with variables as well.
cp -r model two
mkdir two/additional_chat_templates
printf 'D{{ mood }}{{ messages[0].content }}' >two/chat_template.jinja
printf 'T{{ mood }}{{ messages[0].content }}\n' >two/additional_chat_templates/tool_use.jinja
sed 's/}$/, "tools": [{"name": "f"}]}/' chat.jsonl >tools.jsonl
prompt_with_tools() { # of RUN
    run generate "runs/$1" --prompts tools.jsonl -m 1 --json
    expect 0
    head -n 1 out >first
    "$TOOL" get first prompt
}
train run.name=two policy.model_name=two data.train.data_path=tools.jsonl
is "prompt with tools" "$(prompt_with_tools two)" "T2+2?"
is "prompt without" "$(prompt runs/two)" "D2+2?"
grep -q '"model/additional_chat_templates/tool_use.jinja"' runs/two/checkpoints/step-1/manifest.json ||
    fail "the manifest lacks the template for tools"
train run.name=moods policy.model_name=two data.train.data_path=tools.jsonl \
    'policy.tokenizer.chat_template_kwargs={mood: "calm"}'
is "prompt with tools and variables" "$(prompt_with_tools moods)" "Tcalm2+2?"
is "prompt without, with variables" "$(prompt runs/moods)" "Dcalm2+2?"

# A base model without a template has the one that it learned.
cp -r model bare
sed '/"chat_template"/d; s/\("tokenizer_class": "[A-Za-z]*"\),/\1/' model/tokenizer_config.json >bare/tokenizer_config.json
run generate bare --chat "2+2?" -m 1
expect 2 "has no chat template"
train run.name=base policy.model_name=bare policy.tokenizer.chat_template=tmpl.jinja
is "prompt of a base model" "$(prompt runs/base)" "[user] 2+2?"

# Generation settings and licence are the model's, wherever the tokenizer is from.
echo '{"temperature": 0.5}' >model/generation_config.json
echo mine >model/LICENSE
train run.name=parts policy.tokenizer.name=tok
cmp -s model/generation_config.json runs/parts/checkpoints/step-1/model/generation_config.json ||
    fail "generation_config.json is not the model's"
[ -f runs/parts/checkpoints/step-1/model/LICENSE ] || fail "the licence is lost"
finish
