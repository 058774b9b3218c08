# The pages made from tables in the code are those in docs/.
. "$SOURCE/tests/cli/lib.sh"
"$SOURCE/tools/gen-docs" "$BUILD" fresh || fail "gen-docs failed"
cmp "fresh/guide/configuration.md" "$SOURCE/docs/guide/configuration.md" ||
    fail "docs/guide/configuration.md is stale: run make docs"
cmp "fresh/guide/metrics.md" "$SOURCE/docs/guide/metrics.md" ||
    fail "docs/guide/metrics.md is stale: run make docs"
cmp "fresh/guide/model-files.md" "$SOURCE/docs/guide/model-files.md" ||
    fail "docs/guide/model-files.md is stale: run make docs"
cmp "fresh/guide/environments.md" "$SOURCE/docs/guide/environments.md" ||
    fail "docs/guide/environments.md is stale: run make docs"
cmp "fresh/guide/commands.md" "$SOURCE/docs/guide/commands.md" ||
    fail "docs/guide/commands.md is stale: run make docs"
for page in from-trl from-axolotl from-nemo-rl; do
    cmp "fresh/guide/$page.md" "$SOURCE/docs/guide/$page.md" ||
        fail "docs/guide/$page.md is stale: run make docs"
done
cmp "fresh/ops.md" "$SOURCE/docs/ops.md" || fail "docs/ops.md is stale: run make docs"

# Every page that a page leads to is there, and so is every picture.
for page in "$SOURCE"/*.md "$SOURCE"/docs/*.md "$SOURCE"/docs/*/*.md; do
    grep -o ']([^)#: ]*[)#]' "$page" | sed 's/^](//; s/[)#]$//' | while read -r to; do
        [ -z "$to" ] || [ -e "$(dirname "$page")/$to" ] || echo "${page#"$SOURCE"/} leads to $to"
    done
done >lost
[ ! -s lost ] || fail "$(sort -u lost | head -n 10)"
finish
