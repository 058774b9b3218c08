# What a user names for a result: every kind of file, for every command that writes one.
# A device is a node of our own: a test that wrote to the machine's would break it.
. "$SOURCE/tests/cli/lib.sh"
cp "$SOURCE/tests/data/traces/kineto_2021.json" t.json
make_model
printf '{"question": "what is %s", "answer": "#### %s"}\n' one+one 2 two+two 4 >q.jsonl
cat >eval.yaml <<'END'
eval: {num_tests_per_prompt: 2, k_value: [1], seed: 7}
generation: {model_name: model, max_new_tokens: 3, temperature: 1.0, vllm_cfg: {precision: float32, max_model_len: 64}}
tokenizer: {chat_template: null}
data: {data_path: q.jsonl}
env: {math: {num_workers: 1}}
END
run eval eval.yaml --out a.json
expect 0
cp a.json b.json
run bench kernel/rmsnorm --rounds 5 --save temper:bench.json --no-history
[ "$status" = 0 ] || run bench compute --rounds 5 --save temper:bench.json --no-history
can_make_devices=no
mknod probe c 1 3 2>/dev/null && [ -w probe ] && : >probe 2>/dev/null && can_make_devices=yes
rm -f probe
python=$(command -v python3)

ext=
# result NAME COMMAND...: the last word of the command is the path of its result, whose name ends in $ext.
result() {
    name=$1
    shift
    last=$1
    rm -rf place && mkdir place

    run "$@" place/new$ext
    expect 0
    [ -s place/new$ext ] || fail "$name: no result in a new file"
    cp place/new$ext first

    printf old >place/there$ext && chmod 640 place/there$ext
    run "$@" place/there$ext
    expect 0
    [ -s place/there$ext ] && [ "$(stat -c %a place/there$ext)" = 640 ] || fail "$name: the mode is lost"
    grep -q '^old$' place/there$ext && fail "$name: a file that is there is not replaced"

    printf old >place/target$ext && ln -s "target$ext" place/link$ext
    run "$@" place/link$ext
    expect 0
    [ -L place/link$ext ] && [ "$(head -c 3 place/target$ext)" != old ] || fail "$name: a link is replaced"
    ln -s "../place/later$ext" place/dangling$ext
    run "$@" place/dangling$ext
    expect 0
    [ -L place/dangling$ext ] && [ -s place/later$ext ] || fail "$name: a link to nothing yet is replaced"
    ln -s "loop$ext" place/loop$ext
    run "$@" place/loop$ext
    expect 4 "symbolic links"

    mkfifo place/fifo$ext
    timeout 500 cat place/fifo$ext >piped &
    reader=$!
    run "$@" place/fifo$ext
    expect 0
    wait $reader
    [ -p place/fifo$ext ] && [ -s piped ] || fail "$name: a pipe is not written in place"

    mkdir place/folder$ext
    run "$@" place/folder$ext
    expect 2 "it is a folder"
    if [ -n "$python" ] && "$python" -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "place/socket$ext"; then
        run "$@" place/socket$ext
        expect 2 "it is a socket"
        [ -S place/socket$ext ] || fail "$name: a socket is replaced"
    fi
    run "$@" place/none/x$ext
    expect 2 "its folder does not exist"
    run "$@" ''
    [ "$status" = 2 ] || fail "$name: an empty name gives $status"

    if [ "$can_make_devices" = yes ]; then
        mknod place/null$ext c 1 3 && mknod place/full$ext c 1 7
        run "$@" place/null$ext
        expect 0
        [ -c place/null$ext ] || fail "$name: a device is replaced"
        run "$@" place/full$ext
        expect 4 "No space left"
        [ -c place/full$ext ] || fail "$name: a device is replaced"
    fi
    if [ "$(id -u)" != 0 ]; then
        mkdir -m 500 place/locked
        run "$@" place/locked/x$ext
        expect 4 "Permission denied"
        printf old >place/readonly$ext && chmod 400 place/readonly$ext
        run "$@" place/readonly$ext
        expect 4 "Permission denied"
    fi
    left=$(find place -name '.*.tmp-*' | wc -l)
    is "$name: files left beside" "$left" 0
}

# own NAME INPUT COMMAND...: the input, under every name, is no place for the result.
own() {
    name=$1 input=$2
    shift 2
    cp "$input" kept
    ln -s "$input" own-link && ln "$input" own-hard
    for path in "$input" "./$input" own-link own-hard; do
        run "$@" "$path"
        expect 2 "this command reads it"
        cmp -s "$input" kept || fail "$name: the input is lost through $path"
    done
    rm -f own-link own-hard
}

result "trace export" trace export t.json --chrome -o
own "trace export" t.json trace export t.json --chrome -o
result "trace export csv" trace export t.json --csv -o
cp "$SOURCE/tests/data/traces/nsight.sqlite" n.sqlite
own "trace export of a database" n.sqlite trace export n.sqlite --chrome -o
result "export" export model --type Q8_0
printf '%s\n' 'max_steps: 3' >trl.yaml
result "config import" config import --from trl --algorithm sft trl.yaml
own "config import" trl.yaml config import --from trl --algorithm sft trl.yaml
result "eval --out" eval eval.yaml -q --out
for input in q.jsonl eval.yaml model/model.safetensors; do
    cp "$input" kept
    run eval eval.yaml -q --out "$input"
    expect 2 "this command reads it"
    cmp -s "$input" kept || fail "eval --out: $input is lost"
done
result "eval compare --report" eval compare a.json b.json --report
own "eval compare --report" a.json eval compare a.json b.json --report
run eval summarize a.json --report place/x
expect 2 "--report is for 'compare A B'"
run eval compare a.json b.json --out place/x
expect 2 "--out is for answers"
if [ -s bench.json ]; then
    result "bench --benchmark-json" bench compare bench.json bench.json --allow-missing --benchmark-json
    result "bench compare --save" bench compare bench.json bench.json --allow-missing --save
    own "bench compare --save" bench.json bench compare bench.json bench.json --allow-missing --save
fi
printf 'step,train/loss\n1,3\n2,2\n3,1.5\n4,1.2\n' >run.csv
ext=.svg
result "compare --picture" compare run.csv run.csv --picture
ext=

# Standard output by its names, in the place where it is.
run trace export t.json --collapsed -o plain
expect 0
for name in - /dev/stdout /dev/fd/1 /proc/self/fd/1; do
    { echo before && "$TEMPER" trace export t.json --collapsed -o $name && echo after; } >out 2>err
    is "first line around '-o $name'" "$(head -n 1 out)" before
    is "last line around '-o $name'" "$(tail -n 1 out)" after
    grep -qF "$(head -n 1 plain)" out || fail "-o $name: the result is not there"
done
"$TEMPER" trace export t.json --chrome -o - 2>err | head -c 1 >/dev/null
[ -s err ] && fail "a reader that has seen enough is a failure"

# A tokenizer belongs to its model.
cp model/tokenizer.json kept
run tokenizer model corpus.txt
expect 2 "'model' has a tokenizer.json, which a model may need; choose another folder, or --replace it"
cmp -s model/tokenizer.json kept || fail "the model's tokenizer is lost"
run tokenizer --vocab-size 270 --replace tok corpus.txt
expect 0
cp model/config.json kept
run eval eval.yaml -q eval.save_path=model --out place/answers
expect 2 "is of no evaluation"
[ ! -e place/answers ] || fail "eval.save_path is looked at after the work"
cmp -s model/config.json kept || fail "the model's configuration is lost"
finish
