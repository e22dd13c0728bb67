//! A record of runs at the same time, and whether it explains the files at the end.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::time::Instant;

use crate::command::{COPY, Command, Does, Target};
use crate::model::Place;
use crate::report::Kind;
use crate::snapshot::{File, Snapshot};

/// A run, and how it ended.
pub struct Turn {
    pub id: u64,
    pub command: Command,
    pub began: Instant,
    pub ended: Instant,
    /// It succeeded, and printed no note that the exchange was not saved.
    pub acknowledged: bool,
    pub on_its_own: bool,
    pub killed: bool,
    /// The conversation that its exchange is in, as it said itself: an id, a name or a path.
    pub said: Option<String>,
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
    fn home(&self) -> usize {
        self.command.home
    }

    fn may_have(&self, does: Does) -> bool {
        self.command.does == does && (self.acknowledged || self.killed)
    }

    fn label(&self) -> String {
        format!("exchange {} ({})", self.id, self.command)
    }

    /// Whether a file is the conversation that the exchange is in.
    fn is_in(&self, file: &File) -> bool {
        match (&file.place, &self.said) {
            (Place::In(home, name), Some(said)) => *home == self.home() && name == said,
            (Place::File, Some(said)) => file.path == Path::new(said),
            _ => false,
        }
    }

    /// Whether a file is an earlier state of that conversation.
    fn was_in(&self, file: &File) -> bool {
        matches!(&file.place, Place::Earlier(home, of, _) if *home == self.home() && self.said.as_ref() == Some(of))
    }

    /// Whether it may be about the conversation of this name.
    fn is_about(&self, name: &str) -> bool {
        match &self.command.target {
            Target::Id(id) => id == name,
            Target::Linked(_) => true,
            _ => false,
        }
    }
}

impl Ledger {
    /// What is lost, doubled or misplaced.
    pub fn check(&self, snapshot: &Snapshot) -> Vec<(Kind, String)> {
        let mut files: HashMap<u64, Vec<&File>> = HashMap::new();
        for file in &snapshot.files {
            file.ids().into_iter().for_each(|id| files.entry(id).or_default().push(file));
        }
        let mut wrong = Vec::new();
        let mut gone: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
        for turn in self.turns.iter().filter(|turn| turn.command.asks()) {
            let found = files.get(&turn.id).map(Vec::as_slice).unwrap_or_default();
            wrong.extend(self.misplaced(turn, found));
            let is_there = found.iter().any(|file| turn.is_in(file));
            let Some(said) = turn.said.as_deref().filter(|_| turn.acknowledged && !is_there) else { continue };
            if let Some(earlier) = found.iter().find(|file| turn.was_in(file) && file.ids().last() == Some(&turn.id)) {
                if !self.was_replaced(turn, earlier) {
                    wrong.push((Kind::Lost, format!("{} is in {} only", turn.label(), earlier.path.display())));
                }
            } else if snapshot.files.iter().any(|file| turn.is_in(file)) {
                wrong.push((Kind::Lost, format!("{} is lost, but its conversation {said} is there", turn.label())));
            } else if !self
                .turns
                .iter()
                .any(|other| other.may_have(Does::Clear) && other.is_about(said) && other.ended > turn.began)
            {
                wrong.push((Kind::Lost, format!("{}: nothing has cleared its conversation {said}", turn.label())));
            } else {
                gone.entry(turn.home()).or_default().insert(said);
            }
        }
        wrong.extend(gone.iter().filter_map(|(home, gone)| self.too_many_gone(*home, gone)));
        wrong.extend(self.turns.iter().filter_map(|turn| self.wrong_copy(turn, snapshot)));
        wrong.extend(self.turns.iter().filter_map(|turn| not_cleared(turn, snapshot)));
        wrong
    }

    /// An exchange in a conversation in which it was not asked, or in more than one.
    fn misplaced(&self, turn: &Turn, found: &[&File]) -> Option<(Kind, String)> {
        let is_copy =
            |file: &File| matches!(&file.place, Place::In(_, name) if name.starts_with(COPY)) && !turn.is_in(file);
        let own: Vec<&&File> =
            found.iter().filter(|file| !is_copy(file) && !matches!(file.place, Place::Earlier(..))).collect();
        let [file] = own[..] else {
            let paths: Vec<_> = own.iter().map(|file| file.path.display().to_string()).collect();
            return (own.len() > 1).then(|| (Kind::Doubled, format!("{} is in {paths:?}", turn.label())));
        };
        let ids = file.ids();
        let before = &ids[..ids.iter().position(|id| *id == turn.id)?];
        let same_start = before.first().zip(turn.history.first()).is_none_or(|(one, other)| one == other);
        let changes = self.turns.iter().any(|other| matches!(other.command.does, Does::Undo | Does::Again));
        let fits = match turn.command.does {
            // A run that was killed had no chance to say that it saves its exchange on its own.
            _ if turn.on_its_own || turn.killed && before.is_empty() => before.is_empty(),
            Does::Ask => before.is_empty(),
            Does::Again => before == turn.history,
            _ if changes => same_start,
            _ => before.starts_with(&turn.history),
        };
        let said = turn.said.is_none() || turn.is_in(file);
        let what = || {
            format!(
                "{} is in {}, after {before:?}, but was asked after {:?} and said {:?}",
                turn.label(),
                file.path.display(),
                turn.history,
                turn.said
            )
        };
        (!fits || !said).then(|| (Kind::Misplaced, what()))
    }

    /// Whether an exchange that only an earlier state has was undone, or asked again.
    fn was_replaced(&self, turn: &Turn, earlier: &File) -> bool {
        let ids = earlier.ids();
        let before = &ids[..ids.len() - 1];
        self.turns.iter().any(|other| {
            (other.may_have(Does::Undo) && (other.killed || other.undone == Some(turn.id)))
                || (other.may_have(Does::Again) && (other.killed || other.history == before))
        })
    }

    /// Each command clears one conversation at most, and an id says which.
    fn too_many_gone(&self, home: usize, gone: &BTreeSet<&str>) -> Option<(Kind, String)> {
        let clears = || self.turns.iter().filter(|turn| turn.home() == home && turn.may_have(Does::Clear));
        let by_id = |id: &&&str| clears().any(|turn| turn.command.target == Target::Id((**id).to_owned()));
        let others: Vec<_> = gone.iter().filter(|id| !by_id(id)).collect();
        let most = clears().filter(|turn| matches!(turn.command.target, Target::Linked(_))).count();
        let what = || {
            format!("{most} conversations of state folder {home} were cleared, but all of these are gone: {others:?}")
        };
        (others.len() > most).then(|| (Kind::Lost, what()))
    }

    /// A copy that is missing, of several conversations, or of another one than the one named.
    fn wrong_copy(&self, turn: &Turn, snapshot: &Snapshot) -> Option<(Kind, String)> {
        if turn.command.does != Does::Copy || !turn.acknowledged {
            return None;
        }
        let name = format!("{COPY}{}", turn.id);
        let place = Place::In(turn.home(), name.clone());
        let Some(copy) = snapshot.files.iter().find(|file| file.place == place) else {
            return Some((Kind::Lost, format!("the copy {name} is not there")));
        };
        let ids = copy.ids();
        let asked = self.turns.iter().filter(|other| ids.contains(&other.id));
        let mut from: BTreeSet<&str> =
            asked.filter_map(|other| other.said.as_deref()).filter(|said| *said != name).collect();
        if let Target::Id(id) = &turn.command.target {
            from.insert(id);
        }
        (from.len() > 1).then(|| (Kind::Misplaced, format!("{name} has {ids:?} of all of these: {from:?}")))
    }
}

/// A conversation that was cleared by its id and is there all the same.
fn not_cleared(turn: &Turn, snapshot: &Snapshot) -> Option<(Kind, String)> {
    let Target::Id(id) = &turn.command.target else { return None };
    let cleared = turn.command.does == Does::Clear && turn.acknowledged;
    let there = snapshot.files.iter().find(|file| match &file.place {
        Place::In(home, name) | Place::Earlier(home, name, _) => *home == turn.home() && name == id,
        Place::File => false,
    })?;
    cleared.then(|| (Kind::LeftOver, format!("{id} was cleared, but {} is there", there.path.display())))
}
