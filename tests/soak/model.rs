//! The state that must be there, and what commands make of it.

use std::collections::BTreeMap;
use std::fmt;

use crate::command::{COPY, Command, Does, Target};
use crate::report::Kind;
use crate::run::Outcome;

/// Where a conversation is. State directories have numbers; a file is known by its name without `.json`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The file that both state directories share.
    File,
    In(usize, String),
    /// A backup of a conversation, and its number.
    Earlier(usize, String, u64),
}

/// A link to the conversation that follow-ups continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Link {
    Current,
    Slot,
}

impl Place {
    /// The state directory that holds it.
    pub fn home(&self) -> Option<usize> {
        match self {
            Place::File => None,
            Place::In(home, _) | Place::Earlier(home, ..) => Some(*home),
        }
    }
}

/// All conversations, sorted, each with the numbers of its exchanges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    pub conversations: Vec<(Place, Vec<u64>)>,
    /// The ids that the links lead to.
    pub links: BTreeMap<(usize, Link), String>,
    /// `keep = "0"`: neither what is displaced nor backups are kept.
    pub keeps_nothing: bool,
}

/// A run that has ended.
pub struct Act<'a> {
    pub command: &'a Command,
    /// The number of its exchange.
    pub id: u64,
    pub outcome: &'a Outcome,
}

impl<'a> Act<'a> {
    pub fn new(command: &'a Command, id: u64, outcome: &'a Outcome) -> Act<'a> {
        Act {
            command,
            id,
            outcome,
        }
    }
}

/// The name of a conversation whose id is not known before the run: that of its first exchange.
fn new(id: u64) -> String {
    format!("{NEW}{id}")
}

const NEW: &str = "new ";

/// Ends the names of backups of the shared file whose ids are not known before the run.
const BACKUP: &str = "-backup";

/// How many bytes an id has that stands for a moment alone.
const ID_LENGTH: usize = "session_20261121100000123".len();

/// Whether a conversation is a backup of the shared file: its id has more digits.
fn is_backup_of_file(name: &str) -> bool {
    name.ends_with(BACKUP) || name.starts_with("session_") && name.len() > ID_LENGTH
}

/// The number of a backup whose number is not known before the run.
const UNKNOWN: u64 = 0;

impl Model {
    pub fn get(&self, place: &Place) -> Option<&Vec<u64>> {
        let found = self.conversations.iter().find(|(there, _)| there == place);
        found.map(|(_, exchanges)| exchanges)
    }

    fn get_mut(&mut self, place: &Place) -> Option<&mut Vec<u64>> {
        let mut all = self.conversations.iter_mut();
        let found = all.find(|(there, _)| there == place);
        found.map(|(_, exchanges)| exchanges)
    }

    pub fn add(&mut self, place: Place, exchanges: Vec<u64>) {
        self.conversations.push((place, exchanges));
        self.conversations.sort();
    }

    /// The state after a command that is neither killed nor disturbed. A question was asked when the state was `read`;
    /// where it may be saved in more than one way, the usual one comes first.
    pub fn after(&self, read: &Model, command: &Command, id: u64) -> Vec<Model> {
        let home = command.home;
        let mut after = self.clone();
        let place = command.place(self);
        match command.does {
            Does::Ask => after.begin(command, id),
            Does::Follow => return self.follow(read, command, id),
            Does::Again => {
                let place = command.place(read).expect("a conversation to ask again in");
                let last = read.get(&place).and_then(|exchanges| exchanges.last());
                if self.get(&place).and_then(|exchanges| exchanges.last()) != last {
                    return vec![self.alone(home, id)];
                }
                after.replace(home, &place, Some(id));
            }
            Does::Undo => {
                place.inspect(|place| after.replace(home, place, None));
            }
            Does::Copy => {
                if let Some(exchanges) = place.and_then(|place| self.get(&place)) {
                    after.add(Place::In(home, format!("{COPY}{id}")), exchanges.clone());
                }
            }
            Does::Clear => {
                place.inspect(|place| after.clear(home, place));
            }
            Does::ClearAll => {
                after
                    .conversations
                    .retain(|(place, _)| place.home() != Some(home));
                after.links.retain(|(there, _), _| *there != home);
            }
        }
        vec![after]
    }

    fn follow(&self, read: &Model, command: &Command, id: u64) -> Vec<Model> {
        let appended = |place: &Place| {
            let mut model = self.clone();
            let exchanges = model.get_mut(place);
            exchanges
                .expect("the conversation that is continued")
                .push(id);
            model
        };
        let place = command.place(read);
        let was = place.as_ref().and_then(|place| read.get(place));
        // Another may have begun it since.
        let now = command
            .place(self)
            .filter(|place| self.get(place).is_some());
        let mut begun = self.clone();
        match (was, now, place) {
            (None, now, _) if matches!(command.target, Target::Linked(_)) => {
                begun.begin(command, id);
                let mut all = vec![begun];
                all.extend(now.map(|place| appended(&place)));
                all
            }
            (None, Some(place), _) => vec![appended(&place)],
            (None, None, Some(place)) => {
                begun.add(place, vec![id]);
                vec![begun]
            }
            (Some(was), _, Some(place)) => match self.get(&place) {
                // Without a first message nothing says whether it is another conversation.
                Some(now) if now.is_empty() || was.is_empty() || now.first() == was.first() => {
                    vec![appended(&place)]
                }
                _ => vec![self.alone(command.home, id)],
            },
            (_, _, None) => vec![begun],
        }
    }

    /// The state after an exchange that cannot get to its conversation: it is saved in one of its own.
    pub fn alone(&self, home: usize, id: u64) -> Model {
        let mut model = self.clone();
        model.add(Place::In(home, new(id)), vec![id]);
        model
    }

    /// The link leads to a new conversation.
    pub fn begin(&mut self, command: &Command, id: u64) {
        let Target::Linked(link) = command.target else {
            return;
        };
        let home = command.home;
        let displaced = self.links.insert((home, link), new(id));
        let is_linked = |displaced: &String| {
            self.links
                .iter()
                .any(|(key, to)| key.0 == home && to == displaced)
        };
        if let Some(displaced) =
            displaced.filter(|displaced| self.keeps_nothing && !is_linked(displaced))
        {
            self.clear(home, &Place::In(home, displaced));
        }
        self.add(Place::In(home, new(id)), vec![id]);
    }

    /// The last exchange goes, and perhaps another takes its place; the conversation as it was becomes a backup.
    fn replace(&mut self, home: usize, place: &Place, id: Option<u64>) {
        let Some(exchanges) = self.get_mut(place) else {
            return;
        };
        let was = exchanges.clone();
        exchanges.pop();
        exchanges.extend(id);
        let earlier = match place {
            _ if self.keeps_nothing => return,
            Place::In(home, name) => Place::Earlier(*home, name.clone(), UNKNOWN),
            _ => Place::In(home, new(was.first().copied().unwrap_or_default()) + BACKUP),
        };
        self.add(earlier, was);
    }

    /// A conversation is deleted, with its backups in this state directory and the links to it.
    fn clear(&mut self, home: usize, place: &Place) {
        if *place == Place::File {
            let places = self.conversations.iter().map(|(place, _)| place);
            // Also a backup of a backup that a killed --clear has removed.
            let is_backup = |other: &&Place| match other {
                Place::In(there, name) | Place::Earlier(there, name, _) => {
                    *there == home && is_backup_of_file(name)
                }
                Place::File => false,
            };
            for backup in Vec::from_iter(places.filter(is_backup).cloned()) {
                self.clear(home, &backup);
            }
        }
        let belongs = |other: &Place| match (place, other) {
            (Place::In(home, name), Place::Earlier(there, of, _)) => (home, name) == (there, of),
            _ => place == other,
        };
        self.conversations.retain(|(other, _)| !belongs(other));
        if let Place::In(home, name) = place {
            self.links
                .retain(|(there, _), to| (there, &*to) != (home, name));
        }
    }

    /// The states that a run may leave; a question was asked when the state was `read`.
    pub fn effects(&self, read: &Model, act: &Act, found: &Model) -> Vec<Model> {
        let (command, id, outcome) = (act.command, act.id, act.outcome);
        let can_run = command.can_run(read);
        if outcome.refused() {
            // There was nothing to do, or no longer what was read.
            let content = |model: &Model| {
                command
                    .place(model)
                    .and_then(|place| model.get(&place).cloned())
            };
            let may_refuse = !can_run || content(read) != content(self);
            return if may_refuse {
                vec![self.clone()]
            } else {
                Vec::new()
            };
        }
        if command.asks() && !can_run {
            return vec![self.clone()];
        }
        let after = self.after(read, command, id);
        if outcome.killed() {
            let halfway = after.iter().flat_map(|after| self.halfway(after, found));
            return halfway.collect();
        }
        let alone = self.alone(command.home, id);
        after
            .into_iter()
            .filter(|model| (*model == alone) == outcome.saved_on_its_own())
            .collect()
    }

    /// The states that a run may stop in on its way to `after`. What is new comes first, then what changes, and what is
    /// deleted goes last, in any order.
    pub fn halfway(&self, after: &Model, found: &Model) -> Vec<Model> {
        let count = |model: &Model, one| {
            let conversations = model.conversations.iter();
            conversations.filter(|other| *other == one).count()
        };
        // Several backups may have the same place as long as their numbers are not known.
        let at = |model: &Model, place| {
            let conversations = model.conversations.iter();
            conversations.filter(|(there, _)| there == place).count()
        };
        let mut added = self.clone();
        for one in &after.conversations {
            if at(after, &one.0) > at(self, &one.0) && count(after, one) > count(&added, one) {
                added.add(one.0.clone(), one.1.clone());
            }
        }
        let mut changed = added.clone();
        for (place, exchanges) in after
            .conversations
            .iter()
            .filter(|(place, _)| at(after, place) == 1)
        {
            if let Some(there) = changed.get_mut(place) {
                there.clone_from(exchanges);
            }
        }
        changed.links.extend(after.links.clone());
        let mut partly = after.clone();
        for one in &self.conversations {
            if after.get(&one.0).is_none() && found.conversations.contains(one) {
                partly.add(one.0.clone(), one.1.clone());
            }
        }
        for (link, to) in &self.links {
            // The name of a conversation that is gone is not known.
            let is_same =
                |found: &&String| *found == to || (to.starts_with(NEW) && **found == new(0));
            if let Some(found) = found.links.get(link).filter(is_same)
                && !after.links.contains_key(link)
            {
                partly.links.insert(*link, found.clone());
            }
        }
        vec![self.clone(), added, changed, partly]
    }

    /// The same with the names of [`Model::after`] for what was not there before.
    pub fn renamed(&self, before: &Model) -> Model {
        let is_old = |place: &Place, exchanges: &Vec<u64>| before.get(place) == Some(exchanges);
        let name = |home: usize, name: &String| {
            let place = Place::In(home, name.clone());
            let earlier = |(there, exchanges): &&(Place, Vec<u64>)| {
                matches!(there, Place::Earlier(at, of, _) if *at == home && of == name)
                    && !is_old(there, exchanges)
            };
            let first = self.conversations.iter().find(earlier);
            let first = first
                .map(|(_, exchanges)| exchanges)
                .or_else(|| self.get(&place));
            // A link may lead to one that is gone.
            let is_known = before.get(&place).is_some()
                || before
                    .links
                    .iter()
                    .any(|(link, to)| link.0 == home && to == name);
            let is_new = name.starts_with(NEW) || (name.starts_with("session_") && !is_known);
            if is_new {
                new(first
                    .and_then(|exchanges| exchanges.first().copied())
                    .unwrap_or_default())
            } else {
                name.clone()
            }
        };
        let mut conversations: Vec<(Place, Vec<u64>)> = Vec::new();
        for (place, exchanges) in &self.conversations {
            let place = match place {
                Place::File => Place::File,
                Place::In(home, there) => Place::In(*home, name(*home, there)),
                Place::Earlier(home, of, _) if !is_old(place, exchanges) => {
                    Place::Earlier(*home, name(*home, of), UNKNOWN)
                }
                known => known.clone(),
            };
            conversations.push((place, exchanges.clone()));
        }
        conversations.sort();
        let links = self.links.iter();
        let links = links.map(|(link, to)| (*link, name(link.0, to))).collect();
        Model {
            conversations,
            links,
            keeps_nothing: self.keeps_nothing,
        }
    }

    /// The same without links that led to nothing before: the daily sweep may remove them.
    pub fn without_lost_links(mut self, before: &Model) -> Model {
        let is_lost = |link: &(usize, Link), to: &String| {
            before.links.get(link) == Some(to)
                && before.get(&Place::In(link.0, to.clone())).is_none()
        };
        self.links.retain(|link, to| !is_lost(link, to));
        self
    }

    /// How this state differs from all that are allowed, if it does.
    pub fn differs(&self, allowed: &[Model]) -> Option<(Kind, String)> {
        if allowed.contains(self) {
            return None;
        }
        let has = |model: &Model, id| {
            let mut conversations = model.conversations.iter();
            conversations.any(|(_, exchanges)| exchanges.contains(id))
        };
        let expected = allowed.iter().flat_map(|model| &model.conversations);
        let mut expected = expected.flat_map(|(_, exchanges)| exchanges);
        let lost = expected.find(|id| allowed.iter().all(|model| has(model, id)) && !has(self, id));
        let kind = if lost.is_some() {
            Kind::Lost
        } else {
            Kind::Misplaced
        };
        let differences = allowed.iter().map(|allowed| self.difference(allowed));
        let mut differences: Vec<String> = differences.collect();
        differences.dedup();
        Some((kind, differences.join("\n or ")))
    }

    /// What is there that should not be, and the other way round.
    fn difference(&self, allowed: &Model) -> String {
        let [found, expected] = [self, allowed].map(|model| {
            let conversations = model.conversations.iter();
            let conversations =
                conversations.map(|(place, exchanges)| format!("{place:?}{exchanges:?}"));
            let links = model.links.iter();
            let links = links.map(|((home, link), to)| format!("{link:?}({home}) -> {to}"));
            conversations.chain(links).collect::<Vec<_>>()
        });
        let without = |one: &[String], other: &[String]| {
            let items = one.iter().filter(|item| !other.contains(item));
            items.cloned().collect::<Vec<_>>().join(", ")
        };
        let (more, less) = (without(&found, &expected), without(&expected, &found));
        format!("found: {more}; expected: {less}")
    }
}

/// The states that runs at once may leave: those of one after another, in any order, where a question may have been asked
/// before the others had an effect.
pub fn in_any_order(before: &Model, acts: &[Act], found: &Model) -> Vec<Model> {
    let mut allowed = Vec::new();
    let (states, acts) = ([before.clone()], Vec::from_iter(acts));
    follow_orders(&states, &acts, found, &mut allowed);
    allowed
}

/// `states` are those so far, the last one is now.
fn follow_orders(states: &[Model], acts: &[&Act], found: &Model, allowed: &mut Vec<Model>) {
    let now = states.last().expect("a state to begin with");
    if acts.is_empty() && !allowed.contains(now) {
        allowed.push(now.clone());
    }
    for (at, act) in acts.iter().enumerate() {
        let others = [&acts[..at], &acts[at + 1..]].concat();
        let reads = act.command.asks() || act.outcome.refused();
        let read = if reads {
            states
        } else {
            std::slice::from_ref(now)
        };
        let mut after: Vec<Model> = Vec::new();
        for model in read.iter().flat_map(|read| now.effects(read, act, found)) {
            if !after.contains(&model) {
                after.push(model);
            }
        }
        for model in after {
            follow_orders(&[states, &[model]].concat(), &others, found, allowed);
        }
    }
}

impl fmt::Display for Act<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} of {:?}, exchange {}: {}",
            self.command,
            self.command.target,
            self.id,
            self.outcome.summary()
        )
    }
}
