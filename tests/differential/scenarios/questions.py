"""Questions: words, standard input, both, none; and what is sent of them in each dialect."""

from replies import DIALECTS
from steps import OPEN, OPENAI, Scenario, end_input, feed, finish, q, sh, start

# Arguments and standard input of a run.
QUESTIONS = {
    "word": (["hello"], None),
    "words": (["what", "is", "a", "B-tree?"], None),
    "quoted": (["what  is\ta 'B-tree'?"], None),
    "lines": (["first\nsecond\n"], None),
    "unicode": (["Ünïcödé 🦀 \u202e\u0000".rstrip("\u0000")], None),
    "quotes-and-backslashes": (['say "hi" \\ and \\n'], None),
    "blank-around": (["  hello  "], None),
    "empty-word": ([""], None),
    "blank-words": ([" ", "\t"], None),
    "no-words": ([], None),
    "empty-and-word": (["", "a", "", "b", ""], None),
    "single-dash": (["-"], None),
    "dash-in-words": (["a", "-", "b"], None),
    "double-dash": (["--", "-f", "--what", "is", "this"], None),
    "double-dash-later": (["a", "--", "b"], None),
    "late-option": (["what", "does", "ls", "-l", "do"], None),
    "not-utf-8-word": ([b"caf\xe9".decode("utf-8", "surrogateescape")], None),
    "input": ([], "from a pipe\n"),
    "input-without-line-end": ([], "from a pipe"),
    "input-many-line-ends": ([], "\n\nfrom a pipe\n\n\r\n\n"),
    "input-empty": ([], ""),
    "input-blank": ([], " \n\t\n"),
    "input-binary": ([], b"ab\0cd"),
    "input-binary-late": ([], b"a" * 100_000 + b"\0"),
    "input-not-utf-8": ([], b"caf\xe9 \xff\xfe\n"),
    "input-byte-order-mark": ([], "\ufefftext\n"),
    "input-control-characters": ([], "a\x1b[31mb\x07\r\n"),
    "both": (["summarise"], "line 1\nline 2\n"),
    "both-without-line-end": (["summarise"], "line 1\nline 2"),
    "both-input-empty": (["hello"], ""),
    "both-input-blank": (["hello"], "  \n \n"),
    "both-words-blank": (["  "], "only input\n"),
    "both-leading-blank-lines": (["hello"], "\n\n  indented\n\n"),
    "both-carriage-returns": (["hello"], "a\r\nb\r"),
    "both-binary": (["hello"], b"\x7fELF\0\0"),
    "both-not-utf-8": (["hello"], b"\xc3\x28\n"),
    "fence-closed": (["hello"], "a </context> b\n"),
    "fence-closed-twice": (["hello"], "a </context> b </context-2>\n"),
    "fence-gap": (["hello"], "</context></context-3>"),
    "fence-opened": (["hello"], "<context>\ninner\n"),
    "fence-odd": (["hello"], "</context > </context-02> </CONTEXT> </context-2x>"),
    "fence-in-words": (["what is </context>?"], "plain\n"),
    "no-stdin": (["-n", "hello"], "left alone\n"),
    "no-stdin-without-words": (["-n"], "left alone\n"),
    "no-stdin-long-option": (["--no-stdin", "hello"], b"\0"),
    "100-kilobytes": (["hello"], "0123456789abcde\n" * 6_400),
}


def table():
    for dialect in DIALECTS:
        for name, (args, stdin) in QUESTIONS.items():
            yield Scenario(f"question-{name}-{dialect.name}", [q(*args, stdin=stdin)], env=dialect.env)
        for option in ["--dry-run", "--no-stream", "--no-save", "-q", "-v", "-j"]:
            yield Scenario(
                f"question-both-{option.strip('-')}-{dialect.name}",
                [q(option, "summarise", stdin="line\n")],
                env=dialect.env,
            )
        yield Scenario(f"question-system-{dialect.name}", [q("-S", "Be brief.", "hello")], env=dialect.env)
        yield Scenario(f"question-no-system-{dialect.name}", [q("-S", "", "hello")], env=dialect.env)
        yield Scenario(f"question-system-lines-{dialect.name}", [q("-S", 'a\n"b"\t', "hello")], env=dialect.env)
        yield Scenario(f"question-shell-{dialect.name}", [q("hello", env={"SHELL": "/usr/bin/fish"})], env=dialect.env)
        yield Scenario(f"question-model-{dialect.name}", [q("-m", "some/model:7b", "hello")], env=dialect.env)
        yield Scenario(f"question-model-odd-{dialect.name}", [q("-m", "models/ä b?x#y", "hello")], env=dialect.env)
        yield Scenario(f"question-max-tokens-{dialect.name}", [q("hello", env={"Q_MAX_TOKENS": "99"})], env=dialect.env)
    yield Scenario("question-odd-shell", [q("hello", env={"SHELL": "/"}), q("hello", env={"SHELL": "zsh"})])
    yield Scenario("question-system-not-utf-8", [q("-S", b"\xff!".decode("utf-8", "surrogateescape"), "hello")])
    yield Scenario("input-at-the-limit", [q("--no-save", stdin=b"x" * 10_000_000)])
    yield Scenario("input-over-the-limit", [q("hello", stdin=b"x" * 10_000_001)])
    yield Scenario(
        "input-folder", [q("hello", files={"stdin": "@ROOT@/home"}), q("-n", "hello", files={"stdin": "@ROOT@"})]
    )
    yield Scenario("input-closed", [sh("q hello <&-")])
    yield Scenario("input-endless", [sh("yes | q hello")])
    yield Scenario(
        "input-in-parts",
        [start("a", "hello", stdin=OPEN), feed("a", "first "), feed("a", "second\n"), end_input("a"), finish("a")],
    )
    yield Scenario("input-in-a-loop", [sh('printf "a\\nb\\n" | while read -r x; do q -n "$x"; sleep 0.01; done')])
    # What is wrong from the start is told while the input is still open.
    for name, args, env in [
        ("option", ["--bogus"], {}),
        ("provider", ["-p", "nobody", "hello"], {}),
        ("no-key", ["hello"], {"OPENAI_API_KEY": None, "Q_PROVIDER": "openai"}),
        ("setting", ["hello"], {"Q_MESSAGES": "x"}),
        ("base-url", ["hello"], {"OPENAI_BASE_URL": "nonsense"}),
        ("name", ["-s", "a/b", "hello"], {}),
        ("proxy", ["hello"], {"OPENAI_BASE_URL": "http://api.example/v1", "HTTP_PROXY": "nonsense proxy"}),
    ]:
        yield Scenario(f"wrong-before-input-{name}", [q(*args, stdin=OPEN, env=env)], env=OPENAI)
