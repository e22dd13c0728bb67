#!/bin/sh
# Tries to get out of confined commands, and runs real programs confined: confined.sh PATH-OF-Q [PART…]. It needs Linux 6.12,
# a compiler for C, SQLite, git, ripgrep, systemd-journal-remote, and what recipes.sh and real.sh need. Root tries the ways once
# more as a user without rights.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
python=$(sh "$root/tests/venv.sh" tools/duckdb DuckDB)
servers=$(sh "$root/tests/venv.sh" tools/python 'tool servers in Python')
modules=$(sh "$root/tests/npm.sh" tools)
mkdir -p "$root/target/try"
q=$(realpath "$1")
shift
cc -O1 -o "$root/target/try/ways" "$root/tests/tools/confined.c"
cc -O2 -static -o "$root/target/try/ways-static" "$root/tests/tools/confined.c"
"$python" "$root/tests/tools/confined.py" "$q" "$root/target/try/ways" "$servers" "$modules/node_modules" "$@"

[ "$#$(id -u)" = 00 ] || exit 0
packages=$("$python" -c 'import duckdb_cli, os; print(os.path.dirname(os.path.dirname(duckdb_cli.__file__)))')
as_nobody() {
    setpriv --reuid=65534 --regid=65534 --clear-groups \
        env -i "PATH=$PATH" HOME=/nonexistent PYTHONDONTWRITEBYTECODE=1 "PYTHONPATH=$packages" "$@"
}
for python in "$python" python3 /usr/bin/python3; do
    if as_nobody "$q" -V >/dev/null && as_nobody "$python" -c 'import duckdb_cli' 2>/dev/null; then
        echo '=== as a user without rights'
        as_nobody "$python" "$root/tests/tools/confined.py" "$q" "$root/target/try/ways" "$servers" "$modules/node_modules" \
            ways network special
        exit
    fi
done
echo 'SKIPPED: a user without rights can run no Python here, or not q'
