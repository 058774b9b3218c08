# What is misspelt on the command line or in a configuration: exit status 2, and the nearest
# word that exists.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml

run trian
expect 2 "there is no command 'trian'; did you mean 'train'"
run xyzzy
expect 2 "there is no command 'xyzzy'; see"
run eval --nope
expect 2 "there is no option '--nope'; settings are written KEY=VALUE, as generation.model_name=DIR"
run generate "$SOURCE/recipes/sft.yaml" text
expect 2 "sft.yaml' is a file, and no GGUF file"
: >empty.txt
run tokenizer out empty.txt
expect 2 "'empty.txt' is empty; there is nothing to learn from"
run doctor nosuch.yaml
expect 2 "nosuch.yaml"
run bench --save=jnuit:out.xml train/llama
expect 2 "there is no format 'jnuit'"
run trace "$SOURCE/tests/data/trace_reports/kineto-rank-0.json" operatrs
expect 2 "there is no view 'operatrs'; did you mean 'operators'"
run help genrate
expect 2 "did you mean 'generate'"

# What somebody types who knows other programs.
mkdir folder
echo '{"architectures": ["LlamaForCausalLM"], "model_type": "llama"}' >folder/config.json
echo '{"text": "a"}' >rows.jsonl
run train folder rows.jsonl
expect 2 "'folder' is a model, not a recipe; name the recipe before it, as in: sft policy.model_name=folder"
run doctor folder
expect 2 "'folder' is a model, not a recipe"
run plan folder/model.safetensors
expect 2 "'folder/model.safetensors' is a model, not a recipe"
run train rows.jsonl
expect 2 "'rows.jsonl' holds rows, it is no recipe" "data.train.data_path=rows.jsonl"
run train folder/config.json
expect 2 "it describes a model, whose folder is policy.model_name"
run plan "$SOURCE/recipes/sft.yaml" policy.model_name=rows.jsonl
expect 2 "rows.jsonl is no model: that is the folder with config.json"
run train --learning_rate 1e-4
expect 2 "there is no option '--learning_rate'; settings are written KEY=VALUE"
run plan tiny.yaml learning_rate=1e-4 num_train_epochs=2 per_device_train_batch_size=4 gradient_accumulation_stepz=1
expect 2 "unknown key learning_rate; did you mean policy.optimizer.kwargs.lr?" \
    "unknown key num_train_epochs; did you mean sft.max_num_epochs?" \
    "unknown key per_device_train_batch_size; did you mean policy.train_global_batch_size?" \
    "unknown key gradient_accumulation_stepz"
# A part of a key's name is enough to say which was meant, first one that has to be set.
run train "$SOURCE/recipes/sft.yaml" model=m
expect 2 "unknown key model; did you mean policy.model_name?"
run train model=m
expect 2 "unknown key model; did you mean policy.model_name or policy.model_config?"
run train "$SOURCE/recipes/sft.yaml" data_path=d.jsonl policy.model=m
expect 2 "unknown key data_path; did you mean data.train.data_path?" \
    "unknown key policy.model; did you mean policy.model_name?"
run train tiny.yaml epochs=3
expect 2 "unknown key epochs; did you mean sft.max_num_epochs?"
run train "$SOURCE/recipes/sft.yaml" policy.model_name=folder data=rows.jsonl
expect 2 "data: it has keys below it and takes no value; they do, such as data.train.data_path"
run train "$SOURCE/recipes/sft.yaml" policy=folder
expect 2 "they do, such as policy.model_name"
run plan tiny.yaml sft=3
expect 2 "sft: it has keys below it and takes no value; they do, such as sft."
run eval "$SOURCE/recipes/eval.yaml" data=rows.jsonl
expect 2 "they do, such as data.data_path"
run train "$SOURCE/recipes/sft.yaml" rows.jsonl
expect 2 "'rows.jsonl' is no setting; they are written KEY=VALUE: data.train.data_path=rows.jsonl"
run plan "$SOURCE/recipes/sft.yaml" folder
expect 2 "'folder' is no setting; they are written KEY=VALUE: policy.model_name=folder"
run eval "$SOURCE/recipes/eval.yaml" rows.jsonl
expect 2 "KEY=VALUE: data.data_path=rows.jsonl"
run eval "$SOURCE/recipes/eval.yaml" folder
expect 2 "KEY=VALUE: generation.model_name=folder"
run train "$SOURCE/recipes/sft.yaml" another
expect 2 "override \"another\" has no '='; write section.key=value"
run train HuggingFaceTB/SmolLM2-135M rows.jsonl
expect 2 "there is no recipe or run 'HuggingFaceTB/SmolLM2-135M'; if it is a model: models are not downloaded"
run eval model=m
expect 2 "unknown key model; did you mean generation.model_name?"
run config import folder/config.json
expect 2 "describes a model; policy.model_name is its folder"
run generate folder --max_tokens 3
expect 2 "there is no option '--max_tokens'; did you mean '--max-new-tokens'"
run sft
expect 2 "'sft' is a recipe, not a command: 'temper train sft ...'"
run eval-gsm8k
expect 2 "'temper eval eval-gsm8k ...'"
run recipes
expect 2 "there is no command 'recipes'; see 'temper help recipes'"
run help recipes
expect 0
expect_out "  sft         Supervised fine-tuning of a Hugging Face folder on a JSONL file" "/recipes"
run -V
expect 0
run train --rseume tiny.yaml
expect 2 "there is no option '--rseume'; did you mean '--resume'"
run train
expect 2 "expected CONFIG"
run version extra
expect 2 "no arguments"
run train tiny.yaml --progress=sometimes
expect 2 "--progress is auto, block, plain, json or quiet, not 'sometimes'"
run generate --temperature=warm model text
expect 2 "--temperature takes a number from 0 to 1000, not 'warm'"
run generate --max-new-tokens=-1 model text
expect 2 "--max-new-tokens takes a whole number from 1"
run generate --precision=float8 model text
expect 2 "bfloat16 or float32"
run doctor --isa=sse2
expect 2 "--isa is portable"
run plan tiny.yaml --print inference
expect 2 "--print takes train, eval, norm or update"

run plan tiny.yaml policy.trian_global_batch_size=3
expect 2 "command line: unknown key policy.trian_global_batch_size; did you mean policy.train_global_batch_size?"
run plan tiny.yaml sft.max_num_steps=many
expect 2 'sft.max_num_steps: "many" is not a whole number'
run plan tiny.yaml policy.precision=float8
expect 2 'is not one of float32, bfloat16'
run plan tiny.yaml policy.train_global_batch_size=0
expect 2 "policy.train_global_batch_size"
run plan tiny.yaml engine.disable_passes=[fuze]
expect 2 "there is no pass 'fuze'"
run plan "$SOURCE/recipes/sft.yaml"
expect 2 "policy.model_name: must be set (it is ???)"
run plan nosuch.yaml
expect 2 "nosuch.yaml"

printf 'policy:\n  precison: float32\nsft: {}\n' >typo.yaml
run plan typo.yaml
expect 2 "typo.yaml:2: unknown key policy.precison; did you mean policy.precision?"
printf 'sft: [1, 2\n' >broken.yaml
run plan broken.yaml
expect 2 "broken.yaml"
printf 'defaults: b.yaml\n' >a.yaml
printf 'defaults: a.yaml\n' >b.yaml
run plan a.yaml
expect 2 "a.yaml"
printf 'a: &x [*x]\n' >alias.yaml
run plan alias.yaml
expect 2 "alias.yaml"
printf 'seed: ${sft.seed}\nsft: {seed: "${seed}"}\n' >circle.yaml
run plan circle.yaml
expect 2 "circle.yaml"

# What an error quotes forges no line of its own, neither beside a list nor inside one.
printf '"x\\n  data: ok": {}\nrun: {name: r}\n' >forged.yaml
run plan forged.yaml
expect 2 'there are: x\n  data: ok'
is "lines of the error" "$(grep -c . err)" 1
printf 'sft: {"b\\n  data: ok": 1, "c\\n  data: ok": 2}\n' >forged.yaml
run plan forged.yaml
expect 2 'sft.b\n  data: ok' 'sft.c\n  data: ok'
grep -q "^  data: ok" err && fail "an item that nobody wrote"
run doctor --seconds 0.1 forged.yaml
grep -q "^  data: ok" out err && fail "doctor: an item that nobody wrote"
run train tiny.yaml "policy.model_config=a
  data: ok" "policy.tokenizer.name=b
  data: ok" policy.tokenizer.train_vocab_size=null
expect 2 "there is no 'a\\n  data: ok'" "there is no 'b\\n  data: ok'"
grep -q "^  data: ok" err && fail "a missing file that nobody named"
# A run's name is that of one folder below runs/.
escape=$(printf 'a\033[31m')
long=$(printf 'n%.0s' $(seq 256))
up=../$(basename "$work")-up
for name in '' . .. "$up" a/b /up "$escape" "$long"; do
    run train --quiet tiny.yaml run.name="$name" sft.max_num_steps=1
    expect 2 "run.name: "
done
[ ! -e runs ] && [ ! -e "$up" ] || fail "a folder was made for a run whose name is refused"
finish
