"""Train one step on tiny random models with unusual config.json fields, here and in transformers.

    compare_configs.py TEMPER WORK_FOLDER [N] [SEED]

Each case is a folder with a config.json that holds one or two unusual settings. Loss and
gradient norm of one step in float32 are compared with transformers' (reloaded from the same
folder), unless temper refuses the file, which must name a field. A line per case; the exit
status is 1 when a case is silently different. Versions: requirements.txt.
"""

import copy
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

torch.set_num_threads(1)
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

DECODER = dict(vocab_size=62, hidden_size=24, intermediate_size=40, num_hidden_layers=2,
               num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
               hidden_act="silu", rms_norm_eps=1e-5, tie_word_embeddings=False,
               initializer_range=0.2, bos_token_id=None, eos_token_id=1, dtype="float32")
GPT2 = dict(vocab_size=62, n_positions=64, n_embd=24, n_layer=2, n_head=4, resid_pdrop=0.0,
            embd_pdrop=0.0, attn_pdrop=0.0, initializer_range=0.2, bos_token_id=0,
            eos_token_id=1, dtype="float32")


def base(family):
    config = copy.deepcopy(GPT2 if family == "gpt2" else DECODER)
    config["model_type"] = family
    config["architectures"] = [{"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM",
                                "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}[family]]
    if family == "qwen3":
        config["head_dim"] = 8
    return config


LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)
ODD = [  # families, settings
    ("llama qwen2 qwen3", dict(head_dim=10)), ("llama", dict(head_dim=6, attention_bias=True)),
    ("llama", dict(mlp_bias=True)), ("qwen3", dict(attention_bias=True)),
    ("qwen2", dict(attention_bias=False, mlp_bias=True)),
    ("llama qwen2 qwen3", dict(num_key_value_heads=1)),
    ("llama qwen2 qwen3", dict(num_key_value_heads=None)),
    ("llama qwen2 qwen3", dict(num_key_value_heads="ABSENT")),
    ("qwen2 qwen3", dict(num_attention_heads=64, head_dim=4, num_key_value_heads="ABSENT")),
    ("qwen3", dict(head_dim="ABSENT")), ("llama qwen2 qwen3", dict(rms_norm_eps="ABSENT")),
    ("llama qwen2 qwen3", dict(rms_norm_eps=0.3)),
    ("llama qwen2 qwen3", dict(hidden_act="gelu")), ("llama qwen2", dict(hidden_act="gelu_new")),
    ("qwen3", dict(hidden_act="gelu_pytorch_tanh")), ("llama", dict(hidden_act="relu")),
    ("qwen2", dict(hidden_act="gelu_fast")), ("llama", dict(hidden_act="quick_gelu")),
    ("llama qwen2 qwen3", dict(tie_word_embeddings=True)),
    ("llama qwen2 qwen3", dict(pad_token_id=5)),
    ("llama qwen2 qwen3", dict(pad_token_id=5, tie_word_embeddings=True)),
    ("llama", dict(pad_token_id=-1)), ("gpt2", dict(pad_token_id=5)),
    ("llama qwen2 qwen3", dict(rope_theta=77.0)),
    ("llama qwen2 qwen3", dict(rope_parameters=dict(rope_type="default", rope_theta=55.0))),
    ("llama", dict(rope_theta=77.0, rope_parameters=dict(rope_type="default", rope_theta=55.0))),
    ("llama", dict(rope_theta=77.0, rope_parameters=dict(rope_type="default"))),
    ("llama qwen2", dict(rope_scaling=dict(type="default", rope_theta=33.0),
                         rope_parameters=dict(rope_type="default", rope_theta=55.0))),
    ("llama", dict(rope_scaling={}, rope_parameters=dict(rope_type="default", rope_theta=55.0))),
    ("llama", dict(rope_scaling=dict(rope_type="yarn", factor=4.0),
                   rope_parameters=dict(rope_type="default", rope_theta=55.0))),
    ("llama qwen2 qwen3", dict(rope_scaling=LLAMA3)),
    ("llama", dict(rope_scaling=LLAMA3, original_max_position_embeddings=4)),
    ("llama", dict(rope_scaling={k: v for k, v in LLAMA3.items()
                                 if k != "original_max_position_embeddings"})),
    ("llama", dict(rope_scaling=LLAMA3, rope_theta=50.0,
                   rope_parameters=dict(rope_type="default", rope_theta=3.0))),
    ("llama", dict(rope_scaling=dict(type="linear", factor=2.0))),
    ("llama", dict(rope_scaling=dict(type="dynamic", factor=2.0))),
    ("qwen2", dict(rope_scaling=dict(rope_type="yarn", factor=4.0,
                                     original_max_position_embeddings=16))),
    ("llama", dict(rope_scaling=dict(rope_type="longrope", factor=2.0, short_factor=[1.0] * 3,
                                     long_factor=[2.0] * 3))),
    ("llama qwen2", dict(partial_rotary_factor=0.5)),
    ("llama", dict(rope_parameters=dict(rope_type="default", rope_theta=55.0,
                                        partial_rotary_factor=0.5))),
    ("llama gpt2", dict(sliding_window=4)),
    ("qwen2 qwen3", dict(sliding_window=4, use_sliding_window=True, max_window_layers=1)),
    ("qwen2 qwen3", dict(sliding_window=4, use_sliding_window=True, max_window_layers=2)),
    ("qwen2 qwen3", dict(sliding_window=4, use_sliding_window=True)),
    ("qwen2", dict(sliding_window=None, use_sliding_window=True, max_window_layers=0)),
    ("qwen2 qwen3", dict(sliding_window=4, use_sliding_window=False, max_window_layers=0)),
    ("qwen2", dict(sliding_window=4, use_sliding_window=True,
                   layer_types=["full_attention", "sliding_attention"])),
    ("qwen2 llama", dict(layer_types=["full_attention", "full_attention"])),
    ("llama", dict(layer_types=["full_attention", "sliding_attention"], sliding_window=4)),
    ("llama qwen2 qwen3 gpt2", dict(is_causal=False)),
    ("llama qwen2", dict(attention_dropout=0.5)),
    ("llama", dict(attention_chunk_size=4)),
    ("llama gpt2", dict(use_cache=False, output_hidden_states=True)),
    ("llama", dict(torch_dtype="float16", dtype="float32")),
    ("llama", dict(quantization_config=dict(quant_method="gptq", bits=4))),
    ("llama", dict(pretraining_tp=2)), ("llama gpt2", dict(chunk_size_feed_forward=3)),
    ("llama", dict(attn_logit_softcapping=2.0, final_logit_softcapping=3.0)),
    ("llama", dict(embedding_multiplier=2.0, residual_multiplier=0.5, logits_scaling=3.0)),
    ("llama", dict(per_layer_config={"0": {"intermediate_size": 40}})),
    ("llama gpt2", dict(is_encoder_decoder=True)), ("llama gpt2", dict(is_decoder=True)),
    ("llama", dict(architectures=["LlamaForSequenceClassification"])),
    ("gpt2", dict(scale_attn_by_inverse_layer_idx=True)), ("gpt2", dict(scale_attn_weights=False)),
    ("gpt2", dict(scale_attn_weights=False, scale_attn_by_inverse_layer_idx=True)),
    ("gpt2", dict(reorder_and_upcast_attn=True)), ("gpt2", dict(n_inner=36)),
    ("gpt2", dict(n_inner=None)), ("gpt2", dict(tie_word_embeddings=False)),
    ("gpt2", dict(activation_function="silu")), ("gpt2", dict(activation_function="relu")),
    ("gpt2", dict(hidden_size=16)), ("gpt2", dict(num_attention_heads=2)),
    ("gpt2", dict(num_hidden_layers=1)), ("gpt2", dict(max_position_embeddings=48)),
    ("gpt2", dict(layer_norm_epsilon=0.2)), ("gpt2", dict(layer_norm_epsilon="ABSENT")),
    ("gpt2", dict(add_cross_attention=True)), ("gpt2", dict(n_ctx=7)),
    ("llama qwen2 qwen3 gpt2", dict(OWN_HEAD=True, tie_word_embeddings=True)),
    ("llama qwen2 gpt2", dict(HEAD_ONLY=True, tie_word_embeddings=True)),
    ("llama", dict(COPY_HEAD=True, tie_word_embeddings=True)),
]


def shapes(config, rng):
    """Unusual sizes."""
    gpt2 = config["model_type"] == "gpt2"
    heads = rng.choice([1, 2, 3, 4, 6])
    width = heads * rng.choice([2, 4, 6, 10])
    names = ("n_embd", "n_head", "n_layer") if gpt2 else (
        "hidden_size", "num_attention_heads", "num_hidden_layers")
    config.update(zip(names, (width, heads, rng.choice([1, 2, 3, 5]))))
    config["vocab_size"] = rng.choice([62, 63, 67, 101, 130])
    if gpt2:
        config["n_inner"] = rng.choice([None, 1, 7, 33])
        config["n_positions"] = rng.choice([41, 50])
        return
    config["num_key_value_heads"] = rng.choice([d for d in range(1, heads + 1) if heads % d == 0])
    config["intermediate_size"] = rng.choice([1, 7, 33, 64])
    if rng.random() < 0.5 or config["model_type"] == "qwen3":
        config["head_dim"] = rng.choice([2, 4, 14, 20])


def cases(n, seed):
    rng = random.Random(seed)
    for families, odd in ODD:
        for family in families.split():
            config = base(family)
            config.update(odd)
            yield family, odd, {k: v for k, v in config.items() if v != "ABSENT"}
    for _ in range(n):
        family = rng.choice(["llama", "qwen2", "qwen3", "gpt2"])
        config = base(family)
        shapes(config, rng)
        picked = rng.choice([o for f, o in ODD if family in f.split()
                             and not {"num_attention_heads", "hidden_size", "layer_types",
                                      "num_hidden_layers"} & set(o)])
        config.update(picked)
        yield family, {"random": True, **picked}, {k: v for k, v in config.items()
                                                   if v != "ABSENT"}


def reference(folder, ids, config, special):
    hf = AutoConfig.from_pretrained(folder)
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(hf, attn_implementation="eager")
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(0, 0.3)
    state = {k: v.contiguous().clone() for k, v in model.state_dict().items()}
    tied = config.get("tie_word_embeddings", config["model_type"] == "gpt2")
    table = "transformer.wte.weight" if config["model_type"] == "gpt2" else "model.embed_tokens.weight"
    if tied:
        state.pop("lm_head.weight", None)
    if "OWN_HEAD" in special:
        state["lm_head.weight"] = torch.randn_like(state[table]) * 0.3
    if "COPY_HEAD" in special:
        state["lm_head.weight"] = state[table].clone()
    if "HEAD_ONLY" in special:
        state["lm_head.weight"] = state.pop(table)
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager",
                                                 dtype=torch.float32)
    model.eval()  # GPT-2's dropout is documented as left out
    if config.get("attention_dropout"):
        model.train()
    t = torch.tensor([ids])
    loss = model(input_ids=t, labels=t, return_dict=True).loss
    loss.backward()
    norm = torch.sqrt(sum((p.grad ** 2).sum() for p in model.parameters() if p.grad is not None))
    return loss.item(), norm.item()


def tokenizer(vocab):
    return {"model": {"type": "BPE", "vocab": {c: i for i, c in enumerate(LETTERS[:vocab])},
                      "merges": []},
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            "decoder": {"type": "ByteLevel"}}


def temper(binary, folder, data):
    run = folder / "run"
    command = [binary, "train", str(data / "recipe.yaml"), f"policy.model_name={folder}",
               f"run.dir={run}", f"data.train.data_path={data / 'text.jsonl'}", "progress=json"]
    env = dict(os.environ, XDG_CACHE_HOME=str(data / "cache"))
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        return None, done.returncode, (done.stderr + done.stdout).strip().splitlines()[-1]
    rows = [json.loads(line) for line in open(run / "metrics.jsonl")]
    row = next(r["m"] for r in rows if "train/loss" in r["m"])
    return row, 0, done.stderr


def main():
    binary, work = sys.argv[1], Path(sys.argv[2])
    n = int(sys.argv[3]) if len(sys.argv) > 3 else 60
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    work.mkdir(parents=True, exist_ok=True)
    rng = random.Random(7)
    text = "".join(rng.choice(LETTERS[:40] + "fff") for _ in range(40))
    (work / "text.jsonl").write_text(json.dumps({"text": text}) + "\n")
    (work / "recipe.yaml").write_text(
        "sft: {max_num_steps: 1, val_period: 0, val_at_start: false}\n"
        "policy: {precision: float32, train_global_batch_size: 1, train_micro_batch_size: 1,\n"
        "  max_total_sequence_length: 40, max_grad_norm: null,\n"
        "  tokenizer: {chat_template: null}, optimizer: {kwargs: {lr: 0.001}}}\n"
        "data: {add_bos: false, add_eos: false, train: {text_key: text, split_validation_size: 0}}\n"
        "checkpointing: {enabled: false}\nengine: {threads: 1}\n")
    ids = [LETTERS.index(c) for c in text]
    counts = {"equal": 0, "refused": 0, "both refuse": 0, "DIFFERENT": 0, "UNNAMED": 0, "only we": 0}
    for i, (family, odd, config) in enumerate(cases(n, seed)):
        folder = work / f"case-{i}"
        subprocess.run(["rm", "-rf", folder])
        folder.mkdir()
        special = {k for k in odd if k.isupper()}
        config = {k: v for k, v in config.items() if not k.isupper()}
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer(62)))
        try:
            want = reference(folder, ids, config, special)
        except Exception as e:  # noqa: BLE001
            want = None
            why = f"{type(e).__name__}: {str(e).splitlines()[0][:80]}" if str(e) else type(e).__name__
        row, status, said = temper(binary, folder, work)
        if row is None:
            named = re.search(r'config\.json:\d+: "', said)
            verdict = "refused" if named else "UNNAMED"
            if want is None:
                verdict = "both refuse"
            detail = f"{status} {said[-150:]}"
        elif want is None:
            verdict, detail = "only we", why
        else:
            gap = abs(row["train/loss"] - want[0])
            gap_norm = abs(row["train/grad_norm"] / want[1] - 1)
            verdict = "equal" if gap < 1e-5 and gap_norm < 1e-4 else "DIFFERENT"
            detail = f"{want[0]:.6f} off by {gap:.1e}, norm by {gap_norm:.1e}"
            notes = [line for line in said.splitlines() if "not used" in line or "head" in line]
            detail += f"  [{notes[0][-90:]}]" if notes else ""
        counts[verdict] += 1
        print(f"{verdict:11} {family:6} {json.dumps(odd)[:110]}  {detail}", flush=True)
    print(counts)
    sys.exit(1 if counts["DIFFERENT"] or counts["UNNAMED"] else 0)


main()
