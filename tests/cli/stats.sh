# temper stats: sentences, JSON, refusals.
. "$SOURCE/tests/cli/lib.sh"

cat >times.csv <<'END'
old,new
104.2,110.9
101.8,107.9
99.7,105.4
102.9,108.2
131.4,138.8
103.3,109.9
100.8,106.1
98.9,105.6
102.2,108.4
101.1,106.5
100.4,107.0
119.8,127.3
END

run stats times.csv old new --paired --time
expect 0
expect_out "new is 6.03 % slower than old, 95 % interval 5.34 to 6.43 %, n = 12 pairs." \
    "12 up, 0 down, 0 equal, p = 0.00049" "large (d_z = 8.27"
run stats times.csv --higher-is-better --paired
expect_out "6.03 % better (higher) than old"
run stats times.csv new old --paired --time
expect_out "old is 5.69 % faster than new, 95 % interval 5.07 to 6.04 %"
run stats times.csv
expect 0
expect_out "new is 6.0 % higher than old" "but the ranks do (Mann-Whitney p = 0.0023): new is mostly higher" \
    "Welch's t"
printf 'a,b\n1,2\n3,1\n2,3\n4,3\n' | "$TEMPER" stats - >out 2>err
expect_out "nothing is shown either way" "would have been seen in 80 %"
run stats times.csv --equal-var --margin 50%
expect_out "Student's t (equal variances)" "shown within 50 % of the baseline's mean"
run stats times.csv old
expect_out "old: mean 105.54, 95 % interval 99.311 to 111.77, n = 12." "the values are skewed"
run stats times.csv old --alpha 0.1 --json
expect 0
is "a level of its own" "$("$TOOL" get out describe.t_ci90.0)" 100.45778800368574
is "an average" "$("$TOOL" get out describe.mean)" 105.54166666666667
run stats times.csv --paired --json
is "pairs" "$("$TOOL" get out paired.n)" 12
is "x is judged" "$("$TOOL" get out names.x)" new
is "a ratio" "$("$TOOL" get out paired.log_ratio.ratio)" 1.060293323038566

printf 'model score\na 1\na 2\na 3\nb 7\nb 8\nb 9\nc 7\nc 8.5\nc 9\n' >long.txt
run stats long.txt score --by model
expect 0
expect_out "The groups differ" "a - b" "Kruskal-Wallis"
printf '{"step":%s,"m":{"loss":%s}}\n' 1 4.5 2 3.9 3 3.5 4 3.1 5 2.8 6 2.6 7 2.4 8 2.3 9 2.2 10 2.1 >m.jsonl
run stats m.jsonl loss --trend --at step
expect 0
expect_out "m.loss falls" "per step" "exponential decay"

# Records: columns are different things, so they are listed and none is compared.
run stats m.jsonl
expect 0
expect_out "2 columns of numbers" "m.loss" "temper stats m.jsonl COLUMN"
grep -q "groups" out && grep -q "Kruskal" out && fail "columns of records are compared unasked"
run stats m.jsonl --json
is "a listed column" "$("$TOOL" get out columns.1.name)" m.loss
printf '{"schema":1,"step_s":[0.5,0.25],"operators":[{"name":"x"}],"bytes":[4,4]}' >profile.json
run stats profile.json
expect 0
expect_out "2 columns of numbers" "step_s"

# Many values are not resampled; what is done instead is said.
seq 200001 >many.txt
run stats many.txt
expect 0
expect_out "mean, corrected for skewness" "99748 to 1.0025e+05 (what BCa tends to; n > 200000: not resampled)"
run stats --share 56/70,48/80
expect_out "The second share is 20 points lower, 95 % interval 5.24 to 33.4" "69.18 to 87.70 %"
run stats --share 0/10 --json
is "never a point" "$("$TOOL" get out wilson.1)" 0.2775327998628892
run stats --effect 0.5
expect_out "64 values per group are needed."
run stats --n 20 --paired --sides 1 --json
is "what 20 pairs show" "$("$TOOL" get out effect)" 0.5769170013383703
is "and with what power" "$("$TOOL" get out power)" 0.8
run stats --share 56/70,48/80 --json
is "a difference" "$("$TOOL" get out diff)" -0.2
is "of two shares" "$("$TOOL" get out shares.0.n)" 70

# What is undefined is null with a reason.
ask() {
    last="temper stats --json ${2-}"
    printf "$1" | "$TEMPER" stats --json - ${2-} >out 2>err
    status=$?
}
ask '3.25\n'
expect 0
is "no spread" "$("$TOOL" get out describe.sd)" null
is "why" "$(grep '"describe.sd"' out)" '    "describe.sd": "needs at least two values",'
ask 'y,x\n7,5\n7,5\n7,5\n'
expect 0
is "no t" "$("$TOOL" get out two_sample.welch)" null
is "a delta" "$("$TOOL" get out two_sample.mann_whitney.cliffs_delta)" -1
ask '1\n' --trend
expect 0
is "no trend of one value" "$("$TOOL" get out z_cc)" null
ask '[1, 2'
expect 2 "standard input:1"
ask ''
expect 2 "holds no numbers"

run stats times.csv neww
expect 2 "has no column 'neww'; did you mean 'new'; there are: old, new"
run stats times.csv old --paired
expect 2 "--paired takes two"
run stats missing.csv
expect 2 "missing.csv"
printf 'a\n1\nx\n' >bad.csv
run stats bad.csv
expect 2 "bad.csv:3: 'x' in column 'a' is not a finite number"
run stats
expect 2 "give a file, --share, or two of"
run stats --share 5
expect 2 "--share takes successes/trials"
run stats --share 7/5
expect 2 "7 of 5 is no share"
run stats --alpha 2 times.csv
expect 2 "--alpha takes a number from"

# Values whose squares overflow: a mean that is right, a fit that says why there is none.
i=0
while [ $i -lt 15 ]; do printf '1.7e308\n-1.7e308\n1e308\n-1e308\n'; i=$((i + 1)); done >huge.txt
run stats huge.txt --trend
expect 0
expect_out "values above 1e150 have squares that no number holds"
grep -qi 'nan' out && fail "NaN where the reason should be"
is "the mean" "$(sed -n 's/^column 1 *60 *\([^ ]*\) .*/\1/p' out)" 0
finish
