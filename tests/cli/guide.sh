# The shell blocks of the guide, in order, each page in a folder of its own.
. "$SOURCE/tests/cli/lib.sh"
make_model
mkdir bin
# What a benchmark finds out here and now is not what is tested: 1 and 3 are its verdicts.
cat >bin/temper <<'END'
#!/bin/sh
"$TEMPER" "$@"
status=$?
case "${1:-} $status" in "bench 1" | "bench 3" | "profile 1") exit 0 ;; esac
exit $status
END
chmod +x bin/temper
PATH=$work/bin:$PATH
MODEL=$work/model
export PATH MODEL
"$TEMPER" doctor --seconds 0.2 >/dev/null

for page in "$SOURCE"/docs/guide/*.md; do
    name=$(basename "$page" .md)
    sed -n '/^```sh$/,/^```$/{/^```/!p}' "$page" >"$name.sh"
    [ -s "$name.sh" ] || continue
    mkdir "$name"
    ln -s "$SOURCE/recipes" "$name/recipes"
    ln -s "$SOURCE/tests/data/trace_reports" "$name/traces"
    ln -s "$SOURCE/tests/data/runs" "$name/others"
    cp tiny.json "$name/tiny.json"
    ln -s "$MODEL" "$name/SmolLM2-135M-Instruct"
    (cd "$name" && sh -eu "../$name.sh") >out 2>err || fail "an example of docs/guide/$name.md does not work"
done

# Blocks that are not `sh` take minutes, or files of the reader's: here with a recipe of seconds, little time, and
# files of these names.  What goes on until somebody ends it, and what needs other programs, stays out.
mkdir plain
write_recipe plain/tiny.yaml
cp tiny.json plain/tiny.json
ln -s "$SOURCE/recipes" plain/recipes
mkdir -p plain/examples/configs plain/logs/exp_001
cp "$SOURCE/recipes/demo.yaml" plain/examples/configs/sft.yaml
sed -i '/^optimization/d' plain/examples/configs/sft.yaml
printf '%s\n' 'max_steps: 1' 'max_length: 32' 'per_device_train_batch_size: 2' 'logging_steps: 1' 'bf16: false' >plain/args.yaml
printf '%s\n' "base_model: $MODEL" 'datasets: [{path: rows.jsonl, type: chat_template}]' 'sequence_len: 64' 'micro_batch_size: 2' \
    'max_steps: 2' 'learning_rate: 1.0e-4' 'optimizer: adamw_torch' 'lr_scheduler: constant' 'bf16: false' >plain/axolotl.yaml
for i in 1 2 3 4; do
    echo '{"messages": [{"role": "user", "content": "the dog"}, {"role": "assistant", "content": "jumps"}]}'
done >plain/rows.jsonl
i=0
while [ $i -lt 30 ]; do
    i=$((i + 1))
    echo "{\"step\": $i, \"train/reward\": 0.5}"
done >plain/logs/exp_001/metrics.jsonl
(cd plain && temper train tiny.yaml --quiet run.name=first && temper train tiny.yaml --quiet run.name=second seed=7 &&
    temper bench kernel/rmsnorm --update-baseline --baseline baselines.json --budget 1s) >out 2>err || fail "nothing to show"
for page in from-trl from-axolotl from-nemo-rl benchmarks experiments monitoring serve; do
    awk '/^```/ { inside = !inside; is_run = $0 == "```sh"; next } inside && !is_run && /^temper / { print }' "$SOURCE/docs/guide/$page.md"
done | grep -v -e '--against' -e '^temper serve' -e '^temper watch' -e --follow -e project.db |
    sed "s/ *#.*//; s/ --budget [0-9]*[ms]//; s/ --rounds [0-9]*//; s|recipes/demo.yaml|tiny.yaml|; s|~/experiments|runs|
        s|=DIR|=$MODEL|; s|=FILE|=rows.jsonl|
        s/^temper ablate .*/& --rounds 1 --pairs 0 --steps 2 --warm-up 0/
        s/^temper tune .*/& --budget 4s --steps 2 --warm-up 0/; s/^temper bench .*/& --budget 1s/" >plain.sh
[ "$(wc -l <plain.sh)" -ge 15 ] || fail "there are only $(wc -l <plain.sh) commands"
while read -r line; do
    (cd plain && sh -c "$line") >out 2>err </dev/null
    code=$?
    case $code in 0 | 1) ;; *) fail "$line: exit status $code" ;; esac
done <plain.sh

# README's own, with a folder and a file for DIR and FILE; the stand-in is small and knows few words.
mkdir readme
ln -s "$SOURCE/recipes" readme/recipes
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    echo '{"messages": [{"role": "user", "content": "the dog"}, {"role": "assistant", "content": "jumps"}]}'
done >readme/rows.jsonl
sed -n '/^```sh$/,/^```$/{/^```/!p}' "$SOURCE/README.md" |
    sed "s|=DIR|=$MODEL policy.max_total_sequence_length=64 policy.train_global_batch_size=2|
        s|=FILE|=rows.jsonl|; s| *#.*||" |
    sed 's/^temper \(analyze\|compare\) .*/& || test $? = 1/; s/^temper chat .*/& <\/dev\/null/' >readme.sh
[ "$(grep -c '^temper ' readme.sh)" -ge 7 ] || fail "README has lost its commands"
(cd readme && sh -eu ../readme.sh) >out 2>err || fail "a command of README.md does not work"
finish
