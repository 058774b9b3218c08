"""Feed temper files of every kind that it reads, damaged in ways that keep their structure.

    hostile_inputs.py TEMPER REPOSITORY [SEED] [PER_KIND] [KIND...]

Sound files are made (a model, its GGUF file, a run with checkpoint and event files) or taken from
tests/data; then JSON trees are grafted into each other, numbers pushed to their limits, records of
binary files spliced with checksums made right again, rows of data bases replaced; hostile_kinds.py
has what surrounds a file, what is typed and what runs.  Every run must end within a minute with one
of the documented statuses, say something when it fails, print no control characters, take less
than 3 GB, leave its input as it was and no process behind.  A server is sent requests instead, and
must answer a good one after each of them.
"""

import collections
import concurrent.futures
import gzip
import hashlib
import json
import os
import resource
import shlex
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True  # nothing is left beside the sources
import hostile_kinds
from hostile_damage import LIMITS, R, change_rows, crc, graft, shake, shaken_header

TEMPER, SOURCE = os.path.abspath(sys.argv[1]), Path(sys.argv[2]).resolve()
SEED, PER_KIND = int((sys.argv[3:] or ["1"])[0]), int((sys.argv[4:] or ["90"])[0])
KINDS, PLUGIN = sys.argv[5:], Path(TEMPER).parents[2] / "examples/libpass.so"
R.seed(SEED)
WORK = Path(tempfile.mkdtemp(prefix="temper-hostile-"))
ENV = dict(os.environ, XDG_CACHE_HOME=str(WORK / "cache"), XDG_DATA_HOME=str(WORK / "data"), TERM="xterm")
jobs = []
Job = collections.namedtuple("Job", "kind at command environment cwd stdin")


def temper(*args, cwd=WORK):
    done = subprocess.run([TEMPER, *map(str, args)], cwd=cwd, env=ENV, capture_output=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"temper {args}: {done.stderr.decode()}")


# ---- sound files ----

def make_sound():
    (WORK / "corpus.txt").write_text("the quick brown fox jumps over the lazy dog; user and assistant say hello, two and two are four\n")
    temper("tokenizer", "--vocab-size", 280, "tok", "corpus.txt")
    (WORK / "tiny.json").write_text(json.dumps(
        {"model_type": "llama", "vocab_size": 280, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
         "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
         "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True, "initializer_range": 0.05}))
    (WORK / "text.jsonl").write_text('{"text": "the quick brown fox"}\n{"text": "the lazy dog"}\n' * 4)
    temper("train", "--quiet", SOURCE / "recipes/sft.yaml", "policy.init=random", "policy.model_name=null",
           "policy.model_config=tiny.json", "policy.tokenizer.name=tok", "policy.tokenizer.chat_template=null",
           "data.train.data_path=text.jsonl", "data.train.split_validation_size=0", "policy.max_total_sequence_length=32",
           "policy.train_global_batch_size=4", "sft.max_num_steps=2", "logger.tensorboard_enabled=true", "run.dir=run")
    shutil.copytree(WORK / "run/checkpoints/step-2/model", WORK / "model")
    temper("export", "model", "model.gguf")
    temper("train", "--quiet", SOURCE / "recipes/sft.yaml", f"policy.model_name={WORK}/model", "policy.tokenizer.chat_template=null",
           "data.train.data_path=text.jsonl", "data.train.split_validation_size=0", "policy.max_total_sequence_length=32",
           "policy.train_global_batch_size=4", "sft.max_num_steps=2", "policy.peft.enabled=true", "policy.peft.dim=4",
           "policy.optimizer.name=adamw_8bit", "policy.optimizer.kwargs.min_8bit_size=1", "policy.precision=float16", "run.dir=adapted")
    folder("index/first", {"metrics.csv": b"step,loss\n1,4\n2,2\n"})
    shutil.copytree(WORK / "run", WORK / "index/second")
    shutil.copy(SOURCE / "tests/data/trace_reports/kineto-rank-0.json", WORK / "index/second/trace.json")
    (WORK / "secret").write_text("outside the folder")
    (WORK / "recipe.yaml").write_text(
        "sft: {max_num_epochs: 1, max_num_steps: 1, val_period: 0}\npolicy:\n  model_name: MODEL\n  tokenizer: {chat_template: null}\n"
        "  train_global_batch_size: 2\n  max_total_sequence_length: 32\n  optimizer: {name: torch.optim.AdamW, kwargs: {lr: 1.0e-3}}\n"
        "  scheduler: {name: torch.optim.lr_scheduler.LinearLR, kwargs: {start_factor: 0.1}}\ndata:\n  train: {data_path: DATA}\n"
        "checkpointing: {enabled: false}\n".replace("MODEL", str(WORK / "model")).replace("DATA", str(WORK / "text.jsonl")))


def folder(name, files, base=None):
    """A folder like `base` with some files replaced."""
    at = WORK / name
    if base:
        shutil.copytree(base, at)
    at.mkdir(parents=True, exist_ok=True)
    for file, data in files.items():
        (at / file).parent.mkdir(parents=True, exist_ok=True)
        (at / file).write_bytes(data)
    return at


def add(kind, at, *commands, cache=None, environment=ENV, cwd=WORK, stdin=None):
    for command in commands:
        environment = dict(environment, XDG_CACHE_HOME=str(cache)) if cache else environment
        jobs.append(Job(kind, at, [str(x) for x in command], environment, cwd, stdin))


def quiet(model, data, *more):
    return ["train", "--quiet", WORK / "recipe.yaml", f"policy.model_name={model}", f"data.train.data_path={data}",
            f"run.dir={WORK}/out-{len(jobs)}", *more]


# ---- kinds ----

def models(i):
    model = WORK / "model"
    config = json.loads((model / "config.json").read_text())
    weights = (model / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", weights[:8])[0]
    header = json.loads(weights[8:8 + size])
    at = folder(f"config-{i}", {"config.json": graft(config, header)}, model)
    add("config.json", at, ["generate", at, "-m", "1", "x"])
    text = graft(header, config)
    length = R.choice([len(text), len(text), len(text) + R.choice([-1, 1, 2**40, 2**63])]) % 2**64
    at = folder(f"weights-{i}", {"model.safetensors": struct.pack("<Q", length) + text + weights[8 + size:]}, model)
    add("safetensors", at, ["generate", at, "-m", "1", "x"], ["export", at, WORK / f"weights-{i}.out.gguf"])
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    settings = json.loads((model / "tokenizer_config.json").read_text())
    at = folder(f"tokenizer-{i}", {R.choice(["tokenizer.json", "tokenizer.json", "tokenizer_config.json"]): graft(
        R.choice([tokenizer, tokenizer, settings]), R.choice([settings, config]))}, model)
    add("tokenizer", at, ["generate", at, "-m", "1", "the quick \x1b fox"])
    gguf = WORK / f"shaken-{i}.gguf"
    gguf.write_bytes(shake((WORK / "model.gguf").read_bytes(), R.choice([64, 400, 4000, 20000])))
    add("gguf", gguf, ["generate", gguf, "-m", "1", "x"])


def recipes(i):
    lines = (WORK / "recipe.yaml").read_text().splitlines()
    k = R.randrange(len(lines))
    value = R.choice(["&a [*a]", "!!python/object:os.system {}", "{a: 1, a: 2}", "[" * 200, "? ", "|\n" + " " * 3 + "x" * 9999,
                      "1e999", ".nan", "0x7fffffffffffffffff", "\t- x", "'", "<<: *b", "- - - -", "\x07", "null", "~", "{}", "[]",
                      "9" * 500, "2001-01-01", "yes", "\u2028", "&x 1", "*x", "%YAML 9", "--- ", "...", "0o17", "1_000", "${oc.env:HOME}"])
    if R.random() < 0.5 and ":" in lines[k]:
        lines[k] = lines[k].split(":")[0] + ": " + value
    elif R.random() < 0.5:
        lines.insert(k, value)
    else:
        lines[k] = lines[k].replace(R.choice([":", ",", "{", "}", " "]), R.choice(["::", "\t", "", "}{", "\0"]), 1)
    at = WORK / f"recipe-{i}.yaml"
    at.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    add("recipe", at, ["config", at], ["plan", at])


def data(i):
    rows = [{"prompt": "the quick", "completion": " fox"}, {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
            {"text": "the lazy dog"}, {"prompt": "q", "chosen": "a", "rejected": "b"},
            {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}]
    row = R.choice(rows)
    lines = [json.dumps(row).encode()] * 3
    lines[R.randrange(3)] = graft(row, R.choice(rows))
    at = WORK / f"data-{i}.jsonl"
    at.write_bytes(R.choice([b"\n", b"\r\n", b"\n\n", b"\r"]).join(lines) + R.choice([b"", b"\n", b"\0", b"{"]))
    add("data", at, quiet(WORK / "model", at, "data.train.split_validation_size=0"))


def traces(i):
    base = json.loads((SOURCE / "tests/data/trace_reports/kineto-rank-0.json").read_text())
    base["traceEvents"] = R.sample(base["traceEvents"], min(60, len(base["traceEvents"])))
    text = graft(base, {"args": {"device": -1, "stream": 2**40, "correlation": 0}})
    at = WORK / f"trace-{i}.json"
    if R.random() < 0.4:
        at = WORK / f"trace-{i}.json.gz"
        text = gzip.compress(text)
        if R.random() < 0.5:
            text = shake(text, len(text))
    at.write_bytes(text)
    view = R.choice(["kernels", "operators", "comm", "idle", "critical-path", "steps", "memory", "ranks", "stacks"])
    add("trace", at, ["trace", at, view], ["trace", "compare", at, at, "--json"])
    at = WORK / f"nsight-{i}.sqlite"
    shutil.copy(SOURCE / "tests/data/trace_reports/nsight.sqlite", at)
    change_rows(at)
    add("nsight", at, ["trace", at])
    at = WORK / f"snapshot-{i}.pickle"
    at.write_bytes(shake((SOURCE / "tests/data/trace_reports/snapshot.pickle").read_bytes(), 4000))
    add("snapshot", at, ["trace", at, "memory"])


def sound(pattern):
    return sorted((SOURCE / "tests/data/runs").rglob(pattern))[0]


def runs(i):
    events = sound("events*")
    whole, at, records = events.read_bytes(), 0, []
    while at + 12 <= len(whole):
        size = struct.unpack("<Q", whole[at:at + 8])[0]
        records.append(whole[at + 12:at + 12 + size])
        at += 16 + size
    k = R.randrange(len(records))
    records[k] = shake(records[k], len(records[k])) if records[k] else b"\xff" * 9
    if R.random() < 0.3:
        R.shuffle(records)
    out = b"".join(struct.pack("<Q", len(r)) + crc(struct.pack("<Q", len(r))) + r + crc(r) for r in records)
    at = folder(f"tb-{i}", {"events.out.tfevents.1.x": out if R.random() < 0.7 else shake(out, len(out))})
    add("events", at, ["metrics", at])
    state = json.loads(sound("trainer_state.json").read_text())
    at = folder(f"trl-{i}", {"trainer_state.json": graft(state, {"log_history": [{"loss": "x"}]})})
    add("trainer_state", at, ["metrics", at], ["analyze", at])
    at = WORK / f"trackio-{i}.db"
    shutil.copy(sound("*.db"), at)
    change_rows(at)
    add("trackio", at, ["metrics", at])
    lines = (WORK / "run/metrics.jsonl").read_bytes().splitlines()
    k = R.randrange(len(lines))
    lines[k] = graft(json.loads(lines[k]), {"m": {"train/loss": "NaN"}})
    at = folder(f"run-{i}", {"metrics.jsonl": b"\n".join(lines)}, WORK / "run")
    add("run", at, ["metrics", at], ["compare", at, WORK / "run"])


def checkpoints(i):
    step = Path("checkpoints/step-2")
    name = R.choice(["manifest.json", "state.json", "optimizer.safetensors", "model/config.json", "model/model.safetensors"])
    whole = (WORK / "run" / step / name).read_bytes()
    data = graft(json.loads(whole), {"files": [], "step": 2**70}) if name.endswith(".json") else shake(whole, 3000)
    files = {str(step / name): data}
    if R.random() < 0.5 and name != "manifest.json":  # damage that the checksums approve of
        manifest = (WORK / "run" / step / "manifest.json").read_text()
        files[str(step / "manifest.json")] = manifest.replace(hashlib.md5(whole).hexdigest(), hashlib.md5(data).hexdigest()).encode()
    if R.random() < 0.3:
        files["run.json"] = graft(json.loads((WORK / "run/run.json").read_text()), {"machine": 3})
    at = folder(f"again-{i}", files, WORK / "run")
    add("checkpoint", at, ["doctor", "--cached", at], ["generate", at, "-m", "1", "x"])
    resumed = folder(f"resume-{i}", files, WORK / "run")
    add("resume", None, ["train", "--quiet", resumed / "config.yaml", f"run.dir={resumed}", "sft.max_num_steps=3", "--resume"])


def figures(i):
    base = json.loads((SOURCE / "tests/data/bench/bench.json").read_text())
    google = json.loads((SOURCE / "tests/data/bench/google.json").read_text())
    at = WORK / f"bench-{i}.json"
    at.write_bytes(graft(R.choice([base, google]), R.choice([google, base])))
    add("bench", at, ["bench", "compare", at, SOURCE / "tests/data/bench/bench.json"])
    cells = [["x", "y", "g"]] + [[str(R.random()), str(R.random()), R.choice("ab")] for _ in range(12)]
    for _ in range(R.randrange(1, 4)):
        cells[R.randrange(13)][R.randrange(3)] = str(R.choice(LIMITS))[:2000]
    at = WORK / f"table-{i}.csv"
    at.write_bytes(R.choice(["\n", "\r\n", "\r"]).join(R.choice([",", ",", "\t", ";"]).join(row) for row in cells).encode("utf-8", "surrogatepass"))
    add("stats", at, ["stats", at, *R.choice([["x"], ["x", "y"], ["x", "--by", "g"], ["x", "--trend"], []])])
    evaluation = {"evaluation_data": [{"prompt": f"q{k % 4}", "response": "a", "reward": float(k % 2)} for k in range(8)]}
    at = WORK / f"eval-{i}.json"
    at.write_bytes(graft(evaluation, {"reward": "1"}))
    add("eval", at, ["eval", "summarize", at])


def adapters(i):
    step = WORK / "adapted/checkpoints/step-2"
    settings = json.loads((step / "model/adapter_config.json").read_text())
    name = R.choice(["adapter_config.json", "adapter_config.json", "adapter_model.safetensors"])
    whole = (step / "model" / name).read_bytes()
    data = graft(settings, {"r": "4", "rank_pattern": {"q_proj": 2**31}, "modules_to_save": ["lm_head"]}) if name.endswith("json") \
        else R.choice([shaken_header(whole, settings), shake(whole, 2000)])
    at = folder(f"adapter-{i}", {name: data}, step / "model")
    add("adapter", at, ["merge", at, WORK / f"merged-{i}"], ["generate", at, "-m", "1", "x"])
    add("adapter", None, quiet(at, WORK / "text.jsonl", "policy.peft.enabled=true"))
    state = (step / "optimizer.safetensors").read_bytes()
    damaged = R.choice([shaken_header(state, {"m": 3}), shake(state, 3000)])
    manifest = (step / "manifest.json").read_text().replace(hashlib.md5(state).hexdigest(), hashlib.md5(damaged).hexdigest())
    at = folder(f"adapted-{i}", {"checkpoints/step-2/optimizer.safetensors": damaged,
                                 "checkpoints/step-2/manifest.json": manifest.encode()}, WORK / "adapted")
    add("8-bit state", None, ["train", "--quiet", at / "config.yaml", f"run.dir={at}", "sft.max_num_steps=3", "--resume"])


WORDS = ["loss", "train/loss", "reward", "memory", "gradient norm", "entropy", "rises by", "falls by", "above", "below", "flat", "flat within",
         "collapses", "collapses to", "is not finite", "repeats", "over", "for", "and", "steps", "s", "min", "h", "the run", "sigma", "%", "KiB",
         "3", "50", "1e308", "-1", "0", "1e-320", "nan", "99999999999999999999", "'", '"', "*", "[", "train/*", "\x1b[2J", "\0", "\u202e", "x" * 3000]


def alarms(i):
    rule = " ".join(R.choice(WORDS) for _ in range(R.randrange(1, 12)))
    rules = [{"when": rule, "name": str(R.choice(LIMITS))[:999], "do": R.choice([["say"], "stop", {"lower_rate": R.choice(LIMITS)}, ["run"],
              {"run": R.choice(LIMITS)}])}, rule, R.choice(LIMITS)]
    R.shuffle(rules)
    at = WORK / f"rules-{i}.yaml"
    at.write_bytes(json.dumps(R.choice([rules, {"monitor": {"alarms": rules}}]), ensure_ascii=False).encode("utf-8", "surrogatepass"))
    add("alarms", at, ["alarms", WORK / "run", "--rules", at], ["watch", "--once", WORK / "run", "--rules", at])
    add("alarms", None, ["alarms", WORK / "run", "--rule", rule.replace("\0", "")],
        quiet(WORK / "model", WORK / "text.jsonl", f"monitor={json.dumps({'alarms': rules[:1]})}".replace("\0", "")))


def indexes(i):
    home = WORK / f"index-{i}"
    done = subprocess.run([TEMPER, "runs", str(WORK / "index")], env=dict(ENV, XDG_CACHE_HOME=str(home)), capture_output=True)
    if done.returncode:
        sys.exit(done.stderr.decode())
    for at in (home / "temper").glob("runs-*"):
        if R.random() < 0.6:
            change_rows(at)
        else:
            at.write_bytes(shake(at.read_bytes(), R.choice([100, 4000, 20000])))
    add("index", WORK / "index", ["runs", WORK / "index", "--json"], ["runs", WORK / "index", "--filter", R.choice(WORDS).replace("\0", "")],
        cache=home)


def levers(i):
    value = lambda: str(R.choice(LIMITS + ["true", "[fuse-swiglu]", "ultra", "6GiB"])).replace("\0", "")[:3000]
    recipe = WORK / "recipe.yaml"
    key = R.choice(["optimization.level", "engine.disable_passes", "engine.memory_limit", "engine.plugins", "policy.compile_mode", "policy.recompute",
                    "policy.precision", "policy.peft.dim", "policy.peft.alpha", "policy.peft.target_modules", "policy.peft.base", "policy.peft.dropout",
                    "policy.optimizer.kwargs.betas", "policy.max_grad_norm", "train.nonfinite_policy", "performance_analysis", "monitor.memory_interval",
                    "logger.tensorboard_enabled", "distributed.strategy", "engine.loss_chunk", "policy.optimizer.name", "data.cache_limit"])
    add("levers", recipe, ["plan", recipe, f"{key}={value()}"], ["train", "--quiet", recipe, f"run.dir={WORK}/lever-{i}", f"{key}={value()}"],
        ["plan", recipe, "--ranks", value(), "--network", value()],
        ["ablate", recipe, "--rounds", "1", "--steps", "1", "--warm-up", "0", "--pairs", "0", "-q", "--out", WORK / f"ablated-{i}",
         R.choice(["--lever", "--levers"]), R.choice([value(), f"a:{key}={value()}/{value()}"])],
        ["tune", recipe, "--budget", R.choice(["1ms", value()]), "--steps", "1", "-q", "--out", WORK / f"tuned-{i}", "--memory", value()])


def plugins(i):
    at = WORK / f"plugin-{i}.so"
    whole = PLUGIN.read_bytes()
    # What the loader itself refuses: a program that it would run is the user's own.
    at.write_bytes(R.choice([whole[:R.randrange(min(len(whole), 3000))], b"", b"\x7fELF", shake(whole, 20)[:64], json.dumps(LIMITS[:8]).encode(),
                             whole[:16] + b"\xff" * 8 + whole[24:], whole[:4] + b"\1" + whole[5:]]))
    add("plug-in", at, ["plan", WORK / "recipe.yaml", f"engine.plugins=[{at}]"])


def gguf_fields(i):
    """Numbers, lengths and types of a GGUF file's head, one by one."""
    data, at, spots = bytearray((WORK / "model.gguf").read_bytes()), 24, [4, 8, 16]

    def text():
        nonlocal at
        spots.append(at)
        at += 8 + struct.unpack_from("<Q", data, at)[0]

    size = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

    def value(kind):
        nonlocal at
        if kind == 8:
            text()
        elif kind == 9:
            spots.extend([at, at + 4])
            item, n = struct.unpack_from("<IQ", data, at)
            at += 12
            for _ in range(n):
                value(item)
        else:
            spots.append(at)
            at += size[kind]

    tensors, keys = struct.unpack_from("<QQ", data, 8)
    for _ in range(keys):
        text()
        spots.append(at)
        at += 4
        value(struct.unpack_from("<I", data, at - 4)[0])
    for _ in range(tensors):
        text()
        spots.append(at)
        n = struct.unpack_from("<I", data, at)[0]
        spots.extend(at + 4 + 8 * k for k in range(n))
        at += 4 + 8 * n
        spots.extend([at, at + 4])
        at += 12
    for _ in range(R.randrange(1, 4)):
        where = R.choice(R.choice([spots, spots[-90:], [spot for spot in spots if spot < 3000]]))
        form = R.choice(["<I", "<Q", "<B"])
        struct.pack_into(form, data, where, R.choice([0, 1, 2, 8, 9, 12, 13, 255, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1]) % 256**struct.calcsize(form))
    at = WORK / f"fields-{i}.gguf"
    at.write_bytes(data)
    add("gguf fields", at, ["generate", at, "-m", "1", "x"], ["export", at, WORK / f"fields-{i}.out.gguf"])


def caches(i):
    at = WORK / f"cache-{i}"
    shutil.copytree(WORK / "cache/temper", at / "temper")
    for path in (p for p in (at / "temper").rglob("*") if p.is_file()):
        if path.suffix == ".json":
            path.write_bytes(graft(json.loads(path.read_text()), {"unit_f32_flops": -1}))
        else:
            path.write_bytes(shake(path.read_bytes(), 300))
    add("caches", None, quiet(WORK / "model", WORK / "text.jsonl"), ["cache", "--dir", at / "temper"], ["doctor", "--cached"], cache=at)


# ---- a server ----

class Server:
    def __init__(self):
        self.process = subprocess.Popen([TEMPER, "serve", str(WORK / "index"), "--port", "-1"], env=ENV, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        line = next(line for line in iter(lambda: self.process.stdout.readline().decode(), "") if "http://" in line)
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        self.port, self.lock = int(line.split("http://127.0.0.1:")[1].split("/")[0]), threading.Lock()

    def send(self, data, wait):
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as s:
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                answer = b""
                while len(answer) < 1 << 22 and (part := s.recv(65536)):
                    answer += part
                return answer
            except (ConnectionError, socket.timeout):
                return b""

    def good(self):
        """The answer to a good request, which no bad one before it may change."""
        return self.send(f"GET /api/runs HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nConnection: close\r\n\r\n".encode(), 20)

    def judge(self, data):
        if self.process.poll() is not None:
            return f"the server is gone, status {self.process.returncode}"
        answer = self.send(data, 5)
        if b"outside the folder" in answer:
            return "a file outside the folder"
        head = answer.split(b"\r\n\r\n")[0]
        if any(c < 32 and c not in (9, 10, 13) for c in head):
            return "control characters in the head"
        with self.lock:
            return None if self.good().startswith(b"HTTP/1.1 200") else f"no answer behind {data[:200]!r}"

    def end(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(20)
        return [] if code in (0, 143) and peak < 1 << 20 else [f"server: ends with {code}, {peak} KiB at most"]


def requests(i):
    runs = ["", "0", "../", "..%2f", "%00", "%ff", "a" * 9000, "-1", "99999999999999999999", *INDEX_IDS * 4]
    rest = ["", "/", "/metrics.json", "/metrics.json?tag=", "/metrics.json?tag=%00", "/metrics.json?tag=*", "/metrics.json?tag=" + "%2a" * 2000, "/trace",
            "/timeline", "/samples", "/report", "/settings", "/alarms", "/memory", "/operators", "/../../../etc/passwd", "/%2e%2e/%2e%2e/secret",
            "/trace?from=nan&to=1e999", "/samples?step=-1", "/samples?step=../../secret", "/timeline?from=-9e99&to=9e99&width=0", "/curve.svg?tag=%1b"]
    path = R.choice(["/run/" + R.choice(runs) + R.choice(rest), "/api/runs?filter=" + R.choice(["%00", "%", "x" * 20000, "state:%ff", "tag:'--"]),
                     "/compare?" + "&".join("run=" + R.choice(runs) for _ in range(R.randrange(12))), "/metrics?x=" * 99, "*", "http://evil/", "//", "/events",
                     "/static/../../secret", "/secret", ""])
    method = R.choice(["GET", "GET", "GET", "GET", "HEAD", "POST", "PUT", "TRACE", "CONNECT", "\0", "G" * 5000])
    lines = R.choice([f"Host: 127.0.0.1:{SERVER.port}", f"Host: 127.0.0.1:{SERVER.port}\r\nRange: bytes=0-", "Host: evil", "", "Host: a\r\nHost: b",
                      f"Host: 127.0.0.1:{SERVER.port}\r\nTransfer-Encoding: chunked", f"Host: 127.0.0.1:{SERVER.port}\r\nContent-Length: -1",
                      f"Host: 127.0.0.1:{SERVER.port}\r\nCookie: " + "x" * 40000, f"Host: 127.0.0.1:{SERVER.port}\r\nOrigin: http://evil",
                      f"Host: 127.0.0.1:{SERVER.port}\r\nLast-Event-ID: 9\r\nIf-None-Match: *\r\nAccept-Encoding: br"])
    data = f"{method} {path} HTTP/{R.choice(['1.1', '1.1', '1.0', '9.9', ''])}\r\n{lines}\r\nConnection: close\r\n\r\n".encode("latin-1")
    jobs.append(Job("request", None, shake(data, len(data)) if R.random() < 0.2 else data, None, None, None))


# ---- running ----

def digest(at):
    files = sorted(p for p in at.rglob("*") if p.is_file()) if at.is_dir() else [at]
    return hashlib.md5(b"".join(p.read_bytes() for p in files)).hexdigest()


def left_behind(mark):
    """Processes that were started with this variable in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            found += [path.parent.name] if mark in path.read_bytes().split(b"\0") else []
        except OSError:
            pass
    return found


def judge(job):
    number, (kind, at, command, environment, cwd, stdin) = job
    if kind == "request":
        return SERVER.judge(command)
    before, mark = at and digest(at), f"{WORK.name}-{number}"
    try:
        done = subprocess.run([TEMPER, *command], cwd=cwd, env=dict(environment, HOSTILE_RUN=mark), capture_output=True, input=stdin or b"",
                              timeout=60)
    except subprocess.TimeoutExpired:
        return "hangs"
    end = time.monotonic() + 20
    while (left := left_behind(f"HOSTILE_RUN={mark}".encode())) and time.monotonic() < end:
        time.sleep(0.05)
    if left:
        return f"leaves processes {left}"
    said = done.stdout + done.stderr
    if not 0 <= done.returncode <= 6:
        return f"status {done.returncode}: {done.stderr[-300:]!r}"
    if done.returncode in (2, 4, 5, 6) and not said.strip():
        return f"silent, status {done.returncode}"
    if any(c < 32 and c not in (9, 10) or c == 127 for c in said):
        return "control characters"
    if at and digest(at) != before:
        return "input changed"
    return None


def main():
    global SERVER, INDEX_IDS
    resource.setrlimit(resource.RLIMIT_DATA, (3 << 30, 3 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.reconfigure(errors="backslashreplace")
    make_sound()
    SERVER = Server()
    INDEX_IDS = [run["id"] for run in json.loads(SERVER.good().split(b"\r\n\r\n", 1)[1])["runs"]]
    for kind in (models, recipes, data, traces, runs, checkpoints, figures, adapters, alarms, indexes, levers, plugins, gguf_fields, caches, requests,
                 *hostile_kinds.kinds(sys.modules[__name__])):
        for i in range(PER_KIND if not KINDS or kind.__name__ in KINDS else 0):
            kind(i)
    R.shuffle(jobs)
    kinds, bad = {}, 0
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for job, what in zip(jobs, pool.map(judge, enumerate(jobs))):
            kinds[job.kind] = kinds.get(job.kind, 0) + 1
            if what:
                bad += 1
                print(f"{job.kind}: temper {job.command if job.kind == 'request' else shlex.join(job.command)}: {what}", flush=True)
    for what in SERVER.end():
        bad += 1
        print(what)
    print(f"seed {SEED}: {len(jobs)} runs, {bad} wrong: {kinds}")
    print(f"kept: {WORK}" if bad else "nothing kept")
    bad or shutil.rmtree(WORK)
    return bad > 0


sys.exit(main())
