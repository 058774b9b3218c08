#!/bin/sh
# Generation side by side with llama.cpp and PyTorch, in one run of interleaved rounds:
#
#     bench/compare_generation.sh --build BUILD --model FOLDER [--gguf FILE --llama DIR] [--python PROGRAM]
#                                 [--rounds 7] [--threads 2] [--no-compile] [--out FILE]
#
# A peer that is not named is left out.  The machine must be idle; see docs/guide/performance.md.
PYTHONDONTWRITEBYTECODE=1 exec "${PYTHON3:-python3}" "$(dirname "$0")/peers/compare_generation.py" "$@"
