"""A home of its own for one program, below a directory, with a scripted model; how the program is run there."""

import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import pty
import resource
import select
import shutil
import signal
import subprocess
import tempfile
import termios
import threading
import time

from model import Model, Script

LIMIT = 60  # seconds for one run
NOWHERE = "http://127.0.0.1:9"  # nothing listens there


@dataclasses.dataclass
class Done:
    """What a run left; the status is None if it was not over in time, or the negative number of the signal that ended it."""

    status: int | None
    out: bytes
    err: bytes
    processor: float
    wall: float

    def says(self):
        return self.err.decode(errors="replace")


class Stage:
    """A home for one program, with the model that it asks; both end with the block that it is used in."""

    def __init__(self, peer, directory, disk=False):
        self.peer = peer
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="home-", dir=directory))
        self.disk = disk
        if disk:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", self.home], check=True)
        self.work = self.home / "work"
        # A repository, so that no program takes this project's for its own.
        subprocess.run(["git", "init", "--quiet", self.work], check=True)
        (self.home / "tmp").mkdir()
        self.model = Model()
        threading.Thread(target=self.model.serve_forever, daemon=True).start()
        for name, text in peer.files.items():
            file = self.home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("URL", self.model.url), encoding="utf-8")
        own = {name: value.replace("URL", self.model.url) for name, value in peer.environment.items()}
        # Whatever else a program would contact is not there; what it can be asked to leave out, it is asked to.
        alone = {"HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "ALL_PROXY": NOWHERE, "NO_PROXY": "127.0.0.1,localhost",
                 "DO_NOT_TRACK": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(self.home / "tmp"),
                            "LANG": "C.UTF-8", "TERM": "xterm-256color", **alone,
                            **{name.lower(): value for name, value in alone.items() if "PROXY" in name}, **own}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.model.shutdown()
        self.model.server_close()
        if self.disk:
            subprocess.run(["umount", "--lazy", self.home], check=True)
        shutil.rmtree(self.home, ignore_errors=True)

    def command(self, words, question):
        if self.peer.line:
            return ["sh", "-c", self.peer.line.replace("URL", self.model.url), "sh", question]
        return [*self.peer.program, *words, question]

    def fill(self):
        """Leaves no byte on the disk."""
        with contextlib.suppress(OSError), open(self.home / "filling", "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def block(self):
        """Puts into the place of the conversations what cannot be one: a file, or a directory where it is a file."""
        store = self.home / self.peer.store
        store.parent.mkdir(parents=True, exist_ok=True)
        store.mkdir() if store.suffix else store.touch()

    def run(self, command):
        """Runs a command into pipes, without standard input."""
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        running = subprocess.Popen(command, env=self.environment, cwd=self.work, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        over = True
        try:
            out, err = running.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            over = False
            os.killpg(running.pid, signal.SIGKILL)
            out, err = running.communicate()
        wall, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return Done(running.returncode if over else None, out, err, processor, wall)

    def ask(self, words, question, script=None):
        self.model.begin(script or Script())
        return self.run(self.command(words, question))

    def at_once(self, words, questions):
        """Asks all questions at the same time; the model answers when it has all of them. Returns the runs."""
        self.model.begin(Script(together=len(questions)))
        with concurrent.futures.ThreadPoolExecutor(len(questions)) as pool:
            return list(pool.map(lambda question: self.run(self.command(words, question)), questions))

    @contextlib.contextmanager
    def on_terminal(self, command):
        """A command with a terminal: its process, and the other end of the terminal."""
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(self.work)
            os.execvpe(command[0], command, self.environment)
        termios.tcsetwinsize(terminal, (24, 80))
        try:
            yield process, terminal
        finally:
            os.close(terminal)
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)

    def interrupt(self, words, question, script):
        """Types Ctrl-C while the model holds an answer back; returns the status and what the terminal got."""
        self.model.begin(script)
        with self.on_terminal(self.command(words, question)) as (process, terminal):
            shown = read_until(terminal, self.model.held.is_set) + read(terminal, 2)
            for _ in range(3):
                with contextlib.suppress(OSError):
                    os.write(terminal, b"\3")
                shown += read(terminal, 5)
                if (status := exit_status(process, 2)) is not None:
                    return status, shown
            return None, shown

    def converse(self, words, lines):
        """Types lines to a program that is started without a question."""
        self.model.begin(Script())
        with self.on_terminal([*self.peer.program, *words]) as (_, terminal):
            read(terminal, 5)
            for count, line in enumerate(lines, 1):
                os.write(terminal, line.encode() + b"\r")
                read_until(terminal, lambda count=count: len(self.model.questions) >= count)
                read(terminal, 2)

    def stored(self, text):
        """Whether one of the files in which conversations are kept has a text."""
        store = self.home / self.peer.store
        files = [path for path in store.rglob("*") if path.is_file()] if store.is_dir() else store.parent.glob(store.name + "*")
        return any(text.encode() in path.read_bytes() for path in files)


def exit_status(process, seconds):
    """How a process ended, or None if it does not end within this many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    return None


def read_until(terminal, done):
    """What arrives on a terminal until something is done, or does not happen in time."""
    shown, late = b"", time.monotonic() + LIMIT
    while not done() and time.monotonic() < late:
        shown += read(terminal, 0.1)
        time.sleep(0.02)  # once the other end is closed, nothing is waited for
    return shown


# What a program may ask a terminal, and what it answers: where the cursor is, and what kind it is of.
REPORTS = {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?6c"}


def read(terminal, seconds):
    """What arrives on a terminal within this many seconds, or until its other end is closed."""
    shown = b""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            try:
                piece = os.read(terminal, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
            for question, report in REPORTS.items():
                os.write(terminal, report * piece.count(question))
    return shown
