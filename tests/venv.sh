#!/bin/sh
# Prints the path of a Python that has the packages of a file of tests/, installed below target/ on first use:
# venv.sh FOLDER WHAT-IT-IS [PIP-OPTIONS] installs tests/FOLDER/requirements.txt.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
wanted=$root/tests/$1/requirements.txt
venv=$root/target/try/$(echo "$1" | tr / -)
what=$2
shift 2

if [ -x "$venv/bin/python" ] && cmp -s "$wanted" "$venv/requirements.txt"; then
    echo "$venv/bin/python"
    exit
fi

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ||
    fail 'Python 3.10 or newer is needed, as python3.'

echo "Installing $what (once) from the Python package index." >&2
mkdir -p "$root/target/try"
log=$venv.log
# Made under another name and renamed when complete, so that neither an interruption nor a second caller leaves half of one.
new=$(mktemp -d "$venv.XXXXXX")
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM

# On a terminal, pip's bars show how far it is; its other words go there, too.
install() {
    set -- "$@" --disable-pip-version-check --only-binary :all: --requirement "$wanted"
    if [ -t 2 ]; then
        : >"$log"
        "$@" >&2 </dev/null
    else
        "$@" --quiet >"$log" 2>&1 </dev/null
    fi || {
        cat "$log" >&2
        fail 'The packages could not be installed. They need the network, and Linux (x86-64 or ARM64, with glibc) or macOS 13 on ARM64.'
    }
}

if python3 -m venv "$new" >"$log" 2>&1; then
    install "$new/bin/python" -m pip install "$@"
elif python3 -m pip --version >/dev/null 2>&1 && python3 -m venv --clear --without-pip "$new" >"$log" 2>&1; then
    # Debian and Ubuntu keep what puts pip into a virtual environment in a package of its own; any other pip will do.
    install python3 -m pip install "$@" --target "$new"/lib/python3*/site-packages
else
    cat "$log" >&2
    fail 'No virtual environment could be made. On Debian and Ubuntu: sudo apt-get install python3-venv'
fi

cp "$wanted" "$new/requirements.txt"
# What runs as another user may use it, too.
chmod 755 "$new"
# Not mv, which would move it into one that a second caller has put there meanwhile.
rm -rf "$venv"
python3 -c 'import os, sys; os.rename(*sys.argv[1:])' "$new" "$venv" 2>/dev/null || [ -x "$venv/bin/python" ]
echo "$venv/bin/python"
