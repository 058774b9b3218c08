# lib.sh - sourced by tests of several processes, behind tests/cli/lib.sh.
#
# `ranks N WORDS...` runs temper as N processes of one thread each; nearly compares two runs; process_of finds a rank.
[ -n "${PLUG_IN:-}" ] || { echo "skipped: built without MPI (libopenmpi-dev)"; exit 77; }
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun (openmpi-bin)"; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl_vader_single_copy_mechanism=none

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
