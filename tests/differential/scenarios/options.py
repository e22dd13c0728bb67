"""The command line: help, wrong options, and options that do not go together."""

from steps import CURRENT, case, q, write

from .fixtures import current, session

ACTIONS = ["--history", "--last", "--undo", "--list", "--list-tools", "--clear", "--status", "--models"]

# Options with what they take, each offered to every action.
OFFERED = "-f|-s work|-p openai|-m x|-S x|--messages 3|-n|--no-save|--no-stream|-x|-j|--dry-run|--all|-a x|-t db|-e low|-o a=1"
OFFERED += "|--yes|--schema name|--again|--copy branch|-q|-v|these words|-- these|--"

WRONG = {
    "unknown-long": ["--bogus", "hello"],
    "unknown-short": ["-z", "hello"],
    "misspelt-follow": ["--folow", "hello"],
    "misspelt-capital": ["--HISTORY"],
    "nothing-like-it": ["--xyzzy"],
    "json-unknown": ["-j", "--bogus"],
    "json-after-the-words": ["hello", "-j"],
    "bundle-unknown": ["-fz", "hello"],
    "bundle-with-value": ["-qm", "x", "hello"],
    "bundle-value-attached": ["-qmx", "hello"],
    "short-value-equals": ["-m=x", "hello"],
    "long-value-equals": ["--model=x", "hello"],
    "long-value-empty": ["--model=", "hello"],
    "value-missing-short": ["-m"],
    "value-missing-long": ["--session"],
    "value-missing-option": ["-o"],
    "option-no-sign": ["-o", "temperature", "hello"],
    "option-no-name": ["-o", "=1", "hello"],
    "option-no-value": ["-o", "a=", "hello"],
    "option-dots": ["-o", "a.b.c=1", "-o", "a.b.d=[1]", "-o", "a..b=1", "hello"],
    "option-into-text": ["-o", "a=text", "-o", "a.b=1", "hello"],
    "option-of-q": ["-o", "model=other", "-o", "messages=null", "hello"],
    "effort-own-word": ["-e", "xhigh", "hello"],
    "effort-empty": ["-e", "", "hello"],
    "value-looks-like-option": ["-m", "-f", "hello"],
    "value-not-taken": ["--json=1", "hello"],
    "twice": ["-m", "a", "-m", "b", "-f", "-f", "hello"],
    "messages-text": ["--messages", "ten", "hello"],
    "messages-negative": ["--messages", "-1", "hello"],
    "messages-huge": ["--messages", "99999999999", "hello"],
    "messages-zero": ["--messages", "0", "hello"],
    "model-not-utf-8": ["-m", b"\xff".decode("utf-8", "surrogateescape"), "hello"],
    "option-not-utf-8": [b"--\xff".decode("utf-8", "surrogateescape"), "hello"],
    "two-actions": ["--history", "--last"],
    "two-actions-help": ["--history", "--help"],
    "one-action-twice": ["--history", "--history"],
    "clear-and-undo": ["--clear", "--undo"],
    "all-alone": ["--all"],
    "all-with-question": ["--all", "hello"],
    "all-and-session": ["--clear", "--all", "-s", "work"],
    "generate-unknown": ["--generate", "powershell"],
    "generate-words": ["--generate", "man", "hello"],
    "help-words": ["--help", "me"],
    "help-and-unknown": ["-h", "--bogus"],
    "extract-and-json": ["-x", "-j", "hello"],
    "quiet-and-verbose": ["-q", "-v", "hello"],
    "dry-run-json": ["--dry-run", "-j", "hello"],
    "dry-run-extract": ["--dry-run", "-x", "hello"],
    "option-after-word": ["hello", "-f"],
    "help-after-word": ["hello", "--help"],
    "option-after-double-dash": ["--", "hello", "-f"],
}


def table():
    for args in ["-h", "--help", "-V", *[f"--generate {kind}" for kind in ["man", "bash", "zsh", "fish"]]]:
        yield case(f"help{args}", q(args), env={"Q_MESSAGES": "x", "Q_SESSION": "a/b"})
    for args in ["", "-j", "-v"]:
        yield case(f"no-arguments{args}", q(args))
    for name, args in WRONG.items():
        yield case(f"option-{name}", current(), q(args, stdin="input\n"))
    for action in ACTIONS:
        for option in OFFERED.split("|"):
            yield case(f"option{action}-with{option}", current(), session("work"), q(f"{action} {option}"))
        yield case(f"option{action}-no-input", current(), q(action, stdin=b"\0"))
    yield case("option-json-error-is-json", write(CURRENT, "x"), q("-j --last"), q("--last --json"))
