#!/bin/sh
# Measures q next to its peers in their newest versions, which it installs below target/compare: compare.sh PATH-OF-Q [ROW…]
# needs Linux with unshare and ip, Python 3.11, npm, cargo, curl, jq, GNU time, and the package registries.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
peers=$root/target/compare/peers
mkdir -p "$peers"

# A peer that cannot be installed is left out of the table; the log says why.
install() {
    name=$1
    shift
    "$@" >"$peers/$name.log" 2>&1 </dev/null || echo "$name was not installed: see $peers/$name.log" >&2
}

from_pypi() {
    venv=$peers/$1
    shift
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --disable-pip-version-check --only-binary :all: --upgrade "$@"
}

from_npm() {
    npm install --prefix "$peers/$1" --no-package-lock --no-audit --no-fund --loglevel=error "$2@latest"
}

install llm from_pypi llm llm
install shell_gpt from_pypi shell_gpt shell-gpt
if ! OPENAI_API_KEY=none HOME=$peers "$peers/shell_gpt/bin/sgpt" --version >/dev/null 2>&1; then
    echo 'shell_gpt does not start as it was installed; it gets click.' >&2
    install shell_gpt from_pypi shell_gpt shell-gpt click
fi
install claude from_npm claude @anthropic-ai/claude-code
install codex from_npm codex @openai/codex
install opencode from_npm opencode opencode-ai
install copilot from_npm copilot @github/copilot
install aichat nice cargo install aichat --locked --root "$peers/aichat"

# A network and mounts of its own: nothing but 127.0.0.1 can be reached from here, and a disk can be full.
q=$1
shift
[ "$(id -u)" = 0 ] && user='' || user=--map-root-user
exec unshare ${user:+"$user"} --net --mount sh -c 'ip link set lo up && exec python3 "$@"' sh \
    "$root/tests/compare/compare.py" "$q" "$peers" "$@"
