#!/usr/bin/env python3
"""Does `temper tune` find as much as a grid of some 200 hand-made settings?

    bench/tune_grid.py TEMPER RECIPE DIR [--memory MIB] [--budget 10m] [--steps 8] [--warm-up 2]
                       [--rounds 12] [--threads 1,2] [--axis KEY=A,B ...] [--passes N/KEEP,...]
                       [KEY=VALUE...]

Grid: micro-batch (powers of two up to the batch) x recomputation x threads x packing, dynamic
batching or neither x level advanced or ultra x what --axis adds.  Every setting runs once, the best
quarter again, the best sixteenth twice more (or as --passes says); the median of tokens/s ranks.
The best three of the grid, the recipe of `tune` and RECIPE itself then run in fresh rounds, in
random order: what won by luck is found out.  Printed: tokens/s of each over RECIPE's, and of tune's
over the best of the grid, in the same round: median and the narrowest order statistics that cover
it at 95 %.

--memory is a limit for both: `tune --memory`, and of the grid what `temper plan` says fits; RECIPE
itself may be over.  The least and the most that a setting of the grid is planned with are printed.
What was measured lies in DIR and is not measured again.  One run is a process of its own, as in
tune; a step is as tune counts it.

Python 3.9 or later, nothing but its library.
"""

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
import rounds  # noqa: E402

SHAPES = {
    "packing": ["policy.sequence_packing.enabled=true", "policy.dynamic_batching.enabled=false"],
    "dynamic": ["policy.sequence_packing.enabled=false", "policy.dynamic_batching.enabled=true"],
    "padding": ["policy.sequence_packing.enabled=false", "policy.dynamic_batching.enabled=false"],
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("temper")
    parser.add_argument("recipe")
    parser.add_argument("dir")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    parser.add_argument("--memory", type=float, metavar="MIB")
    parser.add_argument("--budget", default="10m")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--threads", default=f"1,{os.cpu_count()}", help="of the grid")
    parser.add_argument("--passes", default="1/4,1/4,2/1", metavar="N/KEEP,...",
                        help="N runs of each setting that is left, of which one in KEEP stays")
    parser.add_argument("--axis", action="append", default=[], metavar="KEY=A,B")
    return parser.parse_intermixed_args()


class Trainings:
    """Short runs of one recipe, each sample kept in DIR/samples.jsonl."""

    def __init__(self, options):
        self.options = options
        self.count = 0
        self.kept = {}  # (settings, pass) -> tokens/s
        self.log = os.path.join(options.dir, "samples.jsonl")
        if os.path.exists(self.log):
            with open(self.log, encoding="utf-8") as file:
                for sample in map(json.loads, file):
                    self.kept[tuple(sample["settings"]), sample["pass"]] = sample["tokens_per_s"]

    def words(self, verb, settings, recipe=None):
        return [self.options.temper, verb, recipe or self.options.recipe] + list(settings)

    def planned(self, settings):
        """Bytes at the peak; None where the setting is refused."""
        done = subprocess.run(
            self.words("plan", [*self.options.overrides, *settings, "--json"]),
            capture_output=True, text=True, check=False,
        )
        try:
            return json.loads(done.stdout)["memory"]["planned_peak_bytes"]
        except (ValueError, KeyError, TypeError):
            return None

    def run(self, settings, which, recipe=None, overrides=True):
        """Tokens/s of one run; None where it failed."""
        key = (tuple(settings) if recipe is None else (recipe,), which)
        if key in self.kept:
            return self.kept[key]
        self.count += 1
        folder = os.path.join(self.options.dir, "run")
        subprocess.run(["rm", "-rf", folder], check=True)
        own = self.options.overrides if overrides else []
        steps = self.options.steps + self.options.warm_up
        short = [
            f"run.dir={folder}", f"sft.max_num_steps={steps}", "sft.val_period=0",
            "sft.val_at_start=false", "sft.val_at_end=false", "checkpointing.enabled=false", "-q",
        ]
        done = subprocess.run(
            self.words("train", [*own, *settings, *short], recipe),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
        )
        value = None
        if done.returncode == 0:
            with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
                records = [r["m"] for r in map(json.loads, file)]
            speed = [
                r["performance/tokens_per_sec"]
                for r in records if "performance/tokens_per_sec" in r
            ]
            value = statistics.median(speed[self.options.warm_up:])
        self.kept[key] = value
        with open(self.log, "a", encoding="utf-8") as file:
            json.dump({"settings": key[0], "pass": which, "tokens_per_s": value}, file)
            file.write("\n")
        return value


def grid_of(config, threads, axes):
    policy = config["policy"]
    batch = policy["train_global_batch_size"]
    length = policy["max_total_sequence_length"]
    micro = [2**i for i in range(12) if 2**i <= batch and batch % 2**i == 0]
    own = [[f"{key}={value}" for value in values.split(",")]
           for key, _, values in (axis.partition("=") for axis in axes)]
    for b, recompute, n, shape, level, *others in itertools.product(
        micro, ("none", "selective", "full"), threads, SHAPES, ("advanced", "ultra"), *own
    ):
        settings = [
            f"optimization.level={level}", f"policy.train_micro_batch_size={b}",
            f"policy.recompute={recompute}", f"engine.threads={n}", *SHAPES[shape],
            *others,
        ]
        section = {"packing": "sequence_packing", "dynamic": "dynamic_batching"}.get(shape)
        if section:
            settings.append(f"policy.{section}.train_mb_tokens={b * length}")
        yield tuple(settings)


def race(trainings, settings, stages):
    """The best three of the grid, by the median over their passes."""
    speeds = {s: [] for s in settings}
    left = list(settings)
    for passes, keep in stages:
        for _ in range(passes):
            which = f"grid-{max(len(v) for v in speeds.values())}"
            random.Random(which).shuffle(left)
            for s in left:
                value = trainings.run(s, which)
                if value:
                    speeds[s].append(value)
        left = [s for s in left if speeds[s]]
        left.sort(key=lambda s: -statistics.median(speeds[s]))
        left = left[: max(4, len(left) // keep)]
    return left[:3]


def tune(options, limit):
    out = os.path.join(options.dir, "tune")
    report = os.path.join(out, "report.json")
    if not os.path.exists(report):
        words = [options.temper, "tune", options.recipe, *options.overrides, "-q",
                 "--budget", options.budget, "--out", out]
        words += ["--memory", f"{limit}"] if limit else []
        done = subprocess.run(words, check=False)
        if done.returncode != 0:
            rounds.fail(f"tune ended with status {done.returncode}")
    with open(report, encoding="utf-8") as file:
        return os.path.join(out, "recipe.yaml"), json.load(file)


def main():
    options = arguments()
    options.temper = os.path.realpath(options.temper)
    options.recipe = os.path.realpath(options.recipe)
    os.makedirs(options.dir, exist_ok=True)
    options.dir = os.path.realpath(options.dir)
    trainings = Trainings(options)
    shown = subprocess.run(
        trainings.words("config", [*options.overrides, "--json"]),
        capture_output=True, text=True, check=False,
    )
    if shown.returncode != 0:
        rounds.fail(shown.stderr.strip())
    config = json.loads(shown.stdout)
    rounds.others_busy()

    grid = list(grid_of(
        config.get("config", config), sorted({int(n) for n in options.threads.split(",")}),
        options.axis,
    ))
    limit = None
    if options.memory:
        limit = int(options.memory * 2**20)
        planned = {s: trainings.planned(s) for s in grid}
        known = [b for b in planned.values() if b]
        rounds.say(f"planned: the recipe {trainings.planned([]) / 2**20:.1f} MiB, "
                   f"the grid {min(known) / 2**20:.1f} to {max(known) / 2**20:.1f} MiB")
        grid = [s for s in grid if planned[s] and planned[s] <= limit]
        rounds.say(f"limit {options.memory:g} MiB: {len(grid)} of {len(planned)} settings fit")
        if not grid:
            tune(options, limit)  # its own word, and status 5
            rounds.fail("none of the grid fits, and tune wrote a recipe")
    stages = [tuple(int(n) for n in stage.split("/")) for stage in options.passes.split(",")]
    best = race(trainings, grid, stages)
    failed = sum(1 for s in grid if trainings.kept.get((s, "grid-0")) is None)
    rounds.say(f"grid: {len(grid)} settings, {failed} failed, {trainings.count} runs")
    recipe, report = tune(options, limit)
    rounds.say(f"tune: {report['trials']} trials; gain as tune says: {report['gain']}")

    names = ["recipe", "tune"] + [f"grid {i + 1}" for i in range(len(best))]
    samples = {name: [] for name in names}
    for i in range(options.rounds):
        turn = list(names)
        random.Random(i).shuffle(turn)
        for name in turn:
            if name == "tune":
                value = trainings.run((), f"confirm-{i}", recipe, overrides=False)
            else:
                settings = () if name == "recipe" else best[int(name[5:]) - 1]
                value = trainings.run(settings, f"confirm-{i}")
            samples[name].append(value)
    if any(value is None for values in samples.values() for value in values):
        rounds.fail("a run of the confirmation failed; see samples.jsonl")
    rows = [["", "tokens/s", "over the recipe", "", "settings"]]
    for name in names:
        settings = "" if name == "recipe" else recipe if name == "tune" else " ".join(
            s.split(".")[-1] for s in best[int(name[5:]) - 1])
        text, _ = rounds.ratio_text(samples[name], samples["recipe"])
        rows.append([name, f"{statistics.median(samples[name]):.0f}", text, "", settings])
    rounds.table(rows)
    middle = {n: statistics.median(samples[n]) for n in names[2:]}
    winner = max(middle, key=middle.get)
    text, ratio = rounds.ratio_text(samples["tune"], samples[winner], 1.0)
    rounds.say(f"tune over {winner}: {text}")
    with open(os.path.join(options.dir, "result.json"), "w", encoding="utf-8") as file:
        json.dump({"samples": samples, "tune_over_grid": ratio, "winner": winner,
                   "settings": best, "limit": limit}, file, indent=1)


if __name__ == "__main__":
    main()
