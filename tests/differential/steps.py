"""The steps of a scenario: programs that run, signals, files, gates; and the surroundings in which they happen."""

import errno
import fcntl
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
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

import state
from replies import DIALECTS
from server import Server
from state import SESSIONS
from transcript import Transcript, shown

# How long anything may take before a scenario counts as broken.
GUARD = 60

# Times of different steps differ by more than a millisecond, so that their order does not depend on the machine's speed.
BETWEEN_STEPS = 0.003

CURRENT = f"{SESSIONS}/current.json"

OPENAI, ANTHROPIC = (dialect.env for dialect in DIALECTS[:2])


class Trouble(Exception):
    """A scenario did not go as its script wants it, so it proves nothing."""


@dataclass
class Scenario:
    """What happens, in order; `replies` answer the first requests, and usual answers all further ones."""

    name: str
    steps: list
    env: dict = field(default_factory=lambda: OPENAI)
    replies: list = field(default_factory=list)


class World:
    """The surroundings of one run of a scenario by one program: folders, server, running programs, transcript."""

    def __init__(self, scenario, program, root, closed_port):
        self.program = program
        self.root = Path(root)
        self.began = datetime.now(timezone.utc)
        self.transcript = Transcript()
        self.gates = set()
        self.running = {}
        self.locked = []
        self.closed = False
        self.trouble = None
        self.recorded_requests = 0
        self.recorded_files = {}
        self.changed = threading.Condition()
        for folder in ["home", "config", "state"]:
            (self.root / folder).mkdir(parents=True)
        self.server = Server(self, scenario.replies)
        self.names = {
            "@SERVER@": f"http://127.0.0.1:{self.server.port}",
            "@PORT@": str(self.server.port),
            "@CLOSED@": f"127.0.0.1:{closed_port}",
            "@ROOT@": str(self.root),
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
        self.names["@BIN@"] = str(Path(program).parent)

    def close(self):
        for running in self.running.values():
            running.kill()
        self.release_locks()
        self.closed = True
        self.server.close()
        self.notify()

    def release_locks(self):
        for lock in self.locked:
            os.close(lock)
        self.locked = []

    def filled(self, text):
        """A text with what differs from run to run in place of its names; `@AGO 90m@` is a time."""
        if isinstance(text, bytes):
            return self.filled(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        for name, value in self.names.items():
            text = text.replace(name, value)
        while "@AGO " in text:
            before, rest = text.split("@AGO ", 1)
            minutes, after = rest.split("m@", 1)
            moment = self.began - timedelta(minutes=int(minutes))
            text = f"{before}{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z{after}"
        return text

    def notify(self):
        with self.changed:
            self.changed.notify_all()

    def wait_for(self, reached, what):
        with self.changed:
            if not self.changed.wait_for(lambda: self.closed or reached(), GUARD):
                raise Trouble(f"waited in vain for {what}")

    def wait_for_output(self, text):
        wanted = text.encode()
        self.wait_for(lambda: any(wanted in run.stdout for run in list(self.running.values())), repr(text))

    def record_run(self, running):
        """Records how a program ended, what it sent and what it left in its folders."""
        self.transcript.add("exit", [describe_exit(running.process.returncode)])
        self.transcript.add("stdout", shown(running.stdout))
        self.transcript.add("stderr", shown(running.stderr))
        self.record_requests()
        self.record_files()
        time.sleep(BETWEEN_STEPS)

    def record_requests(self):
        requests = []
        for request in self.server.requests[self.recorded_requests :]:
            # The length is that of the body, which is compared itself.
            headers = [f"  {name}: {value}" for name, value in request.headers if name != "content-length"]
            requests.append([f"{request.method} {request.path}", *headers, *shown(request.body)])
        self.recorded_requests = len(self.server.requests)
        for lines in requests:
            self.transcript.add("request", lines)

    def record_files(self):
        files = state.describe(self.root)
        for name, lines in files.items():
            if self.recorded_files.get(name) != lines:
                self.transcript.add(f"file {name}", lines)
        for name in sorted(self.recorded_files.keys() - files.keys()):
            self.transcript.add(f"file {name}", ["is gone"])
        self.recorded_files = files


class Running:
    """A program that was started, and what it has printed so far."""

    def __init__(self, world, step, program, args):
        self.world = world
        self.stdout, self.stderr = bytearray(), bytearray()
        self.stdin, self.terminal = None, None
        # For each output: its end here, the thread that reads it, and a pipe that stops the thread.
        self.outputs = []
        env = {name: value for name, value in {**world.env, **step.env}.items() if value is not None}
        files = [
            os.open(world.filled(step.files[which]), flags) if which in step.files else usual
            for which, flags, usual in [
                ("stdin", os.O_RDONLY, subprocess.DEVNULL),
                ("stdout", os.O_WRONLY, subprocess.PIPE),
                ("stderr", os.O_WRONLY, subprocess.PIPE),
            ]
        ]
        if step.stdin is not None:
            files[0] = subprocess.PIPE
        if step.terminal:
            self.terminal, inner = pty.openpty()
            fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
            files = [inner, inner, inner]
            os.write(self.terminal, world.filled(step.stdin or "").encode())
        self.process = subprocess.Popen(
            [os.fsencode(world.filled(program)), *[os.fsencode(world.filled(arg)) for arg in args]],
            stdin=files[0],
            stdout=files[1],
            stderr=files[2],
            env={name: world.filled(value) for name, value in env.items()},
            cwd=world.root / "home",
            start_new_session=True,
            umask=step.umask,
        )
        for file in set(files):
            if file >= 0:
                os.close(file)
        if step.terminal:
            self._read(self.terminal, self.stdout)
        for pipe, output in [(self.process.stdout, self.stdout), (self.process.stderr, self.stderr)]:
            if pipe:
                self._read(pipe.fileno(), output)
        self.stdin = self.process.stdin
        if self.stdin and step.stdin != OPEN:
            text = world.filled(step.stdin)
            bytes_in = text if isinstance(text, bytes) else text.encode()
            threading.Thread(target=self._feed_and_end, args=[bytes_in], daemon=True).start()

    def _read(self, descriptor, output):
        stop, stopping = os.pipe()

        def run():
            try:
                while descriptor in select.select([descriptor, stop], [], [])[0]:
                    piece = os.read(descriptor, 65536)
                    if not piece:
                        break
                    output.extend(piece)
                    self.world.notify()
            except OSError as error:
                # How a terminal ends.
                if error.errno != errno.EIO:
                    raise
            os.close(stop)

        reader = threading.Thread(target=run, daemon=True)
        reader.start()
        self.outputs.append((descriptor, reader, stopping))

    def close_output(self, which):
        """Nobody reads it any more; when this returns, writing to it fails."""
        descriptor, reader, stopping = self.outputs[which]
        os.write(stopping, b"x")
        reader.join()
        # Its number stays taken, since it is closed again with the rest.
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, descriptor)
        os.close(null)

    def _feed_and_end(self, bytes_in):
        try:
            self.stdin.write(bytes_in)
            self.stdin.close()
        except BrokenPipeError:
            # A program need not read its input.
            pass

    def wait(self):
        try:
            self.process.wait(GUARD)
        except subprocess.TimeoutExpired:
            raise Trouble(f"did not end within {GUARD} s") from None
        for _, reader, _ in self.outputs:
            reader.join(GUARD)
            if reader.is_alive():
                raise Trouble("ended, but something holds its output open")
        self.release()

    def release(self):
        """Closes what is left of its pipes."""
        for pipe in [self.process.stdout, self.process.stderr]:
            if pipe:
                pipe.close()
        for _, _, stopping in self.outputs:
            os.close(stopping)
        if self.terminal is not None:
            os.close(self.terminal)

    def kill(self):
        """Ends it and what it has started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


# A standard input that stays open and empty until a step feeds or ends it.
OPEN = object()


@dataclass
class Start:
    """Starts q, or a shell script that finds q on its path; further steps call it by its name."""

    name: str
    args: list
    script: str = None
    # None is /dev/null, else bytes, text or OPEN. On a terminal, what is typed.
    stdin: object = None
    # Further variables; None takes one away.
    env: dict = field(default_factory=dict)
    # Paths of files in place of stdin, stdout or stderr.
    files: dict = field(default_factory=dict)
    terminal: bool = False
    umask: int = 0o022

    def run(self, world):
        program, args = ("/bin/sh", ["-c", self.script]) if self.script else (str(world.program), self.args)
        world.running[self.name] = Running(world, self, program, args)
        # Its first words may have come before it was known here.
        world.notify()

    def __str__(self):
        env = "".join(f"{name}={shlex.quote(value or '')} " for name, value in self.env.items())
        command = self.script or " ".join(["q", *[shlex.quote(arg) for arg in self.args]])
        if self.stdin is OPEN:
            command += " <an open pipe"
        elif self.stdin is not None:
            command += f" <<<{self.stdin[:100]!r}{'…' if len(self.stdin) > 100 else ''}"
        for which, path in self.files.items():
            command += f" {dict(stdin='<', stdout='>', stderr='2>')[which]}{path}"
        return env + command + (" on a terminal" if self.terminal else "")


@dataclass
class Finish:
    """Waits for the end of a program."""

    name: str

    def run(self, world):
        world.transcript.title(str(self))
        running = world.running[self.name]
        running.wait()
        world.record_run(running)
        del world.running[self.name]

    def __str__(self):
        return f"wait for the end of {self.name}"


@dataclass
class Run:
    """Starts a program and waits for its end."""

    start: Start

    def run(self, world):
        world.transcript.title(str(self))
        self.start.run(world)
        running = world.running[self.start.name]
        running.wait()
        world.record_run(running)
        del world.running[self.start.name]

    def __str__(self):
        return str(self.start)


@dataclass
class Do:
    """A step that these words describe."""

    words: str
    action: object

    def run(self, world):
        self.action(world)

    def __str__(self):
        return self.words


def q(*args, **fields):
    return Run(Start("q", list(args), **fields))


def sh(script, **fields):
    return Run(Start("sh", [], script=script, **fields))


def start(name, *args, **fields):
    return Start(name, list(args), **fields)


def finish(name):
    return Finish(name)


def send_signal(name, number):
    return Do(f"send {number.name} to {name}", lambda world: world.running[name].process.send_signal(number))


def wait_for_words(text):
    return Do(f"wait for {text!r} on standard output", lambda world: world.wait_for_output(text))


def wait_for_requests(count):
    return Do(
        f"wait for request {count}",
        lambda world: world.wait_for(lambda: len(world.server.requests) >= count, f"request {count}"),
    )


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


def feed(name, text):
    def action(world):
        world.running[name].stdin.write(text.encode())
        world.running[name].stdin.flush()

    return Do(f"write {text!r} to the input of {name}", action)


def end_input(name):
    return Do(f"end the input of {name}", lambda world: world.running[name].stdin.close())


def close_output(name, which=0):
    return Do(
        f"close {['standard output', 'standard error'][which]} of {name}",
        lambda world: world.running[name].close_output(which),
    )


def write(path, content, mode=0o600, mtime=None):
    """Writes a file below the scenario's folder; `mtime` is in seconds since 1970."""

    def action(world):
        file = world.root / path
        make_folders(world, file.parent)
        text = world.filled(content)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        file.chmod(mode)
        if mtime is not None:
            os.utime(file, (mtime, mtime))

    return Do(f"write {path}", action)


def copy(source, target):
    return Do(
        f"copy {source} to {target}",
        lambda world: (world.root / target).write_bytes((world.root / source).read_bytes()),
    )


def folder(path, mode=0o700):
    def action(world):
        make_folders(world, world.root / path)
        (world.root / path).chmod(mode)

    return Do(f"make the folder {path}", action)


def link(path, target):
    def action(world):
        make_folders(world, (world.root / path).parent)
        (world.root / path).symlink_to(world.filled(target))

    return Do(f"link {path} to {target}", action)


def fifo(path):
    def action(world):
        make_folders(world, (world.root / path).parent)
        os.mkfifo(world.root / path)

    return Do(f"make the named pipe {path}", action)


def chmod(path, mode):
    return Do(f"chmod {mode:o} {path}", lambda world: (world.root / path).chmod(mode))


def remove(path):
    return Do(f"remove {path}", lambda world: (world.root / path).unlink())


def hold_lock():
    """The folder of the conversations is locked; until 0.2 it was a file beside it."""

    def action(world):
        make_folders(world, world.root / SESSIONS)
        file = os.open(world.root / "state/q/lock", os.O_RDWR | os.O_CREAT, 0o600)
        world.locked = [file, os.open(world.root / SESSIONS, os.O_RDONLY)]
        for lock in world.locked:
            fcntl.flock(lock, fcntl.LOCK_EX)

    return Do("take the lock", action)


def release_lock():
    def action(world):
        world.release_locks()

    return Do("give the lock back", action)


def make_folders(world, path):
    """As q makes them, so that not every fixture looks like one that q must put right."""
    for folder_path in reversed([path, *path.parents]):
        if world.root in folder_path.parents and not folder_path.exists():
            folder_path.mkdir(0o700)


def describe_exit(status):
    return str(status) if status >= 0 else f"signal {signal.Signals(-status).name}"
