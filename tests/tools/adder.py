"""A tool server over HTTP that adds numbers: adder.py PORT, with version 1 or 2 of the protocol's own SDK."""

import sys

try:
    from mcp.server.mcpserver import MCPServer
except ImportError:
    from mcp.server.fastmcp import FastMCP

    server = FastMCP("adder", host="127.0.0.1", port=int(sys.argv[1]))
    where = {}
else:
    server = MCPServer("adder")
    where = {"host": "127.0.0.1", "port": int(sys.argv[1])}


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


server.run(transport="streamable-http", **where)
