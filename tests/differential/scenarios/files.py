"""Odd files where a conversation belongs, and state that cannot be used."""

from steps import CURRENT, OPENAI, SESSIONS, Scenario, fifo, folder, hold_lock, link, q, release_lock, remove, write
from steps import finish, start, wait_for_words

from .fixtures import ODD_FILES, USABLE, current, session


def table():
    damaged_at = 1_600_000_000
    for name, content in ODD_FILES.items():
        there = write(CURRENT, content, mtime=damaged_at)
        yield Scenario(f"odd-{name}-follow", [there, q("-f", "more")])
        yield Scenario(f"odd-{name}-new", [there, q("new")])
        yield Scenario(f"odd-{name}-named", [write(f"{SESSIONS}/work.json", content), q("-s", "work", "more")])
        yield Scenario(
            f"odd-{name}-actions",
            [
                there,
                q("--history"),
                q("--history", "-j"),
                q("--last"),
                q("--list", "-j"),
                q("--status"),
                q("--clear"),
            ],
        )
    for name in USABLE:
        yield Scenario(
            f"odd-{name}-native",
            [write(CURRENT, ODD_FILES[name]), q("-f", "more")],
            env={**OPENAI, "Q_HISTORY": "messages"},
        )
        yield Scenario(f"odd-{name}-undo", [write(CURRENT, ODD_FILES[name]), q("--undo"), q("--undo"), q("-f", "more")])
    for name, there in {"folder": folder, "fifo": fifo}.items():
        for args in [
            ["-f", "more"],
            ["new"],
            ["--history"],
            ["--last"],
            ["--undo"],
            ["--list"],
            ["--clear"],
            ["--status"],
            ["--clear", "--all"],
            ["-s", "current", "x"],
        ]:
            yield Scenario(f"{name}-in-place-{'-'.join(args).replace('--', '')}", [there(CURRENT), q(*args)])
    yield Scenario("folder-in-place-named", [folder(f"{SESSIONS}/work.json"), q("-s", "work", "one")])
    yield from unusable_state()
    yield from locks()


def unusable_state():
    troubles = {
        "state-home-a-file": ([write("state/q", "")], {}),
        "state-home-dev-null": ([], {"XDG_STATE_HOME": "/dev/null"}),
        "sessions-a-file": ([write("state/q/sessions", "")], {}),
        "sessions-dangling": ([folder("state/q"), link("state/q/sessions", "nothing")], {}),
        "lock-a-folder": ([folder("state/q/lock")], {}),
        "lock-a-fifo": ([fifo("state/q/lock")], {}),
        "lock-a-link": ([folder("state/q"), link("state/q/lock", "@ROOT@/home/lock")], {}),
        "swept-a-folder": ([folder("state/q/swept")], {}),
        "temporary-a-folder": ([folder(f"{SESSIONS}/.tmp")], {}),
        "temporary-left": ([write(f"{SESSIONS}/.tmp", "half"), write(f"{SESSIONS}/.tmp-9", "half")], {}),
        "temporary-a-link": (
            [folder(SESSIONS), write("home/precious", "mine"), link(f"{SESSIONS}/.tmp", "@ROOT@/home/precious")],
            {},
        ),
        "home-missing": ([], {"HOME": "@ROOT@/nowhere", "XDG_STATE_HOME": None, "XDG_CONFIG_HOME": None}),
    }
    for name, (steps, env) in troubles.items():
        for what, args in {
            "new": ["new"],
            "follow": ["-f", "more"],
            "named": ["-s", "work", "one"],
            "json": ["-j", "new"],
        }.items():
            yield Scenario(f"{name}-{what}", [*steps, q(*args)], env={**OPENAI, **env})
        yield Scenario(
            f"{name}-actions",
            [
                *steps,
                *[q(action) for action in ["--history", "--last", "--undo", "--list", "--status", "--clear"]],
                q("--clear", "--all"),
            ],
            env={**OPENAI, **env},
        )
    yield Scenario(
        "lock-a-folder-displaced", [current(), folder("state/q/lock"), q("new"), q("-f", "more"), q("--undo")]
    )
    yield Scenario("sessions-removed-between", [q("one"), remove(CURRENT), q("-f", "two"), q("--last")])
    yield Scenario(
        "foreign-files",
        [
            write(f"{SESSIONS}/notes.txt", "x"),
            write(f"{SESSIONS}/backup.json~", "x"),
            folder(f"{SESSIONS}/sub.json"),
            current(),
            q("--clear"),
            q("--clear", "--all"),
        ],
    )
    yield Scenario("second-name-left", [session("session_20200101100000"), q("-f", "more")])
    yield Scenario("full-disk-limit", [current(), q("new")], env={**OPENAI, "TMPDIR": "/nowhere"})


def locks():
    yield Scenario("lock-held", [current(), hold_lock(), q("-f", "more"), release_lock()])
    yield Scenario("lock-held-new", [current(), hold_lock(), q("-v", "new"), release_lock(), q("--history")])
    yield Scenario("lock-held-undo", [current(), hold_lock(), q("--undo"), release_lock(), q("--undo")])
    yield Scenario("lock-held-clear", [current(), hold_lock(), q("--clear"), release_lock(), q("--clear")])
    yield Scenario("lock-held-read", [current(), hold_lock(), q("--history"), q("--last"), q("--status")])
    yield Scenario(
        "lock-given-back",
        [current(), hold_lock(), start("a", "-f", "more"), wait_for_words("number 1."), release_lock(), finish("a")],
    )
    yield Scenario("lock-not-needed", [hold_lock(), q("--no-save", "one")])
