"""The steps of a scenario, programs that run and files; and the surroundings in which they happen."""

import contextlib
import fcntl
import functools
import os
import pty
import select
import shlex
import signal
import struct
import subprocess
import termios
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from server import Server
from transcript import Transcript, files_below, shown

# How long anything may take before a scenario counts as broken.
GUARD = 60

# Times of different steps differ by more than a millisecond, so that their order does not depend on the machine's speed.
BETWEEN_STEPS = 0.003

SESSIONS = "state/q/sessions"
CURRENT = f"{SESSIONS}/current.json"

OPENAI = {"OPENAI_BASE_URL": "@SERVER@/v1", "OPENAI_API_KEY": "sk-test-0123456789"}
# Another provider that speaks the same dialect.
GROQ = {"GROQ_BASE_URL": "@SERVER@/v1", "GROQ_API_KEY": "sk-test-0123456789"}
BOTH = {**OPENAI, **GROQ}


class Trouble(Exception):
    """A scenario did not go as its script wants it, so it proves nothing."""


@dataclass
class Scenario:
    """What happens, in order; `replies` answer the first requests, and usual answers all further ones."""

    name: str
    steps: list
    env: dict
    replies: list


def case(name, *steps, env=OPENAI, replies=()):
    return Scenario(name, list(steps), env, list(replies))


class World:
    """The surroundings of one run of a scenario by one program: folders, server, transcript."""

    def __init__(self, scenario, program, root, closed_port):
        self.program = program
        self.root = Path(root)
        self.began = datetime.now(timezone.utc)
        self.transcript = Transcript()
        self.replies = scenario.replies
        self.requests, self.recorded_requests, self.recorded_files = [], 0, {}
        # Held while a request is counted.
        self.lock = threading.Lock()
        for folder in ["home", "config", "state"]:
            (self.root / folder).mkdir(parents=True)
        self.server = Server(self)
        self.names = {
            "@SERVER@": f"http://127.0.0.1:{self.server.server_port}",
            "@CLOSED@": f"127.0.0.1:{closed_port}",
            "@ROOT@": str(self.root),
            "@BIN@": str(Path(program).parent),
        }
        self.env = {
            "HOME": "@ROOT@/home",
            "XDG_CONFIG_HOME": "@ROOT@/config",
            "XDG_STATE_HOME": "@ROOT@/state",
            "PATH": "@BIN@:/usr/bin:/bin",
            "Q_RETRIES": "0",
            # No server that happens to run on this machine is asked.
            "OLLAMA_HOST": "@CLOSED@",
            **{f"{name}_BASE_URL": "http://@CLOSED@/v1" for name in ["LLAMACPP", "LMSTUDIO", "VLLM"]},
            **scenario.env,
        }

    def filled(self, text):
        """A text with what differs from run to run in place of its names; `@AGO 90m@` is a time."""
        if isinstance(text, bytes):
            return text
        for name, value in self.names.items():
            text = text.replace(name, value)
        while "@AGO " in text:
            before, rest = text.split("@AGO ", 1)
            minutes, after = rest.split("m@", 1)
            moment = self.began - timedelta(minutes=int(minutes))
            text = f"{before}{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z{after}"
        return text

    def bytes(self, text):
        return os.fsencode(self.filled(text))

    def run(self, command, stdin, env, terminal):
        """Runs a program, and records how it ended, what it sent and what it left in its folders."""
        start = functools.partial(
            subprocess.Popen,
            [self.bytes(word) for word in command],
            env={name: self.filled(value) for name, value in {**self.env, **env}.items() if value is not None},
            cwd=self.root / "home",
            start_new_session=True,
            umask=0o022,
        )
        given = stdin if stdin in (None, OPEN) else self.bytes(stdin)
        status, stdout, stderr = (on_terminal if terminal else with_pipes)(start, given)
        self.transcript.add("exit", [str(status) if status >= 0 else f"signal {signal.Signals(-status).name}"])
        self.transcript.add("stdout", shown(stdout))
        self.transcript.add("stderr", shown(stderr))
        for request in self.requests[self.recorded_requests :]:
            # The length is that of the body, which is compared itself.
            fields = sorted((name.lower(), value) for name, value in request.headers.items())
            headers = [f"  {name}: {value}" for name, value in fields if name != "content-length"]
            self.transcript.add("request", [f"{request.command} {request.path}", *headers, *shown(request.body)])
        self.recorded_requests = len(self.requests)
        files = files_below(self.root)
        for name, lines in files.items():
            if self.recorded_files.get(name) != lines:
                self.transcript.add(f"file {name}", lines)
        for name in sorted(self.recorded_files.keys() - files.keys()):
            self.transcript.add(f"file {name}", ["is gone"])
        self.recorded_files = files
        time.sleep(BETWEEN_STEPS)


# A standard input that stays open and empty.
OPEN = object()

# How a program is run on a terminal; `stdin` is then what is typed.
TERMINAL = {"terminal": True, "env": {"TERM": "dumb"}}


def with_pipes(start, stdin):
    """Status, standard output and error of a program; without a standard input it reads /dev/null."""
    own = None
    inner = subprocess.DEVNULL if stdin is None else subprocess.PIPE
    if stdin is OPEN:
        inner, own = os.pipe()
    process = start(stdin=inner, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        stdout, stderr = process.communicate(None if own else stdin, GUARD)
    except subprocess.TimeoutExpired:
        give_up(process)
    if own:
        os.close(inner)
        os.close(own)
    return process.returncode, stdout, stderr


def on_terminal(start, typed):
    own, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    os.write(own, typed or b"")
    process = start(stdin=inner, stdout=inner, stderr=inner)
    os.close(inner)
    written = b""
    # A terminal that all programs have left cannot be read.
    with contextlib.suppress(OSError):
        while select.select([own], [], [], GUARD)[0]:
            written += os.read(own, 65536)
    os.close(own)
    try:
        return process.wait(GUARD), written, b""
    except subprocess.TimeoutExpired:
        give_up(process)


def give_up(process):
    """Ends a program and what it has started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    raise Trouble(f"did not end within {GUARD} s")


@dataclass
class Step:
    """Something that is done in the world, and the words for it."""

    words: str
    action: object

    def __str__(self):
        return self.words


def q(args, *more, **fields):
    """Runs q: a text is split as a shell would do it, a list is taken as it is."""
    args = [*(shlex.split(args) if isinstance(args, str) else args), *more]
    return run(" ".join(["q", *map(shlex.quote, args)]), lambda world: [str(world.program), *args], **fields)


def sh(script, **fields):
    """Runs a shell script that finds q on its path."""
    return run(script, lambda _: ["/bin/sh", "-c", script], **fields)


def run(words, command, stdin=None, env={}, terminal=False):
    """Standard input is bytes, text or OPEN; a variable that is None is taken away."""
    words = "".join(f"{name}={shlex.quote(value or '')} " for name, value in env.items()) + words
    if stdin is OPEN:
        words += " <an open pipe"
    elif stdin is not None:
        words += f" <<<{stdin[:100]!r}{'…' if len(stdin) > 100 else ''}"
    return Step(words + " on a terminal" * terminal, lambda world: world.run(command(world), stdin, env, terminal))


def write(path, content, mode=0o600, mtime=None):
    """Writes a file below the scenario's folder; `mtime` is in seconds since 1970."""

    def action(world):
        file = world.root / path
        # As q makes them, so that not every fixture looks like one that q must put right.
        for folder in reversed(file.parents):
            if world.root in folder.parents and not folder.exists():
                folder.mkdir(0o700)
        file.unlink(missing_ok=True)
        file.write_bytes(world.bytes(content))
        file.chmod(mode)
        if mtime is not None:
            os.utime(file, (mtime, mtime))

    return Step(f"write {path}", action)


def prepare(script):
    """A script in the scenario's folder whose result is a fixture and not compared."""

    def action(world):
        subprocess.run(["/bin/sh", "-ec", world.filled(script)], cwd=world.root, umask=0o077, check=True)

    return Step(script, action)
