"""Makes the archive of a program: archive.py PROGRAM DIRECTORY.tar.gz SECONDS. The same files and time give the same bytes."""

import gzip
import io
import pathlib
import sys
import tarfile

ROOT = pathlib.Path(__file__).parent.parent
FILES = {
    "README.md": "README.md",
    # What the README links to.
    ".github/CONTRIBUTING.md": ".github/CONTRIBUTING.md",
    ".github/SECURITY.md": ".github/SECURITY.md",
    ".github/session.svg": ".github/session.svg",
    "CHANGELOG.md": "CHANGELOG.md",
    "LICENSE": "LICENSE",
    "tests/bench/README.md": "tests/bench/README.md",
    "tests/compare/README.md": "tests/compare/README.md",
    "share/bash-completion/completions/q": "completions/q.bash",
    "share/fish/vendor_completions.d/q.fish": "completions/q.fish",
    "share/man/man1/q.1": "man/q.1",
    "share/zsh/site-functions/_q": "completions/_q",
}


def member(name, kind, mode, seconds):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.mtime = kind, mode, seconds
    return info


def main():
    program, archive, seconds = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    top = archive.name.removesuffix(".tar.gz")
    files = {f"{top}/bin/q": program}
    for name, source in FILES.items():
        files[f"{top}/{name}"] = ROOT / source
    directories = {str(directory) for name in files for directory in pathlib.PurePath(name).parents} - {"."}

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(directories):
            tar.addfile(member(name, tarfile.DIRTYPE, 0o755, seconds))
        for name, source in sorted(files.items()):
            content = source.read_bytes()
            info = member(name, tarfile.REGTYPE, 0o755 if name.endswith("/bin/q") else 0o644, seconds)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    archive.write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))


main()
