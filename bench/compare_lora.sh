#!/bin/sh
# LoRA on a frozen base beside PEFT and PyTorch, in turn in one run: tokens/s and the memory of the process.
#
#     bench/compare_lora.sh --build BUILD --python PROGRAM [--rows full|chat] [--config config.json] [--rank 16]
#                           [--batch 2] [--length 512] [--base bfloat16] [--rounds 6] [--threads 2] [--out FILE]
#
# PROGRAM is a Python with torch, transformers and peft.  Without --config: the shape of Qwen2.5-0.5B, weights at random,
# vocabulary 151936.  The machine must be idle; see docs/guide/performance.md.
PYTHONDONTWRITEBYTECODE=1 exec "${PYTHON3:-python3}" "$(dirname "$0")/peers/compare_lora.py" "$@"
