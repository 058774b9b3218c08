# lib.sh - sourced by tests of several processes, behind tests/cli/lib.sh.
#
# `ranks N WORDS...` runs temper as N processes of one thread each; nearly compares two runs; dpo_alone trains on pairs;
# process_of finds a rank.
[ -n "${PLUG_IN:-}" ] || { echo "skipped: built without MPI (libopenmpi-dev)"; exit 77; }
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun (openmpi-bin)"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" # Open MPI's modules leak and are gone by then: no name to suppress

ranks() {
    n=$1
    shift
    last="mpirun -n $n temper $*"
    timeout 500 mpirun --oversubscribe -n "$n" "$TEMPER" "$@" engine.threads=1 >out 2>err </dev/null
    status=$?
}

# nearly RUN OTHER RELATIVE ABSOLUTE
nearly() {
    "$NEARLY" "$@" 2>why || fail "$2 differs from $1: $(cat why)"
}

# write_grpo [KEY: VALUE]: grpo.yaml goes on from base with sums, with that key of grpo.
write_grpo() {
    cat >grpo.yaml <<RECIPE
grpo: {num_prompts_per_step: 7, num_generations_per_prompt: 6, max_num_steps: 12, max_num_epochs: 100, ${1:+$1,}
       val_period: 6, max_val_samples: 8, use_dynamic_sampling: true, batch_multiplier: 1.5}
policy:
  model_name: base/checkpoints/step-120/model
  tokenizer: {chat_template: null}
  train_global_batch_size: 21
  train_micro_batch_size: 3
  max_total_sequence_length: 16
  precision: float32
  generation: {max_new_tokens: 5, max_running: 16}
  optimizer: {kwargs: {lr: 1.0e-4}}
loss_fn: {reference_policy_kl_penalty: 0.01}
data:
  train: {dataset_name: arithmetic}
  arithmetic: {n_examples: 200, n_validation: 20, digits: 1, operators: "+"}
checkpointing: {save_period: 6, metric_name: "val:accuracy", higher_is_better: true}
RECIPE
}

# dpo_alone RUN BATCH: dpo.yaml goes on from RUN's last model with pairs and BATCH of them in a step; `dpo` is what one
# process makes of it.
dpo_alone() {
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        printf '{"prompt": "%s+%s=", "chosen": "%s", "rejected": "%s"}\n' $i 3 $((i + 3)) $((i * 3 + 1))
    done >pairs.jsonl
    cat >dpo.yaml <<RECIPE
dpo: {max_num_epochs: 1000, max_num_steps: 30, val_period: 15, val_batches: 0, val_global_batch_size: 8}
policy:
  model_name: base
  tokenizer: {name: $1/tokenizer, chat_template: null}
  train_global_batch_size: $2
  train_micro_batch_size: 1
  max_total_sequence_length: 16
  precision: float32
  optimizer: {kwargs: {lr: 1.0e-3}}
data:
  train: {data_path: pairs.jsonl, split_validation_size: 0.2}
checkpointing: {save_period: 15}
RECIPE
    cp -r "$1/checkpoints/step-30/model" base
    run train --quiet dpo.yaml run.dir=dpo engine.threads=1
    expect 0
}

# process_of MPIRUN RANK: its process, by what mpirun gave it: the order of the numbers says nothing.
process_of() {
    for process in $(pgrep -P "$1"); do
        tr '\0' '\n' <"/proc/$process/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$2" && echo "$process" && return 0
    done
    return 1
}
lives() { [ -d "/proc/$1" ] && ! grep -q '^State:.*[ZX]' "/proc/$1/status" 2>/dev/null; }
# all_gone PROCESSES: waits until none of them lives.
all_gone() {
    for process in $1; do
        while lives "$process"; do sleep 0.05; done
    done
}
