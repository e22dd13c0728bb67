"""Asking the last question again, and copies of conversations."""

from signal import SIGINT

from replies import EVERY_DIALECT, HANG, Gate, OpenAi, Reply, events, failing, stream, usual
from steps import (
    ANTHROPIC,
    CURRENT,
    OPEN,
    OPENAI,
    SESSIONS,
    Scenario,
    close_output,
    finish,
    folder,
    hold_lock,
    open_gate,
    q,
    release_lock,
    send_signal,
    sh,
    start,
    wait_for_requests,
    wait_for_words,
    write,
)

from .actions import STATES
from .fixtures import ODD_FILES, configured, conversation, current, message, pairs, session

BOTH = {**OPENAI, **ANTHROPIC}

FENCED = ["What is one?", "One is 1.", "<context>\nlog\n</context>\n\nwhy?", "So."]

HELD = stream([Gate("a"), *events(OpenAi, ["to a"])])

# Ways to name a conversation.
PLACES = {
    "named": ["-s", "work"],
    "path": ["-s", "a.json"],
    "id": ["-s", "session_20190101100000000"],
    "archived": ["-s", "session_20200202100000"],
    "unknown": ["-s", "nobody"],
}


def table():
    yield from questions()
    yield from endings()
    yield from meanwhile()
    yield from copies()


def questions():
    for dialect in EVERY_DIALECT:
        for form in ["prompt", "messages"]:
            yield Scenario(
                f"asked-again-{form}-{dialect.name}",
                [*configured(dialect), q("one"), q("-f", "two"), q("--again"), q("--again", "three"), q("--history")],
                env={**dialect.env, "Q_HISTORY": form},
            )
    for state, steps in STATES.items():
        yield Scenario(f"asked-again-{state}", [*steps, q("--again"), q("--history")])
        yield Scenario(f"asked-again-{state}-words", [*steps, q("--again", "in", "other", "words"), q("--history")])
    for name, args, stdin in [
        ("input-left-alone", ["--again"], OPEN),
        ("words", ["--again", "how?"], None),
        ("input", ["--again", "how?"], "other\n"),
        ("input-alone", ["--again"], "other\n"),
        ("no-stdin", ["--again", "-n", "how?"], OPEN),
        ("empty-input", ["--again", "how?"], ""),
        ("empty-words", ["--again", ""], None),
        ("blank-words", ["--again", " "], None),
        ("double-dash", ["--again", "--", "-f"], None),
        ("follow", ["-f", "--again", "how?"], None),
        ("twice", ["--again", "--again"], None),
        ("json", ["--again", "-j"], None),
        ("quiet", ["--again", "-q"], None),
        ("verbose", ["--again", "-v"], None),
        ("extract", ["--again", "-x"], None),
        ("whole", ["--again", "--no-stream"], None),
        ("no-save", ["--again", "--no-save"], None),
        ("dry-run", ["--again", "--dry-run"], None),
        ("system", ["--again", "-S", "Be brief."], None),
        ("no-history", ["--again", "--messages", "0"], None),
        ("effort", ["--again", "-e", "high", "-o", "temperature=1"], None),
        ("with-history", ["--again", "--history"], None),
        ("with-undo", ["--undo", "--again"], None),
        ("with-copy", ["--again", "--copy", "x"], None),
        ("with-list", ["--again", "--list"], None),
        ("with-all", ["--again", "--all"], None),
        ("misspelt", ["--agian"], None),
    ]:
        yield Scenario(
            f"asked-again-of-input-{name}", [current(FENCED), q(*args, stdin=stdin), q("--history")]
        )
    two_models = [
        current(),
        q("--again", "-m", "big"),
        q("--again", "-p", "anthropic"),
        q("--again"),
        q("-f", "more"),
        q("--history", "-j"),
    ]
    yield Scenario("asked-again-other-models", two_models, env={**BOTH, "Q_MODEL": "x", "Q_PROVIDER": "openai"})
    yield Scenario("asked-again-other-models-continued", two_models, env={**BOTH, "Q_MISMATCH": "continue"})
    yield Scenario(
        "asked-again-provider-gone", [current(provider="nobody"), q("--again"), q("--again", "-p", "openai")]
    )
    yield Scenario("asked-again-no-key", [current(), q("--again")], env={})
    for name, args in {
        **PLACES,
        "unknown-id": ["-s", "session_20190101100000001"],
    }.items():
        yield Scenario(
            f"asked-again-{name}",
            [
                current(),
                session("work", created="2019-01-01T10:00:00.000Z"),
                session("session_20200202100000", created="2020-02-02T10:00:00.000Z"),
                write("home/a.json", conversation(created="2020-03-03T10:00:00.000Z"), mode=0o640),
                q("--again", *args, "-m", "x", "-j"),
                q("--history", *args),
            ],
        )
    yield Scenario(
        "asked-again-slot",
        [current(), session("current-x", ["in a slot", "yes"]), q("--again")],
        env={**OPENAI, "Q_SESSION": "x"},
    )
    yield Scenario("asked-again-idle", [current(updated="2020-01-01T10:00:00.000Z"), q("--again"), q("--history")])
    for name, texts in {
        "question-last": ["a", "b", "c"],
        "question-only": ["a"],
        "answer-first": [message("assistant", "a"), message("user", "b"), message("assistant", "c")],
        "answers-only": [message("assistant", "a")],
        "answers-in-a-row": [message("user", "a"), message("assistant", "b"), message("assistant", "c")],
        "interrupted": ["a", message("assistant", "as far as", interrupted=True)],
        "incomplete": ["a", message("assistant", "as far as", finish="length")],
        "of-another": ["a", message("assistant", "b", provider="anthropic", model="m")],
        "no-messages": [],
        "unknown-fields": ["a", message("assistant", "b", stars=5), message("user", "c", x=1.50), "d"],
    }.items():
        yield Scenario(f"asked-again-of-{name}", [current(texts), q("--again"), q("--history", "-j")])
    for name in ["truncated", "version-2", "empty", "message-without-role", "updated-in-the-future", "pretty"]:
        yield Scenario(
            f"asked-again-odd-{name}", [write(CURRENT, ODD_FILES[name], mtime=1_600_000_000), q("--again")]
        )
    for keep in ["0", "never"]:
        yield Scenario(
            f"asked-again-keep-{keep}", [current(), q("--again")], env={**OPENAI, "Q_KEEP": keep}
        )
    yield Scenario("asked-again-pairs", [current(pairs(5)), q("--again")], env={**OPENAI, "Q_PAIRS": "2"})
    yield Scenario("asked-again-not-saving", [current(), q("--again")], env={**OPENAI, "Q_SAVE": "false"})
    yield Scenario("asked-again-with-system", [q("-S", "Be brief.", "one"), q("--again"), q("--again", "-S", "")])


def endings():
    """New answers that are not whole."""
    for dialect in EVERY_DIALECT:
        words = [*dialect.begin(), dialect.text("first ")]
        for name, reply in {
            "failure": failing(500, "down"),
            "refusal": failing(400, "no"),
            "broken-off": stream(words),
            "error": stream([*words, dialect.failure("overloaded")]),
            "cut": usual("first", "length"),
            "blocked": usual("first", "blocked"),
        }.items():
            yield Scenario(
                f"asked-again-{name}-{dialect.name}",
                [*configured(dialect), current(provider=dialect.name), q("--again", "other"), q("--last")],
                env=dialect.env,
                replies=[reply],
            )
        yield Scenario(
            f"asked-again-interrupted-{dialect.name}",
            [
                *configured(dialect),
                current(provider=dialect.name),
                start("a", "--again"),
                wait_for_words("first "),
                send_signal("a", SIGINT),
                finish("a"),
                q("--last"),
            ],
            env=dialect.env,
            replies=[stream([*words, HANG])],
        )
    cut = usual("half an answer", "length")
    yield Scenario(
        "asked-again-cut-json", [session("work"), q("-s", "work", "--again", "-j")], replies=[cut]
    )
    yield Scenario("asked-again-cut-no-save", [current(), q("--again", "--no-save")], replies=[cut])
    yield Scenario(
        "asked-again-cut-keep-0", [current(), q("--again")], env={**OPENAI, "Q_KEEP": "0"}, replies=[cut]
    )
    yield Scenario(
        "asked-again-reader-leaves",
        [
            current(),
            start("a", "--again"),
            wait_for_words("first "),
            close_output("a"),
            open_gate("left"),
            finish("a"),
        ],
        replies=[stream([*OpenAi.begin(), OpenAi.text("first "), Gate("left"), OpenAi.text("second "), HANG])],
    )
    yield Scenario(
        "asked-again-full",
        [current(), q("--again", files={"stdout": "/dev/full"}), q("--history")],
        # All at once: where writing fails, it counts what has come by then.
        replies=[Reply([b"".join(events(OpenAi, ["to a"]))], headers=[("content-type", "text/event-stream")])],
    )
    yield Scenario("asked-again-no-code", [current(), q("--again", "-x"), q("--last")])
    yield Scenario("asked-again-undone", [current(), q("--again"), q("--undo"), q("--undo"), q("--again")])


def meanwhile():
    """What happens to the conversation before the new answer comes."""
    for name, steps in {
        "nothing": [],
        "new-question": [q("new")],
        "follow-up": [q("-f", "quick")],
        "again": [q("--again", "quick")],
        "clear": [q("--clear")],
        "undo": [q("--undo")],
        "undo-all": [q("--undo"), q("--undo")],
        "damage": [write(CURRENT, "{")],
        "other-conversation": [current(["other", "one"], created="2020-02-02T10:00:00.000Z")],
        "other-answer": [current(["What is one?", "One is 1.", "What is two?", "Two is II."])],
        "copy": [q("--copy", "work")],
        "lock": [hold_lock()],
    }.items():
        released = [release_lock()] if name == "lock" else []
        for which, args in {"plain": [], "json": ["-j"]}.items():
            yield Scenario(
                f"asked-again-meets-{name}-{which}",
                [
                    current(),
                    start("a", "--again", *args),
                    wait_for_requests(1),
                    *steps,
                    open_gate("a"),
                    finish("a"),
                    *released,
                    q("--history"),
                ],
                replies=[HELD],
            )


def copies():
    for state, steps in STATES.items():
        yield Scenario(f"copy-{state}", [*steps, q("--copy", "branch"), q("--history", "-s", "branch")])
        yield Scenario(f"copy-{state}-json", [*steps, q("--copy", "branch", "-j"), q("--list", "-j")])
    yield Scenario(
        "copy-in-two-ways",
        [q("one"), q("--copy", "b"), q("-s", "b", "two"), q("-f", "three"), q("--history", "-s", "b"), q("--history")],
    )
    for name in [
        "work",
        "new.name_1-x",
        "",
        "a/b",
        "../x",
        ".hidden",
        "current",
        "current-x",
        "session_x",
        "session_20200101100000000",
        "a b",
        "ä",
        "x" * 101,
        "new.json",
        "-x",
        "-",
    ]:
        shown = repr(name[:30])
        yield Scenario(
            f"copy-to-{shown}", [current(), session("work"), q("--copy", name), q("-s", "work", "more")]
        )
        yield Scenario(f"copy-equals-{shown}", [current(), session("work"), q(f"--copy={name}", "-j")])
    for name, args in {
        **PLACES,
        "itself": ["-s", "branch"],
        "quiet": ["-q"],
        "follow": ["-f"],
        "words": ["words"],
        "model": ["-m", "x"],
        "extract": ["-x"],
        "other-action": ["--history"],
        "dry-run": ["--dry-run"],
    }.items():
        yield Scenario(
            f"copy-of-{name}",
            [
                current(),
                session("work", created="2019-01-01T10:00:00.000Z", title="x", nested={"a": 1.50}),
                session("session_20200202100000", created="2020-02-02T10:00:00.000Z"),
                write("home/a.json", conversation(created="2020-03-03T10:00:00.000Z"), mode=0o640),
                q("--copy", "branch", *args),
            ],
        )
    for name, content in ODD_FILES.items():
        yield Scenario(
            f"copy-odd-{name}",
            [write(CURRENT, content, mtime=1_600_000_000), q("--copy", "branch"), q("-s", "branch", "more")],
        )
    yield Scenario("copy-without-name", [current(), q("--copy"), q("--copy", "--history")])
    yield Scenario("copy-slot", [session("current-x"), q("--copy", "b")], env={**OPENAI, "Q_SESSION": "x"})
    yield Scenario("copy-full", [current(), q("--copy", "b", files={"stdout": "/dev/full"})])
    yield Scenario("copy-closed", [current(), sh("q --copy b >&-")])
    yield Scenario("copy-lock-held", [current(), hold_lock(), q("--copy", "b"), release_lock(), q("--copy", "b")])
    yield Scenario("copy-in-place-of-a-folder", [current(), folder(f"{SESSIONS}/b.json"), q("--copy", "b")])
    yield Scenario("copy-keeps", [current(), q("--copy", "b"), q("--clear", "--all")])
    yield Scenario("copy-without-provider", [current(), q("--copy", "b")], env={})
    for umask in [0o000, 0o077]:
        yield Scenario(f"copy-umask-{umask:o}", [current(), q("--copy", "b", umask=umask)])
    yield Scenario("copy-not-saving", [current(), q("--copy", "b")], env={**OPENAI, "Q_SAVE": "false"})
