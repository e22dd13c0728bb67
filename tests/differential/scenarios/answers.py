"""Answers in every form of output: text, code, JSON, whole, quiet, verbose."""

from replies import DIALECTS, usual
from steps import Scenario, q

ANSWERS = {
    "text": "Just text.",
    "text-with-line-end": "Just text.\n",
    "many-line-ends": "Text.\n\n\n",
    "code": "Here:\n\n```sh\necho hi\n```\n\nDone.",
    "two-blocks": "```\none\n```\nand\n```python\ntwo\n```",
    "open-block": "```\nnever closed",
    "empty-block": "```\n```\n",
    "tildes": "~~~\ntext with ``` inside\n~~~",
    "long-fence": "````md\n```\ninner\n```\n````",
    "short-fence": "``\nno code\n``",
    "inline": "Use ```this``` inline and `that`.",
    "indented": "  ```\n  two\n    four\n none\n  ```",
    "indented-too-far": "    ```\n    text\n    ```",
    "in-list": "- item\n\n  ```sh\n  in item\n  ```\n1. one\n   ```\n   in one\n   ```",
    "tabs": "\t```\n\ttab\n\t```\n```\n\ttabbed\n```",
    "carriage-returns": "```\r\none\r\n```\r\n",
    "quote": "> ```\n> quoted\n> ```",
    "unicode": "Ünïcödé 🦀\n```\n🦀\n```",
    "json": '{"a": "b\\n"}',
    "think": "<think>\nhm\n</think>\n\nAnswer",
}

OPTIONS = {
    "plain": [],
    "extract": ["-x"],
    "json": ["-j"],
    "extract-json": ["-x", "-j"],
    "whole": ["--no-stream"],
    "extract-whole": ["-x", "--no-stream"],
    "json-whole": ["-j", "--no-stream"],
    "quiet": ["-q"],
    "verbose": ["-v"],
    "extract-quiet": ["-x", "-q"],
    "json-verbose": ["-j", "-v"],
    "extract-no-save": ["-x", "--no-save"],
}


def table():
    for answer, text in ANSWERS.items():
        for name, options in OPTIONS.items():
            last = [q("--last"), q("--last", "-x")] if name == "plain" else []
            yield Scenario(f"answer-{answer}-{name}", [q(*options, "hello"), *last], replies=[usual(text)])
    for dialect in DIALECTS:
        for name, options in OPTIONS.items():
            yield Scenario(
                f"answer-{name}-{dialect.name}",
                [q(*options, "hello")],
                env=dialect.env,
                replies=[usual(ANSWERS["code"])],
            )
            yield Scenario(
                f"answer-cut-{name}-{dialect.name}",
                [q(*options, "hello"), q("--last", "-x")],
                env=dialect.env,
                replies=[usual(ANSWERS["code"], "length")],
            )
            yield Scenario(
                f"answer-blocked-{name}-{dialect.name}",
                [q(*options, "hello"), q("--last")],
                env=dialect.env,
                replies=[usual(ANSWERS["code"], "blocked")],
            )
            yield Scenario(
                f"answer-other-{name}-{dialect.name}",
                [q(*options, "hello"), q("--last")],
                env=dialect.env,
                replies=[usual(ANSWERS["code"], "other")],
            )
