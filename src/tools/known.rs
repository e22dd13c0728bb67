//! What each server listed last, kept in a file, so that a question need not wait until the server has started.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::about::About;
use super::connection::{Callee, Spec};
use crate::flags::Mode;
use crate::settings::Settings;
use crate::text::json;
use crate::whole_file::{self, PRIVATE};

/// The most bytes of a list. A server may send half of it.
const MAX_LIST: u64 = 2_000_000;

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
        let name = whole_file::name_of(&identity.to_string());
        let path = cache.join("tools").join(format!("{name}.json"));
        let mut about = None;
        let typed = &settings.typed;
        if !typed.dry_run && typed.mode == Mode::Ask {
            let bytes = whole_file::read(&path, MAX_LIST).unwrap_or_default();
            about = json::parse_bytes(&bytes).ok();
        }
        KnownList {
            path: settings.saves().then_some(path),
            about,
        }
    }

    /// Keeps what the server lists now.
    pub fn replace(&self, about: &About) {
        if let Some(path) = &self.path
            && self.about.as_ref() != Some(about)
        {
            // Without it, the next question waits.
            if let Ok(text) = serde_json::to_vec(about) {
                let _ = whole_file::replace(path, &text, PRIVATE);
            }
        }
    }
}

/// What tells a server from others, and from itself after a change; `None` for commands, which are known at once. The values
/// of `env_from` do not count, because tokens change all the time.
fn identity(spec: &Spec) -> Option<Value> {
    let version = env!("CARGO_PKG_VERSION");
    let section = spec.section.identity();
    match &spec.target {
        Callee::Local(program) => {
            let metadata = fs::metadata(&program.file).ok()?;
            let time = (metadata.mtime(), metadata.mtime_nsec());
            let file = program.file.to_string_lossy();
            Some(serde_json::json!([
                version,
                section,
                file,
                metadata.len(),
                time
            ]))
        }
        Callee::Remote(_) => Some(serde_json::json!([version, section])),
        Callee::Commands(_) => None,
    }
}
