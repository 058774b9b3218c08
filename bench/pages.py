#!/usr/bin/env python3
"""The pages of `temper serve` in Chromium, by the browser's own clocks.

    bench/pages.py BUILD [--runs 200] [--steps 10000] [--clicks 20] [--rows csv|temper] [--shots DIR]

A folder of made runs is served.  Printed are, over visits: milliseconds until the list has loaded
(its load event); from a click on a run to two frames after its first picture is there, each run
for the first time, the pointer not resting on it before; from a line that is appended to a run to
the step on its page and to the picture that has it; what the console and exceptions said.

--shots keeps pictures of pages, light and dark, wide and narrow.  Chromium of the system (Debian:
chromium); Python 3.9 or later, nothing but its library.
"""

import argparse
import base64
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", metavar="BUILD")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--clicks", type=int, default=20)
    parser.add_argument("--rows", choices=["csv", "temper"], default="csv")
    parser.add_argument("--shots", metavar="DIR")
    return parser.parse_args()


class Browser:
    """Chromium by its DevTools protocol, over two pipes: messages of JSON, each ended by a zero."""

    def __init__(self, folder):
        to_read, self.to = os.pipe()
        self.source, from_write = os.pipe()
        words = "exec chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage "
        words += "--no-first-run --disable-extensions --disable-background-networking "
        words += "--remote-debugging-pipe --user-data-dir=%s --window-size=1000,720 about:blank"
        words = words % folder + f" 3<&{to_read} 4>&{from_write}"
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", words], pass_fds=(to_read, from_write),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self.text, self.last, self.session, self.faults = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log"):
            self.call(part + ".enable")

    def message(self):
        while b"\0" not in self.text:
            piece = os.read(self.source, 1 << 16)
            if not piece:
                sys.exit("pages: chromium ended")
            self.text += piece
        line, self.text = self.text.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, **params):
        self.last += 1
        text = {"id": self.last, "method": method, "params": params}
        if self.session:
            text["sessionId"] = self.session
        os.write(self.to, json.dumps(text).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("method") == "Runtime.exceptionThrown":
                self.faults.append(str(answer["params"]["exceptionDetails"].get("exception")))
            if answer.get("method") == "Log.entryAdded" and answer["params"]["entry"]["level"] == "error":
                self.faults.append(answer["params"]["entry"]["text"])
            if answer.get("id") == self.last:
                return answer.get("result", answer)

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        return answer.get("result", {}).get("value")

    def until(self, expression):
        while self.value(expression) is not True:
            time.sleep(0.005)

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def shoot(self, path):
        picture = self.call("Page.captureScreenshot", format="png")
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))

    def close(self):
        self.process.kill()
        self.process.wait()


def write_runs(options, folder):
    lines = ["step,wall_time,train/loss,train/grad_norm,performance/tokens_per_sec\n"]
    for i in range(1, options.steps + 1):
        values = (2 * math.exp(-i / 2000) + 0.1 * math.sin(i * 12.9898), 1 + math.cos(i) ** 2, 5000 + i % 97)
        if options.rows == "csv":
            lines.append("%d,%d,%.5f,%.4f,%.1f\n" % (i, 1.7e9 + i, *values))
        else:
            record = {"v": 1, "t": 1.7e9 + i, "run": "x", "attempt": 1, "step": i, "axis": "train"}
            names = ("train/loss", "train/grad_norm", "performance/tokens_per_sec")
            record["m"] = {name: round(v, 5) for name, v in zip(names, values)}
            lines.append(json.dumps(record, separators=(",", ":")) + "\n")
    text = "".join(lines if options.rows == "csv" else lines[1:])
    for run in range(options.runs):
        os.mkdir(f"{folder}/run-{run:03d}")
        with open(f"{folder}/run-{run:03d}/metrics.{'csv' if options.rows == 'csv' else 'jsonl'}", "w") as file:
            file.write(text)


def append(options, folder, run, step):
    row = "%d,%d,0.5,1,5000\n" % (step, 1.7e9 + step)
    if options.rows == "temper":
        row = '{"v":1,"t":%d,"run":"x","attempt":1,"step":%d,"axis":"train","m":{"train/loss":0.5}}\n' % (1.7e9 + step, step)
    with open(f"{folder}/run-{run:03d}/metrics.{'csv' if options.rows == 'csv' else 'jsonl'}", "a") as file:
        file.write(row)


def say(what, values, limit):
    values = sorted(values)
    within = sum(v < limit for v in values)
    print(f"{what}: median {statistics.median(values):.0f} ms ({values[0]:.0f} to {values[-1]:.0f}), "
          f"{within} of {len(values)} below {limit} ms", flush=True)


# Two frames after the first picture of the page is drawn.
SEEN = """new Promise((done) => { const look = () => {
  const svg = document.querySelector('figure svg'), image = document.querySelector('figure img');
  if (svg || image?.naturalWidth) requestAnimationFrame(() => requestAnimationFrame(() => done(Date.now())));
  else setTimeout(look, 2); }; look(); })"""


def visits(browser, url, options):
    loads = []
    for _ in range(options.clicks):
        browser.go(url)
        browser.until("performance.getEntriesByType('navigation')[0].loadEventEnd > 0")
        loads.append(browser.value("performance.getEntriesByType('navigation')[0].loadEventEnd"))
    say("the list has loaded", loads, 1000)


def clicks(browser, url, options):
    took = []
    for i in range(options.clicks):
        browser.go(url)
        browser.until("document.querySelectorAll('#rows a').length > 0")
        time.sleep(0.3)  # what the page fetches by itself is over
        run = options.runs - 1 - i
        begin = browser.value(f"[...document.querySelectorAll('#rows a')].find((a) => a.textContent === 'run-{run:03d}')"
                              ".dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true})), Date.now()")
        while not browser.value("location.pathname.startsWith('/run/')"):
            time.sleep(0.002)
        took.append(browser.value(SEEN) - begin)
    say("first picture after a click", took, 200)


def moves(browser, folder, options):
    steps, pictures = [], []
    browser.until("document.querySelector('#live').textContent === 'live'")
    for more in range(1, 11):
        step = options.steps + more
        version = "document.querySelector('figure [data-live]').src ?? ''"
        before = browser.value(version)
        begin = time.time()
        append(options, folder, options.runs - options.clicks, step)
        seen = [None, None]
        while None in seen:
            now = browser.value(f"[document.querySelector('#summary').textContent.includes('step {step}'), "
                                f"({version}) !== {json.dumps(before)}]")
            for k, is_there in enumerate(now):
                seen[k] = (time.time() - begin) * 1e3 if is_there and seen[k] is None else seen[k]
            time.sleep(0.005)
        steps.append(seen[0])
        pictures.append(seen[1])
        time.sleep(0.37)  # not in step with the server's looks
    say("a new step is in the page's head", steps, 2000)
    say("and in its picture", pictures, 2000)


def shots(browser, url, options):
    os.makedirs(options.shots, exist_ok=True)
    run = browser.value("document.querySelector('#summary').dataset.run")
    paths = {"list": "", "curves": f"run/{run}", "report": f"run/{run}/report", "memory": f"run/{run}/memory",
             "settings": f"run/{run}/settings"}
    for scheme in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        for width in (1000, 360):
            browser.call("Emulation.setDeviceMetricsOverride", width=width, height=720, deviceScaleFactor=1, mobile=False)
            for name, path in paths.items():
                browser.go(url + path)
                time.sleep(0.5)
                browser.shoot(f"{options.shots}/{name}-{scheme}-{width}.png")
                wide = browser.value("document.documentElement.scrollWidth - innerWidth")
                if wide > 0:
                    print(f"{name}, {scheme}, {width} wide: the page is {wide} pixels wider than the window")


def main():
    options = arguments()
    program = os.path.join(options.build, "src", "cli", "temper")
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as profile:
        write_runs(options, folder)
        server = subprocess.Popen([program, "serve", folder, "--port=-1", "--no-index"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        url = server.stdout.readline().strip()
        browser = Browser(profile)
        try:
            visits(browser, url, options)
            clicks(browser, url, options)
            moves(browser, folder, options)
            print("console:", "; ".join(browser.faults) if browser.faults else "nothing was said")
            if options.shots:
                shots(browser, url, options)
        finally:
            browser.close()
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
