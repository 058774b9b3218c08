# `temper trace` on committed small traces: exact figures, every view and form, compare,
# export, and what is said about bad input.
. "$SOURCE/tests/cli/lib.sh"
data=$SOURCE/tests/data/trace_reports
cp "$data"/* .

# exact: every figure of expected.json, counted nanosecond by nanosecond
for i in 0 1 2 3; do
    file=$("$TOOL" get expected.json $i.file)
    run trace "$file" --json
    expect 0
    "$TOOL" holds expected.json $i out || fail "figures of $file differ"
done
gzip -kc kineto-rank-0.json >zipped.json.gz
run trace zipped.json.gz --json
sed -i 's/"file": "zipped.json.gz"/"file": "kineto-rank-0.json"/' out
"$TOOL" holds expected.json 0 out || fail "figures differ when gzipped"

# standard input
"$TEMPER" trace - --json <zipped.json.gz >out 2>err || fail "a trace from standard input: $(cat err)"
sed -i 's/"file": "standard input"/"file": "kineto-rank-0.json"/' out
"$TOOL" holds expected.json 0 out || fail "figures differ from standard input"

# the screen
run trace kineto-rank-0.json
expect 0
expect_out "rank 0 of 2" "scope all" "Where the time went" "Bottlenecks" "all_reduce" \
    "no Python functions recorded: profile with with_stack=True"
run trace snapshot.pickle
expect 0
expect_out "PyTorch memory snapshot" "train.py:12 forward" "its beginning is missing"
run trace "$SOURCE/tests/data/traces/snapshot_p4.pickle"
expect 0
expect_out "out of memory 1 time;" "asked for 1.00 TiB" "had 120.6 KiB free" "opt.py:7 update"
run trace nsight.sqlite
expect 0
expect_out "Nsight Systems"

# every view in every form
for view in operators kernels memory comm idle launch queue critical-path bandwidth stacks steps threads \
    ranks roofline suspicious bottlenecks; do
    for form in "" --json --csv --markdown; do
        run trace kineto-rank-0.json $view $form
        expect 0
        [ -s out ] || fail "$view $form shows nothing"
    done
    run trace kineto-rank-0.json --view $view --json
    "$TOOL" keys out "" >/dev/null || fail "$view --json is not JSON"
done
run trace kineto-rank-0.json kernels --csv
is "the first line" "$(head -n 1 out)" \
    total_ns,share_pct,count,p50_ns,max_ns,class,name,min_ns,p90_ns,p99_ns,mean_ns,sd_ns,is_slow
run trace kineto-rank-0.json kernels --slow-kernel 0.0001
expect_out "take 0.0001 ms or more on average (--slow-kernel)"
run trace kineto-rank-0.json operators --slow-operator 0.001
expect_out "bottlenecks, 0.001 ms or more by themselves (--slow-operator)"
run trace kineto-rank-0.json operators --slow-operator 0
expect 2 "slow-operator"

# a folder is its traces; one without any, and what is no trace, are told
mkdir job void
cp kineto-rank-0.json kineto-rank-1.json job
run trace job
expect 0
expect_out "Ranks"
run trace void
expect 2 "there is no trace in the folder 'void'"
printf '\211PNG\r\n\032\n' >picture.png
run trace picture.png
expect 2 "is none of"
printf '\200\002]q\000(K\001K\002e.' >list.pickle
run trace list.pickle
expect 2 "no memory snapshot"

# scope and filters
run trace kineto-rank-0.json --scope steps --json
is "the scope" "$("$TOOL" get out scope)" steps
run trace kineto-rank-0.json --step 2 --json
[ "$("$TOOL" get out kernels)" -lt "$("$TOOL" get expected.json 0.kernels)" ] ||
    fail "--step 2 leaves every kernel"
run trace kineto-rank-0.json --name 'ncclDev*' --json
is "names" "$("$TOOL" get out kernel_names)" 1
run trace kineto-rank-0.json --comm relu --json
is "communication by the user's pattern" "$("$TOOL" get out all_devices.compute_ns)" \
    "$(run trace kineto-rank-0.json --name gemm --json; "$TOOL" get out all_devices.compute_ns)"
run trace kineto-rank-0.json --stream 7 --json
expect 0
run trace kineto-rank-0.json --step 77
expect 2 "there is no step 77" "1 to 3"
run trace kineto-rank-0.json kineto-rank-1.json --step 77
expect 2 "there is no step 77 in kineto-rank-0.json, whose steps are 1 to 3"
for option in --comm --name; do
    run trace kineto-rank-0.json "$option" ""
    expect 2 "${option#--}' is empty"
done
run trace nsight.sqlite --scope steps
expect 2 "has no steps"
run trace kineto-rank-0.json --stream 3
expect 2 "the filters leave none"

# several ranks
run trace kineto-rank-0.json kineto-rank-1.json
expect 0
expect_out "Collectives over all ranks" "matched by order of occurrence"
run trace kineto-rank-0.json kineto-rank-1.json --rank 1 --json
is "the rank" "$("$TOOL" get out rank)" 1
run trace kineto-rank-0.json kineto-rank-1.json --rank 5
expect 2 "of rank 5"

run trace kineto-rank-0.json kineto-rank-1.json kineto-rank-0.json ranks
expect 2 "two recordings of one rank" "one file of each"
run trace kineto-rank-0.json kineto-rank-0.json
expect 0
expect_out "two recordings of one rank" "each file by itself" "Where the time went"
head -c 20000 kineto-rank-1.json >rank-1.json
for view in "" ranks kernels; do
    run trace kineto-rank-0.json rank-1.json $view
    expect 0
    expect_out "! 'rank-1.json' ends in the middle"
done

# compare
run trace compare kineto-rank-0.json kineto-rank-0.json --json
expect 0
is "a step against itself" "$("$TOOL" get out totals.0.verdict)" same
run trace compare kineto-rank-0.json nsight.sqlite
expect 0
expect_out "verdicts need at least 6 steps" "Device work"
run trace compare kineto-rank-0.json snapshot.pickle
expect 2 "only traces of events compare"

# work that was launched before the first step is of none, and is said
step='{"ph":"X","cat":"user_annotation","name":"ProfilerStep#3","pid":9,"tid":1,"ts":100,"dur":100,"args":{}}'
left='{"ph":"X","cat":"kernel","name":"left","pid":0,"tid":7,"ts":110,"dur":40,"args":{"device":0,"stream":7,"correlation":9}}'
call='{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":1,"ts":160,"dur":2,"args":{"correlation":1}}'
own='{"ph":"X","cat":"kernel","name":"own","pid":0,"tid":7,"ts":170,"dur":10,"args":{"device":0,"stream":7,"correlation":1}}'
echo "{\"traceEvents\": [$step, $left, $call, $own]}" >left.json
run trace left.json --step 3 --json
is "compute of a step" "$("$TOOL" get out all_devices.compute_ns)" 10000
run trace left.json steps --json
is "compute in the table of steps" "$("$TOOL" get out steps.0.compute_ns)" 10000
for words in "left.json steps" "left.json --scope steps" "compare left.json left.json"; do
    run trace $words
    expect_out "of no step:"
done
expect_out "after   left.json (1 step)"
run trace stats left.json --per-step
expect_out "device work of no step: 1 (40.000 us)"
mm='{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":1,"ts":130,"dur":20,"args":{}}'
before='{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":1,"ts":60,"dur":2,"args":{"correlation":9}}'
echo "{\"traceEvents\": [$step, $before, $left, $mm]}" >left.json
run trace left.json --scope steps
expect 2 "no device work in the steps of left.json" "device work of no step: 1 (40.000 us)"

# what the host did in a step is shown all the same; a step that is not there is refused
for scope in "--step 3" "--scope steps"; do
    for view in operators threads stacks memory; do
        run trace left.json $view $scope
        expect 0
    done
    run trace left.json kernels $scope
    expect 2 "no device work in"
    run trace left.json operators $scope --stream 7
    expect 2 "no device work in"
    run trace left.json operators $scope --json
    is "calls of a step" "$("$TOOL" get out operators.0.calls)" 1
done
echo "{\"traceEvents\": [$step, $mm]}" >host.json
echo "{\"traceEvents\": [$mm]}" >none.json
run trace host.json operators --step 3 --json
is "calls of a step of the host" "$("$TOOL" get out operators.0.calls)" 1
for view in "" operators; do
    run trace host.json $view --step 4
    expect 2 "there is no step 4 in host.json, whose steps are 3 to 3"
    run trace none.json $view --step 4
    expect 2 "none.json has no steps (ProfilerStep#N): leave out --step"
done
for command in "" stats "compare host.json"; do
    run trace $command none.json --scope steps
    expect 2 "none.json has no steps (ProfilerStep#N): use --scope all"
done
run trace export --collapsed none.json --scope steps -o none.txt
expect 2 "none.json has no steps"
[ ! -e none.txt ] || fail "a refused export left a file"

# stats: several recordings of the same work; before_N has one gemm of 100 + N us a step, after_N
# one of 120 + N us
make_run() {
    {
        printf '{"traceEvents": ['
        for step in 1 2; do
            at=$((step * 1000))
            printf '{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","pid":9,"tid":1,"ts":%d,"dur":%d,"args":{}},' \
                $step $at $(($2 + 400))
            printf '{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":1,"ts":%d,"dur":5,"args":{"correlation":%d}},' \
                $((at + 10)) $step
            printf '{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":%d,"dur":%d,"args":{"device":0,"stream":7,"correlation":%d}}' \
                $((at + 20)) "$2" $step
            [ $step = 2 ] || printf ,
        done
        printf ']}\n'
    } >"$1"
}
for i in 0 1 2 3; do
    make_run before_$i.json $((100 + i))
    make_run after_$i.json $((120 + i))
done
run trace stats before_0.json before_1.json before_2.json before_3.json
expect 0
expect_out "step (host), mean: 501.500 us on average, 95 % interval 499.446 us to 503.554 us" \
    "n = 4 files" "4 of 4" "gemm"
run trace stats before_0.json before_1.json before_2.json before_3.json --json
expect 0
is "the table of kernels" "$("$TOOL" get out kernels.0.name)" gemm
is "the mean of a kernel" "$("$TOOL" get out kernels.0.mean)" 203000
is "calls" "$("$TOOL" get out kernels.0.calls_mean)" 2
is "a call" "$("$TOOL" get out kernels.0.call_mean_ns)" 101500
is "why there is no bootstrap" "$("$TOOL" get out totals.0.bca_undefined)" "fewer than 8 files"
run trace stats before_0.json before_1.json before_2.json before_3.json \
    --vs after_0.json after_1.json after_2.json after_3.json --json
expect 1
is "the verdict" "$("$TOOL" get out kernels.0.verdict)" worse
is "files on both sides" "$("$TOOL" get out kernels.0.before_n),$("$TOOL" get out kernels.0.after_n)" 4,4
run trace stats --vs after_0.json after_1.json after_2.json after_3.json
expect 2 "files on both sides of one --vs"
run trace stats before_0.json --vs
expect 2 "files on both sides of one --vs"
run trace stats before_0.json --vs before_1.json --vs before_2.json
expect 2 "files on both sides of one --vs"
run trace stats before_0.json before_1.json before_2.json --vs after_0.json after_1.json after_2.json
expect 0
expect_out "few files" "not shown"
run trace stats before_0.json
expect 0
expect_out "its interval is undefined (one file: nothing to vary)" "record the same work again"
run trace stats before_0.json ./before_0.json
expect 2 "is given twice"
cp before_0.json copy.json
run trace stats before_0.json copy.json
expect 0
expect_out "a copy is no repeat"
make_run slow.json 500
run trace stats before_0.json before_1.json before_2.json before_3.json slow.json
expect 0
expect_out "outlier: #5 slow.json"
run trace stats kineto-rank-0.json kineto-rank-1.json nsight.sqlite snapshot.pickle
expect 0
expect_out "ranks of one job are not repeats" "some files have no device work" "3 of 4"
run trace stats kineto-rank-0.json nsight.sqlite --per-step
expect 2 "nsight.sqlite' marks no steps"
run trace stats snapshot.pickle --per-step
expect 2 "has no steps"
run trace stats kineto-rank-0.json --csv
expect 0
expect_out "name,unit,n,files,mean"
run trace stats kineto-rank-0.json --markdown
expect 0
expect_out "| figure"
run trace stats nowhere.json
expect 2 "nowhere.json"

# export
for format in chrome perfetto collapsed csv; do
    run trace export --$format kineto-rank-0.json -o exported.$format
    expect 0
    [ -s exported.$format ] || fail "export --$format wrote nothing"
done
run trace exported.chrome --json
is "span after a round trip" "$("$TOOL" get out all_devices.span_ns)" \
    "$("$TOOL" get expected.json 0.all_devices.span_ns)"
is "idle after a round trip" "$("$TOOL" get out all_devices.idle_ns)" \
    "$("$TOOL" get expected.json 0.all_devices.idle_ns)"
run trace export --csv kineto-rank-0.json -o -
is "lines of CSV" "$(wc -l <out)" \
    "$(($("$TOOL" get expected.json 0.ph.X) + $("$TOOL" get expected.json 0.ph.i) + 1))"
is "memory in CSV" "$(grep -c ",memory,.*\[memory\]" out)" "$("$TOOL" get expected.json 0.memory_instants)"
run trace export --csv kineto-rank-0.json -o exported.csv --json
is "events of CSV" "$("$TOOL" get out events)" "$(($(wc -l <exported.csv) - 1))"
sed 's/, "Total Allocated": [0-9]*//g' kineto-rank-0.json >no-totals.json
run trace export --perfetto no-totals.json -o exported.perfetto
expect_out "; left out: $("$TOOL" get expected.json 0.memory_instants) of memory without totals"
run trace export --collapsed kineto-rank-0.json -o exported.collapsed
expect_out ", $(wc -l <exported.collapsed) stacks"
run trace export --chrome kineto-rank-0.json -o exported.json.gz
expect 0
gzip -dc exported.json.gz >unpacked.json || fail "a name in .gz is not compressed"
cmp -s unpacked.json exported.chrome || fail "the compressed export is another one"
run trace export kineto-rank-0.json -o x
expect 2 "choose one of"
run trace export --chrome kineto-rank-0.json
expect 2 "-o OUT is missing"
run trace export --chrome snapshot.pickle -o x
expect 2 "no events to export"
[ ! -e x ] || fail "a failed export left a file"

# bad input
run trace nosuch.json
expect 2 nosuch.json
: >empty.json
run trace empty.json
expect 2 empty.json
run trace kineto-rank-0.json kernel
expect 2
run trace kineto-rank-0.json --view kernel
expect 2 "did you mean 'kernels'"
run trace kineto-rank-0.json --scope most
expect 2 "--scope is all, linked or steps"
run trace kineto-rank-0.json --json --csv
expect 2 "one of --json"
run trace kineto-rank-0.json --csv
expect 2 "--csv needs a view"
run trace snapshot.pickle kernels
expect 2 "nothing in it answers 'kernels'"
run trace
expect 2
head -c 20000 kineto-rank-0.json >cut.json
run trace cut.json
expect 0
expect_out "Notes of the reader"
# --- how to record better is said of the profiler that recorded ---
cat >jax.json <<'EOF'
{"traceEvents":[
{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},
{"ph":"M","pid":1,"tid":16,"name":"thread_name","args":{"name":"Stream #16(Kernel)"}},
{"ph":"M","pid":2,"name":"process_name","args":{"name":"/host:CPU"}},
{"ph":"X","pid":1,"tid":16,"ts":2,"dur":3,"name":"loop_add_fusion","args":{"hlo_op":"loop_add_fusion"}},
{"ph":"X","pid":2,"tid":5,"ts":1,"dur":9,"name":"PjitFunction(f)"},
{}]}
EOF
run trace jax.json
expect 0
expect_out "rows of processes such as '/device:GPU:0' are not read as device work"
grep -Eq "of the host|ProfilerActivity|Notes of the reader" out && fail "rows of devices are called the host's: $(cat out)"
echo '[{"ph":"X","pid":2,"tid":5,"ts":1,"dur":9,"name":"main (a.py:3)"}]' >functions.json
run trace functions.json
expect 0
expect_out "no device activity recorded" "Spans of the host"
grep -q "ProfilerActivity" out && fail "advice on PyTorch's profiler where another recorded"
cat >operators.json <<'EOF'
[{"ph":"X","cat":"Operator","pid":2,"tid":"5","ts":1,"dur":9,"name":"aten::mm","args":{"Call stack":"a.py(3): f"}},
{"ph":"i","pid":2,"tid":5,"ts":2,"name":"[memory]","args":{"Device Type":0,"Device Id":-1,"Bytes":4096}},
{"ph":"X","cat":"Operator","pid":2,"tid":"5","ts":0,"dur":20,"name":"ProfilerStep#5"}]
EOF
run trace operators.json
expect 0
expect_out "ProfilerActivity.CUDA" "steps 5 to 5" "with_stack=True of PyTorch in 2021 writes stacks"
grep -q "no steps marked" out && fail "a step of 2021 is not found"
run trace operators.json operators --json
grep -q "ProfilerStep" out && fail "a step of 2021 is an operator"
is "memory of an operator" "$("$TOOL" get out operators.0.allocated_bytes)" 4096
run trace operators.json memory
expect_out "CPU: events without totals: what was in use is unknown"

sed 's/CUPTI_ACTIVITY_KIND_/CUPTI_ACTIVITY_XXXX_/g' nsight.sqlite >host.sqlite
run trace host.sqlite
expect 0
expect_out "no device activity recorded: profile with nsys profile --trace=cuda,nvtx"
sed 's/CUPTI_ACTIVITY_KIND_RUNTIME/CUPTI_ACTIVITY_XXXX_RUNTIME/g' nsight.sqlite >calls.sqlite
run trace calls.sqlite
expect 0
expect_out "idle without a known cause" "calls too (nsys profile --trace=cuda)"
cat >multimem.json <<'EOF'
[{"ph":"X","ts":100,"dur":500,"pid":0,"tid":7,"name":"multimem_all_reduce_kernel","cat":"kernel","args":{"device":0,"stream":7}}]
EOF
run trace multimem.json comm
expect 0
expect_out "(PyTorch 2.3 and newer record them, of"

# --- a newline in a name breaks no line of the overview ---
cat >newline.json <<'EOF'
{"traceEvents":[{"ph":"X","ts":100,"dur":500,"pid":0,"tid":7,"name":"gemm\nfoo","cat":"kernel","args":{"device":0,"stream":7}}]}
EOF
run trace newline.json
expect 0
expect_out '          100.0 % of kernel time, 1 launches: gemm\nfoo'

finish
