#!/usr/bin/env python3
"""Write optimizers/adamw_8bit.safetensors and optimizers/gradscaler.json into the folder given.

adamw_8bit.safetensors: three steps of AdamW with block-wise 8-bit moments by the formula of
bitsandbytes.optim.AdamW8bit (lr 1e-2, betas 0.9 0.95, eps 1e-8, weight decay 0.1, blocks of 256),
every moment encoded as the nearest value of the dynamic map, of two as near the lower
(bitsandbytes' own encoder on the CPU is up to seven codes off near 0).
    p0 [n], grads [3, n], exact.p1 .. exact.p3 [n]
    exact.state1.T, exact.state2.T  codes of the first and second moments after step T [n]
    qmap1, qmap2                    the signed and the unsigned map [256]

gradscaler.json: sequences of torch.amp.GradScaler("cpu"), one row a step: found_inf, whether the
optimizer stepped, scale before and after, growth tracker.
"""
import json
import math
import pathlib
import sys

import torch
from safetensors.torch import save_file

N, BLOCK = 1100, 256


def dynamic_map(signed):
    values = [0.0, 1.0]
    for i in range(7):
        edges = torch.linspace(0.1, 1, 2 ** (i if signed else i + 1) + 1)
        middles = (10 ** (i - 6) * (edges[:-1] + edges[1:]) / 2).tolist()
        values += middles + ([-x for x in middles] if signed else [])
    return torch.tensor(sorted(values))


def encode(x, values):
    size = torch.stack([part.abs().max() for part in x.split(BLOCK)])
    size = size.repeat_interleave(BLOCK)[: x.numel()]
    codes = torch.bucketize(x / size, (values[1:] + values[:-1]) / 2)
    return codes.to(torch.uint8), values[codes] * size


def adamw_8bit(path):
    generator = torch.Generator().manual_seed(2110)
    p = 0.1 * torch.randn(N, generator=generator)
    gradients = 0.01 * torch.randn(3, N, generator=generator)
    gradients[1] *= 5
    signed, unsigned = dynamic_map(True), dynamic_map(False)
    out = {"p0": p, "grads": gradients, "qmap1": signed, "qmap2": unsigned}
    m, v = torch.zeros(N), torch.zeros(N)
    for t in (1, 2, 3):
        g = gradients[t - 1]
        m = 0.9 * m + (1 - 0.9) * g
        v = 0.95 * v + (1 - 0.95) * g * g
        root = v.sqrt() / math.sqrt(1 - 0.95**t) + 1e-8
        p = p * (1 - 1e-2 * 0.1) - 1e-2 / (1 - 0.9**t) * m / root
        out[f"exact.state1.{t}"], m = encode(m, signed)
        out[f"exact.state2.{t}"], v = encode(v, unsigned)
        out[f"exact.p{t}"] = p
    save_file({name: x.contiguous() for name, x in out.items()}, path)


def sequence(pattern, scale, growth, backoff, interval):
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_factor=growth,
                                  backoff_factor=backoff, growth_interval=interval)
    p = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([p], lr=1.0)
    scaler.scale(torch.zeros(1))
    rows = []
    for overflows in pattern:
        before, old = scaler.get_scale(), p.detach().clone()
        p.grad = torch.tensor([1.0, math.inf if overflows == "1" else 1.0])
        scaler.step(optimizer)
        scaler.update()
        rows.append({"found_inf": int(overflows), "scale_before": before,
                     "stepped": overflows == "0" and not bool(p.detach().isnan().any()),
                     "scale_after": scaler.get_scale(),
                     "growth_tracker": scaler.state_dict()["_growth_tracker"]})
        p.data = old if not p.detach().isfinite().all() else p.data
    return {"init_scale": scale, "growth_factor": growth, "backoff_factor": backoff,
            "growth_interval": interval, "pattern": pattern, "rows": rows}


def main():
    folder = pathlib.Path(sys.argv[1]) / "optimizers"
    folder.mkdir(exist_ok=True)
    adamw_8bit(str(folder / "adamw_8bit.safetensors"))
    runs = [sequence("0001000010011000", 65536.0, 2.0, 0.5, 3),
            sequence("1000100000000110", 4096.0, 2.0, 0.25, 4),
            sequence("00000000", 2.0**125, 2.0, 0.5, 1),
            sequence("0010100000", 1024.0, 3.0, 0.1, 2)]
    (folder / "gradscaler.json").write_text(json.dumps(runs, indent=1) + "\n")


if __name__ == "__main__":
    main()
