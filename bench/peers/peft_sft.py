"""PyTorch's side of compare_lora: steps of LoRA by transformers and PEFT, one for each line of standard input.

Made for torch 2.15, transformers 5.23 and peft 0.21 on a CPU.

The model is made in the base's type from config.json, adapters are on every linear module, AdamW is
fused, logits and loss are those of the model's own forward().  Rows are padded to the longest of their
micro-batch and the answers alone are trained, as TRL's trainer does it.  A line of input asks for a
step; the answer is one JSON object: {"seconds", "loss", "peak_bytes" (resident, since the model was
loaded)}.  The first line of output says what runs.
"""

import argparse
import json
import sys
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", required=True, help="folder with config.json")
    parser.add_argument("--rows", required=True, help="JSON: batches of [tokens, trained at the end]")
    parser.add_argument("--micro-batch", type=int, default=8, help="rows at once")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--adapters", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--checkpointing", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def peak_bytes():
    for line in open("/proc/self/status", encoding="ascii"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def micro_batches(rows, size, vocabulary):
    """Ids at random, padded behind the rows; -100 where nothing is trained."""
    import torch

    for first in range(0, len(rows), size):
        part = rows[first : first + size]
        longest = max(tokens for tokens, _ in part)
        ids = torch.randint(vocabulary, (len(part), longest))
        mask = torch.zeros(len(part), longest, dtype=torch.long)
        labels = torch.full((len(part), longest), -100)
        for i, (tokens, trained) in enumerate(part):
            mask[i, :tokens] = 1
            labels[i, tokens - trained : tokens] = ids[i, tokens - trained : tokens]
        full = bool(mask.all())
        yield {"input_ids": ids, "labels": labels, **({} if full else {"attention_mask": mask})}


def main():
    o = arguments()
    import peft
    import torch
    import transformers

    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    config = transformers.AutoConfig.from_pretrained(o.config)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.config.use_cache = False
    settings = peft.LoraConfig(r=o.rank, lora_alpha=o.rank, target_modules="all-linear", task_type="CAUSAL_LM")
    if o.checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    model = peft.get_peft_model(model, settings, autocast_adapter_dtype=o.adapters == "float32")
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4, fused=True)
    batches = json.load(open(o.rows, encoding="utf-8"))
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5\n")  # the peak from here on: loading does not count
    print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__,
                      "peft": peft.__version__, "trained": sum(p.numel() for p in trained),
                      "adapters": str(trained[0].dtype), "base": str(model.dtype)}), flush=True)
    for step, _ in enumerate(sys.stdin):
        rows = batches[step % len(batches)]
        wanted = sum(trained for _, trained in rows)
        began, total = time.perf_counter(), 0.0
        for batch in micro_batches(rows, o.micro_batch, config.vocab_size):
            loss = model(**batch, num_items_in_batch=wanted).loss
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(json.dumps({"seconds": time.perf_counter() - began, "loss": total, "peak_bytes": peak_bytes()}), flush=True)


if __name__ == "__main__":
    main()
