"""A user with tools, a scripted model that calls them, a private file, and a PostgreSQL of its own: what the trials of recipes and
of confinement share."""

import contextlib
import glob
import http.server
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "model"))
from scripted import Model  # noqa: E402
from trial import check  # noqa: E402

SECRET = "the-secret-of-another-file"


class Scripted(Model):
    """Makes the calls that it has been given, all at once, and then answers."""

    script = []
    results = []
    # The last request.
    asked = {}

    def calls(self, request):
        Scripted.asked = request
        last = request["messages"][-1]["content"]
        if isinstance(last, list) and last[0]["type"] == "tool_result":
            Scripted.results = [(text_of(block["content"]), block.get("is_error", False)) for block in last]
            return []
        return Scripted.script


def text_of(content):
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


class Trial:
    """A user with the recipes of the manual, a private file, and traps that leave a trace in `marks`."""

    # Whether its recipes are other ones than the manual's, so that only the attempts count.
    is_naive = False

    def __init__(self, q, home, results):
        self.q, self.home, self.results = q, home, results
        self.marks = home / "marks"
        # Of every run, unless a call has others.
        self.options = ()
        (home / "private").write_text(SECRET + "\n", encoding="utf-8")
        model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
        threading.Thread(target=model.serve_forever, daemon=True).start()
        self.environment = {
            "PATH": f"{home}/bin:{os.environ['PATH']}", "HOME": str(home), "ANTHROPIC_API_KEY": "sk-any-will-do",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.server_port}",
        }
        manual = subprocess.run([q, "--help"], capture_output=True, text=True, check=True).stdout
        lines = [line[4:] if line.startswith("    ") else "" for line in manual.splitlines()]
        self.blocks = "\n".join(lines).split("\n\n")

    def block(self, begin, confined=False):
        """The example that begins so."""
        blocks = (block.strip() for block in self.blocks)
        return next(block for block in blocks if block.startswith(begin) and ("\nconfine " in block) == confined)

    def recipe(self, name):
        """The recipe without confinement as the manual has it, in the home of this user."""
        return self.block(f"[tools.{name}").replace("/home/me", str(self.home))

    def trap(self, name):
        """A program that leaves a trace."""
        path = self.home / name
        path.write_text(f"#!/bin/sh\necho {name} >>{self.marks}\n", encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    def start(self, recipe, calls, directory=None, options=()):
        """Starts q, whose model makes these calls, each a command and its arguments."""
        config = self.home / ".config/q/config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(recipe, encoding="utf-8")
        section = recipe[len("[tools."):].split(".")[0].split("]")[0]
        Scripted.script = [(f"{section}__{command}", arguments) for command, arguments in calls]
        Scripted.results = []
        Scripted.asked = {}
        return subprocess.Popen([self.q, *options, "-t", section, "go"], env=self.environment, cwd=directory or self.home,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def call(self, recipe, calls, **more):
        """The results of calls, and whether each is an error. At most 32 run in a round."""
        results = []
        for begin in range(0, len(calls), 30):
            some = calls[begin:begin + 30]
            _, notes = self.start(recipe, some, **{"options": self.options, **more}).communicate(timeout=120)
            print(notes, end="")
            results += Scripted.results
        return results

    def check(self, what, holds):
        check(what, holds, self.results)

    def works(self, recipe, calls):
        """Checks that each call has its result. `calls` has of each the command, its arguments, and words of the result."""
        results = self.call(recipe, [(command, arguments) for command, arguments, _ in calls])
        for (command, arguments, words), (text, is_error) in zip(calls, results, strict=True):
            holds = words in text and not is_error
            self.check(f"{command} {json.dumps(arguments)} works" + ("" if holds else f": {text}"), holds)

    def fails(self, recipe, command, argument, attempts):
        """Checks that each attempt is an error that tells nothing."""
        calls = [(command, attempt if isinstance(attempt, dict) else {argument: attempt}) for attempt in attempts]
        for attempt, (text, is_error) in zip(attempts, self.call(recipe, calls), strict=True):
            holds = is_error and SECRET not in text
            self.check(f"fails: {json.dumps(attempt)}" + ("" if holds else f": {text}"), holds)
        self.check("no trap has caught anything", not self.marks.exists())


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


def database(home, script, path):
    """A database with the customers Ann and Bob."""
    rows = "CREATE TABLE customers (name TEXT, owes INT); INSERT INTO customers VALUES ('Ann', 0), ('Bob', 40);"
    run(*script, str(home / path), rows)
    return home / path


@contextlib.contextmanager
def cluster():
    """A PostgreSQL of its own: what runs a script there as its superuser, its directory and its port."""
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
    directory = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))
    # It refuses to run as root.
    user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
    if user:
        shutil.chown(directory, "nobody", "nogroup")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def program(name, *words):
        # What goes on running must not hold a pipe open.
        subprocess.run([f"{programs[-1]}/{name}", "-D", directory / "data", *words], check=True, cwd="/", stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, **user)

    def script(text, base="orders"):
        words = ["-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-h", str(directory), "-p", str(port), "-U", "postgres", base]
        return run("psql", *words, input=text)

    try:
        program("initdb", "-U", "postgres", "-E", "UTF8", "--no-locale", "--auth-local=trust", "--auth-host=scram-sha-256", "-N")
        program("pg_ctl", "-w", "-l", directory / "log", "-o", f"-F -p {port} -k {directory} -c listen_addresses=127.0.0.1", "start")
        try:
            yield script, directory, port
        finally:
            program("pg_ctl", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(directory)
