#!/bin/sh
# Two processes of one thread beside PyTorch's DDP and FSDP2 over gloo, in turn: tokens/s, bytes on the wire, memory of a rank.
#
#     bench/compare_ranks.sh --build BUILD --python PROGRAM [--ranks 2] [--rounds 5] [--layers 12] [--width 768] [--heads 12]
#                            [--vocab 50257] [--batch 2] [--seq 256] [--precision bfloat16] [--out FILE]
#
# PROGRAM is a Python with torch.  The machine must be idle; bytes of PyTorch are those of the loopback device.
PYTHONDONTWRITEBYTECODE=1 exec "${PYTHON3:-python3}" "$(dirname "$0")/peers/compare_ranks.py" "$@"
