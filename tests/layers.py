"""Checks that src/ imports only downwards: a directory, or a file next to the directories, from layers below its own; a file of
a directory never from its parent, nor from a file that imports it, be it by way of others. Each file begins with its duty, and
one whose duty says “(pure)” opens nothing. The layers are those that AGENTS.md shows.
"""

import collections
import itertools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

# What a pure file must not name.
OUTSIDE = r"\b(?:fs_err|std::(?:fs|net|process|env)|SystemTime::now|Instant::now)\b"


def read_layers():
    """The layers from top to bottom, each a list of names: the first column of the first indented block below “## Layers”."""
    section = (ROOT / "AGENTS.md").read_text(encoding="utf-8").partition("\n## Layers\n")[2]
    lines = itertools.dropwhile(lambda line: not line.startswith("    "), section.splitlines())
    block = itertools.takewhile(lambda line: line.startswith("    "), lines)
    return [re.split(r"\s{2,}", line.strip())[0].split(" · ") for line in block]


def duty_of(path):
    """The lines at the beginning of a file that say what it is for."""
    lines = itertools.takewhile(lambda line: line.startswith("//!"), path.read_text(encoding="utf-8").splitlines())
    return " ".join(line.removeprefix("//!").strip() for line in lines)


def code_of(path):
    """The text of a file without comments, strings and tests."""
    text = path.read_text(encoding="utf-8")
    text = re.split(r"^#\[cfg\(test\)\]\n(?:pub(?:\([^)]*\))? )?mod tests", text, maxsplit=1, flags=re.MULTILINE)[0]
    # A lifetime's quotation mark has no partner, so only whole character literals are taken out.
    tokens = r'//[^\n]*|r#"(?:.|\n)*?"#|"(?:\\.|[^"\\])*"|' + r"'(?:\\[^']+|[^'\\])'"
    return re.sub(tokens, '""', text)


def module_of(path):
    """The module path of a file: ask/mod.rs is (ask,), ask/window.rs is (ask, window)."""
    parts = path.relative_to(SRC).with_suffix("").parts
    return () if parts == ("main",) else parts[:-1] if parts[-1] == "mod" else parts


def imports(path, files):
    """The modules that a file imports from, each with the path as it is written."""
    here = module_of(path)
    code = re.sub(r"\bpub\([^)]*\)", "", code_of(path))
    # `use a::b` names a child, and each name in braces continues what stands before them.
    code = re.sub(r"\buse (?!crate|super|self|::)(?=\w)", "use self::", code)
    for start, names, group in re.findall(r"\b(crate|self|super(?:::super)*)((?:::\w+)*)(?:::(\{[^;]*?\}))?", code):
        for name in re.findall(r"[{,]\s*(\w+)", group) or [""]:
            at = () if start == "crate" else here[: len(here) - start.count("super")]
            parts = [part for part in [*names.split("::"), name] if part]
            written = "::".join([start, *parts])
            begin = at
            while parts and at + (parts[0],) in files:
                at, parts = at + (parts[0],), parts[1:]
            if at != here and (at != begin or (parts and start != "self")):
                yield at, written


def way_back(start, graph):
    """The shortest way by which a file imports from itself, as the files on it; nothing if there is none."""
    ways = collections.deque([[start]])
    seen = set()
    while ways:
        way = ways.popleft()
        for other in sorted(graph[way[-1]]):
            if other == start:
                return way
            if other not in seen:
                seen.add(other)
                ways.append([*way, other])
    return []


def cycles(graph):
    """The cycles of imports, each once, beginning with its first file."""
    ways = (way_back(start, graph) for start in sorted(graph))
    return sorted({tuple(way) for way in ways if way and way[0] == min(way)})


def main():
    layers = read_layers()
    layer_of = {name: number for number, layer in enumerate(layers) for name in layer}
    files = {module_of(path): path for path in sorted(SRC.rglob("*.rs"))}
    wrong = []
    names = {(module or ("main",))[0] for module in files}
    wrong += [f"{name} is on no layer of AGENTS.md" for name in names - set(layer_of)]
    wrong += [f"{name} of AGENTS.md is not in src/" for name in set(layer_of) - names]
    # What each file imports from its own directory.
    within = collections.defaultdict(set)
    for module, path in files.items():
        name = path.relative_to(SRC)
        if everything := re.search(r"\buse [^;]*\*", code_of(path)):
            wrong.append(f"{name}: {everything[0]} imports everything")
        if not duty_of(path):
            wrong.append(f"{name} does not begin with its duty")
        if "(pure)" in duty_of(path) and (outside := re.search(OUTSIDE, code_of(path))):
            wrong.append(f"{name} is pure, but names {outside[0]}")
        for other, written in imports(path, files):
            here, there = [(each or ("main",))[0] for each in (module, other)]
            if here != there:
                if not layer_of.get(here, 99) < layer_of.get(there, -1):
                    wrong.append(f"{name}: {written} is not in a layer below")
                continue
            if other == module[:-1]:
                wrong.append(f"{name}: {written} imports from its parent")
            else:
                within[module].add(other)
    for cycle in cycles(within):
        names = [str(files[module].relative_to(SRC)) for module in (*cycle, cycle[0])]
        wrong.append(" imports from ".join(names))
    for line in sorted(set(wrong)):
        print(line)
    print(f"{len(files)} files on {len(layers)} layers, {len(set(wrong))} faults")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
