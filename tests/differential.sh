#!/bin/sh
# Compares what q does with what it did in another revision: sh tests/differential.sh [-k PATTERN] [-v] REVISION
set -eu

usage() {
    echo 'usage: sh tests/differential.sh [-k PATTERN] [-v] REVISION' >&2
    exit 2
}
pattern=
verbose=
while getopts k:v option; do
    case $option in
        k) pattern=$OPTARG ;;
        v) verbose=-v ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# = 1 ] || usage

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
revision=$(git rev-parse --verify --quiet --end-of-options "$1^{commit}") || { echo "differential.sh: there is no revision $1" >&2; exit 2; }
builds=${CARGO_TARGET_DIR:-$root/target}/differential
mkdir -p "$builds"
builds=$(CDPATH='' cd -- "$builds" && pwd)
# Always at the same place, or cargo would keep a build for each.
tree=$builds/tree

# Two at once share the builds, one after the other; each has its own copies of the programs.
if command -v flock >/dev/null; then
    exec 9>"$builds/lock"
    flock 9
fi
programs=
remove_tree() {
    git worktree remove --force "$tree" 2>/dev/null || rm -rf "$tree"
    git worktree prune
}
building=yes
clean_up() {
    [ -z "$building" ] || remove_tree
    [ -z "$programs" ] || rm -rf "$programs"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# One that was killed may have left its tree.
remove_tree
git worktree add --quiet --force --detach "$tree" "$revision"
(cd "$tree" && cargo build --locked --quiet --target-dir "$builds/old")
cargo build --locked --quiet --target-dir "$builds/new"
programs=$(mktemp -d "$builds/programs.XXXXXX")
cp "$builds/old/debug/q" "$programs/old"
cp "$builds/new/debug/q" "$programs/new"
remove_tree
building=
exec 9>&-

python3 tests/differential/run.py ${verbose:+"$verbose"} -k "$pattern" "$programs/old" "$programs/new"
