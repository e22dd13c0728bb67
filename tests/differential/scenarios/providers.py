"""Providers: addresses, keys, headers, discovery, lists of models, proxies; and that no secret is shown."""

from replies import DIALECTS, Reply, body, failing, stream, together, usual
from steps import ANTHROPIC, GEMINI, OPENAI, Scenario, q, write

from .fixtures import CONFIG, session

BUILT_IN = ["anthropic", "openai", "gemini", "groq", "mistral", "openrouter", "deepseek", "xai"]
LOCAL = ["ollama", "llamacpp", "lmstudio"]
KEY = "sk-test-0123456789"


def work(text):
    """A configuration file with a provider of its own."""
    return write(CONFIG, f'provider = "work"\n[providers.work]\n{text}\n')


def base_url(name):
    return "@SERVER@" if name in ("anthropic", "gemini") else "@SERVER@/v1"


def table():
    yield from built_in()
    yield from sections()
    yield from keys()
    yield from secrets()
    yield from discovery()
    yield from models()
    yield from addresses()


def built_in():
    for name in BUILT_IN:
        env = {f"{name.upper()}_BASE_URL": base_url(name), f"{name.upper()}_API_KEY": KEY}
        yield Scenario(f"provider-{name}", [q("-v", "hello"), q("-f", "--no-stream", "more")], env=env)
        yield Scenario(f"provider-{name}-limit", [q("-p", name, "hello")], env={**env, "Q_MAX_TOKENS": "50"})
        yield Scenario(f"provider-{name}-no-key", [q("-p", name, "hello"), q("-j", "-p", name, "--models")], env={})
        yield Scenario(f"provider-{name}-models", [q("-p", name, "--models")], env=env)
    for name in LOCAL:
        env = {f"{name.upper()}_BASE_URL": "@SERVER@/v1"}
        yield Scenario(f"provider-{name}", [q("-p", name, "hello"), q("-p", name, "-f", "more")], env=env)
        yield Scenario(f"provider-{name}-model", [q("-p", name, "-m", "x", "hello")], env=env)
        yield Scenario(f"provider-{name}-dry-run", [q("-p", name, "--dry-run", "hello")], env=env)
        yield Scenario(
            f"provider-{name}-without-models", [q("-p", name, "hello")], env=env, replies=[body({"data": []})]
        )
        yield Scenario(f"provider-{name}-refused", [q("-p", name, "hello"), q("-p", name, "--models")], env={})
    yield Scenario("provider-order", [q("hello")], env={**GEMINI, **OPENAI, **ANTHROPIC})
    yield Scenario("provider-google-key", [q("hello")], env={**GEMINI, "GEMINI_API_KEY": None, "GOOGLE_API_KEY": KEY})
    yield Scenario("provider-both-google-keys", [q("hello")], env={**GEMINI, "GOOGLE_API_KEY": "other"})
    yield Scenario("provider-unknown", [q("-p", "nobody", "hello"), q("-p", "", "hello"), q("-p", "OpenAI", "hello")])


def sections():
    for api in ["openai", "anthropic", "gemini"]:
        url = base_url(api)
        text = f'api = "{api}"\nbase_url = "{url}"\nkey_env = "WORK_KEY"\nmodel = "own"\nheaders = {{ x-team = "infra", X-Other = "ä" }}'
        yield Scenario(
            f"section-{api}", [work(text), q("-v", "hello"), q("-f", "more"), q("--models")], env={"WORK_KEY": KEY}
        )
        yield Scenario(
            f"section-{api}-first-model",
            [work(f'api = "{api}"\nbase_url = "{url}"'), q("hello"), q("-f", "more")],
            env={},
        )
        yield Scenario(f"section-{api}-no-key", [work(text), q("hello")], env={})
    yield Scenario(
        "section-header-replaces",
        [
            work(
                'base_url = "@SERVER@/v1"\nkey_env = "K"\nmodel = "m"\nheaders = { Authorization = "Token abc", user-agent = "mine", content-type = "text/x" }'
            ),
            q("hello"),
        ],
        env={"K": KEY},
    )
    yield Scenario(
        "section-anthropic-version",
        [
            work(
                'api = "anthropic"\nbase_url = "@SERVER@"\nmodel = "m"\nheaders = { anthropic-version = "2024-01-01", anthropic-beta = "b" }'
            ),
            q("hello"),
        ],
        env={},
    )
    yield Scenario("section-slash", [work('base_url = "@SERVER@/v1/"\nmodel = "m"'), q("hello")], env={})
    yield Scenario(
        "section-deep-path", [work('base_url = "@SERVER@/a/b/c"\nmodel = "m"'), q("hello"), q("--models")], env={}
    )
    yield Scenario("section-no-path", [work('base_url = "@SERVER@"\nmodel = "m"'), q("hello")], env={})
    yield Scenario("section-without-url", [work('model = "m"'), q("hello"), q("--status"), q("--models")], env={})
    yield Scenario(
        "section-login",
        [work('base_url = "http://us%20er:pass%21@127.0.0.1:@PORT@/v1"\nmodel = "m"'), q("-v", "hello")],
        env={},
    )
    yield Scenario(
        "section-login-and-key",
        [work('base_url = "http://user:pass@127.0.0.1:@PORT@/v1"\nkey_env = "K"\nmodel = "m"'), q("hello")],
        env={"K": KEY},
    )
    yield Scenario(
        "section-built-in",
        [
            write(
                CONFIG, '[providers.openai]\nmodel = "m"\nheaders = { x-a = "1" }\nbase_url = "http://@CLOSED@/v1"\n'
            ),
            q("hello"),
        ],
    )
    yield Scenario(
        "section-built-in-url",
        [write(CONFIG, '[providers.openai]\nbase_url = "@SERVER@/elsewhere"\n'), q("hello")],
        env={**OPENAI, "OPENAI_BASE_URL": None},
    )
    yield Scenario(
        "section-built-in-api",
        [write(CONFIG, '[providers.openai]\napi = "anthropic"\n'), q("hello")],
        env={**OPENAI, "OPENAI_BASE_URL": "@SERVER@"},
    )
    yield Scenario(
        "section-first-with-key",
        [
            write(
                CONFIG,
                '[providers.zeta]\nbase_url = "@SERVER@/v1"\nkey_env = "ZETA"\nmodel = "z"\n[providers.alpha]\nbase_url = "@SERVER@/v1"\nkey_env = "ALPHA"\nmodel = "a"\n',
            ),
            q("hello"),
        ],
        env={**OPENAI, "ZETA": KEY, "ALPHA": KEY},
    )
    yield Scenario(
        "section-odd-name",
        [
            write(CONFIG, '[providers."my server"]\nbase_url = "@SERVER@/v1"\nmodel = "m"\n'),
            q("-p", "my server", "hello"),
        ],
        env={},
    )


def keys():
    commands = {
        "prints": '["printf", "KEY"]',
        "lines": '["printf", "KEY\\nsecond\\n"]',
        "blank-end": '["printf", "KEY \\r\\n"]',
        "nothing": '["true"]',
        "blank-line": '["printf", "\\nKEY\\n"]',
        "fails": '["sh", "-c", "echo KEY; echo why >&2; exit 3"]',
        "killed": '["sh", "-c", "kill -9 $$"]',
        "missing": '["no-such-command", "secret-argument"]',
        "two-words": '["printf", "KE Y"]',
        "umlaut": '["printf", "KÉY"]',
        "input": '["cat"]',
        "no-shell": '["printf", "%s", "$HOME|x"]',
        "endless": '["yes", "KEY"]',
    }
    for name, command in commands.items():
        command = command.replace("KEY", KEY)
        yield Scenario(
            f"key-command-{name}",
            [
                work(f'base_url = "@SERVER@/v1"\nmodel = "m"\nkey_cmd = {command}'),
                q("hello", stdin="input\n"),
                q("--models"),
            ],
            env={},
        )
    yield Scenario(
        "key-command-not-for-nothing",
        [
            work('base_url = "@SERVER@/v1"\nmodel = "m"\nkey_cmd = ["touch", "@ROOT@/home/ran"]'),
            q("--dry-run", "hello"),
            q("--status"),
            q(),
            q("--history"),
            q("hello"),
        ],
        env={},
    )
    yield Scenario(
        "key-command-refused",
        [work(f'base_url = "@SERVER@/v1"\nmodel = "m"\nkey_cmd = ["printf", "{KEY}"]'), q("hello")],
        env={},
        replies=[failing(401, "bad key")],
    )
    for name, key in {
        "blank": "sk test",
        "line-end": "sk-test\n",
        "umlaut": "schlüssel",
        "escape": "sk\x1bx",
        "empty": "",
    }.items():
        yield Scenario(
            f"key-{name}",
            [q("-p", "openai", "hello"), q("-p", "openai", "--dry-run", "hello")],
            env={**OPENAI, "OPENAI_API_KEY": key},
        )
    yield Scenario(
        "key-unencrypted",
        [q("hello"), q("-q", "hello"), q("--models")],
        env={**OPENAI, "OPENAI_BASE_URL": "http://0.0.0.0:@PORT@/v1"},
    )
    yield Scenario("key-localhost", [q("hello")], env={**OPENAI, "OPENAI_BASE_URL": "http://localhost:@PORT@/v1"})


def secrets():
    """What servers repeat of a key is not shown."""
    for dialect in DIALECTS:
        told = f"the key {KEY} is wrong, Bearer {KEY}!"
        for name, reply in {
            "status": failing(401, told),
            "text": body(f"no: {KEY}", 403, kind="text/plain"),
            "long-text": body("x" * 190 + KEY + "y" * 50, 500, kind="text/plain"),
            "stream": stream([*dialect.begin(), dialect.text("so far "), dialect.failure(told)]),
            "whole": body(dialect.error(told)),
            "malformed": body(f'{{"choices": {KEY}'),
            "malformed-list": body({"data": [{"id": 5, "x": KEY}]}),
        }.items():
            yield Scenario(
                f"secret-{name}-{dialect.name}", [q("hello"), q("-j", "hello")], env=dialect.env, replies=[reply] * 2
            )
        yield Scenario(
            f"secret-list-{dialect.name}",
            [q("--models"), q("--models")],
            env=dialect.env,
            replies=[failing(401, told), body({"data": [{"id": 5, "x": KEY}]})],
        )
    yield Scenario(
        "secret-header",
        [
            work(
                'base_url = "@SERVER@/v1"\nmodel = "m"\nheaders = { Authorization = "Bearer hidden-token-1", x-pass = "hidden two" }'
            ),
            q("hello"),
        ],
        env={},
        replies=[failing(403, "Bearer hidden-token-1 or hidden-token-1 or hidden two?")],
    )
    yield Scenario(
        "secret-login",
        [
            work('base_url = "http://user:hidden%21word@127.0.0.1:@PORT@/v1"\nmodel = "m"'),
            q("-v", "hello"),
            q("--status"),
        ],
        env={},
        replies=[failing(403, "hidden%21word hidden!word dXNlcjpoaWRkZW4hd29yZA==")],
    )
    yield Scenario(
        "secret-retry",
        [q("-v", "hello")],
        env={**OPENAI, "Q_RETRIES": "1"},
        replies=[failing(503, f"busy {KEY}", [("retry-after", "0")])],
    )


def discovery():
    local = {
        "OLLAMA_HOST": "@SERVER@/ollama",
        "LLAMACPP_BASE_URL": "@SERVER@/llamacpp",
        "LMSTUDIO_BASE_URL": "@SERVER@/lmstudio",
    }
    yield Scenario("discover-nobody", [q("hello"), q("-j", "hello"), q("--models")], env={})
    # The first one is asked as soon as it has answered, so it must not answer before the others are heard.
    lists = [together(len(local), usual(""))] * len(local)
    yield Scenario(
        "discover-all-dry-run",
        [q("--dry-run", "hello")],
        env=local,
        replies=lists,
        any_order=True,
        alone=True,
    )
    for name in LOCAL:
        variable = "OLLAMA_HOST" if name == "ollama" else f"{name.upper()}_BASE_URL"
        yield Scenario(
            f"discover-{name}",
            [q("hello"), q("-f", "more"), q("--models"), q("-q", "-m", "x", "hello")],
            env={variable: local[variable]},
            any_order=True,
            alone=True,
        )
    yield Scenario("discover-all", [q("hello")], env=local, replies=lists, any_order=True, alone=True)
    yield Scenario(
        "discover-no-models",
        [q("hello")],
        env={"LLAMACPP_BASE_URL": "@SERVER@/v1"},
        replies=[body({"data": []})],
        any_order=True,
        alone=True,
    )
    yield Scenario(
        "discover-no-list",
        [q("hello")],
        env={"LLAMACPP_BASE_URL": "@SERVER@/v1"},
        replies=[failing(404, "nothing here")],
        any_order=True,
        alone=True,
    )
    yield Scenario("discover-not-with-name", [session("work"), q("-s", "work", "hello")], env={**OPENAI, **local})
    hosts = [
        "127.0.0.1:@PORT@",
        "@SERVER@/",
        "@SERVER@/x/",
        '"127.0.0.1:@PORT@"',
        "0.0.0.0:@PORT@",
        ":@PORT@",
        "[::]:@PORT@x",
        "ftp://h",
        "bo x",
        "h:99999",
    ]
    for index, host in enumerate(hosts):
        yield Scenario(
            f"ollama-host-{index}",
            [q("-p", "ollama", "-m", "m", "hello"), q("--status", "-j")],
            env={"OLLAMA_HOST": host},
        )


def models():
    lists = {
        "usual": None,
        "one": lambda dialect: body(dialect.models(["only"])),
        "none": lambda dialect: body(dialect.models([])),
        "many": lambda dialect: body(dialect.models([f"model-{number}" for number in range(300)])),
        "odd": lambda dialect: body(dialect.models(["a b", "ä", "x/y:z", ""])),
        "not-json": lambda dialect: body("<html>no</html>"),
        "other-json": lambda dialect: body({"models": 5}),
        "array": lambda dialect: body(["a", "b"]),
        "empty": lambda dialect: body(""),
        "byte-order-mark": lambda dialect: body(b"\xef\xbb\xbf{}"),
        "status-401": lambda dialect: failing(401, "who are you?"),
        "status-404": lambda dialect: failing(404, "nothing here"),
        "status-500": lambda dialect: failing(500, "broken"),
        "error-in-200": lambda dialect: body(dialect.error("not today")),
        "cut": lambda dialect: Reply([b'{"data":[', "cut"], headers=[("content-type", "application/json")]),
        "reset": lambda dialect: Reply(["reset"], framing="raw"),
    }
    for dialect in DIALECTS:
        for name, reply in lists.items():
            yield Scenario(
                f"models-{name}-{dialect.name}", [q("--models")], env=dialect.env, replies=[reply and reply(dialect)]
            )
        yield Scenario(
            f"models-verbose-{dialect.name}",
            [q("-v", "--models")],
            env={**dialect.env, "Q_RETRIES": "1"},
            replies=[failing(503, "busy", [("retry-after", "0")])],
        )


def addresses():
    wrong = [
        "nonsense",
        "127.0.0.1:80",
        "ftp://h/v1",
        "http://",
        "http://h/v1?x=1",
        "http://h/v1#x",
        "http://h:/v1",
        "http://h:99999/v1",
        "http://h h/v1",
        "http://u:geheim@/v1",
        " ",
    ]
    for index, url in enumerate(wrong):
        yield Scenario(
            f"base-url-wrong-{index}",
            [q("hello"), q("--models"), q("--status")],
            env={**OPENAI, "OPENAI_BASE_URL": url},
        )
        yield Scenario(f"base-url-wrong-elsewhere-{index}", [q("hello")], env={**OPENAI, "GROQ_BASE_URL": url})
    for name, url in {
        "slash": "@SERVER@/v1/",
        "slashes": "@SERVER@/v1//",
        "blanks": " @SERVER@/v1 ",
        "capitals": "HTTP://127.0.0.1:@PORT@/V1",
        "percent": "@SERVER@/a%20b",
    }.items():
        yield Scenario(f"base-url-{name}", [q("-v", "hello")], env={**OPENAI, "OPENAI_BASE_URL": url})
    yield Scenario(
        "refused",
        [q("hello"), q("-j", "hello"), q("--models")],
        env={**OPENAI, "OPENAI_BASE_URL": "http://@CLOSED@/v1"},
    )
    yield Scenario(
        "refused-with-retries",
        [q("-v", "hello")],
        env={**OPENAI, "OPENAI_BASE_URL": "http://@CLOSED@/v1", "Q_RETRIES": "2"},
    )
    yield Scenario(
        "tls-to-plain-server",
        [q("hello")],
        env={**OPENAI, "OPENAI_BASE_URL": "https://127.0.0.1:@PORT@/v1"},
        replies=[body("x")],
    )
    for name, value in {"missing": "/nowhere.pem", "empty": "/dev/null", "folder": "@ROOT@"}.items():
        yield Scenario(
            f"certificates-{name}",
            [q("hello")],
            env={**OPENAI, "OPENAI_BASE_URL": "https://@CLOSED@/v1", "SSL_CERT_FILE": value},
        )
    through = {**OPENAI, "OPENAI_BASE_URL": "http://api.example:81/v1", "HTTP_PROXY": "@SERVER@"}
    yield Scenario("proxy", [q("-v", "hello"), q("--models")], env=through)
    yield Scenario("proxy-login", [q("hello")], env={**through, "HTTP_PROXY": "http://us%40er:pass@127.0.0.1:@PORT@"})
    yield Scenario("proxy-all", [q("hello")], env={**through, "HTTP_PROXY": "", "ALL_PROXY": "@SERVER@"})
    yield Scenario("proxy-small-letters", [q("hello")], env={**through, "HTTP_PROXY": None, "http_proxy": "@SERVER@"})
    yield Scenario("proxy-without-scheme", [q("hello")], env={**through, "HTTP_PROXY": "127.0.0.1:@PORT@"})
    yield Scenario(
        "proxy-not-for-loopback",
        [q("hello")],
        env={**OPENAI, "HTTP_PROXY": "http://@CLOSED@", "ALL_PROXY": "http://@CLOSED@"},
    )
    yield Scenario("proxy-refused", [q("hello")], env={**through, "HTTP_PROXY": "http://user:pass@@CLOSED@"})
    yield Scenario(
        "proxy-refuses",
        [q("hello")],
        env=through,
        replies=[Reply([b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"], framing="raw")],
    )
    yield Scenario("proxy-fails", [q("hello")], env=through, replies=[Reply(["reset"], framing="raw")])
    for index, value in enumerate(["nonsense proxy", "ftp://127.0.0.1:1", "http://", "http://h:99999"]):
        yield Scenario(f"proxy-wrong-{index}", [q("hello")], env={**through, "HTTP_PROXY": value})
    yield Scenario("proxy-socks-refused", [q("hello")], env={**through, "HTTP_PROXY": "socks5://@CLOSED@"})
    for index, value in enumerate(["other.example", "*.other.example, api.example:82", "xapi.example"]):
        yield Scenario(f"no-proxy-else-{index}", [q("hello")], env={**through, "NO_PROXY": value})
    for index, value in enumerate(["127.0.0.2", "0.0.0.0", "x, 0.0.0.0 y", "*", "0.0.0.0:@PORT@", "0.0.0.0:1"]):
        yield Scenario(
            f"no-proxy-{index}",
            [q("-q", "hello")],
            env={
                **OPENAI,
                "OPENAI_BASE_URL": "http://0.0.0.0:@PORT@/v1",
                "HTTP_PROXY": "http://@CLOSED@",
                "NO_PROXY": value,
            },
        )
