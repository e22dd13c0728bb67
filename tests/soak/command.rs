//! The table of commands that change state.

use crate::model::{Model, Place};
use crate::random::Random;
use crate::toolserver;

/// Stands for the path of the shared file.
pub const FILE: &str = "FILE";
/// Stands for the path of the image.
pub const IMAGE: &str = "IMAGE";
/// The name of the named conversation, and of the slot.
pub const NAME: &str = "kept";
pub const SLOT: &str = "one";

/// A command that changes state.
pub struct Row {
    pub name: &'static str,
    pub args: &'static [&'static str],
    /// Which conversation it is about, in a state folder.
    pub place: fn(usize) -> Place,
    pub does: Does,
    /// What it does to the state, when it succeeds: place, state folder, number of the question.
    pub change: fn(&mut Model, Place, usize, u64),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// Asks a question that starts a conversation.
    Ask,
    /// Asks a question that continues one.
    Follow,
    /// Asks the last question again, in other words.
    Again,
    Undo,
    /// Copies the current conversation under the name.
    Copy,
    Clear,
    ClearAll,
}

const fn file(_home: usize) -> Place {
    Place::File
}

/// One row for each command; a new command needs nothing but its row, and a function of the model.
pub const ROWS: &[Row] = &[
    Row { name: "q", args: &[], place: Place::Current, does: Does::Ask, change: Model::begin },
    Row { name: "q -f", args: &["-f"], place: Place::Current, does: Does::Follow, change: Model::extend },
    Row { name: "q --undo", args: &["--undo"], place: Place::Current, does: Does::Undo, change: Model::undo },
    Row { name: "q --clear", args: &["--clear"], place: Place::Current, does: Does::Clear, change: Model::clear },
    Row { name: "Q_SESSION q", args: &[], place: Place::Slot, does: Does::Ask, change: Model::begin },
    Row { name: "Q_SESSION q -f", args: &["-f"], place: Place::Slot, does: Does::Follow, change: Model::extend },
    Row { name: "Q_SESSION q --undo", args: &["--undo"], place: Place::Slot, does: Does::Undo, change: Model::undo },
    Row {
        name: "Q_SESSION q --clear",
        args: &["--clear"],
        place: Place::Slot,
        does: Does::Clear,
        change: Model::clear,
    },
    Row { name: "q -s NAME", args: &["-s", NAME], place: Place::Named, does: Does::Follow, change: Model::extend },
    Row {
        name: "q -s NAME --undo",
        args: &["-s", NAME, "--undo"],
        place: Place::Named,
        does: Does::Undo,
        change: Model::undo,
    },
    Row {
        name: "q -s NAME --clear",
        args: &["-s", NAME, "--clear"],
        place: Place::Named,
        does: Does::Clear,
        change: Model::clear,
    },
    Row { name: "q -s FILE", args: &["-s", FILE], place: file, does: Does::Follow, change: Model::extend },
    Row { name: "q -s FILE --undo", args: &["-s", FILE, "--undo"], place: file, does: Does::Undo, change: Model::undo },
    Row {
        name: "q -s FILE --clear",
        args: &["-s", FILE, "--clear"],
        place: file,
        does: Does::Clear,
        change: Model::clear,
    },
    Row { name: "q --again", args: &["--again"], place: Place::Current, does: Does::Again, change: Model::again },
    Row {
        name: "Q_SESSION q --again",
        args: &["--again"],
        place: Place::Slot,
        does: Does::Again,
        change: Model::again,
    },
    Row {
        name: "q -s NAME --again",
        args: &["-s", NAME, "--again"],
        place: Place::Named,
        does: Does::Again,
        change: Model::again,
    },
    Row {
        name: "q -s FILE --again",
        args: &["-s", FILE, "--again"],
        place: file,
        does: Does::Again,
        change: Model::again,
    },
    Row { name: "q --copy NAME", args: &["--copy", NAME], place: Place::Named, does: Does::Copy, change: Model::copy },
    Row { name: "q -t", args: &["-t", toolserver::NAME], place: Place::Current, does: Does::Ask, change: Model::begin },
    Row {
        name: "q -s NAME -t",
        args: &["-s", NAME, "-t", toolserver::NAME],
        place: Place::Named,
        does: Does::Follow,
        change: Model::extend,
    },
    Row { name: "q -a", args: &["-a", IMAGE], place: Place::Current, does: Does::Ask, change: Model::begin },
    Row {
        name: "q -s NAME -a",
        args: &["-s", NAME, "-a", IMAGE],
        place: Place::Named,
        does: Does::Follow,
        change: Model::extend,
    },
    Row {
        name: "q --clear --all",
        args: &["--clear", "--all"],
        place: Place::Current,
        does: Does::ClearAll,
        change: Model::clear_all,
    },
];

impl Row {
    /// Whether it asks a question.
    pub fn asks(&self) -> bool {
        matches!(self.does, Does::Ask | Does::Follow | Does::Again)
    }

    /// Whether the model calls a tool first.
    pub fn calls(&self) -> bool {
        self.args.contains(&"-t")
    }

    /// Whether an image goes with the question.
    pub fn attaches(&self) -> bool {
        self.args.contains(&IMAGE)
    }

    /// Whether it finds something to do.
    pub fn can_run(&self, model: &Model, home: usize) -> bool {
        match self.does {
            Does::Ask | Does::Follow => true,
            Does::Again | Does::Undo | Does::Clear => model.get((self.place)(home)).is_some(),
            Does::Copy => model.get(Place::Current(home)).is_some() && model.get(Place::Named(home)).is_none(),
            Does::ClearAll => model.conversations.iter().any(|(place, _)| place.home() == Some(home)),
        }
    }

    /// The state after it.
    pub fn after(&self, before: &Model, home: usize, id: u64) -> Model {
        let mut after = before.clone();
        (self.change)(&mut after, (self.place)(home), home, id);
        after
    }
}

/// A row that passes, and that finds something to do.
pub fn choose(random: &mut Random, model: &Model, home: usize, passes: impl Fn(&Row) -> bool) -> &'static Row {
    let rows: Vec<&'static Row> = ROWS.iter().filter(|row| row.can_run(model, home) && passes(row)).collect();
    random.pick(&rows)
}

/// A question whose answer takes a call of a tool.
pub fn with_call() -> &'static Row {
    ROWS.iter().find(|row| row.calls()).expect("a row of the table")
}

/// The row that does this in this kind of place.
pub fn find(place: fn(usize) -> Place, does: Does) -> &'static Row {
    let row = ROWS.iter().find(|row| row.does == does && (row.place)(0) == place(0));
    row.expect("a row of the table")
}
