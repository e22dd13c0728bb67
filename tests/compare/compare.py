"""What q and its peers do with the same scripted model: compare.py PATH-OF-Q PEERS [ROW…] prints tables in Markdown: what a short
answer costs, and what else a program does.

Each title is a function here, which runs a program in a home of its own and returns what was seen. compare.sh
installs the peers, and runs this where nothing but 127.0.0.1 can be reached.
"""

import datetime
import functools
import os
import pathlib
import re
import statistics
import sys

from model import Script
from peers import NAME, OTHER, agents, peers
from stage import Stage

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HOMES = ROOT / "target/compare/homes"
RUNS = 5
NOT_THERE = "—"  # the program has no such thing, or it cannot be measured here


# What a short answer costs.


def request(peer):
    """bytes of the request for 2+2"""
    with Stage(peer, HOMES) as stage:
        stage.ask(peer.plain, "2+2")
        size = f"{sum(asked.size for asked in stage.model.asked):,}"
        count = len(stage.model.asked)
        return size if count == 1 else f"{size} in {count} requests"


@functools.cache
def short_answers(peer):
    with Stage(peer, HOMES) as stage:
        stage.ask(peer.plain, "0+0")  # what a program does once
        short = Script(pieces=["It ", "is "] * 10 + ["4."])
        # The questions differ, because an answer may be cached.
        return [stage.ask(peer.plain, f"{number}+{number}", short) for number in range(RUNS)]


def processor(peer):
    """processor time of a short answer"""
    return seconds(statistics.median(done.processor for done in short_answers(peer)))


def wall(peer):
    """from start to exit"""
    return seconds(min(done.wall for done in short_answers(peer)))


def memory(peer):
    """peak memory"""
    with Stage(peer, HOMES) as stage:
        peak = stage.home / "peak"
        stage.run(["/usr/bin/time", "-f", "%M", "-o", str(peak), *stage.command(peer.plain, "2+2")])
        return f"{int(peak.read_text().split()[-1]) / 1024:.0f} MB"


def start(peer):
    """start to exit of `--version`"""
    with Stage(peer, HOMES) as stage:
        return seconds(min(stage.run([*peer.program, "--version"]).wall for _ in range(RUNS)))


def seconds(time):
    return f"{time * 1000:.0f} ms" if time < 0.0995 else f"{time:.1f} s"


# What becomes of a conversation.


def follows(peer):
    """a plain question can be followed up"""
    if not peer.chat_follow:
        return "no"

    def continued(first, then):
        with Stage(peer, HOMES) as stage:
            stage.ask(first, "What is ALPHA?")
            stage.ask(then, "And BRAVO?")
            return stage.model.questions[-1].has("ALPHA")

    if peer.follow:
        return "yes" if continued(peer.plain, peer.follow) else "no"
    if not continued(peer.chat, peer.chat_follow):
        return "no"
    if peer.unsaved and not continued(peer.unsaved, peer.unsaved):
        return f"if it was named, with `{peer.chat[0]}`"
    return "if it was named"


def at_once(peer):
    """two follow-ups at once"""
    def once():
        with Stage(peer, HOMES) as stage:
            stage.ask(peer.chat, "What is ALPHA?")
            runs = stage.at_once(peer.chat_follow, ["And BRAVO?", "And CHARLIE?"])
            stage.ask(peer.chat_follow, "And DELTA?")
            continued = [stage.model.questions[-1].has(name) for name in ("BRAVO", "CHARLIE")]
            stored = [stage.stored(name) for name in ("BRAVO", "CHARLIE")]
            if any(done.status != 0 for done in runs):
                return "one fails"
            if all(continued):
                return "both kept"
            return "both logged, one continued" if all(stored) else "one is lost"

    # Who comes first is a matter of luck.
    return " or ".join(sorted({once() for _ in range(3)})) if peer.chat_follow else NOT_THERE


HALF = Script(pieces=["It ", "is ", "HALFWAY ", "there ", "THE END"], hold_after=4)


def interrupted(peer):
    """Ctrl-C in an answer"""
    if not peer.chat_follow:
        return NOT_THERE
    with Stage(peer, HOMES) as stage:
        status, shown = stage.interrupt(peer.chat, "What is ALPHA?", HALF)
        marked = stage.stored("interrupt")
        stage.ask(peer.chat_follow, "And BRAVO?")
        next_one = stage.model.questions[-1]
        unseen = "" if b"HALFWAY" in shown else ", never shown"
        if next_one.has("HALFWAY"):
            return f"kept, {'marked' if marked else 'as if whole'}{unseen}, {ended(status)}"
        return f"{'answer lost' if next_one.has('ALPHA') else 'lost'}{unseen}, {ended(status)}"


def again(peer):
    """the same question after Ctrl-C"""
    with Stage(peer, HOMES) as stage:
        stage.interrupt(peer.plain, "What is ALPHA?", HALF)
        stage.ask(peer.plain, "What is ALPHA?")
        return "asked again" if stage.model.questions else "half the answer, from its cache"


def other_model(peer):
    """another model for the next turn"""
    if not peer.other:
        return NOT_THERE
    with Stage(peer, HOMES) as stage:
        stage.ask(peer.chat, "What is ALPHA?")
        stage.ask(peer.other, "And BRAVO?")
        asked = stage.model.questions[-1:]
        if not asked or asked[0].body["model"] != OTHER or not asked[0].has("ALPHA"):
            return "no"
        words = " ".join(peer.other[len(peer.plain):])
        return f"`{words.replace('scripted:', '').replace(OTHER, 'MODEL').replace(NAME, 'NAME')}`"


def interactive(peer):
    """turn after turn in one chat"""
    if peer.repl is None:
        return told(peer, r"interactive session by default", r"interactive CLI")
    with Stage(peer, HOMES) as stage:
        stage.converse(peer.repl, ["What is ALPHA?", "And BRAVO?"])
        kept = len(stage.model.questions) > 1 and stage.model.questions[-1].has("ALPHA")
        words = " ".join([peer.name, *peer.repl]).replace(NAME, "NAME")
        return f"yes, `{words}`" if kept else "no"


# What is printed, and what is said when something goes wrong.


ANSWER = "The *quick* brown fox jumps over the lazy dog, and " * 4 + "ends.\n\n```\n\tfour\n```\nA last line."


def piped(peer):
    """piped output"""
    with Stage(peer, HOMES) as stage:
        done = stage.ask(peer.plain, "What is ALPHA?", Script(pieces=ANSWER.splitlines(True), thought="Let me see."))
        out = done.out.decode().removesuffix("\n")
        if out == ANSWER:
            return "the answer's bytes"
        if "<think>" in out and out.endswith(ANSWER):
            return "with `<think>`"
        widest = max(len(line) for line in out.splitlines())
        thinks = ", with `<think>`" if "<think>" in out or "Let me see." in out else ""
        return f"made up for {widest} columns{thinks}" if widest < len(ANSWER.splitlines()[0]) else "other bytes"


SAYS_CUT = re.compile(r"max\w*[ _]\w*[ _]?token|token limit|token maximum|truncated|incomplete|cut off", re.IGNORECASE)


def cut(peer):
    """an answer cut at the token limit"""
    with Stage(peer, HOMES) as stage:
        done = stage.ask(peer.plain, "What is ALPHA?", Script(pieces=["It ", "is "], cut=True))
        said = SAYS_CUT.search(done.out.decode() + done.says())
        return f"{ended(done.status)}, {'says so' if said else 'silent'}"


def refused(peer):
    """the server answers 401; 500"""
    return "; ".join(after(peer, status) for status in (401, 500))


def after(peer, status):
    with Stage(peer, HOMES) as stage:
        done = stage.ask(peer.plain, "What is ALPHA?", Script(status=status))
        count = len(stage.model.questions)
        times = f" ({count} requests)" if count > 1 else ""
        return ended(done.status) + times


def full_disk(peer):
    """the disk is full"""
    if not peer.store:
        return NOT_THERE
    with Stage(peer, HOMES, disk=True) as stage:
        usual = stage.ask(peer.chat, "What is ALPHA?")  # what a program writes once, it has written
        stage.fill()
        # Longer than what is left of a file's last page.
        return outcome(stage, usual, stage.ask(peer.chat, "And BRAVO? " + "Mind this. " * 2000))


def no_place(peer):
    """the place of its conversations cannot be used"""
    if not peer.store:
        return NOT_THERE
    with Stage(peer, HOMES) as stage:
        usual = stage.ask(peer.chat, "What is ALPHA?")
    with Stage(peer, HOMES) as stage:
        stage.block()
        return outcome(stage, usual, stage.ask(peer.chat, "What is ALPHA?"))


SAYS_UNSAVED = re.compile(r"error|cannot|could not|failed|not saved|no space|not a directory|denied", re.IGNORECASE)


def outcome(stage, usual, done):
    """What a user gets from a run that could not save."""
    if not stage.model.questions:
        answer = "nothing asked"
    else:
        answer = "answer" if "It is 4." in done.out.decode() else "no answer"
    said = "\n".join(line for line in done.says().splitlines() if line not in usual.says())
    note = "traceback" if "Traceback" in said else "says so" if SAYS_UNSAVED.search(said) else "silent"
    return f"{answer}, {note}, {ended(done.status)}"


def ended(status):
    if status is None:
        return "not over after 60 s"
    return f"status {status}" if status >= 0 else f"status {128 - status}"


# What only a program's own help can tell: the words of it that say so.


def told(peer, *patterns):
    with Stage(peer, HOMES) as stage:
        helps = [stage.run([*peer.program, *words]) for words in peer.helps]
        text = " ".join(re.sub(r"\s+", " ", (done.out + done.err).decode(errors="replace")) for done in helps)
        found = [f"`{match[0]}`" for match in (re.search(pattern, text) for pattern in patterns) if match]
        return f"yes, {', '.join(found)}" if found else "no"


def plugins(peer):
    """plugins"""
    return told(peer, r"\bplugins?(?= (?:List|Manage))", r"--plugin-dir")


def embeddings(peer):
    """embeddings"""
    return told(peer, r"\bembed(?= )", r"--rag")


def templates(peer):
    """templates with variables"""
    return told(peer, r"-p, --param", r"--agent-variable")


COSTS = [request, processor, wall, memory, start]
ROWS = [follows, at_once, interrupted, again, other_model, interactive, piped, cut, refused, full_disk, no_place, plugins,
        embeddings, templates]


# What README.md says about peers, and whether that is what was seen.


PEER = re.compile(r"\b(llm|aichat|shell_gpt|sgpt|Claude Code|codex|coding agents?)\b", re.IGNORECASE)
AGENTS = ["claude --bare", "claude", "codex", "opencode", "copilot"]
SENTENCES = {
    r"llm adds a second": lambda seen: near(1, amount(seen[title(processor)]["llm"]), 2),
    r"coding agents send ([\d,]+) to ([\d,]+)": lambda seen, *said: all(
        near(amount(size), found, 1.2) for size, found in zip(said, agents_send(seen))),
}


def agents_send(seen):
    """The smallest and the largest request of a coding agent."""
    cells = " ".join(seen[title(request)].get(peer, "") for peer in AGENTS)
    sizes = [amount(size) for size in re.findall(r"[\d,]{4,}", cells)]
    return min(sizes), max(sizes)


def disagreements(readme, seen, versions):
    """What README.md says about peers that was not seen."""
    before, _, rest = readme.partition("## Compared\n")
    compared, _, after = rest.partition("\n## ")
    for peer, said in re.findall(r"(\w+) (\d[\d.]*\d)", compared.partition("|")[0]):
        if not versions.get(peer, said).startswith(said):
            yield f"{peer} {said} is compared; today: {versions[peer]}"
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in compared.splitlines() if line.startswith("|")]
    for name, *cells in rows[2:]:
        if name not in seen:
            yield f"{name}: not measured"
            continue
        for peer, cell in zip(rows[0][1:], cells):
            today = seen[name].get(peer, "not measured")
            if not agrees(cell, today):
                yield f"{name}, {peer}: {cell}; today: {today}"
    for sentence in re.split(r"(?<=[.:;])\s+", f"{before} {after}"):
        if not PEER.search(sentence):
            continue
        holds = [(re.search(claim, " ".join(sentence.split())), holds) for claim, holds in SENTENCES.items()]
        if not any(match and holds(seen, *match.groups()) for match, holds in holds):
            yield " ".join(sentence.split())


def agrees(said, today):
    """Whether a cell is what was seen, or a part of it; a figure may be off by a factor of two, as from another machine."""
    if said[0].isdigit() and today[0].isdigit():
        return near(amount(said), amount(today), 2)
    parts = re.compile(", | or ")
    return set(parts.split(said)) <= set(parts.split(today))


def near(one, other, factor):
    return max(one, other) <= min(one, other) * factor


def amount(cell):
    """The first figure of a cell, times in seconds."""
    number, unit = re.search(r"([\d,.]+) ?(ms)?", cell).groups()
    return float(number.strip(",").replace(",", "")) / (1000 if unit else 1)


def title(row):
    return row.__doc__.strip()


def version(peer):
    with Stage(peer, HOMES) as stage:
        return re.search(r"\d+(?:\.\d+)+", stage.run([*peer.program, "--version"]).out.decode())[0]


def main():
    q, directory, *wanted = sys.argv[1:]
    sys.stdout.reconfigure(line_buffering=True)
    HOMES.mkdir(parents=True, exist_ok=True)
    compared = [peer for peer in peers(os.path.abspath(q), os.path.abspath(directory)) if peer.installed]
    asked = compared + [agent for agent in agents(os.path.abspath(directory)) if agent.installed]
    versions = {peer.name: version(peer) for peer in asked}
    date, load = datetime.date.today(), os.getloadavg()[0]
    print(f"{', '.join(map(' '.join, versions.items()))}, run on {date:%-d %B %Y} with one scripted model, on a machine with "
          f"{os.cpu_count()} cores and a load of {load:.0f}.")
    seen = {title(row): {} for row in COSTS + ROWS}

    def look(row, peer):
        cell = seen[title(row)][peer.name] = row(peer)
        return cell

    costs, rows = ([row for row in rows if not wanted or row.__name__ in wanted] for rows in (COSTS, ROWS))
    if costs:
        head("", *map(title, costs))
        for peer in asked:
            print(f"| {peer.name} |", " | ".join(look(row, peer) for row in costs), "|")
    if rows:
        head("", *(peer.name for peer in compared))
        for row in rows:
            print(f"| {title(row)} |", " | ".join(look(row, peer) for peer in compared), "|")
    if not wanted:
        wrong = list(disagreements((ROOT / "README.md").read_text(encoding="utf-8"), seen, versions))
        print("", *wrong, f"README.md has {len(wrong)} claims about peers that are not what was seen.", sep="\n")
        sys.exit(len(wrong) > 0)


def head(*titles):
    print(f"\n| {' | '.join(titles)} |\n{'|---' * len(titles)}|")


main()
