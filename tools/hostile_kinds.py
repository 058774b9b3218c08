"""Further kinds for hostile_inputs.py: what surrounds a file (its kind, name, encoding, the stream it comes by), what is typed
(options, keys, variables of the environment), what runs (templates, patterns, judges), and other trainers' files."""

import json
import os
import socket
import subprocess

from hostile_damage import LIMITS, R, graft, shake

t = None  # hostile_inputs.py itself: its folders and add()


def limit():
    """A word of a command line."""
    return str(R.choice(LIMITS + ["true", "%s%n", "6GiB", "1e-400", "--", "=", "{a: 1", "[" * 300, "\n", "${x}", "0x10", "1,2",
                                  "*"])).replace("\0", "")[:5000]


def inner():
    """A folder from which the paths among LIMITS stay within ours."""
    at = t.WORK / "a/b/c/d"
    at.mkdir(parents=True, exist_ok=True)
    return at


NEMO = {"sft": {"max_num_epochs": 1, "max_num_steps": 60, "val_period": 10, "seed": 42},
        "checkpointing": {"enabled": True, "metric_name": "val:val_loss", "keep_top_k": 3},
        "policy": {"model_name": "m", "tokenizer": {"name": "${policy.model_name}", "chat_template": None}, "train_global_batch_size": 32,
                   "dtensor_cfg": {"enabled": True, "tensor_parallel_size": 1}, "megatron_cfg": {"enabled": False, "optimizer": {"lr": 5e-6}},
                   "optimizer": {"name": "torch.optim.AdamW", "kwargs": {"lr": 5e-6, "betas": [0.9, 0.98]}}},
        "data": {"max_input_seq_length": 1024, "train": {"dataset_name": "squad"}}, "logger": {"wandb_enabled": False},
        "cluster": {"gpus_per_node": 1}}
TRL = {"learning_rate": 2e-5, "per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "max_steps": 10, "lr_scheduler_type": "cosine",
       "warmup_ratio": 0.1,
       "bf16": True, "model_name_or_path": "m", "beta": 0.1, "num_generations": 8, "reward_funcs": ["accuracy"], "max_length": 128,
       "optim": "adamw_torch"}
AXOLOTL = {"base_model": "m", "datasets": [{"path": "rows.jsonl", "type": "chat_template"}], "micro_batch_size": 2, "gradient_accumulation_steps": 1,
           "num_epochs": 1,
           "sequence_len": 128, "sample_packing": True, "adapter": "lora", "lora_r": 8, "lora_alpha": 16, "lora_target_modules": ["q_proj"],
           "learning_rate": "2e-4", "optimizer": "adamw_8bit"}


def imports(i):
    trees = {"nemo-rl": NEMO, "trl": TRL, "axolotl": AXOLOTL}
    name = R.choice(list(trees))
    at = t.WORK / f"import-{i}.yaml"
    at.write_bytes(graft(trees[name], R.choice(list(trees.values()))))
    t.add("import", at, ["config", "import", at], ["config", "import", at, t.WORK / f"imported-{i}.yaml", "--from", name, "--algorithm",
                                                 R.choice(["sft", "dpo", "grpo"]), "--partly", *R.choice([[], ["--json"], ["--rows", "9"]])])


TEMPLATES = [
    "{% for i in range(10**9) %}{{ i }}{% endfor %}", "{{ 'x' * 10**10 }}", "{{ messages * 10**9 }}",
    "{% for m in messages %}" * 300 + "x" + "{% endfor %}" * 300,
    "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}", "{{ messages.__class__.__mro__ }}", "{{ raise_exception('\x1b[31m\u202e') }}",
    "{{ " + "(" * 9000,
    "{{ " + "not " * 9000 + "x }}", "{{ 1 // 0 }}", "{{ 1 % 0 }}", "{{ (-9223372036854775807 - 1) // -1 }}", "{{ (-9223372036854775807 - 1) % -1 }}",
    "{{ 2 ** 10**6 }}",
    "{{ 'a'[::0] }}", "{{ 'abc'[-9**30:9**30:-1] }}", "{{ 'abc'.split('') }}", "{{ 'abc'.replace('', 'x' * 99999).replace('x', 'y' * 99999) }}",
    "{{ '%999999999d' % 1 }}", "{{ 'a' ~ 10**400 }}", "{% generation %}{% generation %}{% endgeneration %}", "{{", "{#", "{% raw %}", "{% endfor %}",
    "{% set messages = 3 %}",
    "{{ ['a'] | join('b' * 10**8) }}", "{% for a in messages recursive %}{{ loop(messages) }}{% endfor %}", "{{ strftime_now('%' * 5000) }}",
    "{{ strftime_now(1) }}",
    "{{ messages[0].content[10**20] }}", "{{ messages[-10**20] }}", "{{ namespace }}",
    "{% set ns = namespace(a=messages) %}{% set ns.a = ns %}{{ ns }}", "{{ messages | tojson(indent=10**9) }}",
    "{{ messages | tojson(indent=-1) }}", "{{ 1e308 * 10 }}", "{{ [] | first }}", "{{ messages | map(attribute='content') | list }}",
    "{{ 'ß\udcff' | upper }}", "{% if messages %}", "\0",
    "{% for i in range(0, 10**18, 1) %}{% break %}{% endfor %}", "{% for i in range(3) %}{% continue %}{% endfor %}", "{{ range(10**15) | length }}",
    "{{ 'a' * -5 }}", "{{ messages.append(messages) }}{{ messages }}",
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"]


def templates(i):
    text = "".join(R.choice(TEMPLATES) for _ in range(R.randrange(1, 4))).encode("utf-8", "surrogatepass")
    if R.random() < 0.3:
        text = shake(text, len(text))
    at = t.folder(f"template-{i}", {"chat_template.jinja": text}, t.WORK / "model")
    rows = t.WORK / f"template-{i}.jsonl"
    rows.write_text(json.dumps({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}) + "\n")
    t.add("template", at, ["generate", at, "--chat", "-m", "1", "x"], t.quiet(at, rows, f"policy.tokenizer.chat_template={at}/chat_template.jinja"))


PATTERNS = ["(a+)+$", "(a|aa)+$", "(?R)", "(?<=a*)b", "(?:a{0,65535}){0,65535}", "[", "(?i)\u017f", "(?P<x>a)(?P<x>b)", "\\C", "(*LIMIT_MATCH=1)a",
            "", "^", "(?=)", ".*?", "\\p{Nope}", "(?:(?:(?:a*)*)*)*b",
            "(" * 300 + "a" + ")" * 300, "a{99999}", "\\x{110000}", "(?<!a{1,300})b", "\\K", "(?|(a)|(b))", "\ud800", "[^\\s\\p{L}\\p{N}]+", "(?s).",
            "\\G", "(?C1)a", "\\R+", "\\X", "$"]


def patterns(i):
    tokenizer = json.loads((t.WORK / "model/tokenizer.json").read_text())
    pattern = R.choice([{"Regex": R.choice(PATTERNS)}, {"Regex": R.choice(PATTERNS) + R.choice(PATTERNS)},
                        {"String": R.choice(["", "a", "\0", "\ud800"])}])
    split = {"type": "Split", "pattern": pattern, "behavior": R.choice(["Isolated", "Removed", "MergedWithPrevious", "Nope"]),
             "invert": R.random() < 0.5}
    replace = {"type": "Replace", "pattern": pattern, "content": R.choice(["", "a" * 9999, "aa", "\\1"])}
    steps = [R.choice([split, {"type": "ByteLevel", "add_prefix_space": True, "use_regex": R.random() < 0.5},
                       {"type": "Digits", "individual_digits": True}]) for _ in range(R.randrange(1, 4))]
    tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": steps}
    tokenizer["normalizer"] = R.choice([None, replace, {"type": "Sequence", "normalizers": [replace] * 3}, {"type": "NFKC"},
                                        {"type": "Prepend", "prepend": "\u2581" * 999}])
    at = t.folder(f"pattern-{i}", {"tokenizer.json": json.dumps(tokenizer).encode("utf-8", "surrogatepass")}, t.WORK / "model")
    t.add("pattern", at, ["generate", at, "-m", "1", R.choice(["a" * 20000 + "!", "aab" * 3000, " \u0300" * 3000, "\U0010ffff" * 900, "x"])])


def encoded(text):
    text = text.encode()
    what = R.choice(["utf-16", "utf-16-le", "utf-32", "bom", "latin", "overlong", "surrogate", "cr", "nul", "ctrl-z", "blank", "long", "deep", "half",
                     "bom inside", "ls"])
    word = text.decode()
    return {"utf-16": lambda: word.encode("utf-16"), "utf-16-le": lambda: word.encode("utf-16-le"), "utf-32": lambda: word.encode("utf-32"),
            "bom": lambda: b"\xef\xbb\xbf" + text,
            "latin": lambda: text.replace(b"quick", b"qu\xefck"), "overlong": lambda: text.replace(b"quick", b"\xc0\xaf\xe0\x80\xaf"),
            "surrogate": lambda: text.replace(b"quick", b"\xed\xa0\x80\xed\xb0\x80"),
            "cr": lambda: text.replace(b"\n", b"\r"), "nul": lambda: text.replace(b"q", b"\0"), "ctrl-z": lambda: text + b"\x1a",
            "blank": lambda: b" " * (2 << 20) + text,
            "long": lambda: text.rstrip(b"\n") + b"x" * (5 << 20), "deep": lambda: b"[" * 100000, "half": lambda: text[:len(text) // 2] + b"\xf0\x9f",
            "bom inside": lambda: text.replace(b"\n", b"\n\xef\xbb\xbf"),
            "ls": lambda: text.replace(b"\n", "\u2028".encode())}[what]()


def encodings(i):
    at = t.WORK / f"encoded-{i}"
    rules = '[{"when": "train/loss above 3", "name": "quick"}]\n'
    kind = R.randrange(7)
    at.write_bytes(encoded([(t.WORK / "text.jsonl").read_text(), (t.WORK / "recipe.yaml").read_text() + "# quick\n", "quick,y\n1,2\n3,4\n5,6\n",
                            rules, (t.WORK / "text.jsonl").read_text(),
                            (t.WORK / "run/metrics.jsonl").read_text(),
                            json.dumps({"traceEvents": [{"ph": "X", "ts": 1, "dur": 1, "pid": 1, "tid": 1, "name": "quick", "cat": "kernel"}]},
                                       indent=1)][kind]))
    t.add("encoding", at, [t.quiet(t.WORK / "model", at), ["plan", at], ["stats", at], ["alarms", t.WORK / "run", "--rules", at],
                           ["generate", t.WORK / "model", "-m", "1", "--prompts", at],
                           ["metrics", at], ["trace", at]][kind])


def place(name):
    """A path that is there, and no plain file of the sort that is expected."""
    at = t.folder(f"places-{len(t.jobs)}", {})
    at = at / R.choice([name, name, "\x1b[31m" + name, "x\n" + name, "-" + name, "%s%n" + name, "a" * 240 + name[-9:], "\u202e" + name,
                        "\udcff" + name])
    # A trace or a table may come by a pipe: that waits for its writer.
    what = R.choice(["folder" if name in ("trace.json", "table.csv") else "fifo", "folder", "dangling", "loop", "socket", "sparse", "zero", "full",
                     "empty", "tty", "mem", "self", "one"])
    if what == "fifo":
        os.mkfifo(at)
    elif what == "folder":
        at.mkdir()
    elif what == "socket":
        here = os.getcwd()
        os.chdir(at.parent)
        try:
            socket.socket(socket.AF_UNIX).bind(at.name[:100])
        except (OSError, UnicodeError):
            pass
        os.chdir(here)
    elif what == "sparse":
        with open(at, "wb") as f:
            f.truncate(R.choice([3 << 30, 1 << 42]))
    elif what in ("empty", "one"):
        at.write_bytes(b"" if what == "empty" else b"\n")
    else:
        at.symlink_to({"dangling": "nowhere", "loop": at.name, "zero": "/dev/zero", "full": "/dev/full", "tty": "/dev/tty", "mem": "/proc/self/mem",
                       "self": "."}[what])
    return at


def places(i):
    model, name = t.WORK / "model", R.choice(["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
                                              "generation_config.json"])
    changed = t.folder(f"placed-{i}", {}, model)
    (changed / name).unlink(missing_ok=True)
    (changed / name).symlink_to(place(name))
    rows, recipe, trace, table = place("rows.jsonl"), place("recipe.yaml"), place("trace.json"), place("table.csv")
    t.add("place", None, *R.sample([["generate", changed, "-m", "1", "x"], t.quiet(model, rows),
                                    t.quiet(model, t.WORK / "text.jsonl", f"policy.tokenizer.chat_template={place('t.jinja')}"),
                                    ["plan", recipe], ["config", "import", recipe], ["trace", trace], ["trace", "compare", trace, trace],
                                    ["metrics", table], ["stats", table],
                                    ["eval", "summarize", table], ["bench", "compare", table, table], ["alarms", t.WORK / "run", "--rules", recipe],
                                    ["generate", place("m.gguf"), "-m", "1", "x"],
                                    ["merge", place("adapter"), t.WORK / f"placed-{i}.merged"], ["runs", place("runs")],
                                    ["doctor", "--cached", place("run")], ["compare", table, t.WORK / "run"]], 3))


VERDICTS = ['{"id":$id,"reward":1}', '{"id":$id,"reward":1e999}', '{"id":$id,"reward":"1"}', '{"id":-$id,"reward":1}',
            '{"id":99999999999999999999,"reward":1}', '{"id":$id}', "[", "null", '"',
            '{"id":$id,"reward":1,"metrics":{"\\u001b[31m":1,"":2}}', '{"id":$id,"error":"\\u001b]0;x\\u0007\\u202e"}',
            '{"id":$id,"reward":0.5,"answer":"\\u0000"}', '{"id":$id,"reward":1}{"id":$id,"reward":0}',
            '{"id":$id,"reward":[1]}', '{"id":$id,"reward":1,"id":0}', '{"id":$id,"reward":true,"correct":"maybe"}',
            '{"id":$id,"reward":1,"metrics":7}']
MANNERS = ["", "exec 1>&-;", "exit 3;", "kill -9 $$;", "kill -SEGV $$;", "printf '\\033[31m\\000\\377' >&2;", "yes x | head -c 3000000;",
           "yes x | head -c 3000000 >&2;", "printf half;", "sleep 30;", "echo; echo;",
           "(trap '' TERM; sleep 300) &", "exec 0<&-;", "head -c 2000000 /dev/zero;", "ulimit -n 3;"]


def judges(i):
    lines = "\n".join(R.choice(MANNERS) + ' echo "' + R.choice(VERDICTS).replace('"', '\\"') + '"' for _ in range(R.randrange(1, 3)))
    before = R.choice(["", "", "", R.choice(MANNERS) + "\n"])
    (t.WORK / f"judge-{i}.sh").write_text(before + 'while read -r line; do x=${line#*\'"id":\'} id=${x%%[!0-9]*}\n' + lines + "\ndone\n")
    rows = t.WORK / "questions.jsonl"
    rows.write_text('{"question": "the quick", "answer": "1"}\n{"question": "the lazy", "answer": "2"}\n')
    env = json.dumps({"mine": {"type": "program", "command": ["sh", f"judge-{i}.sh"], "timeout": 2, "grace": 0.5, "max_failures": 2,
                               "num_workers": R.randrange(1, 3)}})
    grpo = t.WORK / "grpo.yaml"
    grpo.write_text("grpo: {num_prompts_per_step: 2, num_generations_per_prompt: 2, max_num_steps: 2, val_period: 0}\n"
                    "policy: {model_name: model, tokenizer: {chat_template: null}, train_micro_batch_size: 4,\n"
                    "         max_total_sequence_length: 32, generation: {max_new_tokens: 4}}\n"
                    "loss_fn: {reference_policy_kl_penalty: 0}\ndata: {train: {data_path: questions.jsonl}}\n"
                    "checkpointing: {enabled: false}\n")
    t.add("judge", None, R.choice([["train", "--quiet", grpo, f"env={env}", f"run.dir={t.WORK}/judged-{i}"],
                                   ["eval", "generation.model_name=model", "tokenizer.chat_template=null", "data.data_path=questions.jsonl",
                                    "generation.max_new_tokens=4", f"env={env}", "-q"]]))


def commands():
    """What each command is called with before options are added, and how long it may take."""
    w, trace = t.WORK, t.SOURCE / "tests/data/trace_reports/kineto-rank-0.json"
    table = w / "small.csv"
    table.write_text("x,y,g\n" + "".join(f"{k},{k * k % 7},{'ab'[k % 2]}\n" for k in range(12)))
    return {"train": ["train", "--quiet", w / "recipe.yaml", f"run.dir={w}/out-{len(t.jobs)}"], "plan": ["plan", w / "recipe.yaml"],
            "generate": ["generate", w / "model", "-m", "1", "x"],
            "chat": ["chat", w / "model"], "trace": ["trace", trace], "trace compare": ["trace", "compare", trace, trace],
            "trace export": ["trace", "export", trace], "trace stats": ["trace", "stats", trace],
            "runs": ["runs", w / "index"], "metrics": ["metrics", w / "run"], "alarms": ["alarms", w / "run"], "analyze": ["analyze", w / "run"],
            "compare": ["compare", w / "run", w / "index/first"],
            "stats": ["stats", table, "x"], "doctor": ["doctor", "--cached"], "config": ["config", w / "recipe.yaml"],
            "tokenizer": ["tokenizer", "new-tok", w / "corpus.txt"], "config import": ["config", "import", w / "recipe.yaml"],
            "export": ["export", w / "model", "out.gguf"], "merge": ["merge", w / "adapted", "merged"], "help": ["help"], "version": ["version"],
            "watch": ["watch", "--once", w / "run"], "simulate": ["simulate", w / "recipe.yaml", "--ranks", "2"]}


def known(cached={}):
    """Options of the commands by name."""
    if not cached:
        cached.update({c["command"]: c["options"] for c in json.loads(subprocess.run([t.TEMPER, "help", "--json"], capture_output=True,
                                                                                     env=t.ENV).stdout)})
    return cached


def words(i):
    command, start = R.choice(list(commands().items()))
    options = [o for o in known().get(command, []) if o["name"] not in ("follow", "clear", "limit")]
    added = []
    for o in R.sample(options, min(len(options), R.randrange(1, 4))):
        added.append("--" + o["name"] if o["argument"] is None else f"--{o['name']}=" + R.choice([limit(), R.choice((o["choices"] or "1").split())]))
    if R.random() < 0.2:
        added.append(limit())
    t.add("words", None, [*start, *added], cwd=inner())


VARIABLES = ["COLUMNS", "TERM", "HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "TMPDIR", "TEMPER_ISA", "TEMPER_BREAK_ISA", "TEMPER_SYSTEM_ROOT",
             "PMIX_RANK", "PMIX_NAMESPACE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "NVTX_INJECTION64_PATH",
             "NO_COLOR", "HWLOC_SYNTHETIC", "GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS", "LANG", "LC_ALL", "TZ", "OMP_NUM_THREADS",
             "NRL_NSYS_WORKER_PATTERNS", "NRL_NSYS_PROFILE_STEP_RANGE", "ARGP_HELP_FMT", "POSIXLY_CORRECT", "PATH", "ASAN_OPTIONS", "LINES"]


def variables(i):
    start = R.choice(list(commands().values()))
    changed = dict(t.ENV)
    for name in R.sample(VARIABLES, R.randrange(1, 4)):
        if name == "ASAN_OPTIONS" or R.random() < 0.15:
            changed.pop(name, None)
        else:
            changed[name] = R.choice([limit(), str(t.WORK / "text.jsonl"), "/dev/null", "/", "999999999999", "-1", "amx", "C.UTF-8"])
    t.add("variable", None, start, environment=changed, cwd=inner())


def streams(i):
    """What comes by standard input: '-', or where nothing is named."""
    trace = (t.SOURCE / "tests/data/trace_reports/kineto-rank-0.json").read_bytes()[:200000]
    rows, metrics = (t.WORK / "text.jsonl").read_bytes(), (t.WORK / "run/metrics.jsonl").read_bytes()
    question = b'{"data": {"a": [1, 2, 3], "b": [2, 3, 5]}, "ask": ["mean"]}'
    command, data = R.choice([(["trace", "-"], trace), (["trace", "export", "-", "--csv", "-o", "-"], trace),
                              (["stats", "-"], b"x,y\n1,2\n3,5\n4,4\n"), (["stats", "--json", "-"], question), (["metrics", "-"], metrics),
                              (["generate", t.WORK / "model", "--json", "-m", "1", "--prompts", "-"], rows),
                              (["generate", t.WORK / "model", "--json", "-m", "1"],
                                                                                                    b"the quick"),
                                                                                                    (["chat", t.WORK / "model", "-m", "1"],
                                                                                                     b"hello\n/reset\n/quit\n"),
                              (["plan", "-"], (t.WORK / "recipe.yaml").read_bytes()), (["config", "import", "-"], json.dumps(TRL).encode()),
                              (["eval", "summarize", "-"], b'{"evaluation_data": []}')])
    data = R.choice([b"", b"\0", data, shake(data, len(data)), data[:R.randrange(len(data))], data * 50, b"\x1f\x8b" + data,
                     b"\x28\xb5\x2f\xfd" + data, encoded(data.decode("utf-8", "replace")), b"/" * 99999, os.urandom(0) + R.randbytes(4000)])
    t.add("stream", None, command, stdin=data)


def keys(i, cached=[]):
    """Any key of a training or an evaluation with any value."""
    if not cached:
        for page, words in (("train", ["config", "--doc"]), ("eval", ["eval", "--keys"])):
            text = subprocess.run([t.TEMPER, *words], capture_output=True, env=t.ENV, text=True).stdout
            cached.extend((page, line.split("`")[1]) for line in text.splitlines() if line.startswith("| `"))
    page, key = R.choice(cached)
    if page == "eval":
        settings = ["generation.model_name=model", "tokenizer.chat_template=null", "data.data_path=questions.jsonl", "generation.max_new_tokens=4",
                    "env={math: {num_workers: 1}}", f"{key}={limit()}"]
        (t.WORK / "questions.jsonl").write_text('{"question": "the quick", "answer": "#### 1"}\n{"question": "the lazy", "answer": "#### 2"}\n')
        t.add("key", None, ["eval", "-q", *settings])
        return
    key = f"{R.choice(['', '', '', '++', '~'])}{key}={limit()}"
    t.add("key", None, ["plan", t.WORK / "recipe.yaml", key], ["config", t.WORK / "recipe.yaml", key],
          t.quiet(t.WORK / "model", t.WORK / "text.jsonl", key, f"run.dir={t.WORK}/key-{i}"))


def outputs(i):
    """Results to where something is: what is beside them, below them and behind another name stays."""
    precious = t.folder(f"precious-{i}", {"mine": b"mine"})
    os.link(precious / "mine", precious / "hard")
    (precious / "empty").mkdir()
    trace, name = t.SOURCE / "tests/data/trace_reports/kineto-rank-0.json", precious / R.choice(["hard", "mine/x", "empty",
                                                                                                 "empty/none/x", "link/", "mine\n", "x" * 300, "",
                                                                                                 "."])
    t.add("output", precious / "mine", R.choice([["trace", "export", trace, "--chrome", "-o", name], ["export", t.WORK / "model", name],
                                                 ["merge", t.WORK / "adapted", name], ["tokenizer", name, t.WORK / "corpus.txt"],
                                        ["compare", t.WORK / "run", t.WORK / "run", "--picture", f"{name}"],
                                        ["config", "import", "--from", "trl", "--partly", t.WORK / "recipe.yaml", name],
                                        ["bench", "compare", t.SOURCE / "tests/data/bench/bench.json", t.SOURCE / "tests/data/bench/bench.json",
                                         "--save", f"temper:{name}"],
                                        ["profile", t.WORK / "recipe.yaml", "--steps", "2", "--name", str(name)],
                                        ["train", "--quiet", t.WORK / "recipe.yaml", f"run.dir={name}"]]))


def kinds(tool):
    global t
    t = tool
    return imports, templates, patterns, encodings, places, judges, words, variables, streams, keys, outputs
