"""Asks a real model, through q and in both dialects that llama.cpp serves, whether a follow-up remembers: memory.py PATH-OF-Q."""

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
TELL = "The secret word is banana. Say yes if you understood."
ASK = "What is the secret word?"


def dialects(address):
    return {
        "openai": {"Q_PROVIDER": "llamacpp", "LLAMACPP_BASE_URL": f"{address}/v1"},
        "anthropic": {"Q_PROVIDER": "anthropic", "ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "any-will-do"},
    }


class Shell:
    """A user with an empty home, so that no setting or conversation of the real one counts."""

    def __init__(self, q, provider, home):
        self.q = q
        self.environment = {"PATH": os.environ["PATH"], "HOME": home, "Q_MAX_TOKENS": "64", **provider}

    def ask(self, *arguments):
        print("$ q", *arguments)
        done = subprocess.run(
            [self.q, *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        print(done.stdout + done.stderr, end="")
        return done


def check(what, holds, results):
    print("   ", "ok:" if holds else "FAILED:", what)
    results.append(holds)


def remembers(q, name, provider, results):
    with tempfile.TemporaryDirectory() as told, tempfile.TemporaryDirectory() as untold:
        print(f"--- {name}")
        shell = Shell(q, provider, told)
        first = shell.ask(TELL)
        check("it answers", first.returncode == 0 and first.stdout.strip() != "", results)
        second = shell.ask("-f", ASK)
        check("a follow-up remembers", second.returncode == 0 and "banana" in second.stdout.lower(), results)
        control = Shell(q, provider, untold).ask(ASK)
        check("whoever was not told cannot know", control.returncode == 0 and "banana" not in control.stdout.lower(), results)


def main():
    q = os.path.abspath(sys.argv[1])
    sys.stdout.reconfigure(line_buffering=True)  # a log shows what was asked even if no answer comes
    results = []
    with tempfile.TemporaryFile("w+") as log:
        # Leaving the block closes the server's standard input, which ends it.
        with subprocess.Popen(
            [sys.executable, HERE / "serve.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        ) as server:
            address = server.stdout.readline().strip()
            if not address:
                log.seek(0)
                sys.exit(f"{log.read()}The model server did not start.")
            for name, provider in dialects(address).items():
                remembers(q, name, provider, results)
    failed = len([result for result in results if not result])
    print(f"{len(results) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
