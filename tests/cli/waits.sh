# tools/check-waits finds what makes a test depend on the machine, and leaves in peace what waits in a loop or says why not.
. "$SOURCE/tests/cli/lib.sh"
mkdir tree
refuses() { # FILE LINE WHAT
    printf '%s\n' "$2" >"tree/$1"
    said=$("$SOURCE/tools/check-waits" tree) && fail "accepts: $2"
    is "what is said of '$2'" "$said" "check-waits: $1:1: $3; wait for an event, or say 'no verdict: why'"
    rm "tree/$1"
}
# no verdict: words
nap=sleep now='date +%''s' few='timeout 9''9' memory=/dev/'shm' ranks='pgrep''   -P 7'
refuses a.sh "$nap 1" sleeps
refuses a.sh "began=\$($now%N)" "reads the clock"
refuses a.sh "$few cat fifo" "gives less than 100 s"
refuses a.sh "kill \$($ranks | sed -n 2p)" "takes processes in the order of their numbers"
refuses a.sh "touch $memory/x" "writes where other tests do"
refuses a.c "    u$nap(1000);" sleeps
printf '%s\n' "until [ -e x ]; do $nap 0.1; done" "# no verdict: a random moment" "$nap 1" "timeout 500 cat fifo" >tree/a.sh
said=$("$SOURCE/tools/check-waits" tree) || fail "refuses a sound tree"
is "what is said of a sound tree" "$said" ""
finish
