"""Greedy texts under rules of generation_config.json, here and in transformers.

    compare_generation.py TEMPER MODEL_FOLDER WORK_FOLDER

MODEL_FOLDER holds a small model with a tokenizer.json. A line per rule; exit status 1 when a
text differs. Versions: requirements.txt.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, GenerationConfig

RULES = [
    {}, {"repetition_penalty": 1.3}, {"repetition_penalty": 0.8}, {"no_repeat_ngram_size": 1},
    {"no_repeat_ngram_size": 2}, {"no_repeat_ngram_size": 3},
    {"suppress_tokens": [3, 8, 21, 30, 33]}, {"begin_suppress_tokens": [9, 13, 21, 30, 51]},
    {"bad_words_ids": [[3], [8], [21], [30]]}, {"min_new_tokens": 9, "eos_token_id": [21, 30, 51]},
    {"eos_token_id": [21, 30, 51]}, {"max_new_tokens": 7}, {"max_length": 14},
    {"min_length": 12, "eos_token_id": [23, 3, 58, 7]},
    {"repetition_penalty": 1.5, "no_repeat_ngram_size": 2, "suppress_tokens": [5, 6, 7],
     "min_new_tokens": 4, "eos_token_id": 17},
    {"do_sample": False, "temperature": 0.7, "top_k": 3},
]


def main():
    binary, source, work = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    bad = 0
    for i, rules in enumerate(RULES):
        folder = work / f"rules-{i}"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("run"))
        (folder / "generation_config.json").write_text(json.dumps(rules))
        command = [binary, "generate", str(folder), "fabcabd", "--json", "--precision", "float32"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print("FAILED", rules, done.stderr.strip()[-200:])
            bad += 1
            continue
        row = json.loads(done.stdout)
        torch.set_num_threads(1)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        model.generation_config = GenerationConfig.from_pretrained(folder)
        prompt = torch.tensor([row["prompt_ids"]])
        limit = {} if {"max_new_tokens", "max_length"} & set(rules) else {
            "max_new_tokens": len(row["ids"])}
        ids = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, pad_token_id=0, **limit)[0, prompt.shape[1]:]
        same = ids.tolist() == row["ids"]
        bad += not same
        print("equal " if same else "OTHER ", json.dumps(rules), len(row["ids"]), row["finish_reason"],
              done.stderr.strip()[:120])
        if not same:
            print("   ", ids.tolist(), row["ids"])
    sys.exit(bool(bad))


main()
