"""TRL's side of compare_grpo: GRPOTrainer on a CPU, a few steps per line of input.

Made for trl 1.16, transformers 5.23 and torch 2.15.

    trl_grpo.py --make FOLDER CONFIG     a model folder: random weights, byte tokenizer, prompts
    trl_grpo.py FOLDER --prompts 16 --generations 8 --new 64 --precision float32 --threads 2

All answers of a step are one batch; no reference model, no gradient checkpointing, no saving;
every answer has exactly --new tokens.  --generator static uses a static cache, continuous
transformers' continuous batching.  First line of output: versions, after --warm-up steps.
Then for each input line, a number n, one JSON object: {"seconds": [n times], "rewards": [n means]}.
A step is timed from the moment it may begin to its on_step_end: rollout, reward, loss, backward,
clipping, AdamW.
"""

import argparse
import json
import os
import random
import re
import sys
import tempfile
import time

PROMPT_TOKENS, ROWS = 32, 512


def make(folder, config_path):
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import AutoConfig, AutoModelForCausalLM

    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(1)
    with open(config_path, encoding="utf-8") as file:
        members = json.load(file)
    config = AutoConfig.for_model(**{k: v for k, v in members.items() if k != "architectures"})
    config.bos_token_id = config.eos_token_id = config.pad_token_id = (
        None  # every answer is full length
    )
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.save_pretrained(folder)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {word: i for i, word in enumerate(alphabet)}
    for i in range(len(words), config.vocab_size):
        words[f"<|unused-{i}|>"] = i
    tokenizer = Tokenizer(models.BPE(vocab=words, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    draw = random.Random(1)
    with open(os.path.join(folder, "prompts.jsonl"), "w", encoding="utf-8") as file:
        for _ in range(ROWS):
            text = "".join(
                draw.choice("abcdefghijklmnopqrstuvwxyz ") for _ in range(PROMPT_TOKENS - 1)
            )
            file.write(json.dumps({"question": text, "answer": str(draw.randrange(10))}) + "\n")


def reward(completions, answer, **_):
    """1 where the last number is the expected one."""
    found = [re.findall(r"\d+", text) for text in completions]
    return [float(bool(numbers) and numbers[-1] == a) for numbers, a in zip(found, answer)]


class Turns:
    """Waits for its turn before a step, and reports after the last step of it."""

    def __init__(self, warm_up, new_tokens, hello):
        self.left, self.new_tokens, self.hello = warm_up, new_tokens, hello
        self.seconds, self.rewards, self.begin = [], [], 0.0

    def step_begins(self):
        if self.left == 0:
            line = sys.stdin.readline()
            if not line.strip():
                os._exit(0)  # nothing to save
            self.left = int(line)
        self.begin = time.perf_counter()

    def step_ends(self):
        self.seconds.append(time.perf_counter() - self.begin)

    def logged(self, logs):
        if "completions/mean_length" not in logs:
            return
        if logs["completions/mean_length"] != self.new_tokens:
            sys.exit(
                f"answers have {logs['completions/mean_length']} tokens, not {self.new_tokens}"
            )
        self.rewards.append(logs.get("reward"))
        self.left -= 1
        if self.left == 0:
            print(
                json.dumps(self.hello or {"seconds": self.seconds, "rewards": self.rewards}),
                flush=True,
            )
            self.hello, self.seconds, self.rewards = None, [], []


def train(options):
    import torch
    import transformers
    import trl
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, TrainerCallback
    from transformers.trainer_callback import PrinterCallback

    torch.set_num_threads(options.threads)
    with open(os.path.join(options.folder, "prompts.jsonl"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    # Temper ends a question with a line break where there is no chat template.
    data = Dataset.from_list(
        [{"prompt": r["question"] + "\n", "answer": r["answer"]} for r in rows]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=os.path.join(options.folder, "tokenizer.json")
    )
    tokenizer.pad_token = tokenizer.eos_token = f"<|unused-{len(tokenizer) - 1}|>"
    half = options.precision == "bfloat16"
    batch = options.prompts * options.generations
    with tempfile.TemporaryDirectory() as folder:
        config = trl.GRPOConfig(
            output_dir=folder,
            use_cpu=True,
            bf16=half,
            gradient_checkpointing=False,
            per_device_train_batch_size=batch,
            gradient_accumulation_steps=1,
            steps_per_generation=1,
            num_generations=options.generations,
            max_completion_length=options.new,
            num_iterations=1,
            beta=0.0,
            temperature=1.0,
            learning_rate=1e-6,
            max_grad_norm=1.0,
            max_steps=1_000_000,
            save_strategy="no",
            report_to="none",
            logging_steps=1,
            disable_tqdm=True,
            dataloader_num_workers=0,
            dataloader_pin_memory=False,
            torch_compile=options.compile,
            use_transformers_continuous_batching=options.generator == "continuous",
            cache_implementation="static" if options.generator == "static" else None,
            generation_kwargs={"min_new_tokens": options.new},
        )
        model = AutoModelForCausalLM.from_pretrained(
            options.folder, dtype=torch.float32, attn_implementation="sdpa"
        )
        hello = {
            "trl": trl.__version__,
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
        }
        turns = Turns(options.warm_up, options.new, hello)

        class Callback(TrainerCallback):
            def on_step_begin(self, args, state, control, **_):
                turns.step_begins()

            def on_step_end(self, args, state, control, **_):
                turns.step_ends()

            def on_log(self, args, state, control, logs=None, **_):
                turns.logged(logs or {})

        trainer = trl.GRPOTrainer(
            model=model,
            args=config,
            reward_funcs=reward,
            train_dataset=data,
            processing_class=tokenizer,
            callbacks=[Callback],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("config", nargs="?")
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--prompts", type=int, default=16)
    parser.add_argument("--generations", type=int, default=8)
    parser.add_argument("--new", type=int, default=64)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument(
        "--generator", choices=("dynamic", "static", "continuous"), default="dynamic"
    )
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warm-up", type=int, default=2)
    options = parser.parse_args()
    if options.make:
        make(options.folder, options.config)
    else:
        train(options)


if __name__ == "__main__":
    main()
