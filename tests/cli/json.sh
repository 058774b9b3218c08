# What every command writes with --json has the shape that its schema in docs/formats/schema says, and
# what nobody knows is null.  COLLECT=FOLDER keeps what was written.
. "$SOURCE/tests/cli/lib.sh"
schemas=$SOURCE/docs/formats/schema

# shape SCHEMA FILE
shape() {
    [ -z "${COLLECT:-}" ] || cp "$2" "$COLLECT/$1-$(date +%s%N).json" # no verdict: a name
    "$TOOL" valid "$schemas/$1.json" "$2" >faults 2>&1 || fail "$last: $(head -n 5 faults)"
    used="$used $1"
}

# says SCHEMA ARGUMENTS...: exit status 0 or 1, a verdict.
says() {
    schema=$1
    shift
    ask "$@"
    [ "$status" -le 1 ] || fail "$last: exit status $status"
    shape "$schema" out
}

# lines SCHEMA FILE: each line by itself.
lines() {
    [ -z "${COLLECT:-}" ] || cp "$2" "$COLLECT/$1-lines-$(date +%s%N).jsonl" # no verdict: a name
    "$TOOL" valid-lines "$schemas/$1.json" "$2" >faults 2>&1 || fail "$2: $(head -n 5 faults)"
    used="$used $1"
}
used=

make_model
write_recipe tiny.yaml
printf '{"prompt": "the dog", "completion": " jumps"}\n%.0s' 1 2 3 4 5 6 >rows.jsonl
printf '{"question": "what is %s", "answer": "#### %s"}\n' one+one 2 two+two 4 >sums.jsonl
cat >eval.yaml <<'END_YAML'
eval: {num_tests_per_prompt: 3, k_value: [1, 2], seed: 7}
generation: {model_name: model, max_new_tokens: 6, temperature: 1.0}
tokenizer: {chat_template: null}
data: {data_path: sums.jsonl}
env: {math: {}}
END_YAML
write_grpo 'num_generations_per_prompt: 2, max_num_steps: 2' 'math: {}'
cp sums.jsonl rows-grpo.jsonl

# commands that only look; at first nothing is known of this machine
says doctor doctor --cached --json
says help help --json
says version version --json
says doctor doctor --seconds 0.1 --json
says doctor doctor tiny.yaml --json
says cache cache --json
says plan plan tiny.yaml --json
says plan plan grpo.yaml data.train.data_path=rows-grpo.jsonl --json
says plan plan tiny.yaml --ranks 4 --network 100Gbit/2us --json
for strategy in ddp shard_optimizer shard_gradients full_shard; do
    says plan plan tiny.yaml --ranks 4 --network 10Gbit/50us distributed.strategy=$strategy distributed.compress=none --json
done
says plan plan tiny.yaml --ranks 4 --network 10Gbit/50us distributed.compress=int8 --json
says plan plan tiny.yaml --ranks 4 --json
echo 'max_steps: 3' >args.yaml
says config-import config import args.yaml --json

# SimGrid is not everywhere
cp "$SOURCE/recipes/platforms/fat-tree.xml" .
ask simulate tiny.yaml --ranks 2 --platform fat-tree.xml --processor 1TFLOP/100GB --json
if [ "$status" = 0 ]; then shape simulate out; else used="$used simulate"; fi

# a run and what it leaves
ask train tiny.yaml --json
expect 0
lines train-event out
shape run runs/tiny/run.json
lines metrics-record runs/tiny/metrics.jsonl
run train grpo.yaml data.train.data_path=rows-grpo.jsonl --json
expect 0
lines train-event out
shape run runs/grpo/run.json
lines metrics-record runs/grpo/metrics.jsonl
run train --quiet tiny.yaml run.name=traced profile.steps=2:4
says doctor doctor runs/tiny --json
says profile profile tiny.yaml --steps 2 --json
says profile-comparison compare runs/profiles/latest runs/profiles/latest --json
says ablate ablate tiny.yaml --lever a:policy.recompute=full/none --rounds 2 --steps 2 --warm-up 1 --pairs 1 --json -q
says tune tune tiny.yaml --budget 2s --steps 1 --warm-up 0 --json -q
says generate generate model --max-new-tokens 3 --json "the dog"
says eval eval eval.yaml --out a.json --json
says eval eval eval.yaml eval.seed=8 --out b.json --json
says eval eval eval.yaml 'eval.k_value=[3]' --json
says eval eval eval.yaml 'eval.perturbations=[order, space, case, digits]' --json
says eval-summary eval summarize a.json --json
says eval-comparison eval compare a.json b.json --json
says eval-summary eval summarize a.json --level 0.9 --json
says eval-comparison eval compare a.json b.json --level 0.999 --json
says eval-comparison compare a.json b.json --json

# runs of anybody
awk 'BEGIN { srand(7); for (i = 0; i < 200; i++) printf "{\"step\": %d, \"train/loss\": %.6f, \"mfu\": %.6f}\n", i,
    1 + 2 * exp(-0.04 * i) + 0.02 * (rand() - 0.5), 0.4 + 0.01 * (rand() - 0.5) }' >a.jsonl
awk 'BEGIN { srand(8); for (i = 0; i < 200; i++) printf "{\"step\": %d, \"train/loss\": %.6f, \"mfu\": %.6f}\n", i,
    1.5 + 2 * exp(-0.04 * i) + 0.02 * (rand() - 0.5), 0.4 + 0.01 * (rand() - 0.5) }' >b.jsonl
says runs runs runs --json
says metrics metrics runs/tiny train/loss --json
says metrics metrics a.jsonl --json
says alarms alarms a.jsonl --json
says alarms alarms b.jsonl --rule 'train/loss above 1 for 3 steps' --json
says analyze analyze a.jsonl --json
says analyze analyze runs/tiny --json
says compare compare a.jsonl b.jsonl --json
says compare compare runs/tiny runs/grpo --json
for i in 1 2 3; do
    sed "s/\"mfu\"/\"tokens_per_sec\": $i, \"mfu\"/" a.jsonl >a-$i.jsonl
    sed "s/\"mfu\"/\"tokens_per_sec\": $i, \"mfu\"/" b.jsonl >b-$i.jsonl
done
says analyze analyze a-1.jsonl a-2.jsonl a-3.jsonl --size 1,2,4 --json
says analyze analyze a.jsonl --dimension training --threshold training=0.99 --json
says compare compare --a 'a-*.jsonl' --b 'b-*.jsonl' --json
says compare compare a.jsonl b.jsonl --align time --json
# every kind of run, damaged ones too
for run in "$SOURCE"/tests/data/runs/*/ "$SOURCE/tests/data/runs/trackio-manual/manual.db#run-a" "$SOURCE/tests/data/runs/trackio-old/old.db#alpha"; do
    for points in native accumulator fast all latest; do
        run metrics "$run" --points $points --json
        [ "$status" != 0 ] || shape metrics out
    done
    run analyze "$run" --json
    [ "$status" -gt 1 ] || shape analyze out
    run alarms "$run" --json
    [ "$status" -gt 1 ] || shape alarms out
    run compare "$run" "$run" --json
    [ "$status" -gt 1 ] || shape compare out
done
says runs runs "$SOURCE/tests/data" --no-index --json
says stats stats a.jsonl train/loss --json
says stats stats a.jsonl train/loss mfu --json
says stats stats a.jsonl train/loss mfu --alpha 0.1 --json
says stats stats a.jsonl train/loss mfu --paired --margin 5% --json
says stats stats a.jsonl --json
printf '1e308\n1.5e308\n' >large # a sum that overflows is "inf"
says stats stats large --json
says stats stats a.jsonl train/loss --trend --json
says stats stats a.jsonl train/loss --trend --at step --alpha 0.01 --json
printf 'a b\n1 1\n1 1\n1 1\n' >same.txt
says stats stats same.txt --paired --json
says stats stats same.txt a --trend --json
printf 'a,b\n-1,2\n,3\n4,\n5,6\n0,3\n' >gaps.csv
says stats stats gaps.csv a b --json
says stats stats gaps.csv a b --paired --json
printf 'score,model\n1,a\n2,a\n1.5,a\n3,b\n4,b\n3.5,b\n2,c\n2.5,c\n2.2,c\n' >scores.csv
says stats stats scores.csv score --by model --json
says stats stats --share 3/10 --json
says stats stats --share 3/10,5/10 --json
says stats stats --effect 0.5 --json
says stats stats --effect 0.5 --n 20 --json
says stats stats --n 20 --power 0.9 --json
says stats stats --effect 0.5 --paired --sides 1 --json

# traces
for view in $views ranks; do
    for file in kineto-rank-0.json nsight.sqlite snapshot.pickle; do
        ask trace "$SOURCE/tests/data/trace_reports/$file" $view --json
        [ "$status" -gt 1 ] || shape trace out
    done
    ask trace runs/traced $view --json
    [ "$status" -gt 1 ] || shape trace out
done
cp "$SOURCE/tests/data/traces/kineto_rocm_rank_6.json" one.json
cp "$SOURCE/tests/data/traces/kineto_2024_april.json" two.json
for file in kineto_rocm_rank_6.json chrome_array.json kineto_mtia.json nsight.sqlite nsight_nccl.sqlite snapshot_p2.pickle memory_timeline.raw.json; do
    says trace trace "$SOURCE/tests/data/traces/$file" --json
done
says trace trace "$SOURCE/tests/data/trace_reports/kineto-rank-0.json" "$SOURCE/tests/data/trace_reports/kineto-rank-1.json" --json
says trace-comparison trace compare one.json one.json --json
says trace-comparison compare one.json one.json --json
says trace-export trace export one.json --chrome -o short.json --json
says trace-stats trace stats one.json two.json --json

# benchmarks
says bench bench kernel/swiglu/f32 --rounds 2 --json --no-history --save temper:old.json
run bench compare old.json old.json --json
shape bench out
says bench bench kernel/rmsnorm/f32 --rounds 2 --json --history h.jsonl
says bench-history bench history --history h.jsonl --json
says bench-list bench --list --json train/llama/f32/128

says config config tiny.yaml --json
"$TOOL" keys out >keys
[ "$(wc -l <keys)" -gt 10 ] || fail "a configuration has only $(wc -l <keys) sections"
while read -r key; do
    grep -q "^## $key$" "$SOURCE/docs/guide/configuration.md" || fail "configuration.md has no section $key"
done <keys

# Whatever takes --json was held against its schema.
"$TEMPER" help --json >help.json
sed -n 's/^    "command": "\(.*\)",$/\1/p; s/^      {"name": "json",.*/--json/p' help.json |
    awk '$0 == "--json" { print command } { command = $0 }' >takers
[ "$(wc -l <takers)" -gt 25 ] || fail "only $(wc -l <takers) commands take --json"
all_asked "nothing that --json writes was held against a schema" <takers

# Every schema has met what it describes.
for file in "$schemas"/*.json; do
    name=$(basename "$file" .json)
    case " $used " in *" $name "*) ;; *) fail "nothing was held against $name.json" ;; esac
    grep -q "schema/$name.json" "$SOURCE/docs/formats/json.md" || fail "docs/formats/json.md does not name $name.json"
done
finish
