"""Draws .github/session.svg: a session with q as a terminal shows it. The answers are scripted, and all else is a real run.
It needs tmux, make, a C compiler and jq: python3 tests/picture.py target/release/q"""

import html
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS, LINES = 94, 32
WIDTH, HEIGHT, MARGIN = 8.4, 20, 16  # of a character, a line and the space around, in pixels
PROMPT = "$ "
# What the attributes of a terminal look like; the picture has a background of its own, so it can be read on any page.
STYLES = {"1": "font-weight:bold", "2": "fill:#8b949e", "3": "font-style:italic", "36": "fill:#76d9e6", "33": "fill:#e3b341"}

FILES = {
    "Makefile": "area:\n\tcc -lm -o area area.c\n",
    "area.c": "#include <math.h>\n#include <stdio.h>\nint main(int n, char **v) { printf(\"%f\\n\", sqrt(n)); }\n",
    ".config/q/config.toml": "[tools.notes.add]\nrun = [\"tee\", \"-a\", \"notes.md\"]\nstdin = \"{line}\\n\"\ncwd = \".\"\n",
}
NOTE = "Linker: libraries go after the files that use them (cc area.c -lm)."
FLAGS = [("maths", "-lm"), ("threads", "-pthread"), ("SQLite", "-lsqlite3")]
# What is typed, and what the model says then: text, a call, or JSON. The last text follows the call.
STEPS = [
    ('make 2>&1 | q "why does this fail?"',
     "The maths library comes too early: put `-lm` after `area.c`, as in `cc -o area area.c -lm`."),
    ('q -f "why does the order matter?"',
     "The linker takes from a library only what is missing **at that point**, from left to right."),
    ('q -f -t notes "add that to my notes"', {"line": NOTE}),
    ("y", "Added."),
    ("q --schema '[library, flag]' \"flags for maths, threads and SQLite\" | jq -r '.items[].flag'",
     json.dumps({"items": [{"library": library, "flag": flag} for library, flag in FLAGS]})),
]


class Model(http.server.BaseHTTPRequestHandler):
    """A server with the API of chat completions, which says what is next."""

    answers = [answer for _, answer in STEPS]

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        answer = self.answers.pop(0)
        if isinstance(answer, dict):
            call = {"name": "notes__add", "arguments": json.dumps(answer)}
            delta = {"tool_calls": [{"index": 0, "id": "call", "type": "function", "function": call}]}
        else:
            delta = {"content": answer}
        choice = {"index": 0, "delta": delta, "finish_reason": "tool_calls" if "tool_calls" in delta else "stop"}
        body = f"data: {json.dumps({'choices': [choice]})}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def tmux(*words):
    done = subprocess.run(["tmux", "-L", "q-picture", *words], check=True, capture_output=True, text=True)
    return done.stdout


def screen():
    return tmux("capture-pane", "-e", "-p").rstrip("\n").split("\n")


def play(home, program, address):
    for name, text in FILES.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
    (home / "bin").mkdir()
    (home / "bin/q").symlink_to(program)
    variables = {
        "HOME": home,
        "LANG": "C.UTF-8",
        "LLAMACPP_BASE_URL": f"{address}/v1",
        "PATH": f"{home}/bin:{os.environ['PATH']}",
        "PS1": PROMPT,
        "Q_MODEL": "scripted",
        "Q_PROVIDER": "llamacpp",
        "TERM": "tmux-256color",
    }
    shell = ["env", "-i", "-C", home, *(f"{name}={value}" for name, value in variables.items()), "sh", "-i"]
    tmux("-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), *shell)
    for typed, _ in STEPS:
        tmux("send-keys", "-l", typed)
        tmux("send-keys", "Enter")
        before = None
        # The prompt or a question is there, and nothing has changed since the last look.
        while (now := screen()) != before or not is_waiting(now[-1]):
            before = now
            time.sleep(1)
    return screen()[:-1]


def is_waiting(line):
    return line.rstrip() == PROMPT.rstrip() or "[a]lways" in line


def spans(line):
    style = set()
    for code, text in re.findall(r"(?:\x1b\[([0-9;]*)m)?([^\x1b]*)", line):
        for attribute in filter(None, re.split(";", code)):
            style = set() if attribute == "0" else style | {attribute}
            style -= {"1", "2"} if attribute == "22" else {"36", "33"} if attribute == "39" else set()
        if text:
            looks = ";".join(STYLES[attribute] for attribute in sorted(style) if attribute in STYLES)
            yield f'<tspan style="{looks}">{html.escape(text)}</tspan>' if looks else html.escape(text)


def svg(lines):
    width, height = COLUMNS * WIDTH + 2 * MARGIN, len(lines) * HEIGHT + 2 * MARGIN
    rows = []
    for number, line in enumerate(lines):
        if line.startswith(PROMPT):
            line = f"\x1b[2m{PROMPT}\x1b[22m\x1b[1m{line[len(PROMPT):]}\x1b[0m"
        y = MARGIN + (number + 0.72) * HEIGHT
        rows.append(f'<text x="{MARGIN}" y="{y:g}" xml:space="preserve">{"".join(spans(line))}</text>')
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}">',
        "<title>A session with q in a terminal</title>",
        f'<rect x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="8" fill="#0d1117" stroke="#6e7681"/>',
        '<g fill="#e6edf3" font-size="14" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,\'DejaVu Sans Mono\',monospace">',
        *rows,
        "</g>",
        "</svg>",
        "",
    ])


def main(program):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as home:
        try:
            lines = play(pathlib.Path(home), program, f"http://127.0.0.1:{server.server_port}")
        finally:
            tmux("kill-server")
    (ROOT / ".github/session.svg").write_text(svg(lines), encoding="utf-8")


main(pathlib.Path(sys.argv[1]).resolve())
