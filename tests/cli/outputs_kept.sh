# What a command keeps for later, in a place that it or a user names: every kind of file that may be there.  And every option,
# argument and key that names a file, with the test where an output is tried: a new one has to be put into that list.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml
printf 'step,train/loss\n1,3\n2,2\n3,1.5\n4,1.2\n' >run.csv
cat >cases.yaml <<'END'
benchmarks:
  - {name: own/command, kind: command, command: "true"}
END
python=$(command -v python3)
can_make_devices=no
mknod probe c 1 3 2>/dev/null && [ -w probe ] && : >probe 2>/dev/null && can_make_devices=yes
rm -f probe

# kept PLACE KIND:STATUS... -- COMMAND...: what is at the place stays what it is; a file of somebody else keeps its text.
kept() {
    place=$1 kinds=
    shift
    while [ "$1" != -- ]; do
        kinds="$kinds $1"
        shift
    done
    shift
    for kind in $kinds; do
        what=${kind%:*}
        rm -rf "$place" nowhere target again
        mkdir -p "$(dirname "$place")" target
        echo mine >target/note
        case $what in
        file) echo "{mine" >"$place" ;;
        link) ln -s "$work/target/note" "$place" ;;
        folder) mkdir "$place" && echo mine >"$place/note" ;;
        folder_link) ln -s "$work/target" "$place" ;;
        dangling) ln -s "$work/nowhere" "$place" ;;
        loop) ln -s "$(basename "$place")" "$place" ;;
        fifo) mkfifo "$place" ;;
        device)
            [ $can_make_devices = yes ] || continue
            mknod "$place" c 1 3
            ;;
        socket)
            [ -n "$python" ] || continue
            (cd "$(dirname "$place")" && "$python" -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$(basename "$place")") ||
                continue
            ;;
        esac
        before=$(stat -c %F "$place")
        last="$* ($what at $place)"
        timeout 500 "$TEMPER" "$@" >out 2>err </dev/null
        status=$?
        expect "${kind#*:}"
        is "$last: what is there" "$(stat -c %F "$place")" "$before"
        case $what in
        file) [ "$status" = 0 ] || is "$last: the file" "$(cat "$place")" "{mine" ;;
        folder) is "$last: the folder's file" "$(cat "$place/note")" mine ;;
        folder_link | link) [ "$status" = 0 ] || is "$last: the file behind a link" "$(cat target/note)" mine ;;
        esac
        [ "$status" = 0 ] || grep -q ^temper err || fail "$last: fails without a word"
    done
    rm -rf "$place"
}

bench="bench --cases cases.yaml own/command --rounds 5"
# shellcheck disable=SC2086
kept kept/history file:2 link:2 folder:2 dangling:0 loop:4 fifo:2 device:2 socket:2 -- $bench --history kept/history
# shellcheck disable=SC2086
kept kept/base.json file:2 link:2 folder:2 dangling:0 loop:4 fifo:2 device:2 socket:2 -- \
    $bench --no-history --baseline kept/base.json --update-baseline
mkdir two && cp run.csv two/a.csv && cp run.csv two/b.csv
kept temper-tags folder:2 dangling:0 loop:4 fifo:2 device:2 socket:2 -- runs run.csv --tag good
kept two/a.csv.temper-tags folder:2 dangling:0 loop:4 fifo:2 device:2 socket:2 -- runs two/a.csv --tag good
kept runs/profiles/mine file:2 folder:2 folder_link:2 dangling:2 loop:2 fifo:2 socket:2 -- \
    profile tiny.yaml --steps 2 --name mine --replace
once="train --quiet tiny.yaml run.dir=again sft.max_num_steps=1 sft.val_period=0 checkpointing.enabled=false"
# What watches a run does not end it.
# shellcheck disable=SC2086
kept kept/gauges file:0 link:0 folder:0 folder_link:0 dangling:0 loop:0 fifo:0 device:0 socket:0 -- $once logger.prometheus.path=kept/gauges
# shellcheck disable=SC2086
kept kept/events file:0 link:0 folder:0 folder_link:0 dangling:0 loop:0 fifo:0 device:0 socket:0 -- \
    $once logger.tensorboard_enabled=true logger.tensorboard.log_dir=kept/events
# shellcheck disable=SC2086
kept kept/tokens file:0 link:0 folder:0 folder_link:0 dangling:0 loop:0 fifo:0 device:0 socket:0 -- $once data.cache_dir=kept/tokens
# shellcheck disable=SC2086
kept kept/report file:2 link:2 folder:0 folder_link:0 dangling:2 loop:2 fifo:2 device:2 socket:2 -- \
    $once performance_analysis.enabled=true "performance_analysis.tasks=[training]" performance_analysis.visualization.path=kept/report
for name in ../x a/b . .. '' /x "$(printf 'a\033b')"; do
    run profile tiny.yaml --steps 2 --name "$name"
    expect 2 "is no name for a profile"
done
is "profiles that were made" "$(ls -A runs/profiles)" ""

# The index is a cache of ours: whatever is in its place, runs are listed, and nothing but a file is lost.
mkdir listed
run train --quiet tiny.yaml run.dir=listed/one sft.max_num_steps=1 sft.val_period=0 checkpointing.enabled=false
run runs listed
expect 0
index=$(find "$XDG_CACHE_HOME" -name '*.sqlite')
[ -f "$index" ] || fail "where is the index? $index"
kept "$index" folder:0 -- runs listed
grep -q ^one out || fail "a folder in the index's place: no run is listed"
rm -rf target && mkdir target && echo mine >target/note && ln -s "$work/target/note" "$index"
run runs listed
expect 0
grep -q ^one out || fail "a link in the index's place: no run is listed"
is "the file behind it" "$(cat target/note)" mine

# A data base of something else is no history.
if [ -n "$python" ]; then
    "$python" -c 'import sqlite3; d = sqlite3.connect("other.db"); d.execute("create table mine(a)"); d.commit()'
    cp other.db other-before.db
    # shellcheck disable=SC2086
    run $bench --history other.db
    expect 2 "'other.db' is a data base of something else, not a history of benchmarks"
    cmp -s other.db other-before.db || fail "a data base of something else is changed"
fi

# A folder with one run below it names that run.
run runs listed --tag good
expect 0
is "tags of the run" "$(cat listed/one/temper-tags)" good
[ ! -e listed/temper-tags ] || fail "a folder that is no run has tags"

# ---- every word that names a file ----

# WORD|none: nothing is written there; WORD|TEST|ROW: a line of that test begins so.
cat >known <<'END'
simulate --platform|none
simulate --picture|cli/simulate.sh|run simulate tiny.yaml --ranks 2 --platform fat-tree.xml --processor 1TFLOP/100GB --picture
generate --prompts|none
generate --adapter|none
eval --out|cli/outputs.sh|result "eval --out"
eval --report|cli/outputs.sh|result "eval compare --report"
trace export --out|cli/outputs.sh|result "trace export"
bench --baseline|cli/outputs_kept.sh|kept kept/base.json
bench --cases|none
bench --save|cli/outputs.sh|    result "bench compare --save"
bench --benchmark-json|cli/outputs.sh|    result "bench --benchmark-json"
bench --benchmark-compare|none
bench --history|cli/outputs_kept.sh|kept kept/history
bench history --svg|cli/outputs_folders.sh|folder own-command-time.svg
bench history --history|none
ablate --out|cli/outputs_folders.sh|folder report.json 2 ablate
tune --out|cli/outputs_folders.sh|folder report.json 2 tune
watch --rules|none
alarms --rules|none
compare --picture|cli/outputs.sh|result "compare --picture"
cache --dir|cli/cache.sh|run cache
config import OUT|cli/outputs.sh|result "config import"
tokenizer OUT|cli/outputs_folders.sh|folder tokenizer.json
export OUT|cli/outputs.sh|result "export"
merge OUT|cli/outputs_folders.sh|folder config.json 2 merge
checkpointing.checkpoint_dir|cli/outputs_folders.sh|folder step-1 0 train
data.cache_dir|cli/outputs_kept.sh|kept kept/tokens
data.data_path|none
data.default.data_path|none
data.default.prompt_file|none
data.default.system_prompt_file|none
data.prompt_file|none
data.split|none
data.system_prompt_file|none
data.train.data_path|none
data.train.prompt_file|none
data.train.system_prompt_file|none
data.validation.data_path|none
data.validation.prompt_file|none
data.validation.system_prompt_file|none
engine.dump|none
env.library.path|none
eval.save_path|cli/outputs_folders.sh|folder config.json 0 eval
generation.model_name|none
logger.prometheus.path|cli/outputs_kept.sh|kept kept/gauges
logger.tensorboard.log_dir|cli/outputs_kept.sh|kept kept/events
performance_analysis.visualization.path|cli/outputs_kept.sh|kept kept/report
policy.model_name|none
policy.tokenizer.chat_template|none
policy.tokenizer.name|none
profile.steps|none
run.dir|cli/outputs_folders.sh|folder run.json 0 train
tokenizer.chat_template|none
tokenizer.name|none
END

{
    "$TEMPER" help --json | awk -F'"' '/"command":/ { command = $4 }
        /"arguments":/ && $4 ~ /OUT/ { print command " OUT" }
        /"name":/ && match($0, /"argument": "[^"]*"/) && substr($0, RSTART, RLENGTH) ~ /FILE|FOLDER|DIR|OUT|PATH/ { print command " --" $4 }'
    { "$TEMPER" config --doc && "$TEMPER" eval --keys; } |
        awk -F'|' '$3 ~ /text/ && tolower($5) ~ /folder|file/ && $5 !~ /No effect/ { gsub(/[` ]/, "", $2); print $2 }' | sort -u
} >words
[ "$(wc -l <words)" -gt 40 ] || fail "the tables of options are not read: $(wc -l <words) words"
cut -d '|' -f 1 known | sort >known-words
is "words that name files and are not in the list of outputs_kept.sh" "$(sort words | comm -23 - known-words)" ""
is "words of that list that are gone" "$(sort words | comm -13 - known-words)" ""
while IFS='|' read -r word script row; do
    [ "$script" = none ] || awk -v row="$row" 'index($0, row) == 1 { found = 1 } END { exit !found }' "$SOURCE/tests/$script" ||
        fail "$word: tests/$script has no line that begins with '$row'"
done <known
finish
