"""The key for the shell, and the questions that completions show, in real shells on a terminal: keys.py PATH_OF_Q

The terminal is tmux, which says what stands on its screen; the model is a server that answers from a table.
"""

import atexit
import http.server
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PATIENCE = 60

WAITING = "q: waiting for the command"
SEVERAL = "q: the answer has several blocks or lines; to read them, ask with q"
HIDDEN = "q: the answer has control or invisible characters; to read it, ask with q"


def block(code):
    return f"Like this:\n```sh\n{code}\n```\n"


RUNS = 'touch ran; echo "$(touch ran)" `touch ran` !! %F{red}'

# A wish, the answer, and what becomes of the line: the command, or the reason why it stays.
INSERTED = {
    "list the files": (block("ls -l"), "ls -l"),
    "-l lists what?": (block("ls -l"), "ls -l"),
    "find $(touch ran) `touch ran` * 'it\"s": (block("ls"), "ls"),
    "run something": (block(RUNS), RUNS),
    "make a file": (block("touch ran"), "touch ran"),
    "größe": (block("du -sh Größe 日本 e\u0301 “x” – 👩"), "du -sh Größe 日本 e\u0301 “x” – 👩"),
    "many line ends": ("```\nls\n\n\n```\n", "ls"),
    "line ends of Windows": ("```\r\nls\r\n```\r\n", "ls"),
}
KEPT = {
    "two ways": (block("ls") + "or\n" + block("df"), SEVERAL),
    "a continued line": (block("ls \\\n  -l"), SEVERAL),
    "two blocks as one line": (block("ls # \\") + "then\n" + block("df"), SEVERAL),
    "two languages": (block("ls") + "or\n```py\nx\n```\n", "q: the answer has code blocks in different languages (sh, python)"),
    "a block in a block": (block("cat <<E\n```py\nx\n```\nE"), "q: cannot tell where a code block of the answer ends"),
    "two lines": (block("cd src\nmake"), SEVERAL),
    "nothing": (block("")[:-5] + "```\n", "q: there is no code block in the answer"),
    "no code": ("I cannot do that.", "q: there is no code block in the answer"),
    "a failure": (None, "q: llamacpp: 400 Bad Request: no ^[[31mluck<U+202E> today"),
}
for hidden in "\0\1\t\r\x1b\x1e\x7f\x80\x9b\xa0\xad\u034f\u061c\u115f\u1680\u180e\u200b\u200d\u200f\u2028\u202e\u202f\u2060\u2066" \
        "\u2800\u3000\u3164\ue000\ufe0f\ufeff\ufff9\U000e0041":
    KEPT[f"hidden {ord(hidden):x}"] = (block(f"ls{hidden} -l"), HIDDEN)


class Server(http.server.ThreadingHTTPServer):
    """Answers a wish from the tables; one with "slowly" not before it is released."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked, self.system, self.released = [], [], threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """q has gone: Ctrl-C."""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        wish = body["messages"][-1]["content"]
        self.server.asked.append(wish)
        self.server.system.append(body["messages"][0]["content"])
        if "slowly" in wish:
            self.server.released.wait(PATIENCE)
        answer = {**INSERTED, **KEPT}.get(wish, (block("ls -l"),))[0]
        if answer is None:
            status, kind, reply = 400, "application/json", json.dumps({"error": {"message": "no \x1b[31mluck\u202e today"}})
        else:
            delta = {"choices": [{"delta": {"content": answer}, "finish_reason": "stop"}]}
            status, kind, reply = 200, "text/event-stream", f"data: {json.dumps(delta)}\n\ndata: [DONE]\n\n"
        self.send_response(status)
        self.send_header("content-type", kind)
        self.end_headers()
        self.wfile.write(reply.encode())

    def log_message(self, *_):
        pass


# Ctrl-X l writes the line to a file, and clears it.
SETUP = {
    "bash": """
PS1='\\[\\e[1m\\]two lines\\[\\e[0m\\]\\n> ' HISTFILE=
source "$ROOT/completions/q.bash"
eval "$($PROGRAM --generate keys-bash)"
taken() { printf %s "$READLINE_LINE" >line.new; mv line.new line; READLINE_LINE= READLINE_POINT=0; }
bind -x '"\\C-xl": taken'
""",
    "zsh": """
PS1='> '
fpath=($ROOT/completions $fpath)
autoload -Uz compinit
compinit -D -u
eval "$($PROGRAM --generate keys-zsh)"
taken() { printf %s "$BUFFER" >line.new; mv line.new line; BUFFER= }
zle -N taken
bindkey '^Xl' taken
""",
    "fish": """
function fish_prompt; echo '> '; end
set fish_greeting
set fish_complete_path $ROOT/completions
$PROGRAM --generate keys-fish | source
function taken
    commandline | string collect | read -z line
    printf %s $line >line.new
    mv line.new line
    commandline -r ''
end
bind \\cxl taken
""",
}
START = {
    "bash": "bash --noprofile --rcfile setup.bash -i",
    "zsh": "zsh -d -i",
    "fish": "fish --no-config --init-command 'source setup.fish'",
}
UNDO = {"bash": "C-_", "zsh": "C-_", "fish": "C-z"}


class Terminal:
    """A shell on a screen of 70 by 16, in a directory of its own."""

    def __init__(self, shell, q, server, columns=70, program="q", **variables):
        self.shell, self.server = shell, server
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix=f"q-keys-{shell}-"))
        (self.directory / "bin").mkdir()
        (self.directory / "bin" / program).symlink_to(q)
        for name, text in SETUP.items():
            (self.directory / {"zsh": ".zshrc"}.get(name, f"setup.{name}")).write_text(text)
        self.environment = {
            "PATH": f"{self.directory}/bin:{os.environ['PATH']}", "HOME": str(self.directory), "ZDOTDIR": str(self.directory),
            "TERM": "tmux", "LC_ALL": "C.UTF-8", "ROOT": str(ROOT), "PROGRAM": program, "Q_PROVIDER": "llamacpp", "Q_MODEL": "m",
            "LLAMACPP_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1", "Q_RETRIES": "0", **variables,
        }
        command = shlex.join(["env", "-i", *(f"{name}={value}" for name, value in self.environment.items())])
        self.tmux("new-session", "-d", "-x", str(columns), "-y", "16", "-c", self.directory, f"{command} {START[shell]}")
        self.tmux("set-option", "-g", "remain-on-exit", "on")
        atexit.register(self.close)
        self.see(lambda screen: "> " in screen.replace(">\n", "> \n"))

    def tmux(self, *arguments):
        command = ["tmux", "-S", self.directory / "tmux", "-f", "/dev/null", *arguments]
        return subprocess.run(command, stdin=subprocess.DEVNULL, check=True, capture_output=True, text=True).stdout

    def until(self, found, what):
        deadline = time.monotonic() + PATIENCE
        while not (result := found()):
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.shell}: {what}; the screen:\n{self.screen()}")
            time.sleep(0.02)
        return result

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def see(self, found):
        """Waits until this is on the screen, wherever its lines are broken."""
        if isinstance(found, str):
            text, found = found.replace(" ", ""), lambda screen: text in "".join(screen.split())
        return self.until(lambda: found(self.screen()) and self.screen(), f"{found} is not seen")

    def type(self, text):
        self.tmux("send-keys", "-l", "--", text)

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def ask(self, wish):
        self.type(wish)
        self.press("C-x", "q")

    def line(self):
        """Takes the line that stands at the prompt, and leaves an empty screen."""
        self.press("C-l", "C-x", "l")
        file = self.directory / "line"
        self.until(file.exists, "the line is not written")
        line = file.read_text().rstrip("\n")
        file.unlink()
        return line

    def is_line(self, expected):
        line = self.line()
        assert line == expected, f"{self.shell}: {line!r} is on the line, not {expected!r}"

    def close(self):
        self.tmux("kill-server")
        shutil.rmtree(self.directory)


def the_key(shell, q, server):
    terminal = Terminal(shell, q, server)
    for wish, (_, command) in INSERTED.items():
        terminal.ask(wish)
        terminal.is_line(command)
        assert server.asked[-1] == wish, server.asked[-1]
        assert "one fenced code block" in server.system[-1], server.system[-1]
    for wish, (_, reason) in KEPT.items():
        terminal.ask(wish)
        screen = terminal.see(f"> {wish} {reason}")
        assert f"> {wish}\nq: " in screen, f"{shell}: the reason is not below the line:\n{screen}"
        assert "\u202e" not in screen, screen
        terminal.is_line(wish)

    # While the answer is on its way; then the command comes in place of the wish, and undo brings that back.
    wish = "slowly find the largest files that are somewhere below this directory, please"
    terminal.ask(wish)
    terminal.see(f"> {wish} {WAITING}")
    server.released.set()
    terminal.see(lambda screen: "> ls -l\n" in screen and "waiting" not in screen)
    terminal.press(UNDO[shell])
    terminal.is_line(wish)

    server.released.clear()
    terminal.ask("slowly")
    terminal.see(WAITING)
    terminal.press("C-c")
    terminal.see("q: interrupted")
    terminal.is_line("slowly")
    # The next Ctrl-C does what it always does.
    terminal.type("abandoned")
    terminal.see("> abandoned")
    terminal.press("C-c")
    terminal.see(lambda screen: screen.count(">") > 1 or "abandoned" not in screen)
    server.released.set()

    # On an empty line there is a wish about the last command, and a second press asks.
    asked = len(server.asked)
    terminal.type("no-such-command 'a  b'")
    terminal.press("Enter")
    terminal.see("not found" if shell != "fish" else "Unknown command")
    about = "fix: no-such-command 'a  b', exit status 127"
    terminal.ask("")
    terminal.see(f"> {about}")
    assert len(server.asked) == asked, server.asked[asked:]
    terminal.press("C-x", "q")
    terminal.see("> ls -l")
    assert server.asked[asked:] == [about], server.asked[asked:]
    terminal.press(UNDO[shell])
    terminal.is_line(about)

    # Nothing has run, until the user says so.
    files = {path.name for path in terminal.directory.iterdir()}
    assert "ran" not in files, files
    assert not (terminal.directory / ".local/state/q/sessions").exists()
    terminal.ask("make a file")
    terminal.see("> touch ran")
    terminal.press("Enter")
    terminal.until((terminal.directory / "ran").exists, "Enter does not run the command")


def another_key(shell, q, server):
    # Of a program with another name, too.
    terminal = Terminal(shell, q, server, program="qask", Q_KEY="\\C-gk")
    terminal.type("list the files")
    terminal.press("C-g", "k")
    terminal.is_line("ls -l")
    asked = len(server.asked)
    terminal.ask("list")
    terminal.line()
    assert len(server.asked) == asked


def questions_in_completions(shell, q, server):
    terminal = Terminal(shell, q, server, columns=120)
    for question in ["why: \"a\" 'b' $(touch ran) \\n %F{red}", "one\ntwo\t\x1b[31mred\x9b\u202eevil `touch ran`"]:
        subprocess.run([q, "-n", question], env=terminal.environment, cwd=terminal.directory, stdout=subprocess.DEVNULL, check=True)
    terminal.type("q -s session_")
    # The first completes what is common.
    terminal.press(*["Tab"] * {"bash": 3, "zsh": 2, "fish": 1}[shell])
    if shell == "bash":
        screen = terminal.see(lambda screen: screen.count("session_") > 3)
        assert "why" not in screen, screen
    else:
        screen = terminal.see("why: \"a\" 'b' $(touch ran) \\n %F{red}")
        screen = terminal.see("one two ^[[31mred<9B><U+202E>evil `touch ran`")
        assert "\u202e" not in screen, screen
    assert not (terminal.directory / "ran").exists()


def main():
    q = pathlib.Path(sys.argv[1]).resolve()
    for shell in SETUP:
        for test in [the_key, another_key, questions_in_completions]:
            server = Server()
            test(shell, q, server)
            server.shutdown()
            print(f"ok    {shell}: {test.__name__.replace('_', ' ')}", flush=True)


main()
