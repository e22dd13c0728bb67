"""What the trials of q against a real model share: the model's server, a user, and a count of what holds."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


@contextlib.contextmanager
def server(*options):
    """The address of a server that serves the model for as long as the block lasts."""
    with tempfile.TemporaryFile("w+") as log:
        # Leaving the block closes the server's standard input, which ends it.
        with subprocess.Popen(
            [sys.executable, HERE / "serve.py", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as running:
            address = running.stdout.readline().strip()
            if not address:
                log.seek(0)
                sys.exit(f"{log.read()}The model server did not start.")
            yield address


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


def finish(results):
    failed = len([result for result in results if not result])
    print(f"{len(results) - failed} passed, {failed} failed")
    sys.exit(failed > 0)
