"""A scripted model on 127.0.0.1 that speaks chat completions, responses and Anthropic's messages, streamed or whole, and
records what it is asked."""

import contextlib
import dataclasses
import http.server
import json
import threading


@dataclasses.dataclass
class Script:
    """What the model does with each question until it gets another script."""

    pieces: list = dataclasses.field(default_factory=lambda: ["It ", "is ", "4."])
    thought: str = ""
    cut: bool = False  # ends at the token limit
    status: int = 200
    hold_after: int | None = None  # sends this many pieces, and then nothing more
    together: int = 1  # answers when it has this many questions


@dataclasses.dataclass
class Asked:
    """A request: its path, the size of its body, and its JSON."""

    path: str
    size: int
    body: dict

    def has(self, text):
        return text in json.dumps(self.body)


class Model(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.begin(Script())

    def begin(self, script):
        self.script = script
        self.asked = []
        self.held = threading.Event()
        self.barrier = threading.Barrier(script.together)

    @property
    def questions(self):
        """The requests for an answer; there may be others, such as for a list of models."""
        return [asked for asked in self.asked if asked.path in SPEAKERS]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def read(self):
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def do_GET(self):
        body = self.read()
        path = self.path.partition("?")[0]
        with contextlib.suppress(ValueError):
            asked = Asked(path, len(body), json.loads(body or b"{}"))
            self.server.asked.append(asked)
            if path in SPEAKERS:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self.answer(asked)
                return
        self.whole(404, {"error": {"type": "not_found_error", "message": "there is no such thing here"}})

    do_HEAD = do_POST = do_GET

    def answer(self, asked):
        script = self.server.script
        with contextlib.suppress(threading.BrokenBarrierError):
            self.server.barrier.wait(timeout=20)
        if script.status != 200:
            kind = "authentication_error" if script.status == 401 else "api_error"
            self.whole(script.status, {"type": "error", "error": {"type": kind, "message": "the scripted error"}})
            return
        whole, stream = SPEAKERS[asked.path]
        if not asked.body.get("stream"):
            if script.hold_after is not None:
                self.hold()
            self.whole(200, whole(asked.body["model"], script))
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        held = None if script.hold_after is None else script.pieces[script.hold_after]
        for event in stream(asked.body["model"], script):
            if held and held in json.dumps(event):
                self.hold()
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
        if "type" not in event:
            self.wfile.write(b"data: [DONE]\n\n")

    def hold(self):
        """Waits until the other side gives up."""
        self.server.held.set()
        self.connection.settimeout(120)
        with contextlib.suppress(OSError):
            self.connection.recv(1)
        raise BrokenPipeError

    def whole(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


# What a reply has in each API. A thought is text between marks in chat completions, as local servers send it.

USAGE = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}


def chat_text(script):
    return ([f"<think>{script.thought}</think>"] if script.thought else []) + script.pieces


def chat(model, script, kind, choice):
    ends = "length" if script.cut else "stop"
    usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
    choice = {"index": 0, "finish_reason": ends, **choice}
    return {"id": "1", "object": kind, "created": 1, "model": model, "choices": [choice], "usage": usage}


def chat_whole(model, script):
    message = {"role": "assistant", "content": "".join(chat_text(script))}
    return chat(model, script, "chat.completion", {"message": message})


def chat_stream(model, script):
    for piece in chat_text(script):
        delta = {"role": "assistant", "content": piece}
        event = chat(model, script, "chat.completion.chunk", {"delta": delta, "finish_reason": None})
        yield {**event, "usage": None}
    yield chat(model, script, "chat.completion.chunk", {"delta": {}})


def messages_whole(model, script):
    thoughts = [{"type": "thinking", "thinking": script.thought, "signature": "c2lnbmVk"}] if script.thought else []
    content = thoughts + [{"type": "text", "text": "".join(script.pieces)}]
    return {"id": "1", "type": "message", "role": "assistant", "model": model, "content": content,
            "stop_reason": "max_tokens" if script.cut else "end_turn", "stop_sequence": None, "usage": USAGE}


def messages_stream(model, script):
    message = messages_whole(model, script)
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        thinks = block["type"] == "thinking"
        start = {"type": "thinking", "thinking": ""} if thinks else {"type": "text", "text": ""}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for piece in [script.thought] if thinks else script.pieces:
            delta = {"type": "thinking_delta", "thinking": piece} if thinks else {"type": "text_delta", "text": piece}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        if thinks:
            delta = {"type": "signature_delta", "signature": block["signature"]}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 9}}
    yield {"type": "message_stop"}


def responses_whole(model, script):
    content = [{"type": "output_text", "text": "".join(script.pieces), "annotations": []}]
    said = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content}
    summary = [{"type": "summary_text", "text": script.thought}]
    thoughts = [{"type": "reasoning", "id": "r1", "summary": summary}] if script.thought else []
    return {"id": "1", "object": "response", "created_at": 1, "model": model, "output": thoughts + [said],
            "status": "incomplete" if script.cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if script.cut else None, "usage": USAGE}


def responses_stream(model, script):
    response = responses_whole(model, script)
    yield {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}
    for index, item in enumerate(response["output"]):
        if item["type"] == "reasoning":
            yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "summary": []}}
        else:
            yield {"type": "response.output_item.added", "output_index": index, "item": {**item, "content": []}}
            for piece in script.pieces:
                yield {"type": "response.output_text.delta", "output_index": index, "content_index": 0,
                       "item_id": item["id"], "delta": piece}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


SPEAKERS = {
    "/v1/chat/completions": (chat_whole, chat_stream),
    "/v1/messages": (messages_whole, messages_stream),
    "/v1/responses": (responses_whole, responses_stream),
}
