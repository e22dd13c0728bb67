"""OpenAI's Responses API: what is sent, how answers come and end, failures; and that nothing is to be stored."""

from signal import SIGINT, SIGTERM

from replies import (
    CUT,
    HANG,
    RESET,
    USAGE,
    Gemini,
    OpenAi,
    Reply,
    Responses,
    body,
    events,
    failing,
    stream,
    usual,
    words,
)
from steps import Scenario, finish, q, send_signal, start, wait_for_words

from .answers import ANSWERS, OPTIONS
from .fixtures import configured, current, message, pairs

ENV = Responses.env
HERE = configured(Responses)
WITH_ODD_HISTORY = [message("user", "a"), message("user", "b"), message("assistant", "c"), message("user", "d")]


def ended(**response):
    return Responses.event("response.completed", response=response)


def text_item(text="some text"):
    return {"output": [Responses.message(text)], "status": "completed"}


# What stands between the beginning of a stream and its end.
ODD = {
    "thought": [Responses.thought("hm"), Responses.text("a")],
    "unknown-event": [
        Responses.event("response.content_part.added", part={"type": "output_text"}),
        Responses.text("a"),
    ],
    "refusal": [Responses.event("response.refusal.delta", delta="I would rather not.")],
    "text-then-refusal": [Responses.text("a"), Responses.event("response.refusal.delta", delta="No.")],
    "delta-number": [Responses.event("response.output_text.delta", delta=5)],
    "delta-null": [Responses.event("response.output_text.delta", delta=None), Responses.text("a")],
    "delta-missing": [Responses.event("response.output_text.delta"), Responses.text("a")],
    "no-json": [b"data: {\n\n"],
    "done-word": [Responses.text("a"), b"data: [DONE]\n\n"],
    "search-call": [
        Responses.event("response.output_item.added", item={"type": "web_search_call", "id": "ws"}),
        Responses.text("a"),
    ],
    "twice": [Responses.text("a"), Responses.text("a")],
    "nothing": [],
}

ENDS = {
    "no-end": [],
    "text-again": [ended(**text_item("some text"))],
    "other-text": [ended(**text_item("another text"))],
    "no-response": [Responses.event("response.completed")],
    "no-status": [ended(output=[])],
    "status-null": [ended(output=[], status=None)],
    "status-odd": [ended(output=[], status="paused")],
    "other-word": [Responses.event("response.done", response=text_item())],
    "incomplete-alone": [Responses.event("response.incomplete")],
    "incomplete-empty-reason": [
        Responses.event("response.incomplete", response={"status": "incomplete", "incomplete_details": {"reason": ""}})
    ],
    "failed": [
        Responses.event(
            "response.failed", response={"status": "failed", "error": {"code": "server_error", "message": "it broke"}}
        )
    ],
    "failed-alone": [Responses.event("response.failed")],
    "cancelled": [ended(output=[], status="cancelled")],
    "usage-details": [
        ended(
            **text_item(),
            usage={
                "input_tokens": USAGE[0],
                "input_tokens_details": {"cached_tokens": 3},
                "output_tokens": USAGE[1],
                "output_tokens_details": {"reasoning_tokens": 4},
            },
        )
    ],
    "usage-odd": [ended(**text_item(), usage={"input_tokens": "many"})],
    "error": [Responses.failure("overloaded")],
    "error-object": [Responses.event("error", error={"code": "rate_limit_exceeded", "message": "slow down"})],
    "error-too-long": [Responses.failure("too long", "context_length_exceeded")],
    "cut": [CUT],
    "reset": [RESET],
    "done-word": [b"data: [DONE]\n\n"],
}


def table():
    for name, args, stdin in [
        ("words", ["hello", "there"], None),
        ("input", ["hello"], "from a pipe\n"),
        ("input-alone", [], "from a pipe\n"),
        ("system", ["-S", 'a\n"b"', "hello"], None),
        ("system-empty", ["-S", "", "hello"], None),
        ("model", ["-m", "some/model:7b", "hello"], None),
        ("effort", ["-e", "low", "hello"], None),
        ("option", ["-o", "top_p=0.5", "-o", "reasoning.summary=auto", "-o", "stream=null", "hello"], None),
        ("dry-run", ["--dry-run", "hello"], None),
        ("models", ["--models"], None),
        ("status", ["--status"], None),
    ]:
        yield Scenario(f"responses-{name}", [*HERE, q(*args, stdin=stdin)], env=ENV)
    yield Scenario("responses-max-tokens", [*HERE, q("hello")], env={**ENV, "Q_MAX_TOKENS": "99"})
    yield Scenario("responses-no-key", [*HERE, q("hello")], env={**ENV, "RESPONSES_KEY": ""})
    for form in ["prompt", "messages"]:
        env = {**ENV, "Q_HISTORY": form}
        yield Scenario(f"responses-follow-{form}", [*HERE, q("one"), q("-f", "two"), q("-f", "three")], env=env)
        yield Scenario(
            f"responses-window-{form}",
            [*HERE, current(WITH_ODD_HISTORY, provider="responses"), q("-f", "more")],
            env=env,
        )
        for times in [1, 3]:
            yield Scenario(
                f"responses-too-long-{times}-{form}",
                [*HERE, current(pairs(5), provider="responses"), q("-f", "more")],
                env=env,
                replies=[failing(400, "prompt is too long")] * times,
            )
    for name, options in OPTIONS.items():
        ask = q(*options, "hello")
        for which, finish_word in {"code": None, "cut": "length", "blocked": "blocked", "other": "other"}.items():
            yield Scenario(
                f"responses-answer-{which}-{name}",
                [*HERE, ask, q("--last")],
                env=ENV,
                replies=[usual(ANSWERS["code"], finish_word)],
            )
    for name, pieces in ODD.items():
        script = [*Responses.begin(), *pieces, *Responses.finish("completed")]
        yield Scenario(
            f"responses-stream-{name}",
            [*HERE, q("-v", "hello"), q("-j", "hello"), q("--history")],
            env=ENV,
            # At once: what stands behind an error is read only if it comes together with it.
            replies=[stream([b"".join(script)])] * 2,
        )
    for name, end in ENDS.items():
        for which, said in {"text": [Responses.text("some text")], "empty": []}.items():
            script = [*Responses.begin(), *said, *end]
            yield Scenario(
                f"responses-end-{name}-{which}",
                [*HERE, q("-v", "hello"), q("-j", "hello"), q("--history")],
                env=ENV,
                replies=[stream(script)] * 2,
            )
    for name, whole in {
        "no-output": {"status": "completed"},
        "output-null": {"status": "completed", "output": None},
        "two-messages": {"status": "completed", "output": [Responses.message("a"), Responses.message("b")]},
        "two-parts": {
            "status": "completed",
            "output": [
                {
                    "type": "message",
                    "content": [{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b"}],
                }
            ],
        },
        "refusal": {
            "status": "completed",
            "output": [{"type": "message", "content": [{"type": "refusal", "refusal": "I would rather not."}]}],
        },
        "search-call": {"status": "completed", "output": [{"type": "web_search_call"}, Responses.message("a")]},
        "error": {"status": "failed", "error": {"code": "server_error", "message": "it broke"}, "output": []},
        "no-status": {"output": [Responses.message("a")]},
        "no-object": ["a"],
    }.items():
        yield Scenario(
            f"responses-whole-{name}",
            [*HERE, q("--no-stream", "hello"), q("hello"), q("--last")],
            env=ENV,
            replies=[body(whole)] * 2,
        )
    for status in [400, 401, 403, 404, 422, 429, 500, 503]:
        yield Scenario(
            f"responses-status-{status}",
            [*HERE, q("hello"), q("-j", "hello")],
            env=ENV,
            replies=[failing(status, "the message")] * 2,
        )
    yield Scenario(
        "responses-again",
        [*HERE, q("-v", "hello")],
        env={**ENV, "Q_RETRIES": "2"},
        replies=[failing(503, "busy", [("retry-after", "0")]), failing(429, "slow", [("retry-after", "0")])],
    )
    yield Scenario(
        "responses-silent",
        [*HERE, q("hello"), q("--history")],
        env={**ENV, "Q_TIMEOUT": "1s"},
        replies=[stream([*Responses.begin(), Responses.text("first "), HANG])],
    )
    yield Scenario(
        "responses-one-byte-at-a-time",
        [*HERE, q("hello")],
        env=ENV,
        replies=[stream([bytes([byte]) for byte in b"".join(events(Responses, words("some text 🦀")))])],
    )
    for number in [SIGINT, SIGTERM]:
        yield Scenario(
            f"responses-{number.name}",
            [
                *HERE,
                start("a", "hello"),
                wait_for_words("words "),
                send_signal("a", number),
                finish("a"),
                q("--last"),
                q("-f", "go on"),
            ],
            env=ENV,
            replies=[stream([*Responses.begin(), Responses.text("first "), Responses.text("words "), HANG])],
        )
    yield Scenario(
        "responses-no-such-thing",
        [*HERE, q("hello")],
        env=ENV,
        replies=[Reply([], status=404, framing="length")],
    )
    yield from not_stored()


def not_stored():
    """The vendors themselves, which the scenario's server stands in for as a proxy."""
    itself = {**OpenAi.env, "OPENAI_BASE_URL": "http://api.openai.com/v1", "HTTP_PROXY": "@SERVER@"}
    google = {**Gemini.env, "GEMINI_BASE_URL": "http://generativelanguage.googleapis.com", "HTTP_PROXY": "@SERVER@"}
    for name, env in {"openai": itself, "gemini": google}.items():
        yield Scenario(f"not-stored-{name}", [q("one"), q("-f", "--no-stream", "two"), q("--models")], env=env)
        # Each request comes through a tunnel of its own.
        refused = failing(400, "Unknown parameter: 'store'.")
        yield Scenario(f"not-stored-refused-{name}", [q("-v", "one")], env=env, replies=[None, refused])
        yield Scenario(f"not-stored-refused-again-{name}", [q("one")], env=env, replies=[None, refused, None, refused])
