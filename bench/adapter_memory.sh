#!/bin/sh
# bench/adapter_memory.sh --temper PROGRAM [--shapes "0.5B 1.5B 3B 7B"] [--bases "bfloat16 int8 nf4"] [--measure "0.5B/nf4 7B/nf4"]
#                         [--steps 1] [--runs FOLDER]
#
# What LoRA takes in memory on the shapes of Qwen2.5, with the base in 16, 8 and 4 bits: planned, and for those
# named (SHAPE/BASE, or all) measured as well, by training --steps steps from weights drawn at random.
# Rank 16 on all products, micro-batches of 512 tokens, policy.recompute=full, AdamW, vocabulary as the real one.
#
#   planned    temper plan
#   measured   the most that the run's buffers held together (run.json)
#   resident   the largest resident set of the process, by the kernel's count; with the program itself
set -eu
temper='' shapes="0.5B 1.5B 3B 7B" bases="bfloat16 int8 nf4" measure='' steps=1 runs=''
while [ $# -gt 0 ]; do
    case $1 in
    --temper) temper=$(realpath "$2") ;;
    --shapes) shapes=$2 ;;
    --bases) bases=$2 ;;
    --measure) measure=$2 ;;
    --steps) steps=$2 ;;
    --runs) runs=$(realpath -m "$2") ;;
    *) temper='' && break ;;
    esac
    shift 2
done
[ -n "$temper" ] || {
    echo "usage: bench/adapter_memory.sh --temper PROGRAM [--shapes \"7B\"] [--bases \"nf4\"] [--measure \"7B/nf4\" | all]" \
        "[--steps N] [--runs FOLDER]" >&2
    exit 2
}
cd "$(dirname "$0")/.."
[ -n "$runs" ] || runs=$(mktemp -d)
mkdir -p "$runs"
"$temper" version

echo abcdefghijklmnopqrstuvwxyz >"$runs/corpus.txt"
[ -e "$runs/letters" ] || "$temper" tokenizer --vocab-size 260 "$runs/letters" "$runs/corpus.txt" >/dev/null # a letter is a token
awk 'BEGIN {for (i = 0; i < 8; i++) {t = ""; for (k = 0; k < 250; k++) t = t sprintf("%c", 97 + (i * 31 + k * k * 7) % 26)
            printf "{\"text\": \"%s\"}\n", t}}' >"$runs/rows.jsonl"
cat >"$runs/recipe.yaml" <<END
sft: {max_num_steps: $steps, max_num_epochs: 1000, val_period: 0}
policy:
  init: random
  tokenizer: {name: $runs/letters, chat_template: null}
  train_global_batch_size: 2
  train_micro_batch_size: 2
  max_total_sequence_length: 256
  recompute: full
  peft: {enabled: true, dim: 16, alpha: 16}
data:
  train: {data_path: $runs/rows.jsonl, split_validation_size: 0}
checkpointing: {enabled: false}
END

shape() { # NAME WIDTH INTERMEDIATE BLOCKS HEADS KV_HEADS TIED VOCAB
    cat >"$runs/$1.json" <<END
{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": $2, "intermediate_size": $3,
 "num_hidden_layers": $4, "num_attention_heads": $5, "num_key_value_heads": $6, "tie_word_embeddings": $7, "vocab_size": $8,
 "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "hidden_act": "silu"}
END
}
shape 0.5B 896 4864 24 14 2 true 151936
shape 1.5B 1536 8960 28 12 2 true 151936
shape 3B 2048 11008 36 16 2 true 151936
shape 7B 3584 18944 28 28 4 false 152064

is_measured() {
    case " $measure " in
    *" all "* | *" $1 "*) ;;
    *) return 1 ;;
    esac
}

printf '%-8s%-10s%18s%18s%10s%18s%10s\n' shape base planned measured ratio resident 's/step'
for name in $shapes; do
    for base in $bases; do
        set -- "$runs/recipe.yaml" policy.model_config="$runs/$name.json" policy.peft.base="$base"
        "$temper" plan --json "$@" >"$runs/plan.json" || [ $? = 5 ]
        rm -rf "$runs/run"
        if is_measured "$name/$base"; then
            "$temper" train --quiet "$@" run.dir="$runs/run" >"$runs/said" 2>&1 || {
                cat "$runs/said" >&2
                exit 1
            }
        fi
        "${PYTHON:-python3}" - "$name" "$base" "$runs" <<'END'
import json, os, sys
name, base, runs = sys.argv[1:]
planned = json.load(open(f"{runs}/plan.json"))["memory"]["planned_peak_bytes"]
row = f"{name:<8}{base:<10}{planned:>18,}"
if os.path.exists(f"{runs}/run/run.json"):
    m = json.load(open(f"{runs}/run/run.json"))["memory"]
    steps = [json.loads(line) for line in open(f"{runs}/run/metrics.jsonl")]
    seconds = [s["m"]["timing/train/total_step_time"] for s in steps if s["axis"] == "train"]
    row += f"{m['measured_peak_bytes']:>18,}{m['measured_peak_bytes'] / planned:>10.4f}{m['peak_resident_bytes']:>18,}{seconds[-1]:>10.1f}"
print(row, flush=True)
END
    done
done
rm -rf "$runs/run"
