#!/bin/sh
# bench/demo_seeds.sh TEMPER DIR SEED...
#
# The whole demo (scripts/demo: draw a model, SFT, GRPO, evaluation of both) once for each seed, each in
# DIR/SEED; then what the seeds say together: pass@1 and pass@8 before and after and the gain, each with
# its mean and 95 % interval over the seeds.  Needs jq.
set -eu
if [ $# -lt 4 ]; then
    echo "usage: bench/demo_seeds.sh TEMPER DIR SEED SEED...   (two seeds at least)" >&2
    exit 2
fi
temper=$(realpath "$1")
mkdir -p "$2"
dir=$(realpath "$2")
shift 2
cd "$(dirname "$0")/.."

reports=
for seed in "$@"; do
    report=$dir/$seed/demo/report.json
    [ -e "$report" ] || TEMPER_RUNS=$dir/$seed scripts/demo "$temper" "$seed" >"$dir/$seed.log" 2>&1
    reports="$reports $report"
done

for figure in eval.before.pass_at_1 eval.after.pass_at_1 eval.before.pass_at_8 eval.after.pass_at_8 eval.paired.difference; do
    # shellcheck disable=SC2086
    values=$(jq -s "map(.$figure)" $reports)
    printf '%-24s %s\n' "$figure" "$(echo "$values" | jq -c .)"
    printf '{"kind": "one", "data": %s}' "$values" | "$temper" stats - | head -1
done
