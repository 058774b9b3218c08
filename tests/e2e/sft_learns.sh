# A tiny model learns one-digit sums within seconds, whatever the seed and the last bits: loss on questions it never saw, and answers.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml
run train --quiet tiny.yaml run.dir=learned engine.threads=1 \
    policy.max_total_sequence_length=8 policy.train_global_batch_size=64 \
    policy.train_micro_batch_size=64 sft.max_num_steps=800 sft.val_at_end=true sft.val_period=0 sft.val_batches=0 \
    sft.val_global_batch_size=64 policy.optimizer.kwargs.lr=1.0e-2 policy.optimizer.kwargs.weight_decay=0.3 \
    "policy.scheduler=[{name: torch.optim.lr_scheduler.LinearLR, kwargs: {start_factor: 1.0, end_factor: 0.02, total_iters: 800}}]" \
    data.arithmetic.n_examples=5000 data.arithmetic.n_validation=64 \
    data.arithmetic.form=plain checkpointing.save_period=1000
expect 0
loss=$("$TOOL" get learned/run.json result.val_loss)
echo "validation loss $loss"
awk -v loss="$loss" 'BEGIN { exit !(loss < 0.5) }' || fail "validation loss $loss, not below 0.5"

right=0
for sum in 2+3 4+4 1+7 5+2 3+6 2+2 6+1 3+3; do
    answer=$("$TEMPER" generate --max-new-tokens 3 learned "$sum=" 2>/dev/null)
    [ "$answer" = $(($sum)) ] && right=$((right + 1))
done
echo "$right of 8 answers right"
[ "$right" -ge 6 ] || fail "only $right of 8 answers are right"
finish
