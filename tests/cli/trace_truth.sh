# Every figure of the ground truth of real traces, where they lie beside the repository.
. "$SOURCE/tests/cli/lib.sh"
traces=$SOURCE/../shared/traces
[ -d "$traces" ] || traces=$SOURCE/../../shared/traces
[ -f "$traces/ground_truth.json" ] || { echo "../shared/traces is not there"; exit 77; }
i=0
while file=$("$TOOL" get "$traces/ground_truth.json" $i.file 2>/dev/null); do
    run trace "$traces/$file" --json
    expect 0
    "$TOOL" holds "$traces/ground_truth.json" $i out || fail "figures of $file differ"
    run trace "$traces/$file"
    expect 0
    i=$((i + 1))
done
[ "$i" -ge 12 ] || fail "only $i files were looked at"
finish
