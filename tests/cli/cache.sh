# temper cache: what is kept, and the oldest goes first; a run keeps to data.cache_limit.
. "$SOURCE/tests/cli/lib.sh"
write_recipe tiny.yaml
run cache
expect 0
expect_out "0 caches, 0 B, in $work/cache/temper"

one="sft.max_num_steps=1 checkpointing.enabled=false sft.val_period=0 progress=quiet"
for n in 100 200 300; do
    run train tiny.yaml run.name=n$n data.arithmetic.n_examples=$n data.arithmetic.n_validation=$n $one
    expect 0
done
run cache --json
expect 0
all=$(ls cache/temper/*.tokens | wc -l)
is "files that are listed" "$(grep -c '"name"' out)" "$all"
# The first one is used again, so that another is the oldest.
for file in cache/temper/*.tokens; do touch -a -d 2020-01-01 "$file"; done
run train tiny.yaml run.name=again data.arithmetic.n_examples=100 data.arithmetic.n_validation=100 $one
expect 0
run cache
sed -n 2p out >newest
grep -q "2020" newest && fail "a cache that was used is not the newest"

# What killed writers leave goes, what a writer holds stays, and nothing that is not Temper's.
rest=cache/temper/00000000000000000000000000000000.tokens.tmp
: >$rest
: >cache/temper/notes.txt
run cache --limit 100GiB
expect 0 "deleted 1 cache,"
[ ! -e $rest ] || fail "a rest stays"
run cache --limit 1B
expect 0
is "caches beyond a limit of one byte" "$(ls cache/temper/*.tokens 2>/dev/null | wc -l)" 0
[ -e cache/temper/notes.txt ] || fail "a file that is none of its own was deleted"
run cache --limit much
expect 2 "--limit is a size such as 5GiB, not 'much'"

# A run deletes what others left beyond the limit, and keeps its own.
run train tiny.yaml run.name=b1 data.arithmetic.n_examples=100 $one
run train tiny.yaml run.name=b2 data.arithmetic.n_examples=200 data.arithmetic.n_validation=30 data.cache_limit=1kB $one
expect 0 "caches not used for longest"
is "caches that stay" "$(ls cache/temper/*.tokens | wc -l)" 2
run train tiny.yaml run.name=b3 data.cache_limit=lots $one
expect 2 'data.cache_limit: "lots" is no size; write a number and a unit, as in 6GiB or 800MiB'
reference=cache/temper/00000000000000000000000000000000.reference
echo reference >$reference
run cache
expect_out "00000000000000000000000000000000.reference" "3 caches"
run cache --clear
expect 0 "deleted 3 caches,"
[ ! -e $reference ] || fail "what a reference model said is not deleted"

# One that is damaged anywhere is made again.
rm -f cache/temper/*.tokens
run train tiny.yaml run.name=sound data.arithmetic.n_examples=100 $one
expect 0
for file in cache/temper/*.tokens; do "$TOOL" flip "$file" $(($(wc -c <"$file") * 4)); done
run train tiny.yaml run.name=damaged data.arithmetic.n_examples=100 $one
expect 0 "is damaged: example" "tokenising again"
finish
