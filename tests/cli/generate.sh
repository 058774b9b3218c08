# temper generate: from a model folder, a checkpoint and a run; the same text for the same seed.
. "$SOURCE/tests/cli/lib.sh"
make_model

run generate --max-new-tokens 8 --json model "the quick"
expect 0
greedy=$("$TOOL" get out ids)
[ "$("$TOOL" keys out | tr '\n' ' ')" = "text prompt_ids ids logprobs stop prefill_s decode_s " ] ||
    fail "the members of generate --json changed"
run generate --max-new-tokens 8 --json --threads 1 model "the quick"
is "greedy ids with one thread" "$("$TOOL" get out ids)" "$greedy"
run generate --max-new-tokens 8 --json --temperature 1e-4 model "the quick"
is "ids at almost no temperature" "$("$TOOL" get out ids)" "$greedy"

run generate --max-new-tokens 16 --temperature 1 --seed 7 model "the quick"
expect 0
cp out first
run generate --max-new-tokens 16 --temperature 1 --seed 7 model "the quick"
cmp -s first out || fail "the same seed gave another text"
run generate --max-new-tokens 16 --temperature 1 --seed 8 model "the quick"
cmp -s first out && fail "another seed gave the same text"

echo "the quick" | "$TEMPER" generate --max-new-tokens 4 model >out 2>err || fail "no text from standard input"
run generate model ""
expect 2 "the prompt is empty"
run generate --max-length 4 model "the quick brown fox jumps over the lazy dog"
expect 2 "the prompt has"
run generate --max-new-tokens 4 --chat model hello
expect 0

write_recipe tiny.yaml
run train --quiet tiny.yaml
expect 0
run generate --max-new-tokens 4 runs/tiny 1+2=
expect 0
cp out from-run
run generate --max-new-tokens 4 runs/tiny/checkpoints/step-6 1+2=
expect 0
cmp -s from-run out || fail "run and checkpoint give different texts"
run generate --chat runs/tiny hello
expect 2 "has no chat template"
finish
