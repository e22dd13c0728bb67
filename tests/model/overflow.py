"""Asks a real model with a small context, through q, to go on with a conversation that is too long for it: overflow.py PATH-OF-Q."""

import contextlib
import datetime
import json
import os
import pathlib
import re
import sys
import tempfile

from trial import Shell, check, finish, server

CONTEXT = 512  # tokens; a window of MESSAGES has more
MESSAGES = 10  # as many as a follow-up sends
ASK = "What is the capital of France?"


def passage(number):
    return f"This is passage {number}. " + "The quick brown fox jumps over the lazy dog. " * 10


def conversation(model):
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    messages = [
        {"role": ("user", "assistant")[number % 2], "content": passage(number), "timestamp": now}
        for number in range(MESSAGES)
    ]
    return {"version": 1, "provider": "llamacpp", "model": model, "created": now, "updated": now, "messages": messages}


def message_count(text):
    """How many messages q says that it did not send."""
    said = re.search(r"older messages not sent: (\d+), because the model accepts no more", text)
    return int(said[1]) if said else 0


@contextlib.contextmanager
def conversation_of(q, address, history):
    """A user with a conversation that is too long, and its file."""
    with tempfile.TemporaryDirectory() as home:
        provider = {"Q_PROVIDER": "llamacpp", "LLAMACPP_BASE_URL": f"{address}/v1"}
        shell = Shell(q, {**provider, "Q_HISTORY": history, "Q_MAX_TOKENS": "16"}, home)
        file = pathlib.Path(home, ".local/state/q/sessions/current.json")
        file.parent.mkdir(parents=True)
        model = shell.ask("--models").stdout.strip()
        file.write_text(json.dumps(conversation(model)))
        yield shell, file


def leaves_out(q, address, history, options, results):
    print(f"--- history = {history}", *options)
    with conversation_of(q, address, history) as (shell, file):
        before = json.loads(file.read_text())["messages"]
        done = shell.ask("-f", "--json", *options, ASK)
        check("it answers, exit 0", done.returncode == 0, results)
        reply = json.loads(done.stdout or "{}")
        check("the answer is that of a model that got the question", "Paris" in reply.get("answer", ""), results)
        left_out = message_count(done.stderr)
        check("a note says how many messages were not sent", 0 < left_out <= MESSAGES, results)
        check("the others were sent", reply.get("messages_sent") == MESSAGES - left_out, results)

        after = json.loads(file.read_text())["messages"]
        check("the conversation keeps all its messages", after[:MESSAGES] == before, results)
        added = [(said["role"], said["content"]) for said in after[MESSAGES:]]
        check("the new exchange is behind them", added == [("user", ASK), ("assistant", reply.get("answer"))], results)


def gives_up(q, address, results):
    print("--- a question that is too long by itself")
    with conversation_of(q, address, "prompt") as (shell, file):
        before = file.read_bytes()
        done = shell.ask("-f", "--json", passage(0) * 6)
        check("it fails, exit 1", done.returncode == 1, results)
        check("with what the server says", "exceeds the available context size" in done.stderr, results)
        check("the conversation is not changed", file.read_bytes() == before, results)


def main():
    q = os.path.abspath(sys.argv[1])
    sys.stdout.reconfigure(line_buffering=True)  # a log shows what was asked even if no answer comes
    results = []
    with server("--context", str(CONTEXT)) as address:
        for history in ["prompt", "messages"]:
            for options in [[], ["--no-stream"]]:
                leaves_out(q, address, history, options, results)
        gives_up(q, address, results)
    finish(results)


main()
