# Rows that cannot be read: file, line and what is wrong; exit status 2.
. "$SOURCE/tests/cli/lib.sh"
make_model

try() {
    rm -rf runs
    run train --quiet "$SOURCE/recipes/sft.yaml" policy.model_name=model \
        policy.tokenizer.chat_template=null data.train.data_path="$1" \
        data.train.split_validation_size=0 policy.max_total_sequence_length=32
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

# A bad row may be left out when that is asked for.
printf '{"text": "fine"}\n{"text": 3}\n{"text": "too"}\n' >one.jsonl
run train --quiet "$SOURCE/recipes/sft.yaml" policy.model_name=model \
    policy.tokenizer.chat_template=null data.train.data_path=one.jsonl data.skip_bad_rows=1 \
    data.train.split_validation_size=0 policy.max_total_sequence_length=32 run.name=skipping
expect 0
finish
