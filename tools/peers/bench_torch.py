"""Time training steps of a randomly initialised GPT-2 in PyTorch on the CPU.

    bench_torch.py --batch 4 --seq 64 --dtype bf16 --compile

One JSON line for each run. A step is forward, backward and AdamW on one batch
of random tokens that does not change; bf16 means autocast over f32 weights.
tokens_per_s, forward_ms, backward_ms and optimizer_ms list every timed step;
warm-up steps (compilation among them) are not listed, their time is warmup_s.
With --compile the loss is part of the compiled graph.
"""

import argparse
import contextlib
import json
import resource
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm_2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norm_1(x)).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    """Learned positions, layer norm first, head tied to the embedding."""

    def __init__(self, vocab, positions, layers, heads, width):
        super().__init__()
        self.tokens = nn.Embedding(vocab, width)
        self.positions = nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                residual = name.endswith(("out.weight", "down.weight"))
                nn.init.normal_(p, std=0.02 / (2 * layers) ** 0.5 if residual else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def make_optimizer(model):
    """AdamW, fused where this build of PyTorch has it for the CPU."""
    options = {"lr": 3e-4, "betas": (0.9, 0.95), "weight_decay": 0.1}
    try:
        return torch.optim.AdamW(model.parameters(), fused=True, **options), True
    except (RuntimeError, TypeError):
        return torch.optim.AdamW(model.parameters(), **options), False


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=64)
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="bf16")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--vocab", type=int, default=50257)
    parser.add_argument("--positions", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    options = arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    positions = max(options.positions, options.seq)
    model = GPT2(options.vocab, positions, options.layers, options.heads, options.width)
    optimizer, fused = make_optimizer(model)
    step_loss = torch.compile(model) if options.compile else model
    shape = (options.batch, options.seq)
    ids = torch.randint(0, options.vocab, shape)
    targets = torch.randint(0, options.vocab, shape)

    def autocast():
        if options.dtype == "bf16":
            return torch.autocast("cpu", dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def step():
        """One step: its loss and the four times that bound its phases."""
        t0 = time.perf_counter()
        with autocast():
            loss = step_loss(ids, targets)
        t1 = time.perf_counter()
        loss.backward()
        t2 = time.perf_counter()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item(), (t0, t1, t2, time.perf_counter())

    begin = time.perf_counter()
    for _ in range(options.warmup):
        step()
    warmup_s = time.perf_counter() - begin

    losses, times = [], []
    for _ in range(options.steps):
        loss, marks = step()
        losses.append(round(loss, 5))
        times.append(marks)

    def milliseconds(i, j):
        return [round(1e3 * (t[j] - t[i]), 3) for t in times]

    rates = [round(options.batch * options.seq / (t[3] - t[0]), 2) for t in times]
    print(json.dumps({
        "peer": "pytorch", "version": torch.__version__,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        **vars(options), "fused_adamw": fused,
        "parameters": sum(p.numel() for p in model.parameters()),
        "tokens_per_s_median": round(statistics.median(rates), 2) if rates else None,
        "tokens_per_s": rates, "forward_ms": milliseconds(0, 1),
        "backward_ms": milliseconds(1, 2), "optimizer_ms": milliseconds(2, 3),
        "warmup_s": round(warmup_s, 3), "losses": losses,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }))


if __name__ == "__main__":
    main()
