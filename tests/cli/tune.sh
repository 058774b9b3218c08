# temper tune: a search that ends in a recipe.  Times decide nothing here.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml

# ---- a short search: whatever wins, the recipe runs as it is ----
run tune tiny.yaml sft.seed=7 'policy.optimizer.kwargs={lr: 0.5, weight_decay: 0.25}' policy.optimizer.kwargs.lr=0.125 \
    policy.model_config=tiny.json 'engine={huge_pages: false, in_place: false}' 'logger.log_dir=a #b: c' --budget 20s --steps 2 --warm-up 0 --memory 1GiB --json -q
expect 0
is recipe "$("$TOOL" get out recipe)" runs/tiny-tune/recipe.yaml
for key in trials gain.tokens_per_s.ratio gain.tokens_per_s.ci95 gain.peak_memory.ratio \
    gain.peak_memory.ci95 goal candidates.0.settings; do
    "$TOOL" get out $key >/dev/null || fail "no $key in tune --json"
done
is "raw samples" "$(wc -l <runs/tiny-tune/samples.jsonl)" "$("$TOOL" get out trials)"
cmp -s out runs/tiny-tune/report.json || fail "report.json is not what --json prints"
[ ! -e runs/tiny ] || fail "the recipe's own run folder was made"
is "folders of runs left" "$(ls -d runs/tiny-tune/run-* 2>/dev/null | wc -l)" 0
run config runs/tiny-tune/recipe.yaml --json
expect 0
is "an override is in the recipe" "$("$TOOL" get out sft.seed)" 7
is "a key over its section" "$("$TOOL" get out policy.optimizer.kwargs.lr)" 0.125
is "the rest of the section" "$("$TOOL" get out policy.optimizer.kwargs.weight_decay)" 0.25
is "a file" "$("$TOOL" get out policy.model_config)" "$PWD/tiny.json"
is "a section" "$("$TOOL" get out engine.huge_pages)$("$TOOL" get out engine.in_place)" falsefalse
is "a text" "$("$TOOL" get out logger.log_dir)" 'a #b: c'
is "the rest is inherited" "$("$TOOL" get out policy.train_global_batch_size)" 16
run train runs/tiny-tune/recipe.yaml run.dir=tuned sft.max_num_steps=1 checkpointing.enabled=false -q
expect 0

# ---- by memory: what the plan knows is exact ----
run tune tiny.yaml --goal peak_memory --budget 20s --steps 1 --warm-up 0 --out small
expect 0
expect_out "Recipe: small/recipe.yaml"
run plan tiny.yaml --json
before=$("$TOOL" get out memory.planned_peak_bytes)
run plan small/recipe.yaml --json
expect 0
[ "$("$TOOL" get out memory.planned_peak_bytes)" -le "$before" ] || fail "the smaller recipe is larger"

# ---- a limit that nothing is below ----
run tune tiny.yaml --memory 1KiB --budget 20s --steps 1 --warm-up 0 --out none -q
expect 5 "planned none fits into 1.00 KiB: the smallest needs "
[ ! -e none ] || fail "a tuning without an answer leaves a folder"
[ ! -e none/recipe.yaml ] || fail "a recipe above the limit was written"

# ---- wrong words ----
run tune tiny.yaml --goal fast
expect 2 "--goal is tokens_per_s, peak_memory or cost, not 'fast'"
run tune tiny.yaml --memory lots
expect 2 "--memory takes a size (8GiB, 512M), not 'lots'"
run tune tiny.yaml ~policy.optimizer --budget 1s
expect 2 "'~policy.optimizer' cannot be said in a recipe of its own"
run tune tiny.yaml policy.recompute=nonsense --budget 1s
expect 2 "recompute 'nonsense' is unknown"

finish
