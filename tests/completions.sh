#!/bin/sh
# Drives the completions, and lines of the README, in real shells, on terminals of their own: sh tests/completions.sh PATH_OF_Q
set -eu

q=$(CDPATH='' cd -- "$(dirname -- "$1")" && pwd)/$(basename -- "$1")

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
missing=
for tool in bash zsh fish timeout; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
if [ -n "$missing" ]; then
    echo "completions.sh: not installed, but needed:$missing" >&2
    exit 1
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

# Where, what is typed, and what is offered then: a pattern over the sorted names, or "nothing".
cat >"$scratch/cases" <<'END'
full      q --fo<TAB>                         --follow
full      q --no-s<TAB>                       --no-save, --no-stdin, --no-stream
full      q --provi<TAB>                      --provider
full      q -<TAB>                            *--all, *--follow, *--session, *--version, *-f, *-p, *-s, *
full      q --xyz<TAB>                        nothing
full      git diff | q --fo<TAB>              --follow

full      q -p <TAB>                          anthropic, *, ollama, openai, openrouter, vllm, work, xai, zai
full      q -p an<TAB>                        anthropic
full      q -p w<TAB>                         work
full      q -p h<TAB>                         home-lab
full      q -p zz<TAB>                        nothing
full      q --provider <TAB>                  anthropic, *, work, xai, zai
full      q --provider=<TAB>                  anthropic, *, work, xai, zai
full      q --provider=an<TAB>                anthropic
full      q -pan<TAB>                         -panthropic
full      q -fp an<TAB>                       anthropic
full      q -fpan<TAB>                        -fpanthropic
full      q -f -p an<TAB>                     anthropic
full      q --models -p an<TAB>               anthropic

full      q -r <TAB>                          blunt, fabric, review, system
full      q -r re<TAB>                        review
full      q --role=fa<TAB>                    fabric
full      q -fr bl<TAB>                       blunt
empty     q -r <TAB>                          nothing

full      q -s <TAB>                          weekly.v2, work
full      q -s session_<TAB>                  session_20261121100000000, session_20261121100000000~1
full      q --session=session_2<TAB>          session_20261121100000000, session_20261121100000000~1
full      q -ssession_20261121100000000~<TAB> -ssession_20261121100000000~1
full      q -s work~<TAB>                     work~1
full      q -s sess<TAB>                      nothing
full      q -s w<TAB>                         weekly.v2, work
full      q -s c<TAB>                         nothing
full      q --session <TAB>                   weekly.v2, work
full      q --session=wo<TAB>                 work
full      q -swo<TAB>                         -swork
full      q --clear -s wo<TAB>                work

full      q -t <TAB>                          db, db__read_query, none, shop, shop__rows, shop__sql, time
full      q -t db__<TAB>                      db__read_query
full      q -t shop__s<TAB>                   shop__sql
full      q --tools=ti<TAB>                   time
full      q -tno<TAB>                         -tnone
full      q --list-tools -t ti<TAB>           time
empty     q -t <TAB>                          none

full      q --generate <TAB>                  bash, fish, keys-bash, keys-fish, keys-zsh, man, skill, zsh
full      q --generate=<TAB>                  bash, fish, keys-bash, keys-fish, keys-zsh, man, skill, zsh
full      q --generate z<TAB>                 zsh

full      q -m gpt -<TAB>                     *--all, *-f, *
full      q -m gpt --fo<TAB>                  --follow
full      q -mgpt --fo<TAB>                   --follow
full      q -fm gpt --js<TAB>                 --json
full      q --model=gpt --fo<TAB>             --follow
full      q -m gpt-oss:20b --fo<TAB>          --follow
full      q --model=gpt-oss:20b --fo<TAB>     --follow
full      q -m openai/a=b -p an<TAB>          anthropic
full      q -S "you are" --fo<TAB>            --follow
full      q --system="it's me" --fo<TAB>      --follow
full      q --messages 3 --fo<TAB>            --follow
full      q -s work --fo<TAB>                 --follow

full      ask --fo<TAB>                       --follow
full      ask -p an<TAB>                      anthropic
full      ask -s wo<TAB>                      work
full      ask -f --js<TAB>                    --json

full      q what --fo<TAB>                    nothing
full      q what -<TAB>                       nothing
full      q -m gpt what --fo<TAB>             nothing
full      q what -p a<TAB>                    nothing
full      q "what is" --fo<TAB>               nothing
full      q - --fo<TAB>                       nothing
full      q -- --fo<TAB>                      nothing
full      q -f -- -<TAB>                      nothing
full      q -- -s w<TAB>                      nothing

empty     q -s <TAB>                          nothing
empty     q -p w<TAB>                         nothing
empty     q -p an<TAB>                        anthropic
missing   q -s <TAB>                          nothing
missing   q -s w<TAB>                         nothing
missing   q -p w<TAB>                         nothing
missing   q --fo<TAB>                         --follow

xdg       q -s <TAB>                          elsewhere
xdg       q -p work<TAB>                      work-elsewhere
xdg       q --fo<TAB>                         --follow
relative  q -s w<TAB>                         weekly.v2, work
relative  q -p w<TAB>                         work

files     q <TAB>                             my notes.json, notes.json, sub
files     q what no<TAB>                      notes.json
files     q what is su<TAB>                   sub
files     q -m gpt what no<TAB>               notes.json
files     q -- no<TAB>                        notes.json
files     q -s no<TAB>                        notes.json
files     q -s my<TAB>                        my notes.json
files     q -s sub/<TAB>                      sub/deep.json
files     q -a no<TAB>                        notes.json
files     q --attach=no<TAB>                  notes.json
files     q -a notes.json --att<TAB>          --attach
files     q -a notes.json --attach sub/<TAB>  sub/deep.json
files     q --schema no<TAB>                  notes.json
files     q -p notes<TAB>                     nothing
files     q --provider notes<TAB>             nothing
files     q -m notes<TAB>                     nothing
files     q -S notes<TAB>                     nothing
files     q --messages notes<TAB>             nothing
files     q --generate notes<TAB>             nothing
END

# conversations STATE NAME…: these, among q's other files.
conversations() {
    mkdir -p "$1/q/sessions"
    (
        cd "$1/q/sessions"
        shift
        for name in current current-tty1 "$@"; do
            echo '{}' >"$name.json"
        done
        touch .tmp session_20261121090000.json.unreadable ../lock
    )
}

# providers CONFIG NAME: a configuration with this one, and roles.
providers() {
    mkdir -p "$1/q/roles/fabric" "$1/q/roles/empty"
    touch "$1/q/roles/blunt.md" "$1/q/roles/system.md" "$1/q/roles/fabric/system.md" "$1/q/roles/fabric/user.md" \
        "$1/q/roles/no role.md" "$1/q/roles/notes.txt"
    cat >"$1/q/config.toml" <<END
provider = "$2"
# [providers.worthless]
system = """
[providers.worthless]
[tools.worthless]
"""
[ providers . $2 ]
base_url = "http://127.0.0.1:9/v1"
[providers.$2.headers]
x-wrong = "no name"
[providers.'home-lab']  # at home
base_url = "http://127.0.0.1:9/v1"
[tools]
time = { command = ["uvx", "mcp-server-time"] }
[tools.db]
command = ["uvx", "mcp-server-sqlite"]
only = [
    "read_query", "list_*",
]
[tools.shop]
allow = ["sql", "@reads"]
[tools.shop.env]
A = "b"
[tools.shop.sql]
run = ["sqlite3", "{query}"]
[tools.shop.rows]
run = ["sqlite3", "rows"]
[roles.review]
model = "m"
[roles.review.options]
seed = 1
END
}

# Each place is a directory with a home, and with the directory "here" that the shells run in.
for place in full empty missing xdg relative files; do
    mkdir -p "$scratch/$place/home" "$scratch/$place/here"
done
for place in full xdg relative; do
    conversations "$scratch/$place/home/.local/state" work work~1 weekly.v2 session_20261121100000000 session_20261121100000000~1
    providers "$scratch/$place/home/.config" work
done
conversations "$scratch/xdg/state" elsewhere
providers "$scratch/xdg/config" work-elsewhere
conversations "$scratch/relative/here/state" wrong
providers "$scratch/relative/here/config" wrong
mkdir -p "$scratch/empty/home/.local/state/q/sessions"
mkdir "$scratch/files/here/sub"
touch "$scratch/files/here/notes.json" "$scratch/files/here/my notes.json" "$scratch/files/here/sub/deep.json"

# in_place PLACE COMMAND…: with nothing of the user's in the environment.
in_place() (
    place=$scratch/$1
    shift
    cd "$place/here"
    case $place in
    */xdg) set -- "XDG_STATE_HOME=$place/state" "XDG_CONFIG_HOME=$place/config" "$@" ;;
    */relative) set -- XDG_STATE_HOME=state XDG_CONFIG_HOME=config "$@" ;;
    esac
    env -i PATH="$scratch/bin:$PATH" TERM=xterm LC_ALL=C.UTF-8 HOME="$place/home" ZDOTDIR="$scratch" \
        INPUTRC="$scratch/inputrc" COMPLETIONS="$root/completions" SCRATCH="$scratch" PLACE="${place##*/}" "$@"
)

mkdir "$scratch/bin"
ln -s "$q" "$scratch/bin/q"

# bash and zsh are made to put everything that they offer into the line, from where it is read.
cat >"$scratch/keep" <<'END'
number=0
# keep TYPED LINE: notes the words that LINE has in place of the last one of TYPED.
keep() {
    words=()
    [[ $2 == "$1" ]] || eval "words=(${2#"${1% *} "})"
    printf '%s\n' "${words[@]}" >"$SCRATCH/offered.$((number += 1))"
}
END

cat >"$scratch/inputrc" <<'END'
set bell-style none
"\C-xa": insert-completions
END
cat >"$scratch/bashrc" <<'END'
HISTFILE=
alias sed=false awk=false find=false q='q -n'
source "$SCRATCH/keep"
source "$COMPLETIONS/q.bash"
# As the manual has it.
alias ask='q -n'
complete -o default -F _q ask
next() {
    IFS= read -r typed <&3
    keep "$typed" "$READLINE_LINE"
    READLINE_LINE='' READLINE_POINT=0
}
bind -x '"\C-xn": next'
exec 3<"$SCRATCH/lines"
END

# In one place the file is sourced, in the others it is found in $fpath.
cat >"$scratch/.zshrc" <<'END'
alias sed=false awk=false find=false ask='q -n'
source $SCRATCH/keep
autoload -Uz compinit
if [[ $PLACE == xdg ]]; then
    compinit -D -u
    source $COMPLETIONS/_q
else
    fpath=($COMPLETIONS $fpath)
    compinit -D -u
fi
all() { compstate[insert]=all compstate[list]= }
offer() {
    comppostfuncs=(all)
    _main_complete
}
zle -C offer complete-word offer
every-line() {
    local typed
    while IFS= read -r typed; do
        BUFFER=$typed CURSOR=$#typed
        zle offer
        keep "$typed" "$BUFFER"
    done <$SCRATCH/lines
    exit
}
zle -N zle-line-init every-line
END

cat >"$scratch/each.fish" <<'END'
set fish_complete_path $COMPLETIONS
alias ask='q -n'
set number 0
for typed in (cat $SCRATCH/lines)
    set number (math $number + 1)
    complete -C $typed | string replace -r '\t.*' '' >$SCRATCH/offered.$number
end
END

# on_terminal PLACE SCRIPT: until the script has ended, or has hung for too long.
on_terminal() {
    # shellcheck disable=SC2016 # for zsh
    in_place "$1" timeout --foreground 60 \
        zsh -f -c 'zmodload zsh/zpty && zpty shell "$1" && zpty -r shell' zsh "$2" >"$scratch/screen" 2>&1 || true
}

# drive SHELL PLACE: offered.N is what the shell offers for the Nth of the lines, the screen what else it said.
drive() {
    rm -f "$scratch"/offered.*
    case $1 in
    bash)
        while IFS= read -r line; do
            printf '%s\030a\030n' "$line"
        done <"$scratch/lines" >"$scratch/keys"
        # shellcheck disable=SC2016 # for the shell on the terminal
        on_terminal "$2" 'bash --noprofile --rcfile $SCRATCH/bashrc -i <$SCRATCH/keys'
        ;;
    zsh) on_terminal "$2" 'zsh -d -i' ;;
    fish) in_place "$2" timeout 60 fish --no-config "$scratch/each.fish" >"$scratch/screen" 2>&1 </dev/null || true ;;
    esac
}

# The same form for every shell: no --option= before a value, no = or / at the end.
offered() {
    [ -e "$1" ] || { echo 'no answer' && return; }
    names=$(sed -e 's/^--[a-z]*=\(.\)/\1/' -e 's/[=/]$//' -e '/^$/d' "$1" | LC_ALL=C sort -u | sed 's/$/, /' | tr -d '\n')
    names=${names%, }
    echo "${names:-nothing}"
}

passed=0
failed=0

# check WHAT FOUND PATTERN
check() {
    # shellcheck disable=SC2254 # it is a pattern
    case $2 in
    $3)
        passed=$((passed + 1))
        echo "ok    $1"
        ;;
    *)
        failed=$((failed + 1))
        echo "FAIL  $1: found $2, expected $3"
        ;;
    esac
}

for shell in bash zsh fish; do
    for place in full empty missing xdg relative files; do
        sed -n "s/^$place  *//p" "$scratch/cases" >"$scratch/asked"
        sed 's/<TAB>.*//' "$scratch/asked" >"$scratch/lines"
        drive "$shell" "$place"
        number=0
        while IFS= read -r entry; do
            number=$((number + 1))
            check "$shell, $place: ${entry%%>*}>" "$(offered "$scratch/offered.$number")" "$(echo "${entry#*>}" | sed 's/^ *//')"
        done <"$scratch/asked"
        complaints=$(grep -aE '(bash|fish|zsh|_q[a-z_]*): |^\(line|[Nn]o (such|match)' "$scratch/screen" || echo none)
        check "$shell, $place: no complaints" "$complaints" none
    done
done

# The lines of the README for a shell do in it what they say, whatever is there of q.
sed -n '/^    cd .* rm -f /,/^$/s/^    //p' "$root/README.md" >"$scratch/uninstall"
aliased=$(sed -n "s/^    \(alias q='[^']*'\).*/\1/p" "$root/README.md")
unglobbed=$(sed -n 's/^    \(set -U fish_features [a-z-]*\).*/\1/p' "$root/README.md")
for shell in bash 'zsh -f' 'fish --no-config'; do
    home=$scratch/empty/home
    mkdir -p "$home/.local/bin" "$home/.local/share/man/man1" "$home/.config/q"
    touch "$home/.local/bin/q" "$home/.local/share/man/man1/q.1" "$home/.config/q/config.toml"
    # shellcheck disable=SC2086 # a shell and its options
    said=$(in_place empty $shell "$scratch/uninstall" 2>&1) || said="$said, exit status $?"
    left=$(find "$home/.local" "$home/.config/q" -type f 2>/dev/null) || true
    check "$shell: uninstalls q" "${said:-nothing}, ${left:-nothing}" 'nothing, nothing'
done
printf '%s\neval "q --dry-run -m m -p openai why does this fail?"\n' "$aliased" >"$scratch/alias.zsh"
printf 'q --dry-run -m m -p openai why does this fail?\n' >"$scratch/ask.fish"
asked=$(in_place empty OPENAI_API_KEY=none zsh -f "$scratch/alias.zsh" 2>&1) || true
check 'zsh: a question mark without quotes' "$asked" '*why does this fail[?]*'
in_place empty fish -c "$unglobbed"
asked=$(in_place empty OPENAI_API_KEY=none fish "$scratch/ask.fish" 2>&1 </dev/null) || true
check 'fish: a question mark without quotes' "$asked" '*why does this fail[?]\"*'

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
