# The manual pages: one for every command, quiet under mandoc's lint, with every option.
. "$SOURCE/tests/cli/lib.sh"
"$SOURCE/tools/gen-pages" "$TEMPER" pages || fail "gen-pages failed"
run help --list commands
expect 0
cp out commands
while read -r command; do
    page=pages/man1/temper-$(echo "$command" | tr ' ' -).1
    [ -s "$page" ] || fail "no page of temper $command"
    # shellcheck disable=SC2086
    run help $command
    grep -o -- '--[a-z][a-z-]*' out | sort -u >options
    tr -d '\\' <"$page" | sed -n 's/^\.It .*Fl -\([a-z-]*\).*/--\1/p' | sort -u >listed
    sed -n 's/^ *\(-., \)*\(--[a-z-]*\).*/\2/p' out | sort -u >own
    is "options of temper $command that its page lacks" "$(comm -23 own listed | tr '\n' ' ')" ""
done <commands
is "pages" "$(ls pages/man1 | wc -l)" "$(($(wc -l <commands) + 1))"
grep -q '^\.It 141$\|^\.It 128 + N$' pages/man1/temper.1 || fail "no exit status of signals"
if ! command -v mandoc >/dev/null; then
    echo "mandoc is not here: the pages are not linted"
    [ "$failures" = 0 ] && exit 77
    finish
fi
(cd pages/man1 && mandoc -T lint ./*.1) >out 2>&1
[ ! -s out ] || fail "mandoc has something to say"
mandoc -T utf8 -O width=78 pages/man1/temper-train.1 | sed 's/.\x08//g' >out
expect_out "--progress=MODE" "temper-train – train a model" "-r, --resume"
finish
