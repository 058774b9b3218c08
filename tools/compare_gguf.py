#!/usr/bin/env python3
"""Compare Temper's GGUF files with llama.cpp itself.

    python3 -m venv venv
    venv/bin/pip install --no-binary llama-cpp-python llama-cpp-python gguf numpy
    venv/bin/python tools/compare_gguf.py --temper build/default/src/cli/temper \\
        --prompts gsm8k_test.jsonl [--model DIR ...] [--types F32,Q8_0]

Each model is exported as each type.  Then, for each file:

  keys     gguf's reader reads every key; architecture, sizes and tokens are those of the folder
  tensors  gguf's decoders and Temper's give the same numbers: the file is imported, exported as
           F32 by Temper, and compared with gguf.quants.dequantize, bit for bit
  ids      llama.cpp cuts every prompt into the tokens that Temper has
  logits   log-probabilities of Temper's greedy answers, Temper against llama.cpp on the same file;
           what is left is llama.cpp's rounding of activations (to f16, to 8 bits)
  greedy   llama.cpp's own greedy tokens are Temper's, but where two are closer than the bound
  chat     llama.cpp's chat completion on the chat template in the file, where the model has one

Without --model four small models are drawn at random, one of each family, wide enough for Q4_K.
Their answers mean nothing, their numbers do.  Exit status 1 when something is outside its bound.
"""
import argparse
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import llama_cpp
import numpy as np
from llama_cpp.llama_chat_format import Jinja2ChatFormatter

TYPES = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_K", "Q4_K_M"]
# What llama.cpp's own rounding may make of a log-probability: activations in f16, bf16 or 8 bits.
BOUND = {"F32": 2e-3, "F16": 1e-2, "BF16": 0.1, "Q8_0": 0.2, "Q4_0": 0.2, "Q4_K": 0.3, "Q4_K_M": 0.3}

CONFIGS = {
    "llama": dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=256,
                  intermediate_size=512, num_hidden_layers=3, num_attention_heads=8,
                  num_key_value_heads=2, head_dim=32, hidden_act="silu", rms_norm_eps=1e-5,
                  max_position_embeddings=2048, tie_word_embeddings=False,
                  rope_parameters=dict(rope_type="llama3", rope_theta=500000.0, factor=8.0,
                                       low_freq_factor=1.0, high_freq_factor=4.0,
                                       original_max_position_embeddings=1024)),
    "qwen2": dict(architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_size=256,
                  intermediate_size=768, num_hidden_layers=3, num_attention_heads=4,
                  num_key_value_heads=2, hidden_act="silu", rms_norm_eps=1e-6,
                  max_position_embeddings=2048, rope_theta=1000000.0, tie_word_embeddings=True),
    "qwen3": dict(architectures=["Qwen3ForCausalLM"], model_type="qwen3", hidden_size=256,
                  intermediate_size=512, num_hidden_layers=3, num_attention_heads=4,
                  num_key_value_heads=2, head_dim=96, hidden_act="silu", rms_norm_eps=1e-6,
                  max_position_embeddings=2048, rope_theta=1000000.0, tie_word_embeddings=True),
    "gpt2": dict(architectures=["GPT2LMHeadModel"], model_type="gpt2", n_embd=256, n_layer=3,
                 n_head=4, n_positions=2048, activation_function="gelu_new",
                 layer_norm_epsilon=1e-5, tie_word_embeddings=True),
}
STYLES = {"llama": "llama3", "qwen2": "qwen2", "qwen3": "qwen2", "gpt2": "gpt2"}


def save_safetensors(path, tensors):
    header, at = {}, 0
    for name, t in tensors.items():
        header[name] = dict(dtype="F32", shape=list(t.shape), data_offsets=[at, at + t.nbytes])
        at += t.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values():
            f.write(t.tobytes())


def shapes_of(c):
    """Names and shapes of a family's parameters, as transformers has them."""
    if c["model_type"] == "gpt2":
        n = c["n_embd"]
        yield "transformer.wte.weight", (c["vocab_size"], n)
        yield "transformer.wpe.weight", (c["n_positions"], n)
        for i in range(c["n_layer"]):
            h = f"transformer.h.{i}."
            for norm in ("ln_1", "ln_2"):
                yield h + norm + ".weight", (n,)
                yield h + norm + ".bias", (n,)
            for name, a, b in (("attn.c_attn", n, 3 * n), ("attn.c_proj", n, n),
                               ("mlp.c_fc", n, 4 * n), ("mlp.c_proj", 4 * n, n)):
                yield h + name + ".weight", (a, b)
                yield h + name + ".bias", (b,)
        yield "transformer.ln_f.weight", (n,)
        yield "transformer.ln_f.bias", (n,)
        return
    n, f = c["hidden_size"], c["intermediate_size"]
    d = c.get("head_dim", n // c["num_attention_heads"])
    q, k = d * c["num_attention_heads"], d * c["num_key_value_heads"]
    yield "model.embed_tokens.weight", (c["vocab_size"], n)
    for i in range(c["num_hidden_layers"]):
        h = f"model.layers.{i}."
        yield h + "input_layernorm.weight", (n,)
        yield h + "post_attention_layernorm.weight", (n,)
        for name, rows in (("q", q), ("k", k), ("v", k)):
            yield f"{h}self_attn.{name}_proj.weight", (rows, n)
            if c["model_type"] == "qwen2":
                yield f"{h}self_attn.{name}_proj.bias", (rows,)
        yield h + "self_attn.o_proj.weight", (n, q)
        if c["model_type"] == "qwen3":
            yield h + "self_attn.q_norm.weight", (d,)
            yield h + "self_attn.k_norm.weight", (d,)
        yield h + "mlp.gate_proj.weight", (f, n)
        yield h + "mlp.up_proj.weight", (f, n)
        yield h + "mlp.down_proj.weight", (n, f)
    yield "model.norm.weight", (n,)
    if not c["tie_word_embeddings"]:
        yield "lm_head.weight", (c["vocab_size"], n)


def draw_model(temper, family, text, folder):
    subprocess.run([temper, "tokenizer", "--vocab-size", "1024", "--pre-tokenizer", STYLES[family],
                    folder, text], check=True, stdout=subprocess.DEVNULL)
    tokenizer = json.loads((Path(folder) / "tokenizer.json").read_text())
    n_ids = len(tokenizer["model"]["vocab"]) + len(tokenizer["added_tokens"])
    config = dict(CONFIGS[family], vocab_size=n_ids + 5)  # ids without a token, as many models have
    rng = np.random.default_rng(sum(map(ord, family)))
    tensors = {}
    for name, shape in shapes_of(config):
        x = rng.standard_normal(shape)
        is_norm = name.split(".")[-2] in ("ln_1", "ln_2", "ln_f") or "norm" in name
        if is_norm and name.endswith("weight"):
            x = 1 + 0.2 * x
        elif len(shape) == 1:
            x = 0.1 * x
        else:
            x *= 0.5 / math.sqrt(256) if "wpe" in name else 1 / math.sqrt(min(shape))
            if shape[0] == config["vocab_size"]:
                x[n_ids:] = 0  # so that nobody answers with what is no token
        tensors[name] = x.astype(np.float32)
    save_safetensors(Path(folder) / "model.safetensors", tensors)
    (Path(folder) / "config.json").write_text(json.dumps(config, indent=1))


class Check:
    def __init__(self):
        self.failed = 0

    def say(self, what, ok, text):
        self.failed += not ok
        print(f"    {'ok  ' if ok else 'FAIL'} {what:8} {text}", flush=True)


def temper_generate(temper, model, prompts, n, chat=False):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as f:
        for p in prompts:
            row = {"messages": [{"role": "user", "content": p}]} if chat else {"prompt": p}
            f.write(json.dumps(row) + "\n")
    command = [temper, "generate", "--json", "--precision", "float32", "--ignore-generation-config",
               "--temperature", "0", "--max-new-tokens", str(n), "--prompts", f.name, model]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    os.unlink(f.name)
    return [json.loads(line) for line in out.splitlines()]


def check_tensors(check, temper, path, work):
    """Temper's decoders against gguf's."""
    plain = str(Path(work) / "plain.gguf")
    subprocess.run([temper, "export", path, plain, "--type", "F32"], check=True,
                   capture_output=True)
    ours = {t.name: t for t in gguf.GGUFReader(plain).tensors}
    theirs = gguf.GGUFReader(path).tensors
    differ = 0
    for t in theirs:
        wanted = gguf.quants.dequantize(t.data, t.tensor_type)
        differ += not np.array_equal(np.asarray(ours[t.name].data).reshape(-1).view(np.uint32),
                                     np.ascontiguousarray(wanted, np.float32).reshape(-1).view(np.uint32))
    check.say("tensors", differ == 0 and len(ours) == len(theirs),
              f"{len(theirs)} tensors, {differ} decoded differently")
    os.unlink(plain)


def check_keys(check, path, folder):
    reader = gguf.GGUFReader(path)
    fields = {k: f.contents() for k, f in reader.fields.items()}
    config = json.loads((Path(folder) / "config.json").read_text())
    family = config["model_type"]
    tokenizer = json.loads((Path(folder) / "tokenizer.json").read_text())
    vocab = tokenizer["model"]["vocab"]
    tokens = fields["tokenizer.ggml.tokens"]
    ok = fields["general.architecture"] == family and len(tokens) == config["vocab_size"]
    ok &= all(tokens[i] == t for t, i in vocab.items())
    ok &= all(tokens[a["id"]] == a["content"] for a in tokenizer["added_tokens"])
    ok &= len(fields["tokenizer.ggml.merges"]) == len(tokenizer["model"]["merges"])
    ok &= fields[f"{family}.block_count"] == config.get("num_hidden_layers", config.get("n_layer"))
    check.say("keys", bool(ok), f"{len(fields)} keys, {len(tokens)} tokens")


def check_chat(check, llm, temper, path, prompts, n, kind):
    """The prompt that llama-cpp-python's chat makes of the template in the file, and its answers.
    Bytes that are no UTF-8 are dropped there and shown as U+FFFD here; it ends at all names of
    ends that llama.cpp knows, and goes on where the last byte begins a character: one answer may
    be the beginning of the other."""
    template = llm.metadata.get("tokenizer.chat_template")
    if not template:
        return
    name = lambda i: llm._model.token_get_text(i) if i >= 0 else ""
    formatter = Jinja2ChatFormatter(template, name(llm.token_eos()), name(llm.token_bos()))
    ours = temper_generate(temper, path, prompts, n, chat=True)
    same_ids = same_text = 0
    for p, o in zip(prompts, ours):
        messages = [{"role": "user", "content": p}]
        text = formatter(messages=messages).prompt
        same_ids += llm.tokenize(text.encode(), add_bos=False, special=True) == o["prompt_ids"]
        answer = llm.create_chat_completion(messages, temperature=0, max_tokens=n,
                                            repeat_penalty=1.0)["choices"][0]["message"]["content"]
        a, b = (t.replace("\ufffd", "").strip() for t in (answer, o["text"]))
        same_text += a.startswith(b) or b.startswith(a)
    check.say("chat", same_ids == len(ours) and (kind != "F32" or same_text == len(ours)),
              f"{same_ids} of {len(ours)} prompts, {same_text} answers are the same")


def check_answers(check, llm, ours, kind, n):
    n_ids = n_greedy = n_tokens = n_same = 0
    worst, total, behind = 0.0, 0.0, 0.0
    for o in ours:
        ids, answer = o["prompt_ids"], o["ids"]
        theirs = llm.tokenize(o["prompt"].encode(), add_bos=True, special=True)
        n_ids += theirs == ids
        llm.reset()
        llm.eval(ids + answer[:-1])
        scores = np.asarray(llm.scores[len(ids) - 1:len(ids) + len(answer) - 1], np.float64)
        top = scores.max(axis=1, keepdims=True)
        logp = scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
        diff = np.abs(logp[np.arange(len(answer)), answer] - np.array(o["logprobs"]))
        worst, total = max(worst, diff.max()), total + diff.sum()
        n_tokens += len(answer)
        behind = max(behind, (logp.max(axis=1) - logp[np.arange(len(answer)), answer]).max())
        n_same += int((logp.argmax(axis=1) == np.array(answer)).sum())
        n_greedy += bool((logp.argmax(axis=1) == np.array(answer)).all())
    check.say("ids", n_ids == len(ours), f"{n_ids} of {len(ours)} prompts have the same tokens")
    check.say("logits", worst <= BOUND[kind],
              f"|log p - log p| at most {worst:.2e}, {total / n_tokens:.2e} on average "
              f"(bound {BOUND[kind]:g})")
    check.say("greedy", behind <= 2 * BOUND[kind],
              f"{n_same} of {n_tokens} tokens, {n_greedy} of {len(ours)} answers are llama.cpp's; "
              f"others are {behind:.2e} behind at most")


def compare(check, temper, folder, kind, prompts, n, work):
    path = str(Path(work) / f"{Path(folder).name}-{kind}.gguf")
    out = subprocess.run([temper, "export", folder, path, "--type", kind], check=True,
                         capture_output=True, text=True)
    print("  " + out.stdout.strip())
    check_keys(check, path, folder)
    check_tensors(check, temper, path, work)
    llm = llama_cpp.Llama(path, n_ctx=1024, logits_all=True, verbose=False, n_threads=1,
                          type_k=0, type_v=0, flash_attn=False)  # keys and values in f32, as here
    check_answers(check, llm, temper_generate(temper, path, prompts, n), kind, n)
    check_chat(check, llm, temper, path, prompts[:5], n, kind)
    llm.close()
    os.unlink(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--temper", default="build/default/src/cli/temper")
    parser.add_argument("--prompts", required=True, help="JSONL with \"question\"")
    parser.add_argument("--model", action="append", help="a model folder with its tokenizer")
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("-n", type=int, default=20, help="prompts (default 20)")
    parser.add_argument("--tokens", type=int, default=16, help="of each answer (default 16)")
    a = parser.parse_args()
    rows = [json.loads(line) for line in open(a.prompts, encoding="utf-8")]
    prompts = [r["question"] for r in rows[:a.n]]
    version = subprocess.run([a.temper, "version"], capture_output=True, text=True, check=True).stdout
    from importlib.metadata import version as of
    print(version.strip())
    print(f"llama-cpp-python {llama_cpp.__version__} ({llama_cpp.llama_print_system_info().decode().strip()})")
    print(f"gguf {of('gguf')}, numpy {np.__version__}; {len(prompts)} prompts of {a.prompts}")
    check = Check()
    with tempfile.TemporaryDirectory() as work:
        models = a.model or []
        if not models:
            text = Path(work) / "text.txt"
            text.write_text("\n".join(r["question"] + "\n" + r["answer"] for r in rows[:400]))
            for family in CONFIGS:
                folder = str(Path(work) / family)
                draw_model(a.temper, family, str(text), folder)
                models.append(folder)
        for folder in models:
            print(Path(folder).name)
            for kind in a.types.split(","):
                compare(check, a.temper, folder, kind, prompts, a.tokens, work)
    print("all within bounds" if not check.failed else f"{check.failed} checks failed")
    return check.failed != 0


if __name__ == "__main__":
    sys.exit(main())
