# A step that is not finite, and a spike of the loss: a run that passes over one ends as the run
# that never saw its batch, one that goes back to a checkpoint as the run restarted from there.
. "$SOURCE/tests/cli/lib.sh"
make_model
i=0
while [ $i -lt 32 ]; do
    echo "{\"input\": \"hello $i and\", \"output\": \"$((i * 7 % 50)) are four $i\"}"
    i=$((i + 1))
done >rows.jsonl
sed '13,16d' rows.jsonl >without.jsonl
cat >base.yaml <<'END'
sft: {max_num_epochs: 4, max_num_steps: 8, val_period: 0, val_at_end: false}
policy:
  model_name: model
  precision: float32
  tokenizer: {chat_template: null}
  train_global_batch_size: 4
  train_micro_batch_size: 2
  max_total_sequence_length: 32
  optimizer: {kwargs: {lr: 1.0e-2, weight_decay: 0.01, betas: [0.9, 0.95], eps: 1.0e-8}}
  scheduler: [{name: torch.optim.lr_scheduler.LinearLR, kwargs: {start_factor: 0.1, end_factor: 1.0, total_iters: 5}}, {milestones: []}]
data: {shuffle: false, train: {data_path: rows.jsonl}}
checkpointing: {save_period: 2}
END
same_weights() {
    for file in model/model.safetensors optimizer.safetensors; do
        cmp "$1/checkpoints/step-$2/$file" "$3/checkpoints/step-$4/$file" ||
            fail "$file of $1 is not that of $3"
    done
}

# Skipped: as if the batch had not been there, warm-up of the learning rate included.
run train base.yaml run.dir=skip train.inject_nan=[4] train.nonfinite_policy=skip
expect 0
expect_out "step 4: loss " "gradient norm NaN: not finite" "every result is finite when the step is run again" \
    "the update is skipped"
run train -q base.yaml run.dir=unseen data.train.data_path=without.jsonl sft.max_num_steps=7
expect 0
same_weights skip 8 unseen 7
is "skipped steps" "$("$TOOL" get skip/run.json result.skipped_steps)" 1
is "steps with a skipped update" "$(grep -c '"train/skipped":1' skip/metrics.jsonl)" 1

# The step is kept: what happened, and the batch, of every micro-batch.
record=skip/bad-steps/step-4/record.json
is "why" "$("$TOOL" get $record why)" "not finite"
is "action" "$("$TOOL" get $record action)" "the update is skipped"
is "gradients" "$("$TOOL" get $record bad_gradients)" "model.embed_tokens.weight"
is "files" "$(ls skip/bad-steps/step-4 | tr '\n' ' ')" "micro-0.safetensors micro-1.safetensors record.json "

# Back to the checkpoint of step 4 after two bad steps: as if started from there again.
run train base.yaml run.dir=back train.inject_nan=[5,6] train.nonfinite_policy=restore train.max_skipped=1
expect 0
expect_out "the update is skipped" "going back to the last checkpoint before" "/step-4'"
run train -q base.yaml run.dir=again sft.max_num_steps=4
expect 0
run train -q base.yaml run.dir=again --resume
expect 0
same_weights back 8 again 8
is "restores" "$("$TOOL" get back/run.json result.restores)" 1
is "skipped steps" "$("$TOOL" get back/run.json result.skipped_steps)" 2

# Rates that an alarm lowered stay lowered there.
run train -q base.yaml run.dir=lowered policy.scheduler=null train.inject_nan=[5,6] train.nonfinite_policy=restore \
    train.max_skipped=1 'monitor.alarms=[{when: gradient norm is not finite, name: nan, do: {lower_rate: 0.5}}]'
expect 0
run metrics lowered train/lr --json
is "rates" "$(sed 's/\[[0-9]*,[0-9.]*,//g' out)" '{"train/lr":[0.01],0.01],0.01],0.01],0.005],0.005],0.005],0.005]]}'

# What comes again is no accident; without a checkpoint there is no way back.
run train base.yaml run.dir=always policy.optimizer.kwargs.lr=1000 policy.optimizer.kwargs.weight_decay=1000 \
    policy.max_grad_norm=null policy.scheduler=null checkpointing.save_period=1 train.nonfinite_policy=restore train.max_skipped=0
expect 6 "they are no accident"
run train base.yaml run.dir=none train.inject_nan=[1] train.nonfinite_policy=restore train.max_skipped=0
expect 6 "has no checkpoint from before them"
run train base.yaml run.dir=off train.nonfinite_policy=restore checkpointing.enabled=false
expect 2 "checkpointing.enabled" "goes back to a checkpoint"

# The default ends the run, and names the step.
run train base.yaml run.dir=stop train.inject_nan=[3]
expect 6 "step 3 is not finite" "train.nonfinite_policy=skip"

# A spike: one batch of other text, after enough steps to know the others by.
{
    i=0
    while [ $i -lt 48 ]; do
        echo '{"input": "two and two", "output": " are four"}'
        i=$((i + 1))
    done
    i=0
    while [ $i -lt 4 ]; do
        echo '{"input": "quick", "output": "zzzzqqqqxxxxjjjjzzzz"}'
        i=$((i + 1))
    done
    i=0
    while [ $i -lt 8 ]; do
        echo '{"input": "two and two", "output": " are four"}'
        i=$((i + 1))
    done
} >spike.jsonl
sed '49,52d' spike.jsonl >calm.jsonl
spiky="policy.optimizer.kwargs.lr=3e-2 policy.scheduler=null train.spike_threshold=3"
run train base.yaml run.dir=spike $spiky data.train.data_path=spike.jsonl sft.max_num_steps=15 train.spike_policy=skip
expect 0
expect_out "step 13: loss " "a spike of the loss; the update is skipped"
run train -q base.yaml run.dir=calm $spiky data.train.data_path=calm.jsonl sft.max_num_steps=14
expect 0
same_weights spike 15 calm 14
is "skipped steps" "$("$TOOL" get spike/run.json result.skipped_steps)" 1
# What is unusual is known across a resume.
run train -q base.yaml run.dir=resumed $spiky data.train.data_path=spike.jsonl sft.max_num_steps=12 train.spike_policy=skip
expect 0
run train base.yaml run.dir=resumed $spiky data.train.data_path=spike.jsonl sft.max_num_steps=15 train.spike_policy=skip --resume
expect 0
expect_out "a spike of the loss"
same_weights spike 15 resumed 15

# Clipping: every way has an effect, and goes on bit for bit after a resume.
run train -q base.yaml run.dir=plain policy.max_grad_norm=100 policy.optimizer.kwargs.lr=5e-2
expect 0
for clip in policy.clip_grad_value=1e-4 policy.adaptive_clip_factor=0.01 policy.percentile_clipping=20; do
    run train -q base.yaml run.dir=clip-$clip policy.max_grad_norm=100 policy.optimizer.kwargs.lr=5e-2 $clip
    expect 0
    run train -q base.yaml run.dir=parts-$clip policy.max_grad_norm=100 policy.optimizer.kwargs.lr=5e-2 $clip sft.max_num_steps=4
    expect 0
    run train -q base.yaml run.dir=parts-$clip policy.max_grad_norm=100 policy.optimizer.kwargs.lr=5e-2 $clip --resume
    expect 0
    same_weights clip-$clip 8 parts-$clip 8
    cmp -s clip-$clip/checkpoints/step-8/model/model.safetensors plain/checkpoints/step-8/model/model.safetensors &&
        fail "$clip changes nothing"
done
run train base.yaml run.dir=two policy.clip_grad_value=1 policy.adaptive_clip_factor=0.01
expect 2 "exclude each other"
finish
