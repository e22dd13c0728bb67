//! The arguments of the command line, before settings and conversation say what they mean.

use std::ffi::OsString;

/// What q does. All but `Ask` are actions, which ask no model and read no input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    #[default]
    Ask,
    History,
    Last,
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

/// The command line, read but not yet judged: what it means depends on the settings and the conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) mode: Mode,
    pub(crate) words: Vec<OsString>,
    pub(crate) follow: bool,
    pub(crate) again: bool,
    /// A name, or the path of a file.
    pub(crate) session: Option<OsString>,
    pub(crate) provider: Option<String>,
    pub(crate) model: Option<String>,
    /// A role, whose options count as typed before these.
    pub(crate) role: Option<String>,
    /// The provider may search the web.
    pub(crate) web: bool,
    /// Like a word, it need not be UTF-8.
    pub(crate) system: Option<OsString>,
    pub(crate) messages: Option<String>,
    pub(crate) effort: Option<String>,
    /// Each `KEY=VALUE`, in the order typed.
    pub(crate) options: Vec<String>,
    /// Each a server, one of its tools or a pattern, in the order typed.
    pub(crate) tools: Vec<String>,
    pub(crate) yes: bool,
    /// Files, in the order typed; `-` is standard input.
    pub(crate) attach: Vec<OsString>,
    /// The words follow `-a` and its file, without `--` between them.
    pub(crate) words_follow_attach: bool,
    /// JSON, a path or the short form.
    pub(crate) schema: Option<String>,
    pub(crate) no_stdin: bool,
    pub(crate) no_save: bool,
    pub(crate) no_stream: bool,
    pub(crate) json: bool,
    pub(crate) all: bool,
    /// A name, or the path of a file.
    pub(crate) copy: Option<OsString>,
    pub(crate) extract: bool,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
    pub(crate) dry_run: bool,
    /// Which document.
    pub(crate) generate: Option<String>,
}
