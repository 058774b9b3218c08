# Instruction sets prove themselves before they are used: each is broken in each way, and the next one computes.
. "$SOURCE/tests/cli/lib.sh"
unset TEMPER_ISA TEMPER_ASSUME_ISA TEMPER_BREAK_ISA
file=$XDG_CACHE_HOME/temper/instruction-sets.txt
make_model
have=$(TEMPER_ISA=amx "$TEMPER" version --json | sed -n 's/.*"isa": "\(.*\)".*/\1/p')
levels=
for level in portable avx2 avx512 avx512_bf16 amx; do
    levels="$levels $level"
    [ "$level" = "$have" ] && break
    below=$level
done
[ "$have" != portable ] || exit 77
# Below amx, where the processor multiplies bf16 more slowly than float32.
[ "$below" = avx512_bf16 ] && TEMPER_BREAK_ISA=$have:wrong "$TEMPER" doctor --cached 2>err |
    grep -q "^avx512_bf16 *proven, slower" && below=avx512

ask() { # the text that the model gives; float32, so that levels agree
    run generate --max-new-tokens 8 --precision float32 --temperature 0 --threads 1 "$@" model "the quick"
}

# sound: nothing is said, and the verdicts are kept
ask
expect 0
[ -s err ] && grep -q "left out" err && fail "a sound path is left out"
cp out sound
grep -q "proven" "$file" || fail "no verdict is kept"
cp "$file" kept

for level in $levels; do
    for way in sigill segv bus fpe wrong hang; do
        TEMPER_BREAK_ISA=$level:$way ask
        expect 0 "warning: cpu: the kernels for $level are left out"
        cmp -s out sound || fail "$level broken by $way: another text"
        [ "$(grep -c "left out" err)" = 1 ] || fail "$level broken by $way: not said once"
    done
done
cmp -s "$file" kept || fail "a path broken on purpose is in the file"
TEMPER_BREAK_ISA=$have:sigill ask
expect 0 "SIGILL in linear of f32; computing with $below"
TEMPER_BREAK_ISA=$have:hang ask
expect 0 "linear of f32 does not end"
TEMPER_BREAK_ISA=$have:wrong ask
expect 0 "linear of f32 gives"

# ended from outside: no verdict on the kernels
TEMPER_BREAK_ISA=$have:kill ask
expect 0 "the kernels for $have are left out, they could not be tested: its process was ended by SIGKILL; computing with $below"
cmp -s out sound || fail "$have not tested: another text"

# all of them: the plain loops
all=
for level in $levels; do all="$all,$level:wrong"; done
TEMPER_BREAK_ISA=$all ask
expect 0 "computing with the plain loops of ref"
cmp -s out sound || fail "ref gives another text"

# a level that is asked for and left out: the next one, with a word
TEMPER_BREAK_ISA=$have:segv ask --isa "$have"
expect 0 "the kernels for $have are left out" "computing with $below"

# a damaged file, one of another, none that can be read: tried again, and kept
for damage in empty cut flipped foreign binary; do
    case $damage in
    empty) : >"$file" ;;
    cut) head -c 60 kept >"$file" ;;
    flipped) sed '2s/proven/failed: x/' kept >"$file" ;;
    foreign) sed '2s/^................................/0123456789abcdef0123456789abcdef/' kept >"$file" ;;
    binary) head -c 5000 "$TEMPER" >"$file" ;;
    esac
    ask
    expect 0
    grep -q "left out" err && fail "$damage: a path is left out"
    cmp -s "$file" kept || fail "$damage: the file is not made again"
done
rm -f "$file"
mkdir "$file"
ask
expect 0
rmdir "$file"

# no folder to keep verdicts in: tried each time, without a word
ask_without_home() {
    cache=$XDG_CACHE_HOME
    unset XDG_CACHE_HOME
    HOME=/nonexistent ask
    export XDG_CACHE_HOME="$cache"
}
ask_without_home
expect 0
[ -s err ] && fail "a cache that cannot be written is worth a word"
cmp -s out sound || fail "without a cache: another text"

# several at once: each verdict is whole
rm -f "$file"
for i in 1 2 3 4; do
    "$TEMPER" generate --max-new-tokens 1 --threads 1 model "the" >/dev/null 2>"err$i" &
done
wait
cmp -s "$file" kept || fail "four at once leave another file"
[ -s err1 ] || [ -s err2 ] || [ -s err3 ] || [ -s err4 ] && fail "four at once complain"

# names that are none are refused with a word
TEMPER_ISA=avx3 ask
expect 0 "TEMPER_ISA is portable, avx2, avx512, avx512_bf16 or amx, not 'avx3'; it is ignored"

# every level by the environment
for level in $levels; do
    TEMPER_ISA=$level ask
    expect 0
    cmp -s out sound || fail "$level: another text"
done

run doctor --seconds 0.1 --threads 1
expect 0
expect_out "portable         proven" "$have"
TEMPER_BREAK_ISA=portable:bus run doctor --seconds 0.1 --cached --threads 1
expect 0 "the kernels for portable are left out"
expect_out "portable         FAILED, left out: SIGBUS in linear of f32"
TEMPER_BREAK_ISA=portable:bus run doctor --seconds 0.1 --cached --json --threads 1
expect_out '"name": "portable"' '"state": "failed"' '"why": "SIGBUS in linear of f32"'
finish
