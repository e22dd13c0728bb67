"""Runs two programs over all scenarios and prints every difference in what they do: run.py [OPTIONS] OLD NEW."""

import argparse
import concurrent.futures
import multiprocessing
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import tomllib
import traceback
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

# No caches beside these files.
sys.dont_write_bytecode = True

from scenarios import all_scenarios
from steps import Trouble, World
from transcript import difference, volatile

HERE = Path(__file__).parent

# Every save waits for the disk, where the files are on one.
MEMORY = Path("/dev/shm")

# Scenarios mostly wait, so there may be more of them at once than processors.
AT_ONCE = 4 * (os.cpu_count() or 1)

# How many lines of one difference are printed.
PRINTED = 80


@dataclass
class Difference:
    """Scenarios that are meant to differ, as patterns."""

    scenarios: list
    reason: str
    found: int = 0

    def fits(self, name):
        return any(fnmatchcase(name, pattern) for pattern in self.scenarios)


@dataclass
class Replacement:
    """A text that the old program produced, as a pattern, and that is meant to be another one now."""

    old: str
    new: str
    reason: str
    scenario: str = "*"
    found: int = 0

    def apply(self, text):
        text, count = re.subn(self.old, self.new, text, flags=re.MULTILINE)
        self.found += count
        return text


class Program:
    """One of the two programs; both are run under the same name."""

    def __init__(self, path, folder):
        folder.mkdir(parents=True)
        self.path = folder / "q"
        self.path.symlink_to(Path(path).resolve())
        printed = subprocess.run([self.path, "--version"], env={}, capture_output=True, text=True, check=True).stdout
        self.version = printed.split()[-1]


class Bench:
    """Runs scenarios by both programs in surroundings that differ in nothing but the names of folders and ports."""

    def __init__(self, scenarios, old, new, scratch):
        self.scenarios = scenarios
        self.scratch = scratch
        self.programs = {name: Program(path, scratch / "bin" / name) for name, path in [("old", old), ("new", new)]}
        # A port that is taken and where nothing listens.
        self.closed = socket.socket()
        self.closed.bind(("127.0.0.1", 0))

    def transcripts(self, index):
        """What the old and the new program do in a scenario; or, as a text, why that is not known."""
        folder = self.scratch / str(index)
        try:
            return [self.transcript(self.scenarios[index], name, folder / name) for name in self.programs]
        except Trouble as trouble:
            return str(trouble)
        except Exception:
            return traceback.format_exc()
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def transcript(self, scenario, name, root):
        program = self.programs[name]
        closed_port = self.closed.getsockname()[1]
        world = World(scenario, program.path, root, closed_port)
        try:
            for step in scenario.steps:
                step.action(world)
        except Trouble as trouble:
            raise Trouble(f"{name}: {trouble}") from None
        finally:
            world.server.close()
        return world.transcript.normalized(volatile(root, world.server.server_port, closed_port, program.version))


def main():
    arguments = parse_arguments()
    # Names and arguments need not be UTF-8.
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    signal.signal(signal.SIGTERM, end)
    scenarios = all_scenarios()
    twice = [name for name, count in Counter(scenario.name for scenario in scenarios).items() if count > 1]
    if twice:
        sys.exit(f"two scenarios have one name: {', '.join(twice)}")
    chosen = [scenario for scenario in scenarios if fnmatchcase(scenario.name, f"*{arguments.k}*")]
    if not chosen:
        sys.exit(f"no scenario has {arguments.k} in its name")
    differences, replacements = read_expected(HERE / "expected.toml")
    unexpected = expected = 0
    with tempfile.TemporaryDirectory(prefix="q-differential-", dir=MEMORY if MEMORY.is_dir() else None) as scratch:
        bench = Bench(chosen, arguments.old, arguments.new, Path(scratch).resolve())
        for scenario, transcripts in in_order(bench):
            trouble = isinstance(transcripts, str)
            if not trouble:
                old, new = transcripts
                fitting = [entry for entry in replacements if fnmatchcase(scenario.name, entry.scenario)]
                old, new = old.lines(fitting), new.lines()
            same = not trouble and old == new
            if arguments.v:
                print(f"{'same' if same else 'differs'}: {scenario.name}", flush=True)
            if same:
                continue
            entry = next((entry for entry in differences if entry.fits(scenario.name)), None)
            # A scenario that did not run as scripted proves nothing, whatever is expected.
            if entry and not trouble:
                entry.found += 1
                expected += 1
                continue
            unexpected += 1
            report(scenario, transcripts.split("\n") if trouble else difference(old, new))
    # Whether an entry still serves is known only when all scenarios have run.
    if len(chosen) == len(scenarios):
        for entry in [*differences, *replacements]:
            if not entry.found:
                what = entry.scenarios if isinstance(entry, Difference) else f"the replacement of {entry.old!r}"
                print(f"stale: {what} in expected.toml matches no difference ({entry.reason})")
    print(f"{len(chosen)} runs, {unexpected + expected} differences, {expected} expected")
    sys.exit(1 if unexpected else 0)


def end(number, _):
    """Ends by an exception, so that everything is cleaned up."""
    sys.exit(128 + number)


def report(scenario, lines):
    print(f"=== {scenario.name}")
    for step in scenario.steps:
        print(f"    {str(step)[:300]}")
    print("\n".join(lines[:PRINTED]))
    if len(lines) > PRINTED:
        print(f"… and {len(lines) - PRINTED} lines more")
    print(flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__)
    parser.add_argument(
        "-k", metavar="PATTERN", default="", help="only scenarios with this in their name; * and ? as in a shell"
    )
    parser.add_argument("-v", action="store_true", help="list the scenarios, each with what came of it")
    parser.add_argument("old")
    parser.add_argument("new")
    return parser.parse_args()


def read_expected(path):
    with open(path, "rb") as file:
        entries = tomllib.load(file)
    unknown = entries.keys() - {"difference", "replace"}
    if unknown:
        sys.exit(f"{path}: there is no [[{unknown.pop()}]]")
    try:
        return (
            [Difference(**entry) for entry in entries.get("difference", [])],
            [Replacement(**entry) for entry in entries.get("replace", [])],
        )
    except TypeError as error:
        sys.exit(f"{path}: {error}")


def in_order(bench):
    """Each scenario with its transcripts."""
    # Processes, because Python runs only one thread at a time. They inherit the scenarios, which contain functions and
    # so cannot be sent to them.
    context = multiprocessing.get_context("fork")
    pool = concurrent.futures.ProcessPoolExecutor(AT_ONCE, context, become_worker, [bench])
    try:
        yield from zip(bench.scenarios, pool.map(work, range(len(bench.scenarios))))
    finally:
        pool.shutdown(cancel_futures=True)


def become_worker(bench):
    global worker_bench
    # The first process ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker_bench = bench


def work(index):
    return worker_bench.transcripts(index)


if __name__ == "__main__":
    main()
