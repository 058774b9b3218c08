#!/usr/bin/env python3
"""Blocks of llama.cpp's reference quantisers, and files that its tools and gguf write.

    pip install --no-binary llama-cpp-python llama-cpp-python gguf safetensors numpy
    python3 tools/reference/make_gguf.py tests/data/gguf

blocks.safetensors: `x` f32, seven kinds of 256 values; per type the bytes that
quantize_row_*_ref of libggml-base gives, and what dequantize_row_* makes of them, which must be
what gguf.dequantize makes of them.

q4_k_m.txt: which types llama-quantize's Q4_K_M gives the matrices of a block, a digit for each
block (4, 5, 6: Q4_K, Q5_K, Q6_K), and of embedding and head, for models of some depths.

Made with llama-cpp-python 0.3.36 and gguf 0.19.0; it prints the versions that it runs with.
"""
import ctypes
import glob
import importlib.metadata
import os
import sys
import tempfile

import gguf
import llama_cpp
import numpy as np
from safetensors.numpy import save_file

TYPES = {"q4_0": (32, 18), "q5_0": (32, 22), "q5_1": (32, 24), "q8_0": (32, 34),
         "q4_K": (256, 144), "q5_K": (256, 176), "q6_K": (256, 210)}

# family, heads, heads of keys and values, blocks, tied
MODELS = [("llama", 4, 2, 1, True), ("llama", 4, 4, 7, False), ("llama", 4, 2, 30, True),
          ("qwen2", 4, 2, 24, True), ("qwen3", 4, 2, 28, False), ("gpt2", 4, 4, 12, True),
          ("llama", 4, 2, 80, False), ("llama", 4, 4, 80, False), ("qwen2", 4, 4, 80, False)]
WIDTH, VOCAB = 256, 64
PARTS = {"attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}


def write_model(path, family, heads, kv, blocks, tied):
    """A model of zeros in F32: only names and shapes decide."""
    w = gguf.GGUFWriter(path, family)
    w.add_block_count(blocks)
    w.add_context_length(128)
    w.add_embedding_length(WIDTH)
    w.add_feed_forward_length(WIDTH)
    w.add_head_count(heads)
    w.add_head_count_kv(kv)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_layer_norm_eps(1e-5)
    w.add_vocab_size(VOCAB)
    w.add_tokenizer_model("no_vocab")

    def add(name, *shape):
        w.add_tensor(name, np.zeros(shape, np.float32))

    narrow = WIDTH // heads * kv
    add("token_embd.weight", VOCAB, WIDTH)
    add("output_norm.weight", WIDTH)
    if not tied:
        add("output.weight", VOCAB, WIDTH)
    for i in range(blocks):
        b = f"blk.{i}."
        add(b + "attn_norm.weight", WIDTH)
        add(b + "ffn_norm.weight", WIDTH)
        if family == "gpt2":
            add(b + "attn_qkv.weight", 3 * WIDTH, WIDTH)
        else:
            add(b + "attn_q.weight", WIDTH, WIDTH)
            add(b + "attn_k.weight", narrow, WIDTH)
            add(b + "attn_v.weight", narrow, WIDTH)
            add(b + "ffn_gate.weight", WIDTH, WIDTH)
        add(b + "attn_output.weight", WIDTH, WIDTH)
        add(b + "ffn_up.weight", WIDTH, WIDTH)
        add(b + "ffn_down.weight", WIDTH, WIDTH)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def mix_of(folder, model):
    """Lines of q4_k_m.txt: what llama.cpp's own quantizer chose."""
    source, target = os.path.join(folder, "in.gguf"), os.path.join(folder, "out.gguf")
    write_model(source, *model)
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_M
    params.nthread = 2
    if llama_cpp.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(params)) != 0:
        raise SystemExit(f"llama.cpp did not quantise {model}")
    types = {}
    for t in gguf.GGUFReader(target).tensors:
        name = t.name.split(".")
        digit = {"Q4_K": "4", "Q5_K": "5", "Q6_K": "6", "F32": None}[t.tensor_type.name]
        if digit and name[0] == "blk":
            assert name[2] in PARTS
            types.setdefault(name[2], {})[int(name[1])] = digit
        elif digit:
            types.setdefault(name[0], {})[0] = digit
    family, heads, kv, blocks, tied = model
    head = f"{family} {heads} {kv} {blocks} {'tied' if tied else 'own'}"
    return [f"{head} {part} {''.join(of[i] for i in sorted(of))}\n" for part, of in types.items()]


def check_with_gguf(name, blocks, numbers):
    kind = getattr(gguf.GGMLQuantizationType, name.upper())
    other = gguf.dequantize(blocks.reshape(1, -1), kind).reshape(-1)
    if not np.array_equal(other, numbers):
        raise SystemExit(f"{name}: gguf and llama.cpp disagree by {np.abs(other - numbers).max()}")


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
        check_with_gguf(name, q, d)
        tensors[name], tensors[name + ".deq"] = q, d
    save_file(tensors, os.path.join(out, "blocks.safetensors"))
    with tempfile.TemporaryDirectory() as folder, open(os.path.join(out, "q4_k_m.txt"), "w") as text:
        for model in MODELS:
            text.writelines(mix_of(folder, model))
    for package in ("llama-cpp-python", "gguf", "numpy"):
        print(package, importlib.metadata.version(package))


if __name__ == "__main__":
    main(sys.argv[1])
