"""Asks a real model for an answer of a shape, over three APIs of llama.cpp: shape.py PATH-OF-Q.

The model has 135 million parameters; left alone, it hardly ever writes JSON. llama.cpp forces the shape upon it where it
takes one, in chat completions. Its two other APIs ignore the shape, and then q must print nothing of the answer.
"""

import json
import os
import pathlib
import sys
import tempfile

from trial import Shell, check, finish, server

QUESTION = "Ann is 7 and Bob is 9 years old. Who are they?"


def parsed(text):
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return None


def shapes(q, provider, results):
    with tempfile.TemporaryDirectory() as home:
        shell = Shell(q, {**provider, "Q_MAX_TOKENS": "200"}, home)
        asked = shell.ask("--schema", "name, age int", QUESTION)
        person = parsed(asked.stdout)
        check("it is a person", asked.returncode == 0 and isinstance(person, dict), results)
        right = isinstance(person, dict) and list(person) == ["name", "age"]
        right = right and isinstance(person["name"], str) and isinstance(person["age"], int)
        check("with a name and an age, in this order", right, results)
        listed = shell.ask("-f", "-j", "--schema", "[name, age int]", QUESTION)
        told = parsed(listed.stdout)
        answer = parsed(told.get("answer")) if isinstance(told, dict) else None
        people = isinstance(answer, dict) and list(answer) == ["items"] and isinstance(answer["items"], list)
        check("a follow-up lists people", listed.returncode == 0 and people, results)
        schema = pathlib.Path(home, "color.json")
        schema.write_text('{"type":"object","properties":{"color":{"enum":["red","blue"]}},"required":["color"]}', encoding="utf-8")
        color = parsed(shell.ask("--schema", str(schema), "What color is the sky?").stdout)
        kept = isinstance(color, dict) and color.get("color") in ("red", "blue")
        check("a schema of one's own is kept to", kept, results)


def ignores(q, provider, results, config=""):
    with tempfile.TemporaryDirectory() as home:
        directory = pathlib.Path(home, ".config/q")
        directory.mkdir(parents=True)
        (directory / "config.toml").write_text(config, encoding="utf-8")
        shell = Shell(q, provider, home)
        asked = shell.ask("--schema", "name, age int", "Say hello.")
        check("what is no JSON is not printed", asked.returncode == 1 and asked.stdout == "", results)
        check("but kept", shell.ask("--last").stdout.strip() != "", results)


def main():
    q = os.path.abspath(sys.argv[1])
    sys.stdout.reconfigure(line_buffering=True)
    results = []
    with server() as address:
        print("--- openai")
        shapes(q, {"Q_PROVIDER": "llamacpp", "LLAMACPP_BASE_URL": f"{address}/v1"}, results)
        print("--- anthropic")
        anthropic = {"Q_PROVIDER": "anthropic", "ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "any-will-do"}
        ignores(q, anthropic, results)
        print("--- responses")
        config = f'[providers.r]\napi = "responses"\nbase_url = "{address}/v1"\nmodel = "any"\n'
        ignores(q, {"Q_PROVIDER": "r"}, results, config)
    finish(results)


main()
