"""Prints what q can say, file by file, so that somebody can read it aloud: python3 tests/messages.py. A text counts if it has three
words or more and is in a string of the product; `{…}` stands for what is filled in."""

import pathlib
import re
import sys

SOURCES = pathlib.Path(__file__).resolve().parent.parent / "src"
TESTS = re.compile(r"^#\[cfg\(test\)\]\n(?:pub(?:\([^)]*\))? )?mod tests", re.MULTILINE)
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# The words by which errors of servers are recognized, and the lists that stand for a table.
NO_MESSAGES = {"provider/failure/words.rs", "provider/failure/rejected.rs", "provider/finish.rs", "flags/synonyms.rs"}


def messages(code):
    code = TESTS.split(code, maxsplit=1)[0]
    code = re.sub(r"\\\n\s*", "", code)
    for line in code.splitlines():
        if line.lstrip().startswith("//"):
            continue
        for text in STRING.findall(line):
            if len(re.findall(r"[A-Za-z’']{2,}", text)) > 2:
                yield text


def main():
    missing = sorted(name for name in NO_MESSAGES if not (SOURCES / name).is_file())
    if missing:
        sys.exit(f"These files without messages do not exist: {', '.join(missing)}")
    for path in sorted(SOURCES.rglob("*.rs")):
        name = path.relative_to(SOURCES).as_posix()
        texts = list(dict.fromkeys(messages(path.read_text(encoding="utf-8"))))
        if texts and name not in NO_MESSAGES:
            print(f"\n{name}")
            for text in texts:
                print(f"    {text}")


main()
