"""Runs at the same time: follow-ups that meet, and follow-ups that others overtake."""

from replies import Gate, OpenAi, events, stream
from steps import (
    OPENAI,
    Scenario,
    finish,
    hold_lock,
    open_gate,
    q,
    release_lock,
    start,
    wait_for_requests,
    wait_for_words,
    write,
)

from .fixtures import conversation, current, session


def held(text, gate):
    """An answer that waits at a gate before its first word."""
    return stream([Gate(gate), *events(OpenAi, [text])])


def table():
    yield from meeting()
    yield from overtaking()


def meeting():
    """Two runs that ask before either has its answer; each comes to its end before the other goes on."""
    there = {
        "current": ([current()], ["-f"]),
        "nothing": ([], ["-f"]),
        "named": ([session("work")], ["-s", "work"]),
        "named-new": ([], ["-s", "work"]),
        "path": ([write("home/a.json", conversation())], ["-s", "a.json"]),
        "new": ([current()], []),
        "idle": ([current(updated="@AGO 2000m@")], ["-f"]),
    }
    for name, (steps, args) in there.items():
        for order in [["a", "b"], ["b", "a"]]:
            ends = [step for which in order for step in (open_gate(which), finish(which))]
            yield Scenario(
                f"meet-{name}-{''.join(order)}",
                [
                    *steps,
                    start("a", *args, "from a"),
                    wait_for_requests(1),
                    start("b", *args, "from b"),
                    wait_for_requests(2),
                    *ends,
                    q(*args, "more"),
                ],
                replies=[held("to a", "a"), held("to b", "b")],
            )
    three = [
        step
        for which in "abc"
        for step in (start(which, "-f", f"from {which}"), wait_for_requests("abc".index(which) + 1))
    ]
    ends = [step for which in "cab" for step in (open_gate(which), finish(which))]
    yield Scenario(
        "meet-three",
        [current(), *three, *ends, q("--history")],
        replies=[held(f"to {which}", which) for which in "abc"],
    )


def overtaking():
    """A follow-up whose conversation is no longer what it was when its answer comes."""
    meanwhile = {
        "new-question": [q("new")],
        "two-new-questions": [q("new"), q("newer")],
        "follow-up": [q("-f", "quick")],
        "clear": [q("--clear")],
        "clear-all": [q("--clear", "--all")],
        "undo": [q("--undo")],
        "undo-all": [q("--undo"), q("--undo")],
        "damage": [write("state/q/sessions/current.json", "{")],
        "other-conversation": [current(["other", "one"], created="2020-02-02T10:00:00.000Z")],
        "no-save": [q("--no-save", "quick")],
        "new-version": [write("state/q/sessions/current.json", '{"version":2}')],
        "named": [q("-s", "work", "aside")],
        "lock": [hold_lock()],
        "new-kept-nowhere": [q("new", env={"Q_KEEP": "0"})],
    }
    for name, steps in meanwhile.items():
        for which, args in {"follow": ["-f"], "new": [], "json": ["-j", "-f"]}.items():
            yield Scenario(
                f"overtaken-by-{name}-{which}",
                [
                    current(),
                    start("a", *args, "slow"),
                    wait_for_requests(1),
                    *steps,
                    open_gate("a"),
                    finish("a"),
                    q("--history"),
                ],
                replies=[held("to a", "a")],
            )
    for name, steps in {
        "clear": [q("--clear", "-s", "work")],
        "undo": [q("--undo", "-s", "work")],
        "question": [q("-s", "work", "quick")],
        "damage": [write("state/q/sessions/work.json", "{")],
    }.items():
        yield Scenario(
            f"overtaken-named-by-{name}",
            [
                session("work"),
                start("a", "-s", "work", "slow"),
                wait_for_requests(1),
                *steps,
                open_gate("a"),
                finish("a"),
                q("--history", "-s", "work"),
            ],
            replies=[held("to a", "a")],
        )
    yield Scenario(
        "lock-until-the-answer",
        [
            current(),
            hold_lock(),
            start("a", "-f", "slow"),
            wait_for_requests(1),
            open_gate("a"),
            wait_for_words("to a"),
            release_lock(),
            finish("a"),
        ],
        env=OPENAI,
        replies=[held("to a", "a")],
    )
