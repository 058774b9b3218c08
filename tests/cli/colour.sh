# Colour says what a verdict is, and can be switched off: --color, NO_COLOR, a pipe.
. "$SOURCE/tests/cli/lib.sh"
escape=$(printf '\033')
data=$SOURCE/tests/data/trace_reports
a=$data/kineto-rank-0.json
b=$data/kineto-rank-1.json

run trace compare "$a" "$b"
grep -q "$escape" out && fail "colour in a file"
cp out plain
run trace compare --color=always "$a" "$b"
grep -q "$escape\[33mnot shown *$escape\[0m *idle" out || fail "a verdict has no colour"
grep -q "$escape\[[0-9;]*msame" out && fail "what is the same stands out"
sed "s/$escape\[[0-9;]*m//g" out >bare
cmp -s bare plain || fail "colour changes the text"
NO_COLOR=1 run trace compare --color always "$a" "$b"
grep -q "$escape\[33m" out || fail "--color=always does not go before NO_COLOR"
run trace compare --color=always --json "$a" "$b"
grep -q "$escape" out && fail "colour in JSON"
run trace compare --color=always --csv "$a" "$b"
grep -q "$escape" out && fail "colour in CSV"

for i in 1 2; do
    awk -v seed=$i 'BEGIN {
        srand(seed)
        for (i = 0; i < 60; i++)
            printf "{\"step\": %d, \"train/loss\": %.6f, \"mfu\": 0.4}\n", i, seed + 2 * exp(-0.04 * i) + 0.02 * rand() }' >$i.jsonl
done
run compare --color=always 1.jsonl 2.jsonl
grep -q "$escape\[1;31mworse *$escape\[0m" out || fail "worse is not red"
run compare --color=always 2.jsonl 1.jsonl
grep -q "$escape\[32mbetter *$escape\[0m" out || fail "better is not green"
run compare --color=never 2.jsonl 1.jsonl
grep -q "$escape" out && fail "colour in spite of --color=never"
run plan --color=sometimes x
expect 2 "--color is auto, always or never, not 'sometimes'"

if command -v script >/dev/null && script -qec true probe >/dev/null 2>&1 </dev/null && [ -e probe ]; then
    script -qec "stty cols 80 rows 20; '$TEMPER' trace compare '$a' '$b'" typescript >/dev/null 2>&1 </dev/null
    grep -q "$escape\[33mnot shown" typescript || fail "no colour on a terminal"
    script -qec "stty cols 80 rows 20; NO_COLOR=1 '$TEMPER' trace compare '$a' '$b'" typescript >/dev/null 2>&1 </dev/null
    grep -q "$escape\[33m" typescript && fail "colour in spite of NO_COLOR"
    # Messages keep to the terminal as tables do.
    script -qec "stty cols 60 rows 20; '$TEMPER' train $(printf 'no-such-recipe-%.0s' 1 2 3)" typescript >/dev/null 2>&1 </dev/null
    sed 's/\r//g' typescript | grep '^temper\|^  ' | grep -v '^Script' | LC_ALL=C awk 'length($0) > 60 && / .* /' >wide
    [ ! -s wide ] || { cp wide out && fail "a message is wider than the terminal"; }
fi
finish
