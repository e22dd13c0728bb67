"""What one program did in one scenario, as lines of text that two programs have in common."""

import difflib
import os
import re
from datetime import datetime, timedelta, timezone

# Times this close to now come from the run, or from a fixture that must be recent. All other times are fixed.
LIVE = timedelta(days=90)

TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ID = re.compile(r"\bsession_\d{17}(?!\d)")
TODAY = re.compile(r"(?<=Today is )(\d{4}-\d\d-\d\d)")

# What a terminal does not show, or obeys; line ends are shown as such.
INVISIBLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")

# How wide a line may be that is shown to a person.
WIDTH = 150


class Transcript:
    """What came of each step, in order."""

    def __init__(self):
        self.parts = []

    def add(self, what, lines):
        first, *rest = lines or ["nothing"]
        self.parts.append("\n".join([f"{what}: {first}", *rest]))

    def normalized(self, volatile):
        """The same without what differs from run to run."""
        same = Transcript()
        same.parts = [stable(text, volatile) for text in self.parts]
        return same

    def lines(self, replacements=()):
        """All lines, with each replacement applied."""
        lines = []
        for text in self.parts:
            for replacement in replacements:
                text = replacement.apply(text)
            lines += text.split("\n")
        return lines


def files_below(root):
    """Lines for each file and folder, by its path. Conversations whose name is a time of the run have a number instead."""
    described, unnamed = {}, []
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if ID.match(path.name):
            unnamed.append((stable("\n".join(describe_file(path)), []), ID.sub("session_<ID>", name)))
        else:
            described[name] = describe_file(path)
    for number, (text, name) in enumerate(sorted(unnamed), 1):
        described[f"{name} {number}"] = text.split("\n")
    return described


def describe_file(path):
    if path.is_symlink():
        return [f"link to {os.readlink(path)}"]
    mode = f"{path.lstat().st_mode & 0o7777:04o}"
    if path.is_dir():
        return [f"{mode} folder"]
    return [mode, *shown(path.read_bytes())] if path.is_file() else [f"{mode} no regular file"]


def shown(content):
    """Bytes as lines that a person can read and that hide nothing."""
    if not content:
        return []
    text = content.decode("utf-8", "backslashreplace")
    text = INVISIBLE.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)
    lines = ["", *[f"  | {line}" for line in text.split("\n")]]
    if lines[-1] == "  | ":
        lines.pop()
    else:
        lines.append("  \\ no line end")
    return lines


def is_recent(time):
    try:
        moment = datetime.strptime(time, "%Y-%m-%dT%H:%M:%S.%fZ")
    except ValueError:
        return False
    return abs(datetime.now(timezone.utc).replace(tzinfo=None) - moment) < LIVE


def stable(text, volatile):
    """Text with names in place of what differs from run to run."""
    for value, name in volatile:
        text = re.sub(value, name, text)
    text = TIME.sub(lambda found: "<TIME>" if is_recent(found[0]) else found[0], text)
    text = ID.sub("session_<ID>", text)
    now = datetime.now(timezone.utc)
    today = {f"{now - timedelta(days=days):%Y-%m-%d}" for days in (0, 1)}
    return TODAY.sub(lambda found: "<TODAY>" if found[0] in today else found[0], text)


def volatile(root, port, closed_port, version):
    """What differs from run to run, as patterns, and what stands in its place."""
    return [
        (re.escape(str(root)), "<ROOT>"),
        (rf":{port}\b", ":<PORT>"),
        (rf":{closed_port}\b", ":<CLOSED>"),
        (rf"\b(q[/ ]){re.escape(version)}(?![.\d])", r"\1<VERSION>"),
        (rf'("version":"){re.escape(version)}"', r'\1<VERSION>"'),
        (r"\b(first word after )[\d.]+( s, all after )[\d.]+( s)", r"\1<SECONDS>\2<SECONDS>\3"),
        # How long a tool server took to start, and a call.
        (r"(protocol [\d-]+, \d+ tools?, )[\d.]+( s)", r"\1<SECONDS>\2"),
        (r"( bytes after )[\d.]+( s)", r"\1<SECONDS>\2"),
        # The wait before another try is random, unless the server names it.
        (r"(retrying in )(?!0\.0 )\d+\.\d( s)", r"\1<SECONDS>\2"),
        (r"(idle for )\d+( s)", r"\1<SECONDS>\2"),
    ]


def difference(old, new):
    """A unified diff of two transcripts, in lines that a person can read."""
    old, new = readable(old), readable(new)
    # Finding the changes takes long where much is equal.
    begin = len(os.path.commonprefix([old, new]))
    end = len(os.path.commonprefix([old[begin:][::-1], new[begin:][::-1]]))
    begin, end = max(0, begin - 6), max(0, end - 6)
    old, new = old[begin : len(old) - end], new[begin : len(new) - end]
    return list(difflib.unified_diff(old[:3000], new[:3000], "old", "new", n=4, lineterm=""))


def readable(lines):
    """The same with long lines broken, where JSON has its fields if possible."""
    return [part for line in lines for part in broken(line)]


def broken(line):
    if len(line) <= WIDTH:
        return [line]
    parts = re.split(r'(?<=,)(?=["{])', line)
    pieces = [part[at : at + WIDTH] for part in parts for at in range(0, len(part), WIDTH)]
    return [pieces[0], *[f"  ⏎ {piece}" for piece in pieces[1:]]]
