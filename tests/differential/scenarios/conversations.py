"""Conversations: follow-ups, what ends them, what is sent of them, and how much is kept."""

import time

from replies import DIALECTS, failing, usual
from steps import ANTHROPIC, CURRENT, OPENAI, SESSIONS, Scenario, chmod, q, sh, write

from .fixtures import CONFIG, conversation, current, message, pairs, session

# Between two runs of a pipeline: the second must not ask in the millisecond in which the first has its answer.
A_MOMENT = "(cat; sleep 0.01)"

BOTH = {**OPENAI, **ANTHROPIC}


def table():
    yield from basics()
    yield from windows()
    yield from endings()
    yield from keeping()
    yield from saving()


def basics():
    for dialect in DIALECTS:
        name, env = dialect.name, dialect.env
        yield Scenario(f"follow-{name}", [q("one"), q("-f", "two"), q("--follow", "three")], env=env)
        yield Scenario(f"follow-nothing-{name}", [q("-f", "one"), q("-f", "two")], env=env)
        yield Scenario(
            f"follow-native-{name}", [q("one"), q("-f", "two"), q("-f", "three")], env={**env, "Q_HISTORY": "messages"}
        )
        yield Scenario(f"new-displaces-{name}", [q("one"), q("two"), q("-f", "three"), q("four")], env=env)
        yield Scenario(
            f"follow-input-{name}", [q("one"), q("-f", "two", stdin="input\n"), q("-f", stdin="three\n")], env=env
        )
        yield Scenario(
            f"pipeline-{name}",
            [sh(f'q "a short poem" | {A_MOMENT} | q -f "translate it" | {A_MOMENT} | q -f')],
            env=env,
        )
        yield Scenario(f"undo-and-ask-{name}", [q("one"), q("-f", "two"), sh('q --undo | q -f "in one line"')], env=env)
        yield Scenario(f"follow-whole-{name}", [q("--no-stream", "one"), q("-f", "--no-stream", "two")], env=env)
        yield Scenario(
            f"follow-failed-{name}",
            [q("one"), q("-f", "two"), q("--history")],
            env=env,
            replies=[None, failing(400, "no")],
        )
        yield Scenario(
            f"new-failed-{name}", [q("one"), q("two"), q("--history")], env=env, replies=[None, failing(400, "no")]
        )
    yield Scenario("pipeline-by-name", [sh(f"q -s work one | {A_MOMENT} | q -s work two")])
    yield Scenario("pipeline-of-fixture", [current(), sh(f"q -f one | {A_MOMENT} | q -f two")])
    yield Scenario("follow-quiet", [q("-q", "-f", "one"), q("-q", "-f", "two")])
    yield Scenario("follow-verbose", [current(), q("-v", "-f", "more")])
    yield Scenario("follow-json", [current(), q("-j", "-f", "more"), q("-j", "new")])
    yield Scenario("follow-dry-run", [current(), q("-f", "--dry-run", "more"), q("--dry-run", "new")])
    yield Scenario("follow-extract", [current(), q("-f", "-x", "more")], replies=[usual("```\ncode\n```")])
    yield Scenario("follow-system-is-not-stored", [q("-S", "Be brief.", "one"), q("-f", "two")])


def windows():
    for count in [0, 1, 2, 3, 4, 5, 10, 100]:
        yield Scenario(f"messages-{count}", [current(pairs(4)), q("-f", "--messages", str(count), "more")])
        yield Scenario(
            f"messages-{count}-native",
            [current(pairs(4)), q("-v", "-f", "more")],
            env={**OPENAI, "Q_HISTORY": "messages", "Q_MESSAGES": str(count)},
        )
    for most in [0, 5, 10, 11, 24, 25, 40, 60, 1000]:
        for form in ["prompt", "messages"]:
            yield Scenario(
                f"max-history-{most}-{form}",
                [current(pairs(3)), q("-f", "more")],
                env={**OPENAI, "Q_MAX_HISTORY": str(most), "Q_HISTORY": form},
            )
    odd = {
        "questions-in-a-row": [message("user", "a"), message("user", "b"), message("assistant", "c")],
        "answers-in-a-row": [message("user", "a"), message("assistant", "b"), message("assistant", "c")],
        "answer-first": [message("assistant", "a"), message("user", "b"), message("assistant", "c")],
        "question-last": [message("user", "a"), message("assistant", "b"), message("user", "c")],
        "interrupted": [message("user", "a"), message("assistant", "b", interrupted=True)],
        "empty-answer": [message("user", "a"), message("assistant", "")],
        "lines": [message("user", "a\nb\n"), message("assistant", "Human: c\n\nAssistant: d\n\n")],
        "unicode": [message("user", "ä🦀"), message("assistant", "\u202eé")],
    }
    for name, messages in odd.items():
        for dialect in DIALECTS:
            for form in ["prompt", "messages"]:
                yield Scenario(
                    f"window-{name}-{form}-{dialect.name}",
                    [current(messages, provider=dialect.name), q("-f", "more")],
                    env={**dialect.env, "Q_HISTORY": form},
                )


def endings():
    """What makes a follow-up begin a new conversation."""
    for minutes in [0, 1, 23 * 60, 24 * 60 - 5, 24 * 60 + 5, 25 * 60 + 30, 40 * 24 * 60 + 30]:
        yield Scenario(f"idle-{minutes}-minutes", [current(updated=f"@AGO {minutes}m@"), q("-f", "more")])
    for expire, minutes in [
        ("never", 80_000),
        ("0", 5),
        ("0s", 5),
        ("1m", 5),
        ("2h", 119),
        ("2h", 150),
        ("1d", 23 * 60),
    ]:
        yield Scenario(
            f"expire-{expire}-{minutes}",
            [current(updated=f"@AGO {minutes}m@"), q("-f", "more", env={"Q_EXPIRE": expire})],
        )
    yield Scenario("idle-in-the-future", [current(updated="2999-01-01T00:00:00.000Z"), q("-f", "more")])
    yield Scenario("idle-kept-nowhere", [current(updated="@AGO 2000m@"), q("-f", "more", env={"Q_KEEP": "0"})])
    yield Scenario("idle-quiet", [current(updated="@AGO 2000m@"), q("-q", "-f", "more")])
    yield Scenario("other-provider", [current(), q("-f", "-p", "anthropic", "more")], env=BOTH)
    yield Scenario("other-provider-by-variable", [current(), q("-f", "more")], env={**BOTH, "Q_PROVIDER": "anthropic"})
    yield Scenario("other-provider-by-key", [current(), q("-f", "more")], env=BOTH)
    yield Scenario("same-provider-named", [current(), q("-f", "-p", "openai", "more")], env=BOTH)
    yield Scenario("other-model", [current(), q("-f", "-m", "other", "more")])
    yield Scenario("other-model-by-variable", [current(), q("-f", "more", env={"Q_MODEL": "other"})])
    yield Scenario("other-model-by-file", [write(CONFIG, 'model = "other"\n'), current(), q("-f", "more")])
    yield Scenario("same-model-named", [current(), q("-f", "-m", "test-model", "more")])
    yield Scenario("own-model-is-kept", [current(model="older"), q("-f", "more"), q("-f", "and more")])
    yield Scenario(
        "model-back-and-forth", [q("-m", "a", "1"), q("-f", "-m", "b", "2"), q("-f", "3"), q("-f", "-m", "a", "4")]
    )
    yield Scenario("unknown-provider-followed", [current(provider="nobody"), q("-f", "more")])
    yield Scenario("other-and-idle", [current(model="x", updated="@AGO 2000m@"), q("-f", "-m", "y", "more")])
    yield Scenario("broken-quiet", [write(CURRENT, "{"), q("-q", "-f", "more")])


def keeping():
    for count in [1, 2, 5]:
        for there in [1, 2, 5, 6]:
            yield Scenario(
                f"pairs-{count}-of-{there}",
                [current(pairs(there)), q("-f", "more")],
                env={**OPENAI, "Q_PAIRS": str(count)},
            )
    yield Scenario("pairs-20", [current(pairs(20)), q("-f", "more")])
    yield Scenario("pairs-odd", [current([*pairs(2), "open question"]), q("-f", "more", env={"Q_PAIRS": "2"})])
    for keep in ["0", "0s", "1s", "30d", "never"]:
        yield Scenario(f"keep-{keep}", [current(), q("new"), q("--undo")], env={**OPENAI, "Q_KEEP": keep})
    # A file from before 2026 counts as one that a wrong clock has dated.
    old, recent = time.time() - 45 * 86_400, 4_000_000_000
    leftovers = [
        write(f"{SESSIONS}/session_20200101100000.json", conversation(), mtime=old),
        write(f"{SESSIONS}/session_20200101100000-2.json", "no JSON", mtime=old),
        write(f"{SESSIONS}/session_20200101100000.json.unreadable", "no JSON", mtime=old),
        write(f"{SESSIONS}/session_20990101100000.json", conversation(), mtime=recent),
        write(f"{SESSIONS}/current-tty.json", conversation(), mtime=old),
        write(f"{SESSIONS}/work.json", conversation(), mtime=old),
        write(f"{SESSIONS}/.tmp", "x", mtime=old),
        write(f"{SESSIONS}/.tmp-1", "x", mtime=old),
        write(f"{SESSIONS}/notes.txt", "x", mtime=old),
    ]
    for keep in ["0", "30d", "never", "40000d"]:
        yield Scenario(f"sweep-{keep}", [*leftovers, q("one"), q("two")], env={**OPENAI, "Q_KEEP": keep})
    yield Scenario("sweep-today-already", [*leftovers, write("state/q/swept", ""), q("one")])
    yield Scenario("sweep-long-ago", [*leftovers, write("state/q/swept", "", mtime=old), q("-f", "one")])
    yield Scenario("sweep-not-without-saving", [*leftovers, q("--no-save", "one")])
    yield Scenario("displaced-name-taken", [session("session_20200101100000", ["other", "one"]), current(), q("new")])
    yield Scenario("displaced-to-the-same-second", [current(), q("new"), current(["x", "y"]), q("newer")])
    yield Scenario("displaced-from-the-future", [current(created="2999-01-01T00:00:00.000Z"), q("new"), q("newer")])
    yield Scenario("displaced-at-the-end-of-time", [current(created="9999-12-31T23:59:59.999Z"), q("new")])
    big = "x" * 4_990_000
    yield Scenario(
        "grows-too-large", [current([big, big[:-5_000], "a", "b"]), q("-f", "--messages", "1", "more " * 3_000)]
    )
    yield Scenario("too-large-a-file", [write(CURRENT, conversation(["x" * 10_000_001, "y"])), q("-f", "more")])


def saving():
    yield Scenario("no-save", [q("--no-save", "one"), q("--history")])
    yield Scenario("no-save-follow", [current(), q("-f", "--no-save", "more"), q("--history")])
    yield Scenario("no-save-json", [current(), q("-j", "--no-save", "new")])
    for value in ["true", "false"]:
        yield Scenario(f"save-{value}", [current(), q("new"), q("-f", "more")], env={**OPENAI, "Q_SAVE": value})
    yield Scenario("save-by-file", [write(CONFIG, "save = false\n"), current(), q("-f", "more"), q("--status")])
    yield Scenario("save-by-name-not", [q("-s", "work", "--no-save", "one")])
    yield Scenario(
        "modes-are-put-right",
        [
            current(),
            chmod("state/q", 0o755),
            chmod("state/q/sessions", 0o777),
            chmod(CURRENT, 0o644),
            q("-f", "more"),
            q("new"),
        ],
    )
    for umask in [0o000, 0o077, 0o777]:
        yield Scenario(f"umask-{umask:o}", [q("one", umask=umask), q("-f", "two", umask=umask), q("new", umask=umask)])
    yield Scenario("state-below-home", [q("one"), q("-f", "two")], env={**OPENAI, "XDG_STATE_HOME": None})
    yield Scenario("state-home-empty", [q("one")], env={**OPENAI, "XDG_STATE_HOME": ""})
    yield Scenario("state-home-relative", [q("one")], env={**OPENAI, "XDG_STATE_HOME": "relative"})
    yield Scenario("state-home-missing", [q("one")], env={**OPENAI, "XDG_STATE_HOME": "@ROOT@/a/b/c"})
    yield Scenario(
        "config-below-home",
        [write("home/.config/q/config.toml", "pairs = 1\n"), q("--status")],
        env={**OPENAI, "XDG_CONFIG_HOME": None},
    )
    yield Scenario(
        "config-home-relative",
        [write("home/c/q/config.toml", "pairs = 1\n"), q("--status")],
        env={**OPENAI, "XDG_CONFIG_HOME": "c"},
    )
