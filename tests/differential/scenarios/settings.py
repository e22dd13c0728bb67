"""Settings: what is wrong with them and where, and which level wins."""

from steps import ANTHROPIC, OPENAI, Scenario, folder, link, q, write

from .fixtures import CONFIG, current, pairs

BOTH = {**OPENAI, **ANTHROPIC}

# Files that are wrong; the last line of each is the one to be named, unless it says otherwise.
WRONG_FILES = {
    "not-toml": 'provider = "openai"\nthis is not TOML\n',
    "open-string": '\n\nmodel = "abc\n',
    "key-twice": "pairs = 1\npairs = 2\n",
    "unknown-key": "\nnonsense = 1\n",
    "misspelt-key": "# comment\nmesages = 4\n",
    "misspelt-underscore": "max-history = 4\n",
    "text-for-number": 'messages = "4"\n',
    "float-for-number": "messages = 4.5\n",
    "negative": "messages = -1\n",
    "zero-pairs": "\npairs = 0\n",
    "too-many-retries": "retries = 101\n",
    "huge": "messages = 99999999999999999999\n",
    "number-for-text": "model = 5\n",
    "empty-model": 'model = ""\n',
    "text-for-switch": 'save = "false"\n',
    "number-for-switch": "save = 1\n",
    "unknown-choice": 'history = "chat"\n',
    "duration-without-unit": 'expire = "24"\n',
    "duration-number": "expire = 24\n",
    "duration-unknown-unit": 'keep = "1w"\n',
    "duration-zero-timeout": 'timeout = "0s"\n',
    "duration-overflow": 'keep = "99999999999999999999d"\n',
    "duration-blank": 'keep = "1 d"\n',
    "date": "expire = 2020-01-01\n",
    "array": 'system = ["a"]\n',
    "table": "[system]\nx = 1\n",
    "unknown-provider": 'provider = "nobody"\n',
    "empty-provider": 'provider = ""\n',
    "providers-no-table": "providers = 5\n",
    "provider-no-table": "[providers]\nwork = 5\n",
    "provider-unknown-key": '[providers.work]\nbase_url = "http://h/v1"\nbaseurl = "x"\n',
    "provider-unknown-api": '[providers.work]\nbase_url = "http://h/v1"\napi = "cohere"\n',
    "provider-bad-url": '[providers.work]\n\nbase_url = "h/v1"\n',
    "provider-url-scheme": '[providers.work]\nbase_url = "ftp://h/v1"\n',
    "provider-url-query": '[providers.work]\nbase_url = "http://h/v1?x=1"\n',
    "provider-url-port": '[providers.work]\nbase_url = "http://h:99999/v1"\n',
    "provider-url-no-host": '[providers.work]\nbase_url = "http:///v1"\n',
    "provider-key-env": '[providers.work]\nkey_env = "sk-not-a-name"\n',
    "provider-key-env-empty": '[providers.work]\nkey_env = ""\n',
    "provider-key-env-digit": '[providers.work]\nkey_env = "1A"\n',
    "provider-key-cmd-text": '[providers.work]\nkey_cmd = "pass show x"\n',
    "provider-key-cmd-empty": "[providers.work]\nkey_cmd = []\n",
    "provider-key-cmd-number": "[providers.work]\nkey_cmd = [1]\n",
    "provider-both-keys": '[providers.work]\nkey_env = "A"\nkey_cmd = ["x"]\n',
    "provider-model-empty": '[providers.work]\nmodel = ""\n',
    "provider-headers-text": '[providers.work]\nheaders = "x: y"\n',
    "provider-header-name": '[providers.work]\nheaders = { "x y" = "z" }\n',
    "provider-header-value": '[providers.work]\n[providers.work.headers]\nok = "1"\nx-y = "a\\nb"\n',
    "provider-header-number": "[providers.work]\nheaders = { x-y = 5 }\n",
    "provider-twice": '[providers.work]\nmodel = "a"\n[providers.work]\nmodel = "b"\n',
    "not-utf-8": b'model = "\xff"\n',
    "carriage-return": "pairs = 5\r\nmessages = x\r\n",
}

WRONG_VARIABLES = {
    "Q_PROVIDER": ["nobody"],
    "Q_MESSAGES": ["x", "-1", "4294967296"],
    "Q_MAX_HISTORY": ["1k", "-5"],
    "Q_HISTORY": ["chat", "Prompt"],
    "Q_PAIRS": ["0", "x"],
    "Q_EXPIRE": ["1w", "soon"],
    "Q_KEEP": ["1", "-1d"],
    "Q_MAX_TOKENS": ["0", "1.5"],
    "Q_TIMEOUT": ["0", "0s", "5"],
    "Q_RETRIES": ["101", "two"],
    "Q_SAVE": ["yes", "0", "True"],
}


def table():
    for name, text in WRONG_FILES.items():
        yield Scenario(f"file-{name}", [write(CONFIG, text), q("hello"), q("-j", "hello"), q("--status")])
    for variable, values in WRONG_VARIABLES.items():
        for value in values:
            yield Scenario(
                f"variable-{variable}-{value}",
                [q("hello", env={variable: value}), q("--models", env={variable: value})],
            )
        yield Scenario(f"variable-{variable}-empty", [q("hello", env={variable: ""})])
    yield Scenario("variable-not-utf-8", [q("hello", env={"Q_SYSTEM": b"\xff".decode("utf-8", "surrogateescape")})])
    yield Scenario("variable-system-empty", [q("hello", env={"Q_SYSTEM": ""})])
    yield Scenario("variable-system", [q("hello", env={"Q_SYSTEM": "Be brief."})])
    yield Scenario("file-empty", [write(CONFIG, ""), q("hello")])
    yield Scenario("file-comments", [write(CONFIG, "# nothing\n\n"), q("hello")])
    yield Scenario(
        "file-underscores", [write(CONFIG, "max_history = 400_000\nmessages = 0x2\npairs = 0b11\n"), q("--status")]
    )
    yield Scenario(
        "file-inline",
        [write(CONFIG, 'providers.work = { base_url = "@SERVER@/v1", model = "m" }\nprovider = "work"\n'), q("hello")],
        env={},
    )
    yield Scenario("file-a-folder", [folder(CONFIG), q("hello"), q("--status")])
    yield Scenario(
        "file-a-link",
        [write("home/q.toml", "pairs = 7\n"), folder("config/q"), link(CONFIG, "@ROOT@/home/q.toml"), q("--status")],
    )
    yield Scenario("file-dangling", [folder("config/q"), link(CONFIG, "nothing"), q("hello")])
    yield Scenario("file-home-a-file", [q("hello")], env={**OPENAI, "XDG_CONFIG_HOME": "/dev/null"})
    yield from levels()


def levels():
    yield Scenario(
        "level-messages",
        [
            write(CONFIG, "messages = 2\n"),
            current(pairs(5)),
            q("-f", "--no-save", "a"),
            q("-f", "--no-save", "a", env={"Q_MESSAGES": "4"}),
            q("-f", "--no-save", "--messages", "6", "a", env={"Q_MESSAGES": "4"}),
        ],
    )
    yield Scenario(
        "level-system",
        [
            write(CONFIG, 'system = "file"\n'),
            q("a"),
            q("a", env={"Q_SYSTEM": "variable"}),
            q("-S", "option", "a", env={"Q_SYSTEM": "variable"}),
        ],
    )
    yield Scenario(
        "level-history",
        [write(CONFIG, 'history = "messages"\n'), current(), q("-f", "a"), q("-f", "a", env={"Q_HISTORY": "prompt"})],
    )
    models = {
        "file": ('provider = "openai"\nmodel = "f"\n', {}, []),
        "file-other-provider": ('provider = "openai"\nmodel = "f"\n', {}, ["-p", "anthropic"]),
        "file-same-provider": ('provider = "openai"\nmodel = "f"\n', {}, ["-p", "openai"]),
        "file-variable-provider": ('provider = "openai"\nmodel = "f"\n', {"Q_PROVIDER": "anthropic"}, []),
        "variable-both": ('provider = "openai"\nmodel = "f"\n', {"Q_PROVIDER": "anthropic", "Q_MODEL": "v"}, []),
        "variable-model": ('provider = "openai"\nmodel = "f"\n', {"Q_MODEL": "v"}, []),
        "variable-model-option-provider": ('provider = "openai"\nmodel = "f"\n', {"Q_MODEL": "v"}, ["-p", "anthropic"]),
        "option-both": ('provider = "openai"\nmodel = "f"\n', {"Q_MODEL": "v"}, ["-p", "anthropic", "-m", "o"]),
        "no-provider": ('model = "f"\n', {}, []),
        "no-provider-option": ('model = "f"\n', {}, ["-p", "openai"]),
        "section": ('[providers.openai]\nmodel = "s"\n', {}, ["-p", "openai"]),
        "section-and-model": ('provider = "openai"\nmodel = "f"\n[providers.openai]\nmodel = "s"\n', {}, []),
        "section-variable": ('[providers.openai]\nmodel = "s"\n', {"Q_MODEL": "v"}, ["-p", "openai"]),
    }
    for name, (text, env, args) in models.items():
        yield Scenario(
            f"level-model-{name}",
            [write(CONFIG, text), q(*args, "hello"), q(*args, "--status", "-j")],
            env={**BOTH, **env},
        )
