#!/bin/sh
# Tries to break out of the manual's recipes without confinement, with their real programs: recipes.sh PATH-OF-Q [TRIAL…]. It needs
# Python, PostgreSQL, curl and openssl. confined.sh tries the confined ones.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
python3 "$root/tests/tools/recipes.py" "$@"
