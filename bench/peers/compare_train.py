"""A training step beside PyTorch's, in rounds; see ../compare_train.sh.

Every round starts each program once for each shape, in an order that turns; a round's figure is the
median of its steps after the first ones.  Python 3.9 or later, nothing but its library.
"""

import argparse
import json
import os
import statistics
import tempfile

import rounds
from rounds import environment, say

HERE = os.path.dirname(os.path.abspath(__file__))
GPT2 = {"layers": 12, "width": 768, "heads": 12, "vocab": 50257}
# Batch, length, steps that count.
SHAPES = {
    "4x512": (dict(GPT2), 4, 512, 3),
    "4x64": (dict(GPT2), 4, 64, 8),
    "small": ({"layers": 4, "width": 256, "heads": 4, "vocab": 256}, 32, 128, 15),
}
WARM = 2


def arguments():
    parser = argparse.ArgumentParser(prog="compare_train.sh", description=__doc__.split(";")[0])
    parser.add_argument("--build", required=True, metavar="DIR")
    parser.add_argument("--python", required=True, metavar="PROGRAM", help="Python that has torch")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=("bf16", "f32"), default="bf16")
    parser.add_argument("--shape", action="append", choices=sorted(SHAPES))
    parser.add_argument("--no-compile", action="store_true", help="PyTorch eager only")
    parser.add_argument("--out", metavar="FILE", help="every figure as JSON")
    return parser.parse_args()


def temper(options, folder, shape):
    sizes, batch, seq, steps = SHAPES[shape]
    config = os.path.join(folder, f"{shape}.json")
    with open(config, "w", encoding="utf-8") as file:
        json.dump({"model_type": "gpt2", "vocab_size": sizes["vocab"], "n_embd": sizes["width"],
                   "n_layer": sizes["layers"], "n_head": sizes["heads"], "n_positions": 1024,
                   "activation_function": "gelu_new", "tie_word_embeddings": True}, file)
    words = [os.path.join(options.build, "bench", "train_step"), config, f"batch={batch}", f"seq={seq}",
             f"steps={steps + WARM}", f"dtype={options.dtype}", f"threads={options.threads}"]
    out, _ = rounds.run(words, environment(options.threads), "train_step")
    answer = json.loads(out.strip().splitlines()[-1])
    return statistics.median(answer["tokens_per_s"][WARM:]), answer["rss_peak_mib"]


def torch(options, compiles, shape):
    sizes, batch, seq, steps = SHAPES[shape]
    script = os.path.join(HERE, "..", "..", "tools", "peers", "bench_torch.py")
    words = [options.python, script, "--batch", str(batch), "--seq", str(seq), "--steps", str(steps),
             "--warmup", str(WARM), "--dtype", options.dtype, "--threads", str(options.threads)]
    for name, value in sizes.items():
        words += [f"--{name}", str(value)]
    out, _ = rounds.run(words + ["--compile"] * compiles, environment(options.threads), "bench_torch.py")
    answer = json.loads(out.strip().splitlines()[-1])
    return answer["tokens_per_s_median"], answer["peak_rss_mib"]


def main():
    options = arguments()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        sides = {"temper": lambda s: temper(options, folder, s), "eager": lambda s: torch(options, False, s)}
        if not options.no_compile:
            sides["compiled"] = lambda s: torch(options, True, s)
        for shape in options.shape or SHAPES:
            rows = found[shape] = {name: [] for name in sides}
            for i in range(options.rounds):
                rounds.others_busy()
                for name in rounds.order(sides, i):
                    rows[name].append(sides[name](shape))
                say(f"{shape}, round {i + 1}: " + ", ".join(f"{n} {r[-1][0]:.0f}" for n, r in rows.items()))
            report(shape, rows)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump({"options": vars(options), "tokens_per_s and MiB": found}, file, indent=1)


def report(shape, rows):
    say(f"\n{shape}: tokens/s, median (from, to); peak memory")
    table = [("", "tokens/s", "MiB")]
    for name, values in rows.items():
        rates = [v[0] for v in values]
        table.append((name, f"{statistics.median(rates):.0f} ({min(rates):.0f}, {max(rates):.0f})",
                      f"{statistics.median(v[1] for v in values):.0f}"))
    rounds.table(table)
    ours = [v[0] for v in rows["temper"]]
    for name in rows:
        if name != "temper":
            say(f"temper over {name}: " + rounds.ratio_text(ours, [v[0] for v in rows[name]])[0])
    say()


if __name__ == "__main__":
    main()
