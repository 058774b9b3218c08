# Completions in the shells they are for: asked as a shell asks, what it would offer.
. "$SOURCE/tests/cli/lib.sh"
mkdir bin
ln -s "$TEMPER" bin/temper
PATH=$PWD/bin:$PATH
export PATH
touch notes.txt metrics.jsonl
tried=

# every OFFERED WHAT WORD...: each word is among the lines of the file.
every() {
    offered=$1 what=$2
    shift 2
    for word; do
        grep -qx -- "$word" "$offered" || fail "$what does not offer '$word': $(tr '\n' ' ' <"$offered")"
    done
}
only() { # OFFERED WHAT WORDS: exactly these
    is "$2" "$(sort "$1" | tr '\n' ' ' | sed 's/ $//')" "$3"
}

# suite NAME: NAME is a function that writes what the shell offers for a line into "offered".
suite() {
    tried="$tried $1"
    $1 'temper tr'
    only offered "$1: temper tr" "trace train"
    $1 'temper train --pro'
    only offered "$1: train --pro" "--progress"
    $1 'temper train --progress '
    only offered "$1: train --progress" "auto block json plain quiet"
    $1 'temper train -p bl'
    only offered "$1: train -p bl" "block"
    $1 'temper train de'
    every offered "$1: train de" demo demo-grpo
    $1 'temper train demo policy.tokenizer.na'
    only offered "$1: a key" "policy.tokenizer.name="
    $1 'temper trace comp'
    every offered "$1: trace comp" compare
    $1 'temper trace compare --sc'
    only offered "$1: trace compare --sc" "--scope"
    $1 'temper trace compare --scope l'
    only offered "$1: trace compare --scope l" "linked"
    $1 'temper trace metrics.jsonl oper'
    every offered "$1: a view" operators
    $1 'temper eval --out no'
    only offered "$1: a file" "notes.txt"
    $1 'temper plan --color al'
    only offered "$1: --color" "always"
    $1 'temper help --completion f'
    only offered "$1: help --completion" "fish"
    $1 'temper generate --samples '
    only offered "$1: a number" ""
}

in_bash() {
    # Words as readline parts them: '=' is one of its own.
    bash --norc -c '
        . ./bash.sh
        line=${1//=/ = }
        read -ra COMP_WORDS <<<"$line"
        [[ $line == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _temper 2>/dev/null
        [[ ${#COMPREPLY[@]} == 0 ]] || printf "%s\n" "${COMPREPLY[@]}"' - "$1" >offered
}

in_fish() {
    fish --no-config -c 'source fish.fish; complete -C "$argv[1]"' "$1" </dev/null 2>fish.err | cut -f 1 >offered
    [ ! -s fish.err ] || { cp fish.err err && fail "fish complains"; }
}

# A terminal for zsh, in which Tab is pressed; compadd tells what would be listed.  What is typed may come back as it is: marks
# stand in quotes there, so that only what is printed has them.
in_zsh() {
    cat >ask.zsh <<'END'
zmodload zsh/zpty
zpty asked zsh -f -i
{
    zpty -w asked 'PS1= PS2=; setopt no_beep; stty -echo; autoload -Uz compinit; compinit -D -u; source ./zsh.sh'
    zpty -w asked 'compadd() { [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]] && { builtin compadd "$@"; return }
        typeset -a hits; builtin compadd -A hits "$@"; local suffix=${${@[1,(i)(-|--)]}[(r)-S]:+x} hit
        for hit in $hits; print -r -- "<""<$hit>"">"; builtin compadd "$@" }'
    zpty -w asked 'bindkey "^I" complete-word; _end() { print "==e""nd=="; compstate[insert]= compstate[list]= }; comppostfuncs=(_end); print RE""ADY'
    local all= part
    while zpty -r asked part; do [[ $part == *READY* ]] && break; done
    zpty -w -n asked "$1"$'\t'
    while zpty -r asked part; do
        print -r -- $part
        [[ $part == *'==end=='* ]] && break
    done
} always { zpty -d asked }
END
    timeout 500 zsh -f ask.zsh "$1" 2>/dev/null | tr -d '\r' | grep -o '<<[^<>]*>>' | sed 's/^<<//; s/>>$//' | sort -u >offered
}

for shell in bash zsh fish; do
    run help --completion $shell
    expect 0
    cp out $shell.$([ $shell = fish ] && echo fish || echo sh)
    if ! command -v $shell >/dev/null; then
        echo "$shell is not here: its completion is not tried"
        continue
    fi
    suite in_$shell
done
run help --completion tcsh
expect 2 "--completion takes bash, zsh or fish, not 'tcsh'"
if command -v bash >/dev/null; then
    in_bash 'temper train --progress=p'
    only offered "bash: --progress=p" "plain"
    in_bash 'temper train demo data.train.data_path=no'
    only offered "bash: the value of a key" "notes.txt"
fi
[ -n "$tried" ] || exit 77
finish
