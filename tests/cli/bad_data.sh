# Rows that cannot be read: file, line and what is wrong; exit status 2.
. "$SOURCE/tests/cli/lib.sh"
make_model

try() { # FILE [KEY=VALUE...]
    file=$1
    shift
    rm -rf runs
    run train --quiet "$SOURCE/recipes/sft.yaml" policy.model_name=model \
        policy.tokenizer.chat_template=null data.train.data_path="$file" \
        data.train.split_validation_size=0 policy.max_total_sequence_length=32 "$@"
}

try nosuch.jsonl
expect 2 nosuch.jsonl
: >empty.jsonl
try empty.jsonl
expect 2 empty.jsonl
printf '{"text": "fine"}\n{"text": "not \377 utf-8"}\n' >utf8.jsonl
try utf8.jsonl
expect 2 utf8.jsonl:2 UTF-8
printf '{"text": "fine"}\n{"text": \n' >cut.jsonl
try cut.jsonl
expect 2 cut.jsonl:2
printf '[{"text": "fine"}]\n' >array.jsonl
try array.jsonl
expect 2 array.jsonl
printf '{"foo": 1, "bar": 2}\n' >keys.jsonl
try keys.jsonl
expect 2 keys.jsonl:1 '"foo"'
printf '{"prompt": "p", "chosen": "a", "rejected": "b"}\n' >preference.jsonl
try preference.jsonl
expect 2 preference.jsonl:1
printf '{"messages": [{"role": "user", "content": 7}]}\n' >content.jsonl
try content.jsonl
expect 2 content.jsonl:1
printf '\037\213\010\000' >rows.jsonl.gz
try rows.jsonl.gz
expect 2 rows.jsonl.gz compressed

printf 'the quick\nbrown fox\n' >plain.txt
try plain.txt
expect 2 "plain.txt has no line that begins with '{'; one JSON object per line is needed, such as {"
printf 'name,age\nfox,3\n' >table.csv
try table.csv
expect 2 "table.csv begins like a table in CSV; one JSON object per line is needed"
try model/model.safetensors
expect 2 "model/model.safetensors is no text; one JSON object per line is needed"
printf '\n  \n' >blank.jsonl
try blank.jsonl
expect 2 "blank.jsonl is empty; one JSON object per line is needed"
mkdir rows
printf '{"text": "fine"}\n' >rows/train.jsonl
printf '{"text": "fine"}\n' >rows/test.jsonl
try rows
expect 2 "'rows' is a folder; name the file in it whose lines are JSON objects, such as rows/test.jsonl"
# One file of rows is what its folder stands for, whoever trains on it, or asks.
mkdir -p one two
cp rows/train.jsonl one/
try one
expect 0
grep -q '^ *data_path: one/train.jsonl' runs/*/config.yaml || fail "the folder stands for something else"
printf '{"question": "two", "answer": "2"}\n' >two/questions.jsonl
printf '%s\n' 'generation: {model_name: model, max_new_tokens: 2}' 'data: {data_path: two}' 'env: {math: {}}' \
    'tokenizer: {chat_template: null}' >asks.yaml
run eval asks.yaml --json
expect 0
try model
expect 2 "'model' is a folder; name the file in it whose lines are JSON objects"

# The same of what other trainings read.
write_grpo 'num_generations_per_prompt: 2, max_num_steps: 1' 'math: {}'
for file in plain.txt table.csv blank.jsonl rows; do
    run train --quiet grpo.yaml data.train.data_path=$file
    expect 2 "$file" "JSON object"
    run train --quiet "$SOURCE/recipes/dpo.yaml" policy.model_name=model data.train.data_path=$file
    expect 2 "$file" "JSON object"
done
printf '{"messages": [{"role": "user", "content": "the dog"}, {"role": "assistant", "content": "jumps"}]}\n' >talk.jsonl
run train --quiet "$SOURCE/recipes/dpo.yaml" policy.model_name=model data.train.data_path=talk.jsonl
expect 2 'talk.jsonl:1:1: "chosen" is missing from this preference row; rows with one answer are trained on with sft'

# One answer and whether it is good: bad ones are not learned by the way.
printf '{"prompt": "the dog", "completion": " %s", "label": %s}\n' jumps true sings false >kto.jsonl
try kto.jsonl
expect 2 "kto.jsonl:1:1: an answer with a \"label\" of true or false was judged (KTO)"
try kto.jsonl data.train.prompt_key=prompt
expect 0

# Questions without answers, and a judge that compares with them: nothing could be learned.
printf '{"prompt": "%s"}\n' one two three >questions.jsonl
run train grpo.yaml data.train.data_path=questions.jsonl run.name=unanswered
expect 2 "questions.jsonl:1 has no expected answer; name its column with data.train.output_key (evaluations: data.output_key)"
grep -q '^step 1' out && fail "it begins to train on questions without answers"
printf '%s\n' 'generation: {model_name: model}' 'data: {data_path: questions.jsonl}' 'env: {math: {}}' \
    'tokenizer: {chat_template: null}' >asks.yaml
run eval asks.yaml --out asked.json
expect 2 "questions.jsonl:1 has no expected answer"
[ ! -e asked.json ] || fail "it asks questions whose answers nobody can judge"
run doctor --cached grpo.yaml data.train.data_path=questions.jsonl
expect 2
expect_out "judge            FAILED: questions.jsonl:1 has no expected answer"
printf '{"prompt": "four", "answer": "4"}\n' >>questions.jsonl
run train --quiet grpo.yaml data.train.data_path=questions.jsonl run.name=answered
expect 0

# A bad row may be left out when that is asked for.
printf '{"text": "fine"}\n{"text": 3}\n{"text": "too"}\n' >one.jsonl
run train --quiet "$SOURCE/recipes/sft.yaml" policy.model_name=model \
    policy.tokenizer.chat_template=null data.train.data_path=one.jsonl data.skip_bad_rows=1 \
    data.train.split_validation_size=0 policy.max_total_sequence_length=32 run.name=skipping
expect 0
finish
