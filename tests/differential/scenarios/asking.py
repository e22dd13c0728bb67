"""Questions: words, standard input, both, none."""

from server import usual
from steps import OPEN, case, q, sh

from .fixtures import tool_server

NOT_UTF_8 = b"caf\xe9".decode("utf-8", "surrogateescape")

# Arguments and standard input of a run.
QUESTIONS = {
    "words": ("what is a B-tree?", None),
    "quoted": (["what  is\ta 'B-tree'?"], None),
    "lines": (["first\nsecond\n"], None),
    "unicode": (["Ünïcödé 🦀 \u202e"], None),
    "quotes-and-backslashes": (['say "hi" \\ and \\n'], None),
    "blank-around": (["  hello  "], None),
    "empty-word": ([""], None),
    "blank-words": ([" ", "\t"], None),
    "no-words": ([], None),
    "empty-and-word": (["", "a", "", "b", ""], None),
    "single-dash": ("-", None),
    "dash-in-words": ("a - b", None),
    "double-dash": ("-- -f --what is this", None),
    "double-dash-later": ("a -- b", None),
    "late-option": ("what does ls -l do", None),
    "not-utf-8-word": ([NOT_UTF_8], None),
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
    "input-at-the-limit": ("--no-save", b"x" * 10_000_000),
    "input-over-the-limit": ("hello", b"x" * 10_000_001),
    "both": ("summarise", "line 1\nline 2\n"),
    "both-without-line-end": ("summarise", "line 1\nline 2"),
    "both-input-empty": ("hello", ""),
    "both-input-blank": ("hello", "  \n \n"),
    "both-words-blank": (["  "], "only input\n"),
    "both-leading-blank-lines": ("hello", "\n\n  indented\n\n"),
    "both-carriage-returns": ("hello", "a\r\nb\r"),
    "both-binary": ("hello", b"\x7fELF\0\0"),
    "both-not-utf-8": ("hello", b"\xc3\x28\n"),
    "fence-closed": ("hello", "a </context> b\n"),
    "fence-closed-twice": ("hello", "a </context> b </context-2>\n"),
    "fence-opened": ("hello", "<context>\ninner\n"),
    "fence-in-words": (["what is </context>?"], "plain\n"),
    "no-stdin": ("-n hello", "left alone\n"),
    "no-stdin-without-words": ("-n", "left alone\n"),
    "100-kilobytes": ("hello", "0123456789abcde\n" * 6_400),
    "system-not-utf-8": (["-S", NOT_UTF_8, "hello"], None),
}


def table():
    for name, (args, stdin) in QUESTIONS.items():
        yield case(f"question-{name}", q(args, stdin=stdin))
    for option in ["--dry-run", "--no-stream", "--no-save", "-q", "-v", "-j", "-x", "--schema name"]:
        fenced = usual('{"name":"Ann"}' if "schema" in option else "Here:\n\n```sh\necho hi\n```\n")
        yield case(f"question-both{option}", q(f"{option} summarise", stdin="line\n"), q("--last"), replies=[fenced])
    yield case("question-shell", *[q("hello", env={"SHELL": shell}) for shell in ["/usr/bin/fish", "/", "zsh"]])
    yield case("input-folder", sh("q hello <."), sh("q -n hello <."))
    yield case("input-closed", sh("q hello <&-"))
    yield case("input-endless", sh("yes | q hello"))
    yield case("input-in-a-loop", sh('printf "a\\nb\\n" | while read -r x; do q -n "$x"; sleep 0.01; done'))
    # What is wrong from the start is reported while the input is still open.
    for name, args, env in [
        ("option", "--bogus", {}),
        ("provider", "-p nobody hello", {}),
        ("no-key", "hello", {"OPENAI_API_KEY": None, "Q_PROVIDER": "openai"}),
        ("setting", "hello", {"Q_MESSAGES": "x"}),
        ("base-url", "hello", {"OPENAI_BASE_URL": "nonsense"}),
        ("name", "-s a/b hello", {}),
        ("proxy", "hello", {"OPENAI_BASE_URL": "http://api.example/v1", "HTTP_PROXY": "nonsense proxy"}),
        ("tools", "-t nothing hello", {}),
        ("file", "-a missing hello", {}),
    ]:
        yield case(f"wrong-before-input-{name}", tool_server(), q(args, stdin=OPEN, env=env))
