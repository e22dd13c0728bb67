//! A record of runs at the same time, and whether it explains the files at the end.

use std::collections::HashMap;
use std::time::Instant;

use crate::command::{Does, Row};
use crate::model::Place;
use crate::report::Kind;
use crate::snapshot::{File, Snapshot};

/// A run, and how it ended.
pub struct Turn {
    pub id: u64,
    pub row: &'static Row,
    pub home: usize,
    pub began: Instant,
    pub ended: Instant,
    /// It succeeded, and printed no note that the exchange was not saved.
    pub acknowledged: bool,
    pub on_its_own: bool,
    pub killed: bool,
    /// An action that found nothing to do.
    pub nothing_there: bool,
    /// The exchanges that were sent with the question.
    pub history: Vec<u64>,
    /// The exchange that was undone.
    pub undone: Option<u64>,
}

#[derive(Default)]
pub struct Ledger {
    pub turns: Vec<Turn>,
}

impl Turn {
    fn place(&self) -> Place {
        (self.row.place)(self.home)
    }

    /// Whether it may have deleted an exchange of another turn.
    fn may_have_cleared(&self, other: &Turn) -> bool {
        self.row.does == Does::Clear
            && (self.acknowledged || self.killed)
            && !self.nothing_there
            && self.place() == other.place()
            && self.ended > other.began
    }
}

impl Ledger {
    /// What is lost, doubled or misplaced.
    pub fn check(&self, snapshot: &Snapshot) -> Vec<(Kind, String)> {
        let mut files: HashMap<u64, Vec<&File>> = HashMap::new();
        for file in &snapshot.files {
            for id in file.ids() {
                files.entry(id).or_default().push(file);
            }
        }
        let mut wrong = Vec::new();
        for turn in self.turns.iter().filter(|turn| turn.row.asks()) {
            let found = files.get(&turn.id).map(Vec::as_slice).unwrap_or_default();
            let what = match found.len() {
                0 if turn.acknowledged => self.unexplained_loss(turn, &files),
                0 | 1 => None,
                count => self.unexplained_copies(turn, found, count),
            };
            wrong.extend(what);
            wrong.extend(found.iter().find_map(|file| misplaced(turn, file)).map(|what| (Kind::Misplaced, what)));
        }
        wrong.extend(self.too_many_lost(&files));
        wrong
    }

    fn unexplained_loss(&self, turn: &Turn, files: &HashMap<u64, Vec<&File>>) -> Option<(Kind, String)> {
        let lost = |why: &str| Some((Kind::Lost, format!("exchange {} ({}): {why}", turn.id, turn.row.name)));
        if !self.turns.iter().any(|other| other.may_have_cleared(turn)) {
            return lost("nothing has cleared its conversation");
        }
        // Without copies a conversation goes as a whole.
        let undone = self.turns.iter().any(|other| other.row.does == Does::Undo);
        match turn.history.first() {
            Some(first) if !undone && files.contains_key(first) => {
                lost("but the beginning of its conversation is there")
            }
            _ => None,
        }
    }

    /// Each undo leaves one copy, which has the exchange that was dropped; and so does each question asked again.
    fn unexplained_copies(&self, turn: &Turn, found: &[&File], count: usize) -> Option<(Kind, String)> {
        let undos = self.turns.iter().filter(|other| {
            let replaced = other.row.does == Does::Again && !other.nothing_there;
            replaced
                || other.row.does == Does::Undo
                    && (other.killed
                        || other.undone.is_some_and(|undone| found.iter().any(|file| file.ids().contains(&undone))))
        });
        let copies = undos.count();
        let paths: Vec<_> = found.iter().map(|file| file.path.display().to_string()).collect();
        (count > 1 + copies).then(|| {
            (Kind::Doubled, format!("exchange {} is there {count} times, {copies} were undone: {paths:?}", turn.id))
        })
    }

    /// Each plain question starts a conversation, and each clear deletes one at most.
    fn too_many_lost(&self, files: &HashMap<u64, Vec<&File>>) -> Vec<(Kind, String)> {
        let mut wrong = Vec::new();
        let places = self.turns.iter().map(Turn::place);
        for place in places.collect::<std::collections::BTreeSet<_>>() {
            let here = || self.turns.iter().filter(|turn| turn.place() == place);
            let lost: Vec<u64> = here()
                .filter(|turn| turn.row.does == Does::Ask && turn.acknowledged && !files.contains_key(&turn.id))
                .map(|turn| turn.id)
                .collect();
            let clears = here()
                .filter(|turn| {
                    turn.row.does == Does::Clear && (turn.acknowledged || turn.killed) && !turn.nothing_there
                })
                .count();
            if lost.len() > clears {
                let what =
                    format!("{clears} conversations at {place:?} were cleared, but all of these are gone: {lost:?}");
                wrong.push((Kind::Lost, what));
            }
        }
        wrong
    }
}

/// Whether an exchange is in a conversation in which it was not asked.
fn misplaced(turn: &Turn, file: &File) -> Option<String> {
    let ids = file.ids();
    let at = ids.iter().position(|id| *id == turn.id)?;
    // A run that was killed had no chance to say that it saves its exchange on its own.
    if at == 0 && (turn.on_its_own || turn.killed) {
        return None;
    }
    let before = &ids[..at];
    let fits = match turn.row.does {
        Does::Ask => at == 0,
        _ => before.starts_with(&turn.history),
    };
    let what = || format!("{} has {ids:?}, but {} was asked after {:?}", file.path.display(), turn.id, turn.history);
    (!fits).then(what)
}
