"""Standard output and error that are closed, full or terminals."""

from server import Reply, end, say, usual
from steps import TERMINAL, case, q, sh

from .actions import ACTIONS, STATES
from .fixtures import current


def table():
    # All at once, or its first words alone: where writing fails, it counts what has come by then.
    at_once = Reply([say("```\ncode\n```") + end()])
    for args in ["", "-j", "-x", "--no-stream", "--dry-run", "--no-save", "--again"]:
        reply = usual("```\ncode\n```") if args == "--no-stream" else at_once
        for where in [">/dev/full", ">&-"]:
            yield case(f"output{where}{args}", current(), sh(f"q {args} hello {where}"), q("--history"), replies=[reply])
    for action in [*ACTIONS.values(), "--models", "--help", "--version", "--copy b"]:
        yield case(f"full{action}", current(), sh(f"q {action} >/dev/full"), q("--history"))
    yield case("full-stderr", sh("q -f hello 2>/dev/full"), sh("q --bogus 2>/dev/full"))
    yield case("closed-stderr", sh("q -f hello 2>&-; echo $?"), sh("q --bogus 2>&-; echo $?"))
    yield case("closed-everything", sh("q -n hello <&- >&- 2>&-; echo $? >status"), q("--history"))
    yield case("head", sh("q hello | head -n 1"), replies=[usual("one\ntwo\n")])
    yield from terminals()


def terminals():
    answers = {
        "plain": "Just text.",
        "escapes": "red \x1b[31m bell \x07 tab \t back \x08 right-to-left \u202e",
        "code": "```\ncode\n```",
        "lines": "a\r\nb\rc",
    }
    for name, text in answers.items():
        runs = [q(args, **TERMINAL) for args in ["hello", "-f -v more", "-x hello", "--last", "-j hello"]]
        yield case(f"terminal-answer-{name}", *runs, replies=[usual(text)] * 4)
        yield case(f"terminal-answer-{name}-cut", q("-x hello", **TERMINAL), replies=[usual(text, "length")])
    yield case("terminal-no-question", q([], **TERMINAL), q("-f", **TERMINAL))
    for state, there in STATES.items():
        for args in ["--list", "--history", "--last", "--last -x", "--status", "--clear"]:
            yield case(f"terminal{args}-{state}", *there, q(args, **TERMINAL))
    for typed in ["y\n", "n\n", "\n", "\x04", "yes\n", "maybe\n"]:
        yield case(f"terminal-clear-all-{typed!r}", *STATES["several"], q("--clear --all", stdin=typed, **TERMINAL))
    for args in [["--clear", "--all"], ["--models"], ["--dry-run", "esc \x1b"], ["--bogus\x1b[31m"]]:
        yield case(f"terminal{args[0]}", q(args, **TERMINAL))
