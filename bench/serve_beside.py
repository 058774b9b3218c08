#!/usr/bin/env python3
"""What `temper serve` costs the run that it shows.

    bench/serve_beside.py BUILD [--windows 24] [--seconds 10] [--connections 200] [--requests 5]

One run trains (recipes/demo.yaml, all processors) for the whole time.  In every other window, in
the order off on on off, `temper serve` shows its folder to as many clients as --connections: a
quarter listens to the stream of events, a quarter sends one byte a second, a quarter stops in the
middle of a request, a quarter does nothing.  Beside them come --requests a second: /metrics, the
page of the run, its picture, and in turn what is refused (another Host, `..`, a header of 10 MB).

The figure is the mean step of a window over that of its neighbour, on over off: median of the
pairs and the narrowest order statistics that cover it at 95 %.  The clients run on the same
processors; their processor time is printed, as is the server's: what a client takes is not the
server's doing.

Python 3.9 or later, nothing but its library.
"""

import argparse
import json
import os
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
import rounds  # noqa: E402

RECIPES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "recipes")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", metavar="BUILD")
    parser.add_argument("--windows", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--requests", type=float, default=5, help="a second")
    return parser.parse_args()


def cpu_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def own_cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Clients:
    """Connections that are slow, half or silent, and requests that come by the clock."""

    def __init__(self, port, connections):
        self.port = port
        self.host = f"127.0.0.1:{port}"
        self.sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
        quarter = connections // 4
        for s in self.sockets[:quarter]:
            s.sendall(f"GET /events HTTP/1.1\r\nHost: {self.host}\r\n\r\n".encode())
        self.slow = self.sockets[quarter : 2 * quarter]
        for s in self.sockets[2 * quarter : 3 * quarter]:
            s.sendall(f"GET / HTTP/1.1\r\nHost: {self.host}\r\nX-Half: ".encode())
        for s in self.sockets:
            s.setblocking(False)
        self.answered = {}

    def creep(self):
        for s in self.slow:
            try:
                s.send(b"G")
            except OSError:
                pass  # the server has had enough of it

    def drain(self):
        for s in self.sockets:
            try:
                s.recv(65536)
            except OSError:
                pass

    def ask(self, path, host=None, header=""):
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as s:
            text = f"GET {path} HTTP/1.1\r\nHost: {host or self.host}\r\n{header}"
            try:
                s.sendall((text + "Connection: close\r\n\r\n").encode())
                status = s.recv(12)[9:12].decode() or "closed"
                while s.recv(1 << 20):
                    pass
            except OSError:
                status = "closed"
        self.answered[status] = self.answered.get(status, 0) + 1

    def close(self):
        for s in self.sockets:
            s.close()


def serve(program, folder, seconds, options, counts):
    """One window with the server; its processor time and the clients'."""
    server = subprocess.Popen(
        [program, "serve", folder, "--port", "-1", "--no-index"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    line = server.stdout.readline()
    port = int(line.split("127.0.0.1:")[1].split("/")[0])
    before, clients = own_cpu(), Clients(port, options.connections)
    run = "/run/" + first_run(port)
    asks = [
        lambda: clients.ask("/metrics"),
        lambda: clients.ask(run),
        lambda: clients.ask(run + "/plot.svg?x=step"),
        lambda: clients.ask("/", host="elsewhere.example"),
        lambda: clients.ask("/../../etc/passwd"),
        lambda: clients.ask("/", header="X-Long: " + "a" * (10 << 20) + "\r\n"),
    ]
    start, number = time.time(), 0
    next_creep = start
    while time.time() < start + seconds:
        now = time.time()
        if now >= next_creep:
            clients.creep()
            clients.drain()
            next_creep = now + 1
        if options.requests and now >= start + number / options.requests:
            asks[number % len(asks)]()
            number += 1
        time.sleep(0.02)
    end = time.time()
    server_cpu = cpu_of(server.pid)
    clients.close()
    for status, count in clients.answered.items():
        counts[status] = counts.get(status, 0) + count
    server.send_signal(signal.SIGINT)
    server.wait()
    return start, end, server_cpu, own_cpu() - before


def fetch(port, path):
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode()
        )
        data = b""
        while part := s.recv(65536):
            data += part
    return data.split(b"\r\n\r\n", 1)[1]


def first_run(port):
    """The folder is looked through after the server has begun to answer."""
    for _ in range(100):
        answer = json.loads(fetch(port, "/api/runs"))
        runs = answer["runs"] if isinstance(answer, dict) else answer
        if runs:
            return runs[0]["id"]
        time.sleep(0.1)
    return rounds.fail("serve_beside: the server finds no run")


def steps_of(path):
    """When a step of the run ended, and how long it was."""
    found = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if row["axis"] == "train" and "timing/train/total_step_time" in row["m"]:
                found.append((row["t"], row["m"]["timing/train/total_step_time"]))
    return found


def main():
    options = arguments()
    program = os.path.abspath(os.path.join(options.build, "src", "cli", "temper"))
    work = tempfile.mkdtemp()
    for name in ("demo.yaml", "demo-model.json"):
        shutil.copy(os.path.join(RECIPES, name), work)
    run = subprocess.Popen(
        [program, "train", "--quiet", "demo.yaml", "run.dir=runs/beside", "sft.val_period=0"]
        + ["sft.max_num_steps=10000000", "sft.max_num_epochs=1000000"]
        + ["checkpointing.enabled=false"],
        cwd=work,
        stdout=subprocess.DEVNULL,
    )
    windows, counts = [], {}
    try:
        time.sleep(5)
        for number in range(options.windows):
            is_on = number % 4 in (1, 2)
            if is_on:
                start, end, server, clients = serve(
                    program, os.path.join(work, "runs"), options.seconds, options, counts
                )
            else:
                start, server, clients = time.time(), 0.0, 0.0
                time.sleep(options.seconds)
                end = time.time()
            windows.append((is_on, start, end, server, clients))
            if run.poll() is not None:
                rounds.fail("serve_beside: the run ended")
    finally:
        run.terminate()
        run.wait()
    steps = steps_of(os.path.join(work, "runs", "beside", "metrics.jsonl"))
    shutil.rmtree(work)
    means = []
    for is_on, start, end, server, clients in windows:
        inside = [s for t, s in steps if start + s <= t <= end]
        means.append(statistics.fmean(inside))
        rounds.say(
            f"{'on ' if is_on else 'off'} {len(inside)} steps, mean {1e3 * means[-1]:.2f} ms; "
            f"of a processor: server {server / (end - start):.4f}, "
            f"clients {clients / (end - start):.4f}"
        )
    ratios = []
    for a in range(0, len(windows) - 1, 2):
        on, off = (a, a + 1) if windows[a][0] else (a + 1, a)
        ratios.append(means[on] / means[off])
    middle, low, high, cover = rounds.interval(ratios)
    seconds = sum(end - start for is_on, start, end, _, _ in windows if is_on)
    server = sum(w[3] for w in windows) / seconds
    clients = sum(w[4] for w in windows) / seconds
    rounds.say(
        f"step with the server over without: {middle:.4f} [{low:.4f}, {high:.4f}] at "
        f"{100 * cover:.1f} %, {len(ratios)} pairs; server {100 * server:.2f} % and clients "
        f"{100 * clients:.2f} % of one processor; answers: {counts}"
    )


if __name__ == "__main__":
    main()
