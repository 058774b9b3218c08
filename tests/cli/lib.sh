# lib.sh - sourced by the shell tests.
#
# CTest gives TEMPER, TOOL (cli_tool), SOURCE and BUILD.  A test runs in an empty folder of
# its own, which goes when it ends; caches stay inside it.  `run` runs temper and keeps
# status, out and err; expect_* look at them and count failures; `finish` ends the test.
set -u
: "${TEMPER:?run me through ctest}" "${TOOL:?}" "${SOURCE:?}"
unset NO_COLOR

work=$(mktemp -d)
# A test that ends without `finish`, or with failures, has failed; 77 is "skipped".
end() {
    code=$?
    rm -rf "$work"
    if [ $code = 0 ] && { [ -z "$is_finished" ] || [ "$failures" != 0 ]; }; then
        echo "the test ended without finish, or with $failures failures"
        exit 1
    fi
    exit $code
}
is_finished=
trap end EXIT
cd "$work" || exit 1
export XDG_CACHE_HOME="$work/cache"
export XDG_DATA_HOME="$work/data"
export TERM=xterm
failures=0
status=0

fail() {
    failures=$((failures + 1))
    echo "FAILED: $*"
    if [ -s out ]; then echo "  stdout:"; head -n 20 out; fi
    if [ -s err ]; then echo "  stderr:"; head -n 20 err; fi
}

run() {
    last="temper $*"
    "$TEMPER" "$@" >out 2>err </dev/null
    status=$?
}

# ask ARGUMENTS...: run it, and note that it was.
asked=
ask() {
    asked="$asked
 $* "
    run "$@"
}

# all_asked WHAT <COMMANDS: each line, a command or one of its parts, was asked.
all_asked() {
    while read -r command; do
        case $asked in *"
 $command "*) ;; *) fail "temper $command: $1" ;; esac
    done
}

# The views of a trace, from the table.
views=$(sed -n 's/^VIEW("\([a-z-]*\)".*/\1/p' "$SOURCE/src/instrument/report/trace_views.def" | sort -u)
[ "$(echo "$views" | wc -l)" -ge 15 ] || exit 1

# expect STATUS [TEXT_OF_STDERR...]: each text is part of standard error.
expect() {
    wanted=$1
    shift
    [ "$status" = "$wanted" ] || fail "$last: exit status $status, not $wanted"
    for text in "$@"; do
        grep -qF -- "$text" err || fail "$last: standard error lacks '$text'"
    done
}

# expect_out TEXT...: each text is part of standard output.
expect_out() {
    for text in "$@"; do
        grep -qF -- "$text" out || fail "$last: standard output lacks '$text'"
    done
}

# wait_until COMMAND: until it succeeds, however long that takes, or the process $pid is over.
wait_until() {
    until eval "$1"; do
        if ! kill -0 "$pid" 2>/dev/null; then
            eval "$1" && return 0
            fail "never: $1"
            return 1
        fi
        sleep 0.05 # no verdict: it asks again
    done
}

# is WHAT ACTUAL WANTED
is() {
    [ "$2" = "$3" ] || fail "$1 is '$2', not '$3'"
}

finish() {
    is_finished=yes
    if [ "$failures" != 0 ]; then
        echo "$failures failures"
        exit 1
    fi
    exit 0
}

# A config.json of a tiny model: write_config FILE VOCAB [MODEL_TYPE]
write_config() {
    cat >"$1" <<END
{"model_type": "${3:-llama}", "vocab_size": $2, "hidden_size": 32, "intermediate_size": 64,
 "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
 "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
 "hidden_act": "silu", "tie_word_embeddings": true, "initializer_range": 0.05}
END
}

# A recipe of a few seconds over generated sums, without chat template: write_recipe FILE
write_recipe() {
    write_config tiny.json 260
    cat >"$1" <<'END'
sft: {max_num_epochs: 1000, max_num_steps: 6, val_period: 3, val_batches: 1, val_global_batch_size: 16}
policy:
  init: random
  model_config: tiny.json
  tokenizer: {name: null, chat_template: null, train_vocab_size: 260}
  train_global_batch_size: 16
  train_micro_batch_size: 4
  max_total_sequence_length: 16
  optimizer: {kwargs: {lr: 1.0e-2, weight_decay: 0.01, betas: [0.9, 0.95], eps: 1.0e-8}}
data:
  train: {dataset_name: arithmetic}
  arithmetic: {n_examples: 200, n_validation: 20, digits: 1, operators: "+"}
checkpointing: {save_period: 2, keep_top_k: 2}
END
}

# grpo.yaml over the folder "model" and rows.jsonl: write_grpo KEYS_OF_GRPO ENVIRONMENT
write_grpo() {
    cat >grpo.yaml <<END
grpo: {num_prompts_per_step: 2, val_period: 0, $1}
policy:
  model_name: model
  tokenizer: {chat_template: null}
  train_micro_batch_size: 4
  max_total_sequence_length: 32
  generation: {max_new_tokens: 4}
loss_fn: {reference_policy_kl_penalty: 0}
env: {$2}
data: {train: {data_path: rows.jsonl}}
END
}

# Eight preferences in pairs.jsonl: make_pairs
make_pairs() {
    for i in 0 1 2 3 4 5 6 7; do
        echo "{\"prompt\": \"hello $i and\", \"chosen\": \"$i are four\", \"rejected\": \"the lazy dog\"}"
    done >pairs.jsonl
}

# A Hugging Face folder "model" with tokenizer and ChatML template, random weights: make_model
make_model() {
    cat >corpus.txt <<'END'
the quick brown fox jumps over the lazy dog; user and assistant say hello, two and two are four
END
    run tokenizer --vocab-size 280 tok corpus.txt
    expect 0
    write_config tiny.json 280
    printf '{"text": "%s"}\n' "the quick brown fox" "the lazy dog" >text.jsonl
    run train --quiet "$SOURCE/recipes/sft.yaml" policy.init=random policy.model_name=null \
        policy.model_config=tiny.json policy.tokenizer.name=tok policy.tokenizer.chat_template=null \
        data.train.data_path=text.jsonl data.train.split_validation_size=0 \
        policy.max_total_sequence_length=32 run.dir=seed-run
    expect 0
    mv seed-run/checkpoints/step-1/model model || exit 1
    rm -rf seed-run
}

# What the commands of a page need: $MODEL, and a temper on the path.  Verdicts are no faults: what is
# found out here and now is not what is tested.  Arguments: "COMMAND STATUS" of each that ends with 0.
make_commands() {
    make_model
    mkdir bin
    {
        printf '#!/bin/sh\n"$TEMPER" "$@"\nstatus=$?\ncase "${1:-} $status" in\n'
        printf '"%s") exit 0 ;;\n' "$@"
        printf 'esac\nexit $status\n'
    } >bin/temper
    chmod +x bin/temper
    PATH=$work/bin:$PATH MODEL=$work/model
    export PATH MODEL
}

# Ceilings on file as of a free machine, whatever this one is doing: give_ceilings [FLOP/s]
give_ceilings() {
    "$TEMPER" doctor --seconds 0.1 --json >doctor.json || fail "doctor"
    mkdir -p "$XDG_CACHE_HOME/temper"
    cat >"$XDG_CACHE_HOME/temper/machine.json" <<END
{"$("$TOOL" get doctor.json fingerprint)": {"unit_f32_flops": ${1:-1e12}, "unit_bf16_flops": ${1:-1e12}, "gemm_f32_flops": ${1:-1e12}, "gemm_bf16_flops": ${1:-1e12},
 "read_bytes": 2e10, "copy_bytes": 2e10, "update_bytes": 2e10, "measured_at": 1.7e9}}
END
}
