"""Checks that the files of src/ import only downwards, after the table in AGENTS.md.

Each row of the table under "Where things are" names one file of src/ or several, from top to bottom. A file may import
from rows below its own and from no other, and never from its own parent; every file stands in one row. Lines of the form
"- `a.rs` imports `b.rs`: reason" below the table are exceptions; one that no import needs is an error too.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"


def rows(text):
    """The rows of the table as lists of paths, and the exceptions as pairs."""
    section = text.split("## Where things are", 1)[1].split("\n## ", 1)[0]
    table = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    exceptions = re.findall(r"^- `([^`]+)` imports `([^`]+)`: .", section, re.MULTILINE)
    return [re.findall(r"`([^`]+)`", cell) for cell in table], exceptions


def code_of(path):
    """The text of a file without comments, strings and tests."""
    text = path.read_text(encoding="utf-8")
    text = re.split(r"^#\[cfg\(test\)\]\n(?:pub(?:\([^)]*\))? )?mod tests", text, maxsplit=1, flags=re.MULTILINE)[0]
    # A lifetime's quotation mark has no partner, so only whole character literals are taken out.
    tokens = r'//[^\n]*|r#"(?:.|\n)*?"#|"(?:\\.|[^"\\])*"|' + r"'(?:\\[^']+|[^'\\])'"
    return re.sub(tokens, '""', text)


def paths_of(tree, prefix=()):
    """The paths of a use tree: `a::{b, c::d}` is a::b and a::c::d."""
    tree = re.sub(r"\s+as\s+\w+", "", tree.strip())
    head, brace, rest = tree.partition("{")
    prefix += tuple(part for part in head.strip().split("::") if part)
    if not brace:
        return [prefix]
    depth, begin, found = 0, 0, []
    inside = rest[: rest.rindex("}")] + ","
    for at, character in enumerate(inside):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            if inside[begin:at].strip():
                found += paths_of(inside[begin:at], prefix)
            begin = at + 1
    return found


def module_of(path):
    """The module path of a file: ask/mod.rs is (ask,), ask/window.rs is (ask, window)."""
    parts = path.relative_to(SRC).with_suffix("").parts
    return () if parts == ("main",) else parts[:-1] if parts[-1] == "mod" else parts


def imports(path, files):
    """The files that a file imports from, each with the path as it is written."""
    here = module_of(path)
    code = code_of(path)
    written = [found for tree in re.findall(r"\buse\s+([^;]+);", code) for found in paths_of(tree)]
    written += [tuple(found.split("::")) for found in re.findall(r"\b(?:crate|super)(?:::\w+)+", code)]
    for parts in written:
        at = list(here)
        rest = list(parts)
        if rest[0] == "crate":
            at, rest = [], rest[1:]
        elif rest[0] == "self":
            rest = rest[1:]
        elif rest[0] == "super":
            while rest and rest[0] == "super":
                at, rest = at[:-1], rest[1:]
        elif tuple(at + rest[:1]) not in files:
            continue
        while rest and tuple(at + rest[:1]) in files:
            at, rest = at + rest[:1], rest[1:]
        if tuple(at) != here and tuple(at) in files:
            yield files[tuple(at)], "::".join(parts)
        if "*" in rest:
            yield None, "::".join(parts)


def main():
    layers, exceptions = rows((ROOT / "AGENTS.md").read_text(encoding="utf-8"))
    row_of = {}
    wrong = []
    for number, names in enumerate(layers):
        for name in names:
            if name in row_of:
                wrong.append(f"AGENTS.md names {name} twice")
            row_of[name] = number
            if not (SRC / name).is_file():
                wrong.append(f"AGENTS.md names {name}, which does not exist")
    files = {module_of(path): path for path in sorted(SRC.rglob("*.rs"))}
    needed = set()
    for path in files.values():
        name = str(path.relative_to(SRC))
        if name not in row_of:
            wrong.append(f"AGENTS.md does not name {name}")
            continue
        for target, written in imports(path, files):
            if target is None:
                wrong.append(f"{name}: {written} imports everything")
                continue
            other = str(target.relative_to(SRC))
            is_parent = module_of(target) == module_of(path)[:-1]
            if row_of.get(other, -1) > row_of[name] and not is_parent:
                continue
            if (name, other) in exceptions:
                needed.add((name, other))
            else:
                why = "its parent" if is_parent else "which is not below it"
                wrong.append(f"{name}: {written} imports from {other}, {why}")
    wrong += [f"the exception {name} -> {other} is not needed" for name, other in exceptions if (name, other) not in needed]
    for line in sorted(set(wrong)):
        print(line)
    print(f"{len(row_of)} files in {len(layers)} layers, {len(exceptions)} exceptions, {len(set(wrong))} faults")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
