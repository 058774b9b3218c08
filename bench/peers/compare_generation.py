"""Speed of generation beside llama.cpp and PyTorch, in rounds; see bench/compare_generation.sh.

Made for llama.cpp of October 2026 (any whose llama-bench and llama-batched-bench write JSON and
know `-fa on|off` and `--load-mode`) and for the versions that torch_generation.py names.
"""

import argparse
import json
import os
import statistics
import tempfile

import rounds
from rounds import PeerError, Worker, environment, say

HERE = os.path.dirname(os.path.abspath(__file__))
PROMPT, CONTEXT, NEW, BATCH, BATCH_PROMPT, BATCH_NEW = 512, 16, 128, 32, 128, 64


def arguments():
    parser = argparse.ArgumentParser(
        prog="compare_generation.sh", description=__doc__.split(";")[0]
    )
    parser.add_argument("--model", required=True, help="Hugging Face folder, bf16")
    parser.add_argument("--gguf", help="the same sizes as a GGUF file in bf16, for llama.cpp")
    parser.add_argument(
        "--llama", metavar="DIR", help="folder of llama-bench and llama-batched-bench"
    )
    parser.add_argument(
        "--python", metavar="PROGRAM", help="Python that has torch and transformers"
    )
    parser.add_argument(
        "--build",
        required=True,
        metavar="DIR",
        help="Temper's build folder, with the targets temper and generate_bench",
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-compile", action="store_true", help="PyTorch eager only")
    parser.add_argument("--out", metavar="FILE", help="every figure as JSON")
    options = parser.parse_args()
    if bool(options.gguf) != bool(options.llama):
        parser.error("--gguf and --llama go together")
    return options


# ---- ours ----


class Temper:
    """generate_bench in the sizes of the folder; a process per turn, its first round left out."""

    name = "temper"

    def __init__(self, options):
        self.options = options
        self.env = environment(options.threads)
        self.program = os.path.join(options.build, "bench", "generate_bench")

    def describe(self):
        return (
            f"{self.program}: weights, activations and KV cache bf16, random weights as large as "
            "those of the folder, tokens drawn at temperature 1"
        )

    def measure(self, case):
        kind, count = {"decode": ("decode", 3), "prefill": ("prefill", 5), "batch": ("batch", 1)}[
            case
        ]
        out, _ = rounds.run(
            [
                self.program,
                self.options.model,
                f"case={kind}",
                "dtype=bf16",
                "kv=bf16",
                f"threads={self.options.threads}",
                f"rounds={count}",
                f"batch={BATCH}",
                f"prompt={BATCH_PROMPT}",
                f"new={BATCH_NEW}",
            ],
            self.env,
            "generate_bench",
        )
        lines = [json.loads(line) for line in out.splitlines()]
        lines = lines[len(lines) // (count + 1) :]  # the first round warms up

        def middle(name, key="tokens_per_s"):
            return statistics.median(line[key] for line in lines if line["case"] == name)

        if case == "batch":
            return {
                "batch_prefill": middle("batch: prompts"),
                "batch_decode": middle("batch: decode"),
            }
        result = {case: middle(case)}
        if case == "decode":
            result["read_bytes_per_s"] = 1e9 * middle(case, "read_gb_s")
            result["bytes_per_token"] = 1e9 * lines[0]["read_gb_s"] / lines[0]["bound_tokens_per_s"]
            result["share"] = middle(case, "share")
        return result


def doctor(options, cache):
    """The read bandwidth as `temper doctor` measures it: the best of its rounds."""
    env = dict(os.environ, XDG_CACHE_HOME=cache)
    out, _ = rounds.run(
        [
            os.path.join(options.build, "src", "cli", "temper"),
            "doctor",
            "--json",
            "--seconds",
            "1",
            "--threads",
            str(options.threads),
        ],
        env,
        "temper doctor",
    )
    return json.loads(out)["read_bytes_per_s"]


# ---- the peers ----


class Llama:
    """llama-bench and llama-batched-bench, with the better of their flags for each case."""

    name = "llama.cpp"
    choices = (("off", "mmap"), ("on", "mmap"), ("off", "none"), ("on", "none"))  # -fa, -lm

    def __init__(self, options):
        self.options = options
        self.env = environment(options.threads)
        self.flags = {}
        self.build = "unknown"

    def describe(self):
        return (
            f"{self.options.llama}: weights bf16, KV f16, -t {self.options.threads}, no sampling; "
            f"build {self.build}; "
            + ", ".join(f"{case} with -fa {f[0]} -lm {f[1]}" for case, f in self.flags.items())
        )

    def run(self, case, flags, repeats):
        modes = ["-fa", flags[0], "-lm", flags[1]]
        if case == "batch":
            words = (
                [
                    os.path.join(self.options.llama, "llama-batched-bench"),
                    "-m",
                    self.options.gguf,
                    "-t",
                    str(self.options.threads),
                    "-c",
                    str(BATCH * (BATCH_PROMPT + BATCH_NEW)),
                    "-b",
                    "2048",
                    "-ub",
                    "512",
                    "-npp",
                    str(BATCH_PROMPT),
                    "-ntg",
                    str(BATCH_NEW),
                    "-npl",
                    str(BATCH),
                    "--output-format",
                    "jsonl",
                ]
                + modes
            )
            out, err = rounds.run(words, self.env, "llama-batched-bench")
            line = next(text for text in (out + "\n" + err).splitlines() if text.startswith("{"))
            line = json.loads(line)
            return {"batch_prefill": line["speed_pp"], "batch_decode": line["speed_tg"]}
        sizes = ["-p", "0", "-n", str(NEW)] if case == "decode" else ["-p", str(PROMPT), "-n", "0"]
        out, _ = rounds.run(
            [
                os.path.join(self.options.llama, "llama-bench"),
                "-m",
                self.options.gguf,
                "-t",
                str(self.options.threads),
                "-r",
                str(repeats),
                "-o",
                "json",
            ]
            + modes
            + sizes,
            self.env,
            "llama-bench",
        )
        result = json.loads(out)[0]
        self.build = f"{result['build_commit']}, {result['model_type']}"
        return {case: statistics.median(result["samples_ts"])}

    def choose(self):
        for case in ("decode", "prefill", "batch"):
            key = "batch_decode" if case == "batch" else case
            choices = self.choices[:2] if case == "batch" else self.choices
            rates = {flags: self.run(case, flags, 2)[key] for flags in choices}
            self.flags[case] = max(rates, key=rates.get)

    def measure(self, case):
        return self.run(case, self.flags[case], {"decode": 3, "prefill": 5}.get(case, 1))


class Torch:
    """PyTorch through transformers, alive all the time; eager and compiled."""

    name = "pytorch"

    def __init__(self, options):
        cases = ["prefill", "decode"]
        self.ways = [""] if options.no_compile else ["", "_compiled"]
        words = [
            options.python,
            os.path.join(HERE, "torch_generation.py"),
            options.model,
            "--threads",
            str(options.threads),
            "--prompt",
            str(PROMPT),
            "--context",
            str(CONTEXT),
            "--new",
            str(NEW),
            "--cases",
            ",".join(case + way for case in cases for way in self.ways),
        ]
        self.worker = Worker(words, environment(options.threads), "PyTorch")
        self.hello = self.worker.answer()

    def describe(self):
        return (
            f"{self.hello['torch']}, transformers {self.hello['transformers']}, "
            f"{self.hello['capability']}: bf16, "
            "SDPA, static KV cache, greedy"
            + ("; compiled: Inductor with freezing" if len(self.ways) > 1 else "")
        )

    def measure(self, case):
        if case == "batch":
            return {}
        return {case + way: self.worker.ask(case + way)["tokens_per_s"] for way in self.ways}


# ---- rounds and report ----

GOALS = (
    ("decode", "llama.cpp", "decode", 1.0),
    ("prefill", "llama.cpp", "prefill", 5.0),
    ("batch_decode", "llama.cpp", "batch_decode", 3.0),
    ("batch_prefill", "llama.cpp", "batch_prefill", None),
    ("prefill", "pytorch", "prefill", 1.5),
    ("prefill", "pytorch", "prefill_compiled", 1.5),
    ("decode", "pytorch", "decode", None),
    ("decode", "pytorch", "decode_compiled", None),
)


def measure(sides, options, cache):
    """figures[name][key] lists one value per round."""
    figures = {side.name: {} for side in sides}
    machine = {"doctor_read_bytes_per_s": [], "others_busy": []}
    by_name = {side.name: side for side in sides}
    for number in range(options.rounds):
        machine["others_busy"].append(rounds.others_busy())
        for case in ("decode", "prefill", "batch"):
            if case == "decode":
                machine["doctor_read_bytes_per_s"].append(doctor(options, cache))
            for name in rounds.order(by_name, number):
                for key, value in by_name[name].measure(case).items():
                    figures[name].setdefault(key, []).append(value)
        show_round(number, figures, machine)
    return figures, machine


def show_round(number, figures, machine):
    ours = figures["temper"]
    read, after = machine["doctor_read_bytes_per_s"][-1], ours["read_bytes_per_s"][-1]
    parts = [
        f"round {number + 1}: read {read / 1e9:.1f} GB/s (doctor), {after / 1e9:.1f} "
        f"beside decoding; a token reads {ours['bytes_per_token'][-1] / 1e6:.1f} MB: "
        f"decode at {ours['share'][-1]:.3f} of the bound"
    ]
    for name, keys in figures.items():
        shown = {
            k: v[-1]
            for k, v in keys.items()
            if k not in ("read_bytes_per_s", "bytes_per_token", "share")
        }
        parts.append(f"{name} " + " ".join(f"{k} {v:.0f}" for k, v in shown.items()))
    say("\n  ".join(parts))


def report(figures, machine):
    rows = [["tokens/s", "median", "lowest", "highest"]]
    for name, keys in figures.items():
        for key, values in keys.items():
            if key in ("read_bytes_per_s", "bytes_per_token", "share"):
                continue
            middle, _, _, _ = rounds.interval(values)
            rows.append(
                [f"{name} {key}", f"{middle:.1f}", f"{min(values):.1f}", f"{max(values):.1f}"]
            )
    say()
    rounds.table(rows)
    middle, low, high, cover = rounds.interval(figures["temper"]["share"])
    say(
        f"\ndecode over its bound (bandwidth / bytes): {middle:.3f}  "
        f"[{low:.3f}, {high:.3f}] at {100 * cover:.1f} %; goal 0.9"
    )
    ratios = {"share": {"median": middle, "low": low, "high": high, "coverage": cover}}
    say("\nTemper over the peer, ratio within each round: median and interval")
    rows = []
    for ours, peer, theirs, goal in GOALS:
        if theirs not in figures.get(peer, {}):
            continue
        text, ratio = rounds.ratio_text(figures["temper"][ours], figures[peer][theirs], goal)
        rows.append([f"{ours} / {peer} {theirs}", text])
        ratios[f"{ours} / {peer} {theirs}"] = ratio
    for name, text in rows:
        say(f"  {name:<42}{text}")
    return {"figures": figures, "machine": machine, "ratios": ratios}


def main():
    options = arguments()
    sides = [Temper(options)]
    try:
        if options.llama:
            llama = Llama(options)
            say("llama.cpp: choosing its flags ...")
            llama.choose()
            sides.append(llama)
        if options.python:
            say("PyTorch: loading, compiling ...")
            sides.append(Torch(options))
        for side in sides:
            say(f"{side.name}: {side.describe()}")
        say(
            f"one sequence: {CONTEXT} + {NEW} tokens; prompt: {PROMPT}; "
            f"batch: {BATCH} x ({BATCH_PROMPT} + {BATCH_NEW}); "
            f"{options.threads} threads; {options.rounds} rounds; one program at a time"
        )
        with tempfile.TemporaryDirectory() as cache:
            result = report(*measure(sides, options, cache))
        if options.out:
            result["peers"] = {side.name: side.describe() for side in sides}
            with open(options.out, "w", encoding="utf-8") as file:
                json.dump(result, file, indent=1)
    except PeerError as error:
        rounds.fail(f"compare_generation: {error}")
    except FileNotFoundError as error:
        rounds.fail(f"compare_generation: {error.filename}: no such program; see --help")


if __name__ == "__main__":
    main()
