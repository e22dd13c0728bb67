"""The steps of a scenario: programs that run, signals, files, gates; and the surroundings in which they happen."""

import errno
import fcntl
import os
import pty
import shlex
import signal
import struct
import subprocess
import termios
import threading
import time
from dataclasses import dataclass, field
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
    """The surroundings of one run of a scenario by one program: folders, server, running programs, transcript."""

    def __init__(self, scenario, program, root, closed_port):
        self.program = program
        self.root = Path(root)
        self.began = datetime.now(timezone.utc)
        self.transcript = Transcript()
        self.replies = scenario.replies
        self.requests, self.recorded_requests, self.recorded_files = [], 0, {}
        self.gates, self.running, self.lock, self.closed = set(), {}, None, False
        self.changed = threading.Condition()
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

    def close(self):
        for running in self.running.values():
            running.kill()
        self.give_lock_back()
        self.closed = True
        self.notify()
        self.server.close()

    def give_lock_back(self):
        if self.lock is not None:
            os.close(self.lock)
        self.lock = None

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

    def notify(self):
        with self.changed:
            self.changed.notify_all()

    def wait_for(self, reached, what):
        with self.changed:
            if not self.changed.wait_for(lambda: self.closed or reached(), GUARD):
                raise Trouble(f"waited in vain for {what}")

    def finish(self, name):
        """Waits for the end of a program, and records how it ended, what it sent and what it left in its folders."""
        running = self.running[name]
        running.wait()
        del self.running[name]
        status = running.process.returncode
        self.transcript.add("exit", [str(status) if status >= 0 else f"signal {signal.Signals(-status).name}"])
        self.transcript.add("stdout", shown(running.stdout))
        self.transcript.add("stderr", shown(running.stderr))
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


class Running:
    """A program that was started, and what it has printed so far."""

    def __init__(self, world, step):
        self.world = world
        self.stdout, self.stderr = bytearray(), bytearray()
        self.terminal, self.readers = None, []
        env = {name: value for name, value in {**world.env, **step.env}.items() if value is not None}
        files = [subprocess.DEVNULL if step.stdin is None else subprocess.PIPE, subprocess.PIPE, subprocess.PIPE]
        if step.terminal:
            self.terminal, inner = pty.openpty()
            fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
            files = [inner, inner, inner]
            os.write(self.terminal, world.bytes(step.stdin or ""))
        self.process = subprocess.Popen(
            [world.bytes(arg) for arg in (["/bin/sh", "-c", step.script] if step.script else [str(world.program), *step.args])],
            stdin=files[0],
            stdout=files[1],
            stderr=files[2],
            env={name: world.filled(value) for name, value in env.items()},
            cwd=world.root / "home",
            start_new_session=True,
            umask=0o022,
        )
        if step.terminal:
            os.close(inner)
            self.read(self.terminal, self.stdout)
        else:
            self.read(self.process.stdout.fileno(), self.stdout)
            self.read(self.process.stderr.fileno(), self.stderr)
            if step.stdin not in (None, OPEN):
                threading.Thread(target=self.feed, args=[world.bytes(step.stdin)], daemon=True).start()

    def read(self, descriptor, output):
        def run():
            try:
                while piece := os.read(descriptor, 65536):
                    output.extend(piece)
                    self.world.notify()
            except OSError as error:
                # How a terminal ends.
                if error.errno != errno.EIO:
                    raise

        self.readers.append(threading.Thread(target=run, daemon=True))
        self.readers[-1].start()

    def feed(self, content):
        try:
            self.process.stdin.write(content)
            self.process.stdin.close()
        except BrokenPipeError:
            # A program need not read its input.
            pass

    def wait(self):
        try:
            self.process.wait(GUARD)
        except subprocess.TimeoutExpired:
            raise Trouble(f"did not end within {GUARD} s") from None
        for reader in self.readers:
            reader.join(GUARD)
            if reader.is_alive():
                raise Trouble("ended, but something holds its output open")
        for pipe in [self.process.stdout, self.process.stderr]:
            if pipe:
                pipe.close()
        if self.terminal is not None:
            os.close(self.terminal)

    def kill(self):
        """Ends it and what it has started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


# A standard input that stays open and empty.
OPEN = object()

# How a program is run on a terminal; `stdin` is then what is typed.
TERMINAL = {"terminal": True, "env": {"TERM": "dumb"}}


@dataclass
class Start:
    """Starts q, or a shell script that finds q on its path; further steps call it by its name."""

    name: str
    args: list
    script: str = None
    # None is /dev/null, else bytes, text or OPEN.
    stdin: object = None
    # Further variables; None takes one away.
    env: dict = field(default_factory=dict)
    terminal: bool = False
    waits: bool = False

    def run(self, world):
        world.running[self.name] = Running(world, self)
        # Its first words may have come before it was known here.
        world.notify()
        if self.waits:
            world.finish(self.name)

    def __str__(self):
        env = "".join(f"{name}={shlex.quote(value or '')} " for name, value in self.env.items())
        command = self.script or " ".join(["q", *[shlex.quote(arg) for arg in self.args]])
        if self.stdin is OPEN:
            command += " <an open pipe"
        elif self.stdin is not None:
            command += f" <<<{self.stdin[:100]!r}{'…' if len(self.stdin) > 100 else ''}"
        return env + command + (" on a terminal" if self.terminal else "")


@dataclass
class Do:
    """A step that these words describe."""

    words: str
    action: object

    def run(self, world):
        self.action(world)

    def __str__(self):
        return self.words


def q(args, *more, **fields):
    """Runs q: a text is split as a shell would do it, a list is taken as it is."""
    return start("q", args, *more, waits=True, **fields)


def sh(script, **fields):
    return Start("sh", [], script=script, waits=True, **fields)


def start(name, args, *more, **fields):
    return Start(name, [*(shlex.split(args) if isinstance(args, str) else args), *more], **fields)


def finish(name):
    return Do(f"wait for the end of {name}", lambda world: world.finish(name))


def send_signal(name, number):
    return Do(f"send {number.name} to {name}", lambda world: world.running[name].process.send_signal(number))


def wait_for_words(text):
    def has_come(world):
        return any(text.encode() in run.stdout for run in list(world.running.values()))

    words = f"{text!r} on standard output"
    return Do(f"wait for {words}", lambda world: world.wait_for(lambda: has_come(world), words))


def wait_for_requests(count):
    words = f"request {count}"
    return Do(f"wait for {words}", lambda world: world.wait_for(lambda: len(world.requests) >= count, words))


def wait_for_file(path, text):
    """Waits for a text in a file that something other than this process writes."""

    def action(world):
        file, deadline = world.root / path, time.monotonic() + GUARD
        while not (file.exists() and text in file.read_text()):
            if time.monotonic() > deadline:
                raise Trouble(f"waited in vain for {text!r} in {path}")
            time.sleep(0.01)

    return Do(f"wait for {text!r} in {path}", action)


def open_gate(name):
    def action(world):
        world.gates.add(name)
        world.notify()

    return Do(f"open the gate {name}", action)


def write(path, content, mode=0o600, mtime=None):
    """Writes a file below the scenario's folder; `mtime` is in seconds since 1970."""

    def action(world):
        file = world.root / path
        make_folders(world, file.parent)
        file.unlink(missing_ok=True)
        file.write_bytes(world.bytes(content))
        file.chmod(mode)
        if mtime is not None:
            os.utime(file, (mtime, mtime))

    return Do(f"write {path}", action)


def make_folders(world, path):
    """As q makes them, so that not every fixture looks like one that q must put right."""
    for folder in reversed([path, *path.parents]):
        if world.root in folder.parents and not folder.exists():
            folder.mkdir(0o700)


def prepare(script):
    """A script in the scenario's folder whose result is a fixture and not compared."""

    def action(world):
        subprocess.run(["/bin/sh", "-ec", world.filled(script)], cwd=world.root, umask=0o077, check=True)

    return Do(script, action)


def hold_lock():
    """The folder of the conversations is locked."""

    def action(world):
        make_folders(world, world.root / SESSIONS)
        world.lock = os.open(world.root / SESSIONS, os.O_RDONLY)
        fcntl.flock(world.lock, fcntl.LOCK_EX)

    return Do("take the lock", action)


def release_lock():
    return Do("give the lock back", lambda world: world.give_lock_back())
