"""The actions on conversations, in text and JSON, whatever there is."""

from steps import ANTHROPIC, OPENAI, SESSIONS, Scenario, q, sh, write

from .fixtures import CONFIG, conversation, current, message, pairs, session

ACTIONS = {
    "history": ["--history"],
    "history-json": ["--history", "--json"],
    "last": ["--last"],
    "last-extract": ["--last", "-x"],
    "undo": ["--undo"],
    "list": ["--list"],
    "list-json": ["--list", "-j"],
    "clear": ["--clear"],
    "clear-all": ["--clear", "--all"],
    "status": ["--status"],
    "status-json": ["--status", "-j"],
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
    "control-characters": [current(["tab\there", "esc \x1b[31m\x07 \u202e"])],
    "long-question": [current(["word\n" * 100, "x" * 500])],
    "odd-names": [current(provider="a\tb", model="c\nd")],
    "unknown-fields": [current(title="x", nested={"a": [1, 2.5]})],
    "several": [
        current(updated="@AGO 5m@"),
        session("work", ["at work", "yes"], updated="@AGO 3m@"),
        session("session_20200101100000", ["aside", "yes"], updated="2020-01-01T10:00:00.000Z"),
        session("current-tty", ["in a slot", "yes"], updated="@AGO 4m@"),
        session("same-time-b", updated="2020-01-02T10:00:00.000Z"),
        session("same-time-a", updated="2020-01-02T10:00:00.000Z"),
    ],
    "damaged-other": [current(), write(f"{SESSIONS}/work.json", "{"), write(f"{SESSIONS}/x.txt", "")],
    "unreadable-aside": [write(f"{SESSIONS}/session_20200101100000.json.unreadable", "{")],
}


def table():
    for state, steps in STATES.items():
        for name, args in ACTIONS.items():
            yield Scenario(f"action-{name}-{state}", [*steps, q(*args)])
    for state in ["nothing", "several", "damaged-other", "interrupted"]:
        for name, args in ACTIONS.items():
            yield Scenario(f"action-{name}-{state}-quiet", [*STATES[state], q("-q", *args)])
    yield Scenario("undo-chain", [current(pairs(3)), *[q("--undo")] * 4, q("--list"), q("--history")])
    yield Scenario(
        "undo-chain-live",
        [q("one"), q("-f", "two"), q("-f", "three"), q("--undo"), q("--undo"), q("--undo"), q("--undo"), q("--list")],
    )
    yield Scenario("undo-then-follow", [current(), q("--undo"), q("-f", "other"), q("--history"), q("--list")])
    yield Scenario("undo-all-then-follow", [current(["a", "b"]), q("--undo"), q("-f", "other")])
    yield Scenario("undo-named-chain", [session("work", pairs(2)), *[q("--undo", "-s", "work")] * 3, q("--list")])
    yield Scenario(
        "undo-path-chain",
        [write("home/a.json", conversation(pairs(2)), mode=0o644), *[q("--undo", "-s", "a.json")] * 3, q("--list")],
    )
    for keep in ["0", "never", "wrong"]:
        yield Scenario(f"undo-keep-{keep}", [current(pairs(2)), *[q("--undo")] * 2], env={**OPENAI, "Q_KEEP": keep})
    yield Scenario(
        "undo-aside", [session("session_20200101100000"), q("--undo", "-s", "session_20200101100000"), q("--list")]
    )
    yield Scenario("clear-then-follow", [current(), q("--clear"), q("-f", "more"), q("--clear")])
    yield Scenario(
        "clear-all-then-ask", [*STATES["several"], q("--clear", "--all"), q("--list"), q("one"), q("--clear", "--all")]
    )
    yield Scenario("clear-all-twice", [*STATES["several"], q("--clear", "--all"), q("--clear", "--all")])
    yield Scenario(
        "list-after-questions", [q("one"), q("two"), q("-s", "work", "three"), q("--list"), q("--list", "--json")]
    )
    yield Scenario(
        "history-after-questions",
        [q("one"), q("-f", "two", stdin="input\n"), q("--history"), q("--history", "--json"), q("--last")],
    )
    yield Scenario(
        "history-to-jq",
        [
            current(),
            sh("q --history --json | python3 -c 'import json,sys; print(len(json.load(sys.stdin)[\"messages\"]))'"),
        ],
    )
    yield Scenario(
        "last-of-several-answers",
        [current([message("user", "a"), message("assistant", "b"), message("assistant", "c")]), q("--last")],
    )
    yield Scenario(
        "actions-with-wrong-file",
        [write(CONFIG, "nonsense = 1\n"), current(), *[q(*args) for args in ACTIONS.values()]],
    )
    yield Scenario(
        "actions-with-wrong-variable",
        [current(), *[q(*args) for args in ACTIONS.values()]],
        env={**OPENAI, "Q_PAIRS": "x"},
    )
    yield Scenario("actions-without-provider", [current(), *[q(*args) for args in ACTIONS.values()]], env={})
    yield from status()


def status():
    every = {
        "Q_PROVIDER": "anthropic",
        "Q_MODEL": "m",
        "Q_SYSTEM": "two\nlines",
        "Q_MESSAGES": "3",
        "Q_MAX_HISTORY": "9",
        "Q_HISTORY": "messages",
        "Q_PAIRS": "4",
        "Q_EXPIRE": "never",
        "Q_KEEP": "0",
        "Q_MAX_TOKENS": "5",
        "Q_TIMEOUT": "9s",
        "Q_RETRIES": "7",
        "Q_SAVE": "false",
    }
    local = {"OLLAMA_HOST": None, "LLAMACPP_BASE_URL": None, "LMSTUDIO_BASE_URL": None, "VLLM_BASE_URL": None}
    for name, args in {"text": ["--status"], "json": ["--status", "--json"]}.items():
        yield Scenario(f"status-{name}-defaults", [q(*args)], env={"Q_RETRIES": None, **local})
        yield Scenario(f"status-{name}-variables", [q(*args)], env={**OPENAI, **ANTHROPIC, **every})
        yield Scenario(
            f"status-{name}-file",
            [
                write(
                    CONFIG,
                    'provider = "work"\nmodel = "file-model"\n\nmessages = 4\nexpire = "1h"\nsave = false\n\n'
                    '[providers.work]\nbase_url = "https://user:secret@llm.example/v1/"\nkey_env = "WORK_KEY"\nmodel = "own"\n'
                    'headers = { x-team = "infra" }\n\n[providers.openai]\nkey_cmd = ["pass", "show", "x"]\n',
                ),
                q(*args),
                q(*args, env={"WORK_KEY": "x"}),
            ],
        )
        yield Scenario(
            f"status-{name}-options",
            [q(*args, "-p", "groq", "-m", "x", "-S", "y", "--messages", "2", "--no-save")],
            env=OPENAI,
        )
        yield Scenario(f"status-{name}-wrong-file", [write(CONFIG, "\n\nprovider = 5\n"), q(*args)])
        yield Scenario(f"status-{name}-wrong-variable", [q(*args)], env={**OPENAI, "Q_SAVE": "maybe"})
        yield Scenario(f"status-{name}-wrong-option", [q(*args, "--messages", "x"), q(*args, "-p", "nobody")])
        yield Scenario(
            f"status-{name}-wrong-address",
            [q(*args)],
            env={**OPENAI, "OPENAI_BASE_URL": "ftp://x", "GROQ_BASE_URL": "x y"},
        )
        yield Scenario(f"status-{name}-damaged", [write(f"{SESSIONS}/current.json", "{"), q(*args)])
        yield Scenario(f"status-{name}-session", [session("work"), q(*args, "-s", "work"), q(*args, "-s", "other")])
        yield Scenario(f"status-{name}-two-keys", [q(*args)], env={**OPENAI, "GOOGLE_API_KEY": "x", "XAI_API_KEY": ""})
