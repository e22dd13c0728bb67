"""Tools: what is offered, what runs and who is asked, what is kept of it and sent later; and servers that fail."""

from signal import SIGINT, SIGTERM

from replies import EVERY_DIALECT, Call, OpenAi, calling, compact, failing, usual
from steps import (
    CURRENT,
    OPEN,
    OPENAI,
    Scenario,
    finish,
    q,
    send_signal,
    start,
    type_in,
    wait_for_file,
    wait_for_words,
    write,
)

from .fixtures import CONFIG, configured, conversation, current, message, tool_command, tool_server

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


def db(*modes, more=FEW, dialect=OpenAi, settings=""):
    """The configuration of one server."""
    return configured(dialect, settings, tool_server("db", *modes, more=more))


def table():
    yield from dialects()
    yield from choice()
    yield from consent()
    yield from failing_servers()
    yield from results()
    yield from remembered()
    yield from kept()
    yield from lists()
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


def choice():
    """Which tools are used."""
    two = configured(OpenAi, tool_server("db", more=FEW), tool_server("web-2"))
    for name, args in {
        "server": ["-t", "db"],
        "tool": ["-t", "db__echo"],
        "pattern": ["-t", "web-2__*o*"],
        "commas": ["-t", "db__echo,web-2__big"],
        "twice": ["-t", "db__echo", "-t", "db__fail"],
        "both": ["-t", "db", "-t", "web-2"],
        "same-again": ["-t", "db,db__echo,db"],
        "unknown-server": ["-t", "we"],
        "unknown-tool": ["-t", "db__ech"],
        "left-out-tool": ["-t", "db__big"],
        "empty-pattern": ["-t", "db__x*,db"],
        "none": ["-t", "none"],
        "none-with-others": ["-t", "none,db"],
        "empty": ["-t", ""],
        "upper-case": ["-t", "DB"],
        "not-utf-8": ["-t", b"\xff".decode("utf-8", "surrogateescape")],
    }.items():
        yield Scenario(f"tools-choice-{name}", [*two, q(*args, "go"), q("--status"), q(*args, "--list-tools")])
    for name, text in {
        "nothing": "[tools.db]\n",
        "upper-case": '[tools.Db]\ncommand = ["sh"]\n',
        "name-none": '[tools.none]\ncommand = ["sh"]\n',
        "no-program": '[tools.db]\ncommand = ["no-such-program"]\n',
        "no-file": '[tools.db]\ncommand = ["/no/such"]\n',
        "relative": '[tools.db]\ncommand = ["./server"]\n',
        "no-folder": '[tools.db]\ncommand = ["sh"]\ncwd = "/no/such"\n',
        "both": '[tools.db]\ncommand = ["sh"]\nurl = "http://h/mcp"\n',
        "unknown-key": '[tools.db]\ncommand = ["sh"]\nallowed = ["x"]\n',
        "text-command": '[tools.db]\ncommand = "sh"\n',
        "no-table": "tools = 5\n",
        "none": "",
        "wrong-time": '[tools.db]\ncommand = ["sh"]\ntimeout = "1"\n',
        "no-shared-file": 'mcp = "/no/such.json"\n',
        "relative-shared-file": 'mcp = "mcp.json"\n',
    }.items():
        yield Scenario(
            f"tools-section-{name}", [write(CONFIG, text), q("-t", "db", "go"), q("--list-tools"), q("hello")]
        )
    yield Scenario("tools-not-without-option", [*two, q("go")])
    command, *args = tool_command("db")
    shared = {"My DB": {"command": command, "args": args}, "off": {"command": "x", "disabled": True}}
    yield Scenario(
        "tools-shared-file",
        [
            write(CONFIG, 'mcp = "@ROOT@/home/mcp.json"\n'),
            write("home/mcp.json", compact({"mcpServers": shared})),
            q("-t", "my-db__echo", "go"),
            q("--list-tools"),
            q("-t", "off", "go"),
        ],
        replies=[calling(Call("aaaaaaaa1", "my-db__echo", {"text": "hi"}))],
    )
    yield Scenario(
        "tools-environment",
        [*db(more='only = ["environment"]\nenv = { A = "secret value" }\nenv_from = ["SHOP_*"]'), q("-t", "db", "go")],
        env={**OPENAI, "SHOP_KEY": "x", "OTHER": "y", "LC_ALL": "C.UTF-8"},
        replies=[calling(Call("a1", "db__environment"))],
    )


def consent():
    """Who is asked before a call."""
    twice = [calling(WRITE, ECHO), calling(Call("aaaaaaaa4", "db__write", {"text": "y\u202e"}))]
    for name, args, more in [
        ("nobody", [], ""),
        ("yes", ["--yes"], ""),
        ("allow", [], 'allow = ["wri*"]'),
        ("allow-other", [], 'allow = ["echo"]'),
        ("quiet", ["-q"], ""),
        ("json", ["-j"], ""),
    ]:
        yield Scenario(
            f"tools-consent-{name}",
            [*db(more=more), q(*args, "-t", "db", "go"), q("--history")],
            replies=twice,
        )
    yield Scenario(
        "tools-consent-web",
        [*db(more=""), q("-t", "db", "go")],
        replies=[calling(Call("a1", "db__web", {"text": "x"}))],
    )
    # The first process of a session makes a terminal its own by opening it; elsewhere q does not ask.
    asking = start("a", script='exec q -t db go <"$(tty)"', **TERMINAL)
    for typed in ["y", "n", "", "always", "maybe"]:
        again = [] if typed == "always" else [wait_for_words('{"text":"y\\u202e"}? [y]es'), type_in("a", "n\n")]
        yield Scenario(
            f"tools-asked-{typed or 'nothing'}",
            [*db(), asking, wait_for_words("? [y]es"), type_in("a", f"{typed}\n"), *again, finish("a"), q("--last")],
            replies=twice,
        )
    yield Scenario(
        "tools-asked-interrupted",
        [*db(), asking, wait_for_words("? [y]es"), type_in("a", "\x03"), finish("a"), q("--history")],
        replies=twice,
    )
    yield Scenario(
        "tools-asked-too-long",
        [*db(), q("-t", "db", "go", **TERMINAL)],
        replies=[calling(Call("a1", "db__write", {"text": "x" * 4_000}))],
    )


def failing_servers():
    for mode, more in {
        "broken": "",
        "silent": 'start = "1s"',
        "empty": "",
        "ancient": "",
        "noisy": FEW,
        "paged": FEW,
    }.items():
        yield Scenario(
            f"tools-server-{mode}",
            [*db(mode, more=more), current(), q("-f", "-t", "db", "go"), q("-j", "-t", "db", "go"), q("--list")],
            replies=[calling(ECHO)],
        )
    for args in [["--dry-run", "go"], ["--no-save", "go"], ["--list-tools"]]:
        yield Scenario(f"tools-server-broken{args[0]}", [*db("broken"), q("-t", "db", *args)])
    yield Scenario(
        "tools-server-one-broken",
        [
            # How far one comes before the other fails is not known.
            *configured(OpenAi, tool_server("db", more=FEW, log="/dev/null"), tool_server("other", "broken")),
            q("-t", "db,other", "go"),
            q("-t", "db", "go"),
        ],
    )
    yield Scenario(
        "tools-server-prints",
        [write(CONFIG, '[tools.db]\ncommand = ["/bin/echo", "hello"]\n'), q("-t", "db", "go")],
    )
    yield Scenario(
        "tools-server-dies",
        [*db(more='only = ["die", "echo"]'), q("-t", "db", "go"), q("--history")],
        replies=[calling(Call("a1", "db__die")), calling(ECHO), calling(Call("a3", "db__die")), calling(FAIL)],
    )
    yield Scenario(
        "tools-server-hangs",
        [*db(more='only = ["hang", "echo"]\ntimeout = "1s"'), q("-t", "db", "go"), q("--history")],
        replies=[calling(Call("a1", "db__hang"), ECHO)],
    )


def results():
    for tool in ["parts", "structured", "error", "big"]:
        yield Scenario(
            f"tools-result-{tool}",
            [*db(more=""), q("-t", f"db__{tool}", "go"), q("-f", "more")],
            replies=[calling(Call("a1", f"db__{tool}", {"text": "a"}))],
        )
    yield Scenario(
        "tools-result-big-often",
        [*db(more=""), q("-t", "db__big", "go")],
        replies=[calling(Call(f"a{number}", "db__big", {"text": f"{number}"})) for number in range(9)],
    )
    yield Scenario("tools-same-call", [*db(), q("-t", "db", "go"), q("--history")], replies=[calling(ECHO)] * 4)
    yield Scenario(
        "tools-many-rounds",
        [*db(), q("-v", "-t", "db", "go"), q("--last")],
        replies=[calling(Call(f"a{number}", "db__echo", {"text": f"{number}"})) for number in range(11)],
    )
    yield Scenario("tools-on-a-terminal", [*db(), q("-t", "db", "go", **TERMINAL)], replies=[calling(ECHO, FAIL)])
    yield Scenario(
        "tools-on-a-terminal-escapes",
        [*db(), q("-t", "db", "go", **TERMINAL), q("--history", **TERMINAL)],
        replies=[calling(Call("a1", "db__echo", {"text": "\x1b[31m \u202e"}), text="red \x1b[31m")],
    )
    yield Scenario(
        "tools-on-a-terminal-long-arguments",
        [*db(), q("-t", "db", "go", **TERMINAL)],
        replies=[calling(Call("a1", "db__echo", {"text": "x " * 200}))],
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
    yield Scenario("tools-remembered-not-by-others", [*db(), ask, q("new", **TERMINAL), q("--list")])
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
        [*db(), q("-t", "db", "one"), q("--again", "-t", "db"), q("--again"), q("--list")],
        replies=[calling(ECHO), None, calling(FAIL), None],
    )


def lists():
    two = configured(OpenAi, tool_server("web", more='allow = ["w*"]'), tool_server("db", more=FEW))
    for name, args in {
        "all": [],
        "json": ["-j"],
        "one": ["-t", "db"],
        "pattern": ["-t", "web__e*"],
        "none": ["-t", "none"],
        "unknown": ["-t", "nobody"],
        "yes": ["--yes"],
        "verbose": ["-v", "-t", "db"],
        "quiet": ["-q"],
        "follow": ["-f"],
        "session": ["-s", "work"],
        "model": ["-m", "x"],
    }.items():
        yield Scenario(f"list-tools-{name}", [*two, q("--list-tools", *args)], env={})
    yield Scenario("list-tools-terminal", [*two, q("--list-tools", **TERMINAL)], env={})
    yield Scenario("list-tools-words", [*two, q("--list-tools", "words")], env={})
    yield Scenario(
        "list-tools-nothing", [q("--list-tools"), q("--list-tools", "-j"), q("-t", "db", "--list-tools")], env={}
    )
    one_fails = configured(OpenAi, tool_server("db", more=FEW, log="/dev/null"), tool_server("other", "broken"))
    yield Scenario(
        "list-tools-one-fails",
        [*one_fails, q("--list-tools"), q("--list-tools", "-j"), q("--list-tools", "-t", "db,other")],
        env={},
    )
    missing = '[tools.other]\ncommand = ["no-such-program"]\n'
    yield Scenario(
        "list-tools-one-missing", [*configured(OpenAi, tool_server("db", more=FEW), missing), q("--list-tools")], env={}
    )
    yield Scenario("status-with-tools", [*two, current(tools=["db__echo"]), q("--status"), q("--status", "-j")])


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
                    q("--list"),
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
