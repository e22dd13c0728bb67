"""Event streams: how they are cut into pieces and lines, what else is in them, how they end; and answers in one piece."""

import json

from replies import USAGE, Anthropic, DIALECTS, Gemini, OpenAi, Reply, body, compact, data, events, stream, usual, words
from steps import Scenario, q

TEXT = 'Schöne Grüße, 🦀 said the crab.\n\nSecond paragraph with "quotes" and \\ too.'


def cut_every(count):
    return lambda joined: [joined[at : at + count] for at in range(0, len(joined), count)]


# How the bytes of a stream may arrive.
CUTS = {
    "bytes": cut_every(1),
    "threes": cut_every(3),
    "sevens": cut_every(7),
    "thousands": cut_every(1000),
    "at-once": lambda joined: [joined],
    "carriage-returns-and-line-feeds": lambda joined: cut_every(5)(
        joined.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    ),
    "carriage-returns": lambda joined: cut_every(5)(joined.replace(b"\r\n", b"\n").replace(b"\n", b"\r")),
    # An event of several lines, so that a line end taken for two would end it early.
    "several-lines-in-bytes": lambda joined: cut_every(1)(
        joined.replace(b"\r\n", b"\n").replace(b',"', b',\ndata: "').replace(b"\n", b"\r\n")
    ),
    "no-blank": lambda joined: [joined.replace(b"data: ", b"data:")],
    "two-blanks": lambda joined: [joined.replace(b"data: ", b"data:  ")],
    "comments": lambda joined: [
        b": hello\n\n",
        *[line + b"\n:\n" if line.startswith(b"data") else line + b"\n" for line in joined.split(b"\n")],
    ],
    "ids-and-retries": lambda joined: [b"retry: 10\n", joined.replace(b"data: ", b"id: 7\ndata: ")],
    "byte-order-mark": lambda joined: [b"\xef\xbb\xbf", joined],
    "blank-lines-first": lambda joined: [b"\n\n", b"\r\n", joined],
    "without-last-line-end": lambda joined: [joined.rstrip()],
    "more-after-the-end": lambda joined: [joined, b"data: rubbish\n\n"],
}

# Answers to be taken apart: whatever else is in a stream.
OPENAI_ODD = {
    "null-content": [OpenAi.chunk({"content": None}), OpenAi.text("a")],
    "list-content": [
        OpenAi.chunk(
            {"content": [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": "no"}, {"text": "b"}]}
        )
    ],
    "object-content": [OpenAi.chunk({"content": {"text": "a"}}), OpenAi.text("b")],
    "number-content": [OpenAi.chunk({"content": 5})],
    "refusal": [OpenAi.chunk({"refusal": "I will not."})],
    "tool-calls": [
        OpenAi.text("a"),
        OpenAi.chunk({"tool_calls": [{"index": 0, "id": "t", "function": {"name": "f", "arguments": "{}"}}]}),
    ],
    "reasoning": [OpenAi.thought("hm"), OpenAi.chunk({"reasoning": "hm", "content": ""}), OpenAi.text("a")],
    "think-tags": [OpenAi.text("<think>"), OpenAi.text("hm\n"), OpenAi.text("</think>\n\n"), OpenAi.text("a")],
    "two-choices": [
        data({"choices": [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "no"}}]})
    ],
    "no-choices": [data({"choices": []}), data({"choices": None}), data({}), OpenAi.text("a")],
    "no-delta": [data({"choices": [{"index": 0}]}), OpenAi.text("a")],
    "message-in-stream": [data({"choices": [{"index": 0, "message": {"content": "a"}}]})],
    "escapes": [b'data: {"choices":[{"delta":{"content":"a\\u00e4\\n\\t\\"\\\\\\/\\ud83e\\udd80"}}]}\n\n'],
    "lone-surrogate": [b'data: {"choices":[{"delta":{"content":"a\\ud800b"}}]}\n\n'],
    "not-utf-8": [b'data: {"choices":[{"delta":{"content":"caf\xe9"}}]}\n\n'],
    "field-order": [
        b'data: {"choices":[{"finish_reason":null,"delta":{"content":"a","role":"assistant"},"index":0}],"id":"x"}\n\n'
    ]
    * 3,
    "blanks-in-json": [b'data: { "choices" : [ { "delta" : { "content" : "a" } } ] }\n\n'] * 3,
    "lines-in-event": [b'data: {"choices":\ndata: [{"delta":{"content":"a"}}]}\n\n'],
    "changing-shape": [
        OpenAi.text("a"),
        OpenAi.text("b"),
        OpenAi.chunk({"content": "c", "x": 1}),
        OpenAi.text("d"),
        OpenAi.chunk({"x": "content", "content": "e"}),
    ],
    "text-like-json": [OpenAi.text('","finish_reason":"stop"'), OpenAi.text('"}}]}'), OpenAi.text("\\")],
    "empty-finish": [OpenAi.text("a"), OpenAi.chunk({"content": "b"}, "")],
    "finish-twice": [OpenAi.text("a"), *OpenAi.finish("length"), OpenAi.text("b")],
    "finish-with-text": [OpenAi.chunk({"content": "a"}, "stop")],
    "usage-everywhere": [
        OpenAi.chunk({"content": "a"}, usage={"prompt_tokens": 1, "completion_tokens": 1}),
        OpenAi.chunk({"content": "b"}, usage=None),
    ],
    "usage-odd": [OpenAi.chunk({"content": "a"}, usage={"prompt_tokens": 1.5, "completion_tokens": "many"})],
    "usage-negative": [OpenAi.chunk({"content": "a"}, usage={"prompt_tokens": -1})],
    "error-null": [data({"error": None, "choices": [{"delta": {"content": "a"}}]})],
    "error-empty": [data({"error": {}}), data({"error": ""}), OpenAi.text("a")],
    "error-text": [OpenAi.text("a"), data({"error": "boom"})],
    "error-code": [data({"error": {"code": 500}})],
    "error-event": [OpenAi.text("a"), b"event: error\n" + data({"message": "boom"})],
    "malformed": [OpenAi.text("a"), b"data: {\n\n"],
    "malformed-text": [OpenAi.text("a"), b"data: oops\n\n"],
    "array": [b"data: []\n\n", OpenAi.text("a")],
    "empty-data": [b"data: \n\n", b"data\n\n", OpenAi.text("a")],
    "done-with-blanks": [OpenAi.text("a"), b"data:  [DONE] \n\n"],
    "unknown-fields": [
        data(
            {
                "choices": [{"delta": {"content": "a", "audio": {}}, "logprobs": {"x": []}}],
                "system_fingerprint": "f",
                "x": {"y": [1]},
            }
        )
    ],
    "many": [OpenAi.text(f"word {number} ") for number in range(2000)],
    "large": [OpenAi.text("x" * 300_000)],
    "blank-answer": [OpenAi.text(" \n")],
    "line-ends": [OpenAi.text("a\n"), OpenAi.text("\n"), OpenAi.text("b\r\n")],
    "control-characters": [OpenAi.text("a\x1b[31mred\x07\x00\u202e")],
}

ANTHROPIC_ODD = {
    "text-in-start": [
        Anthropic.event("content_block_start", index=0, content_block={"type": "text", "text": "a"}),
        Anthropic.text("b"),
    ],
    "thinking": [
        Anthropic.event("content_block_start", index=0, content_block={"type": "thinking", "thinking": "hm"}),
        Anthropic.thought("hm"),
        Anthropic.event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "s"}),
        Anthropic.text("a"),
    ],
    "tool-use": [
        Anthropic.text("a"),
        Anthropic.event(
            "content_block_start", index=1, content_block={"type": "tool_use", "id": "t", "name": "f", "input": {}}
        ),
        Anthropic.event("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": "{}"}),
    ],
    "unknown-event": [Anthropic.event("new_event", x=1), Anthropic.text("a")],
    "unknown-delta": [
        Anthropic.event("content_block_delta", index=0, delta={"type": "new_delta", "text": "no"}),
        Anthropic.text("a"),
    ],
    "delta-without-type": [Anthropic.event("content_block_delta", index=0, delta={"text": "no"}), Anthropic.text("a")],
    "null-text": [
        Anthropic.event("content_block_delta", index=0, delta={"type": "text_delta", "text": None}),
        Anthropic.text("a"),
    ],
    "no-type": [data({"delta": {"text": "no"}})],
    "names-only": [b"event: ping\n\n", Anthropic.text("a")],
    "error-other-shape": [Anthropic.text("a"), data({"type": "error", "message": "boom"})],
    "error-without-message": [data({"type": "error"})],
    "malformed": [Anthropic.text("a"), b"data: {\n\n"],
    "cached-usage": [
        Anthropic.event(
            "message_start",
            message={
                "content": [],
                "usage": {
                    "input_tokens": 1,
                    "cache_read_input_tokens": 20,
                    "cache_creation_input_tokens": 300,
                    "output_tokens": 1,
                },
            },
        ),
        Anthropic.text("a"),
    ],
    "pings": [Anthropic.event("ping"), Anthropic.text("a"), Anthropic.event("ping"), Anthropic.text("b")],
    "changing-shape": [
        Anthropic.text("a"),
        data({"index": 0, "delta": {"text": "b", "type": "text_delta"}, "type": "content_block_delta"}),
        Anthropic.text("c"),
    ],
    "many": [Anthropic.text(f"word {number} ") for number in range(2000)],
    "blank-answer": [Anthropic.text(" \n")],
}

GEMINI_ODD = {
    "several-parts": [Gemini.event([{"text": "a"}, {"text": "b"}])],
    "thoughts": [Gemini.event([{"text": "hm", "thought": True}, {"text": "a"}])],
    "no-parts": [
        Gemini.event([]),
        data({"candidates": [{"content": {"role": "model"}}]}),
        data({"candidates": [{}]}),
        Gemini.text("a"),
    ],
    "other-parts": [Gemini.event([{"functionCall": {"name": "f"}}, {"text": "a"}, {"inlineData": {}}])],
    "no-candidates": [data({"candidates": []}), data({}), Gemini.text("a")],
    "two-candidates": [
        data({"candidates": [{"content": {"parts": [{"text": "a"}]}}, {"content": {"parts": [{"text": "no"}]}}]})
    ],
    "prompt-blocked": [data({"promptFeedback": {"blockReason": "SAFETY"}})],
    "prompt-not-blocked": [data({"promptFeedback": {"safetyRatings": []}}), Gemini.text("a")],
    "error": [Gemini.text("a"), Gemini.failure("boom")],
    "error-odd": [data({"error": None}), data({"error": {}}), Gemini.text("a")],
    "malformed": [Gemini.text("a"), b"data: {\r\n\r\n"],
    "null-text": [Gemini.event([{"text": None}, {"text": "a"}])],
    "thought-odd": [Gemini.event([{"text": "a", "thought": "yes"}])],
    "usage-everywhere": [
        data({"candidates": [{"content": {"parts": [{"text": "a"}]}}], "usageMetadata": {"promptTokenCount": 3}}),
        Gemini.text("b"),
    ],
    "many": [Gemini.text(f"word {number} ") for number in range(2000)],
    "blank-answer": [Gemini.text(" \n")],
}

REASONS = {
    OpenAi: ["stop", "length", "content_filter", "tool_calls", "function_call", "weird", "STOP"],
    Anthropic: [
        "end_turn",
        "stop_sequence",
        "max_tokens",
        "model_context_window_exceeded",
        "tool_use",
        "pause_turn",
        "refusal",
        "weird",
    ],
    Gemini: [
        "STOP",
        "MAX_TOKENS",
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "LANGUAGE",
        "OTHER",
        "FINISH_REASON_UNSPECIFIED",
    ],
}


def table():
    for dialect in DIALECTS:
        joined = b"".join(events(dialect, words(TEXT)))
        for name, cut in CUTS.items():
            yield Scenario(
                f"stream-cut-{name}-{dialect.name}", [q("-v", "hello")], env=dialect.env, replies=[stream(cut(joined))]
            )
            yield Scenario(
                f"stream-cut-{name}-json-{dialect.name}",
                [q("-j", "hello")],
                env=dialect.env,
                replies=[stream(cut(joined))],
            )
        yield from endings(dialect)
        yield from wholes(dialect)
    for dialect, table_of in [(OpenAi, OPENAI_ODD), (Anthropic, ANTHROPIC_ODD), (Gemini, GEMINI_ODD)]:
        for name, pieces in table_of.items():
            script = [*dialect.begin(), *pieces, *dialect.finish(dialect.stop), *dialect.done()]
            yield Scenario(
                f"stream-{name}-{dialect.name}",
                [q("-v", "hello"), q("-j", "hello"), q("--history")],
                env=dialect.env,
                # At once: what stands behind an error is read only if it comes together with it.
                replies=[stream([b"".join(script)])] * 2,
            )
            yield Scenario(
                f"stream-{name}-open-{dialect.name}",
                [q("hello")],
                env=dialect.env,
                replies=[stream([*dialect.begin(), *pieces])],
            )


def endings(dialect):
    name, env = dialect.name, dialect.env
    for reason in REASONS[dialect]:
        replies = [
            stream(events(dialect, ["some ", "text"], reason)),
            stream(events(dialect, ["some text"], reason)),
            body(dialect.whole("some text", reason)),
        ]
        yield Scenario(
            f"finish-{reason}-{name}",
            [q("hello"), q("-j", "hello"), q("--no-stream", "hello"), q("--history")],
            env=env,
            replies=replies,
        )
        replies = [stream(events(dialect, [], reason)), body(dialect.whole("", reason))]
        yield Scenario(
            f"finish-{reason}-empty-{name}", [q("hello"), q("-j", "--no-stream", "hello")], env=env, replies=replies
        )
    said = [*dialect.begin(), dialect.text("some text")]
    ends = {
        "no-done": [*said, *dialect.finish(dialect.stop)],
        "no-finish": [*said, *dialect.done()],
        "no-finish-no-done": said,
        "only-begun": dialect.begin(),
        "nothing": [],
        "only-comments": [b": ping\n\n", b": ping\n\n"],
        "only-thought": [*dialect.begin(), dialect.thought("hm"), *dialect.finish(dialect.stop), *dialect.done()],
        "thought-first": [
            *dialect.begin(),
            dialect.thought("hm"),
            dialect.text("a"),
            *dialect.finish(dialect.stop),
            *dialect.done(),
        ],
        "usage-only": [*dialect.begin(), *dialect.usage(USAGE), *dialect.finish(dialect.stop), *dialect.done()],
        "no-usage": events(dialect, ["a"], usage=None),
        "large-usage": events(dialect, ["a"], usage=(2**40, 0)),
        "error-first": [dialect.failure("boom")],
        "error-late": [*said, dialect.failure("boom")],
        "error-after-finish": [*said, *dialect.finish(dialect.stop), dialect.failure("boom")],
        "error-of-a-gateway": [*said, data({"error": {"message": "boom", "code": 502}})],
        "error-of-a-gateway-after-finish": [*said, *dialect.finish(dialect.stop), data({"error": {"message": "boom"}})],
        "error-in-a-list": [*said, data([{"error": {"message": "boom", "code": 502}}])],
        "error-detail": [*said, data({"detail": "boom"})],
        "error-flat": [*said, data({"type": "error", "message": "boom"})],
        "text-pings": [
            data("ping"),
            *said,
            data("keep-alive"),
            *dialect.finish(dialect.stop),
            *dialect.done(),
        ],
        "text-after-finish": [*said, *dialect.finish(dialect.stop), dialect.text(" more"), *dialect.done()],
    }
    for end, pieces in ends.items():
        yield Scenario(
            f"end-{end}-{name}",
            [q("-v", "hello"), q("-j", "hello"), q("--history")],
            env=env,
            replies=[stream(pieces)] * 2,
        )
    for kind in ["text/plain", "text/html; charset=utf-8", "application/json", ""]:
        label = kind.split(";")[0].replace("/", "-") or "none"
        yield Scenario(
            f"stream-type-{label}-{name}",
            [q("hello")],
            env=env,
            replies=[Reply(events(dialect, ["a"]), headers=[("content-type", kind)])],
        )
        yield Scenario(
            f"no-stream-type-{label}-{name}", [q("hello")], env=env, replies=[body("<html>hello</html>", kind=kind)]
        )


def wholes(dialect):
    name, env = dialect.name, dialect.env
    whole = dialect.whole(TEXT)
    odd = {
        "usual": body(whole),
        "pretty": body(json.dumps(whole, indent=2)),
        "blank-lines-first": Reply(
            [b"\n", b" \n\n", compact(whole).encode()], headers=[("content-type", "application/json")]
        ),
        "byte-order-mark": body(b"\xef\xbb\xbf" + compact(whole).encode()),
        "in-an-array": body([whole]),
        "in-pieces": Reply(cut_every(9)(compact(whole).encode()), headers=[("content-type", "application/json")]),
        "empty-text": body(dialect.whole("")),
        "blank-text": body(dialect.whole(" \n ")),
        "null-text": body(dialect.whole(None)),
        "empty": body(""),
        "empty-object": body({}),
        "error": body(dialect.error("boom")),
        "truncated": body(compact(whole)[:-10]),
        "html": body("<html></html>"),
        "trailing": body(compact(whole) + "\n\nmore"),
        "stream": stream(events(dialect, ["a ", "stream"])),
        "not-utf-8": body(compact(dialect.whole("caf#")).encode().replace(b"#", b"\xe9")),
        "large": body(dialect.whole("x" * 100_000)),
    }
    for label, reply in odd.items():
        yield Scenario(
            f"whole-{label}-{name}",
            [q("-v", "hello"), q("--no-stream", "hello"), q("-j", "--no-stream", "hello"), q("--history")],
            env=env,
            replies=[reply] * 3,
        )
    yield Scenario(
        f"whole-and-stream-{name}",
        [q("--no-stream", "hello"), q("-f", "more")],
        env=env,
        replies=[usual(TEXT), usual(TEXT)],
    )
