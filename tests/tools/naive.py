"""The confined recipes of the manual, and recipes without any precaution: confinement alone has to hold what the trials of
recipes.py try."""

import glob
import json
import os
import pathlib
import re
import shlex
import socket

import recipes
from trial import check
from trials import SECRET, Scripted, Trial

# Of each recipe its run and input as somebody in a hurry would write them, and what a confined one reads ({home} is the user's).
NAIVE = {
    "date.calendar": ('["date", "{when}", "{file}"]', "when, file?", []),
    "notes.find": ('["rg", "{words}", "{path}", "{type}", "{limit}", "/home/me/notes"]', "words, path?, type?, limit?", ["/home/me/notes"]),
    "notes.read": ('["cat", "{file}"]', "file", ["/home/me/notes"]),
    "journal.find": ('["journalctl", "{since}", "{level}", "{limit}", "{words}", "{unit}", "{file}", "{directory}", "--no-pager"]',
                     "since?, level?, limit?, words?, unit?, file?, directory?", ["/home/me/journal", "/home/me/bin"]),
    "web.page": ('["curl", "-sS", "{title}"]', "title", []),
    "git.log": ('["git", "log", "{words}", "{limit}", "{format}", "-p", "--ext-diff", "--show-signature"]', "words?, limit?, format?",
                ["/home/me/repository"]),
    "git.grep": ('["git", "grep", "-n", "{text}"]', "text", ["/home/me/repository"]),
    "books.sql": ('["sqlite3", "-csv", "/home/me/books.db", "{query}"]', "query", ["/home/me/books.db"]),
    "sales.sql": ('["duckdb", "-csv", "-readonly", "/home/me/sales.duckdb", "-c", "{query}"]', "query",
                  ["/home/me/sales.duckdb", "/proc", "/sys/fs/cgroup"]),
    "python.run": ('["/usr/bin/python3", "-c", "{code}"]', "code", ["/home/me/data"]),
    "orders.sql": ('["{psql}", "-w", "--csv", "-c", "{query}", "host=localhost dbname=orders user=reader"]', "query", ["/home/me/.pgpass"]),
}
# What a confined one can still do, without which its failures would mean nothing.
WORKS = {
    "date.calendar": ("calendar", {"when": "--date=2026-12-24"}, "Dec"), "notes.find": ("find", {"words": "milk"}, "buy milk"),
    "journal.find": ("find", {}, "all is well"), "books.sql": ("sql", {"query": "SELECT name FROM customers"}, "Bob"),
    "sales.sql": ("sql", {"query": "SELECT name FROM customers"}, "Bob"), "python.run": ("run", {"code": "print(2 ** 100)"}, "12676"),
    "orders.sql": ("sql", {"query": "SELECT name FROM customers"}, "Bob"), "web.page": ("page", {"title": "--version"}, "curl"),
}
NETWORK = ("web.page", "orders.sql")
# The confined recipes of the manual: how each begins, and the call that it takes in place of one of the other recipe, of whose
# arguments there are the values.
CONFINED = {
    "notes.find": ("notes]", lambda command, values: ("find", {"words": values[0]})),
    "notes.read": ("notes]", lambda command, values: ("read", {"file": values[0]})),
    "journal.find": ("journal.find]", lambda command, values: ("find", {"options": values})),
    "git]": ("git.run]", lambda command, values: ("run", {"arguments": [command, *values]})),
    "books.sql": ("shop]", lambda command, values: ("sql", {"query": values[0]})),
    "sales.sql": ("sales.sql]", lambda command, values: ("sql", {"query": values[0]})),
    "python.run": ("python.run]", lambda command, values: ("run", {"code": values[0]})),
}
# What each trial of these has to print at least.
PRINTS = {
    "notes": ["todo.md:1:buy milk", "buy milk\nand"], "journal": ["disk is full"], "git": ["Add the first file", "a.txt:-- two {x}"],
    "sqlite": ['{"name":"Bob"}'], "duckdb": ["name\nBob"], "python": ["1267650600228229401496703205376"],
}


class Naive(Trial):
    """A user with naive recipes. A trial's own checks of how the recipes of the manual fail say nothing of these: what counts is
    that no private file is read and nothing outside changes."""

    is_naive = True

    def __init__(self, q, home, results, confined):
        super().__init__(q, home, results)
        self.confined, self.tried, self.through, self.limit = confined, 0, 0, 0
        self.name = ""

    def recipe(self, name):
        self.name = name
        if name == "git]":
            sections = [self.section(f"git.{command}", f"[tools.git.{command}]") for command in ("log", "grep")]
            return "[tools.git]\ncwd = '.'\n" + "".join(sections)
        return self.section(name, f"[tools.{name}]")

    def section(self, name, head):
        run, names, reads = NAIVE[name]
        program = sorted(glob.glob("/usr/lib/postgresql/*/bin/psql"))
        run = run.replace("{psql}", program[-1] if program else "psql")
        lines = [head, f"run = {run}", f'input = "{names}"', "dashes = true", 'timeout = "20s"']
        if self.confined:
            network = ", network = true" if name in NETWORK else ""
            lines += ["reads = true", f"confine = {{ read = {json.dumps(reads)}{network} }}"]
        if name == "orders.sql":
            lines.append('env = { PGPASSFILE = "/home/me/.pgpass" }')
        return ("\n".join(lines) + "\n").replace("/home/me", str(self.home))

    def start(self, recipe, calls, directory=None, options=()):
        more = ["--no-save"] if self.confined else ["--no-save", "--yes"]
        return super().start(recipe, calls, directory, [*more, *(option for option in options if option != "--yes")])

    def call(self, recipe, calls, **more):
        before = self.snapshot()
        results = super().call(recipe, calls, **more)
        if self.confined and not all(pathlib.Path(path).exists() for path in read_in(recipe)):
            check(f"{self.name}: where there is nothing to read, nothing runs", not results, self.results)
        elif len(results) != len(calls):
            check(f"{self.name}: q runs all calls ({len(results)} of {len(calls)})", False, self.results)
        told = [attempt for attempt, (text, _) in zip(calls, results) if SECRET in text]
        changed = sorted(path for path in before.keys() | self.snapshot().keys() if before.get(path) != self.snapshot().get(path))
        self.tried += len(calls)
        self.through += len(told) + len(changed)
        if self.confined:
            check(f"{self.name}: {len(calls)} attempts read nothing" + "".join(f"\n        {attempt}" for attempt in told), not told,
                  self.results)
            check("and change nothing" + "".join(f"\n        {path}" for path in changed), not changed, self.results)
        return results

    def works(self, recipe, calls):
        """The naive form is not expected to print what the recipe prints, but something."""
        command, arguments, words = WORKS[self.name]
        results = super().call(recipe, [(command, arguments)])
        holds = words in results[0][0]
        check(f"{self.name}: the naive form works" + ("" if holds else f": {results}"), holds, self.results)

    def fails(self, recipe, command, argument, attempts):
        calls = [(command, attempt if isinstance(attempt, dict) else {argument: attempt}) for attempt in attempts]
        self.call(recipe, self.possible(recipe, calls))
        if not self.confined:
            return
        # The same by a shell, as a word of the program and as code.
        words = [attempt for attempt in attempts if isinstance(attempt, str) and "\0" not in attempt]
        run = json.loads(re.findall(r"run *= (\[[^]]*\])", recipe)[0])
        program = " ".join(shlex.quote(word) for word in run if "{" not in word)
        shell = self.shell(recipe)
        self.by_shell(shell, [("run", {"code": code}) for word in words for code in (word, f"{program} {shlex.quote(word)}")])

    def possible(self, recipe, calls):
        """Those calls whose arguments the recipe has."""
        known = set(re.findall(r'input = "([^"]*)"', recipe)[0].replace("?", "").replace(" ", "").split(","))
        return [(name, arguments) for name, arguments in calls if arguments.keys() <= known]

    def by_shell(self, shell, calls):
        self.call(shell, calls)

    def shell(self, recipe):
        confine = re.findall(r"^confine *= .*$|^env = .*$", recipe, re.MULTILINE)
        lines = ["[tools.shell.run]", 'run = ["sh", "-c", "{code}"]', 'timeout = "20s"', "dashes = true", "reads = true"]
        return "\n".join([*lines, *confine]) + "\n"

    def check(self, what, holds):
        pass

    def snapshot(self):
        """What is in the home of this user, but for what q itself keeps there."""
        found = {}
        for path in self.home.rglob("*"):
            if not {".cache", ".config", ".local"} & set(path.relative_to(self.home).parts):
                about = path.lstat()
                content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
                found[str(path)] = (about.st_mode, about.st_uid, about.st_gid, about.st_mtime_ns if path.is_file() else 0, hash(content))
        return found


class Confined(Naive):
    """A user with the confined recipes of the manual."""

    def __init__(self, q, home, results):
        super().__init__(q, home, results, True)
        self.printed = ""

    def recipe(self, name):
        self.name = name
        recipe = self.block(f"[tools.{CONFINED[name][0]}", confined=True).replace("/home/me", str(self.home))
        return recipe.replace("shop.db", "books.db").replace("/var/log/journal", f"{self.home}/journal")

    def call(self, recipe, calls, **more):
        change = CONFINED[self.name][1]
        results = super().call(recipe, [change(command, list(arguments.values())) for command, arguments in calls], **more)
        self.printed += "".join(text for text, _ in results)
        return results

    def works(self, recipe, calls):
        self.call(recipe, [(command, arguments) for command, arguments, _ in calls])

    def possible(self, recipe, calls):
        return calls

    def by_shell(self, shell, calls):
        Naive.call(self, shell, calls)


def python(trial):
    """Code that prints the secret if it can do what it must not."""
    directory = trial.home / "data"
    directory.mkdir()
    (directory / "link").symlink_to(trial.home / "private")
    (directory / "directory").symlink_to(trial.home)
    (directory / "kept").write_text("1\n", encoding="utf-8")
    recipe = trial.recipe("python.run")
    trial.works(recipe, [("run", {"code": "print(2 ** 100)"}, "1267650600228229401496703205376"),
                         ("run", {"code": f"print(open('{directory}/kept').read())"}, "1")])
    home, private, target = trial.home, trial.home / "private", trial.home / "target"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(f"{home}/socket")
        local.listen()
        done = f"; print({SECRET[:3]!r} + {SECRET[3:]!r})"
        trial.fails(recipe, "run", "code", [
            f"print(open('{private}').read())", f"print(open('{directory}/link').read())",
            f"print(open('{directory}/directory/private').read())",
            f"print(open('{directory}/../private').read())", f"import os; os.chdir('{home}'); print(open('private').read())",
            f"import subprocess; print(subprocess.getoutput('cat {private}'))", f"import mmap; f = open('{private}'); print(f.read())",
            f"import ctypes; c = ctypes.CDLL(None); b = bytes(99); print(c.open(b'{private}', 0)); c.read(3, b, 99); print(b)",
            f"import os; os.symlink('{private}', 'x'); print(open('x').read())",
            f"import os; os.link('{private}', 'x'); print(open('x').read())",
            f"open('{target}', 'w'){done}", f"open('{directory}/kept', 'a').write('2'){done}", f"open('{directory}/new', 'x'){done}",
            f"import os; os.remove('{directory}/kept'){done}", f"import os; os.rename('{directory}/kept', '{target}'){done}",
            f"import os; os.chmod('{directory}/kept', 0o777){done}", f"import os; os.utime('{directory}/kept'){done}",
            f"import os; os.truncate('{directory}/kept', 0){done}", f"import os; os.mkdir('{target}'){done}",
            f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]})){done}",
            f"import socket; socket.socket(socket.AF_UNIX).connect('{home}/socket'){done}",
            f"import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 53)){done}",
            f"import os; os.kill({os.getpid()}, 0){done}", f"import os; os.kill(1, 0){done}",
            f"open('/proc/{os.getpid()}/environ').read(){done}",
            f"import os; os.setpriority(os.PRIO_PROCESS, {os.getpid()}, 1){done}",
        ])


def read_in(recipe):
    """The paths that a recipe may read."""
    return [path for paths in re.findall(r"read = (\[.*?\])", recipe) for path in json.loads(paths)]


TRIALS = (recipes.date, recipes.notes, recipes.journal, recipes.web, recipes.git, recipes.sqlite, recipes.duckdb, recipes.postgres, python)


def try_recipes(q, directory, results, duckdb):
    """Tries all that recipes.py has, and code; how many tries there were."""
    count = 0
    for trial in TRIALS:
        name = trial.__name__
        through = {}
        for kind in ("free", "naive", "manual"):
            # What these would do without confinement may reach beyond the user's home.
            if kind == "free" and trial in (recipes.journal, recipes.web):
                continue
            if kind == "manual" and name not in PRINTS:
                continue
            print(f"--- {name}: {kind}")
            home = directory / f"{name}-{kind}"
            (home / "bin").mkdir(parents=True)
            (home / "bin/duckdb").symlink_to(duckdb)
            user = Confined(q, home, results) if kind == "manual" else Naive(q, home, results, kind == "naive")
            trial(user)
            through[kind] = user.through
            if kind != "free":
                count += user.tried
            if kind == "manual":
                for words in PRINTS[name]:
                    check(f"{name}: the recipe of the manual prints {words!r}", words in user.printed, results)
        if "free" in through:
            check(f"{name}: unconfined, {through['free']} get through", through["free"], results)
    return count
