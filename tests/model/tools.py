"""Asks a real model, over two APIs of llama.cpp, for the time in Tokyo, which a real tool server knows: tools.py PATH-OF-Q PYTHON.

The model has 135 million parameters and no idea of tools. Its chat template here (tools.jinja) tells it of the tools that
are offered, and shows it two calls of the same tool for other cities. What the model does itself is to call for the city
that it is asked about, and to copy the time out of the result.
"""

import os
import pathlib
import sys
import tempfile

from trial import HERE, Shell, check, finish, server

ASK = "What time is it in Tokyo?"
OFFSET = "+09:00"


def knows(q, name, provider, python, results):
    print(f"--- {name}")
    with tempfile.TemporaryDirectory() as home:
        folder = pathlib.Path(home, ".config/q")
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text(f'[tools.time]\ncommand = ["{python}", "-m", "mcp_server_time"]\n', encoding="utf-8")
        shell = Shell(q, provider, home)
        asked = shell.ask("-v", "-t", "time", ASK)
        check("it answers", asked.returncode == 0, results)
        check("it called for Tokyo", '"timezone":"Asia/Tokyo"' in asked.stderr, results)
        check("it answers from the result", OFFSET in asked.stdout, results)
        control = shell.ask(ASK)
        check("without the tool it cannot know", control.returncode in (0, 3) and OFFSET not in control.stdout, results)


def main():
    q, python = (os.path.abspath(path) for path in sys.argv[1:3])
    sys.stdout.reconfigure(line_buffering=True)
    results = []
    with server("--template", HERE / "tools.jinja") as address:
        dialects = {
            "openai": {"Q_PROVIDER": "llamacpp", "LLAMACPP_BASE_URL": f"{address}/v1"},
            "anthropic": {"Q_PROVIDER": "anthropic", "ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "any-will-do"},
        }
        for name, provider in dialects.items():
            knows(q, name, provider, python, results)
    finish(results)


main()
