"""What is below a scenario's folder. Conversations are described by what they hold, so that layouts can be compared: until
0.2 `current.json` was the conversation, and moved to another name when a new one began; now it is a link to a file that stays.
"""

import json
import os
import re

from transcript import TIME, is_recent, shown

SESSIONS = "state/q/sessions"

# Unnamed conversations, and earlier states of all.
ASIDE = re.compile(r"session_\d{14}.*\.json(\.unreadable)?|.*~\d+\.json")


def describe(root):
    """Lines for each file and folder, by its path; for conversations that are not current and have no name, by a number."""
    described, asides = {}, []
    links = {path: path.parent / os.readlink(path) for path in root.rglob("q/sessions/current*.json") if is_link(path)}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        # Until 0.2 the lock was a file.
        if name.endswith("/q/lock") or path in links.values():
            continue
        if path.parent == root / SESSIONS and ASIDE.fullmatch(path.name):
            asides.append(describe_file(path))
        else:
            described[name] = describe_file(links.get(path, path))
    for number, lines in enumerate(sorted(filter(None, asides)), 1):
        described[f"{SESSIONS}/aside {number}"] = lines
    return {name: lines for name, lines in described.items() if lines}


def is_link(path):
    """Whether it is a link as q makes it, and not one of the user."""
    return path.is_symlink() and re.fullmatch(r"session_\d{17}\.json", os.readlink(path))


def describe_file(path):
    """Nothing for a conversation that has nothing in it."""
    if path.is_symlink():
        return [f"link to {os.readlink(path)}"]
    if not path.exists():
        return ["leads nowhere"]
    mode = f"{path.lstat().st_mode & 0o7777:04o}"
    if path.is_dir():
        return [f"{mode} folder"]
    if not path.is_file():
        return [f"{mode} no regular file"]
    content = path.read_bytes()
    conversation = read_conversation(content) if path.suffix == ".json" else None
    if conversation is None:
        return [mode, *shown(content)]
    lines = describe_conversation(conversation)
    return lines and [mode, *lines]


def read_conversation(content):
    """None for what is not written as q writes it."""
    try:
        value = json.loads(content, object_pairs_hook=without_doubles)
    except ValueError:
        return None
    messages = value.get("messages") if isinstance(value, dict) else None
    is_one = isinstance(messages, list) and all(isinstance(message, dict) for message in messages)
    return value if is_one and value.get("version") == 1 else None


def without_doubles(pairs):
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a field is there twice")
    return fields


def describe_conversation(conversation):
    """A line for its own fields, and one for each message."""
    messages = conversation.pop("messages")
    if not messages and not {"system", "tools"} & conversation.keys():
        return []
    # The id, which until 0.2 was another one after each --undo; and what only today's q writes, or says by its absence.
    for field in ["created", "updated", "pinned"]:
        conversation.pop(field, None)
    for message in messages:
        for field in ["usage", "provider", "model"]:
            message.pop(field, None)
        for field, nothing in [("interrupted", False), ("steps", []), ("attachments", [])]:
            if message.get(field) == nothing:
                message.pop(field, None)
        for step in message.get("steps", []):
            if isinstance(step, dict) and step.get("text") == "":
                del step["text"]
    lines = [json.dumps(value, sort_keys=True) for value in [conversation, *messages]]
    return [TIME.sub(lambda found: "<TIME>" if is_recent(found[0]) else found[0], line) for line in lines]
