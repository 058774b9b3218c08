# temper chat on a terminal: Ctrl-C stops an answer and the conversation goes on; at the prompt it leaves with 130.
# Whatever is typed is typed when the terminal shows that it is waited for.
. "$SOURCE/tests/cli/lib.sh"
command -v script >/dev/null || { echo "script(1) is not there"; exit 77; }
script -qec true probe >/dev/null 2>&1 </dev/null
[ -e probe ] || { echo "there are no pseudo-terminals here"; exit 77; }
make_model
# Greedily, and with room for more tokens than anybody waits for.
sed -i 's/"max_position_embeddings": *[0-9]*/"max_position_embeddings": 1000000/' model/config.json

# chat_on_terminal NAME: what is written to the descriptor 3 is typed; the screen is NAME.
chat_on_terminal() {
    rm -f keys
    : >screen
    mkfifo keys
    script -qefc "'$TEMPER' chat --temperature 0 --max-new-tokens 1000000 --max-length 1000000 model" "$1" \
        <keys >/dev/null 2>&1 &
    pid=$!
    exec 3>keys
}

prompts() { tr '\r' '\n' <screen | grep -c '^> '; }
bytes() { wc -c <screen; }

chat_on_terminal screen
wait_until '[ "$(prompts)" -ge 1 ]' && printf 'hello\n' >&3
before=$(bytes)
wait_until '[ "$(bytes)" -gt $((before + 40)) ]' && printf '\003' >&3
wait_until 'grep -qF "(stopped)" screen'
wait_until '[ "$(prompts)" -ge 2 ]' && printf '/help\n' >&3
wait_until 'grep -qF "begin anew" screen' && printf 'again\n' >&3
before=$(bytes)
wait_until '[ "$(bytes)" -gt $((before + 40)) ]' && printf '\003' >&3
wait_until '[ "$(grep -cF "(stopped)" screen)" -ge 2 ] && [ "$(prompts)" -ge 4 ]' && printf '/quit\n' >&3
wait "$pid"
is "the end by /quit after two stopped answers" $? 0
exec 3>&-

chat_on_terminal screen
wait_until '[ "$(prompts)" -ge 1 ]' && printf '\003' >&3
wait "$pid"
is "the exit status of Ctrl-C at the prompt" $? 130
exec 3>&-
finish
