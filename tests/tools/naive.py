"""The recipes of the manual without their precautions: confinement alone has to hold what the trials of recipes.py try."""

import glob
import json
import pathlib
import re
import shlex

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
    "sales.sql": ('["duckdb", "-csv", "-readonly", "/home/me/sales.duckdb", "-c", "{query}"]', "query", ["/home/me/sales.duckdb", "/proc", "/sys/fs/cgroup"]),
    "orders.sql": ('["{psql}", "-w", "--csv", "-c", "{query}", "host=localhost dbname=orders user=reader"]', "query", ["/home/me/.pgpass"]),
}
# What a confined one can still do, without which its failures would mean nothing.
WORKS = {
    "date.calendar": ("calendar", {"when": "--date=2026-12-24"}, "Dec"), "notes.find": ("find", {"words": "milk"}, "buy milk"),
    "journal.find": ("find", {}, "all is well"), "books.sql": ("sql", {"query": "SELECT name FROM customers"}, "Bob"),
    "sales.sql": ("sql", {"query": "SELECT name FROM customers"}, "Bob"),
    "orders.sql": ("sql", {"query": "SELECT name FROM customers"}, "Bob"), "web.page": ("page", {"title": "--version"}, "curl"),
}
NETWORK = ("web.page", "orders.sql")


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
            return "[tools.git]\ncwd = '.'\n" + "".join(self.section(f"git.{command}", f"[tools.git.{command}]") for command in ("log", "grep"))
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

    def start(self, recipe, calls, folder=None, options=()):
        more = ["--no-save"] if self.confined else ["--no-save", "--yes"]
        return super().start(recipe, calls, folder, [*more, *(option for option in options if option != "--yes")])

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
        check(f"{self.name}: the naive form works" + ("" if words in results[0][0] else f": {results}"), words in results[0][0], self.results)

    def fails(self, recipe, command, argument, attempts):
        calls = [(command, attempt if isinstance(attempt, dict) else {argument: attempt}) for attempt in attempts]
        known = set(re.findall(r'input = "([^"]*)"', recipe)[0].replace("?", "").replace(" ", "").split(","))
        calls = [(name, arguments) for name, arguments in calls if arguments.keys() <= known]
        self.call(recipe, calls)
        if not self.confined:
            return
        # The same by a shell, as a word of the program and as code.
        words = [attempt for attempt in attempts if isinstance(attempt, str) and "\0" not in attempt]
        program = " ".join(shlex.quote(word) for word in json.loads(re.findall(r"run = (\[.*\])", recipe)[0]) if "{" not in word)
        shell = self.shell(recipe)
        self.call(shell, [("run", {"code": code}) for word in words for code in (word, f"{program} {shlex.quote(word)}")])

    def shell(self, recipe):
        confine = re.findall(r"^confine = .*$|^env = .*$", recipe, re.MULTILINE)
        return "\n".join(['[tools.shell.run]', 'run = ["sh", "-c", "{code}"]', 'timeout = "20s"', "dashes = true", "reads = true", *confine]) + "\n"

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


def read_in(recipe):
    """The paths that a recipe may read."""
    return [path for paths in re.findall(r"read = (\[.*?\])", recipe) for path in json.loads(paths)]


def try_recipes(q, folder, results, duckdb):
    """Tries all that recipes.py tries; how many tries there were."""
    count = 0
    for trial in (recipes.date, recipes.notes, recipes.journal, recipes.web, recipes.git, recipes.sqlite, recipes.duckdb, recipes.postgres):
        through = {}
        for confined in (False, True):
            # What these would do without confinement may reach beyond the user's home.
            if not confined and trial in (recipes.journal, recipes.web):
                continue
            home = folder / f"{trial.__name__}-{'confined' if confined else 'free'}"
            (home / "bin").mkdir(parents=True)
            (home / "bin/duckdb").symlink_to(duckdb)
            naive = Naive(q, home, results, confined)
            trial(naive)
            through[confined] = naive.through
            if confined:
                count += naive.tried
        if False in through:
            check(f"{trial.__name__}: unconfined, {through[False]} get through", through[False], results)
    return count
