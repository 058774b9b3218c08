# What runs recorded, as text and JSON; which run is meant; what is damaged is named.
. "$SOURCE/tests/cli/lib.sh"
runs=$SOURCE/tests/data/runs

run metrics "$runs/tb-hparams" --json
expect 0
is "three figures" "$(cut -c 1-80 out)" '{"loss":[[0,1763600000,1],[1,1763600001,0.5],[2,1763600002,0.3333333432674408],['

run metrics "$runs/tb-hparams"
expect 0 "further runs below" "hp0"
expect_out "TensorBoard event files" "loss" "0.125"

run metrics "$runs/tb-torch" train/loss 'odd/*' --json
expect 0
expect_out '"odd/values"' '"NaN"' '"-Infinity"'
grep -q hist out && fail "a tag that was not asked for"

run metrics "$runs/tb-torch" train/los --json
expect 2 "has no metric 'train/los'; it has:" "train/loss"
run metrics "$runs/tb-torch" train/los
expect 2 "has no metric 'train/los'"

run metrics "$runs/tb-badcrc-data" --json
expect 0 "the record at byte 416 has a wrong checksum"
run metrics "$runs/tb-truncated"
expect 0 "the last record, at byte 1004, is incomplete"

run metrics "$runs/tb-restart-purge" loss --points latest
expect 0
expect_out "26"
run metrics "$runs/tb-restart-purge" --points nearest
expect 2 "--points is native, latest, all, accumulator or fast"

run metrics "$runs/trackio-manual/manual.db"
expect 2 "holds 2 runs" "run-a, run-b"
run metrics "$runs/trackio-manual/manual.db#run-a" late --json
expect 0
is "a point" "$(cat out)" '{"late":[[3,1795345890.110441,-1]]}'
run metrics "$runs/trackio-manual/manual.db" --run run-b late --json
expect 0
run metrics "$runs/trackio-manual/manual.db#run-a" 'system:*' --json
expect 0
expect_out '"system:cpu_percent":[[null,1795345890.100365,12.5]]'

run metrics "$runs/nemo-rl-grpo"
expect 0
expect_out "NeMo RL" "train_data/rewards" "validation/accuracy"
run metrics "$runs/trl-sft-nan-filtered/trainer_state.json" loss --json
expect 0 "the loss was NaN there"
is "a step without time" "$(cut -c 1-32 out)" '{"loss":[[1,null,5.5917148590087'

run metrics "$runs"
expect 2 "name one of them"
run metrics nowhere
expect 2 "nowhere"
run metrics
expect 2

# What cannot be told from a table is said.
printf '\357\273\277{"step":1,"loss":2}\n{"step":2,"loss":1}\n' >marked.jsonl
run metrics marked.jsonl --json
expect 0
is "lines behind a byte order mark" "$(cat out)" '{"loss":[[1,null,2],[2,null,1]]}'
mkdir listed && printf '[{"step":1,"loss":2},\n{"step":2,"loss":1}]\n' >listed/metrics.jsonl
run metrics listed --json
expect 0
is "a list in a folder" "$(cat out)" '{"loss":[[1,null,2],[2,null,1]]}'
printf 'step,loss,loss\n1,2,3\n' >twice.csv
run metrics twice.csv
expect 0 "several columns are called 'loss', only the last of them is read"
printf 'step;loss\n1;2,5\n' >comma.csv
run metrics comma.csv
expect 0 "figures with a comma" "column 'loss'"
printf 'step;loss\n1;none\n' >texts.csv
run metrics texts.csv
expect 0 "no column but those of steps and times has numbers"
printf 'step;loss;n;note\n1;0,5;9;1,5\n2;0,4;10;a, b\n' >commas.csv
run metrics commas.csv
expect 0 "figures with a comma" "is needed): column 'loss'"
printf 'step,loss,big,n\n1,0.5,999,1\n2,0.4,"1,234",2\n' >commas.csv
run metrics commas.csv
expect 0 "column 'big'"

# Which mark separates is told outside of quotes; a last line without its end is taken, and said.
printf 'step;"loss, train, mean";"loss, val, mean"\n0;1.5;2\n' >quoted.csv
run metrics quoted.csv --json
expect 0
is "columns in quotes" "$(cat out)" '{"loss, train, mean":[[0,null,1.5]],"loss, val, mean":[[0,null,2]]}'
printf 'step\t"a ""b"", c"\n0\t1.5' >quoted.tsv
run metrics quoted.tsv --json
expect 0 "the last line has no newline"
is "tabs" "$(cat out)" '{"a \"b\", c":[[0,null,1.5]]}'

# What is no number as CSV has them is no figure.
printf 'step,a,b,c,d\n1,0x10,nan(ind),-nan, 5\t\n2,1,2,3,4\n' >numbers.csv
run metrics numbers.csv --json
expect 0
is "numbers" "$(cat out)" '{"c":[[1,null,"NaN"],[2,null,3]],"d":[[1,null,5],[2,null,4]],"a":[[2,null,1]],"b":[[2,null,2]]}'

# Names that differ behind a NUL, or in bytes that are no UTF-8, are two.
printf 'step,a\377,a\376\n1,2,3\n' >latin1.csv
run metrics latin1.csv --json
expect 0
is "names in Latin-1" "$(cat out)" '{"a\\xff":[[1,null,2]],"a\\xfe":[[1,null,3]]}'
printf '{"step":1,"x\\u0000y":3,"x\\u0000z":4}\n' >nul.jsonl
run metrics nul.jsonl --json
expect 0
is "names with a NUL" "$(cat out)" '{"x␀y":[[1,null,3]],"x␀z":[[1,null,4]]}'

# Several tables in a folder: none is taken for all.
mkdir -p tables/sub
printf 'step,loss\n1,4\n' | tee tables/sub/c.csv >tables/sub/d.csv
run metrics tables/sub
expect 2 "'tables/sub' holds several tables; name one of them: c.csv, d.csv"
printf '{"step":1,"loss":2}\n' >tables/sub/e.jsonl
run metrics tables/sub
expect 0 "only e.jsonl is read; name one of the other tables to read it: c.csv, d.csv"
run metrics tables
expect 0
mkdir tables/sub/below
mv tables/sub/e.jsonl tables/sub/below
run metrics tables/sub
expect 0 "only tables/sub/below is read; name one of the other tables to read it: c.csv, d.csv"
run metrics tables/sub/c.csv --json
expect 0
is "a table by its name" "$(cat out)" '{"loss":[[1,null,4]]}'

# A list of names stays short, and a count that was cut says so.
printf '{"step":1,"loss":2,"%s":1}\n' "$(printf '%5000s' | tr ' ' x)" >long.jsonl
run metrics long.jsonl nope
expect 2 "xxx..."
[ "$(wc -c <err)" -lt 400 ] || fail "the list of names is long"
i=0
while [ $((i += 1)) -le 201 ]; do
    mkdir -p "sweep/r$i" && cp marked.jsonl "sweep/r$i/metrics.jsonl"
done
run metrics sweep
expect 2 "holds 200 or more runs" "(200 or more)"

# one's own
write_recipe recipe.yaml
run train --quiet recipe.yaml run.dir=mine
expect 0
run metrics mine
expect 0
expect_out "Temper's run folder" "train/loss" "validation/val_loss"
finish
