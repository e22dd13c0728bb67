//! What each server listed last, kept in a file, so that a question need not wait until the server has started.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::protocol::About;
use super::server::{Spec, Target};
use crate::flags::Mode;
use crate::output::Notes;
use crate::settings::Settings;

/// The most bytes of a list that are read.
const MAX_LIST: u64 = 20_000_000;

/// The last list of a server.
#[derive(Default)]
pub struct KnownList {
    /// `None` if the server has none, or if nothing may be kept.
    path: Option<PathBuf>,
    pub about: Option<About>,
}

impl KnownList {
    /// Reads the list of a server. What cannot be read counts as absent, and so does every list if the tools are to be shown.
    pub fn read(cache: Option<&Path>, spec: &Spec, settings: &Settings) -> KnownList {
        let (Some(cache), Some(identity)) = (cache, identity(spec)) else {
            return KnownList::default();
        };
        let mut name = String::new();
        for byte in Sha256::digest(identity.to_string()) {
            name.push_str(&format!("{byte:02x}"));
        }
        let path = cache.join("tools").join(format!("{name}.json"));
        let mut about = None;
        let typed = &settings.typed;
        if !typed.dry_run && typed.mode == Mode::Ask {
            about = read(&path).ok();
        }
        KnownList {
            path: settings.saves().then_some(path),
            about,
        }
    }

    /// Keeps what the server lists now.
    pub fn replace(&self, about: &About, notes: &Notes) {
        let Some(path) = &self.path else {
            return;
        };
        if self.about.as_ref() == Some(about) {
            return;
        }
        if let Err(error) = write(path, about) {
            let path = path.display();
            notes.detail(|| format!("cannot write {path}: {error}"));
        }
    }
}

/// What tells a server from others, and from itself after a change; `None` for commands, which are known at once. The values
/// of `env_from` do not count, because tokens change all the time.
fn identity(spec: &Spec) -> Option<Value> {
    let version = env!("CARGO_PKG_VERSION");
    let section = spec.section.identity();
    match &spec.target {
        Target::Local(program) => {
            let metadata = fs::metadata(&program.file).ok()?;
            let time = (metadata.mtime(), metadata.mtime_nsec());
            let file = program.file.to_string_lossy();
            Some(json!([version, section, file, metadata.len(), time]))
        }
        Target::Remote(_) => Some(json!([version, section])),
        Target::Commands(_) => None,
    }
}

fn read(path: &Path) -> io::Result<About> {
    let metadata = fs::metadata(path)?;
    // Opening a pipe would wait for a writer.
    if !metadata.is_file() || metadata.len() > MAX_LIST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// Replaces a file, which a reader finds either old or new.
fn write(path: &Path, about: &About) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let temporary = path.with_extension(std::process::id().to_string());
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&temporary)?;
    file.write_all(&serde_json::to_vec(about)?)?;
    fs::rename(&temporary, path)
}
