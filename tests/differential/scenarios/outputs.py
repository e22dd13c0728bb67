"""Standard output and error that are closed, full or terminals."""

from replies import HANG, Gate, OpenAi, Reply, events, stream, usual
from steps import Scenario, close_output, finish, open_gate, q, sh, start, wait_for_words

from .actions import STATES
from .fixtures import current


def table():
    full = {"stdout": "/dev/full"}
    # All at once, or its first words alone: where writing fails, it counts what has come by then.
    at_once = Reply(
        [b"".join(events(OpenAi, ["```\ncode\n```"]))],
        headers=[("content-type", "text/event-stream")],
        framing="length",
    )
    begun = stream([*OpenAi.begin(), OpenAi.text("first words "), HANG])
    for name, args in {
        "plain": [],
        "json": ["-j"],
        "extract": ["-x"],
        "whole": ["--no-stream"],
        "dry-run": ["--dry-run"],
        "no-save": ["--no-save"],
    }.items():
        reply = usual("```\ncode\n```") if name == "whole" else at_once
        yield Scenario(f"full-{name}", [q(*args, "hello", files=full), q("--history")], replies=[reply])
        yield Scenario(f"closed-{name}", [sh(f"q {' '.join(args)} hello >&-"), q("--history")], replies=[reply])
    yield Scenario("full-begun", [q("hello", files=full), q("--history")], replies=[begun])
    yield Scenario("full-begun-no-save", [q("--no-save", "hello", files=full), q("--history")], replies=[begun])
    for action in ["--history", "--last", "--undo", "--list", "--clear", "--status", "--models", "--help", "--version"]:
        yield Scenario(f"full{action}", [current(), q(action, files=full), q("--history")])
    yield Scenario(
        "full-stderr", [q("-f", "hello", files={"stderr": "/dev/full"}), q("--bogus", files={"stderr": "/dev/full"})]
    )
    yield Scenario("closed-stderr", [sh("q -f hello 2>&-; echo $?"), sh("q --bogus 2>&-; echo $?")])
    yield Scenario("closed-everything", [sh("q -n hello <&- >&- 2>&-; echo $? >status"), q("--history")])
    for name, args in {
        "new": ["hello"],
        "named": ["-s", "work", "hello"],
        "no-save": ["--no-save", "hello"],
        "verbose": ["-v", "hello"],
    }.items():
        left = [start("a", *args), wait_for_words("first words "), close_output("a"), open_gate("left"), finish("a")]
        yield Scenario(f"reader-leaves-{name}", [*left, q("--history")], replies=[in_two_parts(HANG)])
        yield Scenario(
            f"reader-leaves-at-the-end-{name}",
            [*left, q("--history")],
            replies=[in_two_parts(*OpenAi.finish("stop"), *OpenAi.done())],
        )
    yield Scenario(
        "reader-of-notes-leaves",
        [
            start("a", "-v", "hello"),
            wait_for_words("first words "),
            close_output("a", 1),
            open_gate("left"),
            finish("a"),
            q("--history"),
        ],
        replies=[in_two_parts(*OpenAi.finish("stop"), *OpenAi.done())],
    )
    yield Scenario("head", [sh("q hello | head -n 1")], replies=[usual("one\ntwo\n")])
    yield from terminals()


def in_two_parts(*end):
    """First words, and, once the gate is open, second ones and this end; at once, so that they arrive together."""
    rest = b"".join([OpenAi.text("second words"), *[piece for piece in end if piece != HANG]])
    return stream(
        [*OpenAi.begin(), OpenAi.text("first words "), Gate("left"), rest, *[piece for piece in end if piece == HANG]]
    )


def terminals():
    terminal = {"terminal": True, "env": {"TERM": "dumb"}}
    answers = {
        "plain": "Just text.",
        "escapes": "red \x1b[31m bell \x07 tab \t back \x08 right-to-left \u202e",
        "code": "```\ncode\n```",
        "lines": "a\r\nb\rc",
    }
    for name, text in answers.items():
        yield Scenario(
            f"terminal-answer-{name}",
            [q("hello", **terminal), q("-f", "-v", "more", **terminal)],
            replies=[usual(text)] * 2,
        )
        yield Scenario(
            f"terminal-answer-{name}-extract",
            [q("-x", "hello", **terminal), q("--last", **terminal)],
            replies=[usual(text)],
        )
        yield Scenario(f"terminal-answer-{name}-json", [q("-j", "hello", **terminal)], replies=[usual(text)])
        yield Scenario(f"terminal-answer-{name}-cut", [q("-x", "hello", **terminal)], replies=[usual(text, "length")])
    yield Scenario("terminal-no-question", [q(**terminal), q("-f", **terminal)])
    for state in ["nothing", "several", "odd-names", "control-characters", "interrupted", "code-interrupted"]:
        for args in [["--list"], ["--history"], ["--last"], ["--last", "-x"], ["--status"], ["--clear"]]:
            yield Scenario(f"terminal{''.join(args)}-{state}", [*STATES[state], q(*args, **terminal)])
    for name, typed in {
        "yes": "y\n",
        "no": "n\n",
        "empty": "\n",
        "end": "\x04",
        "word": "yes\n",
        "other": "maybe\n",
    }.items():
        yield Scenario(
            f"terminal-clear-all-{name}",
            [*STATES["several"], q("--clear", "--all", stdin=typed, **terminal)],
        )
    yield Scenario("terminal-clear-all-nothing", [q("--clear", "--all", **terminal)])
    yield Scenario("terminal-models", [q("--models", **terminal)])
    yield Scenario("terminal-dry-run", [q("--dry-run", "esc \x1b", **terminal)])
    yield Scenario("terminal-error", [q("--bogus\x1b[31m", **terminal)])
