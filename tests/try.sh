#!/bin/sh
# Runs `q WORDS…` against a small real model on this machine, without a key: sh tests/try.sh "…", then sh tests/try.sh -f "…".
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
try=$root/target/try
mkdir -p "$try"

say() { printf '%s\n' "$*" >&2; }

# Only q may read the input, which can be the output of `git diff`. q is built for this alone, without optimization, which takes a
# quarter of the time; meanwhile the model is installed. On a terminal cargo shows its bar, and what pip says is kept for a failure.
new=no
[ -x "$try/build/debug/q" ] && [ -d "$try/model" ] || new=yes
quiet=--quiet
[ "$new" = no ] || [ ! -t 2 ] || quiet=
[ "$new" = no ] || say 'Building q and downloading a small model of 130 MB: two minutes on two cores, and 0.5 GB below target/.'
sh "$root/tests/venv.sh" model 'a small model of 130 MB' --no-deps </dev/null >"$try/python" 2>"$try/install.log" &
installing=$!
(cd "$root" && CARGO_INCREMENTAL=0 cargo build --locked $quiet --target-dir target/try/build) </dev/null
[ "$new" = no ] || ! kill -0 "$installing" 2>/dev/null || say 'q is built; the model is still being installed.'
wait "$installing" || {
    cat "$try/install.log" >&2
    exit 1
}
python=$(cat "$try/python")

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
[ "$new" = no ] || say 'Starting the model, and asking it.'
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
    "$try/build/debug/q" "$@" 3>&- 4<&- || status=$?

exec 3>&-
wait
exit "$status"
