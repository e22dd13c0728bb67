//! Known answers: each is a file named by the hash of its request, which is read and replaced whole.

pub mod key;

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::session::timestamp::Timestamp;

/// The most bytes of a file.
const MAX_FILE: u64 = 20_000_000;

/// The version of the files.
pub const VERSION: u64 = 1;

const ENDING: &str = ".json";

/// The modes of files and folders that others may share, as far as the umask lets them, and of those in the cache.
const SHARED: Modes = Modes {
    file: 0o666,
    folder: 0o777,
};
const PRIVATE: Modes = Modes {
    file: 0o600,
    folder: 0o700,
};

#[derive(Clone, Copy)]
struct Modes {
    file: u32,
    folder: u32,
}

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
        match self.content() {
            Ok(known) => match self.fault_of(&known) {
                Some(fault) => Err(self.unusable(fault)),
                None => Ok(Some(known)),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.unusable(&error.to_string())),
        }
    }

    fn content(&self) -> io::Result<KnownAnswer> {
        let metadata = fs::metadata(&self.path)?;
        // Opening a pipe would wait for a writer.
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        if metadata.len() > MAX_FILE {
            return Err(too_large());
        }
        let bytes = fs::read(&self.path)?;
        Ok(serde_json::from_slice(&bytes)?)
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

    /// Writes the answer in the place of the file, which a reader finds either old or new.
    pub fn write(&self, known: &KnownAnswer) -> io::Result<()> {
        // In lines, so that a change can be reviewed.
        let mut bytes = serde_json::to_vec_pretty(known)?;
        bytes.push(b'\n');
        if bytes.len() as u64 > MAX_FILE {
            return Err(too_large());
        }
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(self.modes.folder);
        builder.create(folder)?;
        let temporary = folder.join(temporary_name());
        let replaced = self
            .fill(&temporary, &bytes)
            .and_then(|()| fs::rename(&temporary, &self.path));
        if replaced.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        replaced
    }

    fn fill(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(self.modes.file);
        options.open(path)?.write_all(bytes)
    }
}

fn too_large() -> io::Error {
    io::Error::other(format!("it has more than {MAX_FILE} bytes"))
}

/// A name that no other process uses.
fn temporary_name() -> String {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanoseconds = since_1970.unwrap_or_default().as_nanos();
    format!(".tmp-q-{}-{nanoseconds}", process::id())
}
