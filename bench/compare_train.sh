#!/bin/sh
# A training step of GPT-2 (forward, backward, AdamW) beside PyTorch, eager and compiled, in turn: tokens/s and memory.
#
#     bench/compare_train.sh --build BUILD --python PROGRAM [--rounds 6] [--threads 2] [--dtype bf16] [--shape NAME]... [--out FILE]
#
# Shapes: 4x512 and 4x64 (124M), small (4 layers of 256, vocabulary 256, 32 x 128); all of them by default.  PROGRAM is a
# Python with torch; BUILD has the target train_step.  The machine must be idle.
PYTHONDONTWRITEBYTECODE=1 exec "${PYTHON3:-python3}" "$(dirname "$0")/peers/compare_train.py" "$@"
