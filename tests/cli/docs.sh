# The pages made from tables in the code are those in docs/; README names every command.
. "$SOURCE/tests/cli/lib.sh"
"$SOURCE/tools/gen-docs" "$BUILD" fresh || fail "gen-docs failed"
for page in guide/configuration guide/metrics guide/model-files guide/environments guide/commands \
    guide/from-trl guide/from-axolotl guide/from-nemo-rl ops; do
    cmp "fresh/$page.md" "$SOURCE/docs/$page.md" || fail "docs/$page.md is stale: run make docs"
done

# Every page that a page leads to is there, and so is every picture.
for page in "$SOURCE"/*.md "$SOURCE"/docs/*.md "$SOURCE"/docs/*/*.md; do
    grep -o ']([^)#: ]*[)#]' "$page" | sed 's/^](//; s/[)#]$//' | while read -r to; do
        [ -z "$to" ] || [ -e "$(dirname "$page")/$to" ] || echo "${page#"$SOURCE"/} leads to $to"
    done
done >lost
[ ! -s lost ] || fail "$(sort -u lost | head -n 10)"
"$TEMPER" help --list commands | cut -d' ' -f1 | sort -u >names
[ "$(wc -l <names)" -gt 20 ] || fail "there are no commands"
while read -r name; do
    grep -q "^|.*\`temper $name[ \`]" "$SOURCE/README.md" || fail "README.md does not name 'temper $name'"
done <names
finish
