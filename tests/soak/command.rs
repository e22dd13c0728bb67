//! The commands that change state: what each does, and to which conversation.

use std::fmt;

use crate::model::{Link, Model, Place};
use crate::question::{IN_ROLE, WITH_CALL, WITH_IMAGE, WITH_SOURCES};
use crate::{role, toolserver};

/// The name of the named conversation, and of the slot.
pub const NAME: &str = "kept";
pub const SLOT: &str = "one";

/// How the name of a copy begins; the number of the run follows.
pub const COPY: &str = "copy";

#[derive(Clone, Debug)]
pub struct Command {
    /// The number of the state directory.
    pub home: usize,
    pub target: Target,
    pub does: Does,
    pub with: With,
}

/// The conversation that a command is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The one that this link leads to.
    Linked(Link),
    Named,
    /// The file that both state directories share.
    File,
    Id(String),
    /// The one at this place in the list, and its id or name where that is known.
    Number(u64, String),
    /// A backup: the id or name of its conversation, and its number.
    Earlier(String, u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// Asks a question that starts a conversation.
    Ask,
    /// Asks a question that continues one.
    Follow,
    /// Asks the last question again, in other words.
    Again,
    Undo,
    /// Copies the conversation to a new name.
    Copy,
    Clear,
    ClearAll,
}

/// What goes with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum With {
    Nothing,
    /// The model calls a tool of a server first.
    Tool,
    /// The model calls a command first.
    Call,
    /// The model calls a confined command first.
    ConfinedCall,
    /// The provider searches the web.
    Search,
    /// A system prompt and a model.
    Role,
    Image,
}

impl With {
    /// The options for it; `image` is the path of the image.
    fn options(self, image: &str) -> Vec<String> {
        let options: &[&str] = match self {
            With::Nothing => &[],
            With::Tool => &["-t", toolserver::NAME],
            With::Call => &["-t", toolserver::COMMANDS],
            With::ConfinedCall => &["-t", toolserver::CONFINED],
            With::Search => &["-w"],
            With::Role => &["-r", role::NAME],
            With::Image => &["-a", image],
        };
        options.iter().map(|option| (*option).to_owned()).collect()
    }

    /// How its question ends.
    pub fn end(self) -> &'static str {
        match self {
            With::Nothing => "",
            With::Tool | With::Call | With::ConfinedCall => WITH_CALL,
            With::Search => WITH_SOURCES,
            With::Role => IN_ROLE,
            With::Image => WITH_IMAGE,
        }
    }
}

impl Target {
    /// What can be done with it. Numbers move, so q neither clears nor undoes what they stand for.
    fn takes(&self) -> &'static [Does] {
        use Does::{Again, Ask, Clear, ClearAll, Copy, Follow, Undo};
        match self {
            Target::Linked(Link::Current) => &[Ask, Follow, Again, Undo, Copy, Clear, ClearAll],
            Target::Linked(Link::Slot) => &[Ask, Follow, Again, Undo, Copy, Clear],
            Target::Named | Target::File | Target::Id(_) => &[Follow, Again, Undo, Copy, Clear],
            Target::Number(..) => &[Follow, Again, Copy],
            Target::Earlier(..) => &[Follow, Copy, Clear],
        }
    }

    /// The options that name it; `file` is the path of the shared file.
    fn options(&self, file: &str) -> Vec<String> {
        let name = match self {
            Target::Linked(_) => return Vec::new(),
            Target::Named => NAME.to_owned(),
            Target::File => file.to_owned(),
            Target::Id(id) => id.clone(),
            Target::Number(number, _) => format!("%{number}"),
            Target::Earlier(of, number) => format!("{of}~{number}"),
        };
        vec!["-s".to_owned(), name]
    }
}

impl Does {
    pub fn asks(self) -> bool {
        matches!(self, Does::Ask | Does::Follow | Does::Again)
    }
}

impl Command {
    pub fn new(home: usize, target: Target, does: Does) -> Command {
        Command {
            home,
            target,
            does,
            with: With::Nothing,
        }
    }

    /// All commands about a conversation.
    pub fn all(home: usize, target: &Target) -> impl Iterator<Item = Command> {
        let does = target.takes().iter();
        does.map(move |does| Command::new(home, target.clone(), *does))
    }

    pub fn asks(&self) -> bool {
        self.does.asks()
    }

    /// Where the conversation is, if there is one.
    pub fn place(&self, model: &Model) -> Option<Place> {
        let home = self.home;
        match &self.target {
            Target::Linked(link) => model
                .links
                .get(&(home, *link))
                .map(|id| Place::In(home, id.clone())),
            Target::Named => Some(Place::In(home, NAME.to_owned())),
            Target::File => Some(Place::File),
            Target::Id(name) | Target::Number(_, name) => Some(Place::In(home, name.clone())),
            Target::Earlier(of, number) => Some(Place::Earlier(home, of.clone(), *number)),
        }
    }

    /// Whether it finds something to do.
    pub fn can_run(&self, model: &Model) -> bool {
        let there = self.place(model).and_then(|place| model.get(&place));
        let begins = !matches!(
            self.target,
            Target::Id(_) | Target::Number(..) | Target::Earlier(..)
        );
        match self.does {
            Does::Ask => true,
            Does::Follow => there.is_some() || begins,
            Does::Again | Does::Undo | Does::Copy => {
                there.is_some_and(|exchanges| !exchanges.is_empty())
            }
            Does::Clear => there.is_some(),
            Does::ClearAll => model
                .conversations
                .iter()
                .any(|(place, _)| place.home() == Some(self.home)),
        }
    }

    /// The options that say what it does.
    fn options(&self) -> &'static str {
        match self.does {
            Does::Follow if matches!(self.target, Target::Linked(_)) => "-f",
            Does::Ask | Does::Follow => "",
            Does::Again => "--again",
            Does::Undo => "--undo",
            Does::Copy => "--copy",
            Does::Clear => "--clear",
            Does::ClearAll => "--clear --all --yes",
        }
    }

    /// Its arguments; `id` is the number of the run.
    pub fn arguments(&self, id: u64, file: &str, image: &str) -> Vec<String> {
        let mut arguments = self.target.options(file);
        arguments.extend(self.options().split_whitespace().map(str::to_owned));
        arguments.extend((self.does == Does::Copy).then(|| format!("{COPY}{id}")));
        arguments.extend(self.with.options(image));
        arguments
    }
}

/// The command without what differs from run to run.
impl fmt::Display for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = match &self.target {
            Target::Linked(Link::Current) => "q",
            Target::Linked(Link::Slot) => "Q_SESSION q",
            Target::Named => "q -s NAME",
            Target::File => "q -s FILE",
            Target::Id(_) => "q -s ID",
            Target::Number(..) => "q -s %N",
            Target::Earlier(..) => "q -s ID~N",
        };
        let space = if self.options().is_empty() { "" } else { " " };
        let with = self.with.options("").join(" ");
        let with_space = if with.is_empty() { "" } else { " " };
        write!(
            formatter,
            "{target}{space}{}{with_space}{}",
            self.options(),
            with.trim_end()
        )
    }
}
