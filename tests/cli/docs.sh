# The pages made from tables in the code are those in docs/; README names every command.
. "$SOURCE/tests/cli/lib.sh"
"$SOURCE/tools/gen-docs" "$BUILD" fresh || fail "gen-docs failed"
for page in guide/configuration guide/metrics guide/model-files guide/environments guide/commands \
    guide/from-trl guide/from-axolotl guide/from-nemo-rl ops; do
    cmp "fresh/$page.md" "$SOURCE/docs/$page.md" || fail "docs/$page.md is stale: run make docs"
done

# Paragraphs are filled to one width, and the guide's index leads to every page of it and of the formats.
for page in "$SOURCE"/README.md "$SOURCE"/docs/*.md "$SOURCE"/docs/guide/*.md "$SOURCE"/docs/formats/*.md; do
    cp "$page" filled.md
    "$SOURCE/tools/wrap-docs" filled.md
    cmp filled.md "$page" || fail "${page#"$SOURCE"/} has lines that are too long: run tools/wrap-docs on it"
done
for page in "$SOURCE"/docs/guide/*.md "$SOURCE"/docs/formats/*.md; do
    name=${page#"$SOURCE"/docs/}
    case $name in guide/README.md) continue ;; guide/*) link=${name#guide/} ;; *) link=../$name ;; esac
    grep -qF "]($link)" "$SOURCE/docs/guide/README.md" || fail "docs/guide/README.md does not lead to $name"
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

# Commands in blocks, whether they are run or not (guide.sh, blocks.sh), and in sentences are known, with all their options.
for page in "$SOURCE"/README.md "$SOURCE"/CONTRIBUTING.md "$SOURCE"/docs/guide/*.md "$SOURCE"/docs/formats/*.md; do
    [ "$(basename "$page")" = commands.md ] && continue
    awk -v sh=1 -v indented=1 -f "$SOURCE/tests/cli/commands.awk" "$page" >lines
    grep -o '`temper [^`]*`' "$page" | tr -d '`' >>lines
    sed -n "s/^\([A-Z_]*=[^ ]* *\)*\(mpirun -n [0-9]* \|srun [^ ]* \)*temper //p" lines |
        sed "s/ [|>].*//; s/   .*//; s/^/$(basename "$page") /"
done | grep -v '^[^ ]* \(--version\|COMMAND\|-h\|\.\.\.\)' >commands
[ "$(wc -l <commands)" -gt 250 ] || fail "there are only $(wc -l <commands) commands"
"$TEMPER" help --list commands >known
while read -r page name part rest; do
    grep -qxF "$name $part" known && name="$name $part"
    if ! grep -qx "$name" known; then
        fail "$page: there is no command 'temper $name'"
        continue
    fi
    # shellcheck disable=SC2086
    "$TEMPER" help $name >text
    for word in $part $rest; do
        case $word in
        --?*)
            word=${word%%=*}
            grep -q -- "$word\([ =,\[]\|\]\|$\)" text || fail "$page: 'temper $name' has no option '$word'"
            ;;
        [a-z]*.*[a-z]=*)
            word=${word#*:} # a lever of an ablation: NAME:KEY=VALUE
            grep -qF "\`${word%%=*}" "$SOURCE/docs/guide/configuration.md" "$SOURCE/docs/guide/environments.md" ||
                fail "$page: 'temper $name' is given '${word%%=*}', which is no key"
            ;;
        esac
    done
done <commands

# What is explained by its words are words of the program.
awk -F'|' '/^\|/ { print $2 }' "$SOURCE/docs/guide/troubleshooting.md" | grep -o '`[^`]*`' | tr -d '`' | sed 's/[.][.][.]/\n/g' |
    sed 's/^[;: ]*//; s/[;: ]*$//' | grep '.....' | grep -v '^temper \|^--' >pieces
[ "$(wc -l <pieces)" -gt 10 ] || fail "there are only $(wc -l <pieces) pieces of messages"
while read -r piece; do
    grep -qaF -- "$piece" "$TEMPER" || fail "troubleshooting.md: no message has '$piece'"
done <pieces
finish
