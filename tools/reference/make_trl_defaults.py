"""Every argument of TRL's trainers and command line with its default, as one JSON object.

    make_trl_defaults.py > tests/data/reference/trl_defaults.json

{"versions": {...}, "sft": {key: default}, "dpo": {...}, "grpo": {...}, "written": {...}}: fields of SFTConfig, DPOConfig
and GRPOConfig (transformers' TrainingArguments among them), of ModelConfig and of the scripts'
arguments, as they stand before any of them is set; "written" is what to_json_string() makes of them.  tests/cli/import.sh imports each object, and an
empty one: both must become the same recipe.  Versions: requirements.txt.
"""

import dataclasses
import json

import transformers
import trl
from trl.scripts.grpo import GRPOScriptArguments


def plain(value):
    if dataclasses.is_dataclass(value) or callable(value):
        return None
    return getattr(value, "value", value)


def defaults(*classes):
    out = {}
    for kind in classes:
        for field in dataclasses.fields(kind):
            if not field.init:
                continue
            if field.default is not dataclasses.MISSING:
                out[field.name] = plain(field.default)
            elif field.default_factory is not dataclasses.MISSING:
                out[field.name] = plain(field.default_factory())
            else:
                out[field.name] = None
    return out


def written(kind):
    """What to_json_string() makes of them once they are in use."""
    args = kind(output_dir="out", use_cpu=True, bf16=False, max_steps=20)
    return json.loads(args.to_json_string())


print(json.dumps({
    "versions": {"trl": trl.__version__, "transformers": transformers.__version__},
    "sft": defaults(trl.SFTConfig, trl.ModelConfig, trl.ScriptArguments),
    "dpo": defaults(trl.DPOConfig, trl.ModelConfig, trl.ScriptArguments),
    "grpo": defaults(trl.GRPOConfig, trl.ModelConfig, GRPOScriptArguments),
    "written": {"sft": written(trl.SFTConfig), "dpo": written(trl.DPOConfig), "grpo": written(trl.GRPOConfig)},
}, indent=1))
