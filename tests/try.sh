#!/bin/sh
# Runs `q WORDS…` against a small real model on this machine, without a key: sh tests/try.sh "…", then sh tests/try.sh -f "…".
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
try=$root/target/try
mkdir -p "$try"

# Only q may read the input, which can be the output of `git diff`. On a terminal cargo and pip show their bars.
quiet=--quiet
log=.git/logs/HEAD # the build asks for the commit
[ -e "$root/$log" ] || log=
newer=$(cd "$root" && find src .cargo/build.rs Cargo.lock $log -newer target/release/q 2>&1 | head -n 1)
if [ -n "$newer" ]; then
    echo 'Building q: three minutes on two cores, and 0.3 GB below target/.' >&2
    [ ! -t 2 ] || quiet=
fi
(cd "$root" && cargo build --release --locked $quiet --target-dir target) </dev/null
new=no
[ -d "$try/model" ] || new=yes
python=$(sh "$root/tests/venv.sh" model 'a small model of 130 MB' --no-deps </dev/null)

# With -t there is a command for the calendar, and the model gets a chat template that knows tools.
template=
for argument in "$@"; do
    case $argument in
    -t* | --tools*)
        mkdir -p "$try/config/q"
        sed -n '/^    \[tools\.date/,/^$/s/^    //p' "$root/README.md" >"$try/config/q/config.toml"
        template=$root/tests/model/tools.jinja
        ;;
    --) break ;;
    esac
done

# The server lives as long as descriptor 3 is open, which only this shell holds: it ends with it, whatever happens.
pipes=$(mktemp -d "$try/pipes.XXXXXX")
mkfifo "$pipes/in" "$pipes/out"
"$python" "$root/tests/model/serve.py" ${template:+--template "$template"} <"$pipes/in" >"$pipes/out" 2>"$try/server.log" &
exec 3>"$pipes/in" 4<"$pipes/out"
rm -r "$pipes"
[ "$new" = no ] || echo 'Starting the model, and asking it.' >&2
read -r address <&4 || address=
if [ -z "$address" ]; then
    cat "$try/server.log" >&2
    echo 'The model server did not start.' >&2
    exit 1
fi

# A model that was set for another provider means nothing here, and one so small can repeat itself without end. It follows
# up well only if the history comes as messages.
unset Q_MODEL
export Q_MAX_TOKENS="${Q_MAX_TOKENS:-300}" Q_HISTORY="${Q_HISTORY:-messages}"
status=0
LLAMACPP_BASE_URL=$address/v1 Q_PROVIDER=llamacpp XDG_STATE_HOME=$try/state XDG_CONFIG_HOME=$try/config \
    "$root/target/release/q" "$@" 3>&- 4<&- || status=$?

exec 3>&-
wait
exit "$status"
