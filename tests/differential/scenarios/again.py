"""Asking the last question again, and copies of conversations."""

from server import CUT, end, failing, stream, usual
from steps import BOTH, OPEN, OPENAI, case, prepare, q, write

from .actions import STATES
from .fixtures import conversation, current, pairs, session

FENCED = ["What is one?", "One is 1.", "<context>\nlog\n</context>\n\nwhy?", "So."]

# Ways to name a conversation, and what is there to be named.
PLACES = "-s work|-s a.json|-s session_20200202100000000|-s session_20190101100000001|-s nobody|-s branch".split("|")
THERE = [
    current(),
    session("work", created="2019-01-01T10:00:00.000Z", title="x", nested={"a": 1.50}),
    session("session_20200202100000000", created="2020-02-02T10:00:00.000Z"),
    write("home/a.json", conversation(created="2020-03-03T10:00:00.000Z"), mode=0o640),
]


def table():
    for form in ["prompt", "messages"]:
        asked = [q("one"), q("-f two"), q("--again"), q("--again three"), q("--history")]
        yield case(f"again-{form}", *asked, env={**OPENAI, "Q_HISTORY": form})
    for state, steps in STATES.items():
        yield case(f"again-{state}", *steps, q("--again"), q("--history -j"), q("--again in other words"), q("--history"))
    for args, stdin in [
        ("", OPEN),
        ("how?", None),
        ("how?", "other\n"),
        ("", "other\n"),
        ("-n how?", OPEN),
        ("how?", ""),
        ("''", None),
        ("' '", None),
        ("-- -f", None),
        *[(option, None) for option in ["-j", "-q", "-v", "-x", "--no-stream", "--no-save", "--dry-run", "-S Brief."]],
        *[(option, None) for option in ["--messages 0", "-e high -o temperature=1", "--again", "-f how?", "--agian"]],
        *[(option, None) for option in ["--history", "--undo", "--copy x", "--list", "--all"]],
    ]:
        name = f"again-of-input-{args}-{'open' if stdin is OPEN else stdin!r}"
        yield case(name, current(FENCED), q(f"--again {args}", stdin=stdin), q("--history"))
    runs = [q("--again -m big"), q("--again -p groq"), q("--again"), q("-f more"), q("--history -j")]
    yield case("again-other-models", current(), *runs, env={**BOTH, "Q_MODEL": "x", "Q_PROVIDER": "openai"})
    yield case("again-other-models-continued", current(), *runs, env={**BOTH, "Q_MISMATCH": "continue"})
    yield case("again-provider-gone", current(provider="nobody"), q("--again"), q("--again -p openai"))
    yield case("again-no-key", current(), q("--again"), env={})
    for args in PLACES:
        yield case(f"again{args}", *THERE, q(f"--again {args} -m x -j"), q(f"--history {args}"))
        yield case(f"copy{args}", *THERE, q(f"--copy branch {args}"))
    slot = [current(), current(["in a slot", "yes"], slot="-x")]
    yield case("again-slot", *slot, q("--again"), q("--copy b"), env={**OPENAI, "Q_SESSION": "x"})
    yield case("again-idle", current(updated="2020-01-01T10:00:00.000Z"), q("--again"), q("--history"))
    for variable in ["Q_KEEP=0", "Q_KEEP=never", "Q_PAIRS=2", "Q_SAVE=false"]:
        name, value = variable.split("=")
        yield case(f"again-{variable}", current(pairs(5)), q("--again"), q("--copy b"), env={**OPENAI, name: value})
    for name, reply in {
        "failure": failing(500, "down"),
        "broken-off": stream("first ", CUT),
        "cut": usual("half an answer", "length"),
        "blocked": usual("half an answer", "content_filter"),
        "without-code": stream("no code", end()),
    }.items():
        for args in ["", "other", "-j", "--no-save", "-x", "-s work"]:
            there = [current(), session("work")]
            yield case(f"again-{name}{args}", *there, q(f"--again {args}"), q("--last"), replies=[reply])
    yield case("again-undone", current(), q("--again"), q("--undo"), q("--undo"), q("--again"))
    both = [q("one"), q("--copy b"), q("-s b two"), q("-f three"), q("--history -s b"), q("--history")]
    yield case("copy-in-two-ways", *both, q("--clear --all --yes"))
    names = "work|new.name_1-x||a/b|../x|.hidden|current|current-x|session_x|session_20200101100000000|a b|ä|new.json|-x|-"
    for name in [*names.split("|"), "x" * 101]:
        copies = [q(["--copy", name]), q([f"--copy={name}", "-j"]), q("-s work more")]
        yield case(f"copy-to-{name[:30]!r}", current(), session("work"), *copies)
    yield case("copy-without-name", current(), q("--copy"), q("--copy --history"))
    yield case("copy-in-place-of-a-folder", current(), prepare("mkdir state/q/sessions/b.json"), q("--copy b"))
