"""Requests that fail: statuses and bodies, tries again, prompts that are too long, connections that break."""

from replies import CUT, DIALECTS, HANG, RESET, Anthropic, OpenAi, Reply, Shown, body, compact, failing, stream
from steps import OPENAI, Scenario, q

from .fixtures import current, pairs, session

STATUSES = [
    201,
    204,
    300,
    301,
    302,
    307,
    400,
    401,
    402,
    403,
    404,
    405,
    408,
    409,
    413,
    418,
    422,
    425,
    429,
    451,
    499,
    500,
    501,
    502,
    503,
    504,
    520,
    529,
]
AGAIN = [429, 500, 502, 503, 504, 529]
NOT_AGAIN = [400, 401, 404, 408, 501]

BODIES = {
    "message": compact({"error": {"message": "the message", "type": "t", "code": "c"}}),
    "text": compact({"error": "the message"}),
    "flat": compact({"message": "the message"}),
    "detail": compact({"detail": "the message"}),
    "detail-list": compact({"detail": [{"loc": ["body"], "msg": "field required"}, {"msg": "second"}]}),
    "detail-object": compact({"detail": {"reason": "x"}}),
    "array": compact([{"error": {"code": 400, "message": "the message", "status": "INVALID_ARGUMENT"}}]),
    "type-only": compact({"error": {"type": "server_error"}}),
    "code-only": compact({"error": {"code": "rate_limited", "message": None}}),
    "code-number": compact({"error": {"code": 7}}),
    "upstream": compact({"error": {"message": "Provider returned error", "metadata": {"raw": "busy\nnow"}}}),
    "description": compact({"error": "invalid", "error_description": "the message"}),
    "nested": compact({"error": {"error": {"message": "inner"}}}),
    "lines": compact({"error": {"message": "two\nlines  and\tblanks"}}),
    "empty": "",
    "empty-object": "{}",
    "empty-array": "[]",
    "null": "null",
    "number": "5",
    "string": '"just text"',
    "plain": "upstream failed\nsecond line",
    "plain-long": "x" * 500,
    "plain-unicode": "ä" * 300,
    "html": "<html><body>502</body></html>",
    "blank": "  \n",
    "truncated": '{"error":{"message":"cut of',
    "not-utf-8": b'{"error":{"message":"caf\xe9"}}',
    "control-characters": compact({"error": {"message": "red \x1b[31m bell \x07"}}),
    "huge": compact({"error": {"message": "m" * 70_000}}),
    "other-object": compact({"status": "bad", "x": [1]}),
}

UNKNOWN_MODEL = {
    "code": (404, {"error": {"message": "no such thing", "code": "model_not_found"}}),
    "words": (404, {"error": {"message": "The model `x` does not exist"}}),
    "bad-request": (400, {"error": {"message": "model x not found"}}),
    "invalid": (422, {"error": {"message": "Invalid model: x"}}),
    "other-404": (404, {"error": {"message": "no such path"}}),
    "text": (404, {"error": "model 'x' not found"}),
    "zhipu": (400, {"error": {"code": "1211", "message": "Unknown Model, please check the model code."}}),
    "decommissioned": (400, {"error": {"message": "The model `x` has been decommissioned"}}),
    "gone": (410, {"error": {"message": "The model x was retired"}}),
}

TOO_LONG = {
    "openai": {
        "error": {"message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded"}
    },
    "code-only": {"error": {"message": "no", "code": "context_length_exceeded"}},
    "llamacpp": {
        "error": {
            "code": 400,
            "message": "request (5000 tokens) exceeds the available context size (4096 tokens)",
            "type": "exceed_context_size_error",
        }
    },
    "anthropic": {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 250000 tokens > 200000 maximum"},
    },
    "gemini": {
        "error": {
            "code": 400,
            "message": "The input token count (2000000) exceeds the maximum number of tokens allowed (1048575).",
            "status": "INVALID_ARGUMENT",
        }
    },
    "vllm": {
        "object": "error",
        "message": "This model's maximum context length is 4096 tokens.",
        "type": "BadRequestError",
        "code": 400,
    },
    "ollama": {"error": "the input length exceeds the context length"},
    "openrouter": {"error": {"message": "Provider returned error", "metadata": {"raw": "context window of 8192"}}},
    "not-so": {"error": {"message": "max_tokens is too large"}},
}


def table():
    yield from statuses()
    yield from tries()
    yield from too_long()
    yield from connections()


def statuses():
    for dialect in DIALECTS:
        for status in STATUSES:
            reply = Reply([], status=status, framing="length") if status == 204 else failing(status, "the message")
            yield Scenario(
                f"status-{status}-{dialect.name}", [q("hello"), q("-j", "hello")], env=dialect.env, replies=[reply] * 2
            )
    for status in [400, 500]:
        for name, content in BODIES.items():
            yield Scenario(
                f"error-body-{name}-{status}", [q("hello"), q("-j", "hello")], replies=[body(content, status)] * 2
            )
    for name, content in BODIES.items():
        yield Scenario(
            f"error-body-{name}-in-200", [q("hello"), q("--no-stream", "hello")], replies=[body(content)] * 2
        )
        yield Scenario(
            f"error-body-{name}-anthropic",
            [q("hello"), q("hello")],
            env=Anthropic.env,
            replies=[body(content, 400), body(content)],
        )
    for name, (status, content) in UNKNOWN_MODEL.items():
        yield Scenario(f"unknown-model-{name}", [q("-m", "x", "hello")], replies=[body(content, status)])
    yield Scenario("redirect", [q("hello")], replies=[body("", 307, [("location", "@SERVER@/elsewhere")])])
    yield Scenario("status-and-saved", [current(), q("-f", "more"), q("--history")], replies=[failing(500, "x")])
    for option in ["-q", "-v", "-x", "--no-stream", "--no-save"]:
        yield Scenario(f"status-500-{option.strip('-')}", [q(option, "hello")], replies=[failing(500, "x")])
    for name, value in {
        "seconds": "120",
        "zero": "0",
        "fraction": "1.5",
        "negative": "-5",
        "date": "Wed, 21 Oct 2015 07:28:00 GMT",
        "nonsense": "soon",
        "huge": "1e30",
    }.items():
        yield Scenario(
            f"retry-after-{name}-told", [q("hello")], replies=[failing(429, "slow down", [("retry-after", value)])]
        )


def tries():
    at_once = [("retry-after", "0")]
    for status in AGAIN:
        yield Scenario(
            f"again-{status}",
            [q("-v", "hello")],
            env={**OPENAI, "Q_RETRIES": "1"},
            replies=[failing(status, "busy", at_once)],
        )
    for status in NOT_AGAIN:
        yield Scenario(
            f"not-again-{status}",
            [q("-v", "hello")],
            env={**OPENAI, "Q_RETRIES": "2"},
            replies=[failing(status, "no", at_once)],
        )
    for dialect in DIALECTS:
        env = {**dialect.env, "Q_RETRIES": "2"}
        yield Scenario(
            f"again-twice-{dialect.name}",
            [q("-v", "hello")],
            env=env,
            replies=[failing(503, "busy", at_once), failing(429, "slow", at_once)],
        )
        yield Scenario(
            f"again-in-vain-{dialect.name}",
            [q("-v", "hello"), q("--history")],
            env=env,
            replies=[failing(503, f"busy {n}", at_once) for n in range(3)],
        )
        yield Scenario(
            f"again-then-no-{dialect.name}",
            [q("hello")],
            env=env,
            replies=[failing(503, "busy", at_once), failing(400, "no")],
        )
        yield Scenario(
            f"again-whole-{dialect.name}",
            [q("--no-stream", "-j", "hello")],
            env=env,
            replies=[failing(503, "busy", at_once)],
        )
    yield Scenario(
        "again-with-wait", [q("-v", "hello")], env={**OPENAI, "Q_RETRIES": "1"}, replies=[failing(500, "busy")]
    )
    yield Scenario(
        "again-retry-after-1",
        [q("-v", "hello")],
        env={**OPENAI, "Q_RETRIES": "1"},
        replies=[failing(429, "busy", [("retry-after", "1")])],
    )
    yield Scenario(
        "again-past-date",
        [q("-v", "hello")],
        env={**OPENAI, "Q_RETRIES": "1"},
        replies=[failing(429, "busy", [("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")])],
    )
    yield Scenario(
        "again-too-much-patience",
        [q("-v", "hello")],
        env={**OPENAI, "Q_RETRIES": "1"},
        replies=[failing(429, "busy", [("retry-after", "61")])],
    )
    yield Scenario(
        "again-usual-retries",
        [q("-v", "hello")],
        env={**OPENAI, "Q_RETRIES": None},
        replies=[failing(503, "busy", at_once)] * 2,
    )
    yield Scenario(
        "again-quiet", [q("-q", "hello")], env={**OPENAI, "Q_RETRIES": "1"}, replies=[failing(503, "busy", at_once)]
    )
    yield Scenario(
        "again-closed", [q("-v", "hello")], env={**OPENAI, "Q_RETRIES": "1"}, replies=[Reply([CUT], framing="raw")]
    )
    yield Scenario(
        "again-reset", [q("-v", "hello")], env={**OPENAI, "Q_RETRIES": "1"}, replies=[Reply([RESET], framing="raw")]
    )


def too_long():
    answer = lambda content: body(content, 400)
    for name, content in TOO_LONG.items():
        yield Scenario(f"too-long-{name}", [current(pairs(4)), q("-f", "more")], replies=[answer(content)])
        yield Scenario(f"too-long-{name}-alone", [q("more")], replies=[answer(content)])
    words = "prompt is too long"
    for dialect in DIALECTS:
        there = current(pairs(5), provider=dialect.name)
        for form in ["prompt", "messages"]:
            env = {**dialect.env, "Q_HISTORY": form}
            for times in [1, 2, 3, 4, 5]:
                yield Scenario(
                    f"too-long-{times}-times-{form}-{dialect.name}",
                    [there, q("-f", "more")],
                    env=env,
                    replies=[failing(400, words)] * times,
                )
        yield Scenario(
            f"too-long-in-stream-{dialect.name}",
            [there, q("-f", "more")],
            env=dialect.env,
            replies=[stream([dialect.failure(words)])],
        )
        yield Scenario(
            f"too-long-after-words-{dialect.name}",
            [there, q("-f", "more")],
            env=dialect.env,
            replies=[stream([*dialect.begin(), dialect.text("so far "), dialect.failure(words)])],
        )
        yield Scenario(
            f"too-long-in-200-{dialect.name}",
            [there, q("-f", "more")],
            env=dialect.env,
            replies=[body(dialect.error(words))],
        )
        yield Scenario(
            f"too-long-413-{dialect.name}",
            [there, q("-f", "-j", "more")],
            env=dialect.env,
            replies=[failing(413, words)],
        )
    yield Scenario(
        "too-long-then-broken",
        [current(pairs(4)), q("-f", "more")],
        replies=[failing(400, words), failing(500, "broken")],
    )
    yield Scenario("too-long-verbose", [current(pairs(4)), q("-v", "-f", "more")], replies=[failing(400, words)])
    yield Scenario(
        "too-long-named",
        [session("work", pairs(30)), q("-s", "work", "--messages", "100", "more")],
        replies=[failing(400, words)] * 3,
    )
    yield Scenario(
        "too-long-and-max-history",
        [current(pairs(6)), q("-f", "more", env={"Q_MAX_HISTORY": "100"})],
        replies=[failing(400, words)],
    )
    yield Scenario("too-long-one-message", [current(["only"]), q("-f", "more")], replies=[failing(400, words)])


def connections():
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    raw = {
        "closed-at-once": [CUT],
        "reset-at-once": [RESET],
        "no-http": [b"SSH-2.0-OpenSSH_9.2\r\n"],
        "head-cut": [head, CUT],
        "long-header": [b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000 + b"\r\n\r\n"],
        "http-1.0": [
            b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n",
            *OpenAi.begin(),
            OpenAi.text("old"),
            *OpenAi.finish("stop"),
            *OpenAi.done(),
        ],
        "no-length": [
            head,
            b"connection: close\r\n\r\n",
            *OpenAi.begin(),
            OpenAi.text("until closed"),
            *OpenAi.finish("stop"),
            *OpenAi.done(),
        ],
        "bad-chunk": [head, b"transfer-encoding: chunked\r\n\r\n", b"zz\r\nno\r\n"],
        "interim": [
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n",
            head,
            b"connection: close\r\n\r\n",
            OpenAi.text("after"),
            *OpenAi.finish("stop"),
            *OpenAi.done(),
        ],
        "bad-status": [b"HTTP/1.1 9999 What\r\n\r\n"],
        "gzip-claimed": [
            head,
            b"content-encoding: gzip\r\nconnection: close\r\n\r\n",
            OpenAi.text("not zipped"),
            *OpenAi.done(),
        ],
    }
    for name, pieces in raw.items():
        yield Scenario(f"connection-{name}", [q("hello"), q("-j", "hello")], replies=[Reply(pieces, framing="raw")] * 2)
    for dialect in DIALECTS:
        begun = [*dialect.begin(), dialect.text("first words ")]
        held = [*begun, Shown("first words ")]
        breaks = {
            "cut": [*held, CUT],
            "reset": [*held, RESET],
            "ended": [*begun],
            "half-event": [*held, dialect.text("second")[:-20], CUT],
        }
        for name, pieces in breaks.items():
            yield Scenario(
                f"broken-{name}-{dialect.name}",
                [q("hello"), q("--last"), q("-f", "more")],
                env=dialect.env,
                replies=[stream(pieces)],
            )
        yield Scenario(
            f"broken-json-{dialect.name}",
            [q("-j", "hello"), q("--history")],
            env=dialect.env,
            replies=[stream([*begun, CUT])],
        )
        yield Scenario(
            f"broken-extract-{dialect.name}",
            [q("-x", "hello"), q("--last", "-x")],
            env=dialect.env,
            replies=[stream([*dialect.begin(), dialect.text("```\ncode\n```\n"), CUT])],
        )
        yield Scenario(
            f"broken-follow-{dialect.name}",
            [current(provider=dialect.name), q("-f", "more"), q("--history")],
            env=dialect.env,
            replies=[stream(breaks["cut"])],
        )
        yield Scenario(
            f"broken-no-save-{dialect.name}",
            [q("--no-save", "hello"), q("--history")],
            env=dialect.env,
            replies=[stream(breaks["cut"])],
        )
        yield Scenario(
            f"broken-before-words-{dialect.name}",
            [q("hello"), q("--history")],
            env={**dialect.env, "Q_RETRIES": "1"},
            replies=[stream([*dialect.begin(), CUT])],
        )
        yield Scenario(
            f"broken-whole-{dialect.name}",
            [q("--no-stream", "hello")],
            env=dialect.env,
            replies=[
                Reply(
                    [compact(dialect.whole("x")).encode()[:30], CUT],
                    headers=[("content-type", "application/json")],
                    framing="length",
                )
            ],
        )
        yield Scenario(
            f"silent-{dialect.name}",
            [q("-v", "hello"), q("--history")],
            env={**dialect.env, "Q_TIMEOUT": "1s"},
            replies=[stream([*begun, HANG])],
        )
        yield Scenario(
            f"silent-before-words-{dialect.name}",
            [q("hello")],
            env={**dialect.env, "Q_TIMEOUT": "1s"},
            replies=[Reply([HANG], framing="raw")],
        )
        yield Scenario(
            f"tail-stays-away-{dialect.name}",
            [q("hello"), q("--history")],
            env=dialect.env,
            replies=[stream([*begun, *dialect.finish(dialect.stop), HANG])],
        )
        yield Scenario(
            f"tail-reset-{dialect.name}",
            [q("hello")],
            env=dialect.env,
            replies=[stream([*held, *dialect.finish(dialect.stop), CUT])],
        )
