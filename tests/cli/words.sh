# version, help, and the exit status of what needs no data.
. "$SOURCE/tests/cli/lib.sh"

run version
expect 0
expect_out "temper 0."
run --version
expect 0
run version --json
expect 0
is "version's keys" "$("$TOOL" keys out | tr '\n' ' ')" "version compiler cpu isa "

run help
expect 0
expect_out "temper train" "temper plan" "temper generate" "temper doctor" "temper config" \
    "temper tokenizer" "temper version"
run help --json
expect 0
is "first command" "$("$TOOL" get out 0.command)" train
is "an option" "$("$TOOL" get out 0.options.2.name) $("$TOOL" get out 0.options.2.choices)" "progress auto block plain json quiet"
run help --list commands
expect 0
cp out commands
while read -r command; do
    # shellcheck disable=SC2086
    run help $command
    expect 0
    expect_out "temper"
    expect_out "Usage: temper $command"
    # shellcheck disable=SC2086
    run $command -h
    expect 0
    expect_out "--help"
done <commands
run
expect 2

run config
expect 0
expect_out "train_global_batch_size: 32"
run config --json
expect 0
is "a default" "$("$TOOL" get out policy.precision)" bfloat16
run config "$SOURCE/recipes/demo.yaml" sft.max_num_steps=7
expect 0
expect_out "max_num_steps: 7" "command line" "demo.yaml"

# A letter is one option, whatever the command: -t is the temperature everywhere or nowhere.
run help --json
expect 0
sed -n 's/^ *{"name": "\([a-z-]*\)", "letter": "\(.\)", .*/\2 \1/p' out | sort -u >letters
is "letters with two meanings" "$(cut -d' ' -f1 letters | uniq -d | tr -d '\n')" ""
[ "$(wc -l <letters)" -gt 10 ] || fail "no letters found"
# A name is spelt in one way (--warm-up), and what is a share is one in every command: 5% or 0.05.
sed -n 's/^ *{"name": "\([a-z-]*\)", .*/\1/p' out | sort -u >names
[ "$(wc -l <names)" -gt 100 ] || fail "no names found"
is "names that are spelt in two ways" "$(tr -d '-' <names | sort | uniq -d | tr '\n' ' ')" ""
for command in stats compare ablate tune; do
    for wrong in 0 1 5 5%% some -1%; do
        run $command a b --margin=$wrong
        expect 2 "--margin takes a share above 0 and below 1 (5%, 0.05), not '$wrong'"
    done
done
# No part of a name stands for it, and no command takes an option that it has not.
run help --list commands
cp out commands
run help --json
sed -n 's/^    "command": "\(.*\)",$/=\1/p; s/^      {"name": "\([a-z-]*\)", .*/\1/p' out >options
asked=0
while read -r word; do
    case $word in =*) command=${word#=} && continue ;; esac
    short=${word%?}
    [ ${#short} -gt 2 ] && ! sed -n "/^=$command\$/,/^=/p" options | grep -qx "$short" || continue
    asked=$((asked + 1))
    # shellcheck disable=SC2086
    run $command "--$short" a b
    expect 2 "there is no option '--$short'"
done <options
[ $asked -gt 150 ] || fail "only $asked options were shortened"

# What may take long says so, by the one way there is (waiting.c, or the screen of what trains).
for file in "$SOURCE"/src/cli/cmd_*.c; do
    case $file in */cmd_help.c | */cmd_version.c | */cmd_config.c) continue ;; esac # a few kilobytes are read
    grep -q 'tp_waiting_begin\|tp_waiting_say\|tp_study_options\|tp_training_show' "$file" || fail "$file is silent while it works"
done
finish
