#!/bin/sh
# Lists, calls and ends real tool servers with q: real.sh PATH-OF-Q. It needs Python, npm, Chromium and the network.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
python=$(sh "$root/tests/venv.sh" tools/python 'tool servers in Python')
sqlite=$(sh "$root/tests/venv.sh" tools/sqlite 'a tool server for SQLite')
rust=$(sh "$root/tests/venv.sh" tools/rust 'a tool server in Rust')
modules=$(sh "$root/tests/npm.sh" tools)
cp "$root/tests/tools/adder.mjs" "$modules/" # its packages are looked for beside it
"$python" "$root/tests/tools/real.py" "$1" "$python" "$sqlite" "$rust" "$modules/node_modules"
