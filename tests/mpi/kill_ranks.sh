# Each of three ranks (TEMPER_RANKS) is killed at KILLS random moments of one run (TEMPER_KILLS; 2 without), which is resumed each time: every process
# ends, and in the end it has the weights and the optimizer's state of a run that nobody disturbed, bit for bit.  By hand also with words in STRATEGY
# (distributed.tensor_parallel_size=2 takes an even number), and with ALGORITHM=grpo.
. "$SOURCE/tests/cli/lib.sh"
. "$MPI_LIB"
write_recipe tiny.yaml
kills=${TEMPER_KILLS:-2}
seed=${TEMPER_SEED:-1}
many=${TEMPER_RANKS:-3} # STRATEGY="hybrid distributed.ranks_per_node=2" takes four
longest=0
stuck=0
algorithm=${ALGORITHM:-sft}
recipe=tiny.yaml
sed -i 's/"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16/"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8/' tiny.json
words="$algorithm.val_period=0 checkpointing.save_period=20 checkpointing.keep_top_k=2 checkpointing.metric_name=null
       $algorithm.max_num_epochs=100000 distributed.strategy=${STRATEGY:-ddp}"
if [ "$algorithm" = grpo ]; then
    run train --quiet tiny.yaml run.dir=base sft.max_num_steps=120 sft.val_period=0 checkpointing.save_period=1000
    expect 0
    write_grpo "seed: 6"
    recipe=grpo.yaml
else
    words="$words policy.train_micro_batch_size=2"
fi

# moment N: the same milliseconds below 2000 for the same seed
moment() { awk -v seed="$seed" -v n="$1" 'BEGIN {srand(seed * 1000 + n); rand(); printf "%d\n", 2000 * rand()}'; }
now_ms() { date +%s%3N; } # no verdict: it is told, and that mpirun is stuck
newest() { find run/checkpoints -maxdepth 1 -name 'step-*' 2>/dev/null | sort -V | tail -n 1; }
descendants() { pgrep -P "$1" 2>/dev/null; }

all_run() { # MPIRUN
    for rank in $(seq 0 $((many - 1))); do process_of "$1" "$rank" >/dev/null || return 1; done
}

n=0
for k in $(seq "$kills"); do
    for victim in $(seq 0 $((many - 1))); do
        n=$((n + 1))
        resume=--resume # unless it was killed before there was anything
        ls -d run/checkpoints/step-* >/dev/null 2>&1 || { rm -rf run; resume=; }
        # shellcheck disable=SC2086
        mpirun --oversubscribe -n "$many" "$TEMPER" train --quiet $resume $recipe $words run.dir=run engine.threads=1 \
            $algorithm.max_num_steps=1000000 >out 2>err </dev/null &
        pid=$!
        wait_until "all_run $pid" || break 2
        all=$(descendants $pid)
        # Every other time when it has got on, else even while it starts.
        before=$(newest)
        [ $((n % 2)) = 1 ] || wait_until "[ \"\$(newest)\" != \"$before\" ]" || break 2
        # no verdict: a random moment
        sleep "$(moment $n | awk '{print $1 / 1000}')"
        kill -9 "$(process_of $pid $victim)" || fail "kill $n: rank $victim is over already"
        began=$(now_ms)
        all_gone "$all"
        took=$(($(now_ms) - began))
        # mpirun itself may not come to its end when a rank dies while it starts (a lock of its PMIx): it has no ranks any more.
        while lives $pid && [ $(($(now_ms) - began)) -le $((took + 5000)) ]; do sleep 0.02; done
        lives $pid && kill -9 $pid && stuck=$((stuck + 1))
        wait $pid && fail "kill $n: the run succeeded without rank $victim"
        [ $took -gt $longest ] && longest=$took
    done
done
echo "$n kills; all ranks were gone after $longest ms at most; mpirun had to be ended $stuck times"

# Nothing is lost: it goes on to the next multiple of 100 as if nothing had been.
steps=$(newest | sed 's/.*-//')
steps=$(((${steps:-0} / 100 + 1) * 100))
resume=--resume
ls -d run/checkpoints/step-* >/dev/null 2>&1 || { rm -rf run; resume=; }
# shellcheck disable=SC2086
ranks "$many" train --quiet $resume $recipe $words run.dir=run $algorithm.max_num_steps=$steps
expect 0
# shellcheck disable=SC2086
ranks "$many" train --quiet $recipe $words run.dir=undisturbed $algorithm.max_num_steps=$steps
expect 0
for file in model/model.safetensors optimizer.safetensors; do
    cmp "undisturbed/checkpoints/step-$steps/$file" "run/checkpoints/step-$steps/$file" || fail "$file of step $steps differs"
done
echo "weights of step $steps are those of an undisturbed run"
finish
