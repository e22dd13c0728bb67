"""Signals while q waits, while the answer comes, and what is there afterwards."""

from signal import SIGHUP, SIGINT, SIGKILL, SIGTERM

from replies import CUT, DIALECTS, HANG, Gate, OpenAi, Reply, failing, stream
from steps import (
    OPEN,
    OPENAI,
    Scenario,
    finish,
    open_gate,
    q,
    send_signal,
    sh,
    start,
    wait_for_requests,
    wait_for_words,
)

from .fixtures import current, session

SIGNALS = [SIGINT, SIGTERM, SIGHUP]


def table():
    for dialect in DIALECTS:
        for number in SIGNALS:
            name = f"{number.name}-{dialect.name}"
            words = [*dialect.begin(), dialect.text("first "), dialect.text("words "), HANG]
            situations = {
                "new": ([], []),
                "follow": ([current(provider=dialect.name)], ["-f"]),
                "named": ([session("work", provider=dialect.name)], ["-s", "work"]),
                "displacing": ([current()], []),
                "no-save": ([current()], ["--no-save"]),
                "verbose": ([], ["-v"]),
            }
            for situation, (steps, args) in situations.items():
                yield Scenario(
                    f"signal-after-words-{situation}-{name}",
                    [
                        *steps,
                        start("a", *args, "hello"),
                        wait_for_words("words "),
                        send_signal("a", number),
                        finish("a"),
                        q("--last"),
                        q("-f", "go on"),
                    ],
                    env=dialect.env,
                    replies=[stream(words)],
                )
            for situation, script in {
                "request": Reply([HANG], framing="raw"),
                "head": stream([HANG]),
                "begin": stream([*dialect.begin(), HANG]),
            }.items():
                yield Scenario(
                    f"signal-before-words-{situation}-{name}",
                    [
                        current(provider=dialect.name),
                        start("a", "-f", "hello"),
                        wait_for_requests(1),
                        send_signal("a", number),
                        finish("a"),
                        q("--history"),
                    ],
                    env=dialect.env,
                    replies=[script],
                )
    for number in SIGNALS:
        yield Scenario(
            f"signal-at-input-{number.name}",
            [current(), start("a", "hello", stdin=OPEN), send_signal("a", number), finish("a"), q("--history")],
        )
        yield Scenario(
            f"signal-between-tries-{number.name}",
            [start("a", "hello", env={"Q_RETRIES": "1"}), wait_for_requests(1), send_signal("a", number), finish("a")],
            replies=[failing(503, "busy", [("retry-after", "30")])],
        )
        yield Scenario(
            f"signal-ignored-{number.name}",
            [
                start("a", script=f"trap '' {number.name[3:]}; exec q hello"),
                wait_for_words("first "),
                send_signal("a", number),
                open_gate("sent"),
                finish("a"),
                q("--history"),
            ],
            replies=[
                stream(
                    [
                        *OpenAi.begin(),
                        OpenAi.text("first "),
                        Gate("sent"),
                        OpenAi.text("words"),
                        *OpenAi.finish("stop"),
                        *OpenAi.done(),
                    ]
                )
            ],
        )
        for option in ["-j", "-x", "--no-stream"]:
            yield Scenario(
                f"signal-nothing-shown-{option.strip('-')}-{number.name}",
                [
                    current(),
                    start("a", option, "-f", "hello"),
                    wait_for_requests(1),
                    send_signal("a", number),
                    finish("a"),
                    q("--history"),
                ],
                replies=[stream([*OpenAi.begin(), HANG])],
            )
        yield Scenario(
            f"signal-models-{number.name}",
            [start("a", "--models"), wait_for_requests(1), send_signal("a", number), finish("a")],
            replies=[Reply([HANG], framing="raw")],
        )
    words = [*OpenAi.begin(), OpenAi.text("first "), OpenAi.text("words "), HANG]
    yield Scenario(
        "killed-after-words",
        [
            current(),
            start("a", "-f", "hello"),
            wait_for_words("words "),
            send_signal("a", SIGKILL),
            finish("a"),
            q("-f", "more"),
        ],
        replies=[stream(words)],
    )
    yield Scenario(
        "signal-then-undo",
        [
            start("a", "hello"),
            wait_for_words("words "),
            send_signal("a", SIGINT),
            finish("a"),
            q("--undo"),
        ],
        replies=[stream(words)],
    )
    yield Scenario(
        "signal-unicode",
        [start("a", "hello"), wait_for_words("🦀"), send_signal("a", SIGINT), finish("a"), q("--history", "-j")],
        replies=[stream([*OpenAi.begin(), OpenAi.text("crab 🦀"), HANG])],
    )
    yield Scenario(
        "signal-slot",
        [start("a", "hello"), wait_for_words("words "), send_signal("a", SIGTERM), finish("a"), q("--history")],
        env={**OPENAI, "Q_SESSION": "x"},
        replies=[stream(words)],
    )
    yield Scenario(
        "signal-in-pipeline",
        [sh("q hello | (read -r x; echo $x); q --history")],
        replies=[stream([*OpenAi.begin(), OpenAi.text("line\n"), CUT])],
    )
