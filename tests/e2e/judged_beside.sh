# GRPO with judges that take their time: asked while answers are generated, or afterwards, they make the same weights,
# and log-probabilities that were computed while they worked are those of a run that waited.
. "$SOURCE/tests/cli/lib.sh"
. "$SOURCE/tests/e2e/runs.sh"
write_recipe tiny.yaml
run train --quiet tiny.yaml run.dir=base sft.max_num_steps=40 sft.val_period=0 checkpointing.save_period=1000
expect 0
STEPS=3
cat >judge.sh <<'END'
while read -r line; do
    x=${line#*'"id":'} id=${x%%[!0-9]*}
    x=${line#*'"completion":"'} said=${x%%'"'*}
    sleep 0.01 # no verdict: a judge that takes its time
    case $said in
    *7*) [ -z "${EXCLUDE:-}" ] || said=none ;;
    esac
    if [ "$said" = none ]; then
        echo "{\"id\":$id,\"error\":\"it has a 7\"}"
    else
        echo "{\"id\":$id,\"reward\":$((${#said} % 5))}"
    fi
done
END
write_judged_recipe 2 2 8 3
figures() { # all but times, step by step
    tr ',{' '\n\n' <"$1/metrics.jsonl" | grep -E '"(step|train/|rollout/|policy/|generation/|validation/)' | grep -vE "per_sec|utilization|roofline_share"
}
both() { # NAME KEY=VALUE...
    name=$1
    shift
    for beside in true false; do
        run train --quiet tiny.yaml run.dir=$name-$beside grpo.judge_while_generating=$beside "$@"
        expect 0
        figures $name-$beside >figures-$beside
    done
    same_end $name-false $name-true
    cmp figures-false figures-true || fail "$name: other figures"
    for step in 1 2 3; do
        cmp $name-false/samples/step-$step.jsonl $name-true/samples/step-$step.jsonl || fail "$name: other samples"
    done
}
both plain
grep -q judging_beside plain-true/metrics.jsonl || fail "nothing says how long was judged beside generation"
grep -q judging_beside plain-false/metrics.jsonl && fail "it is said where nothing was"
both dynamic grpo.use_dynamic_sampling=true grpo.batch_multiplier=1.5
both overlong grpo.overlong_filtering=true policy.generation.max_new_tokens=4
export EXCLUDE=yes # then it is not as expected
both excluded
grep -q '"rollout/rewards/refused":[1-9]' excluded-true/metrics.jsonl || fail "no answer was refused"
unset EXCLUDE

# What the policy thought of the first update's answers is what that update's forward pass says: a run that computes it
# beforehand, to compare it with the generator, makes the same weights.
for more in policy.precision=float32 policy.recompute=full loss_fn.use_importance_sampling_correction=true; do
    run train --quiet tiny.yaml run.dir=once-$more $more
    expect 0
    run train --quiet tiny.yaml run.dir=twice-$more $more grpo.seq_logprob_error_threshold=1e9
    expect 0
    same_end once-$more twice-$more
done

# A judge that breaks down while answers are generated ends the run as one that is asked afterwards does.
echo 'exit 3' >broken.sh
run train --quiet tiny.yaml run.dir=broken 'env.mine.command=[sh, broken.sh]' env.mine.max_failures=3
expect 2 "was lost 3 times in a row without one verdict"
finish
