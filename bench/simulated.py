#!/usr/bin/env python3
"""temper simulate beside real ranks of this machine, on a platform that is calibrated with them.

    bench/simulated.py --build BUILD [--recipe recipes/demo.yaml] [--ranks 2,4] [--steps 12] [--rounds 3]
                       [--strategies ddp,shard_optimizer] [--out FILE] [KEY=VALUE ...]

For each number of ranks N:
  network    two ranks are traced; latency and bandwidth are fitted to their collectives (temper trace ... ranks: time of
             a transfer against messages and bytes sent);
  processor  N processes that know nothing of each other train a rank's share of the batch at once: what a rank's step takes
             when N share this machine; the simulation's processor gets the arithmetic that makes its plan take as long;
  measured   median step of N ranks, in rounds that turn with the calibration.
The machine must be idle for the figures to mean anything; more ranks than processors are a case of their own.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="node-" suffix="" radical="0-63" speed="1Gf" bw="{bandwidth:.0f}Bps" lat="{latency:.3e}s"/>
</platform>
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--recipe", default=str(pathlib.Path(__file__).resolve().parent.parent / "recipes/demo.yaml"))
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--strategies", default="ddp,shard_optimizer")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--memory", default="10GB", help="of a processor, bytes a second")
    parser.add_argument("--out")
    parser.add_argument("settings", nargs="*")
    return parser.parse_args()


class Bench:
    def __init__(self, o, folder):
        self.o, self.folder, self.n = o, folder, 0
        self.temper = str(pathlib.Path(o.build).resolve() / "src/cli/temper")
        self.environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

    def words(self, batch, more):
        self.n += 1
        run = self.folder / f"run-{self.n}"
        return run, [f"run.dir={run}", f"policy.train_global_batch_size={batch}", f"sft.max_num_steps={self.o.steps}", "sft.val_period=0",
                     "checkpointing.enabled=false", "engine.threads=1", "policy.sequence_packing.enabled=false",
                     "policy.train_micro_batch_size=8", *self.o.settings, *more]

    def start(self, before, batch, more):
        run, words = self.words(batch, more)
        return run, subprocess.Popen([*before, self.temper, "train", "--quiet", self.o.recipe, *words], env=self.environment,
                                     cwd=self.folder, stdout=subprocess.DEVNULL)

    def ask(self, words):
        return json.loads(subprocess.run([self.temper, *words], env=self.environment, cwd=self.folder, check=True, capture_output=True).stdout)

    def finish(self, run, process):
        if process.wait() != 0:
            raise SystemExit(f"{run}: exit status {process.returncode}")
        return run

    def step(self, run):
        """The median step of a run, without those that warm up."""
        records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        seconds = [r["m"]["timing/train/total_step_time"] for r in records if "timing/train/total_step_time" in r.get("m", {})]
        return statistics.median(seconds[3:])

    def together(self, ranks, more):
        run, process = self.start(["mpirun", "--oversubscribe", "-n", str(ranks)], self.o.batch, more)
        return self.finish(run, process)

    def apart(self, ranks):
        """N strangers, each with a rank's share."""
        runs = [self.start([], self.o.batch // ranks, []) for _ in range(ranks)]
        return max(self.step(self.finish(*r)) for r in runs)

    def network(self):
        points = []
        for mib in (0.25, 1, 4):
            # Not overlapped: progress is made between launches, whose time would count.
            run = self.together(2, [f"distributed.bucket_mib={mib}", "profile.steps=5:10", "engine.disable_passes=[overlap]"])
            for c in self.ask(["trace", str(run / "trace"), "ranks", "--json"])["collectives"]:
                if c["bytes"] and c["group_size"] == 2:
                    is_sum = c["collective"] == "all_reduce"
                    points.append((2 if is_sum else 1, c["bytes"] * (1 if is_sum else 0.5), c["transfer_p50_ns"] * 1e-9))
        latency = statistics.median(t / rounds for rounds, sent, t in points if sent < 4096)
        bandwidth = statistics.median(sent / max(t - rounds * latency, 1e-9) for rounds, sent, t in points if sent > 65536)
        return latency, bandwidth

    def simulate(self, ranks, batch, processor, platform):
        _, words = self.words(batch, [])
        return self.ask(["simulate", self.o.recipe, *words, "--ranks", str(ranks), "--platform", str(platform), "--processor", processor,
                         "--json"])

    def processor(self, seconds, ranks, platform):
        """Arithmetic with which the plan of a rank's share takes so long."""
        low, high = 1e9, 1e13
        for _ in range(24):
            middle = (low * high) ** 0.5
            alone = self.simulate(1, self.o.batch // ranks, f"{middle / 1e9:.4f}GFLOP/{self.o.memory}", platform)["points"][0]["step_s"]
            low, high = (middle, high) if alone > seconds else (low, middle)
        return f"{(low * high) ** 0.5 / 1e9:.4f}GFLOP/{self.o.memory}"


def main():
    o = arguments()
    report = {"points": []}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(o, pathlib.Path(folder))
        latency, bandwidth = bench.network()
        platform = bench.folder / "platform.xml"
        platform.write_text(PLATFORM.format(bandwidth=bandwidth, latency=latency / 2))
        report["latency_s"], report["bytes_per_s"] = latency, bandwidth
        print(f"network of two ranks here: {latency * 1e6:.1f} us a message, {bandwidth / 1e9:.2f} GB/s")
        for ranks in map(int, o.ranks.split(",")):
            apart, measured = [], {s: [] for s in o.strategies.split(",")}
            for _ in range(o.rounds):
                apart.append(bench.apart(ranks))
                for s in measured:
                    measured[s].append(bench.step(bench.together(ranks, [f"distributed.strategy={s}"])))
            share = statistics.median(apart)
            processor = bench.processor(share, ranks, platform)
            points = bench.simulate(ranks, o.batch, processor, platform)["points"]
            for s, seconds in measured.items():
                simulated = next(p["step_s"] for p in points if p["ranks"] == ranks and p["strategy"] == s)
                real = statistics.median(seconds)
                report["points"].append({"ranks": ranks, "strategy": s, "share_s": share, "processor": processor, "measured_s": real,
                                         "rounds_s": seconds, "simulated_s": simulated, "differs": simulated / real - 1})
                print(f"{ranks} ranks, {s}: measured {real * 1e3:.1f} ms ({min(seconds) * 1e3:.1f} to {max(seconds) * 1e3:.1f}), simulated "
                      f"{simulated * 1e3:.1f} ms ({100 * (simulated / real - 1):+.1f} %); a share alone {share * 1e3:.1f} ms")
    if o.out:
        pathlib.Path(o.out).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
