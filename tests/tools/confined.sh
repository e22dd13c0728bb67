#!/bin/sh
# Tries to get out of confined commands, and runs real programs confined: confined.sh PATH-OF-Q [PART…]. It needs Linux 6.12, a compiler for
# C, and what recipes.sh and real.sh need.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
python=$(sh "$root/tests/venv.sh" tools/duckdb DuckDB)
servers=$(sh "$root/tests/venv.sh" tools/python 'tool servers in Python')
modules=$(sh "$root/tests/npm.sh" tools)
mkdir -p "$root/target/try"
q=$1
shift
cc -O1 -o "$root/target/try/ways" "$root/tests/tools/confined.c"
cc -O2 -static -o "$root/target/try/ways-static" "$root/tests/tools/confined.c"
"$python" "$root/tests/tools/confined.py" "$q" "$root/target/try/ways" "$servers" "$modules/node_modules" "$@"
