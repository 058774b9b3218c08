# Screens keep to COLUMNS: tables that are wider come in blocks of columns, prose is wrapped.
. "$SOURCE/tests/cli/lib.sh"
export COLUMNS=80
data=$SOURCE/tests/data/trace_reports

# narrow FILE: no line has more than 80 characters, unless it is one word, which stays whole.
narrow() {
    LC_ALL=C.UTF-8 awk 'length($0) > 80 && $0 ~ /[^ ] +[^ ]/ { print length($0) ": " $0 }' "$1" >wide
    [ ! -s wide ] || { cp wide out && fail "$last: wider than 80 columns"; }
}

# fits COMMAND...: it is done, and its output is narrow; messages are wrapped on terminals alone (terminal.sh).
fits() {
    ask "$@"
    expect 0
    narrow out
}
# looks COMMAND...: the same, whatever the verdict is.
looks() {
    ask "$@"
    [ "$status" -le 1 ] || fail "$last: exit status $status"
    narrow out
}

fits trace "$data/kineto-rank-0.json"
for view in $views ranks; do
    fits trace "$data/kineto-rank-0.json" $view
done
fits trace "$data/snapshot.pickle"
fits trace "$data/nsight.sqlite"
# A line of prose that was broken twice, by the text and by the page, leaves a word or two alone.
"$TEMPER" help | awk '/^  temper/ {print $2}' >commands
[ "$(wc -l <commands)" -gt 20 ] || fail "only $(wc -l <commands) commands in the list"
while read -r command; do
    fits help "$command"
    awk 'short && /^[a-z]/ {print} {short = length($0) < 30 && /^[A-Za-z(].*[^.:]$/}' out >ragged
    [ ! -s ragged ] || fail "help $command breaks a sentence before: $(head -1 ragged)"
done <commands

# Everything else that prints tables, with names of sixty characters.
L=aaaaaaaaaa_bbbbbbbbbb_cccccccccc_dddddddddd_eeeeeeeeee_ffff
make_model
write_recipe $L.yaml
give_ceilings
fits train $L.yaml run.name=$L policy.recompute=full profile.steps=2:4
grep -q '(again)' out || fail "no operator is computed again"
grep -q '^step on average .*planned / measured' out || fail "no step on average"
fits train --quiet $L.yaml run.name=b-$L sft.max_num_steps=3
fits profile $L.yaml --warm-up 1 --steps 8 --name $L
for column in operator part launches ms/step "95 % interval" share GFLOP/s GB/s "of limit"; do
    grep -q "$column" out || fail "no column '$column'"
done
looks profile $L.yaml --warm-up 1 --steps 8 --against $L
fits plan $L.yaml
fits plan $L.yaml --ranks 4 --network 100Gbit/2us
for graph in train eval norm update generate reference; do
    ask plan $L.yaml --print $graph
    narrow out
done
cp $L.yaml short.yaml # YAML stays in its lines: they are as long as the names in them
fits config short.yaml
printf 'max_steps: 3\ndataset_text_field: body\n' >args.yaml
looks config import args.yaml --partly
fits chat model
looks ablate $L.yaml --lever a-$L:policy.recompute=full/none --rounds 1 --steps 2 --warm-up 1 --pairs 0
fits tune $L.yaml --budget 2s --steps 1 --warm-up 0
cp "$SOURCE/recipes/platforms/fat-tree.xml" .
ask simulate $L.yaml --ranks 2 --platform fat-tree.xml --processor 1TFLOP/100GB
narrow out
fits doctor --cached
fits doctor --cached $L.yaml run.name=other
fits doctor --cached runs/$L
fits bench --list
fits bench --formats
fits bench kernel/rmsnorm --rounds 5 --verbose --history h.db
looks bench CMD true --vs CMD true --rounds 5
fits bench kernel/rmsnorm/f32 --rounds 5 --save temper:old.json
looks bench compare old.json old.json
fits bench history --history h.db
{
    echo "$L,group,y-$L"
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "$((i * 7 % 13)).$i,g$((i % 3))-$L,$((i * 5 % 11)).3"; done
} >$L.csv
fits stats $L.csv $L
fits stats $L.csv $L y-$L
fits stats $L.csv $L y-$L --paired
fits stats $L.csv $L --by group
fits stats $L.csv $L --trend
fits stats --share 3/10,5/10
fits stats --effect 0.5 --power 0.8
for i in 1 2; do
    awk -v name=$L -v seed=$i 'BEGIN {
        srand(seed)
        for (i = 0; i < 60; i++)
            printf "{\"step\": %d, \"train/%s\": %.6f, \"train/loss\": %.4f, \"mfu\": 0.4}\n", i, name,
                1 + 2 * exp(-0.04 * i) + 0.02 * rand(), 1 + 2 * exp(-0.04 * i) + 0.02 * rand() }' >$i-$L.jsonl
done
fits metrics 1-$L.jsonl
fits metrics 1-$L.jsonl train/$L
fits metrics runs/$L
for runs in "1-$L.jsonl 2-$L.jsonl" "runs/$L runs/b-$L"; do
    for command in compare analyze; do
        # shellcheck disable=SC2086
        looks $command $runs
    done
done
looks alarms runs/$L
looks alarms 1-$L.jsonl --rule "train/$L above 1 for 3 steps"
fits watch --once runs/$L runs/b-$L
fits runs runs
fits cache
fits version
fits generate runs/$L "1+1="
fits tokenizer --vocab-size 260 tok-$L corpus.txt
fits export runs/$L $L.gguf
"$TEMPER" train --quiet "$SOURCE/recipes/sft.yaml" policy.model_name=model policy.tokenizer.chat_template=null policy.peft.enabled=true \
    data.train.data_path=text.jsonl data.train.split_validation_size=0 policy.max_total_sequence_length=32 run.name=l-$L >out 2>err ||
    fail "no adapter"
fits merge runs/l-$L merged-$L
# A server goes on until it is ended.
asked="$asked
 serve "
"$TEMPER" serve --port -1 --no-index >out 2>err </dev/null &
pid=$!
wait_until 'grep -q "a run beside it" err || grep -q "nothing can be served" err'
kill -TERM "$pid" 2>/dev/null
wait "$pid"
narrow out
mkdir $L && mv model $L/m
printf '{"question": "what is %s", "answer": "#### %s"}\n' one+one-$L 2 two+two 4 >$L.q.jsonl
cat >eval.yaml <<END
eval: {num_tests_per_prompt: 2, k_value: [1]}
generation: {model_name: $L/m, max_new_tokens: 3, vllm_cfg: {precision: float32, max_model_len: 128}}
tokenizer: {chat_template: null}
data: {data_path: $L.q.jsonl}
env: {math: {num_workers: 1}}
END
fits eval eval.yaml --out $L.json
fits eval summarize $L.json
fits eval compare $L.json $L.json
for i in 0 1; do
    cp "$data/kineto-rank-$i.json" $i-$L.json
done
fits trace 0-$L.json 1-$L.json
fits trace 0-$L.json 1-$L.json ranks
grep -q "^ *0  0-aaaa.*fff.json  " out || fail "ranks without the names of their files"
fits trace compare 0-$L.json 1-$L.json
fits trace stats 0-$L.json 1-$L.json
fits trace stats 0-$L.json --vs 1-$L.json
fits trace export 0-$L.json --chrome -o short-$L.json
fits trace runs/$L

# Whatever command there is.
"$TEMPER" help --list commands >commands
all_asked "its screens are not looked at" <commands

# A pipe without COLUMNS has no width: prose stays in its lines.
unset COLUMNS
run doctor --cached runs/$L
expect_out "sound, every file has its checksum; the newest is of step 6"
export COLUMNS=80

# Nothing is lost on the way: every column is there, the key in each block.
run trace "$data/kineto-rank-0.json" bandwidth
is "blocks with a key" "$(grep -c '^direction' out)" 2
for column in count bytes total "median size" mean p90 max pageable; do
    grep -q " $column" out || fail "no column '$column'"
done
finish
