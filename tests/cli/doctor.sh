# What doctor says is what training says: the same sentence, the same exit status; where doctor finds nothing a run begins.
. "$SOURCE/tests/cli/lib.sh"
make_model
run doctor --seconds 0.1
expect 0
expect_out "GEMM f32"
give_ceilings

sft="$SOURCE/recipes/sft.yaml policy.model_name=model policy.tokenizer.chat_template=null data.train.data_path=text.jsonl
     data.train.split_validation_size=0 policy.max_total_sequence_length=32"
dpo="$SOURCE/recipes/dpo.yaml policy.model_name=model policy.tokenizer.chat_template=null data.train.data_path=pairs.jsonl
     data.train.split_validation_size=0 policy.max_total_sequence_length=32 dpo.max_num_steps=1"
write_grpo "num_generations_per_prompt: 2, max_num_steps: 4, max_num_epochs: 9" \
    "mine: {type: program, command: [sh, judge.sh], timeout: 600, num_workers: 1}"
cat >judge.sh <<'END'
while read -r line; do
    id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
    echo "{\"id\":$id,\"reward\":$((id % 2))}"
done
END
printf '{"prompt": "the quick", "chosen": " brown", "rejected": " dog"}\n{"prompt": "the lazy", "chosen": " dog", "rejected": " fox"}\n' >pairs.jsonl
printf '{"question": "the quick", "answer": "1"}\n{"question": "brown fox", "answer": "2"}\n' >rows.jsonl

# good WORDS...: doctor finds nothing, and a run begins; whoever only looked left no run behind.
good() {
    rm -rf runs
    # shellcheck disable=SC2068
    run doctor --cached $@
    expect 0
    ! grep -qE 'FAILED|unknown: ' out || fail "$last: something is wrong"
    [ ! -e runs ] || fail "doctor left a run folder"
    # shellcheck disable=SC2068
    run train --quiet $@
    expect 0
}

# bad TEXT WORDS...: training ends with a sentence that has TEXT, and doctor with the same, both with status 2.
bad() {
    text=$1
    shift
    rm -rf runs
    # shellcheck disable=SC2068
    run train --quiet $@
    expect 2 "$text"
    sentence=$(sed -n 's/^temper: //p' err)
    rm -rf runs
    # shellcheck disable=SC2068
    run doctor --cached $@
    [ "$status" = 2 ] || fail "$last: exit status $status, not 2"
    cat out err | grep -qF -- "$sentence" || fail "$last: doctor does not say '$sentence'"
}

good $sft
good $dpo
good grpo.yaml

# Data: every row of every file, and the files that the configuration names.
bad nosuch.jsonl $sft data.train.data_path=nosuch.jsonl
printf '{"text": "a b"}\n{"text": "c d"}\n{"text": "e \n{"text": "f g"}\n' >middle.jsonl
bad middle.jsonl:3 $sft data.train.data_path=middle.jsonl
bad middle.jsonl:3 $sft data.validation.data_path=middle.jsonl
bad nosuch.jsonl $sft data.validation.data_path=nosuch.jsonl
bad nosuch.txt $sft data.default.prompt_file=nosuch.txt
bad nosuch.txt $sft data.train.system_prompt_file=nosuch.txt
bad nosuch.jinja $sft policy.tokenizer.chat_template=nosuch.jinja
bad 'chat_template "chatml.j2" is neither' $sft policy.tokenizer.chat_template=chatml.j2
printf 'sys \377' >latin.txt
for recipe in "$sft" "$dpo" grpo.yaml; do
    bad "latin.txt is not UTF-8 text" $recipe data.train.system_prompt_file=latin.txt
done
printf '{"prompt": [{"role": "user", "content": "2+2?"}], "solution": "4"}\n' >trl.jsonl
bad trl.jsonl:1 $sft data.train.data_path=trl.jsonl
printf '{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": 7}]}\n' >tools.jsonl
bad tools.jsonl:1 $sft data.train.data_path=tools.jsonl
printf '{"prompt": "only"}\n' >only.jsonl
bad only.jsonl:1 $dpo data.train.data_path=only.jsonl
bad only.jsonl:1 $dpo data.validation.data_path=only.jsonl
printf '{"question": "a b", "answer": "1"}\n{"question": "a b", "answer"\n' >half.jsonl
bad half.jsonl:2 grpo.yaml data.train.data_path=half.jsonl
bad half.jsonl:2 grpo.yaml data.validation.data_path=half.jsonl
printf '%s' '{% for m in messages %}{% if "fox" in m.content %}{{ raise_exception("no foxes") }}{% endif %}{{ m.content }}{% endfor %}' >fox.jinja
bad "no foxes" grpo.yaml policy.tokenizer.chat_template=fox.jinja

bad "data.train.max_samples: sft takes every row" $sft data.train.max_samples=1

# A key that this algorithm does not look at is named, by both.
rm -rf runs
# shellcheck disable=SC2086
run train --progress plain $dpo data.train.system_key=sys
expect_out "note: data.train.system_key: no effect in dpo"
rm -rf runs
# shellcheck disable=SC2086
run doctor --cached $dpo data.train.system_key=sys
expect_out "note             data.train.system_key: no effect in dpo"
rm -rf runs

# Models and tokenizers.
mkdir empty cut
cp model/config.json model/tokenizer* empty
bad empty $sft policy.model_name=empty policy.tokenizer.name=model
cp model/* cut
truncate -s 20000 cut/model.safetensors
bad cut/model.safetensors $sft policy.model_name=cut policy.tokenizer.name=model
mkdir large
cp "$SOURCE/tests/data/tokenizers/gpt2.json" large/tokenizer.json
bad "they do not belong together" $sft policy.tokenizer.name=large
bad nosuch $sft policy.model_name=nosuch

# Settings.
bad "does not divide the 4 answers of a rollout" grpo.yaml policy.train_global_batch_size=3
bad max_num_steps $sft sft.max_num_steps=0
bad "a file of that name is in the way" $sft run.dir=text.jsonl/run checkpointing.checkpoint_dir=here
bad policy.engine $sft policy.engine=7
bad "there is no stage 'nonsense'" $sft engine.dump=[nonsense]

# Judges.
bad /nonexistent/x grpo.yaml 'env.mine.command=[/nonexistent/x]'
bad timeout grpo.yaml env.mine.timeout=soon
cat >nonsense.sh <<'END'
while read -r line; do echo hello; done
END
run train --quiet grpo.yaml 'env.mine.command=[sh,nonsense.sh]'
expect 2 "the answer is no JSON: 'hello'"
rm -rf runs
run doctor --cached grpo.yaml 'env.mine.command=[sh,nonsense.sh]'
expect 2
expect_out "judge            FAILED: " "the answer is no JSON: 'hello'"
run doctor --cached grpo.yaml
expect 0
expect_out "judge            ok: reward 0 for the expected answer"

# The rows of a validation file are counted.
rm -rf runs
# shellcheck disable=SC2086
run train --progress plain $sft data.validation.data_path=text.jsonl
expect 0
expect_out "examples   2 to train, 2 to validate"
rm -rf runs

# A run that is there: refused as training refuses it, continued as training continues it.
run train --quiet $sft
expect 0
# shellcheck disable=SC2086
run doctor --cached $sft
expect 2
expect_out "run 'runs/sft' exists: continue it with --resume or choose another run.name"
# shellcheck disable=SC2086
run doctor --cached --resume $sft
expect 0
expect_out "weights          ok: of the checkpoint at step 1"
# shellcheck disable=SC2086
run doctor --cached --resume $sft sft.seed=77
expect 2
expect_out "was saved with seed 42, this run has 77"

# Whatever is wrong, what comes after it is looked at or told to be unknown, a run that is to go on too.
"$TEMPER" train --quiet grpo.yaml >out 2>err || fail "a run of GRPO"
# shellcheck disable=SC2086
"$TEMPER" train --quiet $dpo >out 2>err || fail "a run of DPO"
for name in sft dpo grpo; do
    case $name in sft) recipe=$sft ;; dpo) recipe=$dpo ;; grpo) recipe=grpo.yaml ;; esac
    exec 9<>runs/$name/.lock
    for wrong in "flock -n 9" policy.model_name=nosuch policy.tokenizer.name=nosuch data.train.data_path=nosuch engine.memory_limit=1MiB \
        run.dir=text.jsonl/run checkpointing.checkpoint_dir=text.jsonl policy.model_name=cut data.train.system_prompt_file=latin.txt \
        data.validation.data_path=nosuch 'env={a: {type: program, command: [/nonexistent/x]}}'; do
        words=$wrong
        [ "$wrong" != "flock -n 9" ] || { $wrong && words=; } || fail "the lock of runs/$name"
        for resume in "" --resume; do
            # shellcheck disable=SC2086
            run doctor --cached $resume $recipe ${words:+"$words"}
            case "$status $wrong" in
            "2 "* | "5 engine."* | "0 "[ped]*) ;; # a run that goes on needs no model, an environment is GRPO's
            *) fail "$last ($wrong): exit status $status" ;;
            esac
        done
        flock -u 9
    done
    exec 9>&-
done
rm -rf runs/dpo runs/grpo

# What a run left behind.
run doctor --cached runs/sft
expect 0
expect_out "run.json         ok: finished at step 1" "1 sound, every file has its checksum"
cp -r runs/sft flipped
"$TOOL" flip flipped/checkpoints/step-1/model/model.safetensors 70000
run doctor --cached flipped
expect 2
expect_out "model.safetensors' is corrupt" "there is no sound checkpoint of it"
cp -r runs/sft short
: >short/metrics.jsonl
run doctor --cached short
expect 2
expect_out "metrics.jsonl    FAILED: 0 records up to step 0; run.json is further: records are lost"
cp -r runs/sft garbled
sed -i '1s/.*/#####/' garbled/metrics.jsonl
seq 1 2 | sed 's/.*/#####/' >>garbled/metrics.jsonl
run doctor --cached garbled
expect 2
expect_out "metrics.jsonl    FAILED: " "damaged: line 1 is no JSON, the first of 3"
cp -r runs/sft killed
sed -i 's/"state": "finished"/"state": "running"/' killed/run.json
run doctor --cached killed
expect 0
expect_out "run.json         ok: killed while it ran"
cp -r runs/sft torn
printf '{"attempt":' >torn/run.json
run doctor --cached torn
expect 2
expect_out "run.json         FAILED: torn/run.json:1"
run doctor --cached model
expect 2 "'model' is a model, not a recipe"

# Checkpoints are looked for where whoever takes the run for a model looks: wherever it was moved to, and from any folder.
grep -o '"checkpoint_dir": "[^"]*"' runs/sft/run.json >where
is "where the run says that its checkpoints are" "$(cat where)" '"checkpoint_dir": "checkpoints"'
cp -r runs/sft named
mv named/checkpoints named/kept
sed -i 's/"checkpoint_dir": "checkpoints"/"checkpoint_dir": "kept"/' named/run.json
run doctor --cached named
expect 0
expect_out "1 sound, every file has its checksum; the newest is of step 1 in 'named/kept'"
mkdir named/checkpoints # which nothing is in
run doctor --cached named
expect 0
expect_out "in 'named/kept'"
cp -r runs/sft without # whose configuration names the folder of the run that it was copied from
rm -r without/checkpoints
run doctor --cached without
expect 2
expect_out "there is no sound checkpoint of it in 'without/checkpoints'"
cp -r runs/sft mixed
sed -i "s/\"id\": \"[0-9a-f]*\"/\"id\": \"$(printf '%032d' 7)\"/" mixed/run.json
run doctor --cached mixed
expect 2
expect_out "step-1' is of another run ('sft'), and --resume refuses a folder with it; move it away"
rm -r mixed

# An evaluation: the same.
eval="$SOURCE/recipes/eval.yaml generation.model_name=model tokenizer.chat_template=null data.data_path=rows.jsonl
      generation.max_new_tokens=4"
# shellcheck disable=SC2086
run doctor --cached $eval
expect 0
expect_out "questions        ok: rows.jsonl" "judge            ok: reward 1 for the expected answer" "model            ok: llama"
# shellcheck disable=SC2086
run doctor --cached $eval data.data_path=half.jsonl
expect 2
expect_out "questions        FAILED: half.jsonl:2"
# shellcheck disable=SC2086
run doctor --cached $eval generation.model_name=cut tokenizer.name=model
expect 2
expect_out "model            FAILED: " cut/model.safetensors
finish
