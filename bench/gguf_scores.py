#!/usr/bin/env python3
"""Does a merged model, exported to GGUF, answer llama.cpp as well as it answers Temper?

    python3 -m venv venv
    venv/bin/pip install --no-binary llama-cpp-python llama-cpp-python
    venv/bin/python bench/gguf_scores.py --temper build/default/src/cli/temper [--type Q8_0] [--questions 400]
                                         [--base RUN] [--runs FOLDER]

  1. a base: the small model of recipes/demo.yaml, trained for --steps steps on sums of three digits (or --base)
  2. an adapter: LoRA of rank 16 on all its products, --adapter-steps steps over the same sums without mistakes
  3. temper merge, temper export --type Q8_0
  4. questions that neither saw, answered greedily: by temper eval, adapter over its base, merged model and file;
     and by llama.cpp, the file

An answer is right when it is the expected text, blanks around it aside, as Temper's environment has it; that rule is
held against Temper's verdicts on Temper's answers.  Intervals are Wilson's at 95 %.  Exit status 1 when
llama.cpp's share is outside the interval of Temper's own evaluation of the merged model.
"""
import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import llama_cpp

ROOT = Path(__file__).resolve().parent.parent


def wilson(right, n, z=1.959964):
    share, q = right / n, z * z / n
    middle = (share + q / 2) / (1 + q)
    half = z / (1 + q) * math.sqrt(share * (1 - share) / n + q / (4 * n))
    return middle - half, middle + half


class Temper:
    def __init__(self, program, runs):
        self.program, self.runs = str(Path(program).resolve()), Path(runs).resolve()

    def run(self, *words):
        done = subprocess.run([self.program, *map(str, words)], cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"temper {' '.join(map(str, words))}\n{done.stderr[-2000:]}")
        return done.stdout

    def evaluate(self, model, name, o):
        """Question -> expected text, answer, verdict."""
        path = self.runs / f"{name}.json"
        path.unlink(missing_ok=True)
        self.run("eval", "recipes/demo-eval.yaml", f"generation.model_name={model}", "generation.temperature=0",
                 "generation.vllm_cfg.precision=float32", "eval.num_tests_per_prompt=1", "eval.k_value=1",
                 "data.arithmetic.digits=3", f"data.arithmetic.n_validation={o.questions}", "--out", path)
        return {p["prompt"]: (p["truth"], p["samples"][0]["text"], p["samples"][0]["correct"])
                for p in json.loads(path.read_text())["prompts"]}


def make_model(temper, o):
    base, adapted, merged = (temper.runs / name for name in ("base", "adapted", "merged"))
    if o.base:
        base = Path(o.base).resolve()
    elif not (base / "checkpoints").exists():
        temper.run("train", "--quiet", "recipes/demo.yaml", f"run.dir={base}", "data.arithmetic.digits=3",
                   f"sft.max_num_steps={o.steps}", "sft.val_period=0")
    if not (adapted / "checkpoints").exists():
        model = next(base.glob("checkpoints/step-*/model"), base)
        temper.run("train", "--quiet", "recipes/demo.yaml", f"run.dir={adapted}", f"policy.model_name={model}",
                   f"policy.tokenizer.name={model}", "policy.init=pretrained", "policy.model_config=null", "policy.tokenizer.train_vocab_size=null",
                   "data.arithmetic.digits=3", "data.arithmetic.mistakes=0", "sft.val_period=0",
                   f"sft.max_num_steps={o.adapter_steps}", "policy.optimizer.kwargs.lr=2.0e-3",
                   "policy.peft.enabled=true", "policy.peft.dim=16", "policy.peft.alpha=16")
    if not merged.exists():
        temper.run("merge", adapted, merged)
    path = temper.runs / f"merged-{o.type}.gguf"
    path.unlink(missing_ok=True)
    temper.run("export", merged, path, "--type", o.type)
    return adapted, merged, path


def ask_llama(path, prompts):
    llm = llama_cpp.Llama(str(path), n_ctx=256, verbose=False, n_threads=2)
    answers = {}
    for prompt in prompts:
        ids = llm.tokenize(prompt.encode(), add_bos=True, special=True)
        done = llm.create_completion(ids, max_tokens=8, temperature=0, repeat_penalty=1.0)
        answers[prompt] = done["choices"][0]["text"]
    return answers


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--temper", default="build/default/src/cli/temper")
    parser.add_argument("--type", default="Q8_0")
    parser.add_argument("--questions", type=int, default=400)
    parser.add_argument("--base", help="a run or model folder in place of step 1")
    parser.add_argument("--steps", type=int, default=600, help="of the base")
    parser.add_argument("--adapter-steps", type=int, default=100)
    parser.add_argument("--runs", help="where runs are kept (default: nowhere)")
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        temper = Temper(o.temper, o.runs or folder)
        temper.runs.mkdir(parents=True, exist_ok=True)
        print(temper.run("version").splitlines()[0])
        print(f"llama-cpp-python {llama_cpp.__version__} ({llama_cpp.llama_print_system_info().decode().strip()})")
        adapted, merged, path = make_model(temper, o)
        ours = {name: temper.evaluate(model, name, o)
                for name, model in (("adapter", adapted), ("merged", merged), ("file", path))}
        expected = {prompt: truth for prompt, (truth, _, _) in ours["merged"].items()}
        for rows in ours.values():
            for truth, answer, verdict in rows.values():
                if verdict != (answer.strip() == truth.strip()):
                    raise SystemExit(f"the rule of this script is not Temper's: '{answer}' for '{truth}'")
        theirs = ask_llama(path, expected)
    answers = {f"temper, {name}": {p: a for p, (_, a, _) in rows.items()} for name, rows in ours.items()}
    answers[f"llama.cpp, {o.type}"] = theirs
    print(f"\n{len(expected)} questions, greedy\n{'':22}{'right':>8}{'share':>9}   95 % interval    same answer as llama.cpp")
    for name, said in answers.items():
        right = sum(said[p].strip() == truth.strip() for p, truth in expected.items())
        low, high = wilson(right, len(expected))
        same = sum(said[p].strip() == theirs[p].strip() for p in expected)
        print(f"{name:22}{right:8}{right / len(expected):9.4f}   {low:.4f} .. {high:.4f}   {same}")
        if name == "temper, merged":
            bounds = low, high
    inside = bounds[0] <= right / len(expected) <= bounds[1]
    print(f"llama.cpp's share is {'within' if inside else 'OUTSIDE'} the interval of Temper's evaluation of the merged model")
    return not inside


if __name__ == "__main__":
    sys.exit(main())
