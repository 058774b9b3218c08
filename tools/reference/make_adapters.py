"""Write adapters as PEFT saves them, and what PEFT computes with them.

    make_adapters.py MODELS OUT

MODELS holds the tiny models of make_models.py (tests/data/reference).  For each run OUT/<run>/
receives adapter_config.json, adapter_model.safetensors and

  expected.safetensors  f32, computed in f64
    input_ids [B,T], labels [B,T]   -100: no loss; the loss is the mean over the kept tokens,
                                    labels shifted by one
    logits [B,T,V]                  without dropout
    grad.<tensor>                   of the first step; tensors as in adapter_model.safetensors
    step3.<tensor>                  after three steps of AdamW on the same batch
    merged.<parameter>              of the first layer, after merge_and_unload()

Where there is dropout, what it drops is drawn as src/engine/backend/dropout.h does, with the noise
of seed NOISE.  The scalars are in OUT/adapters.json.  One thread, fixed seeds.  Versions: requirements.txt.
"""

import json
import math
import re
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from peft import LoraConfig, PeftModel, get_peft_model
from peft.tuners.lora import LoraLayer
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM
from transformers.models.llama import modeling_llama
from transformers.models.qwen2 import modeling_qwen2

ADAMW = {"lr": 5e-3, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}
RUNS = {
    "llama-lora": dict(r=3, lora_alpha=6, target_modules="all-linear"),
    "llama-dora": dict(r=2, lora_alpha=3, target_modules=["q_proj", "down_proj"], use_dora=True),
    "qwen2-rslora": dict(r=5, lora_alpha=4, target_modules=["q_proj", "k_proj", "up_proj"],
                         use_rslora=True),
    "gpt2-lora": dict(r=4, lora_alpha=8, fan_in_fan_out=True,
                      target_modules=r".*\.1\.(attn\.c_attn|mlp\.c_proj)"),
    "gpt2-dora": dict(r=2, lora_alpha=4, fan_in_fan_out=True, use_dora=True, use_rslora=True,
                      target_modules=["c_attn", "c_fc"], exclude_modules=r".*\.0\.mlp\.c_fc"),
    "llama-lora-dropout": dict(r=1, lora_alpha=3, lora_dropout=0.25, target_modules=["v_proj", "o_proj"]),
    "qwen2-dora-dropout": dict(r=3, lora_alpha=5, lora_dropout=0.25, use_dora=True, use_rslora=True,
                               target_modules=["q_proj", "down_proj"]),
    "gpt2-dora-dropout": dict(r=2, lora_alpha=3, lora_dropout=0.5, use_dora=True, fan_in_fan_out=True,
                              target_modules=r".*\.1\.(attn|mlp)\.c_proj"),
}
NOISE = 7


def philox(seed, stream, counter):
    """src/base/rng.c: Philox 4x32-10."""
    c = [counter & 0xFFFFFFFF, counter >> 32, stream & 0xFFFFFFFF, stream >> 32]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k0, p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k1, p0 & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


class Dropout(torch.nn.Module):
    """In place of PEFT's nn.Dropout: the same, but for what is drawn."""

    def __init__(self, p, stream):
        super().__init__()
        self.p, self.stream, self.step = p, stream, 0

    def forward(self, x):
        if not self.training:
            return x
        low, high = philox(NOISE, self.step, 0)[:2]
        words = [w for block in range((x.numel() + 3) // 4)
                 for w in philox(low | high << 32, self.stream, block)]
        kept = torch.tensor([w >= int(self.p * 2**32) for w in words[:x.numel()]])
        return x * kept.reshape(x.shape) / (1 - self.p)


def own_dropout(model, p):
    """The adapters' dropouts; the first module's stream is 1."""
    layers = [m for m in model.modules() if isinstance(m, LoraLayer)]
    drops = [Dropout(p, i + 1) for i in range(len(layers))]
    for layer, drop in zip(layers, drops):
        layer.lora_dropout["default"] = drop
        layer.train()
    return drops


def exact_norms():
    """Norm and rotation compute in f32 whatever the model is; make them follow it."""

    def norm(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) +
                                              self.variance_epsilon))

    def rotary(self, x, position_ids):
        f = position_ids[:, :, None].double() * self.inv_freq.double()
        e = torch.cat((f, f), -1)
        return e.cos().to(x.dtype), e.sin().to(x.dtype)

    modeling_llama.LlamaRMSNorm.forward = norm
    modeling_qwen2.Qwen2RMSNorm.forward = norm
    modeling_llama.LlamaRotaryEmbedding.forward = rotary
    modeling_qwen2.Qwen2RotaryEmbedding.forward = rotary


def saved_name(name):
    name = name.replace(".default", "")
    return name.replace("lora_magnitude_vector.weight", "lora_magnitude_vector")


def loss_of(model, ids, labels):
    logits = model(input_ids=ids).logits
    flat = logits[:, :-1].reshape(-1, logits.shape[-1])
    return logits, F.cross_entropy(flat, labels[:, 1:].reshape(-1), ignore_index=-100)


def run(models, out, name, settings, seed):
    family = name.split("-")[0]
    generator = torch.Generator().manual_seed(seed)
    base = AutoModelForCausalLM.from_pretrained(models / family, dtype=torch.float32)
    model = get_peft_model(base, LoraConfig(task_type="CAUSAL_LM", **settings))
    with torch.no_grad():
        for key, p in model.named_parameters():
            if "lora_magnitude" in key:
                p.mul_(1 + 0.1 * torch.randn(p.shape, generator=generator))
            elif "lora_" in key:
                p.copy_(0.15 * torch.randn(p.shape, generator=generator))
    folder = out / name
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = f"../../{family}"
    for key in ("target_modules", "exclude_modules"):
        if isinstance(config[key], list):
            config[key] = sorted(config[key])
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")

    ids = torch.randint(0, base.config.vocab_size, (2, 9), generator=generator)
    labels = ids.clone()
    labels[0, :3] = -100
    labels[1, -2:] = -100
    model = model.double()
    tensors = {"input_ids": ids, "labels": labels}
    trained = [(saved_name(k), p) for k, p in model.named_parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW([p for _, p in trained], **ADAMW)
    tensors["logits"] = loss_of(model.eval(), ids, labels)[0].detach().float()
    drops = own_dropout(model, settings["lora_dropout"]) if "lora_dropout" in settings else []
    losses, norms = [], []
    for step in range(3):
        optimizer.zero_grad(set_to_none=True)
        for drop in drops:
            drop.step = step
        loss = loss_of(model, ids, labels)[1]
        loss.backward()
        losses.append(loss.item())
        norms.append(math.sqrt(sum(p.grad.pow(2).sum().item() for _, p in trained)))
        if step == 0:
            tensors.update({f"grad.{k}": p.grad.float() for k, p in trained})
        optimizer.step()
    losses.append(loss_of(model, ids, labels)[1].item())
    tensors.update({f"step3.{k}": p.detach().float() for k, p in trained})

    base = AutoModelForCausalLM.from_pretrained(models / family, dtype=torch.float32)
    model = PeftModel.from_pretrained(base, folder).double()
    adapted = [k for k, _ in model.named_modules() if k.endswith("base_layer")]
    weights = model.merge_and_unload().state_dict()
    for key in adapted:
        key = key.replace("base_model.model.", "", 1).replace(".base_layer", "") + ".weight"
        if re.search(r"\.1\." if family == "gpt2" else r"\.0\.", key):
            tensors[f"merged.{key}"] = weights[key].float()
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / "expected.safetensors")
    return {"losses": losses, "grad_norms": norms}


def main():
    models, out = Path(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    exact_norms()
    runs = {name: run(models, out, name, settings, 100 + i)
            for i, (name, settings) in enumerate(RUNS.items())}
    adamw = {**ADAMW, "betas": list(ADAMW["betas"]), "steps": 3}
    text = json.dumps({"adamw": adamw, "runs": runs}, indent=1)
    (out / "adapters.json").write_text(text + "\n")


main()
