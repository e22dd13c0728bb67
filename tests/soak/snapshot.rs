//! What the files of the state hold, read while no q runs.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::{NAME, SLOT};
use crate::image;
use crate::model::{Model, Place};
use crate::question::{Question, WITH_IMAGE};
use crate::report::Kind;

#[derive(Default)]
pub struct Snapshot {
    pub files: Vec<File>,
    /// Files that are wrong at any time.
    pub torn: Vec<String>,
    /// Files that only a killed run may leave, until the next run.
    pub left_over: Vec<String>,
}

/// A conversation's file.
pub struct File {
    pub place: Place,
    pub path: PathBuf,
    pub created: String,
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
    pub fn take(homes: &[PathBuf], shared: &Path) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (home, sessions) in homes.iter().enumerate() {
            snapshot.read_folder(sessions, |name| match name.strip_suffix(".json")? {
                "current" => Some(Place::Current(home)),
                NAME => Some(Place::Named(home)),
                name if name.strip_prefix("current-") == Some(SLOT) => Some(Place::Slot(home)),
                name if name.starts_with("session_") => Some(Place::Archived(home)),
                _ => None,
            });
        }
        snapshot.read_folder(shared, |name| (name == "talk.json").then_some(Place::File));
        snapshot
    }

    fn read_folder(&mut self, folder: &Path, place_of: impl Fn(&str) -> Option<Place>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(place) = place_of(&name) else {
                // q wrote every file here, so none can ever be unreadable to it.
                let kind = if name.contains("unreadable") { &mut self.torn } else { &mut self.left_over };
                kind.push(format!("{} is there", path.display()));
                continue;
            };
            let links = entry.metadata().map_or(1, |metadata| metadata.nlink());
            if links > 1 {
                self.left_over.push(format!("{} has {links} names", path.display()));
            }
            match read(&path) {
                // An undo of everything leaves the tools that the conversation remembers.
                Ok((_, exchanges)) if exchanges.is_empty() => {}
                Ok((created, exchanges)) => self.files.push(File { place, path, created, exchanges }),
                Err(reason) => self.torn.push(format!("{}: {reason}", path.display())),
            }
        }
    }

    /// Exchanges that are not as they were asked and answered. No answer of a soak is interrupted but by a signal.
    pub fn damaged(&self) -> Vec<String> {
        let mut damaged = Vec::new();
        for file in &self.files {
            for exchange in file.exchanges.iter().filter(|exchange| exchange.interrupted) {
                damaged.push(format!("{}: exchange {} is interrupted", file.path.display(), exchange.id));
            }
        }
        damaged
    }

    /// The conversations, each file for itself.
    pub fn model(&self, keeps_nothing: bool) -> Model {
        Model::with(self.files.iter().map(|file| (file.place, file.ids())).collect(), keeps_nothing)
    }

    /// The conversations as a killed run may leave them: the one that is about to be displaced may have a second name
    /// already.
    pub fn model_after_kill(&self, keeps_nothing: bool) -> Model {
        let is_archived = |file: &File| matches!(file.place, Place::Archived(_));
        let same = |one: &File, other: &File| one.created == other.created && one.ids() == other.ids();
        // One that is archived already may be about to be archived once more, as it was.
        let second_name = |at: usize, file: &File| {
            let mut others = self.files.iter().enumerate().filter(|(other, _)| *other != at);
            others.any(|(other_at, other)| same(file, other) && (!is_archived(other) || other_at < at))
        };
        let files = self.files.iter().enumerate();
        let files = files.filter(|(at, file)| !is_archived(file) || !second_name(*at, file)).map(|(_, file)| file);
        Model::with(files.map(|file| (file.place, file.ids())).collect(), keeps_nothing)
    }

    /// All that is wrong after a run that came to its end: torn or damaged files, and what is left over.
    pub fn wrong(&self) -> Vec<(Kind, String)> {
        let torn = self.torn.iter().cloned().chain(self.damaged()).map(|what| (Kind::Torn, what));
        let left_over = self.left_over.iter().cloned().map(|what| (Kind::LeftOver, what));
        torn.chain(left_over).collect()
    }
}

/// The moments of creation that a state folder has seen, each with the conversation that it belongs to.
#[derive(Default)]
pub struct Created(HashMap<(usize, String), u64>);

impl Created {
    /// Looks for two conversations that were created at the same moment, now or one after the other. A conversation is
    /// known by its first exchange. One that comes from elsewhere may only not share its moment with one that is there.
    pub fn check(&mut self, snapshot: &Snapshot, from_elsewhere: bool) -> Option<String> {
        let mut now: HashMap<(usize, &str), &File> = HashMap::new();
        for file in &snapshot.files {
            let (Some(home), Some(first)) = (file.place.home(), file.exchanges.first()) else { continue };
            if let Some(other) = now.insert((home, &file.created), file) {
                return Some(format!(
                    "{:?}{:?} and {:?}{:?} were both created at {}",
                    file.place,
                    file.ids(),
                    other.place,
                    other.ids(),
                    file.created
                ));
            }
            let before = self.0.insert((home, file.created.clone()), first.id).unwrap_or(first.id);
            if before != first.id && !from_elsewhere {
                return Some(format!(
                    "{:?}{:?} was created at {}, as was the one that began with {before}",
                    file.place,
                    file.ids(),
                    file.created
                ));
            }
        }
        None
    }
}

/// Reads a conversation: when it was created, and its exchanges.
fn read(path: &Path) -> Result<(String, Vec<Stored>), String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let file: Value =
        serde_json::from_slice(&bytes).map_err(|error| format!("{error} in its {} bytes", bytes.len()))?;
    if file["version"] != 1 {
        return Err(format!("its version is {}", file["version"]));
    }
    let created = file["created"].as_str().ok_or("created is missing")?.to_owned();
    let messages = file["messages"].as_array().ok_or("messages are missing")?;
    let exchanges = messages.chunks(2).map(read_exchange).collect::<Result<Vec<_>, _>>()?;
    if exchanges.is_empty() && file.get("tools").is_none() {
        return Err("it has no messages".to_owned());
    }
    Ok((created, exchanges))
}

fn read_exchange(messages: &[Value]) -> Result<Stored, String> {
    let [asked, answered] = messages else { return Err("a question has no answer".to_owned()) };
    if asked["role"] != "user" || answered["role"] != "assistant" {
        return Err(format!("these are no question and its answer: {asked} {answered}"));
    }
    let text = asked["content"].as_str().unwrap_or_default();
    let attached = asked["attachments"].as_array().map_or(&[][..], Vec::as_slice);
    let must_have = text.ends_with(WITH_IMAGE);
    // Asked again in other words, a question keeps its image.
    if (must_have && attached.is_empty()) || !attached.iter().all(image::is_kept_whole) || attached.len() > 1 {
        return Err(format!("{text:?} has not the image that it went with"));
    }
    let question = Question::parse(text).ok_or_else(|| format!("nobody asked {text:?}"))?;
    let answer = answered["content"].as_str().unwrap_or_default().to_owned();
    let interrupted = answered["interrupted"] == true;
    let whole = question.answer();
    if answer != whole && !(interrupted && whole.starts_with(&answer)) {
        return Err(format!("exchange {} has the answer {answer:?}, not {whole:?}", question.id));
    }
    Ok(Stored { id: question.id, answer, interrupted })
}
