"""Write tiny random models and what PyTorch computes from them.

    make_models.py OUT [--only FAMILY ...]

For each family OUT/<family>/ receives the model as transformers saves it
(config.json, model.safetensors or its shards, generation_config.json) and

  expected.safetensors  f32 and int32 tensors
    input_ids [T], cu_seqlens [S+1], targets [T], loss_weights [T]
                          S packed sequences. targets[t] is the next token of
                          the same sequence; its last position has target 0
                          and weight 0, and some leading positions (a prompt)
                          have weight 0.
    logits [T,V]          each sequence run by itself, eager attention, f32
    logprobs [T]          log softmax(logits) at targets
    loss [1]              sum(w * -logprobs) / sum(w)
    grad.<parameter>      d loss / d parameter, a tied head counted once
    *_bf16                the same model after .to(torch.bfloat16), widened to
                          f32; the loss is computed in f32 from bf16 logits
    adamw_losses [N]      loss before each of N steps on this one batch
    adamw_grad_norms [N]  gradient norm before clipping
    greedy [24]           greedy continuation of input_ids[0:5], eos ignored

  expected.json           the scalars, the optimizer's settings, versions, and
                          how far bf16 lies from f32 for each tensor

Everything runs on one thread from fixed seeds. Versions: requirements.txt.
"""

import argparse
import json
import platform
from pathlib import Path

import numpy
import safetensors
import torch
import transformers
from safetensors.torch import save_file
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    LlamaConfig,
    Qwen2Config,
    Qwen3Config,
)

SEQUENCE_LENGTHS = (17, 1, 23)
PROMPT_LENGTHS = (4, 0, 9)  # leading positions of each sequence without loss
GREEDY_PROMPT = 5
GREEDY_TOKENS = 24
ADAMW = {"lr": 1e-2, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}
ADAMW_STEPS = 10
CLIP_NORM = 1.0


def gpt2_config():
    return GPT2Config(
        vocab_size=101, n_positions=64, n_embd=48, n_layer=2, n_head=4, n_inner=92,
        activation_function="gelu_new", resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=100, eos_token_id=100, tie_word_embeddings=True)


def llama_config():
    # Wavelengths of the five rotation pairs straddle both thresholds (8 and
    # 32): one is kept, one interpolated, three are divided by the factor.
    return LlamaConfig(
        vocab_size=131, hidden_size=40, intermediate_size=76, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=256,
        rms_norm_eps=1e-5, tie_word_embeddings=False, bos_token_id=128,
        eos_token_id=[129, 130],
        rope_parameters={
            "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0,
            "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32})


def smollm2_config():
    return LlamaConfig(
        vocab_size=113, hidden_size=32, intermediate_size=84, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
        rms_norm_eps=1e-5, tie_word_embeddings=True, bos_token_id=1, eos_token_id=2,
        rope_parameters={"rope_type": "default", "rope_theta": 100000.0})


def qwen2_config():
    return Qwen2Config(
        vocab_size=157, hidden_size=40, intermediate_size=76, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
        rms_norm_eps=1e-6, tie_word_embeddings=True, bos_token_id=150, eos_token_id=152,
        sliding_window=8, use_sliding_window=False, max_window_layers=1,
        rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})


def qwen3_config():
    return Qwen3Config(
        vocab_size=149, hidden_size=32, intermediate_size=76, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=12,
        max_position_embeddings=128, rms_norm_eps=1e-6, tie_word_embeddings=True,
        bos_token_id=143, eos_token_id=145,
        rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})


# family: configuration, seed, number of weight files. The seeds are chosen so
# that the greedy continuation varies and no choice in it is a near tie.
FAMILIES = {
    "gpt2": (gpt2_config, 24, 1),
    "llama": (llama_config, 20, 1),
    "smollm2": (smollm2_config, 56, 1),
    "qwen2": (qwen2_config, 15, 1),
    "qwen3": (qwen3_config, 12, 2),
}


def randomise(model, generator):
    """Give every parameter values that leave no gradient near zero."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator)
            is_norm = "norm" in name or ".ln_" in name
            if is_norm and name.endswith(".weight"):
                p.copy_(1.0 + 0.2 * noise)
            elif name.endswith(".bias"):
                p.copy_(0.1 * noise)
            elif "embed" in name or "wte" in name or "wpe" in name:
                p.copy_(0.12 * noise)
            else:
                p.copy_(0.2 * noise)


def as_published(family, config):
    """Restore what published models carry and version 5 would not write."""
    if family == "smollm2":  # written by transformers 4
        rope = config.pop("rope_parameters")
        config["rope_theta"] = rope["rope_theta"]
        config["rope_scaling"] = None
        config["torch_dtype"] = config.pop("dtype")
        config["transformers_version"] = "4.42.3"
        del config["head_dim"]
    if family == "qwen2":  # a window that is set and not used
        config["sliding_window"] = 8
    return dict(sorted(config.items()))


def save_model(model, folder, family, files):
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    if files > 1:
        model.save_pretrained(folder, max_shard_size=size * 2 // 3)
        assert len(list(folder.glob("*.safetensors"))) == files
    else:
        model.save_pretrained(folder)
    path = folder / "config.json"
    config = as_published(family, json.loads(path.read_text()))
    path.write_text(json.dumps(config, indent=2) + "\n")
    for path in folder.glob("*.safetensors"):
        path.chmod(0o644)


def make_batch(vocab, generator):
    total = sum(SEQUENCE_LENGTHS)
    ids = torch.randint(0, vocab, (total,), generator=generator)
    targets = torch.zeros(total, dtype=torch.long)
    weights = torch.zeros(total)
    starts = [0]
    for length, prompt in zip(SEQUENCE_LENGTHS, PROMPT_LENGTHS):
        begin, end = starts[-1], starts[-1] + length
        targets[begin:end - 1] = ids[begin + 1:end]
        weights[begin + prompt:end - 1] = 1.0
        starts.append(end)
    return ids, torch.tensor(starts), targets, weights


def packed_logits(model, ids, starts):
    """Logits [T,V], every sequence run by itself."""
    parts = []
    for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist()):
        parts.append(model(input_ids=ids[None, begin:end], use_cache=False).logits[0])
    return torch.cat(parts)


def loss_of(logits, targets, weights):
    logprobs = torch.log_softmax(logits.float(), dim=-1)
    logprobs = logprobs.gather(1, targets[:, None])[:, 0]
    return -(weights * logprobs).sum() / weights.sum(), logprobs


def forward_backward(model, batch):
    """logits, logprobs, loss and every gradient, all widened to f32."""
    ids, starts, targets, weights = batch
    model.zero_grad(set_to_none=True)
    logits = packed_logits(model, ids, starts)
    loss, logprobs = loss_of(logits, targets, weights)
    loss.backward()
    grads = {name: p.grad.detach().float().clone() for name, p in model.named_parameters()}
    return logits.detach().float(), logprobs.detach(), loss.detach(), grads


def adamw_curve(model, batch):
    ids, starts, targets, weights = batch
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW, foreach=False)
    losses, norms = [], []
    for _ in range(ADAMW_STEPS):
        optimizer.zero_grad(set_to_none=True)
        loss, _ = loss_of(packed_logits(model, ids, starts), targets, weights)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms


def greedy_tokens(model, prompt):
    """Greedy continuation without a cache, and the smallest lead of the
    winner over the runner-up."""
    ids = prompt.clone()
    margin = float("inf")
    with torch.no_grad():
        for _ in range(GREEDY_TOKENS):
            logits = model(input_ids=ids[None], use_cache=False).logits[0, -1]
            top = logits.topk(2)
            margin = min(margin, (top.values[0] - top.values[1]).item())
            ids = torch.cat([ids, top.indices[:1]])
    return ids[len(prompt):], margin


def deviation(low, high):
    """How far a bf16 tensor lies from its f32 counterpart."""
    difference = low - high
    return {
        "max_abs": difference.abs().max().item(),
        "rel_l2": (difference.norm() / high.norm()).item(),
        "max_value": high.abs().max().item(),
    }


def load(folder):
    model = AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32)
    return model.eval()


def make_family(family, out):
    make_config, seed, files = FAMILIES[family]
    folder = out / family
    folder.mkdir(parents=True, exist_ok=True)
    generator = torch.Generator().manual_seed(seed)

    config = make_config()
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    model = model.float().eval()
    randomise(model, generator)
    save_model(model, folder, family, files)
    batch = make_batch(config.vocab_size, generator)
    ids, starts, targets, weights = batch

    # What is measured is the saved folder, not the object that wrote it.
    loaded = load(folder)
    for (name, a), (other, b) in zip(model.named_parameters(), loaded.named_parameters()):
        assert name == other and torch.equal(a, b), name
    if family != "gpt2":
        assert loaded.config.rope_parameters == config.rope_parameters
    model = loaded

    logits, logprobs, loss, grads = forward_backward(model, batch)
    for name, grad in grads.items():
        assert grad.abs().max() > 0, name
    low = load(folder).to(torch.bfloat16)
    logits_low, _, loss_low, grads_low = forward_backward(low, batch)
    greedy, margin = greedy_tokens(model, ids[:GREEDY_PROMPT])
    losses, norms = adamw_curve(load(folder), batch)

    tensors = {
        "input_ids": ids.int(), "cu_seqlens": starts.int(), "targets": targets.int(),
        "loss_weights": weights, "logits": logits, "logprobs": logprobs,
        "loss": loss[None], "logits_bf16": logits_low, "loss_bf16": loss_low[None],
        "adamw_losses": torch.tensor(losses), "adamw_grad_norms": torch.tensor(norms),
        "greedy": greedy.int(),
    }
    tensors |= {f"grad.{name}": g for name, g in grads.items()}
    tensors |= {f"grad_bf16.{name}": g for name, g in grads_low.items()}
    tensors = {name: t.contiguous() for name, t in tensors.items()}
    path = folder / "expected.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod(0o644)

    expected = {
        "family": family,
        "parameters": sum(p.numel() for p in model.parameters()),
        "seed": seed,
        "sequence_lengths": SEQUENCE_LENGTHS,
        "loss": loss.item(),
        "loss_bf16": loss_low.item(),
        "grad_norm": torch.cat([g.flatten() for g in grads.values()]).norm().item(),
        "adamw": ADAMW | {"clip_norm": CLIP_NORM, "decay": "all parameters"},
        "adamw_losses": losses,
        "adamw_grad_norms": norms,
        "greedy": greedy.tolist(),
        "greedy_min_margin": margin,
        "bf16_deviation": {
            "loss": {"abs": abs(loss_low.item() - loss.item()),
                     "rel": abs(loss_low.item() - loss.item()) / loss.item()},
            "logits": deviation(logits_low, logits),
        } | {f"grad.{name}": deviation(grads_low[name], grads[name]) for name in grads},
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "safetensors": safetensors.__version__,
            "numpy": numpy.__version__,
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        },
    }
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    print(f"{family}: {expected['parameters']} parameters, loss {loss.item():.6f}, "
          f"bf16 {loss_low.item():.6f}, greedy margin {margin:.4f}, "
          f"adamw {losses[0]:.4f} -> {losses[-1]:.4f}, "
          f"{len(set(greedy.tolist()))} distinct greedy tokens")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", nargs="*", choices=FAMILIES, default=list(FAMILIES))
    options = parser.parse_args()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for family in options.only:
        make_family(family, options.out)


if __name__ == "__main__":
    main()
