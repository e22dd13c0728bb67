//! What the files of the state hold, read while no q runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::{COPY, NAME, SLOT};
use crate::image;
use crate::model::{Link, Model, Place};
use crate::question::{IN_ROLE, Question, WITH_CALL, WITH_IMAGE, WITH_SOURCES};
use crate::report::Kind;
use crate::{role, toolserver};

#[derive(Default)]
pub struct Snapshot {
    pub files: Vec<File>,
    /// The names, without `.json`, that the links lead to.
    pub links: BTreeMap<(usize, Link), String>,
    /// Those that are files, as q before 0.3 and other tools write them.
    pub regular: Vec<(usize, Link)>,
    /// Files that are wrong at any time.
    pub torn: Vec<String>,
    /// Files that no run may leave.
    pub left_over: Vec<String>,
    /// Files that only a killed run may leave, until the daily sweep.
    pub unfinished: Vec<String>,
}

/// A conversation's file.
pub struct File {
    pub place: Place,
    pub path: PathBuf,
    pub exchanges: Vec<Stored>,
}

/// An exchange as it was saved.
pub struct Stored {
    pub id: u64,
    pub answer: String,
    pub interrupted: bool,
}

impl File {
    pub fn ids(&self) -> Vec<u64> {
        self.exchanges.iter().map(|exchange| exchange.id).collect()
    }
}

impl Snapshot {
    /// `states` are the directories `q` of all state directories, `shared` is where the shared file is.
    pub fn take(states: &[PathBuf], shared: &Path) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (home, state) in states.iter().enumerate() {
            let known = ["sessions", "swept"].map(|name| state.join(name));
            let others = entries(state)
                .into_iter()
                .filter(|path| !known.contains(path));
            snapshot
                .left_over
                .extend(others.map(|path| format!("{} is there", path.display())));
            for path in entries(&state.join("sessions")) {
                let there = format!("{} is there", path.display());
                if is_unfinished(&path) {
                    snapshot.unfinished.push(there);
                    continue;
                }
                match Name::read(&path) {
                    Some(Name::Link(link)) => snapshot.read_link(home, link, &path),
                    Some(Name::Conversation(name)) => {
                        snapshot.read_file(Place::In(home, name), path)
                    }
                    Some(Name::Earlier(of, number)) => {
                        snapshot.read_file(Place::Earlier(home, of, number), path)
                    }
                    // q wrote every file here, so none can ever be unreadable to it.
                    None if there.contains("unreadable") => snapshot.torn.push(there),
                    None => snapshot.left_over.push(there),
                }
            }
        }
        for path in entries(shared) {
            let there = format!("{} is there", path.display());
            if path.ends_with("talk.json") {
                snapshot.read_file(Place::File, path);
            } else if is_unfinished(&path) {
                snapshot.unfinished.push(there);
            } else {
                snapshot.left_over.push(there);
            }
        }
        snapshot.adopt();
        snapshot
    }

    fn read_link(&mut self, home: usize, link: Link, path: &Path) {
        let Ok(target) = fs::read_link(path) else {
            match read(path) {
                Ok((created, _)) => {
                    let id = id_of(&created);
                    self.links.insert((home, link), id.clone());
                    self.regular.push((home, link));
                    self.read_file(Place::In(home, id), path.to_owned());
                }
                Err(reason) => self.torn.push(format!("{}: {reason}", path.display())),
            }
            return;
        };
        match Name::read(&target) {
            Some(Name::Conversation(id))
                if id.starts_with("session_") && target.components().count() == 1 =>
            {
                self.links.insert((home, link), id);
            }
            _ => self
                .torn
                .push(format!("{} leads to {}", path.display(), target.display())),
        }
    }

    fn read_file(&mut self, place: Place, path: PathBuf) {
        match read(&path) {
            Ok((created, exchanges)) => {
                let id = match &place {
                    Place::In(_, name) | Place::Earlier(_, name, _)
                        if name.starts_with("session_") =>
                    {
                        name
                    }
                    _ => &id_of(&created),
                };
                // The ids of the shared file's backups have more digits.
                if !id.starts_with(&id_of(&created)) {
                    self.torn
                        .push(format!("{} was created {created}", path.display()));
                }
                self.files.push(File {
                    place,
                    path,
                    exchanges,
                });
            }
            Err(reason) => self.torn.push(format!("{}: {reason}", path.display())),
        }
    }

    /// A file in a link's place is one conversation with the file of its id, where both are there.
    fn adopt(&mut self) {
        let order = |file: &File| (file.place.clone(), file.path.clone());
        let files = &mut self.files;
        files.sort_by_key(order);
        files.dedup_by(|one, other| one.place == other.place && one.ids() == other.ids());
    }

    /// Exchanges that are not as they were asked and answered. No answer of a soak is interrupted but by a signal.
    pub fn damaged(&self) -> Vec<String> {
        let mut damaged = Vec::new();
        for file in &self.files {
            let (path, exchanges) = (file.path.display(), file.exchanges.iter());
            for exchange in exchanges.filter(|exchange| exchange.interrupted) {
                damaged.push(format!("{path}: exchange {} is interrupted", exchange.id));
            }
        }
        damaged
    }

    /// The conversations.
    pub fn model(&self, keeps_nothing: bool) -> Model {
        let mut model = Model {
            keeps_nothing,
            links: self.links.clone(),
            ..Model::default()
        };
        self.files
            .iter()
            .for_each(|file| model.add(file.place.clone(), file.ids()));
        model
    }

    /// All that is wrong after a run that came to its end: torn or damaged files, and what is left over.
    pub fn wrong(&self) -> Vec<(Kind, String)> {
        let torn = self.torn.iter().cloned().chain(self.damaged());
        let torn = torn.map(|what| (Kind::Torn, what));
        let left_over = self.left_over.iter().cloned();
        let left_over = left_over.map(|what| (Kind::LeftOver, what));
        torn.chain(left_over).collect()
    }
}

/// What the name of a file says.
enum Name {
    Link(Link),
    Conversation(String),
    Earlier(String, u64),
}

impl Name {
    fn read(path: &Path) -> Option<Name> {
        let name = path.file_name()?.to_str()?.strip_suffix(".json")?;
        let (of, number) = match name.rsplit_once('~') {
            Some((of, number)) => (of, Some(number.parse().ok()?)),
            None => (name, None),
        };
        let is_id = of
            .strip_prefix("session_")
            .is_some_and(|id| id.len() >= 17 && id.bytes().all(|byte| byte.is_ascii_digit()));
        match number {
            None if name == "current" => Some(Name::Link(Link::Current)),
            None if name.strip_prefix("current-") == Some(SLOT) => Some(Name::Link(Link::Slot)),
            _ if !is_id && of != NAME && !of.starts_with(COPY) => None,
            None => Some(Name::Conversation(of.to_owned())),
            Some(number) => Some(Name::Earlier(of.to_owned(), number)),
        }
    }
}

/// Whether it is a temporary file.
fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(".tmp-q-")
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = paths.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The id that goes with a moment of creation.
pub fn id_of(created: &str) -> String {
    let digits: String = created.chars().filter(char::is_ascii_digit).collect();
    format!("session_{digits}")
}

/// Reads a conversation: when it was created, and its exchanges.
fn read(path: &Path) -> Result<(String, Vec<Stored>), String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let file: Value = serde_json::from_slice(&bytes)
        .map_err(|error| format!("{error} in its {} bytes", bytes.len()))?;
    if file["version"] != 1 {
        return Err(format!("its version is {}", file["version"]));
    }
    let created = file["created"].as_str().ok_or("created is missing")?;
    let created = created.to_owned();
    let messages = file["messages"].as_array().ok_or("messages are missing")?;
    let exchanges = messages.chunks(2).map(read_exchange);
    let exchanges = exchanges.collect::<Result<Vec<_>, _>>()?;
    let is_asked_in_role = |message: &Value| {
        message["content"]
            .as_str()
            .is_some_and(|text| text.ends_with(IN_ROLE))
    };
    let has_role = file["system"] == role::SYSTEM && file["pinned"] == true;
    if !has_role && (messages.iter().any(is_asked_in_role) || file.get("system").is_some()) {
        let (role, pinned) = (&file["system"], &file["pinned"]);
        return Err(format!("its role is {role} and {pinned}"));
    }
    Ok((created, exchanges))
}

fn read_exchange(messages: &[Value]) -> Result<Stored, String> {
    let [asked, answered] = messages else {
        return Err("a question has no answer".to_owned());
    };
    if asked["role"] != "user" || answered["role"] != "assistant" {
        return Err(format!(
            "these are no question and its answer: {asked} {answered}"
        ));
    }
    let text = asked["content"].as_str().unwrap_or_default();
    let attached = asked["attachments"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let must_have = text.ends_with(WITH_IMAGE);
    // Asked again in other words, a question keeps its image.
    if (must_have && attached.is_empty())
        || !attached.iter().all(image::is_kept_whole)
        || attached.len() > 1
    {
        return Err(format!("{text:?} has not the image that it went with"));
    }
    let question = Question::parse(text).ok_or_else(|| format!("nobody asked {text:?}"))?;
    let answer = answered["content"].as_str().unwrap_or_default().to_owned();
    let interrupted = answered["interrupted"] == true;
    let whole = question.answer();
    if answer != whole && !(interrupted && whole.starts_with(&answer)) {
        let id = question.id;
        return Err(format!(
            "exchange {id} has the answer {answer:?}, not {whole:?}"
        ));
    }
    let steps = answered["steps"].as_array().map_or(&[][..], Vec::as_slice);
    let mut calls = steps
        .iter()
        .flat_map(|step| step["calls"].as_array().into_iter().flatten());
    if !calls.all(|call| toolserver::is_kept_whole(call, interrupted))
        || (steps.is_empty() && text.ends_with(WITH_CALL) && !interrupted)
    {
        return Err(format!("exchange {} has the steps {steps:?}", question.id));
    }
    let sources = answered["sources"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let named = if text.ends_with(WITH_SOURCES) {
        question.sources()
    } else {
        Vec::new()
    };
    if !named.starts_with(sources) || (sources.len() < named.len() && !interrupted) {
        let id = question.id;
        return Err(format!("exchange {id} has the sources {sources:?}"));
    }
    if text.ends_with(IN_ROLE) && answered["model"] != role::NAME {
        let (id, by) = (question.id, &answered["model"]);
        return Err(format!("exchange {id} was answered by {by}"));
    }
    Ok(Stored {
        id: question.id,
        answer,
        interrupted,
    })
}
