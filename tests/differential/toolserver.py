"""A tool server that speaks the Model Context Protocol on its standard input and output: toolserver.py LOG [MODE...].

What it hears is added to the file LOG; the modes say how it misbehaves.
"""

import json
import os
import sys

LOG, *MODES = sys.argv[1:]

# What a server says about a tool that runs without asking.
READS = {"readOnlyHint": True, "openWorldHint": False}

SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"text": {"type": "string"}},
}

# The tools, and what is said about them.
TOOLS = {
    "echo": READS,
    "fail": READS,
    "error": READS,
    "parts": READS,
    "structured": READS,
    "big": READS,
    "environment": READS,
    "die": READS,
    "hang": READS,
    "web": {"readOnlyHint": True},
    "write": {},
}


def main():
    if "broken" in MODES:
        print("Traceback: no module named mcp", file=sys.stderr)
        sys.exit(1)
    with open(LOG, "a", encoding="utf-8") as log:
        for line in sys.stdin:
            # Written down before it is answered, so that nothing is missing once the client goes on.
            log.write(line)
            log.flush()
            message = json.loads(line)
            if "id" in message and "method" in message:
                answer(message["id"], message["method"], message.get("params", {}))


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(number, method, params):
    if method == "initialize":
        if "silent" in MODES:
            return
        if "noisy" in MODES:
            print("Listening on standard input.", flush=True)
        version = "1999-01-01" if "ancient" in MODES else "2025-06-18"
        about = {"name": "scenarios", "version": "1.0"}
        send({"id": number, "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}})
    elif method == "tools/list":
        if "noisy" in MODES:
            send({"id": "one", "method": "ping"})
            send({"id": "two", "method": "roots/list"})
            send({"method": "notifications/tools/list_changed"})
        send({"id": number, "result": page(params.get("cursor"))})
    elif method == "tools/call":
        call(number, params["name"], params["arguments"])
    else:
        send({"id": number, "error": {"code": -32601, "message": f"there is no {method}"}})


def page(cursor):
    tools = [
        {"name": name, "description": f"does {name}\nand more", "inputSchema": SCHEMA, "annotations": hints}
        for name, hints in TOOLS.items()
    ]
    if "empty" in MODES:
        return {"tools": []}
    if "paged" not in MODES:
        return {"tools": tools}
    return {"tools": tools[2:]} if cursor else {"tools": tools[:2], "nextCursor": "2"}


def call(number, name, arguments):
    content, more = [], {}
    if name in ("echo", "write", "web"):
        content = text(f"you said {arguments.get('text', 'nothing')}")
    elif name == "fail":
        content, more = text("it failed"), {"isError": True}
    elif name == "parts":
        content = [
            *text("first"),
            {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt"},
            {"type": "resource", "resource": {"uri": "file:///b.txt", "text": "within"}},
        ]
    elif name == "structured":
        more = {"structuredContent": {"rows": [1, 2]}}
    elif name == "big":
        content = text("0123456789" * 6_000)
    elif name == "environment":
        content = text(" ".join(sorted(os.environ)))
    elif name == "die":
        print("I am done", file=sys.stderr, flush=True)
        sys.exit(3)
    elif name == "hang":
        return
    else:
        send({"id": number, "error": {"code": -32602, "message": f"{name} cannot be called"}})
        return
    send({"id": number, "result": {"content": content, **more}})


def text(value):
    return [{"type": "text", "text": value}]


if __name__ == "__main__":
    main()
