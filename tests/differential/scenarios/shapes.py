"""Shapes: how the form of an answer is asked for, what a server that knows no forms is asked, and what is printed."""

from signal import SIGTERM

from replies import EVERY_DIALECT, HANG, OpenAi, body, compact, data, failing, stream, usual
from steps import OPENAI, Scenario, finish, folder, link, q, send_signal, start, wait_for_requests, write

from .fixtures import configured, current

PERSON = "name, age int"
ANN = '{"name":"Ann","age":7}'

TERMINAL = {"terminal": True, "env": {"TERM": "dumb"}}

SCHEMAS = {
    "open": {"type": "object", "properties": {"name": {"type": "string"}}},
    "strict": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": ["integer", "null"]}},
        "required": ["name", "age"],
        "additionalProperties": False,
    },
    "nested": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"people": {"type": "array", "items": {"$ref": "#/$defs/person"}, "minItems": 1}},
        "required": ["people"],
        "$defs": {"person": {"type": "object", "properties": {"name": {"type": "string"}}}},
    },
    "map": {"type": "object", "additionalProperties": {"type": "integer"}},
    "list": {"type": "array", "items": {"type": "string"}},
    "choice": {"anyOf": [{"type": "object"}, {"type": "null"}]},
    "anything": {},
}

REFUSAL = "This model does not support response format `json_schema`."


def table():
    yield from dialects()
    yield from specs()
    yield from answers()


def dialects():
    for dialect in EVERY_DIALECT:
        name, env = dialect.name, dialect.env
        here = configured(dialect)
        ask = q("--schema", PERSON, "who?")
        yield Scenario(f"shape-{name}", [*here, ask, q("-f", "more")], env=env, replies=[usual(ANN)])
        for kind, schema in SCHEMAS.items():
            yield Scenario(
                f"shape-{kind}-{name}",
                [*here, q("--schema", compact(schema), "who?")],
                env=env,
                replies=[usual('["Ann"]' if kind == "list" else '{"name":"Ann","age":7,"people":[]}')],
            )
        for which, args in {
            "list-of-objects": ["--schema", "[name, age int]"],
            "json": ["-j", "--schema", PERSON],
            "whole": ["--no-stream", "--schema", PERSON],
            "verbose": ["-v", "--schema", PERSON],
            "no-save": ["--no-save", "--schema", PERSON],
            "dry-run": ["--dry-run", "--schema", PERSON],
            "option": ["--schema", PERSON, "-o", "temperature=0"],
        }.items():
            answer = '{"items":[]}' if which == "list-of-objects" else ANN
            yield Scenario(f"shape-{which}-{name}", [*here, q(*args, "who?")], env=env, replies=[usual(answer)])
        for form in ["prompt", "messages"]:
            yield Scenario(
                f"shape-follow-{form}-{name}",
                [
                    *here,
                    current(provider=dialect.name),
                    q("-f", "--schema", PERSON, "who?"),
                    q("--again"),
                    q("--history"),
                ],
                env={**env, "Q_HISTORY": form},
                replies=[failing(400, REFUSAL), usual(ANN), usual(ANN)],
            )
        for refusals in [1, 2, 3]:
            yield Scenario(
                f"shape-refused-{refusals}-{name}",
                [*here, q("-v", "--schema", PERSON, "who?"), q("--history")],
                env=env,
                replies=[failing(400, REFUSAL)] * refusals + [usual(ANN)],
            )
        yield Scenario(
            f"shape-refused-list-{name}",
            [*here, q("--schema", compact(SCHEMAS["list"]), "who?")],
            env=env,
            replies=[failing(400, REFUSAL), usual('["Ann"]')],
        )
        yield Scenario(
            f"shape-refused-whole-{name}",
            [*here, q("--no-stream", "--schema", PERSON, "who?")],
            env=env,
            replies=[failing(400, REFUSAL), usual(ANN)],
        )
        yield Scenario(
            f"shape-refused-in-stream-{name}",
            [*here, ask],
            env=env,
            replies=[stream([*dialect.begin(), dialect.failure(REFUSAL, "invalid_request_error")]), usual(ANN)],
        )
        for status, message in [(400, "bad temperature"), (401, "json_schema"), (422, REFUSAL), (500, REFUSAL)]:
            yield Scenario(
                f"shape-other-failure-{status}-{name}", [*here, ask], env=env, replies=[failing(status, message)]
            )
        yield Scenario(
            f"shape-cut-{name}",
            [*here, ask, q("--last"), q("-j", "--schema", PERSON, "who?")],
            env=env,
            replies=[usual('{"name":', "length")] * 2,
        )
        yield Scenario(f"shape-blocked-{name}", [*here, ask, q("--last")], env=env, replies=[usual(ANN, "blocked")])
        yield Scenario(
            f"shape-broken-off-{name}",
            [*here, ask, q("--last")],
            env=env,
            replies=[stream([*dialect.begin(), dialect.text(ANN)])],
        )


def specs():
    """What may stand behind --schema."""
    for name, spec in {
        "one": "name",
        "blanks": " name ,age  int ",
        "lines": "name\nage int",
        "lines-with-words": "name: first, last and all\nage int: in years\n",
        "every-type": "name, age int, height float, tall bool, tags list: what they like, nick str: of old",
        "list": "[name]",
        "list-of-lines": "[name\nage int\n]",
        "umlaut": "größe int",
        "signs": "first-name, last_name, $x",
        "no-words": "name:",
        "empty": "",
        "blank": " ",
        "comma": ",",
        "last-comma": "name,",
        "empty-line": "name\n\nage",
        "twice": "name, name",
        "other-type": "age number",
        "two-types": "age int int",
        "sentence": "what is your name?",
        "open-bracket": "[name",
        "lone-bracket": "name]",
        "empty-list": "[]",
        "list-in-list": "[[name]]",
        "half-json": '{"type":',
        "json-and-more": "{} x",
        "json-and-blanks": ' {"type":"object"}\n',
        "json-other-type": '{"type":"nonsense"}',
        "json-list": "[1]",
        "json-null": "null",
        "not-utf-8": b"\xff".decode("utf-8", "surrogateescape"),
    }.items():
        yield Scenario(
            f"shape-spec-{name}",
            [q("--dry-run", "--schema", spec, "who?"), q("--schema", spec, "who?")],
            replies=[usual(ANN)],
        )
    files = [
        write("home/shapes/person.json", compact(SCHEMAS["open"])),
        write("home/broken.json", "{"),
        write("home/list.json", "[]"),
        write("home/not-utf-8.json", b'{"title":"\xff"}'),
        write("home/mark.json", "\ufeff{}"),
        folder("home/folder.json"),
        link("home/zero.json", "/dev/zero"),
    ]
    for path in [
        "shapes/person.json",
        "@ROOT@/home/shapes/person.json",
        "missing.json",
        "broken.json",
        "list.json",
        "not-utf-8.json",
        "mark.json",
        "folder.json",
        "zero.json",
        "person.JSON",
    ]:
        yield Scenario(f"shape-file-{path}", [*files, q("--schema", path, "who?")], replies=[usual(ANN)])


def answers():
    """What is printed of an answer."""
    for name, text in {
        "as-asked": ANN,
        "blank-around": '\n{"age": 7,\n "name": "Ann"}\n\n',
        "fence": f"```json\n{ANN}\n```\n",
        "fence-without-word": f"```\n{ANN}\n```",
        "fence-tildes": f"~~~json\n{ANN}\n~~~",
        "fence-and-words": f"Here:\n```json\n{ANN}\n```\n",
        "two-fences": f"```json\n{ANN}\n```\n```json\n{ANN}\n```",
        "open-fence": f"```json\n{ANN}\n",
        "more-fields": '{"name":"Ann","age":7,"x":[1]}',
        "wrong-type": '{"name":7,"age":"Ann"}',
        "null": '{"name":null,"age":null}',
        "field-twice": '{"name":"Ann","name":"Bob","age":7}',
        "field-missing": '{"name":"Ann"}',
        "list": f"[{ANN}]",
        "empty-list": "[]",
        "half": '{"name":"Ann","age":',
        "two": f"{ANN}\n{ANN}",
        "words": "Ann is 7.",
        "words-before": f"Here it is:\n{ANN}",
        "words-after": f"{ANN}\nThat is all.",
        "think": f"<think>hm</think>\n{ANN}",
        "escapes": '{"name":"\\u001b[31m\\ud83d\\ude00","age":7}',
        "control-characters": '{"name":"a\tb\u202e","age":7}',
        "lone-surrogate": '{"name":"\\ud800","age":7}',
        "large-number": '{"name":"Ann","age":123456789012345678901234567890}',
        "comment": f"{ANN} // done",
        "single-quotes": "{'name': 'Ann', 'age': 7}",
    }.items():
        for which, args in {"plain": [], "json": ["-j"], "whole": ["--no-stream"]}.items():
            yield Scenario(
                f"shaped-{name}-{which}",
                [q(*args, "--schema", PERSON, "who?"), *([q("--last")] if not args else [])],
                replies=[usual(text)],
            )
        yield Scenario(f"shaped-{name}-terminal", [q("--schema", PERSON, "who?", **TERMINAL)], replies=[usual(text)])
    yield Scenario("shaped-empty", [q("--schema", PERSON, "who?"), q("--list")], replies=[usual("")])
    yield Scenario(
        "shaped-list-of-objects", [q("--schema", "[name]", "who?")], replies=[usual('{"items":[{"name":"Ann"},{}]}')]
    )
    yield Scenario(
        "shaped-list-of-objects-bare", [q("--schema", "[name]", "who?")], replies=[usual('[{"name":"Ann"}]')]
    )
    yield Scenario("shape-with-extract", [q("-x", "--schema", PERSON, "who?")])
    yield Scenario("shape-with-action", [current(), q("--schema", PERSON, "--last"), q("--schema", PERSON, "--list")])
    yield Scenario("shape-twice", [q("--schema", "name", "--schema", PERSON, "who?")], replies=[usual(ANN)])
    yield Scenario("shape-input", [q("--schema", PERSON, "who?", stdin="Ann is 7.\n")], replies=[usual(ANN)])
    yield Scenario("shape-again", [current(), q("--again", "--schema", PERSON), q("--history")], replies=[usual(ANN)])
    yield Scenario("shape-again-wrong", [current(), q("--again", "--schema", PERSON), q("--history"), q("--list")])
    yield Scenario("shape-not-saved-and-wrong", [current(), q("--no-save", "--schema", PERSON, "who?"), q("--last")])
    yield Scenario("shape-by-name", [q("-s", "work", "--schema", PERSON, "who?"), q("--last", "-s", "work")])
    yield Scenario(
        "shape-refused-in-stream-by-code",
        [q("--schema", PERSON, "who?")],
        replies=[stream([data({"error": {"code": 400, "message": REFUSAL}})]), usual(ANN)],
    )
    yield Scenario(
        "shape-with-system",
        [q("-S", "Be brief.", "--schema", PERSON, "who?")],
        replies=[failing(400, REFUSAL), failing(400, REFUSAL), usual(ANN)],
    )
    yield Scenario(
        "shape-no-model",
        [q("--schema", PERSON, "who?")],
        env={**OPENAI, "Q_MODEL": "x"},
        replies=[body({"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}, 404)],
    )
    yield Scenario(
        "shape-interrupted",
        [
            start("a", "--schema", PERSON, "who?"),
            wait_for_requests(1),
            send_signal("a", SIGTERM),
            finish("a"),
        ],
        replies=[stream([*OpenAi.begin(), HANG])],
    )
