#!/usr/bin/env python3
"""What a training step costs on a machine that others use, too.

    bench/shared_machine.py PROGRAM... [--config FILE] [--batch 8] [--seq 128] [--steps 15]
                            [--rounds 7] [--loops N]

PROGRAM is build/default/bench/train_step, or the same of another revision or a script around it:
a user of the library that opens a session and tunes nothing.  Variables that steer OpenMP are
taken out of the environment, so that what is measured is what a library has by itself.

With P processors every round runs each program once in each of four ways, in turn:

    alone      P threads
    beside     P threads beside P busy loops (or --loops); a fair share is a ratio of 2
    doubled    2 P threads alone
    one        one thread alone

Printed are medians over rounds of the median step, user CPU seconds per run and, of each round,
the ratio to `alone` of the same program and to `alone` of the first: median, least, largest.

Python 3.9 or later, nothing but its library.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

SMALL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 1024,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "vocab_size": 256,
    "max_position_embeddings": 1024,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    parser.add_argument("--config", help="config.json of a model; else 4 layers of width 256")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--loops", type=int, help="busy loops; else one per processor")
    return parser.parse_args()


def plain_environment():
    return {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "KMP_"))}


class Loops:
    """Processes that do nothing but keep a processor busy."""

    def __init__(self, n):
        self.n = n

    def __enter__(self):
        words = ["/bin/sh", "-c", "while :; do :; done"]
        self.processes = [subprocess.Popen(words) for _ in range(self.n)]

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def measure(program, options, config, threads, loops):
    """Seconds of the median step, and of user CPU time of the whole run."""
    words = [program, config, f"batch={options.batch}", f"seq={options.seq}"]
    words += [f"steps={options.steps}", f"threads={threads}"]
    with Loops(loops):
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=plain_environment()
        )
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{program} ended with status {process.returncode}")
    rates = json.loads(out)["tokens_per_s"]
    return options.batch * options.seq / statistics.median(rates), usage.ru_utime


def spread(values):
    return f"{statistics.median(values):6.2f} ({min(values):.2f} to {max(values):.2f})"


def main():
    options = arguments()
    processors = len(os.sched_getaffinity(0))
    loops = processors if options.loops is None else options.loops
    ways = {
        "alone": (processors, 0),
        "beside": (processors, loops),
        "doubled": (2 * processors, 0),
        "one": (1, 0),
    }
    figures = {(p, w): [] for p in options.programs for w in ways}
    with tempfile.TemporaryDirectory() as folder:
        config = options.config
        if not config:
            config = os.path.join(folder, "config.json")
            with open(config, "w", encoding="utf-8") as file:
                json.dump(SMALL, file)
        for _ in range(options.rounds):
            for way, (threads, others) in ways.items():
                for program in options.programs:
                    figures[program, way].append(
                        measure(program, options, config, threads, others)
                    )
    first = options.programs[0]
    print(f"{processors} processors, {options.batch} x {options.seq} tokens, {options.steps} steps, ", end="")
    print(f"{options.rounds} rounds, {loops} busy loops")
    for program in options.programs:
        print(program)
        for way in ways:
            mine = figures[program, way]
            own = [a[0] / b[0] for a, b in zip(mine, figures[program, "alone"])]
            other = [a[0] / b[0] for a, b in zip(mine, figures[first, "alone"])]
            line = f"  {way:8} {1e3 * statistics.median(x[0] for x in mine):8.2f} ms"
            line += f"  {statistics.median(x[1] for x in mine):6.2f} s user"
            line += f"  to its own alone {spread(own)}"
            if program != first:
                line += f"  to the first's {spread(other)}"
            print(line)


if __name__ == "__main__":
    main()
