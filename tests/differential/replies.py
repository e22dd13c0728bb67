"""What a server sends: scripts of replies, and the streams, whole answers, calls, lists and errors of the dialects."""

import http
import json
from dataclasses import dataclass, field

USAGE = (11, 7)


@dataclass
class Gate:
    """Holds the rest of a reply back until the runner opens it."""

    name: str


# What may stand among the pieces of a reply: wait until the client leaves; close too early.
HANG, CUT = "hang", "cut"


@dataclass
class Reply:
    """The script of one reply: its head, then pieces of bytes and what holds them back or breaks them off."""

    pieces: list
    status: int = 200
    headers: list = field(default_factory=list)
    # "chunked" sends each piece as a chunk, "length" announces the length, "raw" sends the pieces and no head.
    framing: str = "chunked"

    def head(self):
        reason = http.HTTPStatus(self.status).phrase if self.status in set(http.HTTPStatus) else "Status"
        lines = [f"HTTP/1.1 {self.status} {reason}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.framing == "chunked":
            lines.append("transfer-encoding: chunked")
        else:
            length = sum(len(piece) for piece in self.pieces if isinstance(piece, bytes))
            # A body that breaks off must be announced as longer than it turns out, or nobody could tell.
            broken = any(piece in (HANG, CUT) for piece in self.pieces)
            lines.append(f"content-length: {length + broken}")
        return "\r\n".join([*lines, "connection: close", "", ""]).encode()


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass
class Call:
    """A call of a tool by a model; `arguments` need not be JSON."""

    id: str
    name: str
    arguments: object = field(default_factory=dict)

    def text(self):
        return self.arguments if isinstance(self.arguments, str) else compact(self.arguments)

    def pieces(self):
        """The text of its arguments as models send it."""
        text = self.text()
        return [text[at : at + 5] for at in range(0, len(text), 5)]


class OpenAi:
    """Chat completions, as OpenAI and most others speak them."""

    name = "openai"
    env = {"OPENAI_BASE_URL": "@SERVER@/v1", "OPENAI_API_KEY": "sk-test-0123456789"}
    stop, length, blocked, other = "stop", "length", "content_filter", "tool_calls"
    calls = "tool_calls"
    # What the configuration must have besides the variables.
    section = ""

    @staticmethod
    def chunk(delta, finish=None, **more):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return data({"id": "c", "object": "chat.completion.chunk", "model": "served", "choices": [choice], **more})

    @classmethod
    def begin(cls):
        return [cls.chunk({"role": "assistant", "content": ""})]

    @classmethod
    def text(cls, text):
        return cls.chunk({"content": text})

    @classmethod
    def finish(cls, reason):
        return [cls.chunk({}, reason)]

    @classmethod
    def usage(cls, tokens):
        asked, answered = tokens
        counted = {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}
        return [data({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": counted})]

    @staticmethod
    def done():
        return [b"data: [DONE]\n\n"]

    @staticmethod
    def failure(message, kind="server_error"):
        return data({"error": {"message": message, "type": kind, "code": None}})

    @staticmethod
    def whole(text, finish="stop"):
        return {
            "id": "c",
            "object": "chat.completion",
            "model": "served",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}],
            "usage": {"prompt_tokens": USAGE[0], "completion_tokens": USAGE[1], "total_tokens": sum(USAGE)},
        }

    @classmethod
    def calling(cls, text, calls, finish):
        fragments = []
        for index, call in enumerate(calls):
            function = {"name": call.name, "arguments": ""}
            fragments.append({"index": index, "id": call.id, "type": "function", "function": function})
            fragments += [{"index": index, "function": {"arguments": piece}} for piece in call.pieces()]
        said = [*cls.begin(), cls.text(text), *[cls.chunk({"tool_calls": [fragment]}) for fragment in fragments]]
        return [*said, *cls.finish(finish), *cls.usage(USAGE), *cls.done()]

    @classmethod
    def whole_calling(cls, text, calls, finish):
        whole = cls.whole(text, finish)
        whole["choices"][0]["message"]["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text()}}
            for call in calls
        ]
        return whole

    @staticmethod
    def models(names):
        return {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}

    @staticmethod
    def error(message, kind="invalid_request_error", code=None):
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}


class Anthropic:
    """The messages API."""

    name = "anthropic"
    env = {"ANTHROPIC_BASE_URL": "@SERVER@", "ANTHROPIC_API_KEY": "sk-test-0123456789"}
    stop, length, blocked, other = "end_turn", "max_tokens", "refusal", "tool_use"
    calls = "tool_use"
    section = ""

    @staticmethod
    def event(kind, **fields):
        return f"event: {kind}\ndata: {compact({'type': kind, **fields})}\n\n".encode()

    @classmethod
    def begin(cls):
        message = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "served",
            "content": [],
            "stop_reason": None,
            "usage": {"input_tokens": USAGE[0], "output_tokens": 1},
        }
        return [
            cls.event("message_start", message=message),
            cls.event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
            cls.event("ping"),
        ]

    @classmethod
    def text(cls, text):
        return cls.event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})

    @classmethod
    def finish(cls, reason):
        return [
            cls.event("content_block_stop", index=0),
            cls.event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}),
        ]

    @classmethod
    def usage(cls, tokens):
        return [cls.event("message_delta", delta={}, usage={"input_tokens": tokens[0], "output_tokens": tokens[1]})]

    @classmethod
    def done(cls):
        return [cls.event("message_stop")]

    @classmethod
    def failure(cls, message, kind="overloaded_error"):
        return cls.event("error", error={"type": kind, "message": message})

    @staticmethod
    def whole(text, finish="end_turn"):
        return {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "served",
            "content": [{"type": "text", "text": text}],
            "stop_reason": finish,
            "stop_sequence": None,
            "usage": {"input_tokens": USAGE[0], "output_tokens": USAGE[1]},
        }

    @classmethod
    def calling(cls, text, calls, finish):
        """With thinking, which is sent back with the results."""
        delta = lambda kind, name, value: {"type": f"{kind}_delta", name: value}
        blocks = [
            (
                {"type": "thinking", "thinking": "", "signature": ""},
                [delta("thinking", "thinking", "hm"), delta("signature", "signature", "c2ln")],
            ),
            ({"type": "text", "text": ""}, [delta("text", "text", text)]),
            *[
                (
                    {"type": "tool_use", "id": call.id, "name": call.name, "input": {}},
                    [delta("input_json", "partial_json", piece) for piece in call.pieces()],
                )
                for call in calls
            ],
        ]
        events = cls.begin()[:1]
        for index, (block, deltas) in enumerate(blocks):
            events.append(cls.event("content_block_start", index=index, content_block=block))
            events += [cls.event("content_block_delta", index=index, delta=delta) for delta in deltas]
            events.append(cls.event("content_block_stop", index=index))
        return [*events, *cls.finish(finish)[1:], *cls.usage(USAGE), *cls.done()]

    @classmethod
    def whole_calling(cls, text, calls, finish):
        whole = cls.whole(text, finish)
        whole["content"].insert(0, {"type": "thinking", "thinking": "hm", "signature": "c2ln"})
        whole["content"] += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in calls
        ]
        return whole

    @staticmethod
    def models(names):
        return {"data": [{"id": name, "type": "model"} for name in names], "has_more": False}

    @staticmethod
    def error(message, kind="invalid_request_error", code=None):
        return {"type": "error", "error": {"type": code or kind, "message": message}}


class Gemini:
    """generateContent."""

    name = "gemini"
    env = {"GEMINI_BASE_URL": "@SERVER@", "GEMINI_API_KEY": "sk-test-0123456789"}
    stop, length, blocked, other = "STOP", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL"
    calls = "STOP"
    section = ""

    @staticmethod
    def event(parts, **candidate):
        content = {"content": {"role": "model", "parts": parts}, **candidate}
        return f"data: {compact({'candidates': [content], 'modelVersion': 'served'})}\r\n\r\n".encode()

    @staticmethod
    def begin():
        return []

    @classmethod
    def text(cls, text):
        return cls.event([{"text": text}])

    @classmethod
    def finish(cls, reason):
        return [cls.event([{"text": ""}], finishReason=reason)]

    @staticmethod
    def usage(tokens):
        return [data({"usageMetadata": {"promptTokenCount": tokens[0], "candidatesTokenCount": tokens[1]}})]

    @staticmethod
    def done():
        return []

    @staticmethod
    def failure(message, kind="UNAVAILABLE"):
        return data({"error": {"code": 503, "message": message, "status": kind}})

    @staticmethod
    def whole(text, finish="STOP"):
        return {
            "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": finish}],
            "usageMetadata": {"promptTokenCount": USAGE[0], "candidatesTokenCount": USAGE[1]},
        }

    @staticmethod
    def parts(text, calls):
        """With a signature on the first call, which is sent back with the results."""
        called = [{"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}} for call in calls]
        called[0]["thoughtSignature"] = "c2ln"
        return [{"text": text}, *called]

    @classmethod
    def calling(cls, text, calls, finish):
        *parts, last = [[part] for part in cls.parts(text, calls)]
        return [*map(cls.event, parts), *cls.usage(USAGE), cls.event(last, finishReason=finish)]

    @classmethod
    def whole_calling(cls, text, calls, finish):
        whole = cls.whole(text, finish)
        whole["candidates"][0]["content"]["parts"] = cls.parts(text, calls)
        return whole

    @staticmethod
    def models(names):
        return {"models": [{"name": f"models/{name}"} for name in names]}

    @staticmethod
    def error(message, kind="INVALID_ARGUMENT", code=None):
        return {"error": {"code": 400, "message": message, "status": code or kind}}


class Responses(OpenAi):
    """OpenAI's Responses API, which a provider speaks only if the configuration says so."""

    name = "responses"
    env = {"Q_PROVIDER": "responses", "RESPONSES_KEY": "sk-test-0123456789"}
    stop, length, blocked, other = "completed", "max_output_tokens", "content_filter", "paused"
    calls = "completed"
    section = (
        '[providers.responses]\napi = "responses"\nbase_url = "@SERVER@/v1"\nkey_env = "RESPONSES_KEY"\n'
        'model = "test-model"\n'
    )

    event = staticmethod(Anthropic.event)

    @classmethod
    def begin(cls):
        return [cls.event("response.created", response={"id": "r", "status": "in_progress", "output": []})]

    @classmethod
    def text(cls, text):
        return cls.event("response.output_text.delta", output_index=0, content_index=0, delta=text)

    @classmethod
    def finish(cls, reason):
        return [cls.last([], reason)]

    @classmethod
    def last(cls, output, reason):
        kind = "response.completed" if reason == cls.stop else "response.incomplete"
        return cls.event(kind, response=cls.response(output, reason))

    @staticmethod
    def usage(tokens):
        """It is part of the last event."""
        return []

    @staticmethod
    def done():
        return []

    @classmethod
    def failure(cls, message, kind="server_error"):
        return cls.event("error", code=kind, message=message, param=None)

    @classmethod
    def response(cls, output, reason):
        ended = (
            {"status": "completed"}
            if reason == cls.stop
            else {"status": "incomplete", "incomplete_details": {"reason": reason}}
        )
        usage = {"input_tokens": USAGE[0], "output_tokens": USAGE[1], "total_tokens": sum(USAGE)}
        return {"id": "r", "object": "response", "model": "served", "output": output, "usage": usage, **ended}

    @staticmethod
    def message(text):
        content = [{"type": "output_text", "text": text, "annotations": []}]
        return {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}

    @classmethod
    def whole(cls, text, finish="completed"):
        return cls.response([cls.message(text)], finish)

    @classmethod
    def items(cls, text, calls):
        """With reasoning, which is sent back with the results."""
        called = [
            {
                "type": "function_call",
                "id": f"fc_{call.id}",
                "call_id": call.id,
                "name": call.name,
                "arguments": call.text(),
                "status": "completed",
            }
            for call in calls
        ]
        return [
            {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "ZW5j"},
            cls.message(text),
            *called,
        ]

    @classmethod
    def calling(cls, text, calls, finish):
        events = cls.begin()
        items = cls.items(text, calls)
        for index, item in enumerate(items):
            events.append(cls.event("response.output_item.added", output_index=index, item=item))
            if item["type"] == "message":
                events.append(cls.text(text))
            events.append(cls.event("response.output_item.done", output_index=index, item=item))
        return [*events, cls.last(items, finish)]

    @classmethod
    def whole_calling(cls, text, calls, finish):
        return cls.response(cls.items(text, calls), finish)


# Those of built-in providers, which a variable moves to the server of a scenario.
DIALECTS = [OpenAi, Anthropic, Gemini]

EVERY_DIALECT = [*DIALECTS, Responses]


def data(value):
    """One event of a stream."""
    text = value if isinstance(value, str) else compact(value)
    return f"data: {text}\n\n".encode()


def spoken_in(request):
    """The dialect that a request speaks."""
    if "/v1beta/" in request.path:
        return Gemini
    if request.path.endswith("/responses"):
        return Responses
    fields = dict(request.headers)
    return Anthropic if "anthropic-version" in fields else OpenAi


def wants_stream(request):
    return ":streamGenerateContent" in request.path or b'"stream":true' in request.body


def words(text):
    """A text in pieces, as models send it."""
    pieces = text.split(" ")
    return [piece + " " for piece in pieces[:-1]] + pieces[-1:]


def events(dialect, texts, finish=None, usage=USAGE):
    """The events of a whole stream."""
    # Gemini has the usage beside the reason to stop, and nothing behind it.
    last = dialect.usage(usage) if usage else []
    said = [dialect.text(text) for text in texts]
    finished = dialect.finish(finish or dialect.stop)
    if dialect is Gemini:
        return dialect.begin() + said + last + finished
    return dialect.begin() + said + finished + last + dialect.done()


def stream(pieces, **fields):
    return Reply(list(pieces), headers=[("content-type", "text/event-stream")], **fields)


def body(value, status=200, headers=(), kind="application/json"):
    """An answer in one piece: bytes, text, or a value that becomes JSON."""
    if not isinstance(value, bytes):
        value = (value if isinstance(value, str) else compact(value)).encode()
    return Reply([value], status=status, headers=[("content-type", kind), *headers], framing="length")


def usual(text, finish=None):
    """A reply that depends on the request: this answer in its dialect, whole or as a stream; or a list of models."""

    def reply(request):
        dialect = spoken_in(request)
        if request.method == "GET":
            return body(dialect.models(["first-model", "second-model"]))
        if wants_stream(request):
            return stream(events(dialect, words(text), finish and getattr(dialect, finish)))
        return body(dialect.whole(text, getattr(dialect, finish or "stop")))

    return reply


def calling(*calls, text="Let me see.", finish="calls"):
    """A reply that depends on the request: these calls after this text, in its dialect, whole or as a stream."""

    def reply(request):
        dialect = spoken_in(request)
        said = text, calls, getattr(dialect, finish)
        if wants_stream(request):
            return stream(dialect.calling(*said))
        return body(dialect.whole_calling(*said))

    return reply


def failing(status, message, headers=(), **fields):
    """A reply that depends on the request: an error in its dialect."""

    def reply(request):
        return body(spoken_in(request).error(message, **fields), status, headers)

    return reply
