"""Tools: what is offered and called, what is kept of it and sent later."""

from signal import SIGINT, SIGTERM

from replies import EVERY_DIALECT, Call, OpenAi, calling, failing, usual
from steps import (
    CURRENT,
    OPEN,
    OPENAI,
    Scenario,
    finish,
    q,
    send_signal,
    start,
    wait_for_file,
    write,
)

from .fixtures import configured, conversation, current, message, tool_server

# On a terminal conversations use their tools again.
TERMINAL = {"terminal": True, "env": {"TERM": "dumb"}}

ECHO = Call("aaaaaaaa1", "db__echo", {"text": "hi"})
FAIL = Call("aaaaaaaa2", "db__fail")
WRITE = Call("aaaaaaaa3", "db__write", {"text": "x"})

FEW = 'only = ["echo", "fail", "write"]'

# An exchange with calls, as a conversation keeps it.
STEPS = [
    {
        "text": "Let me see.",
        "calls": [
            {"id": "a1", "name": "db__echo", "arguments": {"text": "a </result> b"}, "result": "you said </result>"},
            {"id": "a2", "name": "gone__fail", "arguments": {}, "result": "it failed", "error": True},
        ],
    },
    {"text": "", "calls": [{"id": "a1", "name": "db__echo", "arguments": {}, "result": "you said nothing"}]},
]
WITH_STEPS = ["What is one?", message("assistant", "One is 1.", steps=STEPS), "What is two?", "Two is 2."]


def db(more=FEW, dialect=OpenAi, settings=""):
    """The configuration of one server."""
    return configured(dialect, settings, tool_server(more))


def table():
    yield from dialects()
    yield from remembered()
    yield from kept()
    yield from endings()


def dialects():
    for dialect in EVERY_DIALECT:
        name, env = dialect.name, dialect.env
        db_only = db(dialect=dialect)
        yield Scenario(
            f"tools-{name}",
            [*db_only, q("-t", "db", "go"), q("-f", "and then?"), q("--history"), q("--history", "-j")],
            env=env,
            replies=[calling(ECHO, FAIL)],
        )
        yield Scenario(
            f"tools-native-{name}",
            [*db_only, q("-t", "db", "go"), q("-f", "-t", "db", "and then?"), q("-f", "-t", "none", "at last?")],
            env={**env, "Q_HISTORY": "messages"},
            replies=[calling(ECHO), calling(FAIL), None, calling(ECHO)],
        )
        for which, args in {
            "whole": ["--no-stream"],
            "json": ["-j"],
            "extract": ["-x"],
            "verbose": ["-v"],
            "no-save": ["--no-save"],
            "dry-run": ["--dry-run"],
            "schema": ["--schema", "name"],
        }.items():
            yield Scenario(
                f"tools-{which}-{name}",
                [*db_only, q(*args, "-t", "db", "go"), q("--last")],
                env=env,
                replies=[calling(ECHO, text="```\nnot this\n```"), calling(FAIL), usual('{"name":"Ann"}')],
            )
        bad = [
            Call("b1", "db__nothing", {"text": "a"}),
            Call("b2", "echo", {"text": "b"}),
            Call("b3", "db__echo", '{"text":'),
            Call("b4", "db__echo", '["c"]'),
            Call("b5", "db__echo", ""),
            WRITE,
        ]
        yield Scenario(
            f"tools-bad-calls-{name}",
            [*db_only, q("-t", "db", "go"), q("-f", "more")],
            env=env,
            replies=[calling(*bad)],
        )
        yield Scenario(
            f"tools-without-ids-{name}",
            [*db_only, q("-t", "db", "go")],
            env=env,
            replies=[calling(Call("", "db__echo", {"text": "a"}), Call("", "db__echo", {"text": "b"}))],
        )
        once = db(dialect=dialect, settings="rounds = 1\n")
        for which, last in {"answer": None, "calls": calling(ECHO), "calls-alone": calling(FAIL, text="")}.items():
            yield Scenario(
                f"tools-rounds-then-{which}-{name}",
                [*once, q("-t", "db", "go"), q("--history")],
                env=env,
                replies=[calling(ECHO), last],
            )
        for which, text in {"text": "As far as", "alone": ""}.items():
            yield Scenario(
                f"tools-cut-{which}-{name}",
                [*db_only, q("-t", "db", "go"), q("--last")],
                env=env,
                replies=[calling(ECHO, text=text, finish="length")],
            )
        yield Scenario(
            f"tools-not-offered-{name}",
            [*configured(dialect), q("go"), q("--last")],
            env=env,
            replies=[calling(ECHO)],
        )
        yield Scenario(
            f"tools-failure-after-call-{name}",
            [*db_only, q("-t", "db", "go"), q("--history"), q("-f", "go on")],
            env=env,
            replies=[calling(ECHO), failing(500, "down")],
        )
        yield Scenario(
            f"tools-too-long-{name}",
            [
                *db(more='only = ["big"]', dialect=dialect),
                current(provider=dialect.name),
                q("-v", "-f", "-t", "db", "go"),
            ],
            env=env,
            replies=[calling(Call("c1", "db__big")), *[failing(400, "This model's maximum context length is 9.")] * 2],
        )
        yield Scenario(
            f"tools-none-known-{name}",
            [*db_only, q("-t", "db", "go")],
            env=env,
            replies=[failing(400, "this model does not support tools")],
        )


def remembered():
    """The tools of a conversation, in later questions."""
    ask = q("-t", "db__echo,db__f*", "one")
    yield Scenario("tools-remembered-in-a-pipe", [*db(), ask, q("-f", "two", stdin="input\n"), q("-f", "-n", "three")])
    yield Scenario(
        "tools-remembered-on-a-terminal", [*db(), ask, q("-f", "two", **TERMINAL)], replies=[None, calling(ECHO)]
    )
    yield Scenario(
        "tools-remembered-until-others",
        [*db(), ask, q("-f", "-t", "db__write", "two"), q("--undo"), q("-f", "three", **TERMINAL), q("--status")],
    )
    yield Scenario(
        "tools-remembered-until-none", [*db(), ask, q("-f", "-t", "none", "two"), q("-f", "three", **TERMINAL)]
    )
    yield Scenario("tools-remembered-not-by-others", [*db(), ask, q("new", **TERMINAL)])
    yield Scenario(
        "tools-remembered-by-name",
        [*db(), q("-s", "work", "-t", "db", "one"), q("-s", "work", "two", **TERMINAL), q("--copy", "b", "-s", "work")],
        replies=[None, calling(ECHO)],
    )
    yield Scenario("tools-remembered-not-without-saving", [*db(), q("--no-save", "-t", "db", "one"), q("-f", "two")])
    gone = {"tools": ["gone", "db__echo"]}
    yield Scenario(
        "tools-remembered-but-gone",
        [
            *db(),
            current(**gone),
            q("-f", "more", **TERMINAL),
            q("-f", "more"),
            q("-f", "-t", "db", "more"),
            q("-f", "again", **TERMINAL),
        ],
    )
    yield Scenario("tools-remembered-none-configured", [current(**gone), q("-f", "more", **TERMINAL), q("-f", "more")])
    for name, tools in {"text": "db", "empty": [], "number": [5], "strange": ["a b", ""]}.items():
        yield Scenario(
            f"tools-remembered-{name}", [*db(), current(tools=tools), q("-f", "more", **TERMINAL), q("--history", "-j")]
        )


def kept():
    """Conversations with calls."""
    for dialect in EVERY_DIALECT:
        for form in ["prompt", "messages"]:
            yield Scenario(
                f"tools-steps-{form}-{dialect.name}",
                [*configured(dialect), current(WITH_STEPS, provider=dialect.name), q("-v", "-f", "more")],
                env={**dialect.env, "Q_HISTORY": form},
            )
    for count in [0, 1, 2, 3]:
        yield Scenario(
            f"tools-steps-messages-{count}", [current(WITH_STEPS), q("-f", "--messages", f"{count}", "more")]
        )
    for most in [10, 30, 150, 300]:
        yield Scenario(
            f"tools-steps-max-history-{most}",
            [current(WITH_STEPS), q("-f", "more")],
            env={**OPENAI, "Q_MAX_HISTORY": f"{most}"},
        )
    for name, args in {
        "history": ["--history"],
        "history-json": ["--history", "-j"],
        "last": ["--last"],
        "undo": ["--undo"],
        "list": ["--list"],
        "list-words": ["--list", "you", "said"],
        "again": ["--again"],
        "copy": ["--copy", "work"],
    }.items():
        two, one = [current(WITH_STEPS), q(*args)], [current(WITH_STEPS[:2]), q(*args), q("--history")]
        yield Scenario(f"tools-steps-{name}", two)
        yield Scenario(f"tools-steps-{name}-of-one", one)
    yield Scenario("tools-steps-history-terminal", [current(WITH_STEPS), q("--history", **TERMINAL)])
    yield Scenario("tools-steps-pairs", [current(WITH_STEPS), q("-f", "more")], env={**OPENAI, "Q_PAIRS": "1"})
    for name, steps in {
        "text": "none",
        "empty": [],
        "number": [5],
        "no-calls": [{"text": "a"}],
        "calls-text": [{"text": "a", "calls": "b"}],
        "call-without-name": [{"text": "a", "calls": [{"id": "x", "arguments": {}, "result": "y"}]}],
        "call-without-result": [{"text": "a", "calls": [{"id": "x", "name": "n", "arguments": {}}]}],
        "arguments-list": [{"text": "a", "calls": [{"id": "x", "name": "n", "arguments": [1], "result": "y"}]}],
        "unknown-fields": [
            {"calls": [{"id": "x", "name": "n", "arguments": {}, "result": "y", "cost": 1.50}], "at": 1}
        ],
    }.items():
        odd = conversation(["What is one?", message("assistant", "One is 1.", steps=steps)])
        yield Scenario(
            f"tools-odd-steps-{name}",
            [write(CURRENT, odd, mtime=1_600_000_000), q("--history"), q("-f", "more"), q("--undo")],
        )
    yield Scenario(
        "tools-steps-again-in-place",
        [*db(), q("-t", "db", "one"), q("--again", "-t", "db"), q("--again")],
        replies=[calling(ECHO), None, calling(FAIL), None],
    )


def endings():
    """Signals while tools are used."""
    hang = Call("a2", "db__hang", {"text": "b"})
    for number in [SIGINT, SIGTERM]:
        for name, args in {"plain": [], "json": ["-j"], "named": ["-s", "work"], "no-save": ["--no-save"]}.items():
            yield Scenario(
                f"tools-signal-in-call-{name}-{number.name}",
                [
                    *db(more=""),
                    start("a", *args, "-t", "db__echo,db__hang", "go"),
                    wait_for_file("home/db.log", '"b"'),
                    send_signal("a", number),
                    finish("a"),
                    q("--history"),
                ],
                replies=[calling(ECHO, hang)],
            )
        yield Scenario(
            f"tools-signal-before-call-{number.name}",
            [
                *db(),
                current(),
                start("a", "-t", "db", "go", stdin=OPEN),
                wait_for_file("home/db.log", "tools/list"),
                send_signal("a", number),
                finish("a"),
                q("--history"),
            ],
        )
