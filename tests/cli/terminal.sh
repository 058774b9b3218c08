# On a terminal: a block redrawn in place, no wider than the terminal; no colour with NO_COLOR.
. "$SOURCE/tests/cli/lib.sh"
command -v script >/dev/null || { echo "script(1) is not there"; exit 77; }
script -qec true probe >/dev/null 2>&1 </dev/null
[ -e probe ] || { echo "there are no pseudo-terminals here"; exit 77; }
write_recipe tiny.yaml
escape=$(printf '\033')

on_terminal() {
    script -qec "stty cols 60 rows 20; $1" typescript >/dev/null 2>&1 </dev/null
}

on_terminal "'$TEMPER' train tiny.yaml run.name=block"
grep -q "step 6/6" typescript || fail "the block does not reach the last step"
grep -q "$escape\[A" typescript || fail "the block is not redrawn in place"
grep -q "$escape\[1m" typescript || fail "no emphasis on a terminal with colour"
grep -q "step 6/6.* ETA [0-9]" typescript || fail "the time to go has no room in 60 columns"
# Lines of the block end with "erase to the end of the line"; columns, not bytes.
grep "$escape\[K" typescript | sed "s/$escape\[[0-9]*[A-Za-z]//g; s/\r//g" |
    LC_ALL=C.UTF-8 grep -E '.{61}' && fail "a line of the block is wider than the terminal"

on_terminal "NO_COLOR=1 '$TEMPER' train tiny.yaml run.name=plain"
grep -q "$escape\[1m" typescript && fail "emphasis in spite of NO_COLOR"
grep -q "$escape\[A" typescript || fail "NO_COLOR takes the block away"

on_terminal "TERM=dumb '$TEMPER' train tiny.yaml run.name=dumb"
grep -q "$escape" typescript && fail "escape sequences on a dumb terminal"
grep -q "^step 6/6" typescript || fail "no plain lines on a dumb terminal"

# What takes long says so: the writer of the pipe waits for it.
mkfifo slow slow-run slow-judged slow-numbers slow-log slow-command
: >typescript
: >typescript-run
: >typescript-judged
: >typescript-numbers
(script -fqec "stty cols 60 rows 20; '$TEMPER' trace slow kernels" typescript >/dev/null 2>&1 </dev/null) &
pid=$!
(script -fqec "stty cols 60 rows 20; '$TEMPER' metrics slow-run" typescript-run >/dev/null 2>&1 </dev/null) &
other=$!
(script -fqec "stty cols 60 rows 20; '$TEMPER' analyze slow-judged" typescript-judged >/dev/null 2>&1 </dev/null) &
judged=$!
(script -fqec "stty cols 60 rows 20; '$TEMPER' stats slow-numbers" typescript-numbers >/dev/null 2>&1 </dev/null) &
numbers=$!
# Where lines stay there is one after ten seconds: of what reads, and of what measures.
"$TEMPER" metrics slow-log >log-out 2>log-err </dev/null &
log=$!
"$TEMPER" bench 'cat slow-command' --vs 'cat slow-command' --no-history >bench-out 2>bench-err </dev/null &
bench=$!
exec 4>slow 5>slow-run 6>slow-judged 7>slow-numbers 8>slow-log
wait_until "grep -q 'temper trace: reading and adding up  [0-9.]* s' typescript"
wait_until "grep -q 'temper metrics: reading  [0-9.]* s' typescript-run"
wait_until "grep -q 'temper: reading the runs  [0-9.]* s' typescript-judged"
wait_until "grep -q 'temper stats: reading  [0-9.]* s' typescript-numbers"
wait_until "grep -qx 'temper metrics: reading  [0-9.]* s' log-err"
pid=$bench
wait_until "grep -qx '.1/1. command  setting up' bench-err"
kill -TERM $bench
wait $bench
echo '{"step": 1, "loss": 3}' >&8
exec 8>&-
wait $log
grep -q "^loss  *1 " log-out || fail "no metrics behind the line in a file"
grep -q "$escape" log-err bench-err && fail "escape sequences in a file"
echo '{"traceEvents":[{"ph":"X","ts":1,"dur":1,"pid":1,"tid":1,"name":"a","cat":"kernel"}]}' >&4
echo '{"step": 1, "loss": 3}' >&5
echo '{"step": 1, "loss": 3}' >&6
printf '1\n2\n3\n' >&7
exec 4>&- 5>&- 6>&- 7>&-
wait $pid
wait $other
wait $judged
wait $numbers
grep -q "compute *a" typescript || fail "no kernels behind the line that waits"
grep -q "^loss  *1 " typescript-run || fail "no metrics behind the line that waits"
grep -q "8 dimensions" typescript-judged || fail "no judgement behind the line that waits"
grep -q "mean 2," typescript-numbers || fail "no statistics behind the line that waits"

# What measures says from the beginning on what it is at, and takes the line back.
printf 'sleep 0.15 # no verdict: longer than a line stays at least\n' >pause.sh
on_terminal "'$TEMPER' bench 'sh pause.sh' --vs 'sh pause.sh' --rounds 6 --no-history"
grep -q '.1/1. command  round [1-6]/6, [0-9]* s, about [0-9]' typescript || fail "bench does not say how far it is"
on_terminal "'$TEMPER' profile tiny.yaml --warm-up 1 --steps 2 --record 1"
grep -q 'step 2/4, timing  33%  .* to go' typescript || fail "profile does not say how far it is"
on_terminal "'$TEMPER' ablate tiny.yaml --levers cse --rounds 1 --pairs 0 --steps 2 --warm-up 0"
grep -q 'a first run, which is not counted, run 1 of 1: ' typescript || fail "ablate does not say what it runs"
grep -q 'levers, round 1 of 1, run [12] of 2: .*, at most [0-9]' typescript || fail "ablate does not say how many"
on_terminal "'$TEMPER' tune tiny.yaml --budget 1s --steps 2 --warm-up 0"
grep -q 'a first run, which is not counted, run 1 of 1: ' typescript || fail "tune does not say what it runs"

run train tiny.yaml run.name=file
grep -q "$escape" out && fail "escape sequences in a file"
run train tiny.yaml run.name=asked --progress=block
expect 0
grep -q "$escape\[A" out || fail "--progress=block is not obeyed"
finish
