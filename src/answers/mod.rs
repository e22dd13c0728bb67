//! Known answers: each is a file named by the hash of its request, which is read and replaced whole.

pub mod key;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::session::timestamp::Timestamp;
use crate::whole_file::{self, Modes, PRIVATE, SHARED};

/// The version of the files.
pub const VERSION: u64 = 1;

const ENDING: &str = ".json";

/// The folder of known answers, which need not exist.
pub struct Answers {
    pub folder: PathBuf,
    modes: Modes,
}

/// How much a folder has.
#[derive(Default)]
pub struct Size {
    pub files: usize,
    pub bytes: u64,
}

/// The place of one answer: its path, and what the file there must be about.
pub struct AnswerFile {
    pub path: PathBuf,
    modes: Modes,
    /// The words of the question, without its input and files.
    pub question: String,
    /// The model that is asked.
    pub asked: String,
}

/// An answer that ended well, as a file has it.
#[derive(Serialize, Deserialize)]
pub struct KnownAnswer {
    pub version: u64,
    /// See [`AnswerFile::question`].
    pub question: String,
    pub answer: String,
    /// The provider and the model that gave it.
    pub provider: String,
    pub model: String,
    /// The model that was asked; a provider may replace one that it no longer has.
    pub asked: String,
    /// The provider's word for how it ended.
    pub finish: String,
    #[serde(default)]
    pub usage: Value,
    #[serde(default)]
    pub sources: Value,
    pub created: Timestamp,
}

impl Answers {
    /// A folder that others may share, such as one in a repository.
    pub fn shared(folder: PathBuf) -> Answers {
        Answers {
            folder,
            modes: SHARED,
        }
    }

    /// A folder that only the user may read.
    pub fn private(folder: PathBuf) -> Answers {
        Answers {
            folder,
            modes: PRIVATE,
        }
    }

    /// The place of the answer with this key.
    pub fn file(&self, key: &str, question: String, asked: String) -> AnswerFile {
        AnswerFile {
            path: self.folder.join(format!("{key}{ENDING}")),
            modes: self.modes,
            question,
            asked,
        }
    }

    /// How many answers there are, and their bytes. What cannot be looked at does not count.
    pub fn size(&self) -> Size {
        let mut size = Size::default();
        let entries = fs::read_dir(&self.folder);
        for entry in entries.into_iter().flatten().flatten() {
            let name = entry.file_name();
            if name.as_encoded_bytes().ends_with(ENDING.as_bytes())
                && let Ok(metadata) = entry.metadata()
            {
                size.files += 1;
                size.bytes += metadata.len();
            }
        }
        size
    }
}

impl AnswerFile {
    /// Reads the answer; `None` if there is no file.
    ///
    /// # Errors
    ///
    /// Says why the file cannot be used. To a question that is as good as no file.
    pub fn read(&self) -> Result<Option<KnownAnswer>, String> {
        let bytes = match whole_file::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.unusable(&error.to_string())),
        };
        let known: KnownAnswer =
            serde_json::from_slice(&bytes).map_err(|_| self.unusable("it is no known answer"))?;
        match self.fault_of(&known) {
            Some(fault) => Err(self.unusable(fault)),
            None => Ok(Some(known)),
        }
    }

    /// What is wrong with a file that somebody has written, or has put in the place of another one.
    fn fault_of(&self, known: &KnownAnswer) -> Option<&'static str> {
        if known.version != VERSION {
            Some("it is of another version")
        } else if known.question != self.question {
            Some("it answers another question")
        } else if known.asked != self.asked {
            Some("another model was asked")
        } else if known.answer.trim().is_empty() {
            Some("it has no answer")
        } else {
            None
        }
    }

    fn unusable(&self, why: &str) -> String {
        let path = self.path.display();
        format!("the known answer {path} is not used: {why}")
    }

    /// Writes the answer in the place of the file.
    pub fn write(&self, known: &KnownAnswer) -> io::Result<()> {
        // In lines, so that a change can be reviewed.
        let mut bytes = serde_json::to_vec_pretty(known)?;
        bytes.push(b'\n');
        whole_file::replace(&self.path, &bytes, self.modes)
    }
}
