"""Conversations by name, by path and by Q_SESSION."""

from replies import DIALECTS, failing
from steps import ANTHROPIC, OPENAI, SESSIONS, Scenario, chmod, copy, fifo, folder, link, q, sh, write

from .fixtures import conversation, current, pairs, session

BOTH = {**OPENAI, **ANTHROPIC}

NO_NAMES = {
    "empty": "",
    "dot": ".",
    "dots": "..",
    "hidden": ".hidden",
    "slash": "a/b",
    "up": "../x",
    "blank": "a b",
    "umlaut": "ä",
    "current": "current",
    "current-slot": "current-1",
    "line-end": "a\n",
    "too-long": "x" * 101,
    "escape": "\x1b[31m",
}
NAMES = {"plain": "work", "letters": "A-Z_0.9", "longest": "x" * 100, "dash": "-x", "aside": "session_20200101100000"}


def table():
    yield from named()
    yield from slots()
    yield from paths()


def named():
    for name, text in NO_NAMES.items():
        yield Scenario(f"no-name-{name}", [q("-s", text, "hello", stdin="input"), q("-s", text, "--history")])
        yield Scenario(f"no-slot-{name}", [q("hello"), q("--history")], env={**OPENAI, "Q_SESSION": text})
    for name, text in NAMES.items():
        yield Scenario(
            f"name-{name}", [q(f"-s{text}", "one"), q(f"--session={text}", "two"), q("-s", text, "--history")]
        )
    for dialect in DIALECTS:
        yield Scenario(
            f"name-{dialect.name}",
            [q("-s", "work", "one"), q("-s", "work", "-m", "other", "two"), q("-s", "work", "three")],
            env=dialect.env,
        )
    yield Scenario(
        "name-never-expires", [session("work", pairs(25), updated="2020-01-01T10:00:00.000Z"), q("-s", "work", "more")]
    )
    yield Scenario("name-follow", [session("work"), q("-f", "-s", "work", "more"), q("-f", "-s", "other", "first")])
    yield Scenario("name-keeps-its-provider", [session("work"), q("-s", "work", "more")], env=BOTH)
    yield Scenario(
        "name-other-provider",
        [session("work"), q("-s", "work", "-p", "anthropic", "more"), q("-s", "work", "again")],
        env=BOTH,
    )
    yield Scenario(
        "name-other-provider-and-model",
        [session("work"), q("-s", "work", "-p", "anthropic", "-m", "x", "more")],
        env=BOTH,
    )
    yield Scenario("name-same-provider", [session("work"), q("-s", "work", "-p", "openai", "more")], env=BOTH)
    yield Scenario(
        "name-ignores-variables",
        [session("work"), q("-s", "work", "more")],
        env={**BOTH, "Q_PROVIDER": "anthropic", "Q_MODEL": "other"},
    )
    yield Scenario(
        "name-new-with-variables",
        [q("-s", "work", "more")],
        env={**BOTH, "Q_PROVIDER": "anthropic", "Q_MODEL": "other"},
    )
    yield Scenario(
        "name-provider-gone",
        [session("work", provider="nobody"), q("-s", "work", "more"), q("-s", "work", "-p", "openai", "more")],
    )
    yield Scenario("name-without-key", [session("work", provider="gemini"), q("-s", "work", "more")])
    yield Scenario(
        "name-aside-continued", [session("session_20200101100000"), q("-s", "session_20200101100000", "more")]
    )
    yield Scenario("name-json", [q("-j", "-s", "work", "one"), q("-j", "-s", "work", "two")])
    yield Scenario("name-verbose", [session("work"), q("-v", "-s", "work", "two")])
    yield Scenario(
        "name-dry-run", [session("work"), q("--dry-run", "-s", "work", "two"), q("--dry-run", "-s", "new", "two")]
    )
    yield Scenario(
        "name-failed",
        [session("work"), q("-s", "work", "more"), q("-s", "new", "more")],
        replies=[failing(500, "x")] * 2,
    )
    yield Scenario("name-extract-hint", [q("-s", "work", "-x", "one")])
    yield Scenario("name-does-not-touch-current", [current(), q("-s", "work", "one"), q("--history")])
    yield Scenario("name-messages", [session("work", pairs(8)), q("-s", "work", "--messages", "2", "more")])
    yield Scenario(
        "name-branch",
        [
            current(),
            copy(f"{SESSIONS}/current.json", f"{SESSIONS}/rebase.json"),
            q("-s", "rebase", "one"),
            q("-f", "two"),
        ],
    )
    for action in ["--history", "--last", "--undo", "--clear", "--status"]:
        for there in [True, False]:
            steps = [session("work")] if there else []
            yield Scenario(
                f"name{action}-{'there' if there else 'missing'}", [*steps, current(), q(action, "-s", "work")]
            )


def slots():
    slot = {**OPENAI, "Q_SESSION": "tty-1"}
    yield Scenario("slot", [current(), q("one"), q("-f", "two"), q("three")], env=slot)
    yield Scenario("slot-empty", [q("one")], env={**OPENAI, "Q_SESSION": ""})
    yield Scenario("slot-and-name", [q("-s", "work", "one")], env=slot)
    yield Scenario("slot-expires", [session("current-tty-1", updated="@AGO 2000m@"), q("-f", "more")], env=slot)
    yield Scenario("slot-pairs", [session("current-tty-1", pairs(5)), q("-f", "more")], env={**slot, "Q_PAIRS": "2"})
    yield Scenario("slot-damaged", [write(f"{SESSIONS}/current-tty-1.json", "{"), q("-f", "more")], env=slot)
    yield Scenario("slot-extract-hint", [q("-x", "one")], env=slot)
    yield Scenario("slot-json", [q("-j", "one")], env=slot)
    for action in ["--history", "--last", "--undo", "--clear", "--status", "--list"]:
        yield Scenario(
            f"slot{action}", [current(), session("current-tty-1", ["in the slot", "yes"]), q(action)], env=slot
        )


def paths():
    yield Scenario(
        "path", [q("-s", "chat.json", "one"), q("-s", "./chat.json", "two"), q("-s", "@ROOT@/home/chat.json", "three")]
    )
    yield Scenario("path-there", [write("home/a b/ä.json", conversation(), mode=0o640), q("-s", "a b/ä.json", "more")])
    yield Scenario("path-verbose", [write("home/a.json", conversation()), q("-v", "-j", "-s", "a.json", "more")])
    yield Scenario(
        "path-never-expires",
        [write("home/a.json", conversation(pairs(22), updated="2020-01-01T10:00:00.000Z")), q("-s", "a.json", "more")],
    )
    yield Scenario("path-missing-folder", [q("-s", "nowhere/a.json", "one")])
    yield Scenario("path-in-a-file", [write("home/file", ""), q("-s", "file/a.json", "one")])
    yield Scenario("path-only-ending", [q("-s", ".json", "one"), q("-s", "home/.json", "one")])
    yield Scenario("path-folder", [folder("home/a.json"), q("-s", "a.json", "one"), q("-s", "a.json", "--history")])
    yield Scenario("path-fifo", [fifo("home/a.json"), q("-s", "a.json", "one"), q("-s", "a.json", "--last")])
    yield Scenario(
        "path-damaged", [write("home/a.json", "{"), q("-s", "a.json", "one"), q("-s", "a.json", "--history")]
    )
    yield Scenario("path-version-2", [write("home/a.json", '{"version":2}'), q("-s", "a.json", "one")])
    yield Scenario("path-not-utf-8", [q("-s", b"\xff.json".decode("utf-8", "surrogateescape"), "one")])
    yield Scenario("path-in-own-folder", [session("work"), q("-s", f"@ROOT@/{SESSIONS}/work.json", "more")])
    yield Scenario(
        "path-of-current", [current(), q("-s", f"@ROOT@/{SESSIONS}/current.json", "more"), q("-f", "and more")]
    )
    yield Scenario(
        "path-modes",
        [
            write("home/a.json", conversation(), mode=0o664),
            q("-s", "a.json", "one", umask=0o077),
            chmod("home/a.json", 0o666),
            q("-s", "a.json", "two"),
        ],
    )
    yield Scenario("path-no-state", [q("-s", "a.json", "one")], env={**OPENAI, "XDG_STATE_HOME": "/dev/null"})
    yield Scenario("path-no-save", [write("home/a.json", conversation()), q("--no-save", "-s", "a.json", "one")])
    yield Scenario(
        "path-failed", [write("home/a.json", conversation()), q("-s", "a.json", "one")], replies=[failing(400, "x")]
    )
    yield Scenario(
        "link",
        [
            write("home/real.json", conversation()),
            link("home/link.json", "real.json"),
            q("-s", "link.json", "one"),
            q("-s", "link.json", "--history"),
        ],
    )
    yield Scenario(
        "link-elsewhere",
        [
            write("home/data/real.json", conversation()),
            link("home/link.json", "@ROOT@/home/data/real.json"),
            q("-s", "link.json", "one"),
        ],
    )
    yield Scenario("link-dangling", [link("home/link.json", "nothing"), q("-s", "link.json", "one")])
    yield Scenario(
        "link-dangling-relative",
        [folder("home/sub"), link("home/sub/link.json", "../there.json"), q("-s", "sub/link.json", "one")],
    )
    yield Scenario("link-loop", [link("home/loop.json", "loop.json"), q("-s", "loop.json", "one")])
    yield Scenario(
        "link-chain",
        [
            write("home/c", conversation()),
            link("home/b.json", "c"),
            link("home/a.json", "b.json"),
            q("-s", "a.json", "one"),
        ],
    )
    yield Scenario("link-to-folder", [folder("home/there"), link("home/a.json", "there"), q("-s", "a.json", "one")])
    yield Scenario(
        "link-named",
        [
            write("home/real.json", conversation()),
            link(f"{SESSIONS}/work.json", "@ROOT@/home/real.json"),
            q("-s", "work", "one"),
        ],
    )
    yield Scenario(
        "link-current",
        [
            write("home/real.json", conversation()),
            link(f"{SESSIONS}/current.json", "@ROOT@/home/real.json"),
            q("-f", "one"),
        ],
    )
    yield Scenario(
        "link-current-displaced",
        [
            write("home/real.json", conversation()),
            link(f"{SESSIONS}/current.json", "@ROOT@/home/real.json"),
            q("one"),
            q("--undo"),
        ],
    )
    yield Scenario(
        "link-undo-and-clear",
        [
            write("home/real.json", conversation()),
            link("home/link.json", "real.json"),
            q("-s", "link.json", "--undo"),
            q("-s", "link.json", "--clear"),
        ],
    )
    yield Scenario(
        "link-state-folder", [folder("home/state"), link("state/q", "@ROOT@/home/state"), q("one"), q("-f", "two")]
    )
    for action in ["--history", "--last", "--undo", "--clear", "--status"]:
        for there in ["there", "missing", "damaged"]:
            steps = {
                "there": [write("home/a.json", conversation())],
                "missing": [],
                "damaged": [write("home/a.json", "{")],
            }
            yield Scenario(f"path{action}-{there}", [*steps[there], q(action, "-s", "a.json")])
    yield Scenario(
        "path-clear-foreign", [write("home/package.json", '{"name":"x"}'), q("--clear", "-s", "package.json")]
    )
    yield Scenario(
        "path-list-by-find", [session("work"), current(), sh("cd ../state/q/sessions && grep -l two *.json")]
    )
