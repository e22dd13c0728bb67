#!/bin/sh
# Makes what a release offers in target/dist, and proves that it is enough: sh tests/dist.sh
# On Linux (x86-64, and root or user namespaces) these are static archives and Debian packages for x86-64 and ARM64; on
# macOS (Apple silicon, with Rosetta) archives for both kinds of Mac.
set -eu
umask 022
exec </dev/null

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
PATH=$PATH:/usr/sbin:/sbin
system=$(uname -s)
needed='rustup git python3'
[ "$system" = Darwin ] || needed="$needed qemu-aarch64 busybox unshare chroot dpkg dpkg-deb"
missing=
for tool in $needed; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
if [ -n "$missing" ]; then
    echo "dist.sh: not installed, but needed:$missing" >&2
    exit 1
fi

dist=$root/target/dist
scratch=$dist/scratch
rm -rf "$dist"
mkdir -p "$scratch"
server=
trap 'kill $server 2>/dev/null || :; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

fail() {
    echo "dist.sh: $1" >&2
    exit 1
}

# The Rust that Cargo.toml names, and no path of this machine: the same commit gives the same bytes everywhere.
commit=" ($(git rev-parse HEAD | cut -c -12))"
[ -z "$(git status --porcelain -- src .cargo/build.rs Cargo.toml Cargo.lock)" ] || commit=
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
RUSTUP_TOOLCHAIN=$(sed -n 's/^rust-version = "\([0-9.]*\)".*/\1/p' Cargo.toml)
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/oldest
RUSTFLAGS=--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo
CARGO_ZIGBUILD_CACHE_DIR=$root/target/try/zig
ZIG_GLOBAL_CACHE_DIR=$root/target/try/zig
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export RUSTUP_TOOLCHAIN CARGO_TARGET_DIR RUSTFLAGS CARGO_ZIGBUILD_CACHE_DIR ZIG_GLOBAL_CACHE_DIR SOURCE_DATE_EPOCH
rustc --version >/dev/null 2>&1 || rustup toolchain install "$RUSTUP_TOOLCHAIN" --profile minimal

# archive TARGET: of the program that was built for it.
archive() {
    python3 tests/archive.py "$CARGO_TARGET_DIR/$1/release/q" "$dist/q-$version-$1.tar.gz" "$SOURCE_DATE_EPOCH"
}

python3 tests/server.py "$scratch/port" &
server=$!
until [ -e "$scratch/port" ]; do
    kill -0 "$server" || fail 'the server did not start'
    sleep 0.1
done

# with HOME COMMAND…: in an environment where q asks the server.
with() {
    home=$1
    shift
    env -i PATH="$PATH" HOME="$home" XDG_STATE_HOME="$home/.local/state" OPENAI_API_KEY=sk-test Q_TIMEOUT=2m \
        OPENAI_BASE_URL="http://127.0.0.1:$(cat "$scratch/port")/v1" "$@"
}

# What looks like root to chroot and dpkg.
as_root=
[ "$(id -u)" = 0 ] || as_root='unshare --user --map-root-user'

# in_root DIRECTORY HOME COMMAND…: where there is nothing but the files of the directory.
in_root() {
    directory=$1 home=$2
    shift 2
    # shellcheck disable=SC2086 # several words, or none
    with "$home" $as_root chroot "$directory" "$@"
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

# is_installed HOME COMMAND…: that the lines of the README have put everything below this home; the command runs its program.
is_installed() {
    home=$1
    shift
    said=$("$@" --version) || fail 'not installed'
    [ "$said" = "q $version$commit" ] || fail "installed, but it says: $said"
    for file in man/man1/q.1 bash-completion/completions/q zsh/site-functions/_q fish/vendor_completions.d/q.fish; do
        [ -s "$home/.local/share/$file" ] || fail "not installed: $file"
    done
}

# The lines of the README that install an archive, and those that uninstall it.
{ echo cd && sed -n '/^    tar xzf /,/^$/s/^    //p' README.md; } >"$scratch/install"
sed -n '/^    cd .* rm -f /,/^$/s/^    //p' README.md >"$scratch/uninstall"

if [ "$system" = Darwin ]; then
    for target in aarch64-apple-darwin x86_64-apple-darwin; do
        rustup target add "$target"
        cargo build --release --locked --target "$target"
        archive "$target"
        mkdir "$scratch/$target"
        cp "$dist/q-$version-$target.tar.gz" "$scratch/$target"
        with "$scratch/$target" sh -e "$scratch/install"
        is_installed "$scratch/$target" "$scratch/$target/.local/bin/q"
        answers "$target" "$scratch/$target" with "$scratch/$target" "$scratch/$target/.local/bin/q"
    done
    exit
fi

cross=$(sh tests/venv.sh cross 'a compiler for other systems' --no-deps)
tools=$root/target/try/cargo-deb
PATH=$PATH:$tools/bin # cargo would warn of a directory that is not in it
# Without optimization, which takes longer than what it makes faster.
cargo install --quiet --debug cargo-deb --version 3.8.0 --locked --no-default-features --root "$tools"
x86=x86_64-unknown-linux-musl
arm=aarch64-unknown-linux-musl
rustup target add $x86 $arm
# Both at once: the last part of a build keeps one processor busy.
PATH=${cross%/*}:$PATH cargo-zigbuild build --release --locked --target $x86 --target $arm
for target in $x86 $arm; do
    archive "$target"
    cargo-deb --quiet --no-build --no-strip --target "$target" --output "$dist/"
done
(cd "$dist" && sha256sum q* >SHA256SUMS && sha256sum --check --strict SHA256SUMS)
x86=q-$version-$x86
arm=q-$version-$arm

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
for tool in sh tar gzip mkdir cp rm; do ln -s busybox "$shell/bin/$tool"; done
cp "$dist/$x86.tar.gz" "$shell/home/"
cp "$scratch/install" "$scratch/uninstall" "$shell/"
in_root "$shell" /home sh -e /install
is_installed "$shell/home" in_root "$shell" /home /home/.local/bin/q
# shellcheck disable=SC2016 # it is for the shell in there
answers 'installed where there is only a shell' "$shell/home" in_root "$shell" /home sh -c 'PATH=~/.local/bin:$PATH; q "$@"' sh
in_root "$shell" /home sh -e /uninstall
left=$(find "$shell/home/.local" -type f)
[ -z "$left" ] || fail "left after uninstalling: $left"

# The Debian packages: installed where there is nothing else, asked, and removed without a trace; ARM64 under an emulator.
package=$scratch/package
mkdir -p "$package/var/lib/dpkg/updates" "$package/var/lib/dpkg/info"
: >"$package/var/lib/dpkg/status"
debian() {
    $as_root dpkg --root="$package" --log=/dev/null "$@" >"$scratch/dpkg" 2>&1 || fail "$(cat "$scratch/dpkg")"
}
debian --install "$dist/q-ask_${version}_amd64.deb"
answers 'Debian package' "$package/root" in_root "$package" /root /usr/bin/q
for file in man/man1/q.1.gz bash-completion/completions/q zsh/vendor-completions/_q fish/vendor_completions.d/q.fish \
    doc/q-ask/copyright; do
    [ -s "$package/usr/share/$file" ] || fail "not in the package: $file"
done
grep -qx 'Conflicts: python3-q-text-as-data' "$package/var/lib/dpkg/status" || fail 'the package conflicts with nothing'
debian --purge q-ask
[ ! -e "$package/usr" ] || fail "left by the package: $(find "$package/usr")"

mkdir "$scratch/arm-package"
dpkg-deb --extract "$dist/q-ask_${version}_arm64.deb" "$scratch/arm-package"
answers 'Debian package for ARM64, emulated' "$scratch/arm" with "$scratch/arm" qemu-aarch64 "$scratch/arm-package/usr/bin/q"
