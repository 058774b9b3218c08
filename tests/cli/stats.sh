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
expect_out "new is 6.0 % higher than old" "No difference of the means is shown (Welch p = 0.14)." "Welch's t" "Mann-Whitney"
printf 'a,b\n1,2\n3,1\n2,3\n4,3\n' | "$TEMPER" stats - >out 2>err
expect_out "No difference of the means is shown (Welch p = " "would have been seen in 80 %"
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

# The test that is named is the one that decides: the t test of the ratios of few pairs.
printf 'a,b\n10,11\n10,11.2\n10,10.9\n10,11.1\n' >few.csv
run stats few.csv --paired
expect_out "The difference is clear (t test of the log ratios p = 0.000" "sign test, exact                   4 up, 0 down, 0 equal, p = 0.12"
printf 'a,b\n1,-1\n2,1\n3,0\n4,2.5\n' >signs.csv
run stats signs.csv --paired
expect_out "(paired t p = 0.0"
printf 'a,b\n1,3\n2,4\n3,5\n' >constant.csv
run stats constant.csv --paired
expect_out "t test of the log ratios"
i=0
{ echo a,b; while [ $i -lt 10 ]; do echo 100,100; echo 101,106; i=$((i + 1)); done; } >equal.csv
run stats equal.csv --paired
expect_out "The pairs that differ do so mostly one way (sign test p = 0.002), but 10 of 20 are equal: the median may show no difference."
i=0
{ echo a,b; while [ $i -lt 10 ]; do echo 100,101; echo 101,100; i=$((i + 1)); done; } >same.csv
run stats same.csv --paired --margin 5%
expect_out "No difference is shown (sign test p = 1), but that it stays within 5 % of a's mean is."
run stats same.csv --margin 5%
expect_out "No difference of the means is shown (Welch p = 1), but that it stays within 5 % of a's mean is."
printf 'a,b\n6.5,2.8\n5.9,6.2\n5.4,3.8\n5.2,4.5\n4.8,5.6\n6.6,6.9\n' >decimals.csv # 0.3 twice
run stats decimals.csv --paired
expect_out "Wilcoxon signed rank               W+ = 7, W- = 14, p = 0.53"
printf 'a,b\n1,3\n1.1,3.3\n1.05,3.2\n1,3.1\n' >thrice.csv
run stats thrice.csv --lower-is-better
expect_out "times a, which is worse (higher): 95 % interval of the ratio"
printf 'a,b\n1,2\n1e308,-1e308\n' >far.csv
run stats far.csv --paired
expect 2 "far.csv: the difference of 'b' and 'a' in pair 2, -1e+308 and 1e+308, is too large"

# A series that wanders: points are listed, not judged, and there are no shares of medians near 0.
awk 'BEGIN { srand(4); for (i = 0; i < 200; i++) { y = 0.9 * y; for (k = 0; k < 12; k++) y += rand() - 0.5; print y } }' >wander.txt
run stats wander.txt --trend
expect 0
expect_out "Note: these points are not judged: between them successive values still resemble each other"
grep -q "permutation" out && fail "points that are not judged have a p"
awk 'BEGIN { for (i = 0; i < 40; i++) print (i * 7 % 5) / 100 + (i < 20 ? -1 : 2) }' >turn.txt
run stats turn.txt --trend
expect_out "  at 20         median -0.98 -> 2.02, permutation p = 0.001"
# JSON says the same: where, how surely, and that it is not judged.
run stats turn.txt --trend --json
is "the change" "$("$TOOL" get out changes.points.0.index)" 20
is "its p" "$("$TOOL" get out changes.points.0.p)" 0.001
is "judged" "$("$TOOL" get out changes.judged)" true
run stats wander.txt --trend --json
is "judged" "$("$TOOL" get out changes.judged)" false
is "a p" "$("$TOOL" get out changes.points.0.p)" null
grep -q '"changes.points\[0\].p": "between the points' out || fail "no reason why there is no p"

run stats turn.txt --trend --alpha 0.2 --json
wide=$("$TOOL" get out last10.theil_sen.lo80) narrow=$(run stats turn.txt --trend --alpha 0.05 --json; "$TOOL" get out last10.theil_sen.lo95)
[ "$wide" != "$narrow" ] || fail "the interval of the last ten has another level than its name"

# The interval of the slope is that of the variance which the verdict rests on: what shows no trend
# does not stand beside an interval without 0.
for seed in 1 2 3 4 5 6 7 8 9 10 11 12; do
    awk -v seed=$seed 'BEGIN { srand(seed); for (i = 0; i < 110; i++) { y = 0.7 * y; for (k = 0; k < 12; k++) y += rand() - 0.5; if (i >= 50) print y } }' >auto.txt
    run stats auto.txt --trend
    text=$(sed -n 's/.*(Mann-Kendall p = \([0-9.e-]*\)).*/\1/p' out)
    awk -v seed=$seed '/interval/ { no = /shows no trend/; sub(/.*interval /, ""); if (no == ($1 > 0 || $3 + 0 < 0)) exit 1; exit }' out ||
        fail "seed $seed: the sentence contradicts its interval"
    [ -z "$text" ] || { run stats auto.txt --trend --json; awk "BEGIN { p = $("$TOOL" get out p_verdict); exit !(p > 0.98 * $text && p < 1.02 * $text) }"; } ||
        fail "seed $seed: JSON has another p than the sentence"
done

# What the text says of a margin and of what would have been seen is in JSON too.
run stats same.csv --margin 5% --json
is "shown" "$("$TOOL" get out equivalence.shown)" true
is "the bound" "$("$TOOL" get out equivalence.bound)" 5.025
is "power" "$("$TOOL" get out detectable.power)" 0.8
eighty=$("$TOOL" get out detectable.difference)
run stats same.csv --power 0.9 --json
awk "BEGIN { exit !($("$TOOL" get out detectable.difference) > 1.1 * $eighty) }" || fail "--power of a file"
run stats same.csv --power 0.9
expect_out "would have been seen in 90 % of such experiments"
# It is seen by the test that judges: a few values that scatter widely beside many that do not.
awk 'BEGIN { print "a,b"; for (i = 0; i < 100; i++) print 50 + (i % 3 - 1) "," (i < 3 ? 44 + 6 * i : "") }' >few.csv
run stats few.csv a b --json
awk "BEGIN { d = $("$TOOL" get out detectable.difference); exit !(d > 15 && d < 25) }" || fail "what Welch's test would have seen"
run stats few.csv a b --json --equal-var
awk "BEGIN { d = $("$TOOL" get out detectable.difference); exit !(d > 1.5 && d < 3) }" || fail "what Student's test would have seen"
run stats same.csv --paired --margin 5% --json
is "shown of pairs" "$("$TOOL" get out equivalence.shown)" true

# What a table holds and is not read is said.
printf 'err,b,c\nfailed,5,6\n2,7,8\n3,4,5\n' >drop.csv
run stats drop.csv
expect 2 "drop.csv:2: 'failed' in column 'err' is not a finite number, though others are meant to be"
run stats drop.csv b c
expect 0
printf 'x,y\n"1,234.5",6\n"2,000.1",8\n' >comma.csv
run stats comma.csv
expect 2 "comma.csv:2: '1,234.5' in column 'x'"
printf '{"a":{"loss":1},"b":{"loss":5}}\n{"a":{"loss":2},"b":{"loss":6}}\n' >both.jsonl
run stats both.jsonl loss
expect 2 "both.jsonl has both 'a.loss' and 'b.loss': write which one 'loss' is"
run stats both.jsonl b.loss
expect 0

# What would be ignored is refused.
run stats times.csv old --at new
expect 2 "--at names the places of a series: give it with --trend"
run stats times.csv --sides 1
expect 2 "--sides is for a plan"
run stats times.csv --time --lower-is-better
expect 2 "give one of --time, --lower-is-better and --higher-is-better"
run stats times.csv old --trend --paired
expect 2 "give one of --paired, --by and --trend"
run stats --share 5/6 --margin 5%
expect 2 "read no file"
run stats --share 5/6 --power 0.9
expect 2 "--power is for a plan or a file"
printf 'x g\n1 a\n2 a\n3 a\n2 b\n3 b\n5 b\n7 c\n8 c\n9 c\n' >three.txt
for option in --equal-var '--margin 5%' --time --lower-is-better '--resamples 200' '--power 0.9'; do
    run stats three.txt x --by g $option
    expect 2 "three.txt: ${option%% *}" "says nothing of groups; leave it out"
done
run stats same.csv --paired --equal-var
expect 2 "--equal-var says nothing of pairs"
run stats same.csv a --time
expect 2 "--time says nothing of one column"
run stats same.csv a --trend --resamples 200
expect 2 "says nothing of a series"
run stats same.csv --resamples 200
expect 2 "--resamples without --json says nothing of two columns"
run stats same.csv --resamples 200 --json
expect 0

# Of pairs rows are missing, not cells; pandas' other form of a table is read.
printf 'a\tb\n1\t\n\t2\n3\t4\n5\t7\n6\t9\n' >gaps.tsv
run stats gaps.tsv --paired
expect_out "2 rows without both numbers left out."
grep -q "cells" out && fail "rows are called cells"
echo '{"columns":["a","b"],"index":[0,1,2],"data":[[1,2],[3,4],[5,7]]}' >split.json
run stats split.json
expect 0
expect_out "b is 1.333 higher than a" "n = 3 and 3"
echo '{"columns":["a","b"],"index":[0],"data":[[1,2],[3]]}' >split.json
run stats split.json
expect 2 'split.json:1: row 2 of "data" is no array of as many cells as "columns" has names'
echo '{"columns":["a","a"],"data":[[1,2]]}' >split.json
run stats split.json
expect 2 "split.json: two columns are called 'a'"
run stats --share 99999999999999999999/999999999999999999999
expect 2 "--share takes successes/trials"

printf 'model score\na 1\na 2\na 3\nb 7\nb 8\nb 9\nc 7\nc 8.5\nc 9\n' >long.txt
run stats long.txt score --by model
expect 0
expect_out "The groups differ" "a - b" "Kruskal-Wallis" "large" "Cliff"
run stats long.txt score --by model --json
is "Cliff's delta of a pair" "$("$TOOL" get out pairwise_welch.0.cliffs_delta)" -1
# R: 6 / 1 * (1 - 3 / (4 * 4 - 1)), exactly gamma(2) / (sqrt(2) gamma(1.5))
case $("$TOOL" get out pairwise_welch.0.hedges_g) in -4.787*) ;; *) fail "Hedges' g" ;; esac
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

# Missing cells keep their places in a series.
awk 'BEGIN { print "row,y"; for (i = 0; i < 110; i++) print i "," (i < 10 || i >= 100 ? i : "") }' >holes.csv
run stats holes.csv y --trend
expect 0
expect_out "1 per row, 95 % interval 1 to 1, n = 20." "  at 100 " "90 cells without a number left out" \
    "Note: the places (row) are not equally far apart"
run stats holes.csv y --trend --json
is "the slope" "$("$TOOL" get out ols.slope)" 1
is "where" "$("$TOOL" get out changes.points.1.at)" 100
is "the last ten" "$("$TOOL" get out last10.ols.slope)" 1
case $("$TOOL" get out notes.0) in "the places (row) are not equally"*) ;; *) fail "no note in JSON" ;; esac
run stats turn.txt --trend --json
grep -q '"notes"' out && fail "a note on equal steps"
# Equal but for what rounding leaves.
awk 'BEGIN { print "t,u,v"; for (i = 0; i < 20; i++) printf "%.1f,%.3f,%d\n", 1.7e9 + i / 10, i / 3, i % 7 }' >rounded.csv
for at in t u; do
    run stats rounded.csv v --trend --at $at
    expect 0
    grep -q "equally far" out && fail "a note on steps that are equal but for rounding: $at"
done

# Columns without values are left out where none is named, and a first line of words and numbers is told.
printf 'a,b,\n1,2,\n3,4,\n5,7,\n' >trail.csv
run stats trail.csv
expect 0
expect_out "b is 1.333 higher than a" "Note: no values, left out: 'column 3'."
run stats trail.csv 3
expect 2 "trail.csv: column 'column 3' holds no numbers"
printf 'ana,5\nbob,7\n' >unnamed.csv
run stats unnamed.csv
expect_out "n = 2" "Note: the first line has words and numbers: it was read as values"
printf 'Country Name,Code,1960,1961,1962\nAruba,ABW,4.8,4.6,4.5\nChad,TCD,7,8,9.5\n' >wide.csv
run stats wide.csv 1961
expect_out "1961: mean 6.3" "n = 2." "Note: the first line has words and numbers: it was read as names"
printf 'step,note,loss\n1,ok,0.5\n2,ok,0.25\n3,"run' >cut.csv
run stats cut.csv loss
expect 0
expect_out "n = 2" "Note: line 4, the last, is cut off within quotes: it was left out."
printf 'x y\n1 5 6\n2 7 8\n' >rows.txt
run stats rows.txt
expect 0
expect_out "y is 17 % higher than x" "Note: the line of names has one less than the rows"

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
