"""An HTTP/1.1 server on 127.0.0.1 that records every request and answers from a script."""

import errno
import random
import socket
import threading
import time
from dataclasses import dataclass

from replies import CUT, HANG, Gate, Reply, usual

# A question and its answer never fall into the same millisecond, so which times are equal does not depend on speed.
BEFORE_ANSWERING = 0.005


@dataclass
class Request:
    """A request as it arrived: header names in lower case, sorted."""

    method: str
    path: str
    headers: list
    body: bytes


class Server:
    """Answers the first requests with the replies of the script, and all further ones with usual answers.

    `world` knows which programs run and which gates are open.
    """

    def __init__(self, world, script):
        self.world = world
        self.script = script
        self.requests = []
        self.questions = 0
        self.connections = []
        self.lock = threading.Lock()
        self.listener = _listen()
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        """Ends every connection; whoever still holds one sees its end."""
        # Shutting a listening socket down wakes whoever accepts from it.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            connections, self.connections = self.connections, []
        for connection in connections:
            _shut(connection)

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.connections.append(connection)
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection):
        try:
            with connection.makefile("rb") as reader:
                request = _read(reader)
                if request is not None:
                    self._next(request, connection)
        except OSError:
            # The client has left.
            pass
        except _NoRequest:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
        except Exception as error:
            self.world.trouble = f"the server failed: {error!r}"
        with self.lock:
            if connection in self.connections:
                self.connections.remove(connection)
        _shut(connection)
        connection.close()

    def _next(self, request, connection):
        with self.lock:
            self.requests.append(request)
            number = len(self.requests) - 1
            self.questions += request.method == "POST"
            questions = self.questions
        self.world.notify()
        time.sleep(BEFORE_ANSWERING)
        scripted = self.script[number] if number < len(self.script) else None
        if scripted is None:
            scripted = usual(f"Answer number {questions}.")
        reply = scripted if isinstance(scripted, Reply) else scripted(request)
        self._send(reply, connection)

    def _send(self, reply, connection):
        if reply.framing != "raw":
            connection.sendall(reply.head())
        for piece in reply.pieces:
            if isinstance(piece, Gate):
                self.world.wait_for(lambda: piece.name in self.world.gates, f"gate {piece.name}")
            elif piece == HANG:
                while connection.recv(1024):
                    pass
                return
            elif piece == CUT:
                return
            elif reply.framing == "chunked":
                # An empty chunk would end the body.
                if piece:
                    connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            else:
                connection.sendall(piece)
        if reply.framing == "chunked":
            connection.sendall(b"0\r\n\r\n")


class _NoRequest(Exception):
    """What the client sent is not HTTP."""


def _listen():
    """A listening socket on a port below those that the system gives out: programs of other tests on this machine may
    still call a port of theirs that the system has given out again.
    """
    while True:
        try:
            return socket.create_server(("127.0.0.1", random.randrange(10_000, 32_000)), backlog=64)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise


def _shut(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        # It is closed already.
        pass


def _read(reader):
    """The next request, or None where the client closed the connection instead."""
    first = reader.readline()
    if not first:
        return None
    method, _, rest = first.decode("utf-8", "backslashreplace").partition(" ")
    path, _, version = rest.partition(" ")
    if not version.startswith("HTTP/"):
        raise _NoRequest
    headers = []
    while line := reader.readline().strip():
        name, _, value = line.decode("utf-8", "backslashreplace").partition(":")
        headers.append((name.lower(), value.strip()))
    headers.sort()
    fields = dict(headers)
    if fields.get("transfer-encoding") == "chunked":
        body = b""
        while length := int(reader.readline(), 16):
            body += reader.read(length)
            reader.readline()
        reader.readline()
    else:
        body = reader.read(int(fields.get("content-length", "0")))
    return Request(method, path, headers, body)
