"""Odd files where a conversation belongs, and state that cannot be used."""

from steps import CURRENT, OPENAI, SESSIONS, case, prepare, q, write

from .fixtures import ODD_FILES, USABLE, current

ACTIONS = ["--history", "--history -j", "--last", "--list -j", "--status", "--clear"]


def table():
    for name, content in ODD_FILES.items():
        there = write(CURRENT, content, mtime=1_600_000_000)
        yield case(f"odd-{name}-follow", there, q("-f more"))
        yield case(f"odd-{name}-new", there, q("new"))
        yield case(f"odd-{name}-again", there, q("--again"))
        yield case(f"odd-{name}-copy", there, q("--copy branch"), q("-s branch more"))
        yield case(f"odd-{name}-named", write(f"{SESSIONS}/work.json", content), q("-s work more"))
        yield case(f"odd-{name}-actions", there, *map(q, ACTIONS))
    for name in USABLE:
        there = write(CURRENT, ODD_FILES[name])
        yield case(f"odd-{name}-native", there, q("-f more"), env={**OPENAI, "Q_HISTORY": "messages"})
        yield case(f"odd-{name}-undo", there, q("--undo"), q("--undo"), q("-f more"))
    for name, make in {"folder": "mkdir", "fifo": "mkfifo"}.items():
        there = prepare(f"mkdir -p {SESSIONS}; {make} {CURRENT} {SESSIONS}/work.json")
        for args in ["-f more", "new", "--undo", "--clear --all --yes", "-s current x", "-s work x", "--copy work", *ACTIONS]:
            yield case(f"{name}-in-place{args}", there, q(args))
    yield from unusable_state()


def unusable_state():
    troubles = {
        "state-home-a-file": ("touch state/q", {}),
        "state-home-dev-null": ("", {"XDG_STATE_HOME": "/dev/null"}),
        "sessions-a-file": ("mkdir -p state/q; touch state/q/sessions", {}),
        "sessions-dangling": ("mkdir -p state/q; ln -s nothing state/q/sessions", {}),
        "swept-a-folder": ("mkdir -p state/q/swept", {}),
        "temporary-left": (f"mkdir -p {SESSIONS}; echo half >{SESSIONS}/.tmp; echo half >{SESSIONS}/.tmp-9", {}),
        "temporary-a-link": (f"mkdir -p {SESSIONS}; echo mine >home/x; ln -s ../../../home/x {SESSIONS}/.tmp", {}),
        "home-missing": ("", {"HOME": "@ROOT@/nowhere", "XDG_STATE_HOME": None, "XDG_CONFIG_HOME": None}),
    }
    for name, (script, env) in troubles.items():
        there = prepare(script)
        for args in ["new", "-f more", "-s work one", "-j new"]:
            yield case(f"{name}-{args}", there, q(args), env={**OPENAI, **env})
        yield case(f"{name}-actions", there, *map(q, [*ACTIONS, "--undo", "--clear --all --yes"]), env={**OPENAI, **env})
    yield case("sessions-removed-between", q("one"), prepare(f"rm {CURRENT}"), q("-f two"), q("--last"))
    foreign = prepare(f"mkdir -p {SESSIONS}/sub.json; echo x >{SESSIONS}/notes.txt; echo x >{SESSIONS}/backup.json~")
    yield case("foreign-files", current(), foreign, q("--clear"), q("--clear --all --yes"))
