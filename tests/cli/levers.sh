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

run train tiny.yaml run.name=rest policy.train_micro_batch_size=5 --level basic sft.max_num_steps=1
expect 0
is "micro-batches of 16 sequences by 5" "$(sed -n 's/.*"train\/num_micro_batches": *\([0-9]*\).*/\1/p' runs/rest/metrics.jsonl)" 4

# Huge pages that the system refuses: said, and the run goes on.
mkdir -p box/sys/kernel/mm/transparent_hugepage box/proc/self
echo "always madvise [never]" >box/sys/kernel/mm/transparent_hugepage/enabled
TEMPER_SYSTEM_ROOT=$work/box run train tiny.yaml run.name=c
expect 0
expect_out "huge-pages         fell back   unknown   unknown  the kernel is set to never"
run train tiny.yaml run.name=d engine.threads=4096
expect 0
expect_out "threads            fell back" " 4096 asked for"
finish
