"""PyTorch's side of compare_generation: a worker that times one case per line of input.

Made for torch 2.15 and transformers 5.23 on a CPU.

    torch_generation.py FOLDER --threads 2 --cases prefill,prefill_compiled,decode,decode_compiled

The model of FOLDER in bf16 with SDPA, without gradients.  Compiled means torch.compile with
Inductor's freezing (weights are constants, packed once for oneDNN).  `prefill*` is one forward
pass over --prompt tokens that asks for the last logits alone, `decode*` greedy tokens of one
sequence after --context tokens, with a static KV cache.
First line of output: versions.  Then for each input line, the name of a case, one JSON object
{"case", "tokens_per_s"}: the median of --repeats.
"""

import argparse
import json
import statistics
import sys
import time

import torch
import torch._inductor.config as inductor
import transformers
from transformers import AutoModelForCausalLM, StaticCache


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cases", default="prefill,prefill_compiled,decode,decode_compiled")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--context", type=int, default=16)
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


class Peer:
    def __init__(self, options):
        self.options = options
        self.model = AutoModelForCausalLM.from_pretrained(
            options.folder, dtype=torch.bfloat16, attn_implementation="sdpa"
        ).eval()
        vocabulary = self.model.config.vocab_size
        self.prompt = torch.randint(0, vocabulary, (1, options.prompt))
        self.start = torch.randint(0, vocabulary, (1, options.context))
        self.token = torch.randint(0, vocabulary, (1, 1))
        length = -(-(options.context + options.new) // 16) * 16
        self.cache = StaticCache(config=self.model.config, max_cache_len=length)
        self.compiled = torch.compile(self.prefill_pass, dynamic=False)
        self.compiled_step = torch.compile(self.decode_step, dynamic=False)

    def prefill_pass(self, ids):
        return self.model(input_ids=ids, use_cache=False, logits_to_keep=1).logits

    def decode_step(self, token, position, cache):
        logits = self.model(
            input_ids=token, position_ids=position, past_key_values=cache, use_cache=True
        ).logits
        return logits[:, -1].argmax(-1, keepdim=True)

    def fill_cache(self):
        self.cache.reset()
        self.model(
            input_ids=self.start, past_key_values=self.cache, use_cache=True, logits_to_keep=1
        )

    def decode(self, step):
        cache, token = self.cache, self.token
        self.fill_cache()
        positions = [torch.tensor([[self.options.context + i]]) for i in range(self.options.new)]
        begin = time.perf_counter()
        for position in positions:
            token = step(token, position, cache)
        self.last_token = int(token)
        return self.options.new / (time.perf_counter() - begin)

    def prefill(self, forward):
        begin = time.perf_counter()
        forward(self.prompt)
        return self.options.prompt / (time.perf_counter() - begin)

    def time(self, case):
        kind, compiled = case.split("_")[0], case.endswith("_compiled")
        if kind == "prefill":
            return self.prefill(self.compiled if compiled else self.prefill_pass)
        return self.decode(self.compiled_step if compiled else self.decode_step)


def main():
    options = arguments()
    inductor.freezing = True
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    peer = Peer(options)
    with torch.no_grad():
        for case in options.cases.split(","):
            for _ in range(2):
                peer.time(case)
        print(
            json.dumps(
                {
                    "torch": torch.__version__,
                    "transformers": transformers.__version__,
                    "capability": torch.backends.cpu.get_cpu_capability(),
                    "threads": torch.get_num_threads(),
                }
            ),
            flush=True,
        )
        for line in sys.stdin:
            rates = [peer.time(line.strip()) for _ in range(options.repeats)]
            print(
                json.dumps({"case": line.strip(), "tokens_per_s": statistics.median(rates)}),
                flush=True,
            )


if __name__ == "__main__":
    main()
