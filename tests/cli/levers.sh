# Levels and levers: what a level sets is said, a run begins and ends with the levers, run.json and
# the plan hold them, and a lever that falls back says why while the run goes on.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml

run config tiny.yaml
expect 0
expect_out "enabled: true  # level advanced" "precision: bfloat16  # level advanced" "level: advanced  # default"
run config tiny.yaml --level basic policy.precision=bfloat16
expect 0
expect_out "enabled: false  # level basic" "precision: bfloat16  # command line" "level: basic  # command line" \
    "in_place: false  # level basic"
run train tiny.yaml --level fast
expect 2 'optimization.level: "fast" is not one of basic, advanced, ultra'

run plan tiny.yaml --json
expect 0
is "first lever of the plan" "$("$TOOL" get out levers.0.name) $("$TOOL" get out levers.0.state)" "mixed-precision on"
saved=$("$TOOL" get out levers.0.predicted.saved_bytes) now=$("$TOOL" get out memory.planned_peak_bytes)
saved() { # by each lever, of a plan
    i=0
    while name=$("$TOOL" get out levers.$i.name) && [ -n "$name" ]; do
        echo "$name $("$TOOL" get out levers.$i.predicted.saved_bytes) $("$TOOL" get out levers.$i.predicted.saved_launches)"
        i=$((i + 1))
    done 2>/dev/null
}
run plan tiny.yaml --json engine.disable_passes=[cse]
saved | grep -v '^cse ' >with-list
run plan tiny.yaml --json engine.disable_passes=[]
saved | grep -v '^cse ' >without
[ -s without ] || fail "no lever has savings"
cmp -s with-list without || fail "a pass that does nothing and is off changes what others save: $(diff with-list without)"
run plan tiny.yaml --json policy.precision=float32
is "planned bytes without it" "$("$TOOL" get out memory.planned_peak_bytes)" $((now + saved))
is "state without it" "$("$TOOL" get out levers.0.state) $("$TOOL" get out levers.0.why)" "off command line"

# The run begins with the table and ends with what is known.
run train tiny.yaml run.name=a
expect 0
expect_out "lever              state        memory      step  set by, or why" "mixed-precision    on" \
    "nothing to do here: " "% padding" " waited for data"
is "lines over 80 columns in the table of levers" "$(sed -n '/^lever  /,/^(memory/p' out | awk 'length > 80' | wc -l)" 0
is "a lever of run.json" "$("$TOOL" get runs/a/run.json levers.1.name) $("$TOOL" get runs/a/run.json levers.1.measured.what)" \
    "packing padding"
run train tiny.yaml run.name=q --quiet
is "lines of a quiet run" "$(wc -l <out)" 0

# basic trains, to the same loss within rounding.
run train tiny.yaml run.name=b --level basic
expect 0
expect_out "mixed-precision    off" "level basic"
is "a lever of basic" "$("$TOOL" get runs/b/run.json levers.0.state)" off

grep -h '"saved_[a-z]*": -0[.,]' runs/*/run.json && fail "a lever that saves less than nothing, by nothing"
run train tiny.yaml run.name=rest policy.train_micro_batch_size=5 --level basic sft.max_num_steps=1
expect 0
is "micro-batches of 16 sequences by 5" "$(sed -n 's/.*"train\/num_micro_batches": *\([0-9]*\).*/\1/p' runs/rest/metrics.jsonl)" 4

# Too much for basic, which says so; without any setting the plan says what it chooses, and it trains.
sizes="sft.max_num_steps=2 data.arithmetic.n_examples=2000"
run plan "$SOURCE/recipes/demo.yaml" engine.memory_limit=70MiB --level basic
expect 5
run train "$SOURCE/recipes/demo.yaml" run.name=large --level basic engine.memory_limit=70MiB $sizes
expect 5 "does not fit: needs 97.3 MiB, limit 70.0 MiB (engine.memory_limit)"
run plan "$SOURCE/recipes/demo.yaml" engine.memory_limit=70MiB engine.isa=portable # workspaces differ by instruction set
expect 0
expect_out "fits: needs 62.9 MiB, limit 70.0 MiB (engine.memory_limit)" \
    "chosen to fit 70.0 MiB (engine.memory_limit): policy.recompute=full; it needs 62.9 MiB, and 76.3 MiB without"
run train "$SOURCE/recipes/demo.yaml" run.name=small engine.memory_limit=70MiB $sizes
expect 0
expect_out "note: chosen to fit 70.0 MiB" "recompute          on         13.4 MiB" "chosen to fit the memory"
grep -q "recompute: full  # chosen to fit the memory" runs/small/config.yaml || fail "config.yaml does not say who chose"
"$TOOL" get runs/small/run.json memory.measured_peak_bytes >measured
[ "$(cat measured)" -le 73400320 ] || fail "it took more than the limit"
# A recipe that leaves the micro-batch open gets a fast one, where that fits, except from basic.
grep -v train_micro_batch_size "$SOURCE/recipes/demo.yaml" >open.yaml
cp "$SOURCE/recipes/demo-model.json" .
run plan open.yaml
expect 0
expect_out "chosen for speed: policy.train_micro_batch_size=16, 512 tokens at once" "micro-batch      512 tokens"
run plan open.yaml engine.memory_limit=60MiB # how many fit depends on the instruction set
expect 0
grep -q "chosen for speed: policy.train_micro_batch_size=[248], " out || fail "no smaller micro-batch where the fast one does not fit"
for other in "--level basic" engine.memory_limit=54MiB policy.sequence_packing.train_mb_tokens=32; do
    # shellcheck disable=SC2086
    run plan open.yaml $other
    expect 0
    expect_out "micro-batch      32 tokens"
    grep -q "chosen for speed" out && fail "$other: a micro-batch was chosen"
done
run train open.yaml run.name=open $sizes
expect 0
expect_out "note: chosen for speed: policy.train_micro_batch_size=16"
grep -q "train_micro_batch_size: 16  # chosen for speed" runs/open/config.yaml ||
    fail "config.yaml does not say who chose the micro-batch"

# A micro-batch by memory: the largest whose activations are planned within it, at any level.
run plan open.yaml policy.train_mb_memory=40MiB --level basic
expect 0
expect_out "chosen by policy.train_mb_memory (40.0 MiB): policy.train_micro_batch_size=16, whose activations take 38.4 MiB"
run plan open.yaml policy.train_mb_memory=40MiB policy.recompute=none
expect 0
expect_out "chosen by policy.train_mb_memory (40.0 MiB): policy.sequence_packing.train_mb_tokens="
run plan open.yaml policy.train_mb_memory=1KiB
expect 2 "policy.train_mb_memory" "1.00 KiB is too little: the activations of the smallest micro-batch take"
run plan open.yaml policy.train_mb_memory=lots
expect 2 'policy.train_mb_memory: "lots" is no size'

# What the user has set stays.
run plan "$SOURCE/recipes/demo.yaml" engine.memory_limit=70MiB policy.recompute=none engine.loss_chunk=0
expect 5
run plan "$SOURCE/recipes/demo.yaml" engine.memory_limit=6GB/s
expect 2 'engine.memory_limit: "6GB/s" is no size; write a number and a unit, as in 6GiB or 800MiB'

# Huge pages that the system refuses: said, and the run goes on.
mkdir -p box/sys/kernel/mm/transparent_hugepage box/proc/self
echo "always madvise [never]" >box/sys/kernel/mm/transparent_hugepage/enabled
TEMPER_SYSTEM_ROOT=$work/box run train tiny.yaml run.name=c
expect 0
expect_out "huge-pages         fell back   unknown   unknown  the kernel is set to never"
run train tiny.yaml run.name=d engine.threads=4096
expect 0
expect_out "threads            fell back" " 4096 asked for"

# A plug-in runs over the graphs and is a lever; one that breaks a graph is named.
plugin="$BUILD/examples/libpass.so"
run plan tiny.yaml "engine.plugins=[$plugin]"
expect 0
expect_out "drop-scale-by-one  on" "command line, 0 changes"
run plan tiny.yaml "engine.plugins=[$plugin]" engine.disable_passes=[drop-scale-by-one]
expect 0
expect_out "drop-scale-by-one  off" "command line"
run plan tiny.yaml "engine.plugins=[$plugin]" engine.disable_passes=[drop-scale]
expect 2 "there is no pass 'drop-scale'; known: fuse, cse, " "overlap, drop-scale-by-one"
cp "$plugin" again.so
run plan tiny.yaml "engine.plugins=[$plugin, again.so]"
expect 2 "and 'again.so' have the same name, drop-scale-by-one"
run plan tiny.yaml "engine.plugins=[$work/none.so]"
expect 2 "$work/none.so"
echo nonsense >nonsense.so
run plan tiny.yaml engine.plugins=[nonsense.so]
expect 2 "cannot load a plug-in" "nonsense.so"
head -c 2000 "$plugin" >cut.so
run plan tiny.yaml engine.plugins=[cut.so]
expect 2 "the plug-in 'cut.so' is cut short: it has 2000 bytes, its head tells of more; build it again"
if command -v cc >/dev/null; then
    cat >breaks.c <<'END'
#include <string.h>
#include <temper/plugin.h>
const char *temper_pass_name(void) { return "breaks"; }
int temper_pass_applies(const temper_graph *g) { return g->nodes(g) > 0; }
int temper_pass_run(temper_graph *g)
{
    for (uint32_t i = 1; i <= g->nodes(g); i++)
        if (strcmp(g->op(g, i), "linear") == 0) {
            g->replace(g, g->output(g, i, 0), g->input(g, i, 1));
            return 1;
        }
    return 0;
}
END
    sed 's/"breaks"/"wild"/; s/g->replace(.*/g->replace(g, 999999, 888888);/' breaks.c >wild.c
    cc -shared -fPIC -I "$SOURCE/include" wild.c -o wild.so || fail "cc"
    run plan tiny.yaml engine.plugins=[wild.so]
    expect 2 "the plug-in 'wild.so' replaces value 999999 by 888888; the values of this graph are 1 to"
    sed 's/return 1;/return 0;/' breaks.c >quiet.c
    sed 's/"breaks"/"packing"/' breaks.c >taken.c
    for name in quiet taken; do
        cc -shared -fPIC -I "$SOURCE/include" $name.c -o $name.so || fail "cc"
    done
    run plan tiny.yaml engine.plugins=[quiet.so]
    expect 2 "after pass breaks: "
    run plan tiny.yaml engine.plugins=[taken.so]
    expect 2 "plug-in 'taken.so': there is a lever of the name packing"
    echo 'int other;' >empty.c
    cc -shared -fPIC -I "$SOURCE/include" breaks.c -o breaks.so && cc -shared -fPIC empty.c -o empty.so || fail "cc"
    run plan tiny.yaml engine.plugins=[breaks.so]
    expect 2 "after pass breaks: "
    run plan tiny.yaml engine.plugins=[empty.so]
    expect 2 "'empty.so' is no plug-in: it has no function temper_pass_name"
fi

# Measured kernels: they are, or the machine is busy, which is said; the run goes on.
run train tiny.yaml run.name=tuned --level ultra
expect 0
grep -q "^autotune  *on .*shapes changed" out || grep -q "^autotune  *fell back .*busy: " out || fail "no word of autotune"
run train tiny.yaml run.name=overhead policy.compile_mode=reduce-overhead
expect 0
cmp -s runs/a/checkpoints/step-6/model/model.safetensors runs/overhead/checkpoints/step-6/model/model.safetensors ||
    fail "reduce-overhead changes bits"

# A budget of tokens that holds pairs is named as one: what is named is what was chosen, and half of it what comes next.
make_model
make_pairs
cat >pairs.yaml <<'END'
dpo: {max_num_steps: 1}
policy: {model_name: model, tokenizer: {chat_template: null}, train_global_batch_size: 8, max_total_sequence_length: 64, recompute: none}
data: {train: {data_path: pairs.jsonl, split_validation_size: 0}}
engine: {loss_chunk: 0}
END
run plan pairs.yaml
expect 0
expect_out "chosen for speed: policy.sequence_packing.train_mb_tokens=512 at once"
run plan pairs.yaml policy.sequence_packing.train_mb_tokens=512 --json
expect 0
"$TOOL" get out memory.planned_peak_bytes >most
run plan pairs.yaml engine.memory_limit=$(($(cat most) - 1))
expect 0
expect_out "chosen for speed: policy.sequence_packing.train_mb_tokens=256 at once"
run plan pairs.yaml policy.sequence_packing.enabled=false
expect 0
expect_out "chosen for speed: policy.train_micro_batch_size=4, 512 tokens at once"
# By memory it is more than whole pairs: steps of 16 tokens.
run plan pairs.yaml policy.train_mb_memory=1000KiB
expect 0
sed -n 's/.*train_mb_tokens=\([0-9]*\), whose activations take \([0-9.]*\) KiB/\1 \2/p' out >chosen
awk '$2 <= 1000 && $2 > 1000 * (1 - 16 / $1) { found = 1 } END { exit !found }' chosen || fail "another budget fits: $(cat chosen)"
finish
