# Text of strangers holds what a terminal obeys, in every place that a command may quote.  On a
# terminal none of it arrives, whatever the command and whether it works or fails.
. "$SOURCE/tests/cli/lib.sh"
command -v script >/dev/null || { echo "script(1) is not there"; exit 77; }
script -qec true probe >/dev/null 2>&1 </dev/null
[ -e probe ] || { echo "there are no pseudo-terminals here"; exit 77; }

# Colour and bell, CSI as a C1 character, a bidirectional override, a byte that is no UTF-8.
csi=$(printf '\302\233') bidi=$(printf '\342\200\256') esc=$(printf '\033') bell=$(printf '\007')
bad="h${esc}[35m${bell}${csi}31m${bidi}z"
json='h\u001b[35m\u0007\u009b31m\u202ez'
raw="h${csi}31m${bidi}z" # what JSON and YAML may hold as it is
n_safe=0

# safe COMMAND...: with words quoted for the shell of script(1).
safe() {
    printf "'%s' " "$TEMPER" >command
    for word; do printf "'%s' " "$word" >>command; done
    TERM=xterm script -qec "stty cols 100 rows 30; $(cat command)" typescript >/dev/null 2>&1 </dev/null
    sed '1d;$d' typescript >seen # script(1)'s own lines quote the command
    for byte in "${esc}[35m" "${esc}]" "$bell" "$csi" "$bidi"; do
        LC_ALL=C grep -qF -e "$byte" seen && { cp seen out; fail "temper $*: a raw $(printf %s "$byte" | od -An -tx1)"; }
    done
    n_safe=$((n_safe + 1))
}
quotes() { # the last command did show the text, cleaned
    LC_ALL=C grep -qF -e "$1" seen || { cp seen out; fail "temper $(cat command): nothing like '$1'"; }
}

make_model
write_recipe tiny.yaml

# --- names on the command line ---
safe "$bad"
safe train "$bad.yaml"
quotes 'h\x1b[35m\x07\u009b31m\u202ez'
for command in plan config doctor trace stats generate chat profile; do safe "$command" "$bad"; done
safe eval "$bad"
safe eval summarize "$bad"
safe help "$bad"
safe tokenizer "$bad/x" "$bad"
safe bench --cases "$bad"
safe bench --name "$bad"
safe bench --benchmark-compare "$bad"
safe trace t.json "--$bad"
safe train tiny.yaml "$bad=1"
safe train tiny.yaml "policy.$bad=1"
safe train tiny.yaml run.name="$bad" sft.max_num_steps=1
safe stats --share "$bad"
safe generate model "$bad" --max-new-tokens 2
safe generate model x --stop "$bad" --kv-dtype "$bad"

# --- traces ---
event='{"ph":"X","ts":%s,"dur":9,"pid":0,"tid":7,"name":"'$json'","cat":"%s","args":{"device":0,"stream":7,"External id":1}}'
{
    printf '{"schemaVersion":1,"traceName":"%s","deviceProperties":[{"id":0,"name":"%s"}],' "$json" "$json"
    printf '"distributedInfo":{"backend":"%s","rank":0,"world_size":1,"pg_config":[{"pg_name":"%s","pg_desc":"%s"}]},' "$json" "$json" "$json"
    printf '"traceEvents":[{"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"%s"}},' "$json"
    printf '{"ph":"M","name":"thread_name","pid":0,"tid":7,"args":{"name":"%s"}}' "$json"
    for i in 1 2 3; do
        for c in kernel cpu_op user_annotation gpu_memcpy python_function cuda_runtime "$json"; do
            printf ",$event" "$i"00 "$c"
        done
    done
    printf '],"%s":1}' "$json"
} >t.json
cp t.json "$bad.json"
safe trace t.json
quotes 'h\x1b[35m\x07\u009b31m\u202ez'
safe trace "$bad.json"
safe trace t.json "$bad.json"
for view in operators kernels memory comm idle launch queue critical-path bandwidth stacks steps threads ranks roofline suspicious bottlenecks; do
    safe trace t.json "$view"
    safe trace t.json "$view" --json
    safe trace t.json "$view" --csv
    safe trace t.json "$view" --markdown
done
safe trace compare t.json "$bad.json"
safe trace stats t.json "$bad.json"
for format in chrome perfetto collapsed csv; do safe trace export t.json "--$format" -o -; done
safe trace t.json --name "$bad"
safe trace t.json --scope "$bad"
printf '{"%s' "$raw" >broken.json
safe trace broken.json
printf '%s' "$bad" >text.json
safe trace text.json

# --- numbers ---
printf 'a%s,b%s\n1,2\n3,4\n5,7\n' "$bad" "$bad" >columns.csv
safe stats columns.csv
quotes 'a'
safe stats columns.csv "$bad"
safe stats columns.csv --paired
printf 'g,x\n%s,1\n%s,2\nw,3\nw,5\n' "$bad" "$bad" >labels.csv
safe stats labels.csv x --by g
safe stats labels.csv g
printf 'x\n1\n%s\n' "$bad" >cell.csv
safe stats cell.csv
printf '{"%s":1,"b":2}\n{"%s":2,"b":3}\n' "$json" "$json" >records.jsonl
safe stats records.jsonl
safe stats records.jsonl --json
printf '{"kind":"%s","x":[1,2]}' "$json" >asked.json
safe stats asked.json --json

# --- recipes, rows, models ---
cat >rows.yaml <<'END'
sft: {max_num_steps: 1}
policy: {model_name: model, train_global_batch_size: 2, train_micro_batch_size: 1, max_total_sequence_length: 64}
data: {train: {split_validation_size: 0}}
END
printf 'sft: {"%s": 1}\n' "$raw" >key.yaml
safe train key.yaml
safe plan key.yaml
printf 'policy: {precision: "%s"}\nsft: {}\n' "$raw" >value.yaml
safe train value.yaml
printf 'sft: [%s\n' "$bad" >form.yaml
safe config form.yaml
printf '{"%s":"a","answer":"b"}\n' "$json" >key.jsonl
printf '{"prompt":"%s","completion":"%s"}\n{"prompt":"%s","completion":"b"}\n' "$json" "$json" "$json" >row.jsonl
printf '{"messages":[{"role":"%s","content":"a"},{"role":"assistant","content":"%s"}]}\n' "$json" "$json" >role.jsonl
printf '{"prompt":"a","completion":"%s\n' "$bad" >cut.jsonl
for rows in key row role cut; do
    safe train rows.yaml run.name="$rows" data.train.data_path=$rows.jsonl
done
printf '{"prompt":"%s","completion":"%s"}\n{"prompt":"a","completion":"b"}\n' "$json" "$json" >good.jsonl
safe train rows.yaml run.name=good data.train.data_path=good.jsonl
quotes 'h\x1b[35m\x07\u009b31m\u202ez' # the example that is shown
changed() { # FILE: a copy of the model in m, of which the test changes FILE
    rm -rf m
    cp -r model m
    rm -f "m/$1"
}
changed config.json
sed "s/\"model_type\": *\"[a-z0-9]*\"/\"model_type\": \"$raw\"/" model/config.json >m/config.json
safe generate m x
safe plan tiny.yaml policy.model_name=m policy.init=null
changed tokenizer_config.json
printf '{"chat_template":"{{ raise_exception(\\"%s\\") }}"}' "$json" >m/tokenizer_config.json
rm -f m/chat_template.jinja
safe generate m --chat x
printf '{%% nonsense %s %%}' "$bad" >m/chat_template.jinja
safe generate m --chat x
changed tokenizer.json
printf '{"model":{"type":"%s"}}' "$json" >m/tokenizer.json
safe generate m x
changed model.safetensors
printf '{"weight_map":{"%s":"%s"}}' "$json" "../$json" >m/model.safetensors.index.json
safe generate m x
header='{"'$json'":{"dtype":"'$json'","shape":[1],"data_offsets":[0,4]}}'
rm -f m/model.safetensors.index.json
{
    length=$(printf '%s' "$header" | wc -c)
    printf "$(printf '\\%03o\\%03o\\000\\000\\000\\000\\000\\000' $((length % 256)) $((length / 256)))"
    printf '%s' "$header"
    printf '\0\0\0\0'
} >m/model.safetensors
safe generate m x
# a model that can say anything: every token of the vocabulary is in its answers
safe generate model "$bad" --temperature 5 --max-new-tokens 60 --samples 3
printf '%s\n' "$bad" >prompts.txt
safe generate model --prompts prompts.txt --max-new-tokens 2
safe chat model --system "$bad" --max-new-tokens 2

# --- judges and evaluations ---
printf '#!/bin/sh\nread line\nprintf "%s\\n" >&2\nprintf "%s\\n"\nexit 3\n' "$bad" "$bad" >judge
chmod +x judge
printf '{"problem":"%s","expected_answer":"%s"}\n' "$json" "$json" >q.jsonl
cat >eval.yaml <<END
generation: {model_name: model, num_prompts_per_step: 1, max_new_tokens: 2}
data: {data_path: q.jsonl, prompt_key: problem, problem_key: problem, solution_key: expected_answer}
END
safe eval eval.yaml
printf '{"%s":[{"%s":1}]}' "$json" "$json" >report.json
safe eval summarize report.json
safe eval compare report.json "$bad"
printf '{"version":1,"%s":{"%s":1}}' "$json" "$json" >base.json
safe bench --name zone --baseline base.json --benchmark-compare
safe bench --compare base.json base.json
printf -- '- name: "%s"\n  kind: "%s"\n' "$raw" "$raw" >cases.yaml
safe bench --cases cases.yaml

[ "$n_safe" -gt 130 ] || fail "only $n_safe commands were tried"

# Into a pipe go the bytes of data, and clean text for people.
run trace t.json kernels --csv
LC_ALL=C grep -qF -e "${esc}[35m" out || fail "CSV in a pipe is data and was changed"
run trace t.json
LC_ALL=C grep -qF -e "$esc" out && fail "an escape in a table"
finish
