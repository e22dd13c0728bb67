"""Asks a real model whether a follow-up of q remembers: memory.py PATH-OF-Q.

In each of the three dialects that llama.cpp serves, in both forms of history, streamed and whole.
"""

import itertools
import os
import pathlib
import sys
import tempfile

from trial import Shell, check, finish, server

TELL = "The secret word is banana. Say yes if you understood."
ASK = "What is the secret word?"


def dialects(address):
    return {
        "openai": {"Q_PROVIDER": "llamacpp", "LLAMACPP_BASE_URL": f"{address}/v1"},
        "anthropic": {"Q_PROVIDER": "anthropic", "ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "any-will-do"},
        "responses": {"Q_PROVIDER": "local", "Q_MODEL": "any-will-do"},
    }


def configure(address, home):
    """Only a section of the file chooses the Responses API for another server than OpenAI's."""
    directory = pathlib.Path(home, ".config/q")
    directory.mkdir(parents=True)
    section = f'[providers.local]\napi = "responses"\nbase_url = "{address}/v1"\n'
    (directory / "config.toml").write_text(section, encoding="utf-8")


def remembers(q, name, provider, address, results):
    with tempfile.TemporaryDirectory() as told, tempfile.TemporaryDirectory() as untold:
        print(f"--- {name}")
        configure(address, told)
        configure(address, untold)
        shell = Shell(q, provider, told)
        first = shell.ask(TELL)
        check("it answers", first.returncode == 0 and first.stdout.strip() != "", results)
        for form, how in itertools.product(["prompt", "messages"], ["--no-stream", None]):
            shell.environment["Q_HISTORY"] = form
            follow = ["-f", "--no-save", how, ASK]
            second = shell.ask(*(word for word in follow if word))
            remembers = second.returncode == 0 and "banana" in second.stdout.lower()
            check(f"a follow-up remembers ({form}, {'whole' if how else 'streamed'})", remembers, results)
        control = Shell(q, provider, untold).ask(ASK)
        check("a conversation that was not told cannot know", control.returncode == 0 and "banana" not in control.stdout.lower(), results)


def main():
    q = os.path.abspath(sys.argv[1])
    sys.stdout.reconfigure(line_buffering=True)  # a log shows what was asked even if no answer comes
    results = []
    with server() as address:
        for name, provider in dialects(address).items():
            remembers(q, name, provider, address, results)
    finish(results)


main()
