# temper simulate: the code of real ranks in a network that is not there.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml
cp "$SOURCE/recipes/platforms/fat-tree.xml" .

# Without the plug-in it says what to do.
last="simulate without SimGrid"
TEMPER_SMPI=/nowhere/temper_smpi.so "$TEMPER" simulate tiny.yaml --ranks 2 --platform fat-tree.xml --processor 1TFLOP/100GB \
    >out 2>err </dev/null
status=$?
expect 2 "SimGrid cannot be loaded"
run simulate tiny.yaml --ranks 2 --platform nowhere --processor 1TFLOP/100GB
expect 2 "there is no platform 'nowhere': a file of SimGrid's, or one of fat-tree, torus, ethernet"
run simulate tiny.yaml --ranks 2 --platform fat-tree.xml --processor fast
expect 2 "a processor is arithmetic/memory in a second, as in 20TFLOP/400GB, not 'fast'"
run simulate tiny.yaml --ranks 2 --platform fat-tree.xml
expect 2 "run 'temper doctor' once"
run simulate tiny.yaml --ranks 2 --platform fat-tree.xml --processor 1TFLOP/100GB --slow-link node=2
expect 2 "a slow link is LINK=PART"
run simulate tiny.yaml --ranks 2 --platform fat-tree.xml --processor 1TFLOP/100GB --picture curves.txt
expect 2 "'curves.txt': a picture's name ends in .svg, .png or .pdf"
grep -q "to simulate" err && fail "the picture's name is looked at after the work"
run simulate tiny.yaml --ranks 2 --platform fat-tree.xml --processor 1TFLOP/100GB --picture nowhere/curves.svg
expect 2 "its folder does not exist"
grep -q "to simulate" err && fail "the picture's place is looked at after the work"
[ -n "${SIMULATOR:-}" ] || { [ "$failures" = 0 ] && echo "skipped: built without SimGrid (libsimgrid-dev)" && exit 77; }

run plan tiny.yaml --ranks 4 --network 100Gbit/4us --json
expect 0
gradients=$("$TOOL" get out distributed.strategies.0.all_reduce_bytes)

run simulate tiny.yaml --ranks 4 --platform fat-tree --processor 1TFLOP/100GB --json --picture curves.svg
expect 0
cp out four.json
is "platform" "$("$TOOL" get four.json platform)" fat-tree
is "bandwidth" "$("$TOOL" get four.json bytes_per_s)" 12500000000
is "ranks" "$("$TOOL" get four.json points.0.ranks)" 1
is "efficiency of one" "$("$TOOL" get four.json points.0.efficiency)" 1
is "exposed by one" "$("$TOOL" get four.json points.0.exposed_s)" 0
grep -q "<svg" curves.svg || fail "there is no picture"

# What a rank sends is what the plan says, but for the figures of a step: of ddp with 4 ranks.
python=$(command -v python3) || exit 77
"$python" - four.json "$gradients" <<'PYTHON' || fail "points of four.json"
import json, sys
points = json.load(open(sys.argv[1]))["points"]
gradients = int(sys.argv[2])
ranks = sorted({p["ranks"] for p in points})
assert ranks == [1, 2, 4], ranks
names = [p["strategy"] for p in points if p["ranks"] == 1]
assert names[:2] == ["ddp", "shard_optimizer"], names
for p in points:
    assert p["step_s"] > 0 and 0 <= p["exposed_s"] < p["step_s"], p
    assert 0 < p["efficiency"] <= 1, p
    assert p["efficiency"] <= p["efficiency_without_messages"] * 1.0001, p
    if p["ranks"] > 1 and p["strategy"] == "ddp":
        assert p["step_s"] > p["formula_step_s"], p  # copies and sums take time as well
four = next(p for p in points if p["ranks"] == 4 and p["strategy"] == "ddp")
assert gradients <= four["bytes_sent"] <= 1.05 * gradients, (gradients, four)
PYTHON

# Of compressed gradients the simulation sends what the plan says, too.
run plan tiny.yaml --ranks 4 --network 100Gbit/4us --json distributed.compress=int8
expect 0
planned=$("$TOOL" get out distributed.strategies.0.bytes_sent)
run simulate tiny.yaml --ranks 4 --platform fat-tree --processor 1TFLOP/100GB --json distributed.compress=int8
expect 0
"$python" - out "$planned" "$gradients" <<'PYTHON' || fail "a simulation with compressed gradients"
import json, sys
points = json.load(open(sys.argv[1]))["points"]
sent = next(p for p in points if p["ranks"] == 4 and p["strategy"] == "ddp")["bytes_sent"]
planned, whole = map(int, sys.argv[2:])
assert planned <= sent <= 1.2 * planned and sent < 0.4 * whole, (planned, sent, whole)
PYTHON

# Of 16 micro-batches a rank four are gone through, and count as 16: what is sent in every one is what the plan says.
many="policy.train_global_batch_size=32 policy.train_micro_batch_size=1 policy.sequence_packing.enabled=false"
# shellcheck disable=SC2086
run plan tiny.yaml --ranks 2 --network 100Gbit/4us --json $many
expect 0
cp out plan.json
# shellcheck disable=SC2086
run simulate tiny.yaml --ranks 2 --platform fat-tree --processor 1TFLOP/100GB --json $many
expect 0
"$python" - out plan.json <<'PYTHON' || fail "a step of many micro-batches"
import json, sys
points = json.load(open(sys.argv[1]))["points"]
plans = {s["strategy"]: s for s in json.load(open(sys.argv[2]))["distributed"]["strategies"]}
for name in "shard_gradients", "full_shard":
    p, plan = next(p for p in points if p["ranks"] == 2 and p["strategy"] == name), plans[name]
    assert plan["bytes_sent"] <= p["bytes_sent"] <= 1.05 * plan["bytes_sent"], (name, p, plan)
    assert 0.3 < p["formula_step_s"] / p["step_s"] < 1.1, (name, p)
PYTHON
# So do the links: that of a host has what its rank sends.
cp out many.json
# shellcheck disable=SC2086
run simulate tiny.yaml --ranks 2 --platform fat-tree --processor 1TFLOP/100GB $many
expect 0
"$python" - many.json out <<'PYTHON' || fail "how much links are used: $(cat out)"
import json, re, sys
whole = json.load(open(sys.argv[1]))
p = next(p for p in whole["points"] if p["ranks"] == 2 and p["strategy"] == "full_shard")
share = 100 * p["bytes_sent"] / whole["bytes_per_s"] / p["step_s"]
said = re.search(r"^full_shard: .* is in use (\d+) % of the time", open(sys.argv[2]).read(), re.M)
assert abs(int(said[1]) - share) <= 1, (said[0], share)
PYTHON

# The same again: nothing of it is measured.
run simulate tiny.yaml --ranks 4 --platform fat-tree --processor 1TFLOP/100GB --json
expect 0
grep -v simulated_in_s out >again
grep -v simulated_in_s four.json >first
cmp -s first again || fail "two simulations differ"

# In steps of another factor.
run simulate tiny.yaml --ranks 10 --factor 4 --platform fat-tree --processor 1TFLOP/100GB --json
expect 0
numbers=$("$python" -c 'import json; print(*sorted({p["ranks"] for p in json.load(open("out"))["points"]}))')
is "ranks" "$numbers" "1 4 10"
run simulate tiny.yaml --ranks 10 --factor 1
expect 2 "--factor"

# A link at a tenth of its speed is named.
run simulate tiny.yaml --ranks 8 --platform fat-tree.xml --processor 100TFLOP/1TB
expect 0
grep -q "bottleneck:" out && fail "a network without slow links has a bottleneck"
link=$(sed -n 's/.*the busiest link (\([^)]*\)).*/\1/p' out | head -n 1)
[ -n "$link" ] || fail "nobody says why scaling ends"
run simulate tiny.yaml --ranks 8 --platform fat-tree.xml --processor 100TFLOP/1TB --slow-link "$link"
expect 0
expect_out "bottleneck: link $link carries 10 Gbit/s, most links 100 Gbit/s"

# More ranks than hosts, no such link, a platform that is none.
sed 's/0-1023/0-3/; s/topology=.*"/topology="TORUS" topo_parameters="2,2,1"/' "$SOURCE/recipes/platforms/torus.xml" >small.xml
run simulate tiny.yaml --ranks 8 --platform small.xml --processor 1TFLOP/100GB
expect 2 "'small.xml': it has 4 hosts, one for each of 8 ranks is needed"
run simulate tiny.yaml --ranks 2 --platform small.xml --processor 1TFLOP/100GB --slow-link nowhere=0.5
expect 2 "it has no link 'nowhere'"
echo "<platform>" >broken.xml
run simulate tiny.yaml --ranks 2 --platform broken.xml --processor 1TFLOP/100GB
expect 2 "SimGrid gave up on 'broken.xml' with 2 ranks: Parse error at broken.xml:1: "
finish
