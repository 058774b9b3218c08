#!/usr/bin/env python3
"""Blocks of llama.cpp's reference quantisers, and files that its tools and gguf write.

    pip install --no-binary llama-cpp-python llama-cpp-python gguf safetensors numpy
    python3 tools/reference/make_gguf.py tests/data/gguf

blocks.safetensors: `x` f32, seven kinds of 256 values; per type the bytes that
quantize_row_*_ref of libggml-base gives (Q5_K too, which Temper only reads) and what
dequantize_row_* makes of them.
"""
import ctypes
import glob
import os
import sys

import llama_cpp
import numpy as np
from safetensors.numpy import save_file

TYPES = {"q4_0": (32, 18), "q5_0": (32, 22), "q8_0": (32, 34), "q4_K": (256, 144),
         "q5_K": (256, 176), "q6_K": (256, 210)}


def main(out):
    package = os.path.dirname(llama_cpp.__file__)
    lib = ctypes.CDLL(glob.glob(package + "/**/libggml-base.so*", recursive=True)[0])
    rng = np.random.default_rng(17)
    special = np.zeros(256)
    special[32:64] = 3.25
    special[64:96] = np.arange(32) - 16
    special[96:128] = (np.arange(32) % 5 - 2) * 0.5
    special[128:160] = -1e-30
    special[160] = -7
    special[192:224] = -np.arange(32) / 8
    x = np.concatenate([rng.standard_normal(256), np.abs(rng.standard_normal(256)),
                        -np.abs(rng.standard_normal(256)), rng.standard_t(2, 256),
                        rng.standard_normal(256) * 1e-6, special, np.zeros(256)]).astype(np.float32)
    tensors = {"x": x}
    pointer = ctypes.POINTER(ctypes.c_float)
    for name, (block, size) in TYPES.items():
        q = np.zeros(x.size // block * size, np.uint8)
        d = np.zeros(x.size, np.float32)
        getattr(lib, f"quantize_row_{name}_ref")(x.ctypes.data_as(pointer),
                                                 q.ctypes.data_as(ctypes.c_void_p),
                                                 ctypes.c_int64(x.size))
        getattr(lib, f"dequantize_row_{name}")(q.ctypes.data_as(ctypes.c_void_p),
                                               d.ctypes.data_as(pointer), ctypes.c_int64(x.size))
        tensors[name], tensors[name + ".deq"] = q, d
    save_file(tensors, os.path.join(out, "blocks.safetensors"))


if __name__ == "__main__":
    main(sys.argv[1])
