# A run with another optimizer than the default: learns, resumes bit for bit, and its checkpoints
# are refused where the optimizer is another.
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/e2e/runs.sh"
STEPS=6 EVERY=3
write_recipe tiny.yaml
# What is kept of a parameter, in bytes of all parameters; runs that end alike in one piece and in two.
follow() {
    optimizer=$1 kwargs=$2 title=$3 bytes=$4
    shift 4
    rm -rf whole parts
    run plan tiny.yaml --json "policy.optimizer.kwargs={_override_: true, $kwargs}" \
        policy.optimizer.name="$optimizer"
    expect 0
    cp out plan.json
    is "bytes planned for $title" "$("$TOOL" get plan.json memory.optimizer)" "$bytes"
    for part in 'whole 6' 'parts 3' 'parts 6 --resume'; do
        set -- $part
        run train --quiet tiny.yaml "policy.optimizer.kwargs={_override_: true, $kwargs}" \
            policy.optimizer.name="$optimizer" checkpointing.save_period=3 run.dir="$1" \
            sft.max_num_steps="$2" ${3:-}
        expect 0
    done
    same_end whole parts
    is "the checkpoint's optimizer" \
        "$("$TOOL" get whole/checkpoints/step-6/state.json optimizer)" "$title"
}
follow torch.optim.Adafactor 'lr: 0.05' Adafactor 5904
follow torch.optim.Muon 'lr: 0.02, adamw_lr: 0.01' Muon 141568
follow bitsandbytes.optim.AdamW8bit 'lr: 0.01, min_8bit_size: 1024' AdamW8bit 117504
follow torch.optim.SGD 'lr: 0.5, momentum: 0.9' SGD 107648
grep -q sgd_momentum whole/checkpoints/step-6/optimizer.safetensors || fail "no momentum is saved"
grep -q adam_ whole/checkpoints/step-6/optimizer.safetensors && fail "moments of AdamW are saved"

run train --quiet tiny.yaml run.dir=whole sft.max_num_steps=8 --resume
expect 2 "was saved with the optimizer SGD, this run has AdamW (policy.optimizer.name)"
finish
