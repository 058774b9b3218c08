# Every command in the blocks of the pages that are not `sh` (guide.sh runs those), and every example of the help: run with stand-ins of
# the names that they use, little time and free ports, or named in `exceptions` with the reason why not.
. "$SOURCE/tests/cli/lib.sh"

# The beginning of a command, two blanks or more, and why it is not run.
cat >exceptions <<'END'
make  builds, installs or tests Temper itself: here that there is such a target
scripts/install-deps --with-  has Debian's packages installed, as root: here that it knows the word
bench/compare_  needs PyTorch, TRL or llama.cpp: here that it knows the options
pip install  fetches a package
hf download  fetches a model: the blocks behind it run with a stand-in
END
# What is not run has to be right all the same.
check_exception() {
    # shellcheck disable=SC2086
    set -- $1
    case $1 in
    make) make -n -C "$SOURCE" ${2:+"$2"} >out 2>err || fail "make has no target '${2:-all}'" ;;
    scripts/install-deps) grep -q "^ *$2)" "$SOURCE/$1" || fail "$1 does not know $2" ;;
    bench/*)
        program=$SOURCE/bench/peers/$(basename "$1" .sh).py
        [ -x "$SOURCE/$1" ] || fail "there is no $1"
        for word; do
            case $word in --*) grep -q -- "\"$word\"" "$program" || fail "$1 does not know $word" ;; esac
        done
        ;;
    esac
}

# ---- stand-ins ----

make_commands "bench 1" "bench 3" "alarms 1"
# A job of Slurm has one process here.
printf '#!/bin/sh\nshift\nexec "$@"\n' >bin/srun
printf '#!/bin/sh\nexit 0\n' >bin/cmd
chmod +x bin/*
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none
"$TEMPER" doctor --seconds 0.2 >/dev/null

mkdir base
cd base || exit 1
write_recipe tiny.yaml
echo 'monitor: {alarms: [{name: high, when: train/loss above 100 for 3 steps}]}' >>tiny.yaml
for i in 1 2 3 4; do
    echo '{"messages": [{"role": "user", "content": "the dog"}, {"role": "assistant", "content": "jumps"}]}'
done >rows.jsonl
{
    temper train tiny.yaml --quiet run.name=first logger.tensorboard_enabled=true &&
        temper train tiny.yaml --quiet run.name=second seed=7 &&
        temper bench kernel/rmsnorm/f32 --rounds 2 --no-history --save temper:old.json &&
        temper bench kernel/rmsnorm/f32 --rounds 2 --no-history --save temper:new.json &&
        temper bench kernel/rmsnorm/f32 --update-baseline --baseline baselines.json --budget 1s
} >../out 2>../err || fail "nothing to show"
mkdir -p logs/exp_001 output old .cache/huggingface/trackio examples/configs
ln -s "$SOURCE/recipes" recipes
ln -s "$TEMPER" old/temper
cp -r runs experiments
cp -r "$SOURCE/tests/data/runs/tb-torch" output/runs
cp -r runs/first/tensorboard logs/tensorboard
cp -r runs/first/tensorboard logs/exp_001/tensorboard
cp "$SOURCE/tests/data/runs/trackio-manual/manual.db" project.db
cp project.db .cache/huggingface/trackio/
printf 'old,new\n1.0,1.1\n1.2,1.3\n1.1,1.2\n1.3,1.4\n1.2,1.4\n1.1,1.3\n' >times.csv
printf 'score,model\n1,a\n2,a\n1.5,a\n3,b\n4,b\n3.5,b\n' >scores.csv
# files of other trainers
sed '/^optimization/d' "$SOURCE/recipes/demo.yaml" >examples/configs/sft.yaml
printf '%s\n' 'max_steps: 1' 'max_length: 32' 'per_device_train_batch_size: 2' 'logging_steps: 1' 'bf16: false' >args.yaml
printf '%s\n' "base_model: $MODEL" 'datasets: [{path: rows.jsonl, type: chat_template}]' 'sequence_len: 64' 'micro_batch_size: 2' \
    'max_steps: 2' 'learning_rate: 1.0e-4' 'optimizer: adamw_torch' 'lr_scheduler: constant' 'bf16: false' >axolotl.yaml
# a revision in a repository: the program of now
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(old NONE)
add_custom_target(temper ALL COMMAND ${CMAKE_COMMAND} -E make_directory src/cli
    COMMAND ${CMAKE_COMMAND} -E create_symlink $ENV{TEMPER} src/cli/temper)
END
{
    git init -q . && git add CMakeLists.txt && git -c user.name=t -c user.email=t@t commit -qm one && git tag v0.1.0
} >../out 2>../err || fail "no revision"
cd ..

# ---- the commands ----

# PAGE COMMAND, one a line; those of the help are in guide/commands.md.
for page in "$SOURCE"/*.md "$SOURCE"/docs/*.md "$SOURCE"/docs/guide/*.md "$SOURCE"/docs/formats/*.md; do
    awk -f "$SOURCE/tests/cli/commands.awk" "$page" | sed "s/   .*//; s/^/$(basename "$page" .md) /"
done >all
# That of the workflow in benchmarks.md.
awk '/- run: >/ { inside = 1; next } inside && /- uses/ { print ""; exit } inside { printf "%s", $0 }' "$SOURCE/docs/guide/benchmarks.md" |
    sed 's/[$]{{[^}]*}}/v0.1.0/; s/  */ /g; s|^ *build/default/src/cli/|benchmarks |' >>all
[ "$(wc -l <all)" -ge 60 ] || fail "there are only $(wc -l <all) commands"

# The same with less time and other names.
shorter() {
    sed "s/ --budget [0-9]*[ms]//; s/ --rounds [0-9]*//; s|recipes/demo.yaml|tiny.yaml|
        s|=DIR|=$MODEL|; s|=FILE|=rows.jsonl|; s|#run-1|#run-a|; s|OLD NEW|old.json new.json|; s|\[PATTERN\]|kernel|
        s| train/llama| kernel/rmsnorm/f32|; s|^temper bench\$|& kernel/rmsnorm/f32|; s|^temper bench --.*|& kernel/rmsnorm/f32|
        s/^temper ablate .*/& --rounds 1 --pairs 0 --steps 2 --warm-up 0/
        s/^temper tune .*/& --budget 4s --steps 2 --warm-up 0/; s/^temper bench [^ch].*/& --budget 1s/
        s/ --ranks 1024/ --ranks 4/; s/^mpirun .*/& engine.threads=1/
        s/^temper serve .*--port [0-9]*/& --port -1/; s/^temper serve\$/& --port -1/; s/^temper watch .*/& --once/"
}

# What goes on until somebody ends it: until it has something to show.
endless() {
    (cd "$page" && eval "exec $line") >out 2>err </dev/null &
    pid=$!
    wait_until '[ -s out ] || grep -q "nothing can be served" err'
    kill -TERM "$pid" 2>/dev/null
    wait "$pid"
    code=$?
    case $code in 0 | 2 | 143) ;; *) fail "$page.md: $line: exit status $code" ;; esac
}

# is_exception COMMAND: it is noted which.
is_exception() {
    while read -r words; do
        beginning=${words%%  *}
        case "$1 " in "$beginning"*) echo "$beginning" >>met && return 0 ;; esac
    done <exceptions
    return 1
}

while read -r page command; do
    if is_exception "$command"; then
        check_exception "$command"
        continue
    fi
    [ -d "$page" ] || cp -r base "$page"
    case $page in distributed | monitoring) [ -e "$page/recipe.yaml" ] || cp base/tiny.yaml "$page/recipe.yaml" ;; esac
    [ "$page" != distributed ] || sed -i 's/"num_key_value_heads": 1/"num_key_value_heads": 2/' distributed/tiny.json
    line=$(echo "$command" | shorter)
    export HOME="$work/$page"
    case $line in
    mpirun\ * | *runs/recipe/trace*) [ -n "${PLUG_IN:-}" ] && command -v mpirun >mpirun || { echo "no MPI here: $line" && continue; } ;;
    temper\ simulate\ *) [ -n "${SIMULATOR:-}" ] || { echo "no SimGrid here: $line" && continue; } ;;
    temper\ serve* | *--follow*)
        endless
        continue
        ;;
    esac
    case $line in temper\ trace\ *) ;; *) rm -rf "$page/runs/recipe" ;; esac
    case $line in mpirun\ *) line="ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 $line" ;; esac # as in tests/mpi/lib.sh
    (cd "$page" && sh -c "$line") >out 2>err </dev/null
    code=$?
    [ $code = 0 ] || fail "$page.md: $line: exit status $code"
done <all
# The judge in Python, of the page about programs that judge.
sed -n '/^```python$/,/^```$/{/^```/!p}' "$SOURCE/docs/formats/environment.md" >judge.py
[ -s judge.py ] || fail "environment.md has no judge"
if python3 -c 'import json' 2>/dev/null; then
    printf '{"id": %s, "completion": "%s", "truth": "4"}\n' 1 ' 4 ' 2 5 | python3 judge.py >out 2>err
    is "what the judge says" "$(cat out)" "$(printf '{"id": %s, "reward": %s}\n' 1 1.0 2 0.0)"
fi

while read -r words; do
    grep -qx -- "${words%%  *}" met || fail "no page has a command '${words%%  *}' any more: take it out of the exceptions"
done <exceptions
finish
