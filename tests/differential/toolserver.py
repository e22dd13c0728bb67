"""A tool server that speaks the Model Context Protocol on its standard input and output: toolserver.py LOG.

What it hears is added to the file LOG.
"""

import json
import sys

READS = {"readOnlyHint": True, "openWorldHint": False}
TOOLS = {"echo": READS, "fail": READS, "big": READS, "hang": READS, "write": {}}


def answer(method, params):
    if method == "initialize":
        about = {"name": "scenarios", "version": "1.0"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        tools = [{"name": name, "inputSchema": schema, "annotations": hints} for name, hints in TOOLS.items()]
        return {"tools": [{**tool, "description": f"does {tool['name']}\nand more"} for tool in tools]}
    if params["name"] == "hang":
        return None
    if params["name"] == "fail":
        return {"content": [{"type": "text", "text": "it failed"}], "isError": True}
    said = "0123456789" * 6_000 if params["name"] == "big" else f"you said {params['arguments'].get('text', 'nothing')}"
    return {"content": [{"type": "text", "text": said}]}


with open(sys.argv[1], "a", encoding="utf-8") as log:
    for line in sys.stdin:
        # Written down before it is answered, so that nothing is missing when the client continues.
        log.write(line)
        log.flush()
        message = json.loads(line)
        if "id" in message and "method" in message:
            result = answer(message["method"], message.get("params", {}))
            if result is not None:
                print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
