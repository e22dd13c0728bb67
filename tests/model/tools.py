"""Asks a real model, over two APIs of llama.cpp, for weekdays, which a real command knows: tools.py PATH-OF-Q.

The model has 135 million parameters and no idea of tools. Its chat template here (tools.jinja) tells it of the tools that
are offered, and shows it two calls of the same tool for other days. What the model does itself is to call for the day that
it is asked about, and to copy the weekday out of the result. The command is the recipe of the README.
"""

import os
import pathlib
import re
import sys
import tempfile

from trial import HERE, Shell, check, finish, server

DAYS = {"1 May 2027": "Saturday", "17 October 2026": "Saturday", "14 July 2030": "Sunday"}


def recipe():
    readme = (HERE / "../../README.md").read_text(encoding="utf-8")
    return re.sub("^    ", "", re.search(r"^    \[tools\.date.*?\n\n", readme, re.DOTALL | re.MULTILINE)[0], flags=re.MULTILINE)


def knows(q, name, provider, results):
    print(f"--- {name}")
    with tempfile.TemporaryDirectory() as home:
        directory = pathlib.Path(home, ".config/q")
        directory.mkdir(parents=True)
        (directory / "config.toml").write_text(recipe(), encoding="utf-8")
        shell = Shell(q, provider, home)
        for day, weekday in DAYS.items():
            asked = shell.ask("-v", "-t", "date", f"Which weekday is {day}?")
            check("it answers", asked.returncode == 0, results)
            check("it called for that day", f'date__calendar {{"when":"{day}"}}' in asked.stderr, results)
            check("it answers from the result", weekday in asked.stdout, results)
            control = shell.ask(f"Which weekday is {day}?")
            check("without the command it cannot know", control.returncode in (0, 3) and weekday not in control.stdout, results)


def main():
    q = os.path.abspath(sys.argv[1])
    sys.stdout.reconfigure(line_buffering=True)
    results = []
    with server("--template", HERE / "tools.jinja") as address:
        dialects = {
            "openai": {"Q_PROVIDER": "llamacpp", "LLAMACPP_BASE_URL": f"{address}/v1"},
            "anthropic": {"Q_PROVIDER": "anthropic", "ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "any-will-do"},
        }
        for name, provider in dialects.items():
            knows(q, name, provider, results)
    finish(results)


main()
