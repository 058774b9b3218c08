# The shell blocks of the guide and of README, in order, each page in a folder of its own; blocks.sh has the others.
. "$SOURCE/tests/cli/lib.sh"
make_commands "bench 1" "bench 3" "profile 1"
"$TEMPER" doctor --seconds 0.2 >/dev/null

for page in "$SOURCE"/docs/guide/*.md; do
    name=$(basename "$page" .md)
    sed -n '/^```sh$/,/^```$/{/^```/!p}' "$page" >"$name.sh"
    [ -s "$name.sh" ] || continue
    mkdir "$name"
    ln -s "$SOURCE/recipes" "$name/recipes"
    ln -s "$SOURCE/tests/data/trace_reports" "$name/traces"
    ln -s "$SOURCE/tests/data/runs" "$name/others"
    cp tiny.json "$name/tiny.json"
    ln -s "$MODEL" "$name/SmolLM2-135M-Instruct"
    (cd "$name" && sh -eu "../$name.sh") >out 2>err || fail "an example of docs/guide/$name.md does not work"
done

# README's own, with a folder and a file for DIR and FILE; the stand-in is small and knows few words.
mkdir readme
ln -s "$SOURCE/recipes" readme/recipes
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    echo '{"messages": [{"role": "user", "content": "the dog"}, {"role": "assistant", "content": "jumps"}]}'
done >readme/rows.jsonl
sed -n '/^```sh$/,/^```$/{/^```/!p}' "$SOURCE/README.md" |
    sed "s|=DIR|=$MODEL policy.max_total_sequence_length=64 policy.train_global_batch_size=2|
        s|=FILE|=rows.jsonl|; s| *#.*||" |
    sed 's/^temper \(analyze\|compare\) .*/& || test $? = 1/; s/^temper chat .*/& <\/dev\/null/' >readme.sh
[ "$(grep -c '^temper ' readme.sh)" -ge 7 ] || fail "README has lost its commands"
(cd readme && sh -eu ../readme.sh) >out 2>err || fail "a command of README.md does not work"
finish
