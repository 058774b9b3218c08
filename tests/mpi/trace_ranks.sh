# A profiled run of three ranks leaves the trace of each in rank 0's folder, with the collectives they took part in and how far
# their clocks are apart; temper trace sets them side by side.
. "$SOURCE/tests/cli/lib.sh"
. "$MPI_LIB"
write_recipe tiny.yaml
words="sft.max_num_steps=6 sft.val_period=0 checkpointing.enabled=false policy.train_micro_batch_size=2"

# shellcheck disable=SC2086
ranks 3 train tiny.yaml $words run.dir=r profile.steps=3:5 distributed.bucket_mib=0.01
expect 0
expect_out "traces of all 3 ranks: temper trace r/trace"
is "traces" "$(cd r/trace && echo *)" "steps-3-4.rank0.json steps-3-4.rank1.json steps-3-4.rank2.json"
run trace r/trace ranks --json
expect 0
cp out ranks.json
for r in 0 1 2; do
    is "rank" "$("$TOOL" get ranks.json ranks.$r.rank)" $r
    # Every collective of a rank is matched with the others'; all time is accounted for.
    is "matched of rank $r" "$("$TOOL" get ranks.json ranks.$r.matched)" "$("$TOOL" get ranks.json ranks.$r.collectives)"
    sum=0
    for part in compute exposed_comm exposed_mem idle; do
        sum=$((sum + $("$TOOL" get ranks.json ranks.$r.${part}_ns)))
    done
    is "parts of the span of rank $r" $sum "$("$TOOL" get ranks.json ranks.$r.span_ns)"
    [ "$("$TOOL" get ranks.json ranks.$r.compute_ns)" -gt 0 ] || fail "rank $r computes nothing"
    [ "$("$TOOL" get ranks.json ranks.$r.exposed_comm_ns)" -gt 0 ] || fail "rank $r communicates nothing"
done
is "clock of rank 0" "$("$TOOL" get ranks.json ranks.0.clock_offset_ns) $("$TOOL" get ranks.json ranks.0.clock_spread_ns)" "0 0"
# One host has one clock: what was measured is right within what it states, and some microseconds of starting a recording.
for r in 1 2; do
    offset=$("$TOOL" get ranks.json ranks.$r.clock_offset_ns) error=$("$TOOL" get ranks.json ranks.$r.clock_spread_ns)
    [ "$error" -gt 0 ] && [ "${offset#-}" -le $((error + 1000000)) ] || fail "clock of rank $r: $offset +- $error"
done
# In two steps: the sums of gradients, each bucket once a step.
python=$(command -v python3) || exit 77
"$python" - ranks.json <<'PYTHON' || fail "collectives of the ranks"
import json, sys
collectives = json.load(open(sys.argv[1]))["collectives"]
sums = [c for c in collectives if c["collective"] == "all_reduce"]
assert sums and all(c["count"] % 2 == 0 and c["group_size"] == 3 and c["bytes"] > 0 for c in sums), sums
assert all(abs(c["busbw_bytes_per_s"] / c["algbw_bytes_per_s"] - 4 / 3) < 1e-9 for c in sums), sums
PYTHON
run trace r/trace
expect 0
expect_out "Collectives over all ranks" "matched by sequence number" "clocks are aligned as measured between the ranks"
COLUMNS=80 "$TEMPER" trace r/trace ranks >narrow
is "lines over 80 columns" "$(awk 'length > 80' narrow | wc -l)" 0

# A run that ends within the range has them as well; one process writes as ever.
# shellcheck disable=SC2086
ranks 2 train --quiet tiny.yaml $words run.dir=short profile.steps=3:50 distributed.strategy=full_shard
expect 0
is "traces" "$(cd short/trace && echo *)" "steps-3-49.rank0.json steps-3-49.rank1.json"
run trace short/trace ranks --json
expect 0
is "both have all" "$("$TOOL" get out ranks.1.matched)" "$("$TOOL" get out ranks.1.collectives)"
# shellcheck disable=SC2086
run train --quiet tiny.yaml $words run.dir=one profile.steps=3:5
expect 0
is "trace" "$(cd one/trace && echo *)" steps-3-4.json
finish
