"""PyTorch's side of compare_ranks: one of several processes of one thread that train GPT-2 over gloo.

Made for torch 2.15 on a CPU.

    torchrun --nproc-per-node 2 torch_ranks.py --strategy ddp|fsdp2 --layers 12 --width 768 ...

Forward, backward, fused AdamW on a batch of random tokens; bf16 is autocast with DDP, bf16 parameters
and f32 reductions with FSDP2.  Rank 0 prints one JSON object: {"strategy", "ranks", "tokens_per_s" (of
all ranks: the median step after --warmup), "step_s" (every timed step), "sent_bytes" (of the loopback
device, a step, all ranks), "peak_rss_bytes" (the largest of a rank)}.
"""

import argparse
import contextlib
import json
import os
import pathlib
import resource
import statistics
import sys
import time

import torch
import torch.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/peers"))
from bench_torch import GPT2, make_optimizer  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strategy", choices=["ddp", "fsdp2"], default="ddp")
    parser.add_argument("--precision", choices=["bfloat16", "float32"], default="bfloat16")
    for name, value in dict(layers=12, width=768, heads=12, vocab=50257, batch=2, seq=256, warmup=3,
                            steps=5).items():
        parser.add_argument("--" + name, type=int, default=value)
    return parser.parse_args()


def sent_by_loopback():
    for line in open("/proc/net/dev"):
        name, _, rest = line.partition(":")
        if name.strip() == "lo":
            return int(rest.split()[8])
    return float("nan")


def divide(model, options):
    """The model as the strategy has it."""
    if options.strategy == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    types = dict(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    policy = MixedPrecisionPolicy(**(types if options.precision == "bfloat16" else {}))
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


def main():
    options = arguments()
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    model = divide(GPT2(options.vocab, options.seq, options.layers, options.heads, options.width), options)
    optimizer, _ = make_optimizer(model)
    torch.manual_seed(rank)
    ids = torch.randint(options.vocab, (options.batch, options.seq + 1))
    autocast = options.precision == "bfloat16" and options.strategy == "ddp"
    seconds, sent = [], 0
    for step in range(options.warmup + options.steps):
        dist.barrier()
        before, began = sent_by_loopback(), time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16) if autocast else contextlib.nullcontext():
            loss = model(ids[:, :-1], ids[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        dist.barrier()
        if step >= options.warmup:
            seconds.append(time.perf_counter() - began)
            sent = sent_by_loopback() - before
    peak = torch.tensor([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024], dtype=torch.int64)
    dist.all_reduce(peak, op=dist.ReduceOp.MAX)
    tokens = ranks * options.batch * options.seq
    if rank == 0:
        print(json.dumps({"strategy": options.strategy, "ranks": ranks,
                          "tokens_per_s": tokens / statistics.median(seconds), "step_s": seconds,
                          "sent_bytes": sent, "peak_rss_bytes": int(peak)}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
