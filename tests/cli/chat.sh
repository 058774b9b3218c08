# temper chat: a conversation from standard input; history, commands, a window that fills.
. "$SOURCE/tests/cli/lib.sh"
make_model

printf 'hello\nhello\n' | "$TEMPER" chat --max-new-tokens 8 model >out 2>err || fail "chat ended badly"
cp out twice
printf 'hello\n' | "$TEMPER" chat --max-new-tokens 8 model >out 2>err
head -c "$(wc -c <out)" twice | cmp -s - out || fail "the same words gave another first answer"
printf 'hello\n/reset\nhello\n' | "$TEMPER" chat --max-new-tokens 8 model >out 2>err
cat err | grep -qF "(a new conversation)" || fail "/reset says nothing"
half=$(($(wc -c <out) / 2))
head -c "$half" out >first
tail -c "$half" out | cmp -s - first || fail "after /reset the conversation is not new"

printf '/help\n/nope\n\n/quit\nnot read\n' | "$TEMPER" chat model >out 2>err || fail "/quit is a failure"
[ -s out ] && fail "an answer to commands"
grep -qF "/reset  begin anew" err || fail "/help says nothing"
grep -qF "there is no command '/nope'" err || fail "an unknown command is not named"

printf 'one\ntwo\nthree\nfour\n' | "$TEMPER" chat --max-new-tokens 20 --max-length 90 model >out 2>err ||
    fail "a full window ended the conversation"
grep -qF "the window of 90 tokens is full" err || fail "nothing is said about turns left out"
printf 'one one one one one one one one one\n/nope\n' | "$TEMPER" chat --max-length 20 model >out 2>err
[ $? = 2 ] || fail "a message longer than the window is no error"
grep -qF "the prompt has" err || fail "the length is not named"
grep -qF "there is no command '/nope'" err || fail "lines behind one that is too long are not read"

write_recipe tiny.yaml
run train --quiet tiny.yaml
run chat runs/tiny
expect 2 "has no chat template" "temper generate"
run chat
expect 2 "expected MODEL"
finish
