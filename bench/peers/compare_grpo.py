"""Steps of GRPO beside TRL's GRPOTrainer, in rounds; see bench/compare_grpo.sh.

Made for the versions that trl_grpo.py names.
"""

import argparse
import json
import os
import statistics
import tempfile

import rounds
from rounds import PeerError, Worker, environment, say
from trl_grpo import PROMPT_TOKENS

HERE = os.path.dirname(os.path.abspath(__file__))
WARM_UP = 2


def arguments():
    parser = argparse.ArgumentParser(prog="compare_grpo.sh", description=__doc__.split(";")[0])
    parser.add_argument("--build", required=True, metavar="DIR", help="Temper's build folder")
    parser.add_argument("--python", required=True, metavar="PROGRAM", help="Python that has trl")
    parser.add_argument(
        "--config",
        default=os.path.join(HERE, "..", "..", "recipes", "demo-model.json"),
        help="config.json of the model (default: that of the demo)",
    )
    parser.add_argument("--prompts", type=int, default=16, help="per step")
    parser.add_argument("--generations", type=int, default=8, help="answers per prompt")
    parser.add_argument("--new", type=int, default=64, help="tokens per answer, always")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument(
        "--generators",
        default="dynamic,static",
        help="TRL's ways to generate; the fastest of a trial is used: dynamic, static, continuous",
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--steps",
        type=int,
        default=3,
        help="steps per round of TRL; Temper makes four times as many",
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", metavar="FILE", help="every figure as JSON")
    return parser.parse_args()


class Temper:
    """`temper train` in a process per turn; times between the records of its steps, so everything
    that a step does is in them."""

    name = "temper"

    def __init__(self, options, model, folder):
        self.options, self.model, self.folder = options, model, folder
        self.env = environment(options.threads)
        self.program = os.path.join(options.build, "src", "cli", "temper")
        self.turns = 0

    def words(self, run_folder, steps):
        o = self.options
        length = PROMPT_TOKENS + o.new
        answers = o.prompts * o.generations
        return [
            self.program,
            "train",
            os.path.join(HERE, "..", "..", "recipes", "grpo.yaml"),
            f"run.dir={run_folder}",
            f"policy.model_name={self.model}",
            "policy.tokenizer.chat_template=null",
            f"policy.precision={o.precision}",
            f"policy.max_total_sequence_length={length}",
            f"policy.train_global_batch_size={answers}",
            f"policy.train_micro_batch_size={min(answers, 32)}",
            f"policy.generation.max_new_tokens={o.new}",
            f"policy.generation.max_running={answers}",
            f"grpo.num_prompts_per_step={o.prompts}",
            f"grpo.num_generations_per_prompt={o.generations}",
            f"grpo.max_num_steps={steps}",
            "grpo.max_num_epochs=100000",
            "grpo.val_period=0",
            "grpo.use_leave_one_out_baseline=false",
            "loss_fn.reference_policy_kl_penalty=0",
            f"data.train.data_path={self.model}/prompts.jsonl",
            "data.train.split_validation_size=null",
            "data.train.env_name=numeric",
            "env.numeric.answer_from=last",
            "checkpointing.enabled=false",
            f"engine.threads={o.threads}",
        ]

    def measure(self):
        """Seconds of each step after the warm-up."""
        self.turns += 1
        run_folder = os.path.join(self.folder, f"run-{self.turns}")
        rounds.run(
            self.words(run_folder, WARM_UP + 4 * self.options.steps), self.env, "temper train"
        )
        stamps, tokens = [], None
        with open(os.path.join(run_folder, "metrics.jsonl"), encoding="utf-8") as file:
            for record in map(json.loads, file):
                if record["axis"] == "train":
                    stamps.append(record["t"])
                    self.last = record["m"]
        with open(os.path.join(run_folder, "run.json"), encoding="utf-8") as file:
            tokens = json.load(file)["result"]["generated_tokens"]
        wanted = len(stamps) * self.options.prompts * self.options.generations * self.options.new
        if tokens != wanted:
            raise PeerError(f"temper generated {tokens} tokens, not {wanted}")
        return [b - a for a, b in zip(stamps[WARM_UP - 1 :], stamps[WARM_UP:])]

    def describe(self):
        return f"{self.program}, {self.options.precision}"


class Trl:
    """GRPOTrainer, alive all the time; works only in its turn."""

    name = "trl"

    def __init__(self, options, model, generator):
        self.options, self.generator = options, generator
        words = [
            options.python,
            os.path.join(HERE, "trl_grpo.py"),
            model,
            "--prompts",
            str(options.prompts),
            "--generations",
            str(options.generations),
            "--new",
            str(options.new),
            "--precision",
            options.precision,
            "--threads",
            str(options.threads),
            "--warm-up",
            str(WARM_UP),
            "--generator",
            generator,
        ]
        self.worker = Worker(
            words, environment(options.threads, HF_HUB_OFFLINE="1"), f"TRL ({generator})"
        )
        self.hello = self.worker.answer()

    def measure(self):
        return self.worker.ask(str(self.options.steps))["seconds"]

    def describe(self):
        return (
            f"{self.hello['trl']}, transformers {self.hello['transformers']}, "
            f"torch {self.hello['torch']}, "
            f"{self.options.precision}, generation with the {self.generator} cache"
        )


def choose(options, model):
    """The fastest of TRL's ways; one that fails here is said and left out."""
    best, best_time = None, float("inf")
    for generator in options.generators.split(","):
        try:
            trl = Trl(options, model, generator)
            seconds = statistics.median(trl.measure())
        except PeerError as error:
            say(f"TRL cannot: {error}")
            continue
        say(f"TRL, {generator}: {seconds:.2f} s a step in the trial")
        if seconds < best_time:
            if best:
                best.worker.close()
            best, best_time = trl, seconds
        else:
            trl.worker.close()
    if not best:
        raise PeerError("TRL runs in none of --generators")
    return best


def report(times, options):
    tokens = options.prompts * options.generations * options.new
    rows = [["seconds per step", "median", "lowest", "highest", "new tokens/s"]]
    for name, values in times.items():
        middle = statistics.median(values)
        rows.append(
            [
                name,
                f"{middle:.3f}",
                f"{min(values):.3f}",
                f"{max(values):.3f}",
                f"{tokens / middle:.0f}",
            ]
        )
    say()
    rounds.table(rows)
    text, ratio = rounds.ratio_text(times["trl"], times["temper"], 10)
    say(f"\nTRL's time over Temper's, ratio within each round: {text}")
    return ratio


def compare(options, folder):
    model = os.path.join(folder, "model")
    rounds.run(
        [options.python, os.path.join(HERE, "trl_grpo.py"), "--make", model, options.config],
        environment(options.threads, HF_HUB_OFFLINE="1"),
        "trl_grpo.py --make",
    )
    sides = {"temper": Temper(options, model, folder), "trl": choose(options, model)}
    for name, side in sides.items():
        say(f"{name}: {side.describe()}")
    say(
        f"{options.prompts} prompts of {PROMPT_TOKENS} tokens x {options.generations} answers of "
        f"{options.new} tokens, one update a step, no reference model, {options.threads} threads; "
        f"{options.rounds} rounds; one program at a time"
    )
    steps = {name: [] for name in sides}
    medians = {name: [] for name in sides}
    busy = []
    for number in range(options.rounds):
        busy.append(rounds.others_busy())
        for name in rounds.order(sides, number):
            steps[name].append(sides[name].measure())
            medians[name].append(statistics.median(steps[name][-1]))
        say(
            f"round {number + 1}: "
            + ", ".join(f"{name} {values[-1]:.3f} s" for name, values in medians.items())
            + f", ratio {medians['trl'][-1] / medians['temper'][-1]:.2f}"
        )
    last = sides["temper"].last
    say(
        "temper's last step: "
        + ", ".join(
            f"{key.rsplit('/', 1)[1]} {1e3 * value:.0f} ms"
            for key, value in last.items()
            if key.startswith("timing/train/") and value >= 0.0005
        )
    )
    ratio = report(medians, options)
    sides["trl"].worker.close()
    return {
        "options": {
            k: v for k, v in vars(options).items() if k not in ("build", "python", "config", "out")
        },
        "trl": sides["trl"].describe(),
        "step_seconds": steps,
        "medians": medians,
        "others_busy": busy,
        "ratio": ratio,
    }


def main():
    options = arguments()
    try:
        with tempfile.TemporaryDirectory() as folder:
            result = compare(options, folder)
        if options.out:
            with open(options.out, "w", encoding="utf-8") as file:
                json.dump(result, file, indent=1)
    except PeerError as error:
        rounds.fail(f"compare_grpo: {error}")
    except FileNotFoundError as error:
        rounds.fail(f"compare_grpo: {error.filename}: no such file or program; see --help")


if __name__ == "__main__":
    main()
