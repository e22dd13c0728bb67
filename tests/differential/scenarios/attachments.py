"""Files: text in the question, images and PDFs beside it, and what is kept of them and sent again."""

import base64
from signal import SIGINT

from replies import EVERY_DIALECT, HANG, OpenAi, failing, stream
from steps import (
    SESSIONS,
    Scenario,
    finish,
    folder,
    q,
    send_signal,
    start,
    wait_for_words,
    write,
)
from .fixtures import configured, conversation, current, message

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PNG = base64.b64decode(PIXEL)

# Files below the home folder that every kind of attachment is tried with.
FILES = {
    "one.rs": "fn one() {}\n",
    "two.rs": "two, no line end",
    "error.png": PNG,
    "page.pdf": "%PDF-1.4\nx",
    "photo.jpg": b"\xff\xd8\xff\xe0\0\x10JFIF\0",
    "moving.gif": "GIF89a\1\0\1\0",
    "modern.webp": b"RIFF\x10\0\0\0WEBPVP8 ",
    "text.png": "no image\n",
    "image.txt": PNG,
}
HERE = [write(f"home/{name}", content) for name, content in FILES.items()]

TERMINAL = {"terminal": True, "env": {"TERM": "dumb"}}

IMAGE = {"name": "error.png", "type": "image/png", "data": PIXEL}
WITH_IMAGE = [message("user", "What is it?", attachments=[IMAGE]), "A dot.", "What is two?", "Two is 2."]


def table():
    yield from dialects()
    yield from kept()


def dialects():
    kinds = {
        "text": ["-a", "one.rs"],
        "image": ["-a", "error.png"],
        "pdf": ["-a", "page.pdf"],
        "all": ["-a", "page.pdf", "-a", "one.rs", "-a", "photo.jpg", "-a", "moving.gif", "-a", "modern.webp"],
    }
    for dialect in EVERY_DIALECT:
        name, env = dialect.name, dialect.env
        here = [*configured(dialect), *HERE[:7]]
        for kind, args in kinds.items():
            yield Scenario(f"attach-{kind}-{name}", [*here, q(*args, "why?"), q("--history")], env=env)
            yield Scenario(f"attach-{kind}-dry-run-{name}", [*here, q("--dry-run", *args, "why?")], env=env)
        yield Scenario(f"attach-alone-{name}", [*here, q("-a", "error.png"), q("-f", "-a", "one.rs")], env=env)
        for form in ["prompt", "messages"]:
            yield Scenario(
                f"attach-then-follow-{form}-{name}",
                [
                    *here,
                    q("-a", "error.png", "why?"),
                    q("-f", "and this?"),
                    q("-f", "-a", "page.pdf", "-a", "one.rs", "and that?"),
                    q("-f", "--messages", "2", "no more?"),
                ],
                # Images do not count.
                env={**env, "Q_HISTORY": form, "Q_MAX_HISTORY": "200"},
            )
        yield Scenario(
            f"attach-refused-by-provider-{name}",
            [*here, q("-a", "error.png", "why?"), q("-a", "one.rs", "why?")],
            env=env,
            replies=[failing(400, "image input is not supported")] * 2,
        )
        yield Scenario(
            f"attach-gone-data-{name}",
            [
                *configured(dialect),
                current([message("user", "a", attachments=[{"name": "b.png", "type": "image/png"}]), "b"]),
                q("-f", "more"),
            ],
            env=env,
        )


def kept():
    """Conversations with attachments."""
    for name, args in {
        "history": ["--history"],
        "history-json": ["--history", "-j"],
        "last": ["--last"],
        "undo": ["--undo"],
        "undo-json": ["--undo", "-j"],
        "list": ["--list"],
        "list-json": ["--list", "-j"],
        "list-words": ["--list", "error.png"],
        "copy": ["--copy", "work"],
        "clear": ["--clear"],
    }.items():
        yield Scenario(f"attachments-{name}", [current(WITH_IMAGE), q(*args), q("--history")])
        yield Scenario(f"attachments-{name}-of-one", [current(WITH_IMAGE[:2]), q(*args), q("--history")])
    several = [
        IMAGE,
        {"name": "big\x1b[31m.pdf\n[x]", "type": "application/pdf", "data": "A" * 164_000},
        {"name": "old.webp", "type": "image/webp"},
    ]
    shown = [
        current([message("user", "", attachments=several), "b"]),
        *[q(action) for action in ["--history", "--list"]],
    ]
    yield Scenario("attachments-several", [*shown, q("--undo")])
    yield Scenario("attachments-several-terminal", [shown[0], q("--history", **TERMINAL), q("--list", **TERMINAL)])
    for name, attachments in {
        "empty": [],
        "text": "error.png",
        "number": [5],
        "without-name": [{"type": "image/png", "data": PIXEL}],
        "without-type": [{"name": "a.png", "data": PIXEL}],
        "other-type": [{"name": "a.mp3", "type": "audio/mpeg", "data": "AAAA"}],
        "no-base64": [{"name": "a.png", "type": "image/png", "data": "?!"}],
        "null-data": [{"name": "a.png", "type": "image/png", "data": None}],
        "unknown-fields": [{"x": 1.50, **IMAGE}],
    }.items():
        odd = conversation([message("user", "a", attachments=attachments), "b"])
        yield Scenario(
            f"odd-attachments-{name}",
            [
                write(f"{SESSIONS}/current.json", odd, mtime=1_600_000_000),
                q("--history"),
                q("-f", "more"),
                q("--undo"),
            ],
        )
    yield Scenario(
        "attachments-of-an-answer", [current(["a", message("assistant", "b", attachments=[IMAGE])]), q("-f", "c")]
    )
    for name, args, stdin in [
        ("plain", [], None),
        ("words", ["how?"], None),
        ("input", ["how?"], "log"),
        ("other-file", ["-a", "page.pdf"], None),
        ("other-text", ["-a", "two.rs"], "log"),
        ("stdin", ["-a", "-", "how?"], "fn one() {}"),
    ]:
        yield Scenario(
            f"attachments-again-{name}",
            [
                *HERE,
                q("-a", "error.png", "-a", "one.rs", "why?"),
                q("--again", *args, stdin=stdin),
                q("--history"),
            ],
        )
    yield Scenario(
        "attachments-interrupted",
        [
            *HERE,
            start("a", "-a", "error.png", "why?"),
            wait_for_words("first "),
            send_signal("a", SIGINT),
            finish("a"),
            q("--history"),
            q("-f", "go on"),
        ],
        replies=[stream([*OpenAi.begin(), OpenAi.text("first "), HANG])],
    )
    third = {"name": "c.png", "type": "image/png", "data": "A" * 3_000_000}
    large = conversation([message("user", "a", attachments=[third] * 3), "b"])
    yield Scenario(
        "attachments-grow-too-large",
        [
            write(f"{SESSIONS}/current.json", large),
            q("-f", "--messages", "0", "more", stdin="y" * 1_200_000),
        ],
    )
    yield Scenario("attachments-folder", [folder("home/a.png"), q("-a", "a.png", "why?")])
