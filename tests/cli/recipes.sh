# Recipes: found wherever they are installed, shown before they are complete, and the same said
# about them by every command.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml

# ---- installed, and moved ----

cmake --install "$BUILD" --prefix "$work/first" >log 2>&1 || fail "install: $(tail -n 3 log)"
mv first moved
built=$TEMPER
TEMPER=$work/moved/bin/temper
[ -s moved/share/temper/recipes/demo-model.json ] || fail "demo-model.json is not installed"
run plan demo
expect 0
expect_out "planned"
run config recipes/demo.yaml sft.max_num_steps=3
expect 0
expect_out "$work/moved/share/temper/recipes/demo-model.json"
run train demo-nothing
expect 2 "there is no file 'demo-nothing', nor a recipe of that name in" "there are" "demo, dpo, eval-gsm8k, eval"
for file in man/man1/temper-trace-compare.1 bash-completion/completions/temper zsh/site-functions/_temper \
    fish/vendor_completions.d/temper.fish; do
    [ -s "moved/share/$file" ] || fail "share/$file is not installed"
done
run help --list recipes
expect 0
is "recipes" "$(grep -cx 'demo\|sft\|grpo' out)" 3
TEMPER=$built
run plan "$SOURCE/recipes/demo.yaml"
expect 0

# Not installed they are those of the sources.
run config demo
expect 0
expect_out "$(realpath "$SOURCE")/recipes/demo-model.json"
run help --list recipes
is "recipes of the sources" "$(grep -cx 'demo\|sft\|grpo' out)" 3

# ---- what is still to be set is shown ----

for recipe in sft dpo grpo sft-gsm8k grpo-gsm8k demo-grpo; do
    run config "$SOURCE/recipes/$recipe.yaml"
    [ "$status" = 0 ] || fail "config of $recipe.yaml: exit status $status"
done
run config "$SOURCE/recipes/sft.yaml"
expect 0 "must be set (they are ???): policy.model_name (" "data.train.data_path ("
expect_out 'model_name: "???"' "val_period: 50"
for recipe in eval demo-eval eval-gsm8k; do
    run config "$SOURCE/recipes/$recipe.yaml"
    expect 0 "generation.model_name"
    expect_out 'model_name: "???"'
done
run config "$SOURCE/recipes/demo-eval.yaml" generation.model_name=m --json
expect 0
is "model of the evaluation" "$("$TOOL" get out generation.model_name)" m

# A tree is shown whatever is wrong with it; then the exit status says so.
run config tiny.yaml policy.draft.enabled=true policy.colour=red
expect 2 "the configuration has 2 faults:" "unknown key policy.colour" "No draft model is trained"
expect_out "max_num_steps:"
is "lines of the message" "$(wc -l <err)" 3
grep -q '^  command line: unknown key policy.colour' err || fail "a fault has no line of its own"
printf '"evil\\n  temper: all is well": 1\nshade: 2\nsft: {}\n' >forged.yaml
run config forged.yaml
expect 2 'unknown key evil\n  temper: all is well' "unknown key shade"
grep -q '^  temper: all is well' err && fail "a quoted line break begins a line"

# ---- no section says what to train ----

printf 'performance_analysis:\n  a: 1\n' >analysis.yaml
for command in train plan doctor config; do
    run $command analysis.yaml
    expect 2 "analysis.yaml: no section sft, dpo or grpo says what to train (there are: performance_analysis)"
done

# ---- the same notice everywhere ----

notice='  Processes are those that mpirun or srun starts: cluster.gpus_per_node'
sharded="policy.dtensor_cfg.tensor_parallel_size=4 cluster.gpus_per_node=8"
# shellcheck disable=SC2086
for command in plan config; do
    run $command tiny.yaml $sharded
    expect 0 "keys without effect here, or without all of it:" "$notice"
    is "notices of $command" "$(grep -c 'without effect' err)" 1
done
# shellcheck disable=SC2086
run doctor --cached --seconds 0.1 tiny.yaml $sharded
expect 0
expect_out "note             keys without effect here, or without all of it:" "$notice"
is "notices of doctor" "$(grep -c 'without effect' out)" 1
# shellcheck disable=SC2086
run train -p plain tiny.yaml run.name=notice sft.max_num_steps=1 $sharded
expect 0
expect_out "note: keys without effect here, or without all of it:" "$notice"
is "notices of train" "$(grep -c 'without effect' out)" 1

# ---- files that are nowhere ----

mkdir -p apart
cp tiny.yaml apart/tiny.yaml
run train apart/tiny.yaml run.name=gone data.train.dataset_name=null data.train.data_path=none.jsonl \
    data.default.prompt_file=none.txt policy.tokenizer.name=. policy.tokenizer.train_vocab_size=null
expect 2 "data.train.data_path: there is no 'none.jsonl'" "data.default.prompt_file: there is no 'none.txt'"

# Before anything is measured.
XDG_CACHE_HOME=$work/nothing-measured "$TEMPER" train tiny.yaml run.name=gone policy.tokenizer.name=nowhere \
    policy.tokenizer.train_vocab_size=null >out 2>err
status=$? last="train without a tokenizer"
expect 2 "there is no 'nowhere'; models are not downloaded: 'hf download NAME --local-dir FOLDER' fetches one"
! grep -q measur err || fail "the machine is measured before a path is looked at"

# ---- stages ----

run train --quiet tiny.yaml run.name=dumped sft.max_num_steps=1 engine.dump=[plan]
expect 0
# Of a run's own recipe, which has all keys, those that say what is the case anyway are no news.
run plan runs/dumped
expect 0
! grep -q 'without effect' out err || fail "defaults are told as keys without effect"
is "files of engine.dump=[plan]" "$(ls runs/dumped/dump | sed 's/^[a-z]*\.//' | sort -u)" plan.txt
run train --quiet tiny.yaml run.name=nonsense engine.dump=[plan,nonsense]
expect 2 "engine.dump: there is no stage 'nonsense'; known: graph, plan, fuse, cse, dce"

# ---- options ----

run train --resum tiny.yaml
expect 2 "there is no option '--resum'; did you mean '--resume'"
run plan --j tiny.yaml
expect 2 "there is no option '--j'; did you mean '--json'"
run train -x tiny.yaml
expect 2 "there is no option '-x'; see 'temper help train'"
for words in "train -h" "trace compare -h" "help trace compare" "help bench history" "help eval compare"; do
    # shellcheck disable=SC2086
    run $words
    expect 0
    expect_out "Usage: temper"
done
run help trace nonsense
expect 2 "'trace' has no part 'nonsense'; see 'temper help trace'"
run generate --temperature -1 model text # a value, though it looks like a letter
expect 2 "--temperature takes a number from 0 to 1000, not '-1'"

# ---- a copied checkout builds itself, not the original ----

mkdir -p copy/build/default bin
cp "$SOURCE/Makefile" copy/
printf '#!/bin/sh\necho "cmake $*"\n' >bin/cmake
chmod +x bin/cmake
: >copy/build/default/build.ninja
echo "CMAKE_HOME_DIRECTORY:INTERNAL=/somewhere/else" >copy/build/default/CMakeCache.txt
made() { PATH="$work/bin:$PATH" make -C copy -o deps --no-print-directory "$@" >made 2>&1 || fail "make $*"; }
made install PREFIX=/p
is "install of a copy" "$(grep -c 'build/default was made in /somewhere/else: configuring anew' made)" 1
is "its configuration" "$(sed -n 2p made)" "cmake --fresh --preset default"
is "what it builds" "$(sed -n 3p made)" "cmake --build build/default --target installed"
echo "CMAKE_HOME_DIRECTORY:INTERNAL=$(cd copy && pwd -P)" >copy/build/default/CMakeCache.txt
made install PREFIX=/p
is "install where it was configured" "$(sed -n 1p made)" "cmake --build build/default --target installed"
finish
