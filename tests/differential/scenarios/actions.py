"""The actions on conversations, in text and JSON, whatever there is."""

from steps import OPENAI, SESSIONS, case, q, write

from .bodies import WITH_IMAGE
from .fixtures import CONFIG, WITH_STEPS, conversation, current, message, pairs, session

ACTIONS = {
    "history": "--history",
    "history-json": "--history --json",
    "last": "--last",
    "last-extract": "--last -x",
    "undo": "--undo",
    "undo-json": "--undo -j",
    "list": "--list",
    "list-json": "--list -j",
    "list-words": "--list you said",
    "clear": "--clear",
    "clear-all": "--clear --all --yes",
    "status": "--status",
    "status-json": "--status -j",
    "copy": "--copy branch",
    "copy-json": "--copy branch -j",
}

CODE = "Here:\n\n```sh\necho hi\n```\n\nand\n\n```\nmore\n```\n"

STATES = {
    "nothing": [],
    "one-pair": [current(["only", "one"])],
    "two-pairs": [current()],
    "many": [current(pairs(30))],
    "line-ends": [current(["with\nlines\n", "and\n\nmore\n"])],
    "code": [current(["code?", CODE])],
    "code-open": [current(["code?", "```\nnever closed"])],
    "code-interrupted": [current([message("user", "code?"), message("assistant", CODE, interrupted=True)])],
    "interrupted": [current([message("user", "a"), message("assistant", "as far as", interrupted=True)])],
    "incomplete": [current([message("user", "a"), message("assistant", "as far as", finish="length")])],
    "question-last": [current(["a", "b", "c"])],
    "answers-only": [current([message("assistant", "a"), message("assistant", "b")])],
    "control-characters": [current(["tab\there", "esc \x1b[31m\x07 \u202e"])],
    "long-question": [current(["word\n" * 100, "x" * 500])],
    "odd-names": [current(provider="a\tb", model="c\nd")],
    "unknown-fields": [current(["a", message("assistant", "b", stars=5)], title="x", nested={"a": [1, 2.5]})],
    "steps": [current(WITH_STEPS)],
    "step-alone": [current(WITH_STEPS[:2])],
    "image": [current(WITH_IMAGE)],
    "image-alone": [current(WITH_IMAGE[:2])],
    "several": [
        current(updated="@AGO 5m@"),
        session("work", ["at work", "yes"], updated="@AGO 3m@"),
        session("session_20200101100000005", ["aside", "yes"], updated="2020-01-01T10:00:00.000Z"),
        current(["in a slot", "yes"], slot="-tty", updated="@AGO 4m@"),
        session("same-time-b", updated="2020-01-02T10:00:00.000Z"),
        session("same-time-a", updated="2020-01-02T10:00:00.000Z"),
    ],
    "damaged-other": [current(), write(f"{SESSIONS}/work.json", "{"), write(f"{SESSIONS}/x.txt", "")],
}


def table():
    for state, steps in STATES.items():
        for name, args in ACTIONS.items():
            yield case(f"action-{name}-{state}", *steps, q(args), q("--history"))
            if state in ["nothing", "several", "damaged-other", "interrupted"]:
                yield case(f"action-{name}-{state}-quiet", *steps, q(f"-q {args}"))
    undo = [q("--undo")]
    yield case("undo-chain", current(pairs(3)), *undo * 4, q("--list"), q("--history"))
    yield case("undo-chain-live", q("one"), q("-f two"), q("-f three"), *undo * 4, q("--list"))
    yield case("undo-then-follow", current(), *undo, q("-f other"), q("--history"), q("--list"))
    yield case("undo-all-then-follow", current(["a", "b"]), *undo, q("-f other"))
    yield case("undo-named-chain", session("work", pairs(2)), *[q("--undo -s work")] * 3, q("--list"))
    path = write("home/a.json", conversation(pairs(2)), mode=0o644)
    yield case("undo-path-chain", path, *[q("--undo -s a.json")] * 3, q("--list"))
    for keep in ["0", "never", "wrong"]:
        yield case(f"undo-keep-{keep}", current(pairs(2)), *undo * 2, env={**OPENAI, "Q_KEEP": keep})
    yield case("clear-then-follow", current(), q("--clear"), q("-f more"), q("--clear"))
    cleared = [*STATES["several"], q("--clear --all --yes"), q("--list")]
    yield case("clear-all-then-ask", *cleared, q("one"), q("--clear --all --yes"), q("--clear --all --yes"))
    asked = [q("one"), q("-f two", stdin="input\n"), q("three"), q("-s work four")]
    yield case("actions-after-questions", *asked, *map(q, ["--history -j", "--last", "--list", "--list -j", "--list --all"]))
    every = [current(), *map(q, ACTIONS.values())]
    yield case("actions-with-wrong-file", write(CONFIG, "nonsense = 1\n"), *every)
    yield case("actions-with-wrong-variable", *every, env={**OPENAI, "Q_PAIRS": "x"})
    yield case("actions-without-provider", *every, env={})
