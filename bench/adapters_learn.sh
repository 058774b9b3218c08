#!/bin/sh
# bench/adapters_learn.sh --temper PROGRAM [--seeds "1 2 3"] [--runs FOLDER]
#
# Do DPO and GRPO learn with an adapter what they learn with all weights?  On the task of `make demo`: the
# small model of recipes/demo.yaml adds well and ends most answers in a stray digit, as its data did.
# From there, for each seed:
#
#   DPO   on 2048 pairs: the sum, and the sum with a stray digit behind it
#   GRPO  recipes/demo-grpo.yaml: 1 for a right answer, 0 for any other
#
# each with all weights, with LoRA (rank 16 on all products, ten times the learning rate), and with the same
# over a base in 4 bits; the reference is the base itself.  Every model answers 256 sums that it never
# saw, 8 times each (recipes/demo-eval.yaml).  Prints pass@1 with its interval and how much is trained.
set -eu
temper= seeds="1 2 3" runs=
while [ $# -gt 0 ]; do
    case $1 in
    --temper) temper=$(realpath "$2") ;;
    --seeds) seeds=$2 ;;
    --runs) runs=$(realpath -m "$2") ;;
    *)
        echo "usage: bench/adapters_learn.sh --temper PROGRAM [--seeds \"1 2 3\"] [--runs FOLDER]" >&2
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

printf '%-22s %10s %8s   %s\n' model trained pass@1 "95% interval"
for seed in $seeds; do
    base=$runs/base-$seed
    [ -e "$base/checkpoints" ] || "$temper" train --quiet recipes/demo.yaml run.dir="$base" seed="$seed"
    model=$(echo "$base"/checkpoints/step-*/model)
    score "base-$seed" "$model" "$seed" -
    pairs "$seed" >"$runs/pairs-$seed.jsonl"
    for kind in full lora nf4; do
        rate=$([ $kind = full ] && echo 5.0e-6 || echo 5.0e-5)
        train "dpo-$kind-$seed" $kind recipes/dpo.yaml policy.model_name="$model" seed="$seed" \
            policy.tokenizer.chat_template=null data.train.data_path="$runs/pairs-$seed.jsonl" \
            data.train.split_validation_size=0 dpo.val_period=0 dpo.max_num_steps=64 \
            policy.max_total_sequence_length=32 policy.train_micro_batch_size=32 policy.optimizer.kwargs.lr=$rate
        score "dpo-$kind-$seed" "$runs/dpo-$kind-$seed" "$seed" "$trained"
    done
    for kind in full lora nf4; do
        rate=$([ $kind = full ] && echo 1.0e-4 || echo 1.0e-3)
        train "grpo-$kind-$seed" $kind recipes/demo-grpo.yaml policy.model_name="$model" seed="$seed" \
            grpo.val_period=0 policy.optimizer.kwargs.lr=$rate
        score "grpo-$kind-$seed" "$runs/grpo-$kind-$seed" "$seed" "$trained"
    done
done
