# temper export: GGUF files out, and wherever a model folder is taken, in.
. "$SOURCE/tests/cli/lib.sh"
make_model
answer() { # of MODEL: the ids of a greedy answer
    run generate --max-new-tokens 8 --precision float32 --json "$1" "the quick"
    expect 0
    "$TOOL" get out ids
}
greedy=$(answer model)

# F32 holds the model itself: the same answer, and the same file from the file.
run export model f32.gguf --type F32
expect 0
expect_out "wrote f32.gguf: " " 20 tensors (20 F32)"
is "the greedy answer of an F32 file" "$(answer f32.gguf)" "$greedy"
run export f32.gguf again.gguf --type F32 --name model
expect 0
cmp -s f32.gguf again.gguf || fail "an F32 file imported and exported is another file"

# Of two chat templates both go out and come back; the one for tools renders rows with tools.
cp -r model two
mkdir two/additional_chat_templates
printf 'D{{ messages[0].content }}' >two/chat_template.jinja
printf 'T{{ messages[0].content }}\n' >two/additional_chat_templates/tool_use.jinja
printf '%s\n' '{"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"f"}]}' \
    '{"messages":[{"role":"user","content":"hi"}]}' >tools.jsonl
run export two two.gguf --type F32
expect 0
run export two.gguf again.gguf --type F32 --name two
expect 0
cmp -s two.gguf again.gguf || fail "a file with two templates imported and exported is another file"
for folder in two two.gguf; do
    run generate --max-new-tokens 1 --prompts tools.jsonl --json "$folder"
    expect 0
    is "prompts of $folder" "$(sed 's/.*"prompt": *"\([^"]*\)".*/\1/' out | tr '\n' ' ')" "Thi Dhi "
done

# How to draw goes out, is obeyed, and begins a run that starts with the file.
cp -r model drawn
echo '{"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "suppress_tokens": [97], "max_new_tokens": 6,
 "repetition_penalty": 1.5}' >drawn/generation_config.json
run export drawn drawn.gguf --type F32
expect 0 "generation_config.json: max_new_tokens: GGUF has no key for that"
mv drawn/generation_config.json .
sed '0,/{/s//{"max_new_tokens": 6,/' model/config.json >drawn/config.json
run export drawn of-model.gguf --type F32
expect 0 "note: config.json: max_new_tokens: GGUF has no key for that"
mv generation_config.json drawn
cp model/config.json drawn
run export drawn.gguf again.gguf --type F32 --name drawn
expect 0
cmp -s drawn.gguf again.gguf || fail "a file with settings imported and exported is another file"
drawn() { # of MODEL: an answer drawn
    run generate --max-new-tokens 8 --seed 3 --precision float32 --json "$1" "the quick"
    expect 0
    "$TOOL" get out ids
}
is "the answer drawn by a file" "$(drawn drawn.gguf)" "$(drawn drawn)"
drawn drawn.gguf >/dev/null
expect 0 "from drawn.gguf: temperature 0.6, top_k 20, top_p 0.95, min_p 0, repetition_penalty 1.5, ids not to be drawn 1"
[ "$(drawn drawn.gguf)" != "$greedy" ] || fail "a file with a temperature is greedy"
run train --quiet "$SOURCE/recipes/sft.yaml" policy.model_name=drawn.gguf policy.tokenizer.chat_template=null \
    data.train.data_path=text.jsonl data.train.split_validation_size=0 policy.max_total_sequence_length=32 run.dir=from-drawn
expect 0
is "the temperature of a run that began with a file" \
    "$("$TOOL" get from-drawn/checkpoints/step-1/model/generation_config.json temperature)" 0.6
"$TOOL" get from-drawn/checkpoints/step-1/model/generation_config.json eos_token_id >/dev/null ||
    fail "the settings of a run that began with a file do not say what ends a text"

# Training draws nothing: what generation refuses does not stop it.
LC_ALL=C sed 's/general\.sampling\.top_k/general.sampling.top_x/' drawn.gguf >other.gguf
run generate --max-new-tokens 1 other.gguf "the"
expect 2 "other.gguf" "'general.sampling.top_x' may change what is drawn"
run generate --max-new-tokens 1 --ignore-generation-config other.gguf "the"
expect 0
run train --quiet "$SOURCE/recipes/sft.yaml" policy.model_name=other.gguf policy.tokenizer.chat_template=null \
    data.train.data_path=text.jsonl data.train.split_validation_size=0 policy.max_total_sequence_length=32 run.dir=from-other
expect 0 "'general.sampling.top_x' may change" "the model is saved without generation_config.json"
[ ! -e from-other/checkpoints/step-1/model/generation_config.json ] || fail "settings that are not known are saved"

# Rows of 32 do not divide into Q4_K's blocks: said, once for all that are alike.
run export model q4k.gguf --type Q4_K
expect 0 "13 tensors (token_embd.weight ...) are Q5_0: their rows of 32 do not divide into Q4_K's blocks of 256" \
    "2 tensors (blk.0.ffn_down.weight ...) are Q5_0: their rows of 64"
run export model q4km.gguf --type Q4_K_M
expect 0 "2 tensors (token_embd.weight ...) are Q8_0: their rows of 32 do not divide into Q6_K's blocks of 256" \
    "11 tensors (blk.0.attn_q.weight ...) are Q5_0: their rows of 32 do not divide into Q4_K" "1 tensors (blk.1.ffn_down.weight ...) are Q8_0"
for type in F16 BF16 Q8_0 Q4_0 q8_0; do
    run export model "$type.gguf" --type "$type" --threads 1
    expect 0
    cp "$type.gguf" one
    run export model "$type.gguf" --type "$type" --threads 3
    expect 0
    cmp -s one "$type.gguf" || fail "$type: another number of threads gives another file"
    answer "$type.gguf" >/dev/null
done
run generate --max-new-tokens 1 Q8_0.gguf "the"
expect 0 "tensors of the file: 5 F32, 15 Q8_0; what is quantised was rounded when the file was made"

# A first token that is an ordinary one has a number and no name.
cp -r model ordinary
sed 's/"bos_token_id": [0-9]*/"bos_token_id": 3/' model/config.json >ordinary/config.json
grep -q bos_token_id ordinary/config.json ||
    sed 's/^{/{"bos_token_id": 3,/' model/config.json >ordinary/config.json
sed 's/"bos_token": [^,]*,//' model/tokenizer_config.json >ordinary/tokenizer_config.json
run export ordinary ordinary.gguf --type F32
expect 0
is "the answer of a file with an ordinary bos" "$(answer ordinary.gguf)" "$(answer ordinary)"

# Tokens and template come along.
printf '{"messages": [{"role": "user", "content": "hi"}]}\n' >chat.jsonl
run generate --max-new-tokens 4 --precision float32 --json --prompts chat.jsonl model
expect 0
cp out wanted
run generate --max-new-tokens 4 --precision float32 --json --prompts chat.jsonl f32.gguf
expect 0
cmp -s out wanted || fail "a chat with the file is not that with the folder"
printf 'hello\n' | "$TEMPER" chat --max-new-tokens 3 --temperature 0 f32.gguf >out 2>err || fail "no chat with a file"

# Training from a file is training from the folder, and what it saves is a folder again.
for start in model f32.gguf; do
    run train --quiet "$SOURCE/recipes/sft.yaml" policy.model_name=$start policy.precision=float32 \
        policy.tokenizer.chat_template=null data.train.data_path=text.jsonl \
        data.train.split_validation_size=0 policy.max_total_sequence_length=32 run.dir=run-$start
    expect 0
done
cmp -s run-model/checkpoints/step-1/model/model.safetensors \
    run-f32.gguf/checkpoints/step-1/model/model.safetensors || fail "training from the file gives other weights"
is "the answer of what was trained" "$(answer run-f32.gguf)" "$(answer run-model)"
run export run-f32.gguf trained.gguf --type F32
expect 0
is "the answer of the exported run" "$(answer trained.gguf)" "$(answer run-model)"

# An evaluation takes it too.
printf '{"question": "what is %s", "answer": "#### %s"}\n' one+one 2 two+two 4 >q.jsonl
for start in model f32.gguf; do
    run eval generation.model_name=$start data.data_path=q.jsonl generation.max_new_tokens=3 \
        tokenizer.chat_template=null generation.vllm_cfg.max_model_len=64 generation.vllm_cfg.precision=float32 \
        env.math.num_workers=1 --out "$start.json"
    expect 0
done

# What is wrong is said with its name, and nothing is lost.
cp f32.gguf before
run export f32.gguf f32.gguf --type Q8_0
expect 2 "this command reads it"
ln f32.gguf hard.gguf
run export f32.gguf hard.gguf --type Q8_0
expect 2 "this command reads it"
cmp -s f32.gguf before || fail "the input was written to"
run export model out.gguf --type Q3_K
expect 2 "there is no type 'Q3_K'; choose one of F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q4_K_M"
run export model no/where/out.gguf
expect 2 "its folder does not exist"
run export nothing out.gguf
expect 2 "'nothing'"
head -c 5000 f32.gguf >cut.gguf
run generate cut.gguf "the"
expect 2 "cut.gguf: byte " "the file is cut off or damaged: fetch or export it again"
head -c 20000 f32.gguf >cut.gguf
run generate cut.gguf "the"
expect 2 "cut.gguf: byte " "of the data, which has"
printf 'GGUF' >cut.gguf
run export cut.gguf out.gguf
expect 2 "cut.gguf: byte 4: the file ends before its version"
: >empty.gguf
run generate empty.gguf "the"
expect 2 "empty.gguf"
mkdir bare
cp model/config.json model/model.safetensors bare
run export bare out.gguf
expect 2 "tokenizer.json"
sed 's/"silu"/"gelu"/' model/config.json >bare/config.json
cp model/tokenizer* bare
run export bare out.gguf
expect 2 "hidden_act is not silu: llama.cpp's architecture \"llama\" does not compute that"
LC_ALL=C sed 's/general.architecturellama/general.architecturemamba/;s/architecture\(........\)\(....\)llama/architecture\1\2mamba/' f32.gguf >mamba.gguf
run generate mamba.gguf "the"
expect 2 "general.architecture' is \"mamba\"; supported are llama"
[ -e out.gguf ] && fail "a refused export left a file"

# What an export left that was killed goes with the next one; a file of a process that lives stays.
gone=4194305 # above the largest number that Linux gives a process
printf x >".out.gguf.tmp-$gone"
printf x >".out.gguf.tmp-$$"
run export model out.gguf
expect 0
[ -e ".out.gguf.tmp-$gone" ] && fail "what a killed export left is still there"
[ -e ".out.gguf.tmp-$$" ] || fail "a file of a living process is gone"
rm -f out.gguf ".out.gguf.tmp-$$"

# Where nothing can be written.
(ulimit -f 8 && "$TEMPER" export model limited.gguf >out 2>err)
is "exit status above the limit of a file" $? 4
grep -qF "File too large; raise the limit of a file's size (ulimit -f)" err || fail "no word on the limit of a file"
ls -A | grep -q limited && fail "a part of a file was left"
if [ -w /dev/full ]; then
    run export model /dev/full
    expect 4
fi
mkdir closed && chmod a-w closed
if ! : >closed/probe 2>/dev/null; then
    run export model closed/out.gguf
    expect 4
fi
chmod u+w closed
finish
