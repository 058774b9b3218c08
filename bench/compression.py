#!/usr/bin/env python3
"""Loss and bytes with and without compressed gradients, from several seeds.

    bench/compression.py --build BUILD [--recipe recipes/demo.yaml] [--ranks 2] [--steps 300] [--seeds 5]
                         [--formats none,bf16,int8] [--strategy ddp] [--out FILE] [KEY=VALUE ...]

Every format trains from the same seeds, so that differences are between runs of one seed. A format is within the spread of
seeds when the mean of those differences is smaller than the standard deviation of the loss over seeds without compression.
Bytes are those that ranks handed over (run.json). No timing: the machine may be busy.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--recipe", default=str(pathlib.Path(__file__).resolve().parent.parent / "recipes/demo.yaml"))
    parser.add_argument("--formats", default="none,bf16,int8")
    parser.add_argument("--strategy", default="ddp")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out")
    parser.add_argument("settings", nargs="*")
    return parser.parse_args()


def train(o, folder, form, seed):
    run = folder / f"{form}-{seed}"
    words = [f"distributed.compress={form}", f"distributed.strategy={o.strategy}", f"sft.seed={seed}", f"sft.max_num_steps={o.steps}",
             f"run.dir={run}", "sft.val_period=0", "sft.val_at_end=true", "checkpointing.enabled=false", "engine.threads=1"]
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    subprocess.run(["mpirun", "--oversubscribe", "-n", str(o.ranks), str(pathlib.Path(o.build).resolve() / "src/cli/temper"), "train",
                    "--quiet", o.recipe, *words, *o.settings], check=True, env=environment, cwd=folder, stdout=subprocess.DEVNULL)
    record = json.loads((run / "run.json").read_text())
    return {"seed": seed, "loss": record["result"]["loss"], "val_loss": record["result"]["val_loss"],
            "distributed": record["distributed"]}


def describe(rows):
    losses = [r["val_loss"] for r in rows]
    return {"val_loss": losses, "mean": statistics.mean(losses), "deviation": statistics.stdev(losses)}


def compare(form, rows, base):
    wire = rows[0]["distributed"]["compression"]
    differences = [a["val_loss"] - b["val_loss"] for a, b in zip(rows, base)]
    mean = statistics.mean(differences)
    spread = statistics.stdev(r["val_loss"] for r in base)
    return {"format": form, **describe(rows), "difference": mean, "difference_deviation": statistics.stdev(differences),
            "spread_of_seeds": spread, "within": abs(mean) < spread, "bytes_sent": wire["bytes_sent"],
            "uncompressed_bytes": wire["uncompressed_bytes"], "error": wire["error"]}


def main():
    o = arguments()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, o.seeds + 1):
            for form in o.formats.split(","):
                results.setdefault(form, []).append(train(o, pathlib.Path(folder), form, seed))
    base = results["none"]
    report = {"ranks": o.ranks, "steps": o.steps, "strategy": o.strategy, "none": describe(base), "formats": []}
    print(f"{o.ranks} ranks, {o.strategy}, {o.steps} steps, {o.seeds} seeds: loss of validation at the end")
    print(f"none   {report['none']['mean']:.5f} +- {report['none']['deviation']:.5f}")
    for form in o.formats.split(",")[1:]:
        c = compare(form, results[form], base)
        report["formats"].append(c)
        print(f"{form:6} {c['mean']:.5f} +- {c['deviation']:.5f}, differs by {c['difference']:+.5f} +- {c['difference_deviation']:.5f}: "
              f"{'within' if c['within'] else 'beyond'} the spread of seeds, {c['spread_of_seeds']:.5f}; "
              f"{c['bytes_sent'] / 1e6:.1f} MB in place of {c['uncompressed_bytes'] / 1e6:.1f}, kept back {100 * c['error']:.2f} %")
    if o.out:
        pathlib.Path(o.out).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
