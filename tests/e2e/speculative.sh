# Speculative decoding by prompt lookup: whatever is tried, answers, log-probabilities and what GRPO makes of them are
# the same, byte for byte.
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/e2e/runs.sh"

# same FLAG...: generate --json, without and with drafts of several sizes.
same() {
    run generate --json "$@"
    expect 0
    cp out answers
    for n in 1 4 9; do
        run generate --json --prompt-lookup $n "$@"
        expect 0
        cmp -s answers out || fail "--prompt-lookup $n: other answers: $*"
    done
}
make_model
same -m 40 model "the quick the quick the quick"
same -m 40 -t 1 -n 5 --seed 3 --precision float32 model "the quick the quick" "a" "lazy lazy lazy lazy"
same -m 40 -t 0.5 --top-k 8 --top-p 0.9 --min-p 0.05 -n 3 --kv-dtype float32 model "to be or not to be or not"
same -m 30 -t 0.7 -n 6 --kv-memory 24K --kv-dtype float32 model "the quick" "lazy dog"
same -m 40 -t 1 --stop e --stop "o r" --base int8 model "the quick the quick the quick"
same -m 40 --batch 1 --threads 1 --base nf4 --ignore-eos model "one two one two one two"
same -m 30 --ignore-eos model "aaaaaaaaaaaaaaaaaaaaaaaa"
cp -r model ruled
echo '{"do_sample": true, "temperature": 0.6, "repetition_penalty": 1.1, "no_repeat_ngram_size": 4, "suppress_tokens": [5],
       "min_new_tokens": 9, "max_new_tokens": 30}' >ruled/generation_config.json
same -n 4 ruled "the quick the quick the quick"

# Adapters of one batch.
for name in a b; do
    run train --quiet "$SOURCE/recipes/sft.yaml" policy.model_name=model policy.tokenizer.chat_template=null \
        data.train.data_path=text.jsonl data.train.split_validation_size=0 policy.max_total_sequence_length=32 \
        policy.train_global_batch_size=2 policy.optimizer.kwargs.lr=0.02 policy.scheduler=null \
        policy.peft.enabled=true policy.precision=float32 run.dir=$name seed=${#name} policy.peft.dim=$([ $name = a ] && echo 4 || echo 8)
    expect 0
    echo "{\"prompt\": \"the quick the quick the quick\", \"adapter\": \"$name\"}" >>rows.jsonl
done
same -m 30 -t 0.5 -n 3 --prompts rows.jsonl --adapter a=a --adapter b=b model

# A conversation is said word for word, however many words a step finds.
printf 'say it say it say it\nagain again again\n' >lines
for n in 0 6; do
    "$TEMPER" chat -m 24 --seed 2 --prompt-lookup $n model <lines >said-$n 2>err || fail "chat --prompt-lookup $n"
done
cmp said-0 said-6 || fail "chat says something else with drafts"
run generate --prompt-lookup 5000 model x
expect 2 "prompt-lookup"

# GRPO: the same weights and samples, also where it was killed.
write_recipe tiny.yaml
run train --quiet tiny.yaml run.dir=base sft.max_num_steps=2 sft.val_period=0 checkpointing.save_period=1000
expect 0
STEPS=4
cat >tiny.yaml <<'END'
grpo: {num_prompts_per_step: 6, num_generations_per_prompt: 4, max_num_steps: 4, max_num_epochs: 100, val_period: 2, max_val_samples: 8}
policy:
  model_name: base/checkpoints/step-2/model
  tokenizer: {chat_template: null}
  train_global_batch_size: 12
  train_micro_batch_size: 8
  max_total_sequence_length: 32
  generation: {max_new_tokens: 20, max_running: 8, temperature: 0.3}
  optimizer: {kwargs: {lr: 1.0e-3}}
data:
  train: {dataset_name: arithmetic}
  arithmetic: {n_examples: 200, n_validation: 20, digits: 1, operators: "+"}
checkpointing: {save_period: 2}
END
config=policy.generation.vllm_kwargs.speculative_config
drafts="$config.num_speculative_tokens=4 $config.prompt_lookup_max=3 $config.prompt_lookup_min=1"
run train --quiet tiny.yaml run.dir=plain
expect 0
# shellcheck disable=SC2086
run train --quiet tiny.yaml run.dir=drafted $drafts
expect 0
same_end plain drafted
for step in 1 4; do
    cmp plain/samples/step-$step.jsonl drafted/samples/step-$step.jsonl || fail "step $step: other answers"
done
last() { sed -n 's/.*"step":4,"axis":"train".*"'$2'":\([0-9.e-]*\).*/\1/p' $1/metrics.jsonl; }
for name in train\\/reward train\\/loss generation\\/decode_tokens; do
    is "$name with drafts" "$(last drafted $name)" "$(last plain $name)"
done
sum() { sed -n 's/.*"axis":"train".*"generation\/'$1'":\([0-9]*\).*/\1/p' drafted/metrics.jsonl | awk '{ n += $1 } END { print n }'; }
right=$(sum accepted_tokens) tried=$(sum drafted_tokens)
{ [ "${right:-0}" -gt 0 ] && [ "$tried" -gt "$right" ]; } || fail "of ${tried:-no} tokens ${right:-none} were right"
grep -q drafted plain/metrics.jsonl && fail "a run without drafts counts them"
tr -d ' \n' <drafted/run.json | grep -q '"name":"speculative-decoding","state":"on"' || fail "run.json has no such lever"
# shellcheck disable=SC2086
interrupt KILL 3 "$TEMPER" train --quiet tiny.yaml run.dir=killed $drafts
# shellcheck disable=SC2086
run train --quiet --resume tiny.yaml run.dir=killed $drafts
expect 0
same_end plain killed
# shellcheck disable=SC2086
run train --quiet tiny.yaml run.dir=refused $drafts $config.prompt_lookup_min=4
expect 2 "prompt_lookup_min is 4, prompt_lookup_max 3"
finish
