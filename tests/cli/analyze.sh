# Runs compared and judged from the command line: text, JSON, exit statuses, faults of usage.
. "$SOURCE/tests/cli/lib.sh"
runs=$SOURCE/tests/data/runs

# make_run FILE SHIFT: a loss that falls to 1 + SHIFT, an MFU of 0.4
make_run() {
    awk -v shift="$2" 'BEGIN {
        srand(7)
        for (i = 0; i < 200; i++)
            printf "{\"step\": %d, \"train/loss\": %.6f, \"mfu\": %.6f}\n", i,
                1 + shift + 2 * exp(-0.04 * i) + 0.02 * (rand() - 0.5), 0.4 + 0.01 * (rand() - 0.5)
    }' >"$1"
}
make_run a.jsonl 0
make_run b.jsonl 0.5

run compare a.jsonl a.jsonl
expect 0
expect_out "same" "another seed may differ"
run compare a.jsonl b.jsonl
expect 1
expect_out "train/loss" "worse" "2 metrics: 1 worse, 1 same"
# A hash of the data is no quantity that differs by so and so much.
for side in c d; do
    for i in 1 2 3 4 5 6; do
        echo "{\"step\": $i, \"train/loss\": $((9 - i)), \"train/data_fingerprint\": $i$(printf %d "'$side")}"
    done >$side.jsonl
done
run compare c.jsonl d.jsonl --json
expect 0
is "metrics that are compared" "$(grep -c '"name": "train/' out)" 1
run compare b.jsonl a.jsonl --json
expect 0
expect_out '"verdict": "better"' '"effect": -0.5' '"adjustment": "holm"'
run compare "$runs/trackio-manual/manual.db#run-a" "$runs/trackio-manual/manual.db#run-b"
expect_out "Settings that differ"
# Numbers are compared by value, alone and in lists.
write_recipe tiny.yaml
rate=policy.optimizer.kwargs.lr betas=policy.optimizer.kwargs.betas eps=policy.optimizer.kwargs.eps
run train --quiet tiny.yaml run.name=one sft.max_num_steps=2 $rate=1.0e-3 "$betas=[0.9,0.95]" $eps=1e-8
expect 0
run train --quiet tiny.yaml run.name=two sft.max_num_steps=2 $rate=0.0010 "$betas=[0.90,0.950]" $eps=1e-7
expect 0
run compare runs/one runs/two
expect_out "policy.optimizer.kwargs.eps"
grep 'kwargs.lr\|kwargs.betas' out && fail "numbers of one value differ"
# Twice the tokens a step: at the same tokens it is another run, at the same steps the same one.
awk 'BEGIN { for (i = 1; i <= 100; i++) printf "{\"step\": %d, \"loss\": %.6f, \"num_tokens\": %d}\n", i, 10 - log(i), 100 * i }' >once.jsonl
awk 'BEGIN { for (i = 1; i <= 100; i++) printf "{\"step\": %d, \"loss\": %.6f, \"num_tokens\": %d}\n", i, 10 - log(i), 200 * i }' >double.jsonl
run compare once.jsonl double.jsonl --json
is "at the same steps" "$("$TOOL" get out metrics.0.effect)" 0
run compare once.jsonl double.jsonl --align tokens --json
expect 1
is "aligned by" "$("$TOOL" get out aligned_by)" tokens
is "at the same tokens" "$("$TOOL" get out metrics.0.verdict)" worse
run compare once.jsonl double.jsonl --align time --json
expect_out '"no time in common"'
run compare once.jsonl double.jsonl --align epochs
expect 2 "--align is steps, tokens or time, not 'epochs'"
# What is no run is compared as what it is.
data=$SOURCE/tests/data
run compare "$data/bench/bench.json" "$data/bench/google.json"
expect_out "PASS (same)"
run compare "$data/traces/kineto_2021.json" "$data/traces/kineto_2021.json"
expect 0
expect_out "not shown"
run compare "$data/traces/kineto_2021.json" "$data/bench/bench.json"
expect 2 "kineto_2021.json' is a trace and" "bench.json' is a result of benchmarks; two of one kind are compared"
run compare a.jsonl
expect 2 "give two runs, or --a and --b"
manual=$SOURCE/tests/data/runs/trackio-manual/manual.db
run compare --a "$manual#run-a" --b "$manual#run-b" --json
case $status in 0 | 1) ;; *) fail "runs of a data base as groups" ;; esac
grep -q '"metrics"' out || fail "runs of a data base as groups: no metrics"
run compare --a "$manual#run-a" --b "$manual#none"
expect 2 "none"
run compare --a 'a.*' --b 'none-*'
expect 2 "--b: nothing matches 'none-*'"
run compare a.jsonl "$runs/tb-restart-plain"
expect_out "named otherwise in B: train/loss is loss"
echo '{"step": 1, "x": 2}' >x.jsonl
run compare a.jsonl x.jsonl
expect 2 "have no metric in common"
for i in 1 2 3; do
    make_run "s$i.jsonl" "0.00$i"
    make_run "t$i.jsonl" "-0.50$i"
done
run compare --a 's*.jsonl' --b 't*.jsonl'
expect 0
expect_out "better"

run analyze a.jsonl
expect 0
expect_out "training" "convergence" "pass" "needs at least 3 runs" "8 dimensions: 3 succeeded, 5 failed (5 for want of data)"
run analyze a.jsonl --json
expect 0
expect_out '"name": "efficiency"' '"summary": {' '"ran": 8' '"succeeded": 3' '"failed": 5' '"unknown": 5' '"verdict": "unknown"' '"error": null' '"error": "needs at least 3 runs'
run analyze a.jsonl --dimension efficiency --threshold efficiency=0.9
expect 1
expect_out "fail" "worst: efficiency"
run analyze a.jsonl --dimension speed
expect 2 "there is no dimension 'speed'; known are training, inference"
run analyze a.jsonl --threshold speed=1
expect 2 "there is no dimension 'speed'"
run analyze a.jsonl --threshold training=0 --threshold training=0.9
expect 2 "training has two thresholds; give one"
run analyze a.jsonl -d training --threshold memory=0
expect 2 "memory has a threshold but is not asked for"
run analyze a.jsonl -d training -d training
expect 2 "training is asked for twice; ask once"
run analyze a.jsonl --threshold training
expect 2 "--threshold takes NAME=VALUE"
run analyze a.jsonl --threshold training=nan
expect 2 "the threshold of training is nan; expected a finite number"
if [ -w /dev/full ]; then # a verdict that was not delivered is no verdict
    "$TEMPER" analyze a.jsonl --dimension efficiency --threshold efficiency=0.9 >/dev/full 2>err
    is "exit status with a full disk" $? 4
fi
# Two steps have no interval: however far from the threshold, nothing is shown.
printf '{"step":%d,"mfu":%s}\n' 1 0.01 2 0.02 >two.jsonl
run analyze two.jsonl --dimension efficiency
expect 0
expect_out "not shown" "an interval needs three"
printf '{"step":%d,"mfu":%s}\n' 3 0.01 >>two.jsonl
run analyze two.jsonl --dimension efficiency
expect 1
expect_out "fail"
# A reward that begins at 0 has no share to improve by; one that stands still has no spread; huge ones say why there is none.
i=0
while [ $i -lt 60 ]; do
    printf '{"step":%d,"reward":%s}\n' $i "$([ $i -lt 20 ] && echo 0 || echo 0.5)" >>zero.jsonl
    printf '{"step":%d,"reward":%s}\n' $i "$([ $i -lt 20 ] && echo 0.25 || echo 0.5)" >>still.jsonl
    printf '{"step":%d,"reward":%s}\n' $i "1.$((i * i % 7))e308" >>huge.jsonl
    i=$((i + 1))
done
run analyze zero.jsonl --dimension training
expect_out "unknown" "the mean of the first fifth is 0 and no share of it can be told; that of the last is 0.5"
run analyze still.jsonl --dimension training
expect 0
expect_out "1 .. 1" "which do not differ"
run analyze huge.jsonl --dimension training
expect_out "error" "more than a number holds"
for name in zero still huge; do
    run analyze $name.jsonl --dimension training --json
    grep -qi 'nan\|infinity' out && fail "$name: $(grep -i 'nan\|infinity' out)"
done
# Three times that differ much: the rate may be of any size, so it is not below a threshold.
printf '{"step":%d,"eval_runtime":%s}\n' 1 0.1 2 0.2 3 2.5 >times.jsonl
run analyze times.jsonl --dimension inference --threshold inference=5
expect 0
expect_out ".. inf" "not shown"
run analyze times.jsonl --dimension inference --json
is "the bound that is not there" "$("$TOOL" get out dimensions.0.ci95.1)" Infinity
run analyze times.jsonl --dimension inference --threshold inference=5 --report
expect 0
grep -q '| inference .* \.\. inf | 3 |' report/report.md || fail "the report lacks the bound"
grep -q 'to inf<' report/dashboard.html || fail "the page lacks the bound"
run analyze s1.jsonl s2.jsonl s3.jsonl --size 1,2
expect 2 "--size takes one number per run"
run analyze s1.jsonl s2.jsonl s3.jsonl --dimension robustness
expect 0
expect_out "pass" "the first of 3 runs; robustness and scalability are of all"
run analyze s1.jsonl s2.jsonl s3.jsonl --report
expect 0
for name in s1 s2 s3; do
    grep -qx -- "- $name.jsonl" report/report.md || fail "the report lacks $name"
done
run analyze a.jsonl --report
expect 0 "wrote report"
grep -q "<svg" report/dashboard.svg || fail "no picture"
grep -q "<table>" report/dashboard.html || fail "no page"
if [ -e report/dashboard.png ]; then
    is "signature" "$(head -c 4 report/dashboard.png | tail -c 3)" PNG
    is "signature" "$(head -c 4 report/dashboard.pdf)" %PDF
else
    grep -q "dashboard.png and dashboard.pdf are not drawn: librsvg" err || fail "no word about the PNG"
fi
grep -qF '| convergence | ' report/report.md || fail "the report lacks convergence"
grep -qF '![The dashboard](dashboard.svg)' report/report.md || fail "the report lacks its picture"
grep -qi '| *-*nan' report/report.md && fail "nan in the report: $(grep -i nan report/report.md)"
cp a.jsonl 'rep<i>&"x
y.jsonl'
run analyze 'rep<i>&"x
y.jsonl' --report
expect 0
is "a name in the report" "$(head -n 1 report/report.md)" '# rep&lt;i&gt;&amp;&quot;x\ny.jsonl'
run analyze
expect 2

# A seed that came to nothing is no robust one, and a run that ended early does not decide for the others.
for i in 1 2 3 4; do
    awk -v seed=$i 'BEGIN { srand(seed); print "step,loss"; for (s = 1; s <= 100; s++) print s "," 1 + 5 / s + rand() / 100 }' >seed$i.csv
    awk -v seed=$i 'BEGIN { srand(seed + 9); print "step,loss"; for (s = 1; s <= 100; s++) print s "," 1.2 + 4.8 / s + rand() / 100 }' >other$i.csv
done
awk 'BEGIN { print "step,loss"; for (s = 1; s <= 100; s++) print s "," (s < 50 ? 1 + 5 / s : "nan") }' >lost.csv
run analyze seed1.csv seed2.csv seed3.csv lost.csv -d robustness
expect 1
expect_out "fail" "1 of 4 runs ends without a finite value of loss: not robust" "worst: robustness; a lower learning rate"
echo '{"step": 1, "other": 2}' >other.jsonl
run analyze seed1.csv seed2.csv seed3.csv other.jsonl -d robustness
expect 0
expect_out "pass" "runs_without_it 1"
awk 'BEGIN { for (s = 1; s <= 50; s++) print "{\"step\": " s ", \"loss\": NaN}" }' >never.jsonl
run analyze never.jsonl
expect 1
expect_out "training: loss has no finite value: 50 are NaN or infinite" "2 below the threshold"
run alarms never.jsonl
grep -q "too few" out err && fail "many values are too few"
run analyze "$runs/trackio-manual/manual.db#run-a" --report
grep -q 'manual.db#run-a</text>' report/dashboard.svg || fail "the dashboard does not name the run of the data base"
run analyze lost.csv -d training -d convergence
expect 1
expect_out "loss ends without a finite value: the last one is that of step 49"
run compare --a 'seed*.csv' --b 'other*.csv'
expect 1
expect_out "worse"
head -n 11 other1.csv >short && mv short other1.csv
run compare --a 'seed*.csv' --b 'other*.csv'
expect 0
expect_out "not shown" "run 1 of B ends at step 10 of 100: compared up to there"
finish
