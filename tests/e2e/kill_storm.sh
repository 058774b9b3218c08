# TEMPER_KILLS times (default 5): kill -9 at a random moment, resume; at the end everything is as if nothing
# had happened. The moments come from a seed, TEMPER_SEED, and are printed.
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/e2e/runs.sh"
kills=${TEMPER_KILLS:-5}
seed=${TEMPER_SEED:-1}
STEPS=60 EVERY=2
write_recipe tiny.yaml

begin=$(date +%s%N) # no verdict: until when moments are drawn
train_to_end whole || fail "the uninterrupted run failed"
whole_ms=$((($(date +%s%N) - begin) / 1000000)) # no verdict: the same
echo "uninterrupted: $whole_ms ms"

# Runs are started again and again until the kills are used up; a run that ends in peace is compared.
done=0
finished=0
storm=0
dir=storm-$storm
while [ "$done" -lt "$kills" ]; do
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    delay_ms=$(((seed / 65536) % (whole_ms + 1)))
    start "$dir" "$([ -d "$dir" ] && echo --resume)"
    # no verdict: a random moment
    sleep "$((delay_ms / 1000)).$(printf '%03d' $((delay_ms % 1000)))"
    kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    status=$?
    if [ $status = 137 ]; then
        done=$((done + 1))
    else
        [ $status = 0 ] || fail "$dir: a resumed run ended with $status"
        whole_ms=$((whole_ms * 3 / 4 + 50)) # the moments were too late
        same_end whole "$dir"
        finished=$((finished + 1))
        storm=$((storm + 1))
        dir=storm-$storm
    fi
    [ "$failures" = 0 ] || break
done
start "$dir" "$([ -d "$dir" ] && echo --resume)"
wait "$pid" || fail "$dir: the last resumed run failed"
same_end whole "$dir"
echo "$done kills, $((finished + 1)) runs finished and compared"
finish
