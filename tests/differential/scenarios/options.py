"""The command line: help, wrong options, and options that do not go together."""

from steps import CURRENT, Scenario, q, sh, write

from .fixtures import current, session

ACTIONS = ["--history", "--last", "--undo", "--list", "--list-tools", "--clear", "--status", "--models"]

# Options with what they take, each offered to every action.
OFFERED = [
    ["-f"],
    ["-s", "work"],
    ["-p", "openai"],
    ["-m", "x"],
    ["-S", "x"],
    ["--messages", "3"],
    ["-n"],
    ["--no-save"],
    ["--no-stream"],
    ["-x"],
    ["-j"],
    ["--dry-run"],
    ["--all"],
    ["-a", "x"],
    ["-t", "db"],
    ["-e", "low"],
    ["-o", "a=1"],
    ["--yes"],
    ["--schema", "name"],
    ["--again"],
    ["--copy", "branch"],
]

WRONG = {
    "unknown-long": ["--bogus", "hello"],
    "unknown-short": ["-z", "hello"],
    "unknown-with-value": ["--bogus=1"],
    "misspelt-follow": ["--folow", "hello"],
    "misspelt-session": ["--sesion", "a", "hello"],
    "misspelt-clear": ["--claer"],
    "misspelt-cleaar": ["--cleaar"],
    "misspelt-undo": ["--undoo"],
    "misspelt-status": ["--stat"],
    "misspelt-capital": ["--HISTORY"],
    "misspelt-no-stdin": ["--nostdin", "hello"],
    "misspelt-json": ["--jsn", "hello"],
    "misspelt-attach": ["--atach", "x", "hello"],
    "misspelt-tools": ["--tool", "db", "hello"],
    "misspelt-schema": ["--shema", "name", "hello"],
    "misspelt-list-tools": ["--list-tool"],
    "misspelt-copy": ["--cpoy", "work"],
    "misspelt-option": ["--optoin", "a=1", "hello"],
    "nothing-like-it": ["--xyzzy"],
    "json-unknown": ["-j", "--bogus"],
    "unknown-json": ["--bogus", "--json"],
    "json-after-the-words": ["hello", "-j"],
    "quiet-unknown": ["-q", "--bogus"],
    "bundle-unknown": ["-fz", "hello"],
    "bundle": ["-qf", "hello"],
    "bundle-with-value": ["-qm", "x", "hello"],
    "bundle-value-attached": ["-qmx", "hello"],
    "short-value-attached": ["-mx", "hello"],
    "short-value-equals": ["-m=x", "hello"],
    "long-value-equals": ["--model=x", "hello"],
    "long-value-empty": ["--model=", "hello"],
    "value-missing-short": ["-m"],
    "value-missing-long": ["--session"],
    "value-missing-messages": ["--messages"],
    "value-missing-generate": ["--generate"],
    "value-missing-attach": ["-a"],
    "value-missing-tools": ["--tools"],
    "value-missing-schema": ["--schema"],
    "value-missing-effort": ["-e"],
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
    "value-not-taken-short": ["-j=1", "hello"],
    "twice": ["-m", "a", "-m", "b", "-f", "-f", "hello"],
    "messages-text": ["--messages", "ten", "hello"],
    "messages-negative": ["--messages", "-1", "hello"],
    "messages-float": ["--messages", "1.5", "hello"],
    "messages-empty": ["--messages", "", "hello"],
    "messages-huge": ["--messages", "99999999999", "hello"],
    "messages-zero": ["--messages", "0", "hello"],
    "model-not-utf-8": ["-m", b"\xff".decode("utf-8", "surrogateescape"), "hello"],
    "provider-not-utf-8": ["-p", b"\xff".decode("utf-8", "surrogateescape"), "hello"],
    "session-not-utf-8": ["-s", b"\xff".decode("utf-8", "surrogateescape"), "hello"],
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
    "help-with-others": ["-h", "-f", "-j"],
    "help-and-unknown": ["-h", "--bogus"],
    "version-with-others": ["-V", "-q"],
    "extract-and-json": ["-x", "-j", "hello"],
    "quiet-and-verbose": ["-q", "-v", "hello"],
    "dry-run-json": ["--dry-run", "-j", "hello"],
    "dry-run-extract": ["--dry-run", "-x", "hello"],
    "option-after-word": ["hello", "-f"],
    "help-after-word": ["hello", "--help"],
    "option-after-double-dash": ["--", "hello", "-f"],
}


def table():
    for option in ["-h", "--help", "-V", "--version"]:
        yield Scenario(f"help{option}", [q(option)], env={})
    for kind in ["man", "bash", "zsh", "fish"]:
        yield Scenario(f"generate-{kind}", [q("--generate", kind)], env={})
    yield Scenario("generate-equals", [q("--generate=man")], env={})
    yield Scenario("no-arguments", [q()])
    yield Scenario("no-arguments-json", [q("-j")])
    yield Scenario("no-arguments-verbose", [q("-v")])
    yield Scenario("help-with-wrong-settings", [q("-h"), q("-V")], env={"Q_MESSAGES": "x", "Q_SESSION": "a/b"})
    for name, args in WRONG.items():
        yield Scenario(f"option-{name}", [current(), q(*args, stdin="input\n")])
    for action in ACTIONS:
        yield Scenario(f"option{action}-with-words", [current(), q(action, "these", "words")])
        yield Scenario(f"option{action}-double-dash-words", [current(), q(action, "--", "these")])
        yield Scenario(f"option{action}-double-dash", [current(), q(action, "--")])
        yield Scenario(f"option{action}-quiet", [current(), q(action, "-q")])
        yield Scenario(f"option{action}-verbose", [current(), q("-v", action)])
        yield Scenario(f"option{action}-no-input", [current(), q(action, stdin=b"\0")])
        for option in OFFERED:
            name = option[0].strip("-")
            yield Scenario(f"option{action}-with-{name}", [current(), session("work"), q(action, *option)])
    yield Scenario("option-json-error-is-json", [write(CURRENT, "x"), q("-j", "--last"), q("--last", "--json")])
    yield Scenario("option-in-variable", [sh("q $OPTIONS hello", env={"OPTIONS": "-q --no-save"})])
