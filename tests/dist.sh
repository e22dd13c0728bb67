#!/bin/sh
# Makes the archives of a release in target/dist, and proves that they are enough: sh tests/dist.sh
# It needs Linux on x86-64, and root or user namespaces for roots that hold nothing but q.
set -eu
umask 022
exec </dev/null

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
PATH=$PATH:/usr/sbin:/sbin
missing=
for tool in rustup git python3 qemu-aarch64 busybox unshare chroot timeout; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
if [ -n "$missing" ]; then
    echo "dist.sh: not installed, but needed:$missing" >&2
    exit 1
fi

dist=$root/target/dist
scratch=$dist/scratch
rm -rf "$dist"
mkdir -p "$scratch/files"
server=
trap 'kill $server 2>/dev/null || :; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

fail() {
    echo "dist.sh: $1" >&2
    exit 1
}

# The Rust that Cargo.toml names, and no path of this machine: the same commit gives the same bytes everywhere.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
RUSTUP_TOOLCHAIN=$(sed -n 's/^rust-version = "\([0-9.]*\)".*/\1/p' Cargo.toml)
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/oldest
RUSTFLAGS=--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo
CARGO_ZIGBUILD_CACHE_DIR=$root/target/try/zig
ZIG_GLOBAL_CACHE_DIR=$root/target/try/zig
export RUSTUP_TOOLCHAIN CARGO_TARGET_DIR RUSTFLAGS CARGO_ZIGBUILD_CACHE_DIR ZIG_GLOBAL_CACHE_DIR
time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
x86=q-$version-x86_64-unknown-linux-musl
arm=q-$version-aarch64-unknown-linux-musl

cross=$(sh tests/venv.sh cross 'a compiler for other systems' --no-deps)
rustc --version >/dev/null 2>&1 || rustup toolchain install "$RUSTUP_TOOLCHAIN" --profile minimal
for name in "$x86" "$arm"; do
    target=${name#"q-$version-"}
    rustup target add "$target"
    PATH=${cross%/*}:$PATH cargo-zigbuild build --release --locked --target "$target"
    while read -r mode from to; do
        install -D -m "$mode" "$from" "$scratch/files/$name/$to"
    done <<FILES
755 $CARGO_TARGET_DIR/$target/release/q bin/q
644 man/q.1 share/man/man1/q.1
644 completions/q.bash share/bash-completion/completions/q
644 completions/_q share/zsh/site-functions/_q
644 completions/q.fish share/fish/vendor_completions.d/q.fish
644 README.md README.md
644 LICENSE LICENSE
FILES
    tar --create --directory "$scratch/files" --format=ustar --sort=name --owner=0 --group=0 --numeric-owner \
        --mtime="@$time" "$name" | gzip -9 --no-name >"$dist/$name.tar.gz"
done
(cd "$dist" && sha256sum ./*.tar.gz | sed 's| \./| |' >SHA256SUMS && sha256sum --check --strict SHA256SUMS)

python3 tests/server.py "$scratch/port" &
server=$!
until [ -e "$scratch/port" ]; do
    kill -0 "$server" || fail 'the server did not start'
    sleep 0.1
done

# with HOME COMMAND…: for two minutes at most, and in an environment where q asks the server.
with() {
    home=$1
    shift
    timeout 120 env -i PATH="$PATH" HOME="$home" OPENAI_API_KEY=sk-test \
        OPENAI_BASE_URL="http://127.0.0.1:$(cat "$scratch/port")/v1" "$@"
}

# in_root FOLDER HOME COMMAND…: where there is nothing but the files of the folder.
in_root() {
    folder=$1 home=$2
    shift 2
    if [ "$(id -u)" = 0 ]; then
        with "$home" chroot "$folder" "$@"
    else
        with "$home" unshare --user --map-root-user chroot "$folder" "$@"
    fi
}

# answers WHERE HOME COMMAND…: that q answers and follows up, and has both in the conversation that it keeps below this home.
answers() {
    where=$1 state=$2/.local/state/q/sessions
    shift 2
    for words in 'first question' '-f second question'; do
        # shellcheck disable=SC2086 # the option is a word of its own
        said=$("$@" $words) || fail "$where: exit status $?"
        [ "$said" = 'an answer' ] || fail "$where: no answer, but: $said"
    done
    for words in 'first question' 'second question'; do
        grep -q "$words" "$state/current.json" || fail "$where: not saved: $words"
    done
    echo "ok    $where"
}

mkdir "$scratch/empty"
tar xzf "$dist/$x86.tar.gz" -C "$scratch/empty"
answers 'x86-64, in an empty root' "$scratch/empty" in_root "$scratch/empty" / "/$x86/bin/q"

mkdir "$scratch/arm"
tar xzf "$dist/$arm.tar.gz" -C "$scratch/arm"
answers 'ARM64, emulated' "$scratch/arm" with "$scratch/arm" qemu-aarch64 "$scratch/arm/$arm/bin/q"

# As someone would install it who has a shell and little else, by the lines of the README.
shell=$scratch/shell
mkdir -p "$shell/bin" "$shell/home"
cp "$(command -v busybox)" "$shell/bin/"
for tool in sh tar gzip mkdir cp; do ln -s busybox "$shell/bin/$tool"; done
cp "$dist/$x86.tar.gz" "$shell/home/"
{ echo cd && sed -n '/^    tar xzf /,/^$/s/^    //p' README.md; } >"$shell/install"
said=$(in_root "$shell" /home sh -e /install && in_root "$shell" /home /home/.local/bin/q --version) || fail 'not installed'
[ "$said" = "q $version" ] || fail "installed, but it says: $said"
for file in man/man1/q.1 bash-completion/completions/q zsh/site-functions/_q fish/vendor_completions.d/q.fish; do
    [ -s "$shell/home/.local/share/$file" ] || fail "not installed: $file"
done
# shellcheck disable=SC2016 # it is for the shell in there
answers 'installed where there is only a shell' "$shell/home" in_root "$shell" /home sh -c 'PATH=~/.local/bin:$PATH; q "$@"' sh
