"""What the comparisons share: workers that take turns, rounds, medians and intervals.

Python 3.9 or later, nothing but its library.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import time


class PeerError(Exception):
    """A peer failed; the text says which and how."""


def environment(threads, **extra):
    """The same number of threads for every peer; how long OpenMP's idle ones spin is each
    program's own choice, for it is alone on the machine during its turn."""
    env = dict(os.environ)
    env.pop("OMP_WAIT_POLICY", None)
    env.pop("GOMP_SPINCOUNT", None)
    env.update(OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads), **extra)
    return env


def run(words, env, what):
    """Standard output and standard error of a command."""
    done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        tail = (done.stderr or done.stdout).strip().splitlines()[-8:]
        raise PeerError(f"{what} ended with status {done.returncode}:\n  " + "\n  ".join(tail))
    return done.stdout, done.stderr


class Worker:
    """A peer that is alive all the time and works only when it is asked: a line in, a line of
    JSON out.  Between its turns it waits for input, its threads asleep."""

    def __init__(self, words, env, what):
        self.what = what
        self.process = subprocess.Popen(
            words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return self.answer()

    def answer(self):
        for text in self.process.stdout:
            if text.startswith("{"):
                return json.loads(text)
        raise PeerError(
            f"{self.what} ended with status {self.process.wait()}; what it said is above"
        )

    def close(self):
        if self.process.stdin:
            self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()


def interval(values, level=0.95):
    """Median and the narrowest pair of order statistics around it that covers the true median
    with at least `level`: no assumption on the noise.  With fewer than 6 values the extremes,
    and what they cover."""
    x = sorted(values)
    n = len(x)
    best = (x[0], x[-1], 1 - 2 * 0.5**n if n > 1 else 0.0)
    for k in range(1, n // 2):  # leave out k at each end
        cover = 1 - 2 * sum(math.comb(n, i) for i in range(k + 1)) / 2**n
        if cover < level:
            break
        best = (x[k], x[-1 - k], cover)
    return statistics.median(x), best[0], best[1], best[2]


def order(names, round_number):
    """Forwards and backwards in turn: ABC CBA ABC, so that a drift favours nobody."""
    return list(names) if round_number % 2 == 0 else list(reversed(names))


def processor_time():
    """(all, busy) seconds of all processors since the start."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(word) for word in file.readline().split()[1:9]]
    idle = fields[3] + fields[4]
    tick = os.sysconf("SC_CLK_TCK")
    return sum(fields) / tick, (sum(fields) - idle) / tick


def others_busy(seconds=1.0, limit=0.15):
    """Share of the processors that is busy while we sleep; above `limit` it is said."""
    before = processor_time()
    time.sleep(seconds)
    after = processor_time()
    busy = (after[1] - before[1]) / max(after[0] - before[0], 1e-9)
    if busy > limit:
        say(f"warning: others use {100 * busy:.0f} % of the processors; the figures mean little")
    return busy


def say(text=""):
    print(text, flush=True)


def table(rows):
    """Columns as wide as what is in them; the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        say("  ".join(cells).rstrip())


def ratio_text(ours, theirs, wanted=None):
    """Ratios within each round, their median and interval, and the goal if there is one."""
    ratios = [a / b for a, b in zip(ours, theirs)]
    middle, low, high, cover = interval(ratios)
    text = f"{middle:.2f}  [{low:.2f}, {high:.2f}] at {100 * cover:.1f} %"
    if wanted is not None:
        verdict = "reached" if low >= wanted else "not reached" if high < wanted else "open"
        text += f"; goal {wanted:g}: {verdict}"
    return text, {
        "median": middle,
        "low": low,
        "high": high,
        "coverage": cover,
        "ratios": ratios,
        "goal": wanted,
    }


def fail(text):
    print(text, file=sys.stderr)
    sys.exit(2)
