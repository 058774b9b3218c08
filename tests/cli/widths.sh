# Screens keep to COLUMNS: tables that are wider come in blocks of columns, prose is wrapped.
. "$SOURCE/tests/cli/lib.sh"
export COLUMNS=80
data=$SOURCE/tests/data/trace_reports

# fits COMMAND...: no line has more than 80 characters.
fits() {
    run "$@"
    expect 0
    LC_ALL=C.UTF-8 awk 'length($0) > 80 { print length($0) ": " $0 }' out >wide
    [ ! -s wide ] || { cp wide out && fail "temper $*: wider than 80 columns"; }
}

fits trace "$data/kineto-rank-0.json"
for view in operators kernels memory comm idle launch queue critical-path bandwidth stacks steps threads ranks roofline bottlenecks suspicious; do
    fits trace "$data/kineto-rank-0.json" $view
done
fits trace "$data/snapshot.pickle"
fits trace "$data/nsight.sqlite"
for command in train plan generate chat eval stats trace bench profile doctor config tokenizer version; do
    fits help $command
done

# The tables that a run ends with, from the table of operators on.
write_recipe tiny.yaml
give_ceilings
run train tiny.yaml policy.recompute=full
expect 0
sed -n '/^kernel .*launches/,$p' out | grep -v '^run folder\|^step on average' >tables
grep -q '(again)' tables || fail "no operator is computed again"
awk 'length($0) > 80 { print length($0) ": " $0 }' tables >wide
[ ! -s wide ] || { cp wide out && fail "closing tables wider than 80 columns"; }

# Nothing is lost on the way: every column is there, the key in each block.
run trace "$data/kineto-rank-0.json" bandwidth
is "blocks with a key" "$(grep -c '^direction' out)" 2
for column in count bytes total "median size" mean p90 max pageable; do
    grep -q " $column" out || fail "no column '$column'"
done
finish
