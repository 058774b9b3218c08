# GRPO and DPO as a user meets them: what cannot be, what is left out and counted, what stops a run.
. "$SOURCE/tests/cli/lib.sh"
make_model
cat >rows.jsonl <<'END'
{"question": "the quick", "answer": "#### 1"}
{"question": "brown fox", "answer": "#### 2"}
{"question": "jumps over", "answer": "#### 3"}
{"question": "the lazy dog", "answer": "#### 4"}
END
cat >judge.sh <<'END'
while read -r line; do
    id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
    case $((id % 4)) in
    0) echo "{\"id\":$id,\"reward\":1,\"correct\":true,\"answer\":\"one\",\"metrics\":{\"turns\":3}}" ;;
    1) echo "{\"id\":$id,\"reward\":0}" ;;
    2) echo "{\"id\":$id,\"reward\":NaN}" ;;
    3) echo "{\"id\":$id,\"verdict\":\"nice\"}" ;;
    esac
done
END
write_grpo "num_generations_per_prompt: 4, max_num_steps: 2" \
    "mine: {type: program, command: [sh, judge.sh], timeout: 600, num_workers: 1}"
metric() { # RUN STEP TAG
    sed -n 's|.*"step":'"$2"',"axis":"train".*"'"$3"'":\([-0-9.eNa"]*\).*|\1|p' "runs/$1/metrics.jsonl"
}

# What cannot be is said with its place.
run train grpo.yaml dpo.max_num_steps=3
expect 2 "a run is one of the two"
run train grpo.yaml policy.train_global_batch_size=3
expect 2 "does not divide the 8 answers of a rollout"
run train grpo.yaml loss_fn.sequence_level_importance_ratios=true
expect 2 "token_level_loss=false"
for other in disable_ppo_ratio=true force_on_policy_ratio=true ratio_clip_c=1.5 token_level_loss=false; do
    run train grpo.yaml loss_fn.use_cispo=true loss_fn.$other
    expect 2 "loss_fn.${other%=*}: does not go with loss_fn.use_cispo=true"
done
run train grpo.yaml loss_fn.ratio_clip_c=1
expect 2 "must be above 1"
run train grpo.yaml loss_fn.use_importance_sampling_correction=true loss_fn.truncated_importance_sampling_type=icepop \
    loss_fn.truncated_importance_sampling_ratio=1 loss_fn.truncated_importance_sampling_ratio_min=2
expect 2 "is above loss_fn.truncated_importance_sampling_ratio"
# Without a ratio a type bounds nothing, as in NeMo RL 0.6.
run config grpo.yaml loss_fn.truncated_importance_sampling_type=tis
expect 0
run config grpo.yaml loss_fn.truncated_importance_sampling_type=tis loss_fn.truncated_importance_sampling_ratio=2
expect 2 "needs loss_fn.use_importance_sampling_correction=true"
run train grpo.yaml grpo.advantage_clip_low=2 grpo.advantage_clip_high=-2
expect 2 "is above grpo.advantage_clip_high"
run train grpo.yaml grpo.adv_estimator.name=gae
expect 2 "is not one of grpo, rloo, dr_grpo, reinforce_plus_plus, raw_reward"
run train grpo.yaml 'policy.generation.stop_strings=[""]'
expect 2 "policy.generation.stop_strings: the text at place 1 is empty"
run train grpo.yaml grpo.num_generation_per_prompt=3
expect 2 "num_generations_per_prompt"
run train grpo.yaml env=null
expect 2 "nothing says what an answer is worth"

# A judge that says NaN or nonsense: those answers are left out and counted, the others are learned from.
run train --quiet grpo.yaml run.name=judged
expect 0
is "rewards" "$(metric judged 1 rollout/rewards/ok)" 4
is "not a number" "$(metric judged 1 rollout/rewards/nan)" 2
is "nonsense" "$(metric judged 1 rollout/rewards/nonsense)" 2
is "mean of the rewards that there are" "$(metric judged 1 train/reward)" 0.5
is "trained answers" "$(metric judged 1 train/num_valid_samples)" 4
grep -q '"status":"nan","reward":"NaN"' runs/judged/samples/step-1.jsonl || fail "samples do not say what had no verdict"
grep -q '"verdict":{"correct":true,"answer":"one","parts":{"turns":3}}' runs/judged/samples/step-1.jsonl ||
    fail "samples lack what else the judge said"
grep -q '"status":"nonsense",.*"verdict":{"why":"' runs/judged/samples/step-1.jsonl || fail "samples lack why there is no reward"

# Rewards that are all equal: nothing to learn, and that is said; the run goes on.
run train --quiet grpo.yaml run.name=equal '~env.mine' 'env.exact={}'
expect 0
is "groups of zero spread" "$(metric equal 1 rollout/zero_spread_groups)" 1
is "gradient of nothing" "$(metric equal 1 train/grad_norm)" 0

# Epochs are passes over the prompts that were drawn: groups that are replaced count, a part of a step does.
run train --quiet grpo.yaml run.name=passes '~env.mine' 'env.exact={}' grpo.max_num_steps=100 grpo.max_num_epochs=3 \
    grpo.use_dynamic_sampling=true grpo.dynamic_sampling_max_gen_batches=3
expect 0
is "steps that draw 6 of 4 prompts each" "$("$TOOL" get runs/passes/run.json step)" 2
is "passes after a step" "$(metric passes 1 train/epoch)" 1.5
is "passes after two steps" "$(metric passes 2 train/epoch)" 3
run train grpo.yaml run.name=passes '~env.mine' 'env.exact={}' grpo.max_num_steps=100 grpo.max_num_epochs=3 \
    grpo.use_dynamic_sampling=true grpo.dynamic_sampling_max_gen_batches=3 --resume
expect 0
grep -q "all 2 steps are done: nothing is left to do" out || fail "a run whose epochs are over goes on"
run train --quiet grpo.yaml run.name=parts '~env.mine' 'env.exact={}' grpo.max_num_steps=100 grpo.max_num_epochs=2 \
    grpo.num_prompts_per_step=3 policy.train_global_batch_size=12
expect 0
is "steps that draw 3 of 4 prompts each" "$("$TOOL" get runs/parts/run.json step)" 3
is "passes after three steps" "$(metric parts 3 train/epoch)" 2.25

# Prompts that leave no room to answer are left out; a cache that holds one answer makes the others wait.
printf '{"question": "%s", "answer": "1"}\n' "$(seq -s ' ' 100)" >>rows.jsonl
run train --quiet grpo.yaml run.name=long grpo.num_prompts_per_step=5 policy.train_global_batch_size=20
expect 0
is "prompts left out" "$(metric long 1 rollout/prompts_left_out)" 1
run train --quiet grpo.yaml run.name=many policy.precision=float32 logger.samples=-1
expect 0
run train --quiet grpo.yaml run.name=small policy.precision=float32 logger.samples=-1 policy.generation.max_running=1
expect 0
is "answers at once" "$(metric small 1 generation/peak_running)" 1
cut -d, -f1-6 runs/many/samples/step-1.jsonl >many
cut -d, -f1-6 runs/small/samples/step-1.jsonl >small
cmp many small || fail "answers depend on how many are generated at once"

# Training and evaluation end an answer in the same way and judge the same text: what the model names ends it,
# and is no text; a stop string ends it, and is.
run generate --max-new-tokens 4 --precision float32 --json model "the quick
"
end=$("$TOOL" get out ids.0)
cp -r model ending
echo "{\"eos_token_id\": [$end]}" >ending/generation_config.json
run train --quiet grpo.yaml run.name=ended grpo.max_num_steps=1 data.shuffle=false policy.generation.top_k=1 \
    policy.precision=float32 policy.model_name=ending
expect 0
head -n 1 runs/ended/samples/step-1.jsonl >first
is "tokens until the end that the model names" "$("$TOOL" get first tokens)" 1
asked="generation.max_new_tokens=16 tokenizer.chat_template=null data.data_path=rows.jsonl env.exact={}
    generation.vllm_cfg.precision=float32 generation.vllm_cfg.max_model_len=32"
# shellcheck disable=SC2086
run eval --out ended.json $asked generation.model_name=ending
expect 0
is "tokens until that end" "$("$TOOL" get ended.json prompts.0.samples.0.n_tokens)" 1
is "the text up to that end" "$("$TOOL" get ended.json prompts.0.samples.0.text)" "$("$TOOL" get first answer)"
stops="stop_strings=[$(printf '%s, ' a b c d e f g h i j k l m n o p q r s t u v w x)z]"
# shellcheck disable=SC2086
run eval --out stopped.json $asked generation.model_name=model generation.temperature=1 "generation.$stops"
expect 0
tr -d ' \n' <stopped.json | grep -q '"text":"[^"]*[a-z]","n_tokens":[0-9]*,"finish":"stop"' ||
    fail "an evaluation judges answers without the stop string"
run train --quiet grpo.yaml run.name=stopped grpo.max_num_steps=1 policy.generation.max_new_tokens=16 "policy.generation.$stops"
expect 0
grep -q '"answer":"[^"]*[a-z]","finish":"stop"' runs/stopped/samples/step-1.jsonl ||
    fail "GRPO judges answers without the stop string"

# Answers that are all right and of different lengths: what is shaped is what is learned from and logged, beside
# what was judged, but it makes no group that dynamic sampling keeps.
cat >ones.sh <<'END'
exec sed -u 's/.*"id":\([0-9]*\).*/{"id":\1,"reward":1}/'
END
shaped="env.mine.command=[sh,ones.sh] grpo.reward_shaping.enabled=true grpo.reward_shaping.overlong_buffer_length=15
    grpo.reward_shaping.max_response_length=16 policy.generation.max_new_tokens=16"
# shellcheck disable=SC2086
run train --quiet grpo.yaml run.name=shaped grpo.max_num_steps=1 $shaped "policy.generation.$stops"
expect 0
is "groups of shaped rewards without spread" "$(metric shaped 1 rollout/zero_spread_groups)" 0
is "reward as judged" "$(metric shaped 1 rollout/raw_reward)" 1
is "groups of right answers, in percent" "$(metric shaped 1 train/baseline_reward/pct_1)" 100
is "reward of all answers" "$(metric shaped 1 train/reward)" "$(metric shaped 1 train/filtered_reward)"
[ "$(metric shaped 1 train/reward)" != 1 ] || fail "train/reward is not shaped"
# shellcheck disable=SC2086
run train --quiet grpo.yaml run.name=unshaped grpo.max_num_steps=1 $shaped "policy.generation.$stops" \
    grpo.use_dynamic_sampling=true grpo.dynamic_sampling_max_gen_batches=2
expect 0
is "draws in search of a spread before shaping" "$(metric unshaped 1 train/dynamic_sampling_num_gen_batches)" 2
is "groups without one that are trained" "$(metric unshaped 1 rollout/groups_trained)" 0
is "groups without a spread before shaping" "$(metric unshaped 1 rollout/zero_spread_groups)" 1

# Of a loss by answers its parts are means by answers, before they are weighed.
run train --quiet grpo.yaml run.name=parts-of-loss 'env.mine.command=[sh,ones.sh]' policy.generation.max_new_tokens=16 \
    "policy.generation.$stops" loss_fn.token_level_loss=false loss_fn.reference_policy_kl_penalty=0.5 \
    loss_fn.positive_example_nll_weight=0.1 policy.optimizer.kwargs.lr=0.01
expect 0
kl=$(metric parts-of-loss 2 train/kl_penalty) nll=$(metric parts-of-loss 2 train/positive_nll_loss)
awk "BEGIN { d = $(metric parts-of-loss 2 train/loss) - 0.5 * $kl - 0.1 * $nll; exit !($kl > 0.001 && d * d < 1e-10) }" ||
    fail "the loss is not that of its parts, kl $kl and nll $nll"

# Variants of the loss and of the advantages all run; old log-probabilities are needed only with several updates.
for variant in "grpo.adv_estimator.name=rloo" "grpo.adv_estimator.name=reinforce_plus_plus loss_fn.reference_policy_kl_penalty=0.1 loss_fn.use_kl_in_reward=true" \
    "grpo.adv_estimator.name=dr_grpo loss_fn.length_divisor=4" "loss_fn.sequence_level_importance_ratios=true loss_fn.token_level_loss=false" \
    "loss_fn.use_cispo=true policy.train_global_batch_size=4" "loss_fn.disable_ppo_ratio=true" "loss_fn.force_on_policy_ratio=true" \
    "loss_fn.use_importance_sampling_correction=true loss_fn.truncated_importance_sampling_type=tis loss_fn.truncated_importance_sampling_ratio=2" \
    "grpo.use_dynamic_sampling=true grpo.dynamic_sampling_max_gen_batches=2" "grpo.overlong_filtering=true" \
    "grpo.seq_logprob_error_threshold=1.5 grpo.reward_scaling.enabled=true grpo.reward_shaping.enabled=true" \
    "policy.sequence_packing.enabled=false"; do
    rm -rf runs/variant
    # shellcheck disable=SC2086
    run train --quiet grpo.yaml run.name=variant grpo.max_num_steps=1 $variant
    expect 0
done

# DPO: malformed pairs are named, or left out and counted.
cat >pairs.jsonl <<'END'
{"prompt": "the quick", "chosen": " brown", "rejected": " dog"}
{"prompt": "the quick", "chosen": 7, "rejected": " dog"}
{"prompt": "the lazy", "chosen": " dog", "rejected": " fox"}
END
dpo="dpo.max_num_steps=1 policy.model_name=model policy.tokenizer.chat_template=null policy.max_total_sequence_length=32
     data.train.data_path=pairs.jsonl"
# shellcheck disable=SC2086
run train $dpo dpo.preference_loss=ipo dpo.reference_policy_kl_penalty=0
expect 2 "must be above 0 with dpo.preference_loss=ipo"
# shellcheck disable=SC2086
run train $dpo dpo.preference_loss=ipo dpo.label_smoothing=0.1
expect 2 "is of dpo.preference_loss=sigmoid; ipo has none"
# shellcheck disable=SC2086
run train --quiet $dpo run.name=bad
expect 2 "pairs.jsonl:2:" "\"chosen\" is a number"
# shellcheck disable=SC2086
run train --progress plain $dpo run.name=pairs data.skip_bad_rows=1
expect 0
expect_out "2 pairs (prompt, chosen, rejected)" "1 rows left out because they are malformed" "reference log-probabilities of 2 pairs: computed"
finish
