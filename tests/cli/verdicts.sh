# The exit status of a verdict, command by command: 1 is worse, missing or below a threshold; better,
# the same and "not shown" are 0, and so is a comparison that could not tell.  Those of bench: bench.sh.
. "$SOURCE/tests/cli/lib.sh"

run help
expect_out "1        something is worse than it may be, or missing"

# verdict COMMAND... -- BEFORE AFTER: worse one way, not the other way, nor against itself.
verdict() {
    words=
    while [ "$1" != -- ]; do
        words="$words $1"
        shift
    done
    # shellcheck disable=SC2086
    run $words "$2" "$3"
    expect 1
    expect_out worse
    # shellcheck disable=SC2086
    run $words "$3" "$2"
    expect 0
    expect_out better
    # shellcheck disable=SC2086
    run $words "$2" "$2"
    expect 0
}

# Runs: a loss that ends 0.5 higher.
make_run() {
    awk -v shift="$2" 'BEGIN {
        srand(7)
        for (i = 0; i < 200; i++)
            printf "{\"step\": %d, \"train/loss\": %.6f}\n", i, 1 + shift + 2 * exp(-0.04 * i) + 0.02 * (rand() - 0.5)
    }' >"$1"
}
make_run low.jsonl 0
make_run high.jsonl 0.5
verdict compare -- low.jsonl high.jsonl
run compare low.jsonl high.jsonl --picture pair.svg
expect 1
grep -q 'train/loss: worse' pair.svg || fail "no picture of two runs"
grep -q 'points are means of 2' pair.svg || fail "how many points became one"
grep -q 'class="band"' pair.svg && fail "one run a side has a band"
for i in 1 2 3; do
    make_run a_$i.jsonl 0.0$i
    make_run b_$i.jsonl 0.5$i
done
run compare --a 'a_?.jsonl' --b 'b_?.jsonl' --picture groups.svg
expect 1
is "bands" "$(grep -c 'class="band"' groups.svg)" 2
grep -q 'A, mean of 3 runs' groups.svg || fail "the sides are not named"
grep -q '95 % interval of the mean over runs, t' groups.svg || fail "which interval it is"
run compare --a 'a_?.jsonl' --b 'b_?.jsonl' --picture groups.svg --metric train/los
expect 2 "train/los"
run compare low.jsonl high.jsonl --picture pair.jpg
expect 2 "a picture's name ends in .svg, .png or .pdf"
run compare low.jsonl high.jsonl --metric train/loss
expect 2 "--metric chooses what --picture draws"
run analyze low.jsonl -d convergence
expect 0
run analyze low.jsonl -d convergence --threshold convergence=2
expect 1

# Traces: eight steps of 500 + N us; all the kernels of the slow one are faster, and that decides nothing.
make_trace() {
    {
        printf '{"traceEvents": ['
        for step in 1 2 3 4 5 6 7 8; do
            at=$((step * 1000))
            printf '{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","pid":9,"tid":1,"ts":%d,"dur":%d},' \
                $step $at $(($2 + (step * $2 / 100) % 7))
            printf '{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":1,"ts":%d,"dur":5,"args":{"correlation":%d}},' \
                $((at + 10)) $step
            printf '{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":%d,"dur":%d,"args":{"device":0,"stream":7,"correlation":%d}}' \
                $((at + 20)) $(($3 + step % 3)) $step
            [ $step = 8 ] || printf ,
        done
        printf ']}\n'
    } >"$1"
}
make_trace fast.json 500 200
make_trace slow.json 600 100
verdict trace compare -- fast.json slow.json
verdict compare -- fast.json slow.json
run trace compare fast.json slow.json --json
expect 1
is "the step" "$("$TOOL" get out totals.0.verdict)" worse
for i in 1 2 3 4; do
    make_trace before_$i.json $((500 + i)) 200
    make_trace after_$i.json $((600 + i)) 200
done
run trace stats before_?.json --vs after_?.json
expect 1
expect_out "step (host), mean: worse"
run trace stats after_?.json --vs before_?.json
expect 0
expect_out "step (host), mean: better"
run trace stats before_?.json
expect 0

# Evaluations: eight questions, all right or half of them.
make_answers() {
    {
        printf '{"evaluation_data": ['
        for i in 1 2 3 4 5 6 7 8; do
            [ $i = 1 ] || printf ,
            printf '{"prompt": "q%d", "response": "a", "reward": %s}' $i "$([ $i -le "$2" ] && echo 1.0 || echo "$3")"
        done
        printf ']}\n'
    } >"$1"
}
make_answers right.json 8 0.0
make_answers wrong.json 0 0.0
make_answers seven.json 7 0.0
verdict eval compare -- right.json wrong.json
verdict compare -- right.json wrong.json
run eval compare right.json wrong.json --json --report report.json
expect 1
is "the verdict" "$("$TOOL" get out paired.verdict)" worse
is "the verdict of the report" "$("$TOOL" get report.json eval.paired.verdict)" worse
run eval compare right.json seven.json
expect 0
expect_out "(mcnemar): not shown"
# No answer is right on either side: rewards tell them apart.
make_answers half.json 0 0.5
verdict eval compare -- half.json wrong.json

# Differences that no double holds are unknown, with a word.
make_answers most.json 0 1.7e308
make_answers least.json 0 -1.7e308
run eval compare most.json least.json
expect_out "mean reward  unknown, differences are more than a number holds"
for words in "eval summarize most.json" "eval summarize least.json" "eval compare most.json least.json"; do
    # shellcheck disable=SC2086
    run $words
    grep -qiE '\binf|[-+]nan\b' out && fail "$last: a sum of rewards overflows"
done

# Profiles: the times of the one that is kept are made up.
write_recipe tiny.yaml
give_ceilings
run profile tiny.yaml --warm-up 1 --steps 8 --record 1 --name before
expect 0
# pretend EXPONENT: the steps of the profile that is kept took 1.1 to 1.3 times ten to that.
pretend() {
    tr -d '\n' <runs/profiles/before/profile.json |
        sed "s/\"step_s\": *\[[^]]*\]/\"step_s\": [1.1e$1,1.2e$1,1.3e$1,1.1e$1,1.2e$1,1.3e$1,1.1e$1,1.2e$1]/" >kept.json
    cp kept.json runs/profiles/before/profile.json
}
pretend -7
run profile tiny.yaml --warm-up 1 --steps 8 --record 1 --against before
expect 1
expect_out '"before"' worse
# Both from what was kept, by folder and by file.
verdict compare -- runs/profiles/before runs/profiles/latest
verdict compare -- kept.json runs/profiles/latest/profile.json
run compare runs/profiles/before runs/profiles/latest --json
expect 1
is "the step of two profiles" "$("$TOOL" get out comparison.step.verdict)" worse
is "the profile" "$("$TOOL" get out profile)" runs/profiles/latest
cp kept.json other.json
run compare other.json low.jsonl
expect 2 "'other.json' is a profile and 'low.jsonl' is a run; two of one kind are compared"
run compare other.json nowhere.json
expect 2 "nowhere.json"
grep -q "different kinds" err && fail "a file that is missing is said to be of another kind"
run compare kept.json other.json --picture p.svg
expect 2 "--picture is for runs alone"
sed 's/"step_s": *\[[^]]*\]/"step_s": [1]/' kept.json >short.json
run compare kept.json short.json
expect 2 "short.json has no times of at least two steps"
sed 's/"operators": *\[/&{"name": "odd", "s": [1, 2]}, /' kept.json >odd.json
run compare kept.json odd.json
expect 2 'odd.json: operator "odd" has 2 times, not 8'
run profile tiny.yaml --warm-up 1 --steps 8 --record 1 --against before --json
expect 1
is "the step" "$("$TOOL" get out comparison.verdict)" worse
pretend 7
run profile tiny.yaml --warm-up 1 --steps 8 --record 1 --against before
expect 0
expect_out better
finish
