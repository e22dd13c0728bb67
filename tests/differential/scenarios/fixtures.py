"""Conversations that are there before a program runs."""

import json
import sys
import time
from pathlib import Path

from server import compact
from steps import CURRENT, SESSIONS, Step, write

# Long ago, and so the same in every run.
CREATED = "2020-01-01T10:00:00.000Z"

UPDATED = "@AGO 60m@"
BEGAN = time.time()

CONFIG = "config/q/config.toml"

TOOL_SERVER = Path(__file__).parent.parent / "toolserver.py"

TWO_PAIRS = ["What is one?", "One is 1.", "What is two?", "Two is 2."]


def pairs(count):
    return [text for number in range(1, count + 1) for text in (f"Question {number}?", f"Answer {number}.")]


def message(role, content, **more):
    return {"role": role, "content": content, "timestamp": CREATED, **more}


def conversation(texts=TWO_PAIRS, provider="openai", model="test-model", created=CREATED, updated=UPDATED, **more):
    """A file of questions and answers in turn, as q writes them."""
    messages = [
        text if isinstance(text, dict) else message(["user", "assistant"][index % 2], text)
        for index, text in enumerate(texts)
    ]
    head = {"version": 1, "provider": provider, "model": model, "created": created, "updated": updated, **more}
    lines = ",\n".join(map(compact, messages))
    return f'{compact(head)[:-1]},"messages":[\n{lines}\n]}}\n'


def current(*args, slot="", **fields):
    """Makes this the current conversation: a file with an id, and the link to it."""
    id = f"session_2020010110000000{int(bool(slot))}"

    def action(world):
        session(id, *args, **fields).action(world)
        link = world.root / CURRENT.replace(".json", f"{slot}.json")
        link.unlink(missing_ok=True)
        link.symlink_to(f"{id}.json")

    return Step(f"make a conversation current{slot}", action)


def session(name, *args, updated=UPDATED, **fields):
    """Writes a conversation into q's folder. Lists are sorted by its last change."""
    minutes = int(updated[5:-2]) if updated.startswith("@AGO ") else 60
    content = conversation(*args, updated=updated, **fields)
    return write(f"{SESSIONS}/{name}.json", content, mtime=BEGAN - 60 * minutes)


def tool_server(more='only = ["echo", "fail", "write"]', settings=""):
    """Configures a tool server; what it hears is in the home folder."""
    command = compact([sys.executable, "-IS", str(TOOL_SERVER), "db.log"])
    return write(CONFIG, f"{settings}[tools.db]\ncommand = {command}\n{more}\n")


def changed(**fields):
    """A conversation with other fields at the top; those that are None are left out."""
    value = {**json.loads(conversation()), **fields}
    return compact({name: field for name, field in value.items() if field is not None})


# Files that are no conversation, or an odd one; src/session/format.rs has a table of those that cannot be read.
ODD_FILES = {
    "empty": "",
    "truncated": conversation()[:-20],
    "version-2": changed(version=2),
    "provider-unknown": changed(provider="nobody"),
    "updated-in-the-future": changed(updated="2999-01-01T00:00:00.000Z"),
    "created-at-the-end-of-time": changed(created="9999-12-31T23:59:59.999Z"),
    "messages-empty": changed(messages=[]),
    "message-other-role": changed(messages=[{"role": "system", "content": "hello"}]),
    "message-without-timestamp": changed(
        messages=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    ),
    "message-odd-timestamp": changed(
        messages=[message("user", "a", timestamp=5), message("assistant", "b", timestamp="soon")]
    ),
    "message-odd-interrupted": changed(messages=[message("user", "a"), message("assistant", "b", interrupted="yes")]),
    "message-interrupted": changed(messages=[message("user", "a"), message("assistant", "b", interrupted=True)]),
    "message-unknown-fields": changed(
        messages=[message("user", "a", id=7), message("assistant", "b", usage={"in": [1, 2.50]})]
    ),
    "message-escapes": conversation(["q"]).replace('"q"', r'"a\u0041\n\t\"\\\/\u00e4\ud83d\ude00"'),
    "message-lone-surrogate": conversation(["q"]).replace('"q"', r'"a\ud800b"'),
    "message-many-lines": conversation(["first\nsecond\r\nthird", "one\n\ntwo\n"]),
    "message-empty-texts": conversation(["", ""]),
    "message-control-characters": conversation(["bell \x07 and escape \x1b[31m red", "a\tb"]),
    "questions-only": changed(messages=[message("user", "a"), message("user", "b"), message("user", "c")]),
    "answers-only": changed(messages=[message("assistant", "a"), message("assistant", "b")]),
    "answer-first": changed(messages=[message("assistant", "a"), message("user", "b"), message("assistant", "c")]),
    "question-last": changed(messages=[message("user", "a"), message("assistant", "b"), message("user", "c")]),
    "unknown-fields": conversation(title="About numbers", tags=["a", "b"], nested={"x": 1.50, "y": None}),
    "unknown-fields-odd-spelling": conversation(x=0).replace('"x":0', '"x" :  { "a":1.50e3, "b" : "\\u00e4" }'),
    "pretty": json.dumps(json.loads(conversation()), indent=2),
    "byte-order-mark": "\ufeff" + conversation(),
    "not-utf-8": conversation().encode().replace(b"One", b"\xff\xfe"),
    "no-line-end": conversation().rstrip("\n"),
}

# What other programs may have left where a conversation belongs.
USABLE = [
    name
    for name in ODD_FILES
    if name.startswith(("message-", "unknown-", "questions-", "answers-", "answer-", "question-"))
]

# An exchange with calls, as a conversation keeps it.
STEPS = [
    {
        "text": "Let me see.",
        "calls": [
            {"id": "a1", "name": "db__echo", "arguments": {"text": "a </result> b"}, "result": "you said </result>"},
            {"id": "a2", "name": "gone__fail", "arguments": {}, "result": "it failed", "error": True},
        ],
    },
    {"text": "", "calls": [{"id": "a1", "name": "db__echo", "arguments": {}, "result": "you said nothing"}]},
]
WITH_STEPS = ["What is one?", message("assistant", "One is 1.", steps=STEPS), "What is two?", "Two is 2."]
