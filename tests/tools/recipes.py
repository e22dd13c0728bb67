"""Tries to break out of the manual's recipes without confinement, with their real programs: recipes.py PATH-OF-Q [TRIAL…]. A
scripted model makes the calls; those of a recipe with `reads = true` run without asking, so nothing else keeps them from doing
harm. naive.py makes these trials and the others of this file with confined recipes."""

import contextlib
import http.server
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from trials import SECRET, Scripted, Trial, cluster, database, run
from trial import finish  # noqa: E402, from the directory that trials adds

WIKIPEDIA = "en.wikipedia.org"


def date(trial):
    recipe = trial.recipe("date.calendar")
    trial.works(recipe, [("calendar", {"when": "2026-12-24"}, "Thursday, 24 December 2026"),
                         ("calendar", {"when": "24 December 2026 + 1 day"}, "Friday, 25")])
    private = trial.home / "private"
    trial.fails(recipe, "calendar", "when", [
        f"$(touch {trial.marks})", f"`touch {trial.marks}`", f"now; touch {trial.marks}", f"--file={private}",
        f"-f{private}", f"@{private}", f"now\n--file={private}", {"when": "now", "file": str(private)},
    ])


def notes(trial):
    directory = trial.home / "notes"
    directory.mkdir()
    (directory / "todo.md").write_text("buy milk\nand -- bread\n", encoding="utf-8")
    (directory / "link.md").symlink_to(trial.home / "private")
    (directory / "directory").symlink_to(trial.home)
    recipe = trial.recipe("notes.find")
    trial.works(recipe, [("find", {"words": "MILK"}, "todo.md:1:buy milk"), ("find", {"words": "-- b", "type": "md"}, "bread")])
    pre = trial.trap("pre")
    words = SECRET[:10]
    trial.fails(recipe, "find", "words", [
        words, f"--pre={pre}", f"-f{trial.home}/private", f"--file={trial.home}/private", "--hostname-bin=" + pre, "--follow",
        f"{words}\n{trial.home}", f"{words} {trial.home}", f"(?P<x>{words})/../..", "*",
        {"words": words, "type": f"md --pre={pre}"}, {"words": words, "type": "all"}, {"words": words, "limit": f"1 {pre}"},
        {"words": words, "limit": -1}, {"words": words, "path": str(trial.home)},
    ])
    one = trial.recipe("notes.read")
    print("    a file of the notes asks:")
    trial.fails(one, "read", "file", ["todo.md"])
    results = trial.call(one, [("read", {"file": file}) for file in ("todo.md", "../private", "link.md", "")], options=["--yes"])
    trial.check("and is below the directory", [is_error for _, is_error in results] == [False, True, True, True])


def journal(trial):
    """The real program, on a journal of its own."""
    directory = trial.home / "journal"
    directory.mkdir()
    entries = ""
    for seconds, (level, text) in enumerate([(3, "disk is full"), (6, "all is well")]):
        fields = {"__REALTIME_TIMESTAMP": 1_790_000_000_000_000 + seconds * 1_000_000, "__MONOTONIC_TIMESTAMP": seconds,
                  "_BOOT_ID": "0" * 31 + "1", "PRIORITY": level, "_SYSTEMD_UNIT": "disk.service", "MESSAGE": text}
        entries += "".join(f"{name}={value}\n" for name, value in fields.items()) + "\n"
    run("/lib/systemd/systemd-journal-remote", "-o", directory / "system.journal", "-", input=entries)
    program = trial.home / "bin/journalctl"
    program.write_text(f'#!/bin/sh\nexec {shutil.which("journalctl")} --directory={directory} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    before = files(directory)
    recipe = trial.recipe("journal.find")
    trial.works(recipe, [("find", {}, "all is well"), ("find", {"level": "err", "words": "disk"}, "disk is full"),
                         ("find", {"unit": "disk.service", "since": "2026-01-01"}, "all is well"), ("find", {"limit": 1}, "well")])
    target, private = trial.home / "target", trial.home / "private"
    trial.fails(recipe, "find", "since", [
        f"now --file={private}", f"now\n--cursor-file={target}", f"--cursor-file={target}", f"$(touch {trial.marks})", "",
        {"since": "now", "directory": "/"}, {"level": "err --rotate"}, {"level": "0"}, {"limit": -1}, {"limit": "1 --flush"},
        {"file": str(private)}, {"words": "("}, {"words": "a\0b"},
    ])
    for name in ("unit", "words"):
        calls = [("find", {name: option}) for option in
                 (f"--file={private}", "--vacuum-size=1", f"--cursor-file={target}", "x --rotate", "--sync")]
        texts = [text for text, _ in trial.call(recipe, calls)]
        trial.check(f"{name} is no option", all(re.fullmatch(r"\[exit status [01]\]\n", text) for text in texts))
    trial.check("nothing is written", files(directory) == before and not target.exists())


def files(directory):
    """The contents of all files of a directory."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


class Proxy(http.server.BaseHTTPRequestHandler):
    """A proxy that is also all hosts behind it, with a certificate for Wikipedia."""

    context = None
    hosts = []
    paths = []

    def do_CONNECT(self):
        Proxy.hosts.append(self.path)
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.connection = Proxy.context.wrap_socket(self.connection, server_side=True)
            self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb")
            self.close_connection = False

    def do_GET(self):
        Proxy.paths.append(self.path)
        moved = "moved" in self.path
        body = b"the page"
        self.send_response(302 if moved else 200)
        if moved:
            self.send_header("location", "https://elsewhere.example/")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    do_POST = do_PUT = do_GET

    def log_message(self, *_):
        pass


def web(trial):
    key, certificate = trial.home / "key.pem", trial.home / "certificate.pem"
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={WIKIPEDIA}",
        "-addext", f"subjectAltName=DNS:{WIKIPEDIA}", "-keyout", key, "-out", certificate)
    Proxy.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    Proxy.context.load_cert_chain(certificate, key)
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{proxy.server_port}"
    for name in ("HTTPS_PROXY", "http_proxy", "ALL_PROXY"):
        trial.environment[name] = address
    trial.environment["SSL_CERT_FILE"] = str(certificate)
    # Without -q, this file would send every page to another place, too.
    (trial.home / ".curlrc").write_text(f"output = {trial.marks}\nnext\nurl = https://elsewhere.example/\n", encoding="utf-8")
    recipe = trial.recipe("web.page")
    trial.works(recipe, [("page", {"title": "Rust (language)"}, "the page")])
    private, target = trial.home / "private", trial.home / "target"
    titles = [f"@{private}", f"x@{private}", f"=@{private}", "x&action=edit", "x#y", "../../x", "moved", "{a,b}[1-3]",
              "https://elsewhere.example/", "x https://elsewhere.example/", "x\nurl = https://elsewhere.example/",
              f"--output={target}", f"-K{private}", f"file://{private}", "@elsewhere.example/", "\\", "x\r\nHost: elsewhere"]
    trial.call(recipe, [("page", {"title": title}) for title in titles])
    begin = "/w/index.php?action=raw&title="
    trial.check("each title is one request", len(Proxy.paths) == len(titles) + 1)
    trial.check("all to one host", set(Proxy.hosts) == {f"{WIKIPEDIA}:443"})
    values = [path.removeprefix(begin) for path in Proxy.paths]
    trial.check("whose address is what the recipe has", all(re.fullmatch("[A-Za-z0-9%+._~-]+", value) for value in values))
    trial.check("nothing is written", not target.exists() and not trial.marks.exists())
    proxy.shutdown()


def git(trial):
    """A repository whose configuration, objects and directories are hostile."""
    directory = trial.home / "repository"
    directory.mkdir()
    user = {**trial.environment, "GIT_AUTHOR_NAME": "n", "GIT_AUTHOR_EMAIL": "e", "GIT_COMMITTER_NAME": "n",
            "GIT_COMMITTER_EMAIL": "e"}

    def own(*words, **options):
        return run("git", *words, cwd=directory, env=user, **options)

    (directory / "a.txt").write_text("one\n-- two {x}\n", encoding="utf-8")
    (directory / "lost.txt").write_text("lost\n", encoding="utf-8")
    (directory / ".gitattributes").write_text("*.txt diff=evil filter=evil\n", encoding="utf-8")
    (directory / "below").mkdir()
    (directory / "below/private").write_text("committed\n", encoding="utf-8")
    own("init", "-q", "-b", "main")
    own("add", ".")
    own("commit", "-qm", "Add the first file")
    # A commit that git takes for a signed one.
    text = own("cat-file", "commit", "HEAD")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----\n"
    signed = text.replace("\n\n", "\n" + signature + "\n", 1)
    own("update-ref", "HEAD", own("hash-object", "-t", "commit", "-w", "--stdin", input=signed).strip())
    # What is called a directory of the repository leads elsewhere.
    shutil.rmtree(directory / "below")
    (directory / "below").symlink_to(trial.home)
    values = {
        "core.pager": trial.trap("pager"), "pager.log": "true", "pager.grep": "true",
        "diff.evil.textconv": trial.trap("textconv"), "diff.external": trial.trap("external"),
        "core.fsmonitor": trial.trap("fsmonitor"), "log.showSignature": "true", "gpg.program": trial.trap("gpg"),
        "filter.evil.clean": trial.trap("clean"), "core.hooksPath": str(trial.home / "hooks"), "submodule.recurse": "true",
        "core.editor": trial.trap("editor"), "alias.log": f"!{trial.trap('alias')}", "alias.grep": f"!{trial.home}/alias",
    }
    (trial.home / "hooks").mkdir()
    for hook in ("post-index-change", "reference-transaction", "pre-auto-gc"):
        (trial.home / "hooks" / hook).symlink_to(trial.trap("hook"))
    for name, value in values.items():
        own("config", name, value)

    def sprung(*command):
        """The traps that catch this command."""
        trial.marks.unlink(missing_ok=True)
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(["git", *command], cwd=directory, env=user, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        caught = set(trial.marks.read_text(encoding="utf-8").split()) if trial.marks.exists() else set()
        trial.marks.unlink(missing_ok=True)
        return caught

    trial.check("the traps catch git log", sprung("log", "-p") >= {"gpg", "textconv"})
    trial.check("and git log with an external diff", "external" in sprung("log", "-p", "--ext-diff"))
    trial.check("and git grep", "fsmonitor" in sprung("grep", "one"))
    grep = subprocess.run(["git", "-c", "core.fsmonitor=", "grep", SECRET], cwd=directory, env=user, capture_output=True, text=True)
    trial.check("which reads a file elsewhere", SECRET in grep.stdout)

    recipe = trial.recipe("git]")
    attempts = [("log", {"words": words}) for words in
                ("first", "--output=" + str(trial.marks), "-p", "first\n--ext-diff", "%G?", "x --show-signature", "(")]
    attempts += [("log", {}), ("log", {"limit": -1}), ("log", {"limit": "1 -p"}), ("log", {"format": "%G?"})]
    attempts += [("grep", {"text": text}) for text in
                 ("two {x}", "-O" + trial.trap("opened"), f"--open-files-in-pager={trial.home}/opened", "--textconv", SECRET,
                  "committed", f"{SECRET}\n--no-index", "--no-index", "--untracked", f"-f{trial.home}/private", "")]

    def ask():
        results = trial.call(recipe, attempts, directory=directory)
        trial.check("no trap has caught anything", not trial.marks.exists())
        trial.check("nothing is read elsewhere", not any(SECRET in text for text, _ in results))
        return results

    results = ask()
    log, grep, committed = results[0], results[11], results[16]
    trial.check("git log works", log[0].endswith(" Add the first file\n") and not log[1])
    trial.check("git grep works", grep == ("a.txt:2:-- two {x}\n", False))
    trial.check("it searches what was added", committed == ("below/private:1:committed\n", False))

    print("    objects that are to be fetched, which runs a program:")
    lost = own("rev-parse", "HEAD:lost.txt").strip()
    (directory / ".git/objects" / lost[:2] / lost[2:]).unlink()
    own("config", "core.repositoryFormatVersion", "1")
    own("config", "extensions.partialClone", "origin")
    own("config", "remote.origin.promisor", "true")
    own("config", "protocol.ext.allow", "always")
    for kind, url in (("pack", str(directory)), ("ext", f"ext::{trial.trap('ext')} x"), ("ssh", "ssh://host/x")):
        own("config", "remote.origin.uploadpack", trial.trap("pack"))
        own("config", "core.sshCommand", trial.trap("ssh"))
        own("config", "remote.origin.url", url)
        trial.check(f"the trap {kind} catches git grep", kind in sprung("grep", "--cached", "one"))
        ask()


GOOD = [
    ("sql", {"query": "SELECT name FROM customers WHERE owes > 0"}, "name\nBob\n"),
    ("sql", {"query": "-- all\nSELECT count(*) AS n FROM customers"}, "n\n2\n"),
    ("sql", {"query": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) SELECT max(n) AS m FROM t"}, "m\n9\n"),
    ("sql", {"query": "SELECT 'it''s \\ $$ {x} `id` é' AS t"}, "it's \\ $$ {x} `id` é"),
]

# What no database may do for a query; the program of each has more of its own.
WRITES = [
    "DELETE FROM customers", "INSERT INTO customers VALUES ('Eve', 1)", "UPDATE customers SET owes = 0", "DROP TABLE customers",
    "CREATE TABLE t (a INT)", "SELECT 1; DELETE FROM customers", "BEGIN; DELETE FROM customers; COMMIT",
    "COMMIT; DELETE FROM customers", "DELETE FROM customers RETURNING *", "CREATE VIEW v AS SELECT 1", "VACUUM", "", ";",
]


def sqlite(trial):
    books = database(trial.home, ["sqlite3"], "books.db")
    database(trial.home, ["sqlite3"], "other.db")
    private, target = trial.home / "private", trial.home / "target"
    spied = run("sqlite3", "-safe", "-readonly", books, f"SELECT CAST(data AS TEXT) FROM fsdir('{private}')")
    trial.check("the program sqlite3 reads a private file in spite of -safe", SECRET in spied)
    recipe = trial.recipe("books.sql")
    before = books.read_bytes()
    print("    a query asks:")
    trial.fails(recipe, "sql", "query", [query["query"] for _, query, _ in GOOD])
    trial.options = ["--yes"]
    trial.works(recipe, GOOD)
    trial.fails(recipe, "sql", "query", WRITES + [
        f"SELECT CAST(data AS TEXT) FROM fsdir('{private}')", f"SELECT readfile('{private}')", f"SELECT writefile('{target}', 'x')",
        f"SELECT edit('x', 'touch {target}')", "SELECT load_extension('x')", f"ATTACH '{target}' AS t",
        f"ATTACH '{trial.home}/other.db' AS t", f"VACUUM INTO '{target}'", f".shell touch {target}", f" .output {target}",
        f"SELECT 1;\n.shell touch {target}", f"CREATE VIRTUAL TABLE temp.z USING zipfile('{target}')",
        f"SELECT * FROM zipfile('{private}')", "PRAGMA query_only = 0", "PRAGMA writable_schema = 1", "PRAGMA journal_mode = WAL",
        f"PRAGMA temp_store_directory = '{trial.home}'", "SELECT * FROM pragma_database_list", "SELECT * FROM pragma_journal_mode",
        "CREATE TEMP TABLE t (a)", f"CREATE VIRTUAL TABLE temp.c USING csv(filename='{private}')",
        "CREATE VIRTUAL TABLE temp.f USING fts5(a)", "EXPLAIN DELETE FROM customers", "ANALYZE", "REINDEX", "DETACH main",
        "SAVEPOINT s", "ALTER TABLE customers ADD COLUMN x", f"--help; SELECT readfile('{private}')",
        f"SELECT * FROM 'file:{trial.home}/other.db?mode=rwc'.customers", "SELECT name FROM customers; SELECT 2",
    ])
    trial.check("the file is what it was", books.read_bytes() == before and not target.exists())
    books.unlink()
    trial.fails(recipe, "sql", "query", ["SELECT 1 FROM customers"])
    trial.check("no file is made where there is none", not books.exists())


def duckdb(trial):
    program = str(trial.home / "bin/duckdb")
    sales = database(trial.home, [program, "-no-init"], "sales.duckdb")
    other = database(trial.home, [program, "-no-init"], "other.duckdb")
    copy = trial.home / "copy.duckdb"
    shutil.copy(sales, copy)
    over = f"COPY (SELECT 1) TO '{copy}' (USE_TMP_FILE false)"
    subprocess.run([program, "-no-init", "-readonly", "-safe", copy, over], capture_output=True, check=True)
    trial.check("a query destroys the file in spite of -readonly and -safe", copy.read_bytes() != sales.read_bytes())
    (trial.home / ".duckdbrc").write_text(f".shell touch {trial.marks}\n", encoding="utf-8")
    (trial.home / "schema.sql").write_text("CREATE TEMP TABLE leak AS SELECT 1;", encoding="utf-8")
    (trial.home / "load.sql").write_text(f"SELECT '{SECRET}';", encoding="utf-8")
    private, target = trial.home / "private", trial.home / "target"
    before = sales.read_bytes()
    recipe = trial.recipe("sales.sql")
    trial.works(recipe, GOOD)
    # An empty query and a checkpoint do nothing.
    writes = [query for query in WRITES if query.strip("; ") not in ("", "VACUUM")]
    trial.fails(recipe, "sql", "query", writes + [
        f"SELECT * FROM read_text('{private}')", f"SELECT * FROM read_blob('{private}')", f"SELECT * FROM '{private}.csv'",
        f"SELECT * FROM read_csv('{private}')", f"SELECT * FROM read_json('{private}')", f"SELECT * FROM glob('{trial.home}/*')",
        f"SELECT * FROM sniff_csv('{private}')", f"SELECT * FROM parquet_metadata('{private}')", "SELECT * FROM read_csv('/dev/stdin')",
        f"COPY customers TO '{target}'", f"COPY (SELECT 1) TO '{sales}.wal'", f"COPY (SELECT 1) TO '{sales}' (USE_TMP_FILE false)",
        "COPY (SELECT 1) TO '/dev/stdout'", f"EXPORT DATABASE '{target}'", f"IMPORT DATABASE '{trial.home}'",
        f"PREPARE p AS COPY customers TO '{target}'; EXECUTE p", "INSTALL httpfs", "LOAD httpfs", f"LOAD '{private}'",
        f"ATTACH '{other}' AS o", f"ATTACH '{sales}' AS s (READ_WRITE)", f"ATTACH '{target}' AS t (READ_WRITE)",
        f"ATTACH ':memory:' AS m (READ_WRITE); USE m; DETACH sales; ATTACH '{sales}' AS s (READ_WRITE); DELETE FROM s.customers",
        "SET enable_external_access = true", "RESET disabled_filesystems", "SET lock_configuration = false",
        f"SET temp_directory = '{target}'", f"SET log_query_path = '{target}'", f"PRAGMA profiling_output = '{target}'",
        f"SET secret_directory = '{target}'", "CREATE PERSISTENT SECRET s (TYPE s3, KEY_ID 'a')",
        f"CALL enable_logging(storage = 'file', storage_path = '{target}')", "SELECT getenv('HOME')", f".shell touch {target}",
        f"\n.shell touch {target}", f"SELECT 1;\n.shell touch {target}", f".output {target}", f".read {private}", f".open {other}",
        f"SELECT 1; .log {target}", "SELECT * FROM 'https://elsewhere.example/x.csv'",
    ])
    left = [trial.home / "sales.duckdb.wal", target]
    trial.check("the file is what it was", sales.read_bytes() == before and not any(path.exists() for path in left))
    sales.unlink()
    trial.fails(recipe, "sql", "query", ["SELECT 1 FROM customers"])
    trial.check("no file is made where there is none", not sales.exists())


def postgres(trial):
    with cluster() as (script, directory, port):
        script("CREATE DATABASE orders", "postgres")
        script("""CREATE TABLE customers (name TEXT, owes INT); INSERT INTO customers VALUES ('Ann', 0), ('Bob', 40);
            CREATE SEQUENCE numbers; CREATE PROCEDURE pay() LANGUAGE plpgsql AS 'BEGIN COMMIT; DELETE FROM customers; END';
            GRANT CREATE ON SCHEMA public TO PUBLIC;""")
        script(trial.block("CREATE ROLE"))
        pass_file = trial.home / ".pgpass"
        pass_file.write_text(f"localhost:{port}:orders:reader:...\n", encoding="utf-8")
        pass_file.chmod(0o600)
        (trial.home / ".psqlrc").write_text(f"\\! touch {trial.marks}\n", encoding="utf-8")
        recipe = trial.recipe("orders.sql").replace("host=localhost", f"host=localhost port={port}")
        private, target = trial.home / "private", directory / "target"
        touch = f"touch {trial.marks}"
        trial.works(recipe, GOOD)
        state = "SELECT count(*), sum(owes) FROM customers; SELECT count(*) FROM pg_class; SELECT * FROM pg_largeobject_metadata; " \
            "SELECT last_value, is_called FROM numbers; SELECT rolname, rolpassword FROM pg_authid; SELECT * FROM pg_db_role_setting"
        before = script(state)
        trial.fails(recipe, "sql", "query", WRITES + [
            f"\\! {touch}", f"SELECT 1 \\! {touch}", f"SELECT 1\n\\! {touch}", f"\\copy customers to '{trial.marks}'",
            f"\\copy customers to program '{touch}'", f"\\o {trial.marks}", f"SELECT 1 \\g {trial.marks}", f"SELECT 1 \\g |{touch}",
            f"SELECT '{touch}' \\gexec", f"\\d `{touch}`", f"\\i {private}", f"\\set x `{touch}`", "\\c postgres", f"\\e {private}",
            f"\\lo_import {private}", f"'; \\! {touch}", f"$$; \\! {touch}", "SELECT :'query'",
            f"COPY customers TO PROGRAM '{touch}'", f"COPY customers FROM PROGRAM '{touch}'", f"COPY (SELECT 1) TO '{target}'",
            "COPY customers TO STDOUT", "COPY customers FROM STDIN", f"SELECT pg_read_file('{private}')",
            f"SELECT pg_read_binary_file('{private}')", "SELECT pg_ls_dir('/')", f"SELECT pg_stat_file('{private}')",
            f"SELECT lo_export(1, '{target}')", f"SELECT lo_import('{private}')", "SELECT dblink('dbname=orders', 'DELETE FROM customers')",
            "BEGIN READ WRITE", "SET TRANSACTION READ WRITE", "COMMIT", "ROLLBACK", "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
            "SET ROLE postgres", "RESET ROLE", "SET SESSION AUTHORIZATION postgres", "ALTER ROLE reader PASSWORD 'x'",
            "ALTER ROLE reader SUPERUSER", "ALTER ROLE reader SET default_transaction_read_only = off",
            "SELECT set_config('transaction_read_only', 'off', true)", "SELECT set_config('role', 'postgres', false)",
            "SELECT set_config('session_authorization', 'postgres', false)",
            "DO $$ BEGIN SET default_transaction_read_only = off; COMMIT; CREATE TABLE t (a INT); END $$", "CALL pay()",
            "WITH d AS (DELETE FROM customers RETURNING *) SELECT * FROM d", "EXPLAIN ANALYZE DELETE FROM customers",
            "SELECT * FROM customers FOR UPDATE", "SELECT nextval('numbers')", "SELECT setval('numbers', 9)", "CREATE TEMP TABLE t (a INT)",
            "SELECT 1 AS a INTO TEMP t", "CREATE EXTENSION dblink", "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "LOAD 'x'", "NOTIFY x", "LISTEN x", "LOCK customers", "PREPARE p AS DELETE FROM customers", "DECLARE c CURSOR FOR SELECT 1",
            "SELECT query_to_xml('DELETE FROM customers', true, true, '')", "SELECT rolpassword FROM pg_authid",
            "SELECT * FROM pg_shadow", "SELECT pg_reload_conf()", "SELECT pg_switch_wal()", "SELECT * FROM pg_hba_file_rules",
            "GRANT postgres TO reader", "TRUNCATE customers", "COMMENT ON TABLE customers IS 'x'", "CHECKPOINT",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'postgres' OR backend_type LIKE 'auto%'",
        ])
        # These give a result, and none of it is kept, because nothing is committed.
        kept = ["SELECT lo_create(0)", "SELECT lo_from_bytea(0, 'x')", "SELECT pg_notify('x', 'y')",
                "SELECT set_config('default_transaction_read_only', 'off', false)", "SELECT set_config('q.query', 'COMMIT', false)"]
        trial.call(recipe, [("sql", {"query": query}) for query in kept])
        trial.check("the database is what it was", script(state) == before and not target.exists())

        if trial.is_naive:
            return
        sleep = [("sql", {"query": "SELECT pg_sleep(600)"})]

        def sessions(wanted):
            """Whether there come to be so many sessions of the model's role."""
            for _ in range(1200):
                if script("SELECT count(*) FROM pg_stat_activity WHERE usename = 'reader'").strip() == wanted:
                    return True
                time.sleep(0.05)

        trial.call(recipe.replace("reads ", 'timeout = "1s"\nreads '), sleep)
        trial.check("a query whose time is up", "its timeout" in Scripted.results[0][0])
        trial.check("is cancelled", sessions("0"))
        running = trial.start(recipe, sleep)
        trial.check("a query runs", sessions("1"))
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
        trial.check("Ctrl-C ends q", running.returncode in (130, -signal.SIGINT))
        trial.check("and cancels it", sessions("0"))


# Those of the recipes that the manual has without confinement.
TRIALS = (date, web, postgres)


def main():
    q, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    sys.stdout.reconfigure(line_buffering=True)
    results = []
    with tempfile.TemporaryDirectory() as directory:
        # One home for each, so that the traps of one are not in the way of another.
        for trial in TRIALS:
            name = trial.__name__
            if wanted and name not in wanted:
                continue
            print(f"--- {name}")
            home = pathlib.Path(directory, name)
            (home / "bin").mkdir(parents=True)
            trial(Trial(q, home, results))
    finish(results)


if __name__ == "__main__":
    main()
