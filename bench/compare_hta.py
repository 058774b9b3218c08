#!/usr/bin/env python3
"""Temper and HolisticTraceAnalysis on the same trace in the same run, in turn.

usage: compare_hta.py TEMPER TRACE.json.gz [--rounds N] [--python PYTHON]

Each round times, as processes of their own and in an order that alternates: HTA's load, temporal, kernel and overlap
breakdown; `temper trace TRACE --json`, whose answer contains all three.  Prints versions, each time, medians, the ratio of
the medians and peak resident memory.  PYTHON is one that has HTA:

    python3.11 -m venv hta && hta/bin/pip install HolisticTraceAnalysis==0.5.0

(0.6.1 calls its package traceinsight; it is installed from its repository, facebookresearch/HolisticTraceAnalysis.)

For benchmarks only; standard library besides HTA.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HTA = r"""
import json, resource, sys, time
import importlib.metadata as metadata
from hta.trace_analysis import TraceAnalysis
folder, out = sys.argv[1:]
marks = [("start", time.time())]
a = TraceAnalysis(trace_dir=folder, include_last_profiler_step=True) if "include_last_profiler_step" in \
    TraceAnalysis.__init__.__code__.co_varnames else TraceAnalysis(trace_dir=folder)
marks.append(("load", time.time()))
t = a.get_temporal_breakdown(visualize=False)
marks.append(("temporal", time.time()))
a.get_gpu_kernel_breakdown(visualize=False)
marks.append(("kernel", time.time()))
o = a.get_comm_comp_overlap(visualize=False)
marks.append(("overlap", time.time()))
names = {d.metadata["Name"].lower(): d.version for d in metadata.distributions()}
found = {"version": names.get("traceinsight") or names["holistictraceanalysis"],
         "seconds": {b[0]: b[1] - a_[1] for a_, b in zip(marks, marks[1:])},
         "compute_us": float(t["compute_time(us)"][0]), "idle_us": float(t["idle_time(us)"][0]),
         "overlap_pct": float(o["comp_comm_overlap_pctg"][0])}
json.dump(found, open(out, "w"))
"""


def timed(command, **options):
    """Seconds and peak bytes of a process."""
    start = time.time()
    process = subprocess.Popen(command, **options)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{command[0]} failed")
    return time.time() - start, usage.ru_maxrss * 1024


def run_hta(python, folder, found):
    out = os.path.join(folder, os.pardir, "hta.json")
    seconds, peak = timed([python, "-c", HTA, folder, out], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(out, encoding="utf-8") as f:
        found.update(json.load(f))
    return sum(found["seconds"].values()), seconds, peak


def run_temper(temper, trace, found):
    with tempfile.TemporaryFile("w+") as out:
        seconds, peak = timed([temper, "trace", trace, "--json"], stdout=out)
        out.seek(0)
        found.update(json.load(out)["all_devices"])
    return seconds, seconds, peak


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("temper")
    parser.add_argument("trace")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    hta, ours = {}, {}
    with tempfile.TemporaryDirectory() as work:
        folder = os.path.join(work, "traces")
        os.mkdir(folder)
        shutil.copy(options.trace, os.path.join(folder, "rank0.json.gz"))
        programs = {"HTA": lambda: run_hta(options.python, folder, hta),
                    "Temper": lambda: run_temper(options.temper, options.trace, ours)}
        times, peaks = {name: [] for name in programs}, dict.fromkeys(programs, 0)
        for i in range(options.rounds):
            for name in list(programs) if i % 2 == 0 else reversed(list(programs)):
                seconds, whole, peak = programs[name]()
                times[name].append(seconds)
                peaks[name] = max(peaks[name], peak)
                print(f"round {i + 1}: {name:7} {seconds:8.3f} s (process {whole:.3f} s, {peak / 1e6:.0f} MB)", flush=True)
    medians = {name: statistics.median(v) for name, v in times.items()}
    version = subprocess.run([options.temper, "version"], capture_output=True, text=True, check=False).stdout.split("\n")[0]
    print(f"\nHTA {hta['version']}: {hta['seconds']}")
    print(version)
    for name, median in medians.items():
        print(f"{name:7} median {median:8.3f} s, {min(times[name]):.3f} to {max(times[name]):.3f}, peak {peaks[name] / 1e6:.0f} MB")
    print(f"ratio of the medians: {medians['HTA'] / medians['Temper']:.1f}")
    print(f"compute: HTA {hta['compute_us']:.0f} us, Temper {ours['compute_ns'] / 1e3:.3f} us")
    print(f"overlap: HTA {hta['overlap_pct']} %, Temper {ours['comm_compute_overlap_pct']} %")


main()
