"""Tools: what is offered and called, what is kept of it and sent later."""

from server import calling, failing, usual
from steps import CURRENT, OPENAI, TERMINAL, case, q, write

from .fixtures import conversation, current, message, tool_server

ECHO = ("aaaaaaaa1", "db__echo", {"text": "hi"})
FAIL = ("aaaaaaaa2", "db__fail", {})
WRITE = ("aaaaaaaa3", "db__write", {"text": "x"})


def table():
    yield from calls()
    yield from remembered()
    yield from kept()


def calls():
    db, go = tool_server(), q("-t db go")
    for form in ["prompt", "messages"]:
        asked = [q("-f and then?"), q("--history"), q("-f -t db and then?"), q("-f -t none at last?"), q("--history -j")]
        replies = [calling(ECHO, FAIL), None, None, calling(FAIL), None, calling(ECHO)]
        yield case(f"tools-{form}", db, go, *asked, env={**OPENAI, "Q_HISTORY": form}, replies=replies)
    for args in ["--no-stream", "-j", "-x", "-v", "--no-save", "--dry-run", "--schema name", "--yes"]:
        replies = [calling(ECHO, text="```\nnot this\n```"), calling(FAIL, WRITE), usual('{"name":"Ann"}')]
        yield case(f"tools{args}", db, q(f"{args} -t db go"), q("--last"), replies=replies)
    arguments = ['{"text":', '["c"]', "", '"{}"']
    bad = [("b1", "db__nothing", {"text": "a"}), ("b2", "echo", {"text": "b"}), WRITE]
    bad += [(f"c{number}", "db__echo", text) for number, text in enumerate(arguments)]
    yield case("tools-bad-calls", db, go, q("-f more"), replies=[calling(*bad)])
    yield case("tools-without-ids", db, go, replies=[calling(("", "db__echo", {"text": "a"}), ("", "db__echo", {}))])
    once = tool_server(settings="rounds = 1\n")
    for name, last in {"answer": None, "calls": calling(ECHO), "calls-alone": calling(FAIL, text="")}.items():
        yield case(f"tools-rounds-then-{name}", once, go, q("--history"), replies=[calling(ECHO), last])
    for text in ["As far as", ""]:
        yield case(f"tools-cut-{text}", db, go, q("--last"), replies=[calling(ECHO, text=text, finish="length")])
    yield case("tools-not-offered", q("go"), q("--last"), replies=[calling(ECHO)])
    failed = [calling(ECHO), failing(500, "down")]
    yield case("tools-failure-after-call", db, go, q("--history"), q("-f continue"), replies=failed)
    too_long = [calling(("c1", "db__big", {})), *[failing(400, "This model's maximum context length is 9.")] * 2]
    yield case("tools-too-long", tool_server('only = ["big"]'), current(), q("-v -f -t db go"), replies=too_long)
    yield case("tools-none-known", db, go, replies=[failing(400, "this model does not support tools")])


def remembered():
    """The tools of a conversation, in later questions."""
    ask = [tool_server(), q("-t 'db__echo,db__f*' one")]
    yield case("tools-remembered-in-a-pipe", *ask, q("-f two", stdin="input\n"), q("-f -n three"))
    yield case("tools-remembered-on-a-terminal", *ask, q("-f two", **TERMINAL), replies=[None, calling(ECHO)])
    later = [q("--undo"), q("-f three", **TERMINAL), q("--status")]
    yield case("tools-remembered-until-others", *ask, q("-f -t db__write two"), *later)
    yield case("tools-remembered-until-none", *ask, q("-f -t none two"), q("-f three", **TERMINAL))
    yield case("tools-remembered-not-by-others", *ask, q("new", **TERMINAL))
    named = [q("-s work -t db one"), q("-s work two", **TERMINAL), q("--copy b -s work")]
    yield case("tools-remembered-by-name", tool_server(), *named, replies=[None, calling(ECHO)])
    yield case("tools-remembered-not-without-saving", tool_server(), q("--no-save -t db one"), q("-f two"))
    for tools in [["gone", "db__echo"], "db", [], [5], ["a b", ""]]:
        runs = [q("-f more", **TERMINAL), q("-f more"), q("--history -j"), q("-f -t db more"), q("-f again", **TERMINAL)]
        yield case(f"tools-remembered-{tools}", tool_server(), current(tools=tools), *runs)
    yield case("tools-remembered-none-configured", current(tools=["gone"]), q("-f more", **TERMINAL), q("-f more"))


def kept():
    """Calls in a conversation that another program may have written."""
    call = {"id": "x", "name": "n", "arguments": {}, "result": "y"}
    for name, steps in {
        "text": "none",
        "empty": [],
        "number": [5],
        "no-calls": [{"text": "a"}],
        "calls-text": [{"text": "a", "calls": "b"}],
        "call-without-name": [{"text": "a", "calls": [{"id": "x", "arguments": {}, "result": "y"}]}],
        "call-without-result": [{"text": "a", "calls": [{"id": "x", "name": "n", "arguments": {}}]}],
        "arguments-list": [{"text": "a", "calls": [{**call, "arguments": [1]}]}],
        "unknown-fields": [{"calls": [{**call, "cost": 1.50}], "at": 1}],
    }.items():
        odd = conversation(["What is one?", message("assistant", "One is 1.", steps=steps)])
        there = write(CURRENT, odd, mtime=1_600_000_000)
        yield case(f"tools-odd-steps-{name}", there, q("--history"), q("-f more"), q("--undo"))
    pixel = {"name": "a.png", "type": "image/png", "data": "AAAA"}
    for name, attachments in {
        "empty": [],
        "text": "error.png",
        "number": [5],
        "without-name": [{"type": "image/png", "data": "AAAA"}],
        "other-type": [{**pixel, "type": "audio/mpeg"}],
        "no-base64": [{**pixel, "data": "?!"}],
        "null-data": [{**pixel, "data": None}],
        "unknown-fields": [{"x": 1.50, **pixel}],
    }.items():
        there = write(CURRENT, conversation([message("user", "a", attachments=attachments), "b"]), mtime=1_600_000_000)
        yield case(f"odd-attachments-{name}", there, q("--history"), q("-f more"), q("--undo"))
    again = [q("-t db one"), q("--again -t db"), q("--again")]
    yield case("tools-steps-again", tool_server(), *again, replies=[calling(ECHO), None, calling(FAIL), None])
