"""The command line: help, wrong options, and options that do not go together."""

import shlex

from steps import CURRENT, case, q, write

from .fixtures import current, session

ACTIONS = ["--history", "--last", "--undo", "--list", "--list-tools", "--clear", "--status", "--models"]

# Options with what they take, each offered to every action.
OFFERED = "-f|-s work|-p openai|-m x|-S x|--messages 3|-n|--no-save|--no-stream|-x|-j|--dry-run|--all|-a x|-t db|-e low|-o a=1"
OFFERED += "|--yes|--schema name|--again|--copy branch|-q|-v|these words|-- these|--"

# What a user types only by mistake.
WRONG = (
    "--bogus hello|-z hello|--folow hello|--HISTORY|--xyzzy|-j --bogus|hello -j|-fz hello|-qm x hello"
    "|-qmx hello|-m=x hello|--model=x hello|--model= hello|-m|--session|-o|-o temperature hello|-o =1 hello"
    "|-o a= hello|-o a.b.c=1 -o 'a.b.d=[1]' -o a..b=1 hello|-o a=text -o a.b=1 hello"
    "|-o model=other -o messages=null hello|-e xhigh hello|-e '' hello|-m -f hello|--json=1 hello"
    "|-m a -m b -f -f hello|--messages ten hello|--messages -1 hello|--messages 99999999999 hello"
    "|--messages 0 hello|--history --last|--history --help|--history --history|--clear --undo|--all|--all hello"
    "|--clear --all -s work|--generate powershell|--generate man hello|--help me|-h --bogus|-x -j hello"
    "|-q -v hello|--dry-run -j hello|--dry-run -x hello|hello -f|hello --help|-- hello -f"
)
NOT_UTF_8 = b"\xff".decode("utf-8", "surrogateescape")


def table():
    for args in ["-h", "--help", "-V", *[f"--generate {kind}" for kind in ["man", "bash", "zsh", "fish"]]]:
        yield case(f"help{args}", q(args), env={"Q_MESSAGES": "x", "Q_SESSION": "a/b"})
    for args in ["", "-j", "-v"]:
        yield case(f"no-arguments{args}", q(args))
    for args in [*map(shlex.split, WRONG.split("|")), ["-m", NOT_UTF_8, "hello"], ["--" + NOT_UTF_8, "hello"]]:
        yield case(f"option {args}", current(), q(args, stdin="input\n"))
    for action in ACTIONS:
        for option in OFFERED.split("|"):
            yield case(f"option{action}-with{option}", current(), session("work"), q(f"{action} {option}"))
        yield case(f"option{action}-no-input", current(), q(action, stdin=b"\0"))
    yield case("option-json-error-is-json", write(CURRENT, "x"), q("-j --last"), q("--last --json"))
