#!/usr/bin/env python3
"""Do others read what a run of Temper wrote for them?

    pip install tensorboard prometheus_client
    temper train demo run.dir=RUN logger.tensorboard_enabled=true logger.prometheus.path=RUN.prom
    tools/reference/compare_sinks.py RUN [RUN.prom]

Every figure of RUN/metrics.jsonl, as a float32, must be what TensorBoard has for it, at its step and
no other: read by EventAccumulator, by the Python backend (tensorboard --load_fast=false) and by the
data server (rustboard, the default).  rustboard ignores SessionLog START: where a tag was not
measured again after a restart it shows the point of the attempt before; these are counted.
The textfile must be what prometheus_client's parser takes, with the newest figures.  Exit status 1
when anything differs."""
import collections
import json
import logging
import math
import os
import struct
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
logging.disable(logging.WARNING)

from prometheus_client.parser import text_string_to_metric_families
from tensorboard import context
from tensorboard.backend.event_processing import data_provider
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.data import server_ingester
from tensorboard.util import grpc_util

ALL = 10**7
special = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def float32(value):
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def number(value):
    return special[value] if isinstance(value, str) else float(value)


def recorded(run):
    """tag -> step -> value, of the highest attempt; and tag -> step -> those it superseded."""
    now, before = collections.defaultdict(dict), collections.defaultdict(dict)
    attempt, newest = 0, {}
    with open(os.path.join(run, "metrics.jsonl")) as lines:
        records = [json.loads(line) for line in lines]
    for r in records:
        if r["attempt"] != attempt:
            attempt = r["attempt"]
            first = min(x["step"] for x in records if x["attempt"] == attempt)
            for tag in now:
                for step in [s for s in now[tag] if s >= first]:
                    before[tag][step] = now[tag].pop(step)
        for tag, value in r["m"].items():
            now[tag][r["step"]] = number(value)
        newest[r["axis"]] = r["m"]
    return {t: p for t, p in now.items() if p}, before, newest


def accumulator(folder):
    reader = event_accumulator.EventAccumulator(folder, size_guidance={"scalars": 0})
    reader.Reload()
    return {t: [(p.step, p.value) for p in reader.Scalars(t)] for t in reader.Tags()["scalars"]}


def points_of(provider):
    series = provider.read_scalars(
        context.RequestContext(), experiment_id="", plugin_name="scalars", downsample=ALL
    )
    return {t: [(p.step, p.value) for p in s] for run in series.values() for t, s in run.items()}


def python_backend(folder):
    reader = plugin_event_multiplexer.EventMultiplexer(tensor_size_guidance={"scalars": 0})
    reader.AddRunsFromDirectory(folder)
    reader.Reload()
    return points_of(data_provider.MultiplexerDataProvider(reader, folder))


def rustboard(folder, tags):
    reader = server_ingester.SubprocessServerDataIngester(
        server_ingester.get_server_binary(), folder, reload_interval=0,
        channel_creds_type=grpc_util.ChannelCredsType.LOCAL, samples_per_plugin={"scalars": 0})
    reader.start()
    points, last = {}, None
    for _ in range(100):  # it answers while it loads
        points = points_of(reader.data_provider)
        if len(points) >= tags and points == last:
            break
        last = points
        time.sleep(0.1)
    return points


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


def compare(name, have, now, before, keeps_superseded):
    faults, superseded, n = [], 0, 0
    for tag in sorted(set(have) | set(now)):
        wanted = dict(now.get(tag, {}))
        for step, value in have.get(tag, []):
            n += 1
            if step in wanted and same(value, float32(wanted[step])):
                del wanted[step]
            elif keeps_superseded and same(value, float32(before[tag].get(step, 0.5))):
                superseded += 1
            else:
                faults.append(f"{tag}: step {step} has {value}, recorded is {now.get(tag, {}).get(step)}")
        faults += [f"{tag}: step {step} is missing" for step in wanted]
    more = f", {superseded} of an attempt before" if superseded else ""
    print(f"{name}: {len(have)} tags, {n} points{more}: {len(faults)} differ")
    for fault in faults[:10]:
        print("  " + fault)
    return len(faults)


def textfile(path, newest):
    with open(path) as text:
        families = list(text_string_to_metric_families(text.read()))
    samples = [s for f in families for s in f.samples]
    faults = [s.name for s in samples if set(s.labels) != {"run"} or not s.name.startswith("temper_")]
    faults += [f.name for f in families if f.type != "gauge" or len(f.samples) != 1 or not f.documentation]
    wanted = sorted(str(number(v)) for m in newest.values() for v in m.values())
    have = sorted(str(float(s.value)) for s in samples[4:])
    if wanted != have:
        faults.append("the values are not the newest of metrics.jsonl")
    print(f"{path}: {len(samples)} gauges: {len(faults)} differ", *faults[:10], sep="\n  " if faults else "")
    return len(faults)


def main():
    run = sys.argv[1]
    folder = os.path.join(run, "tensorboard")
    now, before, newest = recorded(run)
    faults = compare("EventAccumulator", accumulator(folder), now, before, False)
    faults += compare("Python backend", python_backend(folder), now, before, False)
    faults += compare("rustboard", rustboard(folder, len(now)), now, before, True)
    for path in sys.argv[2:]:
        faults += textfile(path, newest)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
