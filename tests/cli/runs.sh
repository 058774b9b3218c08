# Every run of a folder: found, kept in an index that may be lost, filtered, tagged.
. "$SOURCE/tests/cli/lib.sh"
export XDG_CACHE_HOME=$PWD/cache
cp -r "$SOURCE/tests/data/runs" all
chmod -R u+w all

run runs all
expect 0
expect_out "tb-hparams" "trackio-manual/manual.db#run-a" "nemo_rl" "trainer_state"
first=$(grep -c . out)
ls cache/temper/all-*.sqlite >/dev/null || fail "no index was kept"

# From the index, the same; a damaged index is made anew; without one, the same.
cp out before
run runs all
expect 0
is "the same from the index" "$(grep -c . out)" "$first"
for f in cache/temper/all-*.sqlite; do printf 'SQLite format 3\0 damaged' >"$f"; done
run runs all
expect 0
is "the same from a damaged index" "$(cut -c 1-60 out)" "$(cut -c 1-60 before)"
run runs all --no-index
expect 0
is "the same without an index" "$(cut -c 1-60 out)" "$(cut -c 1-60 before)"

run runs all --filter 'format:trackio manual' --json
expect 0
expect_out '"path": "trackio-manual/manual.db#run-a"' '"format": "trackio"' '"state": null' '"step": '
is "two of them" "$(grep -c '"id"' out)" 2
run runs all --filter nothing-like-this
expect 0
expect_out "nothing fits the filter"

# A loss that is no number is the last one all the same; a run without a loss has steps.
mkdir odd odd/nan odd/acc
printf '{"step": 1, "loss": 2}\n{"step": 2, "loss": NaN}\n' >odd/nan/metrics.jsonl
printf '{"step": 1, "acc": 2}\n{"step": 2, "acc": 3}\n' >odd/acc/metrics.jsonl
for i in 1 2; do # read, then from the index
    run runs odd --json
    expect 0
    expect_out '"loss": "NaN"' '"loss": null'
    is "both know their step" "$(grep -c '"step": 2' out)" 2
done
run runs odd
expect_out NaN

# What has the same extent is not read again: the index is used.
mkdir kept && printf 'step,loss\n1,4\n' >kept/metrics.csv && touch -d '2024-01-01' kept/metrics.csv
run runs kept --json
expect_out '"loss": 4'
printf 'step,loss\n1,7\n' >kept/metrics.csv && touch -d '2024-01-01' kept/metrics.csv
run runs kept --json
expect_out '"loss": 4'
run runs kept --json --no-index
expect_out '"loss": 7'

# Several tables in a folder are a run each; a data set has no steps.
mkdir tables
printf 'step,loss\n1,4\n' | tee tables/a.csv >tables/b.csv
printf 'text,label\nhello,1\n' >tables/data.csv
run runs tables --json
expect 0
expect_out '"path": "a.csv"' '"path": "b.csv"'
grep -q data.csv out && fail "a data set is no run"
printf '{"step":1,"loss":2}\n' >tables/c.jsonl
run runs tables --json
expect_out '"path": "."' '"path": "a.csv"'

# Traces, results of benchmarks, evaluations and profiles are there too, also those of a run.
mkdir -p mixed/a/trace mixed/bench
printf 'step,loss\n1,4\n' >mixed/a/metrics.csv
cp "$SOURCE/tests/data/traces/kineto_2021.json" mixed/a/trace/steps-1-2.json
cp "$SOURCE/tests/data/bench/google.json" mixed/bench/google.json
printf '{"evaluation_data": []}' >mixed/answers.json
printf '{"schema": 1, "timed_steps": 2, "step_s": [1, 2]}' >mixed/a/profile.json
printf '{"model_type": "llama"}' >mixed/config.json
run runs mixed --json
expect 0
for kind in run trace benchmark evaluation profile; do
    is "$kind" "$(grep -c "\"kind\": \"$kind\"" out)" 1
done
expect_out '"path": "a/trace/steps-1-2.json"' '"format": "google"'
run runs mixed --filter kind:trace
expect 0
expect_out "a/trace/steps-1-2.json" "trace, json"
grep -q metrics.csv out && fail "a run is no trace"
cp "$SOURCE/tests/data/bench/smaller.json" "$SOURCE/tests/data/bench/bencher.json" mixed/bench
cp "$SOURCE/tests/data/traces/memory_timeline.json" mixed/a/trace
printf '{"step": 1, "throughput": 5, "value": 2}\n' >mixed/rows.json
run runs mixed --filter kind:benchmark --json
is "benchmarks" "$(grep -c '"id"' out)" 3
expect_out '"format": "tracker"' '"format": "bencher"'
run runs mixed --filter kind:trace --json
expect_out '"format": "memory_timeline"'
run runs mixed/bench/google.json --tag nightly
expect 0
[ -f mixed/bench/google.json.temper-tags ] || fail "no tags beside the file"
rm -r cache
run runs mixed --filter tag:nightly --json
expect_out '"path": "bench/google.json"' '"nightly"'
rm mixed/bench/google.json && printf '{}' >mixed/answers.json
run runs mixed --json
grep -qE 'google.json|answers.json' out && fail "what is gone is still there"

# Tags lie beside the run: they survive the index.
run runs all/tb-hparams --tag good
expect 0
run runs all/trackio-manual/manual.db#run-a --tag 'seed:1'
expect 0
rm -r cache
run runs all --filter tag:good --json
expect 0
expect_out '"path": "tb-hparams"' '"good"'
run runs all --filter tag:seed:1 --json
expect 0
expect_out 'manual.db#run-a'
run runs all/tb-hparams --untag good
expect 0
run runs all --filter tag:good
expect_out "nothing fits"
run runs all/tb-hparams --tag 'no tag'
expect 2 "is no tag"
head -c 70000 /dev/zero | tr '\0' x >all/tb-hparams/temper-tags
run runs all/tb-hparams --tag good
expect 2 "all/tb-hparams/temper-tags"
is "tags that cannot be read" "$(wc -c <all/tb-hparams/temper-tags)" 70000
rm all/tb-hparams/temper-tags && mkfifo all/tb-hparams/temper-tags
timeout 500 "$TEMPER" runs all/tb-hparams --tag good >out 2>err
is "status of tags in a pipe" $? 2
rm all/tb-hparams/temper-tags
run runs all/nowhere --tag good
expect 2 "nowhere"
run runs --tag good
expect 2 "name the run"

# The file of a folder's run is that run; one of several tables is a run itself.
mkdir tagged && printf 'step,loss\n1,4\n' >tagged/metrics.csv
run runs tagged/metrics.csv --tag good
expect 0
run runs tagged --filter tag:good --json
expect_out '"path": "."'
is "tags of the folder" "$(cat tagged/temper-tags)" good
run runs tables/a.csv --tag good
expect 0
run runs tables --filter tag:good --json
expect_out '"path": "a.csv"'

# What grows is read again; what is gone is forgotten; a link is not followed.
mkdir mine && printf 'step,loss\n1,4\n' >mine/metrics.csv && ln -s ../all mine/link
run runs mine --json
expect 0
expect_out '"loss": 4'
grep -q link out && fail "a link was followed"
printf '2,3\n' >>mine/metrics.csv
run runs mine --json
expect_out '"loss": 3' '"step": 2'
rm mine/metrics.csv
run runs mine
expect_out "no run is here"

# transformers' folder of checkpoints: a new one is seen, and the list knows when.
mkdir -p hf/out/checkpoint-5
printf '{"log_history": [{"loss": 2, "step": 4}]}' >hf/out/checkpoint-5/trainer_state.json
run runs hf --json
expect_out '"step": 4' '"loss": 2'
grep -qE '"updated": (null|0,)' out && fail "the time of the checkpoint is not known"
mkdir hf/out/checkpoint-99
printf '{"log_history": [{"loss": 2, "step": 4}, {"loss": 1, "step": 98}]}' >hf/out/checkpoint-99/trainer_state.json
run runs hf --json
expect_out '"step": 98' '"loss": 1'

# A run that nobody holds any more was killed.
mkdir -p dead && printf '{"v":1,"t":1700000000,"run":"r","attempt":1,"step":1,"axis":"train","m":{"train/loss":2}}\n' >dead/metrics.jsonl
printf '{"state":"running","algorithm":"sft","step":1,"max_steps":9}' >dead/run.json
touch -d '2024-01-01' dead/*
run runs dead --json
expect_out '"state": "killed"' '"max_steps": 9' '"algorithm": "sft"'
: >dead/.lock
(
    flock 9
    "$TEMPER" runs dead --json >held
) 9<dead/.lock
grep -q '"state": "running"' held || fail "a run that is held is running"

run runs nowhere
expect 2 "nowhere"
finish
