"""A tool server that speaks the Model Context Protocol on its standard input and output: toolserver.py LOG.

What it hears is added to the file LOG.
"""

import json
import sys

# What a server says about a tool that runs without asking.
READS = {"readOnlyHint": True, "openWorldHint": False}

SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"text": {"type": "string"}},
}

# The tools, and what is said about them.
TOOLS = {"echo": READS, "fail": READS, "big": READS, "hang": READS, "write": {}}


def main():
    with open(sys.argv[1], "a", encoding="utf-8") as log:
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
        about = {"name": "scenarios", "version": "1.0"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
    elif method == "tools/list":
        result = {
            "tools": [
                {"name": name, "description": f"does {name}\nand more", "inputSchema": SCHEMA, "annotations": hints}
                for name, hints in TOOLS.items()
            ]
        }
    elif method != "tools/call":
        send({"id": number, "error": {"code": -32601, "message": f"there is no {method}"}})
        return
    elif params["name"] == "hang":
        return
    elif params["name"] == "fail":
        result = {"content": text("it failed"), "isError": True}
    elif params["name"] == "big":
        result = {"content": text("0123456789" * 6_000)}
    else:
        result = {"content": text(f"you said {params['arguments'].get('text', 'nothing')}")}
    send({"id": number, "result": result})


def text(value):
    return [{"type": "text", "text": value}]


if __name__ == "__main__":
    main()
