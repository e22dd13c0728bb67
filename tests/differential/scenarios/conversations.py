"""Conversations: follow-ups, what ends them, what is sent of them, and how much is kept."""

import time

from server import failing, usual
from steps import BOTH, CURRENT, OPENAI, SESSIONS, case, prepare, q, sh, write

from .bodies import HERE
from .fixtures import CONFIG, WITH_STEPS, conversation, current, message, pairs, session

# Between two runs of a pipeline: the second must not ask in the millisecond in which the first has its answer.
A_MOMENT = "(cat; sleep 0.01)"


def table():
    yield from basics()
    yield from windows()
    yield from endings()
    yield from keeping()
    yield from saving()


def basics():
    for form in ["prompt", "messages"]:
        asked = [q("one"), q("-f two", stdin="input\n"), q("-f", stdin="three\n"), q("new"), q("-f four")]
        yield case(f"follow-{form}", *asked, env={**OPENAI, "Q_HISTORY": form})
    yield case("follow-nothing", q("-f one"), q("-f two"))
    yield case("pipeline", sh(f'q "a short poem" | {A_MOMENT} | q -f "translate it" | {A_MOMENT} | q -f'))
    yield case("pipeline-by-name", sh(f"q -s work one | {A_MOMENT} | q -s work two"))
    yield case("undo-and-ask", q("one"), q("-f two"), sh('q --undo | q -f "in one line"'))
    for args in ["-f two", "two"]:
        yield case(f"failed-{args}", q("one"), q(args), q("--history"), replies=[None, failing(400, "no")])
    for option in ["-q", "-v", "-j", "--dry-run", "--no-stream", "--no-save", "-x"]:
        code = usual("```\ncode\n```")
        yield case(f"follow{option}", current(), q(f"-f {option} more"), q(f"{option} new"), replies=[code] * 2)
    yield case("follow-system-is-not-stored", q("-S Brief. one"), q("-f two"))
    files = [q("-a error.png -a one.rs why?"), q("-f -a page.pdf more?"), q("-f --messages 2 no more?")]
    again = [q("--again"), q("--again how?", stdin="log"), q("--again -a two.rs"), q("--history")]
    # Images do not count.
    yield case("follow-files", *HERE, *files, *again, env={**OPENAI, "Q_MAX_HISTORY": "200"})


def windows():
    for texts in [pairs(4), WITH_STEPS]:
        for form in ["prompt", "messages"]:
            env, name = {**OPENAI, "Q_HISTORY": form}, f"{form}-{len(texts)}"
            for count in [0, 1, 2, 3, 4, 5, 100]:
                yield case(f"messages-{count}-{name}", current(texts), q(f"-v -f --messages {count} more"), env=env)
            for most in [0, 5, 10, 11, 24, 25, 40, 60, 150, 1000]:
                limited = {**env, "Q_MAX_HISTORY": str(most)}
                yield case(f"max-history-{most}-{name}", current(texts), q("-f more"), env=limited)


def endings():
    """What makes a follow-up begin a new conversation."""
    times = "24h 0|24h 1435|24h 1445|24h 1530|24h 57630|never 80000|0 5|0s 5|1m 5|2h 119|2h 150|1d 1380"
    for expire, minutes in (pair.split() for pair in times.split("|")):
        there = current(updated=f"@AGO {minutes}m@")
        yield case(f"expire-{expire}-{minutes}", there, q("-f more"), env={**OPENAI, "Q_EXPIRE": expire})
    idle = current(updated="@AGO 2000m@")
    yield case("idle-in-the-future", current(updated="2999-01-01T00:00:00.000Z"), q("-f more"))
    yield case("idle-kept-nowhere", idle, q("-f more", env={"Q_KEEP": "0"}))
    yield case("idle-quiet", idle, q("-q -f more"))
    for args in ["", "-p groq", "-p openai", "-m other", "-m test-model", "-p groq -m x"]:
        for env in [{}, {"Q_PROVIDER": "groq"}, {"Q_MODEL": "other"}, {"Q_MISMATCH": "continue"}]:
            there, name = [current(), session("work")], f"{args}-{''.join(env)}"
            runs = [q(f"-f {args} more"), q(f"-s work {args} more"), q("-s work last"), q(f"-s new {args} one")]
            yield case(f"mismatch-{name}", *there, *runs, env={**BOTH, **env})
    file = write(CONFIG, 'model = "other"\n')
    yield case("other-model-by-file", file, current(), q("-f more"))
    yield case("own-model-is-kept", current(model="older"), q("-f more"), q("-f and more"))
    yield case("model-back-and-forth", q("-m a 1"), q("-f -m b 2"), q("-f 3"), q("-f -m a 4"))
    yield case("unknown-provider-followed", current(provider="nobody"), q("-f more"))
    yield case("other-and-idle", current(model="x", updated="@AGO 2000m@"), q("-f -m y more"))
    yield case("broken-quiet", write(CURRENT, "{"), q("-q -f more"))


def keeping():
    for count in [1, 2, 5]:
        for texts in [pairs(1), pairs(5), pairs(6), [*pairs(2), "open question"], WITH_STEPS]:
            env = {**OPENAI, "Q_PAIRS": str(count)}
            yield case(f"pairs-{count}-of-{len(texts)}", current(texts), q("-f more"), env=env)
    yield case("pairs-20", current(pairs(20)), q("-f more"))
    for keep in ["0", "0s", "1s", "30d", "never"]:
        yield case(f"keep-{keep}", current(), q("new"), q("--undo"), env={**OPENAI, "Q_KEEP": keep})
    # A file from before 2026 counts as one that a wrong clock has dated.
    old, recent = time.time() - 45 * 86_400, 4_000_000_000
    names = "session_20200101100000000 session_20200101100000001 current-tty work"
    leftovers = [write(f"{SESSIONS}/{name}.json", conversation([name, "b"]), mtime=old) for name in names.split()]
    leftovers.append(write(f"{SESSIONS}/session_20990101100000000.json", conversation(), mtime=recent))
    others = "session_20200101100000002.json session_20200101100000.json.unreadable .tmp .tmp-1 notes.txt"
    leftovers += [write(f"{SESSIONS}/{name}", "no JSON", mtime=old) for name in others.split()]
    for keep in ["0", "30d", "never", "40000d"]:
        yield case(f"sweep-{keep}", *leftovers, q("one"), q("two"), env={**OPENAI, "Q_KEEP": keep})
    yield case("sweep-today-already", *leftovers, write("state/q/swept", ""), q("one"))
    yield case("sweep-long-ago", *leftovers, write("state/q/swept", "", mtime=old), q("-f one"))
    yield case("sweep-not-without-saving", *leftovers, q("--no-save one"))
    for created in ["2999-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"]:
        yield case(f"created-{created}", current(created=created), q("-f more"), q("new"), q("newer"))
    big = "x" * 4_990_000
    more = "more " * 3_000
    yield case("grows-too-large", current([big, big[:-5_000], "a", "b"]), q("-f --messages 1", more))
    image = {"name": "c.png", "type": "image/png", "data": "A" * 3_000_000}
    images = current([message("user", "a", attachments=[image] * 3), "b", "c", "d"])
    yield case("attachments-grow-too-large", images, q("-f --messages 0 more", stdin="y" * 1_200_000))
    yield case("too-large-a-file", write(CURRENT, conversation(["x" * 10_000_001, "y"])), q("-f more"))


def saving():
    for value in ["true", "false"]:
        yield case(f"save-{value}", current(), q("new"), q("-f more"), q("-s a b"), env={**OPENAI, "Q_SAVE": value})
    yield case("save-by-file", write(CONFIG, "save = false\n"), current(), q("-f more"), q("--status"))
    modes = prepare("chmod 755 state/q; chmod 777 state/q/sessions; chmod 644 state/q/sessions/*")
    yield case("modes-are-put-right", current(), modes, q("-f more"), q("new"))
    for umask in ["000", "077", "777"]:
        yield case(f"umask-{umask}", sh(f"umask {umask}; q -n one; q -n -f two; q -n new; q --copy b; q -n -s a.json one"))
    for home in [None, "", "relative", "@ROOT@/a/b/c"]:
        yield case(f"state-home-{home}", q("one"), q("-f two"), env={**OPENAI, "XDG_STATE_HOME": home})
