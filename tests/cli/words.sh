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
    [ "$command" = help ] || expect_out "Usage: temper $command"
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
sed -n 's/^ *{"name": "\([a-z-]*\)", "letter": "\(.\)", .*/\2 \1/p' out |
    sed 's/ output$/ out/' | sort -u >letters
is "letters with two meanings" "$(cut -d' ' -f1 letters | uniq -d | tr -d '\n')" ""
[ "$(wc -l <letters)" -gt 10 ] || fail "no letters found"
finish
