# What is not the same on all ranks is named before the first step; a rank that fails or dies ends the run soon, with its
# number and host, and the run goes on from its last checkpoint.
. "$SOURCE/tests/cli/lib.sh"
. "$MPI_LIB"
write_recipe tiny.yaml
host=$(hostname)

# apart WORDS...: two processes, the second with further words.
apart() {
    last="mpirun, the second with $*"
    timeout 500 mpirun --oversubscribe -n 1 "$TEMPER" train --quiet tiny.yaml run.dir=apart engine.threads=1 : \
        -n 1 "$TEMPER" train --quiet tiny.yaml run.dir=apart engine.threads=1 "$@" >out 2>err </dev/null
    status=$?
    rm -rf apart
}

apart policy.max_grad_norm=0.5
expect 2 "ranks do not have the same configuration: rank 1 ($host) differs from rank 0 ($host)"
[ "$(grep -c "^temper: " err)" = 1 ] || fail "the failure is told more than once"
apart data.arithmetic.seed=7
expect 2 "ranks do not have the same"
apart policy.model_name=nowhere policy.init=pretrained
expect 2 "rank 1 ($host): "

# Files that have the same names on both, and something else in them: weights, also of a rank that has no more than its part of them,
# rows, what is computed with the weights.
# elsewhere STRATEGY FACT: the second process is in another folder.
elsewhere() {
    last="mpirun, the second elsewhere with other $2 ($1)"
    one="$TEMPER train --quiet ../tiny.yaml run.dir=apart engine.threads=1 policy.model_name=model policy.init=pretrained
         policy.model_config=null policy.tokenizer.name=model policy.tokenizer.train_vocab_size=null
         data.train.dataset_name=null data.train.data_path=rows.jsonl distributed.strategy=$1"
    # shellcheck disable=SC2086
    timeout 500 mpirun --oversubscribe -n 1 -wdir "$PWD/here" $one : -n 1 -wdir "$PWD/there" $one >out 2>err </dev/null
    status=$?
    expect 2 "ranks do not have the same $2: rank 1 ($host) differs from rank 0 ($host)"
    rm -rf here/apart there/apart
}
for seed in 1 2; do
    run train --quiet tiny.yaml run.dir=seed-$seed seed=$seed sft.max_num_steps=2 policy.precision=float32
    expect 0
done
mkdir here there
for folder in here there; do
    cp -r seed-1/checkpoints/step-2/model $folder/model
    printf '{"text": "1+1=2"}\n{"text": "2+2=4"}\n' >$folder/rows.jsonl
done
cp seed-2/checkpoints/step-2/model/model.safetensors there/model/
elsewhere ddp weights
elsewhere full_shard weights
cp seed-1/checkpoints/step-2/model/model.safetensors there/model/
echo '{"text": "3+3=6"}' >>there/rows.jsonl
elsewhere ddp "training data"
cp here/rows.jsonl there/
sed -i 's/"rope_theta": *10000/"rope_theta": 20000/' there/model/config.json
elsewhere full_shard model

# A stage that fails everywhere alike is told once, without a rank.
ranks 3 train --quiet tiny.yaml run.dir=none policy.model_config=missing.json
expect 2 "missing.json"
grep -q "rank" err && ! grep -q "mpirun" err && fail "every rank has failed alike"

# What cannot be divided says so.
sed 's/optimizer: .*/optimizer: {name: torch.optim.Muon, kwargs: {lr: 0.001}}/' tiny.yaml >muon.yaml
ranks 2 train --quiet muon.yaml run.dir=muon distributed.strategy=shard_optimizer
expect 2 "Muon looks at whole ones"
ranks 2 train --quiet tiny.yaml run.dir=apart 'engine.disable_passes=[shard]'
expect 2 "without shard every process would train a model of its own"

ranks 2 train --quiet tiny.yaml run.dir=apart train.spike_policy=restore
expect 2 "train.spike_policy=restore is not supported with several processes"
[ ! -e apart ] || fail "a refused run leaves a folder"

# Memory is that of all processes of a host.
sed 's/"hidden_size": 32, "intermediate_size": 64/"hidden_size": 131072, "intermediate_size": 524288/' tiny.json >vast.json
ranks 2 train --quiet tiny.yaml run.dir=apart policy.model_config=vast.json
expect 5 "does not fit" "a process's share of" ", of 2)"

# Without the plug-in.
last="several processes without MPI"
OMPI_COMM_WORLD_SIZE=2 TEMPER_MPI=/nowhere/temper_mpi.so "$TEMPER" train tiny.yaml run.dir=none >out 2>err </dev/null
status=$?
expect 2 "started as one of several processes (OMPI_COMM_WORLD_SIZE is 2)"

# A rank that is killed: the others notice it, and end, before mpirun has to kill them; nothing is lost.
for victim in 0 1; do
    dir=killed-$victim
    mpirun --enable-recovery --oversubscribe -n 3 "$TEMPER" train --quiet tiny.yaml run.dir=$dir engine.threads=1 sft.max_num_steps=100000 \
        sft.val_period=0 >out 2>err </dev/null &
    pid=$!
    wait_until "ls -d $dir/checkpoints/step-* >/dev/null 2>&1"
    all=$(pgrep -P $pid)
    kill -9 "$(process_of $pid $victim)"
    wait $pid
    all_gone "$all"
    grep -q "rank $victim ($host, process [0-9]*) is gone" err || fail "nobody says that rank $victim is gone"
    steps=$(find $dir/checkpoints -maxdepth 1 -name 'step-*' | sed 's/.*-//' | sort -n | tail -n 1)
    steps=$((${steps:-0} + 100))
    ranks 2 train --quiet --resume tiny.yaml run.dir=$dir sft.max_num_steps=$steps sft.val_period=0
    expect 0
    is "steps after rank $victim was killed" "$("$TOOL" get $dir/run.json step)" $steps
done

# A rank whose processes have numbers of their own, as in a container on the same host: nobody takes it for gone, nor it the others.
if unshare --pid --fork true 2>/dev/null; then
    last="mpirun, the second in a container"
    one="$TEMPER train --quiet tiny.yaml run.dir=contained engine.threads=1"
    # shellcheck disable=SC2086
    timeout 500 mpirun --oversubscribe -n 1 $one : -n 1 unshare --pid --fork $one >out 2>err </dev/null
    status=$?
    expect 0
else
    echo "not tested: a rank in a container (no numbers of processes of its own can be had here)"
fi

# Asked to stop, all ranks save the same step.
mpirun --oversubscribe -n 2 "$TEMPER" train --quiet tiny.yaml run.dir=asked engine.threads=1 sft.max_num_steps=100000 \
    sft.val_period=0 >out 2>err </dev/null &
pid=$!
wait_until "ls -d asked/checkpoints/step-* >/dev/null 2>&1"
kill -USR1 "$(process_of $pid 0)"
wait $pid
is "state" "$("$TOOL" get asked/run.json state)" interrupted
step=$("$TOOL" get asked/run.json step)
[ -d "asked/checkpoints/step-$step" ] || fail "step $step is not saved"
finish
