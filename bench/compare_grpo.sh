#!/bin/sh
# Steps of GRPO side by side with TRL's GRPOTrainer, in one run of interleaved rounds:
#
#     bench/compare_grpo.sh --build BUILD --python PROGRAM [--precision float32|bfloat16] [--rounds 7]
#                           [--prompts 16] [--generations 8] [--new 64] [--threads 2] [--out FILE]
#
# The machine must be idle; see docs/guide/performance.md.
PYTHONDONTWRITEBYTECODE=1 exec "${PYTHON3:-python3}" "$(dirname "$0")/peers/compare_grpo.py" "$@"
