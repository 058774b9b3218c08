"""Steps of LoRA beside PEFT and PyTorch, in rounds; see bench/compare_lora.sh.

Rows, full: --batch rows of --length tokens, nearly all of them trained.  chat: --batch rows of a prompt
and an answer, drawn as long as GSM8K's questions and answers are (log-normal, medians 60 and 110,
deviations 0.4), of which the answers are trained.  Temper packs them, PyTorch pads them.  Tokens that
are counted are those of the rows, without padding.  A round has a step or two of each side, its order
turns.  Memory: the largest resident set of Temper's process from its start, of PyTorch's without loading.

Made for the versions that peft_sft.py names.
"""

import argparse
import json
import os
import random
import tempfile

import rounds
from rounds import PeerError, Worker, environment, say

HERE = os.path.dirname(os.path.abspath(__file__))
QWEN = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 896,
        "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
        "num_key_value_heads": 2, "tie_word_embeddings": True, "vocab_size": 151936,
        "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 1000000.0,
        "hidden_act": "silu", "initializer_range": 0.02}
WARM_UP = 1
EXTRA = 2  # what Temper adds to a row: a line break behind the prompt, the end of the text


def arguments():
    parser = argparse.ArgumentParser(prog="compare_lora.sh", description=__doc__.split(";")[0])
    parser.add_argument("--build", required=True, metavar="DIR", help="Temper's build folder")
    parser.add_argument("--python", required=True, metavar="PROGRAM", help="Python that has peft")
    parser.add_argument("--config", help="config.json of the model (default: Qwen2.5-0.5B's shape)")
    parser.add_argument("--rows", choices=("full", "chat"), default="full")
    parser.add_argument("--batch", type=int, default=2, help="rows of a step")
    parser.add_argument("--length", type=int, default=512, help="tokens of a row, at most")
    parser.add_argument("--micro-batch", type=int, default=8, help="rows that PyTorch takes at once")
    parser.add_argument("--packed", type=int, default=1024, help="tokens that Temper takes at once")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--base", choices=("bfloat16", "int8", "nf4"), default="bfloat16",
                        help="Temper's; PyTorch's is bfloat16")
    parser.add_argument("--sides", default="temper,peft,peft-bf16,peft-checkpointing")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--steps", type=int, default=2, help="steps of Temper in a round; PyTorch makes one")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", metavar="FILE", help="every figure as JSON")
    return parser.parse_args()


def draw_rows(o):
    """Batches of [tokens, trained at the end]: as many as any side needs."""
    random.seed(1)
    batches = []
    for _ in range(WARM_UP + max(o.rounds, o.steps)):
        rows = []
        for _ in range(o.batch):
            prompt, answer = 8, o.length - 8
            if o.rows == "chat":
                prompt = max(8, round(random.lognormvariate(4.09, 0.4)))
                answer = max(8, round(random.lognormvariate(4.7, 0.4)))
            tokens = min(prompt + answer, o.length)
            rows.append([tokens, tokens - prompt])
        batches.append(rows)
    return batches


class Temper:
    """`temper train` in a process per turn, over the batches of that turn."""

    def __init__(self, o, folder, batches):
        self.o, self.folder, self.batches = o, folder, batches
        self.env = environment(o.threads)
        self.program = os.path.abspath(os.path.join(o.build, "src", "cli", "temper"))
        self.turns, self.peak, self.tokens = 0, 0, {}
        with open(os.path.join(folder, "corpus.txt"), "w", encoding="ascii") as file:
            file.write("abcdefghijklmnopqrstuvwxyz\n")
        rounds.run([self.program, "tokenizer", "--vocab-size", "260", f"{folder}/letters", f"{folder}/corpus.txt"],
                   self.env, "temper tokenizer")  # a letter is a token

    def write_rows(self, path, first, steps):
        with open(path, "w", encoding="ascii") as file:
            for step in range(first, first + steps):
                for tokens, trained in self.batches[step % len(self.batches)]:
                    letters = "".join(random.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(tokens - EXTRA))
                    at = tokens - trained - 1
                    file.write(json.dumps({"prompt": letters[:at], "completion": letters[at:]}) + "\n")

    def turn(self, _round):
        """Seconds and tokens of each step after the warm-up."""
        o = self.o
        self.turns += 1
        run, rows = f"{self.folder}/run-{self.turns}", f"{self.folder}/rows-{self.turns}.jsonl"
        steps = WARM_UP + o.steps
        self.write_rows(rows, 0, steps)
        rounds.run(
            [self.program, "train", "--quiet", os.path.join(HERE, "..", "..", "recipes", "sft.yaml"), f"run.dir={run}",
             "policy.init=random", f"policy.model_config={self.folder}/config.json", "policy.model_name=null",
             f"policy.tokenizer.name={self.folder}/letters", "policy.tokenizer.chat_template=null",
             f"policy.train_global_batch_size={o.batch}", "policy.train_micro_batch_size=1",
             f"policy.sequence_packing.train_mb_tokens={max(o.packed, o.length)}",
             f"policy.max_total_sequence_length={o.length}", "policy.peft.enabled=true",
             f"policy.peft.dim={o.rank}", f"policy.peft.alpha={o.rank}", f"policy.peft.base={o.base}",
             f"data.train.data_path={rows}", "data.train.split_validation_size=0", "data.shuffle=false",
             "sft.val_period=0", f"sft.max_num_steps={steps}", "checkpointing.enabled=false",
             f"engine.threads={o.threads}"],
            self.env, "temper train")
        seconds = []
        with open(f"{run}/metrics.jsonl", encoding="utf-8") as file:
            for record in map(json.loads, file):
                if record["axis"] == "train":
                    seconds.append(record["m"]["timing/train/total_step_time"])
                    self.last = record["m"]
        with open(f"{run}/run.json", encoding="utf-8") as file:
            self.peak = max(self.peak, json.load(file)["memory"]["peak_resident_bytes"])
        tokens = [sum(t for t, _ in rows) for rows in self.batches[WARM_UP:steps]]
        return sum(tokens) / sum(seconds[WARM_UP:])

    def describe(self):
        return rounds.run([self.program, "version"], self.env, "temper version")[0].splitlines()[0]

    def close(self):
        pass


class Peft:
    """One process, alive all the time; works only in its turn."""

    def __init__(self, o, folder, batches, what, *words):
        self.batches, self.step, self.peak = batches, 0, 0
        self.worker = Worker(
            [o.python, f"{HERE}/peft_sft.py", "--config", folder, "--rows", f"{folder}/batches.json",
             "--micro-batch", str(o.micro_batch), "--rank", str(o.rank), "--threads", str(o.threads), *words],
            environment(o.threads), what)
        self.hello = self.worker.answer()
        for _ in range(WARM_UP):
            self.ask()

    def ask(self):
        tokens = sum(t for t, _ in self.batches[self.step % len(self.batches)])
        self.step += 1
        answer = self.worker.ask("step")
        self.peak = answer["peak_bytes"]
        return tokens / answer["seconds"]

    def turn(self, _round):
        return self.ask()

    def describe(self):
        return ", ".join(f"{k} {v}" for k, v in self.hello.items())

    def close(self):
        self.worker.close()


def make(name, o, folder, batches):
    if name == "temper":
        return Temper(o, folder, batches)
    words = {"peft": [], "peft-bf16": ["--adapters", "bfloat16"], "peft-checkpointing": ["--checkpointing"],
             "peft-bf16-checkpointing": ["--adapters", "bfloat16", "--checkpointing"]}
    if name not in words:
        raise PeerError(f"there is no side '{name}'; there are temper, {', '.join(words)}")
    return Peft(o, folder, batches, name, *words[name])


def report(o, sides, found):
    rows = [["", "tokens/s", "from", "to", "peak of the process"]]
    for name, rates in found.items():
        middle, low, high, _ = rounds.interval(rates)
        rows.append([name, f"{middle:.1f}", f"{low:.1f}", f"{high:.1f}", f"{sides[name].peak / 2**30:.2f} GiB"])
    rounds.table(rows)
    ratios = {}
    for name in found:
        if name == "temper" or "temper" not in found:
            continue
        text, ratios[name] = rounds.ratio_text(found["temper"], found[name], 2)
        share = sides["temper"].peak / sides[name].peak
        ratios[name]["memory"] = share
        say(f"temper over {name}: tokens/s {text}; memory {share:.2f}, goal 0.5: {'reached' if share <= 0.5 else 'not reached'}")
    return ratios


def main():
    o = arguments()
    sides, found = {}, {}
    rounds.others_busy()
    with tempfile.TemporaryDirectory() as folder:
        config = json.load(open(o.config, encoding="utf-8")) if o.config else QWEN
        json.dump(config, open(f"{folder}/config.json", "w", encoding="utf-8"))
        batches = draw_rows(o)
        json.dump(batches, open(f"{folder}/batches.json", "w", encoding="utf-8"))
        try:
            for name in o.sides.split(","):
                sides[name] = make(name, o, folder, batches)
                say(f"{name}: {sides[name].describe()}")
            for i in range(o.rounds):
                for name in rounds.order(list(sides), i):
                    found.setdefault(name, []).append(sides[name].turn(i))
                say(f"round {i + 1}: " + ", ".join(f"{name} {rates[-1]:.1f}" for name, rates in found.items()))
        except PeerError as error:
            rounds.fail(str(error))
        finally:
            for side in sides.values():
                side.close()
    ratios = report(o, sides, found)
    if o.out:
        result = {"options": vars(o), "tokens_per_s": found, "ratios": ratios,
                  "peak_bytes": {name: side.peak for name, side in sides.items()},
                  "what": {name: side.describe() for name, side in sides.items()}}
        json.dump(result, open(o.out, "w", encoding="utf-8"), indent=1)


if __name__ == "__main__":
    main()
