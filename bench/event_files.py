#!/usr/bin/env python3
"""A million points of 50 tags out of an event file, beside TensorBoard's own fast reader.

    bench/event_files.py BUILD SERVER [--rounds 8] [--tags 50] [--steps 20000]

BUILD has metrics_bench (target of that name).  SERVER is rustboard, the program of PyPI's
tensorboard-data-server (.../tensorboard_data_server/bin/server).  In every round, in turn: one load
cycle of rustboard that keeps all points and checks no checksum, `temper metrics` as a table of all
tags, and `temper metrics --json` into /dev/null; the last two check both checksums of each record.

Wall times; ratios of one round to rustboard's of the same, median and the narrowest order
statistics that cover it at 95 %; peak memory of each (of a child, from the kernel).

Python 3.9 or later, nothing but its library.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
import rounds  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", metavar="BUILD")
    parser.add_argument("server", metavar="SERVER")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--tags", type=int, default=50)
    parser.add_argument("--steps", type=int, default=20000)
    return parser.parse_args()


def rustboard(server, folder):
    """Seconds of its first load cycle, by its own log, and its peak memory in MiB."""
    words = [server, "--logdir", folder, "--port", "0", "--reload", "once", "-v"]
    words += ["--samples-per-plugin", "scalars=all"]
    process = subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    for line in process.stderr:
        found = re.search(r"[Ll]oad cycle.*?([0-9.]+) ?(ms|s)\b", line)
        if found and "inish" in line:
            seconds = float(found[1]) * (1e-3 if found[2] == "ms" else 1)
            break
    else:
        rounds.fail("event_files: rustboard said nothing of a load cycle")
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    process.kill()
    process.wait()
    return seconds, peak / 1024


def temper(program, folder, *flags):
    """Seconds, processor time and peak memory in MiB."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [program, "metrics", folder, *flags],
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        rounds.fail(f"event_files: temper metrics ended with {process.returncode}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    options = arguments()
    program = os.path.join(options.build, "src", "cli", "temper")
    names = ["rustboard", "table", "json"]
    seconds = {name: [] for name in names}
    peak = dict.fromkeys(names, 0.0)
    work = {"table": [], "json": []}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [os.path.join(options.build, "bench", "metrics_bench"), "write"]
            + [os.path.join(folder, "events.out.tfevents.1.made"), str(options.tags)]
            + [str(options.steps)],
            check=True,
        )
        for number in range(options.rounds):
            for name in names[number % 3 :] + names[: number % 3]:
                if name == "rustboard":
                    took, high = rustboard(options.server, folder)
                else:
                    took, spent, high = temper(
                        program, folder, *(["--json"] if name == "json" else [])
                    )
                    work[name].append(spent)
                seconds[name].append(took)
                peak[name] = max(peak[name], high)
    for name in names:
        values = seconds[name]
        line = (
            f"{name}: {statistics.median(values):.3f} s ({min(values):.3f} to {max(values):.3f}), "
            f"{peak[name]:.0f} MiB"
        )
        if name in work:
            ratios = [v / r for v, r in zip(values, seconds["rustboard"])]
            middle, low, high, cover = rounds.interval(ratios)
            line += (
                f", processor time {statistics.median(work[name]):.3f} s; over rustboard "
                f"{middle:.3f} [{low:.3f}, {high:.3f}] at {100 * cover:.1f} %, "
                f"{sum(r <= 1 / 3 for r in ratios)} of {len(ratios)} rounds within a third"
            )
        rounds.say(line)


if __name__ == "__main__":
    main()
