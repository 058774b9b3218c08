# Where NeMo RL and TRL differ a key chooses: at which temperature log-probabilities are taken, and
# whether the gradient of the divergence includes that of the sampling probability.
. "$SOURCE/tests/cli/lib.sh"
make_model
printf '{"question": "%s", "answer": "1"}\n' "the quick" "brown fox" >rows.jsonl
cat >judge.sh <<'END_OF_JUDGE'
while read -r line; do
    id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
    echo "{\"id\":$id,\"reward\":$((id % 2))}"
done
END_OF_JUDGE
write_grpo "num_generations_per_prompt: 4, max_num_steps: 2, max_num_epochs: 9" \
    "mine: {type: program, command: [sh, judge.sh], timeout: 600, num_workers: 1}"

train() { # NAME KEY=VALUE...
    name=$1
    shift
    run train --progress plain grpo.yaml run.name="$name" policy.precision=float32 \
        policy.optimizer.kwargs.lr=0.01 policy.scheduler=null checkpointing.enabled=false "$@"
    expect 0
}
metric() { # RUN STEP TAG
    sed -n 's|.*"step":'"$2"',"axis":"train".*"'"$3"'":\([-0-9.e]*\).*|\1|p' "runs/$1/metrics.jsonl"
}
between() { # WHAT VALUE LEAST MOST
    awk -v v="$2" -v a="$3" -v b="$4" 'BEGIN { exit !(v != "" && v + 0 >= a && v + 0 <= b) }' || fail "$1 is '$2', not from $3 to $4"
}

# The same answers, drawn at temperature 0.5.  Of logits divided by it the gradient is about twice as
# large, and trainer and generator agree about each token (1 is the factor of no difference); about
# another distribution than the one that was drawn from they do not.
train divided policy.generation.temperature=0.5
expect_out "log-probabilities are those of logits divided by 0.5, the temperature of the rollouts"
train plain policy.generation.temperature=0.5 loss_fn.use_generation_temperature=false
expect_out "answers are drawn from another distribution than the one that is trained"
between "disagreement about a token, divided" "$(metric divided 1 train/token_mult_prob_error)" 1 1.0001
between "disagreement about a token, plain" "$(metric plain 1 train/token_mult_prob_error)" 1.05 1e9
between "gradient of divided logits over that of plain ones" \
    "$(echo "$(metric divided 1 train/grad_norm) $(metric plain 1 train/grad_norm)" | awk '{ print $1 / $2 }')" 1.8 2.2

# Nor do they where some of the distribution was cut off before the draw, whatever the temperature.
for cut in top_k=3 top_p=0.5 min_p=0.9; do
    for temperature in 1 0.9; do
        train cut-$cut-$temperature grpo.max_num_steps=1 policy.generation.$cut policy.generation.temperature=$temperature
        between "disagreement about a token, $cut at $temperature" \
            "$(metric cut-$cut-$temperature 1 train/token_mult_prob_error)" 1.05 1e9
    done
done

# Several updates of a rollout: whatever the ratio, weights and differences are those of the policy that answered.
for other in true false; do
    train updates-$other policy.train_global_batch_size=4 loss_fn.use_importance_sampling_correction=true \
        loss_fn.disable_ppo_ratio=$other policy.optimizer.kwargs.lr=0.1
    between "disagreement of several updates, disable_ppo_ratio=$other" \
        "$(metric updates-$other 1 train/token_mult_prob_error)" 1 1.0001
done

# What is never drawn is said: ids of the model's that the tokenizer does not have.
write_config wide.json 300
train wide policy.init=random policy.model_name=null policy.model_config=wide.json policy.tokenizer.name=model
expect_out "answers are drawn from the 280 ids that the tokenizer has, of 300 that the model has"

# At the first step the model is its reference, and its divergence has no gradient of either kind.
train with loss_fn.reference_policy_kl_penalty=1
train without loss_fn.reference_policy_kl_penalty=1 loss_fn.use_bias_correction_kl=false
is "gradient of the first step" "$(metric without 1 train/grad_norm)" "$(metric with 1 train/grad_norm)"
[ "$(metric without 2 train/grad_norm)" != "$(metric with 2 train/grad_norm)" ] || fail "use_bias_correction_kl changes nothing"
finish
