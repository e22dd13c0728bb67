"""Settings: what is wrong with them and where, and which level wins."""

from steps import BOTH, OPENAI, case, prepare, q, write

from .fixtures import CONFIG, current, pairs, session

FILE = 'provider = "openai"\nmodel = "f"\n'


def table():
    for name, text in {"unknown-key": "\nnonsense = 1\n", "open-string": '\n\nmodel = "abc\n'}.items():
        yield case(f"file-{name}", write(CONFIG, text), q("hello"), q("-j hello"), q("--status"))
    for variable, value in [("Q_PROVIDER", "nobody"), ("Q_MESSAGES", "x"), ("Q_TIMEOUT", "0s"), ("Q_SAVE", "")]:
        runs = [q(args, env={variable: value}) for args in ["hello", "--models", "--status", "--status -j"]]
        yield case(f"variable-{variable}-{value}", *runs)
    for value in ["", "Be brief.", b"\xff".decode("utf-8", "surrogateescape")]:
        yield case(f"variable-system-{value!r}", q("hello", env={"Q_SYSTEM": value}))
    yield case("file-comments", write(CONFIG, "# nothing\n\n"), q("hello"))
    numbers = write(CONFIG, "max_history = 400_000\nmessages = 0x2\npairs = 0b11\n")
    yield case("file-underscores", numbers, q("--status"))
    inline = write(CONFIG, 'providers.work = { base_url = "@SERVER@/v1", model = "m" }\nprovider = "work"\n')
    yield case("file-inline", inline, q("hello"), env={})
    for name, script in {
        "folder": "mkdir -p config/q/config.toml",
        "link": "mkdir config/q; echo pairs = 7 >home/q.toml; ln -s ../../home/q.toml config/q/config.toml",
        "dangling": "mkdir config/q; ln -s nothing config/q/config.toml",
    }.items():
        yield case(f"file-a-{name}", prepare(script), q("hello"), q("--status"))
    for home in ["/dev/null", "c", "", None]:
        there = [write(f"home/{path}/q/config.toml", "pairs = 1\n") for path in ["c", ".config"]]
        yield case(f"config-home-{home}", *there, q("--status"), env={**OPENAI, "XDG_CONFIG_HOME": home})
    yield from levels()
    yield from status()


def levels():
    for name, line, variable, option in [
        ("messages", "messages = 2\n", {"Q_MESSAGES": "4"}, "--messages 6"),
        ("system", 'system = "file"\n', {"Q_SYSTEM": "variable"}, "-S option"),
        ("history", 'history = "messages"\n', {"Q_HISTORY": "prompt"}, ""),
    ]:
        levels = [({}, ""), (variable, ""), (variable, option)]
        runs = [q(f"-f --no-save {option} a", env=env) for env, option in levels]
        yield case(f"level-{name}", write(CONFIG, line), current(pairs(5)), *runs)
    models = {
        "file": (FILE, {}, ""),
        "file-other-provider": (FILE, {}, "-p groq"),
        "file-same-provider": (FILE, {}, "-p openai"),
        "file-variable-provider": (FILE, {"Q_PROVIDER": "groq"}, ""),
        "variable-both": (FILE, {"Q_PROVIDER": "groq", "Q_MODEL": "v"}, ""),
        "variable-model": (FILE, {"Q_MODEL": "v"}, ""),
        "variable-model-option-provider": (FILE, {"Q_MODEL": "v"}, "-p groq"),
        "option-both": (FILE, {"Q_MODEL": "v"}, "-p groq -m o"),
        "no-provider": ('model = "f"\n', {}, ""),
        "no-provider-option": ('model = "f"\n', {}, "-p openai"),
        "section": ('[providers.openai]\nmodel = "s"\n', {}, "-p openai"),
        "section-and-model": ('provider = "openai"\nmodel = "f"\n[providers.openai]\nmodel = "s"\n', {}, ""),
        "section-variable": ('[providers.openai]\nmodel = "s"\n', {"Q_MODEL": "v"}, "-p openai"),
    }
    for name, (text, env, args) in models.items():
        runs = [q(f"{args} hello"), q(f"{args} --status -j")]
        yield case(f"level-model-{name}", write(CONFIG, text), *runs, env={**BOTH, **env})


def status():
    every = "PROVIDER=groq MODEL=m SYSTEM=x MESSAGES=3 MAX_HISTORY=9 HISTORY=messages PAIRS=4 EXPIRE=never KEEP=0"
    every += " MAX_TOKENS=5 TIMEOUT=9s RETRIES=7 SAVE=false"
    variables = {f"Q_{name}": value for name, value in (pair.split("=") for pair in every.split())}
    local = {"OLLAMA_HOST": None, "LLAMACPP_BASE_URL": None, "LMSTUDIO_BASE_URL": None, "VLLM_BASE_URL": None}
    file = (
        'provider = "work"\nmodel = "file-model"\n\nmessages = 4\nexpire = "1h"\nsave = false\n\n'
        '[providers.work]\nbase_url = "https://user:secret@llm.example/v1/"\nkey_env = "WORK_KEY"\nmodel = "own"\n'
        'headers = { x-team = "infra" }\n\n[providers.openai]\nkey_cmd = ["pass", "show", "x"]\n'
    )
    for args in ["--status", "--status -j"]:
        for name, env in {
            "defaults": {"Q_RETRIES": None, **local},
            "variables": {**BOTH, **variables},
            "wrong-address": {**OPENAI, "OPENAI_BASE_URL": "ftp://x", "GROQ_BASE_URL": "x y"},
            "two-keys": {**OPENAI, "GOOGLE_API_KEY": "x", "XAI_API_KEY": ""},
        }.items():
            yield case(f"{args}-{name}", q(args), env=env)
        yield case(f"{args}-file", write(CONFIG, file), q(args), q(args, env={"WORK_KEY": "x"}))
        for options in ["-p groq -m x -S y --messages 2 --no-save", "--messages x", "-p nobody", "-s work", "-s other"]:
            yield case(f"{args}{options}", session("work"), q(f"{args} {options}"))
