# What is given as an input and is no file, folders of traces, files that shrink while they are used,
# and traces of more rows than fit into a few megabytes.
. "$SOURCE/tests/cli/lib.sh"
make_model
write_recipe tiny.yaml
mkfifo fifo
echo '{"traceEvents":[{"ph":"X","ts":1,"dur":1,"pid":1,"tid":1,"name":"a","cat":"kernel"}]}' >t.json

# Nobody writes into the pipe.  Everything that is read as a file refuses it at once.
refuses_fifo() {
    last="temper $*"
    timeout 500 "$TEMPER" "$@" >out 2>err </dev/null
    status=$?
    expect 2 "pipe, a file is expected here"
}
with_fifo() { # FOLDER FILE: a copy of the model whose FILE is a pipe
    rm -rf "$1"
    cp -r model "$1"
    rm -f "$1/$2"
    mkfifo "$1/$2"
}
for file in config.json model.safetensors tokenizer.json; do
    with_fifo piped "$file"
    refuses_fifo generate piped "the quick"
done
refuses_fifo plan fifo
refuses_fifo config fifo
cat >rows.yaml <<'END'
sft: {max_num_steps: 1}
policy: {model_name: model, train_global_batch_size: 2, train_micro_batch_size: 1, max_total_sequence_length: 64}
data: {train: {split_validation_size: 0}}
END
refuses_fifo train rows.yaml run.name=f data.train.data_path=fifo
with_fifo tok3 tokenizer.json
refuses_fifo train tiny.yaml run.name=g policy.tokenizer.train_vocab_size=null policy.tokenizer.name=tok3
refuses_fifo tokenizer tok2 fifo
refuses_fifo bench --name zone --benchmark-compare fifo
refuses_fifo eval summarize fifo
run trace /dev/zero
expect 2 "it is a device, a file is expected here"
run stats /dev/zero
expect 2 "it is a device, a file is expected here"

# What can be read once from front to back is read from pipes, with and without a name.
(cat t.json >fifo &)
run trace fifo kernels --json
expect 0
(printf '1\n2\n3\n' >fifo &)
run stats fifo
expect_out "mean 2,"
gzip -c t.json | "$TEMPER" trace - --json >out 2>err
is "gzip from a pipe" "$("$TOOL" get out events)" 1
is "its name" "$("$TOOL" get out file)" "standard input"
"$TEMPER" trace export - --csv -o - <t.json >out 2>err
is "lines of an export of standard input" "$(wc -l <out)" 2
once_only() { # FILE COMMAND...
    file=$1 last="temper $2 $3 - -"
    shift
    "$TEMPER" "$@" - - <"$file" >out 2>err
    status=$?
    expect 2 "standard input (-) can be read once only"
}
once_only t.json trace compare
once_only t.json trace stats

# A recipe too, and the texts of a tokenizer; what is read several times is refused.
sed 's/max_num_steps: 6/max_num_steps: 2/' tiny.yaml >short.yaml
"$TEMPER" train - <short.yaml >out 2>err
is "a training from standard input" "$? $("$TOOL" get runs/stdin/run.json state)" "0 finished"
"$TEMPER" plan - --json <short.yaml >out 2>err
is "a plan from standard input" "$?" 0
"$TEMPER" config - <short.yaml >out 2>err
expect_out "max_num_steps: 2  # -:1"
echo "sft: {max_num_stepz: 2}" | "$TEMPER" plan - >out 2>err
status=$? last="temper plan -"
expect 2 "-:1: unknown key sft.max_num_stepz"
run train short.yaml run.name=rows data.train.data_path=-
expect 2 "data.train.data_path: there is no '-'; it is read more than once, so standard input will not do: name a file"
printf '%s\n' 'generation: {model_name: model}' 'env: {math: {}}' >asks.yaml
run eval asks.yaml data.data_path=- data.prompt_file=none.txt
expect 2 "data.data_path: there is no '-'; it is read more than once, so standard input will not do: name a file" \
    "data.prompt_file: there is no 'none.txt'"
for command in profile ablate tune; do
    run $command -
    expect 2 "a recipe from standard input (-) can be read once"
done
"$TEMPER" tokenizer --vocab-size 260 from-input - <corpus.txt >out 2>err
is "a tokenizer from standard input" "$? $(ls from-input/tokenizer.json)" "0 from-input/tokenizer.json"

# And whatever else takes a file.
"$TEMPER" doctor --cached - run.name=looked <short.yaml >out 2>err
is "doctor of standard input" $? 0
expect_out "configuration    ok: -"
echo 'max_steps: 3' | "$TEMPER" config import - >out 2>err
is "a recipe of others from standard input" $? 0
expect_out "max_num_steps: 3"
printf '{"prompt": "the quick"}\n' | "$TEMPER" generate model -m 2 --prompts - >out 2>err
is "prompts from standard input" "$? $(wc -l <out)" "0 1"
printf '{"question": "one and two", "answer": "3"}\n' >sums.jsonl
cat >judged.yaml <<'END'
generation: {model_name: model, max_new_tokens: 3}
tokenizer: {chat_template: null}
data: {data_path: sums.jsonl}
env: {math: {}}
END
"$TEMPER" eval - --out judged.json <judged.yaml >out 2>err
is "an evaluation from standard input" "$? $(ls judged.json)" "0 judged.json"
"$TEMPER" eval summarize - <judged.json >out 2>err
is "a summary of standard input" $? 0
expect_out "1 prompt, 1 answer"
"$TEMPER" eval compare - judged.json <judged.json >out 2>err
is "a comparison with standard input" $? 0
expect_out "equal on 1"
once_only judged.json eval compare

# What is written as a folder is none.
for words in "tokenizer - corpus.txt" "merge model -" "ablate short.yaml --out -" \
    "bench kernel/rmsnorm/f32 --rounds 2 --history -"; do
    # shellcheck disable=SC2086
    run $words
    expect 2 "'-'"
    [ ! -e ./- ] || fail "temper $words makes a folder of that name"
done

# The folder of a run is its recipe, and its figures.
run config runs/stdin
expect 0
expect_out "max_num_steps: 2  # runs/stdin/config.yaml:"
run train runs/stdin --resume sft.max_num_steps=3
expect 0
expect_out "step 3/3"
run stats runs/stdin train/loss
expect 0
expect_out "n = 3"
run stats "$SOURCE/tests/data/runs/tb-torch"
expect 0
expect_out "columns of numbers" "step"
run stats "$SOURCE/tests/data/runs/nemo-rl-grpo" train/reward --json
expect 0
is "values of a run of NeMo RL" "$("$TOOL" get out describe.n)" 12
run plan model
expect 2 "'model' is a model, not a recipe"
mkdir nothing
run plan nothing
expect 2 "'nothing' is a folder without a config.yaml"

# Runs of others too: lines of JSON, tables, a trainer's state, with and without a name.
for i in 1 2 3 4 5 6; do
    echo "{\"step\": $i, \"loss\": $((9 - i))}"
done >lines.jsonl
printf 'step,loss\n1,2\n2,1\n' >table.csv
"$TEMPER" metrics - loss --json <lines.jsonl >out 2>err
is "a run from standard input" "$? $("$TOOL" get out loss.5.2)" "0 3"
"$TEMPER" metrics - <table.csv >out 2>err
expect_out "standard input: tables (CSV) of metrics" "loss         2"
printf 'step,loss\n1,1.8e309\n2,-1e999\n' | "$TEMPER" metrics - --json >out 2>err
is "a loss that no double holds" "$("$TOOL" get out loss.0.2) $("$TOOL" get out loss.1.2)" "Infinity -Infinity"
(cat lines.jsonl >fifo &)
run metrics fifo loss --json
expect 0
is "a run from a pipe" "$("$TOOL" get out loss.0.2)" 8
"$TEMPER" alarms - <lines.jsonl >out 2>err
is "alarms of standard input" $? 0
"$TEMPER" analyze - --json <lines.jsonl >out 2>err || [ $? = 1 ] || fail "analyze -"
is "what it judges" "$("$TOOL" get out dimensions.0.name)" training
"$TEMPER" compare - lines.jsonl <lines.jsonl >out 2>err || [ $? = 1 ] || fail "compare -"
expect_out "A: standard input" "B: lines.jsonl"
"$TEMPER" compare - - <lines.jsonl >out 2>err
status=$? last="temper compare - -"
expect 2 "standard input (-) can be read once only"
(cat lines.jsonl; echo '{"step": 7, "loss": }') | "$TEMPER" metrics - >out 2>err
grep -q '/proc' err && fail "a file that nobody knows is named: $(cat err)"
echo hello | "$TEMPER" metrics - >out 2>err
status=$? last="temper metrics - of no run"
expect 2 "'standard input' holds no run that is known"
: >nothing.jsonl
run metrics nothing.jsonl
expect 2 "'nothing.jsonl' is empty: no run wrote anything there yet"
mkdir empty
run analyze empty
expect 2 "'empty' is empty: no run wrote anything there yet"
run metrics - --follow
expect 2 "--follow takes a file or a folder"
run eval summarize empty
expect 2 "'empty' is a folder without metrics.jsonl, which that of a run has; name the file of an evaluation"
run watch -
expect 2 "this takes a file or a folder"
for command in runs serve; do
    run $command -
    expect 2 "'-' is no folder"
done

# Folders stand for the traces in them.
mkdir -p one many
cp t.json one/
cp t.json many/rank0.json
cp t.json many/rank1.json
run trace export one --csv -o -
expect 0
run trace compare one t.json
expect 0
run trace compare one many
expect 2 "the folder 'many' holds 2 traces; name one, as 'many/rank0.json'"
run trace stats many --json
expect 0
is "files of a folder" "$("$TOOL" get out files.1.file)" many/rank1.json
run trace stats many --vs one --json
expect 0
echo '{"a": 1}' >many/config.json
run trace many
expect 0 "'many/config.json' is no trace: left out"
echo '[{"file": "rank0.json", "mode": "FULL"}]' >many/execution_details.json
run trace many
expect 0 "'many/execution_details.json' is no trace: left out"
expect_out "rank0.json" "rank1.json"
run trace many/execution_details.json
expect 2 "'many/execution_details.json' is a list without events"
gzip -c many/execution_details.json >many/packed.json.gz
{
    printf '['
    yes '{"file": "rank0.json", "mode": "FULL"},' | head -n 40000
    printf '{}]'
} >many/large.json
echo '[]' >many/void.json
run trace many
expect 0 "'many/packed.json.gz' is no trace: left out" "'many/large.json' is no trace: left out" \
    "'many/void.json' is no trace: left out"
rm many/packed.json.gz many/large.json many/void.json
run trace many ranks --json
is "file of a rank" "$("$TOOL" get out ranks.1.file)" many/rank1.json

# Eight million rows of a short event: members of gzip behind each other are one stream.
row=',{"ph":"X","ts":1,"dur":1,"pid":1,"tid":1,"name":"a","cat":"kernel"}'
yes "$row" | head -n 100000 | gzip -1 >rows.gz
{
    printf '{"traceEvents":[{"ph":"X","ts":1,"dur":1,"pid":1,"tid":1,"name":"a","cat":"kernel"}' | gzip -1
    for i in $(seq 80); do cat rows.gz; done
    printf ']}' | gzip -1
} >big.json.gz
run trace big.json.gz --json
expect 0
is "rows" "$("$TOOL" get out events)" 8000001

# One name of 1.2 GB: refused at a gigabyte, and no second copy of that is made on the way.
if (ulimit -v 4000000 && exec "$TEMPER" version) >/dev/null 2>&1; then # a sanitizer needs more
    head -c 100000000 /dev/zero | tr '\0' a | gzip -1 >part.gz
    {
        printf '{"traceEvents":[{"ph":"X","ts":1,"dur":1,"pid":1,"tid":1,"name":"' | gzip -1
        for i in 1 2 3 4 5 6 7 8 9 10 11 12; do cat part.gz; done
        printf '"}]}' | gzip -1
    } >long.json.gz
    (ulimit -v 1600000 && exec "$TEMPER" trace long.json.gz) >out 2>err </dev/null
    status=$?
    last="temper trace of one name of 1.2 GB in 1.6 GB"
    expect 2 "'long.json.gz': an element of more than 1 GB at byte 16; is this a trace?"
fi

# A file that is in use becomes shorter: a message with its name, not a death by SIGBUS.
mkfifo progress
sed 's/max_num_steps: 6/max_num_steps: 1000000/' tiny.yaml >long.yaml
"$TEMPER" train long.yaml run.name=shrinks --progress=plain >progress 2>err </dev/null &
trainer=$!
exec 3<progress
while read -r line <&3; do
    case $line in "step 2/"*) break ;; esac
done
for cache in cache/temper/*/*.tokens cache/temper/*.tokens; do
    [ -f "$cache" ] && : >"$cache"
done
cat <&3 >/dev/null
wait $trainer
status=$?
last="temper train, whose token cache is cut"
expect 2 "was made shorter"
grep -q '^temper: .*cache.* was made shorter' err || fail "the message does not name the file"

# Event files and data bases, too: as the same file by name, and two at once.
runs=$SOURCE/tests/data/runs
same_piped() { # FILE RUN
    "$TEMPER" metrics "$runs/$1$2" --json >named 2>err || fail "$1 by name"
    cat "$runs/$1" | "$TEMPER" metrics "/dev/stdin$2" --json >out 2>err || fail "$1 on standard input"
    cmp -s named out || fail "$1 on standard input has other figures"
}
same_piped tb-torch/events.out.tfevents.1763600000.host.0.0 ""
same_piped trackio-manual/manual.db "#run-a"
cat "$runs/trackio-manual/manual.db" | "$TEMPER" metrics - >out 2>err
grep -q "holds 2 runs; name one as '/dev/stdin#run-a'" err || fail "which runs there are: $(cat err)"
mkfifo events-a events-b
cat "$runs/tb-torch/events.out.tfevents.1763600000.host.0.0" >events-a &
cat "$runs/tb-torch/events.out.tfevents.1763600000.host.0.0" >events-b &
run compare events-a events-b
expect 0
for writer in $(jobs -p); do kill "$writer" 2>/dev/null; done
head -c 3000 "$runs/trackio-manual/manual.db" | TMPDIR=$work "$TEMPER" metrics - >out 2>err
is "exit status of half a data base" $? 2
grep -q "standard input" err || fail "half a data base: $(cat err)"
ls "$work" | grep -q temper-run- && fail "a copy was left behind"
finish
