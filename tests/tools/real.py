"""Real tool servers and a scripted model: real.py PATH-OF-Q PYTHON SQLITE-PYTHON RUST-PYTHON NODE-MODULES
lists, calls and ends each."""

import base64
import contextlib
import http.server
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "model"))
from scripted import Model  # noqa: E402
from trial import check, finish  # noqa: E402

# What a server for Kubernetes reads before it begins; nothing listens there, and nothing has to.
CLUSTER = """apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: nobody, user: {}}]
contexts: [{name: here, context: {cluster: none, user: nobody}}]
current-context: here
"""


class Scripted(Model):
    """Makes the calls that it has been given, all at once, and then answers."""

    script = []
    results = ""

    def calls(self, request):
        last = json.dumps(request["messages"][-1])
        if "tool_result" in last:
            Scripted.results = last
            return []
        return Scripted.script


def programs(home, python, sqlite, rust, modules):
    """Of each program its command, one of its tools, calls of others, and what their results have."""
    start = "import mcp_server_sqlite; mcp_server_sqlite.main()"  # it cannot be run as a module
    repository = pathlib.Path(home, "repository")
    subprocess.run(["git", "init", "--quiet", repository], check=True)
    (repository / "new.txt").write_text("new", encoding="utf-8")
    cluster = pathlib.Path(home, "cluster.yaml")
    cluster.write_text(CLUSTER, encoding="utf-8")
    everything = f"{modules}/.bin/mcp-server-everything"
    filesystem = f"{modules}/.bin/mcp-server-filesystem"
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if not chromium:
        sys.exit("Chromium is needed. On Debian: sudo apt-get install chromium-headless-shell")
    # Chromium has no sandbox for root.
    browser = [f"{modules}/.bin/playwright-mcp", "--headless", "--isolated", "--no-sandbox",
               "--viewport-size", "640x480", "--executable-path", chromium]
    return {
        "time": ([python, "-m", "mcp_server_time"], "convert_time",
                 [("get_current_time", {"timezone": "Asia/Tokyo"})], "+09:00"),
        "git": ([python, "-m", "mcp_server_git"], "git_log",
                [("git_status", {"repo_path": str(repository)})], "new.txt"),
        "sqlite": ([sqlite, "-c", start, "--db-path", f"{home}/shop.db"], "read_query",
                   [("create_table", {"query": "CREATE TABLE customers (name TEXT)"})], "created"),
        "everything": ([everything], "get-env", [("echo", {"message": "hello"})], "hello"),
        "files": ([filesystem, str(repository)], "write_file",
                  [("read_text_file", {"path": str(repository / "new.txt")})], "new"),
        "go": ([f"{modules}/.bin/kubernetes-mcp-server", "--kubeconfig", str(cluster)], "pods_list",
               [("configuration_view", {})], "nobody"),
        "rust": ([str(pathlib.Path(rust).with_name("biomcp")), "serve"], "search",
                 [("biomcp", {"command": "version"})], "biomcp 0.9"),
        "stateless": (["node", f"{modules}/../adder.mjs"], "add", [("add", {"a": 40, "b": 2})], "42"),
        "browser": (browser, "browser_click",
                    [("browser_navigate", {"url": "data:text/html,hello"}), ("browser_take_screenshot", {})],
                    "Screenshot of viewport"),
    }


@contextlib.contextmanager
def sites(python, sqlite, modules):
    """The same of servers over HTTP, with their addresses, how many sessions each should see ended, and the file that it has
    written to; they end with this."""
    adder = str(pathlib.Path(__file__).parent / "adder.py")
    started = {
        "web": ([f"{modules}/.bin/mcp-server-everything", "streamableHttp"], "get-env",
                [("echo", {"message": "hello"})], "hello", 2),
        "new-adder": ([python, adder], "add", [("add", {"a": 40, "b": 2})], "42", 2),
        "old-adder": ([sqlite, adder], "add", [("add", {"a": 40, "b": 2})], "42", 2),
        "stateless-web": (["node", f"{modules}/../adder.mjs"], "add", [("add", {"a": 40, "b": 2})], "42", 0),
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


def processes(home):
    """The processes with this home: what q has started, and what that has started."""
    listing = subprocess.run(["ps", "axeww", "-o", "pid=,args="], capture_output=True, text=True, check=True)
    return [line for line in listing.stdout.splitlines() if f"HOME={home}" in line]


def picture_size(request):
    """Width and height of the first PNG in a request, if it is there from its beginning to its end."""
    if found := re.search("iVBORw0KGgo[A-Za-z0-9+/]+=*", request):
        picture = base64.b64decode(found[0])
        return picture[-8:-4] == b"IEND" and struct.unpack(">2I", picture[16:24])


def main():
    q, python, sqlite, rust, modules = (os.path.abspath(path) for path in sys.argv[1:6])
    sys.stdout.reconfigure(line_buffering=True)
    results = []
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as home:
        environment = {
            "PATH": os.environ["PATH"], "HOME": home, "ANTHROPIC_API_KEY": "sk-any-will-do",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model.server_port}",
        }
        local = programs(home, python, sqlite, rust, modules)
        directory = pathlib.Path(home, ".config/q")
        directory.mkdir(parents=True)

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
            (directory / "config.toml").write_text("".join(sections), encoding="utf-8")
            everything = ask("--list-tools", "-j")
            check("all servers list their tools side by side", everything.returncode == 0 and everything.stderr == "", results)
            tools = {tool["name"]: tool for tool in json.loads(everything.stdout)}
            print("   ", len(tools), "tools")
            check("no process is left", processes(home) == [], results)
            for name, (_, listed, calls, words, *site) in {**local, **remote}.items():
                print(f"--- {name}")
                check("its tools are listed", {f"{name}__{tool}" for tool in (listed, *dict(calls))} <= tools.keys(), results)
                check("its own word allows nothing", tools.get(f"{name}__{listed}", {}).get("asks"), results)
                Scripted.script, Scripted.results = [(f"{name}__{tool}", arguments) for tool, arguments in calls], ""
                done = ask("-v", "--yes", "-t", name, "go")
                check("it is called, and the model answers", done.returncode == 0 and done.stdout == "done\n", results)
                check(f"its result has {words}", words in Scripted.results, results)
                if name == "browser":
                    check("the model gets the screenshot", picture_size(Scripted.results) == (640, 480), results)
                check("no process is left", processes(home) == [], results)
                if site:
                    sessions, log = site
                    log.seek(0)
                    ended = sum("termination request" in line or '"DELETE /mcp' in line for line in log)
                    check(f"{sessions} sessions are ended", ended == sessions, results)
    model.shutdown()
    finish(results)


main()
