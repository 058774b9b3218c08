# GRPO divided: each rank answers and judges its share of the prompts, advantages are those of the whole batch, groups are
# left out for all alike; the same losses, rewards and weights as one process, within rounding.
. "$SOURCE/tests/cli/lib.sh"
. "$MPI_LIB"
write_recipe tiny.yaml
run train --quiet tiny.yaml run.dir=base sft.max_num_steps=120 sft.val_period=0 checkpointing.save_period=1000 \
    policy.train_global_batch_size=64 policy.train_micro_batch_size=64 data.arithmetic.n_examples=5000
expect 0

# Two updates for each rollout, a reference, groups without spread replaced.
write_grpo
run train --quiet grpo.yaml run.dir=one engine.threads=1
expect 0
for n in 2 3; do
    ranks $n train --quiet grpo.yaml run.dir=ranks-$n
    expect 0
    nearly one ranks-$n 1e-5 1e-4
    # The same answers, by the same prompts.
    for step in 1 12; do
        answers=$(grep -o '"answer": *"[^"]*"' one/samples/step-$step.jsonl | sort | md5sum)
        is "answers of step $step on $n ranks" "$(grep -o '"answer": *"[^"]*"' ranks-$n/samples/step-$step.jsonl | sort | md5sum)" "$answers"
    done
done
ranks 2 train --quiet grpo.yaml run.dir=shard distributed.strategy=shard_optimizer
expect 0
nearly ranks-2 shard 0 0
for strategy in shard_gradients full_shard; do
    ranks 2 train --quiet grpo.yaml run.dir=$strategy distributed.strategy=$strategy
    expect 0
    nearly one $strategy 1e-5 1e-4
done

# Weights gathered in each step of generation, also while a rank has no answers left to wait for: the same, in less memory.
for n in 2 3; do
    ranks $n train --quiet grpo.yaml run.dir=layers-$n distributed.strategy=full_shard distributed.gathered_copy=false
    expect 0
    nearly one layers-$n 1e-5 1e-4
    is "memory of a rank" "$("$TOOL" get layers-$n/run.json memory.measured_peak_bytes)" \
        "$("$TOOL" get layers-$n/run.json memory.planned_peak_bytes)"
done
copies=$("$TOOL" get full_shard/run.json memory.planned_bytes_by_kind.shadow)
layers=$("$TOOL" get layers-2/run.json memory.planned_bytes_by_kind.shadow)
[ "$layers" -lt "$copies" ] || fail "$layers bytes of copies, $copies with a gathered one"
finish
