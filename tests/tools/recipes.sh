#!/bin/sh
# Tries to break out of the recipes of the manual, with their real programs: recipes.sh PATH-OF-Q [TRIAL…]. It needs Python,
# SQLite, PostgreSQL, git, ripgrep, curl, openssl, systemd-journal-remote, and the network for DuckDB.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
python=$(sh "$root/tests/venv.sh" tools/duckdb DuckDB)
"$python" "$root/tests/tools/recipes.py" "$@"
