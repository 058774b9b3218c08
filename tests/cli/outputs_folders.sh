# What a user names for a folder of results: every kind of file, for every command that makes one.  Files: outputs.sh.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml
make_model
cat >eval.yaml <<'END'
eval: {num_tests_per_prompt: 1}
generation: {model_name: model, max_new_tokens: 3, vllm_cfg: {precision: float32, max_model_len: 64}}
tokenizer: {chat_template: null}
data: {data_path: q.jsonl}
env: {math: {num_workers: 1}}
END
printf '{"question": "what is %s", "answer": "#### %s"}\n' one+one 2 two+two 4 >q.jsonl
printf 'step,train/loss\n1,3\n2,2\n3,1.5\n4,1.2\n' >run.csv
run train --quiet tiny.yaml run.dir=base sft.max_num_steps=1 sft.val_period=0
expect 0
base=base/checkpoints/step-1/model
run train --quiet tiny.yaml run.dir=adapter policy.init=pretrained policy.model_config=null policy.model_name=$base \
    policy.tokenizer.train_vocab_size=null policy.tokenizer.name=$base policy.peft.enabled=true policy.peft.dim=4 sft.max_num_steps=1 sft.val_period=0
expect 0
cat >cases.yaml <<'END'
benchmarks:
  - {name: own/command, kind: command, command: "true"}
END
for i in 1 2; do run bench --cases cases.yaml own/command --rounds 5 --history h.sqlite; done

can_make_devices=no
mknod probe c 1 3 2>/dev/null && [ -w probe ] && : >probe 2>/dev/null && can_make_devices=yes
rm -f probe
python=$(command -v python3)

# within COMMAND...: it ends, whatever is at the place.
within() {
    last="temper $*"
    timeout 500 "$TEMPER" "$@" >out 2>err </dev/null
    status=$?
}

# folder FILE THERE COMMAND...: `@` in the words is the place; FILE is what shall be in it; THERE is the status where a folder
# is there already.  N in the words is another number each time.
n=0
folder() {
    file=$1 there=$2
    shift 2
    rm -rf place && mkdir -p place/empty place/used place/target
    for name in used target; do echo mine >place/$name/note; done
    ln -s target place/link && ln -s nowhere place/dangling && ln -s loop place/loop
    echo mine >place/file && mkfifo place/fifo
    kinds="new:0 a/b/c:0 empty:$there used:$there link:$there file:2 file/below:2 dangling:2 loop:2 fifo:2"
    if [ $can_make_devices = yes ]; then
        mknod place/null c 1 3 && mknod place/full c 1 7
        kinds="$kinds null:2 full:2"
    fi
    if [ -n "$python" ] && "$python" -c 'import socket; socket.socket(socket.AF_UNIX).bind("place/socket")'; then kinds="$kinds socket:2"; fi
    if [ "$(id -u)" != 0 ]; then
        mkdir -m 500 place/locked
        kinds="$kinds locked/x:4"
    fi
    for kind in $kinds; do
        at=place/${kind%:*}
        n=$((n + 1))
        words=$(for word; do printf '%s\n' "$word"; done | sed "s#@#$at#; s#N\$#$n#")
        # shellcheck disable=SC2086
        within $words
        expect "${kind#*:}"
        [ "$status" = 0 ] || grep -q "^temper" err || fail "$last: fails without a word"
        case $status in
        0) [ -e "$at/$file" ] || fail "$last: there is no $at/$file" ;;
        2) grep -qF "${at%/below}" err || fail "$last: '$at' is not named" ;;
        esac
    done
    [ "$(cat place/file place/used/note place/target/note | tr -d '\n')" = mineminemine ] || fail "$last: what was there is lost"
    [ -L place/link ] && [ -L place/dangling ] && [ -L place/loop ] || fail "$last: a link is replaced"
    [ -p place/fifo ] || fail "$last: a pipe is replaced"
    [ $can_make_devices = no ] || { [ -c place/null ] && [ -c place/full ]; } || fail "$last: a device is replaced"
    [ ! -e place/nowhere ] || fail "$last: something is made where a link leads to nothing"
}

folder tokenizer.json 0 tokenizer --vocab-size 270 @ corpus.txt
folder config.json 0 eval eval.yaml -q eval.save_path=@
folder run.json 0 train --quiet tiny.yaml run.dir=@ sft.max_num_steps=1 sft.val_period=0 checkpointing.enabled=false
folder step-1 0 train --quiet tiny.yaml sft.max_num_steps=1 sft.val_period=0 checkpointing.checkpoint_dir=@ run.dir=run-N
folder config.json 2 merge adapter @
folder report.json 2 ablate tiny.yaml -q --lever nothing:run.name=one/two --rounds 1 --steps 1 --warm-up 0 --out @
folder report.json 2 tune tiny.yaml -q --budget 4s --steps 1 --warm-up 0 --out @
folder own-command-time.svg 0 bench history --history h.sqlite --svg @
finish
