"""Checks that a name means one thing: no two types of src/ have the same name, and no name of a free function stands in more
than four files. Tests may repeat both.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_FILES = 4

VISIBLE = r"(?:pub(?:\([^)]*\))? )?"
# A type within a trait or an implementation is indented.
TYPE = re.compile(rf"^{VISIBLE}(?:struct|enum|union|trait|type) (\w+)", re.MULTILINE)
FREE_FUNCTION = re.compile(rf"^{VISIBLE}(?:const )?(?:unsafe )?fn (\w+)", re.MULTILINE)
TESTS = re.compile(rf"^#\[cfg\(test\)\]\n{VISIBLE}mod tests", re.MULTILINE)


def main():
    types = collections.defaultdict(list)
    functions = collections.defaultdict(list)
    paths = sorted((ROOT / "src").rglob("*.rs"))
    for path in paths:
        code = TESTS.split(path.read_text(encoding="utf-8"), maxsplit=1)[0]
        name = str(path.relative_to(ROOT))
        for type_name in TYPE.findall(code):
            types[type_name].append(name)
        for function in set(FREE_FUNCTION.findall(code)):
            functions[function].append(name)
    faults = [f"the type {name} is in {', '.join(files)}" for name, files in types.items() if len(files) > 1]
    for name, files in functions.items():
        if len(files) > MOST_FILES and name != "main":
            faults.append(f"the function {name} is in {len(files)} files: {', '.join(files)}")
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{len(types)} types and {len(functions)} names of free functions in {len(paths)} files, {len(faults)} faults")
    sys.exit(bool(faults))


main()
