"""A client for the conformance suite of the Model Context Protocol: client.py PATH-OF-Q URL.

q asks a scripted model, which calls every tool that it is offered once, with the arguments that the scenario wants.
"""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from scripted import Model  # noqa: E402

# What each type of JSON Schema is called with where the scenario names no arguments.
EXAMPLES = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}


def wanted_calls():
    """The calls that the scenario wants: the name and the arguments of each."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    return [(call["name"], call["arguments"]) for call in context.get("toolCalls", [])]


def listed_schemas(q, environment):
    """The schemas of the tools by their names, as the server has them: what a model gets is changed for its API."""
    listed = subprocess.run([q, "--list-tools", "-j", "-t", "site"], env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, timeout=60, check=True)
    return {tool["name"]: tool["schema"] for tool in json.loads(listed.stdout)}


def example(schema, others):
    """Arguments for a tool. One that echoes a schema gets that of another tool, as it was listed."""
    properties = schema.get("properties", {})
    arguments = {name: EXAMPLES.get(value.get("type"), "text") for name, value in properties.items()}
    if arguments == {"schema": {}} and others:
        arguments["schema"] = EveryTool.listed[others[0]["name"]]
    return arguments


class EveryTool(Model):
    # The schemas that the server has listed, where a scenario asks for them.
    listed = {}

    def calls(self, request):
        if "tool_result" in json.dumps(request["messages"]):
            return []
        calls = []
        tools = request.get("tools", [])
        for tool in tools:
            name = tool["name"]
            wanted = [arguments for called, arguments in wanted_calls() if f"site__{called}" == name]
            others = [other for other in tools if other is not tool]
            for arguments in wanted or [example(tool["input_schema"], others)]:
                calls.append((name, arguments))
        return calls


def main():
    q, url = sys.argv[1:]
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), EveryTool)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as home:
        directory = pathlib.Path(home, ".config/q")
        directory.mkdir(parents=True)
        (directory / "config.toml").write_text(f"[tools.site]\nurl = {json.dumps(url)}\n", encoding="utf-8")
        environment = {
            "PATH": os.environ["PATH"], "HOME": home, "ANTHROPIC_API_KEY": "sk-any-will-do",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.server_port}",
        }
        if os.environ["MCP_CONFORMANCE_SCENARIO"] == "json-schema-2020-12-preservation":
            EveryTool.listed = listed_schemas(q, environment)
        asked = subprocess.run([q, "-v", "--yes", "-t", "site", "go"], env=environment, stdin=subprocess.DEVNULL, timeout=60)
    # The server of one scenario has no tools, which is an error of q's.
    sys.exit(0 if os.environ["MCP_CONFORMANCE_SCENARIO"] == "initialize" else asked.returncode)


main()
