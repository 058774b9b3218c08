# temper bench: suites, commands, baselines, files, history, exit statuses.  What is judged
# here does not depend on the machine: levels are made up or differ many times over.
. "$SOURCE/tests/cli/lib.sh"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY

# ---- which benchmarks ----
run bench --list
expect 0
expect_out "train/llama/f32/512" "grpo/llama/f32/64" "trace/read" "generate/llama/bf16/128" "data/tokenize" "kernel/linear/f32"
run bench train/gpt2 'kernel/*/bf16' --list
expect 0
is "number of matches" "$(wc -l <out)" 6
run bench --list --json train/llama/f32/128
expect 0
is "batch size" "$("$TOOL" get out 0.options.batch_size)" 4
is "sequence length" "$("$TOOL" get out 0.options.sequence_length)" 128
is "steps" "$("$TOOL" get out 0.options.steps)" 10
is "warm-up" "$("$TOOL" get out 0.options.warm_up)" 2
run bench no/such/benchmark
expect 2 "no benchmark matches"
for words in "--list no-such" "--list train/gpt2 no-such" "no-such train/gpt2"; do
    run bench $words
    expect 2 "no benchmark matches 'no-such'; 'temper bench --list' names them"
    [ -s out ] && fail "bench $words: printed a list"
done
run bench --formats
expect 0
expect_out "pytest-benchmark" "hyperfine" "junit" "benchstat"

# ---- usage ----
run bench --tolerance 5
expect 2 "--tolerance is a share such as 5%"
run bench --budget soon
expect 2 "--budget is a time such as"
run bench --rule magic
expect 2 "--rule is interval or point"
run bench --aa --baseline x.json
expect 2 "one thing at a time"
run bench --no-such-flag
expect 2 "there is no option"
run bench --against no-such-version --list
expect 0
run bench data --against no-such-version
expect 2 "--against 'no-such-version'"
run bench 'sleep 1' --vs # no verdict: it is not run
expect 2 "two commands are needed"
run bench --vs=true
expect 2 "two commands are needed"
run bench compare one.json
expect 2 "compare OLD NEW"
run bench compare no-file.json no-file.json
expect 2 "no-file.json"

# What a mode cannot use decides nothing, and is refused.
: >empty.json
for words in "--baseline x.json --update-baseline" --aa "--against v1" "--kind train" "--model llama" "--batch-size 1" \
    "--steps 1" "--cases x.yaml" "--fresh 1" "--width 2%" "--threads 1" "--backend ref" "--precision float32" "--history h"; do
    run bench true --vs true $words
    expect 2 "does nothing where two commands are compared"
    run bench compare empty.json empty.json $words
    expect 2 "does nothing where two files are compared"
done
for words in "--rounds 6" "--budget 1s" "--seed 2" --instructions "--name x" "--timeout 1" --list --keep-disturbed; do
    run bench compare empty.json empty.json $words
    expect 2 "does nothing where two files are compared"
done
run bench kernel/rmsnorm --instructions
expect 2 "--instructions does nothing where benchmarks are measured"
run bench kernel/rmsnorm --aa --width 2%
expect 2 "--width is for measuring alone"
run bench kernel/rmsnorm --kind train
expect 2 "--kind is for a benchmark made of the options"
run bench kernel/rmsnorm --name x
expect 2 "leave out the patterns"

# ---- really measuring ----
run bench kernel/rmsnorm --rounds 6 --json
expect 0
is "schema" "$("$TOOL" get out schema)" temper-bench-1
is "name" "$("$TOOL" get out benchmarks.0.name)" kernel/rmsnorm/f32
is "rounds" "$("$TOOL" get out benchmarks.0.rounds)" 6
is "unit" "$("$TOOL" get out benchmarks.0.metrics.0.unit)" FLOP/s
is "class of memory" "$("$TOOL" get out benchmarks.0.metrics.4.class)" exact
run bench --name mine --model qwen3 --batch-size 2 --sequence-length 16 --steps 1 --warm-up 0 \
    --precision bfloat16 --backend cpu --device cpu --rounds 6 --json
expect 0
is "name" "$("$TOOL" get out benchmarks.0.name)" mine
is "tokens" "$("$TOOL" get out benchmarks.0.metrics.3.samples.0)" 32
run bench generate/llama/f32 --sequence-length 8 --steps 1 --rounds 6 -v
expect 0
expect_out "generate/llama/f32/128@sequence_length=8,steps=1" "peak_memory" "decode" "exact"
run bench grpo/llama/f32 --steps 1 --rounds 6 --json
expect 0
is "GRPO's name" "$("$TOOL" get out benchmarks.0.name)" grpo/llama/f32/64@steps=1
is "GRPO's memory" "$("$TOOL" get out benchmarks.0.metrics.4.class)" exact
# A quota of one processor is one thread, and one processor of the host.
mkdir -p one/proc/self one/sys/fs/cgroup/pod
echo "0::/pod" >one/proc/self/cgroup
echo "VmHWM: 9000 kB" >one/proc/self/status
echo "cpu" >one/sys/fs/cgroup/cgroup.controllers
echo "100000 100000" >one/sys/fs/cgroup/pod/cpu.max
run bench kernel/linear/f32 --steps 1 --threads 1 --rounds 6 --json
expect 0
is "metric" "$("$TOOL" get out benchmarks.0.metrics.4.name)" peak_memory
peak=$("$TOOL" get out benchmarks.0.metrics.4.samples.0)
TEMPER_SYSTEM_ROOT=$work/one run bench kernel/linear/f32 --steps 1 --rounds 6 --json
expect 0
is "memory of one thread" "$("$TOOL" get out benchmarks.0.metrics.4.samples.0)" "$peak"
is "processors of the host" "$("$TOOL" get out host.processors)" 1
run bench --name mine --model no-model --rounds 6
expect 3
expect_out "there is no model 'no-model'"
run bench --name mine --device tpu --rounds 6
expect 3
expect_out "no device 'tpu'"

# ---- the same against itself; a program that is none ----
run bench kernel/rmsnorm --aa --rounds 6 --tolerance 95%
expect_out "A/A" "exit status $status"
run bench kernel/rmsnorm kernel/swiglu --aa --rounds 4 --tolerance 95%
is "notes on rounds" "$(grep -c "4 rounds are too few to ever show a regression among" err)" 1
run bench kernel/rmsnorm --against "$TEMPER" --rounds 6 --tolerance 95% --json
is "how" "$("$TOOL" get out benchmarks.0.metrics.0.comparison.how)" paired
is "order" "$("$TOOL" get out benchmarks.0.order | wc -c)" 7
run bench kernel/rmsnorm --against /bin/false --rounds 6
expect 3
expect_out "FAILED"

# ---- a revision: checked out and built once; what it answers shows that it is used ----
git init -q repo && cd repo || exit 1
cat >temper.sh <<'END'
#!/bin/sh
read -r line
echo '{"error": "revision one answers"}'
END
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(old NONE)
add_custom_target(temper ALL COMMAND ${CMAKE_COMMAND} -E make_directory src/cli
    COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/temper.sh src/cli/temper)
END
chmod +x temper.sh
git add . && git -c user.name=t -c user.email=t@t commit -qm one && git tag v1
echo '# later' >>CMakeLists.txt
git -c user.name=t -c user.email=t@t commit -qam two
for attempt in builds cached; do
    run bench kernel/rmsnorm --against v1 --rounds 6
    expect 3
    expect_out "A  v1 (" "revision one answers"
    grep -q "building v1" err && [ $attempt = cached ] && fail "the revision was built twice"
done
is "worktrees left in the repository" "$(git worktree list | wc -l)" 1
is "what is left in the cache" "$(find "$XDG_CACHE_HOME/temper/bench" -type f | wc -l)" 1
# A relative folder of caches is none: it would be another one for git.
last="bench with a relative XDG_CACHE_HOME"
HOME=$work/home XDG_CACHE_HOME=here "$TEMPER" bench kernel/rmsnorm --against v1 --rounds 6 --no-history >out 2>err </dev/null
status=$?
expect 3
expect_out "revision one answers"
[ -e here ] && fail "a relative XDG_CACHE_HOME is used"
[ -f "$work/home/.cache/temper/bench/$(git rev-parse v1)/temper" ] || fail "the program is not in HOME's cache"
echo 'message(FATAL_ERROR "this one does not configure")' >>CMakeLists.txt
git -c user.name=t -c user.email=t@t commit -qam three
run bench kernel/rmsnorm --against HEAD --rounds 6
expect 3 "cmake failed" "--against 'HEAD' (" "this one does not configure"
is "worktrees after a failure" "$(git worktree list | wc -l)" 1
is "files after a failure" "$(find "$XDG_CACHE_HOME/temper/bench" -type f | wc -l)" 1
echo x >no-program
run bench kernel/rmsnorm --against no-program
expect 2 "neither a program nor a revision" "cannot be executed"
run bench kernel/rmsnorm --against --oneline
expect 2
echo 'not committed' >>temper.sh
run bench kernel/rmsnorm --against v1 --rounds 6
expect 3
expect_out "(changed)" "revision one answers"
git checkout -q temper.sh
run bench kernel/rmsnorm --against v0
expect 2 "neither a program nor a revision"
run bench kernel/rmsnorm --rounds 6 --json
is "commit" "$("$TOOL" get out commit.id)" "$(git rev-parse HEAD)"
cd ..

# ---- two commands: what is judged is memory, which no load changes ----
cat >big.sh <<'END'
x=$(head -c 40000000 /dev/zero | tr '\0' x)
END
run bench CMD true --vs CMD sh big.sh --rounds 6 --tolerance 50%
expect 1
expect_out "A  true" "B  sh big.sh" "peak_memory" "REGRESSION (worse)" "more"
run bench 'sh big.sh' --vs true --rounds 6 --tolerance 50%
expect 0
expect_out "IMPROVED (better)" "less"
run bench --cmd true --vs 'sh big.sh' --rounds 6 --tolerance 10% --json
expect 1
is "sides" "$("$TOOL" get out measured)" "sh big.sh"
is "metric" "$("$TOOL" get out benchmarks.0.metrics.1.comparison.verdict)" REGRESSION
run bench --cmd 'true a' --vs 'true b' --rounds 2 -b 5s
expect 0
run bench true --vs false
expect 3
expect_out "'false' returned 1"
run bench false --vs false --ignore-failure --rounds 8 --tolerance 99%
expect 0
run bench true --vs /no/such/program
expect 3
run bench 'sleep 1000' --vs true --timeout 0.05 # no verdict: it is ended
expect 3
expect_out "--timeout"

# ---- a worker of our own, whose figures are files ----
cat >worker.sh <<'END'
while read -r line; do
    case $line in
    *benchmark*) echo '{"ready": true, "work_unit": "steps", "work": 5, "metrics": [
        {"name": "throughput", "unit": "tokens/s", "direction": "higher", "class": "noisy"},
        {"name": "peak_memory", "unit": "bytes", "direction": "lower", "class": "exact"}]}' | tr -d '\n'
        echo ;;
    *run*) echo "{\"elapsed_ns\": 1000, \"values\": {\"throughput\": $(cat speed), \"peak_memory\": $(cat memory)}}" ;;
    esac
done
END
cat >cases.yaml <<'END'
benchmarks:
  - {name: own/worker, kind: worker, command: sh worker.sh}
  - {name: own/command, kind: command, command: "true"}
END
echo 1000 >speed
echo 1048576 >memory
worker="bench --cases cases.yaml own/worker --rounds 6"
run $worker --list
expect 0
expect_out "cases.yaml:2"
run bench --cases cases.yaml own/command --rounds 6
expect 0
# Started by a program that ignores SIGCHLD, as daemons do: the ends of its own processes are seen all the same.
last="bench with SIGCHLD ignored"
env --ignore-signal=CHLD "$TEMPER" bench --cases cases.yaml own/command --rounds 6 --no-history >out 2>err </dev/null
status=$?
expect 0

run $worker --aa
expect 0
expect_out "A/A" "exit status 0" "PASS"
run $worker --baseline base.json
expect 2 "base.json"
run $worker --baseline base.json --update-baseline
expect 0
expect_out "base.json updated"
is "the key everybody reads" "$("$TOOL" get base.json own/worker.throughput_tokens_per_sec)" 1000
is "memory in MB" "$("$TOOL" get base.json own/worker.peak_memory_mb)" 1
is "tolerance" "$("$TOOL" get base.json own/worker.tolerance)" 0.05
# One that needs no memory of the engine has no level of it.
for _ in first again; do
    run bench trace/read --rounds 5 --no-history --baseline nothing.json --update-baseline
    expect 0
    expect_out "nothing.json updated"
done
is "keys" "$("$TOOL" keys base.json own/worker | head -n 6 | tr '\n' ' ')" \
    "name throughput_tokens_per_sec peak_memory_mb tolerance version timestamp "
run $worker --baseline base.json --strict
expect 1
expect_out "INCONCLUSIVE" "assumed"
for i in 1 2 3; do
    run $worker --baseline base.json --update-baseline
    expect 0
done
run $worker --baseline base.json --strict
expect 0
expect_out "PASS (same)"

# An update accepts what it measured, whatever the verdict, and the level begins anew with it.
cp base.json accepted.json
echo 500 >speed
run $worker --baseline accepted.json --update-baseline --tolerance 10% --save junit:accepted.xml
expect 0
expect_out "REGRESSION (worse)" "exit status 0"
grep -q 'failures="1"' accepted.xml || fail "JUnit has no verdict against the level before"
is "the level" "$("$TOOL" get accepted.json own/worker.throughput_tokens_per_sec)" 500
is "the tolerance that was given" "$("$TOOL" get accepted.json own/worker.tolerance)" 0.1
run $worker --baseline accepted.json
expect 0
echo 1000 >speed

# Sessions that update one file at a time: none loses what the others measured.
{ echo benchmarks:; for i in 1 2 3 4; do echo "  - {name: side/$i, kind: worker, command: sh worker.sh}"; done; } >sides.yaml
pids=
for i in 1 2 3 4; do
    "$TEMPER" bench --cases sides.yaml side/$i --rounds 6 --no-history --update-baseline --baseline sides.json >side$i 2>&1 </dev/null &
    pids="$pids $!"
done
for pid in $pids; do wait $pid || fail "an update beside others failed"; done
is "all sides are there" "$("$TOOL" keys sides.json | sort | tr '\n' ' ')" "side/1 side/2 side/3 side/4 "
echo 940 >speed
run $worker --baseline base.json
expect 1
expect_out "REGRESSION (worse)" "plain rule: regression"
run $worker --baseline base.json --rule point
expect 1
echo 960 >speed
run $worker --baseline base.json --rule point
expect 0
echo 1000 >speed
echo 1101005 >memory # 5 % more than 1 MiB and one byte
run $worker --baseline base.json
expect 1
expect_out "peak_memory"
echo 1048576 >memory

# Two metrics of one name would be one to everything that reads them.
sed 's/"peak_memory", "unit"/"throughput", "unit"/' worker.sh >twice.sh
sed 's/worker.sh/twice.sh/' cases.yaml >twice.yaml
run bench --cases twice.yaml own/worker --rounds 6
expect 3
expect_out "names its metric 'throughput' twice"

# degenerate measurements: never a pass, never a baseline
for bad in '"NaN"' 0 null; do
    echo "$bad" >speed
    run $worker --baseline base.json
    expect 3
    expect_out "FAILED"
    run $worker --baseline base.json --update-baseline
    expect 2 "no baseline from a failed measurement"
done
echo 1000 >speed
run bench --cases cases.yaml own/worker --max-rounds 4 --baseline base.json
expect 3
expect_out "at least 5 are needed"

# degenerate, missing and foreign baselines
for bad in NaN 0 -1; do
    sed "s/\"throughput_tokens_per_sec\": 1000/\"throughput_tokens_per_sec\": $bad/" base.json >bad.json
    run $worker --baseline bad.json
    expect 2 "bad.json:4" "throughput_tokens_per_sec"
done
sed 's/own\/worker/own\/other/' base.json >gone.json
run $worker --baseline gone.json
expect 1
expect_out "NEW (no baseline)"
sed 's/own\/worker/own\/worker\/part/' base.json >gone.json
run $worker --baseline gone.json --allow-missing
expect 0
expect_out "MISSING (not measured)"
run $worker --baseline gone.json
expect 1
sed 's/"host": "....../"host": "ffffff/' base.json >foreign.json
run $worker --baseline foreign.json
expect 1
expect_out "another host"
run $worker --baseline foreign.json --update-baseline
expect 2 "another host"

# ---- files ----
run $worker --save temper:r.json,junit:r.xml,benchstat:r.txt,markdown:r.md --benchmark-json p.json
expect 0
grep -q '<testsuite name="temper bench" tests="1"' r.xml || fail "no JUnit file"
grep -q '^BenchmarkOwn/worker-' r.txt || fail "no benchmark lines"
is "pytest's name" "$("$TOOL" get r.json benchmarks.0.name)" own/worker
is "commit" "$("$TOOL" get r.json commit)" null
# A worker's own time is what files of times have of it.
run $worker --save google:g.json,hyperfine:y.json
expect 0
for file in p.json g.json y.json; do
    run bench compare $file $file
    expect 0
    expect_out "own/worker" "PASS"
done
sed 's/throughput/time/; s/tokens.s/ticks/' worker.sh >ticks.sh
sed 's/worker.sh/ticks.sh/' cases.yaml >ticks.yaml
run bench --cases ticks.yaml own/worker --rounds 6 --save google:ticks.json
expect 0 "own/worker is not in ticks.json: it has no time in seconds"
run bench compare ticks.json ticks.json
expect 2 "ticks.json has no benchmarks"
run $worker --save github-action:r.json
expect 2 "github-action is read, not written"
run $worker --save nonsense:r.json
expect 2 "there is no format 'nonsense'"
golden=$SOURCE/tests/data/bench
run bench compare "$golden/hyperfine.json" "$golden/hyperfine.json"
expect 0
expect_out "PASS" "unpaired"
run bench compare "$golden/bench.json" "$golden/bench.json"
expect 3
run bench compare "google:$golden/google.json" "$golden/google.json"
expect 3
expect_out "FAILED"
run bench compare "$golden/google.json" "$golden/benchmark.json"
expect_out "throughput" "shown, not judged: one value for all rounds"
for i in 1 2 3 4 5; do
    echo "BenchmarkY-8 100 1000 ns/op 0 B/op 0 allocs/op"
done >none.txt
sed 's/0 B.op/64 B\/op/' none.txt >some.txt
run bench compare none.txt none.txt
expect 0
run bench compare none.txt some.txt
expect 1
expect_out "Y-8" "0 B/op -> 64 B/op  more than 0" "0 B/op became 64"
for i in 1 2 3 4 5; do
    for k in a b c d e f g h i j k l m; do echo "Benchmark$k 100 100$i ns/op"; done
done >short.txt
sed 's/ 100/ 900/' short.txt >slow.txt
run bench compare short.txt slow.txt
expect 0
is "notes on rounds" "$(grep -c "13 of 13 comparisons have too few rounds to ever show a regression" err)" 1
grep -v m short.txt >fewer.txt
run bench compare fewer.txt fewer.txt
grep -q "too few rounds" err && fail "12 comparisons of 5 rounds can be shown"
# Among 13 the one that has more comes first, and leaves the others among 12.
{ cat short.txt; for i in 6 7 8 9; do echo "Benchmarkm 100 100$i ns/op"; done; } >mixed.txt
run bench compare mixed.txt mixed.txt
grep -q "too few rounds" err && fail "12 of 13 comparisons can be shown behind the first"
# Words follow what is better: more errors per second are no speed.
for i in 1 2 3 4 5 6; do echo "BenchmarkY 100 10$i errors/s 10$i frames"; done >few.txt
printf 'Unit errors/s better=lower\nUnit frames better=higher\n' >>few.txt
sed 's/ 10\([1-6] [ef]\)/ 20\1/g' few.txt >many.txt
run bench compare few.txt many.txt --verbose
expect 1
expect_out "errors/s -> " " % more"
grep -q "faster" out && fail "errors per second are faster"
# Commands that failed are compared where that is asked for.
echo '{"results": [{"command": "a", "times": [1, 1.1, 1.2, 1.3, 1.4], "exit_codes": [0, 0, 1, 0, 0]}]}' >crash.json
run bench compare crash.json crash.json
expect 3
expect_out "the command returned 1 in run 3; --ignore-failure compares it anyway"
run bench compare crash.json crash.json --ignore-failure
expect 0
run bench 'sh -c "exit 3"' --vs true --ignore-failure --rounds 6 --tolerance 99% --save hyperfine:two.json
is "members that are not known" "$("$TOOL" keys two.json results.0 | grep -c exit_codes)" 0
is "the first command's own time" "$("$TOOL" keys two.json results.0 | grep -cx user)" 1
run $worker --baseline r.json
expect 0
export GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY=summary.md
echo 500 >speed
run $worker --baseline base.json
expect 1
expect_out "::error title=own/worker::REGRESSION"
grep -q '| own/worker | \*\*REGRESSION\*\*' summary.md || fail "no step summary"
unset GITHUB_ACTIONS GITHUB_STEP_SUMMARY

# A pipe that nobody reads: a signal ends the waiting.
sed 's/^done$/done; : >over/' worker.sh >last.sh
sed 's/worker.sh/last.sh/' cases.yaml >last.yaml
mkfifo nobody
"$TEMPER" bench --cases last.yaml own/worker --rounds 6 --no-history --benchmark-json nobody >out 2>err </dev/null &
pid=$!
wait_until '[ -e over ]'
until grep -q '^State:.*Z' /proc/$pid/status 2>/dev/null || [ ! -e /proc/$pid ]; do kill -TERM $pid; sleep 0.05; done
wait $pid
[ -p nobody ] || fail "a pipe is replaced"

# ---- history ----
HOME=$work/home XDG_DATA_HOME=there "$TEMPER" $worker >out 2>err </dev/null
[ -e there ] && fail "a relative XDG_DATA_HOME is used"
[ -f "$work/home/.local/share/temper/bench.sqlite" ] || fail "the history is not in HOME"
run bench history --history none.sqlite
expect 2 "there is no history"
mkfifo fifo.sqlite
run $worker --history fifo.sqlite
expect 2 "fifo.sqlite: it is a pipe, a file is expected here"
: >unwritable && mkdir sealed && mv unwritable sealed/h.sqlite
run $worker --history sealed/h.sqlite/inside
expect 2 "a file of that name is in the way"
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    [ $i -le 6 ] && echo $((1000 + i % 3)) >speed || echo $((800 + i % 3)) >speed
    run $worker --history h.sqlite
    expect 0
done
run bench history own --history h.sqlite --svg charts
expect 0
expect_out "own/worker" "n = 12" "changed at" "worse"
grep -q 'class="reference"' charts/own-worker-throughput.svg || fail "the change is not marked"
run bench history own --history h.sqlite --json --metric throughput
expect 0
is "points" "$("$TOOL" keys out 0.points | wc -l)" 12
is "place of the change" "$("$TOOL" get out 0.changes.0.index)" 6
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do # a machine that drifts changes nowhere
    echo $((1000 + 10 * i)) >speed
    run $worker --history drift.sqlite
    expect 0
done
run bench history own --history drift.sqlite
expect_out "changed at" "not judged: between these points sessions still resemble the ones before"
run bench history own --history drift.sqlite --json --metric throughput
is "judged" "$("$TOOL" get out 0.judged)" false
is "p of what is not judged" "$("$TOOL" get out 0.changes.0.p)" null
is "commit of a change" "$("$TOOL" get out 0.changes.0.commit)" null
run bench history own --history h.sqlite --json --metric throughput
is "judged" "$("$TOOL" get out 0.judged)" true
# Another unit is another series.
sed 's/tokens.s/ktokens\/s/' worker.sh >kilo.sh
sed 's/worker.sh/kilo.sh/' cases.yaml >kilo.yaml
run bench --cases kilo.yaml own/worker --rounds 6 --history h.sqlite
expect 0
run bench history own --history h.sqlite --metric throughput --svg units
expect 0
expect_out "n = 12" "n = 1 "
is "pictures" "$(ls units | tr '\n' ' ')" "own-worker-throughput-ktokens-s.svg own-worker-throughput-tokens-s.svg "
run bench history nothing/here --history h.sqlite
expect 2
finish
