# Alarms replayed over runs of anybody, and heard while a run goes: what they do, and what is refused.
. "$SOURCE/tests/cli/lib.sh"

# made NAME FORMULA: 300 steps of a loss with some noise that goes as FORMULA says from step 201 on
made() {
    awk -v OFS=, 'BEGIN { srand(7); print "step,train/loss,memory/resident_bytes,performance/tokens_per_sec"
        for (i = 1; i <= 300; i++) { ill = i > 200 ? i - 200 : 0
            loss = 1 + exp(-i / 50) + 0.02 * (rand() - 0.5); bytes = 1e9 + 1e6 * rand(); rate = 900 + 60 * rand()
            '"$2"'
            print i, loss, bytes, rate } }' >"$1.csv"
}

# named NAME FIRST LAST: the alarm is the only one, at a step between the two
named() {
    [ "$status" = 1 ] || fail "$last: exit status $status, not 1"
    step=$("$TOOL" get out alarms.0.step)
    is "alarm of $last" "$("$TOOL" get out alarms.0.name)" "$1"
    [ "$step" -ge "$2" ] && [ "$step" -le "$3" ] || fail "$last: $1 at step $step"
}

made healthy ''
run alarms healthy.csv
expect 0
expect_out "0 alarms" "entropy collapsed: the run has no entropy"
made diverging 'if (ill) loss *= exp(ill / 20)'
run alarms diverging.csv --json
named diverging 201 220
made leak 'bytes += 5e6 * ill'
run alarms leak.csv --json
named leak 230 300
made slow 'rate *= 1 - (ill < 50 ? ill : 50) / 100'
run alarms slow.csv --json
named "slowing down" 201 245

run alarms healthy.csv --rule 'train/loss below 1.3 for 5 steps' --json
named "train/loss below 1.3 for 5 steps" 50 90
is "its text" "$("$TOOL" get out alarms.0.tag)" "train/loss"
printf -- '- when: loss above 1.9\n  name: high\n' >rules.yaml
run alarms healthy.csv --rules rules.yaml --json
named high 1 1

run alarms healthy.csv --rule 'train/loss rises by 3 sgima'
expect 2 "'train/loss rises by 3 sgima', column 23: 'sgima' is not expected here"
printf -- '- loss flat\n- when: loss flta over\n' >rules.yaml
run alarms healthy.csv --rules rules.yaml
expect 2 "rules.yaml:2: 'loss flta over', column 1"
run alarms nowhere
expect 2 "nowhere"

# while a run goes
write_recipe tiny.yaml
cat >>tiny.yaml <<'END'
monitor:
  alarms:
  - when: train/lr above 0.001
    name: rate
    do: [say, mark, {run: [sh, -c, 'echo "$TEMPER_ALARM at $TEMPER_ALARM_STEP: $TEMPER_ALARM_TEXT"']}]
  - {when: train/epoch above 0.1, name: half, do: {lower_rate: 0.5}}
  - {when: train/epoch above 0.3, name: enough, do: stop}
END
run train --quiet tiny.yaml run.dir=live
expect 1 "warning: alarm: step 1: rate: train/lr 0.0100, above 0.0010" "stopped at step 4 by an alarm: enough"
is "what the command printed" "$(cat live/alarms.log)" "rate at 1: train/lr 0.0100, above 0.0010"
is "marks" "$(wc -l <live/alarms.jsonl)" 1
[ -d live/checkpoints/step-4 ] || fail "no checkpoint where the alarm stopped the run"
run metrics live train/lr --json
is "rates" "$(sed 's/\[[0-9]*,[0-9.]*,//g' out)" '{"train/lr":[0.01],0.01],0.005],0.005]]}'
# The rate stays lowered, and what was said is not said again.
run train --quiet tiny.yaml run.dir=live --resume
expect 0
run metrics live train/lr --json
is "rates" "$(sed 's/\[[0-9]*,[0-9.]*,//g' out)" '{"train/lr":[0.01],0.01],0.005],0.005],0.005],0.005]]}'

# An alarm that speaks at a step that is saved: the checkpoint has the lower rate.
half="monitor.alarms=[{when: train/epoch above 0.1, name: half, do: [mark, {lower_rate: 0.5}, checkpoint, stop]}]"
run train --quiet tiny.yaml run.dir=saved checkpointing.save_period=1 "$half"
expect 1 "stopped at step 2 by an alarm: half"
run train --quiet tiny.yaml run.dir=saved checkpointing.save_period=1 "$half" --resume
expect 0
run metrics saved train/lr --json
is "rates" "$(sed 's/\[[0-9]*,[0-9.]*,//g' out)" '{"train/lr":[0.01],0.01],0.005],0.005],0.005],0.005]]}'
is "marks" "$(wc -l <saved/alarms.jsonl)" 1

# A rule that comes with --resume says what is true; what was said before it was there is not said again.
some='{when: train/lr above 0.001, name: rate, do: mark}'
run train --quiet tiny.yaml run.dir=joined sft.max_num_steps=3 "monitor.alarms=[$some]"
expect 0
run train --quiet tiny.yaml run.dir=joined --resume \
    "monitor.alarms=[$some, {when: train/loss above 0, name: new, do: [mark, stop]}]"
expect 1 "stopped at step 4 by an alarm: new"
is "marks" "$(sed 's/.*"step":\([0-9]*\),"name":"\([a-z]*\)".*/\1 \2/' joined/alarms.jsonl | tr '\n' ' ')" "1 rate 4 new "

# A command has its time behind the end of the run too; what is not saved cannot go on.
run train --quiet tiny.yaml run.dir=slow checkpointing.enabled=false \
    'monitor.alarms=[{when: train/loss above 0, name: slow, do: [stop, {run: [sh, -c, "sleep 6; echo done"]}]}]' # no verdict: it is longer than a moment
expect 1 "stopped at step 1 by an alarm: slow" "nothing is saved (checkpointing.enabled)"
is "what the command printed" "$(cat slow/alarms.log)" "done"

# A pipe that nobody reads keeps nothing, and holds nobody up.
mkdir piped && mkfifo piped/alarms.jsonl piped/alarms.log
timeout 500 "$TEMPER" train --quiet tiny.yaml run.dir=piped >out 2>err </dev/null
is "status of a run whose records of alarms are pipes" $? 1
grep -q "cannot write 'piped/alarms.jsonl'" err || fail "nothing about a pipe that nobody reads"

run train --quiet tiny.yaml run.dir=refused 'monitor.alarms=["train/los above 3"]'
expect 2 "monitor.alarms" "no metric is called 'train/los'; did you mean 'train/loss'?"
sed -i 's/do: stop/do: panic/' tiny.yaml
run train --quiet tiny.yaml run.dir=refused
expect 2 "tiny.yaml:" "monitor.alarms.2.do: 'panic' is nothing that an alarm does"
[ ! -e refused ] || fail "a run that was refused left a folder"

# A window in time says nothing of a run without times.
seq -f '%g,1' 60 | sed '1i step,loss' >untimed.csv
run alarms untimed.csv --rule 'loss above 0.5 for 5 min' --rule 'loss flat over 1 h'
expect 0
expect_out "not judged: loss above 0.5 for 5 min: the run has no times" "of 2 rules 0 stayed silent, 2 could not be judged"
finish
