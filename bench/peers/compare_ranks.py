"""See ../compare_ranks.sh.

Every round starts each side once, in an order that turns: Temper alone with as many threads, Temper with
each of its strategies, DDP, FSDP2.  Rows are medians over rounds, with the smallest and the largest.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

here = pathlib.Path(__file__).resolve().parent
root = "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--precision", choices=["bfloat16", "float32"], default="bfloat16")
    parser.add_argument("--strategies", default="ddp,shard_optimizer")
    parser.add_argument("--peers", default="ddp,fsdp2")
    parser.add_argument("--out")
    for name, value in dict(ranks=2, rounds=5, layers=12, width=768, heads=12, vocab=50257, batch=2,
                            seq=256, steps=8).items():
        parser.add_argument("--" + name, type=int, default=value)
    return parser.parse_args()


def write_inputs(folder, o):
    """GPT-2 of the size asked for, and rows that are as long as a sequence."""
    config = {"model_type": "gpt2", "vocab_size": o.vocab, "n_embd": o.width, "n_layer": o.layers,
              "n_head": o.heads, "n_positions": max(o.seq, 64), "layer_norm_epsilon": 1e-5,
              "activation_function": "gelu_new", "tie_word_embeddings": True, "initializer_range": 0.02}
    (folder / "model.json").write_text(json.dumps(config))
    (folder / "corpus.txt").write_text("abcdefghijklmnopqrstuvwxyz\n")
    subprocess.run([str(pathlib.Path(o.build).resolve() / "src/cli/temper"), "tokenizer", "--vocab-size", "260", "letters",
                    "corpus.txt"], cwd=folder, check=True, capture_output=True)  # a letter is a token
    with open(folder / "rows.jsonl", "w") as out:
        for i in range(o.ranks * o.batch * 4):
            text = "".join(chr(97 + (i * 31 + k * k * 7) % 26) for k in range(o.seq - 2))
            out.write(json.dumps({"text": text}) + "\n")
    (folder / "recipe.yaml").write_text(f"""
sft: {{max_num_steps: {o.steps}, max_num_epochs: 100000, val_period: 0}}
policy:
  init: random
  model_config: model.json
  tokenizer: {{name: letters, chat_template: null}}
  train_global_batch_size: {o.ranks * o.batch}
  train_micro_batch_size: {o.batch}
  max_total_sequence_length: {o.seq}
  precision: {o.precision}
data:
  train: {{data_path: rows.jsonl, split_validation_size: 0}}
checkpointing: {{enabled: false}}
""")


def run_temper(folder, o, ranks, strategy, threads):
    name = f"run-{os.urandom(4).hex()}"
    words = [str(pathlib.Path(o.build).resolve() / "src/cli/temper"), "train", "--quiet", "recipe.yaml",
             f"run.dir={name}", f"engine.threads={threads}"]
    if ranks > 1:
        words = ["mpirun", "--oversubscribe", "-n", str(ranks)] + words + [f"distributed.strategy={strategy}"]
    done = subprocess.run(words, cwd=folder, env=os.environ | dict.fromkeys(root, "1"), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")
    records = [json.loads(line) for line in open(folder / name / "metrics.jsonl")]
    seconds = [r["m"]["timing/train/total_step_time"] for r in records if r["axis"] == "train"]
    run = json.load(open(folder / name / "run.json"))
    sent = run.get("distributed", {}).get("bytes_sent", 0) / o.steps
    tokens = o.ranks * o.batch * o.seq
    return {"tokens_per_s": tokens / statistics.median(seconds[3:]), "sent_bytes": sent,
            "rank_bytes": run["memory"]["peak_resident_bytes"]}


def run_torch(folder, o, strategy):
    words = [o.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(o.ranks),
             str(here / "torch_ranks.py"), "--strategy", strategy, "--precision", o.precision]
    for name in "layers", "width", "heads", "vocab", "batch", "seq":
        words += [f"--{name}", str(getattr(o, name))]
    done = subprocess.run(words, cwd=folder, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise SystemExit(f"{' '.join(words)}: {done.stderr[-2000:]}")
    answer = json.loads(lines[-1])
    return {"tokens_per_s": answer["tokens_per_s"], "sent_bytes": answer["sent_bytes"],
            "rank_bytes": answer["peak_rss_bytes"]}


def main():
    o = arguments()
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_inputs(folder, o)
        sides = {f"temper, 1 rank of {o.ranks} threads": lambda: run_temper(folder, o, 1, None, o.ranks)}
        for s in o.strategies.split(","):
            sides[f"temper {s}, {o.ranks} ranks"] = lambda s=s: run_temper(folder, o, o.ranks, s, 1)
        for s in filter(None, o.peers.split(",")):
            sides[f"PyTorch {s}, {o.ranks} ranks"] = lambda s=s: run_torch(folder, o, s)
        names = list(sides)
        for i in range(o.rounds):
            for side in names[i % len(names):] + names[:i % len(names)]:
                found.setdefault(side, []).append(sides[side]())
    print(f"{'':34} {'tokens/s':>9} {'(from - to)':>19} {'sent a step':>12} {'of a rank':>10}")
    for side in names:
        rates = [r["tokens_per_s"] for r in found[side]]
        sent = statistics.median(r["sent_bytes"] for r in found[side])
        memory = statistics.median(r["rank_bytes"] for r in found[side])
        spread = f"({min(rates):.0f} - {max(rates):.0f})"
        print(f"{side:34} {statistics.median(rates):9.0f} {spread:>19} {sent / 1e6:9.1f} MB {memory / 1e9:7.2f} GB")
    if o.out:
        pathlib.Path(o.out).write_text(json.dumps({"options": vars(o), "rounds": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
