"""An HTTP server on 127.0.0.1 that records every request and answers from a script, as OpenAI and most others speak.

What the other dialects say is compared by tests/corpus and tests/cli/dialects.rs; what q sends in them, by --dry-run.
"""

import errno
import http
import json
import random
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# A question and its answer never fall into the same millisecond, so which times are equal does not depend on speed.
BEFORE_ANSWERING = 0.005

# What may stand at the end of a reply: it breaks off there.
CUT = "cut"


@dataclass
class Reply:
    """The script of one reply: its head, then pieces of bytes, and perhaps a cut."""

    pieces: list
    status: int = 200
    headers: dict = field(default_factory=dict)
    kind: str = "text/event-stream"

    def head(self):
        lines = [f"HTTP/1.1 {self.status} {http.HTTPStatus(self.status).phrase}", f"content-type: {self.kind}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join([*lines, "transfer-encoding: chunked", "connection: close", "", ""]).encode()


class Handler(BaseHTTPRequestHandler):
    """Answers the first requests with the replies of the script, and all further ones with usual answers."""

    def do_GET(self):
        world = self.server.world
        self.body = self.rfile.read(int(self.headers.get("content-length", 0)))
        with world.lock:
            number = len(world.requests)
            world.requests.append(self)
            questions = sum(request.command == "POST" for request in world.requests)
        time.sleep(BEFORE_ANSWERING)
        scripted = world.replies[number] if number < len(world.replies) else None
        scripted = scripted or usual(f"Answer number {questions}.")
        self.send(scripted if isinstance(scripted, Reply) else scripted(self))

    do_POST = do_GET

    def send(self, reply):
        self.close_connection = True
        self.wfile.write(reply.head())
        for piece in reply.pieces:
            if piece == CUT:
                return
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def wants_stream(self):
        return b'"stream":true' in self.body

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    """On a port below those that the system gives out, which a program of another test may still call."""

    request_queue_size = 64

    def __init__(self, world):
        self.world = world
        while True:
            try:
                super().__init__(("127.0.0.1", random.randrange(10_000, 32_000)), Handler)
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
        threading.Thread(target=self.serve_forever, args=[0.05], daemon=True).start()

    def handle_error(self, *_):
        """The client has left, or a scenario has ended."""

    def close(self):
        self.shutdown()
        self.server_close()


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def event(value):
    return f"data: {compact(value)}\n\n".encode()


def chunk(delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event({"id": "c", "object": "chat.completion.chunk", "model": "served", "choices": [choice]})


def say(text):
    return chunk({"content": text})


def end(finish="stop"):
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return b"".join([chunk({}, finish), event({"id": "c", "choices": [], "usage": usage}), b"data: [DONE]\n\n"])


def stream(*pieces):
    """A stream of text and bytes; its end is in it or not, or it is cut."""
    return Reply([say(piece) if isinstance(piece, str) and piece != CUT else piece for piece in pieces])


def body(value, status=200, **headers):
    return Reply([compact(value).encode()], status, headers, "application/json")


def answer(request, message, finish):
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    if request.wants_stream():
        text = message.pop("content")
        words = [piece for piece in text.replace(" ", " \0").split("\0") if piece]
        return stream(chunk({"role": "assistant", "content": ""}), *words, *map(chunk, fragments(message)), end(finish))
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return body({"id": "c", "object": "chat.completion", "model": "served", "choices": [choice], "usage": usage})


def fragments(message):
    """Calls of tools in the pieces that models send."""
    for index, call in enumerate(message.get("tool_calls", [])):
        arguments = call["function"]["arguments"]
        yield {"tool_calls": [{**call, "index": index, "function": {**call["function"], "arguments": ""}}]}
        for at in range(0, len(arguments), 5):
            yield {"tool_calls": [{"index": index, "function": {"arguments": arguments[at : at + 5]}}]}


def usual(text, finish="stop"):
    """A reply that depends on the request: this answer, whole or as a stream; or a list of models."""

    def reply(request):
        if request.command == "GET":
            return body({"object": "list", "data": [{"id": name} for name in ["first-model", "second-model"]]})
        return answer(request, {"content": text}, finish)

    return reply


def calling(*calls, text="Let me see.", finish="tool_calls"):
    """Calls of tools after this text; each is an id, a name, and arguments that need not be JSON."""
    said = []
    for id, name, arguments in calls:
        text_of = arguments if isinstance(arguments, str) else compact(arguments)
        said.append({"id": id, "type": "function", "function": {"name": name, "arguments": text_of}})
    return lambda request: answer(request, {"content": text, "tool_calls": said}, finish)


def failing(status, message, **headers):
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return body({"error": error}, status, **{name.replace("_", "-"): value for name, value in headers.items()})
