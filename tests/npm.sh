#!/bin/sh
# Prints the path of a directory that has the npm packages of a file of tests/, installed below target/ on first use:
# npm.sh DIRECTORY installs tests/DIRECTORY/packages.txt.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
wanted=$root/tests/$1/packages.txt
modules=$root/target/try/$1-node
if ! cmp -s "$wanted" "$modules/packages.txt"; then
    rm -rf "$modules"
    mkdir -p "$modules"
    # shellcheck disable=SC2046 # one word for each package
    npm install --prefix "$modules" --no-package-lock --no-audit --no-fund --loglevel=error $(cat "$wanted") >&2
    cp "$wanted" "$modules/"
fi
echo "$modules"
