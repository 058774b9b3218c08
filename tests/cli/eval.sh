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
run eval eval.yaml data.env_name=judge "env={judge: {type: program, command: [sh, -c, 'echo no numpy >&2; exit 3'], max_failures: 3, backoff: 0.001, retries: 9}}"
expect 2 "lost 3 times in a row" "exit status 3; it said: no numpy"

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
run eval compare a.json nowhere.json
expect 2 "nowhere.json"
echo '{}' >bad.json
run eval compare a.json bad.json
expect 2 "'bad.json' is no evaluation"
run eval compare a.json
expect 2 "expected two files"

# Made questions, and countdown.
run eval generation.model_name=model data.dataset_name=countdown data.countdown.n_validation=3 \
    data.countdown.form=plain generation.max_new_tokens=4 tokenizer.chat_template=null
expect 0
expect_out "countdown: seed 42" "3 prompts of validation" "judged by countdown"

# What is wrong is said before the model is loaded.
run eval eval.yaml eval.k_value=9
expect 2 "eval.k_value: pass@9 needs at least 9 answers"
run eval eval.yaml env.math.tolerence=1
expect 2 "unknown key env.math.tolerence; did you mean env.math.tolerance?"
run eval eval.yaml data.env_name=maths
expect 2 "there is no environment \"maths\""
run eval eval.yaml evall.seed=1
expect 2 "unknown key evall; known keys at the top are seed, eval, generation"
run eval eval.yaml data.data_path=null
expect 2 "there are no questions"
run eval eval.yaml data.data_path=missing.jsonl
expect 2 "missing.jsonl"
run eval eval.yaml generation.model_name=nowhere
expect 2 "'nowhere' is neither a model folder"
printf '{"question": "a", "answer": "1"}\n{"question": 7}\n' >bad.jsonl
run eval eval.yaml data.data_path=bad.jsonl
expect 2 "bad.jsonl:2:" "\"question\", the question, is a number"
run eval
expect 2 "generation.model_name: must be set"
run eval generation.model_name=model data.data_path=sums.jsonl
expect 2 "nothing says what an answer is worth"
run eval eval.yaml generation.temperature=0
expect 0 "the 4 answers to a question are all the same"
finish
