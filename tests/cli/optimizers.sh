# A run with another optimizer than the default: learns, resumes bit for bit, and its checkpoints
# are refused where the optimizer is another.
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/e2e/runs.sh"
STEPS=6 EVERY=3
write_recipe tiny.yaml
train() {
    run train --quiet tiny.yaml 'policy.optimizer.kwargs={_override_: true, lr: 0.5, momentum: 0.9}' \
        policy.optimizer.name=torch.optim.SGD checkpointing.save_period=3 "$@"
}
train run.dir=whole sft.max_num_steps=6
expect 0
train run.dir=parts sft.max_num_steps=3
expect 0
train run.dir=parts sft.max_num_steps=6 --resume
expect 0
same_end whole parts
is "the checkpoint's optimizer" "$("$TOOL" get whole/checkpoints/step-6/state.json optimizer)" SGD
grep -q sgd_momentum whole/checkpoints/step-6/optimizer.safetensors || fail "no momentum is saved"
grep -q adam_ whole/checkpoints/step-6/optimizer.safetensors && fail "moments of AdamW are saved"

run train --quiet tiny.yaml run.dir=whole sft.max_num_steps=8 --resume
expect 2 "was saved with the optimizer SGD, this run has AdamW (policy.optimizer.name)"
finish
