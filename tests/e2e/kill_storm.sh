# kill -9 at a random moment, then --resume: TEMPER_KILLS times (default 6) over TEMPER_ALGORITHMS ("sft dpo grpo", GRPO with
# programs that judge).  At the end everything is as if nothing had happened: weights, optimizer, figures of every step, samples;
# and no judge, nor what a judge has started, outlives its run.  The moments come from a seed, TEMPER_SEED.
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/e2e/runs.sh"
kills=${TEMPER_KILLS:-6}
seed=${TEMPER_SEED:-1}
algorithms=${TEMPER_ALGORITHMS:-sft dpo grpo}
here=$(pwd -P)

# Two of them start from a model that has learned a little.
write_recipe tiny.yaml
run train --quiet tiny.yaml run.dir=base sft.max_num_steps=40 sft.val_period=0 checkpointing.save_period=1000
expect 0
model=base/checkpoints/step-40/model

recipe_sft() {
    STEPS=60 EVERY=2
    write_recipe tiny.yaml
}

recipe_dpo() {
    STEPS=40 EVERY=2
    for i in 1 2 3 4 5 6 7 8; do
        echo "{\"prompt\": \"$i+1=\", \"chosen\": \"$((i + 1))\", \"rejected\": \"$((9 - i))$i\"}"
    done >pairs.jsonl
    cat >tiny.yaml <<END
dpo: {max_num_epochs: 100, val_period: 0, reference_policy_kl_penalty: 0.1}
policy:
  model_name: $model
  tokenizer: {chat_template: null}
  train_global_batch_size: 4
  max_total_sequence_length: 16
  sequence_packing: {train_mb_tokens: 64}
  optimizer: {kwargs: {lr: 1.0e-3}}
data: {train: {data_path: pairs.jsonl, split_validation_size: 0}}
checkpointing: {keep_top_k: 2}
END
}

# A judge that heeds no signal, and has a child that does not either and reads nothing.
recipe_grpo() {
    STEPS=24 EVERY=2
    cat >judge.sh <<'END'
trap '' TERM INT HUP
sleep 100000 </dev/null >/dev/null 2>&1 & # no verdict: it only has to be ended
echo started >>judges
while read -r line; do
    x=${line#*'"id":'} id=${x%%[!0-9]*}
    x=${line#*'"completion":"'} said=${x%%'"'*}
    echo "{\"id\":$id,\"reward\":$((${#said} % 5))}"
done
END
    write_judged_recipe 4 4 6 8
}

# count_here: processes that work in the test's folder, this shell among them, into $here_now.
count_here() {
    (cd / && ls -l /proc/[0-9]*/cwd 2>/dev/null | grep -c -- "-> $here\$" >"$here/count")
    here_now=$(cat count)
}

# alone WHO: nothing but this shell is left, within two minutes.
alone() {
    waits=0
    count_here
    while [ "$here_now" -gt 1 ] && [ $waits -lt 2400 ]; do
        sleep 0.05 # no verdict: it asks again
        waits=$((waits + 1))
        count_here
    done
    is "$1: processes left" "$((here_now - 1))" 0
}

# What the last attempt at each step wrote down, in the order of steps.
figures() {
    sed -n 's|.*"step":\([0-9]*\),"axis":"train".*"train/loss":\([-0-9.eNa"]*\)[,}].*|\1 \2|p' "$1/metrics.jsonl" |
        awk '{ last[$1] = $2 } END { for (step in last) print step, last[step] }' | sort -n
}

same_run() {
    same_end whole "$1"
    figures "$1" >figures
    cmp figures figures-whole || fail "$1: other figures than those of the uninterrupted run"
    for file in whole/samples/*; do
        [ ! -e "$file" ] || cmp "$file" "$1/samples/${file##*/}" || fail "$1: other samples"
    done
}

storm() { # ALGORITHM KILLS
    ALGORITHM=$1
    rm -rf whole storm-*
    "recipe_$1"
    begin=$(date +%s%N) # no verdict: until when moments are drawn
    train_to_end whole || fail "$1: the uninterrupted run failed"
    whole_ms=$((($(date +%s%N) - begin) / 1000000)) # no verdict: the same
    alone "$1, uninterrupted"
    figures whole >figures-whole
    is "$1: steps in metrics.jsonl" "$(wc -l <figures-whole)" $STEPS

    # Runs are started again and again until the kills are used up; a run that ends in peace is compared.
    done=0 finished=0 crowd=0
    dir=storm-$finished
    while [ "$done" -lt "$2" ] && [ "$failures" = 0 ]; do
        seed=$(((seed * 1103515245 + 12345) % 2147483648))
        delay_ms=$(((seed / 65536) % (whole_ms + 1)))
        start "$dir" "$([ -d "$dir" ] && echo --resume)"
        # no verdict: a random moment
        sleep "$((delay_ms / 1000)).$(printf '%03d' $((delay_ms % 1000)))"
        count_here
        here_before=$here_now
        kill -9 "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
        status=$?
        alone "$dir"
        if [ $status = 137 ]; then
            done=$((done + 1))
            [ "$here_before" -le 2 ] || crowd=$((crowd + 1))
        else
            [ $status = 0 ] || fail "$dir: a resumed run ended with $status"
            whole_ms=$((whole_ms * 3 / 4 + 50)) # the moments were too late
            same_run "$dir"
            finished=$((finished + 1))
            dir=storm-$finished
        fi
    done
    start "$dir" "$([ -d "$dir" ] && echo --resume)"
    wait "$pid" || fail "$dir: the last resumed run failed"
    alone "$dir"
    same_run "$dir"
    echo "$1: $done kills, $crowd of them while programs of the run lived; $((finished + 1)) runs finished and compared"
}

n=0 given=0
of=$(echo "$algorithms" | wc -w)
for algorithm in $algorithms; do
    n=$((n + 1))
    share=$((kills * n / of - given))
    given=$((given + share))
    storm "$algorithm" $share
done
[ ! -e judges ] || echo "judges that were started: $(wc -l <judges)"
finish
