# Runs watched as they go: lines, a screen that ends by q and fits, a run of another program that is
# still being written; and figures as they come.  Nothing is written into a run.
. "$SOURCE/tests/cli/lib.sh"
runs=$SOURCE/tests/data/runs

mkdir foreign
printf '{"step":1,"loss":2.5,"reward":0.1}\n' >foreign/log.jsonl
cp foreign/log.jsonl before
COLUMNS=80 run watch --once foreign/log.jsonl "$runs/nemo-rl-grpo" "$runs/trackio-manual/manual.db#run-a"
expect 0
expect_out "foreign/log.jsonl  step 1" "loss            2.5000" "nemo-rl-grpo  step 12" "reward          0.5519"
echo '{"step":1,"loss":2,"validation-default/preference_loss":0.25,"validation-default/loss":2.5}' >preference.jsonl
run watch --once preference.jsonl
expect_out "validation      2.5000"
cmp foreign/log.jsonl before || fail "the run was written to"
is "files" "$(ls foreign)" "log.jsonl"
grep -q "$(printf '\033')" out && fail "styles where no terminal is"

# It goes on, and is followed, as lines.
"$TEMPER" watch --interval 0.05 foreign/log.jsonl >lines 2>err &
pid=$!
wait_until 'grep -q "step 1 " lines'
printf '{"step":2,"loss":2.25,"reward":0.2}\n{"step":3,"lo' >>foreign/log.jsonl
wait_until 'grep -q "step 2 .*loss 2.2500  reward 0.2000" lines'
printf 'ss":"NaN"}\n' >>foreign/log.jsonl
wait_until 'grep -q "alarm at step 3: not finite: loss is NaN" lines'
kill -TERM "$pid"
wait "$pid"
is "the end by a signal" $? 0

"$TEMPER" metrics foreign/log.jsonl loss --follow >figures 2>err &
pid=$!
wait_until 'grep -qx "loss 3 NaN" figures'
printf '{"step":4,"loss":1.5}\n' >>foreign/log.jsonl
wait_until 'grep -qx "loss 4 1.5" figures'
kill -TERM "$pid"
wait "$pid"
is "the end by a signal" $? 0
is "figures" "$(head -n 2 figures | tr '\n' ,)" "loss 1 2.5,loss 2 2.25,"

# A table that is written anew where it lies, with a new column in front: what is new is said, once.
printf 'step,loss\n1,4\n2,2\n3,77' >table.csv
"$TEMPER" metrics table.csv --follow >figures 2>err &
pid=$!
wait_until 'grep -qx "loss 2 2" figures'
printf '133\n' >>table.csv
wait_until 'grep -qx "loss 3 77133" figures'
printf 'acc,step,loss\n,1,4\n,2,2\n,3,77133\n0.5,3,\n' >table.csv
wait_until 'grep -qx "acc 3 0.5" figures'
printf '0.25,4,1\n' >>table.csv
wait_until 'grep -qx "loss 4 1" figures'
kill -TERM "$pid"
wait "$pid"
is "figures of the table" "$(sort figures | tr '\n' ,)" "acc 3 0.5,acc 4 0.25,loss 1 4,loss 2 2,loss 3 77133,loss 4 1,"

# A run of Temper says when it is over.
write_recipe tiny.yaml
run train --quiet tiny.yaml run.dir=mine
run watch mine
expect 0
expect_out "mine  step 6/6, 100 %, finished"
run watch nowhere
expect 2 "nowhere"

command -v script >/dev/null && script -qec true probe >/dev/null 2>&1 </dev/null
[ -e probe ] || finish
mkfifo keys
: >screen
script -qefc "stty cols 60 rows 12; '$TEMPER' watch --interval 0.05 foreign/log.jsonl" screen <keys >/dev/null 2>&1 &
pid=$!
exec 3>keys
wait_until 'grep -qF "step 4" screen' && printf q >&3
wait "$pid"
is "the end by q" $? 0
exec 3>&-
finish
