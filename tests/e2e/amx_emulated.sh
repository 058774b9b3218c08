# What is compiled for AMX runs everywhere: its instructions are trapped and emulated (tests/support/amx_emulator.c).
# SFT, GRPO with generation, generation and doctor, each beside the level below.
. "$SOURCE/tests/cli/lib.sh"
unset TEMPER_ISA # each case says its own
emulator=$BUILD/tests/libamx_emulator.so
grep -q avx512_bf16 /proc/cpuinfo || exit 77
plain=$TEMPER
below=avx512_bf16 # but where the processor multiplies bf16 more slowly than float32
"$plain" doctor --cached | grep -q "^avx512_bf16 *proven, slower" && below=avx512
printf '#!/bin/sh\nLD_PRELOAD=%s exec %s "$@"\n' "$emulator" "$plain" >emulated
chmod +x emulated
LD_PRELOAD=$emulator "$plain" version >out 2>err || exit 77 # a sanitizer wants to be loaded first
LD_PRELOAD=$emulator "$plain" version | grep -q "amx" || fail "the emulator is not seen"

# close WHAT A B: within 2 %
close() {
    echo "$1: $2 and $3"
    awk -v a="$2" -v b="$3" 'BEGIN { exit !(a > 0 && a - b < 0.02 * a && b - a < 0.02 * a) }' ||
        fail "$1 is $2, not $3"
}

write_recipe tiny.yaml
for name in avx512_bf16 amx; do
    TEMPER=$plain
    [ $name = amx ] && TEMPER=$PWD/emulated
    TEMPER_ISA=$name run train --quiet tiny.yaml run.dir=sft-$name engine.threads=2 sft.max_num_steps=4 sft.val_period=0 \
        policy.precision=bfloat16 checkpointing.save_period=4
    expect 0
    grep -q "left out" err && fail "$name is left out"
    is "instruction set" "$("$TOOL" get sft-$name/run.json machine.isa)" $name
    TEMPER_ISA=$name run generate --max-new-tokens 4 --temperature 0 --threads 1 sft-$name "2+3="
    expect 0
    cat >grpo.yaml <<END
grpo: {num_prompts_per_step: 2, num_generations_per_prompt: 4, max_num_steps: 1, val_period: 0}
policy:
  model_name: sft-avx512_bf16/checkpoints/step-4/model
  tokenizer: {chat_template: null}
  train_global_batch_size: 8
  train_micro_batch_size: 4
  max_total_sequence_length: 16
  generation: {max_new_tokens: 4, max_running: 8}
data:
  train: {dataset_name: arithmetic}
  arithmetic: {n_examples: 20, n_validation: 4, digits: 1, operators: "+"}
checkpointing: {save_period: 1}
END
    TEMPER_ISA=$name run train --quiet grpo.yaml run.dir=grpo-$name engine.threads=1
    expect 0
done
close "loss of SFT" "$("$TOOL" get sft-amx/run.json result.loss)" \
    "$("$TOOL" get sft-avx512_bf16/run.json result.loss)"

TEMPER=$PWD/emulated
TEMPER_ISA=avx512_bf16 run doctor --seconds 0.1 --threads 1 # ceilings of an emulator would take minutes
expect 0
expect_out "amx              proven, not asked for"
LD_PRELOAD=$emulator "$BUILD/tests/unit/engine/test_peaks" >out 2>&1 || fail "$(cat out)"
TEMPER_BREAK_ISA=amx:sigill run generate --max-new-tokens 4 --temperature 0 sft-amx "2+3="
expect 0 "the kernels for amx are left out" "computing with $below"
grep -q "computing with $below\$" err || fail "another level computes than $below"
finish
