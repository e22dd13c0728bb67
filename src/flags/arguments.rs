//! The arguments of the command line, before settings and conversation say what they mean (pure).

use std::ffi::OsString;

use super::document::{Generated, NameList};
use super::tool_names::ToolNames;

/// The task of this run. All but `Ask` are actions, which ask no model, and read no input but a confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    #[default]
    Ask,
    History,
    Last,
    Result,
    Undo,
    List,
    Copy,
    Clear,
    ListTools,
    Status,
    Models,
    Generate,
    ShortHelp,
    LongHelp,
    Version,
}

impl Mode {
    /// Whether words can follow.
    pub fn takes_words(self) -> bool {
        matches!(self, Mode::Ask | Mode::List)
    }

    /// Whether it waits for servers, meanwhile showing the spinner.
    pub fn waits_for_servers(self) -> bool {
        matches!(self, Mode::Ask | Mode::Models | Mode::ListTools)
    }

    /// Whether it is about one conversation, which `-s` may name.
    pub fn is_of_conversation(self) -> bool {
        matches!(
            self,
            Mode::History | Mode::Last | Mode::Result | Mode::Undo | Mode::Copy | Mode::Clear
        )
    }
}

/// The command line, read but not yet judged: what it means depends on the settings and the conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    pub mode: Mode,
    pub words: Vec<OsString>,
    pub follow: bool,
    /// Whether `-f` was given twice: neither age nor another provider or model begins a new conversation.
    pub follow_anyway: bool,
    pub again: bool,
    /// A name, or the path of a file.
    pub session: Option<OsString>,
    pub provider: Option<String>,
    pub model: Option<String>,
    /// The name of a role. Its options count as given before these.
    pub role: Option<String>,
    /// Whether the provider may search the web.
    pub web: bool,
    /// Like a word, it need not be UTF-8.
    pub system: Option<OsString>,
    pub messages: Option<String>,
    pub effort: Option<String>,
    /// Each `KEY=VALUE`, in the order given.
    pub options: Vec<String>,
    pub tools: ToolNames,
    pub yes: bool,
    /// Files, in the order given; `-` is standard input.
    pub attach: Vec<OsString>,
    /// Whether the words follow `-a` and its file, without `--` between them.
    pub words_follow_attach: bool,
    /// Whether `--` comes before the words.
    pub words_are_marked: bool,
    /// What the last argument is instead of a word, such as “trip” is the NAME of --session. `None` if it is not an option's
    /// value that is alone.
    pub taken_word: Option<String>,
    /// What is said of the last option if it lacks its value, and the list that the value is in.
    pub lacking_value: Option<(String, NameList)>,
    /// JSON, a path or the short form.
    pub schema: Option<String>,
    /// Whether each item of the list that the schema asks for is printed on a line of its own, as soon as it has come.
    pub lines: bool,
    /// Whether the words are a statement, and the exit status says whether it is true.
    pub is: bool,
    pub no_stdin: bool,
    pub no_save: bool,
    pub cached: bool,
    pub no_stream: bool,
    pub json: bool,
    pub all: bool,
    /// A name, or the path of a file.
    pub copy: Option<OsString>,
    pub extract: bool,
    pub quiet: bool,
    pub verbose: bool,
    pub dry_run: bool,
    /// The kind of `--generate`.
    pub generate: Generated,
}
