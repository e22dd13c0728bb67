"""q and its peers: how each is configured for the scripted model, asked, and asked again."""

import dataclasses
import pathlib

MODEL = "gpt-5.4-mini"
OTHER = "gpt-5.4-nano"
NAME = "trip"


@dataclasses.dataclass(eq=False)
class Peer:
    """A program: the words before a question, for each way of asking that it has."""

    name: str
    program: list
    plain: list
    follow: list | None = None  # follows a plain question up
    chat: list | None = None  # asks in a conversation with a name, where a plain question cannot be followed up
    chat_follow: list | None = None
    unsaved: list | None = None  # the same without the option that has it saved
    other: list | None = None  # follows up with another model
    heavy: list | None = None  # asks with all that the program usually brings
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


def peers(q, folder):
    """All that are compared; where a peer is not installed, its program does not exist."""
    llm = [f"{folder}/llm/bin/llm"]
    sgpt = [f"{folder}/shell_gpt/bin/sgpt"]
    aichat = [f"{folder}/aichat/bin/aichat"]
    claude = [f"{folder}/claude/node_modules/.bin/claude"]
    codex = [f"{folder}/codex/node_modules/.bin/codex"]
    bare = ["--bare", "-p"]
    execute = ["exec", "--skip-git-repo-check"]
    return [
        Peer("q", [q], [], ["-f"], other=["-ff", "-m", OTHER], store=".local/state/q",
             environment={**OPENAI, "OPENAI_BASE_URL": "URL/v1", "Q_MODEL": MODEL}),
        Peer("curl and jq", ["/usr/bin/curl"], [], environment=OPENAI),
        Peer("llm", llm, [], ["-c"], other=["-c", "-m", OTHER], repl=["chat"], helps=[["--help"], ["prompt", "--help"]],
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
        Peer("claude --bare", claude, bare, [*bare, "-c"], other=[*bare, "-c", "--model", OTHER], heavy=["-p"],
             store=".claude/projects", environment={"ANTHROPIC_API_KEY": "sk-any", "ANTHROPIC_BASE_URL": "URL"}),
        Peer("codex", codex, execute, [*execute, "resume", "--last"],
             other=[*execute, "resume", "--last", "-m", OTHER], store=".codex/sessions", environment=OPENAI,
             files={".codex/config.toml": CODEX_CONFIG}),
    ]
