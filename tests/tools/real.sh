#!/bin/sh
# Lists, calls and ends real tool servers with q: real.sh PATH-OF-Q. It needs Python, npm, Chromium and the network.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
python=$(sh "$root/tests/venv.sh" tools/python 'tool servers in Python')
sqlite=$(sh "$root/tests/venv.sh" tools/sqlite 'a tool server for SQLite')
rust=$(sh "$root/tests/venv.sh" tools/rust 'a tool server in Rust')
modules=$root/target/try/tools-node
if ! cmp -s "$root/tests/tools/packages.txt" "$modules/packages.txt"; then
    rm -rf "$modules"
    mkdir -p "$modules"
    # shellcheck disable=SC2046 # one word for each package
    npm install --prefix "$modules" --no-package-lock --no-audit --no-fund --loglevel=error \
        $(cat "$root/tests/tools/packages.txt") >&2
    cp "$root/tests/tools/packages.txt" "$modules/"
fi
cp "$root/tests/tools/adder.mjs" "$modules/" # its packages are looked for beside it
"$python" "$root/tests/tools/real.py" "$1" "$python" "$sqlite" "$rust" "$modules/node_modules"
