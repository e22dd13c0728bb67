"""q and its peers: how each is configured for the scripted model, asked, and asked again. URL is the model's address."""

import dataclasses
import pathlib

MODEL = "gpt-5.4-mini"
OTHER = "gpt-5.4-nano"
NAME = "trip"


@dataclasses.dataclass(eq=False)
class Peer:
    """A program: the words between it and a question, for each way of asking that it has."""

    name: str
    program: list
    plain: list
    line: str = ""  # a line of shell that asks $1, in place of the program and its words
    follow: list | None = None  # follows a plain question up
    chat: list | None = None  # asks in a conversation with a name, where a plain question cannot be followed up
    chat_follow: list | None = None
    unsaved: list | None = None  # the same without the option that has it saved
    other: list | None = None  # follows up with another model
    repl: list | None = None  # starts a chat on the terminal
    helps: list = dataclasses.field(default_factory=lambda: [["--help"]])
    store: str = ""  # where conversations are kept, below the home
    environment: dict = dataclasses.field(default_factory=dict)
    files: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        self.chat = self.chat or self.plain
        self.chat_follow = self.chat_follow or self.follow

    @property
    def installed(self):
        return pathlib.Path(self.program[0]).exists()


OPENAI = {"OPENAI_API_KEY": "sk-any"}

CODEX_CONFIG = """model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "URL/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
"""

AICHAT_CONFIG = f"""model: scripted:{MODEL}
clients:
- type: openai-compatible
  name: scripted
  api_base: URL/v1
  api_key: sk-any
  models:
  - name: {MODEL}
  - name: {OTHER}
"""

LLM_MODELS = "".join(f"- {{model_id: {name}, model_name: {name}, api_base: URL/v1}}\n" for name in (MODEL, OTHER))

CURL = f"""curl --silent --no-buffer -H 'content-type: application/json' -H "authorization: bearer $OPENAI_API_KEY" \
--data "$(jq -nc --arg question "$1" '{{model: "{MODEL}", messages: [{{role: "user", content: $question}}], stream: true}}')" \
URL/v1/chat/completions | sed -un 's/^data: {{/{{/p' | jq -j --unbuffered '.choices[0].delta.content // empty'"""


CLAUDE = {"ANTHROPIC_API_KEY": "sk-any", "ANTHROPIC_BASE_URL": "URL"}

COPILOT = {"COPILOT_PROVIDER_BASE_URL": "URL/v1", "COPILOT_PROVIDER_API_KEY": "sk-any", "COPILOT_MODEL": MODEL,
           "COPILOT_OFFLINE": "true"}

OPENCODE_CONFIG = f"""{{
    "model": "scripted/{MODEL}",
    "provider": {{"scripted": {{
        "npm": "@ai-sdk/openai-compatible", "api": "URL/v1",
        "options": {{"baseURL": "URL/v1", "apiKey": "sk-any"}},
        "models": {{"{MODEL}": {{}}}}
    }}}}
}}"""


def from_npm(directory, name):
    return [f"{directory}/{name}/node_modules/.bin/{name}"]


def peers(q, directory):
    """All that are compared in each row; where a peer is not installed, its program does not exist."""
    llm = [f"{directory}/llm/bin/llm"]
    sgpt = [f"{directory}/shell_gpt/bin/sgpt"]
    aichat = [f"{directory}/aichat/bin/aichat"]
    claude, codex = from_npm(directory, "claude"), from_npm(directory, "codex")
    bare = ["--bare", "-p"]
    execute = ["exec", "--skip-git-repo-check"]
    return [
        Peer("q", [q], [], follow=["-f"], other=["-ff", "-m", OTHER], store=".local/state/q",
             environment={**OPENAI, "OPENAI_BASE_URL": "URL/v1", "Q_MODEL": MODEL}),
        Peer("curl and jq", ["/usr/bin/curl"], [], line=CURL, environment=OPENAI),
        Peer("llm", llm, [], follow=["-c"], other=["-c", "-m", OTHER], repl=["chat"], helps=[["--help"], ["prompt", "--help"]],
             store=".config/io.datasette.llm/logs.db",
             files={".config/io.datasette.llm/extra-openai-models.yaml": LLM_MODELS,
                    ".config/io.datasette.llm/default_model.txt": MODEL}, environment=OPENAI),
        Peer("aichat", aichat, [], chat=["--save-session", "-s", NAME], unsaved=["-s", NAME],
             chat_follow=["--save-session", "-s", NAME], other=["-s", NAME, "-m", f"scripted:{OTHER}"],
             repl=["-s", NAME], store=".config/aichat/sessions",
             files={".config/aichat/config.yaml": AICHAT_CONFIG}),
        Peer("shell_gpt", sgpt, [], chat=["--chat", NAME], chat_follow=["--chat", NAME],
             other=["--chat", NAME, "--model", OTHER], repl=["--repl", NAME], store="tmp/chat_cache",
             environment={**OPENAI, "API_BASE_URL": "URL/v1", "DEFAULT_MODEL": MODEL}),
        Peer("claude --bare", claude, bare, follow=[*bare, "-c"], other=[*bare, "-c", "--model", OTHER],
             store=".claude/projects", environment=CLAUDE),
        Peer("codex", codex, execute, follow=[*execute, "resume", "--last"],
             other=[*execute, "resume", "--last", "-m", OTHER], store=".codex/sessions", environment=OPENAI,
             files={".codex/config.toml": CODEX_CONFIG}),
    ]


def agents(directory):
    """Coding agents of which only the cost of a question is measured."""
    return [
        Peer("claude", from_npm(directory, "claude"), ["-p"], environment=CLAUDE),
        Peer("opencode", from_npm(directory, "opencode"), ["run"], files={".config/opencode/opencode.json": OPENCODE_CONFIG},
             environment={"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}),
        Peer("copilot", from_npm(directory, "copilot"), ["-p"], environment=COPILOT),
    ]
