"""Conversations by name, by path and by Q_SESSION."""

from server import failing
from steps import BOTH, OPENAI, SESSIONS, case, prepare, q, write

from .fixtures import conversation, current, pairs, session

NO_NAMES = "|.|..|.hidden|a/b|../x|a b|ä|current|current-1|a\n|\x1b[31m".split("|")
NAMES = "work|A-Z_0.9|-x|session_20200101100000000".split("|")

ACTIONS = ["--history", "--last", "--undo", "--clear", "--status"]


def table():
    yield from named()
    yield from slots()
    yield from paths()


def named():
    for name in [*NO_NAMES, "x" * 101]:
        steps = [q(["-s", name, "hello"], stdin="input"), q(["-s", name, "--history"])]
        yield case(f"no-name-{name[:20]!r}", *steps)
        yield case(f"no-slot-{name[:20]!r}", q("hello"), q("--history"), env={**OPENAI, "Q_SESSION": name})
    for name in [*NAMES, "x" * 100]:
        steps = [q([f"-s{name}", "one"]), q([f"--session={name}", "two"]), q(["-s", name, "--history"])]
        yield case(f"name-{name[:30]!r}", *steps)
    old = session("work", pairs(25), updated="2020-01-01T10:00:00.000Z")
    yield case("name-never-expires", old, q("-s work more"), q("-s work --messages 2 more"))
    yield case("name-follow", session("work"), q("-f -s work more"), q("-f -s other first"), q("--history"))
    gone = session("work", provider="nobody")
    yield case("name-provider-gone", gone, q("-s work more"), q("-s work -p openai more"))
    yield case("name-without-key", session("work", provider="gemini"), q("-s work more"))
    id = "session_20200101100000000"
    yield case("name-id", session(id), q(f"-s {id} more"), q(f"--undo -s {id}"), q("--list"))
    for option in ["-j", "-v", "--dry-run", "-x", "--no-save"]:
        steps = [q(f"{option} -s work two"), q(f"{option} -s new two"), q("--history")]
        yield case(f"name{option}", session("work"), current(), *steps)
    failed = [q("-s work more"), q("-s new more")]
    yield case("name-failed", session("work"), *failed, replies=[failing(500, "x")] * 2)
    for action in ACTIONS:
        yield case(f"name{action}", session("work"), current(), q(f"{action} -s work"), q(f"{action} -s missing"))


def slots():
    slot = {**OPENAI, "Q_SESSION": "tty-1"}
    yield case("slot", current(), q("one"), q("-f two"), q("three"), q("-s work one"), env=slot)
    yield case("slot-empty", q("one"), env={**OPENAI, "Q_SESSION": ""})
    yield case("slot-expires", current(slot="-tty-1", updated="@AGO 2000m@"), q("-f more"), env=slot)
    yield case("slot-damaged", write(f"{SESSIONS}/current-tty-1.json", "{"), q("-f more"), env=slot)
    yield case("slot-extract", q("-x one"), q("-j one"), env=slot)
    for action in [*ACTIONS, "--list"]:
        there = [current(), current(["in the slot", "yes"], slot="-tty-1")]
        yield case(f"slot{action}", *there, q(action), env=slot)


def paths():
    asked = [q("-s chat.json one"), q("-s ./chat.json two"), q(["-s", "@ROOT@/home/chat.json", "three"])]
    yield case("path", *asked)
    there = write("home/a.json", conversation())
    old = write("home/a b/ä.json", conversation(pairs(22), updated="2020-01-01T10:00:00.000Z"), mode=0o640)
    yield case("path-never-expires", old, q(["-v", "-j", "-s", "a b/ä.json", "more"]))
    for path in ["nowhere/a.json", "file/a.json", ".json", "home/.json", b"\xff.json".decode("utf-8", "surrogateescape")]:
        yield case(f"path-{path!r}", write("home/file", ""), q(["-s", path, "one"]))
    for name, content in {"damaged": "{", "version-2": '{"version":2}', "foreign": '{"name":"x"}'}.items():
        runs = [q("-s a.json one"), *[q(f"{action} -s a.json") for action in ACTIONS]]
        yield case(f"path-{name}", write("home/a.json", content), *runs)
    for action in ACTIONS:
        yield case(f"path{action}", there, q(f"{action} -s a.json"), q(f"{action} -s missing.json"))
    own = [q(["-s", f"@ROOT@/{SESSIONS}/{name}.json", "more"]) for name in ["work", "current"]]
    yield case("path-in-own-folder", session("work"), current(), *own, q("-f and more"))
    yield case("path-no-state", q("-s a.json one"), env={**OPENAI, "XDG_STATE_HOME": "/dev/null"})
    yield case("path-no-save", there, q("--no-save -s a.json one"))
    yield case("path-failed", there, q("-s a.json one"), replies=[failing(400, "x")])
    runs = [q(args) for args in ["-s link.json one", "-s link.json --history", "-s link.json --undo", "-s link.json --clear"]]
    for name, script in {
        "folder": "mkdir home/link.json",
        "fifo": "mkfifo home/link.json",
        "link": "ln -s a.json home/link.json",
        "elsewhere": "mkdir home/data; mv home/a.json home/data; ln -s data/a.json home/link.json",
        "absolute": "mkdir home/data; mv home/a.json home/data; ln -s @ROOT@/home/data/a.json home/link.json",
        "dangling": "ln -s nothing home/link.json",
        "loop": "ln -s link.json home/link.json",
        "chain": "ln -s a.json home/b.json; ln -s b.json home/link.json",
        "to-folder": "mkdir home/there; ln -s there home/link.json",
    }.items():
        yield case(f"path-a-{name}", there, prepare(script), *runs)
    for name in ["work", "current"]:
        linked = prepare(f"mkdir -p {SESSIONS}; ln -s @ROOT@/home/a.json {SESSIONS}/{name}.json")
        yield case(f"link-{name}", there, linked, q("-s work one"), q("-f one"), q("two"), q("--undo"))
    folder = prepare("mkdir home/state; ln -s @ROOT@/home/state state/q")
    yield case("link-state-folder", folder, q("one"), q("-f two"), env=BOTH)
