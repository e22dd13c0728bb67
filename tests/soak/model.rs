//! What the state should be: conversations by their places, each a list of exchanges; and how the commands change it.

use std::collections::BTreeMap;
use std::fmt;

use crate::report::Kind;

/// Where a conversation is: in one of the state folders, or in the file that both share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    File,
    Current(usize),
    Slot(usize),
    Named(usize),
    Archived(usize),
}

impl Place {
    /// The state folder that holds it.
    pub fn home(self) -> Option<usize> {
        match self {
            Place::File => None,
            Place::Current(home) | Place::Slot(home) | Place::Named(home) | Place::Archived(home) => Some(home),
        }
    }
}

/// All conversations, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    pub conversations: Vec<(Place, Vec<u64>)>,
    /// `keep = "0"`: nothing is archived.
    pub keeps_nothing: bool,
}

impl Model {
    pub fn new(keeps_nothing: bool) -> Model {
        Model { conversations: Vec::new(), keeps_nothing }
    }

    pub fn with(mut conversations: Vec<(Place, Vec<u64>)>, keeps_nothing: bool) -> Model {
        conversations.sort();
        Model { conversations, keeps_nothing }
    }

    pub fn get(&self, place: Place) -> Option<&Vec<u64>> {
        self.conversations.iter().find(|(there, _)| *there == place).map(|(_, exchanges)| exchanges)
    }

    pub fn add(&mut self, place: Place, exchanges: Vec<u64>) {
        self.conversations.push((place, exchanges));
        self.conversations.sort();
    }

    fn take(&mut self, place: Place) -> Option<Vec<u64>> {
        let at = self.conversations.iter().position(|(there, _)| *there == place)?;
        Some(self.conversations.remove(at).1)
    }

    pub fn archive(&mut self, home: usize, exchanges: Vec<u64>) {
        if !self.keeps_nothing {
            self.add(Place::Archived(home), exchanges);
        }
    }

    /// A new conversation takes the place of the one that is there.
    pub fn begin(&mut self, place: Place, home: usize, id: u64) {
        if let Some(displaced) = self.take(place) {
            self.archive(home, displaced);
        }
        self.add(place, vec![id]);
    }

    /// The conversation that is there gets one exchange more; where there is none, it begins.
    pub fn extend(&mut self, place: Place, _home: usize, id: u64) {
        let mut exchanges = self.take(place).unwrap_or_default();
        exchanges.push(id);
        self.add(place, exchanges);
    }

    /// The last exchange is dropped; the conversation as it was is archived.
    pub fn undo(&mut self, place: Place, home: usize, _id: u64) {
        let Some(exchanges) = self.take(place) else { return };
        let rest = &exchanges[..exchanges.len().saturating_sub(1)];
        if !rest.is_empty() {
            self.add(place, rest.to_vec());
        }
        self.archive(home, exchanges);
    }

    /// The last exchange is replaced; the conversation as it was is archived.
    pub fn again(&mut self, place: Place, home: usize, id: u64) {
        let Some(exchanges) = self.take(place) else { return };
        let (_, rest) = exchanges.split_last().expect("a conversation has an exchange");
        self.add(place, [rest, &[id]].concat());
        self.archive(home, exchanges);
    }

    /// The current conversation is there under another name too.
    pub fn copy(&mut self, place: Place, home: usize, _id: u64) {
        if let Some(exchanges) = self.get(Place::Current(home)).cloned() {
            self.add(place, exchanges);
        }
    }

    pub fn clear(&mut self, place: Place, _home: usize, _id: u64) {
        self.take(place);
    }

    /// All of a state folder are deleted.
    pub fn clear_all(&mut self, _place: Place, home: usize, _id: u64) {
        self.conversations.retain(|(place, _)| place.home() != Some(home));
    }

    /// An exchange that cannot get to its conversation is saved in one of its own.
    pub fn with_alone(&self, home: usize, id: u64) -> Model {
        let mut model = self.clone();
        model.add(Place::Archived(home), vec![id]);
        model
    }

    /// In how many conversations each exchange is.
    fn counts(&self) -> BTreeMap<u64, usize> {
        let mut counts = BTreeMap::new();
        for id in self.conversations.iter().flat_map(|(_, exchanges)| exchanges) {
            *counts.entry(*id).or_default() += 1;
        }
        counts
    }

    /// How this state differs from all that are allowed, if it does.
    pub fn differs(&self, allowed: &[Model]) -> Option<(Kind, String)> {
        if allowed.iter().any(|model| model.conversations == self.conversations) {
            return None;
        }
        let found = self.counts();
        let expected: Vec<_> = allowed.iter().map(Model::counts).collect();
        let count = |counts: &BTreeMap<u64, usize>, id: &u64| counts.get(id).copied().unwrap_or(0);
        let least = |id: &u64| expected.iter().map(|counts| count(counts, id)).min().unwrap_or(0);
        let most = |id: &u64| expected.iter().map(|counts| count(counts, id)).max().unwrap_or(0);
        let ids = || expected.iter().flat_map(BTreeMap::keys).chain(found.keys());
        let lost = ids().find(|id| count(&found, id) < least(id));
        let doubled = ids().find(|id| count(&found, id) > most(id));
        let (kind, what) = match (lost, doubled) {
            (Some(id), _) => (Kind::Lost, format!("exchange {id} is lost")),
            (None, Some(id)) if most(id) == 0 => (Kind::LeftOver, format!("exchange {id} should not be there")),
            (None, Some(id)) => (Kind::Doubled, format!("exchange {id} is there {} times", count(&found, id))),
            (None, None) => (Kind::Misplaced, "an exchange is in another conversation than it should be".to_owned()),
        };
        let allowed: Vec<String> = allowed.iter().map(Model::to_string).collect();
        Some((kind, format!("{what}\n  found:    {self}\n  expected: {}", allowed.join("\n        or: "))))
    }
}

impl fmt::Display for Model {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.conversations.is_empty() {
            return formatter.write_str("nothing");
        }
        for (place, exchanges) in &self.conversations {
            write!(formatter, "{place:?}{exchanges:?} ")?;
        }
        Ok(())
    }
}
