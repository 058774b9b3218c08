#!/usr/bin/env python3
"""Compare Temper's adapters with PEFT itself: files, outputs, merged weights, both ways.

    python3 -m venv venv
    venv/bin/pip install torch transformers peft --extra-index-url https://download.pytorch.org/whl/cpu
    venv/bin/python tools/compare_peft.py --temper build/default/src/cli/temper

For small models of all four families, drawn at random, and LoRA, rsLoRA and DoRA:

  trained    temper train makes an adapter; PEFT loads it, every tensor is the file's, bit for bit
  outputs    log-probabilities of Temper's greedy answers, Temper in float32 against base and adapter
             in transformers and PEFT in float32 and in float64: within 1e-5
  saved      what PEFT saves of it holds the same tensors, bit for bit, and the same settings; Temper
             answers with it as with its own file, bit for bit
  merged     temper merge against PEFT's merge_and_unload(): within 1e-6 of the largest weight
  from PEFT  an adapter that PEFT made (A and B at random): outputs as above; a step of temper train
             with learning rate 0 writes the same tensors, bit for bit
  shapes     adapters that PEFT made otherwise (odd ranks, alpha 0, targets by regular expression, names that the
             model has not, DoRA with dropout, bf16, a base in several files): outputs as above
  refused    what PEFT can make and Temper does not do (modules_to_save, bias ...) ends with
             status 2 and the name of the key

Exit status 1 when something is outside its bound.
"""
import argparse
import importlib.metadata
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

BOUND = 1e-5
PROMPTS = ["the quick brown", "two and two", "a lazy dog says hello to"]
COMMON = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=128, rms_norm_eps=1e-5,
              initializer_range=0.1)
CONFIGS = {
    "llama": dict(COMMON, hidden_size=36, intermediate_size=50, num_attention_heads=3, num_key_value_heads=1,
                  tie_word_embeddings=True),
    "qwen2": dict(COMMON, tie_word_embeddings=True),
    "qwen3": dict(COMMON, head_dim=24, tie_word_embeddings=False),
    "gpt2": dict(n_embd=64, n_layer=2, n_head=4, n_positions=128, initializer_range=0.1),
}
KINDS = {"lora": {}, "rslora": {"use_rslora": True}, "dora": {"use_dora": True}}
# Adapters of other shapes: what LoraConfig is given beside them, and the type of the file.
SHAPES = {
    "rank 1": (dict(r=1, lora_alpha=3), torch.float32),
    "rank 7, alpha 5": (dict(r=7, lora_alpha=5), torch.float32),
    "rank 65, rsLoRA": (dict(r=65, lora_alpha=4, use_rslora=True), torch.float32),
    "alpha 0": (dict(r=3, lora_alpha=0), torch.float32),
    "a regular expression": (dict(target_modules=r".*\.1\..*(q|down)_proj"), torch.float32),
    "some excluded": (dict(target_modules="all-linear", exclude_modules=["o_proj", "layers.0.mlp.up_proj"]), torch.float32),
    "names that it has not": (dict(target_modules=["q_proj", "c_attn", "query_key_value"]), torch.float32),
    "DoRA, rank 5": (dict(r=5, use_dora=True), torch.float32),
    "ranks and alphas by module": (dict(r=4, rank_pattern={"layers.0.self_attn.q_proj": 2, "[kv]_proj": 6},
                                        alpha_pattern={"proj": 3, r"model\..*\.up_proj": 5}), torch.float32),
    "DoRA, rsLoRA, ranks by module": (dict(r=4, use_dora=True, use_rslora=True, rank_pattern={"down_proj": 9}), torch.float32),
    "some layers": (dict(layers_to_transform=[1], layers_pattern="layers", target_modules=["q_proj", "up_proj"]), torch.float32),
    "a whole name beside some layers": (dict(layers_to_transform=1, target_modules=["v_proj", "model.layers.0.self_attn.q_proj"]),
                                        torch.float32),
    "DoRA with dropout": (dict(r=3, use_dora=True, lora_dropout=0.3), torch.float32),
    "bf16": (dict(r=6), torch.bfloat16),
    "f16": (dict(r=6), torch.float16),
}
# The same for GPT-2, whose matrices lie the other way round and have biases.
GPT2_SHAPES = {
    "both modules of a name": (dict(r=3, target_modules=["c_proj"]), torch.float32),
    "a regular expression": (dict(r=9, target_modules=r".*\.1\.mlp\.c_(fc|proj)"), torch.float32),
    "a layer": (dict(layers_to_transform=0, layers_pattern="h", target_modules=["c_attn", "c_fc"]), torch.float32),
    "DoRA, ranks by module": (dict(r=4, use_dora=True, rank_pattern={r"attn\.c_proj": 7, "c_fc": 1}), torch.float32),
    "DoRA with dropout, rsLoRA": (dict(r=5, use_dora=True, use_rslora=True, lora_dropout=0.1), torch.float32),
    "f16": (dict(r=2, use_dora=True), torch.float16),
}
REFUSED = {
    "modules_to_save": dict(modules_to_save=["lm_head"]),
    "bias": dict(bias="lora_only"),
    "lora_bias": dict(lora_bias=True),
    "trainable_token_indices": dict(trainable_token_indices=[1, 2]),
    "lm_head": dict(target_modules=["q_proj", "lm_head"]),
    "embed_tokens": dict(target_modules=["q_proj", "embed_tokens"]),
    "init_lora_weights": dict(init_lora_weights="pissa"),
}


class Check:
    def __init__(self):
        self.failed = 0

    def say(self, what, ok, text):
        self.failed += not ok
        print(f"    {'ok  ' if ok else 'FAIL'} {what:9} {text}", flush=True)


class Temper:
    def __init__(self, path):
        self.path = path

    def run(self, *words):
        done = subprocess.run([self.path, *map(str, words)], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"temper {' '.join(map(str, words))}\n{done.stderr}")
        return done.stdout

    def answers(self, model):
        """Greedy answers to all prompts, as JSON objects."""
        out = self.run("generate", "--json", "--precision", "float32", "--temperature", 0,
                       "--max-new-tokens", 12, "--ignore-eos", model, *PROMPTS)
        return [json.loads(line) for line in out.splitlines()]

    def train(self, model, rows, run, steps, rate, *more):
        self.run("train", "--quiet", Path(__file__).parent.parent / "recipes/sft.yaml",
                 f"policy.model_name={model}", f"data.train.data_path={rows}",
                 "data.train.split_validation_size=0", "policy.tokenizer.chat_template=null",
                 "policy.max_total_sequence_length=32", "policy.train_global_batch_size=2",
                 "policy.precision=float32", f"policy.optimizer.kwargs.lr={rate}",
                 "policy.optimizer.kwargs.weight_decay=0", "policy.scheduler=null",
                 "sft.max_num_epochs=100", f"sft.max_num_steps={steps}", f"run.dir={run}", *more)
        return next(Path(run).glob("checkpoints/step-*/model"))


def draw_base(temper, family, work, text):
    folder = work / family
    temper.run("tokenizer", "--vocab-size", 300, folder, text)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    n_ids = len(tokenizer["model"]["vocab"]) + len(tokenizer["added_tokens"])
    torch.manual_seed(sum(map(ord, family)))
    config = AutoConfig.for_model(family, vocab_size=n_ids, bos_token_id=None, eos_token_id=None,
                                  **CONFIGS[family])
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)
    return folder


def load(base, adapter, dtype=torch.float32):
    model = AutoModelForCausalLM.from_pretrained(base, dtype=dtype, attn_implementation="eager")
    return PeftModel.from_pretrained(model, adapter).to(dtype).eval()


def worst_difference(model, answers):
    worst = 0.0
    for a in answers:
        ids = torch.tensor([a["prompt_ids"] + a["ids"]])
        with torch.no_grad():
            logp = model(ids).logits[0].double().log_softmax(-1)
        at = range(len(a["prompt_ids"]) - 1, ids.shape[1] - 1)
        theirs = logp[torch.tensor(list(at)), torch.tensor(a["ids"])]
        worst = max(worst, (theirs - torch.tensor(a["logprobs"], dtype=torch.float64)).abs().max().item())
    return worst


def check_outputs(check, what, temper, base, adapter):
    answers = temper.answers(adapter)
    single = worst_difference(load(base, adapter), answers)
    double = worst_difference(load(base, adapter, torch.float64), answers)
    plain = worst_difference(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float64), answers)
    n = sum(len(a["ids"]) for a in answers)
    check.say(what, single <= BOUND and double <= BOUND and plain > 100 * BOUND,
              f"{n} tokens: at most {single:.1e} from PEFT in float32, {double:.1e} in float64 "
              f"(bound {BOUND:g}); the base alone is {plain:.1e} away")
    return answers


def differences(a, b):
    """Names that only one has, or whose tensors differ in a bit."""
    names = sorted(set(a) ^ set(b))
    return names + [n for n in a if n in b and
                    not (a[n].dtype == b[n].dtype and torch.equal(a[n], b[n]))]


def settings(folder):
    c = json.loads((Path(folder) / "adapter_config.json").read_text())
    kept = {k: c[k] for k in ("r", "lora_alpha", "use_rslora", "use_dora", "peft_type", "task_type",
                              "fan_in_fan_out", "bias")}
    return dict(kept, target_modules=sorted({t.split(".")[-1] for t in c["target_modules"]}))


def check_saved(check, temper, base, adapter, out, answers):
    model = load(base, adapter)
    ours = load_file(adapter / "adapter_model.safetensors")
    live = {n: p for n, p in model.named_parameters() if ".lora_" in n}
    wrong = []
    for name, tensor in ours.items():
        stem, dot, last = name.rpartition(".")
        inside = f"{stem}.default.{last}" if last == "weight" else f"{name}.default.weight"
        wrong += [] if inside in live and torch.equal(live.pop(inside), tensor) else [name]
    check.say("trained", not wrong and not live,
              f"{len(ours)} tensors of the file are PEFT's" if not wrong and not live
              else f"differ: {(wrong + list(live))[:3]}")
    model.save_pretrained(out)
    other = differences(ours, load_file(out / "adapter_model.safetensors"))
    same = settings(adapter) == settings(out)
    again = temper.answers(out)
    check.say("saved", not other and same and again == answers,
              "PEFT's own file has the same tensors and settings, and the same answers" if
              not other and same and again == answers else
              f"tensors {other[:3]}, settings {same}, answers {again == answers}")


def check_merged(check, temper, base, adapter, out):
    temper.run("merge", "--dtype", "float32", adapter, out)
    ours = load_file(out / "model.safetensors")
    merged = load(base, adapter).merge_and_unload().state_dict()
    worst = 0.0
    for name, tensor in ours.items():
        theirs = merged[name]
        worst = max(worst, ((tensor - theirs).abs().max() / theirs.abs().max()).item())
    check.say("merged", worst <= 1e-6, f"{len(ours)} tensors, at most {worst:.1e} of the largest weight apart")


def make_with_peft(base, family, kind, out):
    torch.manual_seed(5)
    config = LoraConfig(r=6, lora_alpha=9, target_modules="all-linear", task_type="CAUSAL_LM",
                        init_lora_weights=False, **KINDS[kind])
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), config)
    for name, p in model.named_parameters():
        if "lora_A" in name or "lora_B" in name:
            torch.nn.init.normal_(p, std=0.1)
        elif "magnitude" in name:
            p.data *= 1 + 0.1 * torch.randn_like(p)
    model.save_pretrained(out)


def compare(check, temper, family, kind, base, rows, work):
    peft = [f"policy.peft.{k}=true" for k in KINDS[kind]]
    adapter = temper.train(base, rows, work / "run", 6, 0.02, "policy.peft.enabled=true",
                           "policy.peft.dim=4", "policy.peft.alpha=8", *peft)
    answers = check_outputs(check, "outputs", temper, base, adapter)
    check_saved(check, temper, base, adapter, work / "by-peft", answers)
    check_merged(check, temper, base, adapter, work / "merged")
    theirs = work / "from-peft"
    make_with_peft(base, family, kind, theirs)
    check_outputs(check, "from PEFT", temper, base, theirs)
    back = temper.train(theirs, rows, work / "still", 1, 0.0)
    other = differences(load_file(theirs / "adapter_model.safetensors"),
                        load_file(back / "adapter_model.safetensors"))
    same = settings(theirs) == settings(back)
    check.say("back", not other and same, "after a step of rate 0 the same tensors and settings" if
              not other and same else f"tensors {other[:3]}, settings {settings(theirs)} {settings(back)}")


def made_with(base, out, settings, dtype=torch.float32):
    torch.manual_seed(9)
    given = dict(dict(r=4, lora_alpha=6, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=True), **settings)
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), LoraConfig(**given))
    for name, p in model.named_parameters():
        if "lora_" in name and "magnitude" not in name:
            torch.nn.init.normal_(p, std=0.1)
        p.data = p.data.to(dtype) if "lora_" in name else p.data
    model.save_pretrained(out)


def check_shape(check, temper, base, name, settings, dtype, out):
    made_with(base, out, settings, dtype)
    worst = worst_difference(load(base, out, torch.float64), temper.answers(out))
    check.say("shapes", worst <= BOUND, f"{name}: at most {worst:.1e} from PEFT in float64")


def check_shapes(check, temper, base, shapes, work):
    for name, (settings, dtype) in shapes.items():
        check_shape(check, temper, base, name, settings, dtype, work / "-".join(name.split()))


def check_pieces(check, temper, base, work):
    pieces = work / "pieces"
    AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32).save_pretrained(pieces, max_shard_size="40KB")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (pieces / name).write_bytes((base / name).read_bytes())
    assert len(list(pieces.glob("model-*.safetensors"))) > 1
    check_shape(check, temper, pieces, "a base in several files", {}, torch.float32, work / "of-pieces")


def check_refused(check, temper, base, work):
    for name, settings in REFUSED.items():
        out = work / name
        made_with(base, out, settings)
        done = subprocess.run([temper.path, "generate", out, "two"], capture_output=True, text=True)
        check.say("refused", done.returncode == 2 and name in done.stderr, f"{name}: {done.stderr.strip()[:150]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--temper", default="build/default/src/cli/temper")
    parser.add_argument("--families", default=",".join(CONFIGS))
    a = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    temper, check = Temper(a.temper), Check()
    print(temper.run("version").strip())
    print(", ".join(f"{p} {importlib.metadata.version(p)}" for p in
                    ("peft", "transformers", "torch", "safetensors")))
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        text = work / "text.txt"
        text.write_text("the quick brown fox jumps over the lazy dog; two and two are four, hello\n")
        rows = work / "rows.jsonl"
        rows.write_text("".join(json.dumps({"text": t}) + "\n" for t in
                                ("the quick brown fox", "a lazy dog", "two and two are four")))
        for family in a.families.split(","):
            base = draw_base(temper, family, work, text)
            for kind in KINDS:
                print(f"{family} {kind}")
                with tempfile.TemporaryDirectory() as inner:
                    compare(check, temper, family, kind, base, rows, Path(inner))
            if family == "qwen2":
                print("other shapes, of qwen2")
                check_shapes(check, temper, base, SHAPES, work)
                check_pieces(check, temper, base, work)
                check_refused(check, temper, base, work)
            if family == "gpt2":
                print("other shapes, of gpt2")
                check_shapes(check, temper, base, GPT2_SHAPES, work)
    print("all within bounds" if not check.failed else f"{check.failed} checks failed")
    return check.failed != 0


if __name__ == "__main__":
    sys.exit(main())
