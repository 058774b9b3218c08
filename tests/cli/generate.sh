# temper generate: from a model folder, a checkpoint and a run; the same text for the same seed.
. "$SOURCE/tests/cli/lib.sh"
make_model

run generate --max-new-tokens 8 --json model "the quick"
expect 0
greedy=$("$TOOL" get out ids)
[ "$("$TOOL" keys out | tr '\n' ' ')" = "index sample prompt text finish_reason stop_string prompt_ids ids logprobs sampled_logprobs " ] ||
    fail "the members of generate --json changed"
run generate --max-new-tokens 8 --json --threads 1 model "the quick"
is "greedy ids with one thread" "$("$TOOL" get out ids)" "$greedy"
run generate --max-new-tokens 8 --json --temperature 1e-4 model "the quick"
is "ids at almost no temperature" "$("$TOOL" get out ids)" "$greedy"

run generate --max-new-tokens 16 --temperature 1 --seed 7 model "the quick"
expect 0
cp out first
run generate --max-new-tokens 16 --temperature 1 --seed 7 model "the quick"
cmp -s first out || fail "the same seed gave another text"
run generate --max-new-tokens 16 --temperature 1 --seed 8 model "the quick"
cmp -s first out && fail "another seed gave the same text"

if [ -w /dev/full ]; then
    "$TEMPER" generate --max-new-tokens 4 model "the quick" >/dev/full 2>err
    is "exit status with a full disk" $? 4
    grep -q "could not be written: No space left" err || fail "not said why nothing was written"
fi

# Many prompts, several samples: the same text as alone, in the order of the prompts.
run generate --max-new-tokens 12 --temperature 1 --seed 7 --json model "the quick" "lazy dog" "a"
expect 0
is "answers to three prompts" "$(wc -l <out)" 3
sed -n 2p out >second
printf '"the quick"\n{"prompt": "lazy dog"}\n\n{"question": "a", "answer": "b"}\n' >prompts.jsonl
run generate --max-new-tokens 12 --temperature 1 --seed 7 --json --prompts prompts.jsonl --batch 1 --threads 1 model
expect 0
sed -n 2p out >again
cmp -s second again || fail "another batch, number of threads or source gave another text"
run generate --max-new-tokens 12 --temperature 1 -n 3 --json --kv-memory 24K --kv-dtype float32 --prompts prompts.jsonl model
expect 0
is "answers of three samples each" "$(wc -l <out)" 9
is "order of the answers" "$("$TOOL" get out index 2>/dev/null; sed 's/,"prompt".*//' out | tr -d '{}"a-z:' | tr '\n' ' ')" \
    "0,0 0,1 0,2 1,0 1,1 1,2 2,0 2,1 2,2 "
"$TEMPER" generate --max-new-tokens 4 --json --prompts - model <prompts.jsonl >out 2>err || fail "no prompts from standard input"
is "answers to prompts from standard input" "$(wc -l <out)" 3
run generate --max-new-tokens 4 model "the quick" "a"
expect 0
expect_out "==> prompt 1 of 2 <==" "==> prompt 2 of 2 <=="
run generate --max-new-tokens 4 -n 2 --json model "the quick"
expect 0 "at temperature 0 all samples of a prompt are alike"
printf '{"messages": [{"role": "user", "content": "hi"}]}\n' >chat.jsonl
run generate --max-new-tokens 4 --json --prompts chat.jsonl model
expect 0
expect_out "<|im_start|>user" "<|im_start|>assistant"

# Tools reach the template as a list or as JSON in a string, of a text under --chat as well; what a
# row brings for the template and cannot be used is refused.
cp -r model tools
printf '{{ tools[0].name if tools }}:{{ messages[0].content }}' >tools/chat_template.jinja
prompts() { # of ROW OPTIONS...
    echo "$1" >row.jsonl
    shift
    run generate --max-new-tokens 1 --json --prompts row.jsonl "$@" tools
}
for tools in '[{"name": "f"}]' '"[{\"name\": \"f\"}]"'; do
    for row in '"messages": [{"role": "user", "content": "hi"}]' '"prompt": "hi"'; do
        prompts "{$row, \"tools\": $tools}" --chat
        expect 0
        is "prompt of $row with $tools" "$("$TOOL" get out prompt)" "f:hi"
    done
done
prompts '{"prompt": "hi", "tools": "null"}' --chat
expect 0
is "prompt with tools that are null in a string" "$("$TOOL" get out prompt)" ":hi"
printf '{{ tools|tojson }}{{ tools[0].v is string }}{{ messages|tojson }}' >tools/chat_template.jinja
prompts '{"messages": [{"role": "user", "content": "hi", "w": -Infinity}], "tools": [{"v": NaN}]}'
expect 0
is "a row's numbers that JSON lacks" "$("$TOOL" get out prompt)" \
    '[{"v": NaN}]False[{"role": "user", "content": "hi", "w": -Infinity}]'
prompts '{"prompt": "hi", "tools": {"name": "f"}}' --chat
expect 2 'row.jsonl:1:27: "tools" is an object; a list is needed'
prompts '{"messages": [], "tools": "x"}'
expect 2 'row.jsonl:1:27: "tools" is a string without JSON'
prompts '{"messages": [], "chat_template_kwargs": {"a": 1}}'
expect 2 'row.jsonl:1:42: "chat_template_kwargs": variables of a single row are not supported; remove it'

# Stop strings end a text and are not part of it.
run generate --max-new-tokens 40 --temperature 1 --json model "the quick"
text=$("$TOOL" get out text)
stop=$(printf '%s' "$text" | LC_ALL=C tr -cd 'a-zA-Z' | cut -c3)
run generate --max-new-tokens 40 --temperature 1 --stop nothing --stop "$stop" --json model "the quick"
expect 0
is "finish reason at a stop string" "$("$TOOL" get out finish_reason)" stop
is "the stop string" "$("$TOOL" get out stop_string)" "$stop"
case $("$TOOL" get out text) in *"$stop"*) fail "the stop string is part of the text" ;; esac

# The folder's rules may leave no id: the weights are not to blame.
cp -r model ruled
printf '{"no_repeat_ngram_size": 1, "suppress_tokens": [%s,%s]}' "$(seq -s, 0 99)" "$(seq -s, 102 300)" >ruled/generation_config.json
run generate --max-new-tokens 8 --json ruled "the quick"
expect 2 "1 of 1 answers ended because the rules of 'ruled/generation_config.json' leave no id to draw; --ignore-generation-config"
is "finish reason without an id" "$("$TOOL" get out finish_reason)" ruled_out
echo hello | "$TEMPER" chat ruled >out 2>err
status=$?
expect 2 "the rules of 'ruled/generation_config.json' leave no id to draw"
run generate --max-new-tokens 8 --ignore-generation-config ruled "the quick"
expect 0

# What cannot be done is refused, but where the file is ignored.
cp -r model beams
echo '{"num_beams": 4}' >beams/generation_config.json
run generate --max-new-tokens 8 beams "the quick"
expect 2 "beams/generation_config.json" "num_beams"
run generate --max-new-tokens 8 --ignore-generation-config beams "the quick"
expect 0
echo hello | "$TEMPER" chat beams >out 2>err
status=$?
expect 2 "num_beams"
echo hello | "$TEMPER" chat --ignore-generation-config --max-new-tokens 3 beams >out 2>err
status=$?
expect 0

# Its length counts prompt and answer.
cp -r model short
echo '{"max_length": 3}' >short/generation_config.json
run generate short "the" "the quick brown fox"
expect 2 "prompt 2: the prompt has " " tokens, \"max_length\" of 'short/generation_config.json' is 3"
run generate --max-new-tokens 2 short "the" "the quick brown fox"
expect 0

# Beside an adapter it is the base's that counts, and the note says so.
run train --quiet "$SOURCE/recipes/sft.yaml" policy.model_name=short policy.tokenizer.chat_template=null \
    data.train.data_path=text.jsonl data.train.split_validation_size=0 policy.max_total_sequence_length=32 \
    policy.peft.enabled=true policy.peft.dim=4 run.dir=adapted
expect 0
mv adapted/checkpoints/step-*/model adapter
echo '{"max_new_tokens": 2}' >short/generation_config.json
echo '{"max_new_tokens": 5, "suppress_tokens": [1]}' >adapter/generation_config.json
run generate --ignore-eos --json adapter "the"
expect 0 "/short/generation_config.json: max_new_tokens 2"
is "the length of an adapter's answer" "$("$TOOL" get out ids | tr -cd , | wc -c)" 1

# Pictures and sounds are not left out in silence, beside a text neither.
for key in prompt text question; do
    echo "{\"$key\": \"the\", \"image\": \"u.png\"}" >pictured.jsonl
    run generate --prompts pictured.jsonl model
    expect 2 'pictured.jsonl:1:' '"image" has something in it'
done
echo '{"prompt": "the", "image": {"bytes": null, "path": null}, "images": [null]}' >pictured.jsonl
run generate --max-new-tokens 1 --prompts pictured.jsonl model
expect 0

# What is wrong with prompts is said with their place.
printf '"fine"\n{"word": "hm"}\n' >bad.jsonl
run generate --prompts bad.jsonl model
expect 2 "bad.jsonl:2: expected a string, or an object with messages"
printf '"fine"\nxx\n' >worse.jsonl
run generate --prompts worse.jsonl model
expect 2 "worse.jsonl:2:1: unknown word"
run generate --prompts bad.jsonl --prompt-key word model
expect 2 "bad.jsonl:1: 'word' is neither"
printf '"fine"\n{"prompt": \n' >bad.jsonl
run generate --prompts bad.jsonl model
expect 2 "bad.jsonl:2:"
: >empty.jsonl
run generate --prompts empty.jsonl model
expect 2 "empty.jsonl holds no prompts"
run generate --max-length 6 model a "the quick brown fox jumps over the lazy dog"
expect 2 "prompt 2: the prompt has"
run generate --kv-memory much model a
expect 2 "--kv-memory is a size"
run generate --kv-memory 1K model a
expect 2 "does not hold one block"
run generate --stop "" model a
expect 2 "--stop takes a text that is not empty"
run generate --max-new-tokens 100 --kv-memory 12K --kv-dtype float32 model "the quick brown fox jumps over the lazy dog the quick brown fox"
expect 0 "were cut short" "raise --kv-memory"

echo "the quick" | "$TEMPER" generate --max-new-tokens 4 model >out 2>err || fail "no text from standard input"
run generate model ""
expect 2 "the prompt is empty"
run generate --max-length 4 model "the quick brown fox jumps over the lazy dog"
expect 2 "the prompt has"
run generate --max-new-tokens 4 --chat model hello
expect 0

write_recipe tiny.yaml
run train --quiet tiny.yaml
expect 0
run generate --max-new-tokens 4 runs/tiny 1+2=
expect 0
cp out from-run
run generate --max-new-tokens 4 runs/tiny/checkpoints/step-6 1+2=
expect 0
cmp -s from-run out || fail "run and checkpoint give different texts"
run generate --chat runs/tiny hello
expect 2 "has no chat template"
finish
