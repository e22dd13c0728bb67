"""Tries to get out of confined commands, and runs real programs confined: confined.py PATH-OF-Q COMPILED-WAYS PYTHON NODE-MODULES
[PART…]. Each way is first tried without confinement, where it
must work: else it would prove nothing. Confined, it must fail by the error that its row names, and nothing may have changed outside."""

import array
import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import pathlib
import pty
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import duckdb_cli

import naive
import works
from trials import SECRET, Scripted, Trial
from trial import check, finish  # noqa: E402, from the directory that trials adds

libc = ctypes.CDLL(None, use_errno=True)
ROOT = os.geteuid() == 0
IS_X86 = os.uname().machine == "x86_64"
# Of Landlock. Without it q refuses to run a confined command.
NEEDED = 6
SECCOMP, LANDLOCK = "EPERM", "EACCES"
EITHER = "EPERM|EACCES"

# The way, its words, and the errors that may stop it. {file}, {directory}, {new} and {process} are each way's own.
WAYS = [
    # Files, by Landlock.
    ("read", "{file}", LANDLOCK), ("read", "{key}", LANDLOCK), ("read", "{netrc}", LANDLOCK), ("read", "{settings}", LANDLOCK),
    ("read", "{conversation}", LANDLOCK), ("read-by-directory", "{directory} inside", LANDLOCK),
    ("read-after-chdir", "{directory} inside", LANDLOCK), ("read-by-place", "{file}", LANDLOCK),
    ("read", "/proc/self/environ", LANDLOCK), ("read", "/proc/{process}/environ", LANDLOCK), ("read", "/proc/{process}/maps", LANDLOCK),
    ("read", "/proc/{process}/cmdline", LANDLOCK), ("read", "/proc/{process}/mem", LANDLOCK, "EIO"),
    ("read", "/proc/{process}/root{file}", LANDLOCK), ("read", "/proc/self/root{file}", LANDLOCK),
    ("read", "/proc/self/mountinfo", LANDLOCK), ("read", "/proc/net/unix", LANDLOCK), ("list", "/proc/{process}/fd", LANDLOCK),
    ("list", "/proc", LANDLOCK), ("write", "/proc/{process}/oom_score_adj", LANDLOCK), ("write", "/proc/{process}/mem", LANDLOCK),
    ("read", "/etc/fstab", LANDLOCK), ("list", "/etc", LANDLOCK), ("list", "/sys", LANDLOCK), ("list", "/dev", LANDLOCK),
    ("list", "/tmp", LANDLOCK), ("list", "{directory}", LANDLOCK), ("list", "{cache}", LANDLOCK),
    ("append", "/dev/shm/{here}", LANDLOCK), ("list", "/dev/shm", LANDLOCK),
    ("read-as-program", "{script}", LANDLOCK), ("read-as-program-at", "{script}", LANDLOCK),
    ("write", "{file}", LANDLOCK), ("append", "{file}", LANDLOCK), ("empty", "{file}", LANDLOCK), ("truncate", "{file}", LANDLOCK),
    ("make", "{new}", LANDLOCK), ("make-unnamed", "{directory}", LANDLOCK), ("make-directory", "{new}", LANDLOCK),
    ("make-link", "{new}", LANDLOCK), ("make-pipe", "{new}", LANDLOCK), ("remove", "{file}", LANDLOCK),
    ("remove-directory", "{empty}", LANDLOCK), ("rename", "{file} {new}", LANDLOCK), ("rename", "{file} {allowed}/{name}", "EXDEV|EACCES"),
    ("exchange", "{file} {directory}/inside", LANDLOCK), ("link", "{file} {new}", LANDLOCK),
    ("link", "{file} {allowed}/{name}", "EXDEV|EACCES"), ("make-then-rename", "{new}", "EXDEV|EACCES"),
    ("make-then-link", "{new}", "EXDEV|EACCES"), ("write-by-link", "{new} one-{name}", LANDLOCK),
    ("write-by-link", "{file} other-{name}", LANDLOCK),
    # What is only to be read.
    ("write", "{readable}", LANDLOCK), ("empty", "{readable}", LANDLOCK), ("truncate", "{readable}", LANDLOCK),
    ("chmod-at", "{readable}", SECCOMP), ("times-at", "{readable}", SECCOMP), ("remove", "{readable}", LANDLOCK),
    # Modes, owners, times and attributes, by seccomp.
    ("chmod-at", "{file}", SECCOMP), ("chmod-at-2", "{file}", SECCOMP), ("chmod-place", "{file}", SECCOMP),
    ("chown-at", "{file}", SECCOMP), ("chown-place", "{file}", SECCOMP), ("times-at", "{file}", SECCOMP),
    ("times-at-link", "{file}", SECCOMP), ("touch-at", "{file}", SECCOMP), ("times-place", "{file}", SECCOMP),
    ("attribute", "{file}", SECCOMP), ("attribute-of-link", "{file}", SECCOMP), ("remove-attribute", "{file}", SECCOMP),
    ("remove-attribute-of-link", "{file}", SECCOMP), ("attribute-at", "{file}", SECCOMP, "ENOSYS"),
    ("remove-attribute-at", "{file}", SECCOMP, "ENOSYS"), ("flags-at", "{file}", SECCOMP, "ENOSYS|EOPNOTSUPP"),
    # Other processes: signals by Landlock, the rest by seccomp.
    ("signal", "{process}", EITHER), ("signal-all", "", "worked|EPERM"), ("kill", "{process}", EITHER),
    ("signal-group", "{process}", EITHER),
    ("signal-task", "{process}", EITHER), ("signal-thread", "{process}", EITHER), ("signal-value", "{process}", EITHER),
    ("signal-thread-value", "{process}", EITHER), ("signal-descriptor", "{process}", EITHER), ("attach", "{process}", SECCOMP),
    ("seize", "{process}", SECCOMP), ("take-descriptor", "{process}", SECCOMP), ("compare", "{process}", EITHER),
    ("read-memory", "{process} 1", SECCOMP, "EFAULT"), ("write-memory", "{process} 1", SECCOMP, "EFAULT"),
    ("limit", "{process}", SECCOMP), ("priority", "{process}", SECCOMP), ("scheduler", "{process}", SECCOMP),
    ("scheduler-attributes", "{process}", SECCOMP), ("processor", "{process}", SECCOMP), ("disk-priority", "{process}", SECCOMP),
    ("count-events", "{process}", EITHER, "EACCES"), ("move-memory", "{process}", EITHER, "ENOSYS"),
    # Sockets.
    ("connect", "{port}", SECCOMP), ("connect-6", "{port6}", SECCOMP), ("datagram", "{port}", SECCOMP), ("listen", "", SECCOMP),
    ("connect-unix", "{stream}", SECCOMP), ("connect-unix-datagram", "{datagrams}", SECCOMP), ("connect-unix", "{abstract}", SECCOMP),
    ("socket-upper-half", "", SECCOMP), ("netlink", "", SECCOMP), ("pair", "{datagrams}", SECCOMP),
    ("pair-close-on-exec", "{datagrams}", SECCOMP), ("pair-raw", "{datagrams}", SECCOMP), ("pair-upper-half", "{datagrams}", SECCOMP),
    ("send-descriptor", "{file}", LANDLOCK),
    # What processes share.
    ("memory-get", "{key1}", SECCOMP), ("memory-attach", "{memory}", SECCOMP), ("memory-remove", "{memory}", SECCOMP),
    ("semaphore-get", "{key1}", SECCOMP), ("semaphore-operate", "{semaphore}", SECCOMP),
    ("semaphore-operate-timed", "{semaphore}", SECCOMP), ("semaphore-remove", "{semaphore}", SECCOMP), ("queue-get", "{key1}", SECCOMP),
    ("queue-send", "{queue}", SECCOMP), ("queue-receive", "{queue}", SECCOMP), ("queue-remove", "{queue}", SECCOMP),
    ("named-queue", "{named}", SECCOMP), ("named-queue-remove", "{named}", SECCOMP), ("key-add", "{name}", SECCOMP),
    ("key-request", "{planted}", SECCOMP), ("key-search", "{planted}", SECCOMP),
    # The kernel.
    ("read-by-ring", "{file}", SECCOMP), ("unshare", "0x10000000", SECCOMP), ("clone", "0x10000000", SECCOMP),
    ("clone3", "0x10000000", "EPERM|ENOSYS"), ("write", "{terminal}", LANDLOCK),
    ("privileges", "", SECCOMP), ("page-faults", "", SECCOMP), ("watch", "{directory}", EITHER),
    # What may run, and is as confined as before.
    ("then-in-memory", "read {file}", LANDLOCK), ("then-dumpable", "read {file}", LANDLOCK), ("then-persona", "read {file}", LANDLOCK),
    ("then-preloaded", "read {file}", LANDLOCK), ("then-detached", "read {file}", LANDLOCK),
    ("then-detached", "connect {port}", SECCOMP), ("then-detached", "signal {process}", EITHER),
    ("then-in-memory", "chmod-at {file}", SECCOMP),
]
OF_X86 = [
    ("chmod", "{file}", SECCOMP), ("chown", "{file}", SECCOMP), ("chown-link", "{file}", SECCOMP), ("times-oldest", "{file}", SECCOMP),
    ("touch-oldest", "{file}", SECCOMP), ("times-old", "{file}", SECCOMP), ("times-old-at", "{file}", SECCOMP),
    # Numbers of another kind: a kernel that has them not must not be reached either.
    ("chmod-x32", "{file}", SECCOMP, "ENOSYS"), ("socket-x32", "", SECCOMP, "ENOSYS"), ("open-x32", "{file}", SECCOMP, "ENOSYS"),
    # The kernel ends what calls by the numbers of 32 bits.
    ("chmod-32-bits", "{file}", "SIGSYS|EPERM"),
]
# These need rights that only root has unconfined.
OF_ROOT = [
    ("read", "{others}", LANDLOCK), ("read-by-handle", "{file} /usr", EITHER), ("read-by-tree", "{file}", EITHER),
    ("read-after-chroot", "{file}", EITHER), ("make-device", "{new}", EITHER), ("make-device", "{allowed}/{name}", EITHER),
    ("make-disk", "{directory} {allowed}/{name}", EITHER, "ENXIO|EPERM"), ("account", "{file}", EITHER, "ENOSYS"),
    ("swap", "{file}", EITHER, "EINVAL"), ("watch-all", "{directory}", EITHER), ("watch-names", "{directory}", EITHER),
    ("mount", "{empty}", SECCOMP), ("mount-again", "{directory} {empty}", SECCOMP), ("open-tree", "{directory}", SECCOMP),
    ("open-file-system", "", SECCOMP), ("enter", "{process}", SECCOMP), ("unshare", "0x20000", SECCOMP), ("unshare", "0x40000000", SECCOMP),
    ("clone", "0x20000000", SECCOMP), ("clone3", "0x20000000", "EPERM|ENOSYS"), ("program-of-the-kernel", "", SECCOMP),
    ("log-of-the-kernel", "", SECCOMP), ("host-name", "", SECCOMP), ("clock", "", SECCOMP), ("restart", "", SECCOMP),
    ("quota", "", SECCOMP, "ENOSYS"), ("push-character", "{terminal}", LANDLOCK),
    ("then-as-owner", "{set-user}", SECCOMP), ("packet", "", SECCOMP, "EAFNOSUPPORT"),
]
# With network = true: still no socket of this machine's own programs.
OF_NETWORK = [
    ("connect-unix", "{stream}", SECCOMP), ("connect-unix-datagram", "{datagrams}", SECCOMP), ("connect-unix", "{abstract}", SECCOMP),
    ("pair", "{datagrams}", SECCOMP), ("pair-raw", "{datagrams}", SECCOMP), ("socket-upper-half", "", SECCOMP),
    ("read", "{file}", LANDLOCK), ("signal", "{process}", EITHER), ("read", "/proc/net/tcp", LANDLOCK),
]


class World:
    """A user's home with private files, daemons, and processes, for one series of ways."""

    def __init__(self, home, compiled, stack):
        self.home, self.stack, self.received = home, stack, []
        self.processes = {}
        self.allowed, self.scratch = home / "allowed", home / "scratch"
        for directory in ("allowed", "scratch", "bin", "private.d", ".ssh", ".config/q", ".local/state/q/sessions", ".cache/q/tmp"):
            (home / directory).mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copy(compiled, home / "bin/ways")
        shutil.copy(f"{compiled}-static", home / "bin/static")
        self.values = {
            "key": self.secret(".ssh/id_ed25519"), "netrc": self.secret(".netrc"), "readable": self.secret("readable"),
            "others": self.secret("others"), "conversation": self.secret(".local/state/q/sessions/kept.json"),
            "settings": home / ".config/q/config.toml", "allowed": self.allowed, "script": home / "bin/script",
            "set-user": home / "bin/set-user", "cache": home / ".cache/q/tmp",
        }
        (home / "bin/script").write_text("#!/bin/sh\necho worked\n", encoding="utf-8")
        (home / "bin/script").chmod(0o755)
        shutil.copy(compiled, home / "bin/set-user")
        if ROOT:
            os.chown(home / "bin/set-user", 65534, 65534)
            (home / "bin/set-user").chmod(0o4755)
            os.chown(home / "others", 65534, 65534)
        self.daemons()
        self.shared()
        _, terminal = pty.openpty()
        stack.callback(os.close, terminal)
        self.values["terminal"] = os.ttyname(terminal)

    def secret(self, name):
        path = self.home / name
        path.write_text(SECRET + "\n", encoding="utf-8")
        path.chmod(0o600)
        with contextlib.suppress(OSError):
            os.setxattr(path, "user.x", b"x")
        os.utime(path, (1_700_000_000, 1_700_000_000))
        return path

    def daemons(self):
        """Servers that must hear nothing."""
        for name, family, kind, address in (
                ("port", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)), ("port6", socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0)),
                ("stream", socket.AF_UNIX, socket.SOCK_STREAM, f"{self.home}/stream"),
                ("datagrams", socket.AF_UNIX, socket.SOCK_DGRAM, f"{self.home}/datagrams"),
                ("abstract", socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.home}")):
            server = self.stack.enter_context(socket.socket(family, kind))
            server.bind(address)
            if kind == socket.SOCK_STREAM:
                server.listen(64)
            self.values[name] = server.getsockname()[1] if name.startswith("port") else address.replace("\0", "@")
            server.setblocking(False)
            self.received.append(server)

    def heard(self):
        """Whether any of them has heard something."""
        for server in self.received:
            with contextlib.suppress(BlockingIOError):
                server.accept() if server.type == socket.SOCK_STREAM else server.recv(9)
                return True
        return False

    def shared(self):
        """A key, a queue with a name, and a place for what each way needs of its own."""
        self.values["planted"] = f"planted{os.getpid()}"
        add, control = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
        planted = libc.syscall(add, b"user", self.values["planted"].encode(), b"secret", 6, -3)
        self.stack.callback(libc.syscall, control, 3, planted)

    def own(self, way):
        """What one way alone has to do with."""
        values = {**self.values, "name": way, "file": self.secret(f"private.d/{way}.file"), "new": self.home / f"private.d/{way}.new",
                  "directory": self.home / f"private.d/{way}.directory", "empty": self.home / f"private.d/{way}.empty"}
        values["directory"].mkdir(exist_ok=True)
        values["empty"].mkdir(exist_ok=True)
        self.secret(f"private.d/{way}.directory/inside")
        return values

    def process(self, way):
        self.processes[way] = subprocess.Popen(["sleep", "600"], start_new_session=True)
        self.stack.callback(self.processes[way].wait)
        self.stack.callback(self.processes[way].kill)
        return self.processes[way].pid

    def words(self, number, template):
        """The words of a way, and what it needs."""
        values = self.own(f"way{number}")
        if "{process}" in template:
            values["process"] = self.process(number)
        key, kept = 7_000_000 + (os.getpid() % 100_000) * 300 + number, 0o1600
        if "{memory}" in template:
            values["memory"] = libc.shmget(key, 4096, kept)
            self.stack.callback(libc.shmctl, values["memory"], 0, 0)
        if "{semaphore}" in template:
            values["semaphore"] = libc.semget(key, 1, kept)
            self.stack.callback(libc.semctl, values["semaphore"], 0, 0)
        if "{queue}" in template:
            values["queue"] = libc.msgget(key, kept)
            libc.msgsnd(values["queue"], ctypes.create_string_buffer(b"\1" + bytes(7) + b"x", 9), 1, 0)
            self.stack.callback(libc.msgctl, values["queue"], 0, 0)
        if "{key1}" in template:
            values["key1"] = key
            self.stack.callback(libc.shmctl, libc.shmget(key, 4096, kept), 0, 0)
            self.stack.callback(libc.semctl, libc.semget(key, 1, kept), 0, 0)
            self.stack.callback(libc.msgctl, libc.msgget(key, kept), 0, 0)
        if "{here}" in template:
            values["here"] = f"q-way-{os.getpid()}-{number}"
            self.stack.callback(pathlib.Path("/dev/shm", values["here"]).unlink, missing_ok=True)
        if "{named}" in template:
            values["named"] = f"q-way-{os.getpid()}-{number}"
            name = values["named"].encode()
            libc.mq_open(b"/" + name, os.O_RDWR | os.O_CREAT, 0o600, None)
            self.stack.callback(libc.mq_unlink, b"/" + name)
        return template.format(**values).split()

    def snapshot(self):
        """All that is outside: contents, modes, owners, times and attributes."""
        found = {}
        for path in sorted(self.home.rglob("*")):
            if path.is_relative_to(self.allowed) or path.is_relative_to(self.scratch) or ".cache" in path.parts:
                continue
            about = path.lstat()
            digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
            attributes = tuple((name, os.getxattr(path, name, follow_symlinks=False))
                               for name in os.listxattr(path, follow_symlinks=False))
            # What is in a directory is compared by itself; its own time shows what was there for a moment.
            found[str(path)] = (about.st_mode, about.st_uid, about.st_gid, about.st_mtime_ns, about.st_size, digest, attributes)
        return found


def flags_of(path):
    """What chattr sets."""
    flags = array.array("i", [0])
    with path.open() as file, contextlib.suppress(OSError):
        fcntl.ioctl(file, 0x80086601, flags)
    return flags[0]


def ask(trial, section, calls, options=()):
    """The texts of the results of these calls, in their order."""
    texts = []
    for begin in range(0, len(calls), 30):
        some = [("way", {"words": words}) for words in calls[begin:begin + 30]]
        running = trial.start(section, some, directory=trial.home / "scratch", options=["--no-save", *options])
        _, notes = running.communicate(timeout=120)
        if len(Scripted.results) != len(some):
            sys.exit(f"q ended with {running.returncode}: {notes}")
        texts += [text for text, _ in Scripted.results]
    return texts


def section(home, confine):
    return f"""[tools.out.way]
run = ["{home}/bin/ways", "{{words}}"]
input = "words list"
dashes = true
timeout = "20s"
{confine}
"""


def try_ways(q, compiled, directory, results, rows, confine):
    """Tries rows without and with confinement; how many held."""
    tried, heard = [], []
    signal.signal(signal.SIGWINCH, lambda *_: heard.append(True))
    for confined in (False, True):
        heard.clear()
        home = directory / ("confined" if confined else "free")
        home.mkdir()
        with contextlib.ExitStack() as stack:
            world = World(home, compiled, stack)
            trial = Trial(q, home, results)
            calls = [[way, *world.words(number, template)] for number, (way, template, *_) in enumerate(rows)]
            before = world.snapshot()
            if confined:
                reach = f"read = ['{home}/readable', '{home}/bin/set-user'], write = ['{world.allowed}']{confine}"
                text = section(home, f"reads = true\nconfine = {{ {reach} }}")
                trial.start(text, [], directory=world.scratch).communicate(timeout=120)
                before = world.snapshot()
                texts = ask(trial, text, calls)
                after = world.snapshot()
                changed = [path for path in before.keys() | after.keys()
                           if before.get(path) != after.get(path) and not path.startswith(str(home / ".local/state"))
                           and path != str(home / ".config/q/config.toml")]
                check("nothing has changed outside" + "".join(f"\n        {path}" for path in changed), not changed, results)
                ended = [rows[number][0] for number, process in world.processes.items() if process.poll() is not None]
                check(f"no process has got a signal {ended}", not ended, results)
                check("no server has heard anything", not world.heard(), results)
                # The kernel says of a signal to all that it was sent even if it was sent to none.
                check("a signal to all has reached nobody", not heard, results)
            else:
                texts = ask(trial, section(home, f'cwd = "{world.scratch}"'), calls, ["--yes"])
                for empty in home.glob("private.d/*.empty"):
                    libc.umount2(bytes(empty), 2)
                if ROOT:
                    libc.acct(None)
                check("unconfined, servers hear", world.heard(), results)
                check("unconfined, a signal to all comes", bool(heard) or "signal-all" not in dict(row[:2] for row in rows), results)
        tried.append(texts)
    ways_out = 0
    for (way, template, denied, *instead), free, held in zip(rows, *tried, strict=True):
        words = f"{way} {template}".strip()
        possible = ["worked", *(instead[0].split("|") if instead else [])]
        check(f"unconfined: {words}" + ("" if first_line(free) in possible else f": {free!r}"), first_line(free) in possible, results)
        fails = is_denied(held, denied.split("|"))
        check(f"confined: {words}" + ("" if fails else f": {held!r}"), fails, results)
        ways_out += 1
    return ways_out


def one(trial, confine, words, program=None):
    """One call of a way: the text of its result, and q's status."""
    text = section(trial.home, confine)
    if program:
        text = text.replace(f'["{trial.home}/bin/ways", "{{words}}"]', json.dumps([*program, "{words}"]))
    allowed = [] if "reads = true" in confine else ["--yes"]
    running = trial.start(text, [("way", {"words": words})], directory=trial.home / "scratch", options=["--no-save", *allowed])
    running.communicate(timeout=120)
    return (Scripted.results[0][0] if Scripted.results else ""), running.returncode


class Special:
    """What needs more than a call and its answer."""

    def __init__(self, q, compiled, home, results):
        self.q, self.home, self.results, self.count = q, home, results, 0
        home.mkdir()
        self.stack = contextlib.ExitStack()
        self.world = World(home, compiled, self.stack)
        self.trial = Trial(q, home, results)
        self.free = f'cwd = "{self.world.scratch}"'
        self.held = f"reads = true\nconfine = {{ read = ['{home}/readable'], write = ['{self.world.allowed}'] }}"

    def check(self, what, holds, detail=""):
        check(what + ("" if holds else f": {detail}"), holds, self.results)

    def kills(self):
        """Signals to q itself: by its number, and by those of its threads, one of which is confined for a moment."""
        sees_proc = self.held.replace("read = [", "read = ['/proc', ")
        for way, rounds, held in (
            ("kill-parent", 1, self.held),
            ("kill-threads", 200, self.held),
            ("own-threads", 50, self.held),
            ("kill-by-directories", 50, sees_proc),
        ):
            # That thread may end before a program has started that has to look for its libraries.
            program = [f"{self.home}/bin/static"]
            # The numbers of the threads are a guess, which is wrong where other processes start meanwhile.
            was_killed = any(one(self.trial, self.free, [way], program)[1] == -signal.SIGKILL for _ in range(20))
            self.check(f"unconfined: {way}", was_killed)
            ended = [one(self.trial, held, [way], program)[1] for _ in range(rounds)]
            self.check(f"confined: {way}, {rounds} times", not any(ended), [status for status in ended if status])
            self.count += 1

    def sees(self):
        """The environment and the memory of q and of its threads, one of which is confined for a moment."""
        program = [f"{self.home}/bin/static"]
        held = self.held.replace("read = [", "read = ['/proc', ")
        for name in ("environ", "maps"):
            text, _ = one(self.trial, self.free, ["read-of-parent", name], program)
            self.check(f"unconfined: read-of-parent {name}", first_line(text) == "worked", text)
            texts = {first_line(one(self.trial, held, ["read-of-parent", name], program)[0]) for _ in range(100)}
            self.check(f"confined, with /proc to read: read-of-parent {name}", texts == {"EACCES"}, texts)
            self.count += 1

    def kills_all(self):
        """The signal that ends all, in a space of its own for processes, where only root can make one."""
        if not ROOT or not shutil.which("unshare"):
            return
        for confined in (False, True):
            script = self.home / "bin/all"
            # What has been killed already ends by that signal, and not by this one.
            script.write_text(f'#!/bin/sh\nsleep 100 & {self.q} "$@"\nkill $!; wait $!\n'
                              f'[ $? = 143 ] && echo alive >{self.world.scratch}/alive\n', encoding="utf-8")
            script.chmod(0o755)
            whole = self.home / "bin/space"
            whole.write_text(f'#!/bin/sh\nexec unshare --pid --fork --kill-child sh {script} "$@"\n', encoding="utf-8")
            whole.chmod(0o755)
            self.trial.q = str(whole)
            one(self.trial, self.held if confined else self.free, ["kill-all"])
            self.trial.q = self.q
            alive = self.world.scratch / "alive"
            self.check(f"{'confined' if confined else 'unconfined'}: kill-all", alive.exists() == confined)
            alive.unlink(missing_ok=True)
        self.count += 1

    def inherits(self):
        """Descriptors that q has been started with."""
        secret = self.world.secret("inherited")
        free = subprocess.run(["sh", "-c", f"exec 9<{secret}; exec {self.home}/bin/ways read-inherited 9"], capture_output=True, text=True,
                              check=False)
        self.check("unconfined: read-inherited 9", SECRET in free.stdout)
        wrapper = self.home / "bin/nine"
        wrapper.write_text(f'#!/bin/sh\nexec 7<{secret} 8<>{secret} 9<{secret}\nexec {self.q} "$@"\n', encoding="utf-8")
        wrapper.chmod(0o755)
        self.trial.q = str(wrapper)
        for number in (7, 8, 9):
            text, _ = one(self.trial, self.held, ["read-inherited", str(number)])
            self.check(f"confined: read-inherited {number}", first_line(text) == "EBADF", text)
            self.count += 1
        self.trial.q = self.q

    def dumps(self):
        """A dump of memory into a private directory."""
        pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8")
        if pattern.startswith(("|", "/")):
            print("    left out: this system keeps dumps in a place of its own")
            return
        directory = self.home / "dumps"
        directory.mkdir()
        one(self.trial, self.free, ["dump", str(directory)])
        self.check("unconfined: dump", any(directory.iterdir()))
        shutil.rmtree(directory)
        directory.mkdir()
        one(self.trial, self.held, ["dump", str(directory)])
        self.check("confined: dump", not any(directory.iterdir()))
        self.count += 1

    def cleared(self):
        """Whether no temporary directory is left."""
        directory = self.home / ".cache/q/tmp"
        return not directory.exists() or not [path for path in directory.iterdir() if path.is_dir()]

    def leaves(self):
        """What a program leaves in its temporary directory goes, and nothing else does."""
        outside = self.home / "outside"
        (outside / "below").mkdir(parents=True)
        self.world.secret("outside/file")
        self.world.secret("outside/below/file")
        os.link(outside / "file", self.world.allowed / "hard")
        before = self.world.snapshot()
        programs = {
            "links to what is outside":
                f"import os\nfor n, t in enumerate(['{outside}', '{outside}/file', '/', '..', '../..']): os.symlink(t, f'l{{n}}')",
            "a directory without rights": "import os\nos.makedirs('a/b/c'); open('a/b/c/f', 'w').close()\n"
                "for p in ('a/b/c', 'a/b', 'a', '.'): os.fchmod(os.open(p, os.O_RDONLY), 0)",
            # Longer than any path may be. More of them would take longer to remove than q tries on a busy machine.
            "directories 300 deep": "import os\nfor _ in range(300): os.mkdir('d' * 200); os.chdir('d' * 200)",
            "20000 files": "for n in range(20000): open(f'f{n}', 'w').close()",
            "200 MB": "open('big', 'wb').write(bytes(200_000_000))",
            "a file that is open, names that are not UTF-8, pipes":
                "import os\nos.mkfifo('p'); os.mkdir(b'\\xff\\n'); os.symlink('loop', 'loop'); open(b'-rf', 'w')",
        }
        for what, code in programs.items():
            text, _ = one(self.trial, self.held, [code + "\nprint('left')"], ["/usr/bin/python3", "-I", "-c"])
            self.check(f"it leaves {what}", first_line(text) == "left", text)
            self.check("which goes", self.cleared(), os.listdir(self.home / ".cache/q/tmp") if not self.cleared() else "")
            self.count += 1
            after = self.world.snapshot()
            changed = [path for path in before if before[path] != after.get(path) and "config.toml" not in path]
            self.check("and nothing else", not changed, changed)
        # A process that has left its session puts a link where a directory was, again and again, while q removes all.
        swaps = f"""import os, ctypes, time
libc = ctypes.CDLL(None)
for n in range(40):
    os.makedirs(f'd{{n}}/below'); os.symlink('{outside}', f'l{{n}}')
    for f in ('below/file', 'file'): open(f'd{{n}}/{{f}}', 'w').close()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(1); os.close(2)
        end = time.time() + 1
        while time.time() < end:
            for n in range(40): libc.renameat2(-100, f'd{{n}}'.encode(), -100, f'l{{n}}'.encode(), 2)
    os._exit(0)
time.sleep(0.05)
print('left')"""
        for _ in range(10):
            text, _ = one(self.trial, self.held, [swaps], ["/usr/bin/python3", "-I", "-c"])
            self.check("directories and links that change places", first_line(text) == "left", text)
            after = self.world.snapshot()
            changed = [path for path in before if before[path] != after.get(path) and "config.toml" not in path]
            self.check("lead no removal outside", not changed, changed)
        self.count += 1

    def sections(self):
        """A command that runs before the question, and a server, are confined by their section, too."""
        secret = self.world.secret("of-section")
        for what, text in (
                ("about_run", f"[tools.out]\nabout_run = ['cat', '{secret}']\n{{}}\n[tools.out.way]\nrun = ['true']\n"),
                ("a server", f"[tools.out]\ncommand = ['sh', '-c', 'cat {secret} >&2']\n{{}}\n")):
            for confined in (False, True):
                recipe = text.format("confine = {}" if confined else "")
                running = self.trial.start(recipe, [], directory=self.world.scratch, options=["--no-save", "-v"])
                _, notes = running.communicate(timeout=120)
                told = SECRET in notes + json.dumps(Scripted.asked)
                self.check(f"{'confined' if confined else 'unconfined'}: {what} that reads a file", told != confined, notes)
                if confined:
                    self.check("and says why", "Permission denied" in notes, notes)
            self.count += 1

    def allowed(self):
        """What no way out is, by the manual, and what it comes to."""
        for way, path in [(f"descriptor-{way}", "readable") for way in ("mode", "owner", "times", "attribute", "flags", "version")] + \
                [("stat", ".netrc"), ("handle", ".netrc"), ("read-attribute", ".netrc")]:
            text, _ = one(self.trial, self.held, [way, str(self.home / path)])
            print(f"    for information: {way} of {path}: {first_line(text)}")


def first_line(text):
    return text.split("\n")[0]


def is_denied(text, reasons):
    """Whether a way has failed for one of these reasons, or was ended by the kernel for the number of its call."""
    if "SIGSYS" in reasons and "signal 31" in text.lower().replace("sigsys", "signal 31"):
        return True
    return first_line(text) in reasons and SECRET not in text


def revision():
    """The revision of Landlock that the kernel has."""
    return libc.syscall(444, None, ctypes.c_size_t(0), 1)


def main():
    if revision() < NEEDED:
        print(f"This kernel has revision {revision()} of Landlock, and confinement needs {NEEDED} (Linux 6.12).")
        sys.exit(77)
    q, compiled, python, modules = (os.path.abspath(path) for path in sys.argv[1:5])
    parts = sys.argv[5:] or ["ways", "network", "special", "recipes", "programs"]
    sys.stdout.reconfigure(line_buffering=True)
    os.umask(0o022)
    results = []
    count = 0
    rows = WAYS + (OF_X86 if IS_X86 else []) + (OF_ROOT if ROOT else [])
    duckdb = pathlib.Path(duckdb_cli.__file__).with_name("duckdb")
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        for part in parts:
            print(f"--- {part}")
            below = directory / part
            below.mkdir()
            if part == "ways":
                count += try_ways(q, compiled, below, results, rows, "")
            elif part == "network":
                count += try_ways(q, compiled, below, results, OF_NETWORK, ", network = true")
            elif part == "special":
                special = Special(q, compiled, below / "home", results)
                with special.stack:
                    for some in (special.kills, special.sees, special.kills_all, special.inherits, special.dumps, special.leaves,
                                 special.sections, special.allowed):
                        some()
                count += special.count
            elif part == "recipes":
                count += naive.try_recipes(q, below, results, duckdb)
            else:
                works.try_programs(q, below, results, duckdb, {"python": python, "node": modules})
    if all(results):
        print(f"{count} ways out tried, none worked")
    finish(results)


if __name__ == "__main__":
    main()
