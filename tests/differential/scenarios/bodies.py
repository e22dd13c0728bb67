"""What is sent in each dialect, as --dry-run prints it."""

import base64

from steps import case, q, write

from .fixtures import WITH_STEPS, current, message, pairs, tool_server

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

# Files below the home folder that every kind of attachment is tried with.
FILES = {
    "one.rs": "fn one() {}\n",
    "two.rs": "two, no line end",
    "error.png": base64.b64decode(PIXEL),
    "page.pdf": "%PDF-1.4\nx",
    "photo.jpg": b"\xff\xd8\xff\xe0\0\x10JFIF\0",
    "moving.gif": "GIF89a\1\0\1\0",
    "modern.webp": b"RIFF\x10\0\0\0WEBPVP8 ",
    "text.png": "no image\n",
    "image.txt": base64.b64decode(PIXEL),
}
HERE = [write(f"home/{name}", content) for name, content in FILES.items()]

IMAGE = {"name": "error.png", "type": "image/png", "data": PIXEL}
WITH_IMAGE = [message("user", "What is it?", attachments=[IMAGE]), "A dot.", "What is two?", "Two is 2."]

DIALECTS = ["openai", "anthropic", "gemini", "responses"]
KEYS = {f"{name}_API_KEY": "sk-test-0123456789" for name in ["OPENAI", "ANTHROPIC", "GEMINI", "RESPONSES"]}
RESPONSES = """
[providers.responses]
api = "responses"
base_url = "@SERVER@/v1"
key_env = "RESPONSES_API_KEY"
model = "test-model"
"""

QUESTIONS = {
    "plain": ["what is a B-tree?"],
    "unicode": ["Ünïcödé 🦀 \u202e\n\t\"'\\"],
    "system": ["-S", 'a\n"b"\t', "hello"],
    "no-system": ["-S", "", "hello"],
    "model": ["-m", "some/model:7b", "hello"],
    "model-odd": ["-m", "models/ä b?x#y", "hello"],
    "effort": ["-e", "high", "hello"],
    "options": ["-o", "a.b=1", "-o", "temperature=0.5", "-o", "list=[1,2]", "hello"],
    "schema": ["--schema", "name, age: integer", "hello"],
    "not-streamed": ["--no-stream", "hello"],
    "tools": ["-t", "db", "go"],
    "text": ["-a", "one.rs", "-a", "two.rs", "why?"],
    "image": ["-a", "error.png", "why?"],
    "image-alone": ["-a", "error.png"],
    "pdf": ["-a", "page.pdf", "why?"],
    "all": "-a page.pdf -a one.rs -a photo.jpg -a moving.gif -a modern.webp why?".split(),
    "misnamed": "-a text.png -a image.txt why?".split(),
}

HISTORIES = {
    "two": pairs(2),
    "questions-in-a-row": [message("user", "a"), message("user", "b"), message("assistant", "c")],
    "answers-in-a-row": [message("user", "a"), message("assistant", "b"), message("assistant", "c")],
    "answer-first": [message("assistant", "a"), message("user", "b"), message("assistant", "c")],
    "question-last": [message("user", "a"), message("assistant", "b"), message("user", "c")],
    "interrupted": [message("user", "a"), message("assistant", "b", interrupted=True)],
    "empty-answer": [message("user", "a"), message("assistant", "")],
    "lines": [message("user", "a\nb\n"), message("assistant", "Human: c\n\nAssistant: d\n\n")],
    "unicode": [message("user", "ä🦀"), message("assistant", "\u202eé")],
    "steps": WITH_STEPS,
    "image": WITH_IMAGE,
    "image-gone": [message("user", "a", attachments=[{"name": "b.png", "type": "image/png"}]), "b"],
}


def table():
    there = [tool_server(f'only = ["echo", "fail", "write"]\n{RESPONSES}'), *HERE]
    for dialect in DIALECTS:
        env = {**KEYS, "Q_PROVIDER": dialect}
        for name, args in QUESTIONS.items():
            yield case(f"body-{name}-{dialect}", *there, q("--dry-run", *args), env=env)
        yield case(f"body-max-tokens-{dialect}", *there, q("--dry-run hello"), env={**env, "Q_MAX_TOKENS": "99"})
        for name, messages in HISTORIES.items():
            for form in ["prompt", "messages"]:
                steps = [q("--dry-run -f more"), q("--dry-run -f --messages 2 -a one.rs more")]
                asked = [*there, current(messages, provider=dialect), *steps]
                yield case(f"window-{name}-{form}-{dialect}", *asked, env={**env, "Q_HISTORY": form})
