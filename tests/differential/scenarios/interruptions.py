"""Signals while q waits, while the answer comes, and what is there afterwards; runs at the same time."""

from signal import SIGHUP, SIGINT, SIGKILL, SIGTERM

from server import CUT, HANG, Gate, Reply, end, failing, stream
from steps import CURRENT, OPEN, SESSIONS, case, finish, hold_lock, open_gate, q, release_lock, send_signal, sh, start
from steps import wait_for_requests, wait_for_words, write

from .fixtures import conversation, current, session

SIGNALS = [SIGINT, SIGTERM, SIGHUP]
WORDS = stream("first ", "words ", HANG)


def table():
    for number in SIGNALS:
        yield from signals(number)
    killed = [start("a", "hello"), wait_for_words("words "), send_signal("a", SIGKILL), finish("a"), q("-f more")]
    yield case("killed-after-words", current(), *killed, replies=[WORDS])
    steps = [start("a", "hello"), wait_for_words("🦀"), send_signal("a", SIGINT), finish("a"), q("--history -j")]
    yield case("signal-unicode", *steps, q("--undo"), replies=[stream("crab 🦀", HANG)])
    yield case("signal-in-pipeline", sh("q hello | (read -r x; echo $x); q --history"), replies=[stream("line\n", CUT)])
    yield from meeting()
    yield from overtaking()


def signals(number):
    name = number.name
    ended = [send_signal("a", number), finish("a")]
    for situation, (steps, args) in {
        "new": ([], ""),
        "follow": ([current()], "-f"),
        "named": ([session("work")], "-s work"),
        "displacing": ([current()], ""),
        "no-save": ([current()], "--no-save"),
        "verbose": ([], "-v"),
        "again": ([current()], "--again"),
        "again-json": ([current()], "--again -j"),
    }.items():
        begun = [*steps, start("a", f"{args} hello"), *([] if "json" in situation else [wait_for_words("words ")])]
        begun += [wait_for_requests(1)]
        yield case(f"signal-after-words-{situation}-{name}", *begun, *ended, q("--last"), q("-f more"), replies=[WORDS])
    for situation, reply in {"request": Reply([HANG], silent=True), "head": stream(HANG)}.items():
        for option in ["-f", "-f -j", "-f -x", "-f --no-stream"]:
            steps = [current(), start("a", f"{option} hello"), wait_for_requests(1), *ended, q("--history")]
            yield case(f"signal-before-words-{situation}{option}-{name}", *steps, replies=[reply])
    yield case(f"signal-at-input-{name}", current(), start("a", "hello", stdin=OPEN), *ended, q("--history"))
    busy = failing(503, "busy", retry_after="30")
    retrying = start("a", "hello", env={"Q_RETRIES": "1"})
    yield case(f"signal-between-tries-{name}", retrying, wait_for_requests(1), *ended, replies=[busy])
    ignoring = start("a", [], script=f"trap '' {name[3:]}; exec q hello")
    steps = [ignoring, wait_for_words("first "), send_signal("a", number), open_gate("sent"), finish("a")]
    replies = [stream("first ", Gate("sent"), "words", end())]
    yield case(f"signal-ignored-{name}", *steps, q("--history"), replies=replies)
    silent = [Reply([HANG], silent=True)]
    yield case(f"signal-models-{name}", start("a", "--models"), wait_for_requests(1), *ended, replies=silent)


def held(gate):
    """An answer that waits at a gate before its first word."""
    return stream(Gate(gate), f"to {gate}", end())


def meeting():
    """Two runs that ask before either has its answer; each comes to its end before the other continues."""
    there = {
        "current": ([current()], "-f"),
        "nothing": ([], "-f"),
        "named": ([session("work")], "-s work"),
        "named-new": ([], "-s work"),
        "path": ([write("home/a.json", conversation())], "-s a.json"),
        "new": ([current()], ""),
        "idle": ([current(updated="@AGO 2000m@")], "-f"),
    }
    for name, (steps, args) in there.items():
        for order in ["ab", "ba"]:
            begun = [start("a", f"{args} from a"), wait_for_requests(1), start("b", f"{args} from b")]
            begun.append(wait_for_requests(2))
            ends = [step for which in order for step in (open_gate(which), finish(which))]
            yield case(f"meet-{name}-{order}", *steps, *begun, *ends, q(f"{args} more"), replies=[held("a"), held("b")])


def overtaking():
    """A question whose conversation is no longer what it was when its answer comes."""
    meanwhile = {
        "nothing": [],
        "new-question": [q("new")],
        "two-new-questions": [q("new"), q("newer")],
        "follow-up": [q("-f quick")],
        "again": [q("--again quick")],
        "clear": [q("--clear")],
        "clear-all": [q("--clear --all")],
        "undo": [q("--undo")],
        "undo-all": [q("--undo"), q("--undo")],
        "damage": [write(CURRENT, "{")],
        "other-conversation": [current(["other", "one"], created="2020-02-02T10:00:00.000Z")],
        "other-answer": [current(["What is one?", "One is 1.", "What is two?", "Two is II."])],
        "no-save": [q("--no-save quick")],
        "new-version": [write(CURRENT, '{"version":2}')],
        "named": [q("-s work aside")],
        "copy": [q("--copy work")],
        "lock": [hold_lock()],
        "new-kept-nowhere": [q("new", env={"Q_KEEP": "0"})],
    }
    for name, steps in meanwhile.items():
        for args in ["-f slow", "slow", "-j -f slow", "--again", "--again -j"]:
            begun, ends = [start("a", args), wait_for_requests(1)], [open_gate("a"), finish("a"), release_lock()]
            words = f"overtaken-by-{name}-{args.replace(' ', '')}"
            yield case(words, current(), *begun, *steps, *ends, q("--history"), replies=[held("a")])
    for name, steps in {
        "clear": q("--clear -s work"),
        "undo": q("--undo -s work"),
        "question": q("-s work quick"),
        "damage": write(f"{SESSIONS}/work.json", "{"),
    }.items():
        begun = [session("work"), start("a", "-s work slow"), wait_for_requests(1)]
        ends = [open_gate("a"), finish("a"), q("--history -s work")]
        yield case(f"overtaken-named-by-{name}", *begun, steps, *ends, replies=[held("a")])
    begun = [current(), hold_lock(), start("a", "-f slow"), wait_for_requests(1), open_gate("a"), wait_for_words("to a")]
    yield case("lock-until-the-answer", *begun, release_lock(), finish("a"), replies=[held("a")])
