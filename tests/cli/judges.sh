# Judges that do not judge: a run says so, ends, and leaves none of them behind, however it ends.
. "$SOURCE/tests/cli/lib.sh"
make_model
printf '{"question": "the quick", "answer": "1"}\n{"question": "brown fox", "answer": "2"}\n' >rows.jsonl
write_grpo "num_generations_per_prompt: 2, max_num_steps: 12, max_num_epochs: 99" \
    "mine: {type: program, command: [sh, judge.sh], timeout: 600, num_workers: 1}"
echo "checkpointing: {save_period: 1000}" >>grpo.yaml
answers() { # FILE WHAT: a judge that says this to each question
    printf 'while read -r line; do id=$(printf "%%s" "$line" | sed '"'s/.*\"id\":\\([0-9]*\\).*/\\\\1/'"')\n%s\ndone\n' "$2" >"$1"
}

# Never a verdict: said after the first step with the reason, the end after three.
# shellcheck disable=SC2016
answers nan.sh 'echo "{\"id\":$id,\"reward\":NaN}"'
# shellcheck disable=SC2016
answers key.sh 'echo "{\"id\":$id,\"score\":1}"'
never() { # JUDGE REASON
    run train --progress plain grpo.yaml run.name="$1" "env.mine.command=[sh,$1.sh]"
    expect 2 "no answer got a reward in 3 steps in a row (train.max_unrewarded); $2" "step 2 is saved, go on with --resume"
    expect_out "note: step 1: none of 4 answers got a reward, so nothing is learned; $2"
}
never nan "nan: the reward is NaN"
never key 'nonsense: the answer'"'"'s "reward" is missing'
run train --quiet grpo.yaml run.name=patient train.max_unrewarded=100 'env.mine.command=[sh,nan.sh]'
expect 0

# shellcheck disable=SC2016
run eval generation.model_name=model tokenizer.chat_template=null data.data_path=rows.jsonl generation.max_new_tokens=4 \
    'env={mine: {type: program, command: [sh, nan.sh]}}'
expect 2 "none of 2 answers got a verdict; nan: the reward is NaN"

# Some of them: counted on the step's line, in run.json and the metrics; the run goes on.
# shellcheck disable=SC2016
answers some.sh 'if [ $((id % 4)) = 0 ]; then echo "{\"id\":$id,\"score\":1}"; else echo "{\"id\":$id,\"reward\":$((id % 2))}"; fi'
run train --progress plain grpo.yaml run.name=some grpo.max_num_steps=3 'env.mine.command=[sh,some.sh]'
expect 0
expect_out "no reward 1/4"
is "answers without a verdict" "$("$TOOL" get runs/some/run.json result.rewards.nonsense)" 3
is "answers with one" "$("$TOOL" get runs/some/run.json result.rewards.ok)" 9

# It stops judging in the middle: what was learned before is saved.
# shellcheck disable=SC2016
answers stops.sh 'if [ "$id" -lt 8 ]; then echo "{\"id\":$id,\"reward\":$((id % 2))}"; else echo no key >&2; exit 3; fi'
run train --progress plain grpo.yaml run.name=stops 'env.mine.command=[sh,stops.sh]' env.mine.max_failures=5
expect 2 "was lost 5 times in a row without one verdict" "exit status 3; it said: no key; step 2 is saved, go on with --resume"
[ -f runs/stops/checkpoints/step-2/manifest.json ] || fail "step 2 is not saved"
echo 'echo no module >&2; exit 1' >dead.sh
run train --progress plain grpo.yaml run.name=dead 'env.mine.command=[sh,dead.sh]' env.mine.max_failures=5
expect 2 "was lost 5 times in a row" "it said: no module"
expect_out "note: env.mine: the program ended: exit status 1; it said: no module; it is started again, 5 times at most"

# Programs that hang over their first question, fork and ignore what they are told: `gone` waits, two minutes at most, until none is left.
cat >hang.sh <<'END'
trap '' TERM INT HUP
read -r line
(trap '' TERM INT HUP; echo started >>pids.ready; while :; do sleep 1; done) &
echo $! >>pids
echo $$ >>pids
echo started >>pids.ready
while :; do sleep 1; done
END
started() { [ "$(cat pids.ready 2>/dev/null | wc -l)" -ge 2 ]; }
gone() {
    n=0
    for pid in $(cat pids); do
        while kill -0 "$pid" 2>/dev/null && [ $n -lt 2400 ]; do sleep 0.05; n=$((n + 1)); done
        kill -0 "$pid" 2>/dev/null && fail "$1: process $pid lives on" && kill -9 "$pid"
    done
    [ "$(wc -l <pids)" = 2 ] || fail "$1: the program did not start"
    rm -f pids pids.ready
}
hang() { # SIGNALS...: end a run that waits for its judge
    rm -rf runs
    "$TEMPER" train --progress plain grpo.yaml 'env.mine.command=[sh,hang.sh]' >out 2>err </dev/null &
    pid=$!
    wait_until started
    first=$1
    for signal; do
        [ "$signal" = "$first" ] && first= || wait_until 'grep -q "stopping: 1 of its programs" out'
        kill -"$signal" $pid
    done
    wait $pid
    status=$?
    last="train, then $*"
}
hang INT
expect 130 "stopped at step 0; go on with --resume"
expect_out "note: env.mine: stopping: 1 of its programs is over a question and has 2 s to end, then killed"
gone INT
hang TERM
expect 143 "stopped at step 0"
gone TERM
hang INT INT
expect 130
gone "INT INT"
hang KILL
expect 137
gone KILL

# What sees to that is a process too, and may be killed first: then the kernel ends a judge with its run.
cat >alone.sh <<'END'
trap '' TERM INT HUP
read -r line
echo $$ >alone.new && mv alone.new alone.pid
while :; do sleep 1; done
END
rm -rf runs
"$TEMPER" train --quiet grpo.yaml 'env.mine.command=[sh,alone.sh]' >out 2>err </dev/null &
pid=$!
wait_until '[ -s alone.pid ]'
guard=$(grep -ls "TEMPER_CHILD_OF[_]${pid}_" /proc/[0-9]*/cmdline | cut -d / -f 3)
[ -n "$guard" ] && kill -KILL "$guard" || fail "there is no guard"
kill -KILL $pid
wait $pid
judge=$(cat alone.pid) n=0
while kill -0 "$judge" 2>/dev/null && [ $n -lt 2400 ]; do sleep 0.05; n=$((n + 1)); done
kill -0 "$judge" 2>/dev/null && fail "the guard and the run are killed: the judge lives on" && kill -9 "$judge"

# One that leaves its process group and its parent (a daemon) ends with its run as well.
cp hang.sh group.sh
cat >hang.sh <<'END'
read -r line
setsid sh -c 'trap "" TERM INT HUP; (while :; do sleep 1; done) & echo $! >>pids; echo $$ >>pids; echo started >>pids.ready; echo started >>pids.ready; while :; do sleep 1; done' &
exit 0
END
hang INT
gone "setsid, INT"
hang KILL
gone "setsid, KILL"
mv group.sh hang.sh

# The same for an evaluation, and for a command that is measured.
"$TEMPER" eval generation.model_name=model tokenizer.chat_template=null data.data_path=rows.jsonl generation.max_new_tokens=4 \
    'env={mine: {type: program, command: [sh, hang.sh], timeout: 600, num_workers: 1}}' >out 2>err </dev/null &
pid=$!
wait_until started
kill -INT $pid
wait $pid
status=$?
last="eval, then INT"
expect 130 "stopping: 1 of its programs is over a question"
gone "eval, INT"
"$TEMPER" bench "sh hang.sh" --vs true >out 2>err </dev/null &
pid=$!
wait_until started
kill -KILL $pid
wait $pid
gone "bench, KILL"
finish
