"""Real tool servers and a scripted model: real.py PATH-OF-Q PYTHON SQLITE-PYTHON NODE-MODULES lists, calls and ends each."""

import contextlib
import http.server
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "model"))
from trial import check, finish  # noqa: E402


class Model(http.server.BaseHTTPRequestHandler):
    """Calls the tool that it is told to call, and then answers."""

    call = None
    result = None

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        last = body["messages"][-1]
        if last["role"] == "tool":
            Model.result = last["content"]
            message = {"role": "assistant", "content": "done"}
        else:
            name, arguments = Model.call
            function = {"name": name, "arguments": json.dumps(arguments)}
            calls = [{"id": "call00001", "type": "function", "function": function}]
            message = {"role": "assistant", "content": "", "tool_calls": calls}
        reply = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


def programs(home, python, sqlite, modules):
    """Of each program its command, one of its tools, a call of another, and what its result has."""
    start = "import mcp_server_sqlite; mcp_server_sqlite.main()"  # it cannot be run as a module
    repository = pathlib.Path(home, "repository")
    subprocess.run(["git", "init", "--quiet", repository], check=True)
    (repository / "new.txt").write_text("new", encoding="utf-8")
    everything = f"{modules}/.bin/mcp-server-everything"
    filesystem = f"{modules}/.bin/mcp-server-filesystem"
    return {
        "time": ([python, "-m", "mcp_server_time"], "convert_time",
                 ("get_current_time", {"timezone": "Asia/Tokyo"}), "+09:00"),
        "git": ([python, "-m", "mcp_server_git"], "git_log",
                ("git_status", {"repo_path": str(repository)}), "new.txt"),
        "sqlite": ([sqlite, "-c", start, "--db-path", f"{home}/shop.db"], "read_query",
                   ("create_table", {"query": "CREATE TABLE customers (name TEXT)"}), "created"),
        "everything": ([everything], "get-env", ("echo", {"message": "hello"}), "hello"),
        "files": ([filesystem, str(repository)], "write_file",
                  ("read_text_file", {"path": str(repository / "new.txt")}), "new"),
    }


@contextlib.contextmanager
def sites(python, sqlite, modules):
    """The same of servers over HTTP, with their addresses, and the file that each has written to; they end with this."""
    adder = str(pathlib.Path(__file__).parent / "adder.py")
    started = {
        "web": ([f"{modules}/.bin/mcp-server-everything", "streamableHttp"], "get-env",
                ("echo", {"message": "hello"}), "hello"),
        "new-adder": ([python, adder], "add", ("add", {"a": 40, "b": 2}), "42"),
        "old-adder": ([sqlite, adder], "add", ("add", {"a": 40, "b": 2}), "42"),
    }
    with contextlib.ExitStack() as stack:
        rows = {}
        for name, (command, *rest) in started.items():
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            log = stack.enter_context(tempfile.TemporaryFile("w+"))
            # One takes its port from the environment, the others as an argument.
            command += [] if name == "web" else [str(port)]
            server = stack.enter_context(subprocess.Popen(command, env={**os.environ, "PORT": str(port)},
                                                          stdin=subprocess.DEVNULL, stdout=log, stderr=log))
            stack.callback(server.kill)
            rows[name] = (port, *rest, log)
        for port, *_ in rows.values():
            wait_for(port)
        yield {name: (f"http://127.0.0.1:{port}/mcp", *rest) for name, (port, *rest) in rows.items()}


def wait_for(port):
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.1)
    sys.exit(f"no server on port {port}")


def processes():
    listing = subprocess.run(["ps", "-eo", "pid=,args="], capture_output=True, text=True, check=True)
    return [line for line in listing.stdout.splitlines() if any(name in line for name in ("mcp_server_", "mcp-server-")) and "real.py" not in line]


def main():
    q, python, sqlite, modules = (os.path.abspath(path) for path in sys.argv[1:5])
    sys.stdout.reconfigure(line_buffering=True)
    results = []
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as home:
        environment = {
            "PATH": os.environ["PATH"], "HOME": home, "OPENAI_API_KEY": "sk-any-will-do",
            "OPENAI_BASE_URL": f"http://127.0.0.1:{model.server_port}/v1",
        }
        local = programs(home, python, sqlite, modules)
        folder = pathlib.Path(home, ".config/q")
        folder.mkdir(parents=True)

        def ask(*arguments):
            print("$ q", *arguments)
            done = subprocess.run([q, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, timeout=120)
            print(done.stderr, end="")
            return done

        with sites(python, sqlite, modules) as remote:
            keys = [(name, "command", row[0]) for name, row in local.items()]
            keys += [(name, "url", row[0]) for name, row in remote.items()]
            sections = [f"[tools.{name}]\n{key} = {json.dumps(value)}\n" for name, key, value in keys]
            (folder / "config.toml").write_text("".join(sections), encoding="utf-8")
            everything = ask("--list-tools", "-j")
            check("all servers list their tools side by side", everything.returncode == 0 and everything.stderr == "", results)
            tools = {tool["name"]: tool for tool in json.loads(everything.stdout)}
            print("   ", len(tools), "tools")
            for name, (_, listed, (tool, arguments), words, *log) in {**local, **remote}.items():
                print(f"--- {name}")
                check("its tools are listed", f"{name}__{listed}" in tools and f"{name}__{tool}" in tools, results)
                if log:
                    check("its own word allows nothing", tools[f"{name}__{listed}"]["asks"], results)
                Model.call, Model.result = (f"{name}__{tool}", arguments), None
                done = ask("-v", "--yes", "-t", name, "go")
                check("it is called and the model answers", done.returncode == 0 and done.stdout == "done\n", results)
                check(f"its result has {words}", words in (Model.result or ""), results)
                for file in log:
                    file.seek(0)
                    ended = sum("termination request" in line or '"DELETE /mcp' in line for line in file)
                    check("its two sessions are ended", ended == 2, results)
        check("no server is left", processes() == [], results)
    model.shutdown()
    finish(results)


main()
