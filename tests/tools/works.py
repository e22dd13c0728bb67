"""Real programs that work confined: each row is a program, what it may reach, and what its result has."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

from trial import check
from trials import Scripted, Trial, cluster, database, run

PYTHON = os.path.realpath(sys.executable)


def call(trial, results, what, argv, words, read=(), write=(), more="", network=False):
    """Runs a program as a confined command, and checks its result."""
    reach = f"read = {json.dumps([str(path) for path in read])}, write = {json.dumps([str(path) for path in write])}"
    reach += ", network = true" if network else ""
    recipe = f"[tools.real.run]\nrun = {json.dumps([str(word) for word in argv])}\nreads = true\nconfine = {{ {reach} }}\n{more}\n"
    _, notes = trial.start(recipe, [("run", {})], options=["--no-save"]).communicate(timeout=120)
    works(what, words, notes, results)


def works(what, words, notes, results):
    """Checks that the call of the last run has a result with these words, which is no error."""
    text, is_error = Scripted.results[0] if Scripted.results else (notes, True)
    holds = words in text and not is_error
    check(f"{what} works confined" + ("" if holds else f": {text!r}"), holds, results)


def try_programs(q, directory, results, duckdb, modules):
    home = directory / "real"
    home.mkdir()
    trial = Trial(q, home, results)
    databases(trial, results, duckdb)
    repositories(trial, results)
    texts(trial, results)
    interpreters(trial, results, modules)
    postgres(trial, results)
    servers(trial, results, modules)


def databases(trial, results, duckdb):
    home = trial.home
    for kind in ("plain", "wal"):
        directory = home / kind
        directory.mkdir()
        books = database(home, ["sqlite3"], f"{kind}/books.db")
        if kind == "wal":
            run("sqlite3", books, "PRAGMA journal_mode = WAL")
        change = f"INSERT INTO customers VALUES ('Eve', 7); SELECT name FROM customers WHERE owes = 7"
        call(trial, results, f"sqlite3 that writes ({kind})", ["sqlite3", books, change], "Eve", write=[directory])
        check("and it is written", run("sqlite3", books, "SELECT count(*) FROM customers") == "3\n", results)
        # A reader of a WAL has to make the file of its index.
        reach = {"read": [books]} if kind == "plain" else {"write": [directory]}
        call(trial, results, f"sqlite3 that reads ({kind})", ["sqlite3", "-readonly", books, "SELECT name FROM customers"], "Bob", **reach)
    call(trial, results, "sqlite3 that sorts what does not fit", ["sqlite3", ":memory:",
         "PRAGMA cache_size = 10; PRAGMA temp_store = FILE; "
         "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 200000) "
         "SELECT count(*) FROM (SELECT DISTINCT hex(n * 7 % 200001) || 'xxxxxxxxxxxxxxxx' FROM t)"], "200000")
    directory = home / "duck"
    directory.mkdir()
    sales = database(home, [duckdb, "-no-init"], "duck/sales.duckdb")
    # Without these it aborts where there are control groups.
    groups = ["/proc", "/sys/fs/cgroup"]
    program = [os.path.realpath(duckdb), "-csv", "-readonly", sales, "-c", "SELECT name FROM customers WHERE owes > 0"]
    call(trial, results, "duckdb that reads", program, "Bob", read=[sales, *groups])
    change = "INSERT INTO customers VALUES ('Eve', 7); SELECT count(*) AS n FROM customers"
    program = [os.path.realpath(duckdb), "-csv", sales, "-c", change]
    call(trial, results, "duckdb that writes", program, "n\n3\n", read=groups, write=[directory])


def repositories(trial, results):
    directory = trial.home / "repository"
    directory.mkdir()
    (directory / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    run("git", "init", "-q", "-b", "main", cwd=directory)
    run("git", "add", ".", cwd=directory)
    run("git", "-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "Add the first file", cwd=directory)
    where = f"cwd = '{directory}'"
    call(trial, results, "git log", ["git", "log", "-p", "--stat"], "Add the first file", read=[directory], more=where)
    call(trial, results, "git grep", ["git", "grep", "-n", "two"], "a.txt:2:two", read=[directory], more=where)
    (directory / "a.txt").write_text("three\n", encoding="utf-8")
    call(trial, results, "git diff", ["git", "diff"], "+three", read=[directory], more=where)
    commit = ["git", "-c", "user.name=n", "-c", "user.email=e", "commit", "-am", "Change it"]
    call(trial, results, "git commit", commit, "Change it", write=[directory], more=where)


def texts(trial, results):
    notes = trial.home / "notes"
    notes.mkdir()
    (notes / "todo.md").write_text("buy milk\n", encoding="utf-8")
    (notes / "a.json").write_text('{"a": {"b": 42}}', encoding="utf-8")
    call(trial, results, "rg", ["rg", "-n", "milk", notes], "todo.md:1:buy milk", read=[notes])
    call(trial, results, "jq", ["jq", "-r", ".a.b", notes / "a.json"], "42", read=[notes / "a.json"])
    call(trial, results, "grep", ["grep", "-rn", "milk", notes], "buy milk", read=[notes])
    call(trial, results, "find", ["find", notes, "-name", "*.md"], "todo.md", read=[notes])
    call(trial, results, "awk", ["awk", "{ print $2 }", notes / "todo.md"], "milk", read=[notes])
    call(trial, results, "sed", ["sed", "s/milk/bread/", notes / "todo.md"], "buy bread", read=[notes])
    call(trial, results, "sort", ["sort", notes / "todo.md"], "buy milk", read=[notes])
    call(trial, results, "tar", ["tar", "-cvf", "notes.tar", "-C", notes, "."], "todo.md", read=[notes])
    script = "cat <<X | tr a-z A-Z >out && cat out && echo $HOME $TMPDIR\nhere\nX"
    call(trial, results, "a shell", ["sh", "-c", script], "HERE", read=[notes])
    call(trial, results, "date", ["date", "--date=2026-12-24", "+%A"], "Thursday")
    page = trial.home / "page.1"
    page.write_text(".TH PAGE 1\n.SH NAME\npage \\- of a manual\n", encoding="utf-8")
    call(trial, results, "man", ["man", page], "of a manual", read=[page])
    directory = trial.home / "journal"
    directory.mkdir()
    entry = "__REALTIME_TIMESTAMP=1790000000000000\n__MONOTONIC_TIMESTAMP=1\n_BOOT_ID=00000000000000000000000000000001\nMESSAGE=well\n\n"
    run("/lib/systemd/systemd-journal-remote", "-o", directory / "system.journal", "-", input=entry)
    call(trial, results, "journalctl", ["journalctl", "-q", "--no-pager", f"--directory={directory}"], "well", read=[directory])


def interpreters(trial, results, modules):
    code = "import tempfile, threading, subprocess, multiprocessing.dummy, sqlite3, ssl, mcp; t = tempfile.NamedTemporaryFile(); " \
        "print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout)"
    base = pathlib.Path(sys.base_prefix)
    call(trial, results, "python3", ["/usr/bin/python3", "-I", "-c", code.replace(", mcp", "")], "child")
    call(trial, results, "python3 with packages", [modules["python"], "-c", code], "child",
         read=[pathlib.Path(modules["python"]).parent.parent, base])
    script = "const fs = require('fs'), os = require('os'); fs.writeFileSync(os.tmpdir() + '/x', 'y'); " \
        "require('child_process').exec('echo child', (e, out) => console.log(out))"
    call(trial, results, "node", ["node", "-e", script], "child")


def postgres(trial, results):
    with cluster() as (script, _, port):
        script("CREATE DATABASE orders", "postgres")
        script("CREATE TABLE customers (name TEXT); INSERT INTO customers VALUES ('Ann'); CREATE ROLE reader LOGIN PASSWORD '...'; "
               "GRANT SELECT ON customers TO reader")
        pass_file = trial.home / ".pgpass"
        pass_file.write_text(f"localhost:{port}:orders:reader:...\n", encoding="utf-8")
        pass_file.chmod(0o600)
        argv = ["psql", "-X", "-w", "--csv", "-c", "SELECT name FROM customers", f"host=localhost port={port} dbname=orders user=reader"]
        more = f'env = {{ PGPASSFILE = "{pass_file}" }}'
        call(trial, results, "psql", argv, "Ann", read=[pass_file], more=more, network=True)
        call(trial, results, "psql by its own path", [shutil.which("psql", path=os.path.dirname(newest_psql())), *argv[1:]], "Ann",
             read=[pass_file], more=more, network=True)


def newest_psql():
    found = pathlib.Path("/usr/lib/postgresql").glob("*/bin/psql")
    return str(max(found, key=lambda path: int(path.parts[4])))


def servers(trial, results, modules):
    """Tool servers of both registries."""
    home = trial.home
    files = home / "files"
    files.mkdir()
    # No message about the file has these words.
    (files / "new.txt").write_text("fresh bread", encoding="utf-8")
    node, python = pathlib.Path(modules["node"]), modules["python"]
    packages = [pathlib.Path(python).parent.parent, sys.base_prefix]
    repository = home / "repository"
    rows = {
        "files": (["node", node / "@modelcontextprotocol/server-filesystem/dist/index.js", files], "read_text_file",
                  {"path": str(files / "new.txt")}, "fresh bread", [node, files]),
        "everything": (["node", node / "@modelcontextprotocol/server-everything/dist/index.js"], "echo", {"message": "hello"},
                       "hello", [node]),
        "time": ([python, "-m", "mcp_server_time"], "get_current_time", {"timezone": "Asia/Tokyo"}, "+09:00", packages),
        "git": ([python, "-m", "mcp_server_git"], "git_log", {"repo_path": str(repository)}, "Change it", [*packages, repository]),
    }
    for name, (command, tool, arguments, words, read) in rows.items():
        recipe = f"[tools.{name}]\ncommand = {json.dumps([str(word) for word in command])}\nallow = ['*']\n" \
            f"confine = {{ read = {json.dumps([str(path) for path in read])} }}\n"
        _, notes = trial.start(recipe, [(tool, arguments)], options=["--no-save"]).communicate(timeout=120)
        works(f"the tool server {name}", words, notes, results)
        listed = subprocess.run([trial.q, "--list-tools", "-t", name, "-j"], env=trial.environment, capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, timeout=120, check=False)
        check("and lists its tools" + ("" if f"{name}__{tool}" in listed.stdout else f": {listed.stderr}"),
              f"{name}__{tool}" in listed.stdout, results)
