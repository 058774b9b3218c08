#!/bin/sh
# Peak memory of reading a trace of 10 GB (or the size in GB): plain, and as .gz.
#
#   bench/big_trace.sh TEMPER SMALL.json.gz [GB] [FOLDER]
#
# Prints seconds and peak resident memory of one view and of the overview.  What it wrote goes when it ends.
set -eu
temper=$1 small=$2 gb=${3:-10} folder=${4:-${TMPDIR:-/tmp}}
here=$(dirname "$0")
big=$folder/temper-big-trace.$$.json
trap 'rm -f "$big" "$big.gz" "$big.time"' EXIT
measure() {
    /usr/bin/env python3 - "$@" <<'END'
import resource, subprocess, sys, time
start = time.time()
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
print(f"{time.time() - start:8.2f} s  {peak / 1e6:9.1f} MB  status {status}  {' '.join(sys.argv[2:])}", flush=True)
END
}
python3 "$here/big_trace.py" "$small" --gb "$gb" >"$big"
ls -l "$big" | awk '{ print $5 " bytes of JSON" }'
measure "$temper" trace "$big" kernels
measure "$temper" trace "$big"
gzip -1 "$big"
ls -l "$big.gz" | awk '{ print $5 " bytes of gzip" }'
measure "$temper" trace "$big.gz" kernels
