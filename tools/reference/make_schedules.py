"""Learning rates of torch's schedules over 50 steps, as a C table.

    make_schedules.py > tests/data/reference/schedules.inc

Each row: the schedule as policy.scheduler spells it, and the rate before each step's update for a
base rate of 0.01, from torch.optim.lr_scheduler (chained by SequentialLR where it is a list).
Versions: requirements.txt.
"""

import json

import torch
from torch.optim import lr_scheduler

STEPS = 50
CASES = [
    dict(name="LinearLR"),
    dict(name="LinearLR", kwargs=dict(start_factor=0.1, end_factor=1.0, total_iters=20)),
    dict(name="LinearLR", kwargs=dict(start_factor=1.0, end_factor=0.0, total_iters=48)),
    dict(name="LinearLR", kwargs=dict(total_iters=1)),
    dict(name="ConstantLR"),
    dict(name="ConstantLR", kwargs=dict(factor=0.25, total_iters=7)),
    dict(name="ConstantLR", kwargs=dict(factor=0.0, total_iters=100)),
    dict(name="CosineAnnealingLR", kwargs=dict(T_max=50)),
    dict(name="CosineAnnealingLR", kwargs=dict(T_max=13, eta_min=0.002)),
    dict(name="CosineAnnealingLR", kwargs=dict(T_max=1)),
    dict(name="StepLR", kwargs=dict(step_size=7)),
    dict(name="StepLR", kwargs=dict(step_size=10, gamma=0.5)),
    dict(name="ExponentialLR", kwargs=dict(gamma=0.9)),
    dict(name="torch.optim.lr_scheduler.ExponentialLR", kwargs=dict(gamma=1.1)),
    [dict(name="LinearLR", kwargs=dict(start_factor=0.1, total_iters=10)),
     dict(name="ConstantLR", kwargs=dict(factor=1.0, total_iters=100)), dict(milestones=[10])],
    [dict(name="LinearLR", kwargs=dict(start_factor=0.01, total_iters=5)),
     dict(name="CosineAnnealingLR", kwargs=dict(T_max=30, eta_min=0.001)),
     dict(name="ExponentialLR", kwargs=dict(gamma=0.5)), dict(milestones=[5, 40])],
    [dict(name="ConstantLR", kwargs=dict(factor=0.5, total_iters=3)),
     dict(name="StepLR", kwargs=dict(step_size=4)),
     dict(name="LinearLR", kwargs=dict(total_iters=6)), dict(milestones=[8, 8])],
    [dict(name="ExponentialLR", kwargs=dict(gamma=0.5)),
     dict(name="CosineAnnealingLR", kwargs=dict(T_max=9)), dict(milestones=[0])],
    [dict(name="ExponentialLR", kwargs=dict(gamma=0.97)), dict(milestones=[])],
    [dict(name="ExponentialLR", kwargs=dict(gamma=0.97))],
]


def make(item, optimizer):
    return getattr(lr_scheduler, item["name"].rsplit(".", 1)[-1])(optimizer, **item.get("kwargs", {}))


def rates(case):
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=0.01)
    if isinstance(case, dict):
        schedule = make(case, optimizer)
    else:
        parts = [make(item, optimizer) for item in case if "name" in item]
        milestones = next((item["milestones"] for item in case if "milestones" in item), [])
        schedule = lr_scheduler.SequentialLR(optimizer, parts, milestones)
    out = []
    for _ in range(STEPS):
        out.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return out


print(f"/* Made by tools/reference/make_schedules.py with torch {torch.__version__}. */")
for case in CASES:
    text = json.dumps(case).replace('"', '\\"')
    numbers = ", ".join(repr(float(r)) for r in rates(case))
    print(f'{{"{text}",\n {{{numbers}}}}},')
