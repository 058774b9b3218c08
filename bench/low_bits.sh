#!/bin/sh
# bench/low_bits.sh --temper PROGRAM --gsm8k gsm8k_train.jsonl [--steps 300] [--runs FOLDER]
#
# What does a frozen base lose in 8 or 4 bits?
#
#   1. a small Llama (4 blocks, 256 wide, a tokenizer of its own of 2048 tokens) learns GSM8K's text with all
#      weights: so that there is a base that knows something;
#   2. LoRA (rank 16, all products) on that base in bfloat16, int8 and nf4, --steps steps each over
#      the same rows in the same order: training loss side by side, and the loss of validation at the end;
#   3. what one product of each matrix of the base loses: |(W' - W) x| / |W x| for normal x, from the
#      base as temper merge --base writes it (numpy).
#
# What each base takes in memory: bench/adapter_memory.sh.  Needs python3 (or $PYTHON) with numpy for the third.  Prints what it compared.
set -eu
temper= gsm8k= steps=300 runs=
while [ $# -gt 0 ]; do
    case $1 in
    --temper) temper=$(realpath "$2") ;;
    --gsm8k) gsm8k=$(realpath "$2") ;;
    --steps) steps=$2 ;;
    --runs) runs=$(realpath -m "$2") ;;
    *) temper= gsm8k= && break ;;
    esac
    shift 2
done
[ -n "$temper" ] && [ -n "$gsm8k" ] || {
    echo "usage: bench/low_bits.sh --temper PROGRAM --gsm8k gsm8k_train.jsonl [--steps N] [--runs FOLDER]" >&2
    exit 2
}
cd "$(dirname "$0")/.."
[ -n "$runs" ] || runs=$(mktemp -d)
mkdir -p "$runs"
"$temper" version
echo "runs in $runs"

# ---- 1, 2: training ----
sed 's/"vocab_size": 260/"vocab_size": 2048/' recipes/demo-model.json >"$runs/model.json"
cat >"$runs/common.yaml" <<END
sft: {max_num_epochs: 100, max_num_steps: $steps, val_period: $steps, val_batches: 8, val_global_batch_size: 16}
policy:
  train_global_batch_size: 4
  train_micro_batch_size: 4
  max_total_sequence_length: 256
  tokenizer: {chat_template: null}
  optimizer: {kwargs: {lr: 1.0e-3, weight_decay: 0.01, betas: [0.9, 0.95], eps: 1.0e-8}}
data:
  train: {data_path: $gsm8k, input_key: question, output_key: answer, split_validation_size: 0.02}
checkpointing: {save_period: $steps, keep_top_k: 1}
END
if [ ! -e "$runs/base/checkpoints" ]; then
    [ -e "$runs/tokenizer" ] || "$temper" tokenizer --vocab-size 2048 "$runs/tokenizer" "$gsm8k" >/dev/null
    "$temper" train --quiet "$runs/common.yaml" policy.init=random policy.model_config="$runs/model.json" \
        policy.tokenizer.name="$runs/tokenizer" run.dir="$runs/base"
fi
base=$(echo "$runs"/base/checkpoints/step-*/model)
for kind in bfloat16 int8 nf4; do
    [ -e "$runs/$kind/checkpoints" ] || "$temper" train --quiet "$runs/common.yaml" policy.model_name="$base" \
        policy.peft.enabled=true policy.peft.dim=16 policy.peft.alpha=32 policy.peft.base=$kind run.dir="$runs/$kind"
done
"${PYTHON:-python3}" - "$runs" "$steps" <<'END'
import json, sys
runs, steps = sys.argv[1], int(sys.argv[2])
kinds = ["bfloat16", "int8", "nf4"]
def losses(kind, key):
    found = {}
    for line in open(f"{runs}/{kind}/metrics.jsonl"):
        row = json.loads(line)
        if key in row.get("m", {}):
            found[row["step"]] = row["m"][key]
    return found
print(f"\nLoRA on each base, {steps} steps of GSM8K")
print(f"{'loss of steps':<20}" + "".join(f"{k:>10}" for k in kinds))
train = {k: losses(k, "train/loss") for k in kinds}
width = max(steps // 6, 1)
for first in range(0, steps, width):
    span = range(first + 1, min(first + width, steps) + 1)
    mean = [sum(train[k][s] for s in span) / len(span) for k in kinds]
    print(f"{span[0]:>5} .. {span[-1]:<11}" + "".join(f"{m:>10.4f}" for m in mean))
last = {k: losses(k, "validation/val_loss") for k in kinds}
for name, pick in (("validation, first", min), ("validation, last", max)):
    print(f"{name:<20}" + "".join(f"{last[k][pick(last[k])]:>10.4f}" for k in kinds))
END

# ---- 3: products ----
"$temper" train --quiet "$runs/common.yaml" policy.model_name="$base" policy.peft.enabled=true policy.peft.dim=1 \
    policy.optimizer.kwargs.lr=0 sft.max_num_steps=1 sft.val_period=0 policy.precision=float32 run.dir="$runs/still"
for kind in int8 nf4; do
    rm -rf "$runs/base-$kind"
    "$temper" merge --base $kind --dtype float32 "$runs/still" "$runs/base-$kind" >/dev/null
done
rm -rf "$runs/base-float32"
"$temper" merge --dtype float32 "$runs/still" "$runs/base-float32" >/dev/null
rm -rf "$runs/still"
"${PYTHON:-python3}" - "$runs" <<'END'
import json, struct, sys
import numpy as np

def read(path):
    with open(path + "/model.safetensors", "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(n))
        data = f.read()
    return {k: np.frombuffer(data[slice(*v["data_offsets"])], np.float32).reshape(v["shape"])
            for k, v in header.items() if k != "__metadata__"}

plain = read(sys.argv[1] + "/base-float32")
rng = np.random.default_rng(1)
print(f"\nerror of one product, relative (numpy {np.__version__})")
print(f"{'matrix':<42}{'int8':>10}{'nf4':>10}")
rows = {k: [] for k in ("int8", "nf4")}
low = {k: read(f"{sys.argv[1]}/base-{k}") for k in rows}
for name in sorted(k for k, v in plain.items() if v.ndim == 2 and ".layers." in k):
    x = rng.standard_normal((plain[name].shape[1], 64))
    y = plain[name].astype(np.float64) @ x
    errors = [np.linalg.norm(low[k][name] @ x - y) / np.linalg.norm(y) for k in rows]
    for k, e in zip(rows, errors):
        rows[k].append(e)
    print(f"{name:<42}" + "".join(f"{e:>10.5f}" for e in errors))
print(f"{'mean':<42}" + "".join(f"{np.mean(v):>10.5f}" for v in rows.values()))
END
