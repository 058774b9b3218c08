#!/bin/sh
# bench/low_precision.sh TEMPER DIR DATA.jsonl SEED...
#
# Do float16 and moments in 8 bits reach the loss of float32?  The demo's model (3 million parameters, drawn at random)
# learns DATA (GSM8K: members question and answer) for STEPS steps (300), once for each seed and way, each in
# DIR/WAY-SEED; a run that is there is not made again.  Prints the loss of each (the mean over the last 20 steps), its
# ratio to that of float32, and the mean of the ratios over the seeds with its 95 % interval.
set -eu
if [ $# -lt 4 ]; then
    echo "usage: bench/low_precision.sh TEMPER DIR DATA.jsonl SEED..." >&2
    exit 2
fi
temper=$(realpath "$1")
mkdir -p "$2"
dir=$(realpath "$2") data=$(realpath "$3")
shift 3
cd "$(dirname "$0")/.."
steps=${STEPS:-300}

[ -e "$dir/tokenizer/tokenizer.json" ] || "$temper" tokenizer --vocab-size 260 "$dir/tokenizer" "$data" >/dev/null
cat >"$dir/base.yaml" <<E
sft: {max_num_epochs: 100, max_num_steps: $steps, val_period: 0, val_at_end: false}
policy:
  init: random
  model_config: $PWD/recipes/demo-model.json
  tokenizer: {name: $dir/tokenizer, chat_template: null}
  train_global_batch_size: ${BATCH:-8}
  train_micro_batch_size: 4
  max_total_sequence_length: ${LENGTH:-256}
  optimizer: {kwargs: {lr: 1.0e-3, weight_decay: 0.01, betas: [0.9, 0.95], eps: 1.0e-8}}
data: {train: {data_path: $data, input_key: question, output_key: answer}}
checkpointing: {enabled: false}
E

loss() { # FOLDER
    sed -n 's/.*"axis":"train".*"train\/loss":\([0-9.e+-]*\).*/\1/p' "$1/metrics.jsonl" | tail -n 20 |
        awk '{ sum += $1 } END { if (NR) printf "%.6f", sum / NR }'
}
ways=${WAYS:-float32 float16 bfloat16 adamw8bit}
for seed in "$@"; do
    for way in $ways; do
        keys=policy.precision=float32
        case $way in
        float16 | bfloat16) keys=policy.precision=$way ;;
        adamw8bit) keys="$keys policy.optimizer.name=adamw_8bit" ;;
        esac
        # shellcheck disable=SC2086
        grep -qs '"state": "finished"' "$dir/$way-$seed/run.json" || {
            rm -rf "$dir/$way-$seed"
            "$temper" train --quiet "$dir/base.yaml" run.dir="$dir/$way-$seed" seed="$seed" $keys
        }
    done
done

printf '%-10s' seed
printf '  %-20s' $ways
echo
for seed in "$@"; do
    printf '%-10s' "$seed"
    base=$(loss "$dir/float32-$seed")
    for way in $ways; do
        x=$(loss "$dir/$way-$seed")
        printf '  %-20s' "$x ($(awk -v x="$x" -v base="$base" 'BEGIN { printf "%.5f", x / base }'))"
        awk -v x="$x" -v base="$base" 'BEGIN { print x / base }' >>"$dir/$way.ratios.new"
    done
    echo
done
for way in $ways; do
    mv "$dir/$way.ratios.new" "$dir/$way.ratios"
    [ "$way" = float32 ] || [ $# -lt 2 ] || {
        printf '%s to float32: ' "$way"
        "$temper" stats "$dir/$way.ratios" | head -1
    }
done
