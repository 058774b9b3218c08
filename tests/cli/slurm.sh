# recipes/slurm.sbatch without Slurm: what it has srun start, the first time and when Slurm starts the job again.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml
mkdir bin
ln -s "$TEMPER" bin/temper
cat >bin/srun <<'END'
#!/bin/sh
for word; do printf '[%s]' "$word"; done
END
chmod +x bin/srun
PATH=$PWD/bin:$PATH
start="[--mpi=pmix][--cpu-bind=none][--kill-on-bad-exit=1][temper][train]"
# job RESTARTS WORDS... as Slurm would run it.
job() {
    SLURM_RESTART_COUNT=$1
    shift
    export SLURM_RESTART_COUNT
    sh "$SOURCE/recipes/slurm.sbatch" "$@" 2>err
}
is "the first time" "$(job 0 tiny.yaml 'run.dir=a run')" "$start[tiny.yaml][run.dir=a run]"
# Slurm was too fast: nothing is there.
is "before anything was made" "$(job 1 tiny.yaml 'run.dir=a run')" "$start[tiny.yaml][run.dir=a run]"
# A run that had saved nothing is set aside.
run train --quiet tiny.yaml 'run.dir=a run' checkpointing.enabled=false
expect 0
is "before a checkpoint" "$(job 2 tiny.yaml 'run.dir=a run')" "$start[tiny.yaml][run.dir=a run]"
[ -e "a run.before-restart-2/run.json" ] && [ ! -e "a run" ] || fail "the run that saved nothing is not set aside"
run train --quiet tiny.yaml 'run.dir=a run'
expect 0
is "with a checkpoint" "$(job 3 tiny.yaml 'run.dir=a run')" "$start[--resume][tiny.yaml][run.dir=a run]"
# Wherever checkpoints lie.
run train --quiet tiny.yaml run.dir=b checkpointing.checkpoint_dir=elsewhere
expect 0
is "elsewhere" "$(job 1 tiny.yaml run.dir=b checkpointing.checkpoint_dir=elsewhere)" \
    "$start[--resume][tiny.yaml][run.dir=b][checkpointing.checkpoint_dir=elsewhere]"
finish
