# temper eval: the same answers for the same seed, verdicts that add up, comparisons by prompt.
. "$SOURCE/tests/cli/lib.sh"
make_model
printf '{"question": "what is %s", "answer": "#### %s"}\n' one+one 2 two+two 4 four+four 8 two+one 3 \
    >sums.jsonl
cat >judge.sh <<'END_JUDGE'
while read -r line; do
    id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
    case $line in
    *'"sample":1'*) echo "{\"id\":$id,\"reward\":NaN}" ;;
    *) echo "{\"id\":$id,\"reward\":1,\"answer\":\"x\"}" ;;
    esac
done
END_JUDGE
cat >eval.yaml <<'END_YAML'
eval: {num_tests_per_prompt: 4, k_value: [1, 2], seed: 7}
generation:
  backend: vllm
  model_name: model
  max_new_tokens: 6
  temperature: 1.0
  top_k: -1
  vllm_cfg: {async_engine: false, precision: float32, max_model_len: 64, gpu_memory_utilization: 0.9}
  colocated: {enabled: true, resources: {gpus_per_node: null}}
tokenizer: {chat_template: null}
data: {data_path: sums.jsonl}
env: {math: {num_workers: 8}}
cluster: {gpus_per_node: 1, num_nodes: 1}
END_YAML

run eval eval.yaml
expect 0
expect_out "pass@1" "pass@2" "majority@4" "sums.jsonl" "4 answers to each at temperature 1" \
    "95% interval (by prompt)" "never right"
[ -s err ] && fail "an evaluation without trouble writes to standard error"

run eval eval.yaml --out a.json --json
expect 0
is "prompts" "$("$TOOL" get out summary.n_prompts)" 4
is "samples" "$("$TOOL" get out summary.n_samples)" 16
is "id of a prompt" "$("$TOOL" get out prompts.0.id)" "sums.jsonl:1"
is "the expected answer" "$("$TOOL" get a.json prompts.1.truth)" "#### 4"
texts() { for i in 0 1 2 3; do for j in 0 1 2 3; do "$TOOL" get "$1" "prompts.$i.samples.$j.text"; done; done; }
texts a.json >first
run eval eval.yaml engine.threads=1 generation.max_running=3 --out b.json
expect 0
texts b.json >second
cmp -s first second || fail "other answers with fewer threads and places"
run eval eval.yaml eval.seed=8 --out c.json
texts c.json >second
cmp -s first second && fail "the same answers with another seed"

# Asked again, written otherwise: a judge that finds only answers to one wording right tells.
run eval eval.yaml 'eval.perturbations=[order, space, case, digits]'
expect 0
expect_out "written" "as it is" "otherwise" "it changes none of them" "paired by prompt"
run eval eval.yaml 'eval.perturbations=[space, digits]' --json
expect 0
is "prompts with blanks" "$("$TOOL" get out robustness.0.n_changed)" 4
is "prompts judged both ways" "$("$TOOL" get out robustness.0.n_prompts)" 4
is "a verdict" "$("$TOOL" get out robustness.0.verdict_adjusted)" "not shown"
is "prompts with numbers" "$("$TOOL" get out robustness.1.n_changed)" 0
run eval eval.yaml 'eval.perturbations=[shape]'
expect 2 "eval.perturbations: 'shape' is none; known are order, space, case and digits"
run eval eval.yaml 'eval.perturbations=[case, case]'
expect 2 "'case' is there twice"

# A reward in part is no right answer; NeMo RL's pass_k asks for any reward above 0.
run eval eval.yaml data.env_name=mine --out part.json \
    'env={mine: {reward_functions: [{name: format, weight: 0.5, pattern: ".*"}, {name: math_expr, weight: 0.5}]}}'
expect 0
expect_out "validation pass_k = 1.0000 (any of 4 rewards above 0)"
is "rewarded" "$("$TOOL" get part.json prompts.0.rewarded)" 4
run eval summarize part.json
expect_out "pass@1       0.0000" "validation pass_k = 1.0000 (any reward above 0)"

# Verdicts of a program: every second sample has none.
run eval eval.yaml data.env_name=judge "env={judge: {type: program, command: [sh, judge.sh], num_workers: 2}}" --json
expect 0
is "verdicts" "$("$TOOL" get out summary.n_samples)" 12
is "left out" "$("$TOOL" get out summary.n_excluded)" 4
is "of them NaN" "$("$TOOL" get out summary.excluded.nan)" 4
is "pass@1" "$("$TOOL" get out summary.pass_at_1)" 1
run eval eval.yaml data.env_name=judge "env={judge: {type: program, command: [sh, judge.sh]}}"
expect 0
expect_out "left out: 4 of 16 answers: 4 nan" "the reward is NaN"
# Answers that have half a reward are not called right.
sed 's/:1,.*}/:0.5}/' judge.sh >half.sh
run eval eval.yaml data.env_name=judge "env={judge: {type: program, command: [sh, half.sh]}}"
expect_out "pass@1           0.0000" \
    "12 answers with a reward alone, not judged right or wrong: right from a reward of 1 on"
run eval eval.yaml data.env_name=judge "env={judge: {type: program, command: [sh, -c, 'echo no numpy >&2; exit 3'], max_failures: 3, backoff: 0.001, retries: 9}}"
expect 2 "lost 3 times in a row" "exit status 3; it said: no numpy"

# Where the judge does not say what is right, rewards from the threshold on are: from 0 on as well.
run eval eval.yaml env.length={} '~env.math' eval.success_threshold=0 --json
expect 0
is "right from 0 on" "$("$TOOL" get out summary.pass_at_1)" 1

# A question longer than the window is left out, and said.
long=$(printf 'the quick brown fox %.0s' $(seq 60))
printf '{"question": "%s", "answer": "1"}\n' "$long" >>sums.jsonl
run eval eval.yaml
expect 0
expect_out "left out: 4 of 20 answers: 4 refused" "sums.jsonl:5: the prompt has"

# NeMo RL's files.
run eval eval.yaml eval.save_path=saved
expect 0
is "metric" "$("$TOOL" get saved/config.json metric)" "pass@k"
is "sample_index" "$("$TOOL" get saved/evaluation_data.json evaluation_data.5.sample_index)" 5

# Comparing.
run eval compare a.json b.json
expect 0
expect_out "pass@1       +0.0000" "equal on 4"
run compare a.json b.json
expect 0
expect_out "pass@1       +0.0000" "equal on 4"
run eval compare a.json c.json --json
expect 0
is "prompts of the pair" "$("$TOOL" get out paired.n_prompts)" 4
printf '{"question": "else", "answer": "1"}\n' >other.jsonl
run eval eval.yaml data.data_path=other.jsonl --out d.json
run eval compare a.json d.json
expect 2 "do not ask the same questions: 4 only in 'a.json' (sums.jsonl:1, sums.jsonl:2" \
    "1 only in 'd.json' (other.jsonl:1)"
cp other.jsonl sums.jsonl
run eval eval.yaml --out e.json
expect 0
run eval eval.yaml data.max_samples=1 --out f.json "data.separator=' ?'"
run eval compare e.json f.json
expect 2 "1 prompts have the same id and another wording in 'e.json' and 'f.json': sums.jsonl:1"
run eval compare a.json b.json --report report.json
expect 0
is "prompts of the report" "$("$TOOL" get report.json eval.before.n_prompts)" 4
"$TOOL" get report.json eval.after.ci95.pass_at_1 >/dev/null || fail "the report has no interval"
"$TOOL" get report.json eval.paired.p >/dev/null || fail "the report has no p"
run eval compare a.json nowhere.json
expect 2 "nowhere.json"
echo '{}' >bad.json
run eval compare a.json bad.json
expect 2 "'bad.json' is no evaluation"
run eval compare a.json
expect 2 "expected two files"

# One file in numbers: ours, and those of NeMo RL, whose NaN is no 0 here.
run eval summarize a.json
expect 0
expect_out "a.json: temper eval, model, 4 prompts, 16 answers" "pass@2" "clustered by prompt"
cat >nemo.json <<'END_NEMO'
{"evaluation_data": [{"prompt": "q1", "response": "a", "reward": 1.0}, {"prompt": "q1", "response": "b", "reward": NaN},
 {"prompt": "q2", "response": "a", "reward": 0.0}, {"prompt": "q2", "response": "b", "reward": 1.0}]}
END_NEMO
run eval summarize nemo.json --json
expect 0
is "prompts" "$("$TOOL" get out n_prompts)" 2
is "pass@1" "$("$TOOL" get out pass_at_1)" 0.75
is "left out" "$("$TOOL" get out n_excluded)" 1
is "the sum" "$("$TOOL" get out nemo_rl.eval_pass_k_sum)" 1.5
is "any right" "$("$TOOL" get out nemo_rl.validation_pass_k)" 1
cat >val_data_step10.jsonl <<'END_VAL'
{"content": [[{"role": "user", "content": "q1"}, {"role": "assistant", "content": "a"}]], "rewards": [0.5], "idx": 0}
{"content": [[{"role": "user", "content": "q2"}, {"role": "assistant", "content": "a"}]], "rewards": [1.0], "idx": 1}
END_VAL
run eval summarize val_data_step10.jsonl
expect 0
expect_out "NeMo RL validation, 2 prompts, 2 answers" "pass@1       0.5000"
run eval summarize --threshold 0.5 val_data_step10.jsonl
expect_out "pass@1       1.0000"
run eval compare nemo.json val_data_step10.jsonl
expect 0
expect_out "paired by prompt over 2 prompts"
# Behind the answer NeMo RL logs what the environment says of it, which is no part of the question;
# nor are later turns.  Pictures are: the same words about another one are another question.
for i in 0 1 2 3; do
    printf '{"content": [[{"role": "user", "content": "q%d"}, {"role": "assistant", "content": "a%d"}, {"role": "environment", "content": "says %d"}, {"role": "assistant", "content": "b"}]], "rewards": [0.5], "idx": %d}\n' \
        $((i / 2)) $i $i $i
done >val_data_step20.jsonl
run eval summarize val_data_step20.jsonl
expect 0
expect_out "2 prompts, 4 answers" "pass@2       0.0000" \
    "validation pass_k = 1.0000 (any reward above 0), eval_pass_k() = 1.0000"
# Worked examples, and whoever greets, are a part of it.
for i in 0 1 2 3; do
    printf '{"content": [[{"role": "assistant", "content": "Hello"}, {"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}, {"role": "user", "content": "q%d"}, {"role": "assistant", "content": "a%d"}, {"role": "tool", "content": "says %d"}, {"role": "assistant", "content": "b"}]], "rewards": [0.5], "idx": %d}\n' \
        $((i / 2)) $i $i $i
done >val_data_step25.jsonl
run eval summarize val_data_step25.jsonl
expect 0
expect_out "2 prompts, 4 answers"
for i in 0 1 2 3; do
    printf '{"content": [[{"role": "user", "content": [{"type": "image", "image": "p%d"}, {"type": "text", "text": "how many?"}]}, {"role": "assistant", "content": "a"}]], "rewards": [1], "idx": %d}\n' \
        $((i / 2)) $i
done >val_data_step30.jsonl
run eval summarize val_data_step30.jsonl
expect 0
expect_out "2 prompts, 4 answers"
echo '{"content": [[{"role": "user", "content": ""}, {"role": "assistant", "content": "a"}]], "rewards": [1], "idx": 0}' \
    >val_data_step40.jsonl
run eval summarize val_data_step40.jsonl
expect 2 "val_data_step40.jsonl:1:" "no conversation of a question with a text and an answer"

# Worse in the reward alone is not called no difference.
rewards() { # VALUE: of every answer but the last digit
    for i in 1 2 3 4 5 6 7 8; do
        printf '%s{"prompt": "q%d", "response": "a", "reward": 0.%d%d}' \
            "$([ $i = 1 ] && echo '{"evaluation_data": [' || echo ', ')" $i "$1" $i
    done
    echo ']}'
}
rewards 6 >before.json
rewards 2 | sed 's/0.23/0.24/' >after.json
run eval compare before.json after.json
expect 1
expect_out "mean reward  -0.39" ": worse"
grep -q "No difference is shown" out && fail "worse, and no difference"

# The validations of a run: ours, and what NeMo RL makes of TensorBoard files.
mkdir dpo-run
cat >dpo-run/metrics.jsonl <<'END_RUN'
{"v":1,"step":0,"m":{"validation-default/accuracy":0.5,"validation-default/num_valid_samples":100,"validation-default/loss":0.6931}}
{"v":1,"step":10,"m":{"validation-default/accuracy":0.7,"validation-default/num_valid_samples":100,"validation-default/loss":0.6}}
{"v":1,"step":10,"m":{"validation-default/accuracy":0.8,"validation-default/num_valid_samples":100,"validation-default/loss":0.5}}
{"v":1,"step":11,"m":{"trai
END_RUN
run eval summarize dpo-run --json
expect 0
is "points" "$("$TOOL" get out validations.0.points.1.accuracy)" 0.8
is "no third point" "$("$TOOL" get out validations.0.points.2.accuracy 2>/dev/null)" ""
# Wilson at 80 of 100, and Newcombe's difference with 50 of 100.
case $("$TOOL" get out validations.0.points.1.ci) in
'[0.711170'*',0.866633'*) ;;
*) fail "Wilson's interval is $("$TOOL" get out validations.0.points.1.ci)" ;;
esac
run eval summarize dpo-run
expect_out "validation default of DPO at 2 steps" "last - first: +0.3000"
echo '{"validation/accuracy": {"10": 0.25, "20": 0.5}, "train/loss": {"1": 2}}' >metrics.json
run eval summarize metrics.json
expect 0
expect_out "validation of GRPO at 2 steps" "last - first: +0.2500"
echo '{"train/loss": {"1": 2}}' >metrics.json
run eval summarize metrics.json
expect 2 "has no validation accuracies" "'temper metrics' and 'temper analyze' read any run"

# Files that no evaluation writes.
prompt() { printf '{"kind": "temper-eval", "version": %s, "prompts": [{"id": "p", "n": %s, "correct": %s, "mean_reward": 0, "majority": %s}]}' "$@"; }
prompt 1 1000000000000000000 500000000000000000 0 >odd.json
run eval summarize odd.json
expect 2 "odd.json:1: a prompt has more than 1048576 answers"
prompt 1 4 2 7 >odd.json
run eval summarize odd.json
expect 2 "odd.json:1: \"majority\" of a prompt must be between 0 and 1"
prompt 99 4 2 0 >odd.json
run eval summarize odd.json
expect 2 "odd.json:1: \"version\" is not 1"
prompt 1 4 2 0 | sed 's/"n": 4/"n": 4, "rewarded": 9/' >odd.json
run eval summarize odd.json
expect 2 'odd.json:1: a prompt has more "rewarded" answers than "n"'
prompt 1 4 2 0 >odd.json # of an earlier version: not said, not guessed
run eval summarize odd.json
expect 0
expect_out "validation pass_k = - (any reward above 0)"
prompt 1 0 0 null >odd.json
run eval summarize odd.json
expect 0
expect_out "eval_pass_k() = - (the sum of pass@1, with the sum of rewards)"

printf 'not json' >bad.jsonl
run eval summarize bad.jsonl
expect 2 "bad.jsonl:1:"

# Made questions, and countdown.
run eval generation.model_name=model data.dataset_name=countdown data.countdown.n_validation=3 \
    data.countdown.form=plain generation.max_new_tokens=4 tokenizer.chat_template=null
expect 0
expect_out "countdown: seed 42" "3 prompts of validation" "judged by countdown"

# A run folder is its newest checkpoint; the questions are those of its training.
write_recipe tiny.yaml
run train --quiet tiny.yaml
expect 0
run eval generation.model_name=runs/tiny data.dataset_name=arithmetic generation.max_new_tokens=4 \
    "data.arithmetic={n_validation: 8, digits: 1, operators: '+'}" --json
expect 0
is "the model" "$("$TOOL" get out model)" "runs/tiny/checkpoints/step-6/model"
is "made questions" "$("$TOOL" get out summary.n_prompts)" 8

run eval runs/tiny
expect 2 "'runs/tiny' is a run, not a configuration of an evaluation" \
    "generation.model_name=runs/tiny"

# What is wrong is said before the model is loaded.
printf x >afile
run eval eval.yaml generation.model_name=nowhere eval.save_path=afile/x
expect 2 "eval.save_path: " "afile"
run eval eval.yaml generation.model_name=nowhere eval.save_path=-
expect 2 "eval.save_path: '-' is a stream"
run doctor --cached eval.yaml eval.save_path=afile/x
expect 2 "eval.save_path: " "afile"
# /proc says that anybody may write there.
run eval eval.yaml generation.model_name=nowhere eval.save_path=/proc/x
expect 2 "eval.save_path: " "/proc"
run eval eval.yaml generation.model_name=nowhere --out /proc/x.json
expect 4 "/proc/x.json"
run eval eval.yaml 'generation.stop_strings=[x, ""]'
expect 2 "generation.stop_strings: the text at place 2 is empty"
run eval eval.yaml --out nowhere/a.json
expect 2 "cannot write to 'nowhere/a.json': its folder does not exist"
run eval eval.yaml eval.k_value=9
expect 2 "eval.k_value: pass@9 needs at least 9 answers"
run eval eval.yaml env.math.tolerence=1
expect 2 "unknown key env.math.tolerence; did you mean env.math.tolerance?"
run eval eval.yaml data.env_name=maths
expect 2 "there is no environment \"maths\""
run eval eval.yaml evall.seed=1
expect 2 "unknown key evall; did you mean eval?"
run eval eval.yaml other.seed=1
expect 2 "unknown key other; known keys at the top are seed, eval, generation"
run eval eval.yaml data.data_path=null
expect 2 "there are no questions"
run eval eval.yaml data.data_path=missing.jsonl
expect 2 "missing.jsonl"
run eval eval.yaml generation.model_name=nowhere
expect 2 "there is no model 'nowhere'; models are not downloaded"
printf '{"question": "a", "answer": "1"}\n{"question": 7}\n' >bad.jsonl
run eval eval.yaml data.data_path=bad.jsonl
expect 2 "bad.jsonl:2:" "\"question\", the question, is a number"
run eval
expect 2 "generation.model_name: must be set"
run eval generation.model_name=model data.data_path=sums.jsonl
expect 2 "nothing says what an answer is worth"
run eval eval.yaml generation.temperature=0
expect 0 "the 4 answers to a question are all the same"
# Rewards near the end of a number are told as they are, not by their first thirty digits.
printf '{"evaluation_data": [{"prompt": "a", "response": "b", "reward": 1e308}, {"prompt": "c", "response": "b", "reward": 1}]}' >large.json
printf '{"evaluation_data": [{"prompt": "a", "response": "b", "reward": 1}, {"prompt": "c", "response": "b", "reward": 1}]}' >plain.json
run eval summarize large.json
expect 0
expect_out "mean reward  5e+307  (-Infinity .. Infinity)"
run eval compare large.json plain.json
[ "$status" -le 1 ] || fail "$last: exit status $status"
expect_out "mean reward  -5e+307"
awk 'length > 200' out | grep -q . && fail "a number of three hundred digits"
finish
