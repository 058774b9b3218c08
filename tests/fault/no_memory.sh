# Memory that runs out: whichever allocation fails, a command ends with exit status 5 and a
# sentence, or does without; never with a signal, and never without an end.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml
printf '1\n2\n4\n3\n5\n' >a.txt
"$TEMPER" train tiny.yaml run.name=made sft.max_num_steps=2 >/dev/null 2>&1 || fail "no model"
preload=$BUILD/tests/libno_memory.so

# within ALLOCATION COMMAND...: with that allocation failing; 0 only counts.
within() {
    allocation=$1
    shift
    rm -rf runs/short
    timeout 500 env TEMPER_TEST_ALLOCATION="$allocation" LD_PRELOAD="$preload" \
        TEMPER_TEST_ALLOCATIONS="$work/allocations" "$TEMPER" "$@" >out 2>err </dev/null
    status=$?
}

# every NAME POINTS COMMAND...: as many points, spread over its allocations, the first ones close.
every() {
    name=$1 points=$2
    shift 2
    within 0 "$@"
    [ "$status" = 0 ] || fail "$name: exit status $status where no allocation fails"
    total=$(cat allocations)
    [ "$total" -gt 20 ] || fail "$name: $total allocations were counted"
    refused=0
    for i in $(seq 1 "$points"); do
        n=$((i <= points / 4 ? i * 2 : total * i / points))
        within "$n" "$@"
        case $status in
        0) ;;
        5) grep -qi "memory" err && refused=$((refused + 1)) || fail "$name: allocation $n of $total: status 5 without a word of memory" ;;
        *) fail "$name: allocation $n of $total: exit status $status" ;;
        esac
    done
    [ "$refused" -gt 0 ] || fail "$name: none of $points allocations mattered"
}

every train "${POINTS:-16}" train tiny.yaml run.name=short sft.max_num_steps=2
every generate "${POINTS:-16}" generate runs/made -m 2 "1+1="
every trace "${POINTS:-16}" trace "$SOURCE/tests/data/traces/kineto_2025.json.gz"
every stats "${POINTS:-12}" stats a.txt
every analyze "${POINTS:-12}" analyze runs/made
every plan "${POINTS:-12}" plan tiny.yaml

# A comparison without the memory for a test has no verdict: it is none that is not shown.
results=$SOURCE/tests/data/bench/hyperfine.json
within 0 bench compare "$results" "$results"
mv out whole
for n in $(seq 1 "$(cat allocations)"); do
    within "$n" bench compare "$results" "$results"
    case $status in
    0) cmp -s out whole || fail "bench compare: allocation $n: another answer" ;;
    5) grep -qi "memory" err || fail "bench compare: allocation $n: status 5 without a word of memory" ;;
    *) fail "bench compare: allocation $n: exit status $status" ;;
    esac
done
finish
