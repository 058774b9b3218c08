#!/usr/bin/env python3
"""What `temper serve` costs the run that it shows.

    bench/serve_beside.py BUILD [--windows 24] [--seconds 10] [--settle 2]
                                [--connections 200] [--requests 5]
                                [--flood] [--apart] [--priority WORD] [--clients idle|normal]
                                [--pin]

One run trains (recipes/demo.yaml, all processors) for the whole time.  In every other window, in
the order off on on off, `temper serve` shows its folder to as many clients as --connections: a
quarter listens to the stream of events, a quarter sends one byte a second, a quarter stops in the
middle of a request, a quarter does nothing.  Beside them come --requests a second: /metrics, the
page of the run, its picture, and in turn what is refused (another Host, `..`, a header of 10 MB).

--flood asks for /metrics as fast as it is answered instead.  --apart starts the server in a session
of its own, as another terminal would (which matters to Linux's autogroup).  --pin has the run with
one thread and the server on processor 0, the clients on the others, as if they were elsewhere: what
the run loses then is what the server costs it.

Figures of a window over, or less, its neighbour's, on over off: median of the pairs and the
narrowest order statistics that cover it at 95 %.
  step   mean time of a step
  wait   the time that the run's threads were ready and had no processor, over the window
         (/proc/PID/task/*/schedstat): what others on the same processors cost the run, without
         what the clock of a shared machine adds
  work   processor time of the run for a step: what caches cost
Without --pin the clients run on the run's processors, where nothing else would unless --clients
says otherwise;
their processor time is printed, as is the server's: what a client takes is not the server's doing.
The clock of a shared machine wanders: many short windows (--seconds 0.5 --settle 0.25) tell more in
the same time than few long ones, as neighbours in time are alike.  Connections and the count of
requests go on from window to window; a connection that the server ended is made anew.
How long answers took is printed by kind.  One server is there all the time, stopped (SIGSTOP) in
the windows without.  A window begins when it has gone on for --settle seconds: what was written
while it was stopped is no part of the figures.

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
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
import rounds  # noqa: E402

RECIPES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "recipes")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", metavar="BUILD")
    parser.add_argument("--windows", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--settle", type=float, default=2)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--requests", type=float, default=5, help="a second")
    parser.add_argument("--flood", action="store_true", help="/metrics as fast as it is answered")
    parser.add_argument("--apart", action="store_true", help="the server in a session of its own")
    parser.add_argument("--priority", choices=["low", "idle", "normal"], default="low")
    parser.add_argument("--clients", choices=["idle", "normal"], default="idle")
    parser.add_argument("--pin", action="store_true", help="run and server on processor 0")
    return parser.parse_args()


def schedule_of(pid):
    """Seconds on a processor, and ready without one, of all threads that live."""
    spent = waited = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
                on, ready, _ = map(int, file.read().split())
        except OSError:
            continue  # it ended
        spent += on
        waited += ready
    return spent * 1e-9, waited * 1e-9


def pinned(options):
    """For a child: processor 0, where it is asked for."""
    return (lambda: os.sched_setaffinity(0, {0})) if options.pin else None


def own_cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Clients:
    """Connections that are slow, half or silent, and requests that come by the clock."""

    def __init__(self, port, connections):
        self.port = port
        self.host = f"127.0.0.1:{port}"
        self.sockets = [None] * connections
        self.owed, self.number = 1.0, 0  # requests: due by now, and begun
        self.answered, self.took = {}, {}

    def connect(self):
        """Anew where the server has had enough of a connection."""
        quarter = len(self.sockets) // 4
        firsts = [
            f"GET /events HTTP/1.1\r\nHost: {self.host}\r\n\r\n",
            "G",
            f"GET / HTTP/1.1\r\nHost: {self.host}\r\nX-Half: ",
            "",
        ]
        for place, s in enumerate(self.sockets):
            if s is None:
                s = socket.create_connection(("127.0.0.1", self.port))
                s.sendall(firsts[min(place // quarter, 3)].encode() if quarter else b"")
                s.setblocking(False)
                self.sockets[place] = s
        self.slow = range(quarter, 2 * quarter)

    def lose(self, place):
        self.sockets[place].close()
        self.sockets[place] = None

    def creep(self):
        for place in self.slow:
            if self.sockets[place]:
                try:
                    self.sockets[place].send(b"G")
                except BlockingIOError:
                    pass
                except OSError:
                    self.lose(place)

    def drain(self):
        for place, s in enumerate(self.sockets):
            try:
                while s:
                    if not s.recv(65536):
                        self.lose(place)
                        break
            except BlockingIOError:
                pass
            except OSError:
                self.lose(place)

    def ask(self, kind, path, host=None, header=""):
        begin = time.time()
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
        self.took.setdefault(kind, []).append(time.time() - begin)

    def close(self):
        for s in filter(None, self.sockets):
            s.close()


def disturb(clients, asks, options):
    if options.clients == "idle":
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # this thread
    start = last = time.time()
    next_creep = start
    while time.time() < start + options.seconds:
        now = time.time()
        clients.owed += options.requests * (now - last)
        last = now
        if now >= next_creep:
            clients.creep()
            clients.drain()
            next_creep = now + 1
        if options.flood or clients.owed >= 1:
            asks[clients.number % len(asks)]()
            clients.number += 1
            clients.owed -= 1
        if not options.flood:
            time.sleep(0.02)


def start(program, folder, options):
    """The server and its port."""
    server = subprocess.Popen(
        [program, "serve", folder, "--port", "-1", "--no-index", "--priority", options.priority],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=options.apart,
        preexec_fn=pinned(options),
    )
    line = server.stdout.readline()
    return server, int(line.split("127.0.0.1:")[1].split("/")[0])


def visit(server, clients, asks, options):
    """One window with the server; its processor time and the clients'."""
    clients.connect()
    time.sleep(options.settle)
    before = own_cpu()
    # a thread that once gave way cannot start a server that does not
    work = threading.Thread(target=disturb, args=(clients, asks, options))
    yield None
    begun = schedule_of(server.pid)[0]
    work.start()
    work.join()
    yield schedule_of(server.pid)[0] - begun, own_cpu() - before


def questions(clients, options):
    """What is asked in turn."""
    run = "/run/" + first_run(clients.port)
    picture = run + "/plot.svg?x=step&tag=train%2Floss"
    asks = [lambda: clients.ask("metrics", "/metrics")]
    if not options.flood:
        asks += [
            lambda: clients.ask("page", run),
            lambda: clients.ask("picture", picture),
            lambda: clients.ask("refused", "/", host="elsewhere.example"),
            lambda: clients.ask("refused", "/../../etc/passwd"),
            lambda: clients.ask("refused", "/", header="X-Long: " + "a" * (10 << 20) + "\r\n"),
        ]
    clients.ask("first page", run)
    return asks


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


class Window:
    """What the run did in a stretch of time."""

    def __init__(self, run, is_on):
        self.run, self.is_on = run, is_on
        self.server = self.clients = 0.0
        self.before = schedule_of(run.pid)
        self.start = time.time()

    def end(self):
        self.seconds = time.time() - self.start
        spent, waited = schedule_of(self.run.pid)
        self.spent, self.waited = spent - self.before[0], waited - self.before[1]

    def see(self, steps):
        stop = self.start + self.seconds
        inside = [s for t, s in steps if self.start + s <= t <= stop]
        self.n = len(inside)
        if not inside:
            rounds.fail("serve_beside: no whole step in a window: more --seconds")
        self.step = statistics.fmean(inside)
        self.wait = self.waited / self.seconds
        self.work = self.spent / (self.seconds / self.step)


def watch(program, work, run, options):
    """The windows; answers by status, and their times by kind."""
    windows = []
    server, port = start(program, os.path.join(work, "runs"), options)
    clients = Clients(port, options.connections)
    try:
        asks = questions(clients, options)
        server.send_signal(signal.SIGSTOP)
        for number in range(options.windows):
            if number % 4 in (1, 2):
                server.send_signal(signal.SIGCONT)
                shown = visit(server, clients, asks, options)
                next(shown)
                window = Window(run, True)
                window.server, window.clients = next(shown)
                window.end()
                server.send_signal(signal.SIGSTOP)
            else:
                window = Window(run, False)
                time.sleep(options.seconds)
                window.end()
            windows.append(window)
            if run.poll() is not None:
                rounds.fail("serve_beside: the run ended")
    finally:
        server.kill()
        server.wait()
        clients.close()
    return windows, clients


def say_pairs(name, values):
    middle, low, high, cover = rounds.interval(values)
    rounds.say(
        f"{name}: {middle:.4f} [{low:.4f}, {high:.4f}] at {100 * cover:.1f} %, {len(values)} pairs"
    )


def report(windows, counts, took):
    for w in windows:
        rounds.say(
            f"{'on ' if w.is_on else 'off'} {w.n} steps, mean {1e3 * w.step:.2f} ms, "
            f"{1e3 * w.work:.2f} ms of processor time each; of the window: run waited "
            f"{w.wait:.4f}, server {w.server / w.seconds:.4f}, clients {w.clients / w.seconds:.4f}"
        )
    pairs = []
    for a in range(0, len(windows) - 1, 2):
        one, other = windows[a], windows[a + 1]
        pairs.append((one, other) if one.is_on else (other, one))
    say_pairs("step, on over off", [on.step / off.step for on, off in pairs])
    say_pairs("work, on over off", [on.work / off.work for on, off in pairs])
    say_pairs("wait, on less off, of one processor", [on.wait - off.wait for on, off in pairs])
    shown = [w for w in windows if w.is_on]
    say_pairs("server, of one processor", [w.server / w.seconds for w in shown])
    say_pairs("clients, of one processor", [w.clients / w.seconds for w in shown])
    rounds.say(f"answers: {counts}")
    for kind, times in sorted(took.items()):
        times.sort()
        rounds.say(
            f"{kind}: {len(times)} answers, median {1e3 * statistics.median(times):.1f} ms, "
            f"95 % within {1e3 * times[int(0.95 * (len(times) - 1))]:.1f} ms"
        )


def main():
    options = arguments()
    if options.pin and os.cpu_count() < 2:
        rounds.fail("serve_beside: --pin needs two processors")
    program = os.path.abspath(os.path.join(options.build, "src", "cli", "temper"))
    work = tempfile.mkdtemp()
    for name in ("demo.yaml", "demo-model.json"):
        shutil.copy(os.path.join(RECIPES, name), work)
    run = subprocess.Popen(
        [program, "train", "--quiet", "demo.yaml", "run.dir=runs/beside", "sft.val_period=0"]
        + ["sft.max_num_steps=10000000", "sft.max_num_epochs=1000000"]
        + ["checkpointing.enabled=false"]
        + (["engine.threads=1"] if options.pin else []),
        cwd=work,
        stdout=subprocess.DEVNULL,
        preexec_fn=pinned(options),
    )
    if options.pin:
        os.sched_setaffinity(0, set(range(1, os.cpu_count())))
    try:
        time.sleep(5)
        windows, clients = watch(program, work, run, options)
    finally:
        run.terminate()
        run.wait()
    steps = steps_of(os.path.join(work, "runs", "beside", "metrics.jsonl"))
    shutil.rmtree(work)
    for window in windows:
        window.see(steps)
    report(windows, clients.answered, clients.took)


if __name__ == "__main__":
    main()
