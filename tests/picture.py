"""Draws .github/session.svg: a session with q and a real small model, as a terminal shows it. It needs tmux, what
tests/try.sh needs, and target/release/q: python3 tests/picture.py"""

import html
import os
import pathlib
import re
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMANDS = [
    'q "What is the capital of France?"',
    'q -f "And of Spain?"',
    'q --again "And of Italy?" | tr a-z A-Z',
    'q -t date "Which weekday is 1 May 2027?"',
    "q --list",
]
COLUMNS, LINES = 84, 24
WIDTH, HEIGHT, MARGIN = 8.4, 20, 16  # of a character, a line and the space around, in pixels
PROMPT = "$ "
# What the attributes of a terminal look like; the picture has a background of its own, so it can be read on any page.
STYLES = {"1": "font-weight:bold", "2": "fill:#8b949e", "3": "font-style:italic", "36": "fill:#76d9e6", "33": "fill:#e3b341"}


def tmux(*words):
    done = subprocess.run(["tmux", "-L", "q-picture", *words], check=True, capture_output=True, text=True)
    return done.stdout


def screen():
    return tmux("capture-pane", "-e", "-p").rstrip("\n").split("\n")


def play(home, address):
    config = home / ".config/q/config.toml"
    config.parent.mkdir(parents=True)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    config.write_text(re.search(r"^    (\[tools\.date.*?)^$", readme, re.M | re.S)[1], encoding="utf-8")
    variables = {
        "HOME": home,
        "LLAMACPP_BASE_URL": f"{address}/v1",
        "PATH": f"{ROOT}/target/release:{os.environ['PATH']}",
        "PS1": PROMPT,
        "Q_HISTORY": "messages",
        "Q_PROVIDER": "llamacpp",
        "TERM": "tmux-256color",
    }
    shell = ["env", "-i", *(f"{name}={value}" for name, value in variables.items()), "sh", "-i"]
    tmux("-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), *shell)
    for command in COMMANDS:
        tmux("send-keys", "-l", command)
        tmux("send-keys", "Enter")
        before = None
        # The prompt is back, and nothing has changed since the last look.
        while (now := screen()) != before or now[-1].rstrip() != PROMPT.rstrip():
            before = now
            time.sleep(1)
    return screen()[:-1]


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


def main():
    python = subprocess.run(["sh", ROOT / "tests/venv.sh", "model", "a small model of 130 MB", "--no-deps"], check=True,
                            stdout=subprocess.PIPE, text=True).stdout.strip()
    serve = [python, ROOT / "tests/model/serve.py", "--template", ROOT / "tests/model/tools.jinja"]
    with (tempfile.TemporaryDirectory() as home,
          subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server):
        address = server.stdout.readline().strip()
        try:
            lines = play(pathlib.Path(home), address)
        finally:
            tmux("kill-server")
            server.stdin.close()
    (ROOT / ".github/session.svg").write_text(svg(lines), encoding="utf-8")


main()
