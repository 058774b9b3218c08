"""Learning rates of transformers' schedules, as a C table.

    make_trl_schedules.py > tests/data/reference/trl_schedules.inc

Each row: arguments as TRL's file has them, and the rate before each update's step for a learning rate
of 0.01, from transformers.get_scheduler with the warm-up that TrainingArguments makes of them.
Versions: requirements.txt.
"""

import tempfile

import torch
import transformers
from transformers import TrainingArguments, get_scheduler

CASES = [
    dict(max_steps=20),
    dict(max_steps=20, warmup_steps=5),
    dict(max_steps=37, warmup_steps=0.1),
    dict(max_steps=20, lr_scheduler_type="cosine"),
    dict(max_steps=20, lr_scheduler_type="cosine", warmup_steps=0.15),
    dict(max_steps=20, lr_scheduler_type="cosine_with_min_lr", warmup_steps=4,
         lr_scheduler_kwargs=dict(min_lr=0.002)),
    dict(max_steps=20, lr_scheduler_type="cosine_with_min_lr",
         lr_scheduler_kwargs=dict(min_lr_rate=0.1)),
    dict(max_steps=20, lr_scheduler_type="constant", warmup_steps=7),
    dict(max_steps=20, lr_scheduler_type="constant_with_warmup", warmup_steps=7),
    dict(max_steps=1),
]


def rates(case):
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(output_dir=folder, use_cpu=True, learning_rate=0.01, **case)
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=args.learning_rate)
    n = args.max_steps
    schedule = get_scheduler(args.lr_scheduler_type, optimizer, args.get_warmup_steps(n), n,
                             scheduler_specific_kwargs=args.lr_scheduler_kwargs or {})
    out = []
    for _ in range(n):
        out.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return out


def spelled(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {v}" for k, v in value.items()) + "}"
    return str(value)


print(f"/* Made by tools/reference/make_trl_schedules.py with transformers {transformers.__version__}. */")
for case in CASES:
    text = "".join(f"{key}: {spelled(value)}\\n" for key, value in case.items())
    numbers = rates(case)
    print(f'{{"{text}", {len(numbers)},\n {{{", ".join(repr(float(r)) for r in numbers)}}}}},')
