#!/bin/sh
# bench/adapters_learn.sh --temper PROGRAM [--seeds "1 2 3"] [--algorithms "dpo grpo"] [--kinds "full lora nf4"]
#                         [--factors "10"] [--full-factors "1"] [--runs FOLDER]
#
# Do DPO and GRPO learn with an adapter what they learn with all weights?  On the task of `make demo`: the
# small model of recipes/demo.yaml adds well and ends most answers in a stray digit, as its data did.
# From there, for each seed:
#
#   DPO   on 2048 pairs: the sum, and the sum with a stray digit behind it
#   GRPO  recipes/demo-grpo.yaml: 1 for a right answer, 0 for any other
#
# each with all weights (full), with LoRA (rank 16 on all products), and with the same over a base in 4 bits (nf4);
# the reference is the base itself.  Learning rates are multiples of 5e-6 (DPO) and 1e-4 (GRPO): --factors those of
# adapters, --full-factors those of all weights.  Every model answers 256 sums that it never saw, 8 times each
# (recipes/demo-eval.yaml).  Prints pass@1 with its interval and how much is trained.
set -eu
temper= seeds="1 2 3" algorithms="dpo grpo" kinds="full lora nf4" factors=10 full_factors=1 runs=
while [ $# -gt 0 ]; do
    case $1 in
    --temper) temper=$(realpath "$2") ;;
    --seeds) seeds=$2 ;;
    --algorithms) algorithms=$2 ;;
    --kinds) kinds=$2 ;;
    --factors) factors=$2 ;;
    --full-factors) full_factors=$2 ;;
    --runs) runs=$(realpath -m "$2") ;;
    *)
        echo "usage: bench/adapters_learn.sh --temper PROGRAM [--seeds \"1 2 3\"] [--algorithms \"dpo grpo\"]" \
            "[--kinds \"full lora nf4\"] [--factors \"10\"] [--full-factors \"1\"] [--runs FOLDER]" >&2
        exit 2
        ;;
    esac
    shift 2
done
[ -n "$temper" ] || { echo "bench/adapters_learn.sh: --temper PROGRAM is needed" >&2; exit 2; }
cd "$(dirname "$0")/.."
[ -n "$runs" ] || runs=$(mktemp -d)
mkdir -p "$runs"
"$temper" version
echo "runs in $runs"

lora="policy.peft.enabled=true policy.peft.dim=16 policy.peft.alpha=16"

# Digits lowest first, as the task has them: pairs SEED
pairs() {
    awk -v seed="$1" 'BEGIN {
        srand(seed)
        for (i = 0; i < 2048; i++) {
            a = int(rand() * 100); b = int(rand() * 100); s = a + b; right = ""
            do { right = right s % 10; s = int(s / 10) } while (s > 0)
            printf "{\"prompt\": \"%d+%d=\", \"chosen\": \"%s\", \"rejected\": \"%s%d\"}\n", a, b, right, right, int(rand() * 10)
        }
    }'
}

# score NAME MODEL SEED TRAINED: pass@1 of a model, as a row
score() {
    "$temper" eval recipes/demo-eval.yaml generation.model_name="$2" eval.seed="$3" --json >"$runs/$1.json" 2>/dev/null
    python3 - "$1" "$runs/$1.json" "$4" <<'END'
import json, sys
s = json.load(open(sys.argv[2]))["summary"]
low, high = s["ci95"]["pass_at_1"]
print(f"{sys.argv[1]:<22} {sys.argv[3]:>10} {s['pass_at_1']:>8.4f}   {low:.4f} .. {high:.4f}", flush=True)
END
}

# train NAME KIND RECIPE [KEY=VALUE...]: KIND is full, lora or nf4
train() {
    name=$1 kind=$2 recipe=$3
    shift 3
    case $kind in
    full) ;;
    lora) set -- "$@" $lora ;;
    nf4) set -- "$@" $lora policy.peft.base=nf4 ;;
    esac
    [ -e "$runs/$name/checkpoints" ] || "$temper" train --quiet "$recipe" run.dir="$runs/$name" "$@"
    trained=$("$temper" plan "$recipe" "$@" --json |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["memory"]["gradients"] // 4)')
}

# learn dpo|grpo KIND FACTOR: from $model, with $seed; and how well it answers then
learn() {
    name=$1-$2-x$3-$seed
    [ "$1" = dpo ] && least=5.0e-6 || least=1.0e-4
    rate=$(awk -v least=$least -v factor="$3" 'BEGIN {printf "%.4e", least * factor}')
    common="policy.model_name=$model seed=$seed $1.val_period=0 policy.optimizer.kwargs.lr=$rate"
    # shellcheck disable=SC2086 # words
    if [ "$1" = dpo ]; then
        train "$name" "$2" recipes/dpo.yaml $common policy.tokenizer.chat_template=null \
            data.train.data_path="$runs/pairs-$seed.jsonl" data.train.split_validation_size=0 dpo.max_num_steps=64 \
            policy.max_total_sequence_length=32 policy.train_micro_batch_size=32
    else
        train "$name" "$2" recipes/demo-grpo.yaml $common
    fi
    score "$name" "$runs/$name" "$seed" "$trained"
}

printf '%-22s %10s %8s   %s\n' model trained pass@1 "95% interval"
for seed in $seeds; do
    base=$runs/base-$seed
    [ -e "$base/checkpoints" ] || "$temper" train --quiet recipes/demo.yaml run.dir="$base" seed="$seed"
    model=$(echo "$base"/checkpoints/step-*/model)
    score "base-$seed" "$model" "$seed" -
    pairs "$seed" >"$runs/pairs-$seed.jsonl"
    for algorithm in $algorithms; do
        for kind in $kinds; do
            for factor in $([ "$kind" = full ] && echo "$full_factors" || echo "$factors"); do
                learn "$algorithm" "$kind" "$factor"
            done
        done
    done
done
