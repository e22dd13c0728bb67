//! The table of options: each option's names, what it sets, when it can be used, and its documentation (pure).

use std::ffi::{OsStr, OsString};

use super::arguments::{Arguments, Mode};
use super::document::{Document, Generated, NameList};
use super::tool_names::ToolNames;
use crate::text::list;

use Completion::{Conversations, Files, NamesOf, Nothing, Words};
use Effect::{Action, ActionWith, Switch, Takes};
use Mode::{
    Ask, Clear, Copy, Generate, History, Last, List, ListTools, LongHelp, Models, ShortHelp,
    Status, Undo, Version,
};
use Setter::{Kind, Names, Raw, Raws, Text, Texts};

/// One option.
#[derive(Debug)]
pub struct Flag {
    /// Each way to type it: `-m, --model`.
    pub names: &'static str,
    pub group: OptionGroup,
    pub effect: Effect,
    /// A few words for the short help.
    pub help: &'static str,
    /// Sentences for the long help and the man page.
    pub doc: &'static str,
}

/// The group of an option in the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionGroup {
    Conversation,
    Model,
    Input,
    Tools,
    Output,
    /// It asks no question, or belongs to an option that asks none.
    Action,
}

/// The change that an option makes in the arguments.
#[derive(Debug)]
pub enum Effect {
    /// Chooses what q does.
    Action(Mode),
    /// Chooses what q does, and takes a value for it.
    ActionWith(Mode, Value),
    /// Is set in these modes, or in all if there are none; any other mode does not accept it.
    Switch(&'static [Mode], fn(&mut Arguments) -> &mut bool),
    /// Takes a value in these modes.
    Takes(&'static [Mode], Value),
}

/// The value that an option takes.
#[derive(Debug)]
pub struct Value {
    /// Its name in the documents.
    pub name: &'static str,
    pub completion: Completion,
    pub setter: Setter,
    /// Whether a value may begin with a hyphen, as an option does.
    pub may_begin_with_hyphen: bool,
}

const fn value(name: &'static str, completion: Completion, setter: Setter) -> Value {
    Value {
        name,
        completion,
        setter,
        may_begin_with_hyphen: true,
    }
}

impl Value {
    /// Says that no value begins with a hyphen.
    const fn without_hyphen(mut self) -> Value {
        self.may_begin_with_hyphen = false;
        self
    }
}

/// The field that a value goes to. If that is a list, the option may be repeated.
#[derive(Debug)]
pub enum Setter {
    Text(fn(&mut Arguments) -> &mut Option<String>),
    Texts(fn(&mut Arguments) -> &mut Vec<String>),
    /// Names of tools with commas between them.
    Names(fn(&mut Arguments) -> &mut ToolNames),
    /// The name of what `--generate` prints.
    Kind(fn(&mut Arguments) -> &mut Generated),
    /// Text that need not be UTF-8, or a path.
    Raw(fn(&mut Arguments) -> &mut Option<OsString>),
    Raws(fn(&mut Arguments) -> &mut Vec<OsString>),
}

/// The values that a shell can offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completion {
    Nothing,
    /// The names of this list.
    NamesOf(NameList),
    /// Names of conversations, and files.
    Conversations,
    Files,
    Words(&'static [&'static str]),
}

impl Completion {
    /// Returns the list that a value is in.
    pub fn list(self) -> Option<NameList> {
        match self {
            NamesOf(list) => Some(list),
            Conversations => Some(NameList::Conversations),
            Nothing | Files | Words(_) => None,
        }
    }
}

impl Flag {
    /// Returns the mode that it chooses, if it chooses one.
    pub fn mode(&self) -> Option<Mode> {
        match self.effect {
            Action(mode) | ActionWith(mode, _) => Some(mode),
            Switch(..) | Takes(..) => None,
        }
    }

    /// Whether it can be used in this mode. An option that chooses a mode itself is not used in another.
    pub fn is_for(&self, mode: Mode) -> bool {
        match self.effect {
            Switch(modes, _) | Takes(modes, _) => modes.is_empty() || modes.contains(&mode),
            Action(_) | ActionWith(..) => false,
        }
    }

    /// Returns the value that it takes, if it takes one.
    pub fn value(&self) -> Option<&Value> {
        match &self.effect {
            Takes(_, value) | ActionWith(_, value) => Some(value),
            Action(_) | Switch(..) => None,
        }
    }

    /// Whether its only purpose is to delete something.
    pub fn deletes(&self) -> bool {
        matches!(self.mode(), Some(Clear | Undo))
    }

    /// Its names, the short one first.
    pub fn spellings(&self) -> impl Iterator<Item = &'static str> {
        self.names.split(", ")
    }

    /// Whether one of its names is this.
    pub fn is_called(&self, name: &OsStr) -> bool {
        self.spellings().any(|spelling| name == spelling)
    }

    /// Returns the option as messages call it: by its long name if it has one.
    pub fn name(&self) -> &'static str {
        self.spellings().last().unwrap_or_default()
    }
}

impl Setter {
    pub fn repeats(&self) -> bool {
        matches!(self, Texts(_) | Names(_) | Raws(_))
    }

    /// Whether any text can be a value, also the name of an option.
    pub fn takes_any_text(&self) -> bool {
        matches!(self, Raw(_) | Raws(_))
    }

    /// Sets the value, or says what is wrong with it, to follow the name of the option.
    pub fn set(&self, arguments: &mut Arguments, value: OsString) -> Result<(), String> {
        match self {
            Text(field) => *field(arguments) = Some(text(value)?),
            Texts(field) => field(arguments).push(text(value)?),
            Names(field) => {
                let names = text(value)?;
                for name in list::items(&names)? {
                    field(arguments).add(name)?;
                }
            }
            Kind(field) => {
                let value = text(value)?;
                let Some(kind) = Generated::find(&value) else {
                    let documents = Document::NAMES.join(", ");
                    return Err(format!("“{value}” is not one of {documents}"));
                };
                *field(arguments) = kind;
            }
            Raw(field) => *field(arguments) = Some(value),
            Raws(field) => field(arguments).push(value),
        }
        Ok(())
    }
}

fn text(value: OsString) -> Result<String, String> {
    value
        .into_string()
        .map_err(|value| format!("{} is not UTF-8", value.display()))
}

/// The modes that can use an option which overrides a setting: a question, and the status that shows it.
const OVERRIDES_SETTING: &[Mode] = &[Ask, Status];

/// All modes except help, version and `--generate`.
const EXCEPT_DOCUMENTS: &[Mode] = &[
    Ask,
    History,
    Last,
    Mode::Result,
    Undo,
    List,
    Copy,
    Clear,
    ListTools,
    Status,
    Models,
];

/// Any mode: an empty list accepts all.
const ANY_MODE: &[Mode] = &[];

/// Every option, in the order of the documents.
pub const FLAGS: &[Flag] = &[
    Flag {
        names: "-f, --follow",
        group: OptionGroup::Conversation,
        effect: Switch(&[Ask], |a| &mut a.follow),
        help: "continue the current conversation; -ff forces it",
        doc: "Continue the current conversation; `-ff` does so however old it is, and with another model: see CONVERSATIONS.",
    },
    Flag {
        names: "-s, --session",
        group: OptionGroup::Conversation,
        effect: Takes(
            &[Ask, History, Last, Mode::Result, Undo, Copy, Clear, Status],
            value("NAME", Conversations, Raw(|a| &mut a.session)).without_hyphen(),
        ),
        help: "use the conversation NAME, or create it",
        doc: "Continue the conversation `NAME`, or start it. A name has at most 100 of the characters A-Z a-z 0-9 . _ - and \
              does not begin with a dot, a hyphen, current or session_; a new one is not just one to three digits. `NAME` can \
              also be an id, `%N`, a backup or a file: see CONVERSATIONS.",
    },
    Flag {
        names: "-p, --provider",
        group: OptionGroup::Model,
        effect: Takes(
            &[Ask, Status, Models],
            value(
                "NAME",
                NamesOf(NameList::Providers),
                Text(|a| &mut a.provider),
            ),
        ),
        help: "use this provider",
        doc: "Ask this provider: see Providers under CONFIGURATION.",
    },
    Flag {
        names: "-m, --model",
        group: OptionGroup::Model,
        effect: Takes(
            OVERRIDES_SETTING,
            value("ID", Nothing, Text(|a| &mut a.model)),
        ),
        help: "use this model",
        doc: "Ask this model, by the name that `--models` lists.",
    },
    Flag {
        names: "-r, --role",
        group: OptionGroup::Model,
        effect: Takes(
            &[Ask],
            value("NAME", NamesOf(NameList::Roles), Text(|a| &mut a.role)),
        ),
        help: "apply a role: a named set of options",
        doc: "Apply the options of the role `NAME`, as if they were given before the others: see Roles under CONFIGURATION.",
    },
    Flag {
        names: "-w, --web",
        group: OptionGroup::Model,
        effect: Switch(&[Ask], |a| &mut a.web),
        help: "let the provider search the web",
        doc: "Let the provider search the web: see WEB SEARCH.",
    },
    Flag {
        names: "-e, --effort",
        group: OptionGroup::Model,
        effect: Takes(
            OVERRIDES_SETTING,
            value(
                "LEVEL",
                Words(&["low", "medium", "high"]),
                Text(|a| &mut a.effort),
            ),
        ),
        help: "set the reasoning effort, such as low or high",
        doc: "Set the reasoning effort: low, medium, high, or a level of the model's own. An error lists the valid ones \
              where the provider does.",
    },
    Flag {
        names: "-o, --option",
        group: OptionGroup::Model,
        effect: Takes(
            OVERRIDES_SETTING,
            value("KEY=VALUE", Nothing, Texts(|a| &mut a.options)).without_hyphen(),
        ),
        help: "set a field of the API request (temperature=0)",
        doc: "Set a field of the API request, such as `temperature=0`; repeatable, not saved. Dots in `KEY` address nested \
              fields. `VALUE` is JSON if it parses as JSON, otherwise a string; null removes the field.",
    },
    Flag {
        names: "-S, --system",
        group: OptionGroup::Model,
        effect: Takes(
            OVERRIDES_SETTING,
            value("TEXT", Nothing, Raw(|a| &mut a.system)),
        ),
        help: "set the system prompt",
        doc: "Send `TEXT` as the system prompt; if it is empty, send none.",
    },
    Flag {
        names: "-a, --attach",
        group: OptionGroup::Input,
        effect: Takes(&[Ask], value("FILE", Files, Raws(|a| &mut a.attach))),
        help: "attach a file, or all of a directory or pattern",
        doc: "Attach a text file, an image or a PDF, or all of a directory or of a pattern in quotes; repeatable. `-` is \
              standard input. See ATTACHMENTS.",
    },
    Flag {
        names: "--schema",
        group: OptionGroup::Output,
        effect: Takes(&[Ask], value("SPEC", Files, Text(|a| &mut a.schema))),
        help: "require JSON that matches a schema",
        doc: "Require JSON that matches `SPEC`, which is a JSON Schema, its file, or a list of fields: see STRUCTURED OUTPUT.",
    },
    Flag {
        names: "--lines",
        group: OptionGroup::Output,
        effect: Switch(&[Ask], |a| &mut a.lines),
        help: "with --schema: print each list item as it arrives",
        doc: "Print each item of a list as it arrives: see STRUCTURED OUTPUT.",
    },
    Flag {
        names: "--is",
        group: OptionGroup::Output,
        effect: Switch(&[Ask], |a| &mut a.is),
        help: "exit 0 if the statement is true, 1 if not, else 2",
        doc: "Take the words as a statement. Print nothing, and exit with 0 if it is true, 1 if it is not, and 2 otherwise: \
              see CONDITIONS.",
    },
    Flag {
        names: "-t, --tools",
        group: OptionGroup::Tools,
        effect: Takes(
            &[Ask, ListTools],
            value("NAME", NamesOf(NameList::Tools), Names(|a| &mut a.tools)).without_hyphen(),
        ),
        help: "let the model call these tools",
        doc: "Let the model call these tools: see TOOLS.",
    },
    Flag {
        names: "--yes",
        group: OptionGroup::Tools,
        effect: Switch(&[Ask, Clear], |a| &mut a.yes),
        help: "do not ask before tool calls or --clear --all",
        doc: "Run every tool call, and delete with `--clear --all`, without asking.",
    },
    Flag {
        names: "--messages",
        group: OptionGroup::Conversation,
        effect: Takes(
            OVERRIDES_SETTING,
            value("N", Nothing, Text(|a| &mut a.messages)).without_hyphen(),
        ),
        help: "send only the last N messages (default: 10)",
        doc: "Send exactly the last `N` messages with a follow-up; 0 sends none.",
    },
    Flag {
        names: "-n, --no-stdin",
        group: OptionGroup::Input,
        effect: Switch(ANY_MODE, |a| &mut a.no_stdin),
        help: "do not read standard input",
        doc: "Do not read standard input: see INPUT AND OUTPUT. Every action takes it, so that `alias q='q -n'` works; \
              `--clear --all` still asks.",
    },
    Flag {
        names: "--no-save",
        group: OptionGroup::Conversation,
        effect: Switch(OVERRIDES_SETTING, |a| &mut a.no_save),
        help: "do not save this question and its answer",
        doc: "Do not save this question and its answer: see PRIVACY AND SECURITY.",
    },
    Flag {
        names: "--cached",
        group: OptionGroup::Output,
        effect: Switch(OVERRIDES_SETTING, |a| &mut a.cached),
        help: "reuse the saved answer to an identical request",
        doc: "Reuse the saved answer to an identical request; without a key, name provider and model, too: see CACHING.",
    },
    Flag {
        names: "--no-stream",
        group: OptionGroup::Output,
        effect: Switch(&[Ask], |a| &mut a.no_stream),
        help: "print the answer only once it is complete",
        doc: "Request the answer in one piece, and print it when it is complete.",
    },
    Flag {
        names: "-x, --extract",
        group: OptionGroup::Output,
        effect: Switch(&[Ask, Last], |a| &mut a.extract),
        help: "print only the code blocks of the answer",
        doc: "Print only the contents of the answer's fenced code blocks, once it is complete, and save all of it. The \
              built-in system prompt asks for a block.",
    },
    Flag {
        names: "-j, --json",
        group: OptionGroup::Output,
        effect: Switch(EXCEPT_DOCUMENTS, |a| &mut a.json),
        help: "print JSON, including model, usage and errors",
        doc: "Print JSON. For a question it is one line with answer, provider, model, finish, usage, id, session and \
              messages_sent; where they apply also messages_left_out, sources, rounds, tool_calls and cached. After a \
              failure it has error instead. Nothing is printed if a signal ends q, such as that of Ctrl-C. usage has the \
              tokens in and out and, where the provider gives them, cached_tokens, reasoning_tokens and cost. Actions \
              print what they show, or did.",
    },
    Flag {
        names: "-q, --quiet",
        group: OptionGroup::Output,
        effect: Switch(EXCEPT_DOCUMENTS, |a| &mut a.quiet),
        help: "print errors only, no notes",
        doc: "Print no notes, only errors.",
    },
    Flag {
        names: "-v, --verbose",
        group: OptionGroup::Output,
        effect: Switch(EXCEPT_DOCUMENTS, |a| &mut a.verbose),
        help: "show request details, timing and token usage",
        doc: "Report the provider, the model and the URL, the index, role and length of each message, each retry, the \
              reasoning, the time taken and the usage. With `-t`, report the servers and how long their calls took; with \
              `--cached`, the file of the answer, or what differs from the nearest one.",
    },
    Flag {
        names: "--dry-run",
        group: OptionGroup::Output,
        effect: Switch(&[Ask], |a| &mut a.dry_run),
        help: "print the request body without sending it",
        doc: "Print the body of the request as JSON without sending it; no key is needed. Tool servers and local servers are \
              still asked what they have.",
    },
    Flag {
        names: "--again",
        group: OptionGroup::Conversation,
        effect: Switch(&[Ask], |a| &mut a.again),
        help: "repeat the last question, replacing its answer",
        doc: "Repeat the last question, with its own provider and model or those of `-p` and `-m`. New words, files, a new \
              `--schema`, and input that comes with words or files replace the old ones. Its old answer stays until \
              the new one is complete.",
    },
    Flag {
        names: "--history",
        group: OptionGroup::Action,
        effect: Action(History),
        help: "print the conversation",
        doc: "Print role, time and text of each message, model and tokens of each answer; on a terminal in local time. With \
              `--json`, print its file.",
    },
    Flag {
        names: "--last",
        group: OptionGroup::Action,
        effect: Action(Last),
        help: "print the last answer",
        doc: "Print the last answer again, also one that broke off, without a request; with `-x` only its code.",
    },
    Flag {
        names: "--result",
        group: OptionGroup::Action,
        effect: Action(Mode::Result),
        help: "print the result of the last tool call",
        doc: "Print the result of the last tool call of the last answer, as the tool gave it. If q has shortened or changed \
              it, a note says so. With `--json`, print an array of all calls of that answer.",
    },
    Flag {
        names: "--undo",
        group: OptionGroup::Action,
        effect: Action(Undo),
        help: "remove the last question and answer",
        doc: "Remove the last question and answer, and print the question, so that `q --undo | q -f \"in one line\"` asks it \
              again.",
    },
    Flag {
        names: "--list",
        group: OptionGroup::Action,
        effect: Action(List),
        help: "list conversations, or search them for words",
        doc: "List the conversations, newest first. On a terminal: the number for `-s %N`, the name if you gave one, the age \
              and the first question, as many as fit on the screen; * marks the current one. In a pipe, separated by tabs: \
              name, time of the last change, messages, provider/model and first question. With words, list only those with a \
              message that contains all of them, in upper or lower case, with the text around the first match.",
    },
    Flag {
        names: "--copy",
        group: OptionGroup::Action,
        effect: ActionWith(
            Copy,
            value("NAME", Nothing, Raw(|a| &mut a.copy)).without_hyphen(),
        ),
        help: "copy the conversation to a new name",
        doc: "Copy the conversation to `NAME`, which must be new.",
    },
    Flag {
        names: "--clear",
        group: OptionGroup::Action,
        effect: Action(Clear),
        help: "delete the conversation",
        doc: "Delete the conversation and its backups. A note counts the others.",
    },
    Flag {
        names: "--all",
        group: OptionGroup::Action,
        effect: Switch(&[Clear, List], |a| &mut a.all),
        help: "--clear: delete all; --list: include backups",
        doc: "With `--clear`: delete every conversation, also named ones. On a terminal q asks first; elsewhere it needs \
              `--yes`. With `--list`: list backups, too.",
    },
    Flag {
        names: "--list-tools",
        group: OptionGroup::Action,
        effect: Action(ListTools),
        help: "list the configured tools",
        doc: "List the configured tools, or those of `-t`: name, reads or writes (by the section or the server), asks or \
              runs, first line of the description.",
    },
    Flag {
        names: "--status",
        group: OptionGroup::Action,
        effect: Action(Status),
        help: "show settings, providers and the conversation",
        doc: "Print the version, the paths, every setting with its origin, the providers and whether their keys are set, and \
              the conversation.",
    },
    Flag {
        names: "--models",
        group: OptionGroup::Action,
        effect: Action(Models),
        help: "list the models of the provider",
        doc: "List the models of the provider.",
    },
    Flag {
        names: "--generate",
        group: OptionGroup::Action,
        effect: ActionWith(
            Generate,
            value("KIND", Words(&Document::NAMES), Kind(|a| &mut a.generate)).without_hyphen(),
        ),
        help: "print the man page, completions, keys or a skill",
        doc: "Print the man page (man), the completion for a shell (bash, zsh or fish), a key for one (keys-bash, keys-zsh \
              or keys-fish), or a skill for agents (skill): see SHELL INTEGRATION.",
    },
    Flag {
        names: "-h",
        group: OptionGroup::Action,
        effect: Action(ShortHelp),
        help: "show this summary",
        doc: "Print a summary of the options.",
    },
    Flag {
        names: "--help",
        group: OptionGroup::Action,
        effect: Action(LongHelp),
        help: "show the full manual",
        doc: "Print this manual; on a terminal, in a pager (see ENVIRONMENT).",
    },
    Flag {
        names: "-V, --version",
        group: OptionGroup::Action,
        effect: Action(Version),
        help: "show the version",
        doc: "Print the version.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_has_a_unique_name_a_help_text_and_a_description() {
        let mut names = std::collections::HashSet::new();
        for flag in FLAGS {
            for name in flag.spellings() {
                assert!(names.insert(name), "{name} stands twice in the table");
            }
            let is_right = !flag.help.is_empty() && !flag.help.ends_with('.');
            assert!(is_right, "{}", flag.name());
            assert!(flag.doc.ends_with('.'), "{}", flag.name());
        }
    }
}
